/*
 * lib/suite.js: cases, and what they are checked with.
 *
 *     before(async () => { ... });                  once, before the first case of the file that is run
 *     test('what is so', async () => { ... });      a case
 *     testOwn('what is so', async () => { ... });   a case with a server of its own: needs HOLDFAST
 *     after(async () => { ... });                   once, also when cases failed
 *
 *     eq(actual, expected)                          deep and strict
 *     await fails(promise, Class or 'Name', text)   text: exact, or a RegExp; returns the error
 */
'use strict';
const assert = require('assert');

const CASE_MS = 120000; /* a case that hangs has failed, and those after it would hang too */
const files = [];
let file;

function load(name, body) {
    file = { name, before: [], after: [], cases: [] };
    files.push(file);
    body();
}

const before = (run) => file.before.push(run);
const after = (run) => file.after.push(run);
const test = (name, run) => file.cases.push({ name, run });
const testOwn = (name, run) => process.env.HOLDFAST && test(name, run);

const eq = (actual, expected, note) => assert.deepStrictEqual(actual, expected, note);

async function fails(promise, kind, text) {
    let error;
    try {
        await promise;
    } catch (caught) {
        error = caught;
    }
    assert(error, `should have failed with ${kind.name || kind}`);
    if (typeof kind === 'string')
        assert.strictEqual(error.name, kind, `${error.name}: ${error.message}`);
    else
        assert(error instanceof kind, `not ${kind.name} but ${error.name}: ${error.message}`);
    if (text instanceof RegExp)
        assert.match(error.message, text);
    else if (text !== undefined)
        assert.strictEqual(error.message, text);
    return error;
}

function within(promise, ms) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(Object.assign(new Error(`not done after ${ms} ms`), { hung: true })), ms);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/* A failure in one line: what was expected and seen is shortened, long values are not of use. */
function line(error) {
    if (error.code === 'ERR_ASSERTION' && error.generatedMessage !== false && 'expected' in error) {
        const show = (value) => require('util').inspect(value, { depth: 8, breakLength: Infinity }).slice(0, 600);
        const where = /cases[/\\](\S+:\d+):\d+/.exec(error.stack);
        return `expected ${show(error.expected)} but saw ${show(error.actual)} (${where ? where[1] : '?'})`;
    }
    const where = /cases[/\\](\S+:\d+):\d+/.exec(error.stack || '');
    return `${error.name}: ${String(error.message).split('\n').slice(0, 4).join(' ').slice(0, 1200)}` +
        ` (${where ? where[1] : '?'})`;
}

async function attempt(name, run, result) {
    const begun = Date.now();
    try {
        await within(Promise.resolve().then(run), CASE_MS);
        return true;
    } catch (error) {
        console.log(`FAILED ${name}: ${line(error)}`);
        result.failed++;
        result.hung = result.hung || error.hung;
        return false;
    } finally {
        if (process.env.TIMES)
            console.log(`${String(Date.now() - begun).padStart(6)} ms  ${name}`);
    }
}

async function run(words) {
    const result = { passed: 0, failed: 0 };
    process.on('unhandledRejection', (error) => {
        console.log(`FAILED a promise that nobody waited for: ${line(error)}`);
        result.failed++;
    });
    const names = new Set();
    for (const { name, before, after, cases } of files) {
        const wanted = cases.filter((each) => words.every((word) => `${name}: ${each.name}`.includes(word)));
        if (wanted.length === 0)
            continue;
        let ready = true;
        for (const each of before)
            ready = ready && !result.hung && await attempt(`${name}: before`, each, result);
        for (const each of wanted) {
            const full = `${name}: ${each.name}`;
            assert(!names.has(full), `two cases are called ${full}`);
            names.add(full);
            if (!ready || result.hung)
                result.failed++;
            else if (await attempt(full, each.run, result))
                result.passed++;
        }
        for (const each of result.hung ? [] : after)
            await attempt(`${name}: after`, each, result);
    }
    return result;
}

module.exports = { load, run, before, after, test, testOwn, eq, fails };
