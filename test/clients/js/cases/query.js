/* Query and Scan: key conditions, order, filters, pages, indexes, segments. */
'use strict';
const assert = require('assert');
const dynamodb = require('@aws-sdk/client-dynamodb');
const { before, after, test, eq, fails } = require('../lib/suite');
const { api, client, newName, makeTable, dropTable, without$ } = require('../lib/clients');

const S = (text) => ({ S: text });
const N = (number) => ({ N: String(number) });
let T, X, BIG, NUM, BIN;
const PARTITION = 20;

async function fill(TableName, items) {
    for (let at = 0; at < items.length; at += 25)
        await api.BatchWriteItem({
            RequestItems: { [TableName]: items.slice(at, at + 25).map((Item) => ({ PutRequest: { Item } })) },
        });
}

const gsi = (IndexName, hash, range, Projection) => ({
    IndexName, Projection,
    KeySchema: [{ AttributeName: hash, KeyType: 'HASH' }, ...range ? [{ AttributeName: range, KeyType: 'RANGE' }] : []],
});

before(async () => {
    T = await makeTable('query', 'pk:S', 'sk:S');
    await fill(T, Array.from({ length: PARTITION }, (_, i) => ({
        pk: S('a'), sk: S(`item-${String(i).padStart(2, '0')}`), n: N(i), even: { BOOL: i % 2 === 0 },
        doc: { M: { text: S(`text ${i}`), list: { L: [N(i), N(i * 2)] } } },
    })));
    await fill(T, [{ pk: S('b'), sk: S('only'), n: N(100) }]);

    X = await makeTable('indexed', 'pk:S', 'sk:N', {
        AttributeDefinitions: [{ AttributeName: 'g', AttributeType: 'S' }, { AttributeName: 'h', AttributeType: 'N' },
            { AttributeName: 'l', AttributeType: 'S' }],
        GlobalSecondaryIndexes: [
            gsi('all', 'g', 'h', { ProjectionType: 'ALL' }),
            gsi('keys', 'g', null, { ProjectionType: 'KEYS_ONLY' }),
            gsi('some', 'g', 'h', { ProjectionType: 'INCLUDE', NonKeyAttributes: ['v'] }),
        ],
        LocalSecondaryIndexes: [gsi('local', 'pk', 'l', { ProjectionType: 'KEYS_ONLY' })],
    });
    await fill(X, Array.from({ length: 12 }, (_, i) => ({
        pk: S(`p${i % 2}`), sk: N(i), ...i < 10 && { g: S(`g${i % 3}`), h: N(-i) }, l: S(`l${11 - i}`),
        v: S(`v${i}`), w: S(`w${i}`),
    })));

    BIG = await makeTable('big', 'pk:S', 'sk:N');
    for (let i = 0; i < 12; i++)
        await api.PutItem({ TableName: BIG, Item: { pk: S('big'), sk: N(i), v: S('x'.repeat(200000)) } });

    NUM = await makeTable('numbers', 'pk:N', 'sk:N');
    await fill(NUM, ['-1e20', '-1', '-0.5', '0', '1e-10', '0.5', '1', '2', '10', '1e38']
        .map((sk) => ({ pk: N(1), sk: N(sk) })));

    BIN = await makeTable('binary', 'pk:B', 'sk:B');
    await fill(BIN, [[0], [0, 0], [1], [127], [128], [255], [255, 0]]
        .map((sk) => ({ pk: { B: Uint8Array.from([7]) }, sk: { B: Uint8Array.from(sk) } })));
});
after(async () => {
    for (const each of [T, X, BIG, NUM, BIN])
        await dropTable(each);
});

const query = (KeyConditionExpression, values, more = {}) => api.Query({
    TableName: T, KeyConditionExpression, ExpressionAttributeValues: values, ...more,
});
const numbers = (page) => page.Items.map((item) => Number(item.n.N));
const upTo = (end, from = 0) => Array.from({ length: end - from }, (_, i) => from + i);
const A = { ':a': S('a') };

