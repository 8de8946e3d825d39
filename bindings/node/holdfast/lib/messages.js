/*
 * lib/messages.js: outbox, bus and relay; consumers of a table's stream; records; bytes by digest.
 *
 * Whatever handles something is a Handling: deliveries come from the session, a function works on each,
 * and what became of it goes back. As many run at a time as the pattern has workers: the next one comes
 * when one was answered.
 */
'use strict';
const { toArgs, fromResult, big, toBytes, fromBytes, toPayload, fromPayload, microseconds } = require('./names');
const { toItem, fromItem } = require('./values');
const { Opened } = require('./opened');
const { HoldfastError, invalid, failureOf, tell } = require('./errors');

/* Thrown by a handler: trying again is of no use. Any error with `permanent: true` says the same. */
class PermanentError extends Error {
    permanent = true;
}
Object.defineProperty(PermanentError.prototype, 'name', { value: 'PermanentError', configurable: true, writable: true });

class Handling {
    #connection;
    #session;
    #handle;
    #onError;
    #running = new Set();
    #stopped;
    #error; /* that ended it */
    #end;
    constructor(connection, session, handle, onError, background) {
        this.#connection = connection;
        this.#session = session;
        this.#handle = handle;
        this.#onError = onError;
        this.ended = new Promise((resolve) => (this.#end = resolve));
        connection.sessions.begin(session, {
            background,
            onDelivery: (delivery) => {
                const work = this.#work(delivery).finally(() => this.#running.delete(work));
                this.#running.add(work);
            },
            onNotice: (notice) => this.#notice(notice),
            onClosed: () => this.#end(),
        });
    }

    async #work(delivery) {
        let answer;
        try {
            answer = await this.#handle(delivery);
        } catch (error) {
            answer = { error: failureOf(error) };
        }
        try {
            await this.#connection.call('session.done', { token: delivery.token, ...answer });
        } catch (error) {
            if (error.code === 'HF_STOPPED')
                return;
            if (!this.#stopped)
                tell(this.#onError, error);
            if (error.code === 'HF_LOST') /* it took too long: then it is delivered again */
                return;
            /* So that nobody waits for it for ever. */
            await this.#connection.call('session.done',
                { token: delivery.token, error: { message: 'the answer of the handler could not be sent' } }).catch(() => {});
        }
    }

    #notice({ type, error, session, ...rest }) {
        if (type === 'ended') {
            if (error && !(this.#stopped && error.code === 'HF_CANCELED'))
                this.#error = noticed(error);
            this.stop({ drainMs: 0 }).catch(() => {}); /* it holds a thread; stop() of the user has the same outcome */
        } else {
            tell(this.#onError, error ? noticed(error) : new HoldfastError('HF_INTERNAL', `${type}`), { type, ...rest });
        }
    }

    call(method, args = {}) {
        return this.#connection.call(method, { session: this.#session, ...args });
    }

    /* Begin nothing more, and wait for what runs, at most so long. */
    stop({ drainMs = 10000 } = {}) {
        this.#stopped ??= (async () => {
            try {
                await this.#connection.wait('session.close', { session: this.#session, drain_ms: drainMs });
            } catch (error) {
                if (!['HF_NOT_FOUND', 'HF_STOPPED', 'HF_TIMEOUT'].includes(error.code))
                    throw error;
            } finally {
                this.#connection.sessions.end(this.#session);
                this.#end(this.#error);
            }
        })();
        return this.#stopped;
    }
}
if (Symbol.asyncDispose)
    Handling.prototype[Symbol.asyncDispose] = Handling.prototype.stop;

const noticed = (error) => (error instanceof Error ? error
    : new HoldfastError(error.code ?? 'HF_INTERNAL', error.message ?? String(error),
        { retryable: error.retryable, mayHaveHappened: error.may_have_happened }));

/* ---- events of an outbox -------------------------------------------------------------------- */

const EVENT = ['id', 'type', 'key', 'payload', 'contentType', 'schema', 'headers', 'source', 'correlation', 'causation',
    'aggregate', 'aggregateType', 'tenant', 'destination', 'traceParent', 'traceState', 'urgent', 'time', 'dueAt'];

function eventArgs(event) {
    if (event === null || typeof event !== 'object' || typeof event.type !== 'string' || !event.type)
        throw invalid('an event is an object with a type, such as { type: "order.placed", payload: { ... } }');
    const strange = Object.keys(event).find((name) => !EVENT.includes(name));
    if (strange !== undefined)
        throw invalid(`an event has no ${strange}; what it says belongs into payload. It has ${EVENT.join(', ')}`);
    const { payload, contentType, headers, time, dueAt, ...rest } = event;
    for (const [name, at] of [['time', time], ['dueAt', dueAt]])
        if (at !== undefined && !(at instanceof Date))
            throw invalid(`${name} of an event is a Date`);
    return {
        ...toArgs(rest), ...toPayload(payload, contentType),
        headers: headers && toItem(headers, 'headers'),
        time_us: time && microseconds(time), due_us: dueAt && microseconds(dueAt),
    };
}

function eventFrom({ payload, headers, sequence, ...rest }) {
    const event = fromResult(rest);
    event.payload = fromPayload(payload, event.contentType);
    if (headers)
        event.headers = fromItem(headers);
    return event;
}

/* Which handler has an event of that type: its own, one for "order.*", or "*". */
function handlerFor(handlers, type) {
    if (handlers.has(type))
        return handlers.get(type);
    for (let end = type.lastIndexOf('.'); end > 0; end = type.lastIndexOf('.', end - 1)) {
        const handler = handlers.get(`${type.slice(0, end)}.*`);
        if (handler)
            return handler;
    }
    return handlers.get('*');
}

/* A handler for each type of event, in this process. */
class Bus {
    #outbox;
    #handlers = new Map();
    #handling;
    constructor(outbox) {
        this.#outbox = outbox;
    }

    on(type, handler) {
        if (typeof handler !== 'function')
            throw invalid(`the handler of ${type} is not a function`);
        if (this.#handlers.has(type))
            throw invalid(`${type} has a handler already`);
        this.#handlers.set(type, handler);
        return this;
    }

    off(type) {
        return this.#handlers.delete(type);
    }

    /* Options: those of a relay, and onError. */
    async start(options = {}) {
        if (this.#handling)
            throw invalid('the bus runs already');
        if (this.#handlers.size === 0)
            throw invalid('the bus has no handlers: call on(type, handler) before start()');
        this.#handling = this.#outbox.deliver(async (events) => {
            const failures = [];
            for (const [index, event] of events.entries()) {
                try {
                    const handler = handlerFor(this.#handlers, event.type);
                    if (!handler)
                        throw new PermanentError(`no handler for events of type ${event.type}`);
                    await handler(event);
                } catch (error) {
                    failures.push({ index, ...failureOf(error) });
                }
            }
            return failures;
        }, options);
        try {
            await this.#handling;
        } catch (error) {
            this.#handling = undefined;
            throw error;
        }
        return this;
    }

    async stop(options) {
        const handling = await this.#handling;
        this.#handling = undefined;
        await handling?.stop(options);
    }

    async metrics() {
        const handling = await this.#handling;
        return fromResult(await handling.call('relay.metrics'));
    }
}
if (Symbol.asyncDispose)
    Bus.prototype[Symbol.asyncDispose] = Bus.prototype.stop;

class Outbox {
    #connection;
    #opened;
    constructor(connection, options) {
        this.#connection = connection;
        this.#opened = new Opened(connection, 'outbox', 'outbox', options);
    }

    /*
     * Store events to be delivered: emit(event), emit([event, ...]), or emit(tx, event) as a part of a
     * transaction. Returns their ids.
     */
    async emit(tx, events) {
        const inside = events !== undefined;
        const list = [inside ? events : tx].flat().map(eventArgs);
        if (list.length === 0)
            return [];
        if (!inside)
            return (await this.#opened.call('outbox.emit', { events: list })).ids;
        const made = tx.join(this.#opened.call('outbox.emit_actions', { events: list }), () => this.wake());
        return (await made).ids;
    }

    /* Let the relays of this process look for events now. */
    async wake() {
        await this.#opened.call('outbox.wake');
    }

    bus() {
        return new Bus(this);
    }

    /*
     * Deliver to a sink, as `holdfast relay` does: "kafka://...", "https://...". The options are those
     * of a relay. The relay runs until stop().
     */
    async relay(sink, options = {}) {
        if (typeof sink === 'function')
            return this.deliver(async (events) => {
                await sink(events);
                return [];
            }, options);
        return this.deliver(undefined, { sink, ...options });
    }

    /*
     * Deliver batches to a function, which returns the failures: [{ index, message, permanent }]. With
     * `background` that keeps no process alive.
     */
    async deliver(handle, { onError, background, ...options } = {}) {
        const { session } = await this.#opened.call('relay.start', toArgs(options));
        return new Handling(this.#connection, session, async (delivery) => {
            const failures = await handle(delivery.events.map(eventFrom));
            return failures?.length ? { failures } : {};
        }, onError, background);
    }

    async stats(options = {}) {
        return fromResult(await this.#opened.read('outbox.stats', toArgs(options), { pending: 0, failed: 0, whole: true }));
    }

    async *#list(method, { limit = Infinity, ...options } = {}) {
        let after;
        do {
            const page = await this.#opened.read(method,
                { ...toArgs(options), after, limit: Number.isFinite(limit) ? Math.min(limit, 1000) : undefined }, {});
            for (const event of page.events ?? []) {
                if (limit-- <= 0)
                    return;
                yield eventFrom(event);
            }
            after = page.next;
        } while (after && limit > 0);
    }

    /* Events that wait, dead letters, events that were delivered: for await (...). */
    pending(options) {
        return this.#list('outbox.pending', options);
    }

    failed(options) {
        return this.#list('outbox.failed', options);
    }

    history(options) {
        return this.#list('outbox.history', options);
    }

    async get(id) {
        const found = await this.#opened.get('outbox.get', { id });
        return found && eventFrom(found);
    }

    /* Dead letters: by ids, or all, or { type, cause }. How many. */
    async retry(which = {}) {
        return this.#some('retry', which);
    }

    async discard(which = {}) {
        return this.#some('discard', which);
    }

    async #some(word, which) {
        const result = Array.isArray(which) ? await this.#opened.call(`outbox.${word}`, { ids: which })
            : await this.#opened.call(`outbox.${word}_all`, toArgs(which));
        return Number(result.done ?? 0);
    }

    /* Emit events of the history again. */
    async replay(options = {}) {
        return Number((await this.#opened.call('outbox.replay', toArgs(options))).done ?? 0);
    }
}

/* ---- changes of a table --------------------------------------------------------------------- */

const changeFrom = ({ key, old_image: before, new_image: after, ...rest }) => ({
    ...fromResult(rest),
    key: key && fromItem(key),
    old: before && fromItem(before),
    new: after && fromItem(after),
});

/* ---- records -------------------------------------------------------------------------------- */

const recordFrom = ({ item, ...rest }) => {
    const record = fromResult(rest);
    return { ...record, fence: big(record.fence), item: item && fromItem(item) };
};

class Records {
    #connection;
    #opened;
    constructor(connection, options) {
        this.#connection = connection;
        this.#opened = new Opened(connection, 'records', 'Records', options);
    }

    async put(record, options = {}) {
        await this.#opened.call('records.put', { record: toItem(record, 'a record'), ...toArgs(options) });
    }

    putIn(tx, record) {
        return tx.join(this.#opened.call('records.put_actions', { record: toItem(record, 'a record') })).then(() => {});
    }

    async get(account, runTime) {
        const found = await this.#opened.get('records.get', { account, run_time: runTime });
        return found && recordFrom(found);
    }

    async mark(account, runTime) {
        await this.#opened.call('records.mark', { account, run_time: runTime });
    }

    async reset(account, runTime) {
        await this.#opened.call('records.reset', { account, run_time: runTime });
    }

    async delete(account, runTime) {
        await this.#opened.call('records.delete', { account, run_time: runTime });
    }

    async count(state) {
        return Number((await this.#opened.read('records.count', { state }, {})).count ?? 0);
    }

    async retryFailed(options = {}) {
        return Number((await this.#opened.call('records.retry_failed', toArgs(options))).count ?? 0);
    }

    async *list({ limit = Infinity, ...options } = {}) {
        let after;
        do {
            const page = await this.#opened.read('records.list',
                { ...toArgs(options), after, limit: Number.isFinite(limit) ? limit : undefined }, {});
            for (const record of page.records ?? []) {
                if (limit-- <= 0)
                    return;
                yield recordFrom(record);
            }
            after = page.next;
        } while (after && limit > 0);
    }

    /*
     * Process records: each one is claimed, and done when the function has returned. Ends by itself
     * when none is left (await handling.ended), or with `forever` at stop().
     */
    async process(handle, { onError, ...options } = {}) {
        const { session } = await this.#opened.call('records.process', toArgs(options));
        return new Handling(this.#connection, session, async (delivery) => {
            await handle(recordFrom(delivery.record));
            return {};
        }, onError);
    }
}

const messages = {
    outbox(options) {
        return new Outbox(this.connection, options);
    },

    records(options) {
        return new Records(this.connection, options);
    },

    /*
     * Consume the stream of a table: `handle` gets batches of changes, in the order of each item. Several
     * processes with the same name share the work, and continue where the last one was.
     */
    async changes(table, handle, { onError, ...options } = {}) {
        const { session } = await this.connection.call('streams.consume', { table, ...toArgs(options) });
        return new Handling(this.connection, session, async (delivery) => {
            await handle(delivery.changes.map(changeFrom));
            return {};
        }, onError);
    },

    /* Bytes by their digest, in a folder or a bucket: blobs("dir:/var/lib/blobs"), blobs("s3://..."). */
    blobs(store) {
        const call = (method, args) => this.connection.call(`blob.${method}`, { store, ...args });
        const missing = (error) => {
            if (error.code === 'HF_NOT_FOUND')
                return undefined;
            throw error;
        };
        return {
            put: async (bytes) => (await call('put', { bytes: toBytes(bytes) })).digest,
            get: (digest) => call('get', { digest }).then(({ bytes }) => fromBytes(bytes ?? ''), missing),
            size: (digest) => call('has', { digest }).then(({ size }) => Number(size ?? 0), missing),
            delete: async (digest) => {
                await call('delete', { digest });
            },
        };
    },
};

module.exports = { messages, Handling, PermanentError, handlerFor };
