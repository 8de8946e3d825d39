/*
 * failures.test.js: what goes wrong beside the work of a handler: its error, its answer, whoever is told.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { spawnSync } = require('child_process');
const { open, HoldfastError, PermanentError } = require('holdfast');

const LONG = { timeout: 60000 };
const FAST = { pollMs: 5, backoffMs: 1 };

/* From now on that method fails, so many times. */
function failing(db, method, code, times = 1) {
    const { connection } = db;
    const call = connection.call;
    connection.call = function (name, ...rest) {
        if (name === method && times-- > 0)
            return Promise.reject(new HoldfastError(code, `${method} fails`));
        return call.call(this, name, ...rest);
    };
}

const sessionsOf = async (db) => (await db.connection.call('session.list', {})).sessions ?? [];

test('an onError that throws is an uncaught exception, and deliveries go on', LONG, () => {
    const { stdout, status } = spawnSync(process.execPath, ['-e', `
        const { open, PermanentError } = require('holdfast');
        (async () => {
            const db = await open('memory:');
            const box = db.outbox();
            process.once('uncaughtException', (error, origin) => {
                console.log(origin, error.message);
                box.emit({ type: 'good' });
            });
            const bus = box.bus().on('poison', () => { throw new PermanentError('bad'); });
            bus.on('good', (event) => { console.log(event.type); setImmediate(() => db.close()); });
            await bus.start({ pollMs: 5, onError: () => { throw new Error('no log'); } });
            await box.emit({ type: 'poison' });
        })();`], { cwd: __dirname, encoding: 'utf8', timeout: 50000 });
    assert.strictEqual(stdout, 'uncaughtException no log\ngood\n');
    assert.strictEqual(status, 0);
});

test('when deliveries cannot be asked for, it is told, and they are asked for again', LONG, async () => {
    const db = await open('memory:');
    const box = db.outbox();
    const errors = [];
    let handled;
    const done = new Promise((resolve) => (handled = resolve));
    failing(db, 'session.next', 'HF_NOMEM', 2);
    const bus = await box.bus().on('*', () => handled()).start({ ...FAST, onError: (error) => errors.push(error.code) });
    await box.emit({ type: 'good' });
    await done;
    assert.deepStrictEqual(errors, ['HF_NOMEM', 'HF_NOMEM']);
    await bus.stop();
    await db.close();
});

test('whatever a handler throws, its delivery is answered', LONG, async () => {
    const db = await open('memory:');
    const records = db.records();
    const hostile = { permanent: true, get message() { throw new Error('never'); } };
    const thrown = [
        new PermanentError(`${'x'.repeat(999)}\u{1f600}`), new PermanentError('half: \ud83d'), hostile,
        Object.assign(Object.create(null), { permanent: true }), { permanent: true, message: Symbol('s') },
    ];
    for (const i of thrown.keys())
        await records.put({ AccountId: `a${i}`, RunTime: '2026-01-01', i });
    const processing = await records.process(async ({ item }) => { throw thrown[item.i]; }, FAST);
    await processing.ended;
    const texts = [];
    for await (const record of records.list({ state: 'failed' }))
        texts[Number(record.account.slice(1))] = record.errorText;
    assert.strictEqual(texts.length, thrown.length);
    assert.match(texts[0], /^x{999}/);
    assert.match(texts[1], /^half: /);
    await db.close();
});

test('an answer that cannot be sent is told, and the delivery comes again', LONG, async () => {
    const db = await open('memory:');
    const box = db.outbox();
    const errors = [];
    let tries = 0, handled;
    const done = new Promise((resolve) => (handled = resolve));
    failing(db, 'session.done', 'HF_NOMEM');
    const bus = await box.bus().on('*', () => { if (++tries === 2) handled(); })
        .start({ ...FAST, onError: (error) => errors.push(error.code) });
    await box.emit({ type: 'good' });
    await done;
    assert.deepStrictEqual(errors, ['HF_NOMEM']);
    await bus.stop();
    await db.close();
});

test('what has ended by itself leaves no session behind', LONG, async () => {
    const db = await open('memory:');
    const records = db.records();
    await records.put({ AccountId: 'a', RunTime: '2026-01-01' });
    for (let i = 0; i < 3; i++) {
        const processing = await records.process(() => {}, FAST);
        assert.strictEqual(await processing.ended, undefined);
        assert.deepStrictEqual(await sessionsOf(db), []);
        await processing.stop();
    }
    await db.close();
});

