// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A bit of everything, see rounds.c.
'use strict';
const fs = require('fs');
const CHUNK = 40000;
const word = new Int32Array(new SharedArrayBuffer(4));
let sink = 0;

function spin(nr)
{
	for (let i = 0; i < nr; i++)
		sink = (sink + i) | 0;
}

function seventy()
{
	spin(7 * CHUNK);
}

function twenty()
{
	spin(2 * CHUNK);
}

function ten()
{
	spin(CHUNK);
}

function nap()
{
	Atomics.wait(word, 0, 0, 20);
}

function fetch(path)
{
	fs.readFileSync(path);
}

function store(path)
{
	fs.writeFileSync(path, 'x'.repeat(4096));
}

function tell()
{
	fs.writeSync(1, 'round\n');
}

function round_of()
{
	seventy();
	twenty();
	ten();
	nap();
	fetch(process.argv[2]);
	store(process.argv[3]);
	tell();
}

for (;;)
	round_of();
