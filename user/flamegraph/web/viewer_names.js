// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of frames, their kinds and colours: as text.c and palette.c have them. */

// A kind's number is that of its row, as in enum sb_fg_kind: the colour rules have its bit.
const KINDS = [
// rows SB_KIND ../../tree/frames.def
];
const kindCalled = (name) => KINDS.findIndex((row) => row[0] === name);
const PLAIN = kindCalled('PLAIN'), UNKNOWN = kindCalled('UNKNOWN'), MARK = kindCalled('MARK'), DELIMITER = kindCalled('DELIMITER');
const KIND_NAMES = KINDS.map(([, , role, words]) => role.endsWith('TOLD') ? '' : words);

// The beginning says it; one that ends in ] is the whole name.
const SHAPES = [
// rows SB_MARK ../../tree/frames.def
// rows SB_FORM ../../tree/frames.def
];

function shapeOf(text) {
	if (text === '-' || text === '--')
		return DELIMITER;
	if (text[0] !== '[' || !text.endsWith(']'))
		return PLAIN;
	const shape = SHAPES.find(([head]) => head.endsWith(']') ? text === head : text.startsWith(head));

	if (shape)
		return kindCalled(shape[1]);
	const plus = text.indexOf('+0x');

	return /^\[[a-z0-9]+ truncated: /.test(text) ? MARK :
		text.startsWith('[unknown') || plus > 0 && /^[0-9a-f]*\]$/i.test(text.slice(plus + 3)) ? UNKNOWN : PLAIN;
}

// As sb_fg_frame_parse() has it: code with a suffix can still be unknown, and is nothing else.
function kindOf(label, said) {
	if (!said)
		return shapeOf(label);
	return said[2] === 'CODE' && shapeOf(label) === UNKNOWN ? UNKNOWN : KINDS.indexOf(said);
}

const names = [], nameIds = new Map();

function nameId(text) {
	let id = nameIds.get(text);

	if (id === undefined) {
		const said = text.length > 4 && KINDS.find((row) => row[1] && text.endsWith(row[1]));
		const label = clean(said ? text.slice(0, -4) : text);

		id = names.length;
		names.push({ label, kind: kindOf(label, said) });
		nameIds.set(text, id);
	}
	return id;
}

function hashPrefix(text) {
	const bytes = encoder.encode(text.replace(/^_+/, ''));
	let hash = 0;

	for (let i = 0; i < 3 && i < bytes.length; i++)
		hash |= (bytes[i] & 31) << (27 - 5 * i);
	return hash >>> 0;
}

function moduleOf(text) {
	const found = /^\[([^+\]]*)/.exec(text) || /^([^`]*)`/.exec(text) ||
		/ \[([^[]*)\]$/.exec(text) || / \(([^(]*)\)$/.exec(text);

	if (found)
		return found[1];
	text = text.replace(/^[<&]+/, '');
	return text.includes('::') ? text.slice(0, text.indexOf('::')) :
		text.slice(0, Math.max(0, text.lastIndexOf('/')));
}

function hashFrame(label, level) {
	switch (config.shade) {
	case 'prefix':
		return hashPrefix(label);
	case 'place':
		return Math.imul(hashBytes(label) ^ level, 0x9e3779b1) >>> 0;
	case 'module':
		return hashBytes(moduleOf(label));
	default:
		return hashBytes(label);
	}
}

function classOf(name, level) {
	if (name.cls && config.shade !== 'place')
		return name.cls;
	const rule = config.rules.find((rule) => rule.kinds & 1 << name.kind &&
		(!rule.regex || rule.regex.test(name.label.slice(0, 511))));
	const shade = (hashFrame(name.label, level) >>> 16) * rule.shades >>> 16;

	name.cls = String.fromCharCode(97 + rule.letter + (shade >> 3)) + (shade & 7);
	return name.cls;
}

// Colours kept from other pictures, and links, are known from the static boxes only.
function learnFromBoxes() {
	const learned = new Map();

	for (const group of byId('frames').children) {
		const rect = group.querySelector('rect'), title = group.querySelector('title').textContent;
		const label = group.dataset.name;

		if (label !== undefined)
			learned.set(label, { link: group.getAttribute('href'), title,
				target: group.getAttribute('target') });
		if (rect && rect.style.fill) {
			const name = label === undefined ? title.replace(/ \([^(]*\)$/, '') : label;

			learned.set(name, Object.assign({ fill: rect.style.fill }, learned.get(name)));
		}
	}
	for (const name of learned.size ? names : [])
		Object.assign(name, learned.get(name.label));
}
