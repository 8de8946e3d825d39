/*
 * ledger.test.js: several processes, some of which are killed in the middle of a handler: every event is
 * handled, none is lost, and what a lock or once() protects happens once.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { spawn } = require('child_process');
const { once } = require('events');
const { open, startServer } = require('holdfast');

let server, db;
test.before(async () => {
    server = await startServer();
    db = await open(server.endpoint);
    await db.createTable('ledger', { key: { id: 'string' } });
});
test.after(async () => {
    await db.close();
    await server.stop();
});

/* A process that runs `body`; it prints lines. */
function start(body) {
    const child = spawn(process.execPath, ['-e', `
        const { open } = require('holdfast');
        (async () => {
            const db = await open(process.argv[1]);
            ${body}
        })().catch((error) => { console.error(error); process.exit(1); });`, server.endpoint],
    { cwd: __dirname, stdio: ['pipe', 'pipe', 'inherit'] });
    child.lines = 0;
    child.stdout.on('data', (text) => (child.lines += String(text).split('\n').length - 1));
    child.ended = once(child, 'close').then(([code, signal]) => signal ?? code);
    child.printed = async (n) => {
        while (child.lines < n) {
            assert(child.exitCode === null && child.signalCode === null, `ended with ${child.exitCode ?? child.signalCode}`);
            await soon();
        }
    };
    return child;
}

/* Before it is looked again. */
const soon = () => new Promise((resolve) => setTimeout(resolve, 20));

const stopAtEnd = "process.stdin.on('end', () => stop()).resume();";

test('bus: handlers are killed, no event is lost', async () => {
    const handler = `
        const bus = db.outbox().bus();
        let stop = async () => { await bus.stop(); await db.close(); };
        bus.on('*', async (event) => {
            await db.update('ledger', { id: event.payload }, { add: { times: 1 } });
            console.log(event.payload);
        });
        await bus.start({ pollMs: 10, backoffMs: 5, leaseMs: 1000, heartbeatMs: 100 });
        ${stopAtEnd}`;
    const box = db.outbox();
    const ids = Array.from({ length: 120 }, (_, i) => `e${i}`);
    const victims = [start(handler), start(handler)];
    for (let i = 0; i < ids.length; i += 10)
        await box.emit(ids.slice(i, i + 10).map((payload, n) => ({ type: 't', key: `k${n}`, payload })));
    for (const victim of victims) {
        await Promise.race(victims.filter((each) => each.signalCode === null).map((each) => each.printed(1)));
        victim.kill('SIGKILL');
        await victim.ended;
    }
    const last = start(handler);
    for (;;) {
        const { pending = 0 } = await box.stats();
        if (Number(pending) === 0)
            break;
        await soon();
    }
    last.stdin.end();
    assert.strictEqual(await last.ended, 0);
    const found = new Map((await db.scan('ledger').all()).map(({ id, times }) => [id, times]));
    assert.deepStrictEqual(ids.filter((id) => !found.has(id)), []);
});

test('once: whoever does it is killed, and another does it', async () => {
    const victim = start(`
        await db.once('bill-7', () => { console.log('begun'); return new Promise(() => {}); }, { attemptMs: 500, heartbeatMs: 50 });`);
    await victim.printed(1);
    assert.strictEqual((await db.onceState('bill-7')).state, 'running');
    victim.kill('SIGKILL');
    await victim.ended;
    const results = await Promise.all([1, 2, 3].map(() => db.once('bill-7', () => 'billed', { pollMs: 20 })));
    assert.deepStrictEqual(results, ['billed', 'billed', 'billed']);
});

test('lock: its holder is killed, another gets it with a higher fence', async () => {
    const victim = start(`
        const held = await db.lock('leader', { leaseMs: 3000, heartbeatMs: 100 });
        await db.put('ledger', { id: 'fence', fence: held.fence });
        console.log('held');`);
    await victim.printed(1);
    const { fence } = await db.get('ledger', { id: 'fence' });
    assert.strictEqual(await db.tryLock('leader'), undefined);
    victim.kill('SIGKILL');
    await victim.ended;
    const held = await db.lock('leader', { pollMs: 20, timeoutMs: 60000 });
    assert(held.fence > BigInt(fence));
    await held.release();
});

test('event store: two processes compete for a subscription; the view counts each event once', async () => {
    const body = `
        const view = await db.events().project('totals', async (tx, event) => {
            tx.update('ledger', { id: 'total' }, { add: { total: event.data } });
            console.log(event.data);
        }, { pollMs: 10, backoffMs: 5, leaseMs: 500, heartbeatMs: undefined });
        let stop = async () => { await view.stop(); await db.close(); };
        ${stopAtEnd}`;
    const store = db.events();
    const append = async (n) => {
        for (let i = 0; i < n; i++)
            await store.append(`s/${i % 3}`, { type: 't', data: 1 });
    };
    await append(10);
    const first = start(body);
    await first.printed(3);
    first.kill('SIGKILL');
    const second = start(body);
    await append(10);
    for (;;) {
        const { total } = await db.get('ledger', { id: 'total' });
        assert(total <= 20, `${total} of 20`);
        if (total === 20)
            break;
        await soon();
    }
    second.stdin.end();
    assert.strictEqual(await second.ended, 0);
});
