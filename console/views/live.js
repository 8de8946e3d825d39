/*
 * views/live.js: requests as they are answered: filter, pause, copy as a test.
 *
 * The server sends them only while this view is open. It keeps no requests, so what is copied has the key
 * and leaves the values to you.
 */
import { add, fill, h, throttle } from '../lib/dom.js';
import { grid } from '../lib/table.js';
import { clockText, count, durationText, timeNode } from '../lib/time.js';
import { badge, button, check, code, dialog, facts, field, select } from '../lib/ui.js';
import { stream } from '../lib/stream.js';
import { shapeOf } from '../lib/patterns.js';
import { href } from '../lib/router.js';

const MOST = 2000; /* requests that are kept */
const SECONDS = 60; /* that rates are of */

/* A request for what is known: the operation, the table, the hash key. */
async function requestOf(r) {
    if (!r.table)
        return {};
    const request = { TableName: r.table };
    if (r.key === undefined)
        return request;
    let shape;
    try {
        shape = await shapeOf(r.table);
    } catch {
        shape = { hash: 'pk', type: 'S' };
    }
    const value = shape.type === 'S' ? { S: r.key } : { [shape.type]: r.key }, key = { [shape.hash]: value, ...(shape.sort ? { [shape.sort]: { S: '…' } } : {}) };
    switch (r.operation) {
    case 'Query': return { ...request, KeyConditionExpression: '#k = :k', ExpressionAttributeNames: { '#k': shape.hash }, ExpressionAttributeValues: { ':k': value } };
    case 'PutItem': return { ...request, Item: { ...key } };
    case 'GetItem': case 'DeleteItem': case 'UpdateItem': return { ...request, Key: key };
    case 'BatchGetItem': return { RequestItems: { [r.table]: { Keys: [key] } } };
    case 'BatchWriteItem': return { RequestItems: { [r.table]: [{ PutRequest: { Item: key } }] } };
    case 'TransactWriteItems': return { TransactItems: [{ Put: { TableName: r.table, Item: key } }] };
    case 'TransactGetItems': return { TransactItems: [{ Get: { TableName: r.table, Key: key } }] };
    default: return request;
    }
}

const snake = (name) => name.replace(/[A-Z]/g, (c, at) => (at ? '_' : '') + c.toLowerCase());
const dash = (name) => snake(name).replace(/_/g, '-');
const quote = (text) => `'${text.replace(/'/g, "'\\''")}'`;
const word = (text) => (/^[\w./:@%+,-]+$/.test(text) ? text : quote(text));
const python = (value, indent = '    ') => JSON.stringify(value, null, 4).replace(/\btrue\b/g, 'True').replace(/\bfalse\b/g, 'False').replace(/\bnull\b/g, 'None').replace(/\n/g, '\n' + indent);

/* The command that does what the request does, as far as it is known; undefined: there is none. */
function command(r, request) {
    const key = Object.values(request.Key || {}).map((v) => Object.values(v)[0]);
    const line = (verb, ...words) => `holdfast ${verb} --db ${location.origin} ${[words.some((one) => one.startsWith('-')) && '--', ...words.map(word)].filter(Boolean).join(' ')}`.trim();
    switch (r.table ? r.operation : r.operation === 'ListTables' && r.operation) {
    case 'ListTables': return line('table ls');
    case 'DescribeTable': return line('table show', r.table);
    case 'Scan': return line('scan', r.table);
    case 'Query': return r.key === undefined ? undefined : line('query', r.table, r.key);
    case 'GetItem': return key.length ? line('item get', r.table, ...key) : undefined;
    case 'DeleteItem': return key.length ? line('item delete', r.table, ...key) : undefined;
    case 'UpdateItem': return key.length ? line('item update --set NAME=VALUE', r.table, ...key) : undefined;
    case 'PutItem': return request.Item && line('item put --dynamodb', r.table, JSON.stringify(request.Item));
    default: return undefined;
    }
}

