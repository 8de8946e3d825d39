/*
 * bench/events_seed.js: the seed's event store, as calls of the AWS SDK, for bench/events.
 *
 *     node events_seed.js URL SDK
 *
 * URL is of a server, SDK the directory of @aws-sdk/client-dynamodb. seed_run.js says what it reads
 * and writes.
 *
 * The seed is @schemeless/event-store 3.2.2 with its adapter for DynamoDB, and these are the requests
 * that it sends for one stream at a time, without its pipeline around them: no flows, no queue, no
 * log, and no event is large enough for S3. So what it costs is a little flattered.
 *
 *     append1, append10, append20
 *                 GetItem of the stream's head; then TransactWriteItems: the head moves on, on the
 *                 condition that it is where it was read, and so many events are put, each on the
 *                 condition that there is none
 *     append-new  the same of one event, for a stream that is not there yet
 *     replay      {"op": "replay", "events": N, "page": 1000}: all events of a table with N: for
 *                 every month since 2020, Query the index of months page by page, which has keys
 *                 alone, and fetch the events with BatchGetItem, 100 at a time
 */
"use strict";
const { randomBytes } = require("node:crypto");
const { serve } = require("./seed_run.js");
const [url, sdk] = process.argv.slice(2);
const {
    BatchGetItemCommand, BatchWriteItemCommand, CreateTableCommand, DynamoDBClient, GetItemCommand,
    QueryCommand, TransactWriteItemsCommand, waitUntilTableExists,
} = require(sdk);

const STREAMS = 32; /* of each caller */
const PAYLOAD = { text: "v".repeat(239) }; /* 250 bytes as JSON */
const GET_MOST = 100;
const FIRST_MONTH = [2020, 0];
const TABLE = "schemeless-event-store";
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const client = new DynamoDBClient({
    endpoint: url, region: "us-east-1", credentials: { accessKeyId: "any", secretAccessKey: "any" },
});

/* ---- events ---------------------------------------------------------------------------------- */

let lastMs = 0, lastRandom = [];
let newStreams = 0;

/* A monotonic ULID: in one millisecond the random part is counted up. */
function newId(ms) {
    if (ms > lastMs) {
        lastMs = ms;
        lastRandom = Array.from(randomBytes(16), (byte) => byte & 31);
    } else {
        let i = lastRandom.length - 1;
        while (lastRandom[i] === 31)
            lastRandom[i--] = 0;
        lastRandom[i]++;
    }
    let time = "";
    for (let i = 0, rest = lastMs; i < 10; i++, rest = Math.floor(rest / 32))
        time = ALPHABET[rest % 32] + time;
    return time + lastRandom.map((digit) => ALPHABET[digit]).join("");
}

function newEvent(identifier) {
    const created = new Date();
    const id = newId(created.getTime());
    return { id, domain: "order", type: "placed", payload: PAYLOAD, meta: { schemaVersion: 1 }, identifier,
        correlationId: id, created };
}

function monthOf(date) {
    return date.toISOString().slice(0, 7);
}

function toItem(event, sequence) {
    return {
        id: { S: `EventID#${event.id}` }, created: { S: event.created.toISOString() },
        domain: { S: event.domain }, type: { S: event.type }, meta: { S: JSON.stringify(event.meta) },
        payload: { S: JSON.stringify(event.payload) }, identifier: { S: event.identifier },
        correlationId: { S: event.correlationId }, timeBucket: { S: monthOf(event.created) },
        sequence: { N: String(sequence) },
    };
}

function fromItem(item) {
    return {
        id: item.id.S.slice("EventID#".length), domain: item.domain.S, type: item.type.S,
        meta: JSON.parse(item.meta.S), payload: JSON.parse(item.payload.S), identifier: item.identifier.S,
        correlationId: item.correlationId.S, created: new Date(item.created.S),
        sequence: Number(item.sequence.N),
    };
}

/* ---- appending ------------------------------------------------------------------------------- */

