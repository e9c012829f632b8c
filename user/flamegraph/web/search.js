// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Nodes of a call tree whose names match. */

/*
 * Find the nodes whose name is one for which @matched is true. `before` has for each node the number of matches among
 * the nodes before it; `outermost` has the matches that are not above another one, so that their weights can be added.
 */
function findNodes(tree, matched) {
	const before = new Int32Array(tree.nr + 1), nodes = [], outermost = [];
	let covered = 0;

	for (let i = 0; i < tree.nr; i++) {
		const is = i > 0 && Boolean(matched[tree.name[i]]);

		before[i + 1] = before[i] + is;
		if (is)
			nodes.push(i);
		if (is && i >= covered) {
			outermost.push(i);
			covered = tree.end[i];
		}
	}
	return { matched, before, nodes, outermost, at: -1 };
}

// The next match, or with -1 the previous one; there has to be one.
function stepFound(found, by) {
	const nr = found.nodes.length;

	found.at = found.at < 0 ? (by > 0 ? 0 : nr - 1) : (found.at + by + nr) % nr;
	return found.nodes[found.at];
}

// A box of nodes that were cut matches if one of them does.
function isFound(found, tree, box) {
	return Boolean(found) && found.before[box.next] > found.before[box.node] &&
		(box.isCut || found.matched[tree.name[box.node]]);
}
