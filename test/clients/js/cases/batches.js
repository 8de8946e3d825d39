/* BatchGetItem, BatchWriteItem, TransactGetItems, TransactWriteItems. */
'use strict';
const assert = require('assert');
const dynamodb = require('@aws-sdk/client-dynamodb');
const { before, after, test, eq, fails } = require('../lib/suite');
const { api, newName, makeTable, dropTable, without$ } = require('../lib/clients');

const S = (text) => ({ S: text });
const N = (number) => ({ N: String(number) });
let T, U, n = 0;
const fresh = () => S(`k${++n}`);
const upTo = (end) => Array.from({ length: end }, (_, i) => i);
const get = async (pk, TableName = T) => (await api.GetItem({ TableName, Key: { pk }, ConsistentRead: true })).Item;
const put = async (Item, TableName = T) => {
    await api.PutItem({ TableName, Item });
    return Item.pk;
};

before(async () => {
    T = await makeTable('batches', 'pk:S');
    U = await makeTable('batches2', 'pk:S', 'sk:N');
});
after(async () => {
    await dropTable(T);
    await dropTable(U);
});

/* ---- batches -------------------------------------------------------------------------------- */

test('a batch of 25 puts', async () => {
    const items = upTo(25).map((i) => ({ pk: fresh(), v: N(i) }));
    const answer = await api.BatchWriteItem({ RequestItems: { [T]: items.map((Item) => ({ PutRequest: { Item } })) } });
    eq(without$(answer), { UnprocessedItems: {} });
    for (const item of items)
        eq(await get(item.pk), item);
});
test('a batch of puts and deletes in two tables', async () => {
    const gone = await put({ pk: fresh() });
    const pk = fresh();
    await api.BatchWriteItem({
        RequestItems: {
            [T]: [{ DeleteRequest: { Key: { pk: gone } } }, { PutRequest: { Item: { pk, a: N(1) } } }],
            [U]: [{ PutRequest: { Item: { pk, sk: N(1), b: S('x') } } }],
        },
    });
    eq(await get(gone), undefined);
    eq(await get(pk), { pk, a: N(1) });
    eq((await api.GetItem({ TableName: U, Key: { pk, sk: N(1) } })).Item, { pk, sk: N(1), b: S('x') });
});
test('26 writes are too many', () =>
    fails(api.BatchWriteItem({ RequestItems: { [T]: upTo(26).map(() => ({ PutRequest: { Item: { pk: fresh() } } })) } }),
        'ValidationException', new RegExp(`^1 validation error detected: Value '\\{${T}=.*\\}' at 'requestItems' failed to satisfy constraint: ` +
        'Map value must satisfy constraint: \\[Member must have length less than or equal to 25, ' +
        'Member must have length greater than or equal to 1\\]$')));
test('a batch without writes', () =>
    fails(api.BatchWriteItem({ RequestItems: {} }), 'ValidationException',
        'The requestItems parameter is required for BatchWriteItem'));
