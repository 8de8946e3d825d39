// Types of the package holdfast. docs/node.md has examples of everything.

/* ---- values --------------------------------------------------------------------------------- */

/** A decimal number of up to 38 digits that neither a number nor a bigint holds. */
export class NumberValue {
    constructor(text: string | number | bigint);
    readonly text: string;
    toString(): string;
    toJSON(): string;
    valueOf(): number;
    /** Throws when there is a fraction. */
    toBigInt(): bigint;
}

export type Numeric = number | bigint | NumberValue;
export type Bytes = Uint8Array | ArrayBuffer;

/** What an attribute can be. Members of an object that are undefined are left out. */
export type Value =
    | string | Numeric | boolean | null | Bytes | Set<string> | Set<Numeric> | Set<Bytes>
    | readonly Value[] | ReadonlyMap<string, Value> | { readonly [name: string]: Value | undefined };

/** Any object whose members are values: an interface of yours, too. */
export type Item = object;
export type AnyItem = Record<string, any>;

/* ---- errors --------------------------------------------------------------------------------- */

export class HoldfastError extends Error {
    constructor(code: string, message: string, details?: object);
    name: 'HoldfastError';
    /** Such as "HF_CONDITION": docs/errors.md has all of them. */
    code: string;
    /** The same call may succeed later. */
    retryable: boolean;
    /** The effect may be there although the call failed. */
    mayHaveHappened: boolean;
    /** DynamoDB's name, such as "ConditionalCheckFailedException". */
    exception?: string;
    operation?: string;
    table?: string;
    retryAfterMs?: number;
    limit?: { name: string; max: number | string; actual: number | string };
    /** With `itemOnFailure`: the item that the condition did not hold for. */
    item?: AnyItem;
    /** Of a transaction: one for each action. */
    reasons?: { code: string; message?: string; item?: AnyItem }[];
}

/** Thrown by a handler: trying again is of no use. */
export class PermanentError extends Error {
    readonly permanent: true;
}

/* ---- expressions ---------------------------------------------------------------------------- */

declare const operator: unique symbol;
export interface Operator { readonly [operator]: true }
declare const attribute: unique symbol;
export interface Attribute { readonly [attribute]: true }
declare const expression: unique symbol;
export interface Expression { readonly [expression]: true }

export function eq(operand: Value): Operator;
export function ne(operand: Value): Operator;
export function lt(operand: Value): Operator;
export function le(operand: Value): Operator;
export function gt(operand: Value): Operator;
export function ge(operand: Value): Operator;
export function between(low: Value, high: Value): Operator;
export function beginsWith(prefix: string | Bytes): Operator;
export function contains(member: Value): Operator;
export function oneOf(...operands: Value[]): Operator;
export function exists(): Operator;
export function missing(): Operator;

/** A path: names separated by dots, with [0] for elements of lists; an array is names as they are. */
export function attr(path: string | readonly string[]): Attribute;
/** expr`${attr('total')} > ${5}` */
export function expr(strings: TemplateStringsArray, ...operands: (Value | Attribute | Expression)[]): Expression;

/** "total > :min" with names and values, an expr`...`, or attributes with their values or operators. */
export type Condition = string | Expression | { [path: string]: Value | Operator | Expression | undefined };
export type Update = string | Expression | {
    set?: { [path: string]: Value | Expression | undefined };
    add?: { [path: string]: Value | undefined };
    remove?: readonly string[];
    delete?: { [path: string]: Value | undefined };
};

/* ---- options -------------------------------------------------------------------------------- */

