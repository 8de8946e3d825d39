/* views/streams.js: the records of a table's stream, by shard, with old and new image side by side. */
import { add, debounce, fill, h } from '../lib/dom.js';
import { href } from '../lib/router.js';
import { grid } from '../lib/table.js';
import { count, many, timeNode } from '../lib/time.js';
import { badge, button, copy, dialog, empty, facts, load, select } from '../lib/ui.js';
import { bare, cellText, equal, typedText, typeOf } from '../lib/values.js';
import { tableHead } from './items.js';
import { touched } from './shared.js';

const MAX = 20000;

async function all(ctx) {
    const streams = [];
    for (let from; ;) {
        const page = await ctx.db('ListStreams', from ? { ExclusiveStartStreamArn: from } : {});
        streams.push(...page.Streams);
        if (!(from = page.LastEvaluatedStreamArn))
            return streams;
    }
}

async function overview(root, ctx) {
    const place = h('div');
    ctx.head({ title: 'Streams' });
    const table = grid({ label: 'Streams', key: (s) => s.StreamArn, open: (s) => { location.hash = href('/tables', s.TableName, 'stream', { arn: s.StreamArn }); }, columns: [
        { id: 'table', title: 'Table', cell: (s) => h('a', { href: href('/tables', s.TableName, 'stream', { arn: s.StreamArn }) }, s.TableName), sort: (s) => s.TableName },
        { id: 'since', title: 'Since', cell: (s) => timeNode(Date.parse(s.StreamLabel + 'Z')) , sort: (s) => s.StreamLabel },
        { id: 'arn', title: 'ARN', cell: (s) => h('span.mono', s.StreamArn) }] });
    add(root, place);
    await load(place, async () => {
        const streams = await all(ctx);
        table.setRows(streams, false, `${count(streams.length)} ${streams.length === 1 ? 'stream' : 'streams'}`);
        return streams.length ? table.node : empty('No streams', 'The settings of a table turn its stream on.', h('a.button', { href: '#/tables' }, 'Tables'));
    }, { signal: ctx.signal });
}

/* Both images, an attribute a line. */
function images(record) {
    const old = bare(record.dynamodb.OldImage), now = bare(record.dynamodb.NewImage), keys = bare(record.dynamodb.Keys), names = [...new Set([...Object.keys(keys), ...Object.keys(now || {}), ...Object.keys(old || {})])];
    const side = (image, name, kind) => (!image ? '' : image[name] === undefined ? h('span.muted', 'not there') : [h('span.tag', typeOf(image[name]), ' '), cellText(image[name], 2000)]);
    if (!old && !now)
        return h('p.muted', 'This stream has keys only. ', h('code', cellText({ M: keys }, 500)));
    return h('div.grid.plain', h('table.changes', h('thead', h('tr', h('th', 'Attribute'), h('th', 'Old image'), h('th', 'New image'))),
        h('tbody', names.map((name) => {
            const changed = !equal(old?.[name], now?.[name]);
            return h('tr', h('td', h('code', name), keys[name] && [' ', badge('key')]), h('td', { class: changed && old?.[name] ? 'old' : '' }, side(old, name)), h('td', { class: changed && now?.[name] ? 'new' : '' }, side(now, name)));
        }))));
}

function show(record) {
    const d = record.dynamodb, id = record.userIdentity;
    dialog({ title: `${record.eventName.toLowerCase()} · ${cellText({ M: d.Keys }, 80)}`, wide: true, body: [
        facts([['Time', timeNode(d.ApproximateCreationDateTime * 1000)], ['Sequence', h('code', d.SequenceNumber)], ['Size', `${count(d.SizeBytes)} bytes`], ['By', id && (id.PrincipalId === 'dynamodb.amazonaws.com' ? 'time to live' : id.PrincipalId)]]), images(record)],
    actions: [{ text: 'Copy as JSON', run: () => (copy(typedText(record)), false) }, { text: 'Close' }] });
}

