// The interface of the schemeless event store and its adapter for DynamoDB, on the event store of holdfast.
import type { Database, Outbox, Transaction } from './index.js';

export interface EventMeta {
    schemaVersion?: number;
    isCompensating?: boolean;
    compensatesEventId?: string;
    [name: string]: any;
}
export interface BaseEventInput<Payload, Meta = any> {
    payload: Payload;
    meta?: Meta;
    identifier?: string;
    correlationId?: string;
    /** Managed by the store: it is set to the event that this one follows from. */
    causationId?: string;
    created?: Date;
}
export interface BaseEvent<Payload, Meta = any> extends BaseEventInput<Payload, Meta> {
    id?: string;
    domain: string;
    type: string;
}
export interface CreatedEvent<Payload, Meta = any> extends BaseEvent<Payload, Meta> {
    id: string;
    readonly created: Date;
    /** In its stream, from 1 on; when it is stored. */
    sequence?: number;
}
export interface StoredEvent<Payload, Meta = any> extends CreatedEvent<Payload, Meta> {}
export type Event<Payload, Meta = any> = StoredEvent<Payload, Meta>;
export type IEventStoreEntity<Payload = any, Meta = any> = StoredEvent<Payload, Meta>;
export type PersistedEvent<Payload = any, Meta = any> = StoredEvent<Payload, Meta>;

type Later<T> = Promise<T> | T;
type Made<Payload> = Promise<[CreatedEvent<Payload>, ...CreatedEvent<any>[]]>;

interface AnyFlow<PartialPayload, Payload extends PartialPayload> {
    readonly domain: string;
    readonly type: string;
    readonly description?: string;
    readonly meta?: { readonly sideEffectFailedRetryAllowed?: number };
    readonly schemaVersion?: number;
    readonly upcast?: (event: CreatedEvent<any>, fromVersion: number) => Later<CreatedEvent<Payload> | void>;
    readonly getShardKey?: (event: BaseEvent<Payload>) => string | undefined;
    readonly eventType?: CreatedEvent<Payload>;
    readonly payloadType?: PartialPayload | Payload;
    readonly samplePayload?: PartialPayload | Payload;
    readonly receive?: (eventStore: {
        receive: (flow: any) => (input: BaseEventInput<any>) => Made<any>;
    }) => (input: BaseEventInput<PartialPayload>) => Made<Payload>;
    readonly preApply?: (event: CreatedEvent<PartialPayload>) => Later<CreatedEvent<Payload> | void>;
    /** At least once, after the event is stored, in whatever process: event.id is the same each time. */
    readonly sideEffect?: (event: CreatedEvent<Payload>, run: { attempt: number }) => Later<void | BaseEvent<any>[]>;
    readonly cancelApply?: (event: CreatedEvent<Payload>) => Later<void>;
    readonly createConsequentEvents?: (causalEvent: CreatedEvent<Payload>) => Later<BaseEvent<any>[]>;
    readonly compensate?: (originalEvent: CreatedEvent<Payload>) => Later<BaseEvent<any> | BaseEvent<any>[]>;
}
export interface EventFlow<PartialPayload = any, Payload extends PartialPayload = PartialPayload> extends AnyFlow<PartialPayload, Payload> {
    readonly kind?: 'event' | 'simple';
    readonly aggregate?: undefined;
    readonly validate?: (event: CreatedEvent<Payload>) => Later<Error | void>;
    /** What is written to `tx` is stored with the event, or not at all. */
    readonly apply?: (event: CreatedEvent<Payload>, tx: Transaction) => Later<unknown>;
}
export interface AggregateEventFlow<PartialPayload = any, State = any, Payload extends PartialPayload = PartialPayload>
    extends AnyFlow<PartialPayload, Payload> {
    readonly kind?: 'aggregate';
    readonly aggregate: {
        readonly initialState: State | (() => State);
        readonly reducer: (state: State, event: CreatedEvent<any>) => Later<State>;
        readonly getIdentifier?: (event: CreatedEvent<Payload>) => string | undefined;
    };
    readonly validate?: (event: CreatedEvent<Payload>, state: State) => Later<Error | void>;
    readonly apply?: (event: CreatedEvent<Payload>, state: State, tx: Transaction) => Later<State>;
}
export type AnyEventFlow = EventFlow<any, any> | AggregateEventFlow<any, any, any>;

