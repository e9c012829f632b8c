# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of stackbpf for fish. tests/lint/options.py holds it against the option table.
complete -c stackbpf -f
complete -c stackbpf -n __fish_use_subcommand -a oncpu -d 'timed samples of what runs on the CPUs'
complete -c stackbpf -n __fish_use_subcommand -a doctor -d 'what this kernel, these privileges and a process allow'
complete -c stackbpf -n __fish_use_subcommand -a help -d 'what a command does, and its options'
complete -c stackbpf -n '__fish_seen_subcommand_from help' -a 'oncpu doctor help'
complete -c stackbpf -s q -l quiet -d 'say nothing on stderr but errors'
complete -c stackbpf -s v -l verbose -d 'say everything'
complete -c stackbpf -s h -l help -d 'show the options'
complete -c stackbpf -s V -l version -d 'show version and features'

function __stackbpf_oncpu
    complete -c stackbpf -n '__fish_seen_subcommand_from oncpu' $argv
end
__stackbpf_oncpu -s p -l pid -x -a '(__fish_complete_pids)' -d 'processes'
__stackbpf_oncpu -s L -l tid -x -a '(__fish_complete_pids)' -d 'single threads'
__stackbpf_oncpu -s n -l comm -x -d 'threads by name'
__stackbpf_oncpu -s G -l cgroup -r -d 'a cgroup and all below it'
__stackbpf_oncpu -l uid -x -a '(__fish_complete_users)' -d 'tasks of these users'
__stackbpf_oncpu -s a -l all -d 'the whole machine'
__stackbpf_oncpu -s s -l subprocesses -d 'their children too'
__stackbpf_oncpu -s c -l command -x -a '(__fish_complete_command)' -d 'run this line, sample it'
__stackbpf_oncpu -s t -l time -x -d 'how long'
__stackbpf_oncpu -s F -l freq -x -d 'samples per second and CPU'
__stackbpf_oncpu -s e -l event -x -a 'cpu-clock cycles' -d 'what ticks'
__stackbpf_oncpu -s C -l cpu -x -d 'only on these CPUs'
__stackbpf_oncpu -s u -l user -d 'user stacks only'
__stackbpf_oncpu -s U -d 'user stacks only'
__stackbpf_oncpu -s k -l kernel -d 'kernel stacks only'
__stackbpf_oncpu -s K -d 'kernel stacks only'
__stackbpf_oncpu -l depth -x -d 'user frames per stack at most'
__stackbpf_oncpu -l unwind -x -a 'auto fp dwarf none' -d 'how callers are found'
__stackbpf_oncpu -l unwind-memory -x -d 'unwind tables kept in memory at most'
__stackbpf_oncpu -s g -d 'no effect'
__stackbpf_oncpu -l by -x -a 'comm pid thread cpu cgroup container' -d 'what stands at the root'
__stackbpf_oncpu -s T -l threads -d 'the same as --by thread'
__stackbpf_oncpu -s d -l delimited -d 'a frame between user and kernel part'
__stackbpf_oncpu -l annotate -d 'mark frames by kind'
__stackbpf_oncpu -l lines -d 'add file and line'
__stackbpf_oncpu -l inline -d 'show inlined functions'
__stackbpf_oncpu -l no-inline -d 'do not show inlined functions'
__stackbpf_oncpu -l modules -d 'add the name of the file'
__stackbpf_oncpu -l offsets -d 'add the offset into the function'
__stackbpf_oncpu -l demangle -x -a 'short full off' -d 'C++ and Rust names'
__stackbpf_oncpu -l no-demangle -d 'leave names as they are'
__stackbpf_oncpu -l debuginfod -d 'fetch missing debug data'
__stackbpf_oncpu -l symbol-cache -x -d 'debug data kept in memory at most'
__stackbpf_oncpu -s o -l output -rF -d 'write to a file'
__stackbpf_oncpu -l format -x -a 'folded svg bt' -d 'the format'
__stackbpf_oncpu -s f -l folded -d 'folded stacks'
__stackbpf_oncpu -s l -l limit -x -d 'only the heaviest stacks'
__stackbpf_oncpu -l title -x -d 'title of the picture'
__stackbpf_oncpu -l no-header -d 'leave out the first line'
__stackbpf_oncpu -l stats -d 'every figure about the run'
functions -e __stackbpf_oncpu

function __stackbpf_doctor
    complete -c stackbpf -n '__fish_seen_subcommand_from doctor' $argv
end
__stackbpf_doctor -s p -l pid -x -a '(__fish_complete_pids)' -d 'look at this process'
functions -e __stackbpf_doctor
