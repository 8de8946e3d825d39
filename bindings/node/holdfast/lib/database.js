/*
 * lib/database.js: a database that was opened, and items as plain objects.
 *
 * Calls go to threads of the addon; the event loop goes on. One that finds in memory all that it needs is
 * done at once instead: lib/soon.js. Arguments are looked at before, so that a mistake is a rejected
 * promise and nothing was sent.
 */
'use strict';
const { native } = require('./native');
const { HoldfastError, invalid, errorFrom } = require('./errors');
const { toItem, fromItem, toValue } = require('./values');
const requests = require('./requests');
const { quickMethods, hasTime, nextIteration } = require('./soon');
const { RequestHandler } = require('./handler');
const { Transaction } = require('./transaction');
const { Sessions } = require('./sessions');
const { patterns } = require('./patterns');

const CALLS = 0; /* lanes of the addon */
const WAITS = 1;
const BACKGROUND = 2; /* a wait that keeps no process alive */
const BATCH_READ = 100; /* limits of DynamoDB */
const BATCH_WRITE = 25;
const TIMEOUT_MAX = 0xffffffff;

let numbers = 0;

const later = (ms, signal) => new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
        signal?.removeEventListener('abort', abort);
        resolve();
    }, ms);
    function abort() {
        clearTimeout(timer);
        reject(signal.reason);
    }
    signal?.addEventListener('abort', abort, { once: true });
});

/* The connection below a Database: what patterns use, too. */
class Connection {
    constructor(addon, handle, url) {
        this.addon = addon;
        this.handle = handle;
        this.url = url;
        this.quick = quickMethods(url);
        this.closing = undefined;
        this.sessions = new Sessions(this);
    }

    #check(signal) {
        if (this.closing)
            throw new HoldfastError('HF_STOPPED', `the database ${this.url} is closed`);
        if (signal?.aborted)
            throw new HoldfastError('HF_CANCELED', `canceled: ${signal.reason?.message ?? signal.reason}`, { cause: signal.reason });
    }

    /* A method, or an operation, with JSON's text in and out. */
    async text(method, json, options = {}) {
        const { signal, timeoutMs = 0, lane = CALLS } = options;
        this.#check(signal);
        if (!Number.isInteger(timeoutMs) || timeoutMs < 0 || timeoutMs > TIMEOUT_MAX)
            throw invalid(`timeoutMs is a whole number of milliseconds, not ${timeoutMs}`);
        if (lane === CALLS && this.quick.has(method)) {
            while (!hasTime()) {
                await nextIteration();
                this.#check(signal);
            }
            const answer = this.addon.now(this.handle, method, json);
            if (answer !== undefined)
                return answer;
        }
        const number = ++numbers;
        const promise = this.addon.call(this.handle, method, json, lane, number, timeoutMs);
        if (!signal)
            return promise;
        const cancel = () => this.addon.cancel(number);
        signal.addEventListener('abort', cancel, { once: true });
        try {
            return await promise;
        } finally {
            signal.removeEventListener('abort', cancel);
        }
    }

    async call(method, args, options) {
        try {
            return JSON.parse(await this.text(method, JSON.stringify(args), options));
        } catch (error) {
            throw errorFrom(error, method);
        }
    }

    /* A method of a pattern that only reads: `empty` where nobody has made its table yet. */
    async read(method, args, empty) {
        try {
            return await this.call(method, args);
        } catch (error) {
            if (error.code === 'HF_NOT_FOUND' && /^table .* does not exist$/.test(error.message))
                return empty;
            throw error;
        }
    }

    /* One that waits until something happens: it has a thread of its own. */
    wait(method, args, options) {
        return this.call(method, args, { ...options, lane: WAITS });
    }

    background(method, args, options) {
        return this.call(method, args, { ...options, lane: BACKGROUND });
    }

    close() {
        this.closing ??= this.addon.close(this.handle).finally(() => this.sessions.closed());
        return this.closing;
    }
}

const timing = ({ signal, timeoutMs } = {}) => ({ signal, timeoutMs });

/* What a query, a scan or a statement finds: nothing is read before somebody asks. */
class Items {
    #page;
    #limit;
    constructor(page, limit) {
        this.#page = page; /* (start) => { items, count, scanned, next } */
        this.#limit = limit ?? Infinity;
    }

    async *pages() {
        let left = this.#limit, next;
        while (left > 0) {
            const page = await this.#page(next, left);
            if (page.items.length > left) {
                page.items.length = left;
                page.next = undefined; /* it would continue behind what was left out */
            }
            left -= page.items.length;
            next = page.next;
            yield page;
            if (!next)
                return;
        }
    }

    async *[Symbol.asyncIterator]() {
        for await (const page of this.pages())
            yield* page.items;
    }

    async all() {
        const items = [];
        for await (const page of this.pages())
            items.push(...page.items);
        return items;
    }

    async first() {
        for await (const item of this)
            return item;
        return undefined;
    }
}

class Database {
    #connection;
    constructor(connection) {
        this.#connection = connection;
        Object.defineProperty(this, 'connection', { value: connection });
    }

