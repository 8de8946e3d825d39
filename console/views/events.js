/*
 * views/events.js: an event store: streams with a time line, an event with its causes drawn, two versions
 * compared, the order of all events, subscriptions with their lag and parked events.
 *
 * The newest position, for the lag of subscriptions, is read from the table: the last item of each part of
 * the latest day (src/events/store/events.h).
 */
import { fill, h, svg } from '../lib/dom.js';
import { count, durationText, many, timeNode, timeText } from '../lib/time.js';
import { ask, badge, diffView, facts, filters, json, more, nothing, panel, patternPage, rows, section, tiles, writes } from '../lib/panels.js';
import { all, inLines, payloadOf, plainItem } from '../lib/patterns.js';
import { db, method } from '../lib/client.js';
import { go, href } from '../lib/router.js';
import { button, copy, dialog, toast } from '../lib/ui.js';

const TABS = [['streams', 'Streams'], ['all', 'All events'], ['subscriptions', 'Subscriptions']];
const ms = (us) => Number(us || 0) / 1000;
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/* When an event with that position was appended. */
export function positionMs(position) {
    let at = 0;
    for (const digit of String(position || '').slice(0, 10))
        at = at * 32 + CROCKFORD.indexOf(digit);
    return at;
}

const streamOf = (e) => ({ domain: e.domain, id: e.stream ?? '' });
const streamText = (e) => { const s = streamOf(e); return s.id ? `${s.domain}/${s.id}` : s.domain; };
const eventLink = (table, e, text = e.type) => h('a', { href: href('/events', { table, event: e.id }) }, text);
const streamLink = (table, e) => { const s = streamOf(e); return h('a', { href: href('/events', { table, domain: s.domain, id: s.id }) }, streamText(e)); };

/* What of an event is compared: everything but where it is. */
function content(e) {
    const payload = payloadOf(e), rest = JSON.stringify({ type: e.type, time: timeText(ms(e.time_us), true), schema: e.schema, meta: plainItem(e.meta || {}) });
    return inLines(`${rest.slice(0, -1)},"payload":${payload.json ? payload.raw : JSON.stringify(payload.raw)}}`);
}

/* ---- pictures ------------------------------------------------------------------------------- */

/* Events along a line, one lane for each type; a link each. Close ones keep apart, so that each can be hit. */
export function timeline(table, events) {
    const list = [...events].sort((a, b) => Number(a.time_us) - Number(b.time_us)), lanes = [...new Set(list.map((e) => e.type))].slice(0, 12);
    const from = Number(list[0].time_us), span = Math.max(1, Number(list.at(-1).time_us) - from), gap = 14, left = 130, last = new Map();
    const width = Math.max(980, left + 40 + list.length * 6), height = lanes.length * 26 + 34, at = new Map();
    for (const e of list) {
        const lane = Math.max(0, lanes.indexOf(e.type)), x = Math.max(left + (width - left - 30) * (Number(e.time_us) - from) / span, (last.get(lane) ?? -gap) + gap);
        last.set(lane, x);
        at.set(e, [x, lane * 26 + 18]);
    }
    const right = Math.max(width, ...last.values()) + 20;
    return h('div.timeline', { role: 'region', 'aria-label': 'Time line', tabindex: '0' }, svg('svg', { width: right, height, viewBox: `0 0 ${right} ${height}`, role: 'group', 'aria-label': `${many(list.length, 'event')} from ${timeText(from / 1000)} to ${timeText((from + span) / 1000)}` },
        lanes.map((lane, i) => [svg('line', { x1: left, x2: right - 10, y1: i * 26 + 18, y2: i * 26 + 18 }), svg('text', { x: 4, y: i * 26 + 22 }, lane.length > 18 ? lane.slice(0, 17) + '…' : lane)]),
        list.map((e) => svg('a', { href: href('/events', { table, event: e.id }), 'aria-label': `${e.type}, version ${e.version}, ${timeText(ms(e.time_us))}` }, svg(`circle.c${Math.max(0, lanes.indexOf(e.type)) % 6}`, { cx: at.get(e)[0], cy: at.get(e)[1], r: 6 }),
            svg('title', `${e.version}: ${e.type}, ${timeText(ms(e.time_us), true)}`))),
        svg('text.muted', { x: left, y: height - 6 }, timeText(from / 1000)), svg('text.muted', { x: right - 12, y: height - 6, 'text-anchor': 'end' }, list.length > 1 ? timeText((from + span) / 1000) : '')));
}

