/* Servers that start, stop, crash, and keep limits, as clients see it. */
'use strict';
const assert = require('assert');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const dynamodb = require('@aws-sdk/client-dynamodb');
const streamsSdk = require('@aws-sdk/client-dynamodb-streams');
const { testOwn, eq, fails } = require('../lib/suite');
const { startOwn } = require('../lib/serve');
const { CheckingHandler, make, makeStreams, commands } = require('../lib/clients');
const { NodeHttpHandler } = require('@smithy/node-http-handler');

const S = (text) => ({ S: text });
const N = (number) => ({ N: String(number) });
const upTo = (end) => Array.from({ length: end }, (_, i) => i);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const TABLE = {
    TableName: 'own', KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }], BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
    StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' },
};
const at = (server, more = {}) => commands(make({ endpoint: server.endpoint, ...more }), dynamodb);
const put = (own, i) => own.PutItem({ TableName: 'own', Item: { pk: S(`${i}`), i: N(i) } });

async function withFolder(body) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-js-'));
    try {
        await body(path.join(folder, 'db'));
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
}

async function allOf(own, TableName = 'own') {
    const seen = [];
    let ExclusiveStartKey;
    do {
        const page = await own.Scan({ TableName, ExclusiveStartKey, Limit: 50 });
        seen.push(...page.Items.map((item) => Number(item.i.N)));
        ExclusiveStartKey = page.LastEvaluatedKey;
    } while (ExclusiveStartKey);
    return seen.sort((a, b) => a - b);
}

/* The fault of a server: PUT /_holdfast/faults. */
async function fault(server, ...faults) {
    const answer = await fetch(`${server.endpoint}/_holdfast/faults`, { method: 'PUT', body: JSON.stringify({ faults }) });
    eq(answer.status, 200);
}

