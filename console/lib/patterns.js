/*
 * lib/patterns.js: which tables hold patterns, and what all views of patterns share.
 *
 * A table of a pattern has a mark (docs/tables.md). To find it takes a DescribeTable, for the names
 * of the key, and one BatchGetItem of the three keys that a mark may have. Tables with the usual
 * names come first, so that the first answer does not wait for 10,000 others.
 */
import { on } from './bus.js';
import { db, method, server, tableNames, Problem } from './client.js';
import { many } from './time.js';
import { throttle } from './dom.js';

/* Kinds, in the order in which they are shown: mark is the name of the pattern in a mark. */
export const KINDS = [
    { mark: 'outbox', path: '/outbox', title: 'Outbox', table: 'outbox',
        about: 'Events stored together with a change, delivered at least once by relays.',
        fill: 'holdfast outbox emit order.placed \'{"id":7}\' --key 7' },
    { mark: 'events', path: '/events', title: 'Events', table: 'events',
        about: 'An event store: streams in order, one global order, subscriptions.',
        fill: 'holdfast events append order/7 placed \'{"pieces":2}\'' },
    { mark: 'locks', path: '/locks', title: 'Locks', table: 'locks',
        about: 'Leases on names, with a fence that grows with every holder.',
        fill: 'holdfast lock run backup -- sleep 60' },
    { mark: 'counters', path: '/counters', title: 'Counters', table: 'keys',
        about: 'Numbers that many programs add to.', fill: 'holdfast counter add visits' },
    { mark: 'once', path: '/once', title: 'Do-once', table: 'once',
        about: 'Jobs that are done once for a user and a key, with their results.',
        fill: 'holdfast once run invoices-2026-11 -- echo done' },
    { mark: 'limits', path: '/limits', title: 'Limits', table: 'limits',
        about: 'Rate limits and lockouts.', fill: 'holdfast limit check login/ann --limit 5 --window 15m' },
    { mark: 'values', path: '/kv', title: 'Keys and values', table: 'keys',
        about: 'Values and sets by namespace and id, with a time to live.', fill: 'holdfast kv set motd "Back at noon"' },
    { mark: 'records', path: '/records', title: 'Records', table: 'Records',
        about: 'Items that processors claim and handle once.',
        fill: 'holdfast records put \'{"AccountId":"A1","RunTime":"2026-11-19T12:00:00Z"}\'' },
    { mark: 'positions', path: '/consumers', title: 'Stream consumers', table: 'checkpoints',
        about: 'How far programs have read the streams of tables.', fill: 'holdfast streams tail orders --name audit' },
];

export const kindOf = (mark) => KINDS.find((kind) => kind.mark === mark);
export const has = (name) => (server.info?.methods || []).includes(name);

export { many };

/* ---- values --------------------------------------------------------------------------------- */

/* A value of DynamoDB's JSON as a plain one, for people: numbers that a double cannot hold stay text. */
export function plain(value) {
    if (!value)
        return undefined;
    const [[type, v]] = Object.entries(value);
    switch (type) {
    case 'N': return exact(v);
    case 'NS': return v.map(exact);
    case 'L': return v.map(plain);
    case 'M': return plainItem(v);
    case 'NULL': return null;
    default: return v;
    }
}

const exact = (text) => (String(Number(text)) === text ? Number(text) : text);
export const plainItem = (item) => item && Object.fromEntries(Object.entries(item).map(([k, v]) => [k, plain(v)]));

/* A plain value in DynamoDB's JSON. */
export function typed(v) {
    return v === null ? { NULL: true } : typeof v === 'boolean' ? { BOOL: v } : typeof v === 'number' ? { N: String(v) }
        : typeof v === 'string' ? { S: v } : Array.isArray(v) ? { L: v.map(typed) }
            : { M: Object.fromEntries(Object.entries(v).map(([k, x]) => [k, typed(x)])) };
}

