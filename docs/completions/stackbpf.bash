# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of stackbpf for bash. What can follow, the program says: user/cli/complete.h has the answer's form.
_stackbpf()
{
	local cur=${COMP_WORDS[COMP_CWORD]} word value kind nr_before prefix is_open='' i
	local words=() answer=()

	# --name=value and a:b are three words to bash.
	for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
		if ((${#words[@]})) && [[ -n $word && ($is_open || $word != *[!=:]*) ]]; then
			words[-1]+=$word
		else
			words+=("$word")
		fi
		is_open=
		[[ -n $word && $word != *[!=:]* ]] && is_open=1
	done
	[[ $cur != *[!=:]* ]] && cur=
	prefix=${words[-1]%"$cur"}

	mapfile -t answer < <("${COMP_WORDS[0]/#\~\//$HOME/}" completion -- "${words[@]}" 2>/dev/null)
	read -r kind nr_before <<<"${answer[0]}"
	# Where the value begins within what readline takes for a word, readline does not find it.
	[[ $kind == none || $kind == command ]] || ((nr_before == ${#prefix})) || return
	case $kind in
	files) compopt -o default ;;
	directories) compopt -o dirnames ;;
	programs) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	hosts) mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur") ;;
	command)
		for ((i = 1; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} == -- ]] && break
		done
		if declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
		else
			compopt -o default
			mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
		fi
		;;
	none)
		for word in "${answer[@]:1}"; do
			word=${word%%$'\t'*}
			printf -v value %q "${word#"$prefix"}"
			COMPREPLY+=("$value")
			[[ $value == *[=:/] ]] && compopt -o nospace
		done
		;;
	esac
}
complete -F _stackbpf stackbpf