/* The ways to copy a request: [[title, text], ...] */
export async function copies(r) {
    const request = await requestOf(r), body = JSON.stringify(request), origin = location.origin, failed = r.status >= 400;
    const streams = ['GetRecords', 'GetShardIterator', 'DescribeStream', 'ListStreams'].includes(r.operation);
    return [
        ['Test in Python', `import boto3\n${failed ? 'import pytest\nfrom botocore.exceptions import ClientError\n' : ''}\n\ndef test_${snake(r.operation)}():\n    client = boto3.client(${streams ? '"dynamodbstreams"' : '"dynamodb"'}, endpoint_url="${origin}", region_name="us-east-1")\n    ${failed
            ? `with pytest.raises(ClientError) as failure:\n        client.${snake(r.operation)}(**${python(request, '        ')})\n    assert failure.value.response["ResponseMetadata"]["HTTPStatusCode"] == ${r.status}`
            : `answer = client.${snake(r.operation)}(**${python(request)})\n    assert answer["ResponseMetadata"]["HTTPStatusCode"] == ${r.status}`}\n`],
        ['Test in JavaScript', `import test from 'node:test';\nimport assert from 'node:assert';\nimport { DynamoDBClient, ${r.operation}Command } from '@aws-sdk/client-dynamodb${streams ? '-streams' : ''}';\n\ntest('${r.operation}', async () => {\n    const client = new DynamoDBClient({ endpoint: '${origin}', region: 'us-east-1' });\n    const command = new ${r.operation}Command(${JSON.stringify(request, null, 4).replace(/\n/g, '\n    ')});\n    ${failed
            ? `await assert.rejects(client.send(command), (error) => error.$metadata.httpStatusCode === ${r.status});` : `const answer = await client.send(command);\n    assert.equal(answer.$metadata.httpStatusCode, ${r.status});`}\n});\n`],
        ...[['holdfast', command(r, request)]].filter(([, text]) => text),
        ['aws', `aws ${streams ? 'dynamodbstreams' : 'dynamodb'} ${dash(r.operation)} --endpoint-url ${origin} --cli-input-json ${quote(body)}`],
        ['curl', `curl ${origin}/ --aws-sigv4 aws:amz:us-east-1:dynamodb --user KEY:SECRET -H 'content-type: application/x-amz-json-1.0' \\\n    -H 'x-amz-target: ${streams ? 'DynamoDBStreams_20120810' : 'DynamoDB_20120810'}.${r.operation}' -d ${quote(body)}`]];
}

async function show(r) {
    const list = await copies(r), pick = h('div');
    const chosen = (title) => fill(pick, code(list.find(([t]) => t === title)[1]));
    chosen(list[0][0]);
    dialog({ title: `${r.operation}${r.table ? ' ' + r.table : ''}`, wide: true, actions: [{ text: 'Close' }], body: [facts([['Time', timeNode(r.time, { withMs: true })], ['Took', durationText(r.ms)], ['Status', [String(r.status), r.error ? ' ' + r.error : '']],
        ['Table', r.table && h('a', { href: href('/tables', r.table, 'items') }, r.table)], ['Key', r.key], ['More items', r.more ? 'yes, of other keys or tables' : null], ['Read units', r.read_units ? String(r.read_units) : null], ['Write units', r.write_units ? String(r.write_units) : null],
        ['Read, returned', r.scanned !== undefined ? `${count(r.scanned)}, ${count(r.returned)}` : null], ['Request id', r.id]]),
    field('Copy as', select(list.map(([t]) => t), list[0][0], chosen)), pick, h('p.muted', 'The server keeps no values: complete what is missing.')] });
}

