/*
 * pattern_views.js: the views of patterns, insight, tests and remote, light and dark, wide and on a phone:
 * lib/looks.js.
 */
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { spawn, spawnSync } = require('child_process');
const { server, ok, WAIT } = require('./lib/kit');
const { looks } = require('./lib/looks');

const command = process.env.HOLDFAST, children = [];
let s, dir, ids;

process.on('exit', () => {
    children.forEach((child) => child.kill('SIGKILL'));
    if (dir)
        fs.rmSync(dir, { recursive: true, force: true });
});

async function call(method, args = {}) {
    const answer = await fetch(`${s.endpoint}/console/api/call`, { method: 'POST', headers: { 'content-type': 'application/json', 'x-amz-date': '20260101T000000Z',
        authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=' + '0'.repeat(64) }, body: JSON.stringify({ method, arguments: args }) });
    ok(answer.ok, `${method}: ${answer.status}`);
    return (await answer.json()).result;
}

/* The demo's data, and what it does not have: a backlog, causes, a held lock, parked events, failed records. */
async function ready() {
    if (s)
        return;
    dir = fs.mkdtempSync(path.join(os.tmpdir(), 'console-looks-'));
    const made = spawnSync(command, ['demo', '--quick', '--seed', '5', '--db', path.join(dir, 'db'), '--quiet'], { encoding: 'utf8', timeout: WAIT });
    ok(made.status === 0, made.stderr);
    s = await server('--db-path', path.join(dir, 'db'));
    const env = { ...process.env, AWS_ACCESS_KEY_ID: 'any', AWS_SECRET_ACCESS_KEY: 'any', AWS_REGION: 'us-east-1', HOLDFAST_DB: s.endpoint };
    const run = (...args) => spawnSync(command, args, { env, timeout: WAIT });
    const refuse = path.join(dir, 'refuse.sh');
    fs.writeFileSync(refuse, '#!/bin/sh\ncase "$(cat)" in *mail*) echo "mail server refuses the address" >&2;; *) echo "card was declined" >&2;; esac\nexit 1\n', { mode: 0o755 });
    await call('outbox.emit', { table: 'mails', events: Array.from({ length: 9 }, (_, i) => ({ type: i % 3 ? 'mail.sent' : 'payment.requested', key: ['ann', 'ben', 'cleo'][i % 3], payload: JSON.stringify({ order: i, cents: 1250 * i }) })) });
    run('outbox', 'drain', '--table', 'mails', '--to', `exec:${refuse}`, '--attempts', '1', '--timeout', '20s', '--quiet');
    await call('outbox.emit', { table: 'mails', events: Array.from({ length: 60 }, (_, i) => ({ type: 'mail.sent', key: `customer-${i * 7 % 23}`, payload: `{"order": ${i}}`, urgent: i % 20 === 0 })) });
    await call('outbox.emit', { table: 'mails', events: [{ type: 'reminder', due_us: (Date.now() + 7200000) * 1000 }] });
    const at = { table: 'events', domain: 'cart', id: '9' };
    const first = (await call('events.append', { ...at, events: [{ type: 'opened', payload: '{"pieces": 1, "who": "ann"}' }] })).ids[0];
    const more = (await call('events.append', { ...at, events: [{ type: 'filled', payload: '{"pieces": 3, "who": "ann"}', causation: first, correlation: first }, { type: 'ordered', payload: '{"order": 7}', causation: first, correlation: first }] })).ids;
    const paid = (await call('events.append', { table: 'events', domain: 'payment', id: '7', events: [{ type: 'made', payload: '{"cents": 1950}', causation: more[1], correlation: first }] })).ids[0];
    await call('events.append', { table: 'events', domain: 'mail', id: '3', events: [{ type: 'sent', payload: '{}', causation: more[1], correlation: first }] });
    await call('events.append', { table: 'events', domain: 'parcel', id: '7', events: [{ type: 'packed', payload: '{}', causation: paid, correlation: first }] });
    ids = { event: more[1] };
    run('events', 'subscribe', '--name', 'shipping', '--domain', 'cart', '--exec', refuse, '--attempts', '1', '--until-end', '--park');
    const held = spawn(command, ['lock', 'run', 'nightly-backup', '--', 'sh', '-c', 'echo held; exec sleep 600'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    const relay = spawn(command, ['relay', '--table', 'outbox', '--to', 'stdout:'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    children.push(held, relay);
    await new Promise((resolve, reject) => { held.stdout.once('data', resolve); held.on('exit', () => reject(new Error('no lock'))); });
    for (let i = 0; i < 8; i++)
        await call('records.put', { record: { AccountId: { S: `ACC${i}` }, RunTime: { S: `2026-11-${10 + i}T12:00:00Z` }, amount: { N: String(i * 100) } } });
    run('records', 'process', '--exec', 'false', '--retries', '0', '--limit', '3', '--quiet');
    for (const [id, value] of [['motd', { S: 'Back at noon' }], ['limits', { M: { daily: { N: '500' }, hourly: { N: '50' } } }], ['flags', { L: [{ S: 'new-cart' }, { S: 'fast-pay' }] }]])
        await call('kv.set', { space: 'shop', id, value });
    await call('limit.take', { table: 'limits', name: 'login/mallory', rule: { kind: 'attempts', limit: 1, window_ms: 900000, lockout_ms: 3600000 } });
    await call('limit.take', { table: 'limits', name: 'login/mallory', rule: { kind: 'attempts', limit: 1, window_ms: 900000, lockout_ms: 3600000 } }).catch(() => { });
    await s.call('UpdateTable', { TableName: 'orders', StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } });
    run('streams', 'tail', 'orders', '--name', 'audit');
    await fetch(`${s.endpoint}/_holdfast/snapshots/fresh`, { method: 'PUT' });
    await fetch(`${s.endpoint}/_holdfast/faults`, { method: 'PUT', body: '{"faults": [{"kind": "throttle", "operation": "ExecuteStatement", "probability": 0.1, "count": 5}]}' });
}

const button = (name) => (p) => p.getByRole('button', { name, exact: true }).first().click();
const inRow = (of, name) => (p) => p.locator('tr', { hasText: of }).first().getByRole('button', { name, exact: true }).click();

/* [name, path, what to do before looking] */
const VIEWS = () => [
    ['patterns', '/patterns'], ['outbox', '/outbox?table=mails'], ['outbox-waiting', '/outbox?table=mails&tab=waiting'], ['outbox-emit', '/outbox?table=mails&tab=waiting', button('Emit a test event')],
    ['relays', '/outbox?tab=relays'], ['dead-letters', '/outbox?table=mails&tab=failed', (p) => p.locator('tbody').last().getByRole('checkbox').first().check()],
    ['dead-letter', '/outbox?table=mails&tab=failed', (p) => p.locator('[aria-label="Dead letters"] button.link').first().click()], ['history', '/outbox?tab=history'],
    ['events', '/events'], ['event-stream', '/events?domain=cart&id=9'], ['event', `/events?table=events&event=${ids.event}`], ['all-events', '/events?tab=all'], ['subscriptions', '/events?tab=subscriptions'],
    ['parked', '/events?tab=subscriptions&name=shipping'], ['locks', '/locks?free=1'], ['lock-break', '/locks', inRow('nightly-backup', 'Break…')], ['counters', '/counters'], ['once', '/once'], ['limits', '/limits'], ['kv', '/kv'],
    ['records', '/records?tab=failed'], ['consumers', '/consumers'],
    ['live', '/live', async (p) => {
        await p.waitForFunction(async () => {
            await fetch('/', { method: 'POST', headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'DynamoDB_20120810.ListTables', 'x-amz-date': '20260101T000000Z',
                authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=' + '0'.repeat(64) }, body: '{}' });
            return document.querySelector('[role=grid] tr[data-i]');
        });
        for (let i = 0; i < 6; i++)
            await s.call(i % 2 ? 'Query' : 'Scan', i % 2 ? { TableName: 'orders', KeyConditionExpression: 'customer = :c', ExpressionAttributeValues: { ':c': { S: 'ann' } } } : { TableName: 'sales' });
        await s.call('GetItem', { TableName: 'orders', Key: { wrong: { S: 'x' } } }).catch(() => { });
        await p.locator('tr[data-i]', { hasText: '400' }).first().waitFor();
    }],
    ['insight', '/insight'], ['tests', '/tests'], ['tests-fault', '/tests', button('Add a fault…')], ['remote', '/remote'],
];

looks('all views of patterns', async () => (await ready(), s.endpoint), VIEWS);
