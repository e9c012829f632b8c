# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of stackbpf for fish. tests/lint/options.py holds it against the option table.
complete -c stackbpf -f
complete -c stackbpf -n __fish_use_subcommand -a oncpu -d 'timed samples of what runs on the CPUs'
complete -c stackbpf -n __fish_use_subcommand -a offcpu -d 'where threads wait, and how long'
complete -c stackbpf -n __fish_use_subcommand -a wakeup -d 'who wakes whom, and how long the woken had waited'
complete -c stackbpf -n __fish_use_subcommand -a offwake -d 'where threads wait, and who ends it'
complete -c stackbpf -n __fish_use_subcommand -a wall -d 'what threads do with their time'
complete -c stackbpf -n __fish_use_subcommand -a io -d 'which code moves which files bytes'
complete -c stackbpf -n __fish_use_subcommand -a top -d 'functions and calls of the last seconds, on the terminal'
complete -c stackbpf -n __fish_use_subcommand -a live -d 'the same as top'
complete -c stackbpf -n __fish_use_subcommand -a query -d 'what a store has of a range of time'
complete -c stackbpf -n __fish_use_subcommand -a snap -d 'what each thread of a process does now'
complete -c stackbpf -n __fish_use_subcommand -a timeline -d 'how much there was at each time'
complete -c stackbpf -n __fish_use_subcommand -a store -d 'look at a store, prune and merge it'
complete -c stackbpf -n __fish_use_subcommand -a run -d 'a command, and a picture of what it did'
complete -c stackbpf -n __fish_use_subcommand -a record -d 'profiles over time, with tags, into a store'
complete -c stackbpf -n __fish_use_subcommand -a export -d 'send a store to ClickHouse, OpenTelemetry, Pyroscope, or to files'
complete -c stackbpf -n __fish_use_subcommand -a serve -d 'a store as a page, and for other programs, over HTTP'
complete -c stackbpf -n __fish_use_subcommand -a diff -d 'what changed from A to B, and what of it is noise'
complete -c stackbpf -n __fish_use_subcommand -a doctor -d 'what this kernel, these privileges and a process allow'
complete -c stackbpf -n __fish_use_subcommand -a help -d 'what a command does, and its options'
complete -c stackbpf -n '__fish_seen_subcommand_from help' -a 'oncpu offcpu wakeup offwake wall io top live snap run timeline store query record export serve diff doctor help'
complete -c stackbpf -s q -l quiet -d 'say nothing on stderr but errors'
complete -c stackbpf -s v -l verbose -d 'say everything'
complete -c stackbpf -s h -l help -d 'show the options'
complete -c stackbpf -s V -l version -d 'show version and features'

function __stackbpf_samplers
    complete -c stackbpf -n '__fish_seen_subcommand_from oncpu offcpu wakeup offwake wall io run top live record' $argv
end
__stackbpf_samplers -s p -l pid -x -a '(__fish_complete_pids)' -d 'processes'
__stackbpf_samplers -s L -l tid -x -a '(__fish_complete_pids)' -d 'single threads'
__stackbpf_samplers -s n -l comm -x -d 'threads by name'
__stackbpf_samplers -s G -l cgroup -r -d 'a cgroup and all below it'
__stackbpf_samplers -l uid -x -a '(__fish_complete_users)' -d 'tasks of these users'
__stackbpf_samplers -s a -l all -d 'the whole machine'
__stackbpf_samplers -s s -l subprocesses -d 'their children too'
__stackbpf_samplers -s t -l time -x -d 'how long'
__stackbpf_samplers -l max-overhead -x -a '1 0.5 off' -d 'percent of all CPUs that the run may cost'
__stackbpf_samplers -s u -l user -d 'user stacks only'
__stackbpf_samplers -s U -d 'user stacks only'
__stackbpf_samplers -s k -l kernel -d 'kernel stacks only'
__stackbpf_samplers -s K -d 'kernel stacks only'
__stackbpf_samplers -l depth -x -d 'user frames per stack at most'
__stackbpf_samplers -l unwind -x -a 'auto fp dwarf none' -d 'how callers are found'
__stackbpf_samplers -l unwind-memory -x -d 'unwind tables kept in memory at most'
__stackbpf_samplers -l interp -x -a 'auto both only off' -d 'frames of interpreters'
__stackbpf_samplers -s g -d 'no effect'
__stackbpf_samplers -l label -x -d 'what programs say of their threads'
__stackbpf_samplers -l inline -d 'show inlined functions'
__stackbpf_samplers -l no-inline -d 'do not show inlined functions'
__stackbpf_samplers -l demangle -x -a 'short full off' -d 'C++ and Rust names'
__stackbpf_samplers -l no-demangle -d 'leave names as they are'
__stackbpf_samplers -l symbol-cache -x -d 'debug data kept in memory at most'
__stackbpf_samplers -l stats -d 'every figure about the run'
functions -e __stackbpf_samplers

