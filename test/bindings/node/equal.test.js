/*
 * equal.test.js: the item API beside the AWS SDK: random calls of one history, made four times, each time on a
 * database of its own: by our API in this process and over HTTP, by the SDK's DocumentClient in this process and over
 * HTTP. All four answer the same, errors too. HF_SEED repeats a history.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const path = require('path');
const { open, startServer } = require('holdfast');

const hasSdk = fs.existsSync(path.join(__dirname, '../node_modules/@aws-sdk/lib-dynamodb'));
const CALLS = 250;
const TABLE = 'things';

/* Numbers from 0 up to n, always the same ones for a seed. */
function dice(seed) {
    let state = seed >>> 0;
    return (n) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * n);
    };
}

function value(roll, depth = 0) {
    switch (roll(depth > 2 ? 6 : 10)) {
    case 0: return `text ${roll(5)} \u0000 ä \u{1f600}`;
    case 1: return roll(1000) - 500;
    case 2: return roll(1000000) / 128;
    case 3: return roll(2) === 0;
    case 4: return null;
    case 5: return Uint8Array.from({ length: roll(4) + 1 }, () => roll(256));
    case 6: return new Set(Array.from({ length: roll(3) + 1 }, (_, i) => `s${i}`));
    case 7: return new Set(Array.from({ length: roll(3) + 1 }, (_, i) => i * 1.5));
    case 8: return Array.from({ length: roll(4) }, () => value(roll, depth + 1));
    default: return Object.fromEntries(Array.from({ length: roll(4) }, (_, i) => [`m${i}`, value(roll, depth + 1)]));
    }
}

/* One call, for our API and for the DocumentClient: { ours(db), theirs(send) }, which give the same. */
function call(roll) {
    const key = { id: `k${roll(4)}`, n: roll(6) };
    const item = { ...key, v: value(roll), w: roll(3), ...(roll(2) ? { tags: new Set(['a', `b${roll(3)}`]) } : {}) };
    const w = roll(3), id = key.id, low = roll(4), reverse = roll(2) === 1, limit = roll(4) + 1;
    const other = { id: `k${roll(4)}`, n: 6 + roll(2) };
    const named = { TableName: TABLE, ExpressionAttributeNames: { '#w': 'w' }, ExpressionAttributeValues: { ':w': w } };
    switch (roll(14)) {
    case 0:
        return { ours: (db) => db.put(TABLE, item, { returns: 'old' }),
            theirs: async (send) => (await send('Put', { TableName: TABLE, Item: item, ReturnValues: 'ALL_OLD' })).Attributes };
    case 1:
        return { ours: (db) => db.put(TABLE, item, { if: { w }, itemOnFailure: true }),
            theirs: async (send) => (await send('Put', { ...named, Item: item, ConditionExpression: '#w = :w',
                ReturnValuesOnConditionCheckFailure: 'ALL_OLD' })).Attributes };
    case 2: case 3:
        return { ours: (db) => db.get(TABLE, key, { consistent: roll.even }),
            theirs: async (send) => (await send('Get', { TableName: TABLE, Key: key, ConsistentRead: roll.even })).Item };
    case 4:
        return { ours: (db) => db.get(TABLE, key, { attributes: ['w', 'v'] }),
            theirs: async (send) => (await send('Get', { TableName: TABLE, Key: key, ProjectionExpression: 'w, v' })).Item };
    case 5:
        return { ours: (db) => db.update(TABLE, key, { set: { u: item.v }, add: { c: w }, remove: ['tags'] }, { returns: 'new' }),
            theirs: async (send) => (await send('Update', { TableName: TABLE, Key: key, UpdateExpression: 'SET u = :u ADD c :c REMOVE tags',
                ExpressionAttributeValues: { ':u': item.v, ':c': w }, ReturnValues: 'ALL_NEW' })).Attributes };
    case 6:
        return { ours: (db) => db.delete(TABLE, key, { if: { w }, returns: 'old' }),
            theirs: async (send) => (await send('Delete', { ...named, Key: key, ConditionExpression: '#w = :w',
                ReturnValues: 'ALL_OLD' })).Attributes };
    case 7:
        return { ours: (db) => db.query(TABLE, { id }, { reverse, limit }).all(),
            theirs: async (send) => (await send('Query', { TableName: TABLE, KeyConditionExpression: 'id = :id',
                ExpressionAttributeValues: { ':id': id }, ScanIndexForward: !reverse, Limit: limit })).Items };
    case 8:
        return { ours: (db) => db.query(TABLE, 'id = :id AND n > :low', { values: { id, low }, filter: { w } }).all(),
            theirs: async (send) => (await send('Query', { TableName: TABLE, KeyConditionExpression: 'id = :id AND n > :low',
                FilterExpression: 'w = :w', ExpressionAttributeValues: { ':id': id, ':low': low, ':w': w } })).Items };
    case 9:
        return { ours: (db) => db.count(TABLE, { id }),
            theirs: async (send) => (await send('Query', { TableName: TABLE, KeyConditionExpression: 'id = :id', Select: 'COUNT',
                ExpressionAttributeValues: { ':id': id } })).Count };
    case 10:
        return { ours: (db) => db.scan(TABLE, { filter: { w } }).all(),
            theirs: async (send) => (await send('Scan', { ...named, FilterExpression: '#w = :w' })).Items };
    case 11:
        return { ours: async (db) => (await db.getMany(TABLE, [key, other])).filter(Boolean).length,
            theirs: async (send) => (await send('BatchGet', { RequestItems: { [TABLE]: { Keys:
                [key, other] } } })).Responses[TABLE].length };
    case 12:
        return { ours: (db) => db.transaction(async (tx) => {
                tx.put(TABLE, { ...other, w });
                tx.update(TABLE, key, { add: { c: 1 } }, { if: { w } });
            }),
            theirs: async (send) => void await send('TransactWrite', { TransactItems: [
                { Put: { TableName: TABLE, Item: { ...other, w } } },
                { Update: { ...named, Key: key, UpdateExpression: 'ADD c :c', ConditionExpression: '#w = :w',
                    ExpressionAttributeValues: { ':c': 1, ':w': w } } }] }) };
    default:
        return { ours: (db) => db.execute('SELECT w FROM things WHERE id = ? AND n = ?', [key.id, key.n]).all(),
            theirs: async (send) => (await send('Execute', { Statement: 'SELECT w FROM things WHERE id = ? AND n = ?',
                Parameters: [key.id, key.n] }, 'ExecuteStatement')).Items };
    }
}

