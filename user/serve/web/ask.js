// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions to the server, and what is shown while it does not answer. */

const slots = new Map();
let nrPending = 0, goneTimer = 0, goneS = 0, heardAt = Date.now() / 1000;

const AGAIN_S = [2, 30];

/*
 * The server does not answer, or not to us: what is shown stays, under a banner that says how old it is, and we go on
 * asking, more and more rarely.
 */
function sayGone(text) {
	const notice = byId('notice');

	notice.replaceChildren();
	make('span', notice, text + '. The data shown was received before ' + dateText(Math.floor(heardAt)) + ' ' + zoneText(heardAt) + '. ');
	button(notice, 'Try again', '', tryAgain);
	notice.hidden = false;
	if (!goneTimer) {
		goneS = clamp(2 * goneS, ...AGAIN_S);
		goneTimer = setTimeout(tryAgain, goneS * 1000);
	}
}

function sayBack() {
	heardAt = Date.now() / 1000;
	if (!goneS)
		return;
	clearTimeout(goneTimer);
	goneTimer = goneS = 0;
	byId('notice').hidden = true;
	askAgain();
	setTimeout(infoAt ? refresh : askInfo);
}

function tryAgain() {
	clearTimeout(goneTimer);
	goneTimer = 0;
	askAgain();
	if (infoAt)
		refresh();
	else
		askInfo();
}

function gone(text) {
	const error = new Error(text);

	error.isGone = true;
	return error;
}

// A question without its time: answers to it may stand for each other, as their heads say of when they are.
const scopeOf = (url) => url.replace(/(from|to)=[^&]*/g, '');

function pending(by) {
	nrPending += by;
	byId('progress').hidden = !nrPending;
	document.documentElement.dataset.state = nrPending ? 'asking' : 'ready';
}

async function fetchJson(url, question) {
	let answer, text, data;

	try {
		answer = await fetch(url, { signal: question.abort.signal, credentials: 'same-origin' });
		text = await answer.text();
	} catch (error) {
		if (error.name === 'AbortError')
			throw error;
		throw gone('stackbpf serve does not answer; check whether it is still running');
	}
	question.arrived = performance.now();
	try {
		data = JSON.parse(text);
	} catch (error) {
		throw ([502, 503, 504].includes(answer.status) ? gone : Error)('the server answered with status ' + answer.status + ' instead of JSON');
	}
	// Started again, it has another token.
	if (answer.status === 401)
		throw gone(clean(data && data.error || 'the server requires a token'));
	if (!answer.ok)
		throw new Error(clean(data && data.error || 'the server answered with status ' + answer.status));
	return data;
}

/*
 * Ask for @path and give the answer to @show, or what failed to @fail. One question for each slot: a new one
 * ends the one before. The same question is asked again when it failed, when askAgain() says so, and about
 * "now" after a block's time. While the server is gone, what @show got before stays, unless it was of something else.
 */
async function ask(slot, path, params, show, fail) {
	const url = 'api/' + path + '?' + params, before = slots.get(slot);
	const isOld = before && before.url === url && before.isGood && !before.again;

	if (isOld && (!/(from|to)=now/.test(url) || performance.now() - before.at < BLOCK_S * 1000))
		return;
	if (before)
		before.abort.abort();
	const mine = { url, abort: new AbortController(), at: performance.now(), shown: before && before.shown };
	slots.set(slot, mine);
	pending(1);
	try {
		const data = await fetchJson(url, mine);

		mine.isGood = true;
		mine.shown = scopeOf(url);
		sayBack();
		show(data, mine.arrived);
	} catch (error) {
		if (error.name === 'AbortError' || slots.get(slot) !== mine)
			return;
		if (error.isGone)
			sayGone(error.message);
		if (error.isGone && mine.shown === scopeOf(url))
			return;
		mine.shown = null;
		fail(error.message);
	} finally {
		pending(-1);
	}
}

function askAgain() {
	for (const slot of slots.values())
		slot.again = true;
}

function rangeParams(from, to, tags, prefix) {
	const params = new URLSearchParams();

	params.append((prefix || '') + 'from', sentTime(from));
	params.append((prefix || '') + 'to', sentTime(to));
	for (const rule of tags)
		params.append((prefix || '') + 'tag', rule);
	return params;
}
