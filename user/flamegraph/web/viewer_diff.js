// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Comparisons of A with B: as user/flamegraph/diff.c and user/tree/diff.c have them. */

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

// The step of the colour, by the ratio of the two.
const stepOf = (a, b) => 1 + [1.25, 2, 4].filter((from) => Math.max(a, b) / Math.min(a, b) >= from).length;

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