export interface CallOptions {
    signal?: AbortSignal;
    /** After which the call ends with HF_TIMEOUT. */
    timeoutMs?: number;
}
interface Placeholders {
    names?: { [name: string]: string };
    values?: { [name: string]: Value };
}
export interface WriteOptions extends CallOptions, Placeholders {
    if?: Condition;
    returns?: 'none' | 'old' | 'new' | 'updatedOld' | 'updatedNew';
    /** When the condition does not hold, the error has the item. */
    itemOnFailure?: boolean;
}
export type ActionOptions = Omit<WriteOptions, 'returns' | keyof CallOptions>;
export interface GetOptions extends CallOptions {
    consistent?: boolean;
    attributes?: string | readonly string[];
    names?: { [name: string]: string };
}
export interface ScanOptions extends CallOptions, Placeholders {
    index?: string;
    filter?: Condition;
    attributes?: string | readonly string[];
    consistent?: boolean;
    /** Items that are given at most. */
    limit?: number;
    /** Items that one request reads. */
    pageSize?: number;
    /** Where to go on: `next` of a page. */
    start?: Item;
    segment?: number;
    segments?: number;
}
export interface QueryOptions extends Omit<ScanOptions, 'segment' | 'segments'> {
    reverse?: boolean;
}
export type KeyType = 'string' | 'number' | 'binary' | 'S' | 'N' | 'B';
export interface TableOptions extends CallOptions {
    /** The first is the hash key, the second the range key. */
    key: { [name: string]: KeyType };
    indexes?: {
        [name: string]: { key: { [name: string]: KeyType }; attributes?: 'all' | 'keys' | readonly string[]; local?: boolean };
    };
    stream?: 'keys' | 'new' | 'old' | 'both';
    /** The attribute with the time, in seconds, when an item expires. */
    expires?: string;
    ifMissing?: boolean;
}

export interface Page<T> {
    items: T[];
    count: number;
    scanned: number;
    /** Where the next page begins; undefined at the end. */
    next: any;
}

/** Nothing is read before somebody asks. */
export interface Items<T> extends AsyncIterable<T> {
    pages(): AsyncGenerator<Page<T>, void, undefined>;
    all(): Promise<T[]>;
    first(): Promise<T | undefined>;
}

export class Transaction {
    private constructor();
    put<T extends Item = AnyItem>(table: string, item: T, options?: ActionOptions): void;
    update(table: string, key: Item, change: Update, options?: ActionOptions): void;
    delete(table: string, key: Item, options?: ActionOptions): void;
    /** Write only if the condition holds for this item, too. */
    check(table: string, key: Item, condition: Condition, options?: Omit<ActionOptions, 'if'>): void;
    /** An action as DynamoDB has it. */
    add(action: object): void;
    readonly size: number;
}

/* ---- coordination --------------------------------------------------------------------------- */

export interface Lock extends AsyncDisposable {
    readonly name: string;
    /** Grows whenever the lock changes hands: hand it to what the lock protects. */
    readonly fence: bigint;
    readonly data: AnyItem | undefined;
    readonly lost: boolean;
    /** Aborted when the lock is lost. */
    readonly signal: AbortSignal;
    release(): Promise<void>;
    extend(leaseMs?: number): Promise<void>;
    setData(data: Item): Promise<void>;
    state(): Promise<{ state: 'held' | 'expired' | 'stolen'; leftMs?: number; fence: bigint; name: string }>;
    /** Let the transaction happen only while the lock is held. */
    guard(tx: Transaction): Promise<void>;
}
export interface LockOptions extends CallOptions {
    table?: string;
    data?: Item;
    leaseMs?: number;
    heartbeatMs?: number;
    noHeartbeats?: boolean;
    mode?: 'exclusive' | 'shared' | 'permit';
    permits?: number;
    pollMs?: number;
    stuckMs?: number;
    lateMs?: number;
}
export interface LockInfo {
    name: string;
    mode?: 'exclusive' | 'shared' | 'permit';
    fence?: bigint;
    data?: AnyItem;
    holders: { id: string; owner: string; fence: bigint; leaseMs: number; sinceAt?: Date; renewedAt?: Date }[];
}