function __stackbpf_shown
    complete -c stackbpf -n '__fish_seen_subcommand_from oncpu offcpu wakeup offwake wall io run top live' $argv
end
__stackbpf_shown -s c -l command -x -a '(__fish_complete_command)' -d 'run this line, sample it'
__stackbpf_shown -l by -x -a 'comm pid thread cpu cgroup container' -d 'what stands at the root'
__stackbpf_shown -s T -l threads -d 'the same as --by thread'
__stackbpf_shown -l debuginfod -d 'fetch missing debug data'
functions -e __stackbpf_shown

function __stackbpf_views
    complete -c stackbpf -n '__fish_seen_subcommand_from oncpu offcpu wakeup offwake wall io run' $argv
end
__stackbpf_views -s d -l delimited -d 'a frame between user and kernel part'
__stackbpf_views -l annotate -d 'mark frames by kind'
__stackbpf_views -l lines -d 'add file and line'
__stackbpf_views -l modules -d 'add the name of the file'
__stackbpf_views -l offsets -d 'add the offset into the function'
__stackbpf_views -s o -l output -rF -d 'write to a file'
__stackbpf_views -l format -x -a 'folded svg html bt distr pprof otlp speedscope firefox callgrind json' -d 'the format'
__stackbpf_views -s f -l folded -d 'folded stacks'
__stackbpf_views -s l -l limit -x -d 'only the heaviest stacks'
__stackbpf_views -l title -x -d 'title of the picture'
__stackbpf_views -l no-header -d 'leave out the first line'
functions -e __stackbpf_views

function __stackbpf_sampled
    complete -c stackbpf -n '__fish_seen_subcommand_from oncpu wall run top live record' $argv
end
__stackbpf_sampled -s F -l freq -x -d 'samples per second and CPU'
__stackbpf_sampled -s e -l event -x -a 'cpu-clock cycles' -d 'what ticks'
functions -e __stackbpf_sampled

function __stackbpf_lasting
    complete -c stackbpf -n '__fish_seen_subcommand_from offcpu wakeup offwake io' $argv
end
__stackbpf_lasting -s m -l min -x -d 'only what takes so long'
__stackbpf_lasting -s M -l max -x -d 'only what takes no longer'
__stackbpf_lasting -l distr -d 'histograms of durations'
functions -e __stackbpf_lasting

function __stackbpf_blocked
    complete -c stackbpf -n '__fish_seen_subcommand_from offcpu wakeup offwake' $argv
end
__stackbpf_blocked -l state -x -a 'R S D T I' -d 'only waits of these states'
functions -e __stackbpf_blocked

function __stackbpf_waits
    complete -c stackbpf -n '__fish_seen_subcommand_from offcpu offwake wall run top live' $argv
end
__stackbpf_waits -l idle -x -a 'show dim drop' -d 'what becomes of waits of idle workers'
functions -e __stackbpf_waits

function __stackbpf_oncpu
    complete -c stackbpf -n '__fish_seen_subcommand_from oncpu' $argv
end
__stackbpf_oncpu -s C -l cpu -x -d 'only on these CPUs'
functions -e __stackbpf_oncpu

function __stackbpf_offcpu
    complete -c stackbpf -n '__fish_seen_subcommand_from offcpu' $argv
end
__stackbpf_offcpu -l every -x -d 'one sample for so much time of waiting'
functions -e __stackbpf_offcpu

function __stackbpf_io
    complete -c stackbpf -n '__fish_seen_subcommand_from io' $argv
end
__stackbpf_io -s r -d 'only reads'
__stackbpf_io -s w -d 'only writes'
__stackbpf_io -l bytes -d 'weigh by bytes moved'
__stackbpf_io -l latency -d 'weigh by time taken'
__stackbpf_io -l count -d 'weigh by number of calls'
__stackbpf_io -l layer -x -a 'syscall cache block fsync fault' -d 'where to look'
__stackbpf_io -l kind -x -a 'file dir pipe sock tty chr blk anon other' -d 'only files of these kinds'
__stackbpf_io -l path -rF -d 'only files whose path matches'
__stackbpf_io -l fs -x -a '(string replace -r ".*\t" "" </proc/filesystems)' -d 'only on filesystems of this type'
__stackbpf_io -l dev -x -a '(command ls /sys/class/block)' -d 'only on this device'
__stackbpf_io -l inode -x -d 'only the file with this inode number'
__stackbpf_io -l file -x -a 'path base full none' -d 'the leaf'
functions -e __stackbpf_io

