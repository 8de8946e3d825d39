/*
 * data.js: the views of data, used as people use them. What is on the screen is compared with what
 * the server says to a request of our own.
 */
'use strict';
const { execFileSync, spawn } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { test, server, call, page, visit, leave, ok, eq } = require('./lib/kit');

let s;

/* 400 orders with every type, an index by status, a stream. */
const ORDER = (i) => ({
    customer: { S: ['ann', 'ben', 'cleo', 'dan'][i % 4] }, day: { N: String(i) }, total: { N: (i * 1.25).toFixed(2) }, status: { S: ['open', 'paid', 'shipped'][i % 3] },
    exact: { N: '1234567890123456789012345678.9012345678' }, lines: { L: [{ M: { sku: { S: `book-${i}` }, n: { N: '2' } } }] }, tags: { SS: i % 2 ? ['new'] : ['gift', 'new'] }, sizes: { NS: ['1', '2.5'] }, keys: { BS: ['AAE=', '/w=='] },
    raw: { B: 'AAEC/w==' }, paid: { BOOL: i % 3 === 1 }, note: i % 5 ? { S: `note ${i}` } : { NULL: true }, address: { M: { city: { S: i % 2 ? 'Bonn' : 'Ulm' }, 'a.b': { N: String(i % 7) } } }, ...(i % 10 ? {} : { rare: { S: 'x' } }) });
const N = 400;
const ORDERS = Array.from({ length: N }, (_, i) => ORDER(i));

async function ready() {
    if (s)
        return;
    s = await server();
    await s.call('CreateTable', { TableName: 'orders', BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'customer', KeyType: 'HASH' }, { AttributeName: 'day', KeyType: 'RANGE' }],
        AttributeDefinitions: [['customer', 'S'], ['day', 'N'], ['status', 'S']].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
        GlobalSecondaryIndexes: [{ IndexName: 'by_status', KeySchema: [{ AttributeName: 'status', KeyType: 'HASH' }, { AttributeName: 'day', KeyType: 'RANGE' }], Projection: { ProjectionType: 'ALL' } }],
        StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } });
    for (let i = 0; i < N; i += 25)
        await s.call('BatchWriteItem', { RequestItems: { orders: ORDERS.slice(i, i + 25).map((Item) => ({ PutRequest: { Item } })) } });
}

const item = async (customer, day, table = 'orders') => (await s.call('GetItem', { TableName: table, Key: { customer: { S: customer }, day: { N: String(day) } }, ConsistentRead: true })).Item;
const sorted = (o) => Object.fromEntries(Object.entries(o || {}).sort());
const texts = async (locator) => (await locator.allTextContents()).map((text) => text.replace(/\s+/g, ' ').trim());
const rows = (p) => p.locator('#view tbody tr[data-i]');
const make = (name, more = {}) => s.call('CreateTable', { TableName: name, BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'customer', KeyType: 'HASH' }, { AttributeName: 'day', KeyType: 'RANGE' }], AttributeDefinitions: [{ AttributeName: 'customer', AttributeType: 'S' }, { AttributeName: 'day', AttributeType: 'N' }], ...more });

/* ---- lib ---- */

test('every operator of the builder finds what it should', async () => {
    await ready();
    const p = await page();
    await visit(p, s.endpoint, '/tables');
    const cases = [
        [{ op: '=', name: 'status', value: 'paid' }, (o) => o.status.S === 'paid'],
        [{ op: '<>', name: 'status', value: 'paid' }, (o) => o.status.S !== 'paid'],
        [{ op: '<', name: 'total', type: 'N', value: '100' }, (o) => o.total.N < 100],
        [{ op: '<=', name: 'total', type: 'N', value: '1e2' }, (o) => o.total.N <= 100],
        [{ op: '>', name: 'total', type: 'N', value: '100' }, (o) => o.total.N > 100],
        [{ op: '>=', name: 'total', type: 'N', value: '100' }, (o) => o.total.N >= 100],
        [{ op: 'between', name: 'total', type: 'N', value: '10', to: '20' }, (o) => o.total.N >= 10 && o.total.N <= 20],
        [{ op: 'in', name: 'status', value: 'open, shipped' }, (o) => o.status.S !== 'paid'],
        [{ op: 'begins_with', name: 'note', value: 'note 1' }, (o) => o.note.S?.startsWith('note 1')],
        [{ op: 'contains', name: 'tags', value: 'gift' }, (o) => o.tags.SS.includes('gift')],
        [{ op: 'exists', name: 'rare' }, (o) => o.rare],
        [{ op: 'exists', name: 'rare', not: 1 }, (o) => !o.rare],
        [{ op: 'type', name: 'note', value: 'NULL' }, (o) => o.note.NULL],
        [{ op: 'size =', name: 'tags', value: '2' }, (o) => o.tags.SS.length === 2],
        [{ op: 'size >', name: 'note', value: '7' }, (o) => o.note.S?.length > 7],
        [{ op: '=', name: 'paid', type: 'BOOL', value: 'true' }, (o) => o.paid.BOOL],
        [{ op: '=', name: 'note', type: 'NULL' }, (o) => o.note.NULL],
        [{ op: '=', name: 'raw', type: 'B', value: 'AAEC/w==' }, () => true],
        [{ op: '=', name: 'sizes', type: 'JSON', value: '{"NS": ["2.5", "1"]}' }, () => true],
        [{ op: '=', name: 'address.city', value: 'Ulm', not: 1 }, (o) => o.address.M.city.S !== 'Ulm'],
        [{ op: '=', name: 'address."a.b"', type: 'N', value: '3' }, (o) => o.address.M['a.b'].N === '3'],
        [{ op: 'begins_with', name: 'lines[0].sku', value: 'book-1' }, (o) => o.lines.L[0].M.sku.S.startsWith('book-1')],
        [{ op: 'between', name: 'total', type: 'N', value: '10', to: '20', not: 1 }, (o) => o.total.N < 10 || o.total.N > 20],
    ];
    const found = await p.evaluate(async (filters) => {
        const { build } = await import('/console/lib/expr.js'), { db } = await import('/console/lib/client.js');
        const { Table } = await db('DescribeTable', { TableName: 'orders' }), out = [];
        for (const filter of filters) {
            const { operation, request } = build(Table, { mode: 'scan', filters: [{ type: 'S', ...filter }] });
            out.push((await db(operation, request)).Items.map((i) => Number(i.day.N)).sort((a, b) => a - b));
        }
        const key = async (state) => {
            const { operation, request } = build(Table, { mode: 'query', filters: [], ...state });
            return (await db(operation, request)).Items.map((i) => Number(i.day.N));
        };
        return { out, keys: [await key({ hash: 'ann' }), await key({ hash: 'ann', op: '=', range: '8' }), await key({ hash: 'ann', op: '<', range: '8' }), await key({ hash: 'ann', op: '<=', range: '8' }), await key({ hash: 'ann', op: '>', range: '390' }),
            await key({ hash: 'ann', op: '>=', range: '392', desc: true }), await key({ hash: 'ann', op: 'between', range: '8', to: '16' }), await key({ index: 'by_status', hash: 'paid', op: '<', range: '8' })] };
    }, cases.map(([filter]) => filter));
    cases.forEach(([filter, holds], i) => eq(found.out[i], ORDERS.flatMap((o, day) => (holds(o) ? [day] : [])), JSON.stringify(filter)));
    eq(found.keys.slice(1), [[8], [0, 4], [0, 4, 8], [392, 396], [396, 392], [8, 12, 16], [1, 4, 7]]);
    eq(found.keys[0].length, 100);
    await leave(p);
});

