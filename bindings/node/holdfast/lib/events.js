/*
 * lib/events.js: the event store: streams, subscriptions, aggregates, projections.
 *
 * A stream is named "domain/id", such as "order/7"; "settings" is a domain with one stream.
 */
'use strict';
const { toArgs, fromResult, big, toPayload, fromPayload, microseconds } = require('./names');
const { toItem, fromItem } = require('./values');
const { Opened } = require('./opened');
const { invalid } = require('./errors');
const { Handling } = require('./messages');

const EVENT = ['id', 'type', 'data', 'contentType', 'schema', 'time', 'meta', 'causation', 'correlation', 'compensates'];
const RETRIES = 10; /* of a command on an aggregate that others write, too */

function streamArgs(stream) {
    if (typeof stream !== 'string' || !stream)
        throw invalid('a stream has a name such as "order/7"');
    const slash = stream.indexOf('/');
    return slash < 0 ? { domain: stream } : { domain: stream.slice(0, slash), id: stream.slice(slash + 1) };
}

function eventArgs(event) {
    if (event === null || typeof event !== 'object' || typeof event.type !== 'string' || !event.type)
        throw invalid('an event is an object with a type, such as { type: "placed", data: { ... } }');
    const strange = Object.keys(event).find((name) => !EVENT.includes(name));
    if (strange !== undefined)
        throw invalid(`an event has no ${strange}; what it says belongs into data. It has ${EVENT.join(', ')}`);
    const { data, contentType, meta, time, ...rest } = event;
    return {
        ...toArgs(rest), ...toPayload(data, contentType),
        meta: meta && toItem(meta, 'meta'), time_us: time && microseconds(time),
    };
}

function eventFrom({ payload, meta, domain, stream, hash, version, ...rest }) {
    const event = fromResult(rest);
    event.stream = stream ? `${domain}/${stream}` : domain;
    event.version = Number(version);
    event.data = fromPayload(payload, event.contentType);
    if (meta)
        event.meta = fromItem(meta);
    return event;
}

/* expect: a version, 0 for a new stream, "any" or "exists". */
function expectation(expect) {
    if (expect === undefined || expect === 'any')
        return {};
    if (expect === 'exists' || expect === 'none')
        return { expect };
    if (typeof expect === 'bigint' || (Number.isSafeInteger(expect) && expect >= 0))
        return Number(expect) === 0 ? { expect: 'none' } : { expect: 'version', version: String(expect) };
    throw invalid(`expect is a version, "any", "none" or "exists", not ${expect}`);
}

const appended = ({ first, last, ids, position, repeated }) =>
    ({ first: Number(first), last: Number(last), version: Number(last), ids, position, repeated: repeated === true });

const filterArgs = ({ stream, ...options }) => {
    const args = toArgs(options);
    if (stream !== undefined) {
        const { domain, id } = streamArgs(stream);
        args.stream_domain = domain;
        args.stream_id = id;
    }
    return args;
};

/*
 * A subscription by for await: the next event comes when the one before was answered, by the end of the
 * loop's body or by event.done() or event.fail(error) before that.
 */
class Reading {
    #start;
    #handling;
    #queue = [];
    #waiting = [];
    #over = false;
    constructor(start) {
        this.#start = start;
    }

    async *[Symbol.asyncIterator]() {
        this.#handling = await this.#start((event) => new Promise((resolve, reject) => {
            if (this.#over)
                return reject(new Error('the reader has ended'));
            Object.defineProperties(event, {
                done: { value: async () => resolve() },
                fail: { value: async (error) => reject(error) },
            });
            const each = { event, resolve, reject };
            const next = this.#waiting.shift();
            if (next)
                next(each);
            else
                this.#queue.push(each);
        }));
        this.#handling.ended.then(() => this.#waiting.splice(0).forEach((next) => next(undefined)));
        try {
            for (;;) {
                const each = this.#queue.shift() ?? await new Promise((resolve) => this.#waiting.push(resolve));
                if (!each)
                    return;
                let answered = false;
                try {
                    yield each.event;
                    answered = true;
                } finally {
                    /* A break or a throw in the loop's body: this event was not handled. */
                    if (answered)
                        each.resolve();
                    else
                        each.reject(new Error('the reader has left the loop'));
                }
            }
        } finally {
            this.#over = true;
            this.#queue.splice(0).forEach(({ reject }) => reject(new Error('the reader has ended')));
            await this.#handling.stop();
        }
    }

    async stop() {
        await (await this.#handling)?.stop();
    }
}

class EventStore {
    #connection;
    #opened;
    constructor(connection, options) {
        this.#connection = connection;
        this.#opened = new Opened(connection, 'events', 'events', options);
    }

