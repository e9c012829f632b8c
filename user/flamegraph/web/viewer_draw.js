// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Drawing the boxes. */

function chooseBoxes({ from, to }) {
	const area = { from, to, left: PAD, width: width - 2 * PAD, depth: config.depth };
	let found;

	area.min = Math.max(MIN_PX, config.min * area.width);
	while ((found = boxesOf(tree, area)).length > config.rects)
		area.min *= 2;
	return found;
}

const isUnder = (box) => state.zoom && box.level < state.zoom.level;
const yOf = (level) => (state.inverted ? level : levels - 1 - level) * config.frame + EDGE;

function labelOf(box) {
	if (!box.isCut)
		return box.node ? names[tree.name[box.node]].label : 'all';
	const nr = box.next - box.node;

	return '\u2026 ' + grouped(nr, 0) + (nr === 1 ? ' frame' : ' frames');
}

function figuresOf(box) {
	if (config.diff)
		return figuresOfPair(box);
	const weight = box.to - box.from, parent = tree.parent[box.node];
	const figures = [weigh(weight), shareText(weight / whole()) + ' of all'];

	if (box.level > 1)
		figures.push(shareText(weight / tree.wide[parent]) + ' of ' +
			names[tree.name[parent]].label);
	if (!box.isCut && box.node) {
		let self = weight;

		for (let i = box.node + 1; i < tree.end[box.node]; i = tree.end[i])
			self -= tree.name[i] === GAP ? 0 : tree.wide[i];
		figures.push(self > weight * 1e-9 ? 'self ' + weigh(self) + ', ' +
			shareText(self / whole()) : 'self 0');
	}
	return figures;
}

const ruler = make('canvas').getContext('2d');
const frames = byId('frames');
/*
 * The document is as large as the window; a larger picture is scrolled inside of it, from its roots.
 * So head and status stay, and whatever takes the upper left of the document sees what a person sees.
 */
const view = makeSvg('foreignObject', { id: 'view', y: config.top - EDGE });
const scroller = make('div', view);
const sheet = makeSvg('svg', {}, scroller);
let levels = 1;		// rows of the picture
let levelsOfAll = 1;	// of the whole: the picture does not shrink, so that rows stay in place

function drawBox(box) {
	const name = box.node && !box.isCut ? names[tree.name[box.node]] : null;
	const group = makeSvg('g', { role: 'treeitem', tabindex: -1, 'aria-level': box.level + 1 });
	const label = labelOf(box);
	const rect = makeSvg('rect', {
		class: box.isCut ? 'cut' : !name ? 'root' : config.diff ? diffClass(tree.pairTotals[box.node]) :
			classOf(name, box.level),
		x: box.x.toFixed(2), y: yOf(box.level), height: config.frame - 1,
		width: Math.max(box.w - (box.w > 4 ? 0.5 : 0), 0.2).toFixed(2),
	}, group);

	if (name && name.fill && !config.diff)
		rect.style.fill = name.fill;
	group.setAttribute('class', (isUnder(box) ? 'under ' : '') + (isFound(search, tree, box) ? 'match' : ''));
	group.setAttribute('aria-label', label + ', ' + figuresOf(box).slice(0, 2).join(', '));
	const text = fitted(label, box.w - 2 * TEXT_PAD, ruler, config.font, 3);
	if (text)
		makeSvg('text', { x: (box.x + TEXT_PAD).toFixed(2), y: yOf(box.level) +
			Math.floor(config.frame / 2 + config.font * 0.3) }, group).textContent = text;
	group.box = box;
	box.group = group;
	return group;
}

function drawThin(thin) {
	const height = config.frame - 1;
	const path = thin.map((box) => 'M' + box.x.toFixed(2) + ' ' + yOf(box.level) + 'v' + height + 'h' +
		Math.max(box.w, 0.1).toFixed(2) + 'v' + -height + 'z');

	return makeSvg('path', { class: 'cut', d: path.join(''), 'aria-hidden': true });
}

/* Draw the weights from area.from to area.to. */
function draw(area) {
	const hadFocus = frames.contains(document.activeElement);
	const wasLevels = levels;

	shown = area;
	boxes = chooseBoxes(area);
	rows = intoRows(boxes);
	levels = Math.max(rows.length, levelsOfAll);
	const isThin = (box) => box.isCut && box.w < MIN_HIT_PX;
	const list = document.createDocumentFragment();
	for (const box of boxes) {
		if (!isThin(box))
			list.append(drawBox(box));
	}
	list.append(drawThin(boxes.filter(isThin)));
	frames.replaceChildren(list);
	frames.classList.toggle('searching', Boolean(search));
	setAll(sheet, { width, height: 2 * EDGE + levels * config.frame });
	if (levels !== wasLevels && !state.inverted)
		scroller.scrollTop += (levels - wasLevels) * config.frame;
	refocus(hadFocus);
}

let animation = 0;
const isCalm = matchMedia('(prefers-reduced-motion: reduce)');

function show(isAnimated) {
	const goal = range(), begin = shown, since = performance.now();

	hideTip();
	cancelAnimationFrame(animation);
	svg.dataset.state = 'moving';
	function finish() {
		draw(goal);
		updateTexts();
		svg.dataset.state = 'ready';
	}
	function step(now) {
		const part = Math.min((now - since) / ZOOM_MS, 1), eased = 1 - (1 - part) ** 3;

		if (part === 1 || boxes.length > ANIMATED_MAX) {
			finish();
			return;
		}
		draw({ from: begin.from + (goal.from - begin.from) * eased, to: begin.to + (goal.to - begin.to) * eased });
		animation = requestAnimationFrame(step);
	}
	if (isAnimated && !isCalm.matches && boxes.length <= ANIMATED_MAX)
		animation = requestAnimationFrame(step);
	else
		finish();
}
