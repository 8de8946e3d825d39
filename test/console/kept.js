/*
 * kept.js: what a person did not change stays as it is, to the byte; what runs is what was asked for;
 * and what somebody else did meanwhile is not lost.
 */
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const { test, server, page, visit, leave, ok, eq, WAIT } = require('./lib/kit');

let shared = null;
const S = (text) => ({ S: text });

async function ready() {
    shared ||= await server();
    return shared;
}

const make = (s, TableName) => s.call('CreateTable', { TableName, BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }], AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }] });
const put = (s, TableName, Item) => s.call('PutItem', { TableName, Item });
const get = async (s, TableName, id) => (await s.call('GetItem', { TableName, Key: { id: S(id) }, ConsistentRead: true })).Item;
const ids = async (s, TableName) => (await s.call('Scan', { TableName })).Items.map((one) => one.id.S).sort();
const sorted = (o) => Object.fromEntries(Object.entries(o || {}).sort());
const rows = (p) => p.locator('#view tbody tr[data-i]');
const dialogs = (p) => p.locator('dialog[open]');
const button = (place, name) => place.getByRole('button', { name, exact: true });

/* `before` runs before the page's request for an operation arrives, once. */
async function meanwhile(p, s, operation, before) {
    let done = false;
    await p.route(s.endpoint + '/', async (route) => {
        if (!done && (route.request().headers()['x-amz-target'] || '').endsWith('.' + operation)) {
            done = true;
            await before();
        }
        await route.continue();
    });
}

/* ---- what runs ------------------------------------------------------------------------------ */

test('PartiQL: a further page is of the statement that ran, whatever was typed since', async () => {
    const s = await ready(), pad = 'x'.repeat(30000), n = 100, sent = [];
    await make(s, 'long');
    for (let i = 0; i < n; i += 20)
        await s.call('BatchWriteItem', { RequestItems: { long: Array.from({ length: 20 }, (_, j) => ({ PutRequest: { Item: { id: S(`i${i + j}`), pad: S(pad) } } })) } });
    const p = await page({ height: 400 });
    p.on('request', (r) => (r.headers()['x-amz-target'] || '').endsWith('.ExecuteStatement') && sent.push(JSON.parse(r.postData())));
    await visit(p, s.endpoint, '/partiql');
    const text = p.getByLabel('Statement');
    await p.route(s.endpoint + '/', async (route) => { /* the next page waits until something else was typed */
        if ((route.request().postData() || '').includes('NextToken'))
            await typed;
        await route.continue();
    });
    let free;
    const typed = new Promise((done) => { free = done; });
    await text.fill('SELECT * FROM long');
    await text.press('Control+Enter');
    await rows(p).first().waitFor();
    await text.fill('DELETE FROM long WHERE id = \'i7\'');
    free();
    for (let i = 0; i < 20 && await p.getByText(`${n} items ·`).count() === 0; i++) {
        await rows(p).last().focus();
        await p.keyboard.press('End');
        await Promise.race([p.getByText(`${n} items ·`).waitFor(), p.waitForTimeout(200)]).catch(() => { });
    }
    await p.getByText(`${n} items ·`).waitFor();
    ok(sent.some((one) => one.NextToken), 'there was a further page');
    eq([...new Set(sent.map((one) => one.Statement))], ['SELECT * FROM long']);
    eq((await p.evaluate(() => JSON.parse(localStorage.getItem('holdfast.partiql')))).map((one) => one.text), ['SELECT * FROM long'], 'the history');
    ok(await get(s, 'long', 'i7'), 'nothing is deleted');
    await leave(p);
});

