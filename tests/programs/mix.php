<?php
// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A bit of everything that an interpreter does, until it is killed.
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }

while (true) {
	fib(12);
	$words = [];
	for ($i = 0; $i < 100; $i++)
		$words[$i] = sprintf('%d-%.3f', $i, $i / 3);
	usort($words, fn($a, $b) => strcmp($a, $b));
	preg_replace_callback('/(\d+)-(\d)/', fn($m) => $m[2] . $m[1], implode(' ', $words));
	unserialize(serialize(json_decode(json_encode($words))));
	hash('sha256', str_repeat('x', 10000));
}
