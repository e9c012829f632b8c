// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The page of `stackbpf serve`: timeline, tags, table, flame graphs of one range, of two, and of their
 * difference. All of its state is in the fragment of the address. Names, tags and sentences of the server
 * are hostile: they only ever become text nodes and text on a canvas, never markup, and no object has
 * them as keys.
 */
(function () {
'use strict';

// include ../flamegraph/common.js

function make(tag, parent, text, attrs) {
	const element = document.createElement(tag);

	if (text !== undefined && text !== null)
		element.textContent = text;
	for (const name in attrs || {})
		element.setAttribute(name, attrs[name]);
	if (parent)
		parent.append(element);
	return element;
}

function button(parent, text, title, action, attrs) {
	const element = make('button', parent, text, Object.assign({ type: 'button', title: title || '' }, attrs));

	element.addEventListener('click', action);
	return element;
}

const clamp = (val, min, max) => Math.max(min, Math.min(max, val));
const say = (text) => { byId('said').textContent = text; };

// ---- numbers ----

const signed = (val, decimals) => (val > 0 ? '+' : val < 0 ? '\u2212' : '') + grouped(Math.abs(val), decimals);
const pointsText = (share) => '\u00b1 ' + grouped(share * 100, share < 0.001 ? 2 : 1) + ' points';
const cut = (text, max) => text.length > max ? text.slice(0, max).replace(/[\ud800-\udbff]$/, '') + '\u2026' : text;

// ---- times ----

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

// ---- colours: as flamegraph/palette.c has them ----

// By enum sb_frame_kind; marks are known by their shape.
const OF_FRAME = [PLAIN, PLAIN, INLINED, JIT, KERNEL, KERNEL, DELIMITER, PLAIN, FILE, INTERP, WAKER];
// As model/tree.h: whether a frame is inlined makes no other frame of it.
const OF_KEY = [0, 1, 1, 3, 4, 4, 6, 7, 8, 9, 10];
const KIND_NAMES = ['process', '', 'inlined', 'JIT', 'kernel', 'kernel, inlined', '', '', 'file', 'interpreter', 'waker'];
const FAMILIES = {
	flame: [255, 216, 118, 252, 176, 94], flameKernel: [240, 126, 84, 226, 102, 72],
	flameInlined: [255, 241, 203, 253, 230, 180],
	ice: [172, 209, 242, 141, 187, 231], iceKernel: [88, 138, 204, 112, 157, 215],
	iceInlined: [230, 240, 251, 212, 228, 246],
	wake: [140, 210, 204, 108, 192, 188], wakeKernel: [48, 138, 146, 62, 154, 160],
	disk: [220, 220, 250, 204, 204, 244], diskKernel: [118, 122, 214, 140, 144, 224],
	leaf: [182, 225, 156, 152, 211, 126], leafKernel: [94, 174, 98, 112, 188, 114],
	slate: [204, 209, 218, 187, 194, 206], slateKernel: [132, 140, 158, 146, 153, 170],
	slateInlined: [240, 242, 246, 232, 235, 241],
	script: [120, 190, 88, 156, 214, 118], scriptOnLeaf: [190, 146, 226, 180, 130, 220],
	[JIT]: [112, 200, 160, 146, 217, 182], [WAKER]: [86, 184, 184, 122, 204, 200],
	[UNKNOWN]: [204, 204, 204, 220, 220, 220], [MARK]: [238, 232, 222, 244, 238, 230],
	[DELIMITER]: [92, 92, 92, 92, 92, 92], [FILE]: [252, 211, 130, 243, 190, 104],
	[IDLE]: [229, 231, 235, 238, 240, 243], [RUNNING]: [250, 158, 98, 243, 138, 82],
	[WAITING]: [246, 214, 70, 251, 228, 116], [BLOCKED]: [128, 174, 226, 146, 188, 233],
	[RESIDUAL]: [104, 104, 104, 116, 116, 116], [LOCK]: [226, 104, 132, 236, 126, 150],
};
const THEMES = new Map([
	['oncpu', ['flame', 'flameKernel', 'flameInlined', 'script']],
	['offcpu', ['ice', 'iceKernel', 'iceInlined', 'script']],
	['offwake', ['ice', 'iceKernel', 'iceInlined', 'script']],
	['wakeup', ['wake', 'wakeKernel', 'iceInlined', 'script']],
	['wall', ['slate', 'slateKernel', 'slateInlined', 'script']],
	['io', ['disk', 'diskKernel', 'iceInlined', 'script']],
	['mem', ['leaf', 'leafKernel', 'flameInlined', 'scriptOnLeaf']],
]);
const NR_SHADES = 8, TEXT_CONTRAST_MIN = 4.5;

function fromHsl(hue, saturation, lightness) {
	const chroma = (1 - Math.abs(2 * lightness - 1)) * saturation;

	return [0, 1, 2].map((i) => {
		const away = Math.abs((hue - 120 * i + 540) % 360 - 180);
		const part = clamp((120 - away) / 60, 0, 1);

		return Math.floor(255 * (lightness - chroma / 2 + chroma * part) + 0.5);
	});
}

function darken(rgb) {
	const [r, g, b] = rgb.map((part) => part / 255), max = Math.max(r, g, b), span = max - Math.min(r, g, b);
	const lightness = max - span / 2;
	const hue = !span ? 0 : max === r ? 60 * (g - b) / span : max === g ? 60 * (b - r) / span + 120 :
		60 * (r - g) / span + 240;
	const saturation = span ? span / (1 - Math.abs(2 * lightness - 1)) : 0;

	return fromHsl(hue, Math.min(saturation, 1) * 0.6, 0.13 + 0.54 * lightness);
}

function fillOf(name, shade, isDark) {
	const family = FAMILIES[name];
	const rgb = [0, 1, 2].map((i) =>
		Math.floor((family[i] * (NR_SHADES - 1 - shade) + family[i + 3] * shade) / (NR_SHADES - 1)));

	if (!isDark)
		return rgb;
	if (name === String(UNKNOWN))
		return rgb.map((part) => Math.floor(part * 3 / 8));
	return name === String(IDLE) ? [rgb[0] / 5, rgb[1] / 5, rgb[2] * 2 / 9].map(Math.floor) : darken(rgb);
}

function luminance(rgb) {
	const [r, g, b] = rgb.map((part) => part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);

	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
	const x = luminance(a), y = luminance(b);

	return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

const hex = (rgb) => '#' + rgb.map((part) => part.toString(16).padStart(2, '0')).join('');
const BLACK = [0, 0, 0], WHITE = [255, 255, 255];
const paints = new Map();	// family and theme: fills and the colour of text on each

function paintOf(name, shade, isDark) {
	const key = name + isDark;

	if (!paints.has(key)) {
		const fills = Array.from({ length: NR_SHADES }, (_, i) => fillOf(String(name), i, isDark));
		const worst = (text) => Math.min(...fills.map((fill) => contrast(fill, text)));
		const isWhite = (fill) => worst(WHITE) >= TEXT_CONTRAST_MIN ||
			worst(BLACK) < TEXT_CONTRAST_MIN && contrast(fill, WHITE) > contrast(fill, BLACK);

		paints.set(key, fills.map((fill) => [hex(fill), isWhite(fill) ? '#fff' : '#000']));
	}
	return paints.get(key)[shade];
}

const hashes = new Map();

function hashOf(text) {
	let hash = hashes.get(text);

	if (hash !== undefined)
		return hash;
	hash = hashBytes(text);
	if (hashes.size > 200000)
		hashes.clear();
	hashes.set(text, hash);
	return hash;
}

function familyOf(text, frameKind, theme) {
	const said = OF_FRAME[frameKind] || PLAIN;
	const kind = said === FILE || said === IDLE ? said : shapeOf(text) || said;

	return kind === PLAIN ? theme[0] : kind === KERNEL ? theme[1] : kind === INLINED ? theme[2] :
		kind === INTERP ? theme[3] : kind;
}

// What changed, by its ratio: as flamegraph/diff.c has it. 0 is what may be chance.
const CHANGES = [
	[[222, 222, 222], [253, 227, 220], [249, 183, 166], [242, 138, 115], [232, 96, 74]],
	[[69, 72, 78], [92, 58, 52], [125, 59, 45], [158, 56, 36], [186, 56, 32]],
	[[222, 222, 222], [223, 234, 250], [179, 207, 242], [132, 176, 232], [96, 151, 224]],
	[[69, 72, 78], [50, 63, 80], [42, 78, 122], [37, 92, 156], [32, 106, 184]],
];

function changePaint(step, dark) {
	return [hex(CHANGES[(step < 0 ? 2 : 0) + dark][Math.abs(step)]), dark ? '#fff' : '#000'];
}

const rootPaint = (isDark) => isDark ? ['#3a3d43', '#fff'] : ['#e3e0da', '#000'];
const SERIES = [['#e0822f', '#f0a050'], ['#3b7dd8', '#6ea8f5'], ['#3f9f63', '#62c088'], ['#a05bc4', '#c48be4'],
	['#c8476b', '#ee7d9b'], ['#2a9d9d', '#55c4c4'], ['#a88a12', '#d4b83f'], ['#7a6fd0', '#a79df2'],
	['#96633d', '#c39168'], ['#5f8f2f', '#93c25c']];
const OTHER_SERIES = ['#a5a29b', '#6f757f'];
const OTHER = '(other)';

// ---- state ----

const FORMATS = [['pprof', 'go tool pprof, Speedscope'], ['otlp', 'OpenTelemetry'], ['folded', 'text, one line for each stack'],
	['speedscope', 'speedscope.app'], ['svg', 'flame graph'], ['html', 'page of its own'], ['json', 'stacks and facts'],
	['callgrind', 'KCachegrind'], ['firefox', 'profiler.firefox.com']];
const VIEWS = [['single', 'Both', 'Table and flame graph'], ['table', 'Table', 'Table alone'],
	['graph', 'Graph', 'Flame graph alone'], ['compare', 'Compare', 'Two ranges or tags side by side'],
	['diff', 'Diff', 'What is more and what is less in B than in A']];
const PRESETS = [['5 min', 300], ['1 h', 3600], ['1 day', 86400], ['7 days', 604800]];
const LISTS = ['tag', 'vs_tag'];
const DEFAULTS = {
	v: 'single', kind: '', from: 'now-1h', to: 'now', tag: [], vs_from: '', vs_to: '', vs_tag: [],
	win_from: '', win_to: '',	// what the timelines show, where that is more than the range
	by: '', style: 'stacked', split: '', norm: 'share', q: '', zoom: '', o: 'icicle', sort: '', of: 'self', live: '',
};
let state = readState(location.hash);
let info = { kinds: [], host: [] }, infoAt = 0;
let keys = [];		// of tags that were heard of

function readState(text) {
	const params = new URLSearchParams(text.replace(/^#/, '')), read = {};

	for (const name of Object.keys(DEFAULTS))
		read[name] = LISTS.includes(name) ? params.getAll(name) : params.get(name) ?? DEFAULTS[name];
	if (!VIEWS.some(([name]) => name === read.v))
		read.v = 'single';
	return read;
}

function stateText(shown) {
	const params = new URLSearchParams();

	for (const name of Object.keys(DEFAULTS)) {
		if (LISTS.includes(name))
			shown[name].forEach((rule) => params.append(name, rule));
		else if (shown[name] !== DEFAULTS[name] || ['v', 'kind', 'from', 'to'].includes(name))
			params.append(name, shown[name]);
	}
	return params.toString();
}

const isPair = () => state.v === 'compare' || state.v === 'diff';
const serverNow = () => info.now ? info.now + (performance.now() - infoAt) / 1000 : Date.now() / 1000;
const isRelative = (text) => text.startsWith('now');

// A range in Unix seconds; null: only the server knows.
function known(range, now = serverNow()) {
	const from = secondsOf(range.from, now), to = secondsOf(range.to, now);

	return from === null || to === null ? null : { from, to, now };
}

// What the timelines show; of two ranges from the beginning of the one to the end of the other.
function windowOf() {
	const now = serverNow(), at = (name) => secondsOf(state[name], now);

	if (state.win_from || !isPair() || !state.vs_from)
		return { from: state.win_from || state.from, to: state.win_to || state.to };
	return { from: state[at('vs_from') < at('from') ? 'vs_from' : 'from'], to: state[at('vs_to') > at('to') ? 'vs_to' : 'to'] };
}

// A step of the user's, which "back" takes back; or a small thing, which it does not.
function change(what, isSmall) {
	state = Object.assign({}, state, what);
	const url = '#' + stateText(state);

	if (url !== location.hash)
		history[isSmall ? 'replaceState' : 'pushState'](null, '', url);
	refresh();
}

function setWindow(from, to) {
	const what = { from, to, win_from: '', win_to: '', vs_from: '', vs_to: '' };

	askAgain();
	change(Object.assign(what, isPair() ? halves(from, to) : {}));
}

const unixText = (seconds) => String(Math.round(seconds));

// Baseline and comparison: the earlier and the later half.
function halves(from, to) {
	const span = known({ from, to });

	if (!span)
		return {};
	const at = (span.from + span.to) / 2;
	const middle = isRelative(from) && isRelative(to) ? 'now-' + Math.round(span.now - at) + 's' : unixText(at);
	return { from, to: middle, vs_from: middle, vs_to: to, win_from: from, win_to: to };
}

function setView(view) {
	const what = { v: view };
	const isNew = (view === 'compare' || view === 'diff') && !state.vs_from;

	if (isNew && state.win_from) {
		// The range that was chosen, and as much time before it.
		const span = known(state);

		if (span)
			Object.assign(what, { from: unixText(2 * span.from - span.to), to: unixText(span.from), vs_from: state.from, vs_to: state.to });
	} else if (isNew) {
		Object.assign(what, halves(state.from, state.to));
	}
	if (isNew && !state.vs_tag.length)
		what.vs_tag = state.tag.slice();
	change(what);
}

// ---- asking the server ----

const slots = new Map();
let nrPending = 0, goneTimer = 0, goneS = 0, heardAt = Date.now() / 1000;

const AGAIN_S = [2, 30];

/*
 * The server does not answer, or not to us: what is shown stays, under a banner that says how old it is, and we go on
 * asking, more and more rarely.
 */
function sayGone(text) {
	const notice = byId('notice');

	notice.replaceChildren();
	make('span', notice, text + '. What is shown came before ' + dateText(Math.floor(heardAt)) + ' ' + zoneText(heardAt) + '. ');
	button(notice, 'Try again', '', tryAgain);
	notice.hidden = false;
	if (!goneTimer) {
		goneS = clamp(2 * goneS, ...AGAIN_S);
		goneTimer = setTimeout(tryAgain, goneS * 1000);
	}
}

function sayBack() {
	heardAt = Date.now() / 1000;
	if (!goneS)
		return;
	clearTimeout(goneTimer);
	goneTimer = goneS = 0;
	byId('notice').hidden = true;
	askAgain();
	setTimeout(infoAt ? refresh : askInfo);
}

function tryAgain() {
	clearTimeout(goneTimer);
	goneTimer = 0;
	askAgain();
	if (infoAt)
		refresh();
	else
		askInfo();
}

function gone(text) {
	const error = new Error(text);

	error.isGone = true;
	return error;
}

// A question without its time: answers to it may stand for each other, as their heads say of when they are.
const scopeOf = (url) => url.replace(/(from|to)=[^&]*/g, '');

function pending(by) {
	nrPending += by;
	byId('progress').hidden = !nrPending;
	document.documentElement.dataset.state = nrPending ? 'asking' : 'ready';
}

async function fetchJson(url, question) {
	let answer, text, data;

	try {
		answer = await fetch(url, { signal: question.abort.signal, credentials: 'same-origin' });
		text = await answer.text();
	} catch (error) {
		if (error.name === 'AbortError')
			throw error;
		throw gone('stackbpf serve does not answer; does it still run?');
	}
	question.arrived = performance.now();
	try {
		data = JSON.parse(text);
	} catch (error) {
		throw ([502, 503, 504].includes(answer.status) ? gone : Error)('the server answered with status ' + answer.status + ' and not with JSON');
	}
	// Started again, it has another token.
	if (answer.status === 401)
		throw gone(clean(data && data.error || 'the server wants a token'));
	if (!answer.ok)
		throw new Error(clean(data && data.error || 'the server answered with status ' + answer.status));
	return data;
}

/*
 * Ask for @path and give the answer to @show, or what failed to @fail. One question for each slot: a new one
 * ends the one before. The same question is asked again when it failed, when askAgain() says so, and about
 * "now" after a block's time. While the server is gone, what @show got before stays, unless it was of something else.
 */
async function ask(slot, path, params, show, fail) {
	const url = 'api/' + path + '?' + params, before = slots.get(slot);
	const isOld = before && before.url === url && before.isGood && !before.again;

	if (isOld && (!/(from|to)=now/.test(url) || performance.now() - before.at < BLOCK_S * 1000))
		return;
	if (before)
		before.abort.abort();
	const mine = { url, abort: new AbortController(), at: performance.now(), shown: before && before.shown };
	slots.set(slot, mine);
	pending(1);
	try {
		const data = await fetchJson(url, mine);

		mine.isGood = true;
		mine.shown = scopeOf(url);
		sayBack();
		show(data, mine.arrived);
	} catch (error) {
		if (error.name === 'AbortError' || slots.get(slot) !== mine)
			return;
		if (error.isGone)
			sayGone(error.message);
		if (error.isGone && mine.shown === scopeOf(url))
			return;
		mine.shown = null;
		fail(error.message);
	} finally {
		pending(-1);
	}
}

function askAgain() {
	for (const slot of slots.values())
		slot.again = true;
}

function rangeParams(from, to, tags, prefix) {
	const params = new URLSearchParams();

	params.append((prefix || '') + 'from', sentTime(from));
	params.append((prefix || '') + 'to', sentTime(to));
	for (const rule of tags)
		params.append((prefix || '') + 'tag', rule);
	return params;
}

// ---- tip ----

const tip = byId('tip');

function showTip(event, fill) {
	tip.replaceChildren();
	fill(tip);
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	const x = event.clientX + 14, y = event.clientY + 18;

	tip.style.left = Math.max(4, x + box.width > innerWidth - 4 ? event.clientX - box.width - 10 : x) + 'px';
	tip.style.top = Math.max(4, y + box.height > innerHeight - 4 ? event.clientY - box.height - 12 : y) + 'px';
}

const hideTip = () => { tip.hidden = true; };

function tipRows(parent, rows) {
	const grid = make('table', parent);

	for (const [name, val, color] of rows) {
		const row = make('tr', grid), cell = make('td', row);

		if (color)
			make('i', cell).style.background = color;
		cell.append(name);
		make('td', row, val);
	}
}

// ---- canvas ----

const isDark = () => {
	const theme = document.documentElement.dataset.theme;

	return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
};
const FONT = '12px "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", Arial, sans-serif';


const probe = make('span', document.body, null, { class: 'unseen', 'aria-hidden': 'true' });
let colors = new Map();

function cssColor(name) {
	if (!colors.has(name)) {
		probe.style.color = 'var(' + name + ')';
		colors.set(name, getComputedStyle(probe).color);
	}
	return colors.get(name);
}

// Sharp on every screen; the size is in pixels of the style sheet.
function fit(canvas, width, height) {
	const ratio = devicePixelRatio || 1, context = canvas.getContext('2d', { alpha: true });

	canvas.width = Math.max(1, Math.round(width * ratio));
	canvas.height = Math.max(1, Math.round(height * ratio));
	canvas.style.width = width + 'px';
	canvas.style.height = height + 'px';
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.font = FONT;
	context.textBaseline = 'middle';
	return context;
}

function hatch(context, color) {
	const tile = document.createElement('canvas'), ratio = devicePixelRatio || 1;
	const into = tile.getContext('2d');

	tile.width = tile.height = 6 * ratio;
	into.scale(ratio, ratio);
	into.strokeStyle = color;
	into.beginPath();
	into.moveTo(-1, 7);
	into.lineTo(7, -1);
	into.moveTo(-1, 1);
	into.lineTo(1, -1);
	into.moveTo(5, 7);
	into.lineTo(7, 5);
	into.stroke();
	const pattern = context.createPattern(tile, 'repeat');
	pattern.setTransform(new DOMMatrix().scale(1 / ratio));
	return pattern;
}

// ---- call trees ----

function mixHash(hash, with_) {
	hash = Math.imul(hash ^ with_, 16777619);
	return (hash ^ hash >>> 13) >>> 0;
}

/*
 * Of an answer of /api/flame or /api/diff. Nodes are in preorder: node i and all above it are i to
 * end[i] - 1, so that a subtree, and a run of siblings, is a range of numbers. A node is called by a hash of
 * its path, which is the same in every answer that has the path.
 */
function Tree(data, isDiff) {
	const nodes = data.nodes, nr = nodes.name.length;

	for (const column of ['module', 'kind', 'depth', 'self', 'total'].concat(isDiff ? ['self_b', 'total_b', 'z'] : [])) {
		if (!nodes[column] || nodes[column].length !== nr)
			throw new Error('the server answered with something that is no call tree');
	}
	Object.assign(this, { data, isDiff: Boolean(isDiff), nr, unit: data.unit, name: nodes.name, module: nodes.module, kind: nodes.kind,
		depth: nodes.depth, self: nodes.self, total: nodes.total, selfB: nodes.self_b, totalB: nodes.total_b, z: nodes.z });
	this.labels = data.names.map(clean);
	this.modules = data.modules.map(clean);
	this.all = isDiff ? data.totals : [nr ? this.total[0] : 0];
	this.isTested = isDiff && this.z.some((z) => z !== null);
	this.arrange();
	this.byKey = new Map();
	for (let i = 0; i < nr; i++)
		this.byKey.set(this.key(i), i);
	this.paints = [];
	this.isPaintedDark = null;
}

Tree.prototype.arrange = function () {
	const nr = this.nr, labelHash = this.labels.map(hashOf), path = [];

	this.parent = new Int32Array(nr);
	this.end = new Int32Array(nr);
	this.hash = new Uint32Array(nr);
	this.start = new Float64Array(nr);
	this.width = new Float64Array(nr);
	const used = new Float64Array(nr);
	for (let i = 0; i < nr; i++) {
		const depth = this.depth[i], parent = i ? path[depth - 1] : 0;

		if (i && (parent === undefined || depth < 1 || depth > path.length))
			throw new Error('the server answered with something that is no call tree');
		path.length = depth;
		path.push(i);
		this.parent[i] = parent;
		this.width[i] = this.widthOf(i);
		this.hash[i] = i ? mixHash(mixHash(this.hash[parent], labelHash[this.name[i]]), OF_KEY[this.kind[i]] || 0) : 1;
		if (i) {
			this.start[i] = this.start[parent] + used[parent];
			used[parent] += this.width[i];
		}
	}
	for (let i = nr - 1; i >= 0; i--) {
		this.end[i] = Math.max(this.end[i], i + 1);
		if (i)
			this.end[this.parent[i]] = Math.max(this.end[this.parent[i]], this.end[i]);
	}
};

const part = (val, all) => all > 0 ? val / all : 0;

// As wide as both together, so that what is only in one has its place.
Tree.prototype.widthOf = function (i) {
	if (!this.isDiff)
		return this.total[i];
	const [a, b] = this.sides(this.total[i], this.totalB[i]);

	return a + b;
};

// Both sides as they are compared.
Tree.prototype.sides = function (a, b) {
	const { norm, per } = this.data;

	return norm === 'share' ? [part(a, this.all[0]), part(b, this.all[1])] : per ? [part(a, per[0]), part(b, per[1])] : [a, b];
};

Tree.prototype.key = function (i) {
	return i ? this.depth[i].toString(36) + '-' + this.hash[i].toString(36) : '';
};

Tree.prototype.label = function (i) {
	return i ? this.labels[this.name[i]] : 'all';
};

// What is not known is not called chance.
Tree.prototype.isNoise = function (z) {
	return z !== null && Math.abs(z) < NOISE_Z;
};

// [fill, text] of a node; what it was is kept until light or dark changes.
Tree.prototype.paint = function (i, dark) {
	if (this.isPaintedDark !== dark) {
		this.paints = new Array(this.nr);
		this.isPaintedDark = dark;
	}
	return this.paints[i] ||= this.choosePaint(i, dark);
};

Tree.prototype.choosePaint = function (i, dark) {
	if (!i)
		return rootPaint(dark);
	const label = this.label(i);

	if (this.isDiff) {
		const [a, b] = this.sides(this.total[i], this.totalB[i]);

		return changePaint(this.isNoise(this.z[i]) || a === b ? 0 : b > a ? stepOf(a, b) : -stepOf(a, b), +dark);
	}
	const theme = THEMES.get(this.data.kind) || THEMES.get('oncpu');
	const family = label === OTHER ? MARK : familyOf(label, this.kind[i], theme);

	return paintOf(family, (hashOf(label) >>> 16) * NR_SHADES >>> 16, dark);
};

// What is looked for: part of a name; /expression/; =name. Case counts where there is a capital letter. null: nothing is;
// undefined: it is no expression, or not yet, and the field says so.
function matcherOf(query) {
	if (!query)
		return null;
	if (query[0] === '=')
		return (label) => label === query.slice(1);
	const isExact = /[A-Z]/.test(query);

	if (/^\/.+\/$/.test(query)) {
		try {
			const regex = new RegExp(query.slice(1, -1), isExact ? '' : 'i');

			return (label) => regex.test(label);
		} catch (error) {
			return undefined;
		}
	}
	return isExact ? (label) => label.includes(query) : (label) => label.toLowerCase().includes(query);
}

// {matched: of names, before: number of matches before each node, nr, shares of each side}
Tree.prototype.find = function (matcher) {
	const matched = this.labels.map(matcher), before = new Int32Array(this.nr + 1), weights = [0, 0];
	let covered = 0;

	for (let i = 0; i < this.nr; i++) {
		const is = i > 0 && matched[this.name[i]];

		before[i + 1] = before[i] + is;
		// A match above a match has its weight already.
		if (is && i >= covered) {
			weights[0] += this.total[i];
			weights[1] += this.isDiff ? this.totalB[i] : 0;
			covered = this.end[i];
		}
	}
	return { matched, before, nr: before[this.nr], shares: this.all.map((all, side) => part(weights[side], all)) };
};

// Functions of the nodes that are here; recursion counts once.
Tree.prototype.functions = function () {
	const rows = new Map(), open = new Map(), path = [];

	for (let i = 1; i < this.nr; i++) {
		const key = this.name[i] * 65536 + (this.module[i] ?? -1) + 1;

		while (path.length && path[path.length - 1].end <= i) {
			const left = path.pop();

			open.set(left.key, open.get(left.key) - 1);
		}
		let row = rows.get(key);
		if (!row) {
			row = { label: this.label(i), module: this.modules[this.module[i]] || '', node: i, self: 0, total: 0 };
			rows.set(key, row);
		}
		row.self += this.self[i];
		if (!open.get(key))
			row.total += this.total[i];
		open.set(key, (open.get(key) || 0) + 1);
		path.push({ key, end: this.end[i] });
	}
	return [...rows.values()];
};

// ---- flame graphs ----

const ROW = 18, MIN_PX = 0.4, TEXT_MIN_PX = 22, TEXT_PAD = 4;
const graphs = [];
const ruler = document.createElement('canvas').getContext('2d');
const widths = new Map();

function textWidth(text) {
	let width = widths.get(text);

	if (width === undefined) {
		ruler.font = FONT;
		width = ruler.measureText(text).width;
		if (widths.size > 50000)
			widths.clear();
		widths.set(text, width);
	}
	return width;
}

function fitted(label, room) {
	const text = label.slice(0, 400), width = textWidth(text);

	if (width <= room && text.length === label.length)
		return text;
	const nr = Math.floor(text.length * (room - 9) / width);
	return nr < 2 ? '' : cut(label, Math.min(nr, text.length));
}

function Graph(parent, side) {
	this.side = side;
	this.pane = make('section', parent, null, { class: 'pane', 'aria-label': side ? 'Flame graph ' + side : 'Flame graph' });
	this.head = make('div', this.pane, null, { class: 'pane-head' });
	this.crumbs = make('nav', this.pane, null, { class: 'crumbs', 'aria-label': 'Zoomed into' });
	this.scroller = make('div', this.pane, null, { class: 'canvas', tabindex: 0, role: 'application',
		'aria-label': 'Flame graph: arrow keys move, Enter zooms' });
	this.canvas = make('canvas', make('div', this.scroller, null, { class: 'sticky' }));
	this.spacer = make('div', this.scroller);
	this.message = make('div', this.pane, null, { class: 'message', hidden: '' });
	this.tree = null;
	this.found = null;
	this.zoom = this.hovered = this.focused = 0;
	this.boxes = [];
	graphs.push(this);
	this.listen();
	new ResizeObserver(() => this.draw()).observe(this.scroller);
}

Graph.prototype.listen = function () {
	const at = (event) => {
		const box = this.scroller.getBoundingClientRect();

		return this.hit(event.clientX - box.left, event.clientY - box.top);
	};

	this.scroller.addEventListener('scroll', () => this.draw(), { passive: true });
	this.scroller.addEventListener('pointermove', (event) => {
		const hit = at(event);

		this.hover(hit ? hit.node : -1);
		if (hit)
			showTip(event, (into) => this.describe(into, hit));
		else
			hideTip();
		this.scroller.style.cursor = hit ? 'pointer' : '';
	});
	this.scroller.addEventListener('pointerleave', () => {
		this.hover(-1);
		hideTip();
	});
	this.scroller.addEventListener('click', (event) => {
		const hit = at(event);

		if (hit)
			this.zoomTo(hit.cut ? this.tree.parent[hit.node] : hit.node);
	});
	this.scroller.addEventListener('keydown', (event) => this.key(event));
	this.scroller.addEventListener('focus', () => this.draw());
	this.scroller.addEventListener('blur', () => this.draw());
};

Graph.prototype.show = function (tree, since) {
	const focused = this.tree && this.focused ? this.tree.key(this.focused) : '';

	this.tree = tree;
	this.message.hidden = true;
	this.scroller.hidden = false;
	this.hovered = -1;
	this.focused = tree.byKey.get(focused) || 0;
	this.rezoom();
	this.search();
	this.draw();
	if (since !== undefined)
		painted(since);
};

Graph.prototype.fail = function (fill, isBad) {
	this.tree = null;
	this.scroller.hidden = this.crumbs.hidden = true;
	this.head.replaceChildren();
	this.message.replaceChildren();
	this.message.className = 'message' + (isBad ? ' bad' : '');
	this.message.hidden = false;
	fill(this.message);
};

// The zoom is the same path in each graph; one without it shows all.
Graph.prototype.rezoom = function () {
	this.zoom = this.tree ? this.tree.byKey.get(state.zoom) || 0 : 0;
	this.drawCrumbs();
};

Graph.prototype.zoomTo = function (node) {
	this.focused = node;
	change({ zoom: this.tree.key(node) });
};

Graph.prototype.drawCrumbs = function () {
	const path = [];

	this.crumbs.hidden = !this.tree || !this.tree.nr;
	this.crumbs.replaceChildren();
	if (this.crumbs.hidden)
		return;
	for (let i = this.zoom; i; i = this.tree.parent[i])
		path.unshift(i);
	const nrLeft = Math.max(0, path.length - 6);
	const crumb = (i) => button(this.crumbs, cut(this.tree.label(i), 80), this.tree.label(i).slice(0, 300), () => this.zoomTo(i));

	crumb(0);
	if (nrLeft)
		make('span', this.crumbs, '\u203a\u00a0\u2026 ' + nrLeft + ' frames');
	for (const i of path.slice(nrLeft)) {
		make('span', this.crumbs, '\u203a');
		crumb(i);
	}
	if (state.zoom && !this.zoom)
		make('span', this.crumbs, '\u2003the frame that is zoomed into is not among these');
};

Graph.prototype.search = function () {
	const matcher = matcherOf(state.q);

	this.found = matcher && this.tree ? this.tree.find(matcher) : null;
};

/*
 * Boxes of all nodes in the zoomed frame's range: its ancestors fill the width, frames beside them are
 * outside. Neighbours too narrow to be seen become one box.
 */
Graph.prototype.collect = function (width) {
	const { start, width: wide, end, parent, depth, nr } = this.tree, boxes = [];
	const from = start[this.zoom], to = from + wide[this.zoom], scale = width / (to - from), edge = (to - from) * 1e-9;

	for (let i = 0; i < nr;) {
		if (start[i] + wide[i] <= from + edge || start[i] >= to - edge) {
			i = end[i];
			continue;
		}
		let next = i + 1, isCut = false, stop = start[i] + wide[i];

		if (i && wide[i] * scale < MIN_PX) {
			const last = end[parent[i]];

			isCut = true;
			next = end[i];
			while (next < last && start[next] < to - edge && wide[next] * scale < MIN_PX) {
				stop = start[next] + wide[next];
				next = end[next];
			}
		}
		const left = Math.max(start[i], from), right = Math.min(stop, to);

		boxes.push({ node: i, next, cut: isCut, depth: depth[i], x: (left - from) * scale, w: (right - left) * scale });
		i = next;
	}
	return boxes;
};

Graph.prototype.y = function (depth) {
	return state.o === 'flame' ? this.height - (depth + 1) * ROW : depth * ROW;
};

Graph.prototype.draw = function () {
	const width = this.scroller.clientWidth, shown = this.scroller.clientHeight;

	if (!this.tree || !width || !shown)
		return;
	const key = [width, this.zoom, state.o].join();
	if (this.drawn !== this.tree || this.drawnKey !== key) {
		const wasTall = this.height, isNew = !this.drawn;

		this.boxes = this.tree.width[0] > 0 ? this.collect(width) : [];
		this.rows = [];
		for (const box of this.boxes)
			(this.rows[box.depth] ||= []).push(box);
		this.height = Math.max(this.rows.length * ROW, state.o === 'flame' ? shown : 0);
		this.drawn = this.tree;
		this.drawnKey = key;
		this.spacer.style.height = this.height + 'px';
		if (state.o === 'flame' && (isNew || this.wasFlame !== state.o))
			this.scroller.scrollTop = this.height;
		else if (state.o === 'flame')
			this.scroller.scrollTop += this.height - wasTall;
		this.wasFlame = state.o;
	}
	this.paint(width, shown, this.scroller.scrollTop);
};

Graph.prototype.paint = function (width, shown, top) {
	const context = fit(this.canvas, width, shown), dark = isDark(), cutPaint = dark ? '#3a3e46' : '#dcd8d0';
	const pattern = hatch(context, dark ? 'rgba(255,255,255,.2)' : 'rgba(0,0,0,.14)');

	for (let depth = 0; depth < this.rows.length; depth++) {
		const y = this.y(depth) - top;

		if (y <= -ROW || y >= shown)
			continue;
		for (const box of this.rows[depth])
			this.paintBox(context, box, y, dark, cutPaint, pattern);
	}
	const focus = this.scroller.matches(':focus-visible') ? this.focused : -1;
	for (const node of [this.hovered, focus]) {
		const box = node >= 0 && this.boxOf(node);

		if (box) {
			context.strokeStyle = dark ? '#fff' : '#1c1e21';
			context.lineWidth = node === focus ? 2 : 1;
			context.strokeRect(box.x + 0.5, this.y(box.depth) - top + 0.5, Math.max(box.w - 1.5, 1), ROW - 2);
		}
	}
};

Graph.prototype.paintBox = function (context, box, y, dark, cutPaint, pattern) {
	const tree = this.tree, node = box.node, w = Math.max(box.w - (box.w > 3 ? 0.5 : 0), 0.4);
	const [fill, text] = box.cut && !tree.isDiff ? [cutPaint, '#888'] : tree.paint(node, dark);
	const isMatch = this.found && this.found.before[box.next] > this.found.before[node] &&
		(box.cut || this.found.matched[tree.name[node]]);
	const isFaint = this.found ? !isMatch : node !== this.zoom && box.depth < tree.depth[this.zoom];

	context.globalAlpha = isFaint ? 0.36 : 1;
	context.fillStyle = fill;
	context.fillRect(box.x, y, w, ROW - 1);
	// Of one side only, or what stands for frames that were cut.
	if (!box.cut && node && w > 2 && (tree.isDiff ? !tree.total[node] || !tree.totalB[node] : tree.label(node) === OTHER)) {
		context.fillStyle = pattern;
		context.fillRect(box.x, y, w, ROW - 1);
	}
	context.globalAlpha = 1;
	if (isMatch && w > 1) {
		context.strokeStyle = dark ? '#ff8ae2' : '#b5179e';
		context.lineWidth = 1.5;
		context.strokeRect(box.x + 0.75, y + 0.75, Math.max(w - 1.5, 0.5), ROW - 2.5);
	}
	if (box.cut || w < TEXT_MIN_PX)
		return;
	const label = fitted(tree.label(node), w - 2 * TEXT_PAD);
	if (label) {
		context.fillStyle = isFaint ? (dark ? '#e6e6e6' : '#1c1e21') : text;
		context.globalAlpha = isFaint ? 0.75 : 1;
		context.fillText(label, box.x + TEXT_PAD, y + ROW / 2, w - 2 * TEXT_PAD);
		context.globalAlpha = 1;
	}
};

Graph.prototype.hit = function (x, y) {
	if (!this.tree || !this.rows)
		return null;
	y += this.scroller.scrollTop;
	const depth = Math.floor((state.o === 'flame' ? this.height - y : y) / ROW);
	const row = this.rows[depth] || [];

	return row.find((box) => x >= box.x && x < box.x + Math.max(box.w, 1)) || null;
};

Graph.prototype.boxOf = function (node) {
	const row = this.rows && this.rows[this.tree.depth[node]] || [];

	return row.find((box) => box.node === node && !box.cut);
};

// The same frame is shown in the graph beside it.
Graph.prototype.hover = function (node) {
	if (node === this.hovered)
		return;
	const key = node >= 0 && this.tree ? this.tree.key(node) : null;

	for (const graph of graphs) {
		const there = graph === this ? node : key !== null && graph.tree ? graph.tree.byKey.get(key) ?? -1 : -1;

		if (graph.hovered !== there) {
			graph.hovered = there;
			graph.draw();
		}
	}
};

Graph.prototype.key = function (event) {
	const tree = this.tree, isUp = (event.key === 'ArrowUp') !== (state.o === 'flame');

	if (!tree || !tree.nr || event.ctrlKey || event.metaKey || event.altKey)
		return;
	const box = this.boxOf(this.focused), row = box ? this.rows[box.depth] : [];
	const beside = (by) => {
		for (let i = row.indexOf(box) + by; row[i]; i += by) {
			if (!row[i].cut && row[i].w > 1)
				return row[i].node;
		}
		return this.focused;
	};
	let to = this.focused;

	if (!box)
		to = this.zoom;
	else if (event.key === 'Enter')
		this.zoomTo(to);
	else if (event.key === 'Backspace')
		this.zoomTo(tree.parent[this.zoom]);
	else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight')
		to = beside(event.key === 'ArrowLeft' ? -1 : 1);
	else if ((event.key === 'ArrowUp' || event.key === 'ArrowDown') && isUp)
		to = tree.parent[to];
	else if (event.key === 'ArrowUp' || event.key === 'ArrowDown')
		to = this.widest(to);
	else
		return;
	event.preventDefault();
	this.focus(to);
};

Graph.prototype.widest = function (node) {
	const above = (this.rows[this.tree.depth[node] + 1] || []).filter((box) =>
		!box.cut && box.node > node && box.node < this.tree.end[node]);

	return above.length ? above.reduce((a, b) => b.w > a.w ? b : a).node : node;
};

Graph.prototype.focus = function (node) {
	const y = this.y(this.tree.depth[node]), view = this.scroller;

	this.focused = node;
	if (y < view.scrollTop || y + ROW > view.scrollTop + view.clientHeight)
		view.scrollTop = y - view.clientHeight / 2;
	this.draw();
	say(this.tree.label(node).slice(0, 200) + ', ' + this.figures(node).map((row) => row.join(' ')).join(', '));
};

// Matches one after the other; one that is too narrow is zoomed into.
Graph.prototype.step = function (by) {
	if (!this.found || !this.found.nr)
		return;
	const nodes = [];
	for (let i = 1; i < this.tree.nr; i++) {
		if (this.found.matched[this.tree.name[i]])
			nodes.push(i);
	}
	this.at = this.at === undefined ? (by > 0 ? 0 : nodes.length - 1) : (this.at + by + nodes.length) % nodes.length;
	if (!this.boxOf(nodes[this.at]) || this.boxOf(nodes[this.at]).w < 2)
		change({ zoom: this.tree.key(nodes[this.at]) }, true);
	this.scroller.focus({ focusVisible: true });
	this.focus(nodes[this.at]);
};

Graph.prototype.figures = function (i) {
	const tree = this.tree, unit = tree.unit;

	if (!tree.isDiff) {
		return [['self', weightText(tree.self[i], unit), shareText(part(tree.self[i], tree.all[0]))],
			['total', weightText(tree.total[i], unit), shareText(part(tree.total[i], tree.all[0]))]];
	}
	return [['self', ...tree.sides(tree.self[i], tree.selfB[i])], ['total', ...tree.sides(tree.total[i], tree.totalB[i])]]
		.map(([name, a, b]) => [name, tree.text(a), tree.text(b), changeText(tree, a, b)]);
};

// A value that is compared.
Tree.prototype.text = function (val) {
	const { norm, unit } = this.data;

	return norm === 'share' ? shareText(val) : norm === 'raw' ? weightText(val, unit) : String(Number(val.toPrecision(3)));
};

function changeText(tree, a, b) {
	return tree.data.norm === 'share' ? signed((b - a) * 100, 2) + ' points' :
		a ? signed((b - a) / a * 100, 1) + '%' : b ? 'new' : '0%';
}

Graph.prototype.describe = function (into, box) {
	const tree = this.tree, i = box.node;

	if (box.cut) {
		make('strong', into, '\u2026 ' + grouped(box.next - i, 0) + ' frames too narrow to be drawn');
		make('p', into, 'zoom into the frame below them');
		return;
	}
	make('strong', into, cut(tree.label(i), 1500));
	const kind = KIND_NAMES[tree.kind[i]], module = tree.modules[tree.module[i]];
	if (i && (module || kind))
		make('p', into, [module && cut(module, 300), kind].filter(Boolean).join(', '));
	const grid = make('table', into);
	if (tree.isDiff) {
		const row = make('tr', grid);

		for (const title of ['', 'A', 'B', 'change'])
			make('td', row, title);
	}
	for (const cells of this.figures(i)) {
		const row = make('tr', grid);

		for (const cell of cells)
			make('td', row, cell);
	}
	if (tree.isDiff && tree.z[i] !== null)
		make('p', into, 'z = ' + signed(tree.z[i], 1) + (tree.isNoise(tree.z[i]) ? ': may be chance' : ''));
	if (tree.isDiff && i && !tree.total[i])
		make('p', into, 'only in B');
	if (tree.isDiff && i && !tree.totalB[i])
		make('p', into, 'only in A');
	if (i && tree.label(i) === OTHER)
		make('p', into, 'frames too small to be sent, in one');
};

// From the answer's arrival to the picture on the screen; benchmarks read it.
function painted(since) {
	requestAnimationFrame(() => setTimeout(() =>
		performance.measure('flame', { start: since, end: performance.now() })));
}

// ---- table ----

const ROW_HEIGHT = 24, TABLE_ROWS = 1000;
const COLUMNS = [['label', 'Function', ''], ['self', 'Self', 'Of the function itself'],
	['total', 'Total', 'With all that it calls; recursion counts once']];
const DIFF_COLUMNS = [['label', 'Function', ''], ['a', 'A', 'In the baseline'], ['b', 'B', 'In the comparison'],
	['change', 'Change', 'From A to B'], ['z', 'z', 'Under 3 it may be chance']];

// Only the rows that are seen are elements.
function Table(parent) {
	this.pane = make('section', parent, null, { class: 'pane', 'aria-label': 'Functions' });
	this.head = make('div', this.pane, null, { class: 'pane-head' });
	this.box = make('div', this.pane, null, { class: 'table', role: 'grid', 'aria-label': 'Functions' });
	this.titles = make('div', this.box, null, { class: 'table-head', role: 'row' });
	this.view = make('div', this.box, null, { class: 'rows', tabindex: 0, role: 'rowgroup',
		'aria-label': 'Functions: arrow keys move, Enter marks' });
	this.spacer = make('div', this.view);
	this.all = this.rows = [];
	this.at = -1;
	this.view.addEventListener('scroll', () => this.draw(), { passive: true });
	this.view.addEventListener('keydown', (event) => this.key(event));
	new ResizeObserver(() => this.draw()).observe(this.view);
}

Table.prototype.show = function (tree) {
	this.tree = tree;
	this.columns = tree.isDiff ? DIFF_COLUMNS : COLUMNS;
	this.box.classList.toggle('diff', tree.isDiff);
	this.of = tree.isDiff ? null : this.ofAll(tree);
	this.update();
};

Table.prototype.clear = function () {
	this.tree = null;
	this.all = this.rows = [];
	this.head.replaceChildren();
	this.titles.replaceChildren();
	this.draw();
};

// Functions of the whole profile, in the colors of the graph, which may have been cut.
Table.prototype.ofAll = function (tree) {
	const shown = tree.functions(), nodes = new Map(shown.map((row) => [row.label + '\n' + row.module, row.node]));

	return !tree.data.table ? shown : tree.data.table.map((row) => {
		const label = clean(row.name), module = row.module ? clean(row.module) : '';

		return { label, module, self: row.self, total: row.total, node: nodes.get(label + '\n' + module) };
	});
};

Table.prototype.ofDiff = function (tree) {
	return (tree.data.table || []).map((row) => {
		const isTotal = state.of === 'total' && row.total, [a, b] = tree.sides(...isTotal ? row.total : row.self);

		return { label: clean(row.name), module: row.module ? clean(row.module) : '', a, b, change: b - a,
			z: (isTotal ? row.z_total ?? null : row.z) };
	});
};

// Sorted and without what is not looked for; a whole name marks its row only.
Table.prototype.update = function () {
	if (!this.tree)
		return;
	const matcher = state.q[0] === '=' ? null : matcherOf(state.q);
	this.all = this.of || this.ofDiff(this.tree);
	this.nr = this.all.length;
	const isDiff = this.tree.isDiff, known = this.columns.some(([name]) => name === state.sort.replace('-', ''));
	const sort = known ? state.sort : isDiff ? 'change' : 'self', name = sort.replace('-', ''), sign = sort[0] === '-' ? -1 : 1;
	const weigh = name === 'change' || name === 'z' ? (row) => Math.abs(row[name] ?? 0) : (row) => row[name];

	this.rows = matcher ? this.all.filter((row) => matcher(row.label)) : this.all.slice();
	this.rows.sort(name === 'label' ? (a, b) => sign * (a.label < b.label ? -1 : a.label > b.label ? 1 : 0) :
		(a, b) => sign * (weigh(b) - weigh(a)) || (b.total || 0) - (a.total || 0) || (a.label < b.label ? -1 : 1));
	this.drawTitles(name, sign);
	this.spacer.style.height = this.rows.length * ROW_HEIGHT + 'px';
	this.view.setAttribute('aria-rowcount', this.rows.length);
	this.drawHead();
	this.draw();
};

Table.prototype.drawHead = function () {
	const nr = this.rows.length, cutNr = this.tree.data.nr_nodes_cut || 0;

	this.head.replaceChildren();
	make('span', this.head, (nr < this.nr ? grouped(nr, 0) + ' of ' : '') + grouped(this.nr, 0) + ' functions');
	if (this.tree.data.table && this.tree.data.nr_rows_cut && !this.tree.isDiff)
		make('span', this.head, 'that are the heaviest, of ' + grouped(this.nr + this.tree.data.nr_rows_cut, 0));
	else if (cutNr && !this.tree.data.table && !this.tree.isDiff)
		make('span', this.head, 'of the frames that are shown', { class: 'warn',
			title: grouped(cutNr, 0) + ' small frames are together in "(other)"; a download has all' });
	if (this.tree.isDiff)
		make('span', this.head, this.tree.data.nr_rows_cut ? 'that change most, of ' + grouped(this.nr + this.tree.data.nr_rows_cut, 0) :
			'that are in either');
	if (!this.tree.isDiff)
		return;
	make('span', this.head, null, { class: 'space' });
	const group = make('span', this.head, null, { class: 'group small', role: 'group', 'aria-label': 'Weights' });
	for (const [part, title] of [['self', 'Of the function itself'], ['total', 'With all that it calls']])
		button(group, part, title, () => change({ of: part }), { 'aria-pressed': state.of === part });
};

Table.prototype.drawTitles = function (name, sign) {
	this.titles.replaceChildren();
	for (const [column, title, hint] of this.columns) {
		const isIt = column === name, isNames = column === 'label';
		const element = button(this.titles, title, hint, () => change({ sort: (isIt && sign > 0 ? '-' : '') + column }, true),
			{ role: 'columnheader' });

		if (isIt)
			element.setAttribute('aria-sort', (sign > 0) === isNames ? 'ascending' : 'descending');
	}
};

Table.prototype.draw = function () {
	const from = Math.max(0, Math.floor(this.view.scrollTop / ROW_HEIGHT) - 4);
	const to = Math.min(this.rows.length, from + Math.ceil(this.view.clientHeight / ROW_HEIGHT) + 8);
	const list = document.createDocumentFragment();

	list.append(this.spacer);
	for (let i = from; i < to; i++)
		list.append(this.drawRow(i));
	this.view.replaceChildren(list);
};

Table.prototype.drawRow = function (i) {
	const row = this.rows[i], tree = this.tree;
	const element = make('div', null, null, { class: 'row' + (state.q === '=' + row.label ? ' on' : '') +
		(i === this.at ? ' at' : ''), role: 'row', 'aria-rowindex': i + 1 });
	const name = make('span', element, null, { role: 'gridcell', title: row.label.slice(0, 1000) + (row.module ? '\n' + row.module : '') });

	element.style.top = i * ROW_HEIGHT + 'px';
	if (!tree.isDiff && row.node === undefined)
		make('i', name, null, { class: 'swatch' });
	else if (!tree.isDiff)
		make('i', name, null, { class: 'swatch' }).style.background = tree.paint(row.node, isDark())[0];
	make('bdi', name, row.label.slice(0, 300));
	if (row.module)
		make('small', name, '\u2002' + row.module.slice(0, 100).replace(/.*\/(?=.)/, ''));
	if (tree.isDiff) {
		this.drawChange(element, row);
	} else {
		for (const val of [row.self, row.total])
			this.drawWeight(element, val);
	}
	element.addEventListener('click', () => this.mark(i));
	return element;
};

Table.prototype.drawWeight = function (element, val) {
	const cell = make('span', element, null, { class: 'num', role: 'gridcell' }), share = part(val, this.tree.all[0]);

	make('i', cell).style.width = clamp(share * 100, 0, 100) + '%';
	const text = this.tree.unit === 'samples' || !val ? grouped(val, 0) : weightText(val, this.tree.unit);
	make('b', cell, text);
	cell.title = text;
	make('small', cell, val ? shareText(share).replace('under ', '<') : '');
};

Table.prototype.drawChange = function (element, row) {
	const tree = this.tree, isNoise = tree.isNoise(row.z);
	const tone = isNoise ? 'noise' : row.change > 0 ? 'more' : row.change < 0 ? 'less' : 'noise';
	const change = changeText(tree, row.a, row.b).replace(' points', '');

	for (const val of [tree.text(row.a), tree.text(row.b)])
		make('span', element, val.replace('under ', '<'), { class: 'num', role: 'gridcell' });
	make('span', element, change, { class: 'num ' + tone, role: 'gridcell' });
	make('span', element, row.z === null ? '\u2013' : signed(row.z, 1), { class: 'num ' + tone, role: 'gridcell' });
};

Table.prototype.mark = function (i) {
	this.at = i;
	change({ q: state.q === '=' + this.rows[i].label ? '' : '=' + this.rows[i].label });
};

Table.prototype.key = function (event) {
	const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };

	if (event.key === 'Enter' && this.rows[this.at]) {
		this.mark(this.at);
	} else if (Object.hasOwn(by, event.key)) {
		this.at = clamp(this.at + by[event.key], 0, this.rows.length - 1);
		const y = this.at * ROW_HEIGHT, view = this.view;

		if (y < view.scrollTop || y + ROW_HEIGHT > view.scrollTop + view.clientHeight)
			view.scrollTop = y - view.clientHeight / 2;
		this.draw();
		say(this.rows.length ? this.rows[this.at].label.slice(0, 200) : 'no rows');
	} else {
		return;
	}
	event.preventDefault();
};

// ---- timelines ----

const LEFT = 52, RIGHT = 6, TOP = 8, BOTTOM = 20, GRIP_PX = 5;
const SIDES = { A: { from: 'from', to: 'to', tag: 'tag' }, B: { from: 'vs_from', to: 'vs_to', tag: 'vs_tag' } };

function Timeline(parent, name, isPaired) {
	this.name = name;
	this.keys = SIDES[name];
	this.isPaired = isPaired;
	this.section = make('section', parent, null, { class: 'side', 'aria-label': isPaired ? 'Side ' + name : 'Time' });
	this.head = make('div', this.section, null, { class: 'side-head' });
	this.box = make('div', this.section, null, { class: 'timeline', tabindex: 0, role: 'group',
		'aria-label': 'Timeline' + (isPaired ? ' ' + name : '') + ': arrow keys move, with Shift they select, Enter takes it' });
	this.canvas = make('canvas', this.box);
	this.foot = make('div', this.section, null, { class: 'side-foot' });
	this.data = this.error = this.draft = null;
	this.cursor = -1;
	this.listen();
	new ResizeObserver(() => this.draw()).observe(this.box);
}

Timeline.prototype.listen = function () {
	const box = this.box;

	box.addEventListener('pointerdown', (event) => this.press(event));
	box.addEventListener('pointermove', (event) => this.move(event));
	box.addEventListener('pointerup', (event) => this.lift(event));
	box.addEventListener('pointercancel', () => {
		this.draft = this.grip = null;
		this.draw();
	});
	box.addEventListener('pointerleave', () => {
		hideTip();
		if (!this.grip)
			this.setCursor(-1);
	});
	box.addEventListener('dblclick', () => this.clear());
	box.addEventListener('keydown', (event) => this.key(event));
	box.addEventListener('blur', () => this.setCursor(-1));
};

Timeline.prototype.show = function (data) {
	if (!Array.isArray(data.series) || !(data.step_s > 0)) {
		this.fail('the server answered with something that is no timeline');
		return;
	}
	this.data = data;
	this.error = null;
	this.data.nr = Math.max(0, ...data.series.map((series) => series.weights.length), (data.lost || []).length);
	this.at = serverNow();
	this.drawTexts();
	this.draw();
};

Timeline.prototype.fail = function (text) {
	this.data = null;
	this.error = text;
	this.drawTexts();
	this.draw();
};

Timeline.prototype.x = function (seconds) {
	const { from, step_s, nr } = this.data;

	return LEFT + (seconds - from) / (step_s * nr || 1) * (this.box.clientWidth - LEFT - RIGHT);
};

Timeline.prototype.stepAt = function (x) {
	const { nr } = this.data;

	return clamp(Math.floor((x - LEFT) / (this.box.clientWidth - LEFT - RIGHT) * nr), 0, nr - 1);
};

// What was chosen, where that is not all that is shown.
Timeline.prototype.chosen = function () {
	return this.isPaired || state.win_from ? known({ from: state[this.keys.from], to: state[this.keys.to] }, this.at) : null;
};

Timeline.prototype.spanOfWindow = function () {
	const shown = windowOf();

	return { from: secondsOf(shown.from, this.at) ?? this.data.from, to: secondsOf(shown.to, this.at) ?? this.data.to };
};

Timeline.prototype.press = function (event) {
	const box = this.box.getBoundingClientRect(), x = event.clientX - box.left;

	if (!this.data || !this.data.nr || event.button)
		return;
	const chosen = this.chosen();
	const near = (seconds) => chosen && Math.abs(this.x(seconds) - x) <= GRIP_PX;
	const step = this.stepAt(x), from = this.data.from, size = this.data.step_s;

	// An edge that is moved leaves the other where it is.
	this.grip = { x, anchor: near(chosen && chosen.from) ? chosen.to : near(chosen && chosen.to) ? chosen.from : from + step * size,
		isEdge: Boolean(near(chosen && chosen.from) || near(chosen && chosen.to)) };
	this.box.setPointerCapture(event.pointerId);
};

Timeline.prototype.move = function (event) {
	const box = this.box.getBoundingClientRect(), x = event.clientX - box.left;

	if (!this.data || !this.data.nr)
		return;
	const step = this.stepAt(x), chosen = this.chosen();
	if (this.grip && (this.draft || Math.abs(x - this.grip.x) > 3)) {
		this.draft = this.spanOf(this.grip, step);
		hideTip();
		this.cursor = step;
		this.draw();
		return;
	}
	this.box.style.cursor = chosen && [chosen.from, chosen.to].some((edge) => Math.abs(this.x(edge) - x) <= GRIP_PX) ? 'ew-resize' : '';
	this.setCursor(x < LEFT ? -1 : step);
	if (this.cursor < 0)
		hideTip();
	else
		showTip(event, (into) => this.describe(into, step));
};

// Whole steps from where it began to the one that is under the pointer.
Timeline.prototype.spanOf = function (grip, step) {
	const { from, step_s: size } = this.data, begin = from + step * size;

	return { from: Math.min(grip.anchor, begin), to: Math.max(grip.anchor + (grip.isEdge ? 0 : size), begin + size) };
};

Timeline.prototype.lift = function (event) {
	const draft = this.draft;

	if (this.box.hasPointerCapture(event.pointerId))
		this.box.releasePointerCapture(event.pointerId);
	this.draft = this.grip = null;
	if (draft)
		this.choose(draft);
	this.draw();
};

Timeline.prototype.choose = function (span) {
	const what = {}, shown = windowOf();

	what[this.keys.from] = unixText(span.from);
	what[this.keys.to] = unixText(span.to);
	what.win_from = shown.from;
	what.win_to = shown.to;
	say('selected ' + dateText(span.from) + ' to ' + dateText(span.to));
	change(what);
};

Timeline.prototype.clear = function () {
	const shown = windowOf();

	if (!this.isPaired && state.win_from)
		change({ from: shown.from, to: shown.to, win_from: '', win_to: '' });
};

Timeline.prototype.setCursor = function (step) {
	if (step !== this.cursor) {
		this.cursor = step;
		this.draw();
	}
};

Timeline.prototype.key = function (event) {
	const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };

	if (!this.data || !this.data.nr || event.ctrlKey || event.metaKey || event.altKey)
		return;
	if (Object.hasOwn(by, event.key)) {
		const was = this.cursor < 0 ? this.data.nr - 1 : this.cursor;
		const step = this.cursor < 0 && Math.abs(by[event.key]) === 1 ? was : clamp(was + by[event.key], 0, this.data.nr - 1);

		if (event.shiftKey) {
			this.keyAnchor ??= this.data.from + was * this.data.step_s;
			this.draft = this.spanOf({ anchor: this.keyAnchor }, step);
		} else {
			this.draft = this.keyAnchor = null;
		}
		this.cursor = step;
		this.draw();
		say(dateText(this.data.from + step * this.data.step_s) + ': ' + this.stepText(step));
	} else if (event.key === 'Enter' && this.draft) {
		const draft = this.draft;

		this.draft = this.keyAnchor = null;
		this.choose(draft);
	} else if (event.key === 'Escape' && (this.draft || state.win_from && !this.isPaired)) {
		if (!this.draft)
			this.clear();
		this.draft = this.keyAnchor = null;
		this.draw();
	} else {
		return;
	}
	event.preventDefault();
	event.stopPropagation();
};

// For how long a step was recorded; stores of more than one host have more of it than there is time. What was taken in
// less than a second, as the end of a recording is, says nothing of a rate.
Timeline.prototype.seconds = function (step) {
	const { step_s: size, sampled_ms: sampled } = this.data;

	return sampled && sampled[step] > 0 ? Math.min(size, Math.max(1, sampled[step] / 1000)) : size;
};

/*
 * Weight of a step as a rate: CPUs that were busy, threads that waited, bytes in a second. So it does not
 * depend on how long a step is.
 */
Timeline.prototype.rate = function (weight, step) {
	const { unit, kind } = this.data, row = info.kinds.find((one) => one.kind === kind), size = this.seconds(step);

	return unit === 'us' ? weight / 1e6 / size : unit === 'samples' && row && row.hz > 0 ? weight / row.hz / size : weight / size;
};

Timeline.prototype.rateText = function (rate) {
	const { unit, kind } = this.data, row = info.kinds.find((one) => one.kind === kind);

	if (unit === 'bytes')
		return weightText(rate, 'bytes') + '/s';
	const text = grouped(rate, rate >= 100 || rate === Math.round(rate) ? 0 : rate >= 1 ? 1 : 2);
	return text + (unit === 'us' ? ' threads' : unit === 'samples' && row && row.hz > 0 ? (rate === 1 ? ' CPU' : ' CPUs') : '/s');
};

Timeline.prototype.isGap = function (step) {
	return this.data.series.every((series) => (series.weights[step] ?? null) === null);
};

Timeline.prototype.sum = function (step) {
	return this.data.series.reduce((sum, series) => sum + (series.weights[step] || 0), 0);
};

Timeline.prototype.stepText = function (step) {
	return this.isGap(step) ? 'nothing was recorded' : this.rateText(this.rate(this.sum(step), step));
};

Timeline.prototype.color = function (i) {
	const series = this.data.series[i];

	return clean(series.value) === OTHER ? OTHER_SERIES[+isDark()] : SERIES[i % SERIES.length][+isDark()];
};

Timeline.prototype.describe = function (into, step) {
	const { from, step_s: size, series, unit, lost } = this.data;

	make('strong', into, dateText(from + step * size) + ' \u2013 ' +
		dateText(from + (step + 1) * size, new Date((from + step * size) * 1000).toDateString()) + ' ' + zoneText(from + step * size));
	if (this.isGap(step)) {
		make('p', into, 'nothing was recorded then');
		return;
	}
	const rows = series.map((one, i) => ({ one, i, weight: one.weights[step] })).filter(({ weight }) => weight)
		.sort((a, b) => b.weight - a.weight);
	const total = this.sum(step);
	tipRows(into, state.by && series.length > 1 ? rows.map(({ one, i, weight }) =>
		[cut(clean(one.value) || 'none', 40), this.rateText(this.rate(weight, step)), this.color(i)]) : []);
	make('p', into, this.rateText(this.rate(total, step)) + ', ' + weightText(total, unit));
	if (this.seconds(step) < 0.9 * size)
		make('p', into, 'recorded for ' + grouped(this.seconds(step), 0) + ' of these ' + grouped(size, 0) + ' s');
	if (lost && lost[step])
		make('p', into, weightText(lost[step], 'samples') + ' lost', { class: 'warn' });
};

Timeline.prototype.draw = function () {
	const width = this.box.clientWidth, height = this.box.clientHeight;

	if (!width || !height)
		return;
	const context = fit(this.canvas, width, height), plot = { width, height, low: height - BOTTOM, high: height - BOTTOM - TOP };
	context.fillStyle = cssColor('--dim');
	context.font = FONT.replace('12px', '11px');
	if (!this.data || !this.data.nr) {
		context.textAlign = 'center';
		context.fillText(this.error ? cut(this.error, 160) : this.data ? 'Nothing was recorded in this range' : '', width / 2, height / 2);
		return;
	}
	this.drawScale(context, plot);
	this.drawGaps(context, plot);
	if (state.style === 'lines' && state.by)
		this.drawLines(context, plot);
	else
		this.drawStacks(context, plot);
	this.drawLost(context, plot);
	this.drawChosen(context, plot);
};

function niceStep(max, nr) {
	const size = 10 ** Math.floor(Math.log10(max / nr || 1));

	return [1, 2, 5, 10].map((times) => times * size).find((step) => step * nr >= max) || size;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000];

Timeline.prototype.drawScale = function (context, plot) {
	const { series, nr, from, step_s: size } = this.data, isLines = state.style === 'lines' && state.by;
	let max = 0;

	for (let i = 0; i < nr; i++)
		max = Math.max(max, this.rate(isLines ? Math.max(...series.map((one) => one.weights[i] || 0)) : this.sum(i), i));
	const step = this.data.unit === 'bytes' ? 2 ** Math.ceil(Math.log2(max / 2 || 1)) : niceStep(max, 3);
	plot.top = Math.max(step * Math.ceil(max / step), step);
	context.textAlign = 'right';
	for (let val = 0; val <= plot.top + step / 2; val += step) {
		const y = Math.round(plot.low - val / plot.top * plot.high) + 0.5;

		context.fillStyle = cssColor('--line');
		context.fillRect(LEFT, y - 0.5, plot.width - LEFT - RIGHT, 1);
		context.fillStyle = cssColor('--faint');
		if (val)
			context.fillText(this.rateText(val).replace(/ (threads|CPUs?)$/, ''), LEFT - 6, y + 1);
	}
	context.fillText(this.data.unit === 'us' ? 'threads' : this.data.unit === 'bytes' ? '' : this.rateText(2).slice(2).trim() || '', LEFT - 6, plot.low);
	context.fillText(zoneText(from), LEFT - 6, plot.height - 7);
	context.textAlign = 'center';
	const span = nr * size, wanted = span / ((plot.width - LEFT - RIGHT) / 90);
	const tick = TIME_STEPS.find((one) => one >= wanted) || 31536000, zone = new Date(from * 1000).getTimezoneOffset() * 60;
	for (let t = Math.ceil((from - zone) / tick) * tick + zone; t < from + span; t += tick) {
		const date = new Date(t * 1000), time = two(date.getHours()) + ':' + two(date.getMinutes());
		const text = tick < 60 ? time + ':' + two(date.getSeconds()) : tick < 86400 && time !== '00:00' ? time :
			two(date.getMonth() + 1) + '-' + two(date.getDate());
		const x = this.x(t), half = context.measureText(text).width / 2;

		if (x - half >= LEFT + 2 && x + half <= plot.width)
			context.fillText(text, x, plot.height - 7);
	}
};

Timeline.prototype.drawGaps = function (context, plot) {
	const { nr, from, step_s: size } = this.data;

	for (let i = 0; i < nr; i++) {
		const begin = i;

		while (i < nr && this.isGap(i))
			i++;
		if (i === begin)
			continue;
		const x = this.x(from + begin * size), w = this.x(from + i * size) - x;
		context.fillStyle = hatch(context, isDark() ? 'rgba(255,255,255,.10)' : 'rgba(0,0,0,.10)');
		context.fillRect(x, TOP, w, plot.high);
		context.fillStyle = cssColor('--faint');
		if (w > 120)
			context.fillText('nothing recorded', x + w / 2, TOP + plot.high / 2);
	}
};

Timeline.prototype.drawStacks = function (context, plot) {
	const { series, nr, from, step_s: size } = this.data, below = new Float64Array(nr);

	for (let s = 0; s < series.length; s++) {
		context.fillStyle = this.color(s);
		for (let i = 0; i < nr; i++) {
			const weight = this.rate(series[s].weights[i] || 0, i);

			if (!weight)
				continue;
			const x = Math.round(this.x(from + i * size)), w = Math.round(this.x(from + (i + 1) * size)) - x;
			const y = plot.low - (below[i] + weight) / plot.top * plot.high;

			context.fillRect(x, y, w > 4 ? w - 1 : Math.max(w, 1), weight / plot.top * plot.high);
			below[i] += weight;
		}
	}
};

Timeline.prototype.drawLines = function (context, plot) {
	const { series, nr, from, step_s: size } = this.data;

	context.lineWidth = 1.5;
	context.lineJoin = 'round';
	for (let s = 0; s < series.length; s++) {
		context.strokeStyle = context.fillStyle = this.color(s);
		context.beginPath();
		for (let i = 0, isOn = false; i < nr; i++) {
			const isGap = this.isGap(i), y = plot.low - this.rate(series[s].weights[i] || 0, i) / plot.top * plot.high;
			const x = this.x(from + (i + 0.5) * size);

			if (!isGap)
				context[isOn ? 'lineTo' : 'moveTo'](x, y);
			// One step between two gaps is a point.
			if (!isGap && !isOn && (i + 1 === nr || this.isGap(i + 1)))
				context.fillRect(x - 1, y - 1, 2, 2);
			isOn = !isGap;
		}
		context.stroke();
	}
};

Timeline.prototype.drawLost = function (context, plot) {
	const { lost, from, step_s: size } = this.data;

	context.fillStyle = isDark() ? '#ffb84d' : '#d98200';
	for (let i = 0; i < (lost || []).length; i++) {
		if (lost[i] > 0)
			context.fillRect(this.x(from + i * size), 1, Math.max(2, this.x(from + size) - LEFT), 4);
	}
};

Timeline.prototype.drawChosen = function (context, plot) {
	const span = this.draft || this.chosen(), end = plot.width - RIGHT, color = cssColor(this.name === 'B' ? '--b' : '--a');

	if (span) {
		const a = clamp(this.x(span.from), LEFT, end), b = clamp(this.x(span.to), LEFT, end);

		context.globalAlpha = 0.66;
		context.fillStyle = cssColor('--panel');
		context.fillRect(LEFT, TOP - 2, a - LEFT, plot.high + 2);
		context.fillRect(b, TOP - 2, end - b, plot.high + 2);
		context.globalAlpha = 0.1;
		context.fillStyle = color;
		context.fillRect(a, TOP - 2, b - a, plot.high + 2);
		context.globalAlpha = 1;
		context.fillRect(a - 0.5, TOP - 4, 1.5, plot.high + 4);
		context.fillRect(b - 1, TOP - 4, 1.5, plot.high + 4);
		context.fillRect(a, TOP - 4, b - a, 2);
		for (const x of [a, b]) {
			context.beginPath();
			context.roundRect(x - 2.5, TOP + plot.high / 2 - 8, 5, 16, 2.5);
			context.fill();
		}
	}
	if (this.cursor >= 0) {
		context.fillStyle = cssColor('--text');
		context.globalAlpha = 0.45;
		context.fillRect(this.x(this.data.from + (this.cursor + 0.5) * this.data.step_s), TOP, 1, plot.high);
		context.globalAlpha = 1;
	}
};

/*
 * Draw the head or foot anew, unless it would be the same: a press that has begun on a button would be lost. What has
 * the keyboard keeps it.
 */
Timeline.prototype.redraw = function (name, draw) {
	const old = this[name], active = old.contains(document.activeElement) ? document.activeElement : null;

	if (menuOpener && old.contains(menuOpener))
		return;
	this[name] = make('div', null, null, { class: old.className });
	draw.call(this);
	if (this[name].isEqualNode(old)) {
		this[name] = old;
		return;
	}
	old.replaceWith(this[name]);
	if (active)
		[...this[name].querySelectorAll(active.tagName)].find((one) =>
			one.className === active.className && one.textContent === active.textContent)?.focus();
};

Timeline.prototype.drawTexts = function () {
	this.redraw('head', this.drawHead);
	this.redraw('foot', this.drawFoot);
};

// Legend, and what is chosen.
Timeline.prototype.drawFoot = function () {
	const legend = make('div', null, null, { class: 'legend' });

	if (this.isPaired && this.name === 'A')
		this.drawBy(this.foot);
	this.foot.append(legend);
	if (this.data && state.by) {
		this.data.series.forEach((series, i) => {
			const value = clean(series.value), isOther = value === OTHER || value === '(none)';
			const entry = button(legend, null, isOther ? 'all other values, or none' : 'only ' + state.by + ' = ' + cut(value, 200),
				() => this.setTags(addRule(state[this.keys.tag], state.by, '=', series.value)));

			make('i', entry).style.background = this.color(i);
			make('span', entry, cut(value, 60) || 'none');
			entry.disabled = isOther || !value;
		});
	}
	if (!this.data)
		return;
	if (!state.by && !this.isPaired)
		make('span', legend, 'drag to choose a range');
	const { from, to } = this.chosen() || this.spanOfWindow(), nrLost = (this.data.lost || []).reduce((sum, nr) => sum + (nr || 0), 0);
	if (nrLost)
		make('span', this.foot, grouped(nrLost, 0) + ' lost', { class: 'warn',
			title: 'Samples that were lost while recording, at the marks on top of the timeline' });
	make('span', this.foot, dateText(from, new Date().toDateString()) + ' \u2013 ' + dateText(to, new Date(from * 1000).toDateString()) + ', ' +
		spanText(to - from), { class: 'picked' });
	if (this.name === 'B')
		button(this.foot, 'Range of A', 'The same time as A, to compare tags', () => change({ vs_from: state.from, vs_to: state.to }));
	else if (this.isPaired)
		button(this.foot, 'Whole', 'All of the time that is shown', () => change({ from: windowOf().from, to: windowOf().to }));
	if (!this.isPaired && state.win_from) {
		button(this.foot, 'Zoom in', 'Show this range on the whole timeline (z)', zoomIn);
		button(this.foot, 'Clear', 'The whole timeline again (Esc)', () => this.clear());
	}
};

function zoomIn() {
	if (state.win_from && !isPair())
		change({ win_from: '', win_to: '' });
}

Timeline.prototype.setTags = function (rules) {
	change({ [this.keys.tag]: rules });
};

Timeline.prototype.drawHead = function () {
	const rules = state[this.keys.tag];

	if (this.isPaired) {
		make('span', this.head, this.name, { class: 'badge ' + this.name.toLowerCase() });
		make('span', this.head, this.name === 'A' ? 'baseline' : 'comparison', { class: 'dim' });
	}
	rules.forEach((rule, i) => {
		const chip = make('span', this.head, null, { class: 'chip' });

		button(chip, cut(clean(rule), 80), clean(rule).slice(0, 500) + '\nClick: not so',
			() => this.setTags(rules.map((other, at) => at === i ? negated(other) : other)));
		button(chip, '\u00d7', 'Remove', () => this.setTags(rules.filter((_, at) => at !== i)),
			{ 'aria-label': 'Remove ' + clean(rule).slice(0, 100) });
	});
	const opener = button(this.head, rules.length ? '+ tag' : '+ filter by tag', 'Choose by tag', () => openPicker(this, opener),
		{ 'aria-haspopup': 'dialog', 'aria-expanded': 'false', class: 'add-tag' });
	make('span', this.head, null, { class: 'space' });
	if (!this.isPaired)
		this.drawBy(this.head);
};

// How the timeline is split: not for each side of its own.
Timeline.prototype.drawBy = function (parent) {
	const label = make('label', parent, 'by ', { class: 'dim' }), select = make('select', label, null, { class: 'by' });
	const names = [...new Set(keys.concat(state.by || []))].filter((key) => key !== 'kind');

	make('option', select, 'nothing', { value: '' });
	for (const key of names)
		make('option', select, cut(clean(key), 40), key === state.by ? { value: key, selected: '' } : { value: key });
	select.addEventListener('change', () => change({ by: select.value, split: select.value && state.split }));
	if (!state.by || this.isPaired)
		return;
	const group = make('span', parent, null, { class: 'group', role: 'group' });
	for (const style of ['stacked', 'lines'])
		button(group, style, '', () => change({ style }), { 'aria-pressed': state.style === style });
	button(parent, 'split graph', 'Values as the first frames of the graph', () => change({ split: state.split ? '' : '1' }),
		{ 'aria-pressed': Boolean(state.split) });
};

// ---- rules of tags ----

const RULE = /^([^=!~]+?)(!=|=~|!~|=)([\s\S]*)$/;

function negated(rule) {
	const found = RULE.exec(rule), other = new Map([['=', '!='], ['!=', '='], ['=~', '!~'], ['!~', '=~']]);

	return found ? found[1] + other.get(found[2]) + found[3] : rule;
}

// A comma stands between values: a value that has one becomes an expression.
function addRule(rules, key, operator, value) {
	if (operator.length < 3 && !operator.includes('~') && value.includes(',')) {
		operator = operator === '=' ? '=~' : '!~';
		value = '^' + value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$';
	}
	const same = rules.findIndex((rule) => rule.startsWith(key + operator) && !operator.includes('~'));
	if (same < 0)
		return rules.includes(key + operator + value) ? rules : rules.concat(key + operator + value);
	const values = rules[same].slice((key + operator).length).split(',');

	return values.includes(value) ? rules : rules.map((rule, i) => i === same ? rule + ',' + value : rule);
}

// ---- popovers ----

const menu = byId('menu');
let menuOpener = null;

function openMenu(opener, className, label) {
	const isSame = menuOpener === opener;

	closeMenu();
	if (isSame)
		return null;
	hideTip();
	menuOpener = opener;
	opener.setAttribute('aria-expanded', 'true');
	menu.className = 'popover ' + className;
	menu.setAttribute('aria-label', label);
	menu.replaceChildren();
	menu.hidden = false;
	return menu;
}

function placeMenu() {
	const box = menuOpener.getBoundingClientRect(), width = menu.getBoundingClientRect().width;

	menu.style.left = Math.max(8, Math.min(box.left, innerWidth - width - 16)) + 'px';
	menu.style.top = box.bottom + scrollY + 4 + 'px';
}

function closeMenu(isFocused) {
	if (!menuOpener)
		return;
	menuOpener.setAttribute('aria-expanded', 'false');
	if (isFocused && menuOpener.isConnected)
		menuOpener.focus();
	menuOpener = null;
	menu.hidden = true;
	sides.forEach((side) => side.drawTexts());
}

async function openPicker(side, opener) {
	const into = openMenu(opener, 'picker', 'Tags');

	if (!into)
		return;
	const columns = make('div', into, null, { class: 'columns' });
	const left = make('div', columns, null, { class: 'keys', 'aria-label': 'Keys' });
	const right = make('div', columns, null, { class: 'values', 'aria-label': 'Values' });
	const form = make('form', into), key = make('input', form, null, { placeholder: 'key', 'aria-label': 'Key', spellcheck: 'false' });
	const operator = make('select', form, null, { 'aria-label': 'Operator' });
	for (const [sign, what] of [['=', 'is'], ['!=', 'is not'], ['=~', 'matches'], ['!~', 'does not match']])
		make('option', operator, sign + '  ' + what, { value: sign });
	const value = make('input', form, null, { placeholder: 'value, value or expression', 'aria-label': 'Value', spellcheck: 'false' });
	make('button', form, 'Add', { type: 'submit' });
	form.addEventListener('submit', (event) => {
		event.preventDefault();
		if (key.value && value.value)
			take(key.value, operator.value, value.value);
	});
	function take(name, sign, text) {
		closeMenu();
		side.setTags(addRule(state[side.keys.tag], name, sign, text));
		side.head.querySelector('.add-tag').focus();
	}
	make('p', right, 'asking \u2026');
	placeMenu();
	const shown = windowOf(), params = rangeParams(shown.from, shown.to, []);
	params.append('kind', state.kind);
	await ask('tags', 'tags', params, (data) => fillPicker({ data, left, right, key, value, take }), (text) => {
		right.replaceChildren();
		make('p', right, text);
	});
	slots.get('tags').again = true;
}

function fillPicker(picker) {
	const tags = picker.data.tags.filter((tag) => tag.key !== 'kind');
	const select = (tag, entry) => {
		for (const other of picker.left.children)
			other.setAttribute('aria-pressed', other === entry);
		picker.key.value = tag.key;
		fillValues(picker, tag);
	};

	keys = tags.map((tag) => tag.key);
	picker.right.replaceChildren();
	if (!tags.length)
		make('p', picker.right, 'There are no tags in this range.');
	for (const tag of tags) {
		const entry = button(picker.left, cut(clean(tag.key), 60), '', () => select(tag, entry));

		make('span', entry, ' ' + grouped(tag.values.length + (tag.nr_more || 0), 0), { class: 'dim' });
	}
	const first = Math.max(0, tags.findIndex((tag) => tag.values.length > 1));
	if (tags.length) {
		select(tags[first], picker.left.children[first]);
		picker.left.children[first].focus();
	}
}

function fillValues(picker, tag) {
	const unit = (info.kinds.find((kind) => kind.kind === state.kind) || {}).unit || 'samples';
	const sum = tag.values.reduce((all, { weight }) => all + weight, 0);

	picker.right.replaceChildren();
	if (tag.wide)
		make('p', picker.right, 'Kept in blocks of ' + (info.block_s || BLOCK_S) + ' s only: the sums of long ago do not have it.');
	for (const { value, weight } of tag.values) {
		const row = make('div', picker.right, null, { class: 'value' });

		make('bdi', row, cut(clean(value), 200), { class: 'name', title: clean(value).slice(0, 500) });
		make('i', make('span', row, null, { class: 'weight-bar' })).style.width = part(weight, sum) * 100 + '%';
		make('span', row, shareText(part(weight, sum)), { class: 'weight', title: weightText(weight, unit) });
		button(row, '=', 'Only this', () => picker.take(tag.key, '=', value), { 'aria-label': 'only ' + clean(value).slice(0, 200) });
		button(row, '\u2260', 'All but this', () => picker.take(tag.key, '!=', value), { 'aria-label': 'not ' + clean(value).slice(0, 200) });
	}
	if (tag.nr_more)
		make('p', picker.right, grouped(tag.nr_more, 0) + ' more values are not listed: type one below.');
}

function openDownload() {
	const opener = byId('open-download'), into = openMenu(opener, 'menu', 'Download');

	if (!into)
		return;
	for (const name of isPair() ? ['A', 'B'] : ['A']) {
		const side = SIDES[name], params = askedParams(side);

		if (isPair())
			make('p', into, name === 'A' ? 'A, the baseline' : 'B, the comparison');
		for (const [format, what] of FORMATS) {
			const link = make('a', into, format + ' ', { href: 'api/profile?format=' + format + '&' + params, download: '' });

			make('small', link, what);
			link.addEventListener('click', () => closeMenu(true));
		}
	}
	placeMenu();
	into.querySelector('a').focus();
}

// ---- the views ----

let sides = [], panes = {}, builtFor = '';

function askedParams(side) {
	const params = rangeParams(state[side.from], state[side.to], state[side.tag]);

	params.append('kind', state.kind);
	if (state.split && state.by)
		params.append('by', state.by);
	return params;
}

function build() {
	const content = byId('content'), host = byId('sides'), isTwo = isPair();

	if (builtFor === state.v)
		return;
	if (!builtFor || isTwo !== (sides.length === 2)) {
		host.replaceChildren();
		host.classList.toggle('two', isTwo);
		sides = (isTwo ? ['A', 'B'] : ['A']).map((name) => new Timeline(host, name, isTwo));
		for (const slot of ['timeline-A', 'timeline-B'])
			slots.delete(slot);
	}
	builtFor = state.v;
	content.replaceChildren();
	graphs.length = 0;
	content.className = state.v === 'compare' ? 'two' : state.v === 'single' || state.v === 'diff' ? 'beside' : '';
	panes = {};
	if (['single', 'table', 'diff'].includes(state.v))
		panes.table = new Table(content);
	if (state.v === 'compare') {
		panes.A = new Graph(content, 'A');
		panes.B = new Graph(content, 'B');
	} else {
		panes.graph = new Graph(content, '');
		panes.graph.pane.hidden = state.v === 'table';
	}
	for (const slot of ['flame-A', 'flame-B', 'diff'])
		slots.delete(slot);
}

function isEmpty(data) {
	return data.totals ? !data.totals[0] && !data.totals[1] : !(data.total > 0);
}

function sayEmpty(into) {
	make('strong', into, 'Nothing was recorded in this range' + (state.tag.length ? ' with these tags' : '') + '.');
	if (info.to > info.from) {
		make('span', into, 'There are profiles from ' + dateText(info.from) + ' to ' + dateText(info.to) + '.');
		button(into, 'Show the last hour of them', '', () => setWindow(unixText(Math.max(info.from, info.to - 3600)), unixText(info.to)));
	}
}

function sayError(text) {
	return (into) => {
		make('strong', into, text);
		button(into, 'Try again', '', refresh);
	};
}

const warnings = [
	['lost', (nr, all) => grouped(nr, 0) + ' lost' + (all ? ' (' + shareText(nr / (nr + all)) + ')' : ''),
		'Samples that were lost while recording'],
	['trunc', (nr) => grouped(nr, 0) + ' truncated', 'Stacks of which only a part could be read'],
	['nr_nodes_cut', (nr) => grouped(nr, 0) + ' frames in (other)', 'Frames too small to be sent, their weight is in frames "(other)"; a download has all'],
	['lost_weight', (nr, all, unit) => weightText(nr, unit) + ' without names', 'What they were is in a damaged part of the store'],
	['nr_damaged', (nr) => grouped(nr, 0) + ' damaged', 'Records of the store that are not what was written; see stackbpf store check'],
	['nr_skipped_bytes', (nr) => weightText(nr, 'bytes') + ' unreadable', 'No records of the store any more; see stackbpf store check'],
];

function addWarnings(head, data) {
	for (const [name, text, title] of warnings) {
		const val = Array.isArray(data[name]) ? data[name].reduce((sum, nr) => sum + nr, 0) : data[name];
		const all = Array.isArray(data.nr_samples) ? data.nr_samples[0] + data.nr_samples[1] : data.nr_samples;

		if (val > 0)
			make('span', head, text(val, all, data.unit), { class: 'warn', title });
	}
	for (const note of Array.isArray(data.notes) ? data.notes : [])
		make('span', head, clean(note), { class: 'warn' });
}

// To how much all shares are known; null: not.
const isKnown = (errors) => Array.isArray(errors) && errors.every(Number.isFinite);

function fillHead(graph, data) {
	const head = graph.head, hz = data.hz > 0 ? ' at ' + number(data.hz) + ' Hz' : '';

	head.replaceChildren();
	if (graph.side)
		make('span', head, graph.side, { class: 'badge ' + graph.side.toLowerCase() });
	make('strong', head, weightText(data.total, data.unit) + (data.unit === 'samples' ? hz : ''));
	if (data.unit !== 'samples' && data.nr_samples)
		make('span', head, 'of ' + weightText(data.nr_samples, 'samples'));
	if (isKnown(data.errors))
		make('span', head, pointsText(data.errors[0]),
			{ title: '99 of 100 shares are nearer to the truth than this' });
	addWarnings(head, data);
	const side = SIDES[graph.side || 'A'], span = known({ from: state[side.from], to: state[side.to] });
	if (span && (data.from < span.from - 2 * BLOCK_S || data.to > span.to + 2 * BLOCK_S))
		make('span', head, 'of ' + dateText(data.from) + ' \u2013 ' + dateText(data.to),
			{ class: 'warn', title: 'Of so long ago there are sums of longer times only' });
}

function fillDiffHead(graph, data) {
	const head = graph.head, [a, b] = data.nr_samples || [0, 0];

	head.replaceChildren();
	for (const [name, nr] of [['A', a], ['B', b]]) {
		make('span', head, name, { class: 'badge ' + name.toLowerCase() });
		make('strong', head, 'n = ' + grouped(nr, 0));
	}
	if (isKnown(data.errors))
		make('span', head, pointsText(Math.hypot(...data.errors)),
			{ title: '99 of 100 changes of a share are nearer to the truth than this' });
	const scale = make('span', head, null, { class: 'scale' }), swatch = (step) => {
		make('i', scale).style.background = changePaint(step, +isDark())[0];
	};
	make('span', scale, 'less');
	[-4, -3, -2, -1].forEach(swatch);
	[1, 2, 3, 4].forEach(swatch);
	make('span', scale, 'more\u2003');
	swatch(0);
	make('span', scale, graph.tree.isTested ? 'may be chance' : 'no change; what is chance is not known');
	addWarnings(head, data);
}

function showFlame(graph, isDiff) {
	return (data, arrived) => {
		if (isEmpty(data)) {
			graph.fail(sayEmpty);
			if (panes.table)
				panes.table.clear();
			showFound();
			return;
		}
		const tree = new Tree(data, isDiff);

		graph.show(tree, arrived);
		(isDiff ? fillDiffHead : fillHead)(graph, data);
		if (panes.table)
			panes.table.show(tree);
		showFound();
	};
}

function askForProfiles() {
	const fail = (graph) => (text) => {
		graph.fail(sayError(text), true);
		if (panes.table)
			panes.table.clear();
		showFound();
	};

	if (state.v === 'diff') {
		const params = askedParams(SIDES.A);

		for (const [name, val] of rangeParams(state.vs_from, state.vs_to, state.vs_tag, 'vs_'))
			params.append(name, val);
		params.append('norm', state.norm);
		ask('diff', 'diff', params, showFlame(panes.graph, true), fail(panes.graph));
	} else if (state.v === 'compare') {
		for (const name of ['A', 'B'])
			ask('flame-' + name, 'flame', askedParams(SIDES[name]), showFlame(panes[name]), fail(panes[name]));
	} else {
		const params = askedParams(SIDES.A);

		params.append('table', TABLE_ROWS);
		ask('flame-A', 'flame', params, showFlame(panes.graph), fail(panes.graph));
	}
}

function askForTimelines() {
	const shown = windowOf();

	for (const side of sides) {
		const params = rangeParams(shown.from, shown.to, state[side.keys.tag]);

		params.append('kind', state.kind);
		if (state.by)
			params.append('by', state.by);
		ask('timeline-' + side.name, 'timeline', params, (data) => side.show(data), (text) => side.fail(text));
	}
}

function press(host, name) {
	for (const element of byId(host).children)
		element.setAttribute('aria-pressed', element.dataset.name === name);
}

function showFound() {
	const found = byId('found'), those = graphs.filter((graph) => graph.found);
	const isBad = matcherOf(state.q) === undefined;
	const nr = those.reduce((sum, graph) => sum + graph.found.nr, 0), shares = those.flatMap((graph) => graph.found.shares);
	found.textContent = isBad ? 'not a regular expression' : !those.length ? '' :
		grouped(nr, 0) + (nr === 1 ? ' frame, ' : ' frames, ') +
		(shares.length > 1 ? 'A ' + shareText(shares[0]) + ', B ' + shareText(shares[1]) : shareText(shares[0]));
	found.className = isBad || those.length && !nr ? 'bad' : '';
}

// The page as the state has it; asks for what is not here.
function refresh() {
	const search = byId('search'), shown = windowOf();

	if (!state.kind && info.kinds.length)
		state.kind = (info.kinds.find(({ kind }) => kind === 'oncpu') || info.kinds[0]).kind;
	if (isPair() && !state.vs_from)
		Object.assign(state, halves(state.from, state.to));
	closeMenu();
	build();
	press('kinds', state.kind);
	press('views', state.v);
	press('presets', isRelative(shown.from) && shown.to === 'now' ? shown.from : '');
	for (const [id, val] of [['from', shown.from], ['to', shown.to]]) {
		if (document.activeElement !== byId(id))
			byId(id).value = forField(val);
	}
	if (document.activeElement !== search)
		search.value = state.q;
	byId('live').setAttribute('aria-pressed', state.live === '1');
	byId('turn').textContent = state.o === 'flame' ? 'Icicle' : 'Flame';
	byId('norm').value = state.norm;
	byId('norm-label').hidden = state.v !== 'diff';
	byId('swap').hidden = !isPair();
	byId('reset').disabled = !state.zoom && !state.q;
	document.title = 'stackbpf: ' + [state.kind, ...state.tag.map(clean)].join(' ').slice(0, 200);
	for (const side of sides) {
		side.drawTexts();
		side.draw();
	}
	for (const graph of graphs) {
		graph.rezoom();
		graph.search();
		graph.draw();
	}
	if (panes.table)
		panes.table.update();
	showFound();
	if (!infoAt)
		return;
	keepLive();
	if (!state.kind) {
		graphs.forEach((graph) => graph.fail((into) => make('strong', into, 'Nothing was recorded in this store yet.')));
		return;
	}
	askForTimelines();
	askForProfiles();
}

let liveTimer = 0;

function keepLive() {
	clearTimeout(liveTimer);
	if (state.live)
		liveTimer = setTimeout(() => {
			if (document.hidden || nrPending || menuOpener) {
				keepLive();
			} else {
				askAgain();
				refresh();
			}
		}, (info.block_s || BLOCK_S) * 1000);
}

function toggleLive() {
	const shown = windowOf(), span = known(shown);

	if (!state.live && shown.to !== 'now' && span)
		Object.assign(state, { from: 'now-' + Math.round(span.to - span.from) + 's', to: 'now', win_from: '', win_to: '', vs_from: '', vs_to: '' });
	change({ live: state.live ? '' : '1' });
}

// ---- acting ----

function shift(by) {
	const span = known(windowOf());

	if (span)
		setWindow(...[span.from, span.to].map((at) => unixText(at + by * (span.to - span.from))));
}

function widen() {
	const shown = windowOf(), span = known(shown), length = span && span.to - span.from;

	if (span && shown.to === 'now')
		setWindow('now-' + Math.round(2 * length) + 's', 'now');
	else if (span)
		setWindow(unixText(span.from - length / 2), unixText(Math.min(span.to + length / 2, span.now)));
}

function toggleTheme() {
	const theme = isDark() ? 'light' : 'dark';

	document.documentElement.dataset.theme = theme;
	try {
		localStorage.setItem('stackbpf-theme', theme);
	} catch (error) {
		// Kept for as long as the page is open.
	}
	repaint();
}

function repaint() {
	colors = new Map();
	for (const one of [...sides, ...graphs])
		one.draw();
	if (panes.table)
		panes.table.draw();
	if (state.v === 'diff' && panes.graph.tree)
		fillDiffHead(panes.graph, panes.graph.tree.data);
	sides.forEach((side) => side.drawTexts());
}

// Times that move with the clock would show something else tomorrow.
function fixedLink() {
	const fixed = Object.assign({}, state, { live: '' }), now = serverNow();

	for (const name of ['from', 'to', 'vs_from', 'vs_to', 'win_from', 'win_to']) {
		const at = fixed[name] ? secondsOf(fixed[name], now) : null;

		if (at !== null)
			fixed[name] = unixText(at);
	}
	// Without a token that may stand in it.
	return location.origin + location.pathname + '#' + stateText(fixed);
}

async function copyLink() {
	const copy = byId('copy'), link = fixedLink();

	try {
		await navigator.clipboard.writeText(link);
		copy.textContent = 'Copied';
	} catch (error) {
		location.hash = link.split('#')[1];
		copy.textContent = 'In the address bar';
	}
	say(copy.textContent);
	setTimeout(() => { copy.textContent = 'Copy link'; }, 1600);
}

function swap() {
	change({ from: state.vs_from, to: state.vs_to, tag: state.vs_tag, vs_from: state.from, vs_to: state.to, vs_tag: state.tag });
}

function reset() {
	change({ zoom: '', q: '' });
}

function escape() {
	if (menuOpener)
		closeMenu(true);
	else if (state.q || document.activeElement === byId('search'))
		change({ q: '' }, true);
	else if (state.zoom)
		change({ zoom: '' });
	else if (sides.length === 1)
		sides[0].clear();
	byId('search').blur();
}

const KEYS = [
	['/', 'search; Enter goes to the next match', () => byId('search').focus()],
	['n, N', 'next, previous match'],
	['Esc', 'leave menu, search, zoom, range'],
	['Tab, arrows', 'move in timeline, table, graph'],
	['Shift-arrows', 'select a range of the timeline, Enter takes it'],
	['Enter', 'zoom into the frame; mark the function'],
	['Backspace', 'zoom out by one frame'],
	['0', 'leave zoom and search', reset],
	['t', 'table beside the graph', () => setView(state.v === 'single' ? 'graph' : 'single')],
	['c', 'compare', () => setView('compare')],
	['x', 'diff', () => setView('diff')],
	['i', 'roots at the top or at the bottom', () => change({ o: state.o === 'flame' ? 'icicle' : 'flame' })],
	['z', 'zoom into the range of the timeline', zoomIn],
	['l', 'live', toggleLive],
	['d', 'dark or light', toggleTheme],
	['?', 'these keys', () => byId('help').showModal()],
];

function onKey(event) {
	const inField = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);

	if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || byId('help').open)
		return;
	if (event.key === 'Escape') {
		escape();
		return;
	}
	if (inField)
		return;
	const found = KEYS.find(([key, , action]) => key === event.key && action);
	if (found)
		found[2]();
	else if ((event.key === 'n' || event.key === 'N') && graphs.length)
		graphs[0].step(event.key === 'n' ? 1 : -1);
	else
		return;
	event.preventDefault();
}

function listen() {
	const search = byId('search');

	for (const [name, title, hint] of VIEWS)
		button(byId('views'), title, hint, () => setView(name)).dataset.name = name;
	for (const [title, seconds] of PRESETS) {
		const from = 'now-' + (seconds % 86400 ? seconds % 3600 ? seconds / 60 + 'm' : seconds / 3600 + 'h' : seconds / 86400 + 'd');

		button(byId('presets'), title, 'The last ' + title, () => setWindow(from, 'now')).dataset.name = from;
	}
	byId('range').addEventListener('submit', (event) => {
		event.preventDefault();
		document.activeElement.blur();
		setWindow(fromField(byId('from').value), fromField(byId('to').value));
	});
	for (const [id, action] of [['earlier', () => shift(-1)], ['later', () => shift(1)], ['wider', widen], ['live', toggleLive],
		['theme', toggleTheme], ['open-help', () => byId('help').showModal()], ['reset', reset], ['swap', swap], ['copy', copyLink],
		['turn', () => change({ o: state.o === 'flame' ? 'icicle' : 'flame' })], ['open-download', openDownload]])
		byId(id).addEventListener('click', action);
	byId('norm').addEventListener('change', (event) => change({ norm: event.target.value }));
	search.addEventListener('input', () => change({ q: search.value }, true));
	search.addEventListener('keydown', (event) => {
		if (event.key === 'Enter' && graphs.length)
			graphs[0].step(1);
	});
	const list = byId('help').querySelector('dl');
	for (const [key, what] of KEYS) {
		make('dt', list, key);
		make('dd', list, what);
	}
	document.addEventListener('keydown', onKey);
	document.addEventListener('pointerdown', (event) => {
		if (menuOpener && !menu.contains(event.target) && !menuOpener.contains(event.target))
			closeMenu();
	});
	addEventListener('popstate', () => {
		state = readState(location.hash);
		refresh();
	});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
	document.addEventListener('visibilitychange', () => !document.hidden && state.live && refresh());
}

async function start() {
	try {
		const theme = localStorage.getItem('stackbpf-theme');

		if (theme)
			document.documentElement.dataset.theme = theme;
	} catch (error) {
		// As the system has it.
	}
	byId('zone').textContent = zoneText(Date.now() / 1000);
	byId('zone').title = 'Times are local: ' + (Intl.DateTimeFormat().resolvedOptions().timeZone || '');
	listen();
	refresh();
	await askInfo();
}

// What there is, then the page of it.
async function askInfo() {
	await ask('info', 'info', new URLSearchParams(), (data) => {
		info = data;
		infoAt = performance.now();
		byId('host').textContent = info.host.map(clean).join(', ').slice(0, 60);
		byId('host').title = clean(info.store || '') + ' ' + clean(info.version || '');
		for (const { kind, unit } of info.kinds)
			button(byId('kinds'), clean(kind), clean(unit), () => change({ kind })).dataset.name = kind;
	}, sayGone);
	if (!infoAt)
		return;
	refresh();
	const shown = windowOf(), params = rangeParams(shown.from, shown.to, []);
	params.append('kind', state.kind);
	ask('keys', 'tags', params, (data) => {
		keys = data.tags.map((tag) => tag.key);
		sides.forEach((side) => side.drawTexts());
	}, () => {});
}

start();
})();
