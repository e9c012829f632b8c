// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A bit of everything that an engine does, until it is killed.
'use strict';

const crypto = require('crypto');

function fib(n) {
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

function round() {
	fib(16);
	const words = [];
	for (let i = 0; i < 100; i++)
		words.push(i + '-' + (i / 3).toFixed(3));
	words.sort((a, b) => (a < b ? -1 : 1));
	words.join(' ').replace(/(\d+)-(\d)/g, (all, a, b) => b + a);
	JSON.parse(JSON.stringify(words));
	new Map(words.map((word) => [word, word.length]));
	crypto.createHash('sha256').update('x'.repeat(10000)).digest('hex');
}

function forever() {
	for (let i = 0; i < 20; i++)
		round();
	setImmediate(forever);
}
forever();
