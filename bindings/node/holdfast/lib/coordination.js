/*
 * lib/coordination.js: locks, leaders, do-once, limits, counters, keys and values, sets.
 */
'use strict';
const { toArgs, fromResult, big } = require('./names');
const { toItem, fromItem, toValue, fromValue } = require('./values');
const { HoldfastError, invalid, failureOf } = require('./errors');

const item = (value) => (value === undefined ? undefined : toItem(value));
const unitem = (value) => (value === undefined ? undefined : fromItem(value));

/* ---- locks ---------------------------------------------------------------------------------- */

/* A lock that we hold. `signal` is aborted when it is lost: stop working then. */
class Lock {
    #connection;
    #session;
    #controller = new AbortController();
    #released;
    constructor(connection, name, { session, fence, data }) {
        this.#connection = connection;
        this.#session = session;
        this.name = name;
        this.fence = big(fence); /* grows whenever the lock changes hands */
        this.data = unitem(data);
        connection.sessions.begin(session, {
            onNotice: (notice) => {
                if (notice.type === 'lost')
                    this.#lose(`the lock ${name} was lost: ${notice.why ?? 'its lease ended'}`);
            },
            onClosed: () => this.#lose(`the lock ${name} ended with its database`),
        });
    }

    #lose(message) {
        if (!this.#released && !this.lost)
            this.#controller.abort(new HoldfastError('HF_LOST', message));
    }

    get signal() {
        return this.#controller.signal;
    }

    get lost() {
        return this.#controller.signal.aborted;
    }

