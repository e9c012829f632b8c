<?php
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What tests/live/interp_php.py looks at. tree.php MODE: what is run until the end of standard input.
# Lines are named by the comments "@name" behind them; the test reads them from this file.
namespace App;

class Foo {
    public $sum = 0;

    public function heavy($n) {
        for ($i = 0; $i < $n; $i++) { # @heavy
            $this->sum = ($this->sum * 31 + $i) % 65521; # @heavy
        }
        return $this->sum; # @heavy
    }

    public static function st($n) {
        $f = function ($x) use ($n) { # @closure_begin
            return work($n + $x); # @closure
        };
        $list = array_map($f, [1, 2]); # @st
        return $list;
    }

    public function __get($name) {
        return nap($name === 'slow'); # @get
    }
}

trait Sorting {
    public function less($a, $b) {
        work(300); # @less
        return $a <=> $b;
    }
    public function sorted($list) {
        usort($list, [$this, 'less']); # @sorted
        return $list;
    }
}

class Bar extends Foo {
    use Sorting;
}

function work($n) {
    for ($s = $i = 0; $i < $n; $i++) { # @work
        $s = ($s * 17 + $i) % 65521; # @work
    }
    return $s; # @work
}

function a($n) {
    for ($s = $i = 0; $i < $n; $i++) { # @a
        $s = ($s * 17 + $i) % 65521; # @a
    }
    return $s; # @a
}

function b($n) {
    for ($s = $i = 0; $i < $n; $i++) { # @b
        $s = ($s * 17 + $i) % 65521; # @b
    }
    return $s; # @b
}

function c($n) {
    for ($s = $i = 0; $i < $n; $i++) { # @c
        $s = ($s * 17 + $i) % 65521; # @c
    }
    return $s; # @c
}

# Of the CPU.
function clock_us() {
    $usage = getrusage(); # @clock
    return 1e6 * ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) +
        $usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec'];
}

# 70, 20 and 10 parts of one piece of work. Rounds differ in length, and it says what they took.
function split() {
    static $nr_rounds = 0, $said = 0, $a = 0, $b = 0, $c = 0;
    $n = 5000 + $nr_rounds++ * 7919 % 10000;
    $begin = clock_us(); # @split_clock
    a(7 * $n); # @split_a
    $after_a = clock_us(); # @split_clock
    b(2 * $n); # @split_b
    $after_b = clock_us(); # @split_clock
    c($n); # @split_c
    $after_c = clock_us(); # @split_clock
    $a += $after_a - $begin;
    $b += $after_b - $after_a;
    $c += $after_c - $after_b;
    if ($after_c - $said > 50000) {
        $said = $after_c;
        fwrite(STDOUT, "spent App\\a $a App\\b $b App\\c $c\n"); # @split_says
    }
}

function deep($n) {
    if ($n > 0) {
        return deep($n - 1); # @deep
    }
    return work(20000); # @deepest
}

function gen() { # @gen
    foreach ([1, 2, 3] as $x) { # @gen
        yield Foo::st(1000); # @gen
    }
}

function outer() { # @outer
    yield from gen(); # @outer
}

function drain() {
    foreach (outer() as $x); # @drain
}

function replaced() {
    $f = function ($m) { # @matched_begin
        return $m[0] . work(1000); # @matched
    };
    return preg_replace_callback('/b+/', $f, 'abbabbbab'); # @replaced
}

function evaluated() {
    return eval('return \App\work(3000);'); # @evaluated
}

function included() {
    return require __DIR__ . '/tree_included.php'; # @included
}

function sorts() {
    (new Bar)->sorted([3, 1, 2]); # @sorts
}

function fibers() {
    $fiber = new \Fiber(function () { # @fiber_begin
        work(3000); # @fiber
        \Fiber::suspend(1); # @fiber_left
        deep(2); # @fiber_deep
    });
    $fiber->start(); # @fibers_start
    $fiber->resume(); # @fibers_resume
}

function nap($long) {
    usleep($long ? 20000 : 1000); # @nap
    return 0;
}

function naps() {
    return (new Foo)->slow; # @naps
}

function blocks() {
    array_map('usleep', [20000]); # @blocks
}

# Where PHP itself says that it is, at a quiet point.
function traced() {
    $f = function ($x) {
        (function () { trace(); })();
    };
    array_map($f, [1]);
}

function trace() {
    foreach (debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS) as $f) { # @trace
        fwrite(STDOUT, ($f['class'] ?? '') . ($f['type'] ?? '') . $f['function'] . ' ' . ($f['line'] ?? 0) . "\n");
    }
    fwrite(STDOUT, "end\n");
    fgets(STDIN); # @trace_blocks
}

function calls() {
    $foo = new Foo;
    for ($i = 0; $i < 1000; $i++) {
        Foo::st(1);
        $foo->heavy(2);
        strrev(implode(',', array_filter([1, 0, $i])));
    }
}

$modes = [
    'split' => 'split', 'deep' => function () { deep(40); }, # @deep_begin
    'gen' => 'drain', 'preg' => 'replaced',
    'eval' => 'evaluated', 'include' => 'included', 'sort' => 'sorts', 'fiber' => 'fibers',
    'method' => function () { (new Foo)->heavy(10000); }, # @method_begin
    'nap' => 'naps', 'block' => 'blocks',
    'trace' => 'traced', 'calls' => 'calls',
];
$mode = $modes[$argv[1]];
$mode = is_string($mode) ? "App\\$mode" : $mode;
fwrite(STDOUT, "ready\n");
stream_set_blocking(STDIN, $argv[1] === 'trace');
for (;;) {
    $mode(); # @main
    if ($argv[1] === 'trace' || feof(STDIN) || fgets(STDIN) === "end\n") {
        break;
    }
}
