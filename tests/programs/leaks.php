<?php
// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// leaks.php NR [PIECE]: as leaks.c. Pieces are strings of PIECE bytes.
$rounds = (int)$argv[1];
$piece = (int)($argv[2] ?? 1000);
$kept = [];
$account = [0, 0, 0, 0, 0, 0, 0, 0];

function count_bytes($of, $size)
{
	global $account;
	$account[2 * $of] += $size;
	$account[2 * $of + 1]++;
}

function keep($of, $nr)
{
	global $kept, $piece;
	$size = $piece * (1 + $nr % 3);
	$kept[] = str_repeat('x', $size);
	count_bytes($of, $size);
}

function layer_1($of, $nr) { keep($of, $nr); }
function layer_2($of, $nr) { layer_1($of, $nr); }
function much($nr) { layer_2(0, $nr); }
function some($nr) { layer_2(1, $nr); }
function little($nr) { layer_2(2, $nr); }

function churn()
{
	global $piece;
	$pieces = [];
	for ($i = 0; $i < 10; $i++) {
		$pieces[] = str_repeat('x', 2 * $piece);
		count_bytes(3, 2 * $piece);
	}
	return count($pieces);
}

function work($nr)
{
	for ($i = 0; $i < $nr; $i++)
		for ($k = 0; $k < 10; $k++) {
			if ($k < 6)
				much($i);
			elseif ($k < 9)
				some($i);
			else
				little($i);
			churn();
		}
}

ini_set('memory_limit', '-1');
echo "ready\n";
while (fgets(STDIN) !== false) {
	work($rounds);
	echo implode(' ', $account), "\n";
}