/* ---- key conditions ------------------------------------------------------------------------- */

for (const [condition, values, expected] of [
    ['pk = :a', {}, upTo(20)],
    ['pk = :a AND sk = :s', { ':s': S('item-03') }, [3]],
    ['pk = :a AND sk < :s', { ':s': S('item-03') }, [0, 1, 2]],
    ['pk = :a AND sk <= :s', { ':s': S('item-03') }, [0, 1, 2, 3]],
    ['pk = :a AND sk > :s', { ':s': S('item-17') }, [18, 19]],
    ['pk = :a AND sk >= :s', { ':s': S('item-17') }, [17, 18, 19]],
    ['pk = :a AND sk BETWEEN :s AND :t', { ':s': S('item-05'), ':t': S('item-08') }, [5, 6, 7, 8]],
    ['pk = :a AND begins_with(sk, :s)', { ':s': S('item-1') }, upTo(20, 10)],
    ['begins_with(sk, :s) AND pk = :a', { ':s': S('item-0') }, upTo(10)],
    ['(pk = :a) AND (:s > sk)', { ':s': S('item-02') }, [0, 1]],
    ['pk = :a AND sk = :s', { ':s': S('nothing') }, []],
])
    test(`query ${condition} ${Object.values(values).map((value) => value.S).join()}`, async () => {
        const page = await query(condition, { ...A, ...values });
        eq(numbers(page), expected);
        eq(page.Count, expected.length);
        eq(page.ScannedCount, expected.length);
        eq(page.LastEvaluatedKey, undefined);
    });

test('query backwards', async () => {
    eq(numbers(await query('pk = :a', A, { ScanIndexForward: false })), upTo(20).reverse());
});
test('query of a partition that is not there', async () => {
    eq(without$(await query('pk = :a', { ':a': S('nobody') })), { Items: [], Count: 0, ScannedCount: 0 });
});
test('query with names', async () => {
    eq(numbers(await query('#p = :a AND #s = :s', { ...A, ':s': S('item-07') },
        { ExpressionAttributeNames: { '#p': 'pk', '#s': 'sk' } })), [7]);
});
test('query with KeyConditions', async () => {
    eq(numbers(await api.Query({
        TableName: T, KeyConditions: {
            pk: { ComparisonOperator: 'EQ', AttributeValueList: [S('a')] },
            sk: { ComparisonOperator: 'BETWEEN', AttributeValueList: [S('item-01'), S('item-02')] },
        },
    })), [1, 2]);
});
test('numbers are in order of value', async () => {
    const { Items } = await api.Query({
        TableName: NUM, KeyConditionExpression: 'pk = :p', ExpressionAttributeValues: { ':p': N('1.0') },
    });
    eq(Items.map((item) => Number(item.sk.N)), [-1e20, -1, -0.5, 0, 1e-10, 0.5, 1, 2, 10, 1e38]);
});
test('binary is in order of unsigned bytes', async () => {
    const { Items } = await api.Query({
        TableName: BIN, KeyConditionExpression: 'pk = :p AND sk >= :s',
        ExpressionAttributeValues: { ':p': { B: Uint8Array.from([7]) }, ':s': { B: Uint8Array.from([0, 0]) } },
    });
    eq(Items.map((item) => [...item.sk.B]), [[0, 0], [1], [127], [128], [255], [255, 0]]);
});

/* ---- filters, projections, counts ----------------------------------------------------------- */

test('a filter counts what it let through', async () => {
    const page = await query('pk = :a', { ...A, ':n': N(15) }, { FilterExpression: 'n >= :n' });
    eq(numbers(page), upTo(20, 15));
    eq([page.Count, page.ScannedCount], [5, 20]);
});
test('a filter over nested values', async () => {
    const page = await query('pk = :a', { ...A, ':x': N(8) }, { FilterExpression: 'doc.#l[1] = :x',
        ExpressionAttributeNames: { '#l': 'list' } });
    eq(numbers(page), [4]);
});
test('a filter on a key is refused', () =>
    fails(query('pk = :a', { ...A, ':s': S('x') }, { FilterExpression: 'sk = :s' }), 'ValidationException',
        'Filter Expression can only contain non-primary key attributes: Primary key attribute: sk'));
