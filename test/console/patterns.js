/*
 * patterns.js: the views of patterns, of insight and for tests, on a server that the demo has filled.
 *
 * One server and its data are for all tests of the file: a test makes what it changes. Screenshots of
 * each view, in both themes and both widths, go to CONSOLE_SHOTS; axe looks at each of them.
 */
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { spawn, spawnSync } = require('child_process');
const { test, server, page, visit, leave, ok, eq, shots, WAIT } = require('./lib/kit');

const command = process.env.HOLDFAST;
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'console-patterns-'));
const children = new Set();
process.on('exit', () => {
    for (const child of children)
        child.kill('SIGKILL');
    fs.rmSync(dir, { recursive: true, force: true });
});

let shared = null;

/* The server with the demo's data. */
async function shop() {
    if (!shared) {
        const made = spawnSync(command, ['demo', '--quick', '--seed', '3', '--db', path.join(dir, 'shop'), '--quiet'], { encoding: 'utf8', timeout: WAIT });
        ok(made.status === 0, `the demo: ${made.stderr}`);
        shared = await server('--db-path', path.join(dir, 'shop'));
    }
    return shared;
}

const call = (s, method, args) => s.method(method, args);

/* The command, on that server. */
function run(s, ...args) {
    const { status, stdout, stderr } = spawnSync(command, [...args, '--db', s.endpoint], { encoding: 'utf8', timeout: WAIT, env: environment });
    ok(status === 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
}

const environment = { ...process.env, AWS_ACCESS_KEY_ID: 'any', AWS_SECRET_ACCESS_KEY: 'any', AWS_REGION: 'us-east-1' };

/* A program that goes on until end(); `said` resolves to its first line of standard output. */
function start(s, ...args) {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...environment, HOLDFAST_DB: s.endpoint } });
    children.add(child);
    const ended = new Promise((resolve) => child.on('exit', resolve)); /* what it has started may hold its pipes */
    const said = new Promise((resolve, reject) => {
        child.stdout.once('data', resolve);
        child.on('exit', (code) => reject(new Error(`${args.join(' ')} ended with ${code}`)));
    });
    child.stderr.resume();
    said.catch(() => { });
    return { said, end: async () => {
        child.kill('SIGTERM');
        const late = setTimeout(() => child.kill('SIGKILL'), WAIT);
        await ended;
        clearTimeout(late);
        child.stdout.destroy();
        children.delete(child);
    } };
}

const text = (p, selector = '#view') => p.locator(selector).innerText();
const row = (p, name) => p.locator('tr', { hasText: name });
const press = (p, name) => p.getByRole('button', { name, exact: true }).click();
const until = (p, what, arg) => p.waitForFunction(what, arg, { timeout: WAIT });
const shows = (p, wanted, selector = '#view') => until(p, ([s, t]) => document.querySelector(s)?.innerText.includes(t), [selector, wanted]);
const hides = (p, wanted, selector = '#view') => until(p, ([s, t]) => !document.querySelector(s)?.innerText.includes(t), [selector, wanted]);
const inDialog = (p) => p.locator('dialog[open]').last();

async function open(s, hash, options) {
    const p = await page(options);
    await visit(p, s.endpoint, hash);
    await until(p, () => !document.querySelector('#view [aria-busy=true]'));
    return p;
}

/* Fill the fields of the open dialog by their labels, and press a button. */
async function answer(p, fields, button) {
    for (const [label, value] of Object.entries(fields)) {
        const field = inDialog(p).getByLabel(label, { exact: true });
        if (await field.evaluate((e) => e.tagName) === 'SELECT')
            await field.selectOption(value);
        else
            await field.fill(value);
    }
    await inDialog(p).getByRole('button', { name: button, exact: true }).click();
}

/* A dialog that destroys: its button does nothing before the name was typed. */
async function confirmed(p, name, button) {
    const title = await inDialog(p).getByRole('heading').first().innerText();
    const go = inDialog(p).getByRole('button', { name: button, exact: true });
    eq(await go.isDisabled(), true, 'before the name is typed');
    await inDialog(p).getByLabel(`Type ${name} to confirm`).last().fill(name.slice(0, -1));
    eq(await go.isDisabled(), true, 'while the name is not whole');
    await inDialog(p).getByLabel(`Type ${name} to confirm`).last().fill(name);
    await go.click();
    await until(p, (title) => ![...document.querySelectorAll('dialog[open] h2')].some((e) => e.textContent === title), title);
}

/* ---- patterns ------------------------------------------------------------------------------- */

test('the tables of patterns are found by their marks', async () => {
    const p = await open(await shop(), '/patterns');
    await shows(p, 'Stream consumers');
    for (const [pattern, table] of [['Outbox', 'outbox'], ['Events', 'events'], ['Locks', 'locks'], ['Counters', 'keys'], ['Keys and values', 'keys'], ['Do-once', 'once'], ['Limits', 'limits']])
        ok((await row(p, pattern).first().innerText()).includes(table), `${pattern} in ${table}`);
    await shows(p, 'dead');
    await row(p, 'Locks').first().getByRole('link', { name: 'Locks', exact: true }).click();
    await shows(p, 'Locks', '#head h1');
    await leave(p);
});

test('an empty database says what would fill it', async () => {
    const s = await server();
    const p = await open(s, '/patterns');
    await shows(p, 'holdfast demo --quick');
    for (const [view, wanted] of [['outbox', 'holdfast outbox emit'], ['events', 'holdfast events append'], ['locks', 'holdfast lock run'], ['counters', 'holdfast counter add'], ['once', 'holdfast once run'],
        ['limits', 'holdfast limit check'], ['kv', 'holdfast kv set'], ['records', 'holdfast records put'], ['consumers', 'holdfast streams tail']]) {
        await visit(p, s.endpoint, `/${view}`);
        await shows(p, wanted);
    }
    await visit(p, s.endpoint, '/counters');
    run(s, 'counter', 'add', 'first'); /* shows by itself, as the stream names a new table */
    await until(p, () => [...document.querySelectorAll('#view tbody tr')].some((r) => r.innerText.includes('first')));
    await leave(p);
});

/* ---- outbox --------------------------------------------------------------------------------- */

test('the backlog of an outbox follows what is emitted', async () => {
    const s = await shop(), p = await open(s, '/outbox');
    await shows(p, 'Nothing waits');
    run(s, 'outbox', 'emit', 'a.b', '--key', 'k', '--quiet');
    run(s, 'outbox', 'emit', 'a.c', '--urgent', '--quiet');
    run(s, 'outbox', 'emit', 'a.d', '--delay', '1h', '--quiet');
    await until(p, () => [...document.querySelectorAll('.tile')].some((t) => t.innerText.startsWith('3\nWaiting')));
    const tile = (name) => p.locator('.tile', { hasText: name }).first().innerText();
    ok((await tile('Urgent')).startsWith('1'), 'urgent');
    ok((await tile('Scheduled')).startsWith('1'), 'scheduled');
    eq(await p.locator('tbody tr').count(), 16, 'a row for each bucket');
    await p.getByRole('link', { name: 'Waiting' }).first().click();
    await shows(p, 'a.d');
    await row(p, 'a.d').getByRole('button', { name: 'Discard' }).click();
    await confirmed(p, 'a.d', 'Discard');
    await hides(p, 'a.d');
    await call(s, 'outbox.discard', { table: 'outbox', ids: (await call(s, 'outbox.pending', { table: 'outbox', not_due_too: true })).events.map((e) => e.ref) });
    await leave(p);
});

