/* client-dynamodb-streams: all four operations, and reading a stream as its consumers do. */
'use strict';
const assert = require('assert');
const sdk = require('@aws-sdk/client-dynamodb-streams');
const { before, after, test, eq, fails } = require('../lib/suite');
const { api, streams, newName, makeTable, dropTable, without$ } = require('../lib/clients');

const S = (text) => ({ S: text });
const N = (number) => ({ N: String(number) });
const tables = [];

async function streamed(StreamViewType) {
    const TableName = await makeTable('stream', 'pk:S', null, { StreamSpecification: { StreamEnabled: true, StreamViewType } });
    tables.push(TableName);
    const { Table } = await api.DescribeTable({ TableName });
    return { TableName, StreamArn: Table.LatestStreamArn, Table };
}

async function shardsOf(StreamArn) {
    const shards = [];
    let ExclusiveStartShardId;
    do {
        const { StreamDescription } = await streams.DescribeStream({ StreamArn, ExclusiveStartShardId });
        shards.push(...StreamDescription.Shards);
        ExclusiveStartShardId = StreamDescription.LastEvaluatedShardId;
    } while (ExclusiveStartShardId);
    return shards;
}

/* Everything in a shard from where the iterator is, until there is nothing more for now. */
async function drain(ShardIterator, Limit) {
    const records = [];
    while (ShardIterator) {
        const page = await streams.GetRecords({ ShardIterator, Limit });
        assert(!Limit || page.Records.length <= Limit);
        if (page.Records.length === 0)
            break;
        records.push(...page.Records);
        ShardIterator = page.NextShardIterator;
    }
    return records;
}