test('a projection', async () => {
    const page = await query('pk = :a AND sk = :s', { ...A, ':s': S('item-04') }, { ProjectionExpression: 'doc.#l[0], n',
        ExpressionAttributeNames: { '#l': 'list' } });
    eq(page.Items, [{ n: N(4), doc: { M: { list: { L: [N(4)] } } } }]);
});
test('Select COUNT has no items', async () => {
    eq(without$(await query('pk = :a', A, { Select: 'COUNT' })), { Count: 20, ScannedCount: 20 });
});
test('QueryFilter', async () => {
    const page = await api.Query({
        TableName: T, KeyConditions: { pk: { ComparisonOperator: 'EQ', AttributeValueList: [S('a')] } },
        QueryFilter: { n: { ComparisonOperator: 'IN', AttributeValueList: [N(3), N(5), N(77)] } },
    });
    eq(numbers(page), [3, 5]);
});

/* ---- pages ---------------------------------------------------------------------------------- */

test('a limit gives a key to go on from', async () => {
    const page = await query('pk = :a', A, { Limit: 3 });
    eq(numbers(page), [0, 1, 2]);
    eq(page.LastEvaluatedKey, { pk: S('a'), sk: S('item-02') });
    const next = await query('pk = :a', A, { Limit: 3, ExclusiveStartKey: page.LastEvaluatedKey });
    eq(numbers(next), [3, 4, 5]);
});
test('a limit that is met exactly still gives a key', async () => {
    const page = await query('pk = :a', A, { Limit: 20 });
    eq(page.Count, 20);
    eq(page.LastEvaluatedKey, { pk: S('a'), sk: S('item-19') });
    const next = await query('pk = :a', A, { ExclusiveStartKey: page.LastEvaluatedKey });
    eq(without$(next), { Items: [], Count: 0, ScannedCount: 0 });
});
test('a page can be empty and go on', async () => {
    const page = await query('pk = :a', { ...A, ':n': N(19) }, { Limit: 5, FilterExpression: 'n = :n' });
    eq([page.Count, page.ScannedCount, page.LastEvaluatedKey.sk.S], [0, 5, 'item-04']);
});
for (const pageSize of [1, 3, 7, 20, 100])
    test(`paginateQuery by ${pageSize}`, async () => {
        const seen = [];
        let pages = 0;
        for await (const page of dynamodb.paginateQuery({ client, pageSize },
            { TableName: T, KeyConditionExpression: 'pk = :a', ExpressionAttributeValues: A })) {
            assert(page.Items.length <= pageSize);
            seen.push(...numbers(page));
            pages++;
        }
        eq(seen, upTo(20));
        eq(pages, pageSize > 20 ? 1 : Math.floor(20 / pageSize) + 1);
    });
test('paginateQuery backwards', async () => {
    const seen = [];
    for await (const page of dynamodb.paginateQuery({ client, pageSize: 6 }, {
        TableName: T, KeyConditionExpression: 'pk = :a', ExpressionAttributeValues: A, ScanIndexForward: false,
    }))
        seen.push(...numbers(page));
    eq(seen, upTo(20).reverse());
});
test('paginateQuery from a key', async () => {
    const seen = [];
    for await (const page of dynamodb.paginateQuery(
        { client, pageSize: 4, startingToken: { pk: S('a'), sk: S('item-15') } },
        { TableName: T, KeyConditionExpression: 'pk = :a', ExpressionAttributeValues: A }))
        seen.push(...numbers(page));
    eq(seen, [16, 17, 18, 19]);
});
test('a page ends behind 1 MB', async () => {
    const sizes = [];
    for await (const page of dynamodb.paginateQuery({ client },
        { TableName: BIG, KeyConditionExpression: 'pk = :p', ExpressionAttributeValues: { ':p': S('big') } }))
        sizes.push(page.Count);
    eq(sizes, [6, 6, 0]);
});
test('a count ends behind 1 MB too', async () => {
    const { Count, LastEvaluatedKey } = await api.Query({
        TableName: BIG, KeyConditionExpression: 'pk = :p', ExpressionAttributeValues: { ':p': S('big') }, Select: 'COUNT',
    });
    eq([Count, LastEvaluatedKey], [6, { pk: S('big'), sk: N(5) }]);
});
test('a start key from elsewhere is refused', () =>
    fails(query('pk = :a', A, { ExclusiveStartKey: { pk: S('b'), sk: S('only') } }), 'ValidationException',
        'The provided starting key is outside query boundaries based on provided conditions'));
