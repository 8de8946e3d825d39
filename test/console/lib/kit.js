/*
 * lib/kit.js: a server, a browser, and pages that complain.
 *
 *     suite('data', async ({ test, browser }) => { test('name', async () => {...}) })
 *
 * One browser for all tests of a file: Debian's chromium, with a profile of its own that is deleted
 * at the end. A page fails its test when its script throws, when it writes an error to the console,
 * when it breaks its own policy, or when it asks another host for anything.
 */
'use strict';
const fs = require('fs');
const path = require('path');
const { chromium } = require('playwright-core');
const { startOwn } = require('../../clients/js/lib/serve');

const WAIT = 30000;
const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--in-process-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const PROGRAMS = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

const tests = [];
const closers = [];
const shots = process.env.CONSOLE_SHOTS;

function test(name, work) {
    tests.push({ name, work });
}

/* ---- a server ---- */

/* Where requests go is in .endpoint; they are signed in form only, or with `key`. */
async function server(...options) {
    const one = await startOwn(...options, ...(process.env.CONSOLE_DIR ? ['--console-dir', process.env.CONSOLE_DIR] : []));
    one.call = (operation, body, headers) => call(one.endpoint, operation, body, headers);
    one.method = (name, args) => method(one.endpoint, name, args);
    closers.push(async () => {
        const complaint = one.done ? null : await one.stop();
        if (complaint)
            throw new Error(`the server ${complaint}`);
    });
    return one;
}

const STREAMS = new Set(['DescribeStream', 'GetRecords', 'GetShardIterator', 'ListStreams']);

async function call(endpoint, operation, body = {}, headers = {}) {
    const answer = await fetch(endpoint, { method: 'POST', body: JSON.stringify(body), headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': (STREAMS.has(operation) ? 'DynamoDBStreams_20120810.' : 'DynamoDB_20120810.') + operation,
        'x-amz-date': '20260101T000000Z',
        authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=' + '0'.repeat(64),
        ...headers } });
    const text = await answer.text(), value = text ? JSON.parse(text) : {};
    if (!answer.ok)
        throw new Error(`${operation}: ${value.__type}: ${value.message || value.Message}`);
    return value;
}

/* A method of a pattern, as the page calls it. */
async function method(endpoint, name, args = {}) {
    const answer = await fetch(`${endpoint}/console/api/call`, { method: 'POST', headers: { 'content-type': 'application/json',
        'x-amz-date': '20260101T000000Z', authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=' + '0'.repeat(64) },
    body: JSON.stringify({ method: name, arguments: args }) });
    const value = await answer.json();
    if (!answer.ok)
        throw new Error(`${name}: ${JSON.stringify(value)}`);
    return value.result;
}

/* ---- a browser ---- */

let browser = null;

function program() {
    const found = PROGRAMS.find((one) => one && fs.existsSync(one));
    if (!found) {
        console.log('console: needs chromium; see script/bootstrap --test');
        process.exit(77);
    }
    return found;
}

const idle = new Map(); /* contexts that were left as they were made, by what they were made with: a new one costs as much as the page */

const slow = Number(process.env.CONSOLE_SLOW || 0);

/* What a busy machine does to a page, and more of it: it runs `slow` times slower, and each request is sent up to so
   many times 30 ms late. What a test assumes to be quick enough shows then. */
async function slowDown(made) {
    await (await made.context().newCDPSession(made)).send('Emulation.setCPUThrottlingRate', { rate: slow });
    await made.route('**/*', async (route) => {
        await new Promise((done) => setTimeout(done, Math.random() * slow * 30));
        await route.fallback().catch(() => { }); /* it may have been canceled */
    });
}

/* A page of a context of its own. `allow`: texts that its console may have. `alone`: nobody has the context after it, as
   when its clock is set. */
async function page({ width = 1280, height = 800, dark = false, allow = [], clipboard = false, alone = false } = {}) {
    browser ||= await chromium.launch({ executablePath: program(), args: FLAGS, timeout: WAIT });
    const kind = alone ? '' : [width, height, dark, clipboard].join(), context = idle.get(kind)?.pop() || await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', acceptDownloads: true,
        permissions: clipboard ? ['clipboard-read', 'clipboard-write'] : [] });
    context.setDefaultTimeout(WAIT);
    const made = await context.newPage(), complaints = [], hosts = new Set();
    if (slow)
        await slowDown(made);
    const note = (text) => allow.some((one) => text.includes(one)) || complaints.push(text);
    made.on('pageerror', (error) => note(`script: ${error.stack || error}`));
    /* A browser reports each answer of 4xx; those of operations are what the test is about. */
    made.on('console', (message) => message.type() === 'error' && !(/^Failed to load resource/.test(message.text()) && !/\/console\/(?!api)/.test(message.location().url)) &&
        note(`console: ${message.text()} ${message.location().url}`));
    made.on('request', (request) => /^(data|blob):/.test(request.url()) || hosts.add(new URL(request.url()).host));
    Object.assign(made, { complaints, hosts, kind });
    return made;
}