test('values keep what they are', async () => {
    await ready();
    const p = await page();
    await visit(p, s.endpoint, '/tables');
    const r = await p.evaluate(async () => {
        const v = await import('/console/lib/values.js'), { sha256Own } = await import('/console/lib/sign.js');
        const all = { s: { S: 'a"\\\n\u2028' }, n: { N: '1.0000000000000000000000000000000000001' }, b: { B: 'AAE=' }, t: { BOOL: true }, z: { NULL: true }, m: { M: { x: { L: [{ N: '-0' }, { M: {} }] } } }, ss: { SS: ['b', 'a'] }, ns: { NS: ['1', '2'] }, bs: { BS: ['AAE='] } };
        const digest = async (n) => {
            const bytes = new Uint8Array(n).map((_, i) => i * 7);
            return String(sha256Own(bytes)) === String(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
        };
        return { round: v.sameItem(v.fromPlain(v.plainItem(all)).M, all), n: v.fromPlain(v.plainItem(all)).M.n.N,
            equal: [v.equal({ N: '1.0' }, { N: '1' }), v.equal({ N: '10' }, { N: '1e1' }), v.equal({ SS: ['a', 'b'] }, { SS: ['b', 'a'] }), v.equal({ L: [{ S: 'a' }, { S: 'b' }] }, { L: [{ S: 'b' }, { S: 'a' }] }), v.equal({ N: '1' }, { S: '1' }), v.equal({ N: '-0' }, { N: '0' })],
            order: ['10', '9', '-1', '1e-3', '0', '-20', '12345678901234567890123456789012345678', '12345678901234567890123456789012345679'].sort(v.compareNumbers),
            problems: [v.numberProblem('1'.repeat(39)), v.numberProblem('1e126'), v.numberProblem('1e-131'), v.numberProblem('9.9e125'), v.numberProblem('x'), v.valueProblem({ SS: ['a', 'a'] }), v.valueProblem({ NS: [] })].map(Boolean),
            digests: await Promise.all([0, 1, 55, 56, 63, 64, 65, 1000].map(digest)), proto: Object.keys(v.fromPlain('{"__proto__": 1, "a": 2}').M),
            bad: ['{', '[1,]', '{"a" 1}', '01', '"\n"', 'nul'].map((t) => { try { v.fromPlain(t); return 'read'; } catch (e) { return e.message.includes('expected'); } }) };
    });
    eq(r.round, true);
    eq(r.n, '1.0000000000000000000000000000000000001');
    eq(r.equal, [true, true, true, false, false, true]);
    eq(r.order, ['-20', '-1', '0', '1e-3', '9', '10', '12345678901234567890123456789012345678', '12345678901234567890123456789012345679']);
    eq(r.problems, [true, true, true, false, true, true, true]);
    eq(r.digests, Array(8).fill(true));
    eq(r.proto, ['__proto__', 'a']);
    eq(r.bad, Array(6).fill(true));
    await leave(p);
});

/* ---- tables ---- */

test('10,000 tables: search answers at once, and few are described', async () => {
    await ready();
    const p = await page();
    let described = 0;
    const names = Array.from({ length: 10000 }, (_, i) => `table-${String(i).padStart(5, '0')}`);
    await p.route(s.endpoint + '/', async (route) => {
        const target = route.request().headers()['x-amz-target'] || '';
        if (target.endsWith('.DescribeTable'))
            described++;
        if (!target.endsWith('.ListTables'))
            return route.continue();
        const from = names.indexOf(JSON.parse(route.request().postData()).ExclusiveStartTableName) + 1, part = names.slice(from, from + 1000);
        return route.fulfill({ json: { TableNames: part, ...(from + 1000 < names.length ? { LastEvaluatedTableName: part.at(-1) } : {}) } });
    });
    await visit(p, s.endpoint, '/tables');
    await p.getByText('10,000 of 10,000 tables').waitFor();
    ok(await rows(p).count() < 100, 'only rows in sight are in the page');
    await p.keyboard.press('/');
    await p.keyboard.type('09999');
    await p.getByText('1 of 10,000 tables').waitFor();
    eq(await rows(p).first().locator('td').first().innerText(), 'table-09999');
    await p.getByLabel('Search tables').fill('');
    await p.getByText('10,000 of 10,000 tables').waitFor();
    await p.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await p.getByText('table-09999').waitFor();
    await rows(p).last().focus();
    await p.keyboard.press('Home');
    await p.waitForFunction(() => document.activeElement?.dataset.i === '0');
    ok(described < 300, `${described} were described`);
    await leave(p);
});

test('a table is made with indexes, time to live and a stream, and deleted by its name', async () => {
    await ready();
    const p = await page();
    await visit(p, s.endpoint, '/tables');
    await p.getByRole('button', { name: 'Create table' }).click();
    const d = p.locator('dialog[open]');
    await d.getByLabel('Name', { exact: true }).fill('made');
    await d.getByLabel('Partition key', { exact: true }).fill('pk');
    await d.getByLabel('Sort key (optional)', { exact: true }).fill('sk');
    await d.getByLabel('Type of the Sort key').selectOption('N');
    await d.getByRole('button', { name: 'Add global index' }).click();
    const index = d.locator('fieldset');
    await index.getByLabel('Name', { exact: true }).fill('by_kind');
    await index.getByLabel('Partition key', { exact: true }).fill('kind');
    await index.getByLabel('Projection').selectOption('INCLUDE');
    await index.getByLabel('Attributes to include').fill('a, b');
    await d.getByLabel('Stream').selectOption('KEYS_ONLY');
    await d.getByLabel('Time to live').fill('until');
    await d.getByRole('button', { name: 'Create table' }).click();
    await p.getByRole('heading', { name: 'made' }).waitFor();
    const { Table: t } = await s.call('DescribeTable', { TableName: 'made' });
    eq(t.KeySchema.map((k) => k.AttributeName), ['pk', 'sk']);
    eq(t.AttributeDefinitions.find((a) => a.AttributeName === 'sk').AttributeType, 'N');
    eq([t.GlobalSecondaryIndexes[0].IndexName, t.GlobalSecondaryIndexes[0].Projection.NonKeyAttributes.sort()], ['by_kind', ['a', 'b']]);
    eq(t.StreamSpecification.StreamViewType, 'KEYS_ONLY');
    eq((await s.call('DescribeTimeToLive', { TableName: 'made' })).TimeToLiveDescription.AttributeName, 'until');

    /* Settings: tags, policy, protection, stream, index. */
    await p.getByRole('button', { name: 'Add tag…' }).click();
    await d.getByLabel('Name').fill('team');
    await d.getByLabel('Value').fill('blue');
    await d.getByRole('button', { name: 'Add' }).click();
    await p.getByText('blue').waitFor();
    eq((await s.call('ListTagsOfResource', { ResourceArn: t.TableArn })).Tags, [{ Key: 'team', Value: 'blue' }]);
    await p.getByRole('button', { name: 'Add…', exact: true }).click();
    await d.getByRole('button', { name: 'Save' }).click();
    await p.getByRole('button', { name: 'Edit…' }).waitFor();
    ok((await s.call('GetResourcePolicy', { ResourceArn: t.TableArn })).Policy.includes('dynamodb:GetItem'));
    await p.getByRole('button', { name: 'Protect from deletion' }).click();
    await p.getByRole('button', { name: 'Allow deletion' }).waitFor();
    ok(await p.getByRole('button', { name: 'Delete table…' }).isDisabled(), 'a protected table');
    await p.getByRole('button', { name: 'Allow deletion' }).click();
    await p.getByRole('button', { name: 'Protect from deletion' }).waitFor();
    await p.getByRole('row', { name: /by_kind/ }).getByRole('button', { name: 'Delete' }).click();
    await d.getByRole('textbox').fill('by_kind');
    await d.getByRole('button', { name: 'Delete' }).click();
    await p.getByText('A query by another attribute').waitFor();

    await p.getByRole('button', { name: 'Delete table…' }).click();
    const last = d.getByRole('button', { name: 'Delete table' });
    ok(await last.isDisabled(), 'the name is not typed yet');
    await d.getByRole('textbox').fill('mad');
    ok(await last.isDisabled(), 'half of the name');
    await d.getByRole('textbox').fill('made');
    await last.click();
    await p.getByText('Table made is deleted.').waitFor();
    eq((await s.call('ListTables')).TableNames.includes('made'), false);
    await leave(p);
});

/* ---- items ---- */

test('items: a first page at once, more while scrolling, the query in the URL', async () => {
    await ready();
    const p = await page();
    const asked = [];
    p.on('request', (r) => /\.(Scan|Query)$/.test(r.headers()['x-amz-target'] || '') && asked.push(JSON.parse(r.postData())));
    await visit(p, s.endpoint, '/tables/orders/items');
    eq(asked.length, 1, 'requests for the first rows');
    eq(asked[0].Limit, 100);
    ok(await rows(p).count() < 100);
    for (let i = 0; i < 20 && await p.getByText('400 items ·').count() === 0; i++) {
        await p.evaluate(() => scrollTo(0, document.body.scrollHeight));
        await p.waitForFunction(() => document.querySelector('#view tbody tr[data-i]:last-child'));
        await p.keyboard.press('End');
    }
    await p.getByText('400 items ·').waitFor();
    await p.evaluate(() => scrollTo(0, 0));

    await p.getByRole('button', { name: 'Query and filter' }).click();
    await p.getByLabel('Operation').selectOption('query');
    await p.getByLabel('Of', { exact: true }).selectOption('by_status');
    await p.getByLabel('Value of status').fill('paid');
    await p.getByLabel('Condition for day').selectOption('between');
    await p.getByLabel('Value of day').fill('100');
    await p.getByLabel('End of day').fill('200');
    await p.getByRole('button', { name: 'Add filter' }).click();
    await p.getByLabel('Attribute of filter 1').fill('address.city');
    await p.getByLabel('Value of filter 1').fill('Bonn');
    await p.getByLabel('Descending').check();
    await p.getByRole('button', { name: 'Run' }).click();
    const wanted = ORDERS.flatMap((o, i) => (o.status.S === 'paid' && i >= 100 && i <= 200 && o.address.M.city.S === 'Bonn' ? [i] : [])).reverse();
    const count = new RegExp(`^${wanted.length} items · read \\d+ · [\\d.]+ units?`);
    await p.getByText(count).waitFor();
    const days = () => p.locator('#view tbody tr[data-i]').evaluateAll((all) => all.map((tr) => Number(tr.cells[2].textContent)));
    eq(await days(), wanted);
    await p.reload(); /* the URL alone says it */
    await p.getByText(count).waitFor();
    eq(await days(), wanted);

    /* What is wrong is said, and nothing is sent. */
    await p.getByLabel('Value of day').fill('many');
    const before = asked.length;
    await p.getByRole('button', { name: 'Run' }).click();
    await p.getByText('day: "many" is not a number').waitFor();
    eq(asked.length, before);
    await leave(p);
});

test('copy as: each form of a query runs, and finds the same', async () => {
    await ready();
    const p = await page();
    await visit(p, s.endpoint, '/tables');
    const made = await p.evaluate(async () => {
        const { build } = await import('/console/lib/expr.js'), { LANGUAGES } = await import('/console/lib/codegen.js'), { db } = await import('/console/lib/client.js');
        const { Table } = await db('DescribeTable', { TableName: 'orders' });
        const { operation, request } = build(Table, { mode: 'query', index: 'by_status', hash: 'paid', op: '<', range: '20', desc: true, project: 'day, address.city', filters: [{ op: '<>', name: 'note', type: 'S', value: 'it\'s "$x"' }] });
        return Object.fromEntries(LANGUAGES.map(([language, make]) => [language, make(operation, request, location.origin, 'us-east-1')]));
    });
    const wanted = ORDERS.flatMap((o, i) => (o.status.S === 'paid' && i < 20 ? [i] : [])).reverse();
    const env = { ...process.env, AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_DEFAULT_REGION: 'us-east-1', AWS_EC2_METADATA_DISABLED: 'true', PATH: `${path.dirname(process.env.HOLDFAST)}:${process.env.PATH}` };
    const run = (program, ...args) => execFileSync(program, args, { env, encoding: 'utf8', timeout: 60000 });
    eq(run('sh', '-c', made.holdfast + ' --jsonl').trim().split('\n').map((line) => Number(JSON.parse(line).day.N)), wanted, 'holdfast');
    const days = (text) => [...text.matchAll(/day\W+N\W+(\d+)/g)].map((m) => Number(m[1]));
    eq(days(run('/usr/bin/python3', '-c', made.Python)), wanted, 'Python');
    eq(JSON.parse(run('sh', '-c', made['AWS CLI'])).Items.map((i) => Number(i.day.N)), wanted, 'AWS CLI');
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'console-'));
    try {
        const lines = made.C.split('\n').filter((line) => !line.startsWith('#include'));
        fs.writeFileSync(path.join(dir, 'a.c'), `#include <holdfast/db.h>\n#include <stdio.h>\nint complain(const char *text);\nint f(struct hf_scope *s, struct hf_db *db);\nint f(struct hf_scope *s, struct hf_db *db)\n{\n${lines.join('\n')}\nreturn 0;\n}\n`);
        run('cc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', `-I${path.join(__dirname, '../../include')}`, path.join(dir, 'a.c'));
        fs.writeFileSync(path.join(dir, 'a.mjs'), made.JavaScript);
        run('node', '--check', path.join(dir, 'a.mjs'));
    } finally {
        fs.rmSync(dir, { recursive: true });
    }
    await leave(p);
});

