/* Below the operations: connections, retries, signatures, packing, endpoints, aborts, metadata. */
'use strict';
const assert = require('assert');
const { spawnSync } = require('child_process');
const { setMaxListeners } = require('events');
const fs = require('fs');
const http = require('http');
const https = require('https');
const os = require('os');
const path = require('path');
const zlib = require('zlib');
const dynamodb = require('@aws-sdk/client-dynamodb');
const library = require('@aws-sdk/lib-dynamodb');
const streamsSdk = require('@aws-sdk/client-dynamodb-streams');
const { before, after, test, testOwn, eq, fails } = require('../lib/suite');
const { startOwn } = require('../lib/serve');
const clients = require('../lib/clients');
const { api, client, handler, endpoint, credentials, CheckingHandler, make, makeStreams, makeDoc, commands, newName, makeTable,
    dropTable } = clients;

const S = (text) => ({ S: text });
const N = (number) => ({ N: String(number) });
const upTo = (end) => Array.from({ length: end }, (_, i) => i);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let T;

before(async () => {
    T = await makeTable('transport', 'pk:S');
    await api.PutItem({ TableName: T, Item: { pk: S('there'), v: N(1) } });
});
after(() => dropTable(T));

const THERE = { pk: S('there'), v: N(1) };
const read = async (with_) => (await commands(with_, dynamodb).GetItem({ TableName: T, Key: { pk: S('there') } })).Item;

/* ---- metadata and errors -------------------------------------------------------------------- */

test('metadata of success', async () => {
    const { $metadata } = await api.GetItem({ TableName: T, Key: { pk: S('there') } });
    eq([$metadata.httpStatusCode, $metadata.attempts, $metadata.totalRetryDelay], [200, 1, 0]);
    eq($metadata.requestId, handler.last.headers['x-amzn-requestid']);
    assert.match($metadata.requestId, /^[0-9A-Z]{52}$/);
});
test('metadata of failure', async () => {
    const error = await fails(api.GetItem({ TableName: newName('missing'), Key: { pk: S('a') } }), dynamodb.ResourceNotFoundException);
    eq([error.$metadata.httpStatusCode, error.$metadata.attempts, error.$fault], [400, 1, 'client']);
    eq(error.$metadata.requestId, handler.last.headers['x-amzn-requestid']);
    eq(error.$retryable, undefined);
});
test('request ids differ', async () => {
    const ids = await Promise.all(upTo(100).map(async () => (await api.ListTables({ Limit: 1 })).$metadata.requestId));
    eq(new Set(ids).size, 100);
});
test('errors are classes of the SDK', async () => {
    const missing = newName('missing');
    for (const [call, kind] of [
        [() => api.DescribeTable({ TableName: missing }), dynamodb.ResourceNotFoundException],
        [() => api.CreateTable({ TableName: T, KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }], BillingMode: 'PAY_PER_REQUEST',
            AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }] }), dynamodb.ResourceInUseException],
        [() => api.PutItem({ TableName: T, Item: THERE, ConditionExpression: 'attribute_not_exists(pk)' }), dynamodb.ConditionalCheckFailedException],
    ]) {
        const error = await fails(call(), kind);
        assert(error instanceof dynamodb.DynamoDBServiceException);
        assert(error instanceof Error);
        eq(error.name, kind.name);
    }
});
test('ValidationException has no class but a name', async () => {
    const error = await fails(api.GetItem({ TableName: T, Key: {} }), 'ValidationException',
        'The provided key element does not match the schema');
    assert(error instanceof dynamodb.DynamoDBServiceException);
    eq(error.$metadata.httpStatusCode, 400);
});
test('a type that does not fit is a SerializationException', () =>
    fails(api.GetItem({ TableName: 5, Key: { pk: S('a') } }), 'SerializationException',
        'NUMBER_VALUE cannot be converted to String'));
test('the head of an answer', async () => {
    await read(client);
    const { headers } = handler.last;
    eq(headers['content-type'], 'application/x-amz-json-1.0');
    assert(Math.abs(new Date(headers.date) - Date.now()) < 60000);
    assert(headers.server);
    eq(headers['content-encoding'], undefined);
});

