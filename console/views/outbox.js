/*
 * views/outbox.js: an outbox: what waits, by bucket; its relays; dead letters; history; emitting.
 *
 * Counts by bucket are queries of the table itself (docs/emitting.md has its layout), for the first
 * BUCKETS of them; the sums are outbox.stats.
 */
import { fill, h } from '../lib/dom.js';
import { db, method } from '../lib/client.js';
import { count, durationText, many, timeNode } from '../lib/time.js';
import { payloadOf, plainItem, shapeOf } from '../lib/patterns.js';
import { ask, badge, bar, facts, filters, json, nothing, panel, patternPage, rows, section, tiles, writes } from '../lib/panels.js';
import { button, copy, dialog, job } from '../lib/ui.js';
import { deadLetters } from './dead_letters.js';
import { relays } from './relays.js';
import { href } from '../lib/router.js';

const BUCKETS = 64, REPLAY = 200, URGENT_MS = 1577836800000, DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
const TABS = [['backlog', 'Backlog'], ['waiting', 'Waiting'], ['relays', 'Relays'], ['failed', 'Dead letters'], ['history', 'History']];

export const tableFlag = (table) => (table === 'outbox' ? '' : ` --table ${table}`);
export const ms = (us) => Number(us || 0) / 1000;

/* When the event of a place is due: its first ten digits. */
function placeMs(sk) {
    let at = 0;
    for (const digit of String(sk).slice(0, 10))
        at = at * 32 + DIGITS.indexOf(digit);
    return at < Date.UTC(2020, 0) ? at + URGENT_MS : at;
}

export async function bucketCounts(table, signal) {
    const { hash, sort } = await shapeOf(table);
    const config = plainItem((await db('GetItem', { TableName: table, ConsistentRead: true, Key: { [hash]: { S: 'c' }, [sort]: { S: 'config' } } }, { signal })).Item) || {};
    const all = Number(config.buckets) || 0, list = [];
    const one = async (bucket) => {
        const request = { TableName: table, KeyConditionExpression: '#h = :b', ExpressionAttributeNames: { '#h': hash },
            ExpressionAttributeValues: { ':b': { S: `p.${String(bucket).padStart(3, '0')}` } } };
        const first = plainItem((await db('Query', { ...request, Limit: 1 }, { signal })).Items[0]);
        let waiting = 0;
        if (first)
            for (let next, pages = 0; pages < 5; pages++) {
                const page = await db('Query', { ...request, Select: 'COUNT', ...(next ? { ExclusiveStartKey: next } : {}) }, { signal });
                waiting += page.Count;
                next = page.LastEvaluatedKey;
                if (!next)
                    break;
            }
        list[bucket] = { bucket, waiting, since: first ? placeMs(first[sort]) : 0 };
    };
    let next = 0;
    await Promise.all(Array.from({ length: 4 }, async () => {
        while (next < Math.min(all, BUCKETS))
            await one(next++);
    }));
    return { all, list, mode: config.mode, paused: config.paused };
}

/* Events per second between two looks: [text] */
function rateText(now, before, seconds) {
    const change = now - before;
    if (!seconds || !Number.isFinite(change))
        return '–';
    const rate = change / seconds;
    return change === 0 ? 'steady' : `${rate > 0 ? '+' : '−'}${Math.abs(rate) >= 10 ? Math.round(Math.abs(rate)) : Math.abs(rate).toFixed(1)}/s`;
}

