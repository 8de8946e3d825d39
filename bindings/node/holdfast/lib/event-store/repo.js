/*
 * lib/event-store/repo.js: the repository: an event store of holdfast with the functions that the library
 * of flows calls.
 *
 *     domain, identifier          the stream
 *     id, type, created           the same here
 *     payload                     JSON
 *     sequence                    the version in the stream, from 1 on
 *     causationId, correlationId  causation, correlation
 *     meta.schemaVersion          schema
 *     meta.compensatesEventId     compensates; meta.isCompensating is what has it
 *     the rest of meta            meta
 *
 * Everything that is appended by one call is there as a whole or not at all.
 */
'use strict';
const { Opened } = require('../opened');
const { toPayload, fromPayload, microseconds } = require('../names');
const { toItem, fromItem } = require('../values');
const { databaseOf } = require('../client-of');
const { patterns } = require('../patterns');
const { EventStoreError, StreamConcurrencyError, InvalidIdentifierError, InvalidStreamBatchError, SnapshotError,
    EventCursorNotFoundError } = require('./errors');

const PAGE = 1000; /* events of a stream at once */
const STREAMS_MAX = 20; /* of one append */
const IMPORT_MAX = 24; /* events of an append of an import: one transaction */
const DISCARDED_AT_ONCE = 100;

/* ---- events --------------------------------------------------------------------------------- */

const json = (value) => JSON.parse(JSON.stringify(value));

function toStored({ id, type, payload, meta, created, causationId, correlationId }) {
    const { schemaVersion, isCompensating, compensatesEventId, ...rest } = meta ?? {};
    const more = json(rest);
    return {
        id, type, ...toPayload(payload),
        schema: schemaVersion,
        time_us: created === undefined ? undefined : microseconds(new Date(created)),
        meta: Object.keys(more).length ? toItem(more, 'meta of an event') : undefined,
        causation: causationId ?? undefined,
        correlation: correlationId ?? undefined,
        compensates: isCompensating ? compensatesEventId : undefined,
    };
}

function fromStored({ id, domain, stream, version, type, payload, content_type, schema, time_us, meta, causation, correlation,
    compensates }) {
    const event = { id, domain, type };
    event.meta = { ...(meta && fromItem(meta)), schemaVersion: schema ?? 1 };
    if (compensates)
        Object.assign(event.meta, { isCompensating: true, compensatesEventId: compensates });
    event.payload = fromPayload(payload, content_type);
    if (stream)
        event.identifier = stream;
    event.correlationId = correlation;
    if (causation)
        event.causationId = causation;
    event.created = new Date(time_us / 1000);
    event.sequence = Number(version);
    return event;
}

const streamOf = ({ domain, identifier }) => ({ domain, id: identifier ?? '' });
const keyOf = ({ domain, identifier }) => JSON.stringify([domain, identifier ?? '']);

/* Events by stream, each stream where its first event stands: Map of key -> [event, ...]. */
function byStream(events) {
    const streams = new Map();
    for (const event of events) {
        const key = keyOf(event);
        if (!streams.has(key))
            streams.set(key, []);
        streams.get(key).push(event);
    }
    return streams;
}

/* ---- where it is ---------------------------------------------------------------------------- */

/* The blob store of an S3 client, as a URL. */
async function bucketUrl(s3, { s3BucketName, s3KeyPrefix = 'events/', skipS3BucketCreation }) {
    const config = s3?.config ?? {};
    const query = new URLSearchParams();
    const where = typeof config.endpoint === 'function' ? await config.endpoint() : undefined;
    const region = typeof config.region === 'function' ? await config.region() : config.region;
    if (where)
        query.set('endpoint', `${where.protocol}//${where.hostname}${where.port ? `:${where.port}` : ''}`);
    if (region)
        query.set('region', region);
    if (config.forcePathStyle)
        query.set('path_style', '1');
    if (!skipS3BucketCreation)
        query.set('create', '1');
    const prefix = s3KeyPrefix.replace(/^\/+|\/+$/g, '');
    return `s3://${s3BucketName}${prefix ? `/${prefix}` : ''}?${query}`;
}

/* (client, s3Client, options), as the adapter for DynamoDB has them, or { db or client, ... } alone. */
function settings(first, s3Client, options) {
    if (first?.config)
        return { client: first, s3Client, ...options };
    if (first?.connection)
        return { db: first, s3Client, ...options };
    const given = { s3Client, ...first, ...options };
    if (!given.db && !given.client)
        throw new EventStoreError('EventStoreRepo needs a client of the AWS SDK, or a db of holdfast');
    return given;
}

const lists = async function* (pages) {
    yield* pages;
};