async function readAll(StreamArn, Limit) {
    const records = [];
    for (const { ShardId } of await shardsOf(StreamArn)) {
        const { ShardIterator } = await streams.GetShardIterator({ StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' });
        records.push(...await drain(ShardIterator, Limit));
    }
    return records;
}

async function threeChanges(TableName) {
    await api.PutItem({ TableName, Item: { pk: S('a'), v: N(1) } });
    await api.UpdateItem({ TableName, Key: { pk: S('a') }, UpdateExpression: 'SET v = :v', ExpressionAttributeValues: { ':v': N(2) } });
    await api.DeleteItem({ TableName, Key: { pk: S('a') } });
}

let both;
before(async () => {
    both = await streamed('NEW_AND_OLD_IMAGES');
    await threeChanges(both.TableName);
});
after(async () => {
    for (const each of tables)
        await dropTable(each);
});

test('a stream has an ARN with its label', async () => {
    eq(both.Table.StreamSpecification, { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' });
    eq(both.StreamArn, `${both.Table.TableArn}/stream/${both.Table.LatestStreamLabel}`);
    assert.match(both.Table.LatestStreamLabel, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}$/);
});
test('ListStreams of a table', async () => {
    const { Streams } = await streams.ListStreams({ TableName: both.TableName });
    eq(Streams, [{ TableName: both.TableName, StreamArn: both.StreamArn, StreamLabel: both.Table.LatestStreamLabel }]);
});
test('ListStreams in pages', async () => {
    await streamed('KEYS_ONLY');
    const seen = [];
    let ExclusiveStartStreamArn;
    do {
        const page = await streams.ListStreams({ Limit: 1, ExclusiveStartStreamArn });
        assert(page.Streams.length <= 1);
        seen.push(...page.Streams.map((each) => each.StreamArn));
        ExclusiveStartStreamArn = page.LastEvaluatedStreamArn;
    } while (ExclusiveStartStreamArn);
    assert(seen.includes(both.StreamArn));
    assert(seen.length >= 2);
    eq(new Set(seen).size, seen.length);
});
test('ListStreams of a table without', async () => {
    const TableName = await makeTable('plain', 'pk:S');
    tables.push(TableName);
    eq(without$(await streams.ListStreams({ TableName })), { Streams: [] });
});
test('DescribeStream', async () => {
    const { StreamDescription: d } = await streams.DescribeStream({ StreamArn: both.StreamArn });
    eq([d.StreamArn, d.StreamStatus, d.StreamViewType, d.TableName, d.KeySchema],
        [both.StreamArn, 'ENABLED', 'NEW_AND_OLD_IMAGES', both.TableName, [{ AttributeName: 'pk', KeyType: 'HASH' }]]);
    assert(d.CreationRequestDateTime instanceof Date);
    assert(d.Shards.length > 0);
    for (const shard of d.Shards)
        assert.match(shard.SequenceNumberRange.StartingSequenceNumber, /^\d+$/);
});
test('DescribeStream in pages', async () => {
    const all = await shardsOf(both.StreamArn);
    const { StreamDescription: first } = await streams.DescribeStream({ StreamArn: both.StreamArn, Limit: 1 });
    eq(first.Shards.length, 1);
    if (all.length > 1) {
        eq(first.LastEvaluatedShardId, first.Shards[0].ShardId);
        const { StreamDescription: rest } = await streams.DescribeStream(
            { StreamArn: both.StreamArn, ExclusiveStartShardId: first.LastEvaluatedShardId });
        eq(rest.Shards.map((each) => each.ShardId), all.slice(1).map((each) => each.ShardId));
    }
});
test('records of an insert, a change and a removal', async () => {
    const records = await readAll(both.StreamArn);
    eq(records.map((each) => each.eventName), ['INSERT', 'MODIFY', 'REMOVE']);
    eq(records.map((each) => each.dynamodb.NewImage), [{ pk: S('a'), v: N(1) }, { pk: S('a'), v: N(2) }, undefined]);
    eq(records.map((each) => each.dynamodb.OldImage), [undefined, { pk: S('a'), v: N(1) }, { pk: S('a'), v: N(2) }]);
    for (const record of records) {
        eq([record.eventVersion, record.eventSource, record.awsRegion], ['1.1', 'aws:dynamodb', 'us-east-1']);
        eq([record.dynamodb.Keys, record.dynamodb.StreamViewType], [{ pk: S('a') }, 'NEW_AND_OLD_IMAGES']);
        assert(record.dynamodb.ApproximateCreationDateTime instanceof Date);
        assert(record.dynamodb.SizeBytes > 0);
        eq(record.userIdentity, undefined);
    }
    eq(new Set(records.map((each) => each.eventID)).size, 3);
    const numbers = records.map((each) => BigInt(each.dynamodb.SequenceNumber));
    assert(numbers[0] < numbers[1] && numbers[1] < numbers[2]);
});
for (const [view, images] of [['KEYS_ONLY', []], ['NEW_IMAGE', ['NewImage']], ['OLD_IMAGE', ['OldImage']]])
    test(`a stream of ${view}`, async () => {
        const { TableName, StreamArn } = await streamed(view);
        await threeChanges(TableName);
        const records = await readAll(StreamArn);
        eq(records.map((each) => each.eventName), ['INSERT', 'MODIFY', 'REMOVE']);
        eq(Object.keys(records[1].dynamodb).filter((key) => key.endsWith('Image')), images);
        eq(records[1].dynamodb.StreamViewType, view);
    });
test('records one at a time', async () => {
    eq((await readAll(both.StreamArn, 1)).map((each) => each.eventName), ['INSERT', 'MODIFY', 'REMOVE']);
});
test('iterators by sequence number', async () => {
    for (const { ShardId } of await shardsOf(both.StreamArn)) {
        const from = async (more) => drain((await streams.GetShardIterator(
            { StreamArn: both.StreamArn, ShardId, ...more })).ShardIterator);
        const all = await from({ ShardIteratorType: 'TRIM_HORIZON' });
        if (all.length === 0)
            continue;
        const { SequenceNumber } = all[1].dynamodb;
        eq(await from({ ShardIteratorType: 'AT_SEQUENCE_NUMBER', SequenceNumber }), all.slice(1));
        eq(await from({ ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber }), all.slice(2));
        eq(await from({ ShardIteratorType: 'LATEST' }), []);
    }
});
test('LATEST sees what comes after it', async () => {
    const { TableName, StreamArn } = await streamed('NEW_IMAGE');
    await api.PutItem({ TableName, Item: { pk: S('before') } });
    const iterators = [];
    for (const { ShardId } of await shardsOf(StreamArn))
        iterators.push((await streams.GetShardIterator({ StreamArn, ShardId, ShardIteratorType: 'LATEST' })).ShardIterator);
    await api.PutItem({ TableName, Item: { pk: S('after') } });
    const records = [];
    for (const iterator of iterators)
        records.push(...await drain(iterator));
    eq(records.map((each) => each.dynamodb.Keys.pk.S), ['after']);
});
test('no record for what changed nothing', async () => {
    const { TableName, StreamArn } = await streamed('NEW_AND_OLD_IMAGES');
    const Item = { pk: S('a'), set: { SS: ['x', 'y'] } };
    await api.PutItem({ TableName, Item });
    await api.PutItem({ TableName, Item: { pk: S('a'), set: { SS: ['y', 'x'] } } });
    await api.DeleteItem({ TableName, Key: { pk: S('nobody') } });
    await api.UpdateItem({ TableName, Key: { pk: S('a') }, UpdateExpression: 'REMOVE zz' });
    eq((await readAll(StreamArn)).map((each) => each.eventName), ['INSERT']);
});
test('batches and transactions are in the stream', async () => {
    const { TableName, StreamArn } = await streamed('KEYS_ONLY');
    await api.BatchWriteItem({ RequestItems: { [TableName]: ['a', 'b'].map((pk) => ({ PutRequest: { Item: { pk: S(pk) } } })) } });
    await api.TransactWriteItems({ TransactItems: ['c', 'd'].map((pk) => ({ Put: { TableName, Item: { pk: S(pk) } } })) });
    eq((await readAll(StreamArn)).map((each) => each.dynamodb.Keys.pk.S).sort(), ['a', 'b', 'c', 'd']);
});
test('500 changes of 50 items are in order for each', async () => {
    const { TableName, StreamArn } = await streamed('NEW_IMAGE');
    await Promise.all(Array.from({ length: 50 }, async (_, i) => {
        for (let v = 0; v < 10; v++)
            await api.PutItem({ TableName, Item: { pk: S(`k${i}`), v: N(v) } });
    }));
    const records = await readAll(StreamArn, 37);
    eq(records.length, 500);
    const last = new Map();
    for (const { dynamodb: { Keys, NewImage } } of records) {
        eq(Number(NewImage.v.N), (last.get(Keys.pk.S) ?? -1) + 1);
        last.set(Keys.pk.S, Number(NewImage.v.N));
    }
});
test('a stream that is disabled can be read to its end', async () => {
    const { TableName, StreamArn } = await streamed('NEW_IMAGE');
    await api.PutItem({ TableName, Item: { pk: S('a') } });
    await api.UpdateTable({ TableName, StreamSpecification: { StreamEnabled: false } });
    const { StreamDescription } = await streams.DescribeStream({ StreamArn });
    eq(StreamDescription.StreamStatus, 'DISABLED');
    let seen = 0;
    for (const { ShardId, SequenceNumberRange } of StreamDescription.Shards) {
        assert.match(SequenceNumberRange.EndingSequenceNumber, /^\d+$/);
        let { ShardIterator } = await streams.GetShardIterator({ StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' });
        for (let i = 0; ShardIterator; i++) {
            assert(i < 10, 'a closed shard has to end');
            const page = await streams.GetRecords({ ShardIterator });
            seen += page.Records.length;
            ShardIterator = page.NextShardIterator;
        }
    }
    eq(seen, 1);
    const { TableDescription } = await api.UpdateTable(
        { TableName, StreamSpecification: { StreamEnabled: true, StreamViewType: 'KEYS_ONLY' } });
    assert.notStrictEqual(TableDescription.LatestStreamArn, StreamArn);
});
test('a stream cannot be enabled twice', () =>
    fails(api.UpdateTable({ TableName: both.TableName, StreamSpecification: { StreamEnabled: true, StreamViewType: 'KEYS_ONLY' } }),
        'ValidationException', `Table already has an enabled stream: TableName: ${both.TableName}`));
test('DescribeStream of nothing', async () => {
    const StreamArn = `${both.Table.TableArn.replace(both.TableName, newName('none'))}/stream/2020-01-01T00:00:00.000`;
    await fails(streams.DescribeStream({ StreamArn }), sdk.ResourceNotFoundException,
        `Requested resource not found: Stream: ${StreamArn} not found`);
});
test('GetShardIterator of a shard that is not there', () =>
    fails(streams.GetShardIterator({
        StreamArn: both.StreamArn, ShardId: 'shardId-00000000000000000001-0badf00d', ShardIteratorType: 'LATEST',
    }), sdk.ResourceNotFoundException,
    `Requested resource not found: Shard: shardId-00000000000000000001-0badf00d in Stream: ${both.StreamArn} not found`));
test('GetShardIterator needs a sequence number for AT_', async () => {
    const [{ ShardId }] = await shardsOf(both.StreamArn);
    await fails(streams.GetShardIterator({ StreamArn: both.StreamArn, ShardId, ShardIteratorType: 'AT_SEQUENCE_NUMBER' }),
        'ValidationException', 'One or more parameter values were invalid: SequenceNumber is required for ShardIteratorType ' +
        'AT_SEQUENCE_NUMBER and AFTER_SEQUENCE_NUMBER');
});
test('GetRecords with an iterator of somebody else', () =>
    fails(streams.GetRecords({ ShardIterator: 'nonsense' }), 'ValidationException', 'Invalid ShardIterator'));
test('GetRecords takes no limit above 1000', async () => {
    const [{ ShardId }] = await shardsOf(both.StreamArn);
    const { ShardIterator } = await streams.GetShardIterator({ StreamArn: both.StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' });
    await fails(streams.GetRecords({ ShardIterator, Limit: 1001 }), 'ValidationException',
        "1 validation error detected: Value '1001' at 'limit' failed to satisfy constraint: " +
        'Member must have value less than or equal to 1000');
});
