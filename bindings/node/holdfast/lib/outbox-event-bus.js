/*
 * lib/outbox-event-bus.js: the interface of the library outbox-event-bus, on the outbox of holdfast.
 *
 * Code that was written for it changes its imports. Events are in a table of holdfast's layout, which is
 * made when it is missing; `holdfast outbox` looks at it. What differs, as that library's documents say
 * and its code does not: handlers for "order.*" and "*", metadata that is stored, attempts and claims
 * that hold when a process is killed, a middleware that ends without next() drops the event.
 */
'use strict';
const { randomUUID } = require('crypto');
const { databaseOf } = require('./client-of');
const { fromItem } = require('./values');
const { textOf, tell } = require('./errors');

const COLLECTED_MAX = 100; /* actions of a transaction of DynamoDB */
const FAILED_MAX = 100; /* that getFailedEvents() gives */

/* ---- errors --------------------------------------------------------------------------------- */

class OutboxError extends Error {
    constructor(message, context = {}) {
        super(message, context.cause ? { cause: context.cause } : undefined);
        this.name = new.target.name;
        this.context = context;
    }
}
class ConfigurationError extends OutboxError {}
class DuplicateListenerError extends ConfigurationError {
    constructor(eventType) {
        super(`Listener already registered for event type: ${eventType}`, { eventType });
    }
}
class UnsupportedOperationError extends ConfigurationError {
    constructor(operation, adapterName) {
        super(`${adapterName} does not support ${operation}`, { operation, adapterName });
    }
}
class ValidationError extends OutboxError {}
class BatchSizeLimitError extends ValidationError {
    constructor(limit, actual) {
        super(`Batch size limit exceeded: ${actual} of at most ${limit}`, { limit, actual });
    }
}
class OperationalError extends OutboxError {}
class TimeoutError extends OperationalError {
    constructor(operation, timeoutMs) {
        super(`${operation} timed out after ${timeoutMs} ms`, { operation, timeoutMs });
    }
}
class MaxRetriesExceededError extends OperationalError {
    constructor(event, retryCount, cause) {
        super(`Event ${event.id} failed ${retryCount} times`, { event, retryCount, cause });
    }
}
class HandlerError extends OperationalError {
    constructor(event, cause) {
        super(`Handler of ${event.type} failed: ${textOf(cause)}`, { event, cause });
    }
}

/* ---- adapter -------------------------------------------------------------------------------- */

const toEvent = ({ id, type, payload, occurredAt, metadata }) => {
    const event = { id, type, payload, time: occurredAt, contentType: 'application/json' };
    if (occurredAt > new Date())
        event.dueAt = occurredAt; /* delayed delivery */
    if (metadata !== undefined)
        event.headers = { metadata: JSON.stringify(metadata) };
    return event;
};

const fromEvent = ({ id, type, payload, time, headers }) => {
    const event = { id, type, payload, occurredAt: time };
    if (headers?.metadata === undefined)
        return event;
    try {
        event.metadata = JSON.parse(headers.metadata);
    } catch {
        event.metadata = headers.metadata; /* of somebody else */
    }
    return event;
};

/* An action as the SDK's DocumentClient takes it: with plain values. */
function plain(action) {
    const [[kind, { Item, Key, ExpressionAttributeValues, ...rest }]] = Object.entries(action);
    if (Item)
        rest.Item = fromItem(Item);
    if (Key)
        rest.Key = fromItem(Key);
    if (ExpressionAttributeValues)
        rest.ExpressionAttributeValues = fromItem(ExpressionAttributeValues);
    return { [kind]: rest };
}

