/*
 * coordination.test.js: locks, do-once, limits, counters, keys and values, sets.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { once: event } = require('events');
const { open, HoldfastError, missing } = require('holdfast');

let db;
test.before(async () => {
    db = await open('memory:');
});
test.after(() => db.close());

test('a lock: fences grow, one holds it, others wait for it', async () => {
    const first = await db.lock('nightly', { data: { by: 'ann' } });
    assert.strictEqual(typeof first.fence, 'bigint');
    assert.strictEqual(await db.tryLock('nightly'), undefined);
    const info = await db.inspectLock('nightly');
    assert.strictEqual(info.holders[0].fence, first.fence);
    assert.deepStrictEqual(info.data, { by: 'ann' });
    await assert.rejects(db.lock('nightly', { timeoutMs: 20 }), { code: 'HF_TIMEOUT' });
    const controller = new AbortController();
    const canceled = db.lock('nightly', { signal: controller.signal });
    setImmediate(() => controller.abort());
    await assert.rejects(canceled, { code: 'HF_CANCELED' });

    const waiting = db.lock('nightly', { pollMs: 5 });
    await first.setData({ by: 'ann', done: true });
    await first.extend();
    assert.strictEqual((await first.state()).state, 'held');
    await Promise.all([first.release(), first.release()]);
    const second = await waiting;
    assert(second.fence > first.fence);
    assert.deepStrictEqual(second.data, { by: 'ann', done: true });
    await second[Symbol.asyncDispose]();
    assert.strictEqual((await db.inspectLock('nightly')).holders.length, 0);
});

test('a lock that is broken is lost, and its signal says so', async () => {
    const held = await db.lock('broken', { leaseMs: 1000, heartbeatMs: 20 });
    await db.connection.call('lock.break', { name: 'broken' });
    if (!held.lost)
        await event(held.signal, 'abort');
    assert.strictEqual(held.signal.reason.code, 'HF_LOST');
    await assert.rejects(held.release(), { code: 'HF_LOST' });
});

test('a transaction that a lock guards', async () => {
    await db.createTable('things', { key: { id: 'string' } });
    const held = await db.lock('guard');
    await db.transaction(async (tx) => {
        held.guard(tx);
        tx.put('things', { id: 'a' });
    });
    await db.connection.call('lock.break', { name: 'guard' });
    await assert.rejects(db.transaction(async (tx) => {
        await held.guard(tx);
        tx.put('things', { id: 'b' });
    }), (error) => error instanceof HoldfastError);
    assert.strictEqual((await db.scan('things').all()).length, 1);
    await held.release().catch(() => {});
});

test('shared locks and permits', async () => {
    const readers = await Promise.all([1, 2, 3].map(() => db.lock('doc', { mode: 'shared' })));
    assert.strictEqual(await db.tryLock('doc'), undefined);
    await Promise.all(readers.map((reader) => reader.release()));
    const permits = await Promise.all([1, 2].map(() => db.lock('pool', { mode: 'permit', permits: 2 })));
    assert.strictEqual(await db.tryLock('pool', { mode: 'permit', permits: 2 }), undefined);
    await Promise.all(permits.map((permit) => permit.release()));
});

test('once: one does it, all get its result', async () => {
    let calls = 0;
    const bill = async () => {
        calls++;
        await new Promise(setImmediate);
        return { invoice: 7, lines: new Set(['a']), at: null };
    };
    const results = await Promise.all([1, 2, 3].map(() => db.once('invoice-7', bill, { pollMs: 5 })));
    assert.strictEqual(calls, 1);
    for (const result of results)
        assert.deepStrictEqual(result, { invoice: 7, lines: new Set(['a']), at: null });
    assert.deepStrictEqual(await db.once('invoice-7', () => assert.fail('again')), results[0]);
    assert.strictEqual((await db.onceState('invoice-7')).state, 'done');
    assert.strictEqual((await db.onceState('nothing')).state, 'none');
    assert.strictEqual(await db.once('empty', () => undefined), undefined);
    assert.strictEqual(await db.once('empty', () => 5), undefined);
    assert.strictEqual(await db.onceClear('empty'), true);
    assert.strictEqual(await db.once('empty', () => 5), 5);
});

test('once: a failure is tried again, a permanent one is not', async () => {
    await assert.rejects(db.once('flaky', () => { throw new Error('down'); }), /down/);
    assert.strictEqual(await db.once('flaky', (attempt) => attempt.signal.aborted), false);
    const gone = Object.assign(new Error('card declined'), { permanent: true });
    await assert.rejects(db.once('declined', () => { throw gone; }), /card declined/);
    await assert.rejects(db.once('declined', () => assert.fail('again')), /failed for good: card declined/);
});

test('once: an attempt that another may have begun again is over', { timeout: 60000 }, async () => {
    const other = await open('memory:');
    for (const [end, method] of [[() => db, 'renew'], [() => other, 'close']]) {
        const owner = end();
        let signal;
        await assert.rejects(owner.once('slow', async (attempt) => {
            signal = attempt.signal;
            assert.strictEqual(signal.aborted, false);
            if (method === 'close')
                return owner.close();
            await attempt.renew();
            await owner.onceClear('slow');
            await assert.rejects(attempt.renew(), { code: 'HF_LOST' });
        }), (error) => error instanceof HoldfastError);
        assert.strictEqual(signal.aborted, true);
        assert.strictEqual(signal.reason.code, 'HF_LOST');
    }
});

test('limits', async () => {
    const limit = db.limit('login/ann', { kind: 'fixed', limit: 2, windowMs: 2 ** 31 });
    const first = await limit.take();
    assert.strictEqual(first.allowed, true);
    assert.strictEqual(Number(first.left), 1);
    assert.strictEqual((await limit.take()).allowed, true);
    const third = await limit.take();
    assert.notStrictEqual(third.allowed, true);
    assert(third.retryMs > 0);
    await limit.refund(first);
    assert.strictEqual((await limit.peek()).allowed, true);
    assert.strictEqual((await limit.take()).allowed, true);
    await limit.clear();
    assert.strictEqual(Number((await limit.take()).left), 1);
});

test('counters and sequences', async () => {
    const visits = db.counter('visits', { space: 'page' });
    assert.strictEqual(await visits.get(), 0);
    assert.strictEqual(await visits.add(), 1);
    assert.strictEqual(await visits.add(5, { request: 'r1' }), 6);
    assert.strictEqual(await visits.add(5, { request: 'r1' }), 6);
    await assert.rejects(visits.add(-10, { floor: 0 }), { code: 'HF_LIMIT' });
    await Promise.all(Array.from({ length: 50 }, () => visits.add(2)));
    assert.strictEqual(await visits.get(), 106);
    await db.transaction(async (tx) => { visits.addIn(tx, 4); });
    assert.strictEqual(await visits.get(), 110);
    assert.strictEqual(await visits.set(2n ** 60n), 110);
    assert.strictEqual(await visits.get(), 2n ** 60n);
    assert.strictEqual(await visits.reset(), 2n ** 60n);
    const numbers = db.counter('invoice');
    const taken = await Promise.all(Array.from({ length: 20 }, () => numbers.take(3)));
    assert.strictEqual(new Set(taken).size, 20);
    await numbers.delete();
});

test('keys and values, and sets', async () => {
    const kv = db.kv({ space: 'session' });
    assert.strictEqual(await kv.get('ann'), undefined);
    const entry = await kv.set('ann', { cart: [1, 2], seen: new Set([1]) }, { ttlS: 3600 });
    assert.deepStrictEqual(await kv.get('ann'), { cart: [1, 2], seen: new Set([1]) });
    const read = await kv.entry('ann');
    assert.strictEqual(read.version, entry.version);
    assert(read.expires instanceof Date);
    await assert.rejects(kv.set('ann', 1, { ifVersion: 'nonsense' }), (error) => error instanceof HoldfastError);
    await assert.rejects(kv.set('ann', 1, { ifAbsent: true }), (error) => error instanceof HoldfastError);
    await kv.set('ann', null, { ifVersion: read.version });
    assert.strictEqual(await kv.get('ann'), null);
    for (let i = 0; i < 5; i++)
        await kv.set(`user/${i}`, i);
    const found = [];
    for await (const { id, value } of kv.list({ prefix: 'user/' }))
        found.push([id, value]);
    assert.deepStrictEqual(found.sort(), [0, 1, 2, 3, 4].map((i) => [`user/${i}`, i]));
    await db.transaction(async (tx) => { kv.setIn(tx, 'both', 1); });
    assert.strictEqual(await kv.get('both'), 1);
    assert.strictEqual((await kv.delete('both')).value, 1);

    const tags = db.set('tags');
    assert.strictEqual(await tags.add('a', 'b', 'b'), 2);
    assert.strictEqual(await tags.remove('a', 'x'), 1);
    assert.strictEqual(await tags.has('b'), true);
    assert.deepStrictEqual(await tags.values(), new Set(['b']));
    assert.deepStrictEqual(await db.set('none').values(), new Set());
});

test('an option that is not known is refused by name', async () => {
    await assert.rejects(db.lock('x', { leese: 5 }), { code: 'HF_INVALID', message: /leese/ });
    await assert.rejects(db.once('x', () => 1, { timeout: 5 }), { code: 'HF_INVALID', message: /timeout/ });
    await assert.rejects(db.counter('x').add(1, { roof: 5 }), { code: 'HF_INVALID', message: /roof/ });
});
