// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Panels: HTML inside of the picture, so that text wraps and fields are fields. */

const panels = {};

function panel(name, size) {
	const outside = makeSvg('foreignObject', Object.assign({ id: name }, size), svg);

	panels[name] = outside;
	return make('div', outside);
}

// What was clicked does not keep the keyboard.
const tool = (text, title, action) => button(line, text, title, (event) => {
	action();
	event.target.blur();
}, { 'aria-label': title });

const tools = panel('tools', { height: 58 });
const line = make('p', tools);
const field = make('input', line, null, { type: 'search', placeholder: 'Search  /', spellcheck: 'false',
	autocapitalize: 'off', autocomplete: 'off', 'aria-label': 'Search frames, a regular expression' });
const caseButton = tool('Aa', 'Upper and lower case differ (Ctrl-I)', toggleCase);
const resetButton = tool('Reset', 'Show everything again (0)', reset);
tool('\u25d0', 'Dark or light (d)', toggleTheme);
tool('?', 'Keys (?)', toggleHelp);
const result = make('output', tools, null, { 'aria-live': 'polite' });
const status = panel('status', { height: STATUS_HEIGHT });
const tip = panel('tip', { width: 480, height: 10, visibility: 'hidden' });
const help = panel('help', { width: 420, height: 420, visibility: 'hidden' });
panels.tip.setAttribute('aria-hidden', true);

function toggleHelp() {
	const isHidden = panels.help.getAttribute('visibility') === 'hidden';

	panels.help.setAttribute('visibility', isHidden ? 'visible' : 'hidden');
}

const DOT = ' \u00b7 ', SMALLEST_PX = 7;
const headTexts = new Map();	// texts of the head as they came

function wholeText(element) {
	if (!headTexts.has(element))
		headTexts.set(element, element.textContent);
	element.style.fontSize = '';
	element.textContent = headTexts.get(element);
	return headTexts.get(element);
}

// As much of a line as there is room for.
function cutTitle(element, room) {
	let text = wholeText(element);

	element.setAttribute('aria-label', text);
	while (text && element.getComputedTextLength() > room) {
		text = text.slice(0, -1);
		element.textContent = text.trimEnd() + '\u2026';
	}
}

// Lines of what stands between dots, each as long as there is room for.
function linesOf(element, parts, room) {
	const lines = [];

	for (const part of parts) {
		const last = lines.length - 1;

		element.textContent = last < 0 ? part : lines[last] + part;
		if (last < 0 || element.getComputedTextLength() > room)
			lines.push(part);
		else
			lines[last] += part;
	}
	return lines;
}

/*
 * What was lost and cut stands in the subtitle: nothing of it may be beyond the edge of a narrow window. It takes the
 * line of the legend, and then smaller letters.
 */
function fitSubtitle(element, legend, room) {
	const parts = wholeText(element).split(DOT).map((part, i, all) => i < all.length - 1 ? part + DOT : part);
	let size = parseFloat(getComputedStyle(element).fontSize), lines = [element.textContent];

	if (element.getComputedTextLength() > room) {
		lines = linesOf(element, parts, room);
		while (lines.length > (legend ? 2 : 1) && size > SMALLEST_PX) {
			element.style.fontSize = (size -= 0.5) + 'px';
			lines = linesOf(element, parts, room);
		}
	}
	element.replaceChildren();
	lines.forEach((line, i) =>
		makeSvg('tspan', i ? { x: element.getAttribute('x'), dy: '1.4em' } : {}, element).textContent = line);
	if (legend)
		legend.style.visibility = lines.length > 1 ? 'hidden' : '';
}

function fitHead() {
	cutTitle(byId('title'), innerWidth - TOOLS_MIN - 3 * PAD);
	fitSubtitle(byId('subtitle'), byId('legend'), innerWidth - 2 * PAD);
}

function placePanels() {
	fitHead();
	setAll(view, { width: innerWidth, height: Math.max(innerHeight - config.top + EDGE - STATUS_HEIGHT, 0) });
	const title = byId('title').getBoundingClientRect().right;
	const room = Math.min(Math.max(innerWidth - title - 2 * PAD, TOOLS_MIN), TOOLS_MAX);

	setAll(panels.tools, { width: room, x: innerWidth - room - PAD, y: 8 });
	setAll(panels.status, { width: innerWidth, y: innerHeight - STATUS_HEIGHT });
	setAll(panels.help, { x: Math.max(innerWidth - 420 - PAD, 0), y: 62 });
}

function setText(element, parts) {
	element.replaceChildren();
	for (const [tag, text] of parts)
		make(tag, element, text);
}

function describe(box) {
	const kind = box.node && !box.isCut ? KIND_NAMES[names[tree.name[box.node]].kind] : '';
	const label = labelOf(box);
	const parts = [['strong', (config.nametype && box.node ? config.nametype + ' ' : '') + cut(label, 2000)]];

	if (kind)
		parts.push(['i', kind]);
	if (box.node && !box.isCut && names[tree.name[box.node]].title)
		parts.push(['i', names[tree.name[box.node]].title]);
	for (const figure of figuresOf(box))
		parts.push(['span', figure]);
	return parts;
}

function updateStatus(box) {
	const parts = [];

	if (box) {
		parts.push(...describe(box));
	} else {
		const hiddenWeight = base.wide[0] - tree.wide[0];

		if (state.zoom && !config.diff)
			parts.push(['span', 'shown: ' + weigh(state.zoom.to - state.zoom.from) + ', ' +
				shareText((state.zoom.to - state.zoom.from) / whole())]);
		if (hiddenWeight > base.wide[0] * 1e-9 && !config.diff)
			parts.push(['span', 'hidden: ' + weigh(hiddenWeight) + ', ' +
				shareText(hiddenWeight / base.wide[0]) + ' (h shows it)']);
		if (state.reverse)
			parts.push(['span', 'merged from the leaves']);
		if (state.collapse)
			parts.push(['span', 'direct recursion collapsed']);
		if (config.partial)
			parts.push(['span', 'this file contains only the frames that are drawn']);
		if (!parts.length)
			parts.push(['span', 'click a frame to zoom, / to search, ? for keys']);
	}
	setText(status, parts);
}

function updateResult() {
	if (!state.query) {
		result.textContent = '';
		result.className = '';
	} else if (!search) {
		result.textContent = 'not a regular expression';
		result.className = 'bad';
	} else {
		const at = search.at >= 0 ? grouped(search.at + 1, 0) + ' of ' : '';

		result.textContent = at + grouped(search.nodes.length, 0) +
			(search.nodes.length === 1 ? ' frame matches, ' : ' frames match, ') +
			(config.diff ? pairText(search.pair) : shareText(foundShare(all())) + ' of all') +
			(state.zoom && !config.diff ? ', ' + shareText(foundShare(state.zoom)) +
				' of what is shown' : '');
		result.className = search.nodes.length ? '' : 'bad';
	}
	caseButton.classList.toggle('on', !state.ignoreCase);
	caseButton.setAttribute('aria-pressed', !state.ignoreCase);
	resetButton.disabled = !writeState();
}

function updateTexts() {
	updateResult();
	updateStatus(focused);
}

function placeTip(event) {
	const [x, y] = besidePointer(event, tip.getBoundingClientRect(), STATUS_HEIGHT);

	setAll(panels.tip, { x, y });
}

function hideTip() {
	panels.tip.setAttribute('visibility', 'hidden');
}