class EventStoreRepo {
    capabilities = { aggregate: true, streamQuery: true, optimisticConcurrency: true, snapshot: true };
    #settings;
    #table;
    #ready;
    #closed = false;
    constructor(first, s3Client, options) {
        this.#settings = settings(first, s3Client, options);
        this.#table = this.#settings.tableName ?? `${this.#settings.tableNamePrefix ?? ''}events`;
    }

    get tableName() {
        return this.#table;
    }

    /* ---- opening ---------------------------------------------------------------------------- */

    async #open() {
        const { db: given, client, s3Client, s3BucketName, skipDynamoDBTableCreation } = this.#settings;
        const { db, own } = given ? { db: given, own: false } : await databaseOf(client);
        try {
            const { connection } = db;
            /* An embedded database has a blob store beside it. */
            const beside = /^(embedded|memory):/.test(connection.url);
            const blobs = !beside && s3Client && s3BucketName ? await bucketUrl(s3Client, this.#settings) : undefined;
            if (skipDynamoDBTableCreation)
                await connection.call('DescribeTable', { TableName: this.#table });
            const opened = new Opened(connection, 'events', 'events', { table: this.#table, blobs,
                readUnits: this.#settings.eventStoreTableReadCapacityUnits,
                writeUnits: this.#settings.eventStoreTableWriteCapacityUnits });
            return { db, own, connection, opened };
        } catch (error) {
            if (own)
                await db.close();
            throw error;
        }
    }

    /* What it works with; a failure is tried again by the next call. */
    opened() {
        if (this.#closed)
            return Promise.reject(new EventStoreError('The event store is closed'));
        this.#ready ??= this.#open().catch((error) => {
            this.#ready = undefined;
            throw error;
        });
        return this.#ready;
    }

    async #call(method, args) {
        return (await this.opened()).opened.call(method, args);
    }

    async #read(method, args, empty) {
        return (await this.opened()).opened.read(method, args, empty);
    }

    async init() {
        const { opened } = await this.opened();
        await opened.call('events.open'); /* made or verified now, and not by the first event */
    }

    /* The outbox of the side effects, beside the events. */
    async effects() {
        const { db } = await this.opened();
        return patterns.outbox.call(db, { table: `${this.#table}-effects` });
    }

    async close() {
        if (this.#closed)
            return;
        const opened = await this.#ready?.catch(() => undefined);
        this.#closed = true;
        if (opened?.own)
            await opened.db.close();
    }

    /* ---- writing ---------------------------------------------------------------------------- */

    /*
     * Append: [{ domain, identifier, events, expected }], where `expected` is the version that the stream
     * has to be at, and `with` more actions for the same transaction. All or nothing. Gives the versions
     * that the events have got, in the order of the events of each stream.
     */
    async appendAll(parts, actions) {
        const appends = parts.map(({ domain, identifier, events, expected }) => ({
            ...streamOf({ domain, identifier }), events: events.map(toStored),
            ...(expected === undefined ? {} : expected === 0 ? { expect: 'none' } : { expect: 'version', version: expected }),
        }));
        const { streams } = await this.#call('events.append', { appends, with: actions?.length ? actions : undefined });
        return streams.map(({ first }, i) => parts[i].events.map((_, n) => Number(first) + n));
    }

    /* A failed expectation in the words of the library. */
    async conflict(error, parts) {
        if (error.code !== 'HF_CONDITION')
            return error;
        for (const { domain, identifier, expected } of parts.filter((part) => part.expected !== undefined)) {
            const actual = await this.getStreamSequence(domain, identifier);
            if (actual !== expected)
                return new StreamConcurrencyError(domain, identifier ?? '', expected, actual, error);
        }
        return error;
    }

    async #append(parts) {
        try {
            return await this.appendAll(parts);
        } catch (error) {
            throw await this.conflict(error, parts);
        }
    }

    /* All of them or none; expectedSequence is that of their stream. */
    async storeEvents(events, { expectedSequence } = {}) {
        if (events.length === 0)
            return;
        const parts = [...byStream(events).values()].map((list) =>
            ({ domain: list[0].domain, identifier: list[0].identifier, events: list, expected: expectedSequence }));
        if (expectedSequence !== undefined && parts.length > 1)
            throw new InvalidStreamBatchError(`expectedSequence is of one stream, and these events are of ${parts.length}`);
        await this.#append(parts);
    }

    append(events) {
        return this.storeEvents(events);
    }

    async appendToStream(events, expectedVersion) {
        if (byStream(events).size > 1)
            throw new InvalidStreamBatchError('The events of appendToStream() are of more than one stream');
        await this.storeEvents(events, { expectedSequence: expectedVersion });
        return { nextVersion: expectedVersion + events.length };
    }

    /*
     * Events of an export, in their order and with their sequences: a stream with a gap fails. What is
     * there already is not stored again, so an import that was interrupted can be repeated.
     */
    async importEvents(events) {
        let batch = [], streams = new Set();
        const flush = async () => {
            if (batch.length)
                await this.#append([...byStream(batch).values()].map((list) => ({
                    domain: list[0].domain, identifier: list[0].identifier, events: list,
                    expected: list[0].sequence === undefined ? undefined : list[0].sequence - 1,
                })));
            batch = [];
            streams = new Set();
        };
        for (const event of events) {
            const key = keyOf(event);
            const before = batch.findLast((each) => keyOf(each) === key);
            if (before?.sequence !== undefined && event.sequence !== before.sequence + 1)
                throw new InvalidStreamBatchError(`Event ${event.id} has the sequence ${event.sequence} behind ` +
                    `${before.sequence} of the stream ${event.domain}/${event.identifier ?? ''}`);
            if (batch.length === IMPORT_MAX || (!streams.has(key) && streams.size === STREAMS_MAX))
                await flush();
            batch.push({ ...event, created: new Date(event.created) });
            streams.add(key);
        }
        await flush();
    }

    /* Remove all of it; side effects that wait, too. */
    async resetStore() {
        await this.#call('events.reset');
        const box = await this.effects();
        for (const waiting of [box.pending({ notDueToo: true, retryingToo: true }), box.failed()]) {
            const ids = [];
            for await (const { id } of waiting)
                ids.push(id);
            while (ids.length)
                await box.discard(ids.splice(0, DISCARDED_AT_ONCE));
        }
    }

    reset() {
        return this.resetStore();
    }

    /* ---- reading ---------------------------------------------------------------------------- */

    createEventEntity({ id, domain, type, meta, payload, identifier, correlationId, causationId, created }) {
        return { id, domain, type, meta, payload, identifier, correlationId, causationId, created };
    }

    async *#pages(pageSize, startFromId) {
        let after;
        if (startFromId !== undefined && startFromId !== null) {
            const found = await this.#found(startFromId);
            if (!found)
                throw new EventCursorNotFoundError(startFromId);
            after = found.position;
        }
        for (let list = []; ; ) { /* an answer may have fewer than were asked for */
            const { events = [], next } = await this.#read('events.all', { after, limit: pageSize - list.length }, {});
            list.push(...events.map(fromStored));
            const end = !next || !events.length;
            if (list.length && (end || list.length === pageSize)) {
                yield list;
                list = [];
            }
            if (end)
                return;
            after = next;
        }
    }

    /* Pages in the order of all events, which never contradicts that of a stream; behind startFromId. */
    async getAllEvents(pageSize = 200, startFromId = undefined) {
        return lists(this.#pages(pageSize, startFromId));
    }

    /* Events of one stream behind that sequence. */
    async getStreamEvents(domain, identifier, fromSequence = 0) {
        const events = [];
        for (let from = fromSequence + 1; ;) {
            const page = await this.#read('events.read', { ...streamOf({ domain, identifier }), from, limit: PAGE }, {});
            events.push(...(page.events ?? []).map(fromStored));
            if (!page.next || page.next === '0')
                return events;
            from = page.next;
        }
    }

    async getStreamSequence(domain, identifier) {
        const found = await (await this.opened()).opened.get('events.stream', streamOf({ domain, identifier }));
        return Number(found?.version ?? 0);
    }

    async #found(id) {
        return (await this.opened()).opened.get('events.get', { id });
    }

    async getEventById(id) {
        const found = await this.#found(id);
        return found ? fromStored(found) : null;
    }

    async findByCausationId(causationId) {
        return ((await this.#read('events.caused_by', { id: causationId }, {})).events ?? []).map(fromStored);
    }

    /* ---- snapshots -------------------------------------------------------------------------- */

    async getSnapshot(domain, identifier) {
        const found = await (await this.opened()).opened.get('events.snapshot', streamOf({ domain, identifier }));
        if (!found)
            return null;
        return { domain, identifier, state: fromItem(found.state).state, sequence: Number(found.version),
            created: new Date(found.time_us / 1000) };
    }

    /* One that is older than what is there changes nothing. */
    async saveSnapshot({ domain, identifier, state, sequence }) {
        if (!identifier)
            throw new InvalidIdentifierError('A snapshot is of a stream with an identifier');
        if (state === undefined || !(sequence > 0))
            throw new SnapshotError('A snapshot has a state and a sequence from 1 on');
        await this.#call('events.save_snapshot',
            { ...streamOf({ domain, identifier }), version: sequence, state: toItem({ state: json(state) }, 'a state') });
    }
}

module.exports = { EventStoreRepo, byStream, keyOf };
