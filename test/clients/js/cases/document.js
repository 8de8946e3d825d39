/* lib-dynamodb and util-dynamodb: JavaScript values instead of typed ones. */
'use strict';
const assert = require('assert');
const dynamodb = require('@aws-sdk/client-dynamodb');
const library = require('@aws-sdk/lib-dynamodb');
const { marshall, unmarshall, NumberValueImpl } = require('@aws-sdk/util-dynamodb');
const { before, after, test, eq, fails } = require('../lib/suite');
const { api, doc, documentClient, makeDoc, commands, makeTable, dropTable, without$ } = require('../lib/clients');

let T, n = 0;
const fresh = () => `d${++n}`;
const upTo = (end, from = 0) => Array.from({ length: end - from }, (_, i) => from + i);
const get = async (id, more = {}) => (await doc.Get({ TableName: T, Key: { id, at: 0 }, ConsistentRead: true, ...more })).Item;
const typed = async (id) => (await api.GetItem({ TableName: T, Key: { id: { S: id }, at: { N: '0' } } })).Item;

async function put(more) {
    const id = fresh();
    await doc.Put({ TableName: T, Item: { id, at: 0, ...more } });
    return id;
}

before(async () => {
    T = await makeTable('document', 'id:S', 'at:N', {
        AttributeDefinitions: [{ AttributeName: 'kind', AttributeType: 'S' }],
        GlobalSecondaryIndexes: [{
            IndexName: 'kinds', KeySchema: [{ AttributeName: 'kind', KeyType: 'HASH' }, { AttributeName: 'at', KeyType: 'RANGE' }],
            Projection: { ProjectionType: 'ALL' },
        }],
    });
});
after(() => dropTable(T));

/* ---- values both ways ----------------------------------------------------------------------- */

for (const [name, value, wire] of [
    ['a string', 'text', { S: 'text' }],
    ['an empty string', '', { S: '' }],
    ['emoji', '👩‍👩‍👧 žluť', { S: '👩‍👩‍👧 žluť' }],
    ['an integer', 42, { N: '42' }],
    ['a fraction', -0.125, { N: '-0.125' }],
    ['an exponent', 1.5e-7, { N: '0.00000015' }],
    ['the greatest safe integer', Number.MAX_SAFE_INTEGER, { N: '9007199254740991' }],
    ['true', true, { BOOL: true }],
    ['false', false, { BOOL: false }],
    ['null', null, { NULL: true }],
    ['bytes', Uint8Array.from([0, 255, 10]), { B: Uint8Array.from([0, 255, 10]) }],
    ['a list', [1, 'a', null, [true], { x: 1 }],
        { L: [{ N: '1' }, { S: 'a' }, { NULL: true }, { L: [{ BOOL: true }] }, { M: { x: { N: '1' } } }] }],
    ['an empty list', [], { L: [] }],
    ['an object', { a: { b: { c: [] } } }, { M: { a: { M: { b: { M: { c: { L: [] } } } } } } }],
    ['an empty object', {}, { M: {} }],
    ['a set of strings', new Set(['one']), { SS: ['one'] }],
    ['a set of numbers', new Set([7]), { NS: ['7'] }],
    ['a set of bytes', new Set([Uint8Array.from([1])]), { BS: [Uint8Array.from([1])] }],
    ['a BigInt that is safe', 12n, { N: '12' }, 12],
])
    test(`document value: ${name}`, async () => {
        const id = await put({ v: value });
        eq((await typed(id)).v, wire);
        eq((await get(id)).v, typeof value === 'bigint' ? Number(value) : value);
    });

