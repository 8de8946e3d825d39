/*
 * items.test.js: items as plain objects, in and out, and what is refused.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const {
    open, HoldfastError, NumberValue, expr, attr, missing, exists, between, beginsWith, contains, oneOf, gt, ne,
} = require('holdfast');

let db;
test.before(async () => {
    db = await open('memory:');
    await db.createTable('orders', {
        key: { customer: 'string', day: 'number' },
        indexes: { byTotal: { key: { customer: 'string', total: 'number' } } },
    });
});
test.after(() => db.close());

const key = { customer: 'ann', day: 1 };
const code = (expected, text = /./) => (error) => {
    assert(error instanceof HoldfastError, String(error.stack));
    assert.strictEqual(error.code, expected, error.message);
    assert.match(error.message, text);
    return true;
};

test('every type comes back as it was', async () => {
    const item = {
        ...key, text: 'grüße \u0000 𝄞', empty: '', yes: true, no: false, nothing: null,
        bytes: new Uint8Array([0, 1, 255]), none: new Uint8Array(0),
        list: [1, 'two', [3, { four: 4 }], null, []], map: { a: { b: {} }, __proto__x: 1 },
        texts: new Set(['a', 'b']), numbers: new Set([1, 2.5, -3]), pieces: new Set([new Uint8Array([1]), new Uint8Array([2])]),
    };
    await db.put('orders', item);
    assert.deepStrictEqual(await db.get('orders', key), item);
    assert.strictEqual((await db.get('orders', { customer: 'nobody', day: 1 })), undefined);
});

test('a name can be anything, __proto__ too', async () => {
    const map = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1, "a.b": 2}');
    await db.put('orders', { ...key, map });
    const { map: back } = await db.get('orders', key);
    assert.deepStrictEqual(Object.keys(back).sort(), ['__proto__', 'a.b', 'constructor']);
    assert.strictEqual({}.polluted, undefined);
    assert.strictEqual(back.polluted, undefined);
});

test('numbers lose nothing', async () => {
    const exact = [
        0, -0, 1, -1, 0.1, 1e-7, 1.7976931348623157e+100, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER,
        2n ** 53n, 2n ** 64n, -(10n ** 37n) - 1n, 99999999999999999999999999999999999999n, 123456789012345.6,
    ];
    await db.put('orders', { ...key, exact });
    const { exact: back } = await db.get('orders', key);
    exact.forEach((number, i) => {
        if (typeof number === 'number' && Number.isInteger(number) && !Number.isSafeInteger(number))
            assert.strictEqual(back[i], BigInt(new NumberValue(number).toBigInt()));
        else
            assert.strictEqual(back[i], number === 0 ? 0 : number);
    });
    const texts = ['3.14159265358979323846264338327950288', '0.30000000000000000001', '1E-130', '9.9999999999999999999999999999999999999E+125'];
    await db.put('orders', { ...key, texts: texts.map((text) => new NumberValue(text)) });
    const { texts: again } = await db.get('orders', key);
    assert(again[0] instanceof NumberValue);
    assert.strictEqual(String(again[0]), texts[0]);
    assert.strictEqual(String(again[1]), texts[1]);
    assert.strictEqual(again[2], 1e-130);
    assert.strictEqual(again[3], 99999999999999999999999999999999999999n * 10n ** 88n);
    /* Written again it is the same number. */
    await db.put('orders', { ...key, texts: again });
    assert.deepStrictEqual((await db.get('orders', key)).texts, again);
    assert.throws(() => new NumberValue('1,5'), /decimal/);
    assert.throws(() => new NumberValue('1.5').toBigInt(), /whole/);
});

test('random numbers come back as the same number', async () => {
    const sent = Array.from({ length: 2000 }, () => (Math.random() - 0.5) * 10 ** Math.floor(Math.random() * 60 - 30));
    await db.put('orders', { ...key, sent });
    const { sent: back } = await db.get('orders', key);
    sent.forEach((number, i) => assert.strictEqual(Number(back[i]), number));
});