test('editor: a change to one attribute changes nothing else, of all ten types', async () => {
    await ready();
    const p = await page();
    await visit(p, s.endpoint, '/tables/orders/items?mode=query&hash=ben&op=%3D&range=1');
    await rows(p).first().focus();
    await p.keyboard.press('Enter');
    const d = p.locator('dialog[open]');
    await d.getByLabel('exact', { exact: true }).fill('9999999999999999999999999999999999.9999');
    await d.getByLabel('How raw is shown').selectOption('hex');
    eq(await d.getByLabel('raw', { exact: true }).inputValue(), '00 01 02 ff');
    await d.getByLabel('raw', { exact: true }).fill('de ad be ef');
    await d.locator('.attribute', { has: p.locator('input[value=tags], input.name') }).filter({ has: p.getByLabel('tags, element') }).getByRole('button', { name: 'Add element' }).click();
    await d.getByLabel('tags, element').last().fill('express');
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByText('3 changes to save:').waitFor();
    eq(await d.locator('table.changes tbody tr').count(), 3);
    await d.getByRole('button', { name: 'Save these 3 changes' }).click();
    await p.getByText('Saved.').waitFor();
    const now = await item('ben', 1), want = { ...ORDER(1), exact: { N: '9999999999999999999999999999999999.9999' }, raw: { B: '3q2+7w==' }, tags: { SS: ['express', 'new'] } };
    const inOrder = (o) => Object.fromEntries(Object.entries(o).sort().map(([k, v]) => [k, v.SS ? { SS: [...v.SS].sort() } : v.NS ? { NS: [...v.NS].sort() } : v.BS ? { BS: [...v.BS].sort() } : v]));
    const maps = (o) => JSON.stringify(inOrder({ ...o, address: o.address.M, lines: [] }), (_, v) => (v && !Array.isArray(v) && typeof v === 'object' ? Object.fromEntries(Object.entries(v).sort()) : v));
    eq(maps(now), maps(want));
    eq(now.lines.L[0].M.n, { N: '2' });

    /* A mistake is named, and nothing is sent. */
    await rows(p).first().click();
    await d.getByLabel('exact', { exact: true }).fill('1'.repeat(39));
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByText('exact: 39 significant digits; at most 38 are stored').waitFor();
    await d.getByLabel('exact', { exact: true }).fill('5');

    /* As JSON: plain is understood, and typed. */
    await d.getByRole('button', { name: 'JSON', exact: true }).click();
    const typed = JSON.parse(await d.getByLabel('The item as JSON').inputValue());
    eq(typed.exact, { N: '5' });
    typed.added = { L: [{ BS: ['AAE='] }] };
    delete typed.note;
    await d.getByLabel('The item as JSON').fill(JSON.stringify(typed));
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByRole('button', { name: 'Save these 3 changes' }).click();
    await p.locator('dialog').waitFor({ state: 'detached' });
    const then = await item('ben', 1);
    eq([then.added, then.note, then.exact], [{ L: [{ BS: ['AAE='] }] }, undefined, { N: '5' }]);
    await leave(p);
});

test('editor: a new item, a key that is taken, a deletion', async () => {
    await ready();
    await make('fresh');
    const p = await page();
    await visit(p, s.endpoint, '/tables/fresh/items');
    await p.getByRole('button', { name: 'New item' }).first().click();
    const d = p.locator('dialog[open]');
    await d.getByLabel('customer', { exact: true }).fill('eve');
    await d.getByLabel('day', { exact: true }).fill('7');
    await d.getByRole('button', { name: 'Add attribute' }).click();
    await d.getByLabel('Name of the attribute').last().fill('name');
    await d.getByLabel('new attribute', { exact: true }).fill('Eve');
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByRole('button', { name: 'Save this item' }).click();
    await p.getByText('The item is stored.').waitFor();
    eq(sorted(await item('eve', 7, 'fresh')), { customer: { S: 'eve' }, day: { N: '7' }, name: { S: 'Eve' } });
    await rows(p).first().click();
    await d.getByRole('button', { name: 'Duplicate' }).click();
    await d.getByText('New item in fresh').waitFor();
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByRole('button', { name: 'Save this item' }).click();
    await d.getByText('There is an item with this key already.').waitFor();
    await d.getByRole('button', { name: 'Close', exact: true }).last().click();
    await rows(p).first().click();
    await d.getByRole('button', { name: 'Delete' }).click();
    await p.locator('dialog[open]').last().getByRole('button', { name: 'Delete', exact: true }).click();
    await p.getByText('The item is deleted.').waitFor();
    eq(await item('eve', 7, 'fresh'), undefined);
    await leave(p);
});