/* ---- endpoints, regions, keys --------------------------------------------------------------- */

for (const mode of ['preferred', 'disabled', 'required'])
    test(`accountIdEndpointMode ${mode} with a plain endpoint`, async () => {
        eq(await read(make({ accountIdEndpointMode: mode, credentials: { ...credentials, accountId: '123456789012' } })), THERE);
    });
test('accountIdEndpointMode without an account', async () => {
    eq(await read(make({ accountIdEndpointMode: 'preferred' })), THERE);
});
for (const enabled of [true, false])
    test(`endpointDiscoveryEnabled ${enabled} with a plain endpoint`, async () => {
        eq(await read(make({ endpointDiscoveryEnabled: enabled })), THERE);
    });
test('endpoint discovery by the environment', async () => {
    process.env.AWS_ENABLE_ENDPOINT_DISCOVERY = 'true';
    try {
        eq(await read(make()), THERE);
    } finally {
        delete process.env.AWS_ENABLE_ENDPOINT_DISCOVERY;
    }
});
test('an endpoint from the environment', async () => {
    process.env.AWS_ENDPOINT_URL_DYNAMODB = endpoint;
    try {
        eq(await read(make({ endpoint: undefined })), THERE);
    } finally {
        delete process.env.AWS_ENDPOINT_URL_DYNAMODB;
    }
});
test('an endpoint as an object', async () => {
    const url = new URL(endpoint);
    eq(await read(make({ endpoint: { protocol: url.protocol, hostname: url.hostname, port: Number(url.port), path: '/' } })), THERE);
});
test('an endpoint by the name localhost', async () => {
    eq(await read(make({ endpoint: endpoint.replace('127.0.0.1', 'localhost') })), THERE);
});
test('an endpoint with a slash at its end', async () => {
    eq(await read(make({ endpoint: `${endpoint}/` })), THERE);
});
for (const region of ['us-east-1', 'eu-central-1', 'local'])
    test(`region ${region}`, async () => {
        eq(await read(make({ region })), THERE);
    });
test('keys with a session token', async () => {
    eq(await read(make({ credentials: { accessKeyId: 'ASIA', secretAccessKey: 'other', sessionToken: 'token/+=' } })), THERE);
});
test('a clock that is hours off', async () => {
    eq(await read(make({ systemClockOffset: 5 * 3600 * 1000 })), THERE);
});
test('a long user agent', async () => {
    const long = make({ customUserAgent: [['suite', '1.0'], ['words', 'w'.repeat(2000)]] });
    eq(await read(long), THERE);
});
test('GET / says healthy', async () => {
    const answer = await fetch(`${endpoint}/`);
    eq([answer.status, await answer.text()], [200, `healthy: ${new URL(endpoint).host} `]);
});

/* ---- packing -------------------------------------------------------------------------------- */

function packing(coding, pack, options) {
    const packed = make(options);
    packed.middlewareStack.add((next) => (args) => {
        args.request.body = pack(Buffer.from(args.request.body));
        args.request.headers['content-encoding'] = coding;
        args.request.headers['content-length'] = String(args.request.body.length);
        return next(args);
    }, { step: 'build', name: 'pack', priority: 'low' });
    return packed;
}

for (const [coding, pack] of [['gzip', zlib.gzipSync], ['deflate', zlib.deflateSync]])
    test(`requests packed with ${coding}`, async () => {
        const packed = commands(packing(coding, pack), dynamodb);
        const Item = { pk: S(`packed ${coding}`), v: S('text '.repeat(50000)) };
        await packed.PutItem({ TableName: T, Item });
        eq((await packed.GetItem({ TableName: T, Key: { pk: Item.pk } })).Item, Item);
        await api.DeleteItem({ TableName: T, Key: { pk: Item.pk } });
    });
