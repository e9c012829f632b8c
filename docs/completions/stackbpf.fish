# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of stackbpf for fish. What can follow, the program says: user/cli/complete.h has the answer's form.
function __stackbpf_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l program (string replace -r '^~/' $HOME/ -- $words[1])
    set -l answer ($program completion -- $words[2..-1] "$cur" 2>/dev/null)
    set -l first (string split ' ' -- $answer[1])
    test (count $first) = 2; or return
    set -l before (string sub -l $first[2] -- "$cur")
    set -l typed (string sub -s (math $first[2] + 1) -- "$cur")

    switch $first[1]
        case files
            printf '%s\n' $before(__fish_complete_path $typed)
        case directories
            printf '%s\n' $before(__fish_complete_directories $typed '')
        case programs
            printf '%s\n' $before(complete -C $typed)
        case hosts
            printf '%s\n' $before(__fish_print_hostnames)
        case command
            set -l at (contains -i -- -- $words)
            complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-1]) $cur)
        case none
            printf '%s\n' $answer[2..-1]
    end
end
complete -c stackbpf -f -a '(__stackbpf_complete)'