    get url() {
        return this.#connection.url;
    }

    /* An operation of DynamoDB, with DynamoDB's JSON. */
    call(operation, request = {}, options = {}) {
        if (typeof operation !== 'string' || !/^[A-Za-z]+$/.test(operation))
            return Promise.reject(invalid(`an operation has a name such as "PutItem", not ${operation}`));
        return this.#connection.call(operation, request, timing(options));
    }

    /* ---- items -------------------------------------------------------------------------------- */

    async get(table, key, options) {
        const { Item } = await this.call('GetItem', requests.get(table, key, options), options);
        return Item && fromItem(Item);
    }

    async put(table, item, options) {
        const { Attributes } = await this.call('PutItem', requests.put(table, item, options), options);
        return Attributes && fromItem(Attributes);
    }

    async update(table, key, change, options) {
        const { Attributes } = await this.call('UpdateItem', requests.update(table, key, change, options), options);
        return Attributes && fromItem(Attributes);
    }

    async delete(table, key, options) {
        const { Attributes } = await this.call('DeleteItem', requests.remove(table, key, options), options);
        return Attributes && fromItem(Attributes);
    }

    query(table, key, options = {}) {
        return this.#items('Query', requests.query(table, key, options), options);
    }

    scan(table, options = {}) {
        return this.#items('Scan', requests.scan(table, options), options);
    }