function backlog(body, table) {
    const looks = []; /* of this visit: {at, buckets, published} */
    return section(body, async (signal) => {
        const [stats, buckets] = await Promise.all([method('outbox.stats', { table, limit: 10000 }, { signal }), bucketCounts(table, signal)]);
        looks.push({ at: performance.now(), list: buckets.list, published: Number(stats.published || 0) });
        if (looks.length > 30)
            looks.shift();
        return { stats, buckets };
    }, ({ stats, buckets }) => {
        const n = (name) => Number(stats[name] || 0), now = looks.at(-1), before = looks.length > 1 ? looks[0] : null;
        const seconds = before ? (now.at - before.at) / 1000 : 0, fullest = Math.max(1, ...buckets.list.map((b) => b.waiting)), plus = stats.whole === false ? '+' : '';
        return [
            tiles([{ label: 'Waiting', value: count(n('pending')) + plus, hint: `${count(n('due'))} due now`, href: href('/outbox', { table, tab: 'waiting' }) },
                { label: 'Lag', value: n('oldest_due_ms') ? durationText(n('oldest_due_ms')) : 'none', hint: 'age of the oldest due event', level: n('oldest_due_ms') > 60000 ? 'warn' : null },
                { label: 'Urgent', value: count(n('urgent')), hint: 'before all others' },
                { label: 'Scheduled', value: count(n('scheduled')), hint: 'due later' },
                { label: 'Retrying', value: count(n('retrying')), hint: 'failed before', level: n('retrying') ? 'warn' : null },
                { label: 'Dead letters', value: count(n('failed')), hint: n('failed') ? `oldest ${durationText(n('oldest_failed_ms'))} ago` : 'none', level: n('failed') ? 'bad' : null, href: href('/outbox', { table, tab: 'failed' }) },
                { label: 'Delivered', value: count(n('published')), hint: 'in the history', href: href('/outbox', { table, tab: 'history' }) }]),
            n('unreadable') ? h('p.hint.bad', `${many(n('unreadable'), 'item')} in the buckets ${n('unreadable') === 1 ? 'is not an event' : 'are not events'}. A relay makes dead letters of such items, with the reason.`) : null,
            buckets.paused ? h('p.hint.warn', 'Relays of this outbox are paused. ', h('a', { href: href('/outbox', { table, tab: 'relays' }) }, 'Relays')) : null,
            panel(`Buckets${buckets.all > BUCKETS ? `: the first ${BUCKETS} of ${buckets.all}` : ''}`,
                buckets.list.some((b) => b.waiting) || before ? rows([
                    { label: 'Bucket', cell: (b) => String(b.bucket).padStart(3, '0') },
                    { label: 'Waiting', num: true, cell: (b) => count(b.waiting) },
                    { label: 'Share', cell: (b) => bar(b.waiting, fullest, `bucket ${b.bucket}`) },
                    { label: 'Oldest', cell: (b) => (b.waiting ? b.since > Date.now() ? ['due ', timeNode(b.since, { relative: true })] : timeNode(b.since, { relative: true }) : h('span.muted', '–')) },
                    { label: 'Change', num: true, cell: (b) => rateText(b.waiting, before?.list[b.bucket]?.waiting, seconds) }], buckets.list, { caption: 'Events that wait, by bucket' })
                    : nothing('Nothing waits', 'Events are in a bucket from their commit until they are delivered.', `holdfast outbox emit order.placed '{"id":7}' --key 7${tableFlag(table)}`),
                before ? h('p.muted', `Change of the waiting events over the last ${durationText(seconds * 1000)}; ${rateText(now.published, before.published, seconds).replace('steady', 'nothing')} delivered into the history.`) : h('p.muted', 'Rates show when the table was written once more.')),
        ];
    });
}

/* ---- events --------------------------------------------------------------------------------- */

export function eventFacts(event) {
    return facts([['Id', event.id], ['Type', event.type], ['Key', event.key], ['State', event.state], ['Bucket', event.bucket === undefined ? null : String(event.bucket)],
        ['Happened', event.time_us ? timeNode(ms(event.time_us), { withMs: true }) : null], ['Due', event.due_us ? timeNode(ms(event.due_us)) : null],
        ['Urgent', event.urgent ? 'yes' : null], ['Attempts', event.attempts ? `${event.attempts}${event.crashes ? `, ${event.crashes} of them crashed` : ''}` : null],
        ['Last attempt', event.tried_us ? timeNode(ms(event.tried_us)) : null], ['Next attempt', event.next_us ? timeNode(ms(event.next_us), { relative: true }) : null],
        ['Ended', event.ended_us ? timeNode(ms(event.ended_us)) : null], ['Error', event.error_text ? `${event.error || ''} ${event.error_text}` : null],
        ['Owner', event.owner], ['Source', event.source], ['Tenant', event.tenant], ['Destination', event.destination], ['Aggregate', [event.aggregate_type, event.aggregate].filter(Boolean).join('/') || null],
        ['Correlation', event.correlation], ['Causation', event.causation], ['Schema', event.schema], ['Content type', event.content_type], ['Trace', event.trace_parent]]);
}

export function showEvent(event) {
    const payload = payloadOf(event), headers = event.headers && Object.keys(event.headers).length ? plainItem(event.headers) : null;
    return dialog({ title: event.type || 'Event', wide: true, actions: [{ text: 'Close' }], body: [eventFacts(event), headers && [h('h3', 'Headers'), json(headers)],
        h('h3', 'Payload ', payload.text && button('Copy', () => copy(payload.raw, 'Payload copied'), { class: 'small' })),
        payload.text === '' ? h('p.muted', 'empty') : payload.binary ? [h('p.muted', `${count(payload.size)} bytes that are not text, as base64:`), json(payload.text)] : json(payload.text),
        event.blob && h('p.muted', `The payload is in the blob store: ${event.blob}`)] });
}

export const eventColumns = [
    { label: 'Type', cell: (e) => e.type || '(unreadable)' }, { label: 'Key', cell: (e) => e.key || h('span.muted', '–') },
    { label: 'Happened', cell: (e) => timeNode(ms(e.time_us), { relative: true }) },
];