test('packing that is none', async () => {
    const error = await fails(read(packing('gzip', (body) => body)), 'InternalServerError', 'the body is not valid gzip data');
    eq([error.$metadata.httpStatusCode, error instanceof dynamodb.InternalServerError], [500, true]);
});
for (const coding of ['gzip', 'deflate'])
    test(`answers packed with ${coding}`, async () => {
        const own = new CheckingHandler();
        const packed = make({ requestHandler: own });
        packed.middlewareStack.add((next) => (args) => {
            args.request.headers['accept-encoding'] = coding;
            return next(args);
        }, { step: 'build', name: 'accept', priority: 'low' });
        const Item = { pk: S(`answer ${coding}`), v: S('text '.repeat(50000)) };
        await api.PutItem({ TableName: T, Item });
        eq((await commands(packed, dynamodb).GetItem({ TableName: T, Key: { pk: Item.pk } })).Item, Item);
        eq(own.last.headers['content-encoding'], coding);
        assert(own.last.raw.length < 10000);
        await api.DeleteItem({ TableName: T, Key: { pk: Item.pk } });
    });

test('a request of more than 16 MB is refused in words that the SDK reads', async () => {
    const own = make();
    const writes = upTo(25).map((i) => ({ PutRequest: { Item: { pk: S(`${i}`), v: S('\u0001'.repeat(200000)) } } }));
    const error = await fails(commands(own, dynamodb).BatchWriteItem({ RequestItems: { [T]: writes } }),
        'RequestEntityTooLargeException', 'the body has more than 16777216 bytes');
    eq([error.$metadata.httpStatusCode, error.$fault], [413, 'client']);
    eq(await read(own), THERE);
});
test('a request that unpacks to more than 16 MB', async () => {
    const writes = upTo(25).map((i) => ({ PutRequest: { Item: { pk: S(`${i}`), v: S('\u0001'.repeat(200000)) } } }));
    const error = await fails(commands(packing('gzip', zlib.gzipSync), dynamodb).BatchWriteItem({ RequestItems: { [T]: writes } }),
        'RequestEntityTooLargeException', 'the body unpacks to more than 16777216 bytes');
    eq(error.$metadata.httpStatusCode, 413);
});
test('a client that waits for 100 Continue', async () => {
    const polite = make();
    polite.middlewareStack.add((next) => (args) => {
        args.request.headers.expect = '100-continue';
        return next(args);
    }, { step: 'build', name: 'expect' });
    const begun = Date.now();
    eq(await read(polite), THERE);
    assert(Date.now() - begun < 5000); /* the SDK goes on by itself after six seconds */
});

/* ---- connections ---------------------------------------------------------------------------- */

async function socketsOf(options, calls) {
    const agent = new http.Agent(options);
    let opened = 0;
    const create = agent.createConnection;
    agent.createConnection = function (...args) {
        opened++;
        return create.apply(this, args);
    };
    const own = make({ requestHandler: new CheckingHandler({ httpAgent: agent }) });
    await calls(own);
    own.destroy();
    return opened;
}