    #items(operation, request, options) {
        return new Items(async (next, left) => {
            const ExclusiveStartKey = next ? toItem(next) : request.ExclusiveStartKey;
            /* With a filter, a limit of items that are found says nothing about those to be read. */
            const Limit = request.Limit ?? (Number.isFinite(left) && !request.FilterExpression ? left : undefined);
            const answer = await this.call(operation, { ...request, ExclusiveStartKey, Limit }, options);
            return {
                items: (answer.Items ?? []).map(fromItem),
                count: answer.Count,
                scanned: answer.ScannedCount,
                next: answer.LastEvaluatedKey && fromItem(answer.LastEvaluatedKey),
            };
        }, options.limit);
    }

    /* How many items a query finds, without reading them into this process. */
    async count(table, key, options = {}) {
        const request = { ...requests.query(table, key, options), Select: 'COUNT' };
        let count = 0;
        for (;;) {
            const answer = await this.call('Query', request, options);
            count += answer.Count;
            if (!answer.LastEvaluatedKey)
                return count;
            request.ExclusiveStartKey = answer.LastEvaluatedKey;
        }
    }

    /* PartiQL. */
    execute(statement, parameters = [], options = {}) {
        requests.check(options, ['consistent', 'limit', 'pageSize', ...requests.CALL], 'execute');
        const Parameters = parameters.length
            ? parameters.map((each, i) => toValue(each, `parameter ${i + 1}`)) : undefined;
        return new Items(async (NextToken) => {
            const answer = await this.call('ExecuteStatement', {
                Statement: statement, Parameters, NextToken,
                ConsistentRead: options.consistent, Limit: options.pageSize,
            }, options);
            const items = (answer.Items ?? []).map(fromItem);
            return { items, count: items.length, scanned: items.length, next: answer.NextToken };
        }, options.limit);
    }

    /* The items of these keys, in their order; undefined where there is none. */
    async getMany(table, keys, options = {}) {
        requests.check(options, ['consistent', ...requests.CALL], 'getMany');
        const wanted = keys.map((key) => toItem(key, 'a key'));
        const found = new Map();
        const names = wanted[0] ? Object.keys(wanted[0]) : [];
        const place = (item) => JSON.stringify(names.map((name) => canonical(item[name])));
        const open = [...new Map(wanted.map((key) => [place(key), key])).values()];
        for (let attempt = 0; open.length; ) {
            const Keys = open.splice(0, BATCH_READ);
            const answer = await this.call('BatchGetItem',
                { RequestItems: { [table]: { Keys, ConsistentRead: options.consistent } } }, options);
            for (const item of answer.Responses?.[table] ?? [])
                found.set(place(item), fromItem(item));
            attempt = await this.#unprocessed(answer.UnprocessedKeys?.[table]?.Keys, open, attempt, options);
        }
        return wanted.map((key) => found.get(place(key)));
    }

    /* Put and delete many items, without conditions; not a transaction. */
    async writeMany(table, { put = [], delete: removed = [] }, options = {}) {
        requests.check(options, requests.CALL, 'writeMany');
        const open = [
            ...put.map((item) => ({ PutRequest: { Item: toItem(item) } })),
            ...removed.map((key) => ({ DeleteRequest: { Key: toItem(key, 'a key') } })),
        ];
        for (let attempt = 0; open.length; ) {
            const answer = await this.call('BatchWriteItem',
                { RequestItems: { [table]: open.splice(0, BATCH_WRITE) } }, options);
            attempt = await this.#unprocessed(answer.UnprocessedItems?.[table], open, attempt, options);
        }
    }

    /* What a batch left over goes to the end of the queue; after less and less was done, later. */
    async #unprocessed(rest, open, attempt, { signal } = {}) {
        if (!rest?.length)
            return 0;
        open.push(...rest);
        await later(Math.min(2000, 25 * 2 ** attempt) * (0.5 + Math.random() / 2), signal);
        return attempt + 1;
    }

    /* ---- transactions ------------------------------------------------------------------------- */

    /*
     * All or nothing. What `work` adds to the transaction is written when its promise has resolved;
     * when it throws, nothing is. Returns what it returned.
     */
    async transaction(work, options = {}) {
        requests.check(options, ['token', ...requests.CALL], 'transaction');
        const tx = new Transaction(this.#connection);
        const result = await work(tx);
        await tx.commit(options);
        return result;
    }

    /* Several items at one moment: [{ table, key, attributes }]. */
    async getTogether(gets, options = {}) {
        requests.check(options, requests.CALL, 'getTogether');
        const TransactItems = gets.map(({ table, key, ...more }) => {
            const { ConsistentRead, ...Get } = requests.get(table, key, more);
            return { Get };
        });
        const { Responses } = await this.call('TransactGetItems', { TransactItems }, options);
        return Responses.map(({ Item }) => Item && fromItem(Item));
    }

    /* ---- tables ------------------------------------------------------------------------------- */

    async createTable(table, options) {
        const request = requests.createTable(table, options);
        try {
            await this.call('CreateTable', request, options);
        } catch (error) {
            if (!(options.ifMissing && error.code === 'HF_IN_USE'))
                throw error;
        }
        await this.#ready(table, options);
        if (options.expires)
            await this.#expires(table, options);
    }

    async #expires(table, options) {
        const { TimeToLiveDescription: now } = await this.call('DescribeTimeToLive', { TableName: table }, options);
        if (now?.TimeToLiveStatus === 'ENABLED' && now.AttributeName === options.expires)
            return;
        await this.call('UpdateTimeToLive', {
            TableName: table,
            TimeToLiveSpecification: { Enabled: true, AttributeName: options.expires },
        }, options);
    }

    async #ready(table, options = {}) {
        for (let ms = 10; ; ms = Math.min(1000, ms * 2)) {
            const { Table } = await this.call('DescribeTable', { TableName: table }, options);
            if (Table.TableStatus === 'ACTIVE')
                return;
            await later(ms, options.signal);
        }
    }

    async deleteTable(table, options = {}) {
        requests.check(options, ['ifExists', ...requests.CALL], 'deleteTable');
        try {
            await this.call('DeleteTable', { TableName: table }, options);
            for (let ms = 10; ; ms = Math.min(1000, ms * 2)) {
                await this.call('DescribeTable', { TableName: table }, options);
                await later(ms, options.signal);
            }
        } catch (error) {
            if (error.code !== 'HF_NOT_FOUND' || (error.operation === 'DeleteTable' && !options.ifExists))
                throw error;
        }
    }

    async *tables(options = {}) {
        let ExclusiveStartTableName;
        do {
            const answer = await this.call('ListTables', { ExclusiveStartTableName }, options);
            yield* answer.TableNames;
            ExclusiveStartTableName = answer.LastEvaluatedTableName;
        } while (ExclusiveStartTableName);
    }

    /* ---- the AWS SDK -------------------------------------------------------------------------- */

    /* For `new DynamoDBClient({ requestHandler })`: it runs in this process. */
    requestHandler() {
        return new RequestHandler(this.#connection);
    }

    /*
     * The same with what the SDK cannot do without: `new DynamoDBClient(db.clientConfig())`. Its requests stay in this
     * process, where nobody looks at signatures, so none are made: they would take a third of the time.
     */
    clientConfig() {
        return {
            requestHandler: this.requestHandler(),
            endpoint: 'http://holdfast.invalid',
            region: 'us-east-1',
            credentials: { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' },
            signer: { sign: async (request) => request },
        };
    }

    /* Cancels what is running, waits for it, and closes the database. */
    close() {
        return this.#connection.close();
    }
}
if (Symbol.asyncDispose)
    Database.prototype[Symbol.asyncDispose] = Database.prototype.close;
Object.assign(Database.prototype, patterns);

/* A key's value such that equal ones are equal texts: 1 and 1.0, and so on. */
function canonical(value) {
    return value?.N !== undefined ? { N: String(fromItem({ n: value }).n) } : value;
}

/*
 * Open a database: "embedded:PATH", "memory:", "http://HOST:PORT" or "dynamodb://REGION".
 */
async function open(url, options = {}) {
    if (typeof url !== 'string')
        throw invalid('open needs a URL: "embedded:shop.db", "memory:", "http://127.0.0.1:8000" or "dynamodb://eu-central-1"');
    requests.check(options, ['readOnly', 'owner', 'region'], 'open');
    const addon = native();
    const json = JSON.stringify({ read_only: options.readOnly, owner: options.owner, region: options.region });
    try {
        return new Database(new Connection(addon, await addon.open(url, json), url));
    } catch (error) {
        throw errorFrom(error, 'open');
    }
}

module.exports = { open, Database };
