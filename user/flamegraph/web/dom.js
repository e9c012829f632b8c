// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Elements of the picture and of the page. Names are hostile: they become text nodes and values of attributes only. */

const XHTML = 'http://www.w3.org/1999/xhtml';

const byId = (id) => document.getElementById(id);

function setAll(element, attrs) {
	for (const name in attrs)
		element.setAttribute(name, attrs[name]);
}

function makeIn(namespace, tag, parent, text, attrs) {
	const element = document.createElementNS(namespace, tag);

	if (text !== undefined && text !== null)
		element.textContent = text;
	setAll(element, attrs);
	if (parent)
		parent.append(element);
	return element;
}

const make = (tag, parent, text, attrs) => makeIn(XHTML, tag, parent, text, attrs);

function button(parent, text, title, action, attrs) {
	const element = make('button', parent, text, Object.assign({ type: 'button', title: title || '' }, attrs));

	element.addEventListener('click', action);
	return element;
}

// List rows of [keys, what they do, { key: action }] in a <dl>. Return: all of the actions.
function listKeys(list, rows) {
	for (const [keys, what] of rows) {
		make('dt', list, keys);
		make('dd', list, what);
	}
	return Object.assign({}, ...rows.map(([, , actions]) => actions));
}

// Where a tip of this size is beside the pointer, inside of the window and above its last @below pixels: [x, y].
function besidePointer(event, size, below) {
	const x = event.clientX + 14, y = event.clientY + 18;

	return [Math.max(4, x + size.width > innerWidth - 4 ? event.clientX - size.width - 10 : x),
		Math.max(4, y + size.height > innerHeight - below - 4 ? event.clientY - size.height - 12 : y)];
}

// @theme: what was chosen, 'dark' or 'light'; else it is as the system has it.
const isThemeDark = (theme) => theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
