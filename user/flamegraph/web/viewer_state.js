// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is shown, and how the fragment of the address says it. */

let base, tree;		// as read; as shown
let boxes = [], rows = [];
let shown = { from: 0, to: 1 };	// weights at the left and the right edge, also while zooming
let search = null;
let focused = null;	// a box
let width = 1200;
const state = {
	zoom: null,	// { level, from, to }: a frame, or a run of frames that were cut
	query: '', ignoreCase: false,
	inverted: config.inverted, reverse: false, collapse: false,
	hidden: [],	// paths, as arrays of names
	theme: '',
};

const whole = () => Math.max(tree.wide[0], config.total) || 1;
const all = () => ({ level: 0, from: 0, to: whole() });
const range = () => state.zoom || all();

function writeState() {
	const parts = [], zoom = state.zoom;

	if (zoom)
		parts.push('z=' + [zoom.level, zoom.from, zoom.to - zoom.from].join(','));
	if (state.query)
		parts.push('q=' + encodeURIComponent(state.query));
	if (state.ignoreCase)
		parts.push('case=0');
	if (state.inverted !== config.inverted)
		parts.push('i=1');
	if (state.reverse)
		parts.push('r=1');
	if (state.collapse)
		parts.push('c=1');
	for (const path of state.hidden)
		parts.push('h=' + path.join('.'));
	if (state.theme)
		parts.push('t=' + state.theme);
	return parts.join('&');
}

function readState(text) {
	const params = new URLSearchParams(text);
	const zoom = (params.get('z') || '').split(',').map(Number);
	const isZoom = zoom.length === 3 && zoom.every(Number.isFinite) && zoom[2] > 0;

	state.query = params.get('q') || '';
	state.ignoreCase = params.get('case') === '0';
	state.inverted = config.inverted !== params.has('i');
	state.reverse = params.has('r');
	state.collapse = params.has('c');
	state.hidden = params.getAll('h').map((path) => path.split('.').map(Number));
	state.theme = ['dark', 'light'].includes(params.get('t')) ? params.get('t') : '';
	state.zoom = isZoom ? { level: zoom[0], from: zoom[1], to: zoom[1] + zoom[2] } : null;
}

function keepState(isStep) {
	const text = writeState(), url = '#' + text;

	if (location.hash.slice(1) === text)
		return;
	try {
		history[isStep ? 'pushState' : 'replaceState'](null, '', url);
	} catch (error) {
		// Some browsers forbid it to files.
		location.replace(url);
	}
}