export interface Attempt {
    readonly tries: number;
    /**
     * Aborted when it is found that another may have begun, and when the database is closed. It may be found late: call
     * renew(), which looks at once, before a step that must not be done twice.
     */
    readonly signal: AbortSignal;
    /** Fails with HF_LOST when another may have begun. */
    renew(): Promise<void>;
}
export interface OnceOptions extends CallOptions {
    user?: string;
    table?: string;
    /** The silence after which an attempt is over. */
    attemptMs?: number;
    heartbeatMs?: number;
    noHeartbeats?: boolean;
    stuckMs?: number;
    keepS?: number;
    pollMs?: number;
}
export interface OnceState {
    state: 'none' | 'running' | 'done' | 'failed';
    key: string;
    user: string;
    result?: any;
    at?: Date;
    owner?: string;
    tries?: number;
}

export interface LimitRule {
    table?: string;
    kind?: 'attempts' | 'fixed' | 'sliding' | 'rate';
    limit: number;
    windowMs: number;
    burst?: number;
    slices?: number;
    lockoutMs?: number;
    lockoutMaxMs?: number;
}
export interface Verdict {
    allowed?: boolean;
    locked?: boolean;
    unreached?: boolean;
    used?: number;
    left?: number;
    retryMs?: number;
    resetMs?: number;
    context?: AnyItem;
    verdict: object;
}
export interface TakeOptions {
    cost?: number;
    context?: Item;
    failOpen?: boolean;
    reachMs?: number;
}
export interface Limit {
    take(options?: TakeOptions): Promise<Verdict>;
    peek(options?: TakeOptions): Promise<Verdict>;
    refund(verdict: Verdict): Promise<void>;
    clear(): Promise<void>;
}

export interface KeyOptions {
    table?: string;
    partition?: string;
    space?: string;
}
export interface AddOptions {
    /** An id: what has it is added once. */
    request?: string;
    floor?: number;
    ceiling?: number;
}
/** Values are numbers, and beyond Number.MAX_SAFE_INTEGER bigints. */
export interface Counter {
    add(by?: number | bigint, options?: AddOptions): Promise<number | bigint>;
    addIn(tx: Transaction, by?: number | bigint, options?: AddOptions): Promise<void>;
    get(): Promise<number | bigint>;
    /** These give the value before. */
    set(value: number | bigint): Promise<number | bigint>;
    reset(): Promise<number | bigint>;
    delete(): Promise<void>;
    /** As a sequence: the first of `count` numbers that nobody else gets. */
    take(count?: number): Promise<number | bigint>;
}
export interface Entry<T> {
    id: string;
    value: T | undefined;
    version?: string;
    expires?: Date;
}
export interface SetOptions {
    ttlS?: number;
    ifAbsent?: boolean;
    ifVersion?: string;
    blind?: boolean;
}
export interface KeyRange {
    prefix?: string;
    from?: string;
    before?: string;
    idContains?: string;
    allSpaces?: boolean;
}
export interface KeyValues<T = any> {
    get(id: string, options?: { consistent?: boolean }): Promise<T | undefined>;
    entry(id: string, options?: { consistent?: boolean }): Promise<Entry<T>>;
    getMany(ids: readonly string[]): Promise<Entry<T>[]>;
    set(id: string, value: T, options?: SetOptions): Promise<Entry<T>>;
    setIn(tx: Transaction, id: string, value: T, options?: SetOptions): Promise<void>;
    /** What it had. */
    delete(id: string, options?: { ifVersion?: string }): Promise<Entry<T>>;
    list(options?: KeyRange & { after?: string; limit?: number; backward?: boolean }): AsyncGenerator<Entry<T>, void, undefined>;
    clear(options?: KeyRange): Promise<number>;
}
export interface ElementSet<T extends string | Numeric | Bytes = string> {
    values(): Promise<Set<T>>;
    has(element: T): Promise<boolean>;
    add(...elements: T[]): Promise<number>;
    remove(...elements: T[]): Promise<number>;
}

