// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// leaks.js NR [PIECE]: as leaks.c. Pieces are arrays of PIECE numbers on V8's heap.
'use strict';
const rounds = Number(process.argv[2] || 40), PIECE = Number(process.argv[3] || 100);
const kept = [], account = [0, 0, 0, 0, 0, 0, 0, 0];

function count(of, size) {
	account[2 * of] += 8 * size;
	account[2 * of + 1]++;
}

function keep(of, nr) {
	const size = PIECE * (1 + nr % 3);
	kept.push(new Array(size).fill(1.5));
	count(of, size);
}

function layer_1(of, nr) { keep(of, nr); count(of, 0); account[2 * of + 1]--; }
function layer_2(of, nr) { layer_1(of, nr); account[2 * of] += 0; }
function much(nr) { layer_2(0, nr); account[0] += 0; }
function some(nr) { layer_2(1, nr); account[2] += 0; }
function little(nr) { layer_2(2, nr); account[4] += 0; }

function churn() {
	let pieces = [];
	for (let i = 0; i < 10; i++) {
		pieces.push(new Array(2 * PIECE).fill(1.5));
		count(3, 2 * PIECE);
	}
	return pieces.length;
}

function work() {
	for (let i = 0; i < rounds; i++)
		for (let k = 0; k < 10; k++) {
			if (k < 6)
				much(i);
			else if (k < 9)
				some(i);
			else
				little(i);
			churn();
		}
}

console.log('ready');
require('readline').createInterface({ input: process.stdin }).on('line', () => {
	work();
	console.log(account.join(' '));
});