async function append(identifier, count) {
    const key = { id: { S: `EventID#HEAD::order::${identifier}` }, created: { S: "HEAD" } };
    const head = await client.send(new GetItemCommand({ TableName: TABLE, Key: key }));
    const base = head.Item ? Number(head.Item.version.N) : 0;
    const events = Array.from({ length: count }, () => newEvent(identifier));
    await client.send(new TransactWriteItemsCommand({
        TransactItems: [{
            Update: {
                TableName: TABLE, Key: key, UpdateExpression: "SET #version = :new",
                ConditionExpression: "attribute_not_exists(#version) OR #version = :base",
                ExpressionAttributeNames: { "#version": "version" },
                ExpressionAttributeValues: { ":new": { N: String(base + count) }, ":base": { N: String(base) } },
            },
        }, ...events.map((event, i) => ({
            Put: {
                TableName: TABLE, Item: toItem(event, base + i + 1),
                ConditionExpression: "attribute_not_exists(id)",
            },
        }))],
    }));
}

function appender(count) {
    return (caller) => append(`${caller}-${Math.floor(Math.random() * STREAMS)}`, count);
}

const ops = {
    append1: appender(1),
    append10: appender(10),
    append20: appender(20),
    "append-new": () => append(`new-${process.pid}-${newStreams++}`, 1),
};

/* ---- replay ---------------------------------------------------------------------------------- */

const filled = new Set();

async function createTable(TableName) {
    const index = (IndexName, hash) => ({
        IndexName, Projection: { ProjectionType: "KEYS_ONLY" },
        KeySchema: [{ AttributeName: hash, KeyType: "HASH" }, { AttributeName: "created", KeyType: "RANGE" }],
    });
    await client.send(new CreateTableCommand({
        TableName, BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: ["id", "created", "timeBucket", "causationId"]
            .map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
        KeySchema: [{ AttributeName: "id", KeyType: "HASH" }, { AttributeName: "created", KeyType: "RANGE" }],
        GlobalSecondaryIndexes: [index("timeBucketIndex", "timeBucket"), index("causationIndex", "causationId")],
    }));
    await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1 }, { TableName });
}

async function fillTable(TableName, count) {
    await createTable(TableName);
    for (let i = 0; i < count; i += 25)
        await client.send(new BatchWriteItemCommand({
            RequestItems: {
                [TableName]: Array.from({ length: Math.min(25, count - i) },
                    (_, j) => ({ PutRequest: { Item: toItem(newEvent(`s-${i % 1000}`), j + 1) } })),
            },
        }));
}

async function fetchEvents(TableName, keys) {
    const found = new Map();
    for (let i = 0; i < keys.length; i += GET_MOST) {
        let ask = { [TableName]: { Keys: keys.slice(i, i + GET_MOST).map(({ id, created }) => ({ id, created })) } };
        while (ask && Object.keys(ask).length) {
            const got = await client.send(new BatchGetItemCommand({ RequestItems: ask }));
            for (const item of got.Responses[TableName])
                found.set(item.id.S + item.created.S, item);
            ask = got.UnprocessedKeys;
        }
    }
    return keys.map((key) => found.get(key.id.S + key.created.S)).filter(Boolean).map(fromItem);
}

async function* allEvents(TableName, page) {
    const now = new Date();
    for (let [year, month] = FIRST_MONTH; new Date(Date.UTC(year, month)) <= now; month++) {
        let after;
        do {
            const keys = await client.send(new QueryCommand({
                TableName, IndexName: "timeBucketIndex", Limit: page, ExclusiveStartKey: after,
                KeyConditionExpression: "timeBucket = :month",
                ExpressionAttributeValues: { ":month": { S: monthOf(new Date(Date.UTC(year, month))) } },
            }));
            after = keys.LastEvaluatedKey;
            const events = await fetchEvents(TableName, keys.Items);
            if (events.length)
                yield events;
        } while (after);
    }
}

async function replay({ events: count, page }) {
    const table = `replay-${count}`;
    if (!filled.has(table)) {
        await fillTable(table, count);
        filled.add(table);
    }
    const begin = performance.now();
    const cpu = process.cpuUsage();
    let seen = 0, first = 0;
    for await (const events of allEvents(table, page)) {
        first = first || performance.now() - begin;
        for (const event of events)
            seen += event.payload.text.length === PAYLOAD.text.length ? 1 : 0;
    }
    const seconds = (performance.now() - begin) / 1000;
    const used = process.cpuUsage(cpu);
    if (seen !== count)
        throw new Error(`replay: ${seen} of ${count} events were there`);
    return {
        ops: seen, ops_per_s: seen / seconds, errors: 0, first_page_us: first * 1000,
        cpu_us_per_op: (used.user + used.system) / seen,
    };
}

serve("events_seed.js", { ops, fill: async () => {}, special: { replay } }, () => createTable(TABLE));