test('PartiQL: a statement that ends while the table of another is looked up', async () => {
    const s = await ready();
    await make(s, 'ended');
    await make(s, 'looked');
    const p = await page(), text = p.getByLabel('Statement');
    await visit(p, s.endpoint, '/partiql');
    let asked, free;
    const looking = new Promise((done) => { asked = done; }), ended = new Promise((done) => { free = done; });
    await p.route(s.endpoint + '/', async (route) => {
        const body = route.request().postData() || '';
        if (body === '{"TableName":"looked"}') {
            asked();
            await ended;
        } else if (body.includes('FROM ended')) {
            await looking;
        }
        await route.continue();
    });
    await text.fill('SELECT * FROM ended');
    await text.press('Control+Enter');
    await text.fill('SELECT * FROM looked');
    await looking;
    await p.getByText('Nothing found').waitFor();
    free();
    await p.getByText('Reads 0 items').waitFor();
    await leave(p);
});

test('items: what is exported, read anew and deleted is what was last run', async () => {
    const s = await ready();
    await make(s, 'kinds');
    for (const kind of ['a', 'b'])
        for (let i = 0; i < 5; i++)
            await put(s, 'kinds', { id: S(kind + i), kind: S(kind), text: S('x') });
    const p = await page(), d = dialogs(p);
    await visit(p, s.endpoint, `/tables/kinds/items?project=id%2C%20text&filters=${encodeURIComponent('[{"name":"kind","op":"=","type":"S","value":"a"}]')}`);
    await p.getByText(/^5 items/).waitFor();
    await p.getByLabel('Value of filter 1').fill('b'); /* and not run */
    await p.getByRole('button', { name: 'Query and filter' }).focus();

    await p.getByRole('button', { name: 'Export ▾' }).first().click();
    const [file] = await Promise.all([p.waitForEvent('download'), p.getByRole('menuitem', { name: 'All as JSON lines', exact: true }).click()]);
    eq(fs.readFileSync(await file.path(), 'utf8').trim().split('\n').map((line) => JSON.parse(line).id).sort(), ['a0', 'a1', 'a2', 'a3', 'a4']);

    await p.waitForFunction(async () => (await import('/console/lib/stream.js')).stream.connected);
    await p.evaluate(() => document.activeElement.blur());
    await put(s, 'kinds', { id: S('a5'), kind: S('a'), text: S('x') });
    await p.getByText(/^6 items/).waitFor();

    /* Of two that match when they are found, one does not any more when it is deleted. */
    await meanwhile(p, s, 'DeleteItem', () => s.call('UpdateItem', { TableName: 'kinds', Key: { id: S('a3') }, UpdateExpression: 'SET kind = :c', ExpressionAttributeValues: { ':c': S('c') } }));
    await p.getByRole('button', { name: 'More ▾' }).click();
    await p.getByRole('menuitem', { name: 'Delete all that match…' }).click();
    await d.getByText('kind = "a"').waitFor();
    await d.getByRole('textbox').fill('kinds');
    await button(d, 'Delete all that match').click();
    await p.getByText('5 deleted, 1 did not match any more').waitFor();
    eq(await ids(s, 'kinds'), ['a3', 'b0', 'b1', 'b2', 'b3', 'b4']);
    await leave(p);
});

test('items: all that an index finds are deleted, and no others', async () => {
    const s = await ready();
    await s.call('CreateTable', { TableName: 'sparse', BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }], AttributeDefinitions: ['id', 'mark'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
        GlobalSecondaryIndexes: [{ IndexName: 'by_mark', KeySchema: [{ AttributeName: 'mark', KeyType: 'HASH' }], Projection: { ProjectionType: 'KEYS_ONLY' } }] });
    for (const [id, mark] of [['a', 'x'], ['b', 'x'], ['c', 'y'], ['d', null]])
        await put(s, 'sparse', { id: S(id), ...(mark ? { mark: S(mark) } : {}) });
    const p = await page(), d = dialogs(p), deleteAll = async () => {
        await p.getByRole('button', { name: 'More ▾' }).click();
        await p.getByRole('menuitem', { name: 'Delete all that match…' }).click();
        await d.getByRole('textbox').fill('sparse');
        await button(d, 'Delete all that match').click();
    };
    await visit(p, s.endpoint, '/tables/sparse/items?mode=query&index=by_mark&hash=x');
    await p.getByText(/^2 items/).waitFor();
    await deleteAll();
    await p.getByText('2 deleted').waitFor();
    eq(await ids(s, 'sparse'), ['c', 'd']);
    await visit(p, s.endpoint, '/tables/sparse/items?index=by_mark');
    await p.getByText(/^1 item ·/).waitFor();
    await deleteAll();
    await p.getByText('1 deleted').waitFor();
    eq(await ids(s, 'sparse'), ['d']);
    await leave(p);
});

