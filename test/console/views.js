/*
 * views.js: every view of data, light and dark, wide and on a phone (lib/looks.js), with pictures in
 * build/dev/console/; the menu on a phone, themes.
 */
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { execFileSync } = require('child_process');
const { test, server, page, visit, leave, ok, eq, shots } = require('./lib/kit');
const { looks } = require('./lib/looks');

/* [name, path, what to do before looking] */
const VIEWS = [
    ['overview', '/', async (p) => p.locator('.chart').first().waitFor()],
    ['tables', '/tables'],
    ['table-create', '/tables', async (p) => p.getByRole('button', { name: 'Create table' }).click()],
    ['items', '/tables/shop-orders/items'],
    ['query', '/tables/shop-orders/query?filters=%5B%7B%22name%22%3A%22status%22%2C%22op%22%3A%22%3D%22%2C%22type%22%3A%22S%22%2C%22value%22%3A%22paid%22%7D%5D'],
    ['item', '/tables/all-types/items', async (p) => {
        await p.locator('#view tbody tr[data-i]').first().click();
        await p.locator('dialog[open] textarea').first().waitFor();
    }],
    ['item-json', '/tables/all-types/items', async (p) => {
        await p.locator('#view tbody tr[data-i]').first().click();
        await p.getByRole('button', { name: 'JSON', exact: true }).click();
    }],
    ['item-changes', '/tables/all-types/items', async (p) => {
        await p.locator('#view tbody tr[data-i]').first().click();
        await p.locator('dialog[open]').getByLabel('text', { exact: true }).fill('something else');
        await p.getByRole('button', { name: 'Review changes' }).click();
    }],
    ['item-discard', '/tables/all-types/items', async (p) => {
        await p.locator('#view tbody tr[data-i]').first().click();
        await p.locator('dialog[open]').getByLabel('text', { exact: true }).fill('something else');
        await p.keyboard.press('Escape');
        await p.getByText('Discard what you typed?').waitFor();
    }],
    ['entities', '/tables/single/entities?partition=%7B%22S%22%3A%22CUSTOMER%231%22%7D', async (p) => p.locator('.collection li').first().waitFor()],
    ['stream', '/tables/all-types/stream'],
    ['stream-record', '/tables/all-types/stream', async (p) => p.locator('#view tbody tr[data-i]').first().click()],
    ['load', '/tables/single/load', async (p) => p.getByLabel('Data to load').fill('pk,sk,total\nCUSTOMER#9,PROFILE,\nCUSTOMER#9,ORDER#1,9.50\nCUSTOMER#9,ORDER#2,many\n')],
    ['table', '/tables/all-types'],
    ['delete-table', '/tables/all-types', async (p) => p.getByRole('button', { name: 'Delete table…' }).click()],
    ['partiql', `/partiql?q=${encodeURIComponent('SELECT * FROM "shop-orders" WHERE total > 5')}`, async (p) => {
        await p.getByRole('button', { name: 'Run', exact: true }).click();
        await p.locator('#view tbody tr[data-i], #view .state').first().waitFor();
    }],
    ['streams', '/streams'],
    ['backups', '/backups'],
    ['empty', '/tables/nothing/items'],
    ['missing', '/tables/nowhere/items', async (p) => p.locator('.state.problem').waitFor()],
];

let s, dir;

