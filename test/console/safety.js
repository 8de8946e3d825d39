/*
 * safety.js: data that is a script, pages of others, servers that go away, keys that change, and
 * servers that change nothing.
 */
'use strict';
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const zlib = require('zlib');
const { test, server, page, visit, leave, ok, eq } = require('./lib/kit');

const CONSOLE = path.join(__dirname, '../../console');
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'console-'));
process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }));

const table = (s, TableName, more = {}) => s.call('CreateTable', { TableName, BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }], AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }], ...more });
const rows = (p) => p.locator('#view tbody tr[data-i]');

/* End a server and do not ask it again at the end. */
async function end(s) {
    s.done = true;
    const complaint = await s.stop();
    ok(!complaint, complaint);
}

const EVIL = ['<img src=x onerror="window.hacked=1">', '"><script>window.hacked=2</script>', 'javascript:window.hacked=3', '{{constructor.constructor("window.hacked=4")()}}', '</textarea><svg onload=window.hacked=5>'];

test('a script in data does not run, in any view', async () => {
    const s = await server();
    await table(s, 'evil', { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } });
    await s.call('TagResource', { ResourceArn: (await s.call('DescribeTable', { TableName: 'evil' })).Table.TableArn, Tags: [{ Key: 'note', Value: EVIL[0].replace(/[^\w\s+=./:@-]/g, '') }] });
    for (const text of EVIL) {
        const Item = { id: { S: text }, [text]: { S: text }, set: { SS: [text] }, map: { M: { [text]: { L: [{ S: text }] } } } };
        Object.defineProperty(Item, '__proto__', { value: { S: text }, enumerable: true });
        Object.defineProperty(Item, 'constructor', { value: { S: text }, enumerable: true });
        await s.call('PutItem', { TableName: 'evil', Item });
    }
    await s.call('PutItem', { TableName: 'evil', Item: { id: { S: 'plain' } } }); /* which has none of these */
    const p = await page();
    await visit(p, s.endpoint, '/tables/evil/items');
    ok(!(await p.getByRole('row', { name: /plain/ }).textContent()).includes('undefined'), 'what an object inherits is no attribute');
    await p.getByRole('row', { name: /plain/ }).click();
    await p.locator('dialog[open]').getByRole('button', { name: 'JSON', exact: true }).click();
    await p.getByLabel('The item as JSON').fill('{"id": {"S": "plain"}, "__proto__": {"S": "x"}, "constructor": {"N": "1"}}');
    await p.getByRole('button', { name: 'Review changes' }).click();
    await p.getByRole('button', { name: 'Save these 2 changes' }).click();
    await p.getByText('Saved.').waitFor();
    const saved = (await s.call('GetItem', { TableName: 'evil', Key: { id: { S: 'plain' } } })).Item;
    eq(Object.keys(saved).sort(), ['__proto__', 'constructor', 'id']);
    const enough = EVIL.map((text) => encodeURIComponent(text));
    for (const to of ['/tables/evil/items', `/tables/evil/items?mode=query&hash=${enough[0]}`, '/tables/evil/entities', `/tables/evil/entities?partition=${encodeURIComponent(JSON.stringify({ S: EVIL[0] }))}`, '/tables/evil/stream', '/tables/evil', `/partiql?q=${encodeURIComponent(`SELECT * FROM evil WHERE id = '${EVIL[0]}'`)}`,
        `/tables/${enough[0]}/items`, `/${enough[1]}`, `/tables?find=${enough[1]}`, `/partiql?q=${enough[4]}`, '/tables/evil/load', `/tables/evil/items?filters=${encodeURIComponent(JSON.stringify([{ name: EVIL[0], op: '=', type: EVIL[1], value: EVIL[4] }]))}`]) {
        await visit(p, s.endpoint, to);
        if (await rows(p).count() && !to.includes('find=')) {
            await rows(p).first().click();
            if (/\/(items|stream)\b/.test(to)) /* it is read first */
                await p.locator('dialog[open]').waitFor();
        }
        if (to.includes('/load'))
            await p.getByLabel('Data to load').fill(`id,"${EVIL[0].replaceAll('"', '""')}"\n1,2\n${JSON.stringify(EVIL[1])}`);
        if (to.includes('SELECT'))
            await p.getByRole('button', { name: 'Run', exact: true }).click();
        await p.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
        eq(await p.evaluate(() => [window.hacked, document.querySelectorAll('#view img, #view script:not([src]), dialog img, [onerror], [onload], [style*="javascript"]').length]), [undefined, 0], to);
        await p.keyboard.press('Escape');
        await p.locator('dialog[open]').waitFor({ state: 'detached' });
    }
    await leave(p);
});