/* ---- what is not touched -------------------------------------------------------------------- */

test('editor: ends of lines stay as they are, in values, sets, names and keys', async () => {
    const s = await ready(), ends = 'one\r\ntwo\rthree\nfour', before = { id: S('k\r\n1'), text: S(ends), set: { SS: ['a\r\nb', 'c\r', 'd'] }, 'na\r\nme': S('x'), map: { M: { 'in\nside': { L: [S(ends), { N: '1' }] } } }, other: S('old') };
    await make(s, 'lines');
    await put(s, 'lines', before);
    const p = await page(), d = dialogs(p);
    await visit(p, s.endpoint, '/tables/lines/items');
    await rows(p).first().click();
    await d.getByLabel('other', { exact: true }).fill('new');
    await button(d, 'JSON').click(); /* and back: what was there goes through both forms */
    await d.getByLabel('The item as JSON').waitFor();
    await button(d, 'Form').click();
    await button(d, 'Review changes').click();
    await d.getByText('1 change to save:').waitFor();
    await button(d, 'Save this change').click();
    await p.getByText('Saved.').waitFor();
    const after = await get(s, 'lines', 'k\r\n1');
    eq({ ...sorted(after), set: after.set.SS.sort() }, { ...sorted({ ...before, other: S('new') }), set: before.set.SS.sort() });
    await leave(p);
});