/* An event and what followed from it: a box each, causes to the left. */
export function tree(table, node, here) {
    const W = 190, H = 40, X = 36, Y = 10, boxes = [], lines = [];
    let row = 0;
    const place = (one, depth) => {
        const children = one.children || [], tops = children.map((child) => place(child, depth + 1));
        const y = tops.length ? (tops[0] + tops.at(-1)) / 2 : row++ * (H + Y), e = one.event || one;
        tops.forEach((top) => lines.push(svg('path', { d: `M${depth * (W + X) + W} ${y + H / 2} C ${depth * (W + X) + W + X / 2} ${y + H / 2}, ${(depth + 1) * (W + X) - X / 2} ${top + H / 2}, ${(depth + 1) * (W + X)} ${top + H / 2}` })));
        boxes.push({ e, x: depth * (W + X), y, depth });
        return y;
    };
    place(node, 0);
    const width = Math.max(...boxes.map((b) => b.x)) + W + 4, height = Math.max(...boxes.map((b) => b.y)) + H + 4, short = (text, n) => (text.length > n ? text.slice(0, n - 1) + '…' : text);
    return h('div.tree', { role: 'region', 'aria-label': 'Causes', tabindex: '0' }, svg('svg', { width, height, viewBox: `-2 -2 ${width} ${height}`, role: 'group', 'aria-label': `${boxes.length} events` }, lines,
        boxes.map(({ e, x, y }) => svg('g', { class: e.id === here ? 'here' : null }, svg('a', { href: href('/events', { table, event: e.id }), 'aria-label': `${e.type} of ${streamText(e)}`, 'aria-current': e.id === here ? 'true' : null },
            svg('rect', { x, y, width: W, height: H, rx: 5 }), svg('text', { x: x + 10, y: y + 17 }, short(e.type, 26)), svg('text.muted', { x: x + 10, y: y + 32 }, short(`${streamText(e)} · ${e.version}`, 28)), svg('title', `${e.type}\n${streamText(e)} version ${e.version}\n${timeText(ms(e.time_us), true)}`))))));
}

/* ---- an event ------------------------------------------------------------------------------- */

/* The first cause of an event that is still there: that is where its tree begins. */
async function rootOf(table, event, signal) {
    let e = event;
    for (let i = 0; e.causation && i < 50; i++) {
        try {
            e = await method('events.get', { table, id: e.causation }, { signal });
        } catch {
            break; /* it is not in this store, as when a command caused it */
        }
    }
    return e;
}