/* ---- messages ------------------------------------------------------------------------------- */

export interface NewEvent<Type extends string = string, Payload = unknown> {
    type: Type;
    /** JSON, or a Uint8Array; under a contentType of text/... a string is stored as it is. */
    payload?: Payload;
    /** Events of one key are delivered in order. */
    key?: string;
    id?: string;
    contentType?: string;
    schema?: string;
    headers?: Item;
    source?: string;
    correlation?: string;
    causation?: string;
    aggregate?: string;
    aggregateType?: string;
    tenant?: string;
    destination?: string;
    traceParent?: string;
    traceState?: string;
    urgent?: boolean;
    time?: Date;
    /** Not before that. */
    dueAt?: Date;
}
export interface DeliveredEvent<Type extends string = string, Payload = any> extends NewEvent<Type, Payload> {
    id: string;
    payload: Payload;
    headers?: AnyItem;
}
export interface StoredOutboxEvent extends DeliveredEvent {
    state: 'pending' | 'failed' | 'published';
    ref: string;
    attempts?: number;
    error?: string;
    errorText?: string;
    cause?: string;
    triedAt?: Date;
    nextAt?: Date;
    endedAt?: Date;
}

/** Types of events with their payloads: `interface Events { 'order.placed': { id: string } }`. */
export type EventMap = object;
type NameOf<E> = Extract<keyof E, string>;
type EventOf<E> = { [T in NameOf<E>]: NewEvent<T, E[T]> }[NameOf<E>];
type Untyped = Record<string, any>;

export interface Working {
    workers?: number;
    pollMs?: number;
    maxAttempts?: number;
    backoffMs?: number;
    backoffMaxMs?: number;
    /** Of one delivery. */
    timeoutMs?: number;
    leaseMs?: number;
    heartbeatMs?: number;
    stuckMs?: number;
    owner?: string;
    /**
     * What went wrong apart from a handler, and with `notice` what became of an event. What it throws is an uncaught
     * exception, as in any callback; deliveries go on.
     */
    onError?: (error: Error, notice?: any) => void;
}
export interface RelayOptions extends Working {
    preset?: 'balanced' | 'throughput' | 'reliability';
    batch?: number;
    batchMax?: number;
    lingerMs?: number;
    rate?: number;
    breakerMs?: number;
    failedBlocks?: boolean;
    competing?: boolean;
    onlyType?: string;
    onlyKey?: string;
    onlyTenant?: string;
    wakeByStream?: boolean;
    wakeMs?: number;
    maxCrashes?: number;
}
/** Something that runs until it is stopped. */
export interface Handling extends AsyncDisposable {
    /** Begin nothing more, and wait for what runs, at most so long. */
    stop(options?: { drainMs?: number }): Promise<void>;
    /** When it has ended, by itself or by stop(); with the error that ended it. */
    readonly ended: Promise<HoldfastError | undefined>;
}
export interface Bus<E extends EventMap = Untyped> extends AsyncDisposable {
    on<T extends NameOf<E>>(type: T, handler: (event: DeliveredEvent<T, E[T]>) => unknown): this;
    /** Also "order.*" and "*". */
    on(type: `${string}*`, handler: (event: DeliveredEvent) => unknown): this;
    off(type: string): boolean;
    start(options?: RelayOptions): Promise<this>;
    stop(options?: { drainMs?: number }): Promise<void>;
    metrics(): Promise<Record<string, any>>;
}
export interface OutboxOptions {
    table?: string;
    buckets?: number;
    source?: string;
    stream?: boolean;
    historyS?: number;
    uniqueS?: number;
    blobs?: string;
    blobOver?: number;
    adopt?: boolean;
}
export interface Outbox<E extends EventMap = Untyped> {
    emit(events: EventOf<E> | readonly EventOf<E>[]): Promise<string[]>;
    /** As a part of the transaction. */
    emit(tx: Transaction, events: EventOf<E> | readonly EventOf<E>[]): Promise<string[]>;
    /** Let the relays of this process look for events now: after a transaction of your own. */
    wake(): Promise<void>;
    bus<F extends EventMap = E>(): Bus<F>;
    relay(sink: string | ((events: DeliveredEvent[]) => unknown), options?: RelayOptions): Promise<Handling>;
    stats(options?: { type?: string; key?: string; tenant?: string; limit?: number }): Promise<Record<string, any>>;
    pending(options?: { limit?: number; type?: string; notDueToo?: boolean; retryingToo?: boolean }): AsyncGenerator<StoredOutboxEvent, void, undefined>;
    failed(options?: { limit?: number; type?: string; cause?: string; oldestFirst?: boolean }): AsyncGenerator<StoredOutboxEvent, void, undefined>;
    history(options?: { limit?: number; type?: string; from?: Date; to?: Date; oldestFirst?: boolean }): AsyncGenerator<StoredOutboxEvent, void, undefined>;
    get(id: string): Promise<StoredOutboxEvent | undefined>;
    retry(which?: readonly string[] | { type?: string; cause?: string; limit?: number }): Promise<number>;
    discard(which?: readonly string[] | { type?: string; cause?: string; limit?: number }): Promise<number>;
    replay(options?: { type?: string; key?: string; tenant?: string; from?: Date; to?: Date; limit?: number }): Promise<number>;
}