/* The demo's database, and tables with what it does not have: every type, a single-table design. */
async function ready() {
    if (s)
        return;
    dir = fs.mkdtempSync(path.join(os.tmpdir(), 'console-'));
    process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }));
    const db = path.join(dir, 'db');
    execFileSync(process.env.HOLDFAST, ['demo', '--quick', '--db', db, '--quiet'], { stdio: 'ignore', timeout: 120000 });
    s = await server('--db-path', db);
    const table = (TableName, names, more = {}) => s.call('CreateTable', { TableName, BillingMode: 'PAY_PER_REQUEST', KeySchema: names.map((AttributeName, i) => ({ AttributeName, KeyType: i ? 'RANGE' : 'HASH' })), AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: 'S' })), ...more });
    await table('shop-orders', ['customer', 'id']);
    await table('single', ['pk', 'sk']);
    await table('nothing', ['id']);
    await table('all-types', ['id'], { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } });
    const write = (name, items) => s.call('BatchWriteItem', { RequestItems: { [name]: items.map((Item) => ({ PutRequest: { Item } })) } });
    const S = (text) => ({ S: text }), NUM = (n) => ({ N: String(n) });
    for (let i = 0; i < 6; i++)
        await write('shop-orders', Array.from({ length: 25 }, (_, j) => ({ customer: S(['ann', 'ben', 'cleo', 'dan'][j % 4]), id: S(`2026-11-${String(i * 4 + j % 4 + 1).padStart(2, '0')}#${1000 + i * 25 + j}`),
            status: S(['open', 'paid', 'shipped'][(i + j) % 3]), total: NUM((9.9 + i * j * 1.7).toFixed(2)), items: { L: [{ M: { sku: S(`book-${j}`), n: NUM(1 + j % 3) } }] }, gift: { BOOL: j % 5 === 0 } })));
    for (let c = 1; c < 5; c++)
        await write('single', [{ pk: S(`CUSTOMER#${c}`), sk: S('PROFILE'), name: S(['Ann', 'Ben', 'Cleo', 'Dan'][c - 1]), mail: S(`c${c}@example.org`) },
            ...Array.from({ length: c + 2 }, (_, o) => ({ pk: S(`CUSTOMER#${c}`), sk: S(`ORDER#2026-11-0${o + 1}`), total: NUM(20 + o * c), status: S(o % 2 ? 'paid' : 'open') })),
            { pk: S(`CUSTOMER#${c}`), sk: S('ADDRESS#home'), city: S('Bonn'), zip: S('53111') }, { pk: S(`PRODUCT#${c}`), sk: S('META'), title: S(`Book ${c}`), price: NUM(12.5) }]);
    const all = { id: S('one'), text: S('Some text'), number: NUM('12345678901234567890.123456789012345678'), bytes: { B: 'AAECAwQF' }, yes: { BOOL: true }, nothing: { NULL: true }, map: { M: { city: S('Ulm'), zip: NUM(89073) } }, list: { L: [S('first'), NUM(2)] }, words: { SS: ['blue', 'red'] }, numbers: { NS: ['1', '2.5'] }, blobs: { BS: ['AAE=', '/w=='] } };
    await write('all-types', [all]);
    await write('all-types', [{ ...all, text: S('Other text'), number: NUM(7) }, { id: S('two') }]);
    await s.call('DeleteItem', { TableName: 'all-types', Key: { id: S('two') } });
    for (const [name, of] of [['before-release', 'single'], ['nightly', 'single'], ['orders-1', 'shop-orders']])
        await s.call('CreateBackup', { TableName: of, BackupName: name });
}

looks('all views', async () => (await ready(), s.endpoint), () => VIEWS, { problems: true });

test('the menu on a phone, by keyboard', async () => {
    await ready();
    const p = await page({ width: 390, height: 844 });
    await visit(p, s.endpoint, '/tables');
    await p.getByRole('button', { name: 'Menu' }).focus();
    await p.keyboard.press('Enter');
    await p.waitForFunction(() => document.querySelector('#side').getBoundingClientRect().left === 0);
    if (shots)
        await p.screenshot({ path: path.join(shots, 'menu-light-390.png') });
    await p.getByRole('link', { name: 'PartiQL' }).focus();
    await p.keyboard.press('Enter');
    await p.getByLabel('Statement').waitFor();
    await p.waitForFunction(() => getComputedStyle(document.querySelector('#side')).visibility === 'hidden');
    await leave(p);
});

test('theme and zone can be chosen, and are kept', async () => {
    await ready();
    const p = await page();
    await visit(p, s.endpoint, '/backups');
    await p.getByLabel('Times').selectOption('UTC');
    await p.waitForFunction(() => /Z$/.test(document.querySelector('#view td time').textContent));
    await p.getByLabel('Theme').selectOption('dark');
    const colour = () => p.evaluate(() => getComputedStyle(document.body).backgroundColor);
    eq(await colour(), 'rgb(22, 24, 27)');
    await p.reload();
    await p.locator('#view td time').first().waitFor();
    eq(await colour(), 'rgb(22, 24, 27)');
    ok(/Z$/.test(await p.locator('#view td time').first().textContent()));
    await leave(p);
});
