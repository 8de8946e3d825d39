/*
 * many.js: a million items and 10,000 tables: first rows within 200 ms, a page for the first rows, few rows in the
 * page. On a machine that does nothing else: ctest -C long. ITEMS makes it smaller.
 */
'use strict';
const { test, server, page, visit, leave, ok, eq } = require('./lib/kit');
const { filled, firstRows, search } = require('./lib/many');

const ITEMS = Number(process.env.ITEMS || 1000000), MOST_MS = Number(process.env.MOST_MS || 200), TRIES = 9;

/* The best of some: what is measured is the page, not what else the machine does. */
async function within(what, work) {
    let best = Infinity;
    for (let i = 0; i < TRIES && best > MOST_MS; i++)
        best = Math.min(best, await work(i));
    console.log(`${what}: ${Math.round(best)} ms`);
    ok(best <= MOST_MS, `${what} took ${Math.round(best)} ms at best of ${TRIES}`);
}

test('a million items', async () => {
    const s = await server(), p = await page(), asked = [];
    await filled(s, 'many', ITEMS);
    eq((await s.call('DescribeTable', { TableName: 'many' })).Table.ItemCount, ITEMS);
    p.on('request', (r) => (r.headers()['x-amz-target'] || '').endsWith('.Scan') && asked.push(JSON.parse(r.postData()).Limit));
    await within('first rows', () => firstRows(p, s, 'many'));
    ok(asked.length && asked.every((limit) => limit === 100), `pages of ${asked}`);
    for (let i = 0; i < 20; i++) { /* and so they stay while one scrolls */
        await p.evaluate(() => scrollTo(0, document.body.scrollHeight));
        await p.waitForFunction((n) => !document.querySelector('.grid-foot')?.textContent.startsWith('Loading') && document.querySelectorAll('#view tbody tr[data-i]').length > n, 10);
    }
    const shown = await p.locator('#view tbody tr[data-i]').count();
    ok(shown < 150, `${shown} rows are in the page`);
    await leave(p);
});

test('10,000 tables', async () => {
    const s = await server('--max-tables', '10000'), p = await page(), n = 10000;
    for (let i = 0; i < n; i += 100)
        await Promise.all(Array.from({ length: 100 }, (_, j) => s.call('CreateTable', { TableName: `table-${String(i + j).padStart(5, '0')}`, BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }], AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }] })));
    await visit(p, s.endpoint, '/tables');
    await p.getByText('10,000 of 10,000 tables').waitFor();
    await within('search', (i) => search(p, String(1234 + i * 987).padStart(5, '0')));
    ok(await p.locator('#view tbody tr[data-i]').count() < 150);
    await leave(p);
});
