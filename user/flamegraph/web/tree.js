// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Call trees as arrays, of the picture and of the page. Nodes are in preorder, the root first: node i and all nodes
 * above it are i to end[i] - 1, so that a subtree, and a run of siblings, is a range of numbers. For each node, `parent`
 * and `level` say where it is, `name` is a number, `wide` is its weight and that of all nodes above it, and `start` is
 * the weight of everything to the left of it.
 */

const GAP = -1;	// the `name` of a space between two nodes, which is not drawn

// Compute nr, end and start of a tree that has parent and wide.
function placeNodes(tree) {
	const { parent, wide } = tree, nr = parent.length, used = new Float64Array(nr);

	tree.nr = nr;
	tree.end = new Int32Array(nr);
	tree.start = new Float64Array(nr);
	for (let i = nr - 1; i >= 0; i--) {
		tree.end[i] = Math.max(tree.end[i], i + 1);
		if (i)
			tree.end[parent[i]] = Math.max(tree.end[parent[i]], tree.end[i]);
	}
	for (let i = 1; i < nr; i++) {
		tree.start[i] = tree.start[parent[i]] + used[parent[i]];
		used[parent[i]] += wide[i];
	}
	return tree;
}

// The nodes from the one on the root to @node.
function nodesTo(tree, node) {
	const path = [];

	for (; node; node = tree.parent[node])
		path.unshift(node);
	return path;
}
