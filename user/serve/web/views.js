// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The views: which panes there are, what they ask for, and what stands above them. */

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
	const kind = info.kinds.find((one) => one.kind === state.kind);

	if (!kind && info.kinds.length) {
		make('strong', into, 'This store has no profiles of the kind \u201c' + cut(clean(state.kind), 60) + '\u201d.');
		make('span', into, 'The buttons at the top of the page are the kinds that it has.');
		return;
	}
	make('strong', into, 'Nothing was recorded in this range' + (state.tag.length ? ' with these tags' : '') + '.');
	if (kind && kind.to > kind.from) {
		make('span', into, 'There are ' + clean(kind.kind) + ' profiles from ' + dateText(kind.from) + ' to ' + dateText(kind.to) + '.');
		button(into, 'Show the last hour of them', '', () => setWindow(unixText(Math.max(kind.from, kind.to - 3600)), unixText(kind.to)));
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
	['trunc', (nr) => grouped(nr, 0) + ' truncated', 'Stacks that were read only in part'],
	['nr_nodes_cut', (nr) => grouped(nr, 0) + ' frames in (other)', 'Frames that were too small to send; their weight is in frames "(other)", and a download has all of them'],
	['lost_weight', (nr, all, unit) => weightText(nr, unit) + ' without names', 'Their stacks are in a damaged part of the store'],
	['nr_damaged', (nr) => grouped(nr, 0) + ' damaged', 'Records of the store that are damaged; stackbpf store check lists them'],
	['nr_skipped_bytes', (nr) => weightText(nr, 'bytes') + ' unreadable', 'Bytes of the store that are no longer valid records; stackbpf store check lists them'],
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
			{ title: 'With 99 % confidence, the true share differs by less than this' });
	addWarnings(head, data);
	const side = SIDES[graph.side || 'A'], span = known({ from: state[side.from], to: state[side.to] });
	if (span && (data.from < span.from - 2 * BLOCK_S || data.to > span.to + 2 * BLOCK_S))
		make('span', head, 'of ' + dateText(data.from) + ' \u2013 ' + dateText(data.to),
			{ class: 'warn', title: 'Data this old is kept only as aggregates of longer periods' });
}

function fillDiffHead(graph, data) {
	const head = graph.head, [a, b] = data.nr_samples || [0, 0];

	head.replaceChildren();
	for (const [i, name, nr] of [[0, 'A', a], [1, 'B', b]]) {
		make('span', head, name, { class: 'badge ' + name.toLowerCase() });
		make('strong', head, 'n = ' + grouped(nr, 0));
		if (!data.totals[i])
			make('span', head, 'nothing recorded in ' + name, { class: 'warn', title: 'There is nothing to compare with: choose another range or other tags' });
	}
	if (isKnown(data.errors))
		make('span', head, pointsText(Math.hypot(...data.errors)),
			{ title: 'With 99 % confidence, the true change of a share differs by less than this' });
	const scale = make('span', head, null, { class: 'scale' }), swatch = (color) => {
		make('i', scale).style.background = graph.tree.paint(color, isDark())[0];
	};
	make('span', scale, 'less');
	[8, 7, 6, 5].forEach(swatch);
	[1, 2, 3, 4].forEach(swatch);
	make('span', scale, 'more\u2003');
	swatch(0);
	make('span', scale, graph.tree.isTested ? 'may be noise' : 'no change; the noise is not known');
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
	const nr = those.reduce((sum, graph) => sum + graph.found.nodes.length, 0), shares = those.flatMap((graph) => graph.found.shares);
	found.textContent = isBad ? 'not a regular expression' : !those.length ? '' :
		grouped(nr, 0) + (nr === 1 ? ' frame, ' : ' frames, ') +
		(shares.length > 1 ? 'A ' + shareText(shares[0]) + ', B ' + shareText(shares[1]) : shareText(shares[0]));
	found.className = isBad || those.length && !nr ? 'bad' : '';
}

// The page as the state has it; asks for what is not here.
function refresh() {
	const search = byId('search'), shown = windowOf();

	if (!state.kind && info.kinds.length)
		state.kind = (info.kinds.find(({ kind }) => kind === info.default_kind) || info.kinds[0]).kind;
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
		graphs.forEach((graph) => graph.fail((into) => make('strong', into, 'This store is still empty.')));
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
