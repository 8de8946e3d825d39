/*
 * runtime.mjs: a little of everything, for runtimes that are not Node: see runtimes.
 */
import assert from 'node:assert';
import { open, startServer } from 'holdfast';

const db = await open('memory:');
await db.createTable('orders', { key: { id: 'string' } });
await db.put('orders', { id: 'a', n: 12345678901234567890n, tags: new Set(['x']), raw: new Uint8Array([1, 2]) });
const item = await db.get('orders', { id: 'a' });
assert.strictEqual(item.n, 12345678901234567890n);
assert.deepStrictEqual([...item.tags], ['x']);
assert.deepStrictEqual([...item.raw], [1, 2]);
const ids = [];
for await (const one of db.scan('orders'))
    ids.push(one.id);
assert.deepStrictEqual(ids, ['a']);
await assert.rejects(db.get('nowhere', { id: 'a' }), { code: 'HF_NOT_FOUND' });
await assert.rejects(db.put('orders', { id: 'a' }, { if: 'attribute_not_exists(id)' }), { code: 'HF_CONDITION' });

const held = await db.lock('job');
assert.strictEqual(typeof held.fence, 'bigint');
await held.release();
assert.strictEqual(await db.once('bill', async () => 7), 7);
assert.strictEqual(await db.once('bill', async () => 8), 7);

const box = db.outbox();
const bus = box.bus();
const seen = new Promise((resolve) => bus.on('order.placed', async (event) => resolve(event.payload)));
await bus.start();
await box.emit({ type: 'order.placed', key: 'a', payload: { id: 'a' } });
assert.deepStrictEqual(await seen, { id: 'a' });
await bus.stop();

const server = await startServer();
const other = await open(server.endpoint);
await other.createTable('orders', { key: { id: 'string' } });
await other.put('orders', { id: 'there' });
assert.deepStrictEqual(await other.get('orders', { id: 'there' }), { id: 'there' });
await other.close();
await server.stop();
await server.stop();
await db.close();
console.log('ok');
