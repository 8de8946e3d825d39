/*
 * views/insight.js: what is hot, what is large, what reads more than it gives, and advice.
 *
 * GET /_holdfast/top has tables, partitions and items, of the last seconds. What reads too much is seen
 * in the live requests that come while this view is open.
 */
import { fill, h, throttle } from '../lib/dom.js';
import { bytesText, count, durationText, many, shortNumber } from '../lib/time.js';
import { bar, badge, code, panel, rows, section } from '../lib/panels.js';
import { href } from '../lib/router.js';
import { empty } from '../lib/ui.js';

const NEAR = 300 * 1024, LIMIT = 400 * 1024, TIMES = 100, HOT = 0.5, HOT_RATE = 50;

/* [{level, what, advice, command}] of what is known. */
export function advise({ top, reads }) {
    const list = [];
    for (const r of reads.filter((one) => one.scanned >= TIMES * Math.max(1, one.returned)))
        list.push({ level: 'bad', what: `${r.operation} of ${r.table} read ${many(r.scanned, 'item')} and returned ${count(r.returned)}`,
            advice: r.operation === 'Scan' ? 'A filter does not save reads: all items are read and paid for. An index whose hash key is the attribute of the filter makes a Query of it.'
                : 'A filter is applied after reading. An index whose range key is the attribute of the filter reads only what is returned.',
            command: `holdfast table update ${r.table} --help    # --index NAME:HASH[,RANGE]` });
    for (const item of top.largest.filter((one) => one.bytes >= NEAR))
        list.push({ level: item.bytes >= LIMIT * 0.95 ? 'bad' : 'warn', what: `An item of ${item.table} has ${bytesText(item.bytes)}`, advice: 'An item has at most 400 KB, and each write costs its whole size. Put large values into a blob store, or split the item.' });
    for (const p of top.partitions) {
        const sum = top.partitions.filter((one) => one.table === p.table).reduce((n, one) => n + one.per_second, 0);
        if (p.per_second >= HOT_RATE && p.per_second >= sum * HOT && sum > p.per_second)
            list.push({ level: 'warn', what: `One key takes ${Math.round(p.per_second / sum * 100)} % of the requests of ${p.table}`, advice: 'Amazon DynamoDB allows about 1,000 writes or 3,000 reads a second for one key. Spread it over several keys, as a counter with shards does, or cache what is read.' });
    }
    for (const t of top.tables)
        if (t.errors > 10 && t.errors > (t.reads + t.writes) * 0.05)
            list.push({ level: 'warn', what: `${Math.round(t.errors / Math.max(1, t.reads + t.writes) * 100)} % of the requests to ${t.name} failed`, advice: 'The live requests say which, and why.', link: href('/live', { find: t.name, failed: '1' }) });
    return list;
}

const keyNode = (key, range) => h('span.mono', String(key), range !== undefined ? [' / ', String(range)] : '');