class DynamoDBAwsSdkOutbox {
    #config;
    #box;
    #handling;
    constructor(config) {
        if (!config?.db && !config?.client)
            throw new ConfigurationError('The outbox needs a client of the AWS SDK, or a db of holdfast');
        if (!config.tableName)
            throw new ConfigurationError('The outbox needs a tableName');
        this.#config = {
            batchSize: 50, pollIntervalMs: 1000, maxRetries: 5, baseBackoffMs: 1000, processingTimeoutMs: 30000, ...config,
        };
    }

    #outbox() {
        this.#box ??= (async () => {
            const { db, client, tableName } = this.#config;
            const { patterns } = require('./patterns');
            return patterns.outbox.call(db ?? (await databaseOf(client)).db, { table: tableName });
        })().catch((error) => {
            this.#box = undefined; /* the next call tries again */
            throw error;
        });
        return this.#box;
    }

    /* With a collector, an array for a TransactWriteCommand, the events are put into it and not sent. */
    async publish(events, transaction) {
        if (events.length === 0)
            return;
        const collector = transaction ?? this.#config.getCollector?.();
        const had = Array.isArray(collector) ? collector.length : Array.isArray(collector?.items) ? collector.items.length : 0;
        if (had + events.length > COLLECTED_MAX)
            throw new BatchSizeLimitError(COLLECTED_MAX, had + events.length);
        const box = await this.#outbox();
        if (!collector) {
            await box.emit(events.map(toEvent));
            return;
        }
        const collecting = { join: async (making) => {
            const made = await making;
            for (const action of made.actions)
                collector.push(plain(action));
            return made;
        } };
        await box.emit(collecting, events.map(toEvent));
    }

    async start(handler, onError) {
        const { batchSize, pollIntervalMs, maxRetries, baseBackoffMs, processingTimeoutMs } = this.#config;
        const box = await this.#outbox();
        const last = new Map(); /* id -> the event and the error that it failed with */
        this.#handling ??= box.deliver(async (events) => {
            const failures = [];
            for (const [index, stored] of events.entries()) {
                const event = fromEvent(stored);
                try {
                    await handler(event);
                    last.delete(event.id);
                } catch (error) {
                    failures.push({ index, message: textOf(error) });
                    last.set(event.id, { event, error });
                    tell(onError, error instanceof OutboxError ? error : new HandlerError(event, error));
                }
            }
            return failures;
        }, {
            batch: batchSize, pollMs: pollIntervalMs, maxAttempts: maxRetries, backoffMs: baseBackoffMs, timeoutMs: processingTimeoutMs,
            onError: (error, notice) => {
                const given = notice?.type === 'given_up' ? last.get(notice.id) : undefined;
                last.delete(notice?.id);
                onError?.(given ? new MaxRetriesExceededError(given.event, maxRetries, given.error)
                    : new OperationalError(error.message, { cause: error }));
            },
        });
        const handling = this.#handling;
        try {
            await handling;
        } catch (error) {
            if (this.#handling === handling)
                this.#handling = undefined; /* start() can be called again */
            throw error;
        }
    }

    async stop() {
        const handling = await this.#handling;
        this.#handling = undefined;
        await handling?.stop();
    }

    /* At most 100, the newest first. */
    async getFailedEvents() {
        const events = [];
        for await (const failed of (await this.#outbox()).failed({ limit: FAILED_MAX }))
            events.push({ ...fromEvent(failed), error: failed.errorText, retryCount: failed.attempts ?? 0, lastAttemptAt: failed.triedAt });
        return events;
    }

    async retryEvents(ids) {
        if (ids.length)
            await (await this.#outbox()).retry(ids);
    }
}

/* ---- bus ------------------------------------------------------------------------------------ */

/*
 * Run an event through a chain of middlewares. Resolves with the event, or with undefined when one of
 * them dropped it.
 */
async function through(middlewares, context, end) {
    let dropped = false;
    const run = async (i) => {
        if (i === middlewares.length) {
            await end?.(context.event);
            return;
        }
        let called = false;
        await middlewares[i](context, async ({ dropEvent = false } = {}) => {
            if (called && !dropped)
                throw new OperationalError(`middleware ${i} called next() twice`);
            called = true;
            dropped ||= dropEvent;
            if (!dropped)
                await run(i + 1);
        });
        if (!called)
            dropped = true;
    };
    await run(0);
    return dropped ? undefined : context.event;
}

class OutboxEventBus {
    #outbox;
    #onError;
    #concurrency;
    #handlers = new Map();
    #emitting = [];
    #handling = [];
    constructor(outbox, options) {
        const { onError, middlewareConcurrency = 10 } = typeof options === 'function' ? { onError: options } : options ?? {};
        this.#outbox = outbox;
        this.#onError = onError ?? (() => {});
        this.#concurrency = Math.max(1, middlewareConcurrency);
    }

    addEmitMiddleware(...middlewares) {
        this.#emitting.push(...middlewares);
        return this;
    }
    addHandlerMiddleware(...middlewares) {
        this.#handling.push(...middlewares);
        return this;
    }
    addMiddleware(...middlewares) {
        return this.addEmitMiddleware(...middlewares).addHandlerMiddleware(...middlewares);
    }

    emit(event, transaction) {
        return this.emitMany([event], transaction);
    }

    async emitMany(events, transaction) {
        if (events.length === 0)
            return;
        const whole = events.map((event) => ({ ...event, id: event.id ?? randomUUID(), occurredAt: event.occurredAt ?? new Date() }));
        const middlewares = [...this.#emitting];
        const results = new Array(whole.length);
        let next = 0;
        const work = async () => {
            while (next < whole.length) {
                const i = next++;
                results[i] = await through(middlewares, { phase: 'emit', event: whole[i], transaction });
            }
        };
        await Promise.all(Array.from({ length: Math.min(this.#concurrency, whole.length) }, work));
        const left = results.filter((event) => event !== undefined);
        if (left.length)
            await this.#outbox.publish(left, transaction);
    }

    on(type, handler) {
        if (this.#handlers.has(type))
            throw new DuplicateListenerError(type);
        this.#handlers.set(type, handler);
        return this;
    }
    addListener(type, handler) {
        return this.on(type, handler);
    }
    once(type, handler) {
        /* What fails comes again, and finds the handler again. */
        const wrapper = async (event) => {
            this.off(type, wrapper);
            try {
                return await handler(event);
            } catch (error) {
                if (!this.#handlers.has(type))
                    this.#handlers.set(type, wrapper);
                throw error;
            }
        };
        wrapper.original = handler;
        return this.on(type, wrapper);
    }
    off(type, handler) {
        const there = this.#handlers.get(type);
        if (there && (there === handler || there.original === handler))
            this.#handlers.delete(type);
        return this;
    }
    removeListener(type, handler) {
        return this.off(type, handler);
    }
    removeAllListeners(type) {
        if (type === undefined)
            this.#handlers.clear();
        else
            this.#handlers.delete(type);
        return this;
    }
    subscribe(types, handler) {
        for (const type of types)
            this.on(type, handler);
        return this;
    }

    waitFor(type, timeoutMs = 5000) {
        return new Promise((resolve, reject) => {
            const handler = (event) => {
                clearTimeout(timer);
                this.off(type, handler);
                resolve(event);
            };
            this.on(type, handler);
            const timer = setTimeout(() => {
                this.off(type, handler);
                reject(new TimeoutError(`waitFor(${type})`, timeoutMs));
            }, timeoutMs);
        });
    }

    getSubscriptionCount() {
        return this.#handlers.size;
    }
    listenerCount(type) {
        return this.#handlers.has(type) ? 1 : 0;
    }
    getListener(type) {
        const handler = this.#handlers.get(type);
        return handler?.original ?? handler;
    }
    eventNames() {
        return [...this.#handlers.keys()];
    }

    async #dispatch(event) {
        const { handlerFor } = require('./messages');
        await through([...this.#handling], { phase: 'handler', event }, async (now) => {
            await handlerFor(this.#handlers, now.type)?.(now);
        });
    }

    /* What cannot be started is reported by onError, too. */
    async start() {
        try {
            await this.#outbox.start((event) => this.#dispatch(event), this.#onError);
        } catch (error) {
            this.#onError(error instanceof OutboxError ? error : new OperationalError(error.message, { cause: error }));
        }
    }
    async stop() {
        await this.#outbox.stop();
    }

    async getFailedEvents() {
        if (!this.#outbox.getFailedEvents)
            throw new UnsupportedOperationError('getFailedEvents', this.#outbox.constructor.name);
        return this.#outbox.getFailedEvents();
    }
    async retryEvents(ids) {
        if (!this.#outbox.retryEvents)
            throw new UnsupportedOperationError('retryEvents', this.#outbox.constructor.name);
        await this.#outbox.retryEvents(ids);
    }
}

module.exports = {
    OutboxEventBus, DynamoDBAwsSdkOutbox, HoldfastOutbox: DynamoDBAwsSdkOutbox,
    OutboxError, ConfigurationError, DuplicateListenerError, UnsupportedOperationError, ValidationError, BatchSizeLimitError,
    OperationalError, TimeoutError, MaxRetriesExceededError, HandlerError,
};