test('a start key with a member too many is refused', () =>
    fails(query('pk = :a', A, { ExclusiveStartKey: { pk: S('a'), sk: S('only'), x: N(1) } }), 'ValidationException',
        'The provided starting key is invalid'));
test('a limit of 0 is refused', () =>
    fails(query('pk = :a', A, { Limit: 0 }), 'ValidationException',
        "1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1"));

/* ---- errors --------------------------------------------------------------------------------- */

test('a query needs the hash key', () =>
    fails(query('sk = :a', A), 'ValidationException', 'Query condition missed key schema element: pk'));
test('a query needs equality for the hash key', () =>
    fails(query('pk > :a', A), 'ValidationException', 'Query key condition not supported'));
test('a query has no OR', () =>
    fails(query('pk = :a OR sk = :a', A), 'ValidationException',
        'Invalid operator used in KeyConditionExpression: OR'));
test('a query of another type than the key', () =>
    fails(query('pk = :a', { ':a': N(1) }), 'ValidationException',
        'One or more parameter values were invalid: Condition parameter type does not match schema type'));
test('a query with a bad BETWEEN', () =>
    fails(query('pk = :a AND sk BETWEEN :s AND :t', { ...A, ':s': S('z'), ':t': S('a') }), 'ValidationException',
        'Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to lower bound; ' +
        'lower bound operand: AttributeValue: {S:z}, upper bound operand: AttributeValue: {S:a}'));
test('a query of no table', () =>
    fails(query('pk = :a', A, { TableName: newName('missing') }), dynamodb.ResourceNotFoundException,
        'Requested resource not found'));
test('a query without a condition', () =>
    fails(api.Query({ TableName: T }), 'ValidationException',
        'Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.'));
test('a value that no expression uses', () =>
    fails(query('pk = :a', { ...A, ':b': N(1) }), 'ValidationException',
        'Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}'));

/* ---- indexes -------------------------------------------------------------------------------- */

const queryX = (IndexName, KeyConditionExpression, values, more = {}) => api.Query({
    TableName: X, IndexName, KeyConditionExpression, ExpressionAttributeValues: values, ...more,
});