export interface SuccessEventObserver<Payload = any> {
    /** None: all events. */
    filters?: { domain: string; type: string }[];
    priority?: number;
    fireAndForget?: boolean;
    aggregate?: false;
    readonly apply?: (event: CreatedEvent<Payload>) => Later<unknown>;
    onError?: (error: any, event: CreatedEvent<any>) => void;
}
export interface AggregateEventObserver<Payload = any, State = any> extends Omit<SuccessEventObserver<Payload>, 'aggregate' | 'apply'> {
    aggregate: true;
    readonly apply?: (event: CreatedEvent<Payload>, state: State) => Later<unknown>;
}

export declare const EventOutputState: {
    readonly success: 'Event:success'; readonly invalid: 'Event:invalid'; readonly canceled: 'Event:canceled';
    readonly reverted: 'Event:reverted'; readonly revertFailed: 'Event:revertFailed';
};
export type EventOutputState = (typeof EventOutputState)[keyof typeof EventOutputState];
export declare const SideEffectsState: {
    readonly done: 'SideEffects:done'; readonly retry: 'SideEffects:retry'; readonly fail: 'SideEffects:fail';
};
export type SideEffectsState = (typeof SideEffectsState)[keyof typeof SideEffectsState];
export declare const EventObserverState: { readonly success: 'Observer:success' };
export type EventObserverState = (typeof EventObserverState)[keyof typeof EventObserverState];
export interface EventOutput {
    state: EventOutputState | SideEffectsState | EventObserverState;
    event: CreatedEvent<any>;
    error?: any;
}
/** An observable: from(output$) of RxJS takes it. */
export interface OutputObservable {
    subscribe(observer: ((output: EventOutput) => void) | { next?: (output: EventOutput) => void; complete?: () => void }):
        { readonly closed: boolean; unsubscribe(): void };
    /** With operators of RxJS, where the program has that package. */
    pipe(...operators: any[]): any;
}

