/* The emitter of docs/emitting.md, as it stands there: what it emits is delivered by a real relay. */
'use strict';
const { execFileSync, spawn } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { TransactWriteCommand } = require('@aws-sdk/lib-dynamodb');
const { after, before, testOwn, eq, fails } = require('../lib/suite');
const { api, make, newName, makeTable, dropTable } = require('../lib/clients');

const DOCUMENT = path.join(__dirname, '../../../../docs/emitting.md');
const WAIT_MS = 60000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const words = (table, ...args) => [...args, '--db', process.env.ENDPOINT, '--table', table];
let client, folder, Outbox, tables = [];

/* What readers copy is what runs. */
function emitter() {
    const block = /```javascript\n([^]*?)```/.exec(fs.readFileSync(DOCUMENT, 'utf8'))[1];
    return new Function('require', `${block}\nreturn Outbox;`)(require);
}

async function open() {
    const table = newName('emitting');
    tables.push(table);
    execFileSync(process.env.HOLDFAST, words(table, 'outbox', 'emit', 'first', '{}'));
    return Outbox.open(client, table);
}

const putAside = (outbox) =>
    JSON.parse(execFileSync(process.env.HOLDFAST, words(outbox.table, 'outbox', 'failed', '--json'))).events;

/* What a relay writes into a file until there are so many, without the first, and until so many were
 * put aside. */
async function delivered(outbox, count, failed = 0) {
    const file = path.join(folder, `${outbox.table}.jsonl`);
    const relay = spawn(process.env.HOLDFAST, words(outbox.table, 'relay', '--to', `file:${file}`,
        '--poll', '50ms', '--quiet'), { stdio: 'ignore' });
    const ended = new Promise((resolve) => relay.on('close', resolve));
    const until = Date.now() + WAIT_MS;
    let lines = [];
    while (lines.length < count + 1 && Date.now() < until) {
        await pause(20);
        if (fs.existsSync(file))
            lines = fs.readFileSync(file, 'utf8').split('\n').slice(0, -1);
    }
    while (putAside(outbox).length < failed && Date.now() < until)
        await pause(100);
    relay.kill('SIGTERM');
    eq(await ended, 0);
    return lines.map((line) => JSON.parse(line)).filter((event) => event.type !== 'first');
}

before(() => {
    client = make();
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-js-'));
    Outbox = emitter();
});
after(async () => {
    client.destroy();
    fs.rmSync(folder, { recursive: true });
    for (const table of tables)
        await dropTable(table);
});

testOwn('payloads and headers arrive as they were emitted', async () => {
    const outbox = await open();
    await outbox.emit('text', JSON.stringify({ id: 7 }), { key: 'order-7' });
    await outbox.emit('bytes', Buffer.from([0, 255]), { content_type: 'application/octet-stream' });
    await outbox.emit('document', { a: 1, b: ['ü', null, true] }, { key: 'k', headers: { colour: 'blue', count: 3 } });
    await outbox.emit('headers', '{}', { headers: '{"colour": "red"}', id: 'my-id' });
    const events = Object.fromEntries((await delivered(outbox, 4)).map((event) => [event.type, event]));
    eq(Object.keys(events).sort(), ['bytes', 'document', 'headers', 'text']);
    eq(events.text.data, { id: 7 });
    eq(events.text.partitionkey, 'order-7');
    eq(Math.abs(Date.parse(events.text.time) - Date.now()) < 3600000, true);
    eq(events.bytes.data_base64, 'AP8=');
    eq(events.document.data, { a: 1, b: ['ü', null, true] });
    eq([events.document.colour, events.document.count], ['blue', 3]);
    eq([events.headers.id, events.headers.colour], ['my-id', 'red']);
});
testOwn('events of a key arrive in order', async () => {
    const outbox = await open();
    const keys = ['ann', 'ben', 'ü', 'order-7'];
    for (let i = 0; i < 100; i++)
        await outbox.emit('count', { i }, { key: keys[i % keys.length] });
    const events = await delivered(outbox, 100);
    eq(events.length, 100);
    keys.forEach((key, number) => eq(
        events.filter((event) => event.partitionkey === key).map((event) => event.data.i),
        Array.from({ length: 25 }, (_, i) => number + i * keys.length)));
});
testOwn('urgent events are first', async () => {
    const outbox = await open();
    for (let i = 0; i < 50; i++)
        await outbox.emit('usual', { i }, { key: 'ann' });
    for (let i = 0; i < 3; i++)
        await outbox.emit('urgent', { i }, { key: 'ann', urgent: true });
    const events = await delivered(outbox, 53);
    eq(events.slice(0, 3).map((event) => [event.type, event.data.i, event.urgent]),
        [0, 1, 2].map((i) => ['urgent', i, true]));
    eq(events.slice(3).map((event) => event.data.i), Array.from({ length: 50 }, (_, i) => i));
});
testOwn('in one transaction with what it tells of', async () => {
    const outbox = await open();
    const orders = await makeTable('orders', 'pk:S');
    tables.push(orders);
    const place = (type) => outbox.documents.send(new TransactWriteCommand({ TransactItems: [
        { Put: { TableName: orders, Item: { pk: '7' }, ConditionExpression: 'attribute_not_exists(pk)' } },
        outbox.put(type, { id: 7 }, { key: 'order-7' })] }));
    await place('placed');
    await fails(place('twice'), 'TransactionCanceledException', /ConditionalCheckFailed/);
    eq((await delivered(outbox, 1)).map((event) => event.type), ['placed']);
});
testOwn('what is due later waits', async () => {
    const outbox = await open();
    await outbox.emit('later', {}, { due: new Date(Date.now() + 3600000) });
    await outbox.emit('now', {});
    eq((await delivered(outbox, 1)).map((event) => event.type), ['now']);
});
testOwn('mistakes are put aside with their cause', async () => {
    const outbox = await open();
    await api.PutItem({ TableName: outbox.table, Item: { pk: { S: 'p.000' }, sk: { S: 'x' }, type: { S: 't' } } });
    await outbox.emit('good', {});
    eq((await delivered(outbox, 1, 1)).map((event) => event.type), ['good']);
    const failed = putAside(outbox);
    eq(failed.length, 1);
    eq(/its sk is not of 10 digits/.test(failed[0].error), true);
});