testOwn('what was written is there after a restart', () => withFolder(async (folder) => {
    let server = await startOwn('--db-path', folder);
    let own = at(server);
    const { TableDescription } = await own.CreateTable(TABLE);
    await Promise.all(upTo(120).map((i) => put(own, i)));
    await own.UpdateTimeToLive({ TableName: 'own', TimeToLiveSpecification: { Enabled: true, AttributeName: 'ttl' } });
    await own.TagResource({ ResourceArn: TableDescription.TableArn, Tags: [{ Key: 'k', Value: 'v' }] });
    eq(await server.stop(), null);

    server = await startOwn('--db-path', folder);
    own = at(server);
    eq(await allOf(own), upTo(120));
    const { Table } = await own.DescribeTable({ TableName: 'own' });
    eq([Table.TableId, Table.ItemCount, Table.LatestStreamArn], [TableDescription.TableId, 120, TableDescription.LatestStreamArn]);
    eq(Table.CreationDateTime, TableDescription.CreationDateTime);
    eq((await own.DescribeTimeToLive({ TableName: 'own' })).TimeToLiveDescription, { TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' });
    eq((await own.ListTagsOfResource({ ResourceArn: Table.TableArn })).Tags, [{ Key: 'k', Value: 'v' }]);
    const streams = commands(makeStreams({ endpoint: server.endpoint }), streamsSdk);
    let records = 0;
    const { StreamDescription } = await streams.DescribeStream({ StreamArn: Table.LatestStreamArn });
    for (const { ShardId } of StreamDescription.Shards) {
        const { ShardIterator } = await streams.GetShardIterator(
            { StreamArn: Table.LatestStreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' });
        records += (await streams.GetRecords({ ShardIterator })).Records.length;
    }
    eq(records, 120);
    eq(await server.stop(), null);
}));

testOwn('what was answered is there after a crash', () => withFolder(async (folder) => {
    let server = await startOwn('--db-path', folder);
    let own = at(server, { maxAttempts: 1 });
    await own.CreateTable(TABLE);
    const answered = new Set();
    let next = 0;
    const writers = upTo(8).map(async () => {
        for (;;) {
            const i = next++;
            try {
                await put(own, i);
            } catch (error) {
                return;
            }
            answered.add(i);
        }
    });
    while (answered.size < 200)
        await pause(5);
    await server.crash();
    await Promise.all(writers);

    server = await startOwn('--db-path', folder);
    own = at(server);
    const there = new Set(await allOf(own));
    for (const i of answered)
        assert(there.has(i), `${i} was answered and is gone`);
    assert(there.size - answered.size <= 8, 'more is there than was sent');
    eq((await own.DescribeTable({ TableName: 'own' })).Table.ItemCount, there.size);
    eq(await server.stop(), null);
}));

testOwn('a directory has one server at a time', () => withFolder(async (folder) => {
    const server = await startOwn('--db-path', folder);
    await fails(startOwn('--db-path', folder), Error, /the server ended with 3/);
    eq(await server.stop(), null);
}));

testOwn('requests under way are finished when a server stops', async () => {
    const server = await startOwn();
    const own = at(server);
    await own.CreateTable(TABLE);
    await put(own, 1);
    await fault(server, { kind: 'latency', operation: 'GetItem', latency_ms: 400 });
    const calls = upTo(3).map(() => own.GetItem({ TableName: 'own', Key: { pk: S('1') } }));
    await pause(150);
    const stopped = server.stop();
    for (const { Item } of await Promise.all(calls))
        eq(Item, { pk: S('1'), i: N(1) });
    eq(await stopped, null);
});

testOwn('connections that the server closed for idleness are not used again', async () => {
    const server = await startOwn('--idle-timeout', '200ms');
    const own = at(server, { maxAttempts: 3 });
    await own.CreateTable(TABLE);
    for (const wait of [0, 100, 300, 500, 190, 200, 210]) {
        await pause(wait);
        await put(own, wait);
    }
    eq(await allOf(own), [0, 100, 190, 200, 210, 300, 500]);
    eq(await server.stop(), null);
});

testOwn('more connections than the server takes', async () => {
    const server = await startOwn('--connections', '10');
    const agent = new http.Agent({ keepAlive: true, maxSockets: 25 });
    const handler = new NodeHttpHandler({ httpAgent: agent }); /* who is turned away gets no checksum */
    const own = at(server, { maxAttempts: 10, requestHandler: handler });
    await own.CreateTable(TABLE);
    const results = await Promise.all(upTo(25).map((i) => put(own, i)));
    assert(results.some(({ $metadata }) => $metadata.attempts > 1), 'nobody was turned away');
    eq(await allOf(own), upTo(25));

    const hasty = at(server, { maxAttempts: 1, requestHandler: handler });
    const refused = (await Promise.allSettled(upTo(25).map((i) => put(hasty, i)))).filter((each) => each.status === 'rejected');
    assert(refused.length > 0);
    for (const { reason } of refused)
        if (reason.$metadata.httpStatusCode) /* else the socket was closed before the request was out */
            eq([reason.name, reason.message, reason.$metadata.httpStatusCode],
                ['ServiceUnavailableException', 'Too many connections', 503]);
    agent.destroy();
    eq(await server.stop(), null);
});

testOwn('deletions by time to live say so in the stream', async () => {
    const server = await startOwn();
    const own = at(server);
    const { TableDescription: { LatestStreamArn: StreamArn } } = await own.CreateTable(
        { ...TABLE, StreamSpecification: { StreamEnabled: true, StreamViewType: 'OLD_IMAGE' } });
    await own.UpdateTimeToLive({ TableName: 'own', TimeToLiveSpecification: { Enabled: true, AttributeName: 'ttl' } });
    const Item = { pk: S('a'), ttl: N(Math.floor(Date.now() / 1000) + 1000) };
    await own.PutItem({ TableName: 'own', Item });
    await fetch(`${server.endpoint}/_holdfast/clock`, { method: 'PUT', body: '{"advance_s": 2000}' });
    await fetch(`${server.endpoint}/_holdfast/upkeep`, { method: 'POST' });
    const streams = commands(makeStreams({ endpoint: server.endpoint }), streamsSdk);
    const records = [];
    for (const end = Date.now() + 30000; Date.now() < end && records.length < 2; await pause(50)) {
        records.length = 0;
        for (const { ShardId } of (await streams.DescribeStream({ StreamArn })).StreamDescription.Shards) {
            const { ShardIterator } = await streams.GetShardIterator({ StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' });
            records.push(...(await streams.GetRecords({ ShardIterator })).Records);
        }
    }
    eq(records.map((each) => [each.eventName, each.userIdentity]),
        [['INSERT', undefined], ['REMOVE', { PrincipalId: 'dynamodb.amazonaws.com', Type: 'Service' }]]);
    eq(records[1].dynamodb.OldImage, Item);
    eq(await server.stop(), null);
});

testOwn('clients of two servers do not mix', async () => {
    const [a, b] = [await startOwn(), await startOwn('--region', 'eu-west-1')];
    await at(a).CreateTable(TABLE);
    eq((await at(a).ListTables()).TableNames, ['own']);
    eq((await at(b).ListTables()).TableNames, []);
    eq([await a.stop(), await b.stop()], [null, null]);
});

testOwn('a listener on all addresses needs keys', async () => {
    await fails(startOwn('--host', '0.0.0.0'), Error, /the server ended with 2/);
});

testOwn('many connections that send nothing do not stop others', async () => {
    const server = await startOwn();
    const { hostname, port } = new URL(server.endpoint);
    const idle = await Promise.all(upTo(200).map(() => new Promise((resolve, reject) => {
        const socket = require('net').connect(Number(port), hostname, () => resolve(socket));
        socket.on('error', reject);
    })));
    for (const socket of idle)
        socket.write('POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n'); /* half a head */
    const own = at(server, { requestHandler: new CheckingHandler() });
    await own.CreateTable(TABLE);
    await Promise.all(upTo(50).map((i) => put(own, i)));
    eq(await allOf(own), upTo(50));
    for (const socket of idle)
        socket.destroy();
    eq(await server.stop(), null);
});