test('a test event is emitted, delivered, and in the history', async () => {
    const s = await shop(), p = await open(s, '/outbox?tab=waiting');
    await press(p, 'Emit a test event');
    await answer(p, { Type: 'console.test', Key: 'k7', Payload: '{"n": 1}' }, 'Emit');
    await shows(p, 'console.test');
    await row(p, 'console.test').getByRole('button', { name: 'console.test' }).click();
    await shows(p, '"n": 1', 'dialog[open]');
    await p.keyboard.press('Escape');
    run(s, 'outbox', 'drain', '--to', `file:${path.join(dir, 'delivered')}`, '--history', '1h');
    ok(fs.readFileSync(path.join(dir, 'delivered'), 'utf8').includes('console.test'), 'it was delivered');
    await shows(p, 'Nothing waits');
    await visit(p, s.endpoint, '/outbox?tab=history&type=console.test');
    await shows(p, 'k7');
    await leave(p);
});

/* An outbox of its own with `count` dead letters, each of two causes. */
async function deadLetters(s, table, count) {
    const program = path.join(dir, 'refuse.sh');
    fs.writeFileSync(program, '#!/bin/sh\ncase "$(cat)" in *odd*) echo "no address" >&2;; *) echo "no money" >&2;; esac\nexit 1\n', { mode: 0o755 });
    await call(s, 'outbox.emit', { table, events: Array.from({ length: count }, (_, i) => ({ type: 'mail.sent', key: `k${i}`, payload: JSON.stringify({ n: i, kind: i % 2 ? 'odd' : 'even' }), correlation: `c${i}` })) });
    spawnSync(command, ['outbox', 'drain', '--table', table, '--to', `exec:${program}`, '--attempts', '1', '--timeout', '20s', '--db', s.endpoint, '--quiet'], { env: environment, timeout: WAIT });
    eq((await call(s, 'outbox.stats', { table })).failed, count, 'dead letters');
}

test('the history is delivered again in pages, with progress and cancel', async () => {
    const s = await shop(), table = 'again', most = 430;
    for (let i = 0; i < most; i += 86)
        await call(s, 'outbox.emit', { table, events: Array.from({ length: 86 }, (_, n) => ({ type: 'n', payload: String(i + n) })) });
    run(s, 'outbox', 'drain', '--table', table, '--to', `file:${path.join(dir, 'first')}`, '--history', '1h');
    const p = await open(s, `/outbox?table=${table}&tab=history`);
    const begin = async () => {
        await press(p, 'Deliver again…');
        await confirmed(p, table, 'Deliver again');
    };
    /* The second page does not come: what is said then is what was done. */
    let pages = 0, hold;
    const asked = new Promise((resolve) => { hold = resolve; });
    await p.route('**/console/api/call', (route) => {
        if (route.request().postData().includes('outbox.replay') && ++pages === 2)
            hold(route);
        else
            route.continue();
    });
    await begin();
    await shows(p, `200 of ${most}`, '.jobs');
    eq(await p.locator('.job progress').evaluate((e) => [e.value, e.max]), [200, most]);
    const held = await asked; /* a page that nobody has asked for cannot be held back */
    await p.locator('.job').getByRole('button', { name: 'Cancel' }).click();
    await shows(p, 'Canceled after 200. What was done stays.', '.jobs');
    await held.abort().catch(() => { }); /* else it may be sent when the route ends */
    eq((await call(s, 'outbox.stats', { table })).pending, 200, 'one page waits');
    await p.unroute('**/console/api/call');
    eq((await call(s, 'outbox.stats', { table })).pending, 200, 'and still does');
    await begin();
    await shows(p, `${most - 200} events are emitted again; 200 waited already`, '.jobs');
    run(s, 'outbox', 'drain', '--table', table, '--to', `file:${path.join(dir, 'second')}`, '--history', '1h');
    const ids = (name) => fs.readFileSync(path.join(dir, name), 'utf8').trim().split('\n').map((line) => JSON.parse(line).id).sort();
    eq(ids('second').length, most);
    eq(ids('second'), ids('first'), 'each once, with its id');
    await leave(p);
});

test('dead letters are grouped, retried, edited and discarded', async () => {
    const s = await shop();
    await deadLetters(s, 'dead', 5);
    const p = await open(s, '/outbox?table=dead&tab=failed');
    await shows(p, 'By cause');
    eq(await p.getByRole('region', { name: 'Causes' }).locator('tbody tr').count(), 2, 'causes');

    /* one, by its button */
    const letters = p.getByRole('region', { name: 'Dead letters' });
    eq(await letters.locator('tbody tr').count(), 5);
    await row(letters, 'k0').getByRole('button', { name: 'Retry' }).click();
    await until(p, () => document.querySelectorAll('[aria-label="Dead letters"] tbody tr').length === 4);
    eq((await call(s, 'outbox.pending', { table: 'dead' })).events.length, 1, 'waits again');

    /* another, corrected: a copy waits, with what it had */
    await row(letters, 'k1').getByRole('button', { name: 'Edit…' }).click();
    await answer(p, { Payload: '{"n": 1, "corrected": true}' }, 'Resend');
    await until(p, () => document.querySelectorAll('[aria-label="Dead letters"] tbody tr').length === 3);
    const copy = (await call(s, 'outbox.pending', { table: 'dead' })).events.find((e) => e.key === 'k1');
    eq([copy.payload, copy.correlation], ['{"n": 1, "corrected": true}', 'c1'], 'the copy');

    /* a selection is discarded */
    await row(letters, 'k2').getByRole('checkbox').check();
    await shows(p, '1 selected');
    await press(p, 'Discard…');
    await confirmed(p, '1', 'Discard');
    await until(p, () => document.querySelectorAll('[aria-label="Dead letters"] tbody tr').length === 2);

    /* all of them, as an action with its progress */
    await press(p, 'Retry all');
    await shows(p, '2 wait to be delivered again', '.jobs');
    await shows(p, 'No dead letters');
    eq((await call(s, 'outbox.stats', { table: 'dead' })).pending, 4, 'all wait');
    await leave(p);
});

test('all dead letters of a cause are discarded', async () => {
    const s = await shop();
    await deadLetters(s, 'dead2', 6);
    const p = await open(s, '/outbox?table=dead2&tab=failed');
    await p.getByRole('region', { name: 'Causes' }).getByRole('link').first().click();
    await until(p, () => document.querySelectorAll('[aria-label="Dead letters"] tbody tr').length === 3);
    await press(p, 'Discard all of this cause…');
    await confirmed(p, 'dead2', 'Discard all');
    await shows(p, '3 discarded', '.jobs');
    eq((await call(s, 'outbox.stats', { table: 'dead2' })).failed, 3, 'those of the other cause stay');
    await leave(p);
});

test('relays are shown, paused and resumed', async () => {
    const s = await shop();
    run(s, 'outbox', 'emit', 'later', '--table', 'paused', '--buckets', '4', '--delay', '1h', '--quiet'); /* makes the table */
    const p = await open(s, '/outbox?table=paused&tab=relays');
    await shows(p, 'No relay works on this outbox');
    const relay = start(s, 'relay', '--table', 'paused', '--to', 'stdout:', '--lease', '10s');
    await until(p, () => [...document.querySelectorAll('.bucket-map li:not(.free)')].length === 4);
    await shows(p, 'alive');
    await press(p, 'Pause…');
    await answer(p, { Reason: 'the shop is down' }, 'Pause');
    await shows(p, 'the shop is down');
    eq((await call(s, 'outbox.paused', { table: 'paused' })).paused, true);
    await press(p, 'Resume');
    await shows(p, 'Pause…');
    await call(s, 'outbox.emit', { table: 'paused', events: [{ type: 'after.the.pause' }] });
    ok(String(await relay.said).includes('after.the.pause'), 'it delivers again');
    await relay.end();
    await shows(p, 'No relay works on this outbox');
    await leave(p);
});

