// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The timeline of a side: weights over time, and the range that is chosen. */

const SERIES = [['#e0822f', '#f0a050'], ['#3b7dd8', '#6ea8f5'], ['#3f9f63', '#62c088'], ['#a05bc4', '#c48be4'],
	['#c8476b', '#ee7d9b'], ['#2a9d9d', '#55c4c4'], ['#a88a12', '#d4b83f'], ['#7a6fd0', '#a79df2'],
	['#96633d', '#c39168'], ['#5f8f2f', '#93c25c']];
const OTHER_SERIES = ['#a5a29b', '#6f757f'];
const LEFT = 52, RIGHT = 6, TOP = 8, BOTTOM = 20, GRIP_PX = 5;
const SIDES = { A: { from: 'from', to: 'to', tag: 'tag' }, B: { from: 'vs_from', to: 'vs_to', tag: 'vs_tag' } };

function Timeline(parent, name, isPaired) {
	this.name = name;
	this.keys = SIDES[name];
	this.isPaired = isPaired;
	this.section = make('section', parent, null, { class: 'side', 'aria-label': isPaired ? 'Side ' + name : 'Time' });
	this.head = make('div', this.section, null, { class: 'side-head' });
	this.box = make('div', this.section, null, { class: 'timeline', tabindex: 0, role: 'group',
		'aria-label': 'Timeline' + (isPaired ? ' ' + name : '') + ': arrow keys move, with Shift they select, Enter takes it' });
	this.canvas = make('canvas', this.box);
	this.foot = make('div', this.section, null, { class: 'side-foot' });
	this.data = this.error = this.draft = null;
	this.cursor = -1;
	this.listen();
	new ResizeObserver(() => this.draw()).observe(this.box);
}

Timeline.prototype.listen = function () {
	const box = this.box;

	box.addEventListener('pointerdown', (event) => this.press(event));
	box.addEventListener('pointermove', (event) => this.move(event));
	box.addEventListener('pointerup', (event) => this.lift(event));
	box.addEventListener('pointercancel', () => {
		this.draft = this.grip = null;
		this.draw();
	});
	box.addEventListener('pointerleave', () => {
		hideTip();
		if (!this.grip)
			this.setCursor(-1);
	});
	box.addEventListener('dblclick', () => this.clear());
	box.addEventListener('keydown', (event) => this.key(event));
	box.addEventListener('blur', () => this.setCursor(-1));
};

Timeline.prototype.show = function (data) {
	if (!Array.isArray(data.series) || !(data.step_s > 0)) {
		this.fail('the server sent an invalid timeline');
		return;
	}
	this.data = data;
	this.error = null;
	this.data.nr = Math.max(0, ...data.series.map((series) => series.weights.length), (data.lost || []).length);
	this.at = serverNow();
	this.drawTexts();
	this.draw();
};

Timeline.prototype.fail = function (text) {
	this.data = null;
	this.error = text;
	this.drawTexts();
	this.draw();
};

Timeline.prototype.x = function (seconds) {
	const { from, step_s, nr } = this.data;

	return LEFT + (seconds - from) / (step_s * nr || 1) * (this.box.clientWidth - LEFT - RIGHT);
};

Timeline.prototype.stepAt = function (x) {
	const { nr } = this.data;

	return clamp(Math.floor((x - LEFT) / (this.box.clientWidth - LEFT - RIGHT) * nr), 0, nr - 1);
};

// What was chosen, where that is not all that is shown.
Timeline.prototype.chosen = function () {
	return this.isPaired || state.win_from ? known({ from: state[this.keys.from], to: state[this.keys.to] }, this.at) : null;
};

Timeline.prototype.spanOfWindow = function () {
	const shown = windowOf();

	return { from: secondsOf(shown.from, this.at) ?? this.data.from, to: secondsOf(shown.to, this.at) ?? this.data.to };
};