/* The payload of an event: {raw, text (the same in lines, if it is JSON), json, binary}. */
export function payloadOf(event) {
    if (event.payload?.base64 !== undefined) {
        const bytes = Uint8Array.from(atob(event.payload.base64), (c) => c.charCodeAt(0));
        try {
            return shown(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
        } catch {
            return { raw: event.payload.base64, text: event.payload.base64, binary: true, size: bytes.length };
        }
    }
    return shown(event.payload ?? '');
}

function shown(raw) {
    let value;
    try {
        value = JSON.parse(raw);
    } catch {
        return { raw, text: raw, json: false };
    }
    return { raw, text: value !== null && typeof value === 'object' ? inLines(raw) : raw, json: true };
}

/* JSON in lines, for eyes: only blanks are others, so numbers keep their digits and no member is lost. */
export function inLines(json) {
    let out = '', depth = 0;
    const line = () => '\n' + '  '.repeat(depth), parts = json.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
    parts.forEach((part, i) => {
        if (part === '{' || part === '[') {
            depth++;
            out += part + (']}'.includes(parts[i + 1]) ? '' : line());
        } else if (part === '}' || part === ']') {
            depth--;
            out += ('[{'.includes(parts[i - 1]) ? '' : line()) + part;
        } else {
            out += part === ',' ? part + line() : part === ':' ? ': ' : part;
        }
    });
    return out;
}

/* ---- tables --------------------------------------------------------------------------------- */

const shapes = new Map(); /* by table: {hash, sort, items} */

export async function shapeOf(table) {
    if (!shapes.has(table)) {
        const { Table } = await db('DescribeTable', { TableName: table });
        const name = (type) => Table.KeySchema.find((k) => k.KeyType === type)?.AttributeName;
        const texts = Table.KeySchema.every((k) => Table.AttributeDefinitions.find((a) => a.AttributeName === k.AttributeName).AttributeType === 'S');
        const type = Table.AttributeDefinitions.find((a) => a.AttributeName === name('HASH')).AttributeType;
        shapes.set(table, { hash: name('HASH'), sort: name('RANGE'), type, texts, indexes: [...(Table.GlobalSecondaryIndexes || []), ...(Table.LocalSecondaryIndexes || [])] });
    }
    return shapes.get(table);
}

/* The patterns whose mark a table has: ["locks"], [] */
async function marksOf(table) {
    const { hash, sort, texts } = await shapeOf(table);
    if (!texts)
        return [];
    const key = (a, b) => (sort ? { [hash]: { S: a }, [sort]: { S: b } } : { [hash]: { S: a } });
    const keys = [key('holdfast:table', 'holdfast:table')];
    if (sort)
        keys.push(key('c', 'config'), key('holdfast:records', 'shards'));
    const answer = await db('BatchGetItem', { RequestItems: { [table]: { Keys: keys, ConsistentRead: true } } });
    const marks = new Set();
    for (const item of (answer.Responses?.[table] || []).map(plainItem))
        if (item[hash] === 'holdfast:table')
            Object.keys(item.holdfast || {}).filter((name) => kindOf(name)).forEach((name) => marks.add(name));
        else if (item[hash] === 'c' && kindOf(item.kind))
            marks.add(item.kind);
        else if (item[hash] === 'holdfast:records')
            marks.add('records');
    return [...marks];
}

let found = null; /* {tables: [{table, marks}], looked, total, whole} of the last search */

/* Search all tables; `step` is called after each. `signal` ends it early, with what was found. */
export async function findPatterns(step = () => {}, signal) {
    const usual = new Set(KINDS.map((kind) => kind.table).concat('partitioned_keys'));
    const names = (await tableNames()).sort((a, b) => usual.has(b) - usual.has(a));
    const result = { tables: [], looked: 0, total: names.length, whole: false };
    let next = 0;
    const worker = async () => {
        while (next < names.length && !signal?.aborted) {
            const table = names[next++];
            try {
                const marks = await marksOf(table);
                if (marks.length)
                    result.tables.push({ table, marks });
            } catch (error) {
                if (!(error instanceof Problem) || error.code !== 'ResourceNotFoundException')
                    throw error;
            }
            result.looked++;
            step(result);
        }
    };
    await Promise.all(Array.from({ length: 6 }, worker));
    result.tables.sort((a, b) => (a.table < b.table ? -1 : 1));
    result.whole = !signal?.aborted;
    found = result;
    return result;
}

/* Tables of a pattern, as far as they are known without another search of 10,000 tables. */
export async function tablesOf(mark) {
    if (!found)
        await findPatterns(undefined, AbortSignal.timeout(3000)).catch((error) => {
            if (!(error instanceof Problem) || error.code !== 'Canceled')
                throw error;
        });
    return (found?.tables || []).filter((t) => t.marks.includes(mark)).map((t) => t.table);
}

/* Does an event of the stream name a table that no search has seen? It may have a new pattern. */
export const namesNew = (writes) => !!found && namesIn(writes).some((table) => !shapes.has(table));

export function forgetPatterns() {
    found = null;
    shapes.clear();
}

/* ---- what changes --------------------------------------------------------------------------- */

const namesIn = (writes) => writes.tables || [];

/* fn when one of the tables was written; at most twice a second. Returns what ends it. */
export function follow(tables, fn) {
    const soon = throttle(fn, 500);
    const ends = [on('writes', (writes) => (writes.all || namesIn(writes).some((name) => tables.includes(name))) && soon()), on('back', soon)];
    return () => ends.forEach((end) => end());
}

/* Methods of keys and counters have to be told that a table has partitions. */
export const partitioned = async (table) => ((await shapeOf(table)).sort ? { partitioned: true } : {});

/* All of a list that comes in pages: call(name, args) until there is no `next`, or `most` are there. */
export async function all(name, args, member, most = 1000, signal = undefined) {
    const list = [];
    for (let after; ;) {
        const page = await method(name, { ...args, limit: Math.min(200, most - list.length), ...(after ? { after } : {}) }, { signal });
        list.push(...(page[member] || []));
        after = page.next;
        if (!after || list.length >= most)
            return { list, more: !!after, next: after };
    }
}
