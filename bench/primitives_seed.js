/*
 * bench/primitives_seed.js: the seed's primitives, as calls of the AWS SDK, for bench/primitives.
 *
 *     node primitives_seed.js URL SDK
 *
 * URL is of a server, SDK the directory of @aws-sdk/client-dynamodb. seed_run.js says what it reads
 * and writes.
 *
 * The seed is @paradoxical-io/common-aws 2.9.0, and these are the requests that it sends, with
 * nothing around them: no mapping of classes, no log, no metrics. So what it costs is a little
 * flattered.
 *
 *     lock       UpdateItem on condition that it is free or has expired, then DeleteItem
 *     counter    UpdateItem ADD, the new value returned; counter-hot: one for all callers
 *     kv-set     BatchWriteItem of one
 *     kv-get     BatchGetItem of one
 *     once-new   GetItem, and PutItem on condition that there is none
 *     once-done  GetItem
 *     limit      GetItem, and BatchWriteItem of one
 *
 * and of outbox-event-bus 2.0.3 with its adapter for DynamoDB, for bench/outbox:
 *
 *     emit       TransactWriteItems of one put
 *     drain      one event of those that wait, as its poller handles it with a batch of 100 and no
 *                pause between polls: its share of a Query of the index, an UpdateItem that claims
 *                it, and one that completes it
 */
"use strict";
const { serve } = require("./seed_run.js");
const [url, sdk] = process.argv.slice(2);
const {
    BatchGetItemCommand, BatchWriteItemCommand, CreateTableCommand, DeleteItemCommand, DynamoDBClient,
    GetItemCommand, PutItemCommand, QueryCommand, TransactWriteItemsCommand, UpdateItemCommand,
    waitUntilTableExists,
} = require(sdk);

const KEYS = 32;
const VALUE = JSON.stringify("v".repeat(248)); /* 250 bytes */
const DRAIN_EVENTS = 10000;
const TABLES = { locks: ["key"], keys: ["key"], partitioned_keys: ["partitionKey", "sortKey"] };

const client = new DynamoDBClient({
    endpoint: url, region: "us-east-1", credentials: { accessKeyId: "any", secretAccessKey: "any" },
});

let newNames = 0;
let claimed = []; /* events of the last query that were not handled yet */

function newEvent() {
    const now = Date.now();
    return {
        id: { S: `${process.pid}-${newNames++}` }, type: { S: "order.placed" },
        payload: { M: { data: { S: VALUE } } }, occurredAt: { S: new Date(now).toISOString() },
        status: { S: "created" }, retryCount: { N: "0" }, gsiSortKey: { N: String(now) },
    };
}

function setStatus(id, status, values, rest, condition) {
    return client.send(new UpdateItemCommand({
        TableName: "events", Key: { id }, ConditionExpression: condition,
        UpdateExpression: `SET #status = :status, ${rest}`,
        ExpressionAttributeNames: { "#status": "status" },
        ExpressionAttributeValues: { ":status": { S: status }, ...values },
    }));
}

function name(caller) {
    return `name-${caller}-${Math.floor(Math.random() * KEYS)}`;
}

function compound(partition, sort) {
    return { partitionKey: { S: partition }, sortKey: { S: sort } };
}

function write(TableName, item) {
    return client.send(new BatchWriteItemCommand({
        RequestItems: { [TableName]: [{ PutRequest: { Item: item } }] },
    }));
}

async function add(id) {
    const done = await client.send(new UpdateItemCommand({
        TableName: "keys", Key: { key: { S: id } }, UpdateExpression: "ADD #count :by",
        ExpressionAttributeNames: { "#count": "count" },
        ExpressionAttributeValues: { ":by": { N: "1" } }, ReturnValues: "ALL_NEW",
    }));
    return Number(done.Attributes.count.N);
}

async function isDone(key) {
    const found = await client.send(new GetItemCommand({ TableName: "partitioned_keys", Key: key }));
    return found.Item ? { at: JSON.parse(found.Item.data.S) } : undefined;
}