Timeline.prototype.press = function (event) {
	const box = this.box.getBoundingClientRect(), x = event.clientX - box.left;

	if (!this.data || !this.data.nr || event.button)
		return;
	const chosen = this.chosen();
	const near = (seconds) => chosen && Math.abs(this.x(seconds) - x) <= GRIP_PX;
	const step = this.stepAt(x), from = this.data.from, size = this.data.step_s;

	// An edge that is moved leaves the other where it is.
	this.grip = { x, anchor: near(chosen && chosen.from) ? chosen.to : near(chosen && chosen.to) ? chosen.from : from + step * size,
		isEdge: Boolean(near(chosen && chosen.from) || near(chosen && chosen.to)) };
	this.box.setPointerCapture(event.pointerId);
};

Timeline.prototype.move = function (event) {
	const box = this.box.getBoundingClientRect(), x = event.clientX - box.left;

	if (!this.data || !this.data.nr)
		return;
	const step = this.stepAt(x), chosen = this.chosen();
	if (this.grip && (this.draft || Math.abs(x - this.grip.x) > 3)) {
		this.draft = this.spanOf(this.grip, step);
		hideTip();
		this.cursor = step;
		this.draw();
		return;
	}
	this.box.style.cursor = chosen && [chosen.from, chosen.to].some((edge) => Math.abs(this.x(edge) - x) <= GRIP_PX) ? 'ew-resize' : '';
	this.setCursor(x < LEFT ? -1 : step);
	if (this.cursor < 0)
		hideTip();
	else
		showTip(event, (into) => this.describe(into, step));
};

// Whole steps from where it began to the one that is under the pointer.
Timeline.prototype.spanOf = function (grip, step) {
	const { from, step_s: size } = this.data, begin = from + step * size;

	return { from: Math.min(grip.anchor, begin), to: Math.max(grip.anchor + (grip.isEdge ? 0 : size), begin + size) };
};

Timeline.prototype.lift = function (event) {
	const draft = this.draft;

	if (this.box.hasPointerCapture(event.pointerId))
		this.box.releasePointerCapture(event.pointerId);
	this.draft = this.grip = null;
	if (draft)
		this.choose(draft);
	this.draw();
};

Timeline.prototype.choose = function (span) {
	const what = {}, shown = windowOf();

	what[this.keys.from] = unixText(span.from);
	what[this.keys.to] = unixText(span.to);
	what.win_from = shown.from;
	what.win_to = shown.to;
	say('selected ' + dateText(span.from) + ' to ' + dateText(span.to));
	change(what);
};

Timeline.prototype.clear = function () {
	const shown = windowOf();

	if (!this.isPaired && state.win_from)
		change({ from: shown.from, to: shown.to, win_from: '', win_to: '' });
};

Timeline.prototype.setCursor = function (step) {
	if (step !== this.cursor) {
		this.cursor = step;
		this.draw();
	}
};

Timeline.prototype.key = function (event) {
	const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };

	if (!this.data || !this.data.nr || event.ctrlKey || event.metaKey || event.altKey)
		return;
	if (Object.hasOwn(by, event.key)) {
		const was = this.cursor < 0 ? this.data.nr - 1 : this.cursor;
		const step = this.cursor < 0 && Math.abs(by[event.key]) === 1 ? was : clamp(was + by[event.key], 0, this.data.nr - 1);

		if (event.shiftKey) {
			this.keyAnchor ??= this.data.from + was * this.data.step_s;
			this.draft = this.spanOf({ anchor: this.keyAnchor }, step);
		} else {
			this.draft = this.keyAnchor = null;
		}
		this.cursor = step;
		this.draw();
		say(dateText(this.data.from + step * this.data.step_s) + ': ' + this.stepText(step));
	} else if (event.key === 'Enter' && this.draft) {
		const draft = this.draft;

		this.draft = this.keyAnchor = null;
		this.choose(draft);
	} else if (event.key === 'Escape' && (this.draft || state.win_from && !this.isPaired)) {
		if (!this.draft)
			this.clear();
		this.draft = this.keyAnchor = null;
		this.draw();
	} else {
		return;
	}
	event.preventDefault();
	event.stopPropagation();
};

// For how long a step was recorded; stores of more than one host have more of it than there is time. What was taken in
// less than a second, as the end of a recording is, says nothing of a rate.
Timeline.prototype.seconds = function (step) {
	const { step_s: size, sampled_ms: sampled } = this.data;

	return sampled && sampled[step] > 0 ? Math.min(size, Math.max(1, sampled[step] / 1000)) : size;
};

