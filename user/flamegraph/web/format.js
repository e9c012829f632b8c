// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names and numbers as the picture and the page show them: as label.c, text.c and diff.c have them. */

// What does not show, or reorders what is around it.
const HIDDEN_CHARS = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/g;
const clean = (text) => String(text).replace(HIDDEN_CHARS, '\ufffd');

const cut = (text, max) => text.length > max ? text.slice(0, max).replace(/[\ud800-\udbff]$/, '') + '\u2026' : text;

const encoder = new TextEncoder();

function hashBytes(text) {
	let hash = 2166136261;

	for (const byte of encoder.encode(text))
		hash = Math.imul(hash ^ byte, 16777619);
	hash ^= hash >>> 15;
	hash = Math.imul(hash, 0x2c1b3c6d);
	return (hash ^ hash >>> 12) >>> 0;
}

const grouped = (val, decimals) => val.toLocaleString('en-US',
	{ minimumFractionDigits: decimals, maximumFractionDigits: decimals });
const number = (val) => grouped(val, Math.abs(val - Math.round(val)) < 0.005 ? 0 : 2);
const TIMES = ['s', 'ms', '\u00b5s', 'ns'], BYTES = ['TiB', 'GiB', 'MiB', 'KiB', 'bytes'];
const SCALES = new Map([['ns', [1e-9, 1000, TIMES]], ['us', [1e-6, 1000, TIMES]], ['ms', [1e-3, 1000, TIMES]],
	['s', [1, 1000, TIMES]], ['bytes', [2 ** -40, 1024, BYTES]],
	['byte-seconds', [2 ** -40, 1024, [...BYTES.slice(0, -1).map((name) => name + '\u00b7s'), 'byte-seconds']]]]);

function weightText(weight, unit) {
	const scale = SCALES.get(unit);
	let val = weight, at = 0;

	if (!scale)
		return number(val) + ' ' + (val === 1 && unit === 'samples' ? 'sample' : unit);
	val *= scale[0];
	while (Math.abs(val) < 0.9995 && at + 1 < scale[2].length) {
		val *= scale[1];
		at++;
	}
	return number(val) + ' ' + scale[2][at];
}

function shareText(share) {
	const percent = share * 100;

	if (!Number.isFinite(percent))
		return '\u2013';
	if (percent > 0 && percent < 0.005)
		return 'under 0.01%';
	if (percent >= 99.995 || percent === 0)
		return grouped(percent, 0) + '%';
	return grouped(percent, percent < 9.995 ? 2 : 1) + '%';
}

// Nearer to 0, a change may be chance.
const NOISE_Z = 3;
