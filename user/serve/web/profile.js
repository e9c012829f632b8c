// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The call tree of an answer of the server. */

// By enum sb_frame_kind.
const FRAMES = [
// rows SB_FRAME ../../tree/frames.def
];
const KIND_NAMES = FRAMES.map((row) => row[4]);
// As model/calltree.h: whether a frame is inlined makes no other frame of it.
const OF_KEY = FRAMES.map((row) => FRAMES.findIndex(([kind]) => kind === row[1]));
const OTHER = '(other)';

const rootPaint = (isDark) => isDark ? ['#3a3d43', '#fff'] : ['#e3e0da', '#000'];

function mixHash(hash, with_) {
	hash = Math.imul(hash ^ with_, 16777619);
	return (hash ^ hash >>> 13) >>> 0;
}

/*
 * Of an answer of /api/flame or /api/diff. A node is called by a hash of its path, which is the same in every answer that
 * has the path.
 */
function Tree(data, isDiff) {
	const nodes = data.nodes, nr = nodes.name.length;

	for (const column of ['module', 'kind', 'depth', 'self', 'total', 'color'].concat(isDiff ? ['self_b', 'total_b', 'z'] : [])) {
		if (!nodes[column] || nodes[column].length !== nr)
			throw new Error('the server sent an invalid call tree');
	}
	Object.assign(this, { data, isDiff: Boolean(isDiff), nr, unit: data.unit, name: nodes.name, module: nodes.module, kind: nodes.kind,
		level: nodes.depth, color: nodes.color, self: nodes.self, total: nodes.total, selfB: nodes.self_b, totalB: nodes.total_b, z: nodes.z });
	this.labels = data.names.map(clean);
	this.modules = data.modules.map(clean);
	this.all = isDiff ? data.totals : [nr ? this.total[0] : 0];
	this.isTested = isDiff && this.z.some((z) => z !== null);
	this.arrange();
	this.byKey = new Map();
	for (let i = 0; i < nr; i++)
		this.byKey.set(this.key(i), i);
}

Tree.prototype.arrange = function () {
	const nr = this.nr, labelHash = this.labels.map(hashBytes), path = [];

	this.parent = new Int32Array(nr);
	this.hash = new Uint32Array(nr);
	this.wide = new Float64Array(nr);
	for (let i = 0; i < nr; i++) {
		const level = this.level[i], parent = i ? path[level - 1] : 0;

		if (i && (parent === undefined || level < 1 || level > path.length))
			throw new Error('the server sent an invalid call tree');
		path.length = level;
		path.push(i);
		this.parent[i] = parent;
		this.wide[i] = this.widthOf(i);
		this.hash[i] = i ? mixHash(mixHash(this.hash[parent], labelHash[this.name[i]]), OF_KEY[this.kind[i]] || 0) : 1;
	}
	placeNodes(this);
};

// As wide as both together, so that what is only in one has its place.
Tree.prototype.widthOf = function (i) {
	if (!this.isDiff)
		return this.total[i];
	const [a, b] = this.sides(this.total[i], this.totalB[i]);

	return a + b;
};

// Both sides as they are compared.
Tree.prototype.sides = function (a, b) {
	const { norm, per } = this.data;

	return norm === 'share' ? [part(a, this.all[0]), part(b, this.all[1])] : per ? [part(a, per[0]), part(b, per[1])] : [a, b];
};

Tree.prototype.key = function (i) {
	return i ? this.level[i].toString(36) + '-' + this.hash[i].toString(36) : '';
};

Tree.prototype.label = function (i) {
	return i ? this.labels[this.name[i]] : 'all';
};

// What is not known is not called chance.
Tree.prototype.isNoise = function (z) {
	return z !== null && Math.abs(z) < NOISE_Z;
};

// [fill, text] of a colour of the answer's, or of the root.
Tree.prototype.paint = function (color, isDark) {
	return this.data.palette[isDark ? 'dark' : 'light'][color] || rootPaint(isDark);
};

// What is looked for: part of a name; /expression/; =name. Case counts where there is a capital letter. null: nothing is;
// undefined: it is no expression, or not yet, and the field says so.
function matcherOf(query) {
	if (!query)
		return null;
	if (query[0] === '=')
		return (label) => label === query.slice(1);
	const isExact = /[A-Z]/.test(query);

	if (/^\/.+\/$/.test(query)) {
		try {
			const regex = new RegExp(query.slice(1, -1), isExact ? '' : 'i');

			return (label) => regex.test(label);
		} catch (error) {
			return undefined;
		}
	}
	return isExact ? (label) => label.includes(query) : (label) => label.toLowerCase().includes(query);
}

// What @matcher finds, and its share of each side.
Tree.prototype.find = function (matcher) {
	const found = findNodes(this, this.labels.map(matcher)), sides = this.isDiff ? [this.total, this.totalB] : [this.total];

	found.shares = sides.map((weights, side) => part(found.outermost.reduce((sum, i) => sum + weights[i], 0), this.all[side]));
	return found;
};