test('a global index is in order of its sort key', async () => {
    const { Items } = await queryX('all', 'g = :g', { ':g': S('g1') });
    eq(Items.map((item) => item.sk.N), ['7', '4', '1']);
    eq(Items[0], { pk: S('p1'), sk: N(7), g: S('g1'), h: N(-7), l: S('l4'), v: S('v7'), w: S('w7') });
});
test('a condition on the sort key of a global index', async () => {
    const { Items } = await queryX('all', 'g = :g AND h > :h', { ':g': S('g0'), ':h': N(-4) });
    eq(Items.map((item) => item.sk.N), ['3', '0']);
});
test('KEYS_ONLY has keys only', async () => {
    const { Items } = await queryX('keys', 'g = :g', { ':g': S('g2') });
    eq(Items.map((item) => Object.keys(item).sort().join()), ['g,pk,sk', 'g,pk,sk', 'g,pk,sk']);
});
test('INCLUDE has what is named', async () => {
    const { Items } = await queryX('some', 'g = :g AND h = :h', { ':g': S('g2'), ':h': N(-5) });
    eq(Items, [{ pk: S('p1'), sk: N(5), g: S('g2'), h: N(-5), v: S('v5') }]);
});
test('a page of an index has the keys of both', async () => {
    const page = await queryX('all', 'g = :g', { ':g': S('g1') }, { Limit: 1 });
    eq(page.LastEvaluatedKey, { g: S('g1'), h: N(-7), pk: S('p1'), sk: N(7) });
    const next = await queryX('all', 'g = :g', { ':g': S('g1') }, { ExclusiveStartKey: page.LastEvaluatedKey });
    eq(next.Items.map((item) => item.sk.N), ['4', '1']);
});
test('items without the key are not in an index', async () => {
    eq((await api.Scan({ TableName: X, IndexName: 'all' })).Count, 10);
    eq((await api.Scan({ TableName: X })).Count, 12);
});
test('a local index', async () => {
    const { Items } = await queryX('local', 'pk = :p AND begins_with(l, :l)', { ':p': S('p0'), ':l': S('l1') });
    eq(Items, [{ pk: S('p0'), l: S('l1'), sk: N(10) }, { pk: S('p0'), l: S('l11'), sk: N(0) }]);
});
test('a local index fetches what it lacks', async () => {
    const { Items } = await queryX('local', 'pk = :p AND l = :l', { ':p': S('p0'), ':l': S('l11') },
        { Select: 'ALL_ATTRIBUTES', ConsistentRead: true });
    eq(Items, [{ pk: S('p0'), sk: N(0), l: S('l11'), g: S('g0'), h: N(0), v: S('v0'), w: S('w0') }]);
});
test('a global index has no consistent reads', () =>
    fails(queryX('all', 'g = :g', { ':g': S('g1') }, { ConsistentRead: true }), 'ValidationException',
        'Consistent reads are not supported on global secondary indexes'));
test('a global index does not fetch', () =>
    fails(queryX('keys', 'g = :g', { ':g': S('g1') }, { Select: 'ALL_ATTRIBUTES' }), 'ValidationException',
        'One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index ' +
        'keys because its projection type is not ALL'));
test('an index that is not there', () =>
    fails(queryX('nope', 'g = :g', { ':g': S('g1') }), 'ValidationException',
        'The table does not have the specified index: nope'));
test('an index key of another type is refused', () =>
    fails(api.PutItem({ TableName: X, Item: { pk: S('p'), sk: N(1), g: N(1) } }), 'ValidationException',
        /One or more parameter values were invalid: Type mismatch for Index Key g Expected: S Actual: N IndexName: (all|keys|some)/));
test('an index follows updates and deletes', async () => {
    const Key = { pk: S('moving'), sk: N(1) };
    const seen = async (g) => (await queryX('keys', 'g = :g', { ':g': S(g) })).Count;
    await api.PutItem({ TableName: X, Item: { ...Key, g: S('from') } });
    eq([await seen('from'), await seen('to')], [1, 0]);
    await api.UpdateItem({ TableName: X, Key, UpdateExpression: 'SET g = :g', ExpressionAttributeValues: { ':g': S('to') } });
    eq([await seen('from'), await seen('to')], [0, 1]);
    await api.DeleteItem({ TableName: X, Key });
    eq([await seen('from'), await seen('to')], [0, 0]);
});
test('capacity of indexes', async () => {
    const { ConsumedCapacity } = await queryX('all', 'g = :g', { ':g': S('g1') }, { ReturnConsumedCapacity: 'INDEXES' });
    eq(ConsumedCapacity, {
        TableName: X, CapacityUnits: 0.5, Table: { CapacityUnits: 0 },
        GlobalSecondaryIndexes: { all: { CapacityUnits: 0.5 } },
    });
});
test('ItemCollectionMetrics of a table with a local index', async () => {
    const Key = { pk: S('metrics'), sk: N(1) };
    const { ItemCollectionMetrics } = await api.PutItem({ TableName: X, Item: Key, ReturnItemCollectionMetrics: 'SIZE' });
    eq(ItemCollectionMetrics, { ItemCollectionKey: { pk: S('metrics') }, SizeEstimateRangeGB: [0, 1] });
    await api.DeleteItem({ TableName: X, Key });
});