test('a dead letter is sent again as it is, and once', async () => {
    const s = await ready(), payload = '{"n": 12345678901234567890, "a": 1, "a": 2,\r\n "pi": 1.00, "text": "a: {b, c} \\" [d]", "none": []}\r\n';
    await s.method('outbox.emit', { table: 'letters', events: [0, 1, 2].map((i) => ({ type: 'mail.sent', key: `k${i}`, payload })) });
    const ran = spawnSync(process.env.HOLDFAST, ['outbox', 'drain', '--table', 'letters', '--to', 'exec:/bin/false', '--attempts', '1', '--timeout', '20s', '--db', s.endpoint, '--quiet'],
        { encoding: 'utf8', timeout: WAIT, env: { ...process.env, AWS_ACCESS_KEY_ID: 'any', AWS_SECRET_ACCESS_KEY: 'any', AWS_REGION: 'us-east-1' } });
    eq((await s.method('outbox.stats', { table: 'letters' })).failed, 3, `dead letters: ${ran.stderr}`);
    const waiting = async (key) => (await s.method('outbox.pending', { table: 'letters' })).events.filter((e) => e.key === key);
    const p = await page(), d = dialogs(p), row = (key) => p.locator('tr', { hasText: key }), gone = (key) => row(key).waitFor({ state: 'detached' });
    await visit(p, s.endpoint, '/outbox?table=letters&tab=failed');

    /* What is shown is what is there, only with other blanks. */
    await row('k0').getByRole('button', { name: 'mail.sent' }).click();
    eq((await d.locator('pre.json').last().textContent()).split('\n'), ['{', '  "n": 12345678901234567890,', '  "a": 1,', '  "a": 2,', '  "pi": 1.00,', '  "text": "a: {b, c} \\" [d]",', '  "none": []', '}']);
    await button(d, 'Close').last().click();

    await row('k0').getByRole('button', { name: 'Edit…' }).click();
    await d.getByLabel('Type', { exact: true }).fill('mail.again');
    await button(d, 'Resend').click();
    await gone('k0');
    eq((await waiting('k0')).map((e) => [e.type, e.payload]), [['mail.again', payload]]);

    await row('k1').getByRole('button', { name: 'Edit…' }).click();
    await d.getByLabel('Payload', { exact: true }).fill(payload.replace('1.00', '2.00'));
    await button(d, 'Resend').click();
    await gone('k1');
    eq((await waiting('k1')).map((e) => e.payload), [payload.replace('1.00', '2.00').replaceAll('\r\n', '\n')]);

    /* The copy is there, and the dead letter could not be discarded: it is not emitted a second time. */
    await p.route('**/console/api/call', (route) => (JSON.parse(route.request().postData()).method === 'outbox.discard'
        ? route.fulfill({ status: 503, json: { error: { code: 'HF_BUSY', message: 'too much to do', retryable: true } } }) : route.continue()));
    await row('k2').getByRole('button', { name: 'Edit…' }).click();
    await button(d, 'Resend').click();
    await d.getByText('The copy is emitted, but the dead letter could not be discarded: too much to do').waitFor();
    eq((await waiting('k2')).length, 1);
    await p.unroute('**/console/api/call');
    await button(d, 'Resend').click();
    await gone('k2');
    eq((await waiting('k2')).length, 1, 'copies');
    eq((await s.method('outbox.stats', { table: 'letters' })).failed, 0);

    /* A payload that could not be fetched is not lost by sending the event again without it. */
    await p.route('**/console/api/call', async (route) => {
        if (JSON.parse(route.request().postData()).method !== 'outbox.failed')
            return route.continue();
        const answer = await route.fetch(), value = await answer.json();
        value.result.events = [{ id: 'x', ref: 'x', type: 'mail.sent', key: 'k3', blob: 'b', blob_error: 'HF_DENIED' }];
        return route.fulfill({ response: answer, json: value });
    });
    await button(p, 'Refresh').click();
    await row('k3').getByRole('button', { name: 'Edit…' }).click();
    await button(d, 'Resend').click();
    await d.getByText('could not be fetched (HF_DENIED): the copy would have none.').waitFor();
    eq((await waiting('k3')).length, 0);
    await leave(p);
});

test('an event whose answer is lost is there once, however often it is sent', async () => {
    const s = await ready(), table = 'lost', list = async () => (await s.method('outbox.pending', { table })).events.map((e) => [e.key, e.payload]).sort();
    await s.method('outbox.emit', { table, events: [{ type: 'mail.sent', key: 'k', payload: '{}' }] });
    const ran = spawnSync(process.env.HOLDFAST, ['outbox', 'drain', '--table', table, '--to', 'exec:/bin/false', '--attempts', '1', '--timeout', '20s', '--db', s.endpoint, '--quiet'],
        { encoding: 'utf8', timeout: WAIT, env: { ...process.env, AWS_ACCESS_KEY_ID: 'any', AWS_SECRET_ACCESS_KEY: 'any', AWS_REGION: 'us-east-1' } });
    eq((await s.method('outbox.stats', { table })).failed, 1, `dead letters: ${ran.stderr}`);
    const p = await page({ allow: ['ERR_FAILED', 'net::ERR'] }), d = dialogs(p);
    let lost = 0;
    await p.route('**/console/api/call', async (route) => {
        if (JSON.parse(route.request().postData()).method !== 'outbox.emit' || lost <= 0)
            return route.continue();
        lost--;
        await route.fetch(); /* the server has done it, and the page does not learn it */
        return route.abort();
    });
    await visit(p, s.endpoint, `/outbox?table=${table}&tab=failed`);
    const row = p.locator('tr', { hasText: 'mail.sent' });

    /* A dead letter, twice without an answer; then with one, which also discards it. */
    lost = 2;
    await row.getByRole('button', { name: 'Edit…' }).click();
    await d.getByLabel('Payload', { exact: true }).fill('{"n": 1}');
    for (const left of [1, 0]) {
        await button(d, 'Resend').click();
        await d.getByText('The server does not answer.').waitFor();
        eq(lost, left);
        eq(await list(), [['k', '{"n": 1}']]);
    }
    await button(d, 'Resend').click();
    await row.waitFor({ state: 'detached' });
    eq(await list(), [['k', '{"n": 1}']]);
    eq((await s.method('outbox.stats', { table })).failed, 0);

    /* What was changed since is not taken for what is there. */
    lost = 1;
    await button(p, 'Emit a test event').click();
    await d.getByLabel('Key', { exact: true }).fill('first');
    await button(d, 'Emit').click();
    await d.getByText('The server does not answer.').waitFor();
    await d.getByLabel('Key', { exact: true }).fill('second');
    await button(d, 'Emit').click();
    await d.getByText('An earlier try has already emitted it, as the form was then').waitFor();
    eq((await list()).map(([key]) => key), ['first', 'k']);

    /* Another form is another event, of the same content. */
    await button(d, 'Cancel').click();
    await button(dialogs(p).last(), 'Discard').click();
    await d.waitFor({ state: 'detached' });
    await button(p, 'Emit a test event').click();
    await d.getByLabel('Key', { exact: true }).fill('first');
    await button(d, 'Emit').click();
    await d.waitFor({ state: 'detached' });
    eq((await list()).map(([key]) => key), ['first', 'first', 'k']);
    await leave(p);
});