/* ---- events --------------------------------------------------------------------------------- */

test('streams, an event, its causes, and two versions compared', async () => {
    const s = await shop(), stream = { table: 'events', domain: 'cart', id: '9' };
    const first = await call(s, 'events.append', { ...stream, events: [{ type: 'opened', payload: '{"pieces": 1, "who": "ann", "large": 12345678901234567890}' }] });
    const next = await call(s, 'events.append', { ...stream, events: [{ type: 'filled', payload: '{"pieces": 2, "who": "ann", "large": 12345678901234567891}', causation: first.ids[0], correlation: first.ids[0] }] });
    await call(s, 'events.append', { table: 'events', domain: 'mail', id: '1', events: [{ type: 'sent', payload: 'hello', content_type: 'text/plain', causation: next.ids[0], correlation: first.ids[0] }] });
    const p = await open(s, '/events?in=cart');
    await p.getByRole('link', { name: 'cart/9' }).click();
    await shows(p, 'filled');
    eq(await p.locator('.timeline circle').count(), 2, 'events on the time line');
    await p.getByRole('checkbox', { name: 'Select 1', exact: true }).check();
    await p.getByRole('checkbox', { name: 'Select 2', exact: true }).check();
    await press(p, 'Compare the two');
    await shows(p, '+     "pieces": 2', 'dialog[open]');
    await shows(p, '-     "pieces": 1', 'dialog[open]');
    await shows(p, '+     "large": 12345678901234567891', 'dialog[open]');
    ok(!(await p.locator('dialog[open] .diff-in, dialog[open] .diff-out').allInnerTexts()).some((line) => line.includes('who')), 'what is equal is not marked');
    await p.keyboard.press('Escape');
    await p.getByRole('region', { name: 'Events of cart/9' }).getByRole('link', { name: 'filled' }).click();
    await shows(p, 'Causes and what followed');
    eq(await p.locator('.tree rect').count(), 3, 'events in the tree');
    eq(await p.locator('.tree .here text').first().textContent(), 'filled');
    await shows(p, 'With the same correlation');
    await p.locator('.tree a', { hasText: 'sent' }).focus();
    await p.keyboard.press('Enter');
    await shows(p, 'hello', '.json');
    await leave(p);
});

test('subscriptions show their lag; parked events are replayed and discarded', async () => {
    const s = await shop(), program = path.join(dir, 'park.sh');
    fs.writeFileSync(program, '#!/bin/sh\necho "no shelf" >&2\nexit 1\n', { mode: 0o755 });
    await call(s, 'events.append', { table: 'events', domain: 'park', id: '1', events: [{ type: 'one' }, { type: 'two' }] });
    const p = await open(s, '/events?tab=subscriptions');
    await shows(p, 'sales');
    await leave(p);
    spawnSync(command, ['events', 'subscribe', '--name', 'shelf', '--domain', 'park', '--exec', program, '--attempts', '1', '--until-end', '--park', '--db', s.endpoint], { env: environment, timeout: WAIT });
    const parked = (await call(s, 'events.parked', { table: 'events', name: 'shelf' }).catch(() => ({}))).events || [];
    eq(parked.length, 2, 'parked events');
    const q = await open(s, '/events?tab=subscriptions&name=shelf');
    await shows(q, 'ended with code 1');
    await row(q, 'one').getByRole('checkbox').check();
    await press(q, 'Replay 1');
    await shows(q, 'to be handled again');
    await row(q, 'two').getByRole('checkbox').check();
    await press(q, 'Discard 1…');
    await confirmed(q, 'shelf', 'Discard');
    await hides(q, 'two', '[aria-label="Parked events"]');
    await leave(q);
});

test('a subscription is rebuilt, and forgotten', async () => {
    const s = await shop(), seen = path.join(dir, 'seen'), name = 'shelves';
    const subscribe = () => {
        const { status, stderr } = spawnSync(command, ['events', 'subscribe', '--name', name, '--domain', 'build', '--exec', `echo "$HOLDFAST_EVENT_TYPE" >>${seen}`, '--until-end', '--db', s.endpoint], { encoding: 'utf8', env: environment, timeout: WAIT });
        ok(status === 0, stderr);
        return fs.readFileSync(seen, 'utf8').trim().split('\n');
    };
    await call(s, 'events.append', { table: 'events', domain: 'build', id: '1', events: [{ type: 'one' }, { type: 'two' }] });
    eq(subscribe(), ['one', 'two']);
    const p = await open(s, '/events?tab=subscriptions'), mine = row(p, name);
    await mine.getByRole('button', { name: 'Rebuild…' }).click();
    await confirmed(p, name, 'Rebuild');
    await until(p, (n) => [...document.querySelectorAll('#view tr')].some((r) => r.innerText.includes(n) && r.innerText.includes('to be rebuilt')), name);
    eq((await call(s, 'events.subscription', { table: 'events', name })).rebuild, true);
    eq(subscribe(), ['one', 'two', 'one', 'two'], 'all events again');
    await press(p, 'Refresh');
    await until(p, (n) => [...document.querySelectorAll('#view tr')].some((r) => r.innerText.includes(n) && r.innerText.includes('idle')), name);
    eq((await call(s, 'events.subscription', { table: 'events', name })).rebuild ?? false, false);
    await mine.getByRole('button', { name: 'Forget…' }).click();
    await confirmed(p, name, 'Forget');
    await hides(p, name);
    ok(!(await call(s, 'events.subscriptions', { table: 'events' })).subscriptions.some((one) => one.name === name), 'it is gone');
    eq(subscribe().length, 6, 'the next of this name begins with the first event');
    await leave(p);
});

/* ---- locks, counters, do-once, limits ------------------------------------------------------- */

test('a held lock is shown and broken', async () => {
    const s = await shop(), p = await open(s, '/locks');
    await shows(p, 'No lock is held now');
    const held = start(s, 'lock', 'run', 'console-lock', '--', 'sh', '-c', 'echo held; exec sleep 60');
    await held.said;
    await shows(p, 'alive');
    await row(p, 'console-lock').getByRole('button', { name: 'console-lock' }).click();
    await shows(p, 'Highest fence', 'dialog[open]');
    await p.keyboard.press('Escape');
    await row(p, 'console-lock').getByRole('button', { name: 'Break…' }).click();
    await confirmed(p, 'console-lock', 'Break');
    await shows(p, 'No lock is held now');
    eq((await call(s, 'lock.inspect', { table: 'locks', name: 'console-lock' })).holders?.length ?? 0, 0);
    await held.end();
    await leave(p);
});

test('counters are added to, set and deleted', async () => {
    const s = await shop(), p = await open(s, '/counters');
    await press(p, 'Add to a counter…');
    await answer(p, { Counter: 'visits', 'How much': '41' }, 'Add');
    await shows(p, 'visits');
    await row(p, 'visits').getByRole('button', { name: 'Add…' }).click();
    await answer(p, { 'How much': 'x' }, 'Add');
    await shows(p, 'not a whole number', 'dialog[open]');
    await answer(p, { 'How much': '1' }, 'Add');
    await until(p, () => [...document.querySelectorAll('tr')].some((r) => r.innerText.includes('visits') && r.innerText.includes('42') && r.innerText.includes('+1')));
    run(s, 'counter', 'add', 'visits', '8'); /* another program: the page follows */
    await until(p, () => [...document.querySelectorAll('tr')].some((r) => r.innerText.includes('visits') && r.innerText.includes('50')));
    await row(p, 'visits').getByRole('button', { name: 'Set…' }).click();
    await confirmed(p, 'visits', 'Set');
    await shows(p, 'visits was 50', '.toasts');
    await row(p, 'visits').getByRole('button', { name: 'Delete…' }).click();
    await confirmed(p, 'visits', 'Delete');
    await hides(p, 'visits', '#view table');
    await leave(p);
});