test('one connection serves many requests', async () => {
    eq(await socketsOf({ keepAlive: true, maxSockets: 1 }, async (own) => {
        for (const _ of upTo(50))
            eq(await read(own), THERE);
    }), 1);
});
test('one connection serves requests that wait for it', async () => {
    eq(await socketsOf({ keepAlive: true, maxSockets: 1 }, (own) => Promise.all(upTo(50).map(() => read(own)))), 1);
});
test('without keep-alive each request has a connection', async () => {
    eq(await socketsOf({ keepAlive: false }, async (own) => {
        for (const _ of upTo(5))
            eq(await read(own), THERE);
    }), 5);
});
test('200 requests at a time on as many connections', async () => {
    const opened = await socketsOf({ keepAlive: true, maxSockets: 200 }, async (own) => {
        const all = commands(own, dynamodb);
        await Promise.all(upTo(200).map((i) => all.PutItem({ TableName: T, Item: { pk: S(`many-${i}`), i: N(i) } })));
        const items = await Promise.all(upTo(200).map((i) => all.GetItem({ TableName: T, Key: { pk: S(`many-${i}`) } })));
        eq(items.map(({ Item }) => Number(Item.i.N)), upTo(200));
    });
    assert(opened > 50 && opened <= 400, `${opened} connections`);
});
test('2000 requests on 50 connections', async () => {
    await socketsOf({ keepAlive: true, maxSockets: 50 }, async (own) => {
        const all = commands(own, dynamodb);
        await Promise.all(upTo(2000).map(() => all.UpdateItem({
            TableName: T, Key: { pk: S('counter') }, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': N(1) },
        })));
    });
    eq((await api.GetItem({ TableName: T, Key: { pk: S('counter') } })).Item.n, N(2000));
});
test('many clients one after another', async () => {
    for (const _ of upTo(30)) {
        const own = make();
        eq(await read(own), THERE);
        own.destroy();
    }
});
test('a large request and a large answer on one connection', async () => {
    await socketsOf({ keepAlive: true, maxSockets: 1 }, async (own) => {
        const all = commands(own, dynamodb);
        for (const i of upTo(3)) {
            const Item = { pk: S('large'), v: { B: Buffer.alloc(390000, i) } };
            await all.PutItem({ TableName: T, Item });
            const back = await all.GetItem({ TableName: T, Key: { pk: Item.pk } });
            eq(Buffer.compare(Buffer.from(back.Item.v.B), Item.v.B), 0);
        }
        await all.DeleteItem({ TableName: T, Key: { pk: S('large') } });
    });
});

/* ---- aborts --------------------------------------------------------------------------------- */

test('a request that was aborted before it began', async () => {
    const abort = new AbortController();
    abort.abort();
    await fails(client.send(new dynamodb.GetItemCommand({ TableName: T, Key: { pk: S('there') } }), { abortSignal: abort.signal }),
        'AbortError');
});
test('requests that are aborted leave the client whole', async () => {
    const own = make();
    for (const delay of [0, 0, 1, 2, 5]) {
        const abort = new AbortController();
        setMaxListeners(50, abort.signal);
        const calls = upTo(20).map(() => own.send(new dynamodb.ScanCommand({ TableName: T }), { abortSignal: abort.signal }));
        setTimeout(() => abort.abort(), delay);
        for (const result of await Promise.allSettled(calls))
            if (result.status === 'rejected')
                eq(result.reason.name, 'AbortError');
    }
    eq(await read(own), THERE);
});

/* ---- faults and retries: with a server of its own ------------------------------------------- */

async function withServer(options, body) {
    const server = await startOwn(...options);
    let complaint = null;
    const at = { endpoint: server.endpoint };
    const faults = async (...list) => {
        const answer = await fetch(`${server.endpoint}/_holdfast/faults`, { method: 'PUT', body: JSON.stringify({ faults: list }) });
        eq(answer.status, 200);
    };
    const struck = async () =>
        (await (await fetch(`${server.endpoint}/_holdfast/faults`)).json()).faults.map((each) => each.struck);
    try {
        await body({ server, at, faults, struck });
    } finally {
        complaint = await server.stop();
    }
    eq(complaint, null);
}

const TABLE = {
    TableName: 'own', KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }], BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
};
const PUT = { TableName: 'own', Item: { pk: S('a'), v: N(1) } };

for (const retryMode of ['standard', 'adaptive'])
    testOwn(`throttling is tried again: ${retryMode}`, () => withServer([], async ({ at, faults, struck }) => {
        const own = commands(make({ ...at, maxAttempts: 4, retryMode }), dynamodb);
        await own.CreateTable(TABLE);
        await faults({ kind: 'throttle', operation: 'PutItem', count: 2 });
        const { $metadata } = await own.PutItem(PUT);
        eq([$metadata.attempts, $metadata.httpStatusCode], [3, 200]);
        assert($metadata.totalRetryDelay > 0);
        eq(await struck(), [2]);
        eq((await own.GetItem({ TableName: 'own', Key: { pk: S('a') } })).Item, PUT.Item);
    }));