const stateOf = (e) => (e.owner ? badge('claimed by ' + e.owner) : Number(e.attempts) ? badge(`attempt ${Number(e.attempts) + 1} of it ${e.next_us && ms(e.next_us) > Date.now() ? 'later' : 'next'}`, 'warn')
    : e.due_us && ms(e.due_us) > Date.now() ? badge('scheduled') : badge('due', 'good'));

/* ---- emitting ------------------------------------------------------------------------------- */

const EMIT = [['type', 'Type'], ['key', 'Key'], ['correlation', 'Correlation'], ['causation', 'Causation'], ['tenant', 'Tenant'], ['destination', 'Destination'], ['schema', 'Schema'], ['aggregate', 'Aggregate'], ['aggregate_type', 'Aggregate type']];

/* An id as the library makes them: ten digits of time, sixteen by chance; they sort by time. */
function eventId(now = Date.now()) {
    let text = '';
    for (let at = now; text.length < 10; at = Math.floor(at / 32))
        text = DIGITS[at % 32] + text;
    return text + [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => DIGITS[byte % 32]).join('');
}

/*
 * The form of an event; `like` fills it in. Resolves to true when one was emitted. If after() fails, the
 * form stays, and its button only does that again.
 *
 * The id is made once for the form: when an answer is lost, nobody knows whether the event is there. To send
 * it again is then refused as a repetition, which says that it is.
 */
export function emitForm(table, like, { title = 'Emit an event', text, verb = 'Emit', after } = {}) {
    const payload = like ? payloadOf(like) : { raw: '{"test": true}' };
    const id = eventId(), time_us = Date.now() * 1000, unknown = new Set(); /* what was sent, and may be there */
    let result;
    return ask(title, { text, verb, wide: true, fields: [
        { name: 'type', label: 'Type', value: like?.type || 'test.ping', required: true },
        { name: 'key', label: 'Key', value: like?.key, hint: 'Events with one key are delivered one after the other.' },
        { name: 'payload', label: payload.binary ? 'Payload (base64)' : 'Payload', type: 'area', rows: 8, value: payload.raw },
        { name: 'headers', label: 'Headers', type: 'area', rows: 3, value: like?.headers ? JSON.stringify(like.headers, null, 2) : '', hint: 'An item in DynamoDB\'s JSON, or empty.' },
        { name: 'delay', label: 'Deliver after (seconds)', type: 'number', value: '' },
        { name: 'urgent', label: 'Urgent: before all events that are not', type: 'check', value: like?.urgent },
    ], run: async (v) => {
        result ||= await emit(v);
        await after?.(result);
    } });

    async function emit(v) {
        const events = [eventOf(v)], mine = JSON.stringify(v);
        try {
            return await method('outbox.emit', { table, events });
        } catch (problem) {
            if (problem.mayHaveHappened)
                unknown.add(mine);
            if (problem.code !== 'HF_DUPLICATE' || !unknown.size)
                throw problem;
            if (unknown.size > 1 || !unknown.has(mine))
                throw new Error('An earlier try has already emitted it, as the form was then. Nothing more was sent; look at the waiting events.');
            return { ids: [id] };
        }
    }

    function eventOf(v) {
        if (like?.blob_error && v.payload === payload.raw)
            throw new Error(`The payload is in the blob store and could not be fetched (${like.blob_error}): the copy would have none.`);
        const event = { id, time_us, type: v.type };
        for (const [name] of EMIT)
            if (like?.[name])
                event[name] = like[name];
        event.type = v.type;
        delete event.key;
        if (v.key)
            event.key = v.key;
        if (like?.payload !== undefined && v.payload === payload.raw)
            event.payload = like.payload;
        else if (payload.binary)
            event.payload = { base64: v.payload };
        else
            event.payload = v.payload;
        if (like?.content_type)
            event.content_type = like.content_type;
        else if (!payload.binary)
            try {
                JSON.parse(v.payload);
            } catch {
                event.content_type = 'text/plain';
            }
        if (v.headers.trim())
            event.headers = JSON.parse(v.headers);
        if (v.urgent)
            event.urgent = true;
        if (Number(v.delay) > 0)
            event.due_us = Math.round((Date.now() + Number(v.delay) * 1000) * 1000);
        return event;
    }
}

export default {
    title: 'Outbox',
    async open(root, params, ctx) {
        const query = ctx.query, tab = query.tab || 'backlog';
        return patternPage(root, 'outbox', ctx, { tabs: TABS, tab, open: async (body, table) => {
            const view = show(body, table, tab, query);
            return { ...view, actions: writes('Emit a test event', () => emitForm(table), { focus: 'emit' }) };
        } });
    },
};