    /* Give it back. Fails with HF_LOST when another may have had it in between. */
    release() {
        this.#released ??= this.#connection.call('lock.release', { session: this.#session })
            .finally(() => this.#connection.sessions.end(this.#session));
        return this.#released;
    }

    /* Renew the lease now, for work that takes long on end. */
    async extend(leaseMs) {
        await this.#connection.call('lock.extend', { session: this.#session, lease_ms: leaseMs });
    }

    async setData(data) {
        await this.#connection.call('lock.set_data', { session: this.#session, data: toItem(data) });
        this.data = data;
    }

    async state() {
        const state = fromResult(await this.#connection.call('lock.state', { session: this.#session }));
        return { ...state, fence: big(state.fence) };
    }

    /* Let the transaction happen only while the lock is held. */
    guard(tx) {
        return tx.join(this.#connection.call('lock.guard_actions', { session: this.#session })).then(() => {});
    }
}
if (Symbol.asyncDispose)
    Lock.prototype[Symbol.asyncDispose] = Lock.prototype.release;

/* ---- do once -------------------------------------------------------------------------------- */

class Attempt {
    #connection;
    #session;
    #controller = new AbortController();
    constructor(connection, { session, record }) {
        this.#connection = connection;
        this.#session = session;
        this.tries = Number(record?.tries ?? 1);
        connection.sessions.begin(session, {
            onNotice: (notice) => {
                if (notice.type === 'lost')
                    this.#lose('the attempt was lost: another may have begun');
            },
            onClosed: () => this.#lose('the attempt ended with its database'),
        });
    }

    #lose(message) {
        this.#controller.abort(new HoldfastError('HF_LOST', message));
    }

    get signal() {
        return this.#controller.signal;
    }

    async renew() {
        try {
            await this.#connection.call('once.renew', { session: this.#session });
        } catch (error) {
            if (error.code === 'HF_LOST')
                this.#lose(error.message);
            throw error;
        }
    }

    async end(method, result) {
        try {
            await this.#connection.call(method, { session: this.#session, result });
            this.#connection.sessions.end(this.#session);
        } catch (error) {
            await this.giveUp(); /* or it would be renewed for ever */
            throw error;
        }
    }

    /* Another may try it at once. That it is over already, or with its database, is no error. */
    async giveUp() {
        await this.#connection.call('session.close', { session: this.#session }).catch(() => {});
        this.#connection.sessions.end(this.#session);
    }
}

/* ---- the methods of a database -------------------------------------------------------------- */

const known = (record) => {
    const { result, ...rest } = record;
    return { ...fromResult(rest), result: result && 'value' in result ? fromValue(result.value) : undefined };
};

class Limit {
    #connection;
    #args;
    constructor(connection, name, { table, ...rule }) {
        this.#connection = connection;
        this.#args = { table, name, rule: toArgs(rule) };
    }

    async #ask(method, { cost, context, ...options } = {}) {
        const { context: was, ...verdict } = await this.#connection.call(method,
            { ...this.#args, cost, context: item(context), ...toArgs(options) });
        return Object.assign(fromResult(verdict), { context: unitem(was), verdict });
    }

    /* Count one, or `cost`, if the rule allows it. */
    take(options) {
        return this.#ask('limit.take', options);
    }

    peek(options) {
        return this.#ask('limit.peek', options);
    }

    /* Give back what take() counted. */
    async refund({ verdict }) {
        await this.#connection.call('limit.refund', { ...this.#args, verdict });
    }

    async clear() {
        await this.#connection.call('limit.clear', { table: this.#args.table, name: this.#args.name });
    }
}

class Counter {
    #connection;
    #at;
    constructor(connection, id, { table = 'counters', partition, ...options } = {}) {
        this.#connection = connection;
        this.#at = { id, table, partition, partitioned: partition === undefined ? undefined : true, ...toArgs(options) };
    }

    /* The new value. With a `request`, an id, it is added once, however often it is asked for. */
    async add(by = 1, options = {}) {
        return number((await this.#connection.call('counter.add', { ...this.#at, by: digits(by), ...toArgs(options) })).value);
    }

    addIn(tx, by = 1, options = {}) {
        return tx.join(this.#connection.call('counter.add_actions', { ...this.#at, by: digits(by), ...toArgs(options) })).then(() => {});
    }

    async get() {
        return number((await this.#connection.read('counter.get', this.#at, {})).value);
    }

    /* These give the value before. */
    async set(value) {
        return number((await this.#connection.call('counter.set', { ...this.#at, value: digits(value) })).was);
    }

    async reset() {
        return number((await this.#connection.call('counter.reset', this.#at)).was);
    }

    async delete() {
        await this.#connection.call('counter.delete', this.#at);
    }

    /* As a sequence: the first of `count` numbers that nobody else gets. */
    async take(count = 1) {
        return number((await this.#connection.call('sequence.take', { ...this.#at, count })).first);
    }
}

const digits = (value) => (typeof value === 'bigint' ? String(value) : value);

/* Left out is 0; beyond 2^53 it is a text of digits. */
function number(value = 0) {
    return typeof value === 'string' ? BigInt(value) : value;
}

class KeyValues {
    #connection;
    #at;
    constructor(connection, { partition, ...options } = {}) {
        this.#connection = connection;
        this.#at = { partition, partitioned: partition === undefined ? undefined : true, ...toArgs(options) };
    }

    #entry({ value, version, expires_s: expires, id }) {
        return {
            id, version,
            value: value === undefined ? undefined : fromValue(value),
            expires: expires ? new Date(expires * 1000) : undefined,
        };
    }

    /* The value, or undefined. */
    async get(id, options) {
        return (await this.entry(id, options)).value;
    }

    /* With its version and the time when it expires. */
    async entry(id, options = {}) {
        return this.#entry(await this.#connection.read('kv.get', { ...this.#at, id, ...toArgs(options) }, { id }));
    }

    async getMany(ids) {
        const { partition, space, ...at } = this.#at;
        const keys = ids.map((id) => ({ partition, space, id }));
        const { entries } = await this.#connection.read('kv.get_many', { ...at, keys }, { entries: keys });
        return entries.map((entry) => this.#entry(entry));
    }

    /* The entry as it is now. Options: ttlS, ifAbsent, ifVersion. */
    async set(id, value, options = {}) {
        return this.#entry(await this.#connection.call('kv.set', { ...this.#at, id, value: toValue(value, id), ...toArgs(options) }));
    }

    setIn(tx, id, value, options = {}) {
        return tx.join(this.#connection.call('kv.set_actions', { ...this.#at, id, value: toValue(value, id), ...toArgs(options) })).then(() => {});
    }

    /* What it had. */
    async delete(id, options = {}) {
        return this.#entry(await this.#connection.call('kv.delete', { ...this.#at, id, ...toArgs(options) }));
    }

    async *list(options = {}) {
        let { after, limit = Infinity, ...rest } = options;
        do {
            const page = await this.#connection.read('kv.list',
                { ...this.#at, ...toArgs(rest), after, limit: Number.isFinite(limit) ? Math.min(limit, 1000) : undefined }, {});
            for (const entry of page.entries ?? []) {
                if (limit-- <= 0)
                    return;
                yield this.#entry(entry);
            }
            after = page.next;
        } while (after && limit > 0);
    }

    /* Remove all keys of a range; how many. */
    async clear(options = {}) {
        return Number((await this.#connection.call('kv.clear', { ...this.#at, ...toArgs(options) })).cleared ?? 0);
    }
}

class ElementSet {
    #connection;
    #at;
    constructor(connection, at) {
        this.#connection = connection;
        this.#at = at;
    }

    async values() {
        const { elements = [] } = await this.#connection.read('set.get', this.#at, {});
        return new Set(elements.map(fromValue));
    }

    async has(element) {
        return (await this.#connection.read('set.contains', { ...this.#at, element: toValue(element) }, {})).contains === true;
    }

    /* How many were new. */
    async add(...elements) {
        return Number((await this.#change('set.add', elements)).added ?? 0);
    }

    /* How many were there. */
    async remove(...elements) {
        return Number((await this.#change('set.remove', elements)).removed ?? 0);
    }

    #change(method, elements) {
        if (elements.length === 0)
            throw invalid('no elements');
        return this.#connection.call(method, { ...this.#at, elements: elements.map((each) => toValue(each)) });
    }
}

const coordination = {
    /* Acquire a lock, waiting for it as long as `timeoutMs` says. */
    async lock(name, { data, signal, timeoutMs, ...options } = {}) {
        const got = await this.connection.wait('lock.acquire',
            { name, data: item(data), ...toArgs(options) }, { signal, timeoutMs });
        return new Lock(this.connection, name, got);
    },

    /* The lock if it is free, otherwise undefined. */
    async tryLock(name, { data, signal, timeoutMs, ...options } = {}) {
        try {
            const got = await this.connection.call('lock.try',
                { name, data: item(data), ...toArgs(options) }, { signal, timeoutMs });
            return new Lock(this.connection, name, got);
        } catch (error) {
            if (error.code === 'HF_LOCKED')
                return undefined;
            throw error;
        }
    },

    /* Who holds it, as far as the table knows. */
    async inspectLock(name, { table } = {}) {
        const { data, ...rest } = await this.connection.read('lock.inspect', { name, table }, { name });
        const info = fromResult(rest);
        return {
            ...info, fence: big(info.fence), data: unitem(data),
            holders: (info.holders ?? []).map((holder) => ({ ...holder, fence: big(holder.fence) })),
        };
    },

    /*
     * Do `work` once for this key, in all processes: what it returned is stored, and is what everybody
     * gets. Others wait while it runs. When it throws, the next one tries again; with
     * `error.permanent` nobody does. An attempt that is silent for `attemptMs` is over.
     */
    async once(key, work, { user = 'default', signal, timeoutMs, attemptMs, ...options } = {}) {
        if (typeof work !== 'function')
            throw invalid('once(key, work): work is a function');
        const args = { key, user, timeout_ms: attemptMs, ...toArgs(options) };
        const begun = await this.connection.wait('once.begin', args, { signal, timeoutMs });
        if (!begun.begun) {
            const record = known(begun.record);
            if (record.state === 'failed')
                throw new HoldfastError('HF_INVALID', `${key} has failed for good: ${record.result ?? 'no reason is stored'}`);
            return record.result;
        }
        const attempt = new Attempt(this.connection, begun);
        let result, stored;
        try {
            result = await work(attempt);
            stored = result === undefined ? {} : { value: toValue(result, 'the result') };
        } catch (error) {
            const { message, permanent } = failureOf(error);
            if (!permanent)
                await attempt.giveUp();
            else
                await attempt.end('once.fail', { value: toValue(message) }).catch((failed) => {
                    failed.cause ??= error;
                    throw failed;
                });
            throw error;
        }
        await attempt.end('once.finish', stored);
        return result;
    },

    /* What is known of a key: its state, "none", "running", "done" or "failed", and its result. */
    async onceState(key, { user = 'default', table } = {}) {
        return known(await this.connection.read('once.get', { key, user, table }, { key, user, state: 'none' }));
    },

    /* Forget it, so that it can be done again. */
    async onceClear(key, { user = 'default', table } = {}) {
        return (await this.connection.call('once.clear', { key, user, table })).cleared === true;
    },

    /* limit('login/ann', { kind: 'sliding', limit: 5, windowMs: 60000 }) */
    limit(name, rule) {
        return new Limit(this.connection, name, rule);
    },

    counter(id, options) {
        return new Counter(this.connection, id, options);
    },

    kv(options) {
        return new KeyValues(this.connection, options);
    },

    /* A set of any number of strings, numbers or bytes. */
    set(id, { partition, ...options } = {}) {
        return new ElementSet(this.connection,
            { id, partition, partitioned: partition === undefined ? undefined : true, ...toArgs(options) });
    },
};

module.exports = { coordination };
