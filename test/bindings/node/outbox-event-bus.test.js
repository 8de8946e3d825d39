/*
 * outbox-event-bus.test.js: code that was written for the library outbox-event-bus.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const path = require('path');
const { open } = require('holdfast');
const {
    OutboxEventBus, DynamoDBAwsSdkOutbox, HandlerError, MaxRetriesExceededError, DuplicateListenerError, TimeoutError, BatchSizeLimitError,
} = require('holdfast/outbox-event-bus');

const hasSdk = fs.existsSync(path.join(__dirname, '../node_modules/@aws-sdk'));
const FAST = { tableName: 'my-events-table', pollIntervalMs: 5, baseBackoffMs: 1 };

test('emit, handlers, wildcards, middleware', async () => {
    const db = await open('memory:');
    const bus = new OutboxEventBus(new DynamoDBAwsSdkOutbox({ db, ...FAST }), (error) => assert.fail(error));
    const seen = [];
    let all;
    const done = new Promise((resolve) => (all = resolve));
    const see = (name) => (event) => {
        seen.push([name, event.type, event.payload, event.metadata]);
        if (seen.length === 3)
            all();
    };
    bus.on('user.created', see('exact')).on('user.*', see('user')).on('*', see('any'));
    assert.throws(() => bus.on('*', () => {}), DuplicateListenerError);
    assert.deepStrictEqual(bus.eventNames(), ['user.created', 'user.*', '*']);
    const order = [];
    bus.addMiddleware(async (context, next) => {
        order.push(`${context.phase} ${context.event.type}`);
        await next({ dropEvent: context.phase === 'emit' && context.event.type === 'noise' });
    });
    bus.addEmitMiddleware(async (context, next) => {
        context.event = { ...context.event, metadata: { by: 'ann' } };
        await next();
    });
    await bus.start();
    await bus.emit({ type: 'user.created', payload: { id: '1' } });
    await bus.emitMany([{ type: 'user.renamed', payload: 2 }, { type: 'noise', payload: 0 }, { type: 'other', payload: null }]);
    await done;
    await bus.stop();
    assert.deepStrictEqual(seen.sort(), [
        ['any', 'other', null, { by: 'ann' }], ['exact', 'user.created', { id: '1' }, { by: 'ann' }], ['user', 'user.renamed', 2, { by: 'ann' }],
    ]);
    assert.strictEqual(order.filter((each) => each === 'emit noise').length, 1);
    assert.strictEqual(order.includes('handler noise'), false);
    await db.close();
});

test('metadata that is no JSON is given as it is', { timeout: 60000 }, async () => {
    const db = await open('memory:');
    let handled;
    const done = new Promise((resolve) => (handled = resolve));
    const bus = new OutboxEventBus(new DynamoDBAwsSdkOutbox({ db, ...FAST }), (error) => assert.fail(error));
    bus.on('a', handled);
    await db.outbox({ table: FAST.tableName }).emit({ type: 'a', payload: 1, headers: { metadata: '{"half' } });
    await bus.start();
    assert.strictEqual((await done).metadata, '{"half');
    await bus.stop();
    await db.close();
});

test('failures: handler errors, the last one, failed events, retry', async () => {
    const db = await open('memory:');
    const errors = [];
    let last, mended;
    const dead = new Promise((resolve) => (last = resolve));
    const handled = new Promise((resolve) => (mended = resolve));
    const bus = new OutboxEventBus(new DynamoDBAwsSdkOutbox({ db, ...FAST, maxRetries: 3 }), {
        onError: (error) => {
            errors.push(error);
            if (error instanceof MaxRetriesExceededError)
                last();
        },
    });
    let broken = true;
    bus.on('fragile', async (event) => {
        if (broken)
            throw new Error('no mail server');
        mended(event);
    });
    await bus.start();
    await bus.emit({ id: 'e1', type: 'fragile', payload: { to: 'ann' } });
    await dead;
    const handlerErrors = errors.filter((error) => error instanceof HandlerError);
    assert.strictEqual(handlerErrors.length, 3);
    assert.strictEqual(handlerErrors[0].context.event.id, 'e1');
    let failed;
    do
        failed = await bus.getFailedEvents();
    while (failed.length === 0);
    assert.strictEqual(failed[0].id, 'e1');
    assert.match(failed[0].error, /no mail server/);
    assert.strictEqual(failed[0].retryCount, 3);
    broken = false;
    await bus.retryEvents(['e1']);
    assert.deepStrictEqual((await handled).payload, { to: 'ann' });
    let tries = 0;
    const second = new Promise((resolve) => bus.once('single', async () => {
        if (++tries === 1)
            throw new Error('not yet');
        resolve();
    }));
    await bus.emit({ type: 'single', payload: 1 });
    await second;
    assert.strictEqual(bus.listenerCount('single'), 0);
    await bus.stop();
    await assert.rejects(bus.waitFor('nothing', 5), TimeoutError);
    assert.strictEqual(bus.listenerCount('nothing'), 0);
    await assert.rejects(bus.emitMany(Array.from({ length: 101 }, () => ({ type: 't', payload: 1 }))), BatchSizeLimitError);
    await db.close();
});

test('with a client of the SDK: a collector, and its transaction', { skip: !hasSdk && 'the AWS SDK cannot be fetched' }, async () => {
    const { DynamoDBClient } = require('@aws-sdk/client-dynamodb');
    const { DynamoDBDocumentClient, TransactWriteCommand } = require('@aws-sdk/lib-dynamodb');
    const { AsyncLocalStorage } = require('node:async_hooks');
    const db = await open('memory:');
    await db.createTable('Users', { key: { id: 'string' } });
    const client = DynamoDBDocumentClient.from(new DynamoDBClient(db.clientConfig()));
    const als = new AsyncLocalStorage();
    const bus = new OutboxEventBus(new DynamoDBAwsSdkOutbox({ client, ...FAST, getCollector: () => als.getStore() }));
    const waiting = bus.waitFor('user.created', 60000);
    await bus.start();
    const transactionItems = [];
    await als.run({ push: (item) => transactionItems.push(item) }, async () => {
        transactionItems.push({ Put: { TableName: 'Users', Item: { id: '1', name: 'ann' } } });
        await bus.emit({ type: 'user.created', payload: { id: '1', at: 5 } });
        assert(transactionItems.length >= 2);
        await client.send(new TransactWriteCommand({ TransactItems: transactionItems }));
    });
    assert.deepStrictEqual((await waiting).payload, { id: '1', at: 5 });
    assert.deepStrictEqual(await db.get('Users', { id: '1' }), { id: '1', name: 'ann' });

    const items = [];
    const next = bus.waitFor('item.updated', 60000);
    await bus.emit({ type: 'item.updated', payload: { id: 1 } }, items);
    await client.send(new TransactWriteCommand({ TransactItems: items }));
    assert.deepStrictEqual((await next).payload, { id: 1 });
    await bus.stop();
    await db.close();
});