test('a key keeps its time to live when its value is changed', async () => {
    const s = await ready(), at = { table: 'keys', space: 'kept', id: 'motd' };
    await s.method('kv.set', { ...at, value: S('one'), ttl_s: 3600 });
    const expires = async () => Number((await s.method('kv.get', at)).expires_s || 0), first = await expires();
    const p = await page(), d = dialogs(p), change = async (fields) => {
        await p.locator('tr', { hasText: 'motd' }).getByRole('button', { name: 'Change…' }).click();
        for (const [label, value] of Object.entries(fields))
            await d.getByLabel(label, { exact: true }).fill(value);
        await button(d, 'Set').click();
        await d.waitFor({ state: 'detached' });
        await p.locator('tr', { hasText: fields.Value }).waitFor();
    };
    await visit(p, s.endpoint, '/kv?table=keys&space=kept');
    await change({ Value: 'two' });
    eq((await s.method('kv.get', at)).value, S('two'));
    ok(Math.abs(await expires() - first) <= 2, `${await expires()} is not ${first}`);
    await change({ Value: 'three', 'Expires after (seconds)': '60' });
    ok(await expires() > 0 && await expires() < first - 3000, 'sooner');
    await change({ Value: 'four', 'Expires after (seconds)': '' });
    eq(await expires(), 0);
    await change({ Value: 'five' });
    eq(await expires(), 0);
    await p.locator('tr', { hasText: 'motd' }).getByRole('button', { name: 'Change…' }).click();
    await d.getByLabel('Expires after (seconds)').fill('1h');
    await button(d, 'Set').click();
    await d.getByText('“1h” is not a number of seconds.').waitFor();
    eq(await expires(), 0);
    await leave(p);
});

/* ---- what others do ------------------------------------------------------------------------- */

test('what was written while the tab was hidden is there when it is looked at again', async () => {
    const s = await ready();
    await make(s, 'hidden');
    await put(s, 'hidden', { id: S('first') });
    const p = await page(), other = await page();
    for (const one of [p, other]) {
        await visit(one, s.endpoint, '/tables/hidden/items');
        await one.waitForFunction(async () => (await import('/console/lib/stream.js')).stream.connected);
    }
    await put(s, 'hidden', { id: S('early') });
    await rows(p).filter({ hasText: 'early' }).waitFor();
    await p.evaluate(async () => { /* it has read what was written before: there are figures every second */
        const { on } = await import('/console/lib/bus.js');
        let n = 0;
        await new Promise((done) => on('figures', () => ++n === 3 && done()));
    });
    await p.evaluate(() => {
        Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    });
    await put(s, 'hidden', { id: S('second') });
    await rows(other).filter({ hasText: 'second' }).waitFor(); /* the server has told all who listen */
    await p.evaluate(() => {
        delete document.visibilityState;
        document.dispatchEvent(new Event('visibilitychange'));
    });
    await rows(p).filter({ hasText: 'second' }).waitFor();
    await leave(p);
    await leave(other);
});