export interface Change<T = AnyItem> {
    change: string;
    key: AnyItem;
    old?: T;
    new?: T;
    sequence: string;
    time: Date;
    expired?: boolean;
}
export interface ChangesOptions extends Omit<Working, 'heartbeatMs' | 'timeoutMs' | 'backoffMaxMs'> {
    name?: string;
    positions?: string;
    start?: 'first' | 'end' | 'after' | 'time';
    from?: Date;
    batch?: number;
    checkpointMs?: number;
    partition?: string;
    untilEnd?: boolean;
}

export interface StoredRecord {
    account: string;
    runTime: string;
    item: AnyItem;
    state: 'unprocessed' | 'processed' | 'failed';
    fence?: bigint;
    attempts?: number;
    failures?: number;
    errorText?: string;
}
export interface ProcessOptions extends Working {
    maxRetries?: number;
    noRetries?: boolean;
    limit?: number;
    maxFailures?: number;
    accountOrder?: boolean;
    failedBlocks?: boolean;
    leaveClaimed?: boolean;
    forever?: boolean;
}
export interface Records {
    put(record: Item, options?: { onlyNew?: boolean }): Promise<void>;
    putIn(tx: Transaction, record: Item): Promise<void>;
    get(account: string, runTime: string): Promise<StoredRecord | undefined>;
    mark(account: string, runTime: string): Promise<void>;
    reset(account: string, runTime: string): Promise<void>;
    delete(account: string, runTime: string): Promise<void>;
    count(state: StoredRecord['state']): Promise<number>;
    retryFailed(options?: { limit?: number }): Promise<number>;
    list(options?: { state?: StoredRecord['state']; account?: string; limit?: number; newestFirst?: boolean }): AsyncGenerator<StoredRecord, void, undefined>;
    process(handler: (record: StoredRecord) => unknown, options?: ProcessOptions): Promise<Handling>;
}
export interface Blobs {
    put(bytes: Uint8Array): Promise<string>;
    get(digest: string): Promise<Uint8Array | undefined>;
    size(digest: string): Promise<number | undefined>;
    delete(digest: string): Promise<void>;
}

/* ---- event store ---------------------------------------------------------------------------- */

