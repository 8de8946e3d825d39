/*
 * lib/soon.js: which calls may be done at once, on the thread of JavaScript, and when.
 *
 * Those are the calls of which hf_bind_try() says that they wait for nothing. Who awaits such calls one after the
 * other never lets the event loop go on, though: timers, sockets and signals would wait until the last of them. So
 * only the first milliseconds of an iteration are for them, and one that comes later waits for the next iteration.
 */
'use strict';
const { performance } = require('perf_hooks');
const { setImmediate } = require('timers');

const ITERATION_MS = 2;
const IN_MEMORY = new Set(['GetItem', 'PutItem', 'UpdateItem', 'DeleteItem']);
const IN_DIRECTORY = new Set(['GetItem']);
const NONE = new Set();

/* As it is now: tests may replace that of the platform. */
const now = performance.now.bind(performance);

let began; /* by the first such call of this iteration; undefined: there was none */
let next; /* a promise of the next iteration; undefined: nobody waits for it */
let resolveNext;

function iterationEnds() {
    began = undefined;
    if (next) {
        next = undefined;
        resolveNext();
    }
}

/* Those of a database with that URL. */
function quickMethods(url) {
    return /^memory:/.test(url) ? IN_MEMORY : /^embedded:/.test(url) ? IN_DIRECTORY : NONE;
}

/* Has this iteration of the event loop time for one more? */
function hasTime() {
    if (began === undefined) {
        began = now();
        setImmediate(iterationEnds);
        return true;
    }
    return now() - began < ITERATION_MS;
}

function nextIteration() {
    next ??= new Promise((resolve) => {
        resolveNext = resolve;
    });
    return next;
}

module.exports = { quickMethods, hasTime, nextIteration };
