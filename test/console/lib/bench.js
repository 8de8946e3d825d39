/*
 * lib/bench.js: how long a person waits: bench/console [--items N]. The first view of a new browser,
 * the first rows of a table of N items, and a search among 2,400 tables. Times, so no test.
 */
'use strict';
const { test, server, page, visit } = require('./kit');
const { filled, firstRows, search } = require('./many');

const ITEMS = Number(process.env.ITEMS || 1000000);

async function times(n, work) {
    const all = [];
    for (let i = 0; i < n; i++)
        all.push(await work());
    all.sort((a, b) => a - b);
    return `${Math.round(all[0])} ms at best, ${Math.round(all[n >> 1])} ms median of ${n}`;
}

test('bench', async () => {
    const s = await server();
    const table = (TableName) => s.call('CreateTable', { TableName, BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }], AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }] });
    await filled(s, 'many', ITEMS);
    for (let i = 0; i < 2400; i++)
        await table(`table-${i}`);
    const rows = (p) => p.waitForSelector('#view tbody tr[data-i]');
    console.log(`first view, a new browser:        ${await times(7, async () => {
        const p = await page(), from = performance.now();
        await p.goto(`${s.endpoint}/console/#/`);
        await p.waitForSelector('.view[data-ready="1"]');
        const took = performance.now() - from;
        await p.context().close();
        return took;
    })}`);
    const p = await page();
    await visit(p, s.endpoint, '/tables');
    console.log(`first rows of ${ITEMS.toLocaleString('en')} items:    ${await times(9, () => firstRows(p, s, 'many'))}`);
    await visit(p, s.endpoint, '/tables');
    await rows(p);
    console.log(`search among 2,401 tables:        ${await times(9, () => search(p, String(1000 + Math.floor(Math.random() * 1000))))}`);
    await p.context().close();
});