test('editor: what was typed is discarded by yes only', async () => {
    await ready();
    await make('drafts');
    await s.call('PutItem', { TableName: 'drafts', Item: { customer: { S: 'gus' }, day: { N: '1' }, text: { S: 'as it was' }, raw: { B: 'AAEC' } } });
    const p = await page(), all = p.locator('dialog[open]'), editor = all.first(), asks = all.filter({ hasText: 'Discard what you typed?' });
    const kept = () => p.waitForFunction(() => document.querySelectorAll('dialog').length === 1);
    const field = editor.getByLabel('text', { exact: true }), closed = () => p.waitForFunction(() => !document.querySelector('dialog'));
    const edit = async () => {
        await rows(p).first().click();
        await field.waitFor();
    };
    const keep = async () => {
        await asks.getByRole('button', { name: 'Keep editing' }).click();
        await kept();
    };
    await visit(p, s.endpoint, '/tables/drafts/items');

    /* Nothing is asked where nothing would be lost: not for another form of a value, nor for what was typed and undone. */
    await edit();
    await editor.getByLabel('How raw is shown').selectOption('hex');
    await field.fill('else');
    await field.fill('as it was');
    await p.keyboard.press('Escape');
    await closed();

    /* Escape, again and again, ×, Close, and leaving the page */
    await edit();
    await field.fill('typed');
    for (let i = 0; i < 3; i++) {
        await p.keyboard.press('Escape');
        await asks.waitFor();
        eq(await p.evaluate(() => document.activeElement.textContent), 'Keep editing');
        await p.keyboard.press('Escape'); /* which keeps it */
        await kept();
    }
    for (const which of ['first', 'last']) {
        await editor.getByRole('button', { name: 'Close', exact: true })[which]().click();
        await keep();
    }
    eq(await p.evaluate(() => !dispatchEvent(new Event('beforeunload', { cancelable: true }))), true, 'leaving the page is asked for');
    eq(await field.inputValue(), 'typed');
    await editor.getByRole('button', { name: 'Review changes' }).click();
    await p.keyboard.press('Escape');
    await keep();
    await editor.getByRole('button', { name: 'Back' }).click();
    await editor.getByRole('button', { name: 'JSON', exact: true }).click();
    await p.keyboard.press('Escape');
    await asks.getByRole('button', { name: 'Discard' }).click();
    await closed();
    eq((await item('gus', 1, 'drafts')).text, { S: 'as it was' });
    eq(await p.evaluate(() => !dispatchEvent(new Event('beforeunload', { cancelable: true }))), false, 'nothing is open');

    /* JSON, a new item, a copy */
    await edit();
    await editor.getByRole('button', { name: 'JSON', exact: true }).click();
    await editor.getByLabel('The item as JSON').fill('{');
    await p.keyboard.press('Escape');
    await asks.getByRole('button', { name: 'Discard' }).click();
    await closed();
    await p.getByRole('button', { name: 'New item' }).first().click();
    await editor.getByLabel('customer', { exact: true }).waitFor();
    await p.keyboard.press('Escape');
    await closed();
    await edit();
    await field.fill('for the copy');
    await editor.getByRole('button', { name: 'Duplicate' }).click();
    await editor.getByText('New item in drafts').waitFor();
    await p.keyboard.press('Escape');
    await asks.getByRole('button', { name: 'Discard' }).click();
    await closed();

    /* What is saved is not asked for, and neither is another dialog with its text untouched. */
    await edit();
    await field.fill('saved');
    await editor.getByRole('button', { name: 'Review changes' }).click();
    await editor.getByRole('button', { name: 'Save this change' }).click();
    await closed();
    eq((await item('gus', 1, 'drafts')).text, { S: 'saved' });
    await visit(p, s.endpoint, '/tables');
    await p.getByRole('button', { name: 'Create table' }).click();
    await p.keyboard.press('Escape');
    await closed();
    await p.getByRole('button', { name: 'Create table' }).click();
    await editor.getByLabel('Name', { exact: true }).fill('half');
    await editor.getByRole('button', { name: 'Cancel' }).click();
    await keep();
    eq(await editor.getByLabel('Name', { exact: true }).inputValue(), 'half');
    await p.keyboard.press('Escape');
    await asks.getByRole('button', { name: 'Discard' }).click();
    await closed();
    await leave(p);
});

test('two editors do not overwrite each other', async () => {
    await ready();
    const a = await page(), b = await page();
    const url = '/tables/orders/items?mode=query&hash=cleo&op=%3D&range=2';
    for (const p of [a, b]) {
        await visit(p, s.endpoint, url);
        await rows(p).first().click();
        await p.locator('dialog[open] textarea').first().waitFor();
    }
    const change = async (p, name, value) => {
        await p.locator('dialog[open]').getByLabel(name, { exact: true }).fill(value);
        await p.locator('dialog[open]').getByRole('button', { name: 'Review changes' }).click();
        await p.locator('dialog[open]').getByRole('button', { name: /^Save th/ }).click();
    };
    await change(a, 'status', 'returned');
    await a.getByText('Saved.').waitFor();
    await change(b, 'total', '77');
    const d = b.locator('dialog[open]');
    await d.getByText('Not saved: somebody changed this item meanwhile.').waitFor();
    eq(await texts(d.locator('table.changes tbody td')), ['status', 'S shipped', 'S returned']);
    eq((await item('cleo', 2)).total, { N: '2.5' }, 'nothing was written');
    await d.getByRole('button', { name: 'My changes upon theirs' }).click();
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByRole('button', { name: 'Save this change' }).click();
    await b.getByText('Saved.').waitFor();
    const now = await item('cleo', 2);
    eq([now.total, now.status], [{ N: '77' }, { S: 'returned' }]);

    /* Deleting what somebody changed is refused as well. */
    await rows(b).first().click();
    await d.getByLabel('status', { exact: true }).waitFor();
    await s.call('UpdateItem', { TableName: 'orders', Key: { customer: { S: 'cleo' }, day: { N: '2' } }, UpdateExpression: 'SET #t = :t', ExpressionAttributeNames: { '#t': 'total' }, ExpressionAttributeValues: { ':t': { N: '78' } } });
    await d.getByRole('button', { name: 'Delete' }).click();
    await b.locator('dialog[open]').last().getByRole('button', { name: 'Delete', exact: true }).click();
    await b.getByText('it was not deleted').waitFor();
    ok(await item('cleo', 2));
    await leave(a);
    await leave(b);
});

test('many items: loaded from CSV, JSON and JSON lines, selected, changed, exported, deleted', async () => {
    await ready();
    await make('bulk');
    const p = await page();
    await visit(p, s.endpoint, '/tables/bulk/load');
    const lines = Array.from({ length: 60 }, (_, i) => `c${i % 3},${i},${i}.50,"a ""b"", ${i}"`);
    await p.getByLabel('Data to load').fill(`customer,day,price,text\r\n${lines.join('\r\n')}\r\nbad,x,1,t\r\n`);
    await p.getByText('1 of 61 are left out.').waitFor();
    await p.getByText('line 62: day: "x" is not a number').waitFor();
    await p.getByLabel('price').selectOption('S');
    await p.getByRole('button', { name: 'Load 60 items' }).click();
    await p.getByText('60 loaded').waitFor();
    eq(sorted(await item('c1', 1, 'bulk')), { customer: { S: 'c1' }, day: { N: '1' }, price: { S: '1.50' }, text: { S: 'a "b", 1' } });
    await p.getByLabel('Data to load').fill('[{"customer":"j","day":1,"big":12345678901234567890123456789012345678,"set":{"$set":["a"]}},{"customer":{"S":"j"},"day":{"N":"2"}}]');
    await p.getByRole('button', { name: 'Load 2 items' }).click();
    await p.getByText('2 loaded').waitFor();
    await p.locator('.job', { hasText: '2 loaded' }).getByRole('button', { name: 'Close' }).click();
    eq(sorted(await item('j', 1, 'bulk')), { big: { N: '12345678901234567890123456789012345678' }, customer: { S: 'j' }, day: { N: '1' }, set: { SS: ['a'] } });
    const dropped = await p.evaluateHandle(() => {
        const data = new DataTransfer();
        data.items.add(new File(['customer,day\ndropped,1\n'], 'items.csv', { type: 'text/csv' }));
        return data;
    });
    await p.locator('.drop').dispatchEvent('drop', { dataTransfer: dropped });
    await p.getByRole('button', { name: 'Load 1 item' }).click();
    await p.getByText('1 loaded', { exact: true }).waitFor();
    await p.locator('.job', { hasText: '1 loaded' }).getByRole('button', { name: 'Close' }).click();
    ok(await item('dropped', 1, 'bulk'));
    await p.getByLabel('Data to load').fill('{"customer":"l","day":1}\n{"Item":{"customer":{"S":"l"},"day":{"N":"2"}}}\n');
    await p.getByRole('button', { name: 'Load 2 items' }).click();
    await p.getByText('2 loaded').waitFor();
    ok(await item('l', 2, 'bulk'));

    await visit(p, s.endpoint, '/tables/bulk/items?mode=query&hash=c1');
    await p.getByText(/^20 items/).waitFor();
    await p.getByLabel('Select all rows that are loaded').check();
    await p.getByText('20 selected').waitFor();
    await p.getByRole('button', { name: 'Edit…' }).click();
    const d = p.locator('dialog[open]');
    await d.getByLabel('Attribute', { exact: true }).fill('mark');
    await d.getByLabel('the value', { exact: true }).fill('seen');
    await d.getByRole('button', { name: 'Change 20 items' }).click();
    await p.getByText('20 changed').waitFor();
    eq((await s.call('Query', { TableName: 'bulk', KeyConditionExpression: 'customer = :c', FilterExpression: 'mark = :m', ExpressionAttributeValues: { ':c': { S: 'c1' }, ':m': { S: 'seen' } } })).Count, 20);

    await p.getByRole('button', { name: 'Export ▾' }).first().click();
    const [file] = await Promise.all([p.waitForEvent('download'), p.getByRole('menuitem', { name: 'All as CSV' }).click()]);
    const csv = fs.readFileSync(await file.path(), 'utf8').trim().split('\r\n');
    eq([csv.length, csv[0]], [21, 'customer,day,mark,price,text']);

    await rows(p).first().focus();
    await p.keyboard.press('Space');
    await p.getByText('1 selected').waitFor();
    await p.getByRole('button', { name: 'Delete…' }).click();
    ok(await d.getByRole('button', { name: 'Delete 1 item' }).isDisabled());
    await d.getByRole('textbox').fill('bulk');
    await d.getByRole('button', { name: 'Delete 1 item' }).click();
    await p.getByText('1 deleted').waitFor();
    await p.getByRole('button', { name: 'More ▾' }).click();
    await p.getByRole('menuitem', { name: 'Delete all that match…' }).click();
    await d.getByRole('textbox').fill('bulk');
    await d.getByRole('button', { name: 'Delete all that match' }).click();
    await p.getByText('19 deleted').waitFor();
    const left = await s.call('Scan', { TableName: 'bulk', Select: 'COUNT' });
    eq(left.Count, 60 + 2 + 1 + 2 - 20);
    await leave(p);
});