/*
 * Weight of a step as a rate: CPUs that were busy, threads that waited, bytes in a second, bytes that were held. So
 * it does not depend on how long a step is.
 */
Timeline.prototype.rate = function (weight, step) {
	const { unit, kind } = this.data, row = info.kinds.find((one) => one.kind === kind), size = this.seconds(step);

	return unit === 'us' ? weight / 1e6 / size : unit === 'samples' && row && row.hz > 0 ? weight / row.hz / size : weight / size;
};

Timeline.prototype.rateText = function (rate) {
	const { unit, kind } = this.data, row = info.kinds.find((one) => one.kind === kind);

	if (unit === 'bytes' || unit === 'byte-seconds')
		return weightText(rate, 'bytes') + (unit === 'bytes' ? '/s' : '');
	const text = grouped(rate, rate >= 100 || rate === Math.round(rate) ? 0 : rate >= 1 ? 1 : 2);
	return text + (unit === 'us' ? ' threads' : unit === 'samples' && row && row.hz > 0 ? (rate === 1 ? ' CPU' : ' CPUs') : '/s');
};

Timeline.prototype.isGap = function (step) {
	return this.data.series.every((series) => (series.weights[step] ?? null) === null);
};

Timeline.prototype.sum = function (step) {
	return this.data.series.reduce((sum, series) => sum + (series.weights[step] || 0), 0);
};

Timeline.prototype.stepText = function (step) {
	return this.isGap(step) ? 'nothing was recorded' : this.rateText(this.rate(this.sum(step), step));
};

Timeline.prototype.color = function (i) {
	const series = this.data.series[i];

	return clean(series.value) === OTHER ? OTHER_SERIES[+isDark()] : SERIES[i % SERIES.length][+isDark()];
};

Timeline.prototype.describe = function (into, step) {
	const { from, step_s: size, series, unit, lost } = this.data;

	make('strong', into, dateText(from + step * size) + ' \u2013 ' +
		dateText(from + (step + 1) * size, new Date((from + step * size) * 1000).toDateString()) + ' ' + zoneText(from + step * size));
	if (this.isGap(step)) {
		make('p', into, 'nothing was recorded at this time');
		return;
	}
	const rows = series.map((one, i) => ({ one, i, weight: one.weights[step] })).filter(({ weight }) => weight)
		.sort((a, b) => b.weight - a.weight);
	const total = this.sum(step);
	tipRows(into, state.by && series.length > 1 ? rows.map(({ one, i, weight }) =>
		[cut(clean(one.value) || 'none', 40), this.rateText(this.rate(weight, step)), this.color(i)]) : []);
	make('p', into, this.rateText(this.rate(total, step)) + ', ' + weightText(total, unit));
	if (this.seconds(step) < 0.9 * size)
		make('p', into, 'recorded for ' + grouped(this.seconds(step), 0) + ' of these ' + grouped(size, 0) + ' s');
	if (lost && lost[step])
		make('p', into, weightText(lost[step], 'samples') + ' lost', { class: 'warn' });
};

Timeline.prototype.draw = function () {
	const width = this.box.clientWidth, height = this.box.clientHeight;

	if (!width || !height)
		return;
	const context = fit(this.canvas, width, height), plot = { width, height, low: height - BOTTOM, high: height - BOTTOM - TOP };
	context.fillStyle = cssColor('--dim');
	context.font = fontOf(11);
	if (!this.data || !this.data.nr) {
		context.textAlign = 'center';
		context.fillText(this.error ? cut(this.error, 160) : this.data ? 'Nothing was recorded in this range' : '', width / 2, height / 2);
		return;
	}
	this.drawScale(context, plot);
	this.drawGaps(context, plot);
	if (state.style === 'lines' && state.by)
		this.drawLines(context, plot);
	else
		this.drawStacks(context, plot);
	this.drawLost(context, plot);
	this.drawChosen(context, plot);
};

