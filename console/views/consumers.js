/*
 * views/consumers.js: programs that read the streams of tables: whose each shard is, and how far they are.
 *
 * Their positions are items (docs/streams.md). What is behind a position is read from the stream itself,
 * one page for each shard.
 */
import { h } from '../lib/dom.js';
import { count, durationText } from '../lib/time.js';
import { badge, more, nothing, panel, patternPage, rows, section } from '../lib/panels.js';
import { plainItem, shapeOf } from '../lib/patterns.js';
import { db } from '../lib/client.js';
import { href } from '../lib/router.js';

const parts = (key) => key.split('.').map((part) => part.replace(/%2E/g, '.').replace(/%25/g, '%'));
const PAGE = 1000; /* changes that are looked for behind a position */

async function behind(shard, signal) {
    if (shard.done || (!shard.sequence && shard.place !== 'horizon'))
        return null;
    const from = shard.sequence ? { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: String(shard.sequence) } : { ShardIteratorType: 'TRIM_HORIZON' };
    try {
        const { ShardIterator } = await db('GetShardIterator', { StreamArn: shard.stream, ShardId: shard.shard, ...from }, { signal });
        const { Records } = await db('GetRecords', { ShardIterator, Limit: PAGE }, { signal });
        return { changes: Records.length, oldest: Records[0] ? Records[0].dynamodb.ApproximateCreationDateTime * 1000 : 0 };
    } catch (error) {
        return { problem: error.code === 'TrimmedDataAccessException' ? 'trimmed: changes are lost' : error.message };
    }
}

async function read(table, most, signal) {
    const { hash, sort } = await shapeOf(table), shards = [];
    for (let next; shards.length < most;) {
        const page = await db('Scan', { TableName: table, Limit: 200, ...(next ? { ExclusiveStartKey: next } : {}) }, { signal });
        for (const item of page.Items.map(plainItem)) {
            const [name, of] = parts(String(item[hash])), [stream, shard] = parts(String(item[sort]));
            if (item[hash] !== 'holdfast:table' && shard)
                shards.push({ ...item, name, of, stream, shard });
        }
        next = page.LastEvaluatedKey;
        if (!next)
            break;
    }
    const waiting = shards.slice();
    await Promise.all(Array.from({ length: 4 }, async () => {
        for (let shard; (shard = waiting.pop());)
            shard.behind = await behind(shard, signal);
    }));
    return { shards, next: shards.length >= most };
}

export default {
    title: 'Stream consumers',
    async open(root, params, ctx) {
        return patternPage(root, 'positions', ctx, { open: (body, table) => {
            let most = 200;
            const seen = new Map(); /* beats, to see who is alive */
            const alive = (s) => {
                const id = s.name + s.of + s.shard, before = seen.get(id);
                if (!before || before.beat !== s.beat)
                    seen.set(id, { beat: s.beat, at: performance.now(), moved: !!before });
                const { at, moved } = seen.get(id), silent = performance.now() - at;
                return !s.owner ? badge('no owner', 'warn') : silent > Number(s.lease_ms || 20000) * 1.2 ? badge(`silent for ${durationText(silent)}`, 'bad') : moved ? badge('alive', 'good') : badge('watching…');
            };
            const view = section(body, (signal) => read(table, most, signal), ({ shards, next }) => {
                const groups = Map.groupBy ? Map.groupBy(shards, (s) => `${s.name}\n${s.of}`) : shards.reduce((m, s) => m.set(`${s.name}\n${s.of}`, [...(m.get(`${s.name}\n${s.of}`) || []), s]), new Map());
                return shards.length ? [[...groups].sort().map(([id, list]) => {
                    const [name, of] = id.split('\n'), open = list.filter((s) => !s.done), lag = Math.max(0, ...open.map((s) => (s.behind?.oldest ? Date.now() - s.behind.oldest : 0)));
                    const left = open.reduce((n, s) => n + (s.behind?.changes || 0), 0);
                    return panel([name, ' ', h('small', 'reads ', h('a', { href: href('/tables', of, 'stream') }, of), ` · ${left ? `${count(left)}${left >= PAGE ? '+' : ''} changes behind, lag ${durationText(lag)}` : 'has caught up'}`)], rows([
                        { label: 'Shard', cell: (s) => h('span.mono', s.shard.slice(-12)) }, { label: 'State', cell: (s) => (s.done ? badge('read to its end') : alive(s)) }, { label: 'Owner', cell: (s) => s.owner || '–' },
                        { label: 'Behind', num: true, cell: (s) => (s.behind?.problem ? badge(s.behind.problem, 'bad') : s.behind ? `${count(s.behind.changes)}${s.behind.changes >= PAGE ? '+' : ''}` : '–') },
                        { label: 'Lag', num: true, cell: (s) => (s.behind?.oldest ? durationText(Date.now() - s.behind.oldest) : '–') }, { label: 'Position', wide: true, cell: (s) => h('span.mono', s.sequence === undefined ? (s.place === 'horizon' ? 'the oldest change' : s.place || '–') : String(s.sequence)) },
                        { label: 'Fence', num: true, cell: (s) => String(s.fence ?? '–') }], list.sort((a, b) => (a.shard < b.shard ? -1 : 1)), { caption: `Shards of ${name}` }));
                }), more(next, () => { most += 1000; view.refresh(); })] : nothing('No consumer stores a position here', 'A consumer with a name does:', 'holdfast streams tail orders --name audit');
            });
            return view;
        } });
    },
};