/* ---- PartiQL ---- */

test('PartiQL: what will be read is told, the index is advised, history is kept', async () => {
    await ready();
    const p = await page();
    await visit(p, s.endpoint, '/partiql');
    const text = p.getByLabel('Statement');
    const plan = async (statement, kind, words) => {
        await text.fill(statement);
        await p.locator('.plan .badge', { hasText: new RegExp(`^${kind}$`) }).waitFor();
        await p.locator('.plan').getByText(words).waitFor();
    };
    await plan('SELECT * FROM orders WHERE customer = \'ann\' AND day = 4', 'one item', 'The whole key is given');
    await plan('SELECT * FROM orders WHERE customer IN [\'ann\', \'ben\'] AND day > 4', 'query', '2 partitions are read, of it what matches day');
    await plan('DELETE FROM orders WHERE customer = \'ann\'', 'will fail', 'fix the whole key');
    await text.fill('SELECT * FROM nowhere');
    await p.getByText('There is no table nowhere.').waitFor();
    await plan('SELECT * FROM orders WHERE status = \'open\' OR day = 1', 'scan', 'OR across attributes');
    await plan('SELECT * FROM "orders" WHERE status = \'open\'', 'scan', 'FROM "orders"."by_status" makes it a query');
    await p.getByText(/^Reads 4\d\d items/).waitFor();
    await p.getByRole('button', { name: 'Use it' }).click();
    await p.locator('.plan .badge', { hasText: /^query$/ }).waitFor();
    eq(await text.inputValue(), 'SELECT * FROM "orders"."by_status" WHERE status = \'open\'');
    const open = (await s.call('Query', { TableName: 'orders', IndexName: 'by_status', KeyConditionExpression: '#s = :s', ExpressionAttributeNames: { '#s': 'status' }, ExpressionAttributeValues: { ':s': { S: 'open' } }, Select: 'COUNT' })).Count;
    await p.getByRole('button', { name: 'Estimate' }).click();
    await p.getByText(`${open} items match; reading them takes`).waitFor();
    await text.press('Control+Enter');
    await p.getByText(/^\d+ items · \d+ reads? · [\d.]+ units? \(.*index by_status/).waitFor();
    await text.fill('INSERT INTO orders VALUE {\'customer\': \'zoe\', \'day\': 1}');
    await p.getByRole('button', { name: 'Run', exact: true }).click();
    await p.locator('.state').getByText('Done').waitFor();
    ok(await item('zoe', 1));
    await p.reload();
    await p.getByText('History (2)').waitFor();
    await text.fill('SELECT * FORM x');
    await p.getByRole('button', { name: 'Run', exact: true }).click();
    await p.locator('.state.problem').getByText('ValidationException').waitFor();
    await leave(p);
});

test('a scan that filters is stopped, and stays so', async () => {
    await ready();
    const p = await page();
    const target = (route) => (route.request().headers()['x-amz-target'] || '').split('.')[1];
    /* Pages without end; the second one is held back. */
    let pages = 0, hold;
    const asked = new Promise((resolve) => { hold = resolve; });
    await p.route(s.endpoint + '/', (route) => {
        if (target(route) !== 'Scan' || !JSON.parse(route.request().postData()).FilterExpression)
            return route.continue();
        if (++pages === 2)
            return hold(route);
        return route.fulfill({ json: { Items: [ORDERS[0]], Count: 1, ScannedCount: 2000, LastEvaluatedKey: { customer: { S: 'ann' }, day: { N: '1' } } } });
    });
    await visit(p, s.endpoint, '/tables/orders/items');
    await p.getByRole('button', { name: 'Query and filter' }).click();
    await p.getByRole('button', { name: 'Add filter' }).click();
    await p.getByLabel('Attribute of filter 1').fill('rare');
    await p.getByLabel('Value of filter 1').fill('x');
    await p.getByRole('button', { name: 'Run' }).click();
    const held = await asked;
    await p.getByText('Read 2,000, found 1 … ').waitFor();
    await p.getByRole('button', { name: 'Stop' }).click();
    await p.getByText('1 item so far · read 2,000').waitFor();
    await p.getByRole('button', { name: 'Load more' }).waitFor();
    await held.abort().catch(() => { });
    eq(pages, 2, 'pages that were asked for');
    await leave(p);
});

/* ---- entities, streams, backups ---- */

test('entities: kinds of a single table, and one partition as a whole', async () => {
    await ready();
    await s.call('CreateTable', { TableName: 'shop', BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }, { AttributeName: 'sk', KeyType: 'RANGE' }], AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }, { AttributeName: 'sk', AttributeType: 'S' }] });
    const all = [];
    for (let c = 0; c < 5; c++) {
        all.push({ pk: { S: `CUSTOMER#${c}` }, sk: { S: 'PROFILE' }, name: { S: `Name ${c}` } });
        for (let o = 0; o < c; o++)
            all.push({ pk: { S: `CUSTOMER#${c}` }, sk: { S: `ORDER#${o}` }, total: { N: '5' } });
    }
    await s.call('BatchWriteItem', { RequestItems: { shop: all.map((Item) => ({ PutRequest: { Item } })) } });
    const p = await page();
    await visit(p, s.endpoint, '/tables/shop/entities');
    const kinds = await p.getByRole('grid', { name: 'Kinds of items' }).locator('tbody tr[data-i]').evaluateAll((trs) => trs.map((tr) => [tr.cells[0].textContent.replace(/\s+/g, ' '), tr.cells[1].textContent]));
    eq(kinds, [['CUSTOMER# · ORDER#', '10'], ['CUSTOMER# · PROFILE', '5']]);
    await p.getByRole('grid', { name: 'Item collections' }).getByText('CUSTOMER#4').click();
    await p.locator('.collection li').nth(4).waitFor();
    eq(await p.locator('.collection li').count(), 5);
    await p.getByRole('link', { name: 'Find all' }).first().click();
    await p.getByText(/^10 items · read 15/).waitFor();
    await leave(p);
});

test('streams: records come as they are written, with both images', async () => {
    await ready();
    await make('told', { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } });
    const p = await page();
    await visit(p, s.endpoint, '/tables/told/stream');
    await s.call('PutItem', { TableName: 'told', Item: { customer: { S: 'a' }, day: { N: '1' }, x: { S: 'before' }, same: { BOOL: true } } });
    await p.getByText('new item').waitFor(); /* nobody pressed a button */
    await s.call('PutItem', { TableName: 'told', Item: { customer: { S: 'a' }, day: { N: '1' }, x: { S: 'after' }, same: { BOOL: true } } });
    await p.getByText('x: before → after').waitFor();
    await p.getByText('x: before → after').click();
    const d = p.locator('dialog[open]');
    eq(await texts(d.locator('td.old')), ['S before']);
    eq(await texts(d.locator('td.new')), ['S after']);
    await leave(p);
});

test('backups: made, on the time line, restored, deleted', async () => {
    await ready();
    const p = await page();
    await visit(p, s.endpoint, '/backups?table=orders');
    await p.getByRole('button', { name: 'Back up a table…' }).first().click();
    const d = p.locator('dialog[open]');
    await d.getByLabel('Name').fill('before-sale');
    await d.getByRole('button', { name: 'Back up' }).click();
    await p.getByRole('button', { name: /^Restore before-sale of/ }).click();
    await d.getByLabel('Name of the new table').fill('orders-back');
    await d.getByRole('button', { name: 'Restore' }).click();
    await p.getByRole('heading', { name: 'orders-back' }).waitFor();
    await p.locator('.badge', { hasText: 'active' }).first().waitFor();
    const counts = await Promise.all(['orders', 'orders-back'].map((TableName) => s.call('Scan', { TableName, Select: 'COUNT' })));
    eq(counts[1].Count, counts[0].Count);
    await visit(p, s.endpoint, '/backups?table=orders');
    await p.getByRole('grid', { name: 'Backups' }).getByRole('button', { name: 'Delete…' }).click();
    ok(await d.getByRole('button', { name: 'Delete', exact: true }).isDisabled(), 'its name is not typed yet');
    await d.getByRole('textbox').fill('before-sale');
    await d.getByRole('button', { name: 'Delete', exact: true }).click();
    await p.getByText('No backups yet').waitFor();
    eq((await s.call('ListBackups', { TableName: 'orders' })).BackupSummaries, []);
    await leave(p);
});

/* ---- what else can be pressed ---- */