export default {
    title: 'Live requests',
    async open(root, params, ctx) {
        const q = { find: params.find || '', operation: params.operation || '', failed: params.failed === '1', own: params.own === '1' };
        let list = [], kept = [], paused = false, dropped = 0, seen = 0;
        const times = [], operations = new Set(['']);
        const pause = button('Pause', () => {
            paused = !paused;
            fill(pause, paused ? 'Go on' : 'Pause');
            pause.setAttribute('aria-pressed', String(paused));
            if (!paused) {
                list = kept.concat(list).slice(0, MOST);
                kept = [];
            }
            draw();
        }, { 'aria-pressed': 'false' });
        const find = h('input', { type: 'search', value: q.find, placeholder: 'table, key, error, id', oninput: () => { q.find = find.value; draw(); }, class: 'grow' });
        const ops = h('select', { onchange: () => { q.operation = ops.value; draw(); } }, h('option', { value: '' }, 'all'));
        const table = grid({ label: 'Requests', name: 'requests', key: (r) => r.n, open: show, sortable: false, columns: [
            { id: 'time', title: 'Time', cell: (r) => clockText(r.time) + '.' + String(Math.floor(r.time % 1000)).padStart(3, '0') },
            { id: 'status', title: 'Status', cell: (r) => badge(String(r.status), r.status < 400 ? 'good' : r.status < 500 ? 'warn' : 'bad') },
            { id: 'operation', title: 'Operation', cell: (r) => r.operation }, { id: 'table', title: 'Table', cell: (r) => (r.table || '–') + (r.more ? ' …' : '') }, { id: 'key', title: 'Key', cell: (r) => h('span.mono', r.key ?? '') },
            { id: 'ms', title: 'Time taken', right: true, cell: (r) => durationText(r.ms) },
            { id: 'units', title: 'Units', right: true, cell: (r) => [r.read_units ? `${r.read_units} r` : '', r.write_units ? `${r.write_units} w` : ''].filter(Boolean).join(' ') || '–' },
            { id: 'error', title: 'Error', cell: (r) => r.error || '' }] });
        const note = h('p.muted', { role: 'status' }), tip = h('div');
        ctx.head({ title: 'Live requests', actions: [pause, button('Clear', () => { list = []; kept = []; dropped = 0; draw(); })] });
        add(root, h('div.bar.end', field('Search', find), field('Operation', ops), check('Failed only', q.failed, (on) => { q.failed = on; draw(); })), note, tip, table.node);
        const wanted = (r) => (!q.operation || r.operation === q.operation) && (!q.failed || r.status >= 400) && (!q.find || `${r.table} ${r.key ?? ''} ${r.error ?? ''} ${r.id} ${r.operation}`.toLowerCase().includes(q.find.toLowerCase()));
        const draw = () => {
            list.sort((a, b) => b.time - a.time || b.n - a.n); /* threads of the server report in turns */
            const now = Date.now(), shown = list.filter(wanted);
            while (times.length && times[0] < now - SECONDS * 1000)
                times.shift();
            ctx.setQuery({ find: q.find, operation: q.operation, failed: q.failed ? '1' : '' });
            fill(note, paused ? `Paused; ${count(kept.length)} came since. ` : '', `${count(shown.length)}${shown.length < list.length ? ` of ${count(list.length)}` : ''} requests, ${count(times.length)} in the last minute`,
                dropped ? `; ${count(dropped)} were not shown, as there were too many at once` : '');
            fill(tip, seen ? [] : stream.available ? h('div.state', h('strong', 'No request yet'), h('p', 'Requests of every client show here while this view is open. For example:'), code(`holdfast table ls --db ${location.origin}`))
                : h('div.state', h('strong', 'This server sends no live requests')));
            table.node.hidden = !seen;
            table.setRows(shown);
        };
        const soon = throttle(draw, 200);
        const take = (r) => {
            seen++;
            const one = { ...r, n: seen, time: r.time_us / 1000 };
            times.push(Date.now());
            if (!operations.has(one.operation)) {
                operations.add(one.operation);
                add(ops, h('option', one.operation));
                ops.value = q.operation;
            }
            const into = paused ? kept : list;
            into.unshift(one);
            if (into.length > MOST)
                into.length = MOST;
            soon();
        };
        ctx.on('request', take);
        ctx.on('dropped', (value) => {
            dropped += Number(value.requests);
            soon();
        });
        draw();
        return null;
    },
};