test('document value: a set of many', async () => {
    const id = await put({ v: new Set(['x', 'y', 'z']), w: new Set([1, 2.5, -3]) });
    eq(await get(id), { id, at: 0, v: new Set(['x', 'y', 'z']), w: new Set([1, 2.5, -3]) });
});
test('document value: undefined is left out', async () => {
    const id = await put({ v: undefined, w: { x: undefined, y: 1 } });
    eq(await get(id), { id, at: 0, w: { y: 1 } });
});
test('an integer too great for a Number is a BigInt', async () => {
    const id = await put({ v: 1234567890123456789012345n });
    eq((await typed(id)).v, { N: '1234567890123456789012345' });
    eq((await doc.Get({ TableName: T, Key: { id, at: 0 } })).Item.v, 1234567890123456789012345n);
});
test('NumberValue keeps 38 digits', async () => {
    const digits = '0.12345678901234567890123456789012345678';
    const id = await put({ v: library.NumberValue.from(digits), w: new Set([library.NumberValue.from('12345678901234567890123')]) });
    eq((await typed(id)).v, { N: digits });
    const exact = commands(makeDoc({ unmarshallOptions: { wrapNumbers: true } }), library);
    const { Item } = await exact.Get({ TableName: T, Key: { id, at: 0 } });
    assert(Item.v instanceof NumberValueImpl);
    eq(Item.v.toString(), digits);
    eq(Item.at.toString(), '0');
    eq([...Item.w].map(String), ['12345678901234567890123']);
});
test('wrapNumbers can be a function', async () => {
    const id = await put({ v: 1.5 });
    const text = commands(makeDoc({ unmarshallOptions: { wrapNumbers: (number) => `#${number}` } }), library);
    eq((await text.Get({ TableName: T, Key: { id, at: 0 } })).Item, { id, at: '#0', v: '#1.5' });
});
test('convertEmptyValues stores null for what is empty', async () => {
    const id = fresh();
    const empty = commands(makeDoc({ marshallOptions: { convertEmptyValues: true } }), library);
    await empty.Put({ TableName: T, Item: { id, at: 0, s: '', set: new Set(), b: new Uint8Array(0) } });
    eq(await get(id), { id, at: 0, s: null, set: null, b: null });
});
test('convertClassInstanceToMap', async () => {
    class Point {
        constructor(x, y) {
            this.x = x;
            this.y = y;
        }
    }
    const id = fresh();
    await commands(makeDoc({ marshallOptions: { convertClassInstanceToMap: true } }), library)
        .Put({ TableName: T, Item: { id, at: 0, p: new Point(1, 2) } });
    eq((await get(id)).p, { x: 1, y: 2 });
});
test('an empty set does not leave the SDK', () =>
    fails(doc.Put({ TableName: T, Item: { id: fresh(), at: 0, v: new Set() } }), 'Error',
        'Pass a non-empty set, or options.convertEmptyValues=true.'));
test('marshall and unmarshall agree with the server', async () => {
    const value = { id: fresh(), at: 0, list: [1, { deep: new Set(['a']) }], bytes: Uint8Array.from([1, 2, 3]), nothing: null };
    await api.PutItem({ TableName: T, Item: marshall(value) });
    eq(unmarshall(await typed(value.id)), value);
});
test('a Buffer of all bytes', async () => {
    const v = Buffer.from(upTo(256));
    const id = await put({ v });
    eq(Buffer.compare(Buffer.from((await get(id)).v), v), 0);
});
test('binary of every length up to 16', async () => {
    const v = upTo(17).map((length) => Uint8Array.from(upTo(length).map((i) => 250 - i)));
    const id = await put({ v });
    eq((await get(id)).v, v);
});

/* ---- commands ------------------------------------------------------------------------------- */

