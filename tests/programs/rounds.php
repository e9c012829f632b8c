<?php
// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A bit of everything, see rounds.c.
const CHUNK = 4000;

function spin($nr)
{
	while ($nr > 0)
		$nr -= 1;
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
	usleep(20000);
}

function fetch($path)
{
	file_get_contents($path);
}

function store($path)
{
	file_put_contents($path, str_repeat('x', 4096));
}

function tell()
{
	fwrite(STDOUT, "round\n");
}

function round_of($in, $out)
{
	seventy();
	twenty();
	ten();
	nap();
	fetch($in);
	store($out);
	tell();
}

while (true)
	round_of($argv[1], $argv[2]);