export default {
    title: 'Hot and large',
    async open(root, params, ctx) {
        const reads = new Map(), box = h('div.view');
        ctx.head({ title: 'Hot and large' });
        fill(root, box);
        if (ctx.info.database?.kind === 'remote') {
            fill(box, empty('Not of a remote database', 'Which partitions are hot and which items are large is counted by the server that has the database. At AWS this is Contributor Insights.'));
            return null;
        }
        let shown = false;
        const view = section(box, async () => {
            const top = await ctx.api('/_holdfast/top');
            return { tables: top.tables || [], partitions: top.partitions || [], largest: top.largest || [] };
        }, (top) => {
            const list = [...reads.values()].sort((a, b) => b.scanned / Math.max(1, b.returned) - a.scanned / Math.max(1, a.returned)), advice = advise({ top, reads: list });
            const hottest = Math.max(0.1, ...top.partitions.map((p) => p.per_second)), largest = Math.max(1, ...top.largest.map((i) => i.bytes));
            shown = true;
            return [
                panel('Advice', advice.length ? h('ul.advice', advice.map((a) => h('li.hint', { class: a.level }, h('strong', a.what), h('p', a.advice), a.command && code(a.command), a.link && h('p', h('a', { href: a.link }, 'Show them')))))
                    : h('p.muted', 'Nothing stands out: no hot key, no item near 400 KB, nothing that read 100 times what it returned.')),
                h('div.columns2', panel('Top partitions', top.partitions.length ? rows([{ label: 'Key', cell: (p) => keyNode(p.key) }, { label: 'Table', cell: (p) => h('a', { href: href('/tables', p.table, 'items') }, p.table) },
                    { label: 'Requests a second', num: true, cell: (p) => shortNumber(p.per_second) }, { label: 'Share', cell: (p) => bar(p.per_second, hottest, `of ${p.key}`) }], top.partitions.slice(0, 10), { caption: 'Top partitions' })
                    : h('p.muted', 'No requests in the last seconds. Rates of single keys are estimates.')),
                panel('Largest items', top.largest.length ? rows([{ label: 'Key', cell: (i) => keyNode(i.key, i.range) }, { label: 'Table', cell: (i) => h('a', { href: href('/tables', i.table, 'items') }, i.table) },
                    { label: 'Size', num: true, cell: (i) => bytesText(i.bytes) }, { label: 'Of the largest', cell: (i) => bar(i.bytes, largest, `size of ${i.key}`) }], top.largest.slice(0, 10), { caption: 'Largest items' })
                    : h('p.muted', 'Nothing was written since the server started.'))),
                panel('Tables', top.tables.length ? rows([{ label: 'Table', cell: (t) => h('a', { href: href('/tables', t.name, 'items') }, t.name) }, { label: 'Reads', num: true, cell: (t) => count(t.reads) }, { label: 'Writes', num: true, cell: (t) => count(t.writes) },
                    { label: 'Failed', num: true, cell: (t) => (t.errors ? h('span.bad-text', count(t.errors)) : '0') }], top.tables, { caption: 'Tables by requests since the server started' }) : h('p.muted', 'No table was used since the server started.')),
                panel('Reads that return little', list.length ? rows([{ label: 'Operation', cell: (r) => r.operation }, { label: 'Table', cell: (r) => r.table }, { label: 'Read', num: true, cell: (r) => count(r.scanned) }, { label: 'Returned', num: true, cell: (r) => count(r.returned) },
                    { label: 'Ratio', num: true, cell: (r) => badge(`${count(Math.round(r.scanned / Math.max(1, r.returned)))} ×`, r.scanned >= TIMES * Math.max(1, r.returned) ? 'bad' : r.scanned > 10 * Math.max(1, r.returned) ? 'warn' : '') },
                    { label: 'Requests', num: true, cell: (r) => count(r.requests) }, { label: 'Longest', num: true, cell: (r) => durationText(r.ms) }], list, { caption: 'Queries and scans since this view is open' })
                    : h('p.muted', 'Queries and scans show here while this view is open.'))];
        });
        const soon = throttle(() => view.refresh(), 2000);
        ctx.on('request', (r) => {
            if (r.scanned === undefined)
                return;
            const id = `${r.operation} ${r.table}`, before = reads.get(id) || { operation: r.operation, table: r.table, scanned: 0, returned: 0, requests: 0, ms: 0 };
            reads.set(id, { ...before, scanned: before.scanned + r.scanned, returned: before.returned + r.returned, requests: before.requests + 1, ms: Math.max(before.ms, r.ms) });
            soon();
        });
        ctx.on('writes', () => shown && soon());
        ctx.on('back', () => { reads.clear(); view.refresh(); });
        ctx.head({ title: 'Hot and large', actions: [h('button', { type: 'button', onclick: view.refresh }, 'Refresh')] });
        return () => view.close();
    },
};