test('counters beyond 2^53 keep all their digits', async () => {
    const s = await shop(), p = await open(s, '/counters?prefix=exact');
    const value = async () => String((await call(s, 'counter.get', { table: 'keys', id: 'exact' })).value);
    const line = (wanted) => until(p, (t) => [...document.querySelectorAll('#view tbody tr')].some((r) => r.innerText.includes('exact') && r.innerText.includes(t)), wanted);
    await press(p, 'Add to a counter…');
    await answer(p, { Counter: 'exact', 'How much': '9007199254740993' }, 'Add'); /* 2^53 + 1, which no double is */
    await shows(p, 'exact is 9,007,199,254,740,993 now', '.toasts');
    await line('9,007,199,254,740,993');
    eq(await value(), '9007199254740993');
    eq(await p.locator('.tile', { hasText: 'Sum' }).locator('strong').innerText(), '9,007,199,254,740,993');
    await row(p, 'exact').getByRole('button', { name: 'Add…' }).click();
    await answer(p, { 'How much': '2' }, 'Add');
    await line('9,007,199,254,740,995');
    await line('+2');
    await row(p, 'exact').getByRole('button', { name: 'Set…' }).click();
    await inDialog(p).getByLabel('New value', { exact: true }).fill('9223372036854775808');
    await inDialog(p).getByLabel('Type exact to confirm').last().fill('exact');
    await inDialog(p).getByRole('button', { name: 'Set', exact: true }).click();
    await shows(p, 'beyond what a counter holds', 'dialog[open]');
    await inDialog(p).getByLabel('New value', { exact: true }).fill('-9223372036854775807');
    await inDialog(p).getByRole('button', { name: 'Set', exact: true }).click();
    await shows(p, 'exact was 9,007,199,254,740,995, and is -9,223,372,036,854,775,807 now', '.toasts');
    await line('-9,223,372,036,854,775,807');
    await line('−9,232,379,236,109,516,800');
    eq(await value(), '-9223372036854775807');
    await call(s, 'counter.delete', { table: 'keys', id: 'exact' });
    await leave(p);
});

test('do-once records are shown, and forgotten', async () => {
    const s = await shop();
    await call(s, 'once.mark_done', { table: 'once', user: 'console', key: 'job-1', result: { cents: { N: '7' } } });
    const p = await open(s, '/once');
    await shows(p, 'job-1');
    await p.getByLabel('User').fill('console');
    await press(p, 'Show');
    await shows(p, 'job-1');
    await row(p, 'job-1').getByRole('button', { name: 'job-1' }).click();
    await shows(p, '"cents": 7', 'dialog[open]');
    await p.keyboard.press('Escape');
    await row(p, 'job-1').getByRole('button', { name: 'Forget…' }).click();
    await confirmed(p, 'job-1', 'Forget');
    await shows(p, 'No records');
    eq((await call(s, 'once.get', { table: 'once', user: 'console', key: 'job-1' })).state, 'none');
    await leave(p);
});

test('a limit is peeked at, counted, refunded and reset', async () => {
    const s = await shop(), rule = { kind: 'attempts', limit: 2, window_ms: 900000 };
    await call(s, 'limit.take', { table: 'limits', name: 'console/ann', rule });
    const p = await open(s, '/limits?prefix=console/');
    const mine = row(p, 'console/ann'), fields = { 'How many': '2', 'In which time': '15m' };
    await mine.getByRole('button', { name: 'Peek…' }).click();
    await answer(p, { ...fields, 'In which time': 'soon' }, 'Peek');
    await shows(p, 'is not a time', 'dialog[open]');
    await answer(p, fields, 'Peek');
    await until(p, () => [...document.querySelectorAll('dialog')].at(-1)?.innerText.includes('Nothing was counted'));
    ok((await inDialog(p).innerText()).includes('yes'), 'allowed');
    await p.keyboard.press('Escape');
    await until(p, () => !document.querySelector('dialog[open]'));
    await mine.getByRole('button', { name: 'Count one…' }).click();
    await answer(p, fields, 'Count');
    await until(p, () => [...document.querySelectorAll('dialog')].at(-1)?.innerText.includes('Refund it'));
    eq((await call(s, 'limit.peek', { table: 'limits', name: 'console/ann', rule })).left, 0, 'left after one more');
    await inDialog(p).getByRole('button', { name: 'Refund it' }).click();
    await until(p, () => !document.querySelector('dialog[open]'));
    eq((await call(s, 'limit.peek', { table: 'limits', name: 'console/ann', rule })).left, 1, 'left after the refund');
    await mine.getByRole('button', { name: 'Reset…' }).click();
    await confirmed(p, 'console/ann', 'Reset');
    await shows(p, 'Nothing was counted');
    await leave(p);
});

/* ---- keys and values, records, consumers ---------------------------------------------------- */

test('keys are set, changed unless somebody was faster, and deleted; sets', async () => {
    const s = await shop(), p = await open(s, '/kv?space=console');
    await shows(p, 'No keys');
    await press(p, 'Set a key…');
    await answer(p, { Id: 'motd', Value: '{"S": "<img src=x onerror=alert(1)>"}' }, 'Set');
    await shows(p, '<img src=x');
    await row(p, 'motd').getByRole('button', { name: 'Change…' }).click();
    run(s, 'kv', 'set', '-n', 'console', 'motd', 'faster', '--quiet');
    await answer(p, { Value: 'mine' }, 'Set');
    await until(p, () => document.querySelector('dialog[open] .note')?.innerText);
    await p.keyboard.press('Escape');
    await inDialog(p).getByRole('button', { name: 'Discard' }).click();
    await until(p, () => !document.querySelector('dialog[open]'));
    eq((await call(s, 'kv.get', { table: 'keys', space: 'console', id: 'motd' })).value, { S: 'faster' });
    await shows(p, 'faster');
    await row(p, 'motd').getByRole('button', { name: 'Change…' }).click();
    await answer(p, { Value: '12345678901234567890123456789012345678' }, 'Set');
    await shows(p, '12345678901234567890123456789012345678');
    await row(p, 'motd').getByRole('button', { name: 'Delete…' }).click();
    await confirmed(p, 'motd', 'Delete');
    await shows(p, 'No keys');
    await call(s, 'set.add', { table: 'keys', space: 'console', id: 'tags', elements: [{ S: 'a' }] });
    await press(p, 'Refresh');
    await row(p, 'tags').getByRole('button', { name: 'tags' }).click();
    await inDialog(p).getByRole('button', { name: 'Add an element…' }).click();
    await answer(p, { Element: 'b' }, 'Add');
    await shows(p, 'It has 2 elements now', '.toasts');
    eq((await call(s, 'set.get', { table: 'keys', space: 'console', id: 'tags' })).elements, [{ S: 'a' }, { S: 'b' }]);
    await call(s, 'kv.delete', { table: 'keys', space: 'console', id: 'tags' });
    await leave(p);
});