function niceStep(max, nr) {
	const size = 10 ** Math.floor(Math.log10(max / nr || 1));

	return [1, 2, 5, 10].map((times) => times * size).find((step) => step * nr >= max) || size;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000];

Timeline.prototype.drawScale = function (context, plot) {
	const { series, nr, from, step_s: size } = this.data, isLines = state.style === 'lines' && state.by;
	let max = 0;

	for (let i = 0; i < nr; i++)
		max = Math.max(max, this.rate(isLines ? Math.max(...series.map((one) => one.weights[i] || 0)) : this.sum(i), i));
	const isOfBytes = this.data.unit === 'bytes' || this.data.unit === 'byte-seconds';
	const step = isOfBytes ? 2 ** Math.ceil(Math.log2(max / 2 || 1)) : niceStep(max, 3);
	plot.top = Math.max(step * Math.ceil(max / step), step);
	context.textAlign = 'right';
	for (let val = 0; val <= plot.top + step / 2; val += step) {
		const y = Math.round(plot.low - val / plot.top * plot.high) + 0.5;

		context.fillStyle = cssColor('--line');
		context.fillRect(LEFT, y - 0.5, plot.width - LEFT - RIGHT, 1);
		context.fillStyle = cssColor('--faint');
		if (val)
			context.fillText(this.rateText(val).replace(/ (threads|CPUs?)$/, ''), LEFT - 6, y + 1);
	}
	context.fillText(this.data.unit === 'us' ? 'threads' : isOfBytes ? '' : this.rateText(2).slice(2).trim() || '', LEFT - 6, plot.low);
	context.fillText(zoneText(from), LEFT - 6, plot.height - 7);
	context.textAlign = 'center';
	const span = nr * size, wanted = span / ((plot.width - LEFT - RIGHT) / 90);
	const tick = TIME_STEPS.find((one) => one >= wanted) || 31536000, zone = new Date(from * 1000).getTimezoneOffset() * 60;
	for (let t = Math.ceil((from - zone) / tick) * tick + zone; t < from + span; t += tick) {
		const date = new Date(t * 1000), time = two(date.getHours()) + ':' + two(date.getMinutes());
		const text = tick < 60 ? time + ':' + two(date.getSeconds()) : tick < 86400 && time !== '00:00' ? time :
			two(date.getMonth() + 1) + '-' + two(date.getDate());
		const x = this.x(t), half = context.measureText(text).width / 2;

		if (x - half >= LEFT + 2 && x + half <= plot.width)
			context.fillText(text, x, plot.height - 7);
	}
};

Timeline.prototype.drawGaps = function (context, plot) {
	const { nr, from, step_s: size } = this.data;

	for (let i = 0; i < nr; i++) {
		const begin = i;

		while (i < nr && this.isGap(i))
			i++;
		if (i === begin)
			continue;
		const x = this.x(from + begin * size), w = this.x(from + i * size) - x;
		context.fillStyle = hatch(context, isDark() ? 'rgba(255,255,255,.10)' : 'rgba(0,0,0,.10)');
		context.fillRect(x, TOP, w, plot.high);
		context.fillStyle = cssColor('--faint');
		if (w > 120)
			context.fillText('nothing recorded', x + w / 2, TOP + plot.high / 2);
	}
};

Timeline.prototype.drawStacks = function (context, plot) {
	const { series, nr, from, step_s: size } = this.data, below = new Float64Array(nr);

	for (let s = 0; s < series.length; s++) {
		context.fillStyle = this.color(s);
		for (let i = 0; i < nr; i++) {
			const weight = this.rate(series[s].weights[i] || 0, i);

			if (!weight)
				continue;
			const x = Math.round(this.x(from + i * size)), w = Math.round(this.x(from + (i + 1) * size)) - x;
			const y = plot.low - (below[i] + weight) / plot.top * plot.high;

			context.fillRect(x, y, w > 4 ? w - 1 : Math.max(w, 1), weight / plot.top * plot.high);
			below[i] += weight;
		}
	}
};