test('a click is not lost when what is clicked on is drawn anew between press and release', async () => {
    const s = await ready(), at = { table: 'pressed', space: 'kept', id: 'motd' };
    await s.method('kv.set', { ...at, value: S('one') });
    await make(s, 'pressing');
    const p = await page(), d = dialogs(p);
    const press = async (target) => {
        await target.hover(); /* waits until it is there and stays, and looks for it again if it was drawn anew */
        await p.mouse.down();
    };
    const drawn = () => p.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
    const answered = (word) => p.waitForResponse((r) => (r.request().postData() || '').includes(word));

    await visit(p, s.endpoint, '/kv?table=pressed&space=kept');
    await p.locator('tr', { hasText: 'motd' }).waitFor();
    await press(p.locator('tr', { hasText: 'motd' }).getByRole('button', { name: 'Change…' }));
    await Promise.all([answered('kv.list'), p.evaluate(async (key) => { /* as another tab would */
        const { method } = await import('/console/lib/client.js');
        await method('kv.set', { ...key, value: { S: 'two' } });
    }, at)]);
    await drawn();
    eq(await p.locator('tr', { hasText: 'two' }).count(), 0, 'rows drawn under the finger');
    await p.mouse.up();
    await d.getByLabel('Value', { exact: true }).waitFor();
    await p.locator('tr', { hasText: 'two' }).waitFor(); /* and the news is not lost either */
    await p.keyboard.press('Escape');

    await visit(p, s.endpoint, '/live');
    const heard = (operation) => p.evaluate((name) => import('/console/lib/bus.js').then(({ on }) => {
        globalThis.heard = new Promise((done) => on('request', (r) => r.operation === name && done()));
    }), operation);
    await p.waitForFunction(async () => { /* until the stream is open with requests */
        const { db } = await import('/console/lib/client.js');
        await db('Scan', { TableName: 'pressing' });
        return document.querySelector('#view tbody tr[data-i]');
    });
    await heard('GetItem');
    await press(rows(p).first());
    await get(s, 'pressing', 'x');
    await p.evaluate(() => globalThis.heard);
    await p.evaluate(() => new Promise((done) => setTimeout(done, 500))); /* a row more is drawn at most each 200 ms */
    eq(await rows(p).filter({ hasText: 'GetItem' }).count(), 0, 'rows drawn under the finger');
    await p.mouse.up();
    await d.getByRole('heading', { name: 'Scan pressing' }).waitFor();
    await p.keyboard.press('Escape');
    await rows(p).filter({ hasText: 'GetItem' }).first().waitFor();
    await leave(p);
});

test('editor: after a conflict, one goes on upon what is there now', async () => {
    const s = await ready();
    await make(s, 'both');
    await put(s, 'both', { id: S('x'), mine: S('old'), theirs: S('old') });
    const p = await page(), d = dialogs(p), back = button(d, 'Back'), review = button(d, 'Review changes');
    await visit(p, s.endpoint, '/tables/both/items');
    const conflict = async (value) => {
        await rows(p).first().click();
        await d.getByLabel('mine', { exact: true }).fill(`mine ${value}`);
        await s.call('UpdateItem', { TableName: 'both', Key: { id: S('x') }, UpdateExpression: 'SET theirs = :t', ExpressionAttributeValues: { ':t': S(`theirs ${value}`) } });
        await review.click();
        await button(d, 'Save this change').click();
        await d.getByText('Not saved: somebody changed this item meanwhile.').waitFor();
        ok(await back.isHidden(), 'Back would go to the values of before');
    };
    await conflict('1');
    await button(d, 'Take theirs').click();
    eq([await d.getByLabel('mine', { exact: true }).inputValue(), await d.getByLabel('theirs', { exact: true }).inputValue()], ['old', 'theirs 1']);
    await review.click();
    await d.getByText('Nothing was changed.').waitFor();
    await button(d, 'Close').last().click();
    await d.waitFor({ state: 'detached' });
    await p.getByRole('button', { name: 'Refresh' }).click();
    await conflict('2');
    await button(d, 'My changes upon theirs').click();
    await review.click();
    await back.click(); /* from a review it goes back as ever */
    await review.click();
    await button(d, 'Save this change').click();
    await p.getByText('Saved.').waitFor();
    eq(sorted(await get(s, 'both', 'x')), { id: S('x'), mine: S('mine 2'), theirs: S('theirs 2') });
    await leave(p);
});