/* What comes of it, for comparison: bytes are bytes, whatever their class. */
async function outcome(promise) {
    const plain = (v) => v instanceof Uint8Array ? { bytes: [...v] } : v instanceof Set ? { set: [...v].sort() }
        : Array.isArray(v) ? v.map(plain) : v && typeof v === 'object' ? Object.fromEntries(Object.entries(v).map(([k, e]) => [k, plain(e)])) : v;
    try {
        return plain(await promise);
    } catch (error) {
        return { error: error.exception ?? error.name, message: error.message };
    }
}

test('four ways to the same answers', { skip: !hasSdk && 'the AWS SDK cannot be fetched' }, async () => {
    const { DynamoDBClient } = require('@aws-sdk/client-dynamodb');
    const library = require('@aws-sdk/lib-dynamodb');
    const seed = Number(process.env.HF_SEED ?? Date.now() % 2 ** 31);
    const servers = [await startServer(), await startServer()];
    const inside = [await open('memory:'), await open('memory:')];
    const [outside, other] = [await open(servers[0].endpoint), await open(servers[1].endpoint)];
    const sender = (config) => {
        const client = library.DynamoDBDocumentClient.from(new DynamoDBClient({ ...config, maxAttempts: 1 }));
        return (name, input, whole = name) => client.send(new library[`${whole}Command`](input));
    };
    const ours = [inside[0], outside];
    const theirs = [sender(inside[1].clientConfig()), sender(servers[1].clientConfig())];
    for (const db of [...inside, outside, other])
        await db.createTable(TABLE, { key: { id: 'string', n: 'number' } });

    const roll = dice(seed), seen = new Set();
    for (let i = 0; i < CALLS; i++) {
        roll.even = roll(2) === 0;
        const { ours: by, theirs: bySdk } = call(roll);
        const [first, ...rest] = await Promise.all([...ours.map((db) => outcome(by(db))), ...theirs.map((send) => outcome(bySdk(send)))]);
        for (const [which, each] of rest.entries())
            assert.deepStrictEqual(each, first, `call ${i}, HF_SEED=${seed}, way ${which + 1}: ${by}`);
        seen.add(first?.error ?? typeof first);
    }
    assert(seen.has('ConditionalCheckFailedException') && seen.has('TransactionCanceledException') && seen.has('object'), [...seen].join());
    const all = await Promise.all([...ours.map((db) => outcome(db.scan(TABLE).all())),
        ...theirs.map((send) => outcome(send('Scan', { TableName: TABLE }).then(({ Items }) => Items)))]);
    assert(all[0].length > 5);
    for (const each of all.slice(1))
        assert.deepStrictEqual(each, all[0]);
    for (const db of [...inside, outside, other])
        await db.close();
    for (const server of servers)
        await server.stop();
});