test('the same item twice in a batch', async () => {
    const pk = fresh();
    await fails(api.BatchWriteItem({
        RequestItems: { [T]: [{ PutRequest: { Item: { pk } } }, { DeleteRequest: { Key: { pk } } }] },
    }), 'ValidationException', 'Provided list of item keys contains duplicates');
    eq(await get(pk), undefined);
});
test('a bad write in a batch spoils all of it', async () => {
    const pk = fresh();
    await fails(api.BatchWriteItem({
        RequestItems: { [T]: [{ PutRequest: { Item: { pk } } }, { PutRequest: { Item: { pk: N(1) } } }] },
    }), 'ValidationException', 'The provided key element does not match the schema');
    eq(await get(pk), undefined);
});
test('a batch with a table that is not there', async () => {
    const pk = fresh();
    await fails(api.BatchWriteItem({
        RequestItems: { [T]: [{ PutRequest: { Item: { pk } } }], [newName('missing')]: [{ PutRequest: { Item: { pk } } }] },
    }), dynamodb.ResourceNotFoundException, 'Requested resource not found');
    eq(await get(pk), undefined);
});
test('a loop over UnprocessedItems writes everything', async () => {
    const items = upTo(60).map((i) => ({ pk: fresh(), v: S(`${i}`.repeat(1000)) }));
    for (let at = 0; at < items.length; at += 25) {
        let left = { [T]: items.slice(at, at + 25).map((Item) => ({ PutRequest: { Item } })) };
        while (Object.keys(left).length)
            ({ UnprocessedItems: left } = await api.BatchWriteItem({ RequestItems: left }));
    }
    for (const item of items)
        eq(await get(item.pk), item);
});
test('a batch near 10 MB', async () => {
    const items = upTo(25).map((i) => ({ pk: fresh(), v: S(String.fromCharCode(97 + i).repeat(400000)) }));
    let left = { [T]: items.map((Item) => ({ PutRequest: { Item } })) };
    while (Object.keys(left).length)
        ({ UnprocessedItems: left } = await api.BatchWriteItem({ RequestItems: left }));
    let keys = { [T]: { Keys: items.map(({ pk }) => ({ pk })) } };
    const seen = new Map();
    while (Object.keys(keys).length) {
        const page = await api.BatchGetItem({ RequestItems: keys });
        for (const item of page.Responses[T])
            seen.set(item.pk.S, item.v.S);
        keys = page.UnprocessedKeys;
    }
    for (const item of items)
        assert(seen.get(item.pk.S) === item.v.S);
    await api.BatchWriteItem({ RequestItems: { [T]: items.map(({ pk }) => ({ DeleteRequest: { Key: { pk } } })) } });
});
test('more than 16 MB come in parts', async () => {
    const items = upTo(50).map((i) => ({ pk: fresh(), v: S('v'.repeat(390000) + i) }));
    for (const item of items)
        await put(item);
    let keys = { [T]: { Keys: items.map(({ pk }) => ({ pk })) } };
    let pages = 0;
    const seen = new Set();
    while (Object.keys(keys).length) {
        const page = await api.BatchGetItem({ RequestItems: keys });
        for (const item of page.Responses[T])
            seen.add(item.v.S.slice(390000));
        keys = page.UnprocessedKeys;
        pages++;
    }
    eq(seen.size, 50);
    eq(pages, 2);
    for (const at of [0, 25])
        await api.BatchWriteItem({
            RequestItems: { [T]: items.slice(at, at + 25).map(({ pk }) => ({ DeleteRequest: { Key: { pk } } })) },
        });
});
test('BatchGetItem from two tables', async () => {
    const pk = await put({ pk: fresh(), a: N(1) });
    await put({ pk, sk: N(1), b: N(2) }, U);
    const { Responses, UnprocessedKeys } = await api.BatchGetItem({
        RequestItems: { [T]: { Keys: [{ pk }] }, [U]: { Keys: [{ pk, sk: N(1) }, { pk, sk: N(2) }] } },
    });
    eq(Responses, { [T]: [{ pk, a: N(1) }], [U]: [{ pk, sk: N(1), b: N(2) }] });
    eq(UnprocessedKeys, {});
});
test('BatchGetItem of nothing that is there', async () => {
    eq(without$(await api.BatchGetItem({ RequestItems: { [T]: { Keys: [{ pk: fresh() }] } } })),
        { Responses: { [T]: [] }, UnprocessedKeys: {} });
});
test('BatchGetItem with a projection', async () => {
    const pk = await put({ pk: fresh(), a: N(1), b: N(2), c: N(3) });
    const { Responses } = await api.BatchGetItem({
        RequestItems: {
            [T]: { Keys: [{ pk }], ProjectionExpression: '#a, c', ExpressionAttributeNames: { '#a': 'a' }, ConsistentRead: true },
        },
    });
    eq(Responses, { [T]: [{ a: N(1), c: N(3) }] });
});
test('BatchGetItem of 100 keys', async () => {
    const keys = upTo(100).map(() => ({ pk: fresh() }));
    for (let at = 0; at < 100; at += 25)
        await api.BatchWriteItem({ RequestItems: { [T]: keys.slice(at, at + 25).map((Item) => ({ PutRequest: { Item } })) } });
    const { Responses } = await api.BatchGetItem({ RequestItems: { [T]: { Keys: keys } } });
    eq(Responses[T].map((item) => item.pk.S).sort(), keys.map((key) => key.pk.S).sort());
});
test('BatchGetItem of 101 keys', () =>
    fails(api.BatchGetItem({ RequestItems: { [T]: { Keys: upTo(101).map(() => ({ pk: fresh() })) } } }), 'ValidationException',
        `1 validation error detected: Value at 'RequestItems.${T}.member.Keys' failed to satisfy constraint: ` +
        'Member must have length less than or equal to 100'));
test('the same key twice in BatchGetItem', () =>
    fails(api.BatchGetItem({ RequestItems: { [T]: { Keys: [{ pk: S('x') }, { pk: S('x') }] } } }), 'ValidationException',
        'Provided list of item keys contains duplicates'));