function eventView(body, table, id) {
    return section(body, async (signal) => {
        const event = await method('events.get', { table, id }, { signal }), first = await rootOf(table, event, signal);
        const [whole, related] = await Promise.all([method('events.tree', { table, id: first.id }, { signal }).catch(() => null), event.correlation ? method('events.correlated', { table, id: event.correlation }, { signal }).catch(() => null) : null]);
        return { event, tree: whole, related: related?.events || [] };
    }, ({ event, tree: whole, related }) => {
        const payload = payloadOf(event), s = streamOf(event), version = Number(event.version), meta = event.meta && Object.keys(event.meta).length;
        const step = (to, text) => h('a.button', { href: href('/events', { table, domain: s.domain, id: s.id, version: to }) }, text);
        return [h('div.bar', step('', `Stream ${streamText(event)}`), version > 1 && step(version - 1, '← version ' + (version - 1)), step(version + 1, `version ${version + 1} →`)),
            h('div.columns2', panel(`${event.type}`, facts([['Stream', streamLink(table, event)], ['Version', String(event.version)], ['Happened', timeNode(ms(event.time_us), { withMs: true })], ['Appended', event.position ? timeNode(positionMs(event.position), { withMs: true }) : null], ['Id', h('code', event.id)],
                ['Position', event.position !== event.id ? event.position : null], ['Schema', String(event.schema ?? 1)], ['Content type', event.content_type], ['Caused by', event.causation && h('a', { href: href('/events', { table, event: event.causation }) }, event.causation)], ['Correlation', event.correlation && event.correlation !== event.id ? event.correlation : null],
                ['Takes back', event.compensates && h('a', { href: href('/events', { table, event: event.compensates }) }, event.compensates)], ['Hash', event.hash ? h('code', String(event.hash.base64 || event.hash).slice(0, 64)) : null], ['Blob', event.blob]])),
            panel(['Payload ', payload.text && button('Copy', () => copy(payload.raw, 'Payload copied'), { class: 'small' })], payload.text === '' ? h('p.muted', 'empty') : json(payload.text), meta ? [h('h3', 'Metadata'), json(plainItem(event.meta))] : null)),
            panel('Causes and what followed', whole && (whole.children?.length || event.causation) ? tree(table, whole, event.id) : h('p.muted', 'No event caused this one, and it caused none.')),
            related.length > 1 ? panel('With the same correlation', rows([{ label: 'Event', cell: (e) => eventLink(table, e) }, { label: 'Stream', cell: (e) => streamLink(table, e) }, { label: 'Version', num: true, cell: (e) => String(e.version) }, { label: 'Happened', cell: (e) => timeNode(ms(e.time_us), { withMs: true }) }], related, { caption: 'Events with this correlation' })) : null];
    });
}

/* ---- a stream ------------------------------------------------------------------------------- */

function streamView(body, table, query) {
    const stream = { domain: query.domain, id: query.id || '' }, chosen = new Set();
    let limit = 100;
    const view = section(body, async (signal) => {
        const page = await method('events.read', { table, ...stream, backward: true, limit, ...(query.version ? { from: Number(query.version), limit: 1 } : {}) }, { signal });
        if (query.version && page.events?.[0])
            go('/events', { table, event: page.events[0].id });
        return page;
    }, (page) => {
        const events = page.events || [], tools = h('div.bar');
        if (!events.length)
            return nothing(query.version ? `There is no version ${query.version} yet` : 'The stream has no events', query.version ? null : 'It was never written, or all its events are hidden.', query.version ? null : `holdfast events append ${stream.domain}/${stream.id} placed '{"pieces":2}'`);
        const show = () => fill(tools, chosen.size === 2 ? button('Compare the two', () => {
            const [a, b] = events.filter((e) => chosen.has(String(e.version))).sort((x, y) => Number(x.version) - Number(y.version));
            dialog({ title: `Version ${a.version} and version ${b.version}`, wide: true, actions: [{ text: 'Close' }], body: [h('p.muted', `Lines with − are of version ${a.version}, those with + of version ${b.version}.`), diffView(content(a), content(b))] });
        }, { class: 'primary', 'data-focus': 'compare' }) : h('span.muted', chosen.size ? `${chosen.size} selected: select two to compare them` : 'Select two versions to compare them.'));
        const node = [tiles([{ label: 'Version', value: count(Number(page.version || events[0].version)) }, { label: 'Types', value: count(new Set(events.map((e) => e.type)).size) }, { label: 'Last event', value: durationText(Math.max(0, Date.now() - ms(events[0].time_us))), hint: 'ago' }]),
            timeline(table, events), tools, rows([{ label: 'Version', cell: (e) => h('a', { href: href('/events', { table, event: e.id }), 'data-focus': 'v' + e.version }, String(e.version)) }, { label: 'Type', cell: (e) => eventLink(table, e) },
                { label: 'Payload', wide: true, cell: (e) => h('span.mono', (payloadOf(e).binary ? 'binary' : payloadOf(e).text.replace(/\s+/g, ' ')).slice(0, 140)) }, { label: 'Happened', cell: (e) => timeNode(ms(e.time_us), { withMs: true }) }], events, { caption: `Events of ${streamText({ domain: stream.domain, stream: stream.id })}`, keyOf: (e) => String(e.version), select: chosen, onSelect: show }),
            more(page.next && Number(page.next) > 0, () => { limit += 500; view.refresh(); })];
        return node;
    });
    return view;
}