test('settings: time to live, stream, capacity, an index, tags, the policy, a backup', async () => {
    await ready();
    await make('settings');
    const p = await page({ clipboard: true }), d = p.locator('dialog[open]'), name = { TableName: 'settings' };
    const panel = (title) => p.locator('section', { has: p.getByRole('heading', { name: title, exact: true }) });
    const press = (title, text) => panel(title).getByRole('button', { name: text, exact: true }).click();
    const table = async () => (await s.call('DescribeTable', name)).Table, ttl = async () => (await s.call('DescribeTimeToLive', name)).TimeToLiveDescription;
    const arn = (await table()).TableArn;
    await s.call('TagResource', { ResourceArn: arn, Tags: [{ Key: 'team', Value: 'blue' }, { Key: 'cost', Value: '7' }] });
    await visit(p, s.endpoint, '/tables/settings');

    /* On, off, and on with another attribute: there is no other way to change it. */
    for (const attribute of ['until', 'expires']) {
        await press('Time to live', 'Turn on…');
        await d.getByLabel('Attribute', { exact: true }).fill(attribute);
        await d.getByRole('button', { name: 'Turn on' }).click();
        await panel('Time to live').getByText(attribute, { exact: true }).waitFor();
        eq([(await ttl()).TimeToLiveStatus, (await ttl()).AttributeName], ['ENABLED', attribute]);
        await press('Time to live', 'Turn off');
        await panel('Time to live').getByRole('button', { name: 'Turn on…' }).waitFor();
        eq((await ttl()).TimeToLiveStatus, 'DISABLED');
    }

    await press('Stream', 'Turn on…');
    await d.getByLabel('Images').selectOption('KEYS_ONLY');
    await d.getByRole('button', { name: 'Turn on' }).click();
    await panel('Stream').getByText('keys only').waitFor();
    eq((await table()).StreamSpecification, { StreamEnabled: true, StreamViewType: 'KEYS_ONLY' });
    await press('Stream', 'Turn off');
    await d.getByRole('button', { name: 'Keep' }).click();
    eq((await table()).StreamSpecification.StreamEnabled, true, 'after Keep');
    await press('Stream', 'Turn off');
    await d.getByRole('button', { name: 'Turn off' }).click();
    await panel('Stream').getByRole('button', { name: 'Turn on…' }).waitFor();
    eq((await table()).StreamSpecification?.StreamEnabled ?? false, false);

    await press('Table', 'Capacity…');
    await d.getByLabel('Capacity').selectOption('PROVISIONED');
    await d.getByLabel('Read units').fill('7');
    await d.getByLabel('Write units').fill('9');
    await d.getByRole('button', { name: 'Change' }).click();
    await panel('Table').getByText('7 read, 9 write units').waitFor();
    await press('Indexes', 'Add global index');
    await d.getByLabel('Name', { exact: true }).fill('by_kind');
    await d.getByLabel('Partition key', { exact: true }).fill('kind');
    await d.getByRole('button', { name: 'Add index' }).click();
    await panel('Indexes').getByRole('row', { name: /by_kind.*active/ }).waitFor();
    const { GlobalSecondaryIndexes: [index], ProvisionedThroughput: units } = await table();
    eq([index.IndexName, index.KeySchema, index.ProvisionedThroughput.ReadCapacityUnits, units.WriteCapacityUnits], ['by_kind', [{ AttributeName: 'kind', KeyType: 'HASH' }], 7, 9]);

    await panel('Tags').getByRole('row', { name: /team/ }).getByRole('button', { name: 'Remove' }).click();
    await panel('Tags').getByRole('row', { name: /team/ }).waitFor({ state: 'detached' });
    eq((await s.call('ListTagsOfResource', { ResourceArn: arn })).Tags, [{ Key: 'cost', Value: '7' }]);

    await press('Policy', 'Add…');
    await d.getByRole('button', { name: 'Save' }).click();
    await press('Policy', 'Edit…');
    const policy = d.getByLabel('Policy as JSON');
    await policy.fill((await policy.inputValue()).replace('dynamodb:Query', 'dynamodb:Scan'));
    await d.getByRole('button', { name: 'Save' }).click();
    await panel('Policy').getByText('dynamodb:Scan').waitFor();
    ok((await s.call('GetResourcePolicy', { ResourceArn: arn })).Policy.includes('dynamodb:Scan'));

    await press('Backups', 'Back up now…');
    await d.getByRole('button', { name: 'Back up' }).click();
    await panel('Backups').getByText(/^1, the latest/).waitFor();
    eq((await s.call('ListBackups', name)).BackupSummaries.length, 1);
    await press('Table', 'Copy');
    await p.getByText('Copied').first().waitFor();
    eq(await p.evaluate(() => navigator.clipboard.readText()), arn);
    await s.call('DeleteBackup', { BackupArn: (await s.call('ListBackups', name)).BackupSummaries[0].BackupArn });
    await leave(p);
});

test('a table is made with provisioned capacity and a local index; another index is taken back', async () => {
    await ready();
    const p = await page(), d = p.locator('dialog[open]');
    await visit(p, s.endpoint, '/tables');
    await p.getByRole('button', { name: 'Create table' }).click();
    await d.getByLabel('Name', { exact: true }).fill('local');
    await d.getByLabel('Partition key', { exact: true }).fill('pk');
    await d.getByLabel('Sort key (optional)', { exact: true }).fill('sk');
    await d.getByRole('button', { name: 'Add global index' }).click();
    await d.locator('fieldset').getByLabel('Name', { exact: true }).fill('not_wanted');
    await d.getByRole('button', { name: 'Remove index' }).click();
    eq(await d.locator('fieldset').count(), 0);
    await d.getByRole('button', { name: 'Add local index' }).click();
    await d.locator('fieldset').getByLabel('Name', { exact: true }).fill('by_time');
    await d.locator('fieldset').getByLabel('Sort key', { exact: true }).fill('at');
    await d.locator('fieldset').getByLabel('Projection').selectOption('KEYS_ONLY');
    await d.getByLabel('Capacity').selectOption('PROVISIONED');
    await d.getByLabel('Read units').fill('3');
    await d.getByLabel('Write units').fill('4');
    await d.getByRole('button', { name: 'Create table' }).click();
    await p.getByRole('heading', { name: 'local' }).waitFor();
    const { Table: t } = await s.call('DescribeTable', { TableName: 'local' });
    eq([t.ProvisionedThroughput.ReadCapacityUnits, t.ProvisionedThroughput.WriteCapacityUnits, t.GlobalSecondaryIndexes], [3, 4, undefined]);
    eq(t.LocalSecondaryIndexes.map((i) => [i.IndexName, i.KeySchema.map((k) => k.AttributeName), i.Projection.ProjectionType]), [['by_time', ['pk', 'at'], 'KEYS_ONLY']]);
    await leave(p);
});

test('items: one of several filters, fewer attributes, the request, a selection; columns are remembered', async () => {
    await ready();
    const p = await page({ clipboard: true }), d = p.locator('dialog[open]'), all = (await s.call('Scan', { TableName: 'orders' })).Items;
    const found = (holds) => p.getByText(new RegExp(`^${all.filter(holds).length} items ·`)).waitFor(), run = () => p.getByRole('button', { name: 'Run', exact: true }).click();
    const clipboard = () => p.evaluate(() => navigator.clipboard.readText());
    const filters = [{ name: 'customer', op: '=', type: 'S', value: 'zed' }, { name: 'total', op: '<', type: 'N', value: '10' }, { name: 'rare', op: 'exists', type: 'S', value: '' }];
    await visit(p, s.endpoint, `/tables/orders/items?filters=${encodeURIComponent(JSON.stringify(filters))}`);
    await p.getByText('Nothing found').waitFor();
    await p.getByLabel('How filters are combined').selectOption('1');
    await run();
    await found((o) => o.total?.N < 10 || o.rare);
    await p.getByRole('button', { name: 'Remove filter 3' }).click();
    await run();
    await found((o) => o.total?.N < 10);
    await p.getByLabel('Attributes to read').fill('day, total');
    await p.getByLabel('Consistent').check();
    await p.getByRole('button', { name: 'Show request' }).click();
    const request = JSON.parse(await d.locator('pre').innerText()), names = request.ExpressionAttributeNames || {};
    eq([request.ConsistentRead, request.ProjectionExpression.split(/, */).map((part) => names[part] || part)], [true, ['day', 'total']]);
    await d.getByRole('button', { name: 'Close' }).last().click();
    await run();
    await p.waitForFunction(() => ![...document.querySelectorAll('#view thead th')].some((th) => th.textContent === 'status'));
    await p.getByRole('button', { name: 'Copy link' }).click();
    await p.getByText('Link copied').waitFor();
    eq(await clipboard(), p.url());

    await rows(p).nth(0).getByRole('checkbox').click();
    await rows(p).nth(1).getByRole('checkbox').click();
    await p.getByText('2 selected').waitFor();
    const picked = p.locator('.picked');
    await picked.getByRole('button', { name: 'Copy', exact: true }).click();
    await p.getByText('Copied').first().waitFor();
    const two = JSON.parse(await clipboard());
    eq(two.map((one) => Object.keys(one).sort().join()), ['day,total', 'day,total'].map((keys) => (two[0].customer ? `customer,${keys}` : keys)));
    await picked.getByRole('button', { name: 'Export ▾' }).click();
    const [file] = await Promise.all([p.waitForEvent('download'), p.getByRole('menuitem', { name: 'JSON', exact: true }).click()]);
    eq(JSON.parse(fs.readFileSync(await file.path(), 'utf8')).length, 2);
    await picked.getByRole('button', { name: 'Clear' }).click();
    ok(await picked.isHidden());

    await p.getByRole('button', { name: 'Reset' }).click();
    await p.getByText(/^100 items so far/).waitFor();
    eq(await p.getByLabel('Attributes to read').inputValue(), '');
    const heads = () => p.locator('#view thead th').allInnerTexts();
    ok((await heads()).some((text) => text.startsWith('status')));
    await p.getByRole('button', { name: 'Columns' }).click();
    await p.getByLabel('status', { exact: true }).uncheck();
    await p.keyboard.press('Escape');
    await p.reload();
    await rows(p).first().waitFor();
    ok(!(await heads()).some((text) => text.startsWith('status')), 'remembered');
    await leave(p);
});

