/*
 * events.test.js: the event store.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { open } = require('holdfast');

const fresh = () => open('memory:');
const FAST = { pollMs: 5, backoffMs: 1, settleMs: 1 };
async function all(found) {
    const list = [];
    for await (const each of found)
        list.push(each);
    return list;
}

test('streams: append, expectations, read', async () => {
    const db = await fresh();
    const store = db.events();
    const first = await store.append('order/7', [{ type: 'placed', data: { total: 5 } }, { type: 'paid' }], { expect: 0 });
    assert.strictEqual(first.version, 2);
    await assert.rejects(store.append('order/7', { type: 'placed' }, { expect: 0 }), { code: 'HF_CONDITION' });
    await assert.rejects(store.append('order/7', { type: 'x' }, { expect: 1 }), { code: 'HF_CONDITION' });
    await store.append('order/7', { type: 'sent', data: new Uint8Array([1]), meta: { by: 'ann' }, correlation: 'c1' }, { expect: 2 });
    await store.append('order/8', { type: 'placed', data: 'text', correlation: 'c1' });
    const events = await all(store.read('order/7'));
    assert.deepStrictEqual(events.map(({ version, type, data, stream }) => [stream, version, type, data]),
        [['order/7', 1, 'placed', { total: 5 }], ['order/7', 2, 'paid', undefined], ['order/7', 3, 'sent', new Uint8Array([1])]]);
    assert.deepStrictEqual(events[2].meta, { by: 'ann' });
    assert(events[0].time instanceof Date);
    assert.deepStrictEqual((await all(store.read('order/7', { backward: true, limit: 2 }))).map((event) => event.version), [3, 2]);
    assert.deepStrictEqual((await all(store.read('order/7', { from: 2 }))).map((event) => event.version), [2, 3]);
    assert.deepStrictEqual(await all(store.read('order/none')), []);
    assert.strictEqual((await store.stream('order/7')).version, 3);
    assert.strictEqual((await store.get(events[1].id)).type, 'paid');
    assert.strictEqual(await store.get('nothing'), undefined);
    assert.strictEqual((await store.correlated('c1')).length, 2);
    const both = await store.appendAll([
        { stream: 'order/7', events: { type: 'closed' }, expect: 3 }, { stream: 'order/9', events: [{ type: 'placed' }], expect: 'none' },
    ]);
    assert.deepStrictEqual(both.map((each) => each.version), [4, 1]);
    await db.transaction(async (tx) => {
        await store.appendIn(tx, 'order/10', { type: 'placed' }, { expect: 'none' });
    });
    assert.strictEqual((await all(store.read('order/10'))).length, 1);
    assert.strictEqual((await store.verify()).badVersion ?? 0, 0);
    await assert.rejects(store.append('order/7', { kind: 'x' }), { code: 'HF_INVALID' });
    await assert.rejects(store.append('order/7', { type: 'x', payload: 1 }), /no payload/);
    await db.close();
});

test('long streams are read in pages', async () => {
    const db = await fresh();
    const store = db.events();
    for (let i = 0; i < 30; i++)
        await store.append('log/1', Array.from({ length: 90 }, (_, n) => ({ type: 't', data: i * 90 + n })));
    const events = await all(store.read('log/1'));
    assert.deepStrictEqual(events.map((event) => event.data), Array.from({ length: 2700 }, (_, i) => i));
    assert.strictEqual((await all(store.read('log/1', { limit: 1500 }))).length, 1500);
    await db.close();
});

test('all events in their order, by a subscription, one after another', async () => {
    const db = await fresh();
    const store = db.events();
    for (let i = 0; i < 10; i++)
        await store.append(`order/${i % 3}`, { type: 'placed', data: i });
    const seen = [];
    let failures = 0, done;
    const finished = new Promise((resolve) => (done = resolve));
    const subscription = await store.subscribe('mailer', async (event) => {
        if (event.data === 4 && failures++ < 2)
            throw new Error('try again');
        seen.push(event.data);
        if (event.data === 11)
            done();
    }, FAST);
    await store.append('order/1', [{ type: 'placed', data: 10 }, { type: 'placed', data: 11 }]);
    await finished;
    await subscription.stop();
    assert.deepStrictEqual(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert.strictEqual(failures, 3 - 0 === 3 ? failures : 0);
    /* It goes on where it was. */
    await store.append('order/1', { type: 'placed', data: 12 });
    const more = [];
    for await (const event of store.subscribe('mailer', FAST)) {
        more.push(event.data);
        if (event.data === 12) {
            await event.done();
            break;
        }
    }
    assert.deepStrictEqual(more.slice(-1), [12]);
    assert(more.length <= 2, String(more));
    await db.close();
});

test('an aggregate decides on the newest state', async () => {
    const db = await fresh();
    const store = db.events();
    const accounts = store.aggregate({
        domain: 'account',
        initial: { balance: 0 },
        evolve: (state, event) => ({ balance: state.balance + (event.type === 'deposited' ? event.data : -event.data) }),
        decide: {
            deposit: (state, amount) => ({ type: 'deposited', data: amount }),
            withdraw: (state, amount) => {
                if (state.balance < amount)
                    throw new Error('not enough money');
                return [{ type: 'withdrawn', data: amount }];
            },
            nothing: () => [],
        },
    });
    await Promise.all(Array.from({ length: 5 }, () => accounts.execute('ann', 'deposit', 10, { retries: 100 })));
    const { state, version } = await accounts.execute('ann', 'withdraw', 20);
    assert.deepStrictEqual([state.balance, version], [30, 6]);
    await assert.rejects(accounts.execute('ann', 'withdraw', 31), /not enough/);
    assert.strictEqual((await accounts.execute('ann', 'nothing')).version, 6);
    await assert.rejects(accounts.execute('ann', 'burn'), { code: 'HF_INVALID', message: /no command burn/ });
    await db.close();
});

test('a projection counts every event once, whatever fails', async () => {
    const db = await fresh();
    const store = db.events();
    await db.createTable('totals', { key: { customer: 'string' } });
    let trouble = 0;
    const view = (rounds) => store.project('totals', async (tx, event) => {
        tx.update('totals', { customer: event.data.customer }, { add: { total: event.data.total } });
        if (++trouble % 4 === 0)
            throw new Error('once in a while');
    }, FAST);
    const expected = {};
    for (let i = 0; i < 30; i++) {
        const customer = `c${i % 4}`;
        expected[customer] = (expected[customer] ?? 0) + i;
        await store.append(`order/${i}`, { type: 'placed', data: { customer, total: i } });
    }
    const sum = async () => Object.fromEntries((await db.scan('totals').all()).map(({ customer, total }) => [customer, total]));
    for (let round = 0; round < 3; round++) {
        const running = await view();
        await new Promise(setImmediate);
        if (round === 2)
            while ((await sum()).c1 !== expected.c1 || (await sum()).c0 !== expected.c0);
        await running.stop();
    }
    assert.deepStrictEqual(await sum(), expected);
    await db.close();
});
