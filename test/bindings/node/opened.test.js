/*
 * opened.test.js: options of an outbox, an event store or records count from the first call on, whatever it is.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { open, HoldfastError } = require('holdfast');
const { OutboxEventBus, DynamoDBAwsSdkOutbox } = require('holdfast/outbox-event-bus');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-test.'));
test.after(() => fs.rmSync(folder, { recursive: true }));

const FAST = { pollMs: 5, backoffMs: 1 };
const listed = async (found) => {
    const list = [];
    for await (const each of found)
        list.push(each);
    return list;
};

/* From now on that method fails once. */
function failing(db, method) {
    const { connection } = db;
    const call = connection.call;
    let times = 1;
    connection.call = function (name, ...rest) {
        if (name === method && times-- > 0)
            return Promise.reject(new HoldfastError('HF_IO', `${method} fails`));
        return call.call(this, name, ...rest);
    };
}

test('when the first call is a read', { timeout: 60000 }, async () => {
    const url = `embedded:${path.join(folder, 'db')}`;
    const before = await open(url);
    await before.outbox().emit({ type: 'old' });
    await before.close();
    const db = await open(url);
    const box = db.outbox({ historyS: 3600 });
    assert.strictEqual((await listed(box.pending())).length, 1);
    let handled;
    const done = new Promise((resolve) => (handled = resolve));
    const bus = await box.bus().on('*', () => handled()).start(FAST);
    await done;
    await bus.stop();
    assert.deepStrictEqual((await listed(box.history())).map(({ type }) => type), ['old']);
    await db.close();
});

test('a read makes no table, with options or without', async () => {
    const db = await open('memory:');
    for (const options of [undefined, { historyS: 3600 }]) {
        const box = db.outbox(options);
        assert.strictEqual(Number((await box.stats()).pending), 0);
        assert.deepStrictEqual(await listed(box.failed()), []);
        assert.strictEqual(await box.get('none'), undefined);
    }
    for (const options of [undefined, { shards: 2 }]) {
        const store = db.events(options);
        assert.deepStrictEqual(await listed(store.all()), []);
        assert.strictEqual((await store.stream('order/7')).version, 0);
        assert.strictEqual(await store.get('none'), undefined);
    }
    assert.strictEqual(await db.records({ table: 'work' }).get('a', 'b'), undefined);
    assert.deepStrictEqual(await listed(db.tables()), []);
    await db.close();
});

test('what could not be opened is opened by the next call', { timeout: 60000 }, async () => {
    const db = await open('memory:');
    const box = db.outbox({ historyS: 3600 }), store = db.events({ shards: 2 });
    failing(db, 'outbox.open');
    await assert.rejects(box.emit({ type: 'a' }), { code: 'HF_IO' });
    assert.strictEqual((await box.emit({ type: 'a' })).length, 1);
    failing(db, 'events.open');
    await assert.rejects(store.append('order/7', { type: 'a' }), { code: 'HF_IO' });
    assert.strictEqual((await store.append('order/7', { type: 'a' })).version, 1);
    await assert.rejects(db.outbox({ table: 'other', nonsense: 1 }).emit({ type: 'a' }), { code: 'HF_INVALID', message: /nonsense/ });
    await db.close();
});

test('a bus of outbox-event-bus that could not be started can be started again', { timeout: 60000 }, async () => {
    const db = await open('memory:');
    const errors = [];
    let handled;
    const done = new Promise((resolve) => (handled = resolve));
    const bus = new OutboxEventBus(new DynamoDBAwsSdkOutbox({ db, tableName: 'mine', pollIntervalMs: 5 }), (error) => errors.push(error.message));
    bus.on('a', () => handled());
    failing(db, 'relay.start');
    await bus.start();
    assert.deepStrictEqual(errors, ['relay.start fails']);
    await bus.start();
    await bus.emit({ type: 'a' });
    await done;
    await bus.stop();
    await db.close();
});