test('document PutCommand with ALL_OLD', async () => {
    const id = await put({ v: 1 });
    const { Attributes } = await doc.Put({ TableName: T, Item: { id, at: 0, v: 2 }, ReturnValues: 'ALL_OLD' });
    eq(Attributes, { id, at: 0, v: 1 });
});
test('document UpdateCommand', async () => {
    const id = await put({ v: 1, tags: new Set(['a']), list: [1] });
    const { Attributes } = await doc.Update({
        TableName: T, Key: { id, at: 0 }, ReturnValues: 'ALL_NEW',
        UpdateExpression: 'SET v = v + :one, #l = list_append(#l, :more) ADD tags :tags',
        ExpressionAttributeNames: { '#l': 'list' },
        ExpressionAttributeValues: { ':one': 1, ':more': [{ x: 2 }], ':tags': new Set(['b']) },
    });
    eq(Attributes, { id, at: 0, v: 2, tags: new Set(['a', 'b']), list: [1, { x: 2 }] });
});
test('document DeleteCommand', async () => {
    const id = await put({ v: [1] });
    const { Attributes } = await doc.Delete({
        TableName: T, Key: { id, at: 0 }, ConditionExpression: 'v = :v', ExpressionAttributeValues: { ':v': [1] }, ReturnValues: 'ALL_OLD',
    });
    eq(Attributes, { id, at: 0, v: [1] });
    eq(await get(id), undefined);
});
test('document GetCommand with a projection', async () => {
    const id = await put({ a: { b: [1, 2, 3] }, c: 1 });
    eq(await get(id, { ProjectionExpression: 'a.b[2]' }), { a: { b: [3] } });
});
test('a condition that failed, with the item', async () => {
    const id = await put({ v: 1 });
    const error = await fails(doc.Put({
        TableName: T, Item: { id, at: 0 }, ConditionExpression: 'attribute_not_exists(id)', ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }), dynamodb.ConditionalCheckFailedException, 'The conditional request failed');
    eq(unmarshall(error.Item), { id, at: 0, v: 1 });
});
test('document BatchWriteCommand and BatchGetCommand', async () => {
    const items = upTo(10).map((i) => ({ id: fresh(), at: 0, v: { i } }));
    const wrote = await doc.BatchWrite({ RequestItems: { [T]: items.map((Item) => ({ PutRequest: { Item } })) } });
    eq(wrote.UnprocessedItems, {});
    const { Responses, UnprocessedKeys } = await doc.BatchGet({
        RequestItems: { [T]: { Keys: items.map(({ id, at }) => ({ id, at })) } },
    });
    eq(Responses[T].sort((a, b) => a.v.i - b.v.i), items);
    eq(UnprocessedKeys, {});
    await doc.BatchWrite({ RequestItems: { [T]: items.map(({ id, at }) => ({ DeleteRequest: { Key: { id, at } } })) } });
    eq(await get(items[0].id), undefined);
});
test('document TransactWriteCommand and TransactGetCommand', async () => {
    const [a, b, c] = [fresh(), await put({ v: 1 }), await put({})];
    await doc.TransactWrite({
        TransactItems: [
            { Put: { TableName: T, Item: { id: a, at: 0, set: new Set([1]) } } },
            { Update: { TableName: T, Key: { id: b, at: 0 }, UpdateExpression: 'SET v = :v', ExpressionAttributeValues: { ':v': { x: null } } } },
            { Delete: { TableName: T, Key: { id: c, at: 0 } } },
            { ConditionCheck: { TableName: T, Key: { id: 'nobody', at: 0 }, ConditionExpression: 'attribute_not_exists(id)' } },
        ],
    });
    const { Responses } = await doc.TransactGet({
        TransactItems: [a, b, c].map((id) => ({ Get: { TableName: T, Key: { id, at: 0 } } })),
    });
    eq(Responses, [{ Item: { id: a, at: 0, set: new Set([1]) } }, { Item: { id: b, at: 0, v: { x: null } } }, {}]);
});
test('document TransactWriteCommand that is cancelled', async () => {
    const id = await put({ v: 1 });
    const error = await fails(doc.TransactWrite({
        TransactItems: [
            { Put: { TableName: T, Item: { id: fresh(), at: 0 } } },
            { Update: { TableName: T, Key: { id, at: 0 }, UpdateExpression: 'SET v = :v', ConditionExpression: 'v > :v',
                ExpressionAttributeValues: { ':v': 5 }, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } },
        ],
    }), dynamodb.TransactionCanceledException,
    'Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed]');
    eq(error.CancellationReasons.map((reason) => reason.Code), ['None', 'ConditionalCheckFailed']);
    eq(unmarshall(error.CancellationReasons[1].Item), { id, at: 0, v: 1 });
});

