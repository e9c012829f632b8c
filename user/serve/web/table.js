// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of functions. */

const ROW_HEIGHT = 24, TABLE_ROWS = 1000;
const COLUMNS = [['label', 'Function', ''], ['self', 'Self', 'The function itself, without what it calls'],
	['total', 'Total', 'The function and everything it calls; recursion counts once']];
const DIFF_COLUMNS = [['label', 'Function', ''], ['a', 'A', 'In the baseline'], ['b', 'B', 'In the comparison'],
	['change', 'Change', 'From A to B'], ['z', 'z', 'Changes below 3 standard deviations may be noise']];

// Only the rows that are seen are elements.
function Table(parent) {
	this.pane = make('section', parent, null, { class: 'pane', 'aria-label': 'Functions' });
	this.head = make('div', this.pane, null, { class: 'pane-head' });
	this.box = make('div', this.pane, null, { class: 'table', role: 'grid', 'aria-label': 'Functions' });
	this.titles = make('div', this.box, null, { class: 'table-head', role: 'row' });
	this.view = make('div', this.box, null, { class: 'rows', tabindex: 0, role: 'rowgroup',
		'aria-label': 'Functions: arrow keys move, Enter marks' });
	this.spacer = make('div', this.view);
	this.all = this.rows = [];
	this.at = -1;
	this.view.addEventListener('scroll', () => this.draw(), { passive: true });
	this.view.addEventListener('keydown', (event) => this.key(event));
	new ResizeObserver(() => this.draw()).observe(this.view);
}

Table.prototype.show = function (tree) {
	this.tree = tree;
	this.columns = tree.isDiff ? DIFF_COLUMNS : COLUMNS;
	this.box.classList.toggle('diff', tree.isDiff);
		this.update();
};

Table.prototype.clear = function () {
	this.tree = null;
	this.all = this.rows = [];
	this.head.replaceChildren();
	this.titles.replaceChildren();
	this.draw();
};

// Functions of the whole profile, of which the graph may show a part.
Table.prototype.ofAll = function (tree) {
	return (tree.data.table || []).map((row) => Object.assign({}, row, { label: clean(row.name), module: clean(row.module || '') }));
};

Table.prototype.ofDiff = function (tree) {
	return (tree.data.table || []).map((row) => {
		const isTotal = state.of === 'total' && row.total, [a, b] = tree.sides(...isTotal ? row.total : row.self);

		return { label: clean(row.name), module: clean(row.module || ''), a, b, change: b - a,
			z: (isTotal ? row.z_total ?? null : row.z) };
	});
};

// Sorted and without what is not looked for; a whole name marks its row only.
Table.prototype.update = function () {
	if (!this.tree)
		return;
	const matcher = state.q[0] === '=' ? null : matcherOf(state.q);
	this.all = this.tree.isDiff ? this.ofDiff(this.tree) : this.ofAll(this.tree);
	this.nr = this.all.length;
	const isDiff = this.tree.isDiff, known = this.columns.some(([name]) => name === state.sort.replace('-', ''));
	const sort = known ? state.sort : isDiff ? 'change' : 'self', name = sort.replace('-', ''), sign = sort[0] === '-' ? -1 : 1;
	const weigh = name === 'change' || name === 'z' ? (row) => Math.abs(row[name] ?? 0) : (row) => row[name];

	this.rows = matcher ? this.all.filter((row) => matcher(row.label)) : this.all.slice();
	this.rows.sort(name === 'label' ? (a, b) => sign * (a.label < b.label ? -1 : a.label > b.label ? 1 : 0) :
		(a, b) => sign * (weigh(b) - weigh(a)) || (b.total || 0) - (a.total || 0) || (a.label < b.label ? -1 : 1));
	this.drawTitles(name, sign);
	this.spacer.style.height = this.rows.length * ROW_HEIGHT + 'px';
	this.view.setAttribute('aria-rowcount', this.rows.length);
	this.drawHead();
	this.draw();
};

Table.prototype.drawHead = function () {
	const nr = this.rows.length;

	this.head.replaceChildren();
	make('span', this.head, (nr < this.nr ? grouped(nr, 0) + ' of ' : '') + grouped(this.nr, 0) + ' functions');
	if (this.tree.data.nr_rows_cut && !this.tree.isDiff)
		make('span', this.head, 'that are the heaviest, of ' + grouped(this.nr + this.tree.data.nr_rows_cut, 0));
	if (this.tree.isDiff)
		make('span', this.head, this.tree.data.nr_rows_cut ? 'that change most, of ' + grouped(this.nr + this.tree.data.nr_rows_cut, 0) :
			'that are in either');
	if (!this.tree.isDiff)
		return;
	make('span', this.head, null, { class: 'space' });
	const group = make('span', this.head, null, { class: 'group small', role: 'group', 'aria-label': 'Weights' });
	for (const [part, title] of [['self', 'The function itself, without what it calls'], ['total', 'With all that it calls']])
		button(group, part, title, () => change({ of: part }), { 'aria-pressed': state.of === part });
};