export default {
    title: 'Streams',
    async open(root, params, ctx) {
        if (!params.table)
            return overview(root, ctx);
        const name = params.table, place = h('div'), shardBox = h('span'), note = h('span.muted');
        tableHead(ctx, name, 'stream');
        const fresh = () => ({ records: [], cursors: new Map(), busy: false, again: false });
        let now = fresh(), chosen = params.shard || '', from = params.from || 'TRIM_HORIZON', arn = params.arn;
        const table = grid({ label: `Records of the stream of ${name}`, name: 'stream', key: (r) => r.shard + r.dynamodb.SequenceNumber, open: show, columns: [
            { id: 'time', title: 'Time', cell: (r) => timeNode(r.dynamodb.ApproximateCreationDateTime * 1000), sort: (r) => r.dynamodb.ApproximateCreationDateTime },
            { id: 'event', title: 'Event', cell: (r) => badge(r.eventName.toLowerCase(), { INSERT: 'good', MODIFY: 'info', REMOVE: 'bad' }[r.eventName]), sort: (r) => r.eventName },
            { id: 'key', title: 'Key', class: 'value', cell: (r) => Object.values(r.dynamodb.Keys).map((v) => cellText(v, 60)).join('  ·  ') },
            { id: 'what', title: 'What changed', class: 'value', cell: (r) => changes(r.dynamodb) },
            { id: 'shard', title: 'Shard', cell: (r) => h('span.tag', r.shard.slice(-8)) },
            { id: 'seq', title: 'Sequence', class: 'value', cell: (r) => r.dynamodb.SequenceNumber, hidden: true }] });
        const changes = ({ OldImage: a, NewImage: b }) => (!a && !b ? '' : !a ? 'new item' : !b ? 'deleted' : Object.keys({ ...a, ...b }).filter((k) => !equal(a[k], b[k])).map((k) => `${k}: ${a[k] ? cellText(a[k], 30) : '–'} → ${b[k] ? cellText(b[k], 30) : '–'}`).join(', '));

        /* Read on in each shard, until it has nothing more. What a change of shard or start has overtaken ends, and shows nothing. */
        async function readOn() {
            const mine = now;
            if (mine.busy) {
                mine.again = true;
                return;
            }
            mine.busy = true;
            try {
                do {
                    mine.again = false;
                    const shards = await findShards(mine);
                    for (const shard of shards.filter((s) => !chosen || s.ShardId === chosen)) {
                        const { cursors, records } = mine, id = shard.ShardId;
                        if (mine === now && cursors.get(id) === undefined)
                            cursors.set(id, (await ctx.db('GetShardIterator', { StreamArn: arn, ShardId: id, ShardIteratorType: from })).ShardIterator);
                        for (let cursor = cursors.get(id); mine === now && cursor && records.length < MAX;) {
                            let page;
                            try {
                                page = await ctx.db('GetRecords', { ShardIterator: cursor, Limit: 1000 });
                            } catch (problem) { /* too old: go on from what there is */
                                if (!/Expired|Trimmed/.test(problem.code))
                                    throw problem;
                                cursors.delete(id);
                                mine.again = true;
                                break;
                            }
                            records.push(...page.Records.map((r) => ({ ...r, shard: id })));
                            cursors.set(id, cursor = page.NextShardIterator || null);
                            if (!page.Records.length)
                                break;
                        }
                    }
                } while (mine.again && mine === now);
            } finally {
                mine.busy = false;
            }
            if (mine !== now)
                return;
            const { records } = mine;
            records.sort((a, b) => b.dynamodb.ApproximateCreationDateTime - a.dynamodb.ApproximateCreationDateTime || (a.dynamodb.SequenceNumber.length - b.dynamodb.SequenceNumber.length || (a.dynamodb.SequenceNumber < b.dynamodb.SequenceNumber ? -1 : 1)) * -1);
            table.setRows(records, false, `${many(records.length, 'record')}${records.length >= MAX ? ', no more are shown' : ''} · follows what is written`);
        }

        async function findShards(mine) {
            const shards = [];
            for (let last; ;) {
                const page = await ctx.db('DescribeStream', { StreamArn: arn, ...(last ? { ExclusiveStartShardId: last } : {}) });
                shards.push(...page.StreamDescription.Shards);
                if (!(last = page.StreamDescription.LastEvaluatedShardId))
                    break;
            }
            const closed = (s) => s.SequenceNumberRange?.EndingSequenceNumber;
            if (mine === now)
                fill(shardBox, select([['', `All shards (${shards.length})`], ...shards.map((s) => [s.ShardId, `${s.ShardId}${closed(s) ? ' (closed)' : ''}`])], chosen, (v) => { chosen = v; restart(); }, { 'aria-label': 'Shard' }));
            return shards;
        }

        function restart() {
            ctx.setQuery({ arn: params.arn, shard: chosen, from: from === 'TRIM_HORIZON' ? '' : from });
            now = fresh();
            return reload();
        }
        const reload = () => load(place, async () => {
            if (!arn) {
                const { Table: t } = await ctx.db('DescribeTable', { TableName: name });
                arn = t.LatestStreamArn;
                if (!arn)
                    return empty('This table has no stream', 'Its settings turn one on; what is written from then on is recorded for a day.', h('a.button', { href: href('/tables', name) }, 'Settings'));
            }
            await readOn();
            return [table.node];
        }, { signal: ctx.signal });
        add(root, h('div.bar', shardBox, select([['TRIM_HORIZON', 'From the oldest record'], ['LATEST', 'From now on']], from, (v) => { from = v; restart(); }, { 'aria-label': 'Where to start' }),
            button('Read on', () => readOn().catch(() => reload())), table.chooser(), note), place);
        await reload();
        const soon = debounce(() => readOn().catch(() => { }), 200);
        ctx.on('writes', (w) => arn && touched(w, name) && soon());
        ctx.on('back', () => arn && restart());
    },
};
