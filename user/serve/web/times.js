// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Times: what a user types, what the server is asked, what is shown. */

const BLOCK_S = 10, UNITS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };
const two = (val) => String(val).padStart(2, '0');

// Unix seconds of what the server would understand; null: only the server knows.
function secondsOf(text, now) {
	let found = /^now(?:-(\d+)([smhdw]))?$/.exec(text);

	if (found)
		return now - (found[1] ? found[1] * UNITS[found[2]] : 0);
	found = /^@?(\d+(?:\.\d+)?)$/.exec(text);
	if (found)
		return Number(found[1]);
	// Without a zone it is of this place; a day alone would be of UTC.
	const at = Date.parse(/^\d{4}-\d\d-\d\d$/.test(text) ? text + 'T00:00' : text.replace(' ', 'T'));
	return Number.isNaN(at) ? null : at / 1000;
}

// As the server is to have it: its own zone may be another one than that of this place.
const sentTime = (text) => /^\d{4}-/.test(text) ? String(secondsOf(text, 0) ?? text) : text;

function fromField(text) {
	text = text.trim();
	// Of today, as on the command line.
	if (/^\d\d:\d\d(:\d\d)?$/.test(text))
		text = dateText(Date.now() / 1000).slice(0, 11) + text;
	return /^-\d+[smhdw]$/.test(text) ? 'now' + text : sentTime(text);
}

// The zone of this place at a time, as the command line names it: "UTC+5:45".
function zoneText(seconds) {
	const east = -new Date(seconds * 1000).getTimezoneOffset(), away = Math.abs(east);

	return 'UTC' + (east ? (east < 0 ? '-' : '+') + Math.floor(away / 60) + (away % 60 ? ':' + two(away % 60) : '') : '');
}

// Without the day where that is @today.
function dateText(seconds, today) {
	const date = new Date(seconds * 1000);
	const day = date.getFullYear() + '-' + two(date.getMonth() + 1) + '-' + two(date.getDate());
	const time = two(date.getHours()) + ':' + two(date.getMinutes());

	return (today === date.toDateString() ? '' : day + ' ') + time +
		(date.getSeconds() ? ':' + two(date.getSeconds()) : '');
}

const forField = (text) => /^\d+(\.\d+)?$/.test(text) ? dateText(Number(text)) : text;

function spanText(seconds) {
	const parts = [];

	for (const [name, unit] of [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]]) {
		const nr = Math.floor(seconds / unit);

		if (nr && parts.length < 2)
			parts.push(nr + ' ' + name);
		seconds -= nr * unit;
	}
	return parts.join(' ') || '0 s';
}
