// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The page of `stackbpf serve`: timeline, tags, table, flame graphs of one range, of two, and of their
 * difference. All of its state is in the fragment of the address. Names, tags and sentences of the server
 * are hostile: they only ever become text nodes and text on a canvas, never markup, and no object has
 * them as keys.
 */
(function () {
'use strict';

// include ../../flamegraph/web/format.js
// include ../../flamegraph/web/dom.js
// include ../../flamegraph/web/tree.js
// include ../../flamegraph/web/search.js
// include ../../flamegraph/web/layout.js
// include ../../flamegraph/web/label.js

const clamp = (val, min, max) => Math.max(min, Math.min(max, val));
const say = (text) => { byId('said').textContent = text; };
const part = (val, all) => all > 0 ? val / all : 0;
const signed = (val, decimals) => (val > 0 ? '+' : val < 0 ? '\u2212' : '') + grouped(Math.abs(val), decimals);
const pointsText = (share) => '\u00b1 ' + grouped(share * 100, share < 0.001 ? 2 : 1) + ' points';

// include times.js
// include state.js
// include ask.js
// include canvas.js
// include profile.js
// include graph.js
// include table.js
// include timeline.js
// include tags.js
// include views.js
// include actions.js

start();
})();