/* ---- lists ---------------------------------------------------------------------------------- */

function streams(body, table, query) {
    const box = h('div.view');
    let most = 500;
    fill(body, filters('/events', table, [['in', 'Domain', query.in || '']]), box);
    const view = section(box, async (signal) => {
        const { streams: found, whole } = await method('events.streams', { table, ...(query.in ? { domain: query.in } : {}), limit: most }, { signal });
        return { list: (found || []).map((s) => ({ ...s, stream: s.id })), more: !whole };
    }, ({ list, more: next }) => {
        list.sort((a, b) => positionMs(b.position) - positionMs(a.position) || (streamText(a) < streamText(b) ? -1 : 1));
        const events = list.reduce((n, s) => n + Number(s.version || 0), 0), plus = next ? '+' : '';
        return list.length ? [tiles([{ label: 'Streams', value: count(list.length) + plus }, { label: 'Events', value: count(events) + plus, hint: 'ever appended to them' }, { label: 'Domains', value: count(new Set(list.map((s) => streamOf(s).domain)).size) }]), rows([
            { label: 'Stream', cell: (s) => streamLink(table, s) }, { label: 'Version', num: true, cell: (s) => count(Number(s.version)) }, { label: 'First kept', num: true, cell: (s) => count(Number(s.first)) },
            { label: 'Last event', cell: (s) => (s.position ? timeNode(positionMs(s.position), { relative: true }) : '–') }, { label: 'State', cell: (s) => (s.deleted ? badge('deleted', 'bad') : s.archived ? badge('archived') : badge('open', 'good')) },
            { label: 'Limits', cell: (s) => [Number(s.max_age_s) ? durationText(s.max_age_s * 1000) : '', Number(s.max_count) ? many(Number(s.max_count), 'event') : ''].filter(Boolean).join(', ') || 'none' }], list, { caption: 'Streams' }),
        more(next, () => { most += 1000; view.refresh(); })] : nothing('No streams', query.in ? 'None of this domain.' : 'The first append makes one:', 'holdfast events append order/7 placed \'{"pieces":2}\'');
    });
    return view;
}

function order(body, table, query) {
    const box = h('div.view'), list = [];
    let after = query.after;
    fill(body, filters('/events', table, [['in', 'Domain', query.in || ''], ['type', 'Type (order.*)', query.type || '']], { tab: 'all' }), box);
    let next = null;
    const view = section(box, async (signal) => {
        const page = await method('events.all', { table, limit: 200, ...(query.in ? { domain: query.in } : {}), ...(query.type ? { type: query.type } : {}), ...(after ? { after } : {}) }, { signal });
        list.push(...(page.events || []));
        after = page.next || page.events?.at(-1)?.position || after;
        next = page.events?.length === 200;
        return list;
    }, () => (list.length ? [timeline(table, list.slice(-400)), rows([{ label: 'Event', cell: (e) => eventLink(table, e) }, { label: 'Stream', cell: (e) => streamLink(table, e) }, { label: 'Version', num: true, cell: (e) => String(e.version) },
        { label: 'Payload', wide: true, cell: (e) => h('span.mono', (payloadOf(e).binary ? 'binary' : payloadOf(e).text.replace(/\s+/g, ' ')).slice(0, 120)) }, { label: 'Appended', cell: (e) => timeNode(positionMs(e.position), { withMs: true }) }], list, { caption: 'All events in their order', keyOf: (e) => e.position }),
    h('p.muted', `${many(list.length, 'event')}, the oldest first; new ones are added here.`), more(next, () => view.refresh())] : nothing('No events', query.in || query.type ? 'None is like that.' : null, 'holdfast events append order/7 placed \'{"pieces":2}\'')));
    return view;
}

