/*
 * messages.test.js: outbox, bus, relay, changes of a table, records, blobs.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { open, PermanentError, missing } = require('holdfast');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-test.'));
test.after(() => fs.rmSync(folder, { recursive: true }));
const fresh = () => open('memory:');
const FAST = { pollMs: 5, backoffMs: 1 };

/* A promise, with a function that resolves it. */
function signal() {
    let resolve;
    const promise = new Promise((done) => (resolve = done));
    return Object.assign(promise, { resolve });
}

test('outbox and bus: events of a transaction reach the handler of their type', async () => {
    const db = await fresh();
    await db.createTable('orders', { key: { id: 'string' } });
    const box = db.outbox();
    const bus = box.bus();
    const seen = [], all = signal();
    const see = (kind) => (event) => {
        seen.push([kind, event.type, event.payload]);
        if (seen.length === 4)
            all.resolve();
    };
    bus.on('order.placed', see('exact')).on('order.*', see('order')).on('*', see('any'));
    assert.throws(() => bus.on('*', () => {}), { code: 'HF_INVALID' });
    await bus.start(FAST);
    await db.transaction(async (tx) => {
        tx.put('orders', { id: '7' }, { if: { id: missing() } });
        box.emit(tx, { type: 'order.placed', key: '7', payload: { id: '7', total: 12.5 } });
    });
    await assert.rejects(db.transaction(async (tx) => {
        tx.put('orders', { id: '7' }, { if: { id: missing() } });
        await box.emit(tx, { type: 'order.placed', key: '7', payload: 'never' });
    }), { code: 'HF_TX_CANCELED' });
    await box.emit([
        { type: 'order.paid.late', payload: [1, 'two', null] },
        { type: 'other', payload: new Uint8Array([1, 255]) },
        { type: 'order.placed', headers: { trace: 5 } },
    ]);
    await all;
    await bus.stop();
    assert.deepStrictEqual(new Set(seen.map((each) => JSON.stringify(each))), new Set([
        ['exact', 'order.placed', { id: '7', total: 12.5 }], ['order', 'order.paid.late', [1, 'two', null]],
        ['any', 'other', new Uint8Array([1, 255])], ['exact', 'order.placed', undefined],
    ].map((each) => JSON.stringify(each))));
    assert.strictEqual(Number((await box.stats()).pending ?? 0), 0);
    await assert.rejects(box.emit({ type: 'x', body: 1 }), { code: 'HF_INVALID', message: /no body/ });
    await assert.rejects(box.emit({ payload: 1 }), { code: 'HF_INVALID', message: /type/ });
    await db.close();
});

test('a handler that fails gets it again; what fails for good is a dead letter that can be retried', async () => {
    const db = await fresh();
    const box = db.outbox();
    let tries = 0, broken = true;
    const done = signal(), dead = signal(), mended = signal();
    const bus = box.bus();
    bus.on('flaky', async (event) => {
        if (++tries < 3)
            throw new Error(`try ${tries}`);
        done.resolve(event);
    });
    bus.on('poison', async () => {
        if (broken)
            throw new PermanentError('no such order');
        mended.resolve();
    });
    const errors = [];
    await bus.start({ ...FAST, maxAttempts: 10, onError: (error, notice) => { errors.push(notice); dead.resolve(); } });
    await box.emit([{ type: 'flaky', payload: 1 }, { type: 'poison', key: 'p' }, { type: 'unknown' }]);
    const event = await done;
    assert.strictEqual(tries, 3);
    assert.strictEqual(event.payload, 1);
    await dead;
    let failed;
    do {
        failed = [];
        for await (const each of box.failed())
            failed.push(each);
    } while (failed.length < 2);
    assert.deepStrictEqual(failed.map((each) => each.type).sort(), ['poison', 'unknown']);
    const poison = failed.find((each) => each.type === 'poison');
    assert.match(poison.errorText, /no such order/);
    broken = false;
    assert.strictEqual(await box.retry([poison.id]), 1);
    await mended;
    assert.strictEqual(await box.discard({ type: 'unknown' }), 1);
    await bus.stop();
    await db.close();
});

test('handlers run at the same time as the event loop, as many as there are workers', async () => {
    const db = await fresh();
    const box = db.outbox();
    let running = 0, most = 0, handled = 0;
    const all = signal();
    const bus = box.bus().on('*', async () => {
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running--;
        if (++handled === 60)
            all.resolve();
    });
    await box.emit(Array.from({ length: 60 }, (_, i) => ({ type: 't', key: `k${i}` })));
    await bus.start({ ...FAST, workers: 4 });
    await all;
    assert(most <= 4 && most >= 1, `${most} at a time`);
    assert.strictEqual(handled, 60);
    await bus.stop();
    await bus.start(FAST); /* once more is possible */
    await bus.stop();
    await db.close();
});