function show(body, table, tab, query) {
    if (tab === 'failed')
        return deadLetters(body, table, query);
    if (tab === 'relays')
        return relays(body, table);
    if (tab === 'waiting') {
        const part = { type: query.type, key: query.key, tenant: query.tenant, not_due_too: true, retrying_too: true };
        const box = h('div.view');
        fill(body, filters('/outbox', table, [['type', 'Type (order.*)', query.type], ['key', 'Key', query.key], ['tenant', 'Tenant', query.tenant]], { tab }), box);
        return paged(box, table, 'outbox.pending', part, [...eventColumns, { label: 'State', cell: stateOf }, { label: 'Bucket', num: true, cell: (e) => String(e.bucket ?? '') }],
            nothing('Nothing waits', query.type || query.key || query.tenant ? 'No waiting event matches.' : 'All events are delivered.', `holdfast outbox emit test.ping '{}'${tableFlag(table)}`),
            { actions: (e) => writes('Discard', () => ask('Discard an event that waits', { text: 'It is deleted and never delivered.', danger: true, verb: 'Discard', typed: e.type,
                run: () => method('outbox.discard', { table, ids: [e.ref || e.id] }) }), { small: true, danger: true }) });
    }
    if (tab === 'history') {
        const box = h('div.view');
        fill(body, filters('/outbox', table, [['type', 'Type (order.*)', query.type], ['key', 'Key', query.key]], { tab }), box);
        return paged(box, table, 'outbox.history', { type: query.type, key: query.key }, [...eventColumns,
            { label: 'Delivered', cell: (e) => timeNode(ms(e.ended_us), { withMs: true }) }, { label: 'Took', num: true, cell: (e) => durationText(ms(e.ended_us) - ms(e.time_us)) },
            { label: 'Attempts', num: true, cell: (e) => count(Number(e.attempts || 0) + 1) }],
        nothing('No history', 'Delivered events are deleted from the table unless relays keep a history:', `holdfast relay --to stdout: --history 7d${tableFlag(table)}`),
        { head: (page) => h('p', writes('Deliver again…', () => replay(table, query), { focus: 'replay' }), ' ', h('span.muted', `all of the history${partText(query)}, with their ids`)) });
    }
    return backlog(body, table);
}

function paged(body, table, name, query, columns, none, { head, actions } = {}) {
    let limit = 50;
    const args = Object.fromEntries(Object.entries(query).filter(([, v]) => v !== undefined && v !== ''));
    const own = section(body, (signal) => method(name, { table, ...args, limit }, { signal }), (page) => (page.events.length ? [head?.(page),
        rows(columns, page.events, { caption: 'Events', keyOf: (e) => e.ref || e.id, open: showEvent, actions }),
        h('p.muted', many(page.events.length, 'event'), page.next ? [', and more. ', h('button.small', { 'data-focus': 'more', onclick: () => { limit += 200; own.refresh(); } }, 'Show more')] : '')] : none));
    return own;
}

const partText = ({ type, key }) => `${type ? ` of type ${type}` : ''}${key ? ` of key ${key}` : ''}`;

function replay(table, query) {
    return ask('Deliver the history again', { text: `Every event of the history${partText(query)} is emitted again, with its id. Consumers see them a second time.`,
        verb: 'Deliver again', typed: table, fields: [{ name: 'hours', label: 'Only of the last hours', type: 'number', hint: 'Empty: all of it.' }],
        run: async (v) => {
            const hours = v.hours.trim();
            if (hours && !(Number(hours) > 0))
                throw new Error(`“${hours}” is not a number of hours.`);
            replayPages(table, { ...(query.type ? { type: query.type } : {}), ...(query.key ? { key: query.key } : {}), ...(hours ? { from_us: Math.round((Date.now() - hours * 3600000) * 1000) } : {}) });
        } });
}

/*
 * A page of the history after the other. What was delivered since the start, because it was emitted
 * again, is not in them. How many there are in all is not known of a time, nor of very many.
 */
function replayPages(table, of) {
    return job(`Deliver the history of ${table} again`, async (step, signal) => {
        const part = { table, ...of, to_us: Date.now() * 1000 };
        const stats = of.from_us ? null : await method('outbox.stats', { table, ...of, limit: 10000 }, { signal }), total = stats && stats.whole !== false ? Number(stats.published || 0) : 0;
        let seen = 0, again = 0, after;
        step(0, total);
        do {
            const page = await method('outbox.history', { ...part, oldest_first: true, no_payload: true, limit: REPLAY, ...(after ? { after } : {}) }, { signal }), n = page.events.length;
            if (n)
                again += Number((await method('outbox.replay', { ...part, limit: n, ...(after ? { after } : {}) }, { signal })).done);
            after = page.next;
            step(seen += n, total && Math.max(total, seen));
        } while (after);
        return `${many(again, 'event')} ${again === 1 ? 'is' : 'are'} emitted again${again < seen ? `; ${count(seen - again)} waited already` : ''}`;
    });
}