test('what begins while the database is closed has ended, and the process may end', LONG, () => {
    const { stdout, status } = spawnSync(process.execPath, ['-e', `
        const { open } = require('holdfast');
        (async () => {
            const db = await open('memory:');
            const { connection } = db;
            const call = connection.call;
            connection.call = async function (method, ...rest) {
                const got = await call.call(this, method, ...rest);
                if (/^(lock.acquire|relay.start)$/.test(method)) await connection.close();
                return got;
            };
            const relay = await db.outbox().relay(() => {});
            console.log(await relay.ended);
            const other = await open('memory:');
            const wait = other.connection.call;
            other.connection.call = async function (...args) {
                const got = await wait.apply(this, args);
                await this.close();
                return got;
            };
            console.log((await other.lock('x')).lost);
        })();`], { cwd: __dirname, encoding: 'utf8', timeout: 50000 });
    assert.strictEqual(stdout, 'undefined\ntrue\n');
    assert.strictEqual(status, 0);
});

test('a commit that succeeded is not a failure when relays cannot be woken', async () => {
    const db = await open('memory:');
    await db.createTable('orders', { key: { id: 'string' } });
    const box = db.outbox();
    failing(db, 'outbox.wake', 'HF_IO');
    await db.transaction(async (tx) => {
        tx.put('orders', { id: '7' });
        box.emit(tx, { type: 'order.placed', key: '7' });
    });
    assert.deepStrictEqual(await db.get('orders', { id: '7' }), { id: '7' });
    await db.close();
});

test('once: what cannot be recorded leaves the key to the next one', LONG, async () => {
    const db = await open('memory:');
    const soon = { pollMs: 5 };
    await assert.rejects(db.once('big', () => 'x'.repeat(500000), soon), { code: 'HF_INVALID' });
    assert.strictEqual(await db.once('big', () => 5, soon), 5);
    failing(db, 'once.finish', 'HF_THROTTLED');
    await assert.rejects(db.once('busy', () => 1, soon), { code: 'HF_THROTTLED' });
    assert.strictEqual(await db.once('busy', () => 2, soon), 2);
    failing(db, 'once.fail', 'HF_THROTTLED');
    const declined = Object.assign(new Error('card declined'), { permanent: true });
    await assert.rejects(db.once('declined', () => { throw declined; }, soon), (error) =>
        error.code === 'HF_THROTTLED' && error.cause === declined);
    assert.strictEqual(await db.once('declined', () => 3, soon), 3);
    for (const message of ['half: \ud83d', 'x'.repeat(500000), Symbol('s')]) {
        const odd = Object.assign(Object.create(null), { permanent: true, message });
        const key = `odd ${String(message).length}`;
        await assert.rejects(db.once(key, () => { throw odd; }, soon), (error) => error === odd);
        await assert.rejects(db.once(key, () => assert.fail('again'), soon), /failed for good/);
    }
    assert.deepStrictEqual(await sessionsOf(db), []);
    await db.close();
});

test('stop() of records waits for what runs; other options for an open table are refused', LONG, async () => {
    const db = await open('memory:');
    const records = db.records();
    await records.put({ AccountId: 'a', RunTime: '2026-01-01' });
    let began, finish;
    const begun = new Promise((resolve) => (began = resolve)), finished = new Promise((resolve) => (finish = resolve));
    const processing = await records.process(async () => { began(); await finished; }, { ...FAST, forever: true });
    await begun;
    const stopped = processing.stop({ drainMs: 600000 });
    setImmediate(finish);
    await stopped;
    assert.strictEqual(await processing.ended, undefined);
    assert.strictEqual((await records.get('a', '2026-01-01')).state, 'processed');
    await db.outbox({ historyS: 60 }).emit({ type: 'a' });
    await db.outbox({ historyS: 60 }).emit({ type: 'a' });
    await db.outbox().emit({ type: 'a' });
    await assert.rejects(db.outbox({ historyS: 61 }).emit({ type: 'a' }), { code: 'HF_INVALID', message: /other options/ });
    await db.close();
});

test('once: the signal says when a heartbeat finds that another may have begun', LONG, async () => {
    const db = await open('memory:');
    let reason;
    await assert.rejects(db.once('slow', async ({ signal }) => {
        const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
        await db.onceClear('slow');
        await aborted;
        reason = signal.reason;
    }, { attemptMs: 60000, heartbeatMs: 20 }), { code: 'HF_LOST' });
    assert.strictEqual(reason.code, 'HF_LOST');
    await db.close();
});
