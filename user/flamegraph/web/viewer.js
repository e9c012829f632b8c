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

const SVG = 'http://www.w3.org/2000/svg';
const PAD = 12, TEXT_PAD = 3, STATUS_HEIGHT = 30, EDGE = 2;
const TOOLS_MIN = 230, TOOLS_MAX = 400;
// A third of a pixel is not seen; a box of one pixel can be hit.
const MIN_PX = 0.3, MIN_HIT_PX = 1, ANIMATED_MAX = 1500, ZOOM_MS = 160;

const settings = svg.querySelector('metadata > view');
const setting = (name, otherwise) => settings.getAttribute(name) || otherwise;
const figure = (name, otherwise) => Number(setting(name, otherwise));
const flag = (name) => settings.hasAttribute(name);
const config = {
	unit: setting('unit', 'samples'),
	nametype: setting('nametype', ''),
	shade: setting('shade', 'name'),
	rules: JSON.parse(setting('rules', '[]')).map(([kinds, regex, letter, shades]) =>
		({ kinds, regex: regex && new RegExp(regex), letter, shades })),
	frame: figure('frame', 16),
	font: figure('font', 12),
	top: figure('top', 70),
	rects: figure('rects', 0) || Infinity,
	depth: figure('depth', 0) || Infinity,
	min: figure('min', 0),
	factor: figure('factor', 1),
	total: figure('total', 0),
	fluid: flag('fluid'),
	inverted: flag('inverted'),
	chart: flag('chart'),
	partial: flag('partial'),
	// Of a comparison of A with B: 'share', 'rate' or 'raw'.
	diff: setting('diff', ''),
	width: setting('width', 'b'),
	rate: setting('rate', 's'),
	per: [figure('per_a', 1), figure('per_b', 1)],
	negate: flag('negate'),
};

// include format.js
// include dom.js
// include tree.js
// include search.js
// include layout.js
// include label.js

const weigh = (weight) => weightText(weight * config.factor, config.unit);
const makeSvg = (tag, attrs, parent) => makeIn(SVG, tag, parent, null, attrs);

// include viewer_names.js
// include viewer_stacks.js
// include viewer_diff.js
// include viewer_state.js
// include viewer_draw.js
// include viewer_panels.js
// include viewer_actions.js

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
	width = svg.viewBox.baseVal.width;
	svg.removeAttribute('viewBox');
	setAll(svg, { role: 'group', width: '100%', height: '100%' });
	setAll(frames, { role: 'tree', 'aria-label': 'Frames' });
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
