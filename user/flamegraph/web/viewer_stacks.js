// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The embedded folded stacks as a tree, and the trees that are made of it. */

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
	if (tree.pairs)
		setWidths(tree);
	tree.wide = Float64Array.from(tree.self);
	for (let i = tree.parent.length - 1; i > 0; i--)
		tree.wide[tree.parent[i]] += tree.wide[i];
	return placeNodes(tree);
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

const pathOf = (tree, node) => nodesTo(tree, node).map((i) => tree.name[i]).filter((name) => name !== GAP);

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