/* ---- pages ---------------------------------------------------------------------------------- */

test('document QueryCommand on an index', async () => {
    for (const at of [3, 1, 2])
        await doc.Put({ TableName: T, Item: { id: 'indexed', at, kind: 'k', nested: { at } } });
    const { Items, Count } = await doc.Query({
        TableName: T, IndexName: 'kinds', KeyConditionExpression: 'kind = :k AND #at < :three',
        ExpressionAttributeNames: { '#at': 'at' },
        ExpressionAttributeValues: { ':k': 'k', ':three': 3 },
    });
    eq(Items.map((item) => item.nested.at), [1, 2]);
    eq(Count, 2);
});
test('document paginateQuery', async () => {
    for (const at of upTo(23))
        await doc.Put({ TableName: T, Item: { id: 'pages', at, v: `v${at}` } });
    const seen = [];
    let pages = 0;
    for await (const page of library.paginateQuery({ client: documentClient, pageSize: 5 },
        { TableName: T, KeyConditionExpression: 'id = :id', ExpressionAttributeValues: { ':id': 'pages' } })) {
        seen.push(...page.Items.map((item) => item.at));
        if (page.LastEvaluatedKey)
            eq(page.LastEvaluatedKey, { id: 'pages', at: seen[seen.length - 1] });
        pages++;
    }
    eq(seen, upTo(23));
    eq(pages, 5);
});
test('document paginateScan with a filter', async () => {
    for (const at of upTo(10))
        await doc.Put({ TableName: T, Item: { id: 'scanned', at, odd: at % 2 === 1 } });
    const seen = [];
    for await (const page of library.paginateScan({ client: documentClient, pageSize: 3 },
        { TableName: T, FilterExpression: 'odd = :t', ExpressionAttributeValues: { ':t': true } }))
        seen.push(...page.Items.map((item) => item.at));
    eq(seen.sort((a, b) => a - b), [1, 3, 5, 7, 9]);
});
test('document ScanCommand in parallel segments', async () => {
    const ids = upTo(30).map(() => fresh());
    for (const id of ids)
        await doc.Put({ TableName: T, Item: { id, at: 0, part: true } });
    const parts = await Promise.all(upTo(3).map(async (Segment) => (await doc.Scan({
        TableName: T, Segment, TotalSegments: 3, FilterExpression: 'attribute_exists(part)',
    })).Items.map((item) => item.id)));
    eq(parts.flat().sort(), ids.sort());
});
test('DynamoDBDocument, the client with methods', async () => {
    const whole = library.DynamoDBDocument.from(documentClient);
    const id = fresh();
    await whole.put({ TableName: T, Item: { id, at: 0, v: [1, 2] } });
    eq((await whole.get({ TableName: T, Key: { id, at: 0 } })).Item, { id, at: 0, v: [1, 2] });
    eq((await whole.update({ TableName: T, Key: { id, at: 0 }, UpdateExpression: 'REMOVE v[0]', ReturnValues: 'ALL_NEW' })).Attributes,
        { id, at: 0, v: [2] });
    eq(without$(await whole.delete({ TableName: T, Key: { id, at: 0 } })), {});
});
test('legacy parameters through the document client', async () => {
    const id = await put({ v: 1 });
    await doc.Update({ TableName: T, Key: { id, at: 0 }, AttributeUpdates: { v: { Action: 'ADD', Value: 2 } } });
    await fails(doc.Delete({ TableName: T, Key: { id, at: 0 }, Expected: { v: { Value: 1 } } }), dynamodb.ConditionalCheckFailedException);
    const { Items } = await doc.Query({ TableName: T, KeyConditions: { id: { ComparisonOperator: 'EQ', AttributeValueList: [id] } } });
    eq(Items, [{ id, at: 0, v: 3 }]);
});
