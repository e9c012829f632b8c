// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A flame graph on a canvas. */

const ROW = 18, MIN_PX = 0.4, TEXT_PAD = 4;
const graphs = [];
const ruler = make('canvas').getContext('2d');

ruler.font = fontOf(FONT_PX);
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
			this.zoomTo(hit.isCut ? this.tree.parent[hit.node] : hit.node);
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
	this.crumbs.hidden = !this.tree || !this.tree.nr;
	this.crumbs.replaceChildren();
	if (this.crumbs.hidden)
		return;
	const path = nodesTo(this.tree, this.zoom);
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
	const matcher = matcherOf(state.q), isSame = this.sought === state.q, was = this.found;

	if (isSame && was && was.tree === this.tree)
		return;
	this.sought = state.q;
	this.found = matcher && this.tree ? Object.assign(this.tree.find(matcher), { tree: this.tree }) : null;
	if (this.found && was && isSame)
		this.found.at = was.at;
};

// The boxes of the zoomed frame, of those under it and of those on it.
Graph.prototype.layOut = function (width) {
	const from = this.tree.start[this.zoom], to = from + this.tree.wide[this.zoom];

	this.boxes = to > from ? boxesOf(this.tree, { from, to, left: 0, width, min: MIN_PX }) : [];
	this.rows = intoRows(this.boxes);
};

Graph.prototype.y = function (level) {
	return state.o === 'flame' ? this.height - (level + 1) * ROW : level * ROW;
};

Graph.prototype.draw = function () {
	const width = this.scroller.clientWidth, shown = this.scroller.clientHeight;

	if (!this.tree || !width || !shown)
		return;
	const key = [width, this.zoom, state.o].join();
	if (this.drawn !== this.tree || this.drawnKey !== key) {
		const wasTall = this.height, isNew = !this.drawn;

		this.layOut(width);
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

	for (let level = 0; level < this.rows.length; level++) {
		const y = this.y(level) - top;

		if (y <= -ROW || y >= shown)
			continue;
		for (const box of this.rows[level])
			this.paintBox(context, box, y, dark, cutPaint, pattern);
	}
	const focus = this.scroller.matches(':focus-visible') ? this.focused : -1;
	for (const node of [this.hovered, focus]) {
		const box = node >= 0 && this.boxOf(node);

		if (box) {
			context.strokeStyle = dark ? '#fff' : '#1c1e21';
			context.lineWidth = node === focus ? 2 : 1;
			context.strokeRect(box.x + 0.5, this.y(box.level) - top + 0.5, Math.max(box.w - 1.5, 1), ROW - 2);
		}
	}
};

Graph.prototype.paintBox = function (context, box, y, dark, cutPaint, pattern) {
	const tree = this.tree, node = box.node, w = Math.max(box.w - (box.w > 3 ? 0.5 : 0), 0.4);
	const [fill, text] = box.isCut && !tree.isDiff ? [cutPaint, '#888'] : tree.paint(node ? tree.color[node] : -1, dark);
	const isMatch = isFound(this.found, tree, box);
	const isFaint = this.found ? !isMatch : node !== this.zoom && box.level < tree.level[this.zoom];

	context.globalAlpha = isFaint ? 0.36 : 1;
	context.fillStyle = fill;
	context.fillRect(box.x, y, w, ROW - 1);
	// Of one side only, or what stands for frames that were cut.
	if (!box.isCut && node && w > 2 && (tree.isDiff ? !tree.total[node] || !tree.totalB[node] : tree.label(node) === OTHER)) {
		context.fillStyle = pattern;
		context.fillRect(box.x, y, w, ROW - 1);
	}
	context.globalAlpha = 1;
	if (isMatch && w > 1) {
		context.strokeStyle = dark ? '#ff8ae2' : '#b5179e';
		context.lineWidth = 1.5;
		context.strokeRect(box.x + 0.75, y + 0.75, Math.max(w - 1.5, 0.5), ROW - 2.5);
	}
	if (box.isCut)
		return;
	box.text ??= fitted(tree.label(node), w - 2 * TEXT_PAD, ruler, FONT_PX, 2);
	if (box.text) {
		context.fillStyle = isFaint ? (dark ? '#e6e6e6' : '#1c1e21') : text;
		context.globalAlpha = isFaint ? 0.75 : 1;
		context.fillText(box.text, box.x + TEXT_PAD, y + ROW / 2, w - 2 * TEXT_PAD);
		context.globalAlpha = 1;
	}
};

Graph.prototype.hit = function (x, y) {
	if (!this.tree || !this.rows)
		return null;
	y += this.scroller.scrollTop;
	const level = Math.floor((state.o === 'flame' ? this.height - y : y) / ROW);
	const row = this.rows[level] || [];

	return row.find((box) => x >= box.x && x < box.x + Math.max(box.w, 1)) || null;
};

Graph.prototype.boxOf = function (node) {
	const row = this.rows && this.rows[this.tree.level[node]] || [];

	return row.find((box) => box.node === node && !box.isCut);
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
	const tree = this.tree;

	if (!tree || !tree.nr || event.ctrlKey || event.metaKey || event.altKey)
		return;
	const box = this.boxOf(this.focused);
	let to = this.focused;

	if (!box)
		to = this.zoom;
	else if (event.key === 'Enter')
		this.zoomTo(to);
	else if (event.key === 'Backspace')
		this.zoomTo(tree.parent[this.zoom]);
	else if (event.key.startsWith('Arrow'))
		to = (neighbourOf(this.rows, box, event.key, state.o === 'flame', (other) => !other.isCut && other.w > 1) || box).node;
	else
		return;
	event.preventDefault();
	this.focus(to);
};

Graph.prototype.focus = function (node) {
	const y = this.y(this.tree.level[node]), view = this.scroller;

	this.focused = node;
	if (y < view.scrollTop || y + ROW > view.scrollTop + view.clientHeight)
		view.scrollTop = y - view.clientHeight / 2;
	this.draw();
	say(this.tree.label(node).slice(0, 200) + ', ' + this.figures(node).map((row) => row.join(' ')).join(', '));
};

// Matches one after the other; one that is too narrow is zoomed into.
Graph.prototype.step = function (by) {
	if (!this.found || !this.found.nodes.length)
		return;
	const node = stepFound(this.found, by), box = this.boxOf(node);

	if (!box || box.w < 2)
		change({ zoom: this.tree.key(node) }, true);
	this.scroller.focus({ focusVisible: true });
	this.focus(node);
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

	if (box.isCut) {
		make('strong', into, '\u2026 ' + grouped(box.next - i, 0) + ' frames that are too narrow to draw');
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
		make('p', into, 'z = ' + signed(tree.z[i], 1) + (tree.isNoise(tree.z[i]) ? ': may be noise' : ''));
	if (tree.isDiff && i && !tree.total[i])
		make('p', into, 'only in B');
	if (tree.isDiff && i && !tree.totalB[i])
		make('p', into, 'only in A');
	if (i && tree.label(i) === OTHER)
		make('p', into, 'frames that were too small to send, combined');
};

// From the answer's arrival to the picture on the screen; benchmarks read it.
function painted(since) {
	requestAnimationFrame(() => setTimeout(() =>
		performance.measure('flame', { start: since, end: performance.now() })));
}