test('a relay to a function and to a sink', async () => {
    const db = await fresh();
    const box = db.outbox();
    const got = [], all = signal();
    let down = true;
    const relay = await box.relay(async (events) => {
        if (down) {
            down = false;
            throw new Error('unreachable');
        }
        got.push(...events.map((event) => event.payload));
        if (got.length === 10)
            all.resolve();
    }, FAST);
    await box.emit(Array.from({ length: 10 }, (_, i) => ({ type: 't', key: 'k', payload: i })));
    await all;
    assert.deepStrictEqual(got, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await relay.stop();
    await assert.rejects(box.relay('nonsense://x'), { code: 'HF_INVALID' });
    await db.close();
});

test('changes of a table', async () => {
    const db = await fresh();
    await db.createTable('orders', { key: { id: 'string' }, stream: 'both' });
    const seen = [], all = signal();
    const consumer = await db.changes('orders', async (changes) => {
        seen.push(...changes);
        if (seen.length >= 3)
            all.resolve();
    }, { name: 'mirror', pollMs: 5 });
    await db.put('orders', { id: 'a', n: 1 });
    await db.update('orders', { id: 'a' }, { add: { n: 1 } });
    await db.delete('orders', { id: 'a' });
    await all;
    await consumer.stop();
    assert.deepStrictEqual(seen.map(({ key, old, new: now }) => [key, old?.n, now?.n]),
        [[{ id: 'a' }, undefined, 1], [{ id: 'a' }, 1, 2], [{ id: 'a' }, 2, undefined]]);
    assert(seen[0].time instanceof Date);
    await db.close();
});

test('records are processed, each one once', async () => {
    const db = await fresh();
    const records = db.records();
    for (let i = 0; i < 20; i++)
        await records.put({ AccountId: `a${i % 3}`, RunTime: `2026-01-${10 + i}`, n: i });
    assert.strictEqual(await records.count('unprocessed'), 20);
    const seen = [];
    const processing = await records.process(async (record) => {
        if (record.item.n === 5)
            throw new PermanentError('bad record');
        seen.push(record.item.n);
    }, { workers: 3, pollMs: 5, backoffMs: 1 });
    await processing.ended;
    await processing.stop();
    assert.deepStrictEqual(seen.sort((a, b) => a - b), Array.from({ length: 20 }, (_, i) => i).filter((i) => i !== 5));
    assert.strictEqual(await records.count('unprocessed'), 0);
    assert.strictEqual((await records.get('a1', '2026-01-11')).state, 'processed');
    const failed = [];
    for await (const record of records.list({ state: 'failed' }))
        failed.push(record.errorText);
    assert.deepStrictEqual(failed, ['bad record']);
    await db.close();
});

test('payloads: those of others may be anything, and a text stays one', { timeout: 60000 }, async () => {
    const db = await fresh();
    const { connection } = db;
    const box = db.outbox();
    await connection.call('outbox.emit', { events: [
        { type: 'broken', payload: '{"half', content_type: 'application/json' },
        { type: 'whole', payload: '[1]', content_type: 'application/json; charset=utf-8' },
        { type: 'bus', payload: '1', content_type: 'application/json', headers: { metadata: { S: '{"half' } } },
    ] });
    await box.emit([
        { type: 'text', payload: 'Hello "you"', contentType: 'text/plain' },
        { type: 'named', payload: 'Hello' },
        { type: 'list', payload: [1], contentType: 'text/csv' },
    ]);
    const payloads = {};
    for await (const { type, payload } of box.pending())
        payloads[type] = payload;
    assert.deepStrictEqual(payloads, {
        broken: new Uint8Array(Buffer.from('{"half')), whole: [1], bus: 1, text: 'Hello "you"', named: 'Hello', list: '[1]',
    });
    const { events } = await connection.call('outbox.pending', { limit: 10 });
    assert.strictEqual(events.find(({ type }) => type === 'text').payload, 'Hello "you"');

    const seen = new Set(), all = signal();
    const relay = await box.deliver(async (delivered) => {
        for (const { type } of delivered)
            seen.add(type);
        if (seen.size === 6)
            all.resolve();
    }, FAST);
    await all;
    await relay.stop();
    for (const state of [box.pending(), box.failed()])
        for await (const { type } of state)
            assert.fail(`${type} is left`);

    const store = db.events();
    await store.append('order/7', { type: 'text', data: 'Hello', contentType: 'text/plain' });
    await connection.call('events.append', { domain: 'order', id: '7',
        events: [{ type: 'broken', payload: '{', content_type: 'application/json' }] });
    const data = [];
    for await (const event of store.read('order/7'))
        data.push(event.data);
    assert.deepStrictEqual(data, ['Hello', new Uint8Array([0x7b])]);
    await db.close();
});

test('blobs', async () => {
    const db = await fresh();
    const blobs = db.blobs(`dir:${path.join(folder, 'blobs')}`);
    const bytes = new Uint8Array(100000).map((_, i) => i * 7);
    const digest = await blobs.put(bytes);
    assert.strictEqual(await blobs.put(bytes), digest);
    assert.deepStrictEqual(await blobs.get(digest), bytes);
    assert.strictEqual(await blobs.size(digest), 100000);
    await blobs.delete(digest);
    assert.strictEqual(await blobs.get(digest), undefined);
    await db.close();
});

test('a process and a worker may end while a bus runs', async () => {
    const { Worker } = require('worker_threads');
    const { spawnSync } = require('child_process');
    const { once } = require('events');
    const body = (then) => `
        const { open } = require('holdfast');
        (async () => {
            const db = await open('memory:');
            const box = db.outbox();
            const held = await db.lock('x');
            let n = 0;
            await box.bus().on('*', () => new Promise((resolve) => { if (++n === 3) { ${then} } })).start({ pollMs: 5, workers: 4 });
            await box.emit([1, 2, 3, 4].map((key) => ({ type: 't', key: 'k' + key })));
        })();`;
    for (const [end, code] of [['process.exit(5);', 5], ['setImmediate(() => { throw new Error("boom"); });', 1],
        ['process.kill(process.pid, "SIGTERM");', 'SIGTERM']]) {
        const { status, signal } = spawnSync(process.execPath, ['-e', body(end)], { cwd: __dirname });
        assert.strictEqual(signal ?? status, code, end);
    }
    for (let i = 0; i < 3; i++) {
        const worker = new Worker(body('require("worker_threads").parentPort.postMessage(1);'), { eval: true });
        await once(worker, 'message');
        await worker.terminate();
    }
});