test('records: what failed and why, processed again', async () => {
    const s = await shop();
    for (const n of [1, 2, 3])
        await call(s, 'records.put', { table: 'Records', record: { AccountId: { S: `A${n}` }, RunTime: { S: '2026-11-19T12:00:00Z' } } });
    spawnSync(command, ['records', 'process', '--exec', 'false', '--retries', '0', '--limit', '2', '--db', s.endpoint, '--quiet'], { env: environment, timeout: WAIT });
    const p = await open(s, '/records?tab=failed');
    const failed = (await call(s, 'records.count', { table: 'Records', state: 'failed' })).count;
    ok(failed >= 1, 'some failed');
    eq(await p.locator('tbody tr').count(), failed);
    await p.locator('tbody tr').first().getByRole('button', { name: 'Process again' }).click();
    await until(p, (n) => document.querySelectorAll('tbody tr').length === n, failed - 1);
    if (failed > 1) {
        await press(p, 'Process all failed ones again');
        await shows(p, 'Nothing failed');
    }
    await p.getByRole('link', { name: 'Unprocessed' }).click();
    await until(p, () => document.querySelectorAll('tbody tr').length === 3);
    await row(p, 'A2').getByRole('button', { name: 'Mark done' }).click();
    await until(p, () => document.querySelectorAll('tbody tr').length === 2);
    await row(p, 'A3').getByRole('button', { name: 'Delete…' }).click();
    await confirmed(p, 'A3', 'Delete');
    await until(p, () => document.querySelectorAll('tbody tr').length === 1);
    await leave(p);
});

test('consumers of streams show how far they are', async () => {
    const s = await shop();
    await s.call('CreateTable', { TableName: 'watched', BillingMode: 'PAY_PER_REQUEST', AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }], KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
        StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' } });
    await s.call('PutItem', { TableName: 'watched', Item: { id: { S: 'a' } } });
    run(s, 'streams', 'tail', 'watched', '--name', 'audit');
    const p = await open(s, '/consumers');
    await shows(p, 'has caught up');
    await s.call('PutItem', { TableName: 'watched', Item: { id: { S: 'a' }, n: { N: '2' } } });
    await press(p, 'Refresh');
    await shows(p, '1 changes behind');
    await leave(p);
});

/* ---- insight, tests, remote ----------------------------------------------------------------- */

test('live requests: shown, filtered, paused, copied as a test that runs', async () => {
    const s = await shop(), p = await open(s, '/live');
    await shows(p, 'No request yet');
    const grid = p.getByRole('grid', { name: 'Requests' });
    await until(p, async () => {
        await fetch('/', { method: 'POST', headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'DynamoDB_20120810.GetItem', 'x-amz-date': '20260101T000000Z',
            authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=' + '0'.repeat(64) },
        body: JSON.stringify({ TableName: 'sales', Key: { customer: { S: 'ann' } } }) });
        return document.querySelector('[role=grid] tbody tr[data-i]');
    });
    await s.call('Scan', { TableName: 'orders' });
    await grid.locator('tr', { hasText: 'Scan' }).first().waitFor();
    await p.getByLabel('Search').fill('orders');
    await until(p, () => [...document.querySelectorAll('[role=grid] tr[data-i]')].every((r) => r.innerText.includes('orders')));
    await press(p, 'Pause');
    const before = await grid.locator('tr[data-i]').count();
    await s.call('Scan', { TableName: 'orders' });
    await shows(p, 'came since');
    eq(await grid.locator('tr[data-i]').count(), before, 'rows while paused');
    await press(p, 'Go on');
    await until(p, (n) => document.querySelectorAll('[role=grid] tr[data-i]').length > n, before);
    await grid.locator('tr[data-i]').first().click();
    const copied = await inDialog(p).locator('.code pre').innerText();
    ok(copied.includes('def test_scan()') && copied.includes('"orders"'), copied);
    await inDialog(p).getByLabel('Copy as').selectOption('holdfast');
    const line = await inDialog(p).locator('.code pre').innerText(), told = (text) => spawnSync('sh', ['-c', text], { encoding: 'utf8', timeout: WAIT, env: { ...environment, PATH: `${path.dirname(command)}:${process.env.PATH}` } });
    eq(line, `holdfast scan --db ${s.endpoint} orders`);
    eq(told(line).status, 0, 'the copied command');
    await inDialog(p).getByLabel('Copy as').selectOption('aws');
    ok((await inDialog(p).locator('.code pre').innerText()).startsWith('aws dynamodb scan --endpoint-url'), 'aws');
    fs.writeFileSync(path.join(dir, 'test_scan.py'), copied + '\n\ntest_scan()\nprint("passed")\n');
    const ran = spawnSync('python3', [path.join(dir, 'test_scan.py')], { encoding: 'utf8', timeout: WAIT, env: environment });
    ok(ran.stdout.includes('passed') || /No module named 'boto3'/.test(ran.stderr), `the copied test: ${ran.stderr}`);

    await p.keyboard.press('Escape');
    await p.getByLabel('Search').fill('');
    await s.call('GetItem', { TableName: 'orders', Key: { wrong: { S: 'x' } } }).catch(() => { });
    await p.getByLabel('Failed only').check();
    await grid.locator('tr', { hasText: '400' }).first().waitFor();
    await until(p, () => [...document.querySelectorAll('[role=grid] tr[data-i]')].every((r) => r.innerText.includes('400')));
    await p.getByLabel('Failed only').uncheck();
    await p.getByLabel('Operation').selectOption('Scan');
    await until(p, () => ((all) => all.length && all.every((r) => r.innerText.includes('Scan')))([...document.querySelectorAll('[role=grid] tr[data-i]')]));

    /* The command of each operation that has one, with a key that a shell and its options would take for something else. */
    await s.call('CreateTable', { TableName: 'words', BillingMode: 'PAY_PER_REQUEST', AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }], KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }] });
    const forms = await p.evaluate(async () => {
        const { copies } = await import('/console/views/live.js'), out = {};
        for (const operation of ['ListTables', 'DescribeTable', 'PutItem', 'GetItem', 'Query', 'UpdateItem', 'DeleteItem', 'TransactWriteItems'])
            out[operation] = Object.fromEntries(await copies({ operation, status: 200, table: operation === 'ListTables' ? undefined : 'words', key: '--it\'s "$HOME"' })).holdfast;
        return out;
    });
    eq(forms.TransactWriteItems, undefined, 'the command has no such transaction');
    for (const [operation, form] of Object.entries(forms).filter(([, one]) => one)) {
        const { status, stdout, stderr } = told(form);
        ok(status === 0, `${form}: ${stderr}`);
        if (operation === 'GetItem' || operation === 'Query')
            ok(JSON.parse(stdout).id === '--it\'s "$HOME"', `${form}: ${stdout}`);
    }
    eq((await s.call('Scan', { TableName: 'words' })).Count, 0, 'the last one deletes it');
    await s.call('DeleteTable', { TableName: 'words' });
    await leave(p);
});

