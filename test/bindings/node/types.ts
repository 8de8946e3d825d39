/*
 * types.ts: what the types allow and what they refuse. It is compiled, never run; a line below
 * @ts-expect-error that compiles is a failure, too.
 */
import holdfast, {
    open, startServer, HoldfastError, PermanentError, NumberValue, expr, attr, between, missing, exists,
    type Database, type Lock, type StoredEvent,
} from 'holdfast';
import { OutboxEventBus, DynamoDBAwsSdkOutbox, type OutboxError } from 'holdfast/outbox-event-bus';
import {
    makeEventStore, sideEffectFinishedPromise, EventStoreRepo, EventOutputState, ConcurrencyError, type EventFlow, type AggregateEventFlow,
    type SuccessEventObserver,
} from 'holdfast/event-store';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBStreamsClient } from '@aws-sdk/client-dynamodb-streams';

interface Order { customer: string; day: number; total?: number; tags?: Set<string> }
interface Events { 'order.placed': { id: string; total: number }; 'order.paid': { id: string } }

export async function items(db: Database) {
    await db.put<Order>('orders', { customer: 'ann', day: 1 }, { if: { customer: missing() } });
    const order: Order | undefined = await db.get<Order>('orders', { customer: 'ann', day: 1 });
    for await (const each of db.query<Order>('orders', { customer: 'ann', day: between(1, 3) }, { reverse: true }))
        each.total?.toFixed();
    const all: Order[] = await db.scan<Order>('orders', { filter: expr`${attr('total')} > ${5n}` }).all();
    await db.update('orders', { customer: 'ann' }, { set: { total: expr`${attr('total')} + ${1}` }, remove: ['tags'] });
    const n: number = await db.transaction(async (tx) => {
        tx.put('orders', { customer: 'ann', big: new NumberValue('1.5') });
        tx.check('orders', { customer: 'ann' }, { day: exists() });
        return 5;
    });
    // @ts-expect-error a slip in the name of an option
    await db.put('orders', { customer: 'ann' }, { condition: 'x' });
    // @ts-expect-error a transaction returns no values
    await db.transaction((tx) => tx.put('orders', {}, { returns: 'old' }));
    // @ts-expect-error there is no such type of a key
    await db.createTable('orders', { key: { id: 'text' } });
    // @ts-expect-error it may be undefined
    (await db.get<Order>('orders', {})).total;
    // @ts-expect-error an item is an object
    await db.put('orders', 'text');
    return [order, all, n];
}

export async function patterns(db: Database) {
    const held: Lock = await db.lock('nightly', { timeoutMs: 10_000 });
    const fence: bigint = held.fence;
    const bill: { paid: boolean } = await db.once('invoice-7', async (attempt) => ({ paid: !attempt.signal.aborted }));
    const box = db.outbox<Events>();
    await box.emit({ type: 'order.placed', payload: { id: '7', total: 5 } });
    await db.transaction((tx) => box.emit(tx, [{ type: 'order.paid', payload: { id: '7' } }]));
    // @ts-expect-error no such event
    await box.emit({ type: 'order.lost', payload: {} });
    // @ts-expect-error not its payload
    await box.emit({ type: 'order.placed', payload: { id: 7 } });
    const bus = box.bus();
    bus.on('order.placed', (event) => event.payload.total.toFixed()).on('order.*', (event) => event.payload.anything);
    // @ts-expect-error no such member
    bus.on('order.paid', (event) => event.payload.total);
    // @ts-expect-error no such event
    bus.on('order.lost', () => {});
    await bus.start({ workers: 4, onError: (error: Error) => console.error(error) });
    const anything = db.outbox();
    await anything.emit({ type: 'x', payload: [1] });
    anything.bus().on('x', (event) => event.payload.whatever);
    const kv = db.kv<{ cart: string[] }>({ space: 'session' });
    const cart: string[] | undefined = (await kv.get('ann'))?.cart;
    const allowed: boolean | undefined = (await db.limit('login', { kind: 'fixed', limit: 5, windowMs: 1000 }).take()).allowed;
    // @ts-expect-error no such kind
    db.limit('login', { kind: 'other', limit: 5, windowMs: 1000 });
    throw new PermanentError(String([fence, bill, cart, allowed]));
}

