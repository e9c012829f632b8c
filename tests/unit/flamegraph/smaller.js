// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Is what user/flamegraph/smaller.py makes of a page the same program? node's own parser (acorn) reads both; the trees
 * must be the same but for names; each name of the one must be one name of the other, and back; and those that are
 * declared nowhere around their place (of the browser) must be what they were.
 * usage: node --expose-internals smaller.js BEFORE AFTER; exit status 77: this node has no parser inside.
 */
'use strict';

const fs = require('fs');
const assert = require('assert');
let acorn;

try {
	acorn = require('internal/deps/acorn/acorn/dist/acorn');
} catch (error) {
	console.log('skipped: ' + error.message);
	process.exit(77);
}

const parse = (path) => acorn.parse(fs.readFileSync(path, 'utf8'), { ecmaVersion: 'latest', sourceType: 'script' });

const isNode = (val) => val !== null && typeof val === 'object' && typeof val.type === 'string';
const childrenOf = (node) => Object.entries(node).flatMap(([key, val]) =>
	Array.isArray(val) ? val.filter(isNode).map((child) => [key, child]) : isNode(val) ? [[key, val]] : []);

// A name of a property, which is not looked up in any scope.
const isKey = (parent, key) => key === 'property' && !parent.computed || key === 'key' && !parent.computed;

function namesOf(pattern, into) {
	if (!pattern)
		return;
	if (pattern.type === 'Identifier')
		into.add(pattern.name);
	for (const [key, child] of childrenOf(pattern))
		if (!(pattern.type === 'AssignmentPattern' && key === 'right') && !isKey(pattern, key))
			namesOf(child, into);
}

// What @node declares for all of @node: of functions in its blocks, too, which is more than the language has.
function declaredIn(node, scope) {
	for (const [, child] of childrenOf(node)) {
		if (child.type === 'VariableDeclaration')
			child.declarations.forEach((one) => namesOf(one.id, scope));
		if (child.type === 'FunctionDeclaration')
			scope.add(child.id.name);
	}
}

/* Every identifier that is looked up, and whether it is declared around. */
function lookUps(node, scopes, out, parent, key) {
	if (node.type === 'Identifier') {
		if (!isKey(parent, key))
			out.push([node, scopes.some((scope) => scope.has(node.name))]);
		return;
	}
	const scope = new Set();

	declaredIn(node, scope);
	(node.params || []).concat(node.param || []).forEach((pattern) => namesOf(pattern, scope));
	if (node.type === 'FunctionExpression' && node.id)
		scope.add(node.id.name);
	for (const [childKey, child] of childrenOf(node)) {
		// Of { name } key and value are one.
		if (node.type === 'Property' && node.shorthand && childKey === 'key')
			continue;
		lookUps(child, [scope, ...scopes], out, node, childKey);
	}
}

const SKIPPED = new Set(['start', 'end', 'shorthand', 'raw', 'sourceFile']);

function compare(a, b, parent, key, pairs) {
	assert.strictEqual(a.type, b.type, `${a.start}: another kind of thing`);
	if (a.type === 'Identifier' && !isKey(parent, key)) {
		pairs.push([a, b]);
		return;
	}
	for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
		const of_a = a[name], of_b = b[name];

		if (SKIPPED.has(name))
			continue;
		if (isNode(of_a)) {
			assert(isNode(of_b), `${a.start}: ${name}`);
			compare(of_a, of_b, a, name, pairs);
		} else if (Array.isArray(of_a)) {
			assert.strictEqual(of_a.length, of_b.length, `${a.start}: ${name}`);
			of_a.forEach((child, i) => isNode(child) ? compare(child, of_b[i], a, name, pairs) :
				assert.deepStrictEqual(child, of_b[i], `${a.start}: ${name}`));
		} else {
			assert.deepStrictEqual(of_a, of_b, `${a.start}: ${name}`);
		}
	}
}

const before = parse(process.argv[2]), after = parse(process.argv[3]);
const pairs = [], there = new Map(), back = new Map(), [found, isFound] = [[], []];

compare(before, after, null, '', pairs);
lookUps(before, [], found, null, '');
lookUps(after, [], isFound, null, '');
const declared = new Map(found.map(([node, is]) => [node, is])), declaredAfter = new Map(isFound.map(([node, is]) => [node, is]));
let nrFree = 0;

for (const [a, b] of pairs) {
	assert.strictEqual(there.get(a.name) || b.name, b.name, `${a.name} has two names`);
	assert.strictEqual(back.get(b.name) || a.name, a.name, `${b.name} is two names`);
	there.set(a.name, b.name);
	back.set(b.name, a.name);
	if (!declared.has(a))
		continue;
	assert.strictEqual(declared.get(a), declaredAfter.get(b), `${a.name} at ${a.start}`);
	if (!declared.get(a)) {
		assert.strictEqual(a.name, b.name, `${a.name} at ${a.start} is declared nowhere`);
		nrFree++;
	}
}
console.log(`${pairs.length} names, ${there.size} different ones, ${nrFree} times one that is declared nowhere`);
assert(pairs.length > 10 && nrFree > 3);
