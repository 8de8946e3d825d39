/* views/patterns.js: which patterns the database has, in which tables, and how they are. */
import { fill, h, throttle } from '../lib/dom.js';
import { db, method } from '../lib/client.js';
import { count, durationText } from '../lib/time.js';
import { KINDS, findPatterns, follow, forgetPatterns, has, many, namesNew, partitioned } from '../lib/patterns.js';
import { badge, code, loading, nothing, panel, problemNode, rows } from '../lib/panels.js';
import { href } from '../lib/router.js';

const MOST = 1000; /* items that are read for a figure */

/* What is said about a table in one line, by kind: [text, level] */
const figures = {
    async outbox(table) {
        const s = await method('outbox.stats', { table, limit: MOST }), more = s.whole === false ? '+' : '';
        return [[`${count(Number(s.pending))}${more} wait`, s.oldest_due_ms > 60000 ? 'warn' : null],
            s.oldest_due_ms > 0 ? [`lag ${durationText(s.oldest_due_ms)}`, s.oldest_due_ms > 60000 ? 'warn' : null] : null,
            Number(s.failed) ? [`${count(Number(s.failed))} dead`, 'bad'] : null];
    },
    async events(table) {
        const { streams = [], whole } = await method('events.streams', { table, limit: 200 });
        return [[many(streams.length, 'stream', !whole)]];
    },
    async locks(table) {
        const { locks = [], next } = await method('lock.list', { table, free_too: true, limit: 200 });
        return [[`${count(locks.filter((l) => l.holders?.length).length)} held`], [many(locks.length, 'name', next)]];
    },
    async counters(table) {
        const { counters = [], next } = await method('counter.list', { table, ...await partitioned(table), limit: 200 });
        return [[many(counters.length, 'counter', next)]];
    },
    async records(table) {
        const n = async (state) => Number((await method('records.count', { table, state })).count);
        const [waiting, failed] = await Promise.all([n('unprocessed'), n('failed')]);
        return [[`${count(waiting)} wait`], failed ? [`${count(failed)} failed`, 'bad'] : null];
    },
};
/* Where there is no cheap count of what is there now. */
async function itemCount(table) {
    const { Table } = await db('DescribeTable', { TableName: table });
    return [[many(Table.ItemCount, 'item')]];
}

const needs = { outbox: 'outbox.stats', events: 'events.streams', locks: 'lock.list', counters: 'counter.list', records: 'records.count' };

async function showFigures(box, mark, table) {
    try {
        const list = await (needs[mark] && has(needs[mark]) ? figures[mark](table) : itemCount(table));
        return fill(box, list.filter(Boolean).map(([text, level]) => [badge(text, level), ' ']));
    } catch (error) {
        return fill(box, badge(error.message, 'bad'));
    }
}

export default {
    title: 'Patterns',
    async open(root, params, ctx) {
        const box = h('div.view'), rest = h('div.view'), cells = new Map();
        let ends = [], abort;
        ctx.head({ title: 'Patterns', actions: [h('button', { type: 'button', onclick: () => { forgetPatterns(); search(); } }, 'Look again')] });
        fill(root, box, rest);

        const show = (result) => {
            const list = result.tables.flatMap((t) => t.marks.map((mark) => ({ table: t.table, kind: KINDS.find((k) => k.mark === mark) })))
                .sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || (a.table < b.table ? -1 : 1));
            const unused = KINDS.filter((kind) => !list.some((row) => row.kind === kind));
            fill(box, list.length ? rows([
                { label: 'Pattern', cell: (row) => h('a', { href: href(row.kind.path, { table: row.table }), 'data-focus': row.kind.mark + row.table }, row.kind.title) },
                { label: 'Table', cell: (row) => h('a', { href: href('/tables', row.table, 'items') }, row.table) },
                { label: 'Now', wide: true, cell: (row) => {
                    const key = row.kind.mark + '/' + row.table;
                    if (!cells.has(key)) {
                        cells.set(key, h('span.figures-line', h('span.muted', '…')));
                        showFigures(cells.get(key), row.kind.mark, row.table);
                        ends.push(follow([row.table], throttle(() => showFigures(cells.get(key), row.kind.mark, row.table), 2000)));
                    }
                    return cells.get(key);
                } }], list, { caption: 'Tables of patterns' })
                : result.whole ? nothing('No table of this database holds a pattern yet', 'The first use of a pattern creates its table. A whole example, in three seconds:', 'holdfast demo --quick') : loading('Looking for tables of patterns…'));
            fill(rest, result.whole ? null : h('p.muted', { role: 'status' }, `Looked at ${count(result.looked)} of ${many(result.total, 'table')}. `,
                result.stopped ? 'Stopped.' : h('button.small', { onclick: () => abort.abort() }, 'Stop')),
            result.whole && unused.length && list.length ? panel('Not used here yet', rows([
                { label: 'Pattern', cell: (kind) => kind.title }, { label: 'What it is', wide: true, cell: (kind) => kind.about },
                { label: 'Try it', cell: (kind) => code(kind.fill) }], unused, { caption: 'Patterns that are not used' })) : null);
        };
        const search = async () => {
            ends.forEach((end) => end());
            ends = [];
            cells.clear();
            abort = new AbortController();
            box.setAttribute('aria-busy', 'true');
            fill(box, loading('Looking for tables of patterns…'));
            fill(rest);
            const step = throttle((result) => !result.whole && show(result), 250), mine = abort;
            try {
                const result = await findPatterns(step, mine.signal);
                if (mine === abort)
                    show({ ...result, stopped: mine.signal.aborted });
            } catch (error) {
                fill(box, problemNode(error, search));
            }
            box.removeAttribute('aria-busy');
        };
        ctx.on('writes', (writes) => namesNew(writes) && (forgetPatterns(), search()));
        search();
        return () => {
            abort.abort();
            ends.forEach((end) => end());
        };
    },
};
