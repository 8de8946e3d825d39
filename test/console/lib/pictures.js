/*
 * lib/pictures.js: the two pictures of the console in docs/, made anew by script/pictures from a
 * server that is filled here. They are not compared with anything.
 */
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { test, server, page, visit, leave } = require('./kit');

const DOCS = path.join(__dirname, '../../../docs');
const S = (text) => ({ S: text }), NUM = (n) => ({ N: String(n) });

test('pictures', async () => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'console-'));
    process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }));
    const s = await server('--db-path', path.join(dir, 'shop.db'));
    await s.call('CreateTable', { TableName: 'orders', BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'customer', KeyType: 'HASH' }, { AttributeName: 'id', KeyType: 'RANGE' }], AttributeDefinitions: ['customer', 'id', 'status'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
        GlobalSecondaryIndexes: [{ IndexName: 'by_status', KeySchema: [{ AttributeName: 'status', KeyType: 'HASH' }, { AttributeName: 'id', KeyType: 'RANGE' }], Projection: { ProjectionType: 'ALL' } }] });
    const order = (i) => ({ customer: S(['ann', 'ben', 'cleo', 'dan'][i % 4]), id: S(`2026-11-${String(1 + i % 28).padStart(2, '0')}#${1000 + i}`), status: S(['open', 'paid', 'shipped'][i % 3]), total: NUM((9.9 + i % 37 * 1.7).toFixed(2)),
        lines: { L: [{ M: { sku: S(`book-${i % 90}`), pieces: NUM(1 + i % 3) } }] }, tags: { SS: i % 4 ? ['new'] : ['gift', 'new'] }, gift: { BOOL: i % 5 === 0 } });
    for (let i = 0; i < 500; i += 25)
        await s.call('BatchWriteItem', { RequestItems: { orders: Array.from({ length: 25 }, (_, j) => ({ PutRequest: { Item: order(i + j) } })) } });
    const p = await page({ width: 1280, height: 800 });
    await visit(p, s.endpoint, `/tables/orders/query?mode=query&index=by_status&hash=paid&op=begins_with&range=2026-11&filters=${encodeURIComponent('[{"name":"total","op":">","type":"N","value":"20"}]')}`);
    await p.locator('#view tbody tr[data-i]').first().waitFor();
    await p.screenshot({ path: path.join(DOCS, 'console-items.png') });

    /* Some load for the charts: a pattern that goes up and down. */
    await visit(p, s.endpoint, '/');
    const until = Date.now() + 45000;
    for (let n = 0; Date.now() < until; n++) {
        const busy = 6 + Math.round(5 * Math.sin(n / 6));
        await Promise.all(Array.from({ length: busy }, (_, i) => [s.call('GetItem', { TableName: 'orders', Key: { customer: S('ann'), id: S('2026-11-01#1000') } }), i % 2 && s.call('PutItem', { TableName: 'orders', Item: order(n * 7 + i) }), i % 3 === 0 && s.call('Query', { TableName: 'orders', KeyConditionExpression: 'customer = :c', ExpressionAttributeValues: { ':c': S('ben') }, Limit: 20 })]).flat());
        await new Promise((done) => setTimeout(done, 60));
    }
    await p.screenshot({ path: path.join(DOCS, 'console-overview.png') });
    await leave(p);
});