test('a scan that reads 100 times what it returns gives advice', async () => {
    const s = await server(), S = (text) => ({ S: text });
    await s.call('CreateTable', { TableName: 'big', BillingMode: 'PAY_PER_REQUEST', AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }], KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }] });
    for (let n = 0; n < 8; n++)
        await s.call('BatchWriteItem', { RequestItems: { big: Array.from({ length: 25 }, (_, i) => ({ PutRequest: { Item: { id: S(`${n}/${i}`), who: S(i === 7 && n === 0 ? 'ann' : 'ben') } } })) } });
    await s.call('PutItem', { TableName: 'big', Item: { id: S('large'), text: S('x'.repeat(390 * 1024)) } });
    const p = await open(s, '/insight');
    await shows(p, 'An item of big has');
    const scan = { TableName: 'big', FilterExpression: 'who = :w', ExpressionAttributeValues: { ':w': S('ann') } };
    for (let i = 0; i < 3 && !(await text(p)).includes('read 2'); i++) { /* the stream may not be open for the first */
        await s.call('Scan', scan);
        await p.waitForFunction(() => document.querySelector('#view').innerText.includes('Scan of big read'), null, { timeout: 5000 }).catch(() => { });
    }
    await shows(p, 'Scan of big read');
    await shows(p, 'An index whose hash key');
    const hottest = p.getByRole('region', { name: 'Top partitions' });
    for (let i = 0; i < 20 && !(await hottest.getByText('large').count()); i++) { /* rates are of the last seconds */
        await Promise.all(Array.from({ length: 50 }, () => s.call('GetItem', { TableName: 'big', Key: { id: S('large') } })));
        await press(p, 'Refresh');
        await until(p, () => !document.querySelector('#view [aria-busy=true]'));
    }
    eq(await hottest.locator('tbody tr').first().locator('th').innerText(), 'large');
    ok((await p.getByRole('region', { name: 'Largest items' }).locator('tbody tr').first().innerText()).includes('large'), 'the largest item');
    await leave(p);
});

test('the clock, faults, snapshots and maintenance', async () => {
    const s = await server(), S = (text) => ({ S: text });
    await s.call('CreateTable', { TableName: 'ttt', BillingMode: 'PAY_PER_REQUEST', AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }], KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }] });
    await s.call('UpdateTimeToLive', { TableName: 'ttt', TimeToLiveSpecification: { Enabled: true, AttributeName: 'end' } });
    await s.call('PutItem', { TableName: 'ttt', Item: { id: S('short'), end: { N: String(Math.round(Date.now() / 1000) + 1800) } } });
    const p = await open(s, '/tests');
    await press(p, 'Take a snapshot…');
    await answer(p, { Name: 'not good' }, 'Take');
    await shows(p, 'letters, digits', 'dialog[open]');
    await answer(p, { Name: 'fresh' }, 'Take');
    await shows(p, 'fresh');

    await press(p, '+1 h');
    await shows(p, '+60 min');
    await press(p, 'Do it now');
    await until(p, () => /done|due/.test(document.querySelector('.jobs')?.innerText || ''));
    eq((await s.call('Scan', { TableName: 'ttt' })).Count, 0, 'expired');
    await press(p, 'Reset to the true time');
    await shows(p, 'which is the true time');
    await press(p, 'Advance…');
    await answer(p, { 'By how much': '2d' }, 'Advance');
    await shows(p, '+2 days');

    await press(p, 'Add a fault…');
    await answer(p, { Kind: 'throttle', Operation: 'PutItem', 'At most this often': '1' }, 'Add');
    await shows(p, 'PutItem, at most 1 times');
    ok(await s.call('PutItem', { TableName: 'ttt', Item: { id: S('x') } }).then(() => false, (error) => /Throughput|Throttl/.test(error.message)), 'the fault strikes');
    await press(p, 'Count again');
    await until(p, () => [...document.querySelectorAll('tr')].some((r) => /throttle/.test(r.innerText) && /\b1\b/.test(r.querySelectorAll('td')[1]?.innerText || '')));
    await press(p, 'Clear all');
    await hides(p, 'at most 1 times');
    await s.call('PutItem', { TableName: 'ttt', Item: { id: S('later') } });

    await row(p, 'fresh').getByRole('button', { name: 'Restore…' }).click();
    await confirmed(p, 'fresh', 'Restore');
    await shows(p, 'as it was at fresh', '.jobs');
    eq((await s.call('GetItem', { TableName: 'ttt', Key: { id: S('later') } })).Item, undefined, 'what was written since is gone');
    await row(p, 'fresh').getByRole('button', { name: 'Delete…' }).click();
    await confirmed(p, 'fresh', 'Delete');
    await hides(p, 'fresh', '#view table');
    await leave(p);
});

test('without --admin, the view says how to start a server for tests', async () => {
    const child = start({ endpoint: '' }, 'serve', '--in-memory', '--port', '0');
    const endpoint = /serves on (http\S+)/.exec(await child.said)[1];
    const p = await open({ endpoint }, '/tests');
    await shows(p, 'no clock, faults and snapshots to set');
    await shows(p, 'holdfast serve --in-memory --admin --port 0');
    eq(await p.locator('#view button').allInnerTexts(), ['Copy']);
    const answer = await p.evaluate(async () => (await fetch('/_holdfast/clock', { method: 'PUT', body: '{"advance_s": 60}' })).status);
    ok(answer >= 400, `the server refuses it as well: ${answer}`);
    await leave(p);
    await child.end();
});

test('remote: another server is looked at, and not written', async () => {
    const s = await server(), S = (text) => ({ S: text });
    await s.call('CreateTable', { TableName: 'far', BillingMode: 'PAY_PER_REQUEST', AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }], KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }] });
    await s.call('PutItem', { TableName: 'far', Item: { id: S('one'), text: S('from far') } });
    const remote = async (...more) => {
        const child = start(s, 'console', '--db', s.endpoint, ...more);
        return { ...child, endpoint: /(http:\S+)\/console\//.exec(await child.said)[1] };
    };
    const put = (p, id) => p.evaluate(async (key) => {
        const { db } = await import('/console/lib/client.js');
        return db('PutItem', { TableName: 'far', Item: { id: { S: key } } }).then(() => 'done', (problem) => problem.code);
    }, id);
    let far = await remote(), p = await open(far, '/remote');
    await shows(p, 'A remote database', '#head h1');
    await shows(p, s.endpoint);
    await shows(p, 'read-only');
    await shows(p, 'Reading costs there');
    await visit(p, far.endpoint, '/tables/far/items');
    await row(p, 'from far').first().waitFor();
    ok(await p.getByRole('button', { name: 'New item' }).isDisabled(), 'nothing to press');
    eq(await put(p, 'two'), 'AccessDeniedException');
    const refused = await p.evaluate(async () => {
        const { method } = await import('/console/lib/client.js');
        return method('counter.add', { table: 'keys', id: 'x', by: 1 }).then(() => 'done', (problem) => problem.code);
    });
    ok(refused !== 'done', 'a pattern');
    eq(await s.call('Scan', { TableName: 'far', Select: 'COUNT' }).then((all) => all.Count), 1);
    eq((await s.call('ListTables')).TableNames, ['far'], 'nor was a table made');
    await visit(p, far.endpoint, '/tests');
    await shows(p, 'The database is remote');
    await leave(p);
    await far.end();

    far = await remote('--write');
    p = await open(far, '/remote');
    await shows(p, 'A remote database', '#head h1');
    eq(await p.locator('#view .badge', { hasText: 'read-only' }).count(), 0);
    eq(await put(p, 'two'), 'done');
    eq((await s.call('GetItem', { TableName: 'far', Key: { id: S('two') } })).Item, { id: S('two') });
    await leave(p);
    await far.end();
});

/* ---- what else can be pressed ---------------------------------------------------------------- */