    /* Append to one stream. Fails with HF_CONDITION when the stream is not at `expect`. */
    async append(stream, events, { expect } = {}) {
        const part = { ...streamArgs(stream), ...expectation(expect), events: [events].flat().map(eventArgs) };
        return appended(await this.#opened.call('events.append', part));
    }

    /* As a part of a transaction. */
    async appendIn(tx, stream, events, { expect } = {}) {
        const part = { ...streamArgs(stream), ...expectation(expect), events: [events].flat().map(eventArgs) };
        return appended(await tx.join(this.#opened.call('events.append_actions', part)));
    }

    /* To several streams, all or none: [{ stream, events, expect }]. */
    async appendAll(appends) {
        const parts = appends.map(({ stream, events, expect }) =>
            ({ ...streamArgs(stream), ...expectation(expect), events: [events].flat().map(eventArgs) }));
        return (await this.#opened.call('events.append', { appends: parts })).streams.map(appended);
    }

    /* The events of one stream. Options: from, to (versions), backward, limit. */
    async *read(stream, { limit = Infinity, ...options } = {}) {
        const args = { ...streamArgs(stream), ...toArgs(options) };
        for (;;) {
            const page = await this.#opened.read('events.read',
                { ...args, limit: Number.isFinite(limit) ? Math.min(limit, 1000) : undefined }, {});
            for (const event of page.events ?? []) {
                if (limit-- <= 0)
                    return;
                yield eventFrom(event);
            }
            if (!page.next || page.next === '0' || limit <= 0)
                return;
            args[options.backward ? 'to' : 'from'] = page.next;
        }
    }

    /* All events, in their order. Options: after, domain, type, limit. */
    async *all({ limit = Infinity, ...options } = {}) {
        const args = toArgs(options);
        while (limit > 0) {
            const page = await this.#opened.read('events.all',
                { ...args, limit: Number.isFinite(limit) ? Math.min(limit, 1000) : undefined }, {});
            for (const event of page.events ?? []) {
                if (limit-- <= 0)
                    return;
                yield eventFrom(event);
            }
            if (!page.next || !page.events?.length)
                return;
            args.after = page.next;
        }
    }

    async get(id) {
        const found = await this.#opened.get('events.get', { id });
        return found && eventFrom(found);
    }

    async causedBy(id) {
        return ((await this.#opened.read('events.caused_by', { id }, {})).events ?? []).map(eventFrom);
    }

    async correlated(id) {
        return ((await this.#opened.read('events.correlated', { id }, {})).events ?? []).map(eventFrom);
    }

    /* What is known of a stream: its version, whether it is archived or deleted. */
    async stream(stream) {
        const { hash, ...rest } = await this.#opened.read('events.stream', streamArgs(stream), {});
        const info = fromResult(rest);
        return { ...info, version: Number(info.version ?? 0), first: Number(info.first ?? 0) };
    }

    async truncate(stream, before) {
        await this.#opened.call('events.truncate', { ...streamArgs(stream), before });
    }

    /* Delete a stream for good. */
    async delete(stream, { expect } = {}) {
        await this.#opened.call('events.tombstone', { ...streamArgs(stream), ...expectation(expect) });
    }

    async verify() {
        return fromResult(await this.#opened.call('events.verify'));
    }

    /*
     * All events from a position of its own on, one after another: subscribe(name, handler), or
     * for await (const event of store.subscribe(name)). One process at a time has a subscription.
     * Options: domain, stream, type, start ("first", "end"), park, batchMax, onError and more.
     */
    subscribe(name, handle, options) {
        if (typeof handle !== 'function')
            return new Reading((each) => this.#handle('events.subscribe', name, each, handle ?? {}));
        return this.#handle('events.subscribe', name, handle, options ?? {});
    }

    /* A share of all events: every process with that name is a consumer of one group. */
    consume(name, handle, options) {
        if (typeof handle !== 'function')
            return new Reading((each) => this.#handle('events.consume', name, each, handle ?? {}));
        return this.#handle('events.consume', name, handle, options ?? {});
    }

    async #handle(method, name, handle, { onError, ...options }) {
        const { session } = await this.#opened.call(method, { name, ...filterArgs(options) });
        return new Handling(this.#connection, session, async (delivery) => {
            for (const event of delivery.events.map(eventFrom))
                await handle(event);
            return {};
        }, onError);
    }

    async subscription(name) {
        return fromResult(await this.#opened.call('events.subscription', { name }));
    }

    /* Let a subscription start over, or from after a position on. */
    async rebuild(name, { after } = {}) {
        await this.#opened.call('events.rebuild', { name, after });
    }

    async forget(name) {
        await this.#opened.call('events.forget', { name });
    }

    /* Parked events of a subscription, and what becomes of them. */
    async parked(name, options = {}) {
        return ((await this.#opened.call('events.parked', { name, ...toArgs(options) })).events ?? []).map(fromResult);
    }

    async replay(name, positions) {
        return Number((await this.#opened.call('events.replay', { name, positions })).done ?? 0);
    }

    async discard(name, positions) {
        return Number((await this.#opened.call('events.discard', { name, positions })).done ?? 0);
    }

    /*
     * An aggregate: its state is made of its events, and commands make new ones.
     *
     *     const orders = store.aggregate({
     *         domain: 'order',
     *         initial: { lines: [] },
     *         evolve: (state, event) => ({ ...state, ... }),
     *         decide: { place: (state, command) => [{ type: 'placed', data: command }] },
     *     });
     *     const { state, version } = await orders.execute('7', 'place', { lines: [...] });
     */
    aggregate(definition) {
        return new Aggregate(this, definition);
    }

    /*
     * A view: `apply` gets each event once, with a transaction to write to. The position is part of
     * that transaction, so each event counts once, whatever fails.
     */
    project(name, apply, options = {}) {
        return new Projection(this, name, apply, options).start(this.#connection);
    }
}

class Aggregate {
    #store;
    #definition;
    constructor(store, { domain, initial, evolve, decide }) {
        if (typeof domain !== 'string' || typeof evolve !== 'function' || !decide)
            throw invalid('an aggregate has a domain, initial, evolve(state, event) and decide: { command: function }');
        this.#store = store;
        this.#definition = { domain, initial, evolve, decide };
    }

    async load(id) {
        const { domain, initial, evolve } = this.#definition;
        let state = typeof initial === 'function' ? initial() : structuredClone(initial), version = 0;
        for await (const event of this.#store.read(`${domain}/${id}`)) {
            state = evolve(state, event);
            version = event.version;
        }
        return { state, version };
    }

    /* Decide on the newest state. When another has appended meanwhile, decide again. */
    async execute(id, command, argument, { retries = RETRIES } = {}) {
        const { domain, evolve, decide } = this.#definition;
        if (!Object.hasOwn(decide, command))
            throw invalid(`${domain} has no command ${command}; it has ${Object.keys(decide).join(', ')}`);
        for (let attempt = 0; ; attempt++) {
            const { state, version } = await this.load(id);
            const events = [await decide[command](state, argument) ?? []].flat();
            if (events.length === 0)
                return { state, version, events };
            try {
                const { first, last } = await this.#store.append(`${domain}/${id}`, events, { expect: version });
                const after = events.reduce((now, event, i) =>
                    evolve(now, { ...event, version: first + i, stream: `${domain}/${id}` }), state);
                return { state: after, version: last, events };
            } catch (error) {
                if (error.code !== 'HF_CONDITION' || attempt >= retries)
                    throw error;
            }
        }
    }
}

class Projection {
    #store;
    #name;
    #apply;
    #options;
    constructor(store, name, apply, { table = 'projections', ...options }) {
        this.#store = store;
        this.#name = name;
        this.#apply = apply;
        this.#options = options;
        this.table = table;
    }

    async start(connection) {
        const { Transaction } = require('./transaction');
        await connection.call('table.ensure', {
            table: {
                TableName: this.table, BillingMode: 'PAY_PER_REQUEST',
                KeySchema: [{ AttributeName: 'name', KeyType: 'HASH' }],
                AttributeDefinitions: [{ AttributeName: 'name', AttributeType: 'S' }],
            },
        });
        const key = { name: this.#name };
        const read = async () => (await connection.call('GetItem',
            { TableName: this.table, Key: toItem(key), ConsistentRead: true })).Item?.position?.S;
        let at = await read();
        return this.#store.subscribe(this.#name, async (event) => {
            if (at !== undefined && event.position <= at)
                return; /* it counted before the subscription could record that */
            const tx = new Transaction(connection);
            await this.#apply(tx, event);
            tx.put(this.table, { ...key, position: event.position },
                { if: at === undefined ? 'attribute_not_exists(#n)' : '#p = :at',
                  names: at === undefined ? { n: 'name' } : { p: 'position' },
                  values: at === undefined ? undefined : { at } });
            try {
                await tx.commit({});
                at = event.position;
            } catch (error) {
                at = await read(); /* it may have happened, or another process had the view */
                if (at === undefined || event.position > at)
                    throw error;
            }
        }, this.#options);
    }
}

const events = {
    events(options) {
        return new EventStore(this.connection, options);
    },
};

module.exports = { events };
