// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The state of the page, all of which is in the fragment of the address. */

const VIEWS = [['single', 'Both', 'Table and flame graph'], ['table', 'Table', 'Table only'],
	['graph', 'Graph', 'Flame graph only'], ['compare', 'Compare', 'Two ranges or tags side by side'],
	['diff', 'Diff', 'What increased and what decreased from A to B']];
const PRESETS = [['5 min', 300], ['1 h', 3600], ['1 day', 86400], ['7 days', 604800]];
const LISTS = ['tag', 'vs_tag'];
const DEFAULTS = {
	v: 'single', kind: '', from: 'now-1h', to: 'now', tag: [], vs_from: '', vs_to: '', vs_tag: [],
	win_from: '', win_to: '',	// what the timelines show, where that is more than the range
	by: '', style: 'stacked', split: '', norm: 'share', q: '', zoom: '', o: 'icicle', sort: '', of: 'self', live: '',
};
let state = readState(location.hash);
let info = { kinds: [], formats: [], host: [] }, infoAt = 0;
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