export interface EventStoreRepoOptions {
    /** The table is PREFIXevents, and PREFIXevents-effects for side effects. */
    tableNamePrefix?: string;
    /** Instead of that. */
    tableName?: string;
    /** For payloads beyond 350 KB; not of a database of this process, which has a place for them. */
    s3BucketName?: string;
    s3KeyPrefix?: string;
    /** Not used: buckets have policies. */
    s3Acl?: string;
    skipDynamoDBTableCreation?: boolean;
    skipS3BucketCreation?: boolean;
    /** Not given: on demand. */
    eventStoreTableReadCapacityUnits?: number;
    eventStoreTableWriteCapacityUnits?: number;
}
export interface Snapshot<State = any> {
    domain: string;
    identifier: string;
    state: State;
    sequence: number;
    created?: Date;
}
export interface IEventStoreRepo<Payload = any, Meta = any> {
    init(): Promise<void>;
    getAllEvents(pageSize?: number, startFromId?: string): Promise<AsyncIterableIterator<IEventStoreEntity<Payload, Meta>[]>>;
    createEventEntity(event: CreatedEvent<any>): IEventStoreEntity<Payload, Meta>;
    storeEvents(events: CreatedEvent<any>[], options?: { expectedSequence?: number }): Promise<void>;
    resetStore(): Promise<void>;
    getStreamEvents(domain: string, identifier: string, fromSequence?: number): Promise<IEventStoreEntity<Payload, Meta>[]>;
    getStreamSequence(domain: string, identifier: string): Promise<number>;
    getSnapshot<State = any>(domain: string, identifier: string): Promise<Snapshot<State> | null>;
    saveSnapshot<State = any>(snapshot: Snapshot<State>): Promise<void>;
    getEventById(id: string): Promise<IEventStoreEntity<Payload, Meta> | null>;
    findByCausationId(causationId: string): Promise<IEventStoreEntity<Payload, Meta>[]>;
    close(): Promise<void>;
    readonly capabilities: { aggregate: boolean };
}
export class EventStoreRepo implements IEventStoreRepo {
    /** A client of the AWS SDK, in this process by db.clientConfig(), or of a server; a Database; or either in the options. */
    constructor(client: { readonly config: object } | Database, s3Client?: object, options?: EventStoreRepoOptions);
    constructor(options: EventStoreRepoOptions & ({ db: Database } | { client: object }) & { s3Client?: object });
    readonly tableName: string;
    readonly capabilities: { aggregate: true; streamQuery: true; optimisticConcurrency: true; snapshot: true };
    init(): Promise<void>;
    getAllEvents(pageSize?: number, startFromId?: string): Promise<AsyncIterableIterator<IEventStoreEntity[]>>;
    createEventEntity(event: CreatedEvent<any>): IEventStoreEntity;
    /** All of them or none; expectedSequence is that of their stream. */
    storeEvents(events: CreatedEvent<any>[], options?: { expectedSequence?: number }): Promise<void>;
    append(events: CreatedEvent<any>[]): Promise<void>;
    appendToStream(events: CreatedEvent<any>[], expectedVersion: number): Promise<{ nextVersion: number }>;
    resetStore(): Promise<void>;
    reset(): Promise<void>;
    getStreamEvents(domain: string, identifier: string, fromSequence?: number): Promise<IEventStoreEntity[]>;
    getStreamSequence(domain: string, identifier: string): Promise<number>;
    getSnapshot<State = any>(domain: string, identifier: string): Promise<Snapshot<State> | null>;
    saveSnapshot<State = any>(snapshot: Snapshot<State>): Promise<void>;
    getEventById(id: string): Promise<IEventStoreEntity | null>;
    findByCausationId(causationId: string): Promise<IEventStoreEntity[]>;
    /** The outbox of the side effects: their dead letters are its failed(), retry(), discard(). */
    effects(): Promise<Outbox>;
    close(): Promise<void>;
}

export interface EventStoreOptions {
    mainQueueConcurrent?: number;
    sideEffectQueueConcurrent?: number;
    observerQueueConcurrent?: number;
    /** Options of the relay that runs side effects; false: this process runs none. */
    sideEffects?: false | {
        pollMs?: number; backoffMs?: number; backoffMaxMs?: number; timeoutMs?: number; leaseMs?: number; heartbeatMs?: number; maxCrashes?: number;
        stuckMs?: number; owner?: string;
    };
    /** Errors of observers, and of what runs in the background; default: a warning of the process. */
    onError?: (error: any) => void;
}
export interface CanRevertResult {
    canRevert: boolean;
    reason?: string;
    missingCompensateEvents?: { id: string; domain: string; type: string }[];
}
export interface PreviewRevertResult {
    rootEvent: CreatedEvent<any>;
    descendantEvents: CreatedEvent<any>[];
    totalEventCount: number;
}
export interface RevertResult {
    revertedEventId: string;
    compensatingEvents: CreatedEvent<any>[];
    childResults: RevertResult[];
}
export interface EventStore {
    readonly eventStoreRepo: EventStoreRepo;
    readonly capabilities: { aggregate: true };
    readonly mainQueue: null;
    readonly sideEffectQueue: null;
    readonly output$: OutputObservable;
    /** The events of the tree, the root first, when they are stored and observers were called. */
    submit<Payload = any>(flow: { domain: string; type: string; samplePayload?: Payload }, input: BaseEventInput<Payload>): Made<any>;
    receive<Payload = any>(flow: { domain: string; type: string; samplePayload?: Payload }): (input: BaseEventInput<Payload>) => Made<any>;
    on(what: 'processed', handler: (output: EventOutput) => void): () => void;
    replay(startFromId?: string, options?: { pageSize?: number; onError?: (error: any, event: CreatedEvent<any>) => void }): Promise<void>;
    getAggregate<State>(domain: string, identifier: string, reducer: (state: State, event: CreatedEvent<any>) => Later<State>,
        initialState: State | (() => State)): Promise<{ state: State; sequence: number }>;
    canRevert(eventId: string): Promise<CanRevertResult>;
    previewRevert(eventId: string): Promise<PreviewRevertResult>;
    revert(eventId: string): Promise<RevertResult>;
    shutdown(timeout?: number): Promise<void>;
}
export function makeEventStore(repo: EventStoreRepo, options?: EventStoreOptions):
    (eventFlows: AnyEventFlow[], observers?: (SuccessEventObserver<any> | AggregateEventObserver<any, any>)[]) => Promise<EventStore>;
