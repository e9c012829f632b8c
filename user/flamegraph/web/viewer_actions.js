// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Search, zoom and other actions, the focus, and the keys. */

function runSearch() {
	search = null;
	if (!state.query)
		return;
	let regex;
	try {
		regex = new RegExp(state.query, state.ignoreCase ? 'i' : '');
	} catch (error) {
		return;
	}
	search = findNodes(tree, names.map((name) => regex.test(name.label)));
	search.pair = noPair();
	for (const i of tree.pairs ? search.outermost : [])
		addPair(search.pair, tree.pairTotals[i]);
}

// The part of a range that matches.
const foundShare = ({ from, to }) => search.outermost.reduce((sum, i) => sum +
	Math.max(0, Math.min(tree.start[i] + tree.wide[i], to) - Math.max(tree.start[i], from)), 0) / (to - from);

function setQuery(query) {
	state.query = query;
	if (field.value !== query)
		field.value = query;
	runSearch();
	show(false);
}

function stepMatch(by) {
	if (!search || !search.nodes.length)
		return;
	const node = stepFound(search, by);
	const find = () => boxes.find((box) => !box.isCut && box.node === node && box.w > MIN_HIT_PX);

	if (!find())
		zoomTo({ level: tree.level[node], from: tree.start[node],
			to: tree.start[node] + tree.wide[node] }, false);
	focusBox(find());
	updateResult();
}

function toggleCase() {
	state.ignoreCase = !state.ignoreCase;
	setQuery(state.query);
	keepState(false);
}

function zoomTo(zoom, isAnimated) {
	const isAll = !zoom || zoom.level === 0;

	state.zoom = isAll ? null : { level: zoom.level, from: zoom.from, to: zoom.to };
	show(isAnimated);
	keepState(true);
}

// After a change of the tree; a zoom means other frames then.
function rebuild() {
	tree = derive(base, state);
	shown = all();
	if (state.zoom && state.zoom.to > shown.to * (1 + 1e-9))
		state.zoom = null;
	levels = levelsOfAll = intoRows(chooseBoxes(shown)).length;
	runSearch();
}

function change(what) {
	Object.assign(state, { zoom: null }, what);
	focused = null;
	rebuild();
	show(false);
	scrollToRoot();
	keepState(true);
}

function hide(box) {
	const paths = box.isCut ? [] : [pathOf(tree, box.node)];

	for (let i = box.node; box.isCut && i < box.next; i = tree.end[i])
		paths.push(pathOf(tree, i));
	if (box.node)
		change({ hidden: state.hidden.concat(paths) });
}

function reset() {
	change({ query: '', ignoreCase: false, inverted: config.inverted, reverse: false,
		collapse: false, hidden: [] });
	field.value = '';
}

const darkRules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
	.filter((rule) => rule.media && rule.media.mediaText.includes('prefers-color-scheme'))
	.map((rule) => ({ rule, media: rule.media.mediaText }));

function applyTheme() {
	const media = { dark: 'all', light: 'not all' };

	for (const { rule, media: original } of darkRules)
		rule.media.mediaText = media[state.theme] || original;
	svg.style.colorScheme = state.theme || 'light dark';
}

function toggleTheme() {
	state.theme = isThemeDark(state.theme) ? 'light' : 'dark';
	applyTheme();
	keepState(false);
}

function refocus(hadFocus) {
	const old = focused;

	focused = old && (boxes.find((box) => box.node === old.node && box.isCut === old.isCut) || null);
	if (focused && focused.group) {
		focused.group.setAttribute('tabindex', 0);
		focused.group.classList.add('focus');
		if (hadFocus)
			focused.group.focus({ preventScroll: true });
	} else if (boxes[0] && boxes[0].group) {
		boxes[0].group.setAttribute('tabindex', 0);
	}
}

function focusBox(box, staysThere) {
	if (!box || !box.group)
		return;
	for (const group of frames.querySelectorAll('.focus, [tabindex="0"]')) {
		group.classList.remove('focus');
		group.setAttribute('tabindex', -1);
	}
	focused = box;
	box.group.setAttribute('tabindex', 0);
	box.group.classList.add('focus');
	box.group.focus({ preventScroll: true });
	if (!staysThere)
		keepInView(box);
	updateStatus(box);
}

function keepInView(box) {
	const y = yOf(box.level), top = scroller.scrollTop;
	const above = y - top, below = y + config.frame - top - scroller.clientHeight;

	if (above < 0)
		scroller.scrollTop += above - EDGE;
	else if (below > 0)
		scroller.scrollTop += below + EDGE;
	if (box.x + box.w < scroller.scrollLeft || box.x > scroller.scrollLeft + scroller.clientWidth)
		scroller.scrollLeft = box.x - PAD;
}

function turnPage(key) {
	const page = scroller.clientHeight - 2 * config.frame;
	const by = { PageUp: -page, PageDown: page, Home: -scroller.scrollHeight,
		End: scroller.scrollHeight };

	scroller.scrollBy(0, by[key]);
}