testOwn('the defaults of the SDK try again', () => withServer([], async ({ at, faults }) => {
    const own = commands(make({ ...at, maxAttempts: undefined }), dynamodb);
    await own.CreateTable(TABLE);
    await faults({ kind: 'throttle', operation: 'PutItem', count: 2 });
    eq((await own.PutItem(PUT)).$metadata.attempts, 3);
}));
testOwn('throttling that does not end is an error', () => withServer([], async ({ at, faults }) => {
    const own = commands(make({ ...at, maxAttempts: 2 }), dynamodb);
    await own.CreateTable(TABLE);
    await faults({ kind: 'throttle', operation: 'PutItem' });
    const error = await fails(own.PutItem(PUT), dynamodb.ProvisionedThroughputExceededException,
        'The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level ' +
        'with the UpdateTable API.');
    eq([error.$metadata.attempts, error.$metadata.httpStatusCode], [2, 400]);
}));
testOwn('server errors are tried again', () => withServer([], async ({ at, faults }) => {
    const own = commands(make({ ...at, maxAttempts: 3 }), dynamodb);
    await own.CreateTable(TABLE);
    await faults({ kind: 'error', operation: 'PutItem', count: 1 });
    eq((await own.PutItem(PUT)).$metadata.attempts, 2);
    await faults({ kind: 'error', operation: 'PutItem' });
    const error = await fails(own.PutItem(PUT), dynamodb.InternalServerError);
    eq([error.$metadata.attempts, error.$metadata.httpStatusCode, error.$fault], [3, 500, 'server']);
}));
testOwn('a conflict of transactions', () => withServer([], async ({ at, faults }) => {
    const own = commands(make({ ...at }), dynamodb);
    await own.CreateTable(TABLE);
    await faults({ kind: 'conflict', operation: 'TransactWriteItems', count: 1 });
    const transaction = { TransactItems: [{ Put: PUT }] };
    const error = await fails(own.TransactWriteItems(transaction), dynamodb.TransactionCanceledException);
    eq(error.CancellationReasons.map((each) => each.Code), ['TransactionConflict']);
    await own.TransactWriteItems(transaction);
}));
testOwn('a transaction whose answer was lost happens once', () => withServer([], async ({ at, faults, struck }) => {
    const own = commands(make({ ...at, maxAttempts: 3 }), dynamodb);
    await own.CreateTable(TABLE);
    await own.PutItem(PUT);
    await faults({ kind: 'lost_answer', operation: 'TransactWriteItems', count: 1 });
    const { $metadata } = await own.TransactWriteItems({
        TransactItems: [{ Update: { TableName: 'own', Key: { pk: S('a') }, UpdateExpression: 'ADD v :one', ExpressionAttributeValues: { ':one': N(1) } } }],
    });
    eq([$metadata.attempts, await struck()], [2, [1]]);
    eq((await own.GetItem({ TableName: 'own', Key: { pk: S('a') } })).Item.v, N(2));
}));
testOwn('unprocessed items come back and are written by a loop', () => withServer([], async ({ at, faults, struck }) => {
    const own = commands(makeDoc({}, make(at)), library);
    await commands(make(at), dynamodb).CreateTable(TABLE);
    await faults({ kind: 'unprocessed', operation: 'BatchWriteItem', count: 3 });
    let left = { own: upTo(25).map((i) => ({ PutRequest: { Item: { pk: `k${i}`, i } } })) };
    let rounds = 0, returned = 0;
    for (; Object.keys(left).length; rounds++) {
        ({ UnprocessedItems: left } = await own.BatchWrite({ RequestItems: left }));
        returned += (left.own || []).length;
    }
    assert(rounds > 1 && returned > 0, `${rounds} rounds, ${returned} returned`);
    assert((await struck())[0] > 0);
    eq((await own.Scan({ TableName: 'own' })).Items.map((item) => item.i).sort((a, b) => a - b), upTo(25));
}));
testOwn('unprocessed keys come back and are read by a loop', () => withServer([], async ({ at, faults }) => {
    const own = commands(makeDoc({}, make(at)), library);
    await commands(make(at), dynamodb).CreateTable(TABLE);
    await own.BatchWrite({ RequestItems: { own: upTo(25).map((i) => ({ PutRequest: { Item: { pk: `k${i}`, i } } })) } });
    await faults({ kind: 'unprocessed', operation: 'BatchGetItem', count: 2 });
    let left = { own: { Keys: upTo(25).map((i) => ({ pk: `k${i}` })) } };
    const seen = [];
    let rounds = 0;
    for (; Object.keys(left).length; rounds++) {
        const page = await own.BatchGet({ RequestItems: left });
        seen.push(...(page.Responses.own || []).map((item) => item.i));
        left = page.UnprocessedKeys;
    }
    assert(rounds > 1);
    eq(seen.sort((a, b) => a - b), upTo(25));
}));
testOwn('a slow answer can be aborted, and by a timeout', () => withServer([], async ({ at, faults }) => {
    const own = make(at);
    await commands(own, dynamodb).CreateTable(TABLE);
    await faults({ kind: 'latency', operation: 'GetItem', latency_ms: 2000 });
    const Key = { pk: S('a') };
    const abort = new AbortController();
    const call = own.send(new dynamodb.GetItemCommand({ TableName: 'own', Key }), { abortSignal: abort.signal });
    setTimeout(() => abort.abort(), 100);
    await fails(call, 'AbortError');
    const hasty = make({ ...at, requestHandler: new CheckingHandler({ requestTimeout: 200, throwOnRequestTimeout: true }) });
    await fails(hasty.send(new dynamodb.GetItemCommand({ TableName: 'own', Key })), 'TimeoutError');
    await faults();
    eq((await own.send(new dynamodb.GetItemCommand({ TableName: 'own', Key }))).Item, undefined);
}));
testOwn('the region and account of the server are in ARNs', () =>
    withServer(['--region', 'eu-west-3', '--account', '210987654321'], async ({ at }) => {
        const { TableDescription } = await commands(make(at), dynamodb).CreateTable(TABLE);
        eq(TableDescription.TableArn, 'arn:aws:dynamodb:eu-west-3:210987654321:table/own');
    }));