Table.prototype.drawTitles = function (name, sign) {
	this.titles.replaceChildren();
	for (const [column, title, hint] of this.columns) {
		const isIt = column === name, isNames = column === 'label';
		const element = button(this.titles, title, hint, () => change({ sort: (isIt && sign > 0 ? '-' : '') + column }, true),
			{ role: 'columnheader' });

		if (isIt)
			element.setAttribute('aria-sort', (sign > 0) === isNames ? 'ascending' : 'descending');
	}
};

Table.prototype.draw = function () {
	const from = Math.max(0, Math.floor(this.view.scrollTop / ROW_HEIGHT) - 4);
	const to = Math.min(this.rows.length, from + Math.ceil(this.view.clientHeight / ROW_HEIGHT) + 8);
	const list = document.createDocumentFragment();

	list.append(this.spacer);
	for (let i = from; i < to; i++)
		list.append(this.drawRow(i));
	this.view.replaceChildren(list);
};

Table.prototype.drawRow = function (i) {
	const row = this.rows[i], tree = this.tree;
	const element = make('div', null, null, { class: 'row' + (state.q === '=' + row.label ? ' on' : '') +
		(i === this.at ? ' at' : ''), role: 'row', 'aria-rowindex': i + 1 });
	const name = make('span', element, null, { role: 'gridcell', title: row.label.slice(0, 1000) + (row.module ? '\n' + row.module : '') });

	element.style.top = i * ROW_HEIGHT + 'px';
	if (!tree.isDiff)
		make('i', name, null, { class: 'swatch' }).style.background = tree.paint(row.color, isDark())[0];
	make('bdi', name, row.label.slice(0, 300));
	if (row.module)
		make('small', name, '\u2002' + row.module.slice(0, 100).replace(/.*\/(?=.)/, ''));
	if (tree.isDiff) {
		this.drawChange(element, row);
	} else {
		for (const val of [row.self, row.total])
			this.drawWeight(element, val);
	}
	element.addEventListener('click', () => this.mark(i));
	return element;
};

Table.prototype.drawWeight = function (element, val) {
	const cell = make('span', element, null, { class: 'num', role: 'gridcell' }), share = part(val, this.tree.all[0]);

	make('i', cell).style.width = clamp(share * 100, 0, 100) + '%';
	const text = this.tree.unit === 'samples' || !val ? grouped(val, 0) : weightText(val, this.tree.unit);
	make('b', cell, text);
	cell.title = text;
	make('small', cell, val ? shareText(share).replace('under ', '<') : '');
};

Table.prototype.drawChange = function (element, row) {
	const tree = this.tree, isNoise = tree.isNoise(row.z);
	const tone = isNoise ? 'noise' : row.change > 0 ? 'more' : row.change < 0 ? 'less' : 'noise';
	const change = changeText(tree, row.a, row.b).replace(' points', '');

	for (const val of [tree.text(row.a), tree.text(row.b)])
		make('span', element, val.replace('under ', '<'), { class: 'num', role: 'gridcell' });
	make('span', element, change, { class: 'num ' + tone, role: 'gridcell' });
	make('span', element, row.z === null ? '\u2013' : signed(row.z, 1), { class: 'num ' + tone, role: 'gridcell' });
};

Table.prototype.mark = function (i) {
	this.at = i;
	change({ q: state.q === '=' + this.rows[i].label ? '' : '=' + this.rows[i].label });
};

Table.prototype.key = function (event) {
	const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };

	if (event.key === 'Enter' && this.rows[this.at]) {
		this.mark(this.at);
	} else if (Object.hasOwn(by, event.key)) {
		this.at = clamp(this.at + by[event.key], 0, this.rows.length - 1);
		const y = this.at * ROW_HEIGHT, view = this.view;

		if (y < view.scrollTop || y + ROW_HEIGHT > view.scrollTop + view.clientHeight)
			view.scrollTop = y - view.clientHeight / 2;
		this.draw();
		say(this.rows.length ? this.rows[this.at].label.slice(0, 200) : 'no rows');
	} else {
		return;
	}
	event.preventDefault();
};