export interface StreamEvent<Type extends string = string, Data = any> {
    type: Type;
    /** JSON, or a Uint8Array; under a contentType of text/... a string is stored as it is. */
    data?: Data;
    id?: string;
    contentType?: string;
    schema?: number;
    time?: Date;
    meta?: Item;
    causation?: string;
    correlation?: string;
    compensates?: string;
}
export interface StoredEvent<Type extends string = string, Data = any> extends StreamEvent<Type, Data> {
    id: string;
    data: Data;
    /** "order/7" */
    stream: string;
    version: number;
    /** In the order of all events. */
    position: string;
    time: Date;
    meta?: AnyItem;
}
export interface ReadEvent<Type extends string = string, Data = any> extends StoredEvent<Type, Data> {
    /** It was handled. The end of the loop's body says the same. */
    done(): Promise<void>;
    /** It was not: it comes again. */
    fail(error: Error): Promise<void>;
}
export type Expect = number | bigint | 'any' | 'none' | 'exists';
export interface Appended {
    first: number;
    last: number;
    version: number;
    ids: string[];
    position: string;
    repeated: boolean;
}
export interface SubscribeOptions extends Omit<Working, 'workers' | 'heartbeatMs'> {
    domain?: string;
    stream?: string;
    type?: string;
    archived?: boolean;
    start?: 'first' | 'end' | 'after' | 'time';
    after?: string;
    from?: Date;
    batchMax?: number;
    checkpointMs?: number;
    settleMs?: number;
    /** An event that fails for good is parked, and the next one is handled. */
    park?: boolean;
    noPayload?: boolean;
}
export interface ConsumeOptions extends Omit<Working, 'heartbeatMs'> {
    ordered?: boolean;
    groupTable?: string;
    buckets?: number;
    domain?: string;
    stream?: string;
    type?: string;
    start?: 'first' | 'end' | 'after' | 'time';
    after?: string;
    from?: Date;
    noFeed?: boolean;
}
export interface Reading extends AsyncIterable<ReadEvent> {
    stop(): Promise<void>;
}
export interface AggregateDefinition<State, Event extends StreamEvent, Commands extends Record<string, any>> {
    domain: string;
    initial: State | (() => State);
    evolve(state: State, event: Event & { version: number }): State;
    decide: { [C in keyof Commands]: (state: State, command: Commands[C]) => Event | readonly Event[] | void | Promise<Event | readonly Event[] | void> };
}
export interface Aggregate<State, Event extends StreamEvent, Commands extends Record<string, any>> {
    load(id: string): Promise<{ state: State; version: number }>;
    execute<C extends Extract<keyof Commands, string>>(id: string, command: C, argument?: Commands[C], options?: { retries?: number }):
        Promise<{ state: State; version: number; events: Event[] }>;
}
export interface EventStoreOptions {
    table?: string;
    shards?: number;
    blobBytes?: number;
    noChain?: boolean;
    heads?: number;
    adopt?: boolean;
}
export interface EventStore {
    append(stream: string, events: StreamEvent | readonly StreamEvent[], options?: { expect?: Expect }): Promise<Appended>;
    appendIn(tx: Transaction, stream: string, events: StreamEvent | readonly StreamEvent[], options?: { expect?: Expect }): Promise<Appended>;
    appendAll(appends: readonly { stream: string; events: StreamEvent | readonly StreamEvent[]; expect?: Expect }[]): Promise<Appended[]>;
    read(stream: string, options?: { from?: number | Date; to?: number; until?: Date; backward?: boolean; limit?: number; noPayload?: boolean }):
        AsyncGenerator<StoredEvent, void, undefined>;
    all(options?: { after?: string; from?: Date; until?: string; domain?: string; type?: string; limit?: number; archived?: boolean; noPayload?: boolean; settleMs?: number }):
        AsyncGenerator<StoredEvent, void, undefined>;
    get(id: string): Promise<StoredEvent | undefined>;
    causedBy(id: string): Promise<StoredEvent[]>;
    correlated(id: string): Promise<StoredEvent[]>;
    stream(stream: string): Promise<{ version: number; first: number; archived?: boolean; deleted?: boolean }>;
    truncate(stream: string, before: number): Promise<void>;
    delete(stream: string, options?: { expect?: Expect }): Promise<void>;
    verify(): Promise<{ streams?: number; events?: number; badDomain?: string; badId?: string; badVersion?: number }>;
    subscribe(name: string, handler: (event: StoredEvent) => unknown, options?: SubscribeOptions): Promise<Handling>;
    subscribe(name: string, options?: SubscribeOptions): Reading;
    consume(name: string, handler: (event: StoredEvent) => unknown, options?: ConsumeOptions): Promise<Handling>;
    consume(name: string, options?: ConsumeOptions): Reading;
    subscription(name: string): Promise<Record<string, any>>;
    rebuild(name: string, options?: { after?: string }): Promise<void>;
    forget(name: string): Promise<void>;
    parked(name: string, options?: { after?: string; limit?: number }): Promise<Record<string, any>[]>;
    replay(name: string, positions?: readonly string[]): Promise<number>;
    discard(name: string, positions?: readonly string[]): Promise<number>;
    aggregate<State, Event extends StreamEvent = StreamEvent, Commands extends Record<string, any> = Record<string, any>>(
        definition: AggregateDefinition<State, Event, Commands>): Aggregate<State, Event, Commands>;
    /** A view: each event counts once, as its position is part of the transaction. */
    project(name: string, apply: (tx: Transaction, event: StoredEvent) => unknown, options?: SubscribeOptions & { table?: string }): Promise<Handling>;
}