test('an event is emitted with headers, urgent and later; what waits and the history are filtered', async () => {
    const s = await shop(), table = 'forms', p = await open(s, '/patterns');
    await call(s, 'outbox.emit', { table, events: [{ type: 'old.one', key: 'o', payload: '{}' }] });
    await visit(p, s.endpoint, `/outbox?table=${table}&tab=waiting`);
    await press(p, 'Emit a test event');
    await answer(p, { Type: 'shop.later', Key: 'k', Payload: 'no json', Headers: '{"from": {"S": "a person"}}', 'Deliver after (seconds)': '3600' }, 'Emit');
    await shows(p, 'shop.later');
    await press(p, 'Emit a test event');
    await inDialog(p).getByLabel('Urgent: before all events that are not').check();
    await answer(p, { Type: 'shop.now', Key: 'k2' }, 'Emit');
    await shows(p, 'shop.now');
    const { events } = await call(s, 'outbox.pending', { table, not_due_too: true }), of = (type) => events.find((e) => e.type === type);
    eq([of('shop.later').payload, of('shop.later').content_type, of('shop.later').headers], ['no json', 'text/plain', { from: { S: 'a person' } }]);
    ok(Number(of('shop.later').due_us) > (Date.now() + 3000000) * 1000, 'in an hour');
    eq([of('shop.now').urgent, of('shop.later').urgent ?? false], [true, false]);
    await row(p, 'shop.later').getByRole('button', { name: 'shop.later' }).click();
    await shows(p, 'a person', 'dialog[open]');
    await p.keyboard.press('Escape');
    const filter = async (label, value) => {
        await p.getByLabel(label, { exact: true }).fill(value);
        await press(p, 'Show');
        await until(p, () => document.querySelector('#view > .view[data-ready="1"]') && !document.querySelector('#view [aria-busy=true]'));
    };
    await filter('Type (order.*)', 'shop.*');
    await shows(p, '2 events');
    await hides(p, 'old.one');
    await filter('Key', 'k2');
    await shows(p, '1 event');
    await shows(p, 'shop.now');
    run(s, 'outbox', 'drain', '--table', table, '--to', `file:${path.join(dir, 'forms')}`, '--history', '1h');
    await visit(p, s.endpoint, `/outbox?table=${table}&tab=history`);
    await shows(p, '2 events');
    await filter('Key', 'o');
    await shows(p, '1 event');
    await press(p, 'Deliver again…');
    await inDialog(p).getByLabel('Only of the last hours', { exact: true }).fill('many');
    await inDialog(p).getByLabel(`Type ${table} to confirm`).fill(table);
    await inDialog(p).getByRole('button', { name: 'Deliver again', exact: true }).click();
    await shows(p, 'is not a number of hours', 'dialog[open]');
    await inDialog(p).getByLabel('Only of the last hours', { exact: true }).fill('2');
    await inDialog(p).getByRole('button', { name: 'Deliver again', exact: true }).click();
    await shows(p, '1 event is emitted again', '.jobs');
    eq((await call(s, 'outbox.pending', { table })).events.map((e) => e.type), ['old.one'], 'of that key only');
    await leave(p);
});

test('more than a page of events that wait: the rest is shown when it is asked for', async () => {
    const s = await shop(), table = 'long';
    for (let i = 0; i < 3; i++)
        await call(s, 'outbox.emit', { table, events: Array.from({ length: 80 }, (_, n) => ({ type: 'n', payload: String(80 * i + n) })) });
    const p = await open(s, `/outbox?table=${table}&tab=waiting`);
    await shows(p, '50 events, and more.');
    await press(p, 'Show more');
    await shows(p, '240 events');
    await hides(p, 'and more.');
    eq(await p.locator('#view tbody tr').count(), 240, 'rows');
    await leave(p);
});

test('a selection of dead letters is retried; from a cause one gets back to all', async () => {
    const s = await shop();
    await deadLetters(s, 'dead3', 4);
    const p = await open(s, '/outbox?table=dead3&tab=failed'), letters = () => p.getByRole('region', { name: 'Dead letters' }).locator('tbody tr');
    await p.getByRole('region', { name: 'Causes' }).getByRole('link').first().click();
    await until(p, () => document.querySelectorAll('[aria-label="Dead letters"] tbody tr').length === 2);
    await p.getByRole('link', { name: 'All causes' }).click();
    await until(p, () => document.querySelectorAll('[aria-label="Dead letters"] tbody tr').length === 4);
    await letters().nth(0).getByRole('checkbox').check();
    await letters().nth(1).getByRole('checkbox').check();
    await shows(p, '2 selected');
    await p.getByRole('group', { name: 'Actions for dead letters' }).getByRole('button', { name: 'Retry', exact: true }).click();
    await shows(p, '2 wait to be delivered again', '.toasts');
    await until(p, () => document.querySelectorAll('[aria-label="Dead letters"] tbody tr').length === 2);
    eq((await call(s, 'outbox.stats', { table: 'dead3' })).pending, 2);
    await leave(p);
});

