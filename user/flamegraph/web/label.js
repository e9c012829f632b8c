// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names that are shortened to the room they have: as label.c does it. */

const FITTED_LEN_MAX = 4096, LETTER_EM = 0.6;

function withoutArguments(text) {
	const end = text.endsWith(' const') ? text.length - 6 : text.length;
	let depth = 0;

	if (text[end - 1] !== ')')
		return text;
	for (let i = end; i-- > 0;) {
		depth += text[i] === ')';
		if (text[i] === '(' && --depth === 0)
			return i && text[i - 1] !== ' ' && !text.slice(0, i).endsWith('operator') ?
				text.slice(0, i) : text;
	}
	return text;
}

function withoutTemplates(text) {
	let out = '', depth = 0;

	for (let i = 0; i < text.length; i++) {
		const c = text[i];
		const isBracket = c === '<' || c === '>';
		const isOperator = isBracket && !depth && /(operator[<>]?|-)$/.test(text.slice(0, i));

		if (c === '<' && !isOperator && !depth++)
			out += '<\u2026';
		if (c === '>' && !isOperator && !(depth && text[i - 1] === '-') && depth-- === 0)
			return text;
		if (!depth)
			out += c;
	}
	return depth ? text : out;
}

// As much of a name as @room pixels have space for; '' if that is less than @fewest letters. @context is of a canvas.
function fitted(label, room, context, fontPx, fewest) {
	const widthOf = (text) => context.measureText(text).width;

	if (room < fewest * LETTER_EM * fontPx)
		return '';
	label = label.slice(0, FITTED_LEN_MAX);
	if (widthOf(label) <= room)
		return label;
	const brief = withoutTemplates(withoutArguments(label));
	if (widthOf(brief) <= room)
		return brief;
	const last = brief.replace(/^.*(::|\/)(?=.)/s, '');
	if (last !== brief && widthOf('\u2026' + last) <= room)
		return '\u2026' + last;
	const dotted = (nr) => last.slice(0, nr) + '\u2026';
	let nr = Math.floor(last.length * room / widthOf(last));

	while (nr > 0 && widthOf(dotted(nr)) > room)
		nr--;
	while (widthOf(dotted(nr + 1)) <= room)
		nr++;
	return nr < fewest ? '' : cut(last, nr);
}