/* ---- the database --------------------------------------------------------------------------- */

export interface OpenOptions {
    readOnly?: boolean;
    /** Our name in lists of holders. */
    owner?: string;
    region?: string;
}

/** For `new DynamoDBClient(db.clientConfig())`. */
export interface ClientConfig {
    endpoint: string;
    region: string;
    credentials: { accessKeyId: string; secretAccessKey: string };
}
export interface RequestHandler {
    readonly metadata: { handlerProtocol: string };
    handle(request: any, options?: any): Promise<{ response: any }>;
    updateHttpClientConfig(key: any, value: any): void;
    httpHandlerConfigs(): any;
    destroy(): void;
}

export class Database implements AsyncDisposable {
    private constructor();
    readonly url: string;
    /** An operation of DynamoDB, with DynamoDB's JSON. */
    call(operation: string, request?: object, options?: CallOptions): Promise<any>;

    get<T = AnyItem>(table: string, key: Item, options?: GetOptions): Promise<T | undefined>;
    put<T extends Item = AnyItem>(table: string, item: T, options?: WriteOptions): Promise<T | undefined>;
    update<T = AnyItem>(table: string, key: Item, change: Update, options?: WriteOptions): Promise<T | undefined>;
    delete<T = AnyItem>(table: string, key: Item, options?: WriteOptions): Promise<T | undefined>;
    query<T = AnyItem>(table: string, key: Condition, options?: QueryOptions): Items<T>;
    scan<T = AnyItem>(table: string, options?: ScanOptions): Items<T>;
    count(table: string, key: Condition, options?: QueryOptions): Promise<number>;
    /** PartiQL. */
    execute<T = AnyItem>(statement: string, parameters?: readonly Value[], options?: CallOptions & { consistent?: boolean; limit?: number; pageSize?: number }): Items<T>;
    getMany<T = AnyItem>(table: string, keys: readonly Item[], options?: CallOptions & { consistent?: boolean }): Promise<(T | undefined)[]>;
    writeMany(table: string, writes: { put?: readonly Item[]; delete?: readonly Item[] }, options?: CallOptions): Promise<void>;
    /** All or nothing: written when the promise of `work` has resolved. */
    transaction<R>(work: (tx: Transaction) => R | Promise<R>, options?: CallOptions & { token?: string }): Promise<R>;
    getTogether<T = AnyItem>(gets: readonly { table: string; key: Item; attributes?: string | readonly string[] }[], options?: CallOptions): Promise<(T | undefined)[]>;

