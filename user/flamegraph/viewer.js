// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What makes the picture a viewer once a browser has opened it as a document of its own. The static
 * boxes are replaced by boxes drawn from the embedded data, so that zooming in brings back frames
 * that were too narrow before. Names are hostile: they only ever become text nodes and attribute
 * values, never markup.
 */
(function () {
'use strict';

const svg = document.currentScript.closest('svg');
// Inside an HTML page the picture is a guest: no keys, no scrolling, only its titles. But there are pages
// that were made for it (sb_fg_render_inline()).
if (svg !== document.documentElement && !svg.classList.contains('page'))
	return;

const SVG = 'http://www.w3.org/2000/svg', XHTML = 'http://www.w3.org/1999/xhtml';
const GAP = -1;
const KIND_NAMES = ['', 'kernel', 'inlined', 'JIT', 'waker', '', '', '', 'file', 'idle', '', '', '', '', 'interpreter', 'lock'];
const PAD = 12, TEXT_PAD = 3, STATUS_HEIGHT = 30, EDGE = 2;
const TOOLS_MIN = 230, TOOLS_MAX = 400;
// A third of a pixel is not seen; a box of one pixel can be hit.
const MIN_PX = 0.3, MIN_HIT_PX = 1, ANIMATED_MAX = 1500, ZOOM_MS = 160;

const settings = svg.querySelector('metadata > view');
const setting = (name, otherwise) => settings.getAttribute(name) || otherwise;
const config = {
	unit: setting('unit', 'samples'),
	nametype: setting('nametype', ''),
	shade: setting('shade', 'name'),
	rules: JSON.parse(setting('rules', '[]')).map(([kinds, regex, letter, shades]) =>
		({ kinds, regex: regex && new RegExp(regex), letter, shades })),
	frame: Number(setting('frame', 16)),
	font: Number(setting('font', 12)),
	top: Number(setting('top', 70)),
	rects: Number(setting('rects', 0)) || Infinity,
	depth: Number(setting('depth', 0)) || Infinity,
	min: Number(setting('min', 0)),
	factor: Number(setting('factor', 1)),
	total: Number(setting('total', 0)),
	fluid: settings.hasAttribute('fluid'),
	inverted: settings.hasAttribute('inverted'),
	chart: settings.hasAttribute('chart'),
	partial: settings.hasAttribute('partial'),
	// Of a comparison of A with B: 'share', 'rate' or 'raw'.
	diff: setting('diff', ''),
	width: setting('width', 'b'),
	rate: setting('rate', 's'),
	per: [Number(setting('per_a', 1)), Number(setting('per_b', 1))],
	negate: settings.hasAttribute('negate'),
};

// include common.js

const weigh = (weight) => weightText(weight * config.factor, config.unit);

function make(tag, attrs, parent, namespace) {
	const element = document.createElementNS(namespace || SVG, tag);

	for (const name in attrs)
		element.setAttribute(name, attrs[name]);
	if (parent)
		parent.append(element);
	return element;
}

// ---- names ----

const SUFFIX_KINDS = { k: KERNEL, i: INLINED, j: JIT, w: WAKER, f: FILE, p: INTERP, z: IDLE };
const names = [], nameIds = new Map();

function nameId(text) {
	let id = nameIds.get(text);

	if (id === undefined) {
		const suffix = /_\[([kijwfpz])\]$/.exec(text);
		const said = suffix ? SUFFIX_KINDS[suffix[1]] : PLAIN;
		const label = clean(suffix ? text.slice(0, -4) : text);

		id = names.length;
		// A file may have any name, and what is idle none.
		names.push({ label, kind: said === FILE || said === IDLE ? said : shapeOf(label) || said });
		nameIds.set(text, id);
	}
	return id;
}

// ---- colours: as palette.c has them ----

function hashPrefix(text) {
	const bytes = encoder.encode(text.replace(/^_+/, ''));
	let hash = 0;

	for (let i = 0; i < 3 && i < bytes.length; i++)
		hash |= (bytes[i] & 31) << (27 - 5 * i);
	return hash >>> 0;
}

function moduleOf(text) {
	const found = /^\[([^+\]]*)/.exec(text) || /^([^`]*)`/.exec(text) ||
		/ \[([^[]*)\]$/.exec(text) || / \(([^(]*)\)$/.exec(text);

	if (found)
		return found[1];
	text = text.replace(/^[<&]+/, '');
	return text.includes('::') ? text.slice(0, text.indexOf('::')) :
		text.slice(0, Math.max(0, text.lastIndexOf('/')));
}

function hashFrame(label, level) {
	switch (config.shade) {
	case 'prefix':
		return hashPrefix(label);
	case 'place':
		return Math.imul(hashBytes(label) ^ level, 0x9e3779b1) >>> 0;
	case 'module':
		return hashBytes(moduleOf(label));
	default:
		return hashBytes(label);
	}
}

function classOf(name, level) {
	if (name.cls && config.shade !== 'place')
		return name.cls;
	const rule = config.rules.find((rule) => rule.kinds & 1 << name.kind &&
		(!rule.regex || rule.regex.test(name.label.slice(0, 511))));
	const shade = (hashFrame(name.label, level) >>> 16) * rule.shades >>> 16;

	name.cls = String.fromCharCode(97 + rule.letter + (shade >> 3)) + (shade & 7);
	return name.cls;
}

// Colours kept from other pictures, and links, are known from the static boxes only.
function learnFromBoxes() {
	const learned = new Map();

	for (const group of byId('frames').children) {
		const rect = group.querySelector('rect'), title = group.querySelector('title').textContent;
		const label = group.dataset.name;

		if (label !== undefined)
			learned.set(label, { link: group.getAttribute('href'), title,
				target: group.getAttribute('target') });
		if (rect && rect.style.fill) {
			const name = label === undefined ? title.replace(/ \([^(]*\)$/, '') : label;

			learned.set(name, Object.assign({ fill: rect.style.fill }, learned.get(name)));
		}
	}
	for (const name of learned.size ? names : [])
		Object.assign(name, learned.get(name.label));
}

// ---- trees ----

/*
 * Nodes in preorder, the root first: node i and all above it are i to end[i] - 1, so a subtree, and
 * a run of siblings, is a range of numbers.
 */
function newTree() {
	return { parent: [0], name: [0], self: [0], level: [0], pairs: config.diff ? [noPair()] : null };
}

function addNode(tree, parent, name) {
	tree.parent.push(parent);
	tree.name.push(name);
	tree.self.push(0);
	if (tree.pairs)
		tree.pairs.push(noPair());
	tree.level.push(tree.level[parent] + (name === GAP ? 0 : 1));
	return tree.parent.length - 1;
}

function measureTree(tree) {
	const nr = tree.parent.length, used = new Float64Array(nr);

	tree.nr = nr;
	if (tree.pairs)
		setWidths(tree);
	tree.total = Float64Array.from(tree.self);
	tree.end = Int32Array.from(tree.self, (_, i) => i + 1);
	tree.start = new Float64Array(nr);
	for (let i = nr - 1; i > 0; i--) {
		const parent = tree.parent[i];

		tree.total[parent] += tree.total[i];
		tree.end[parent] = Math.max(tree.end[parent], tree.end[i]);
	}
	for (let i = 1; i < nr; i++) {
		const parent = tree.parent[i];

		tree.start[i] = tree.start[parent] + used[parent];
		used[parent] += tree.total[i];
	}
	return tree;
}

// ---- comparisons: as diff.c and base/compare.c have them ----

/* Weights in A and B, and the sums of squares of those of their samples. */
function noPair() {
	return [0, 0, 0, 0];
}

function addPair(to, from) {
	for (let i = 0; i < 4; i++)
		to[i] += from[i];
}

function setWidths(tree) {
	tree.pairTotals = tree.pairs.map((pair) => [...pair]);
	for (let i = tree.parent.length - 1; i > 0; i--)
		addPair(tree.pairTotals[tree.parent[i]], tree.pairTotals[i]);
	const all = tree.pairTotals[0];
	const per = base ? base.per : config.diff === 'share' ? [all[0] || 1, all[1] || 1] : config.per;

	tree.per = per;
	for (let i = 0; i < tree.parent.length; i++) {
		const a = tree.pairs[i][0] * per[1] / per[0], b = tree.pairs[i][1];
		const total = tree.pairTotals[i];

		tree.self[i] = config.width === 'both' ? (a + b) / 2 :
			config.width === 'a' ? (total[0] > 0 ? a : b) : (total[1] > 0 ? b : a);
	}
}

function varianceOf(side, val, squares, isShare) {
	const inShare = squares / side.per ** 2;

	return isShare ? inShare * (1 - val) ** 2 +
		Math.max(side.allSquares / side.per ** 2 - inShare, 0) * val ** 2 : inShare;
}

function zOf(pair) {
	const all = base.pairTotals[0], isShare = config.diff === 'share';
	const [a, b] = [0, 1].map((i) => ({ part: pair[i], squares: pair[2 + i], per: base.per[i],
		allSquares: all[2 + i] }));
	const inA = a.part / a.per, inB = b.part / b.per;

	if (Number.isNaN(a.squares + b.squares + a.allSquares + b.allSquares))
		return NaN;
	if (inA === inB || !(a.part + b.part > 0) || (isShare && !(all[0] > 0 && all[1] > 0)))
		return 0;
	const apart = varianceOf(a, inA, a.squares, isShare) + varianceOf(b, inB, b.squares, isShare);
	const mean = (a.squares + b.squares) / (a.part + b.part);
	const ofA = a.per ** 2 / a.allSquares, ofB = b.per ** 2 / b.allSquares;
	const both = isShare ? (inA * ofA + inB * ofB) / (ofA + ofB) : (a.part + b.part) / (a.per + b.per);
	const together = varianceOf(a, both, both * a.per * mean, isShare) +
		varianceOf(b, both, both * b.per * mean, isShare);

	return (inB - inA) / Math.sqrt(Math.max(apart, together));
}

function diffClass(pair) {
	const a = pair[0] / base.per[0], b = pair[1] / base.per[1], isMore = b > a;

	if (a === b || Math.abs(zOf(pair)) < NOISE_Z)
		return b > 0 || !(a > 0) ? 'same' : 'same gone';
	const step = !(a > 0) || !(b > 0) ? 4 : stepOf(a, b);

	return (isMore !== config.negate ? 'more' : 'less') + step + (a > 0 ? b > 0 ? '' : ' gone' : ' new');
}

function valueText(val) {
	if (config.diff === 'share')
		return shareText(val);
	if (config.diff === 'raw')
		return weigh(val);
	return config.rate === 's' ? weigh(val) + '/s' :
		shareText(val) + (config.rate === 'cpu' ? ' of a CPU' : ' of the CPUs');
}

function changeText(by) {
	if (by === 0)
		return 'no change';
	return (by > 0 ? '+' : '\u2212') + (config.diff !== 'share' ? valueText(Math.abs(by)) :
		grouped(Math.abs(by) * 100, Math.abs(by) < 0.0995 ? 2 : 1) + ' points');
}

function changeOf(pair) {
	const a = pair[0] / base.per[0], b = pair[1] / base.per[1], z = zOf(pair);
	const noise = Math.abs(z) < NOISE_Z ? ', noise' : '';

	return changeText(b - a) + (a > 0 && b > 0 && a !== b ? ', \u00d7' + grouped(b / a, 2) : '') +
		(a === b || Number.isNaN(z) ? '' : ', z = ' + grouped(z, 1).replace('-', '\u2212') + noise);
}

const pairText = (pair) => 'A ' + valueText(pair[0] / base.per[0]) + ', B ' + valueText(pair[1] / base.per[1]);

function pairOf(box) {
	const sum = noPair();

	for (let i = box.node; i < box.next; i = tree.end[i]) {
		addPair(sum, tree.pairTotals[i]);
		if (!box.isCut)
			break;
	}
	return sum;
}

// Of how many samples the weights are as good as, where they are no counts.
function samplesText(pair) {
	const [a, b] = [0, 1].map((i) => pair[i] ? pair[i] ** 2 / pair[2 + i] : 0);
	const isCount = [a, b].every((nr, i) => Math.abs(nr - pair[i]) <= nr * 1e-6);

	return isCount || Number.isNaN(a + b) ? '' :
		', as sure as n = ' + grouped(a, 0) + ' \u2192 ' + grouped(b, 0);
}

function figuresOfPair(box) {
	const pair = pairOf(box), figures = [pairText(pair), changeOf(pair)];

	if (config.diff !== 'raw')
		figures.push(weigh(pair[0]) + ' \u2192 ' + weigh(pair[1]) + samplesText(pair));
	if (!box.isCut && box.node) {
		const self = tree.pairs[box.node];

		figures.push(self[0] || self[1] ? 'self ' + pairText(self) + ': ' + changeOf(self) : 'self 0');
	}
	return figures;
}

// "12 3.5" behind the stack, and what "#n;" said of it.
function pairOfLine(numbers, said, isMeasure) {
	return [...numbers, ...numbers.map((val, i) => said ? (val ? val * val / said[i] : 0) :
		isMeasure && val ? NaN : val)];
}

// Time of a node's own, where the order of children is the order of time, is a child without name.
function addSelf(tree, node, weight) {
	if (tree.pairs) {
		addPair(tree.pairs[node], weight);
		return;
	}
	const isLast = node === tree.parent.length - 1;

	if (config.chart && !isLast)
		node = addNode(tree, node, GAP);
	tree.self[node] += weight;
}

function addChild(tree, parent, name) {
	if (config.chart && tree.self[parent]) {
		const gap = addNode(tree, parent, GAP);

		tree.self[gap] = tree.self[parent];
		tree.self[parent] = 0;
	}
	return addNode(tree, parent, name);
}

// What the data says, whatever --countname shows.
const factUnit = (text) => (/^#stackbpf;[^\n]*?\bunit=([^;\n]*)/.exec(text) || ['', ''])[1];

// Each line shares its first frames with the one before: the lines are in the order of the tree.
function parseFolded(text) {
	const tree = newTree(), ends = [], path = [0], isMeasure = SCALES.has(factUnit(text));
	let before = '', said = null;

	for (let at = 0, stop; at < text.length; at = stop + 1) {
		stop = text.indexOf('\n', at);
		if (stop < 0)
			stop = text.length;
		const last = text.lastIndexOf(' ', stop);
		if (config.diff && text.startsWith('#n;', at))
			said = text.slice(at + 3, stop).split(';').map(Number);
		if (text[at] === '#' || last < at)
			continue;
		const space = config.diff ? text.lastIndexOf(' ', last - 1) : last;
		const line = text.slice(at, space);
		const length = Math.min(line.length, before.length);
		let same = 0, depth = 0;

		while (same < length && line.charCodeAt(same) === before.charCodeAt(same))
			same++;
		while (depth < ends.length && ends[depth] <= same &&
			(ends[depth] === line.length || line[ends[depth]] === ';'))
			depth++;
		ends.length = depth;
		path.length = depth + 1;
		for (let from = depth ? ends[depth - 1] + 1 : 0; from <= line.length;) {
			let to = line.indexOf(';', from);

			if (to < 0)
				to = line.length;
			path.push(addChild(tree, path[path.length - 1], nameId(line.slice(from, to))));
			ends.push(to);
			from = to + 1;
		}
		const numbers = text.slice(space + 1, stop).split(' ').map(Number);

		addSelf(tree, path[path.length - 1], config.diff ? pairOfLine(numbers, said, isMeasure) : numbers[0]);
		said = null;
		before = line;
	}
	return measureTree(tree);
}

function pathOf(tree, node) {
	const path = [];

	for (; node; node = tree.parent[node]) {
		if (tree.name[node] !== GAP)
			path.push(tree.name[node]);
	}
	return path.reverse();
}

function isHidden(path, hidden) {
	return hidden.some((prefix) => prefix.length <= path.length &&
		prefix.every((name, i) => name === path[i]));
}

// Trie nodes to preorder; siblings stand in the order in which they came, or by name.
function fromTrie(trie, isSorted) {
	const tree = newTree(), work = [[trie, 0]];

	tree.self[0] = trie.self;
	if (tree.pairs)
		addPair(tree.pairs[0], trie.pair);
	while (work.length) {
		const [from, parent] = work.pop();
		const node = from === trie ? 0 : addNode(tree, parent, from.name);
		const children = [...from.children.values()];

		tree.self[node] = from.self;
		if (tree.pairs && node)
			addPair(tree.pairs[node], from.pair);
		if (isSorted)
			children.sort((a, b) => names[a.name].label < names[b.name].label ? -1 : 1);
		for (let i = children.length; i-- > 0;)
			work.push([children[i], node]);
	}
	return measureTree(tree);
}

// The tree that is shown: from the leaves, without direct recursion, without what was hidden.
function derive(base, how) {
	const newNode = (name) => ({ name, self: 0, pair: noPair(), children: new Map() });
	const trie = newNode(0);

	if (!how.reverse && !how.collapse && !how.hidden.length)
		return base;
	for (let i = 0; i < base.nr; i++) {
		if (!(base.self[i] > 0) && !(base.pairs && (base.pairs[i][0] || base.pairs[i][1])))
			continue;
		let path = pathOf(base, i), at = trie;

		if (how.collapse)
			path = path.filter((name, level) => name !== path[level - 1]);
		if (how.reverse)
			path.reverse();
		if (isHidden(path, how.hidden))
			continue;
		for (const name of path) {
			if (!at.children.has(name))
				at.children.set(name, newNode(name));
			at = at.children.get(name);
		}
		at.self += base.self[i];
		if (base.pairs)
			addPair(at.pair, base.pairs[i]);
	}
	return fromTrie(trie, how.reverse);
}

// ---- state ----

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

const whole = () => Math.max(tree.total[0], config.total) || 1;
const range = () => state.zoom || { level: 0, from: 0, to: whole() };

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

// ---- what is drawn ----

/*
 * Boxes of all nodes that meet [from, to): the ancestors of a zoomed frame fill the width, frames
 * beside it are outside. Neighbours below the minimum become one box.
 */
function collectBoxes(from, to, min) {
	const scale = (width - 2 * PAD) / (to - from), edge = (to - from) * 1e-9, found = [];
	const { start, total, end, parent, level, name } = tree;

	for (let i = 0; i < tree.nr;) {
		if (start[i] + total[i] <= from + edge || start[i] >= to - edge || name[i] === GAP) {
			i = end[i];
			continue;
		}
		const isDeep = level[i] > config.depth;
		let next = i + 1, isCut = false, stop = start[i] + total[i];

		if (i && (isDeep || total[i] * scale < min)) {
			const last = end[parent[i]];

			isCut = true;
			next = end[i];
			while (next < last && name[next] !== GAP && start[next] < to - edge &&
				(isDeep || total[next] * scale < min)) {
				stop = start[next] + total[next];
				next = end[next];
			}
		}
		const left = Math.max(start[i], from), right = Math.min(stop, to);

		found.push({ node: i, next, isCut, level: level[i], from: start[i], to: stop,
			x: PAD + (left - from) * scale, w: (right - left) * scale });
		i = next;
	}
	return found;
}

function chooseBoxes(from, to) {
	let min = Math.max(MIN_PX, config.min * (width - 2 * PAD));
	let found = collectBoxes(from, to, min);

	while (found.length > config.rects) {
		min *= 2;
		found = collectBoxes(from, to, min);
	}
	return found;
}

function intoRows(found) {
	const into = [];

	for (const box of found)
		(into[box.level] ||= []).push(box);
	return into;
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
		figures.push(shareText(weight / tree.total[parent]) + ' of ' +
			names[tree.name[parent]].label);
	if (!box.isCut && box.node) {
		let self = weight;

		for (let i = box.node + 1; i < tree.end[box.node]; i = tree.end[i])
			self -= tree.name[i] === GAP ? 0 : tree.total[i];
		figures.push(self > weight * 1e-9 ? 'self ' + weigh(self) + ', ' +
			shareText(self / whole()) : 'self 0');
	}
	return figures;
}

// ---- labels: as label.c has them ----

const ruler = document.createElementNS(XHTML, 'canvas').getContext('2d');
const textWidth = (text) => ruler.measureText(text).width;

function withoutArguments(text) {
	const end = text.endsWith(' const') ? text.length - 6 : text.length;
	let depth = 0;

	if (text[end - 1] !== ')')
		return text;
	for (let i = end; i-- > 0;) {
		depth += text[i] === ')';
		if (text[i] === '(' && --depth === 0)
			return i && text[i - 1] !== ' ' && !text.slice(0, i).endsWith('operator') ?
				text.slice(0, i) : text;
	}
	return text;
}

function withoutTemplates(text) {
	let out = '', depth = 0;

	for (let i = 0; i < text.length; i++) {
		const c = text[i];
		const isBracket = c === '<' || c === '>';
		const isOperator = isBracket && !depth && /(operator[<>]?|-)$/.test(text.slice(0, i));

		if (c === '<' && !isOperator && !depth++)
			out += '<\u2026';
		if (c === '>' && !isOperator && !(depth && text[i - 1] === '-') && depth-- === 0)
			return text;
		if (!depth)
			out += c;
	}
	return depth ? text : out;
}

function fitted(label, room) {
	if (room < 1.8 * config.font)
		return '';
	label = label.slice(0, 4096);
	if (textWidth(label) <= room)
		return label;
	const brief = withoutTemplates(withoutArguments(label));
	if (textWidth(brief) <= room)
		return brief;
	const last = brief.replace(/^.*(::|\/)(?=.)/s, '');
	if (last !== brief && textWidth('\u2026' + last) <= room)
		return '\u2026' + last;
	let low = 0, high = last.length;

	while (low < high) {
		const middle = (low + high + 1) >> 1;

		if (textWidth(last.slice(0, middle) + '\u2026') <= room)
			low = middle;
		else
			high = middle - 1;
	}
	// Not between the halves of a character beyond 16 bits.
	if (/[\ud800-\udbff]/.test(last[low - 1] || ''))
		low--;
	return low < 3 ? '' : last.slice(0, low) + '\u2026';
}

// ---- drawing ----

const frames = byId('frames');
/*
 * The document is as large as the window; a larger picture is scrolled inside of it, from its roots.
 * So head and status stay, and whatever takes the upper left of the document sees what a person sees.
 */
const view = make('foreignObject', { id: 'view', y: config.top - EDGE });
const scroller = make('div', {}, view, XHTML);
const sheet = make('svg', {}, scroller);
let levels = 1;		// rows of the picture
let levelsOfAll = 1;	// of the whole: the picture does not shrink, so that rows stay in place

function isMatch(box) {
	return search && search.before[box.next] > search.before[box.node] &&
		(box.isCut || search.names[tree.name[box.node]]);
}

function drawBox(box) {
	const name = box.node && !box.isCut ? names[tree.name[box.node]] : null;
	const group = make('g', { role: 'treeitem', tabindex: -1, 'aria-level': box.level + 1 });
	const label = labelOf(box);
	const rect = make('rect', {
		class: box.isCut ? 'cut' : !name ? 'root' : config.diff ? diffClass(tree.pairTotals[box.node]) :
			classOf(name, box.level),
		x: box.x.toFixed(2), y: yOf(box.level), height: config.frame - 1,
		width: Math.max(box.w - (box.w > 4 ? 0.5 : 0), 0.2).toFixed(2),
	}, group);

	if (name && name.fill && !config.diff)
		rect.style.fill = name.fill;
	group.setAttribute('class', (isUnder(box) ? 'under ' : '') + (isMatch(box) ? 'match' : ''));
	group.setAttribute('aria-label', label + ', ' + figuresOf(box).slice(0, 2).join(', '));
	const text = fitted(label, box.w - 2 * TEXT_PAD);
	if (text)
		make('text', { x: (box.x + TEXT_PAD).toFixed(2), y: yOf(box.level) +
			Math.floor(config.frame / 2 + config.font * 0.3) }, group).textContent = text;
	group.box = box;
	box.group = group;
	return group;
}

function drawThin(thin) {
	const height = config.frame - 1;
	const path = thin.map((box) => 'M' + box.x.toFixed(2) + ' ' + yOf(box.level) + 'h' +
		Math.max(box.w, 0.1).toFixed(2) + 'v' + height + 'h' + -Math.max(box.w, 0.1).toFixed(2) + 'z');

	return make('path', { class: 'cut', d: path.join(''), 'aria-hidden': true });
}

/* Draw the weights from @from to @to. */
function draw(from, to) {
	const hadFocus = frames.contains(document.activeElement);
	const wasLevels = levels;

	shown = { from, to };
	boxes = chooseBoxes(from, to);
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
	sheet.setAttribute('width', width);
	sheet.setAttribute('height', 2 * EDGE + levels * config.frame);
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
		draw(goal.from, goal.to);
		updateTexts();
		svg.dataset.state = 'ready';
	}
	function step(now) {
		const part = Math.min((now - since) / ZOOM_MS, 1), eased = 1 - (1 - part) ** 3;

		if (part === 1 || boxes.length > ANIMATED_MAX) {
			finish();
			return;
		}
		draw(begin.from + (goal.from - begin.from) * eased, begin.to + (goal.to - begin.to) * eased);
		animation = requestAnimationFrame(step);
	}
	if (isAnimated && !isCalm.matches && boxes.length <= ANIMATED_MAX)
		animation = requestAnimationFrame(step);
	else
		finish();
}

// ---- panels: HTML inside, so that text wraps and fields are fields ----

const panels = {};

function panel(name, size) {
	const outside = make('foreignObject', Object.assign({ id: name }, size), svg);

	panels[name] = outside;
	return make('div', {}, outside, XHTML);
}

function button(parent, text, title, action) {
	const element = make('button', { type: 'button', title, 'aria-label': title }, parent, XHTML);

	element.textContent = text;
	element.addEventListener('click', () => {
		action();
		element.blur();
	});
	return element;
}

const tools = panel('tools', { height: 58 });
const line = make('p', {}, tools, XHTML);
const field = make('input', { type: 'search', placeholder: 'Search  /', spellcheck: 'false',
	autocapitalize: 'off', autocomplete: 'off', 'aria-label': 'Search frames, a regular expression' },
	line, XHTML);
const caseButton = button(line, 'Aa', 'Upper and lower case differ (Ctrl-I)', toggleCase);
const resetButton = button(line, 'Reset', 'Show everything again (0)', reset);
button(line, '\u25d0', 'Dark or light (d)', toggleTheme);
button(line, '?', 'Keys (?)', toggleHelp);
const result = make('output', { 'aria-live': 'polite' }, tools, XHTML);
const status = panel('status', { height: STATUS_HEIGHT });
const tip = panel('tip', { width: 480, height: 10, visibility: 'hidden' });
const help = panel('help', { width: 420, height: 420, visibility: 'hidden' });
panels.tip.setAttribute('aria-hidden', true);

const KEYS = [
	['click, Enter', 'zoom into a frame; below it: zoom out'],
	['\u2191 \u2193 \u2190 \u2192', 'move from frame to frame'],
	['Esc', 'leave search, then zoom'],
	['0', 'everything as at first'],
	['/, Ctrl-F', 'search by regular expression'],
	['n, N', 'next, previous match'],
	['Ctrl-I', 'ignore upper and lower case'],
	['Ctrl-click, x', 'hide a frame and all above it'],
	['h', 'show what is hidden'],
	['c', 'collapse direct recursion'],
	['r', 'merge from the leaves: callers'],
	['i', 'upside down: roots on top'],
	['d', 'dark or light'],
];
const list = make('dl', {}, help, XHTML);
for (const [keys, what] of KEYS) {
	make('dt', {}, list, XHTML).textContent = keys;
	make('dd', {}, list, XHTML).textContent = what;
}

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
		make('tspan', i ? { x: element.getAttribute('x'), dy: '1.4em' } : {}, element).textContent = line);
	if (legend)
		legend.style.visibility = lines.length > 1 ? 'hidden' : '';
}

function fitHead() {
	cutTitle(byId('title'), innerWidth - TOOLS_MIN - 3 * PAD);
	fitSubtitle(byId('subtitle'), byId('legend'), innerWidth - 2 * PAD);
}

function placePanels() {
	fitHead();
	view.setAttribute('width', innerWidth);
	view.setAttribute('height', Math.max(innerHeight - config.top + EDGE - STATUS_HEIGHT, 0));
	const title = byId('title').getBoundingClientRect().right;
	const room = Math.min(Math.max(innerWidth - title - 2 * PAD, TOOLS_MIN), TOOLS_MAX);

	panels.tools.setAttribute('width', room);
	panels.tools.setAttribute('x', innerWidth - room - PAD);
	panels.tools.setAttribute('y', 8);
	panels.status.setAttribute('width', innerWidth);
	panels.status.setAttribute('y', innerHeight - STATUS_HEIGHT);
	panels.help.setAttribute('x', Math.max(innerWidth - 420 - PAD, 0));
	panels.help.setAttribute('y', 62);
}

function setText(element, parts) {
	element.replaceChildren();
	for (const [tag, text] of parts)
		make(tag, {}, element, XHTML).textContent = text;
}

function describe(box) {
	const kind = box.node && !box.isCut ? KIND_NAMES[names[tree.name[box.node]].kind] : '';
	const label = labelOf(box);
	const shortened = label.length > 2000 ? label.slice(0, 2000) + '\u2026' : label;
	const parts = [['strong', (config.nametype && box.node ? config.nametype + ' ' : '') + shortened]];

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
		const hiddenWeight = base.total[0] - tree.total[0];

		if (state.zoom && !config.diff)
			parts.push(['span', 'shown: ' + weigh(state.zoom.to - state.zoom.from) + ', ' +
				shareText((state.zoom.to - state.zoom.from) / whole())]);
		if (hiddenWeight > base.total[0] * 1e-9 && !config.diff)
			parts.push(['span', 'hidden: ' + weigh(hiddenWeight) + ', ' +
				shareText(hiddenWeight / base.total[0]) + ' (h shows it)']);
		if (state.reverse)
			parts.push(['span', 'merged from the leaves']);
		if (state.collapse)
			parts.push(['span', 'direct recursion collapsed']);
		if (config.partial)
			parts.push(['span', 'this file keeps only the frames it draws']);
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
			(config.diff ? pairText(search.pair) : shareText(search.weight / whole()) + ' of all') +
			(state.zoom && !config.diff ? ', ' + shareText(search.shownWeight / (state.zoom.to - state.zoom.from)) +
				' of what is shown' : '');
		result.className = search.nodes.length ? '' : 'bad';
	}
	caseButton.classList.toggle('on', !state.ignoreCase);
	caseButton.setAttribute('aria-pressed', !state.ignoreCase);
	resetButton.disabled = !writeState();
}

function updateTexts() {
	matchShown();
	updateResult();
	updateStatus(focused);
}

function placeTip(event) {
	const inside = tip.getBoundingClientRect();
	let x = event.clientX + 14, y = event.clientY + 18;

	if (x + inside.width > innerWidth - 4)
		x = Math.max(4, innerWidth - 4 - inside.width);
	if (y + inside.height > innerHeight - STATUS_HEIGHT - 4)
		y = Math.max(4, event.clientY - inside.height - 12);
	panels.tip.setAttribute('x', x);
	panels.tip.setAttribute('y', y);
}

function hideTip() {
	panels.tip.setAttribute('visibility', 'hidden');
}

// ---- search ----

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
	const matched = names.map((name) => regex.test(name.label));
	const before = new Int32Array(tree.nr + 1), nodes = [], pair = noPair();
	let weight = 0, covered = 0;

	for (let i = 0; i < tree.nr; i++) {
		const is = i > 0 && tree.name[i] !== GAP && matched[tree.name[i]];

		before[i + 1] = before[i] + is;
		if (!is)
			continue;
		nodes.push(i);
		// A match above a match has its weight already.
		if (i >= covered) {
			weight += tree.total[i];
			if (tree.pairs)
				addPair(pair, tree.pairTotals[i]);
			covered = tree.end[i];
		}
	}
	search = { names: matched, before, nodes, weight, pair, shownWeight: 0, at: -1 };
}

function matchShown() {
	const { from, to } = range();
	let covered = 0;

	if (!search)
		return;
	search.shownWeight = 0;
	for (const i of search.nodes) {
		if (i < covered)
			continue;
		search.shownWeight += Math.max(0, Math.min(tree.start[i] + tree.total[i], to) -
			Math.max(tree.start[i], from));
		covered = tree.end[i];
	}
}

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
	search.at = search.at < 0 ? (by > 0 ? 0 : search.nodes.length - 1) :
		(search.at + by + search.nodes.length) % search.nodes.length;
	const node = search.nodes[search.at];
	const find = () => boxes.find((box) => !box.isCut && box.node === node && box.w > MIN_HIT_PX);

	if (!find())
		zoomTo({ level: tree.level[node], from: tree.start[node],
			to: tree.start[node] + tree.total[node] }, false);
	focusBox(find());
	updateResult();
}

function toggleCase() {
	state.ignoreCase = !state.ignoreCase;
	setQuery(state.query);
	keepState(false);
}

// ---- acting ----

function zoomTo(zoom, isAnimated) {
	const isAll = !zoom || zoom.level === 0;

	state.zoom = isAll ? null : { level: zoom.level, from: zoom.from, to: zoom.to };
	show(isAnimated);
	keepState(true);
}

// After a change of the tree; a zoom means other frames then.
function rebuild() {
	tree = derive(base, state);
	const all = whole();

	if (state.zoom && state.zoom.to > all * (1 + 1e-9))
		state.zoom = null;
	levels = levelsOfAll = intoRows(chooseBoxes(0, all)).length;
	shown = { from: 0, to: all };
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

function isDark() {
	return state.theme ? state.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
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
	state.theme = isDark() ? 'light' : 'dark';
	applyTheme();
	keepState(false);
}

// ---- focus and keys ----

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

function neighbour(box, upwards) {
	const row = (rows[box.level + upwards] || []).filter((other) => other.group);
	const inside = row.filter((other) => other.x < box.x + box.w && other.x + other.w > box.x);

	return inside.reduce((best, other) => best && best.w >= other.w ? best : other, undefined);
}

function beside(box, by) {
	const row = rows[box.level].filter((other) => other.group);

	return row[row.indexOf(box) + by];
}

function moveFocus(key) {
	const up = state.inverted ? -1 : 1;

	if (!focused)
		focusBox(boxes.find((box) => state.zoom && box.level === state.zoom.level) || boxes[0]);
	else if (key === 'ArrowUp' || key === 'ArrowDown')
		focusBox(neighbour(focused, key === 'ArrowUp' ? up : -up));
	else
		focusBox(beside(focused, key === 'ArrowLeft' ? -1 : 1));
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

function startSearch() {
	field.focus();
	field.select();
}

const ACTIONS = {
	'/': startSearch, F3: startSearch, n: () => stepMatch(1), N: () => stepMatch(-1),
	Escape: leave, 0: reset, '?': toggleHelp, d: toggleTheme,
	i: () => change({ inverted: !state.inverted, zoom: state.zoom }),
	r: () => change({ reverse: !state.reverse, hidden: [] }),
	c: () => change({ collapse: !state.collapse, hidden: [] }),
	h: () => change({ hidden: [] }),
	x: () => focused && hide(focused),
	Enter: () => focused && zoomTo(focused, true),
	' ': () => focused && zoomTo(focused, true),
	PageUp: turnPage, PageDown: turnPage, Home: turnPage, End: turnPage,
	ArrowUp: moveFocus, ArrowDown: moveFocus, ArrowLeft: moveFocus, ArrowRight: moveFocus,
};

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

function restore(isFirst) {
	readState(location.hash.slice(1));
	focused = null;
	applyTheme();
	rebuild();
	field.value = state.query;
	show(false);
	if (isFirst)
		scrollToRoot();
}

async function inflate() {
	const packed = atob(svg.querySelector('metadata > folded').textContent.replace(/\s+/g, ''));
	const bytes = new Uint8Array(packed.length);

	for (let i = 0; i < packed.length; i++)
		bytes[i] = packed.charCodeAt(i);
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));

	return new Response(stream).text();
}

function start(text) {
	const font = getComputedStyle(svg);

	ruler.font = font.fontSize + ' ' + font.fontFamily;
	nameId('all');
	base = parseFolded(text);
	learnFromBoxes();
	svg.setAttribute('role', 'group');
	frames.setAttribute('role', 'tree');
	frames.setAttribute('aria-label', 'Frames');
	width = svg.viewBox.baseVal.width;
	svg.removeAttribute('viewBox');
	svg.setAttribute('width', '100%');
	svg.setAttribute('height', '100%');
	byId('head').after(view);
	sheet.append(frames);
	resize();
	listen();
	restore(true);
}

// Without the data (a browser before 2023 cannot inflate it) the static picture remains, with titles.
inflate().then(start).catch((error) => {
	for (const name in panels)
		panels[name].remove();
	svg.dataset.state = 'static';
	console.error('flame graph: ' + error);
});
})();