test('all parked events are replayed, or discarded; versions of a stream one after the other', async () => {
    const s = await shop(), program = path.join(dir, 'park-all.sh');
    fs.writeFileSync(program, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    const { ids } = await call(s, 'events.append', { table: 'events', domain: 'lot', id: '1', events: [{ type: 'lot.one' }, { type: 'lot.two' }] });
    const parked = async (name) => (await call(s, 'events.parked', { table: 'events', name })).events;
    for (const name of ['again', 'never']) {
        spawnSync(command, ['events', 'subscribe', '--name', name, '--domain', 'lot', '--exec', program, '--attempts', '1', '--until-end', '--park', '--db', s.endpoint], { env: environment, timeout: WAIT });
        eq((await parked(name)).length, 2, name);
    }
    const p = await open(s, '/events?tab=subscriptions&name=again');
    await press(p, 'Replay all');
    await shows(p, '2 are handled again', '.toasts');
    eq((await parked('again')).map((e) => e.replay), [true, true]);
    await p.getByRole('link', { name: '← all subscriptions' }).click();
    await row(p, 'never').getByRole('link', { name: '2', exact: true }).click();
    await press(p, 'Discard all…');
    await confirmed(p, 'never', 'Discard');
    await shows(p, 'all events were handled');
    eq((await parked('never')).length, 0);

    await visit(p, s.endpoint, `/events?table=events&event=${ids[0]}`);
    await shows(p, 'lot.one');
    await p.getByRole('link', { name: 'version 2 →' }).click();
    await shows(p, 'lot.two', '#view h2');
    await p.getByRole('link', { name: '← version 1' }).click();
    await shows(p, 'lot.one', '#view h2');
    await visit(p, s.endpoint, '/events?tab=all&type=lot.*');
    await shows(p, '2 events, the oldest first');
    await p.getByLabel('Type (order.*)', { exact: true }).fill('lot.two');
    await press(p, 'Show');
    await shows(p, '1 event, the oldest first');
    await leave(p);
});

test('one of two holders of a lock is broken; free locks and names are filtered', async () => {
    const s = await shop();
    const before = start(s, 'lock', 'run', 'of-before', '--', 'echo', 'held');
    await before.said;
    await before.end();
    const hold = (owner) => start(s, 'lock', 'run', '--shared', '--owner', owner, 'of-two', '--', 'sh', '-c', 'echo held; exec sleep 60');
    const held = [hold('ann'), hold('ben')];
    await Promise.all(held.map((one) => one.said));
    const p = await open(s, '/locks?prefix=of-');
    await shows(p, 'of-two');
    await hides(p, 'of-before');
    await row(p, 'of-two').getByRole('button', { name: 'of-two' }).click();
    await inDialog(p).locator('tr', { hasText: 'ben' }).getByRole('button', { name: 'Break…' }).click();
    await confirmed(p, 'of-two', 'Break');
    await shows(p, 'The lock of-two is broken.', '.toasts');
    eq((await call(s, 'lock.inspect', { table: 'locks', name: 'of-two' })).holders.map((one) => one.owner), ['ann']);
    await p.keyboard.press('Escape');
    await p.getByLabel(/free/i).check();
    await shows(p, 'of-before');
    await Promise.all(held.map((one) => one.end()));
    await leave(p);
});

test('an element is taken from a set; keys of a prefix', async () => {
    const s = await shop(), at = { table: 'keys', space: 'sets', id: 'colours' };
    await call(s, 'set.add', { ...at, elements: [{ S: 'red' }, { S: 'green' }, { N: '7' }] });
    await call(s, 'kv.set', { table: 'keys', space: 'sets', id: 'other', value: { S: 'x' } });
    const p = await open(s, '/kv?space=sets&prefix=col');
    await shows(p, '1 key');
    await hides(p, 'other', '#view table');
    const remove = async (element, told) => {
        await row(p, 'colours').getByRole('button', { name: 'colours' }).click();
        await inDialog(p).getByRole('button', { name: 'Remove an element…' }).click();
        await answer(p, { Element: element }, 'Remove');
        await shows(p, told, '.toasts');
        await p.keyboard.press('Escape');
        await until(p, () => !document.querySelector('dialog[open]'));
    };
    await remove('red', 'It has 2 elements now');
    await remove('7', 'It has 1 element now');
    await remove('blue', 'Nothing changed.');
    eq((await call(s, 'set.get', at)).elements, [{ S: 'green' }]);
    await leave(p);
});

test('do-once by user and state; a limit that locks out; records of a selection', async () => {
    const s = await shop();
    await call(s, 'once.mark_done', { table: 'once', user: 'filters', key: 'mine-1', result: {} });
    await call(s, 'once.mark_done', { table: 'once', user: 'filters', key: 'other-1', result: {} });
    const p = await open(s, '/once?user=filters&prefix=mine');
    await shows(p, 'mine-1');
    await hides(p, 'other-1');
    await p.getByLabel('State', { exact: true }).selectOption('failed');
    await shows(p, 'None is like that.');

    await visit(p, s.endpoint, '/limits?prefix=locked/');
    await p.locator('#head').getByRole('button', { name: 'Peek…' }).click();
    await answer(p, { Name: 'locked/eve', Kind: 'attempts', 'How many': '1', 'In which time': '15m', Lockout: '1h' }, 'Peek');
    await shows(p, 'Nothing was counted.', 'dialog[open] .facts ~ p');
    await inDialog(p).getByRole('button', { name: 'Close' }).last().click();
    const rule = { kind: 'attempts', limit: 1, window_ms: 900000, lockout_ms: 3600000 };
    for (let i = 0; i < 2; i++)
        await call(s, 'limit.take', { table: 'limits', name: 'locked/eve', rule });
    await press(p, 'Refresh');
    await shows(p, 'until');
    await row(p, 'locked/eve').getByRole('button', { name: 'Count one…' }).click();
    await answer(p, { 'How many': '1', 'In which time': '15m', Lockout: '1h' }, 'Count');
    await until(p, () => [...document.querySelectorAll('dialog')].at(-1)?.innerText.includes('no, locked out'));
    ok(!await inDialog(p).getByRole('button', { name: 'Refund it' }).count(), 'nothing to refund');
    await inDialog(p).getByRole('button', { name: 'Close' }).last().click();

    for (const n of [1, 2, 3])
        await call(s, 'records.put', { table: 'Records', record: { AccountId: { S: `S${n}` }, RunTime: { S: '2026-11-20T12:00:00Z' } } });
    spawnSync(command, ['records', 'process', '--exec', 'false', '--retries', '0', '--limit', '9', '--db', s.endpoint, '--quiet'], { env: environment, timeout: WAIT });
    const states = async () => (await call(s, 'records.list', { table: 'Records', state: 'failed' })).records.map((one) => one.account);
    ok((await states()).includes('S1'), 'failed');
    await visit(p, s.endpoint, '/records?tab=failed');
    await row(p, 'S1').getByRole('checkbox').check();
    await row(p, 'S3').getByRole('checkbox').check();
    await shows(p, '2 selected');
    await p.locator('#view .bar').getByRole('button', { name: 'Process again', exact: true }).click();
    await shows(p, '2 records are unprocessed again', '.jobs');
    eq((await states()).filter((account) => account.startsWith('S')), ['S2']);
    await leave(p);
});

test('one fault of two is removed; the clock is set to a time', async () => {
    const s = await server(), p = await open(s, '/tests');
    for (const [kind, operation] of [['latency', 'GetItem'], ['throttle', 'PutItem']]) {
        await press(p, 'Add a fault…');
        await answer(p, { Kind: kind, Operation: operation, ...(kind === 'latency' ? { 'Latency (ms)': '5' } : {}) }, 'Add');
        await row(p, operation).waitFor();
    }
    await row(p, 'GetItem').getByRole('button', { name: 'Remove' }).click();
    await row(p, 'GetItem').waitFor({ state: 'detached' });
    const left = await p.evaluate(async () => (await import('/console/lib/client.js')).api('/_holdfast/faults'));
    eq(left.faults.map((f) => [f.kind, f.operation]), [['throttle', 'PutItem']]);
    await press(p, 'Set…');
    await answer(p, { Time: 'noon' }, 'Set');
    await shows(p, 'is not a time', 'dialog[open]');
    const then = new Date(Date.now() + 40 * 86400000);
    await answer(p, { Time: then.toISOString() }, 'Set');
    await until(p, () => !document.querySelector('dialog[open]'));
    await shows(p, '+', '#view .badge');
    const { now } = await p.evaluate(async () => (await import('/console/lib/client.js')).api('/_holdfast/clock'));
    ok(Math.abs(now - then.getTime() / 1000) < 600, `${now}`);
    await leave(p);
});

test('live requests: cleared, and of this console too', async () => {
    const s = await server(), p = await open(s, '/live');
    await until(p, async () => {
        const { db } = await import('/console/lib/client.js');
        await db('ListTables');
        return document.querySelector('[role=grid] tbody tr[data-i]');
    });
    await s.call('GetItem', { TableName: 'nowhere', Key: { id: { S: 'x' } } }).catch(() => { });
    await p.locator('tr[data-i]', { hasText: 'ResourceNotFoundException' }).first().waitFor();
    await p.locator('tr[data-i]', { hasText: 'ResourceNotFoundException' }).first().click();
    await shows(p, '400 ResourceNotFoundException', 'dialog[open]');
    ok((await inDialog(p).locator('.code pre').innerText()).includes('pytest.raises(ClientError)'), 'a test of a failure');
    await p.keyboard.press('Escape');
    await press(p, 'Clear');
    await until(p, () => !document.querySelector('[role=grid] tbody tr[data-i]'));
    await leave(p);
});

test('a read-only server: looking works, and nothing can be pressed that writes', async () => {
    const copy = path.join(dir, 'copy');
    const made = spawnSync(command, ['demo', '--quick', '--db', copy, '--quiet'], { encoding: 'utf8', timeout: WAIT });
    ok(made.status === 0, made.stderr);
    const s = await server('--db-path', copy, '--read-only'), p = await open(s, '/remote');
    await shows(p, 'read-only');
    for (const view of ['patterns', 'outbox', 'outbox?tab=failed', 'outbox?tab=relays', 'events', 'events?tab=subscriptions', 'locks?free=1', 'counters', 'once', 'limits', 'kv']) {
        await visit(p, s.endpoint, `/${view}`);
        await until(p, () => !document.querySelector('#view [aria-busy=true]'));
        ok(!(await p.locator('.state.problem').count()), `${view}: ${await text(p)}`);
        const able = await p.locator('#page button:enabled').allInnerTexts();
        eq(able.filter((name) => /^(Emit|Retry|Discard|Pause|Resume|Rebuild|Forget|Break|Add|Set|Delete|Change|Count one|Reset|Edit)/.test(name)), [], view);
    }
    await leave(p);
});