testOwn('connections of clients that stay do not keep the server from ending', () => withServer([], async ({ at }) => {
    const own = make({ ...at, requestHandler: new CheckingHandler({ httpAgent: new http.Agent({ keepAlive: true }) }) });
    await Promise.all(upTo(10).map(() => commands(own, dynamodb).ListTables()));
}));
testOwn('a client outlives a restart of the server', async () => {
    /* The port is another one then; what counts is that connections that broke are noticed. */
    const first = await startOwn();
    const own = make({ endpoint: first.endpoint });
    await commands(own, dynamodb).ListTables();
    eq(await first.stop(), null);
    const error = await fails(commands(own, dynamodb).ListTables(), Error);
    assert.match(`${error.code} ${error.message}`, /ECONNREFUSED|ECONNRESET|socket hang up/);
});
testOwn('time moves by the clock of the server', () => withServer([], async ({ server, at }) => {
    const own = commands(make(at), dynamodb);
    await own.CreateTable(TABLE);
    await own.UpdateTimeToLive({ TableName: 'own', TimeToLiveSpecification: { Enabled: true, AttributeName: 'ttl' } });
    await own.PutItem({ TableName: 'own', Item: { pk: S('a'), ttl: N(Math.floor(Date.now() / 1000) + 3600) } });
    await fetch(`${server.endpoint}/_holdfast/clock`, { method: 'PUT', body: '{"advance_s": 7200}' });
    const answer = await fetch(`${server.endpoint}/_holdfast/upkeep`, { method: 'POST' });
    eq(answer.status, 200);
    for (const end = Date.now() + 30000; Date.now() < end; await pause(20))
        if ((await own.Scan({ TableName: 'own' })).Count === 0)
            break;
    eq((await own.Scan({ TableName: 'own' })).Count, 0);
}));

/* ---- signatures and TLS --------------------------------------------------------------------- */

