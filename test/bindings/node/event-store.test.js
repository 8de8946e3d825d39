/*
 * event-store.test.js: code that was written for the schemeless event store and its adapter for DynamoDB.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const http = require('http');
const path = require('path');
const { once } = require('events');
const { spawn } = require('child_process');
const { open, startServer } = require('holdfast');
const {
    makeEventStore, sideEffectFinishedPromise, EventStoreRepo, makeEventStoreCore, exportEventsToArray, importEventsFromArray, createSnapshot,
    parseSnapshot, ConcurrencyError, FlowNotFoundError, AggregateError, ValidationError, RevertError, ShutdownTimeoutError,
    InvalidStreamBatchError, EventCursorNotFoundError, EventOutputState, SideEffectsState,
} = require('holdfast/event-store');

const hasSdk = fs.existsSync(path.join(__dirname, '../node_modules/@aws-sdk'));
const hasRx = fs.existsSync(path.join(__dirname, '../node_modules/rxjs'));
const noSdk = !hasSdk && 'the AWS SDK cannot be fetched';
const QUICK = { sideEffects: { pollMs: 5, backoffMs: 1, backoffMaxMs: 5 } };

let server;
test.before(async () => (server = await startServer()));
test.after(() => server.stop());

/* A memory database with a store of these flows; closed at the end of the test. */
async function fresh(t, flows, { observers, options, db: given } = {}) {
    const db = given ?? await open('memory:');
    const repo = new EventStoreRepo({ db });
    const store = await makeEventStore(repo, { ...QUICK, ...options })(flows, observers);
    t.after(async () => {
        await store.shutdown(30000).catch(() => {});
        await db.close();
    });
    return { db, repo, store };
}

const plain = (domain, type, more) => {
    const flow = { domain, type, receive: (eventStore) => (input) => eventStore.receive(flow)(input), ...more };
    return flow;
};
async function all(pages) {
    const list = [];
    for await (const page of await pages)
        list.push(...page);
    return list;
}
/* What the events of an output were, until there are n. */
function outputs(store) {
    const list = [];
    store.on('processed', ({ state, event, error }) => list.push([state, `${event.domain}/${event.type}`, error?.message]));
    return list;
}

/* ---- the code of its documents, with its imports changed -------------------------------------- */