test('capacity of batches', async () => {
    const pk = fresh();
    const wrote = await api.BatchWriteItem({
        RequestItems: { [T]: [{ PutRequest: { Item: { pk } } }] }, ReturnConsumedCapacity: 'TOTAL',
    });
    eq(wrote.ConsumedCapacity, [{ TableName: T, CapacityUnits: 1 }]);
    const read = await api.BatchGetItem({
        RequestItems: { [T]: { Keys: [{ pk }, { pk: fresh() }] } }, ReturnConsumedCapacity: 'TOTAL',
    });
    eq(read.ConsumedCapacity, [{ TableName: T, CapacityUnits: 1 }]);
});

/* ---- transactions --------------------------------------------------------------------------- */

const write = (...TransactItems) => api.TransactWriteItems({ TransactItems });

test('a transaction of all four kinds', async () => {
    const [a, b, c, d] = [fresh(), await put({ pk: fresh(), v: N(1) }), await put({ pk: fresh() }), await put({ pk: fresh(), ok: N(1) })];
    const answer = await write(
        { Put: { TableName: T, Item: { pk: a, v: S('put') } } },
        { Update: { TableName: T, Key: { pk: b }, UpdateExpression: 'ADD v :one', ExpressionAttributeValues: { ':one': N(1) } } },
        { Delete: { TableName: T, Key: { pk: c } } },
        { ConditionCheck: { TableName: T, Key: { pk: d }, ConditionExpression: 'ok = :one', ExpressionAttributeValues: { ':one': N(1) } } });
    eq(without$(answer), {});
    eq([await get(a), await get(b), await get(c)], [{ pk: a, v: S('put') }, { pk: b, v: N(2) }, undefined]);
});
test('a transaction is all or nothing', async () => {
    const [a, b] = [fresh(), await put({ pk: fresh(), v: N(1) })];
    const error = await fails(write(
        { Put: { TableName: T, Item: { pk: a } } },
        { Update: { TableName: T, Key: { pk: b }, UpdateExpression: 'SET v = :x', ConditionExpression: 'v = :x', ExpressionAttributeValues: { ':x': N(9) } } }),
    dynamodb.TransactionCanceledException,
    'Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed]');
    eq(error.CancellationReasons, [{ Code: 'None' }, { Code: 'ConditionalCheckFailed', Message: 'The conditional request failed' }]);
    eq([await get(a), (await get(b)).v], [undefined, N(1)]);
});
test('a cancelled transaction brings the item when asked', async () => {
    const pk = await put({ pk: fresh(), v: N(1) });
    const error = await fails(write({
        Put: { TableName: T, Item: { pk }, ConditionExpression: 'attribute_not_exists(pk)', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' },
    }), dynamodb.TransactionCanceledException,
    'Transaction cancelled, please refer cancellation reasons for specific reasons [ConditionalCheckFailed]');
    eq(error.CancellationReasons, [{ Code: 'ConditionalCheckFailed', Message: 'The conditional request failed', Item: { pk, v: N(1) } }]);
});
test('a wrong key cancels with ValidationError', async () => {
    const error = await fails(write({ Put: { TableName: T, Item: { pk: fresh() } } }, { Put: { TableName: T, Item: { pk: N(1) } } }),
        dynamodb.TransactionCanceledException,
        'Transaction cancelled, please refer cancellation reasons for specific reasons [None, ValidationError]');
    eq(error.CancellationReasons, [{ Code: 'None' }, {
        Code: 'ValidationError', Message: 'One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N',
    }]);
});
test('one item twice in a transaction', () =>
    fails(write({ Put: { TableName: T, Item: { pk: S('x') } } }, { Delete: { TableName: T, Key: { pk: S('x') } } }), 'ValidationException',
        'Transaction request cannot include multiple operations on one item'));
test('a transaction of 100 puts', async () => {
    const keys = upTo(100).map(fresh);
    await write(...keys.map((pk, i) => ({ Put: { TableName: T, Item: { pk, v: N(i) } } })));
    const { Responses } = await api.TransactGetItems({ TransactItems: keys.map((pk) => ({ Get: { TableName: T, Key: { pk } } })) });
    eq(Responses, keys.map((pk, i) => ({ Item: { pk, v: N(i) } })));
});
test('101 actions are too many', () =>
    fails(write(...upTo(101).map(() => ({ Put: { TableName: T, Item: { pk: fresh() } } }))), 'ValidationException',
        /^1 validation error detected: Value '\[.*\]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100$/));
test('a transaction with a table that is not there', () =>
    fails(write({ Put: { TableName: newName('missing'), Item: { pk: fresh() } } }), dynamodb.ResourceNotFoundException,
        'Requested resource not found'));
test('a transaction above 4 MB', () =>
    fails(write(...upTo(11).map(() => ({ Put: { TableName: T, Item: { pk: fresh(), v: S('x'.repeat(400000)) } } }))),
        'ValidationException', 'Transaction size cannot exceed 4 MB'));
test('a token makes a transaction happen once', async () => {
    const pk = await put({ pk: fresh(), v: N(0) });
    const once = () => api.TransactWriteItems({
        ClientRequestToken: `token-${pk.S}`,
        TransactItems: [{ Update: { TableName: T, Key: { pk }, UpdateExpression: 'ADD v :one', ExpressionAttributeValues: { ':one': N(1) } } }],
    });
    await once();
    await once();
    eq((await get(pk)).v, N(1));
});
test('the SDK makes a token for each transaction', async () => {
    const pk = await put({ pk: fresh(), v: N(0) });
    const add = { Update: { TableName: T, Key: { pk }, UpdateExpression: 'ADD v :one', ExpressionAttributeValues: { ':one': N(1) } } };
    await write(add);
    await write(add);
    eq((await get(pk)).v, N(2));
});
test('a token with another request', async () => {
    const ClientRequestToken = `token-${fresh().S}`;
    const call = (v) => api.TransactWriteItems({ ClientRequestToken, TransactItems: [{ Put: { TableName: T, Item: { pk: S('tok'), v } } }] });
    await call(N(1));
    await fails(call(N(2)), dynamodb.IdempotentParameterMismatchException,
        'The request uses the same client token as a previous, but non-identical request. Do not reuse a client token with ' +
        'different requests, unless the requests are identical');
    eq((await get(S('tok'))).v, N(1));
});
test('TransactGetItems has its answers in order', async () => {
    const a = await put({ pk: fresh(), v: N(1) }), c = await put({ pk: fresh(), v: N(3), w: N(4) });
    const { Responses } = await api.TransactGetItems({
        TransactItems: [{ Get: { TableName: T, Key: { pk: a } } }, { Get: { TableName: T, Key: { pk: fresh() } } },
            { Get: { TableName: T, Key: { pk: c }, ProjectionExpression: 'w' } }],
    });
    eq(Responses, [{ Item: { pk: a, v: N(1) } }, {}, { Item: { w: N(4) } }]);
});
test('TransactGetItems with a key twice', () =>
    fails(api.TransactGetItems({ TransactItems: upTo(2).map(() => ({ Get: { TableName: T, Key: { pk: S('x') } } })) }),
        'ValidationException', 'Transaction request cannot include multiple operations on one item'));
test('capacity of transactions', async () => {
    const pk = fresh();
    const wrote = await api.TransactWriteItems({
        TransactItems: [{ Put: { TableName: T, Item: { pk } } }], ReturnConsumedCapacity: 'TOTAL',
    });
    eq(wrote.ConsumedCapacity, [{ TableName: T, CapacityUnits: 2, WriteCapacityUnits: 2 }]);
    const read = await api.TransactGetItems({
        TransactItems: [{ Get: { TableName: T, Key: { pk } } }], ReturnConsumedCapacity: 'TOTAL',
    });
    eq(read.ConsumedCapacity, [{ TableName: T, CapacityUnits: 2, ReadCapacityUnits: 2 }]);
});
test('transfers at the same time keep the sum', async () => {
    const accounts = await Promise.all(upTo(4).map(() => put({ pk: fresh(), v: N(100) })));
    const add = (pk, by) => ({
        Update: { TableName: T, Key: { pk }, UpdateExpression: 'ADD v :by', ExpressionAttributeValues: { ':by': N(by) } },
    });
    const results = await Promise.allSettled(upTo(60).map((i) =>
        write(add(accounts[i % 4], -i), add(accounts[(i + 1) % 4], i))));
    for (const each of results)
        if (each.status === 'rejected')
            assert(each.reason instanceof dynamodb.TransactionCanceledException ||
                each.reason instanceof dynamodb.TransactionConflictException, String(each.reason));
    assert(results.some((each) => each.status === 'fulfilled'));
    let sum = 0;
    for (const pk of accounts)
        sum += Number((await get(pk)).v.N);
    eq(sum, 400);
});
