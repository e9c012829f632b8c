// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rules of tags, and the popovers in which tags and downloads are chosen. */

const RULE = /^([^=!~]+?)(!=|=~|!~|=)([\s\S]*)$/;

function negated(rule) {
	const found = RULE.exec(rule), other = new Map([['=', '!='], ['!=', '='], ['=~', '!~'], ['!~', '=~']]);

	return found ? found[1] + other.get(found[2]) + found[3] : rule;
}

// A comma stands between values: a value that has one becomes an expression.
function addRule(rules, key, operator, value) {
	if (operator.length < 3 && !operator.includes('~') && value.includes(',')) {
		operator = operator === '=' ? '=~' : '!~';
		value = '^' + value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$';
	}
	const same = rules.findIndex((rule) => rule.startsWith(key + operator) && !operator.includes('~'));
	if (same < 0)
		return rules.includes(key + operator + value) ? rules : rules.concat(key + operator + value);
	const values = rules[same].slice((key + operator).length).split(',');

	return values.includes(value) ? rules : rules.map((rule, i) => i === same ? rule + ',' + value : rule);
}

// ---- popovers ----

const menu = byId('menu');
let menuOpener = null;

function openMenu(opener, className, label) {
	const isSame = menuOpener === opener;

	closeMenu();
	if (isSame)
		return null;
	hideTip();
	menuOpener = opener;
	opener.setAttribute('aria-expanded', 'true');
	menu.className = 'popover ' + className;
	menu.setAttribute('aria-label', label);
	menu.replaceChildren();
	menu.hidden = false;
	return menu;
}

function placeMenu() {
	const box = menuOpener.getBoundingClientRect(), width = menu.getBoundingClientRect().width;

	menu.style.left = Math.max(8, Math.min(box.left, innerWidth - width - 16)) + 'px';
	menu.style.top = box.bottom + scrollY + 4 + 'px';
}

function closeMenu(isFocused) {
	if (!menuOpener)
		return;
	menuOpener.setAttribute('aria-expanded', 'false');
	if (isFocused && menuOpener.isConnected)
		menuOpener.focus();
	menuOpener = null;
	menu.hidden = true;
	sides.forEach((side) => side.drawTexts());
}

async function openPicker(side, opener) {
	const into = openMenu(opener, 'picker', 'Tags');

	if (!into)
		return;
	const columns = make('div', into, null, { class: 'columns' });
	const left = make('div', columns, null, { class: 'keys', 'aria-label': 'Keys' });
	const right = make('div', columns, null, { class: 'values', 'aria-label': 'Values' });
	const form = make('form', into), key = make('input', form, null, { placeholder: 'key', 'aria-label': 'Key', spellcheck: 'false' });
	const operator = make('select', form, null, { 'aria-label': 'Operator' });
	for (const [sign, what] of [['=', 'is'], ['!=', 'is not'], ['=~', 'matches'], ['!~', 'does not match']])
		make('option', operator, sign + '  ' + what, { value: sign });
	const value = make('input', form, null, { placeholder: 'value, value or expression', 'aria-label': 'Value', spellcheck: 'false' });
	make('button', form, 'Add', { type: 'submit' });
	form.addEventListener('submit', (event) => {
		event.preventDefault();
		if (key.value && value.value)
			take(key.value, operator.value, value.value);
	});
	function take(name, sign, text) {
		closeMenu();
		side.setTags(addRule(state[side.keys.tag], name, sign, text));
		side.head.querySelector('.add-tag').focus();
	}
	make('p', right, 'asking \u2026');
	placeMenu();
	const shown = windowOf(), params = rangeParams(shown.from, shown.to, []);
	params.append('kind', state.kind);
	await ask('tags', 'tags', params, (data) => fillPicker({ data, left, right, key, value, take }), (text) => {
		right.replaceChildren();
		make('p', right, text);
	});
	slots.get('tags').again = true;
}

function fillPicker(picker) {
	const tags = picker.data.tags.filter((tag) => tag.key !== 'kind');
	const select = (tag, entry) => {
		for (const other of picker.left.children)
			other.setAttribute('aria-pressed', other === entry);
		picker.key.value = tag.key;
		fillValues(picker, tag);
	};

	keys = tags.map((tag) => tag.key);
	picker.right.replaceChildren();
	if (!tags.length)
		make('p', picker.right, 'There are no tags in this range.');
	for (const tag of tags) {
		const entry = button(picker.left, cut(clean(tag.key), 60), '', () => select(tag, entry));

		make('span', entry, ' ' + grouped(tag.values.length + (tag.nr_more || 0), 0) + (tag.has_more ? '+' : ''), { class: 'dim' });
	}
	if (picker.data.more_tags)
		make('p', picker.left, 'There are more tags than can be listed.');
	const first = Math.max(0, tags.findIndex((tag) => tag.values.length > 1));
	if (tags.length) {
		select(tags[first], picker.left.children[first]);
		picker.left.children[first].focus();
	}
}

function fillValues(picker, tag) {
	const unit = (info.kinds.find((kind) => kind.kind === state.kind) || {}).unit || 'samples';
	const sum = tag.values.reduce((all, { weight }) => all + weight, 0);

	picker.right.replaceChildren();
	if (tag.wide)
		make('p', picker.right, 'Kept in blocks of ' + (info.block_s || BLOCK_S) + ' s only; older aggregates do not have this tag.');
	for (const { value, weight } of tag.values) {
		const row = make('div', picker.right, null, { class: 'value' });

		make('bdi', row, cut(clean(value), 200), { class: 'name', title: clean(value).slice(0, 500) });
		make('i', make('span', row, null, { class: 'weight-bar' })).style.width = part(weight, sum) * 100 + '%';
		make('span', row, shareText(part(weight, sum)), { class: 'weight', title: weightText(weight, unit) });
		button(row, '=', 'Only this', () => picker.take(tag.key, '=', value), { 'aria-label': 'only ' + clean(value).slice(0, 200) });
		button(row, '\u2260', 'All but this', () => picker.take(tag.key, '!=', value), { 'aria-label': 'not ' + clean(value).slice(0, 200) });
	}
	if (tag.nr_more || tag.has_more)
		make('p', picker.right, (tag.has_more ? 'More than ' : '') + grouped(tag.nr_more, 0) + ' more values are not listed; type one below.');
}

function openDownload() {
	const opener = byId('open-download'), into = openMenu(opener, 'menu', 'Download');

	if (!into)
		return;
	for (const name of isPair() ? ['A', 'B'] : ['A']) {
		const side = SIDES[name], params = askedParams(side);

		if (isPair())
			make('p', into, name === 'A' ? 'A, the baseline' : 'B, the comparison');
		for (const { format, summary } of info.formats) {
			const link = make('a', into, format + ' ', { href: 'api/profile?format=' + format + '&' + params, download: '' });

			make('small', link, summary);
			link.addEventListener('click', () => closeMenu(true));
		}
	}
	placeMenu();
	into.querySelector('a').focus();
}
