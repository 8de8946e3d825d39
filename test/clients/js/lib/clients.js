/*
 * lib/clients.js: clients for the cases.
 *
 *     api.PutItem({...})      new PutItemCommand({...}), sent by a DynamoDBClient
 *     doc.Put({...})          new PutCommand({...}), sent by a DynamoDBDocumentClient
 *     streams.GetRecords({})  likewise
 *     make(options)           a DynamoDBClient with options of its own
 *
 * The handler below them looks at every answer that the suite gets: its checksum, its request id
 * and its content type have to be right, whatever the case is about. Nothing is tried twice, so
 * that a failure is seen at once.
 */
'use strict';
const assert = require('assert');
const zlib = require('zlib');
const { Readable } = require('stream');
const dynamodb = require('@aws-sdk/client-dynamodb');
const library = require('@aws-sdk/lib-dynamodb');
const dynamodbStreams = require('@aws-sdk/client-dynamodb-streams');
const { NodeHttpHandler } = require('@smithy/node-http-handler');

const endpoint = process.env.ENDPOINT;
const credentials = { accessKeyId: 'fakeMyKeyId', secretAccessKey: 'fakeSecretAccessKey' };

const table = Array.from({ length: 256 }, (_, n) => {
    for (let i = 0; i < 8; i++)
        n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n >>> 0;
});

function crc32(bytes) {
    let crc = 0xffffffff;
    for (const byte of bytes)
        crc = table[(crc ^ byte) & 255] ^ (crc >>> 8);
    return (crc ^ 0xffffffff) >>> 0;
}

async function bytesOf(stream) {
    const parts = [];
    for await (const part of stream)
        parts.push(part);
    return Buffer.concat(parts);
}

/* test/bindings/node/sdk.test.js runs the cases on a database in this process. */
const transport = global.handlerInProcess ?? ((options) => new NodeHttpHandler(options));

/* Answers are read whole, checked, unpacked if they are packed, and handed on. `last` is what the
 * newest one looked like on the wire. */
class CheckingHandler {
    constructor(options) {
        this.inner = transport(options);
        this.last = null;
        this.count = 0;
    }

    async handle(request, options) {
        const { response } = await this.inner.handle(request, options);
        const raw = await bytesOf(response.body);
        const headers = response.headers;
        let body = raw;
        if (headers['content-encoding'] === 'gzip')
            body = zlib.gunzipSync(raw);
        else if (headers['content-encoding'] === 'deflate')
            body = zlib.inflateSync(raw);
        this.last = { status: response.statusCode, headers, raw, body, request };
        this.count++;
        assert.strictEqual(Number(headers['x-amz-crc32']), crc32(raw), 'x-amz-crc32');
        assert.match(headers['x-amzn-requestid'] || '', /^[0-9A-Z]{52}$/);
        assert.strictEqual(Number(headers['content-length']), raw.length);
        if (raw.length)
            assert.strictEqual(headers['content-type'], 'application/x-amz-json-1.0');
        response.body = Readable.from([body]);
        return { response };
    }

    updateHttpClientConfig(key, value) {
        this.inner.updateHttpClientConfig(key, value);
    }

    httpHandlerConfigs() {
        return this.inner.httpHandlerConfigs();
    }

    destroy() {
        this.inner.destroy();
    }
}

const made = [];
const defaults = (handler) =>
    ({ endpoint, region: 'us-east-1', credentials, maxAttempts: 1, requestHandler: handler });

function keep(client) {
    made.push(client);
    return client;
}

const handler = new CheckingHandler();
const make = (options = {}) => keep(new dynamodb.DynamoDBClient({ ...defaults(new CheckingHandler()), ...options }));
const makeStreams = (options = {}) =>
    keep(new dynamodbStreams.DynamoDBStreamsClient({ ...defaults(new CheckingHandler()), ...options }));
const makeDoc = (options, client = make()) => library.DynamoDBDocumentClient.from(client, options);

/* An object with a function for each command of a module. */
function commands(client, module) {
    return new Proxy({}, {
        get: (_, name) => (input = {}, options = undefined) => {
            if (!module[`${name}Command`])
                throw new Error(`the SDK has no ${name}Command`);
            return client.send(new module[`${name}Command`](input), options);
        },
    });
}

const client = make({ requestHandler: handler });
const documentClient = makeDoc({ marshallOptions: { removeUndefinedValues: true } }, client);
const streamsClient = makeStreams();

/* ---- tables --------------------------------------------------------------------------------- */

const api = commands(client, dynamodb);
let number = 0;
const tag = `${process.pid.toString(36)}${Date.now().toString(36)}`;

const newName = (name) => `js-${name}-${tag}-${++number}`;

/* Wait for what DynamoDB takes its time for; here it is there at once. */
const ready = (TableName) =>
    dynamodb.waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1, maxDelay: 2 }, { TableName });

/* makeTable('orders', 'pk:S', 'sk:N', { more members of CreateTable }) -> its name */
async function makeTable(name, hash, range, more = {}) {
    const keys = [hash, range].filter(Boolean).map((key) => key.split(':'));
    const TableName = newName(name);
    const { AttributeDefinitions = [], ...rest } = more;
    await api.CreateTable({
        TableName,
        KeySchema: keys.map(([AttributeName], i) => ({ AttributeName, KeyType: i ? 'RANGE' : 'HASH' })),
        AttributeDefinitions: [...keys.map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
            ...AttributeDefinitions],
        BillingMode: 'PAY_PER_REQUEST',
        ...rest,
    });
    await ready(TableName);
    return TableName;
}

async function dropTable(TableName) {
    await api.DeleteTable({ TableName });
    await dynamodb.waitUntilTableNotExists({ client, maxWaitTime: 60, minDelay: 1, maxDelay: 2 }, { TableName });
}

module.exports = {
    endpoint, credentials, crc32, CheckingHandler, make, makeStreams, makeDoc, commands,
    client, handler, documentClient, streamsClient, newName, ready, makeTable, dropTable,
    api,
    doc: commands(documentClient, library),
    streams: commands(streamsClient, dynamodbStreams),
    without$: ({ $metadata, ...rest }) => rest,
    destroy: () => made.forEach((each) => each.destroy()),
};