const ops = {
    async lock(caller) {
        const key = { key: { S: name(caller) } };
        const now = Math.floor(Date.now() / 1000);
        await client.send(new UpdateItemCommand({
            TableName: "locks", Key: key, UpdateExpression: "SET #expires = :expires",
            ConditionExpression: "attribute_not_exists(#key) OR :now >= #expires",
            ExpressionAttributeNames: { "#expires": "expiresAt", "#key": "key" },
            ExpressionAttributeValues: { ":expires": { N: String(now + 30) }, ":now": { N: String(now) } },
            ReturnValues: "ALL_OLD",
        }));
        await client.send(new DeleteItemCommand({ TableName: "locks", Key: key }));
    },

    "counter-hot": () => add("counters.hot"),

    counter: (caller) => add(`counters.${name(caller)}`),

    "kv-set": (caller) => write("keys", { key: { S: `global.${name(caller)}` }, data: { S: VALUE } }),

    async "kv-get"(caller) {
        const found = await client.send(new BatchGetItemCommand({
            RequestItems: { keys: { Keys: [{ key: { S: `global.${name(caller)}` } }] } },
        }));
        if (JSON.parse(found.Responses.keys[0].data.S).length !== 248)
            throw new Error("kv-get: not the value that was set");
    },

    async "once-new"(caller) {
        const key = compound("user", `users.do_once.new-${process.pid}-${caller}-${newNames++}`);
        if (await isDone(key))
            throw new Error("once-new: done before");
        await client.send(new PutItemCommand({
            TableName: "partitioned_keys", Item: { ...key, data: { S: String(Date.now()) } },
            ConditionExpression: "attribute_not_exists(#key)",
            ExpressionAttributeNames: { "#key": "partitionKey" },
        }));
    },

    async "once-done"(caller) {
        if (!await isDone(compound("user", `users.do_once.${name(caller)}`)))
            throw new Error("once-done: not done before");
    },

    emit: () => client.send(new TransactWriteItemsCommand({
        TransactItems: [{ Put: { TableName: "events", Item: newEvent() } }],
    })),

    async drain() {
        const now = { N: String(Date.now()) };
        if (claimed.length === 0) {
            const found = await client.send(new QueryCommand({
                TableName: "events", IndexName: "status-gsiSortKey-index", Limit: 100,
                KeyConditionExpression: "#status = :status AND gsiSortKey <= :now",
                ExpressionAttributeNames: { "#status": "status" },
                ExpressionAttributeValues: { ":status": { S: "created" }, ":now": now },
            }));
            claimed = found.Items;
            if (claimed.length === 0)
                throw new Error("drain: no events are left");
        }
        const { id } = claimed.shift();
        const lease = { N: String(Date.now() + 30000) };
        await setStatus(id, "active", { ":lease": lease, ":now": now, ":created": { S: "created" } },
            "gsiSortKey = :lease, startedOn = :now",
            "#status = :created OR (#status = :status AND gsiSortKey <= :now)");
        await setStatus(id, "completed", { ":now": now }, "completedOn = :now REMOVE gsiSortKey");
    },

    async limit(caller) {
        const key = compound("attempts", `tries.${name(caller)}`);
        const found = await client.send(new GetItemCommand({ TableName: "partitioned_keys", Key: key }));
        const state = found.Item ? JSON.parse(found.Item.data.S) : { created: Date.now(), attempts: 0 };
        state.attempts++;
        await write("partitioned_keys", { ...key, data: { S: JSON.stringify(state) } });
    },
};

async function fill(op, callers) {
    if (op === "drain")
        for (let i = 0; i < DRAIN_EVENTS; i += 25)
            await client.send(new BatchWriteItemCommand({
                RequestItems: { events: Array.from({ length: 25 }, () => ({ PutRequest: { Item: newEvent() } })) },
            }));
    for (let caller = 0; caller < callers; caller++)
        for (let i = 0; i < KEYS; i++) {
            const id = `name-${caller}-${i}`;
            if (op === "kv-get")
                await write("keys", { key: { S: `global.${id}` }, data: { S: VALUE } });
            if (op === "once-done")
                await write("partitioned_keys",
                    { ...compound("user", `users.do_once.${id}`), data: { S: String(Date.now()) } });
        }
}

async function createOutbox() {
    await client.send(new CreateTableCommand({
        TableName: "events", BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [["id", "S"], ["status", "S"], ["gsiSortKey", "N"]]
            .map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
        KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
        GlobalSecondaryIndexes: [{
            IndexName: "status-gsiSortKey-index", Projection: { ProjectionType: "ALL" },
            KeySchema: [{ AttributeName: "status", KeyType: "HASH" },
                { AttributeName: "gsiSortKey", KeyType: "RANGE" }],
        }],
    }));
    await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1 }, { TableName: "events" });
}

async function createTables() {
    await createOutbox();
    for (const [TableName, keys] of Object.entries(TABLES)) {
        await client.send(new CreateTableCommand({
            TableName, BillingMode: "PAY_PER_REQUEST",
            AttributeDefinitions: keys.map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
            KeySchema: keys.map((AttributeName, i) => ({ AttributeName, KeyType: i ? "RANGE" : "HASH" })),
        }));
        await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1 }, { TableName });
    }
}

serve("primitives_seed.js", { ops, fill }, createTables);
