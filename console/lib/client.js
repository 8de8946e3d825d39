/*
 * lib/client.js: requests to the server that served this page, and to no other.
 *
 * db("GetItem", {...}) is an operation as SDKs send it. api("/console/api/info") reads, api(path,
 * body) writes; method("lock.list", {...}) calls a pattern. Each gives the answer, or throws a
 * Problem. With keys each request is signed here; the secret stays in this tab.
 */
import { emit } from './bus.js';
import { sign } from './sign.js';

const STREAMS = new Set(['DescribeStream', 'GetRecords', 'GetShardIterator', 'ListStreams']);
const REFUSED = new Set(['UnrecognizedClientException', 'InvalidSignatureException', 'MissingAuthenticationToken',
    'MissingAuthenticationTokenException', 'IncompleteSignatureException', 'ExpiredTokenException']);

/* What is known of the server; app.js fills it from /console/api/info. */
export const server = { info: null, access: 'open', region: 'us-east-1', up: true, clockOff: 0 };

export class Problem extends Error {
    constructor(code, message, more = {}) {
        super(message || code);
        this.code = code;
        Object.assign(this, { status: 0, retryable: false, mayHaveHappened: false }, more);
    }
}

export function getKey() {
    try {
        return JSON.parse(sessionStorage.getItem('holdfast.key'));
    } catch {
        return null;
    }
}

export function setKey(key) {
    if (key)
        sessionStorage.setItem('holdfast.key', JSON.stringify(key));
    else
        sessionStorage.removeItem('holdfast.key');
}

let heard = 0; /* when the server last answered */

/* A request that is signed; the Response of fetch, whatever its status. One that fails says that the
   server is away, unless there was an answer since it was sent: then whoever listens has to ask. */
export async function send(path, { body, headers = {}, signal, unsigned = false, method = body === undefined ? 'GET' : 'POST' } = {}) {
    const url = new URL(path, location.origin), key = getKey();
    let all = headers;
    if (key && !unsigned)
        all = await sign({ method, url, headers, body, key, region: server.region, now: Date.now() + server.clockOff });
    else if (server.access === 'open' && !unsigned) /* the form of a signature is required, and no more */
        all = { ...headers, 'x-amz-date': new Date().toISOString().replace(/[-:]|\.\d+/g, ''),
            authorization: 'AWS4-HMAC-SHA256 Credential=console/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=' + '0'.repeat(64) };
    const sent = performance.now();
    let answer;
    try {
        answer = await fetch(url, { method, headers: all, body, signal, credentials: 'omit', cache: 'no-store', redirect: 'error' });
    } catch (error) {
        if (error.name === 'AbortError')
            throw new Problem('Canceled', 'Canceled.');
        if (sent < heard)
            emit('doubt');
        else
            reach(false);
        throw new Problem('Unreachable', 'The server does not answer.', { retryable: true, mayHaveHappened: method !== 'GET' });
    }
    heard = performance.now();
    reach(true);
    return answer;
}

/* The server answered, or did not. */
export function reach(up) {
    if (server.up === up)
        return;
    server.up = up;
    emit(up ? 'back' : 'away');
}

/* Was it the key? The console's own API says HF_DENIED, which a call may also be for another reason. */
export function refused(problem, path = '') {
    return REFUSED.has(problem.code) || (problem.code === 'HF_DENIED' && path.startsWith('/console/api/') && path !== '/console/api/call');
}

async function read(answer, path) {
    const text = await answer.text();
    let value;
    try {
        value = text ? JSON.parse(text) : {};
    } catch {
        value = null;
    }
    if (answer.ok) {
        if (value === null)
            throw new Problem('BadAnswer', 'The answer of the server is not JSON.', { status: answer.status });
        return value;
    }
    const nested = value?.error || {};
    const problem = new Problem(nested.code || (value?.__type || 'Failure').split('#').pop(),
        nested.message || value?.message || value?.Message || text.slice(0, 300) || answer.statusText, {
            status: answer.status, retryable: nested.retryable ?? answer.status >= 500,
            mayHaveHappened: nested.may_have_happened ?? false,
            item: value?.Item, reasons: value?.CancellationReasons });
    if (refused(problem, path))
        emit('key', problem);
    throw problem;
}

export async function db(operation, request = {}, { signal } = {}) {
    const target = (STREAMS.has(operation) ? 'DynamoDBStreams_20120810.' : 'DynamoDB_20120810.') + operation;
    return read(await send('/', { body: JSON.stringify(request), signal,
        headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': target } }), '/');
}

export async function api(path, body, { signal, method, unsigned } = {}) {
    return read(await send(path, { signal, method, unsigned, body: body === undefined ? undefined : JSON.stringify(body),
        headers: body === undefined ? {} : { 'content-type': 'application/json' } }), path);
}

const READS = /\.(list|get|get_many|inspect|stats|paused|pending|failed|history|read|all|tree|caused_by|correlated|streams?|subscriptions?|parked|peek|contains|count|methods|version)$/;
const others = new BroadcastChannel('holdfast.writes'); /* pages of this server */
others.onmessage = (message) => emit('writes', message.data);

/* A pattern. The server's stream does not tell what these write, so the pages tell each other. */
export async function method(name, args = {}, options) {
    const { result } = await api('/console/api/call', { method: name, arguments: args }, options);
    if (args.table && !READS.test(name)) {
        emit('writes', { tables: [args.table] });
        others.postMessage({ tables: [args.table] });
    }
    return result;
}

/* All pages of an operation, one after another: for await (const page of pages("Query", {...})) */
export async function* pages(operation, request, options) {
    for (let next = null; ;) {
        const page = await db(operation, next ? { ...request, ExclusiveStartKey: next } : request, options);
        yield page;
        next = page.LastEvaluatedKey;
        if (!next)
            return;
    }
}

/* The names of all tables; `progress` is called with those that are known after each page. */
export async function tableNames({ progress, ...options } = {}) {
    const names = [];
    for (let last; ;) {
        const page = await db('ListTables', last ? { ExclusiveStartTableName: last } : {}, options);
        names.push(...page.TableNames);
        last = page.LastEvaluatedTableName;
        if (!last)
            return names;
        progress?.(names);
    }
}