/* ---- subscriptions -------------------------------------------------------------------------- */

async function newestMs(table, signal) {
    const q = (pk, extra) => db('Query', { TableName: table, KeyConditionExpression: 'pk = :p', ExpressionAttributeValues: { ':p': { S: pk } }, ScanIndexForward: false, ProjectionExpression: 'sk', ...extra }, { signal });
    const config = (await db('GetItem', { TableName: table, Key: { pk: { S: 'c' }, sk: { S: 'config' } } }, { signal })).Item, shards = Number(config?.shards?.N || 0);
    const day = (await q('d', { Limit: 5 })).Items.map((i) => i.sk.S).find((sk) => /^\d{8}$/.test(sk));
    if (!day)
        return 0;
    const last = await Promise.all(Array.from({ length: shards }, (_, n) => q(`a.${day}.${String(n).padStart(2, '0')}`, { Limit: 1 })));
    return Math.max(0, ...last.flatMap((page) => page.Items).map((i) => positionMs(i.sk.S)));
}

function subscriptions(body, table) {
    const view = section(body, async (signal) => {
        const [{ subscriptions: list = [] }, newest] = await Promise.all([method('events.subscriptions', { table }, { signal }), newestMs(table, signal)]);
        return { list, newest };
    }, ({ list, newest }) => {
        /* A checkpoint of a subscription to one stream is a version, and has no time. */
        const lag = (s) => (/^\d{16}$/.test(s.checkpoint || '') ? null : s.checkpoint ? Math.max(0, newest - positionMs(s.checkpoint)) : newest ? Infinity : 0);
        const rebuild = (s) => ask(`Rebuild ${s.name}`, { text: 'The process that runs it forgets its checkpoint and its parked events, resets what it has built, and handles all events again from the first one.', typed: s.name, verb: 'Rebuild', run: async () => {
            await method('events.rebuild', { table, name: s.name });
            toast(`${s.name} is rebuilt by the process that runs it.`, 'good');
            view.refresh();
        } });
        const forget = (s) => ask(`Forget ${s.name}`, { text: 'Its checkpoint, its lease and its parked events are deleted. It must not be running. The next one of this name starts where its options say.', typed: s.name, verb: 'Forget', run: async () => {
            await method('events.forget', { table, name: s.name });
            view.refresh();
        } });
        const parked = list.reduce((n, s) => n + Number(s.parked || 0), 0), worst = Math.max(0, ...list.map((s) => lag(s) ?? 0));
        return list.length ? [tiles([{ label: 'Subscriptions', value: count(list.length) }, { label: 'Largest lag', value: worst === Infinity ? 'not begun' : worst ? durationText(worst) : 'none', level: worst > 60000 ? 'warn' : null }, { label: 'Parked events', value: count(parked), level: parked ? 'bad' : null }]), rows([
            { label: 'Name', cell: (s) => s.name }, { label: 'Lag', num: true, cell: (s) => (lag(s) === null ? `version ${Number(s.checkpoint)}` : lag(s) === Infinity ? 'not begun' : lag(s) ? durationText(lag(s)) : 'caught up') },
            { label: 'Handled', num: true, cell: (s) => count(Number(s.handled || 0)) }, { label: 'Checkpoint moved', cell: (s) => (s.moved_us ? timeNode(ms(s.moved_us), { relative: true }) : '–') }, { label: 'Owner', cell: (s) => s.owner || h('span.muted', 'nobody') },
            { label: 'Parked', num: true, cell: (s) => (Number(s.parked) ? h('a.bad-text', { href: href('/events', { table, tab: 'subscriptions', name: s.name }) }, count(Number(s.parked))) : '0') },
            { label: 'State', cell: (s) => (s.failure ? badge(`gave up: ${s.failure}`, 'bad') : s.rebuild ? badge('to be rebuilt', 'warn') : s.owner ? badge('running', 'good') : badge('idle')) }], list, { caption: 'Subscriptions', keyOf: (s) => s.name,
            open: (s) => go('/events', { table, tab: 'subscriptions', name: s.name }), actions: (s) => [writes('Rebuild…', () => rebuild(s), { small: true, danger: true, focus: 'r' + s.name }), writes('Forget…', () => forget(s), { small: true, danger: true, focus: 'f' + s.name })] })]
            : nothing('No subscriptions', 'Projections, and programs that handle events, store how far they are here:', 'holdfast events subscribe --name audit --exec cat');
    });
    return view;
}