/* Of the documents of the adapter and of the store; `dynamodbClient` is given. */
async function documented(dynamodbClient, s3Client) {
    const repo = new EventStoreRepo(dynamodbClient, s3Client, {
        tableNamePrefix: 'prod-',
        s3BucketName: 'my-event-archive',
        eventStoreTableReadCapacityUnits: 20,
        eventStoreTableWriteCapacityUnits: 10,
    });
    const registered = [], transferred = [], mails = [];
    const userRegisteredFlow = {
        domain: 'user',
        type: 'registered',
        receive: (eventStore) => async (eventInput) => eventStore.receive(userRegisteredFlow)(eventInput),
        validate: async (event) => {
            if (!event.payload.email) {
                throw new Error('email is required');
            }
        },
        apply: async (event) => {
            registered.push(event.payload.id);
        },
        sideEffect: async (event) => {
            mails.push(event.payload.email);
        },
    };
    const orderPlacedFlow = {
        domain: 'order',
        type: 'placed',
        receive: (eventStore) => eventStore.receive(orderPlacedFlow),
        createConsequentEvents: (parentEvent) => [
            {
                domain: 'account',
                type: 'transfer',
                payload: {
                    fromAccountId: parentEvent.payload.buyerAccountId,
                    toAccountId: parentEvent.payload.sellerAccountId,
                    amount: parentEvent.payload.total,
                },
            },
        ],
    };
    const transferFlow = { domain: 'account', type: 'transfer', receive: (es) => es.receive(transferFlow), apply: (event) => transferred.push(event.payload.amount) };
    const seen = [];
    const logObserver = {
        filters: [{ domain: 'user', type: 'registered' }],
        priority: 100,
        apply: async (event) => {
            seen.push(event.payload.email);
        },
    };

    const buildStore = makeEventStore(repo);
    const eventStore = await buildStore([userRegisteredFlow, orderPlacedFlow, transferFlow], [logObserver]);
    const [created] = await eventStore.receive(userRegisteredFlow)({
        payload: { id: '123', email: 'user@example.com' },
    });
    await sideEffectFinishedPromise(eventStore);
    assert.match(created.id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert(created.created instanceof Date);
    assert.strictEqual(created.correlationId, created.id);
    assert.deepStrictEqual([registered, mails, seen], [['123'], ['user@example.com'], ['user@example.com']]);
    await assert.rejects(userRegisteredFlow.receive(eventStore)({ payload: { id: '124' } }), { message: 'email is required' });

    const [placed, transfer] = await orderPlacedFlow.receive(eventStore)({
        payload: { buyerAccountId: 'a', sellerAccountId: 'b', total: 5 }, identifier: 'order-1',
    });
    assert.deepStrictEqual([transfer.causationId, transfer.correlationId, transfer.identifier], [placed.id, placed.id, 'order-1']);
    assert.deepStrictEqual(transfer.payload, { fromAccountId: 'a', toAccountId: 'b', amount: 5 });

    await eventStore.replay();
    assert.deepStrictEqual([registered, mails, seen, transferred], [['123', '123'], ['user@example.com'], ['user@example.com', 'user@example.com'], [5, 5]]);
    const exported = await exportEventsToArray(eventStore.eventStoreRepo);
    assert.deepStrictEqual(exported.map(({ type }) => type), ['registered', 'placed', 'transfer']);
    await eventStore.shutdown();
}

test('the documented code, in this process', { skip: noSdk }, async () => {
    const { DynamoDBClient } = require('@aws-sdk/client-dynamodb');
    const db = await open('memory:');
    await documented(new DynamoDBClient(db.clientConfig()), { config: {} });
    await db.close();
});

test('the documented code, over HTTP to a server', { skip: noSdk }, async () => {
    const { DynamoDBClient } = require('@aws-sdk/client-dynamodb');
    await documented(new DynamoDBClient(server.clientConfig()), undefined);
    const db = await open(server.endpoint);
    assert.strictEqual((await db.call('DescribeTable', { TableName: 'prod-events' })).Table.TableStatus, 'ACTIVE');
    await db.close();
});

test('a script ends by itself when its side effects are done', async () => {
    const child = spawn(process.execPath, ['-e', `
        const { open } = require('holdfast');
        const { makeEventStore, EventStoreRepo } = require('holdfast/event-store');
        (async () => {
            const flow = { domain: 'd', type: 't', sideEffect: async () => console.log('done') };
            const store = await makeEventStore(new EventStoreRepo({ db: await open('memory:') }))([flow]);
            await store.submit(flow, { payload: 1 });
        })();`], { cwd: __dirname, stdio: ['ignore', 'pipe', 'inherit'] });
    let printed = '';
    child.stdout.on('data', (text) => (printed += text));
    const [code] = await once(child, 'close');
    assert.deepStrictEqual([code, printed], [0, 'done\n']);
});

/* ---- flows ------------------------------------------------------------------------------------ */

test('a tree: depth first, all of it or nothing, canceled backwards', async (t) => {
    const steps = [];
    let bad = false;
    const flow = (type, children) => plain('nest', type, {
        apply: (event) => steps.push(`apply ${type}`),
        cancelApply: (event) => steps.push(`cancel ${type}`),
        validate: () => (bad && type === 'f' ? new Error('f is bad') : undefined),
        createConsequentEvents: () => children.map((each) => ({ domain: 'nest', type: each, payload: null })),
    });
    const flows = [flow('a', ['b', 'e']), flow('b', ['c', 'd']), flow('c', []), flow('d', []), flow('e', ['f', 'g']), flow('f', []), flow('g', [])];
    const { store, repo } = await fresh(t, flows);
    const output = outputs(store);
    const events = await store.receive(flows[0])({ payload: 0, identifier: 'x' });
    assert.strictEqual(events.map(({ type }) => type).join(''), 'abcdefg');
    assert.strictEqual(steps.join(','), 'apply a,apply b,apply c,apply d,apply e,apply f,apply g');
    assert.deepStrictEqual(events.map(({ sequence }) => sequence), [1, 2, 3, 4, 5, 6, 7]);
    const ids = events.map(({ id }) => id);
    assert.deepStrictEqual([...ids].sort(), ids);
    assert.deepStrictEqual(output.map(([state]) => state), Array(7).fill(EventOutputState.success));
    output.length = steps.length = 0;
    bad = true;
    const error = await store.receive(flows[0])({ payload: 0, identifier: 'x' }).catch((thrown) => thrown);
    assert(error instanceof ValidationError);
    assert.strictEqual(new Error('x') instanceof ValidationError, false);
    assert.deepStrictEqual([error.message, error.flow.type], ['f is bad', 'f']);
    assert.strictEqual(steps.filter((each) => /cancel/.test(each)).join(','), 'cancel e,cancel d,cancel c,cancel b,cancel a');
    assert.deepStrictEqual(output.map(([state, which]) => [state, which]), [
        ['Event:invalid', 'nest/f'], ...['a', 'b', 'c', 'd', 'e'].map((type) => ['Event:canceled', `nest/${type}`])]);
    assert.strictEqual((await all(repo.getAllEvents(3))).length, 7);
});

test('mistakes are refused', async (t) => {
    const loop = plain('l', 'loop', { createConsequentEvents: () => [{ domain: 'l', type: 'loop', payload: 1 }] });
    const nested = plain('l', 'nested', { apply: () => store.submit(loop, { payload: 1 }) });
    const renames = plain('l', 'renames', { preApply: (event) => ({ ...event, type: 'other' }) });
    const lost = plain('l', 'lost', { createConsequentEvents: () => [{ domain: 'l', type: 'nothing', payload: 1 }] });
    const { store } = await fresh(t, [loop, nested, renames, lost]);
    await assert.rejects(store.submit(loop, { payload: 1 }), /deeper than 10: l\/loop follows from itself\?/);
    await assert.rejects(store.submit(nested, { payload: 1 }), /would wait for itself: return l\/loop from/);
    await assert.rejects(store.submit(renames, { payload: 1 }), /has changed the type/);
    await assert.rejects(store.submit(lost, { payload: 1 }), FlowNotFoundError);
    await assert.rejects(store.submit(plain('no', 'flow'), { payload: 1 }), FlowNotFoundError);
    assert.throws(() => store.on('done', () => {}), /on\("processed"/);
    const build = makeEventStore(store.eventStoreRepo);
    await assert.rejects(build([loop, loop]), /two flows for l\/loop/);
    await assert.rejects(build([{ domain: 'x' }]), /a domain and a type/);
    await assert.rejects(makeEventStore({ init() {} })([]), /needs an EventStoreRepo/);
    assert.throws(() => new EventStoreRepo({}), /needs a client/);
});

test('preApply, upcast, meta, values that are falsy or look like JSON', async (t) => {
    const versions = [];
    const v1 = plain('up', 'cast', { preApply: (event) => ({ ...event, payload: { price: event.payload } }) });
    const { db, store, repo } = await fresh(t, [v1, plain('up', 'value')]);
    const [first] = await store.submit(v1, { payload: 5, identifier: 'i', meta: { by: 'ann', deep: { list: [1, null, 'x'] } } });
    assert.deepStrictEqual(first.payload, { price: 5 });
    for (const payload of [0, false, '', null, '{"a":1}', [], 'text'])
        await store.receive(plain('up', 'value'))({ payload, identifier: 'v' });
    assert.deepStrictEqual((await repo.getStreamEvents('up', 'v')).map(({ payload }) => payload), [0, false, '', null, '{"a":1}', [], 'text']);
    const v2 = plain('up', 'cast', {
        schemaVersion: 2,
        upcast: (event, from) => ({ ...event, payload: { price: { amount: event.payload.price, from } } }),
        apply: (event) => versions.push([event.payload, event.meta]),
    });
    const later = await makeEventStore(new EventStoreRepo({ db }), QUICK)([v2, plain('up', 'value')]);
    await later.replay();
    assert.deepStrictEqual(versions, [[{ price: { amount: 5, from: 1 } }, { by: 'ann', deep: { list: [1, null, 'x'] }, schemaVersion: 2 }]]);
});

test('what apply() writes to its transaction is there with the event, and not without', async (t) => {
    let fail = false;
    const flow = plain('bank', 'paid', {
        apply: (event, tx) => {
            tx.update('balances', { name: event.identifier }, { add: { money: event.payload } });
        },
        createConsequentEvents: () => {
            if (fail)
                throw new Error('no');
            return [];
        },
    });
    const db = await open('memory:');
    await db.createTable('balances', { key: { name: 'string' } });
    const { store, repo } = await fresh(t, [flow], { db });
    await Promise.all(Array.from({ length: 20 }, () => store.submit(flow, { payload: 1, identifier: 'ann' })));
    fail = true;
    await assert.rejects(store.submit(flow, { payload: 1, identifier: 'ann' }), /^Error: no$/);
    assert.strictEqual((await db.get('balances', { name: 'ann' })).money, 20);
    assert.strictEqual(await repo.getStreamSequence('bank', 'ann'), 20);
});

test('aggregates: two stores compete, and none decides on an old state', async (t) => {
    const flow = plain('account', 'withdrawn', {
        aggregate: { initialState: { money: 10 }, reducer: (state, event) => ({ money: state.money - event.payload }) },
        validate: (event, state) => {
            if (state.money < event.payload)
                throw new Error('not enough money');
        },
        apply: (event, state) => ({ money: state.money - event.payload }),
    });
    const seen = [];
    const observers = [{ filters: [], aggregate: true, apply: (event, state) => seen.push(state.money) }];
    const { db, store, repo } = await fresh(t, [flow], { observers });
    const other = await makeEventStore(new EventStoreRepo({ db }), QUICK)([flow]);
    const outcomes = await Promise.allSettled(Array.from({ length: 24 }, (_, i) =>
        (i % 2 ? store : other).submit(flow, { payload: 1, identifier: 'ann' })));
    const refused = outcomes.filter(({ status }) => status === 'rejected').map(({ reason }) => reason.message);
    assert.deepStrictEqual(refused, Array(14).fill('not enough money'));
    const { state, sequence } = await store.getAggregate('account', 'ann', flow.aggregate.reducer, flow.aggregate.initialState);
    assert.deepStrictEqual([state, sequence], [{ money: 0 }, 10]);
    await repo.saveSnapshot({ domain: 'account', identifier: 'ann', state: { money: 100 }, sequence: 10 });
    assert.deepStrictEqual((await store.getAggregate('account', 'ann', flow.aggregate.reducer, {})).state, { money: 100 });
    await assert.rejects(store.submit(flow, { payload: 1 }), (error) => error instanceof AggregateError && error.reason === 'no_identifier');
    const forgets = plain('account', 'forgets', { aggregate: flow.aggregate, apply: () => {} });
    const third = await makeEventStore(new EventStoreRepo({ db }), QUICK)([forgets]);
    await assert.rejects(third.submit(forgets, { payload: 1, identifier: 'x' }), { reason: 'apply_must_return_state' });
    seen.length = 0;
    await store.replay();
    assert.deepStrictEqual(seen, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
});

test('lanes: one at a time for a key, several keys at once', async (t) => {
    let running = 0, most = 0;
    const order = [];
    const gate = [];
    const flow = plain('lane', 't', {
        getShardKey: (event) => event.payload.key,
        apply: async (event) => {
            most = Math.max(most, ++running);
            if (event.payload.n === 0)
                await new Promise((resolve) => {
                    gate.push(resolve);
                    if (gate.length === 2)
                        gate.forEach((each) => each());
                });
            order.push([event.payload.key, event.payload.n]);
            running--;
        },
    });
    const { store } = await fresh(t, [flow], { options: { mainQueueConcurrent: 64 } });
    await Promise.all(['a', 'b'].flatMap((key) => [0, 1, 2].map((n) => store.submit(flow, { payload: { key, n } }))));
    assert(most >= 2);
    for (const key of ['a', 'b'])
        assert.deepStrictEqual(order.filter(([each]) => each === key).map(([, n]) => n), [0, 1, 2]);
});

test('observers: by priority, their errors are their own, and they may submit', async (t) => {
    const steps = [], errors = [];
    const echo = plain('o', 'echo'), flow = plain('o', 'sound');
    const observers = [
        { filters: [{ domain: 'o', type: 'sound' }], priority: 2, apply: () => steps.push('late') },
        { filters: [{ domain: 'o', type: 'sound' }], priority: 1, apply: () => { throw new Error('deaf'); } },
        { filters: [{ domain: 'o', type: 'sound' }], priority: 0, apply: async () => steps.push((await store.submit(echo, { payload: 1 }))[0].type) },
        { filters: [{ domain: 'o', type: 'sound' }], priority: 3, fireAndForget: true, apply: () => new Promise(() => {}) },
        { filters: [{ domain: 'o', type: 'sound' }], priority: 4, onError: (error) => steps.push(error.message), apply: () => { throw new Error('own'); } },
    ];
    const { store, repo } = await fresh(t, [flow, echo], { observers, options: { onError: (error) => errors.push(error.message) } });
    await store.submit(flow, { payload: 1 });
    assert.deepStrictEqual([steps, errors], [['echo', 'late', 'own'], ['deaf']]);
    assert.strictEqual((await all(repo.getAllEvents())).length, 2);
});

/* ---- side effects ----------------------------------------------------------------------------- */

test('side effects: retries as often as allowed, then a dead letter; what they return is linked', async (t) => {
    let failures = 0;
    const mended = plain('fx', 'mended', {
        meta: { sideEffectFailedRetryAllowed: 3 },
        sideEffect: (event, { attempt }) => {
            if (failures++ < 3)
                throw new Error(`attempt ${attempt}`);
            return [{ domain: 'fx', type: 'follows', payload: attempt }];
        },
    });
    const broken = plain('fx', 'broken', { meta: { sideEffectFailedRetryAllowed: 1 }, sideEffect: () => { throw new Error('never'); } });
    const follows = plain('fx', 'follows');
    const { store, repo } = await fresh(t, [mended, broken, follows]);
    const output = outputs(store);
    const [root] = await store.submit(mended, { payload: 1, identifier: 'm' });
    await sideEffectFinishedPromise(store);
    assert.deepStrictEqual(output, [
        ['Event:success', 'fx/mended', undefined],
        ...[1, 2, 3].map((n) => [SideEffectsState.retry, 'fx/mended', `attempt ${n}`]),
        ['Event:success', 'fx/follows', undefined],
        [SideEffectsState.done, 'fx/mended', undefined],
    ]);
    const [next] = await repo.findByCausationId(root.id);
    assert.deepStrictEqual([next.payload, next.correlationId, next.identifier], [4, root.correlationId, 'm']);
    output.length = 0;
    await store.submit(broken, { payload: 1 });
    await sideEffectFinishedPromise(store);
    assert.deepStrictEqual(output.slice(1), [[SideEffectsState.retry, 'fx/broken', 'never'], [SideEffectsState.fail, 'fx/broken', 'never']]);
    const box = await repo.effects();
    let dead;
    do
        dead = await box.failed()[Symbol.asyncIterator]().next();
    while (dead.done);
    assert.match(dead.value.errorText, /never/);
    await repo.resetStore();
    assert.strictEqual((await all(repo.getAllEvents())).length, 0);
    assert.strictEqual((await box.failed()[Symbol.asyncIterator]().next()).done, true);
});

test('side effects that another store runs end the waiting, too', async (t) => {
    const done = [];
    const flow = (who) => plain('fx', 'shared', { sideEffect: () => done.push(who) });
    const { db, store: idle } = await fresh(t, [flow('idle')], { options: { sideEffects: false } });
    await idle.submit(flow('idle'), { payload: 1 }); /* this one runs none, and waits for none */
    await sideEffectFinishedPromise(idle);
    assert.deepStrictEqual(done, []);
    const busy = await makeEventStore(new EventStoreRepo({ db }), QUICK)([flow('busy')]);
    const both = await makeEventStore(new EventStoreRepo({ db }), QUICK)([flow('both')]);
    for (let i = 0; i < 10; i++)
        await busy.submit(flow('busy'), { payload: 1, identifier: `s${i}` });
    await sideEffectFinishedPromise(busy);
    assert(done.length >= 11, String(done)); /* at least once */
    await Promise.all([busy.shutdown(), both.shutdown()]);
});

/* What a process runs, and the one of this test, too: db, dieAt -> [flows, options]. */
function shop(db, dieAt) {
    let runs = 0;
    const placed = { domain: 'kill', type: 'placed',
        meta: { sideEffectFailedRetryAllowed: 1000 },
        sideEffect: async (event) => {
            if (++runs === dieAt)
                process.kill(process.pid, 'SIGKILL'); /* stored, and not run */
            return [{ domain: 'kill', type: 'shipped', payload: event.payload }];
        } };
    const shipped = { domain: 'kill', type: 'shipped',
        apply: (event, tx) => tx.update('shipments', { name: event.payload }, { add: { times: 1 } }) };
    return [[placed, shipped],
        { sideEffects: { pollMs: 10, backoffMs: 1, backoffMaxMs: 10, leaseMs: 1000, heartbeatMs: 100, maxCrashes: 1000 } }];
}

for (const where of ['a directory', 'a server'])
    test(`kill -9 between the commit and the side effect, on ${where}: none is lost, none is counted twice`, { timeout: 300000 }, async (t) => {
        const folder = fs.mkdtempSync(path.join(__dirname, 'killed.'));
        t.after(() => fs.rmSync(folder, { recursive: true }));
        const url = where === 'a server' ? server.endpoint : `embedded:${folder}/shop.db`;
        const names = Array.from({ length: 40 }, (_, i) => `n${i}`);
        const body = `
            const { open } = require('holdfast');
            const { makeEventStore, EventStoreRepo } = require('holdfast/event-store');
            ${shop}
            const [url, dieAt, names] = process.argv.slice(1);
            (async () => {
                const db = await open(url);
                await db.createTable('shipments', { key: { name: 'string' }, ifMissing: true });
                const [flows, options] = shop(db, Number(dieAt));
                const store = await makeEventStore(new EventStoreRepo({ db, tableName: 'killed' }), options)(flows);
                for (const name of JSON.parse(names))
                    await store.submit(flows[0], { payload: name, identifier: name });
                setInterval(() => {}, 1000); /* until it dies */
            })().catch((error) => { console.error(error); process.exit(1); });`;
        const killed = async (dieAt, some) => {
            const child = spawn(process.execPath, ['-e', body, url, String(dieAt), JSON.stringify(some)],
                { cwd: __dirname, stdio: ['ignore', 'ignore', 'inherit'] });
            const [, signal] = await once(child, 'close');
            assert.strictEqual(signal, 'SIGKILL');
        };
        await killed(1, names.slice(0, 20));
        await killed(5, names.slice(20));
        await killed(1, []); /* with what the others have left */
        const db = await open(url);
        const [flows, options] = shop(db, 0);
        const store = await makeEventStore(new EventStoreRepo({ db, tableName: 'killed' }), options)(flows);
        const stored = await exportEventsToArray(store.eventStoreRepo);
        const known = new Set(stored.filter(({ type }) => type === 'placed').map(({ payload }) => payload));
        assert(known.size >= 2, `${known.size}`);
        assert(stored.length < 2 * known.size); /* something was left */
        for (const name of names)
            if (!known.has(name))
                await store.submit(flows[0], { payload: name, identifier: name });
        let found = [];
        for (; found.length < names.length; found = await db.scan('shipments').all())
            await new Promise((resolve) => setTimeout(resolve, 20));
        await sideEffectFinishedPromise(store);
        found = await db.scan('shipments').all();
        assert.deepStrictEqual(found.map(({ name, times }) => `${name} ${times}`).sort(), names.map((name) => `${name} 1`).sort());
        const events = await exportEventsToArray(store.eventStoreRepo);
        assert.deepStrictEqual(events.filter(({ type }) => type === 'shipped').map(({ payload }) => payload).sort(), [...names].sort());
        await store.shutdown(60000);
        await db.close();
    });

test('large trees: all of it or an error that says why', async (t) => {
    const leaf = plain('big', 'leaf'), heard = new Map();
    const noisy = plain('big', 'noisy', { sideEffect: ({ id }) => void heard.set(id, (heard.get(id) ?? 0) + 1) });
    const writer = plain('big', 'writer', { apply: ({ id }, tx) => tx.put('big', { id }) });
    const root = plain('big', 'root', { createConsequentEvents: ({ payload: { type, n, spread } }) =>
        Array.from({ length: n }, (_, i) => ({ domain: 'big', type, payload: i, identifier: spread ? `s${i}` : undefined })) });
    const { store, repo } = await fresh(t, [root, leaf, noisy, writer]);
    assert.strictEqual((await store.submit(root, { payload: { type: 'leaf', n: 300 }, identifier: 'a' })).length, 301);
    assert.strictEqual((await store.submit(root, { payload: { type: 'noisy', n: 300 }, identifier: 'b' })).length, 301);
    await sideEffectFinishedPromise(store);
    assert.deepStrictEqual([heard.size, Math.max(...heard.values())], [300, 1]);
    await assert.rejects(store.submit(root, { payload: { type: 'writer', n: 100 }, identifier: 'w' }),
        /tree of 101 events with 100 side effects and other writes does not fit into one transaction/);
    await assert.rejects(store.submit(root, { payload: { type: 'leaf', n: 25, spread: true }, identifier: 'c' }), { code: 'HF_LIMIT' });
    assert.deepStrictEqual([await repo.getStreamSequence('big', 'a'), await repo.getStreamSequence('big', 'b'),
        await repo.getStreamSequence('big', 'w'), await repo.getStreamSequence('big', 'c')], [301, 301, 0, 0]);
    await sideEffectFinishedPromise(store); /* nothing is waited for that was not stored */
});

/* ---- the repository ---------------------------------------------------------------------------- */

const made = (n, { domain = 'stream', identifier = 's', from = 0 } = {}) => Array.from({ length: n }, (_, i) => ({
    id: `${identifier}-${from + i}`, domain, type: 't', payload: { i: from + i }, identifier, created: new Date(1e12 + i) }));

test('storeEvents: expected sequences, several streams, ids', async (t) => {
    const { repo } = await fresh(t, []);
    await repo.storeEvents(made(30), { expectedSequence: 0 });
    assert.strictEqual(await repo.getStreamSequence('stream', 's'), 30);
    assert.deepStrictEqual((await repo.getStreamEvents('stream', 's', 28)).map(({ sequence, id }) => [sequence, id]), [[29, 's-28'], [30, 's-29']]);
    const conflict = await repo.storeEvents(made(1, { from: 90 }), { expectedSequence: 7 }).catch((error) => error);
    assert(conflict instanceof ConcurrencyError);
    assert.deepStrictEqual([conflict.domain, conflict.identifier, conflict.expectedVersion, conflict.actualVersion], ['stream', 's', 7, 30]);
    assert.deepStrictEqual(await repo.appendToStream(made(1, { from: 30 }), 30), { nextVersion: 31 });
    await assert.rejects(repo.storeEvents([...made(1, { from: 31 }), ...made(1, { identifier: 'x' })], { expectedSequence: 0 }), InvalidStreamBatchError);
    await repo.storeEvents([...made(2, { from: 31 }), ...made(2, { identifier: 'a::b' }), ...made(1, { domain: 'stream::a', identifier: 'b', from: 9 })]);
    assert.deepStrictEqual([await repo.getStreamSequence('stream', 'a::b'), await repo.getStreamSequence('stream::a', 'b')], [2, 1]);
    await assert.rejects(repo.storeEvents([{ ...made(1)[0], identifier: 'other' }]), { code: 'HF_DUPLICATE' });
    assert.strictEqual(await repo.getEventById('nothing'), null);
    assert.deepStrictEqual((await repo.getEventById('s-3')).payload, { i: 3 });
    assert.strictEqual(await repo.getStreamSequence('stream', 'none'), 0);
});

test('getAllEvents: pages, a cursor, no bounds of time', async (t) => {
    const { repo } = await fresh(t, []);
    await repo.storeEvents(made(10, { identifier: 'old' }).map((event) => ({ ...event, created: new Date('1999-05-05T00:00:00Z') })));
    await repo.storeEvents(made(10, { identifier: 'new' }));
    const pages = [];
    for await (const page of await repo.getAllEvents(7))
        pages.push(page.length);
    assert.deepStrictEqual(pages, [7, 7, 6]);
    const events = await all(repo.getAllEvents(7));
    assert.strictEqual(events[0].created.toISOString(), '1999-05-05T00:00:00.000Z');
    assert.deepStrictEqual((await all(repo.getAllEvents(100, events[14].id))).map(({ id }) => id), events.slice(15).map(({ id }) => id));
    await assert.rejects(all(repo.getAllEvents(100, 'nothing')), EventCursorNotFoundError);
});

test('export and import: a round trip, repeated, replaced', async (t) => {
    const { repo } = await fresh(t, []);
    const many = Array.from({ length: 60 }, (_, i) => ({ id: `e${i}`, domain: 'd', type: 't', identifier: `s${i % 30}`, payload: i,
        meta: { n: i }, created: new Date(1e12 + i) }));
    await makeEventStoreCore(repo).import(many);
    const progress = [];
    const exported = await exportEventsToArray(repo, { pageSize: 25, onProgress: (n) => progress.push(n) });
    assert.deepStrictEqual(progress, [25, 50, 60]);
    const snapshot = parseSnapshot(JSON.stringify(createSnapshot(exported)));
    assert.strictEqual(snapshot.count, 60);
    assert.deepStrictEqual(snapshot.events, exported);
    const { repo: other } = await fresh(t, []);
    await importEventsFromArray(other, snapshot.events);
    await importEventsFromArray(other, snapshot.events); /* interrupted, and again */
    assert.deepStrictEqual(await exportEventsToArray(other), exported);
    await importEventsFromArray(other, exported, { replace: true });
    assert.deepStrictEqual(await exportEventsToArray(other), exported);
    await assert.rejects(importEventsFromArray(other, [{ ...exported[0], id: 'gap', sequence: 9 }]), ConcurrencyError);
    const seen = [];
    await makeEventStoreCore(other).rebuildReadModels({ reset: () => seen.push('reset'), observers: [{ apply: ({ id }) => seen.push(id) }] });
    assert.deepStrictEqual(seen, ['reset', ...exported.map(({ id }) => id)]);
});

test('large payloads go to the bucket of the S3 client', { skip: noSdk }, async (t) => {
    const objects = new Map();
    const s3 = http.createServer((request, response) => {
        const parts = [];
        request.on('data', (part) => parts.push(part)).on('end', () => {
            const { pathname } = new URL(request.url, 'http://x');
            const dates = { date: new Date().toUTCString(), 'last-modified': new Date().toUTCString(), etag: '"e"' };
            if (request.method === 'PUT') {
                objects.set(pathname, Buffer.concat(parts));
                return response.writeHead(200, { ...dates, 'content-length': 0 }).end();
            }
            const body = objects.get(pathname);
            if (!body)
                return response.writeHead(/^\/[^/]*\/?$/.test(pathname) ? 200 : 404, { ...dates, 'content-length': 0 }).end();
            const [, from, to] = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? '') ?? [];
            const piece = from === undefined ? body : body.subarray(Number(from), to ? Number(to) + 1 : undefined);
            response.writeHead(from === undefined ? 200 : 206, { ...dates, 'content-length': piece.length,
                ...(from === undefined ? {} : { 'content-range': `bytes ${from}-${Number(from) + piece.length - 1}/${body.length}` }) });
            response.end(request.method === 'HEAD' ? undefined : piece);
        });
    });
    t.after(() => {
        s3.closeAllConnections();
        s3.close();
    });
    await once(s3.listen(0, '127.0.0.1'), 'listening');
    const { DynamoDBClient } = require('@aws-sdk/client-dynamodb');
    const s3Client = { config: { endpoint: async () => new URL(`http://127.0.0.1:${s3.address().port}`), region: async () => 'us-east-1', forcePathStyle: true } };
    process.env.AWS_ACCESS_KEY_ID = process.env.AWS_SECRET_ACCESS_KEY = 'test';
    const repo = new EventStoreRepo(new DynamoDBClient(server.clientConfig()), s3Client, { tableNamePrefix: 'large-', s3BucketName: 'my-event-archive' });
    t.after(() => repo.close());
    await repo.init();
    const large = 'x'.repeat(700000);
    await repo.storeEvents([{ id: 'big', domain: 'd', type: 't', payload: large }], { expectedSequence: 0 });
    const found = await repo.getEventById('big');
    assert.deepStrictEqual([found.payload === large, found.sequence], [true, 1]);
    assert([...objects.keys()].some((name) => name.startsWith('/my-event-archive/events/')));
});

/* ---- taking back, the end ---------------------------------------------------------------------- */

test('revert: the whole tree, leaves first, once', async (t) => {
    const back = (type) => ({ compensate: (event) => ({ domain: 'r', type: `un${type}`, payload: event.payload }) });
    const child = plain('r', 'child', back('child')), stuck = plain('r', 'stuck');
    const root = plain('r', 'root', { ...back('root'), createConsequentEvents: (event) => [1, 2].map((n) =>
        ({ domain: 'r', type: event.payload.stuck ? 'stuck' : 'child', payload: { n } })) });
    const { store, repo } = await fresh(t, [root, child, stuck, plain('r', 'unroot', { schemaVersion: 3 }), plain('r', 'unchild')]);
    const output = outputs(store);
    const [first, one, two] = await store.submit(root, { payload: {}, identifier: 'i' });
    assert.deepStrictEqual(await store.canRevert(first.id), { canRevert: true });
    const preview = await store.previewRevert(first.id);
    assert.deepStrictEqual([preview.rootEvent.id, preview.descendantEvents.map(({ id }) => id), preview.totalEventCount], [first.id, [one.id, two.id], 3]);
    const result = await store.revert(first.id);
    assert.deepStrictEqual(result.childResults.map(({ revertedEventId }) => revertedEventId), [two.id, one.id]);
    const [unroot] = result.compensatingEvents;
    assert.deepStrictEqual([unroot.causationId, unroot.correlationId, unroot.identifier, unroot.meta],
        [first.id, first.correlationId, 'i', { schemaVersion: 3, isCompensating: true, compensatesEventId: first.id }]);
    assert.deepStrictEqual((await repo.getStreamEvents('r', 'i', 3)).map(({ type, payload }) => [type, payload.n]),
        [['unchild', 2], ['unchild', 1], ['unroot', undefined]]);
    const again = await store.revert(first.id);
    assert.deepStrictEqual(again.compensatingEvents.map(({ id }) => id), [unroot.id]);
    assert.strictEqual(await repo.getStreamSequence('r', 'i'), 6);
    assert.strictEqual(output.filter(([state]) => state === EventOutputState.reverted).length, 3);
    assert.match((await store.canRevert(one.id)).reason, /is not a root/);
    assert.match((await store.canRevert('nothing')).reason, /There is no event nothing/);
    const [second] = await store.submit(root, { payload: { stuck: true }, identifier: 'j' });
    const check = await store.canRevert(second.id);
    assert.deepStrictEqual([check.canRevert, check.missingCompensateEvents.map(({ type }) => type)], [false, ['stuck', 'stuck']]);
    await assert.rejects(store.revert(second.id), RevertError);
    const both = await Promise.all([store, store].map((each) => each.submit(root, { payload: {}, identifier: 'k' }))).then(([[event]]) => event);
    const twice = await Promise.all([store.revert(both.id), store.revert(both.id)]);
    assert.deepStrictEqual(twice[0].compensatingEvents.map(({ id }) => id), twice[1].compensatingEvents.map(({ id }) => id));
});

test('output$ is an observable', async (t) => {
    const flow = plain('out', 'put');
    const { store } = await fresh(t, [flow]);
    const seen = [];
    const subscription = store.output$.subscribe(({ state }) => seen.push(state));
    let completed = false;
    store.output$.subscribe({ next: () => {}, complete: () => (completed = true) });
    const piped = [];
    if (hasRx) {
        const { filter, map } = require('rxjs/operators');
        store.output$.pipe(filter(({ state }) => state === EventOutputState.success), map(({ event }) => event.type)).subscribe((type) => piped.push(type));
    } else {
        assert.throws(() => store.output$.pipe(), /needs the package rxjs/);
    }
    await store.submit(flow, { payload: 1 });
    subscription.unsubscribe();
    await store.submit(flow, { payload: 1 });
    assert.deepStrictEqual(seen, ['Event:success']);
    if (hasRx)
        assert.deepStrictEqual(piped, ['put', 'put']);
    await store.shutdown();
    assert.strictEqual(completed, true);
});

test('shutdown: waits for what is under way, and not for ever', async (t) => {
    let release;
    const done = [];
    const held = new Promise((resolve) => (release = resolve));
    const flow = plain('s', 'slow', { sideEffect: async () => {
        await held;
        done.push('effect');
    } });
    const { store, repo } = await fresh(t, [flow]);
    await store.submit(flow, { payload: 1 });
    const ended = store.shutdown(60000);
    await assert.rejects(store.submit(flow, { payload: 1 }), /is shut down/);
    release();
    await ended;
    assert.deepStrictEqual(done, ['effect']);
    await assert.rejects(repo.getEventById('x'), /is closed/);
    const { store: stuck } = await fresh(t, [plain('s', 'stuck', { sideEffect: () => new Promise(() => {}) })]);
    await stuck.submit(plain('s', 'stuck'), { payload: 1 });
    await assert.rejects(stuck.shutdown(50), ShutdownTimeoutError);
});
