/*
 * lib/requests.js: requests of DynamoDB, made of plain objects. Nothing is sent here.
 */
'use strict';
const { Placeholders } = require('./expressions');
const { toItem } = require('./values');
const { invalid } = require('./errors');

const RETURNS = { none: 'NONE', old: 'ALL_OLD', new: 'ALL_NEW', updatedOld: 'UPDATED_OLD', updatedNew: 'UPDATED_NEW' };

function returns(option) {
    if (option === undefined)
        return undefined;
    if (!Object.hasOwn(RETURNS, option))
        throw invalid(`returns is one of ${Object.keys(RETURNS).join(', ')}, not ${option}`);
    return RETURNS[option];
}

/* Only what is known: a slip in a name would be a write without its condition. */
function check(options, known, what) {
    for (const name of Object.keys(options))
        if (!known.includes(name))
            throw invalid(`${what} has no option ${name}; it has ${known.join(', ')}`);
}

const CALL = ['signal', 'timeoutMs'];
const WRITE = ['if', 'names', 'values', 'returns', 'itemOnFailure', ...CALL];

function put(table, item, options = {}) {
    check(options, WRITE, 'put');
    const used = new Placeholders(options);
    return used.into({
        TableName: table,
        Item: toItem(item),
        ConditionExpression: used.condition(options.if, 'if'),
        ReturnValues: returns(options.returns),
        ReturnValuesOnConditionCheckFailure: options.itemOnFailure ? 'ALL_OLD' : undefined,
    });
}

function remove(table, key, options = {}) {
    check(options, WRITE, 'delete');
    const used = new Placeholders(options);
    return used.into({
        TableName: table,
        Key: toItem(key, 'a key'),
        ConditionExpression: used.condition(options.if, 'if'),
        ReturnValues: returns(options.returns),
        ReturnValuesOnConditionCheckFailure: options.itemOnFailure ? 'ALL_OLD' : undefined,
    });
}

function update(table, key, change, options = {}) {
    check(options, WRITE, 'update');
    const used = new Placeholders(options);
    return used.into({
        TableName: table,
        Key: toItem(key, 'a key'),
        UpdateExpression: used.update(change),
        ConditionExpression: used.condition(options.if, 'if'),
        ReturnValues: returns(options.returns),
        ReturnValuesOnConditionCheckFailure: options.itemOnFailure ? 'ALL_OLD' : undefined,
    });
}

function conditionCheck(table, key, condition, options = {}) {
    check(options, ['names', 'values', 'itemOnFailure'], 'check');
    if (condition === undefined)
        throw invalid('check needs a condition');
    const used = new Placeholders(options);
    return used.into({
        TableName: table,
        Key: toItem(key, 'a key'),
        ConditionExpression: used.condition(condition, 'the condition'),
        ReturnValuesOnConditionCheckFailure: options.itemOnFailure ? 'ALL_OLD' : undefined,
    });
}

function get(table, key, options = {}) {
    check(options, ['consistent', 'attributes', 'names', ...CALL], 'get');
    const used = new Placeholders(options);
    return used.into({
        TableName: table,
        Key: toItem(key, 'a key'),
        ConsistentRead: options.consistent,
        ProjectionExpression: used.projection(options.attributes),
    });
}

const READ = ['index', 'filter', 'attributes', 'names', 'values', 'consistent', 'limit', 'pageSize', 'start', ...CALL];

function read(used, table, options) {
    return {
        TableName: table,
        IndexName: options.index,
        FilterExpression: used.condition(options.filter, 'filter'),
        ProjectionExpression: used.projection(options.attributes),
        ConsistentRead: options.consistent,
        Limit: options.pageSize,
        ExclusiveStartKey: options.start ? toItem(options.start, 'start') : undefined,
    };
}

function query(table, key, options = {}) {
    check(options, [...READ, 'reverse'], 'query');
    const used = new Placeholders(options);
    if (key === undefined)
        throw invalid('query needs a key condition; scan reads the whole table');
    return used.into({
        ...read(used, table, options),
        KeyConditionExpression: used.condition(key, 'the key'),
        ScanIndexForward: options.reverse ? false : undefined,
    });
}

function scan(table, options = {}) {
    check(options, [...READ, 'segment', 'segments'], 'scan');
    const used = new Placeholders(options);
    return used.into({
        ...read(used, table, options),
        Segment: options.segment,
        TotalSegments: options.segments,
    });
}

/* ---- tables --------------------------------------------------------------------------------- */

const TYPES = { S: 'S', N: 'N', B: 'B', string: 'S', number: 'N', binary: 'B' };
const STREAMS = { keys: 'KEYS_ONLY', new: 'NEW_IMAGE', old: 'OLD_IMAGE', both: 'NEW_AND_OLD_IMAGES' };

function keySchema(key, types, what) {
    const names = Object.keys(key ?? {});
    if (names.length < 1 || names.length > 2)
        throw invalid(`${what} is one or two attributes, such as { customer: 'string', day: 'number' }`);
    for (const name of names) {
        const type = TYPES[key[name]];
        if (!type)
            throw invalid(`the type of ${name} is string, number or binary, not ${key[name]}`);
        if (types.has(name) && types.get(name) !== type)
            throw invalid(`${name} has two types`);
        types.set(name, type);
    }
    return names.map((AttributeName, i) => ({ AttributeName, KeyType: i ? 'RANGE' : 'HASH' }));
}

function createTable(table, options = {}) {
    check(options, ['key', 'indexes', 'stream', 'expires', 'ifMissing', ...CALL], 'createTable');
    const types = new Map();
    const KeySchema = keySchema(options.key, types, 'key');
    const GlobalSecondaryIndexes = [], LocalSecondaryIndexes = [];
    for (const [IndexName, index] of Object.entries(options.indexes ?? {})) {
        check(index, ['key', 'attributes', 'local'], `the index ${IndexName}`);
        const attributes = index.attributes ?? 'all';
        (index.local ? LocalSecondaryIndexes : GlobalSecondaryIndexes).push({
            IndexName,
            KeySchema: keySchema(index.key, types, `the key of ${IndexName}`),
            Projection: attributes === 'all' ? { ProjectionType: 'ALL' }
                : attributes === 'keys' ? { ProjectionType: 'KEYS_ONLY' }
                : { ProjectionType: 'INCLUDE', NonKeyAttributes: attributes },
        });
    }
    if (options.stream !== undefined && !STREAMS[options.stream])
        throw invalid(`stream is one of ${Object.keys(STREAMS).join(', ')}, not ${options.stream}`);
    return {
        TableName: table,
        KeySchema,
        AttributeDefinitions: [...types].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
        BillingMode: 'PAY_PER_REQUEST',
        GlobalSecondaryIndexes: GlobalSecondaryIndexes.length ? GlobalSecondaryIndexes : undefined,
        LocalSecondaryIndexes: LocalSecondaryIndexes.length ? LocalSecondaryIndexes : undefined,
        StreamSpecification: options.stream
            ? { StreamEnabled: true, StreamViewType: STREAMS[options.stream] } : undefined,
    };
}

module.exports = { put, get, update, remove, conditionCheck, query, scan, createTable, check, CALL };