export async function eventStore(db: Database) {
    const store = db.events();
    await store.append('order/7', { type: 'placed', data: { total: 5 } }, { expect: 0 });
    for await (const event of store.subscribe('mailer', { type: 'placed' }))
        await event.done();
    const running = await store.subscribe('mailer', (event: StoredEvent) => event.version.toFixed());
    await running.stop({ drainMs: 100 });
    type Placed = { type: 'placed'; data: number } | { type: 'closed' };
    const orders = store.aggregate<{ total: number }, Placed, { place: number; close: void }>({
        domain: 'order', initial: { total: 0 },
        evolve: (state, event) => (event.type === 'placed' ? { total: state.total + event.data } : state),
        decide: { place: (_, total) => ({ type: 'placed', data: total }), close: () => [{ type: 'closed' }] },
    });
    const { state } = await orders.execute('7', 'place', 5);
    state.total.toFixed();
    // @ts-expect-error no such command
    await orders.execute('7', 'open');
    // @ts-expect-error not its argument
    await orders.execute('7', 'place', 'five');
}

export async function sdk(db: Database) {
    const client = new DynamoDBClient(db.clientConfig());
    const streams = new DynamoDBStreamsClient({ ...db.clientConfig(), maxAttempts: 1 });
    const server = await startServer({ args: ['--stream-shards', '1'] });
    new DynamoDBClient(server.clientConfig());
    try {
        await server.stop();
    } catch (error) {
        if (error instanceof HoldfastError && error.code === 'HF_CONDITION')
            return [error.item, error.retryable, error.mayHaveHappened];
    }
    return [client, streams, holdfast.open === open];
}

export async function library(db: Database) {
    const bus = new OutboxEventBus(new DynamoDBAwsSdkOutbox({ client: new DynamoDBClient(db.clientConfig()), tableName: 'my-events' }),
        (error: OutboxError) => console.error(error.context?.event?.type, error));
    bus.on('user.created', async (event) => event.occurredAt.getTime()).addMiddleware(async (context, next) => next({ dropEvent: !context.event.id }));
    const items: any[] = [];
    await bus.emit({ type: 'user.created', payload: { id: 1 } }, items);
    // @ts-expect-error an event has a type
    await bus.emit({ payload: 1 });
    return (await bus.getFailedEvents()).map((event) => event.retryCount.toFixed());
}

export async function flows(db: Database) {
    interface Placed { id: string; total: number }
    const placed: EventFlow<Placed> = {
        domain: 'order', type: 'placed', schemaVersion: 2,
        receive: (es) => (input) => es.receive(placed)(input),
        validate: (event) => (event.payload.total < 0 ? new Error('less than nothing') : undefined),
        apply: (event, tx) => tx.update('totals', { id: event.payload.id }, { add: { total: event.payload.total } }),
        sideEffect: async (event, { attempt }) => [{ domain: 'mail', type: 'sent', payload: { to: event.identifier, attempt } }],
        // @ts-expect-error no such member
        getShardKey: (event) => event.payload.nothing,
    };
    const withdrawn: AggregateEventFlow<number, { money: number }> = {
        domain: 'account', type: 'withdrawn',
        aggregate: { initialState: { money: 0 }, reducer: (state, event) => ({ money: state.money - event.payload }) },
        validate: (event, state) => { if (state.money < event.payload) throw new Error('not enough'); },
        // @ts-expect-error the new state is missing
        apply: () => 5,
    };
    const observer: SuccessEventObserver<Placed> = { filters: [{ domain: 'order', type: 'placed' }], priority: 1, apply: (event) => event.payload.id };
    const repo = new EventStoreRepo(new DynamoDBClient(db.clientConfig()), undefined, { tableNamePrefix: 'prod-' });
    // @ts-expect-error a slip in the name of an option
    new EventStoreRepo({ db, tablePrefix: 'x' });
    const store = await makeEventStore(repo, { mainQueueConcurrent: 4 })([placed, withdrawn], [observer]);
    const [created] = await store.submit(placed, { payload: { id: '7', total: 5 } });
    await sideEffectFinishedPromise(store);
    store.output$.subscribe(({ state, event }) => state === EventOutputState.success && event.id);
    const end: () => void = store.on('processed', ({ error }) => console.error(error));
    end();
    try {
        await repo.storeEvents([created], { expectedSequence: 0 });
    } catch (error) {
        if (error instanceof ConcurrencyError)
            return error.actualVersion.toFixed();
    }
    return (await store.revert(created.id)).compensatingEvents.length.toFixed();
}
