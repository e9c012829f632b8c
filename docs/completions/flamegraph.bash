# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of flamegraph for bash. tests/unit/flamegraph/flamegraph_cli.py holds it against --help.
_flamegraph()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local palettes='hot mem io wakeup chain java js perl rust python red green blue aqua yellow
		purple orange'
	local words

	# --name=value is three words to bash.
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	case $prev in
	--colors | --color) words=$palettes ;;
	--bgcolors) words='yellow blue green grey' ;;
	--sort) words='name weight' ;;
	--norm) words='share raw' ;;
	--diff-width) words='b a both' ;;
	--color-by) words='kind name module' ;;
	--encoding) words='UTF-8 US-ASCII' ;;
	--title | --subtitle | --notes | --countname | --nametype | --width | --height | --minwidth | \
		--max-rects | --max-depth | --total | --factor | --fonttype | --fontsize | --fontwidth)
		return
		;;
	*)
		if [[ $cur == -* && $prev != -o && $prev != --output && $prev != --nameattr ]]; then
			words='--title --subtitle --notes --countname --nametype --width --height
				--minwidth --max-rects --max-depth --sort --reverse --inverted
				--flamechart --total --factor --colors --color-by --bgcolors --hash
				--random --cp --nameattr --fonttype --fontsize --fontwidth --encoding
				--norm --diff-width --negate --no-embed --extract -o --output -q --quiet -h --help -V
				--version'
		fi
		;;
	esac
	if [[ -n $words ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	else
		compopt -o default
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}
complete -F _flamegraph flamegraph