/** When the side effects of what was submitted were run, or have failed for good. */
export function sideEffectFinishedPromise(eventStore: EventStore): Promise<void>;

export interface EventStoreCore {
    readonly repo: EventStoreRepo;
    init(): Promise<void>;
    append(events: PersistedEvent[]): Promise<void>;
    stream(domain: string, identifier: string, fromSequence?: number): Promise<PersistedEvent[]>;
    scan(options?: { pageSize?: number; startFromId?: string }): AsyncIterableIterator<PersistedEvent[]>;
    export(options?: { pageSize?: number; startFromId?: string }): AsyncIterableIterator<PersistedEvent[]>;
    import(events: PersistedEvent[], options?: ImportEventsOptions): Promise<void>;
    rebuildReadModels(options: { observers?: SuccessEventObserver<any>[]; reset?: () => Later<unknown>; startFromId?: string; pageSize?: number }): Promise<void>;
    close(): Promise<void>;
}
export function makeEventStoreCore(repo: EventStoreRepo): EventStoreCore;

export interface ExportEventsOptions { pageSize?: number; onProgress?: (fetched: number) => void }
export interface ImportEventsOptions { batchSize?: number; replace?: boolean; onProgress?: (written: number) => void }
export interface EventStoreSnapshot { exportedAt: string; count: number; events: IEventStoreEntity[] }
export function exportEventsToArray(repo: IEventStoreRepo, options?: ExportEventsOptions): Promise<IEventStoreEntity[]>;
export function importEventsFromArray(repo: IEventStoreRepo, events: IEventStoreEntity[], options?: ImportEventsOptions): Promise<void>;
export function createSnapshot(events: IEventStoreEntity[]): EventStoreSnapshot;
export function parseSnapshot(json: string): EventStoreSnapshot;

export class EventStoreError extends Error {}
export class StreamConcurrencyError extends EventStoreError {
    readonly domain: string;
    readonly identifier: string;
    readonly expectedVersion: number;
    readonly actualVersion: number;
    readonly streamKey: string;
    readonly expectedSequence: number;
    readonly actualSequence: number;
}
export { StreamConcurrencyError as ConcurrencyError };
export class FlowNotFoundError extends EventStoreError {
    readonly domain: string;
    readonly type: string;
}
export class AggregateError extends EventStoreError {
    readonly flow: AnyEventFlow;
    readonly reason: 'no_identifier' | 'apply_must_return_state';
}
/** What a validate() threw, whatever its class. */
export class ValidationError extends Error {
    readonly flow: AnyEventFlow;
    readonly eventId: string;
}
export class RevertError extends EventStoreError {}
export class ShutdownTimeoutError extends EventStoreError {
    readonly timeout: number;
}
export class InvalidIdentifierError extends EventStoreError {}
export class InvalidStreamBatchError extends EventStoreError {}
export class SnapshotError extends EventStoreError {}
export class EventCursorNotFoundError extends EventStoreError {
    readonly id: string;
}