function __stackbpf_kinds
    complete -c stackbpf -n '__fish_seen_subcommand_from run top live' $argv
end
__stackbpf_kinds -l kind -x -a 'oncpu offcpu wakeup offwake wall io' -d 'what is sampled'
functions -e __stackbpf_kinds

function __stackbpf_top
    complete -c stackbpf -n '__fish_seen_subcommand_from top live' $argv
end
__stackbpf_top -l every -x -d 'how often it is renewed'
__stackbpf_top -l window -x -d 'how long the last seconds are'
__stackbpf_top -s b -l batch -d 'tables, no screen'
__stackbpf_top -l count -x -d 'end after so many'
__stackbpf_top -s l -l limit -x -d 'so many functions in a table'
functions -e __stackbpf_top

function __stackbpf_asked
    complete -c stackbpf -n '__fish_seen_subcommand_from query timeline' $argv
end
__stackbpf_asked -l store -x -a '(__fish_complete_directories)' -d 'the store'
__stackbpf_asked -l from -x -a '-1h -1d -7d -30d' -d 'from here on'
__stackbpf_asked -l to -x -a now -d 'up to here'
__stackbpf_asked -l kind -x -a 'oncpu offcpu wakeup offwake wall io' -d 'what was measured'
__stackbpf_asked -l tag -x -d 'only with these tags'
__stackbpf_asked -l by -x -d 'apart by the values of this tag'
functions -e __stackbpf_asked

function __stackbpf_query
    complete -c stackbpf -n '__fish_seen_subcommand_from query' $argv
end
__stackbpf_query -l format -x -a 'top folded svg html bt pprof otlp speedscope firefox callgrind json' -d 'the format'
__stackbpf_query -s o -l output -rF -d 'write to a file'
__stackbpf_query -s l -l limit -x -d 'only the heaviest'
__stackbpf_query -l annotate -d 'mark frames by kind'
__stackbpf_query -l modules -d 'add the name of the file'
__stackbpf_query -l title -x -d 'title of the picture'
__stackbpf_query -l no-header -d 'leave out the first line'
functions -e __stackbpf_query

function __stackbpf_snap
    complete -c stackbpf -n '__fish_seen_subcommand_from snap' $argv
end
__stackbpf_snap -s p -l pid -x -a '(__fish_complete_pids)' -d 'processes'
__stackbpf_snap -s L -l tid -x -a '(__fish_complete_pids)' -d 'single threads'
__stackbpf_snap -s u -l user -d 'user stacks only'
__stackbpf_snap -s U -d 'user stacks only'
__stackbpf_snap -s k -l kernel -d 'kernel stacks only'
__stackbpf_snap -s K -d 'kernel stacks only'
__stackbpf_snap -l interp -x -a 'auto both only off' -d 'frames of interpreters'
__stackbpf_snap -l lines -d 'add file and line'
__stackbpf_snap -l no-inline -d 'do not show inlined functions'
__stackbpf_snap -l demangle -x -a 'short full off' -d 'C++ and Rust names'
__stackbpf_snap -l group -d 'equal stacks together'
__stackbpf_snap -l format -x -a 'stacks folded json' -d 'the format'
__stackbpf_snap -s o -l output -rF -d 'write to a file'
functions -e __stackbpf_snap

function __stackbpf_timeline
    complete -c stackbpf -n '__fish_seen_subcommand_from timeline' $argv
end
__stackbpf_timeline -l step -x -a '10s 1m 10m 1h 1d' -d 'how long a step is'
__stackbpf_timeline -l format -x -a 'table tsv json' -d 'the format'
functions -e __stackbpf_timeline

function __stackbpf_store
    complete -c stackbpf -n '__fish_seen_subcommand_from store' $argv
end
complete -c stackbpf -n '__fish_seen_subcommand_from store' -a 'stat check prune merge'
__stackbpf_store -l store -x -a '(__fish_complete_directories)' -d 'the store'
__stackbpf_store -l cardinality -d 'how many values each tag has'
__stackbpf_store -l format -x -a 'table json' -d 'the format'
__stackbpf_store -l older -x -d 'prune what is older'
__stackbpf_store -l retain -x -d 'how long blocks are kept'
__stackbpf_store -l max-size -x -d 'of the whole store'
__stackbpf_store -l dry-run -d 'only say what would be removed'
functions -e __stackbpf_store