/* Open a view and wait until it says that it is there, and until the page hears of what is written from now on. A
   view may write more into its URL. */
async function visit(made, endpoint, hash = '/') {
    if (made.url().startsWith(`${endpoint}/console/`))
        await made.evaluate((to) => {
            for (const old of document.querySelectorAll('.view'))
                old.dataset.ready = 'old';
            if (location.hash === to)
                dispatchEvent(new Event('hashchange'));
            else
                location.hash = to;
        }, '#' + hash);
    else
        await made.goto(`${endpoint}/console/#${hash}`);
    await made.waitForSelector('#view > .view[data-ready="1"]');
    await made.waitForFunction(async () => {
        const { stream } = await import('/console/lib/stream.js'), { server } = await import('/console/lib/client.js');
        return stream.connected || !stream.available || !server.up;
    });
}

/* Close a page; it must not have complained, nor gone to another host. */
async function leave(made) {
    const hosts = [...made.hosts], context = made.context();
    await made.evaluate(() => localStorage.clear());
    await made.close();
    if (made.kind)
        idle.set(made.kind, [...idle.get(made.kind) || [], context]);
    else
        await context.close();
    if (made.complaints.length)
        throw new Error(made.complaints.join('\n'));
    if (hosts.length > 1)
        throw new Error(`the page asked ${hosts.join(', ')}`);
}

/* ---- checks ---- */

function ok(value, text) {
    if (!value)
        throw new Error(text || 'expected something');
}

function eq(found, wanted, text = '') {
    const [a, b] = [found, wanted].map((x) => JSON.stringify(x));
    if (a !== b)
        throw new Error(`${text} expected ${b}\n    found ${a}`);
}

/* ---- running ---- */

async function run() {
    const words = process.argv.slice(2);
    let passed = 0, failed = 0;
    for (const one of tests) {
        if (words.length && !words.some((word) => one.name.includes(word)))
            continue;
        const from = Date.now();
        try {
            await one.work();
            passed++;
            if (process.env.CONSOLE_TIMES)
                console.log(`${String(Date.now() - from).padStart(6)} ms  ${one.name}`);
        } catch (error) {
            failed++;
            console.log(`FAILED ${one.name}: ${error.stack}`);
            for (const context of browser ? browser.contexts() : [])
                for (const left of context.pages()) {
                    console.log(`    ${left.url()}`, (left.complaints || []).join('\n    '));
                    if (shots)
                        await left.screenshot({ path: path.join(shots, `failed-${one.name.replace(/\W+/g, '-')}.png`) }).catch(() => { });
                }
        }
        for (const context of browser ? browser.contexts() : [])
            if (context.pages().length) /* what a test did not leave; nothing is open between tests */
                await context.close().catch(() => { });
    }
    await browser?.close();
    for (const close of closers.reverse())
        try {
            await close();
        } catch (error) {
            failed++;
            console.log(`FAILED at the end: ${error.message}`);
        }
    console.log(`${passed} passed, ${failed} failed`);
    process.exit(failed || !passed ? 1 : 0);
}

for (const signal of ['SIGTERM', 'SIGINT'])
    process.on(signal, () => process.exit(1));
process.on('unhandledRejection', (error) => {
    console.log(`FAILED ${error.stack}`);
    process.exit(1);
});
setImmediate(() => run().catch((error) => {
    console.log(`FAILED ${error.stack}`);
    process.exit(1);
}));

module.exports = { test, server, call, page, visit, leave, ok, eq, shots, WAIT };
