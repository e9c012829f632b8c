# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of stackbpf for bash. tests/lint/options.py holds it against the option table.
_stackbpf()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local common='-q --quiet -v --verbose -h --help -V --version'
	local samplers="-p --pid -L --tid -n --comm -G --cgroup --uid -a --all -s --subprocesses
		-t --time --max-overhead -u -U --user -k -K --kernel --depth --unwind --unwind-memory
		--interp -g --label --inline --no-inline --demangle --no-demangle --symbol-cache --stats $common"
	local views="-c --command --by -T --threads -d --delimited --annotate --lines --modules --offsets
		--debuginfod -o --output --format -f --folded -l --limit --title --no-header $samplers"
	local waits="-m --min -M --max --state --distr $views"
	local oncpu="-F --freq -e --event -C --cpu $views"
	local offcpu="--every --idle $waits"
	local wakeup="$waits"
	local offwake="--idle $waits"
	local wall="-F --freq -e --event --idle $views"
	local io="-r -w --bytes --latency --count --layer --kind --path --fs --dev --inode --file
		-m --min -M --max --distr $views"
	local top="-c --command --by -T --threads --debuginfod -F --freq -e --event --idle --kind
		--every --window -b --batch --count -l --limit $samplers"
	local asked="--store --from --to --kind --tag --by"
	local query="$asked --format -o --output -l --limit --annotate --modules --title --no-header $common"
	local snap="-p --pid -L --tid -u -U --user -k -K --kernel --interp --lines --no-inline --demangle
		--group --format -o --output $common"
	local timeline="$asked --step --format $common"
	local store="--store --cardinality --format --older --retain --max-size --dry-run $common"
	local run="-F --freq -e --event --idle --kind --open $views"
	local record="--store --kinds --tag --tids --retain --max-size --sync
		-F --freq -e --event $samplers"
	local export="--store --to --from --kind --tag --by --every -f --follow --otlp-attrs -H --header
		--token-file --ca-file --timeout --state $common"
	local serve="--store -l --listen --token-file --host $common"
	local diff="--store --from --to --tag --kind --by --vs-from --vs-to --vs-tag --norm --sort --limit
		--nodes --width --negate -o --output --format --title $common"
	local doctor="-p --pid $common"
	local help="$common"
	local commands='oncpu offcpu wakeup offwake wall io top live snap run timeline store query record export serve diff doctor help' i

	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			compopt -o default
			mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
			return
		fi
	done
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$commands $common" -- "$cur")
		return
	fi
	case $prev in
	--store)
		compopt -o dirnames
		return
		;;
	--from)
		mapfile -t COMPREPLY < <(compgen -W '-1h -1d -7d -30d' -- "$cur")
		return
		;;
	-p | --pid | -L | --tid)
		mapfile -t COMPREPLY < <(cd /proc && compgen -G "${cur}[0-9]*")
		return
		;;
	-n | --comm)
		mapfile -t COMPREPLY < <(compgen -W "$(cat /proc/[0-9]*/comm 2>/dev/null)" -- "$cur")
		return
		;;
	--uid)
		mapfile -t COMPREPLY < <(compgen -u -- "$cur")
		return
		;;
	-e | --event)
		mapfile -t COMPREPLY < <(compgen -W 'cpu-clock cycles' -- "$cur")
		return
		;;
	--by)
		mapfile -t COMPREPLY < <(compgen -W 'comm pid thread cpu cgroup container' -- "$cur")
		return
		;;
	--unwind)
		mapfile -t COMPREPLY < <(compgen -W 'auto fp dwarf none' -- "$cur")
		return
		;;
	--interp)
		mapfile -t COMPREPLY < <(compgen -W 'auto both only off' -- "$cur")
		return
		;;
	--kinds)
		mapfile -t COMPREPLY < <(compgen -W 'oncpu offcpu wakeup offwake wall io' -- "$cur")
		return
		;;
	--sync)
		mapfile -t COMPREPLY < <(compgen -W 'block off' -- "$cur")
		return
		;;
	--demangle)
		mapfile -t COMPREPLY < <(compgen -W 'short full off' -- "$cur")
		return
		;;
	--state)
		mapfile -t COMPREPLY < <(compgen -W 'R S D T I' -- "$cur")
		return
		;;
	--idle)
		mapfile -t COMPREPLY < <(compgen -W 'show dim drop' -- "$cur")
		return
		;;
	--layer)
		mapfile -t COMPREPLY < <(compgen -W 'syscall cache block fsync fault' -- "$cur")
		return
		;;
	--kind)
		[[ ${COMP_WORDS[1]} != io ]] && {
			mapfile -t COMPREPLY < <(compgen -W 'oncpu offcpu wakeup offwake wall io' -- "$cur")
			return
		}
		mapfile -t COMPREPLY < <(compgen -W 'file dir pipe sock tty chr blk anon other' -- "$cur")
		return
		;;
	--norm)
		mapfile -t COMPREPLY < <(compgen -W 'share rate raw' -- "$cur")
		return
		;;
	--sort)
		mapfile -t COMPREPLY < <(compgen -W 'self total' -- "$cur")
		return
		;;
	--width)
		mapfile -t COMPREPLY < <(compgen -W 'b a both' -- "$cur")
		return
		;;
	--fs)
		mapfile -t COMPREPLY < <(compgen -W "$(sed 's/.*\t//' /proc/filesystems)" -- "$cur")
		return
		;;
	--dev)
		mapfile -t COMPREPLY < <(cd /sys/class/block && compgen -G "$cur*")
		return
		;;
	--format)
		[[ ${COMP_WORDS[1]} == snap ]] && {
			mapfile -t COMPREPLY < <(compgen -W 'stacks folded json' -- "$cur")
			return
		}
		[[ ${COMP_WORDS[1]} == diff ]] && {
			mapfile -t COMPREPLY < <(compgen -W 'table svg html folded json' -- "$cur")
			return
		}
		mapfile -t COMPREPLY < <(compgen -W 'folded svg html bt distr pprof otlp speedscope firefox callgrind json' -- "$cur")
		return
		;;
	-o | --output | --store | -G | --cgroup | -c | --command)
		compopt -o default
		return
		;;
	-t | --time | --from | --to | --vs-from | --vs-to | --vs-tag | --nodes | --window | --max-overhead | -F | --freq | -C | --cpu | -m | --min | -M | --max | --every | --path | --inode | \
		--depth | --unwind-memory | --symbol-cache | --tag | --label | --retain | --max-size | -l | --limit | --title)
		return
		;;
	esac
	case ${COMP_WORDS[1]} in
	oncpu) mapfile -t COMPREPLY < <(compgen -W "$oncpu" -- "$cur") ;;
	offcpu) mapfile -t COMPREPLY < <(compgen -W "$offcpu" -- "$cur") ;;
	wakeup) mapfile -t COMPREPLY < <(compgen -W "$wakeup" -- "$cur") ;;
	offwake) mapfile -t COMPREPLY < <(compgen -W "$offwake" -- "$cur") ;;
	wall) mapfile -t COMPREPLY < <(compgen -W "$wall" -- "$cur") ;;
	io) mapfile -t COMPREPLY < <(compgen -W "$io" -- "$cur") ;;
	top | live) mapfile -t COMPREPLY < <(compgen -W "$top" -- "$cur") ;;
	query) mapfile -t COMPREPLY < <(compgen -W "$query" -- "$cur") ;;
	snap) mapfile -t COMPREPLY < <(compgen -W "$snap" -- "$cur") ;;
	timeline) mapfile -t COMPREPLY < <(compgen -W "$timeline" -- "$cur") ;;
	store) mapfile -t COMPREPLY < <(compgen -W "$store stat check prune merge" -- "$cur") ;;
	run) mapfile -t COMPREPLY < <(compgen -W "$run" -- "$cur") ;;
	record) mapfile -t COMPREPLY < <(compgen -W "$record" -- "$cur") ;;
	export) mapfile -t COMPREPLY < <(compgen -W "$export" -- "$cur") ;;
	serve) mapfile -t COMPREPLY < <(compgen -W "$serve" -- "$cur") ;;
	diff)
		compopt -o default
		[[ $cur == -* ]] && mapfile -t COMPREPLY < <(compgen -W "$diff" -- "$cur")
		;;
	doctor) mapfile -t COMPREPLY < <(compgen -W "$doctor" -- "$cur") ;;
	help) mapfile -t COMPREPLY < <(compgen -W "$commands $help" -- "$cur") ;;
	esac
}
complete -F _stackbpf stackbpf