function __stackbpf_run
    complete -c stackbpf -n '__fish_seen_subcommand_from run' $argv
end
__stackbpf_run -l open -d 'show the picture'
functions -e __stackbpf_run

function __stackbpf_export
    complete -c stackbpf -n '__fish_seen_subcommand_from export' $argv
end
__stackbpf_export -l store -x -a '(__fish_complete_directories)' -d 'the store'
__stackbpf_export -l to -x -a 'clickhouse:http:// otlp:http:// pyroscope:http:// pprof-dir: file:' -d 'where to, or up to when'
__stackbpf_export -l from -x -d 'from here on'
__stackbpf_export -l kind -x -a 'oncpu offcpu wakeup offwake wall io' -d 'only this kind'
__stackbpf_export -l tag -x -d 'only with these tags'
__stackbpf_export -l by -x -d 'tags that make a series'
__stackbpf_export -l every -x -a '60s 10s 10m' -d 'how long a period is'
__stackbpf_export -s f -l follow -d 'go on with what is recorded'
__stackbpf_export -l otlp-attrs -x -a 'both inline ref' -d 'keys of resources in OTLP'
__stackbpf_export -s H -l header -x -d 'one more line of each request'
__stackbpf_export -l token-file -rF -d 'a token to send'
__stackbpf_export -l ca-file -rF -d 'certificates to trust'
__stackbpf_export -l timeout -x -d 'give a request up after'
__stackbpf_export -l state -x -a '(__fish_complete_directories)' -d 'where to keep how far it came'
functions -e __stackbpf_export

function __stackbpf_serve
    complete -c stackbpf -n '__fish_seen_subcommand_from serve' $argv
end
__stackbpf_serve -l store -rF -d 'the store'
__stackbpf_serve -s l -l listen -x -a '127.0.0.1:4040' -d 'where'
__stackbpf_serve -l token-file -rF -d 'what who asks must know'
__stackbpf_serve -l host -x -a '(__fish_print_hostnames)' -d 'a name of this machine'
functions -e __stackbpf_serve

function __stackbpf_doctor
    complete -c stackbpf -n '__fish_seen_subcommand_from doctor' $argv
end
__stackbpf_doctor -s p -l pid -x -a '(__fish_complete_pids)' -d 'look at this process'
functions -e __stackbpf_doctor

function __stackbpf_diff
    complete -c stackbpf -n '__fish_seen_subcommand_from diff' $argv
end
__stackbpf_diff -F
__stackbpf_diff -l store -rF -d 'the store'
__stackbpf_diff -l from -x -d 'the time of A'
__stackbpf_diff -l to -x -d 'up to here'
__stackbpf_diff -l tag -x -d 'the tags of A'
__stackbpf_diff -l kind -x -a 'oncpu offcpu wakeup offwake wall io' -d 'what was measured'
__stackbpf_diff -l by -x -d 'values of this tag are the outermost frames'
__stackbpf_diff -l vs-from -x -d 'the time of B'
__stackbpf_diff -l vs-to -x -d 'up to here'
__stackbpf_diff -l vs-tag -x -d 'the tags of B'
__stackbpf_diff -l norm -x -a 'share rate raw' -d 'what is compared'
__stackbpf_diff -l sort -x -a 'self total' -d 'by the change of what'
__stackbpf_diff -l limit -x -d 'so many functions'
__stackbpf_diff -l nodes -x -d 'so many frames in the picture'
__stackbpf_diff -l width -x -a 'b a both' -d 'whose widths frames have'
__stackbpf_diff -l negate -d 'blue is more'
__stackbpf_diff -s o -l output -rF -d 'write here'
__stackbpf_diff -l format -x -a 'table svg html folded json' -d 'of the result'
__stackbpf_diff -l title -x -d 'of the picture'
functions -e __stackbpf_diff

function __stackbpf_record
    complete -c stackbpf -n '__fish_seen_subcommand_from record' $argv
end
__stackbpf_record -l store -rF -d 'where profiles go'
__stackbpf_record -l kinds -x -a 'oncpu offcpu wakeup offwake wall io' -d 'what is sampled'
__stackbpf_record -l tag -x -d 'a tag of all samples'
__stackbpf_record -l tids -d 'tell threads apart'
__stackbpf_record -l retain -x -d 'how long blocks are kept'
__stackbpf_record -l max-size -x -d 'of the whole store'
__stackbpf_record -l sync -x -a 'block off' -d 'when to wait for the disk'
functions -e __stackbpf_record