test('what cannot be stored is refused with a hint, and nothing is sent', async () => {
    await db.put('orders', { ...key, here: 1 });
    class Order { constructor() { this.a = 1; } }
    const circle = {};
    circle.circle = circle;
    const cases = [
        [{ at: new Date() }, /^at: a Date .*toISOString/], [{ s: new Set() }, /^s: a set must not be empty/],
        [{ s: new Set([1, 'a']) }, /one kind/], [{ l: [1, undefined] }, /^l\[1\]: undefined/], [{ a: { b: [{ f() {} }] } }, /^a\.b\[0\]\.f: a function/],
        [{ n: NaN }, /NaN/], [{ n: Infinity }, /Infinity/], [{ o: new Order() }, /^o: Order is not a plain object/],
        [{ r: /x/ }, /RegExp/], [{ u: new Uint16Array(1) }, /Uint16Array is not bytes/], [{ s: Symbol('x') }, /symbol/], [{ s: ['x\ud800'] }, /^s\[0\]: .*surrogate/], [{ s: new Set(['\udc00x']) }, /surrogate/], [circle, /circle/],
    ];
    for (const [more, text] of cases)
        await assert.rejects(db.put('orders', { ...key, ...more }), code('HF_INVALID', text));
    await assert.rejects(db.put('orders', 'text'), code('HF_INVALID', /plain object, not string/));
    await assert.rejects(db.put('orders', key, { condition: 'x' }), code('HF_INVALID', /no option condition; it has if/));
    await assert.rejects(db.update('orders', key, { here: 2 }), code('HF_INVALID', /did you mean \{ set: \{ here/));
    await assert.rejects(db.update('orders', key, {}), code('HF_INVALID', /changes nothing/));
    await assert.rejects(db.put('orders', { ...key, n: 10n ** 39n - 1n }), code('HF_INVALID', /38/));
    assert.deepStrictEqual(await db.get('orders', key), { ...key, here: 1 });
});

test('undefined members are left out, null is kept', async () => {
    await db.put('orders', { ...key, a: undefined, b: null, c: { d: undefined } });
    assert.deepStrictEqual(await db.get('orders', key), { ...key, b: null, c: {} });
});

test('Map, objects without a prototype and bytes of any kind are taken', async () => {
    const bytes = Buffer.from('xhellox').subarray(1, 6);
    await db.put('orders', Object.assign(Object.create(null), key, {
        map: new Map([['a', 1]]), bytes, buffer: new Uint8Array([7]).buffer,
    }));
    assert.deepStrictEqual(await db.get('orders', key),
        { ...key, map: { a: 1 }, bytes: new Uint8Array(Buffer.from('hello')), buffer: new Uint8Array([7]) });
});

test('conditions in all three forms', async () => {
    await db.put('orders', { ...key, total: 5, status: 'new' });
    await assert.rejects(db.put('orders', key, { if: { customer: missing() }, itemOnFailure: true }), (error) => {
        code('HF_CONDITION')(error);
        assert.strictEqual(error.exception, 'ConditionalCheckFailedException');
        assert.strictEqual(error.retryable, false);
        assert.strictEqual(error.mayHaveHappened, false);
        assert.deepStrictEqual(error.item, { ...key, total: 5, status: 'new' });
        return true;
    });
    const change = { set: { 'status': 'paid' }, add: { total: 1 } };
    await db.update('orders', key, change, { if: { status: 'new', total: gt(4) } });
    await db.update('orders', key, change, { if: expr`${attr('total')} = ${6} AND ${attr('status')} <> ${'new'}` });
    const after = await db.update('orders', key, { set: { total: expr`${attr('total')} + ${10}` }, remove: ['status'] },
        { if: '#t = :seven', names: { t: 'total' }, values: { seven: 7 }, returns: 'new' });
    assert.deepStrictEqual(after, { ...key, total: 17 });
    await assert.rejects(db.delete('orders', key, { if: { total: ne(17) } }), code('HF_CONDITION'));
    assert.deepStrictEqual(await db.delete('orders', key, { if: { total: exists() }, returns: 'old' }), after);
});

test('queries: operators, order, limits, pages, projections, indexes', async () => {
    const customer = 'query';
    await db.writeMany('orders', {
        put: Array.from({ length: 60 }, (_, day) => ({ customer, day, total: 100 - day, tag: `t${day % 3}`, nested: { a: [day] } })),
    });
    const days = async (found) => (await found.all()).map((order) => order.day);
    const seen = [];
    for await (const order of db.query('orders', { customer }, { pageSize: 7 }))
        seen.push(order.day);
    assert.deepStrictEqual(seen, Array.from({ length: 60 }, (_, i) => i));
    assert.deepStrictEqual(await days(db.query('orders', { customer, day: between(3, 5) }, { reverse: true })), [5, 4, 3]);
    assert.deepStrictEqual(await days(db.query('orders', { customer }, { limit: 3, pageSize: 2 })), [0, 1, 2]);
    assert.deepStrictEqual(await days(db.query('orders', { customer }, { filter: { tag: oneOf('t1', 't2') }, limit: 3, pageSize: 2 })), [1, 2, 4]);
    assert.deepStrictEqual(await days(db.query('orders', { customer, total: gt(97) }, { index: 'byTotal' })), [2, 1, 0]);
    assert.deepStrictEqual(await db.query('orders', { customer, day: 4 }, { attributes: ['day', 'nested.a[0]'] }).first(), { day: 4, nested: { a: [4] } });
    assert.deepStrictEqual(await days(db.query('orders', { customer }, { filter: { tag: beginsWith('t') , nested: exists(), 'tag': contains('0') }, limit: 2 })), [0, 3]);
    assert.strictEqual(await db.count('orders', { customer }, { filter: { tag: 't0' } }), 20);
    assert.strictEqual(await db.query('orders', { customer: 'nobody' }).first(), undefined);

    let page, pages = 0, start;
    do {
        for await (page of db.query('orders', { customer }, { pageSize: 25, start }).pages())
            break;
        pages++;
        start = page.next;
    } while (start);
    assert.strictEqual(pages, 3);
    const all = await Promise.all([0, 1].map((segment) => db.scan('orders', { segment, segments: 2, filter: { customer } }).all()));
    assert.strictEqual(all.flat().length, 60);
    assert.strictEqual((await db.execute('SELECT * FROM orders WHERE customer = ? AND day < ?', [customer, 5]).all()).length, 5);
});

test('many items: more than a batch has room for', async () => {
    const customer = 'many';
    const keys = Array.from({ length: 130 }, (_, day) => ({ customer, day }));
    await db.writeMany('orders', { put: keys });
    const found = await db.getMany('orders', [{ customer, day: 1000 }, ...keys, keys[0], { customer, day: new NumberValue('7.0') }]);
    assert.strictEqual(found[0], undefined);
    assert.deepStrictEqual(found.slice(1, 131), keys);
    assert.deepStrictEqual(found.slice(131), [keys[0], keys[7]]);
    await db.writeMany('orders', { delete: keys });
    assert.strictEqual(await db.count('orders', { customer }), 0);
    assert.deepStrictEqual(await db.getMany('orders', []), []);
});

test('transactions are all or nothing', async () => {
    const customer = 'tx';
    const result = await db.transaction(async (tx) => {
        tx.put('orders', { customer, day: 1 }, { if: { customer: missing() } });
        tx.put('orders', { customer, day: 2 });
        return 'done';
    });
    assert.strictEqual(result, 'done');
    await assert.rejects(db.transaction(async (tx) => {
        tx.update('orders', { customer, day: 2 }, { set: { total: 1 } });
        tx.delete('orders', { customer, day: 9 });
        tx.check('orders', { customer, day: 1 }, { total: exists() });
    }), (error) => {
        code('HF_TX_CANCELED')(error);
        assert.deepStrictEqual(error.reasons.map((reason) => reason.code), ['None', 'None', 'ConditionalCheckFailed']);
        return true;
    });
    let kept;
    await assert.rejects(db.transaction(async (tx) => {
        kept = tx;
        tx.delete('orders', { customer, day: 1 });
        throw new Error('changed my mind');
    }), /changed my mind/);
    assert.deepStrictEqual(await db.query('orders', { customer }).all(), [{ customer, day: 1 }, { customer, day: 2 }]);
    await db.transaction(async (tx) => { kept = tx; });
    assert.throws(() => kept.put('orders', { customer, day: 3 }), code('HF_INVALID', /over/));
    assert.deepStrictEqual(await db.getTogether([
        { table: 'orders', key: { customer, day: 2 } }, { table: 'orders', key: { customer, day: 3 } },
    ]), [{ customer, day: 2 }, undefined]);
    /* The same token is the same transaction. */
    for (let i = 0; i < 2; i++)
        await db.transaction(async (tx) => tx.update('orders', { customer, day: 1 }, { add: { total: 5 } }), { token: 'once' });
    assert.strictEqual((await db.get('orders', { customer, day: 1 })).total, 5);
});

test('tables', async () => {
    await db.createTable('things', { key: { id: 'string' }, expires: 'until', stream: 'both' });
    await db.createTable('things', { key: { id: 'string' }, expires: 'until', ifMissing: true });
    await assert.rejects(db.createTable('things', { key: { id: 'string' } }), code('HF_IN_USE'));
    const names = [];
    for await (const name of db.tables())
        names.push(name);
    assert.deepStrictEqual(names, ['orders', 'things']);
    await db.deleteTable('things');
    await db.deleteTable('things', { ifExists: true });
    await assert.rejects(db.deleteTable('things'), code('HF_NOT_FOUND'));
    await assert.rejects(db.createTable('bad', { key: { id: 'text' } }), code('HF_INVALID', /type of id/));
});

test('operations as they are on the wire', async () => {
    const { Table } = await db.call('DescribeTable', { TableName: 'orders' });
    assert.strictEqual(Table.TableStatus, 'ACTIVE');
    await assert.rejects(db.call('PutThing', {}), code('HF_UNKNOWN_OPERATION', /PutThing/));
    await assert.rejects(db.call('lock.list', {}), code('HF_INVALID'));
    await assert.rejects(db.call('GetItem', { TableName: 'orders', Key: 5 }), code('HF_SERIALIZATION'));
});