test('many items lose an attribute; a load keeps what is there', async () => {
    await ready();
    await make('thin');
    for (const day of ['1', '2', '3'])
        await s.call('PutItem', { TableName: 'thin', Item: { customer: { S: 'c' }, day: { N: day }, mark: { S: 'x' }, other: { S: 'y' } } });
    const p = await page(), d = p.locator('dialog[open]');
    await visit(p, s.endpoint, '/tables/thin/items');
    await p.getByLabel('Select all rows that are loaded').check();
    await p.getByRole('button', { name: 'Edit…' }).click();
    await d.getByLabel('What').selectOption('remove');
    await d.getByLabel('Attribute', { exact: true }).fill('mark');
    await d.getByRole('button', { name: 'Change 3 items' }).click();
    await p.getByText('3 changed').waitFor();
    eq((await s.call('Scan', { TableName: 'thin' })).Items.map((one) => Object.keys(one).sort().join()), Array(3).fill('customer,day,other'));

    await visit(p, s.endpoint, '/tables/thin/load');
    await p.getByLabel('File to load').setInputFiles({ name: 'more.jsonl', mimeType: 'application/json', buffer: Buffer.from('{"customer": "c", "day": 3, "other": "new"}\n{"customer": "c", "day": 4, "other": "new"}\n') });
    await p.getByLabel('Items that are there already').selectOption('keep');
    await p.getByRole('button', { name: 'Load 2 items' }).click();
    await p.getByText('1 loaded, 1 were there already').waitFor();
    eq([(await item('c', 3, 'thin')).other, (await item('c', 4, 'thin')).other], [{ S: 'y' }, { S: 'new' }]);
    await leave(p);
});

test('editor: elements and attributes are removed and added, and a type is changed', async () => {
    await ready();
    await make('parts');
    await s.call('PutItem', { TableName: 'parts', Item: { customer: { S: 'p' }, day: { N: '1' }, set: { SS: ['a', 'b', 'c'] }, sizes: { NS: ['1', '2'] }, list: { L: [{ S: 'x' }, { S: 'y' }] }, map: { M: { one: { S: '1' }, two: { S: '2' } } }, gone: { BOOL: true }, n: { S: '42' } } });
    const p = await page(), d = p.locator('dialog[open]'), of = (label) => d.locator('.attribute').filter({ has: p.getByLabel(label, { exact: true }) }).first();
    await visit(p, s.endpoint, '/tables/parts/items');
    await rows(p).first().click();
    const elements = d.getByLabel('set, element'), shown = () => elements.evaluateAll((all) => all.map((e) => e.value));
    await elements.first().waitFor();
    const b = (await shown()).indexOf('b');
    await of('set, element').getByRole('button', { name: 'Remove this element' }).nth(b).click();
    eq((await shown()).sort(), ['a', 'c']);
    await of('list[0]').getByRole('button', { name: 'Remove this element' }).first().click();
    await of('list[1]').getByRole('button', { name: 'Add element' }).click();
    await d.getByLabel('list[1]', { exact: true }).last().fill('z');
    await d.getByRole('button', { name: 'Remove one' }).click();
    await d.getByRole('button', { name: 'Remove gone' }).click();
    await d.getByLabel('Type of n', { exact: true }).selectOption('N');
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByRole('button', { name: /^Save these \d changes/ }).click();
    await p.getByText('Saved.').waitFor();
    const now = await item('p', 1, 'parts');
    now.set.SS.sort();
    now.sizes.NS.sort();
    eq(sorted(now), { customer: { S: 'p' }, day: { N: '1' }, list: { L: [{ S: 'y' }, { S: 'z' }] }, map: { M: { two: { S: '2' } } }, n: { N: '42' }, set: { SS: ['a', 'c'] }, sizes: { NS: ['1', '2'] } });

    /* A set is never empty, and has nothing twice: that is said, and nothing is sent. */
    await rows(p).first().click();
    for (const left of [1, 0]) {
        await of('set, element').getByRole('button', { name: 'Remove this element' }).first().click();
        eq(await elements.count(), left);
    }
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByText('set: a set has at least one element; remove the attribute instead').waitFor();
    await d.getByRole('button', { name: 'Remove set' }).click();
    await of('sizes, element').getByRole('button', { name: 'Add element' }).click();
    await d.getByLabel('sizes, element').last().fill('2');
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByText('sizes: a set holds each element once').waitFor();
    await d.getByLabel('sizes, element').last().fill('3');
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByRole('button', { name: /^Save these \d changes/ }).click();
    await p.waitForFunction(() => !document.querySelector('dialog'));
    const then = await item('p', 1, 'parts');
    eq([then.set, then.sizes.NS.sort()], [undefined, ['1', '2', '3']]);
    await leave(p);
});