Timeline.prototype.drawLines = function (context, plot) {
	const { series, nr, from, step_s: size } = this.data;

	context.lineWidth = 1.5;
	context.lineJoin = 'round';
	for (let s = 0; s < series.length; s++) {
		context.strokeStyle = context.fillStyle = this.color(s);
		context.beginPath();
		for (let i = 0, isOn = false; i < nr; i++) {
			const isGap = this.isGap(i), y = plot.low - this.rate(series[s].weights[i] || 0, i) / plot.top * plot.high;
			const x = this.x(from + (i + 0.5) * size);

			if (!isGap)
				context[isOn ? 'lineTo' : 'moveTo'](x, y);
			// One step between two gaps is a point.
			if (!isGap && !isOn && (i + 1 === nr || this.isGap(i + 1)))
				context.fillRect(x - 1, y - 1, 2, 2);
			isOn = !isGap;
		}
		context.stroke();
	}
};

Timeline.prototype.drawLost = function (context, plot) {
	const { lost, from, step_s: size } = this.data;

	context.fillStyle = isDark() ? '#ffb84d' : '#d98200';
	for (let i = 0; i < (lost || []).length; i++) {
		if (lost[i] > 0)
			context.fillRect(this.x(from + i * size), 1, Math.max(2, this.x(from + size) - LEFT), 4);
	}
};

Timeline.prototype.drawChosen = function (context, plot) {
	const span = this.draft || this.chosen(), end = plot.width - RIGHT, color = cssColor(this.name === 'B' ? '--b' : '--a');

	if (span) {
		const a = clamp(this.x(span.from), LEFT, end), b = clamp(this.x(span.to), LEFT, end);

		context.globalAlpha = 0.66;
		context.fillStyle = cssColor('--panel');
		context.fillRect(LEFT, TOP - 2, a - LEFT, plot.high + 2);
		context.fillRect(b, TOP - 2, end - b, plot.high + 2);
		context.globalAlpha = 0.1;
		context.fillStyle = color;
		context.fillRect(a, TOP - 2, b - a, plot.high + 2);
		context.globalAlpha = 1;
		context.fillRect(a - 0.5, TOP - 4, 1.5, plot.high + 4);
		context.fillRect(b - 1, TOP - 4, 1.5, plot.high + 4);
		context.fillRect(a, TOP - 4, b - a, 2);
		for (const x of [a, b]) {
			context.beginPath();
			context.roundRect(x - 2.5, TOP + plot.high / 2 - 8, 5, 16, 2.5);
			context.fill();
		}
	}
	if (this.cursor >= 0) {
		context.fillStyle = cssColor('--text');
		context.globalAlpha = 0.45;
		context.fillRect(this.x(this.data.from + (this.cursor + 0.5) * this.data.step_s), TOP, 1, plot.high);
		context.globalAlpha = 1;
	}
};

/*
 * Draw the head or foot anew, unless it would be the same, or a button of it is pressed: the click would be lost. What has
 * the keyboard keeps it.
 */
Timeline.prototype.redraw = function (name, draw) {
	const old = this[name], active = old.contains(document.activeElement) ? document.activeElement : null;

	if (menuOpener && old.contains(menuOpener) || old.querySelector(':active'))
		return;
	this[name] = make('div', null, null, { class: old.className });
	draw.call(this);
	if (this[name].isEqualNode(old)) {
		this[name] = old;
		return;
	}
	old.replaceWith(this[name]);
	if (active)
		[...this[name].querySelectorAll(active.tagName)].find((one) =>
			one.className === active.className && one.textContent === active.textContent)?.focus();
};

Timeline.prototype.drawTexts = function () {
	this.redraw('head', this.drawHead);
	this.redraw('foot', this.drawFoot);
};

