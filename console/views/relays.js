/*
 * views/relays.js: the relays of an outbox, which of them owns each bucket, their lag; pause and resume.
 *
 * A relay renews one item, m.ID in partition "c", every quarter of its lease. Nobody stores a time:
 * whether it is alive is seen by watching, as relays do among each other.
 */
import { fill, h } from '../lib/dom.js';
import { db, method } from '../lib/client.js';
import { count, durationText, timeText } from '../lib/time.js';
import { plainItem, shapeOf } from '../lib/patterns.js';
import { ask, badge, nothing, panel, rows, section, tiles, writes } from '../lib/panels.js';
import { bucketCounts, tableFlag } from './outbox.js';

export async function readRelays(table, signal) {
    const { hash, sort } = await shapeOf(table), relays = [], buckets = [];
    for (let next; ;) {
        const page = await db('Query', { TableName: table, ConsistentRead: true, KeyConditionExpression: '#h = :c', ExpressionAttributeNames: { '#h': hash },
            ExpressionAttributeValues: { ':c': { S: 'c' } }, ...(next ? { ExclusiveStartKey: next } : {}) }, { signal });
        for (const item of page.Items.map(plainItem)) {
            const name = String(item[sort]);
            if (name.startsWith('m.'))
                relays.push({ ...item, id: name.slice(2) });
            else if (name.startsWith('b.'))
                buckets.push({ bucket: Number(name.slice(2)), relay: item.relay, fence: item.fence });
        }
        next = page.LastEvaluatedKey;
        if (!next)
            return { relays, buckets };
    }
}

/* "0-3, 7" */
export function ranges(list) {
    const out = [];
    for (const n of [...list].sort((a, b) => a - b))
        if (out.length && out.at(-1)[1] === n - 1)
            out.at(-1)[1] = n;
        else
            out.push([n, n]);
    return out.map(([a, b]) => (a === b ? a : `${a}–${b}`)).join(', ');
}

export function relays(body, table) {
    const seen = new Map(); /* by relay: {beat, at}: when this page saw its beat change */
    const box = h('div.view');
    fill(body, box);
    let timer = 0;
    const pause = async (on, why) => {
        await method(on ? 'outbox.pause' : 'outbox.resume', { table, ...(on && why ? { why } : {}) });
        view.refresh();
    };
    const alive = (relay) => {
        if (relay.stopped)
            return ['stopped', ''];
        const silent = performance.now() - seen.get(relay.id).at, lease = Number(relay.lease_ms || 20000);
        return silent > lease * 1.2 ? [`silent for ${durationText(silent)}`, 'bad'] : seen.get(relay.id).moved ? ['alive', 'good'] : ['watching…', ''];
    };
    const view = section(box, async (signal) => {
        const [{ relays: list, buckets }, counts] = await Promise.all([readRelays(table, signal), bucketCounts(table, signal)]);
        for (const relay of list) {
            const before = seen.get(relay.id);
            if (!before || before.beat !== relay.beat)
                seen.set(relay.id, { beat: relay.beat, at: performance.now(), moved: !!before });
        }
        return { list, buckets, counts };
    }, ({ list, buckets, counts }) => {
        const now = Date.now(), live = list.filter((r) => !r.stopped), owned = new Map(live.map((r) => [r.id, buckets.filter((b) => b.relay === r.id).map((b) => b.bucket)]));
        const lagOf = (mine) => Math.max(0, ...mine.map((n) => counts.list[n]).filter((b) => b?.waiting && b.since < now).map((b) => now - b.since));
        const waitingOf = (mine) => mine.reduce((sum, n) => sum + (counts.list[n]?.waiting || 0), 0);
        const free = buckets.filter((b) => !b.relay || !owned.has(b.relay)).map((b) => b.bucket), paused = counts.paused;
        clearTimeout(timer); /* once a lease could have ended, not every second */
        if (live.length)
            timer = setTimeout(() => box.isConnected && view.refresh(), Math.max(...live.map((r) => Number(r.lease_ms || 20000))) * 1.3);
        return [
            tiles([{ label: 'Relays', value: count(live.length), level: live.length ? null : 'warn', hint: live.length ? 'sharing the buckets' : 'nobody delivers' },
                { label: 'Buckets', value: count(counts.all), hint: counts.mode === 'competing' ? 'claimed event by event' : free.length ? `${count(free.length + Math.max(0, counts.all - buckets.length))} without an owner` : 'all owned' },
                { label: 'Delivery', value: paused ? 'paused' : 'on', level: paused ? 'warn' : null, hint: paused?.why || '' }]),
            h('p.bar', paused ? writes('Resume', () => pause(false), { primary: true, focus: 'pause' }) : writes('Pause…', () => ask('Pause all relays of this outbox', {
                text: 'Relays finish what is in flight and deliver nothing more until you resume. They learn it with their next heartbeat, a quarter of their lease (5 seconds). Events are stored as before.',
                verb: 'Pause', fields: [{ name: 'why', label: 'Reason', hint: 'Others see it here.' }], run: (v) => pause(true, v.why) }), { focus: 'pause' }),
            paused ? h('span.muted', ` since ${timeText(Number(paused.since) / 1000)}`) : null),
            live.length ? panel('Relays', rows([
                { label: 'Owner', cell: (r) => r.owner || r.id }, { label: 'State', cell: (r) => badge(...alive(r)) },
                { label: 'Buckets', wide: true, cell: (r) => ranges(owned.get(r.id)) || h('span.muted', 'none') },
                { label: 'Waiting', num: true, cell: (r) => count(waitingOf(owned.get(r.id))) },
                { label: 'Lag', num: true, cell: (r) => { const lag = lagOf(owned.get(r.id)); return lag ? durationText(lag) : 'none'; } },
                { label: 'Delivers', cell: (r) => (r.only ? `only ${r.only}` : 'all') },
                { label: 'Lease', num: true, cell: (r) => durationText(Number(r.lease_ms || 0)) }], live, { caption: 'Relays' }))
                : nothing('No relay works on this outbox', counts.mode === 'competing' ? 'Its events are claimed one by one, and workers that claim events are not listed.' : 'Events wait until one does. For example:', `holdfast relay --to stdout:${tableFlag(table)}`),
            panel('Who owns which bucket', h('ol.bucket-map', Array.from({ length: Math.min(counts.all, 256) }, (_, n) => {
                const row = buckets.find((b) => b.bucket === n), at = live.findIndex((r) => r.id === row?.relay), owner = live[at];
                return h('li', { class: at < 0 ? 'free' : `c${at % 6}`, title: `bucket ${n}: ${owner ? owner.owner || owner.id : 'nobody'}${row?.fence ? `, fence ${row.fence}` : ''}` }, h('span', n),
                    h('small', owner ? (owner.owner || owner.id).slice(0, 12) : 'free'));
            })))];
    });
    return { refresh: view.refresh, close: () => { clearTimeout(timer); view.close(); } };
}
