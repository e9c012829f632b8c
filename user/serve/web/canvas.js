// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tip under the pointer, and drawing on a canvas. */

const tip = byId('tip');

function showTip(event, fill) {
	tip.replaceChildren();
	fill(tip);
	tip.hidden = false;
	const [x, y] = besidePointer(event, tip.getBoundingClientRect(), 0);

	tip.style.left = x + 'px';
	tip.style.top = y + 'px';
}

const hideTip = () => { tip.hidden = true; };

function tipRows(parent, rows) {
	const grid = make('table', parent);

	for (const [name, val, color] of rows) {
		const row = make('tr', grid), cell = make('td', row);

		if (color)
			make('i', cell).style.background = color;
		cell.append(name);
		make('td', row, val);
	}
}

// ---- canvas ----

const isDark = () => isThemeDark(document.documentElement.dataset.theme);
const FONT_PX = 12;
const fontOf = (px) => px + 'px "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", Arial, sans-serif';

const probe = make('span', document.body, null, { class: 'unseen', 'aria-hidden': 'true' });
let colors = new Map();

function cssColor(name) {
	if (!colors.has(name)) {
		probe.style.color = 'var(' + name + ')';
		colors.set(name, getComputedStyle(probe).color);
	}
	return colors.get(name);
}

// Sharp on every screen; the size is in pixels of the style sheet.
function fit(canvas, width, height) {
	const ratio = devicePixelRatio || 1, context = canvas.getContext('2d', { alpha: true });

	canvas.width = Math.max(1, Math.round(width * ratio));
	canvas.height = Math.max(1, Math.round(height * ratio));
	canvas.style.width = width + 'px';
	canvas.style.height = height + 'px';
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.font = fontOf(FONT_PX);
	context.textBaseline = 'middle';
	return context;
}

function hatch(context, color) {
	const tile = document.createElement('canvas'), ratio = devicePixelRatio || 1;
	const into = tile.getContext('2d');

	tile.width = tile.height = 6 * ratio;
	into.scale(ratio, ratio);
	into.strokeStyle = color;
	into.beginPath();
	into.moveTo(-1, 7);
	into.lineTo(7, -1);
	into.moveTo(-1, 1);
	into.lineTo(1, -1);
	into.moveTo(5, 7);
	into.lineTo(7, 5);
	into.stroke();
	const pattern = context.createPattern(tile, 'repeat');
	pattern.setTransform(new DOMMatrix().scale(1 / ratio));
	return pattern;
}