// Legend, and what is chosen.
Timeline.prototype.drawFoot = function () {
	const legend = make('div', null, null, { class: 'legend' });

	if (this.isPaired && this.name === 'A')
		this.drawBy(this.foot);
	this.foot.append(legend);
	if (this.data && state.by) {
		this.data.series.forEach((series, i) => {
			const value = clean(series.value), isOther = value === OTHER || value === '(none)';
			const entry = button(legend, null, isOther ? 'all other values, or none' : 'only ' + state.by + ' = ' + cut(value, 200),
				() => this.setTags(addRule(state[this.keys.tag], state.by, '=', series.value)));

			make('i', entry).style.background = this.color(i);
			make('span', entry, cut(value, 60) || 'none');
			entry.disabled = isOther || !value;
		});
	}
	if (!this.data)
		return;
	if (!state.by && !this.isPaired)
		make('span', legend, 'drag to choose a range');
	const { from, to } = this.chosen() || this.spanOfWindow(), { from: first, step_s: size } = this.data;
	const nrLost = (this.data.lost || []).reduce((sum, nr, i) => {
		return sum + (first + i * size < to && first + (i + 1) * size > from ? nr || 0 : 0);
	}, 0);
	if (nrLost)
		make('span', this.foot, grouped(nrLost, 0) + ' lost', { class: 'warn',
			title: 'Samples that were lost while recording, at the marks on top of the timeline' });
	make('span', this.foot, dateText(from, new Date().toDateString()) + ' \u2013 ' + dateText(to, new Date(from * 1000).toDateString()) + ', ' +
		spanText(to - from), { class: 'picked' });
	if (this.name === 'B')
		button(this.foot, 'Range of A', 'The same time as A, to compare tags', () => change({ vs_from: state.from, vs_to: state.to }));
	else if (this.isPaired)
		button(this.foot, 'Whole', 'The whole visible time range', () => change({ from: windowOf().from, to: windowOf().to }));
	if (!this.isPaired && state.win_from) {
		button(this.foot, 'Zoom in', 'Show this range on the whole timeline (z)', zoomIn);
		button(this.foot, 'Clear', 'The whole timeline again (Esc)', () => this.clear());
	}
};

function zoomIn() {
	if (state.win_from && !isPair())
		change({ win_from: '', win_to: '' });
}

Timeline.prototype.setTags = function (rules) {
	change({ [this.keys.tag]: rules });
};

Timeline.prototype.drawHead = function () {
	const rules = state[this.keys.tag];

	if (this.isPaired) {
		make('span', this.head, this.name, { class: 'badge ' + this.name.toLowerCase() });
		make('span', this.head, this.name === 'A' ? 'baseline' : 'comparison', { class: 'dim' });
	}
	rules.forEach((rule, i) => {
		const chip = make('span', this.head, null, { class: 'chip' });

		button(chip, cut(clean(rule), 80), clean(rule).slice(0, 500) + '\nClick to negate this rule',
			() => this.setTags(rules.map((other, at) => at === i ? negated(other) : other)));
		button(chip, '\u00d7', 'Remove', () => this.setTags(rules.filter((_, at) => at !== i)),
			{ 'aria-label': 'Remove ' + clean(rule).slice(0, 100) });
	});
	const opener = button(this.head, rules.length ? '+ tag' : '+ filter by tag', 'Choose by tag', () => openPicker(this, opener),
		{ 'aria-haspopup': 'dialog', 'aria-expanded': 'false', class: 'add-tag' });
	make('span', this.head, null, { class: 'space' });
	if (!this.isPaired)
		this.drawBy(this.head);
};

// How the timeline is split: not for each side of its own.
Timeline.prototype.drawBy = function (parent) {
	const label = make('label', parent, 'by ', { class: 'dim' }), select = make('select', label, null, { class: 'by' });
	const names = [...new Set(keys.concat(state.by || []))].filter((key) => key !== 'kind');

	make('option', select, 'nothing', { value: '' });
	for (const key of names)
		make('option', select, cut(clean(key), 40), key === state.by ? { value: key, selected: '' } : { value: key });
	select.addEventListener('change', () => change({ by: select.value, split: select.value && state.split }));
	if (!state.by || this.isPaired)
		return;
	const group = make('span', parent, null, { class: 'group', role: 'group' });
	for (const style of ['stacked', 'lines'])
		button(group, style, '', () => change({ style }), { 'aria-pressed': state.style === style });
	button(parent, 'split graph', 'Show the values as root frames of the graph', () => change({ split: state.split ? '' : '1' }),
		{ 'aria-pressed': Boolean(state.split) });
};
