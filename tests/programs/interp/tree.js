// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What tests/live/interp_v8.py looks at. tree.js MODE [FIFO]: prints its truth as JSON, then works
// until it is killed. Lines are named by the comments "@name" behind them.
'use strict';

const fs = require('fs');
const path = require('path');

function spin(n) {
  let x = 0;
  for (let i = 0; i < n; i++) x = (x * 31 + i) % 65521; // @spin
  return x;
}

// Three functions that share the time.
function heavy(n) {
  let x = 0;
  for (let i = 0; i < n; i++) x = (x * 31 + i) % 65521; // @heavy
  return x;
}
function medium(n) {
  let x = 0;
  for (let i = 0; i < n; i++) x = (x * 31 + i) % 65521; // @medium
  return x;
}
function light(n) {
  let x = 0;
  for (let i = 0; i < n; i++) x = (x * 31 + i) % 65521; // @light
  return x;
}
// Of the CPU.
function clock() {
  const { user, system } = process.cpuUsage();
  return user + system; // us
}
// Rounds differ in length, and it says what they took.
const spent = { heavy: 0, medium: 0, light: 0 };
let rounds = 0, said = 0;
function shares() {
  const n = 5000 + rounds++ * 7919 % 10000;
  const begin = clock();
  heavy(7 * n);
  const afterHeavy = clock();
  medium(2 * n);
  const afterMedium = clock();
  light(n);
  const afterLight = clock();
  spent.heavy += afterHeavy - begin;
  spent.medium += afterMedium - afterHeavy;
  spent.light += afterLight - afterMedium;
  if (afterLight - said > 50000) {
    said = afterLight;
    fs.writeSync(1, `spent heavy ${spent.heavy} medium ${spent.medium} light ${spent.light}\n`);
  }
}

// A known tree of calls; one leaf for each way that leads through C++ or a builtin.
let seen = null;
function here(name) {
  if (!seen) return;
  const lines = new Error().stack.split('\n').slice(2);
  seen[name] = lines.map((line) => {
    const at = line.match(/at (?:(?:new |async )?([^ (]+)(?: \[as [^\]]+\])? \()?(.*?):(\d+):\d+\)?$/);
    return at ? [at[1] || '', path.basename(at[2]), Number(at[3])] : [line.match(/at ([^ ]*)/)[1], '', 0];
  });
}
class Foo {
  leaf(n) {
    here('map');
    return spin(n); // @leaf
  }
  static sleaf(n) {
    here('recursion');
    return spin(n); // @sleaf
  }
}
const foo = new Foo();
function mid(n) {
  return foo.leaf(n) + 1; // @mid
}
const arrow = (v) => mid(v * 100); // @arrow
function top1() {
  return [1, 2].map(arrow); // @top1
}
function down(depth, n) {
  return depth ? down(depth - 1, n) + 1 : Foo.sleaf(n); // @down
}
function order(a, b) {
  here('sort');
  spin(200); // @order
  return a - b;
}
function sorting() {
  return [3, 1, 2, 5, 4].sort(order); // @sorting
}
function revive(key, value) {
  here('parse');
  spin(200); // @revive
  return value;
}
function parsing() {
  return JSON.parse('[1,2,3]', revive); // @parsing
}
function swap(all, a) {
  here('replace');
  spin(200); // @swap
  return a;
}
function replacing() {
  return 'a1b2c3'.replace(/([a-z])\d/g, swap); // @replacing
}
function all() {
  top1();
  down(5, 1000);
  sorting();
  parsing();
  replacing();
}

function show(truth) {
  fs.writeSync(1, JSON.stringify(truth) + '\n');
}

const modes = {
  shares() {
    for (let i = 0; i < 1000; i++) shares();
    spent.heavy = spent.medium = spent.light = 0;
    show({});
    for (;;) shares();
  },
  tree() {
    setTimeout(function cb() {
      seen = {};
      all();
      const truth = seen;
      seen = null;
      for (let i = 0; i < 3000; i++) all();
      show(truth);
      for (;;) all();
    }, 1);
  },
  // Another process writes into the fifo, a line at a time.
  block(fifo) {
    const fd = fs.openSync(fifo, 'r'), line = Buffer.alloc(16);
    function reader() {
      return fs.readSync(fd, line, 0, 1); // @reader
    }
    show({});
    for (;;) reader();
  },
  workers() {
    const { Worker } = require('worker_threads');
    const source = `
      const word = new Int32Array(new SharedArrayBuffer(4));
      function waiter() { return Atomics.wait(word, 0, 0, 20); }
      function turner() { let x = 0; for (let i = 0; i < 1e6; i++) x = (x * 31 + i) % 65521; return x; }
      function loop() { for (;;) { waiter(); turner(); } }
      loop();`;
    new Worker(source, { eval: true });
    show({});
    setInterval(() => {}, 1000);
  },
};

modes[process.argv[2]](process.argv[3]);