    createTable(table: string, options: TableOptions): Promise<void>;
    deleteTable(table: string, options?: CallOptions & { ifExists?: boolean }): Promise<void>;
    tables(options?: CallOptions): AsyncGenerator<string, void, undefined>;

    lock(name: string, options?: LockOptions): Promise<Lock>;
    tryLock(name: string, options?: LockOptions): Promise<Lock | undefined>;
    inspectLock(name: string, options?: { table?: string }): Promise<LockInfo>;
    once<R>(key: string, work: (attempt: Attempt) => R | Promise<R>, options?: OnceOptions): Promise<R>;
    onceState(key: string, options?: { user?: string; table?: string }): Promise<OnceState>;
    onceClear(key: string, options?: { user?: string; table?: string }): Promise<boolean>;
    limit(name: string, rule: LimitRule): Limit;
    counter(id: string, options?: KeyOptions): Counter;
    kv<T = any>(options?: KeyOptions): KeyValues<T>;
    set<T extends string | Numeric | Bytes = string>(id: string, options?: KeyOptions): ElementSet<T>;

    outbox<E extends EventMap = Untyped>(options?: OutboxOptions): Outbox<E>;
    changes<T = AnyItem>(table: string, handler: (changes: Change<T>[]) => unknown, options?: ChangesOptions): Promise<Handling>;
    records(options?: { table?: string; [option: string]: any }): Records;
    blobs(store: string): Blobs;
    events(options?: EventStoreOptions): EventStore;

    /** For `new DynamoDBClient({ requestHandler })`: it runs in this process. */
    requestHandler(): RequestHandler;
    /** The same with an endpoint, a region, credentials, and a signer that signs nothing. */
    clientConfig(): ClientConfig & { requestHandler: RequestHandler; signer: { sign<T>(request: T): Promise<T> } };

    /** Cancels what is running, waits for it, and closes the database. */
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

/** "embedded:PATH", "memory:", "http://HOST:PORT" or "dynamodb://REGION" */
export function open(url: string, options?: OpenOptions): Promise<Database>;

/* ---- a server for tests --------------------------------------------------------------------- */

export interface ServerOptions {
    /** A directory for the data; without it they are in memory. */
    path?: string;
    /** By default a free one. */
    port?: number;
    /** More options of `holdfast serve`. */
    args?: readonly string[];
    env?: { [name: string]: string };
}
export interface Server extends AsyncDisposable {
    readonly endpoint: string;
    readonly region: string;
    readonly credentials: { accessKeyId: string; secretAccessKey: string };
    readonly env: { [name: string]: string };
    readonly pid: number;
    /** The newest lines of its log. */
    readonly log: string[];
    clientConfig(): ClientConfig;
    /** Keep the whole database under that name. */
    snapshot(name?: string): Promise<void>;
    /** Set the whole database back to it. */
    restore(name?: string): Promise<void>;
    /** Move its clock: by seconds, to a time, or with null back to the true one. */
    clock(to: number | Date | null): Promise<any>;
    maintain(): Promise<any>;
    faults(faults: readonly object[]): Promise<any>;
    stop(): Promise<void>;
}
export function startServer(options?: ServerOptions): Promise<Server>;

declare const holdfast: {
    open: typeof open; Database: typeof Database; Transaction: typeof Transaction; HoldfastError: typeof HoldfastError;
    PermanentError: typeof PermanentError; NumberValue: typeof NumberValue; startServer: typeof startServer;
    expr: typeof expr; attr: typeof attr; eq: typeof eq; ne: typeof ne; lt: typeof lt; le: typeof le; gt: typeof gt;
    ge: typeof ge; between: typeof between; beginsWith: typeof beginsWith; contains: typeof contains;
    oneOf: typeof oneOf; exists: typeof exists; missing: typeof missing;
};
export default holdfast;