async function withFiles(body) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-js-'));
    try {
        await body((name, text) => {
            const file = path.join(folder, name);
            if (text !== undefined)
                fs.writeFileSync(file, text, { mode: 0o600 });
            return file;
        });
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
}

const KEYS = '[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n';
const key = (secretAccessKey = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', accessKeyId = 'AKIDEXAMPLE') =>
    ({ credentials: { accessKeyId, secretAccessKey } });

testOwn('signatures of the SDK are right', () => withFiles((file) =>
    withServer(['--credentials', file('keys', KEYS)], async ({ at }) => {
        const own = commands(make({ ...at, ...key() }), dynamodb);
        await own.CreateTable({ ...TABLE, StreamSpecification: { StreamEnabled: true, StreamViewType: 'KEYS_ONLY' } });
        const Item = { pk: S('ž "quoted" \u{1f600}'), v: S('x'.repeat(100000)) };
        await own.PutItem({ TableName: 'own', Item });
        eq((await own.GetItem({ TableName: 'own', Key: { pk: Item.pk } })).Item, Item);
        const { Streams } = await commands(makeStreams({ ...at, ...key() }), streamsSdk).ListStreams();
        eq(Streams.length, 1);
        const packed = packing('gzip', zlib.gzipSync, { ...at, ...key() });
        eq((await commands(packed, dynamodb).GetItem({ TableName: 'own', Key: { pk: Item.pk } })).Item, Item);
        eq((await commands(make({ ...at, ...key(), region: 'eu-north-1' }), dynamodb).ListTables()).TableNames, ['own']);
    })));
testOwn('a wrong secret is refused', () => withFiles((file) =>
    withServer(['--credentials', file('keys', KEYS)], async ({ at }) => {
        const error = await fails(commands(make({ ...at, ...key('wrong') }), dynamodb).ListTables(), 'InvalidSignatureException',
            /^The request signature we calculated does not match the signature you provided\./);
        eq(error.$metadata.httpStatusCode, 400);
    })));
testOwn('a key that nobody has is refused', () => withFiles((file) =>
    withServer(['--credentials', file('keys', KEYS)], async ({ at }) => {
        await fails(commands(make({ ...at, ...key(undefined, 'AKIDSOMEBODY') }), dynamodb).ListTables(), 'UnrecognizedClientException',
            'The security token included in the request is invalid.');
    })));
testOwn('the SDK mends a clock that is off', () => withFiles((file) =>
    withServer(['--credentials', file('keys', KEYS)], async ({ at }) => {
        const hour = 3600 * 1000;
        await fails(commands(make({ ...at, ...key(), systemClockOffset: hour }), dynamodb).ListTables(), 'InvalidSignatureException',
            /^Signature not yet current/);
        const patient = make({ ...at, ...key(), systemClockOffset: hour, maxAttempts: 2 });
        await patient.send(new dynamodb.ListTablesCommand({})).catch(() => 0);
        eq((await patient.send(new dynamodb.ListTablesCommand({}))).TableNames, []);
    })));

const openssl = (...args) => spawnSync('openssl', args, { stdio: 'ignore' }).status === 0;

if (openssl('version'))
    testOwn('TLS', () => withFiles((file) => {
        assert(openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
            '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost',
            '-keyout', file('key'), '-out', file('cert')));
        fs.chmodSync(file('key'), 0o600);
        return withServer(['--tls-cert', file('cert'), '--tls-key', file('key')], async ({ at }) => {
            assert.match(at.endpoint, /^https:/);
            const agent = new https.Agent({ ca: fs.readFileSync(file('cert')), keepAlive: true, maxSockets: 20 });
            const own = commands(make({ ...at, requestHandler: new CheckingHandler({ httpsAgent: agent }) }), dynamodb);
            await own.CreateTable(TABLE);
            await Promise.all(upTo(100).map((i) => own.PutItem({ TableName: 'own', Item: { pk: S(`${i}`), v: S('x'.repeat(10000)) } })));
            eq((await own.Scan({ TableName: 'own' })).Count, 100);
            await fails(commands(make(at), dynamodb).ListTables(), Error, /self-signed certificate/);
        });
    }));