/* ---- scan ----------------------------------------------------------------------------------- */

test('scan sees everything', async () => {
    const page = await api.Scan({ TableName: T });
    eq([page.Count, page.ScannedCount, page.LastEvaluatedKey], [21, 21, undefined]);
});
test('scan with a filter', async () => {
    const page = await api.Scan({
        TableName: T, FilterExpression: 'even = :t AND n > :n', ExpressionAttributeValues: { ':t': { BOOL: true }, ':n': N(13) },
    });
    eq(numbers(page).sort((a, b) => a - b), [14, 16, 18]);
    eq(page.ScannedCount, 21);
});
test('scan may filter by keys', async () => {
    const page = await api.Scan({ TableName: T, FilterExpression: 'pk = :p', ExpressionAttributeValues: { ':p': S('b') } });
    eq(numbers(page), [100]);
});
test('scan with ScanFilter', async () => {
    const page = await api.Scan({ TableName: T, ScanFilter: { n: { ComparisonOperator: 'GT', AttributeValueList: [N(50)] } } });
    eq(numbers(page), [100]);
});
test('paginateScan by 4', async () => {
    const seen = [];
    for await (const page of dynamodb.paginateScan({ client, pageSize: 4 }, { TableName: T }))
        seen.push(...numbers(page));
    eq(seen.sort((a, b) => a - b), [...upTo(20), 100]);
});
test('paginateScan of 1 MB pages', async () => {
    const counts = [];
    for await (const page of dynamodb.paginateScan({ client }, { TableName: BIG, ConsistentRead: true }))
        counts.push(page.Count);
    eq(counts.reduce((a, b) => a + b), 12);
    eq(counts[0], 6);
});
for (const TotalSegments of [1, 4, 9])
    test(`a parallel scan in ${TotalSegments} segments`, async () => {
        const table = await makeTable('segments', 'pk:N');
        await fill(table, upTo(100).map((i) => ({ pk: N(i) })));
        const parts = await Promise.all(upTo(TotalSegments).map(async (Segment) => {
            const seen = [];
            for await (const page of dynamodb.paginateScan({ client, pageSize: 7 }, { TableName: table, Segment, TotalSegments }))
                seen.push(...page.Items.map((item) => Number(item.pk.N)));
            return seen;
        }));
        eq(parts.flat().sort((a, b) => a - b), upTo(100));
        if (TotalSegments > 1)
            assert(parts.filter((part) => part.length > 0).length > 1, 'all of it is in one segment');
        await dropTable(table);
    });
test('a segment without its total', () =>
    fails(api.Scan({ TableName: T, Segment: 0 }), 'ValidationException',
        'The TotalSegments parameter is required but was not present in the request when Segment parameter is present'));
test('a segment beyond the total', () =>
    fails(api.Scan({ TableName: T, Segment: 5, TotalSegments: 5 }), 'ValidationException',
        'The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 5 is not less than ' +
        'TotalSegments: 5'));
test('scan of no table', () =>
    fails(api.Scan({ TableName: newName('missing') }), dynamodb.ResourceNotFoundException, 'Requested resource not found'));
test('scan with a projection of nothing that is there', async () => {
    const page = await api.Scan({ TableName: T, ProjectionExpression: 'zz' });
    eq(page.Items, Array.from({ length: 21 }, () => ({})));
});
test('scan with Select COUNT', async () => {
    eq(without$(await api.Scan({ TableName: T, Select: 'COUNT' })), { Count: 21, ScannedCount: 21 });
});
test('capacity of a scan', async () => {
    const { ConsumedCapacity } = await api.Scan({ TableName: BIG, ReturnConsumedCapacity: 'TOTAL' });
    eq(ConsumedCapacity, { TableName: BIG, CapacityUnits: 146.5 });
});