function parkedView(body, table, name) {
    const chosen = new Set();
    let most = 100;
    const view = section(body, async (signal) => {
        const [info, page] = await Promise.all([method('events.subscription', { table, name }, { signal }), all('events.parked', { table, name }, 'events', most, signal)]);
        return { info, ...page };
    }, ({ info, list, more: next }) => {
        const tools = h('div.bar'), some = (which, said) => async () => {
            const { done } = await method(which, { table, name, ...(chosen.size ? { positions: [...chosen] } : {}) });
            chosen.clear();
            toast(`${count(Number(done))} ${said}`, 'good');
            view.refresh();
        };
        const show = () => fill(tools, writes(chosen.size ? `Replay ${chosen.size}` : 'Replay all', some('events.replay', 'are handled again by the process that runs it'), { primary: true, focus: 'replay' }),
            writes(chosen.size ? `Discard ${chosen.size}…` : 'Discard all…', () => ask('Discard parked events', { text: 'This subscription never handles them. They stay in the event store.', typed: name, verb: 'Discard', run: some('events.discard', 'are not handled') }), { danger: true, focus: 'discard' }));
        const node = [h('p', h('a', { href: href('/events', { table, tab: 'subscriptions' }) }, '← all subscriptions')), panel(name, facts([['Checkpoint', info.checkpoint ? [h('code', info.checkpoint), ' ', /^\d{16}$/.test(info.checkpoint) ? '' : timeNode(positionMs(info.checkpoint), { withMs: true })] : 'at the start'], ['Handled', count(Number(info.handled || 0))],
            ['Checkpoint moved', info.moved_us ? timeNode(ms(info.moved_us)) : null], ['Owner', info.owner || 'nobody'], ['Fence', String(info.fence ?? '')], ['Gave up', info.failure], ['Rebuild', info.rebuild ? 'requested, and not begun' : null]])),
        panel('Parked events', list.length ? [tools, rows([{ label: 'Type', cell: (e) => e.type }, { label: 'Stream', cell: (e) => h('a', { href: href('/events', { table, ...streamOf(e), version: e.version }) }, `${streamText(e)} · ${e.version}`) }, { label: 'Error', wide: true, cell: (e) => e.error_text || e.error || '–' },
            { label: 'Attempts', num: true, cell: (e) => count(Number(e.attempts || 0)) }, { label: 'Parked', cell: (e) => timeNode(ms(e.parked_us), { relative: true }) }, { label: 'State', cell: (e) => (e.replay ? badge('to be handled again', 'info') : badge('parked', 'bad')) }], list, { caption: 'Parked events', keyOf: (e) => e.position, select: chosen, onSelect: show }),
        more(next, () => { most += 500; view.refresh(); })] : h('p.muted', 'None: all events were handled, or wait for their next attempt.'))];
        if (list.length)
            show();
        return node;
    });
    return view;
}

export default {
    title: 'Events',
    async open(root, params, ctx) {
        const query = ctx.query, tab = query.tab || 'streams';
        return patternPage(root, 'events', ctx, { tabs: TABS, tab, open: (body, table) => (query.event ? eventView(body, table, query.event) : query.domain ? streamView(body, table, query)
            : tab === 'subscriptions' ? query.name ? parkedView(body, table, query.name) : subscriptions(body, table) : tab === 'all' ? order(body, table, query) : streams(body, table, query)) });
    },
};
