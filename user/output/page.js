// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The table of functions beside the picture. Names are hostile: they only ever become text nodes. What is
 * looked for in the picture goes through the fragment of the address, which is the viewer's.
 */
(function () {
'use strict';

// As many as anybody reads; how many more there are is said.
const NR_ROWS_MAX = 500;
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId('functions').textContent);
const table = byId('table'), opener = byId('open-table');
// Keys of a function, and their titles.
const COLUMNS = [['self', 'self'], ['total', 'total'], ['name', 'function']];
let order = 'self', rows;

function make(tag, parent, text) {
	const element = document.createElement(tag);

	if (text !== undefined)
		element.textContent = text;
	parent.append(element);
	return element;
}

const number = (val) => val.toLocaleString('en-US');
const share = (val) => (data.total ? val / data.total * 100 : 0).toFixed(2) + '%';

// What the picture shows of the function: without what breaks a folded line; lines and modules may follow.
function find(name) {
	const label = name.replace(/;/g, ':').replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

	location.hash = 'q=' + encodeURIComponent('^' + label + '($|\\+0x| )');
}

const isWeight = (key) => key !== 'name';

function sorted() {
	const compare = isWeight(order) ? (a, b) => b[order] - a[order] : (a, b) => a.name < b.name ? -1 : a.name > b.name;

	return data.functions.slice().sort(compare);
}

function fill() {
	rows.replaceChildren();
	for (const fn of sorted().slice(0, NR_ROWS_MAX)) {
		const row = make('tr', rows);

		for (const weight of [fn.self, fn.total]) {
			make('td', row, number(weight));
			make('td', row, share(weight));
		}
		const name = make('td', row, fn.name);
		name.title = 'Find this function in the flame graph';
		if (fn.module || fn.file)
			make('small', name, ' ' + (fn.module || '') + (fn.file ? ' ' + fn.file : ''));
		name.addEventListener('click', () => find(fn.name));
	}
}

function build() {
	const nr = data.functions.length;

	make('p', table, data.unit + ': the function itself (self), and with everything it calls (total); recursion counts once. ' +
		(nr > NR_ROWS_MAX ? 'The first ' + number(NR_ROWS_MAX) + ' of ' : '') + number(nr) + ' functions.');
	const grid = make('table', table), head = make('tr', make('thead', grid));
	for (const [key, title] of COLUMNS) {
		const cell = make('th', head), button = make('button', cell, title);

		cell.colSpan = isWeight(key) ? 2 : 1;
		button.type = 'button';
		button.addEventListener('click', () => {
			order = key;
			for (const other of head.querySelectorAll('button'))
				other.removeAttribute('aria-sort');
			button.setAttribute('aria-sort', isWeight(key) ? 'descending' : 'ascending');
			fill();
		});
	}
	rows = make('tbody', grid);
	const facts = make('dl', table);
	for (const key of Object.keys(data.facts)) {
		make('dt', facts, key);
		make('dd', facts, data.facts[key]);
	}
	head.querySelector('button').click();
}

function toggle() {
	if (!rows)
		build();
	table.hidden = !table.hidden;
	opener.setAttribute('aria-expanded', !table.hidden);
}

opener.addEventListener('click', () => {
	toggle();
	opener.blur();
});
// Keys are the picture's, but not while the table has the focus.
table.addEventListener('keydown', (event) => {
	if (event.key === 'Escape')
		toggle();
	event.stopPropagation();
});
opener.hidden = false;
})();