function moveFocus(key) {
	if (!focused)
		focusBox(boxes.find((box) => state.zoom && box.level === state.zoom.level) || boxes[0]);
	else
		focusBox(neighbourOf(rows, focused, key, !state.inverted, (box) => box.group));
}

function leave() {
	if (panels.help.getAttribute('visibility') === 'visible') {
		toggleHelp();
	} else if (state.query) {
		setQuery('');
		keepState(true);
	} else {
		zoomTo(null, true);
	}
}

const zoomFocused = () => focused && zoomTo(focused, true);

function startSearch() {
	field.focus();
	field.select();
}

const ACTIONS = listKeys(make('dl', help), [
	['click, Enter', 'zoom into a frame; below it: zoom out', { Enter: zoomFocused, ' ': zoomFocused }],
	['\u2191 \u2193 \u2190 \u2192', 'move from frame to frame', {
		ArrowUp: moveFocus, ArrowDown: moveFocus, ArrowLeft: moveFocus, ArrowRight: moveFocus,
		PageUp: turnPage, PageDown: turnPage, Home: turnPage, End: turnPage,
	}],
	['Esc', 'leave search, then zoom', { Escape: leave, '?': toggleHelp }],
	['0', 'reset everything', { 0: reset }],
	['/, Ctrl-F', 'search by regular expression', { '/': startSearch, F3: startSearch }],
	['n, N', 'next, previous match', { n: () => stepMatch(1), N: () => stepMatch(-1) }],
	['Ctrl-I', 'ignore upper and lower case'],
	['Ctrl-click, x', 'hide a frame and all above it', { x: () => focused && hide(focused) }],
	['h', 'show all hidden frames', { h: () => change({ hidden: [] }) }],
	['c', 'collapse direct recursion', { c: () => change({ collapse: !state.collapse, hidden: [] }) }],
	['r', 'merge from the leaves: callers', { r: () => change({ reverse: !state.reverse, hidden: [] }) }],
	['i', 'upside down: roots at the top', { i: () => change({ inverted: !state.inverted, zoom: state.zoom }) }],
	['d', 'dark or light', { d: toggleTheme }],
]);

function onControl(event) {
	const key = event.key.toLowerCase();

	// A second Ctrl-F is the browser's own search.
	if (key === 'f' && document.activeElement !== field)
		startSearch();
	else if (key === 'i')
		toggleCase();
	else
		return;
	event.preventDefault();
}

function onFieldKey(event) {
	if (event.key === 'Enter') {
		stepMatch(event.shiftKey ? -1 : 1);
		field.focus();
	} else if (event.key === 'Escape') {
		setQuery('');
		field.blur();
	} else {
		return;
	}
	keepState(true);
	event.preventDefault();
}

function onKey(event) {
	if (event.ctrlKey || event.metaKey) {
		onControl(event);
	} else if (event.target === field) {
		onFieldKey(event);
	} else if (!event.altKey && Object.hasOwn(ACTIONS, event.key) &&
		!(event.target.localName === 'button' && (event.key === 'Enter' || event.key === ' '))) {
		event.preventDefault();
		ACTIONS[event.key](event.key);
	}
}

const boxAt = (event) => {
	const group = event.target.closest && event.target.closest('#frames > g');

	return group && group.box;
};

function onClick(event) {
	const box = boxAt(event), isControl = event.ctrlKey || event.metaKey;
	const name = box && box.node && !box.isCut ? names[tree.name[box.node]] : null;

	if (!box)
		return;
	event.preventDefault();
	focused = box;
	// As in flamegraph.pl: a frame that is a link leads there, and zooms with Ctrl.
	if (name && name.link && !isControl)
		open(name.link, name.target || '_top', 'noopener');
	else if (isControl && !(name && name.link))
		hide(box);
	else
		zoomTo(box, true);
}

function scrollToRoot() {
	scroller.scrollTop = state.inverted ? 0 : scroller.scrollHeight;
}

function resize() {
	placePanels();
	if (config.fluid)
		width = Math.max(320, scroller.clientWidth);
	if (tree)
		show(false);
}

function listen() {
	let typing = 0;

	document.addEventListener('keydown', onKey);
	frames.addEventListener('click', onClick);
	frames.addEventListener('pointermove', (event) => {
		const box = boxAt(event);

		if (!box)
			return;
		updateStatus(box);
		// A finger covers what a tip would say; the status line says it, too.
		if (event.pointerType === 'touch')
			return;
		setText(tip, describe(box));
		panels.tip.setAttribute('visibility', 'visible');
		placeTip(event);
	});
	frames.addEventListener('pointerleave', () => {
		hideTip();
		updateStatus(focused);
	});
	frames.addEventListener('focusin', (event) => {
		// Not scrolled into view: under a finger or a mouse it must not move.
		if (event.target.box && event.target.box !== focused)
			focusBox(event.target.box, true);
	});
	field.addEventListener('input', () => {
		clearTimeout(typing);
		typing = setTimeout(() => {
			setQuery(field.value);
			keepState(false);
		}, 120);
	});
	scroller.addEventListener('scroll', hideTip, { passive: true });
	addEventListener('resize', resize);
	addEventListener('popstate', () => restore(false));
}