test('streams: one shard by hand, from now on, a record as JSON; all streams', async () => {
    await ready();
    await make('sharded', { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' } });
    const write = (day) => s.call('PutItem', { TableName: 'sharded', Item: { customer: { S: 'c' }, day: { N: String(day) } } });
    await write(1);
    const { Streams: [{ StreamArn }] } = await s.call('ListStreams', { TableName: 'sharded' });
    const shards = (await s.call('DescribeStream', { StreamArn })).StreamDescription.Shards.map((one) => one.ShardId);
    const p = await page({ clipboard: true }), d = p.locator('dialog[open]'), asked = [];
    p.on('request', (r) => (r.headers()['x-amz-target'] || '').endsWith('.GetShardIterator') && asked.push(JSON.parse(r.postData())));
    await visit(p, s.endpoint, '/streams');
    await p.getByRole('grid', { name: 'Streams' }).getByRole('link', { name: 'sharded' }).click();
    await p.getByText('1 record · follows').waitFor();
    const shard = shards[shards.length - 1];
    asked.length = 0;
    await p.getByLabel('Shard', { exact: true }).selectOption(shard);
    await p.waitForFunction((id) => location.hash.includes(encodeURIComponent(id)) || location.hash.includes(id), shard);
    await p.getByText(/^\d+ records · follows/).waitFor();
    ok(asked.length && asked.every((one) => one.ShardId === shard), JSON.stringify(asked));
    await p.getByLabel('Shard', { exact: true }).selectOption('');
    await p.getByText('1 record · follows').waitFor();
    await p.getByLabel('Where to start').selectOption('LATEST');
    await p.getByText('0 records · follows').waitFor();
    await write(2);
    await p.getByText('1 record · follows').waitFor(); /* by itself */
    await p.getByRole('button', { name: 'Read on' }).click();
    await rows(p).first().click();
    await d.getByRole('button', { name: 'Copy as JSON' }).click();
    await p.getByText('Copied').first().waitFor();
    const record = JSON.parse(await p.evaluate(() => navigator.clipboard.readText()));
    eq([record.eventName, record.dynamodb.NewImage.day], ['INSERT', { N: '2' }]);
    await leave(p);
});

test('streams: what is chosen while records are being read is what comes', async () => {
    await ready();
    await make('hurried', { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' } });
    const write = (day) => s.call('PutItem', { TableName: 'hurried', Item: { customer: { S: 'c' }, day: { N: String(day) } } });
    await write(1);
    const p = await page();
    await visit(p, s.endpoint, '/tables/hurried/stream');
    await p.getByText('1 record · follows').waitFor();
    await p.evaluate(async () => { /* what was written is no news any more: there are figures every second */
        const { on } = await import('/console/lib/bus.js');
        let n = 0;
        await new Promise((done) => on('figures', () => ++n === 3 && done()));
    });
    let free, held;
    const reading = new Promise((done) => { held = done; }), chosen = new Promise((done) => { free = done; });
    await p.route(s.endpoint + '/', async (route) => {
        if ((route.request().headers()['x-amz-target'] || '').endsWith('.GetRecords')) {
            held();
            await chosen;
        }
        await route.continue();
    });
    await p.getByRole('button', { name: 'Read on' }).click();
    await reading;
    await p.getByLabel('Where to start').selectOption('LATEST');
    free();
    await p.getByText('0 records · follows').waitFor();
    await write(2);
    await p.getByRole('button', { name: 'Read on' }).click();
    await p.getByText('1 record · follows').waitFor();
    await leave(p);
});

test('entities: kinds by an attribute, collections of an index, an item of one is changed', async () => {
    await ready();
    await make('kinds', { AttributeDefinitions: [['customer', 'S'], ['day', 'N'], ['city', 'S']].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
        GlobalSecondaryIndexes: [{ IndexName: 'by_city', KeySchema: [{ AttributeName: 'city', KeyType: 'HASH' }, { AttributeName: 'day', KeyType: 'RANGE' }], Projection: { ProjectionType: 'ALL' } }] });
    for (let i = 0; i < 6; i++)
        await s.call('PutItem', { TableName: 'kinds', Item: { customer: { S: `c${i}` }, day: { N: String(i) }, city: { S: i % 3 ? 'Bonn' : 'Ulm' }, sort: { S: i % 2 ? 'private' : 'firm' }, note: { S: 'old' } } });
    const p = await page(), d = p.locator('dialog[open]');
    await visit(p, s.endpoint, '/tables/kinds/entities');
    await p.getByLabel('Kinds by').selectOption('sort');
    const kinds = () => p.getByRole('grid', { name: 'Kinds of items' }).locator('tbody tr[data-i]').evaluateAll((trs) => trs.map((tr) => [tr.cells[0].textContent, tr.cells[1].textContent]).sort());
    eq(await kinds(), [['firm', '3'], ['private', '3']]);
    await p.getByLabel('Collections of').selectOption('by_city');
    await p.getByRole('grid', { name: 'Item collections' }).getByText('Bonn').click();
    await p.locator('.collection li').nth(3).waitFor();
    await p.locator('.collection li').first().getByRole('button').click();
    await d.getByLabel('note', { exact: true }).fill('new');
    await d.getByRole('button', { name: 'Review changes' }).click();
    await d.getByRole('button', { name: 'Save this change' }).click();
    await p.getByText('Saved.').waitFor();
    await p.locator('.collection').getByText('new').waitFor();
    eq((await item('c1', 1, 'kinds')).note, { S: 'new' });
    await p.locator('section', { has: p.locator('.collection') }).getByRole('button', { name: 'Close' }).click();
    await p.locator('.collection').waitFor({ state: 'hidden' });
    await p.reload(); /* the URL has the attribute and the index */
    await p.getByRole('grid', { name: 'Kinds of items' }).getByText('private').waitFor();
    eq(await p.getByLabel('Collections of').inputValue(), 'by_city');
    await leave(p);
});

test('PartiQL: a table from the list, a statement of the history, a DELETE that is asked for, exports', async () => {
    await ready();
    await make('spoken');
    await s.call('PutItem', { TableName: 'spoken', Item: { customer: { S: 'p' }, day: { N: '1' }, big: { N: '12345678901234567890' } } });
    const p = await page(), d = p.locator('dialog[open]'), text = p.getByLabel('Statement'), run = () => p.getByRole('button', { name: 'Run', exact: true }).click();
    await visit(p, s.endpoint, '/partiql');
    await p.getByRole('button', { name: 'Tables ▾' }).click();
    await p.getByRole('menuitem', { name: 'spoken', exact: true }).click();
    eq(await text.inputValue(), 'SELECT * FROM "spoken"');
    await run();
    await rows(p).first().waitFor();
    for (const [name, read] of [['CSV', (all) => all.includes('12345678901234567890')], ['JSON with types', (all) => JSON.parse(all)[0].big.N === '12345678901234567890']]) {
        await p.getByRole('button', { name: 'Export ▾' }).click();
        const [file] = await Promise.all([p.waitForEvent('download'), p.getByRole('menuitem', { name, exact: true }).click()]);
        ok(read(fs.readFileSync(await file.path(), 'utf8')), name);
    }
    await rows(p).first().click();
    await d.getByText('12345678901234567890').waitFor();
    await d.getByRole('button', { name: 'Close' }).last().click();
    await p.getByRole('button', { name: 'Copy as ▾' }).click();
    await p.getByRole('menuitem', { name: 'Python' }).click();
    ok((await d.locator('pre').innerText()).includes('execute_statement'), 'Python');
    await d.getByRole('button', { name: 'Close' }).last().click();

    await text.fill('DELETE FROM "spoken" WHERE customer = \'p\' AND day = 1');
    await run();
    await d.getByRole('button', { name: 'Keep' }).click();
    ok(await item('p', 1, 'spoken'), 'kept');
    await run();
    await d.getByRole('button', { name: 'Run it' }).click();
    await p.locator('.state').getByText('Done').waitFor();
    eq(await item('p', 1, 'spoken'), undefined);
    if (!await p.locator('.history').isVisible())
        await p.getByText('History (2)').click();
    await p.locator('.history').getByRole('button', { name: 'SELECT * FROM "spoken"' }).click();
    eq(await text.inputValue(), 'SELECT * FROM "spoken"');
    await p.getByRole('button', { name: 'Clear history' }).click();
    await p.getByText('History (0)').waitFor();
    eq(await p.evaluate(() => localStorage.getItem('holdfast.partiql')), null);
    await leave(p);
});

test('backups: from the time line; of one table and of all', async () => {
    await ready();
    await make('saved');
    await make('saved-too');
    for (const TableName of ['saved', 'saved-too'])
        await s.call('CreateBackup', { TableName, BackupName: `of-${TableName}` });
    const p = await page(), d = p.locator('dialog[open]'), grid = p.getByRole('grid', { name: 'Backups' });
    await visit(p, s.endpoint, '/backups?table=saved');
    await grid.getByText('of-saved', { exact: true }).waitFor();
    eq(await grid.getByText('of-saved-too').count(), 0);
    await p.getByRole('button', { name: 'All tables' }).click();
    await grid.getByText('of-saved-too').waitFor();
    await p.getByRole('button', { name: /^Restore of-saved-too of/ }).click();
    await d.getByLabel('Name of the new table').fill('saved-again');
    await d.getByRole('button', { name: 'Restore' }).click();
    await p.getByRole('heading', { name: 'saved-again' }).waitFor();
    ok((await s.call('ListTables')).TableNames.includes('saved-again'));
    for (const one of (await s.call('ListBackups')).BackupSummaries)
        await s.call('DeleteBackup', { BackupArn: one.BackupArn });
    await leave(p);
});

/* examples/served.c, which ctest names; by hand it is beside the program that was built. */
const SERVED = process.env.SERVED || path.join(path.dirname(process.env.HOLDFAST), 'examples/example_served');

test('a database that a C program has open and writes to', async () => {
    if (!process.env.SERVED && !fs.existsSync(SERVED))
        return void console.log(`not run: ${SERVED} is not built`);
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'console-served-'));
    const child = spawn(SERVED, ['600'], { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] }), ended = new Promise((done) => child.on('close', done)), kill = () => child.kill('SIGKILL');
    process.on('exit', kill);
    try {
        const endpoint = await new Promise((done, fail) => {
            child.stdout.once('data', (text) => done(/serving on (http:\S+),/.exec(text)[1]));
            child.on('error', fail);
            child.on('close', (code) => fail(new Error(`it ended with ${code}`)));
        });
        const p = await page();
        await visit(p, endpoint, '/tables/orders/items?mode=query&hash=ann');
        const found = p.getByText(/^\d+ items/), before = parseInt(await found.innerText(), 10);
        ok(before >= 1, `${before} items`); /* it may have begun just now */
        await p.waitForFunction((n) => [...document.querySelectorAll('#view *')].some((e) => !e.children.length && parseInt(/^(\d+) items/.exec(e.textContent)?.[1], 10) > n), before); /* the program writes; nobody asked */
        await rows(p).first().click();
        const d = p.locator('dialog[open]');
        await d.getByRole('button', { name: 'Add attribute' }).click();
        await d.getByLabel('Name of the attribute').last().fill('seen');
        await d.getByLabel('new attribute', { exact: true }).fill('by a browser');
        await d.getByRole('button', { name: 'Review changes' }).click();
        await d.getByRole('button', { name: 'Save this change' }).click();
        await p.getByText('Saved.').waitFor();
        eq((await call(endpoint, 'GetItem', { TableName: 'orders', Key: { customer: { S: 'ann' }, number: { N: '1' } }, ConsistentRead: true })).Item.seen, { S: 'by a browser' });
        await visit(p, endpoint, '/patterns');
        await visit(p, endpoint, '/tests');
        await p.getByText('no clock, faults and snapshots to set').waitFor();
        await leave(p);
    } finally {
        kill();
        await ended;
        process.removeListener('exit', kill);
        fs.rmSync(dir, { recursive: true, force: true });
    }
});

test('overview: figures come by the stream', async () => {
    await ready();
    const p = await page();
    await visit(p, s.endpoint, '/');
    await p.locator('.chart').first().waitFor();
    let done = false;
    const busy = (async () => {
        while (!done)
            await s.call('GetItem', { TableName: 'orders', Key: { customer: { S: 'ann' }, day: { N: '0' } } });
    })();
    await p.locator('.legend').getByText('GetItem').waitFor();
    await p.waitForFunction(() => /[1-9]/.test([...document.querySelectorAll('.tile')].find((t) => t.textContent.includes('requests/s'))?.textContent || ''));
    done = true;
    await busy;
    await p.locator('.health .hint').first().waitFor();
    await p.getByLabel('Time shown').selectOption('60');
    await p.waitForFunction(() => location.hash.includes('span=60'));
    const history = await p.evaluate(async () => {
        const { api } = await import('/console/lib/client.js');
        return api('/console/api/history');
    });
    eq([history.interval_ms, Array.isArray(history.time_ms)], [5000, true], 'an hour, kept by the server');
    await p.locator('.legend').getByText('GetItem').waitFor();
    await visit(p, s.endpoint, '/tables');
    await visit(p, s.endpoint, '/'); /* health is sent when it changes; it is shown all the same */
    await p.locator('.health .hint').first().waitFor();
    await leave(p);
});