test('editor: an item with very many attributes is deleted, unless somebody changed it', async () => {
    const s = await ready(), many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`a${String(i).padStart(3, '0')}`, { N: String(i) }]));
    await make(s, 'wide');
    await put(s, 'wide', { id: S('x'), ...many });
    const p = await page(), d = dialogs(p), remove = async () => {
        await button(d, 'Delete').click();
        await button(d.last(), 'Delete').click();
    };
    await visit(p, s.endpoint, '/tables/wide/items');
    await rows(p).first().click();
    await d.getByLabel('a299', { exact: true }).waitFor();
    await s.call('UpdateItem', { TableName: 'wide', Key: { id: S('x') }, UpdateExpression: 'SET a299 = :n', ExpressionAttributeValues: { ':n': { N: '-1' } } });
    await remove();
    await p.getByText('it was not deleted').waitFor();
    ok(await get(s, 'wide', 'x'));
    await button(d.last(), 'Keep').click();
    await button(d, 'Close').last().click();
    await d.waitFor({ state: 'detached' });
    await rows(p).first().click();
    await d.getByLabel('a299', { exact: true }).waitFor();
    await remove();
    await p.getByText('The item is deleted.').waitFor();
    eq(await get(s, 'wide', 'x'), undefined);
    await leave(p);
});

test('a policy that somebody else has saved is neither replaced nor deleted', async () => {
    const s = await ready();
    await make(s, 'guarded');
    const ResourceArn = (await s.call('DescribeTable', { TableName: 'guarded' })).Table.TableArn;
    const policy = (action) => JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Principal: { AWS: ResourceArn.replace(/^arn:aws:dynamodb:[^:]*:(\d+):.*/, 'arn:aws:iam::$1:root') }, Action: [`dynamodb:${action}`], Resource: ResourceArn }] });
    const theirs = (action) => s.call('PutResourcePolicy', { ResourceArn, Policy: policy(action) }), now = async () => (await s.call('GetResourcePolicy', { ResourceArn })).Policy;
    const p = await page(), d = dialogs(p);
    await visit(p, s.endpoint, '/tables/guarded');
    await meanwhile(p, s, 'PutResourcePolicy', () => theirs('Scan'));
    await button(p, 'Add…').click();
    await button(d, 'Save').click();
    await d.getByText('PolicyNotFoundException').waitFor();
    ok((await now()).includes('dynamodb:Scan'), await now());
    await button(d, 'Cancel').click();
    await p.unroute(s.endpoint + '/');
    await visit(p, s.endpoint, '/tables/guarded');
    await meanwhile(p, s, 'DeleteResourcePolicy', () => theirs('Query'));
    const deletes = p.locator('section', { has: p.getByRole('heading', { name: 'Policy' }) }).getByRole('button', { name: 'Delete' });
    await deletes.click();
    await p.getByText('PolicyNotFoundException').first().waitFor();
    ok((await now()).includes('dynamodb:Query'), await now());
    await visit(p, s.endpoint, '/tables/guarded');
    await deletes.click();
    await p.getByText('The policy is deleted.').waitFor();
    await leave(p);
});