test('no file of the page makes markup from data, or names another host', async () => {
    const files = fs.readdirSync(CONSOLE, { recursive: true }).map(String).filter((name) => /\.(js|css|html)$/.test(name));
    ok(files.length > 20);
    for (const name of files) {
        const text = fs.readFileSync(path.join(CONSOLE, name), 'utf8');
        const found = /\.(innerHTML|outerHTML)\b|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|setAttribute\('style'/.exec(text);
        ok(!found, `${name}: ${found && found[0]}`);
        const hosts = [...text.matchAll(/\bhttps?:\/\/([\w.-]+)/g)].map((m) => m[1]).filter((host) => !/^(www\.w3\.org|127\.0\.0\.1|localhost|(.*\.)?example\.(com|org))$/.test(host)); /* names of XML, and examples in texts */
        eq(hosts, [], name);
        ok(!/@import|url\((?!['"]?data:)/.test(name.endsWith('.css') ? text : ''), name);
    }
});

/* What a browser takes for one view: the frame, all of lib/ and the largest view with what it imports. */
test('the page is light', async () => {
    const files = fs.readdirSync(CONSOLE, { recursive: true }).map(String).filter((name) => /\.(js|css|html)$/.test(name));
    const size = (name) => fs.statSync(path.join(CONSOLE, name)).size;
    const needs = (name, seen = new Set()) => {
        if (seen.has(name))
            return seen;
        seen.add(name);
        for (const [, to] of fs.readFileSync(path.join(CONSOLE, name), 'utf8').matchAll(/^import .*? from '(\.[^']+)'/gm))
            needs(path.join(path.dirname(name), to), seen);
        return seen;
    };
    const frame = needs('app.js', new Set(['index.html', 'style.css']));
    needs('app.js', frame);
    for (const name of files.filter((one) => one.startsWith('views'))) {
        const all = [...needs(name, new Set())], sum = [...new Set([...frame, ...all, 'app.js', 'index.html', 'style.css'])].reduce((n, one) => n + size(one), 0);
        ok(sum <= 250 * 1024, `${name}: ${sum} bytes with the frame`);
    }
    const sent = files.reduce((n, name) => n + zlib.gzipSync(fs.readFileSync(path.join(CONSOLE, name))).length, 0);
    ok(sent <= 250 * 1024, `all of it: ${sent} bytes as it is sent`);
});

test('a page of another origin can neither read nor write', async () => {
    const s = await server();
    await table(s, 'private');
    await s.call('PutItem', { TableName: 'private', Item: { id: { S: 'secret' } } });
    const foreign = http.createServer((request, answer) => {
        answer.setHeader('content-type', 'text/html');
        answer.end('<!doctype html><title>foreign</title><body>foreign');
    });
    await new Promise((done) => foreign.listen(0, '127.0.0.1', done));
    try {
        const p = await page({ allow: ['CORS', 'ERR_FAILED', 'Failed to load resource', 'Refused', 'refused', 'violates', 'ERR_BLOCKED', 'frame', 'Content Security Policy', 'Unsafe attempt'] });
        await p.goto(`http://127.0.0.1:${foreign.address().port}/`);
        const scan = JSON.stringify({ TableName: 'private' }), drop = JSON.stringify({ TableName: 'private' }), put = JSON.stringify({ TableName: 'private', Item: { id: { S: 'evil' } } });
        const got = await p.evaluate(async ({ to, scan, drop, put }) => {
            const tried = [], key = 'AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0';
            const attempt = async (path, options) => {
                try {
                    const answer = await fetch(to + path, options);
                    tried.push(answer.type === 'opaque' ? 'opaque' : await answer.text());
                } catch {
                    tried.push('blocked');
                }
            };
            for (const [target, body] of [['Scan', scan], ['PutItem', put], ['DeleteTable', drop]])
                for (const mode of ['cors', 'no-cors'])
                    for (const type of ['application/x-amz-json-1.0', 'text/plain', 'application/x-www-form-urlencoded'])
                        await attempt('/', { method: 'POST', mode, body, headers: { 'content-type': type, 'x-amz-target': 'DynamoDB_20120810.' + target, authorization: key } });
            for (const path of ['/console/api/info', '/console/api/stream', '/console/api/history', '/console/', '/console/app.js'])
                for (const mode of ['cors', 'no-cors'])
                    await attempt(path, { mode });
            for (const type of ['application/json', 'text/plain'])
                for (const mode of ['cors', 'no-cors'])
                    await attempt('/console/api/call', { method: 'POST', mode, body: '{"method":"lock.break","arguments":{}}', headers: { 'content-type': type } });
            await attempt('/_holdfast/clock', { method: 'POST', mode: 'no-cors', body: '{"advance_ms":1000}' });
            const form = document.createElement('form');
            form.method = 'POST';
            form.action = to + '/?X-Amz-Target=DynamoDB_20120810.DeleteTable';
            form.enctype = 'text/plain';
            const input = document.createElement('input');
            input.name = drop.slice(0, -1) + ',"x":"';
            input.value = '"}';
            form.append(input);
            const frame = document.createElement('iframe');
            frame.name = form.target = 'f';
            document.body.append(frame, form);
            await new Promise((done) => {
                frame.onload = done;
                form.submit();
                setTimeout(done, 2000);
            });
            const inside = document.createElement('iframe');
            inside.src = to + '/console/';
            document.body.append(inside);
            await new Promise((done) => { inside.onload = done; });
            let seen = 'nothing';
            try {
                seen = inside.contentDocument ? inside.contentDocument.body.textContent : 'nothing';
            } catch { /* another origin */ }
            return { tried, seen };
        }, { to: s.endpoint, scan, drop, put });
        const told = got.tried.filter((text) => !['blocked', 'opaque'].includes(text));
        eq(told, [], 'what the page could read');
        eq(got.seen.includes('holdfast'), false);
        await p.context().close();
        const { Items } = await s.call('Scan', { TableName: 'private' });
        eq(Items, [{ id: { S: 'secret' } }]);
    } finally {
        foreign.close();
    }
});

test('a server that goes away and comes back', async () => {
    const db = path.join(dir, 'restart');
    let s = await server('--db-path', db);
    const port = new URL(s.endpoint).port;
    await table(s, 'kept');
    await s.call('PutItem', { TableName: 'kept', Item: { id: { S: 'one' }, text: { S: 'before' } } });
    const p = await page({ allow: ['ERR_CONNECTION', 'ERR_INCOMPLETE', 'ERR_EMPTY', 'ERR_NETWORK', 'net::ERR'] });
    await visit(p, s.endpoint, '/tables/kept/items');
    await rows(p).first().click();
    const d = p.locator('dialog[open]');
    await d.getByLabel('text', { exact: true }).fill('after');
    await d.getByRole('button', { name: 'Review changes' }).click();
    await end(s);
    await p.getByText('The server is away.').waitFor();
    await d.getByRole('button', { name: 'Save this change' }).click();
    await d.getByText('The server does not answer.').waitFor(); /* and what was typed is still there */
    s = await server('--db-path', db, '--port', port);
    await p.getByText('The server is back.').waitFor();
    ok(await p.locator('#banner').isHidden());
    await d.getByRole('button', { name: 'Save this change' }).click();
    await p.getByText('Saved.').waitFor();
    eq((await s.call('GetItem', { TableName: 'kept', Key: { id: { S: 'one' } } })).Item.text, { S: 'after' });
    await leave(p);
    await end(s);
});

/* The timers of the page stand still, so it does not find out by itself. */
test('"Try now" asks at once, and again while the server is away', async () => {
    const db = path.join(dir, 'try-now');
    let s = await server('--db-path', db);
    const port = new URL(s.endpoint).port;
    const p = await page({ alone: true, allow: ['ERR_CONNECTION', 'ERR_INCOMPLETE', 'ERR_EMPTY', 'ERR_NETWORK', 'net::ERR'] });
    await p.clock.install();
    await visit(p, s.endpoint, '/tables');
    await end(s);
    const banner = p.locator('#banner');
    await banner.getByText('The server is away.').waitFor();
    await p.clock.pauseAt(Date.now() + 3600 * 1000);
    const asked = p.waitForRequest((r) => r.url().includes('/console/'));
    await banner.getByRole('button', { name: 'Try now' }).click();
    await (await asked).response();
    ok(await banner.getByText('The server is away.').isVisible());
    s = await server('--db-path', db, '--port', port);
    await banner.getByRole('button', { name: 'Try now' }).click();
    await p.getByText('The server is back.').waitFor();
    ok(await banner.isHidden());
    await leave(p);
    await end(s);
});

test('a request that fails late says nothing about a server that has answered since', async () => {
    const s = await server();
    await table(s, 'held');
    const p = await page({ allow: ['ERR_CONNECTION'] });
    await visit(p, s.endpoint, '/tables');
    let fail;
    const told = new Promise((done) => { fail = done; });
    await p.route(s.endpoint + '/', async (route) => {
        if (!(route.request().postData() || '').includes('"of-old"'))
            return route.continue();
        await told;
        return route.abort('connectionrefused');
    });
    await p.evaluate(async () => {
        const { db } = await import('/console/lib/client.js'), { on } = await import('/console/lib/bus.js');
        globalThis.away = 0;
        on('away', () => globalThis.away++);
        globalThis.late = db('DescribeTable', { TableName: 'of-old' }).catch((problem) => problem.code);
        await db('ListTables');
    });
    const asked = p.waitForResponse((r) => r.url().endsWith('/console/api/info'));
    fail();
    eq(await p.evaluate(() => globalThis.late), 'Unreachable');
    await asked; /* it is in doubt, and asks */
    eq(await p.evaluate(() => globalThis.away), 0, 'times that the server was said to be away');
    await end(s);
    await p.getByText('The server is away.').waitFor();
    await leave(p);
});

test('keys: asked for, used to sign, kept from the server, changed', async () => {
    const db = path.join(dir, 'keys'), file = path.join(dir, 'keys.ini');
    const keys = (id, secret) => fs.writeFileSync(file, `[a]\naws_access_key_id = ${id}\naws_secret_access_key = ${secret}\n`, { mode: 0o600 });
    const first = await server('--db-path', db);
    await table(first, 'signed');
    await first.call('PutItem', { TableName: 'signed', Item: { id: { S: 'ü / ~ é' } } });
    await end(first);
    keys('AKIAFIRST', 'secret-one/+=');
    let s = await server('--db-path', db, '--credentials', file, '--console', 'on');
    const port = new URL(s.endpoint).port, p = await page({ allow: ['ERR_CONNECTION', 'net::ERR'] }), sent = [];
    p.on('request', (r) => sent.push(r.url() + JSON.stringify(r.headers()) + (r.postData() || '')));
    await p.goto(`${s.endpoint}/console/#/tables/signed/items`);
    const d = p.locator('dialog[open]');
    const give = async (id, secret) => {
        await d.getByLabel('Access key id').fill(id);
        await d.getByLabel('Secret access key').fill(secret);
        await d.getByRole('button', { name: 'Use this key' }).click();
    };
    await give('AKIAFIRST', 'wrong');
    await d.getByText(/signature we calculated does not match/).first().waitFor();
    await give('AKIAFIRST', 'secret-one/+=');
    await p.getByText('ü / ~ é').waitFor();
    await p.reload(); /* of this tab, it is kept */
    await p.getByText('ü / ~ é').waitFor();
    ok(!sent.some((text) => text.includes('secret-one')), 'the secret was sent');
    eq(await p.evaluate(() => JSON.stringify(localStorage).includes('secret-one')), false);

    await end(s);
    keys('AKIASECOND', 'secret-two');
    s = await server('--db-path', db, '--credentials', file, '--console', 'on', '--port', port);
    await d.getByText('Key of this server').waitFor();
    await give('AKIASECOND', 'secret-two');
    await p.locator('dialog').waitFor({ state: 'detached' });
    await p.getByText('ü / ~ é').waitFor();
    await p.getByRole('button', { name: 'Change key' }).click();
    await give('AKIASECOND', 'mistyped');
    await d.getByText(/signature we calculated does not match/).first().waitFor();
    await give('AKIASECOND', 'secret-two');
    await p.locator('dialog').waitFor({ state: 'detached' });
    await p.getByText('ü / ~ é').waitFor();
    await leave(p);
    await end(s);
});

test('read-only: nothing that writes can be pressed, and the server refuses it anyway', async () => {
    const db = path.join(dir, 'readonly');
    const first = await server('--db-path', db);
    await table(first, 'fixed');
    await first.call('PutItem', { TableName: 'fixed', Item: { id: { S: 'one' }, text: { S: 'x' } } });
    await end(first);
    const s = await server('--db-path', db, '--read-only');
    const p = await page();
    await visit(p, s.endpoint, '/tables');
    await p.locator('#foot').getByText('read-only').waitFor();
    ok(await p.getByRole('button', { name: 'Create table' }).isDisabled());
    await visit(p, s.endpoint, '/tables/fixed');
    for (const name of ['Delete table…', 'Add global index', 'Add tag…', 'Capacity…', 'Back up now…'])
        ok(await p.getByRole('button', { name }).isDisabled(), name);
    await visit(p, s.endpoint, '/tables/fixed/items');
    ok(await p.getByRole('button', { name: 'New item' }).isDisabled());
    await rows(p).first().click();
    ok(await p.getByRole('button', { name: 'Review changes' }).isDisabled());
    eq(await p.locator('dialog[open]').getByRole('button', { name: 'Delete' }).count(), 0);
    const refused = await p.evaluate(async () => {
        const { db } = await import('/console/lib/client.js');
        return db('PutItem', { TableName: 'fixed', Item: { id: { S: 'two' } } }).then(() => 'done', (problem) => problem.code);
    });
    eq(refused, 'AccessDeniedException');
    await leave(p);
    await end(s);
});

test('where the context is not secure, the page signs by itself', async () => {
    const s = await server();
    const p = await page();
    await visit(p, s.endpoint, '/tables');
    const same = await p.evaluate(async () => {
        const { sign } = await import('/console/lib/sign.js'), request = { method: 'POST', url: new URL('/?a=b%20c', location.origin), headers: { 'content-type': 'x' }, body: '{"ü":1}', key: { id: 'a', secret: 'b'.repeat(80) }, region: 'eu-west-1', now: 1e12 };
        const one = await sign(request);
        Object.defineProperty(globalThis, 'crypto', { value: undefined });
        const two = await sign({ ...request, key: { ...request.key } });
        const three = await sign({ ...request, region: 'eu-west-2' }), four = await sign(request);
        return [one.authorization === two.authorization, one.authorization === four.authorization, one.authorization === three.authorization];
    });
    eq(same, [true, true, false]);
    await leave(p);
});
