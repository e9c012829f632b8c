// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From a call tree to boxes, in rows of one level, and from box to box. */

/*
 * The boxes of all nodes that meet the weights from area.from to area.to, drawn on area.width pixels from area.left on.
 * The ancestors of a zoomed frame fill the width; frames beside it are outside. Neighbours that are narrower than
 * area.min, or deeper than area.depth, become one box, which has isCut and stands for the nodes up to `next`.
 */
function boxesOf(tree, area) {
	const { start, wide, end, parent, level, name } = tree, { from, to, min } = area, found = [];
	const scale = area.width / (to - from), edge = (to - from) * 1e-9;

	for (let i = 0; i < tree.nr;) {
		if (start[i] + wide[i] <= from + edge || start[i] >= to - edge || name[i] === GAP) {
			i = end[i];
			continue;
		}
		const isDeep = level[i] > area.depth;
		let next = i + 1, isCut = false, stop = start[i] + wide[i];

		if (i && (isDeep || wide[i] * scale < min)) {
			const last = end[parent[i]];

			isCut = true;
			next = end[i];
			while (next < last && name[next] !== GAP && start[next] < to - edge &&
				(isDeep || wide[next] * scale < min)) {
				stop = start[next] + wide[next];
				next = end[next];
			}
		}
		const left = Math.max(start[i], from), right = Math.min(stop, to);

		found.push({ node: i, next, isCut, level: level[i], from: start[i], to: stop,
			x: area.left + (left - from) * scale, w: (right - left) * scale });
		i = next;
	}
	return found;
}

function intoRows(boxes) {
	const rows = [];

	for (const box of boxes)
		(rows[box.level] ||= []).push(box);
	return rows;
}

/*
 * The box to which an arrow key leads from @box: the widest one over or under it, or the next one beside it, among those
 * for which @isTaken is true. Undefined: there is none.
 */
function neighbourOf(rows, box, key, isUpwards, isTaken) {
	if (key === 'ArrowLeft' || key === 'ArrowRight') {
		const row = rows[box.level].filter(isTaken);

		return row[row.indexOf(box) + (key === 'ArrowLeft' ? -1 : 1)];
	}
	const row = rows[box.level + ((key === 'ArrowUp') === isUpwards ? 1 : -1)] || [];
	const touching = row.filter((other) => isTaken(other) &&
		Math.min(other.x + other.w, box.x + box.w) - Math.max(other.x, box.x) > 1e-6);

	return touching.reduce((best, other) => best && best.w >= other.w ? best : other, undefined);
}
