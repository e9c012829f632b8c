// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What buttons and keys do, and how the page starts. */

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

const openHelp = () => byId('help').showModal();
const turn = () => change({ o: state.o === 'flame' ? 'icicle' : 'flame' });

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

let actions = {};	// by key
const KEYS = [
	['/', 'search; Enter goes to the next match', { '/': () => byId('search').focus() }],
	['n, N', 'next, previous match', { n: () => graphs[0].step(1), N: () => graphs[0].step(-1) }],
	['Esc', 'leave menu, search, zoom, range'],
	['Tab, arrows', 'move in timeline, table, graph'],
	['Shift-arrows', 'select a range of the timeline, Enter takes it'],
	['Enter', 'zoom into the frame; mark the function'],
	['Backspace', 'zoom out by one frame'],
	['0', 'leave zoom and search', { 0: reset }],
	['t', 'table beside the graph', { t: () => setView(state.v === 'single' ? 'graph' : 'single') }],
	['c', 'compare', { c: () => setView('compare') }],
	['x', 'diff', { x: () => setView('diff') }],
	['i', 'roots at the top or at the bottom', { i: turn }],
	['z', 'zoom into the range of the timeline', { z: zoomIn }],
	['l', 'live', { l: toggleLive }],
	['d', 'dark or light', { d: toggleTheme }],
	['?', 'these keys', { '?': openHelp }],
];

function onKey(event) {
	const inField = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);

	if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || byId('help').open)
		return;
	if (event.key === 'Escape') {
		escape();
		return;
	}
	if (inField || !Object.hasOwn(actions, event.key))
		return;
	actions[event.key]();
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
		['theme', toggleTheme], ['open-help', openHelp], ['reset', reset], ['swap', swap], ['copy', copyLink],
		['turn', turn], ['open-download', openDownload]])
		byId(id).addEventListener('click', action);
	byId('norm').addEventListener('change', (event) => change({ norm: event.target.value }));
	search.addEventListener('input', () => change({ q: search.value }, true));
	search.addEventListener('keydown', (event) => {
		if (event.key === 'Enter' && graphs.length)
			graphs[0].step(1);
	});
	actions = listKeys(byId('help').querySelector('dl'), KEYS);
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
