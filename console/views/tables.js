/* views/tables.js: all tables, with search; making a table. */
import { add, debounce, h, throttle } from '../lib/dom.js';
import { tableNames } from '../lib/client.js';
import { go, href } from '../lib/router.js';
import { grid } from '../lib/table.js';
import { bytesText, count, many } from '../lib/time.js';
import { badge, empty, load, writeButton } from '../lib/ui.js';
import { createTable } from './create_table.js';

/* Descriptions are asked for only for rows that come into sight, a few at a time. */
function describer(ctx, changed) {
    const known = new Map(), waiting = [];
    let running = 0;
    const next = async () => {
        if (running >= 4 || !waiting.length || ctx.signal.aborted)
            return;
        running++;
        const name = waiting.pop();
        try {
            known.set(name, (await ctx.db('DescribeTable', { TableName: name })).Table);
        } catch (problem) {
            known.set(name, { problem });
        }
        running--;
        changed();
        next();
    };
    return {
        get(name) {
            const table = known.get(name);
            if (table === undefined) {
                known.set(name, null);
                waiting.push(name);
                if (waiting.length > 60) /* scrolled past */
                    known.delete(waiting.shift());
                next();
            }
            return table;
        },
        forget: () => known.clear(),
    };
}

export const keyText = (table) => (table?.KeySchema || []).map((k) => `${k.AttributeName}:${table.AttributeDefinitions.find((a) => a.AttributeName === k.AttributeName)?.AttributeType}`).join(', ');

export default {
    title: 'Tables',
    async open(root, params, ctx) {
        let names = [];
        const about = describer(ctx, debounce(() => show(), 30));
        const search = h('input', { type: 'search', placeholder: 'Search tables  ( / )', 'aria-label': 'Search tables', value: params.find || '', class: 'grow',
            oninput: debounce(() => { ctx.setQuery({ find: search.value }); show(); }, 60) });
        const table = grid({
            label: 'Tables', name: 'tables', key: (name) => name, open: (name) => go('/tables', name, 'items'),
            columns: [
                { id: 'name', title: 'Name', cell: (name) => h('a', { href: href('/tables', name, 'items') }, name), sort: (name) => name },
                { id: 'key', title: 'Key', cell: (name) => h('span.mono', keyText(about.get(name))) },
                { id: 'items', title: 'Items', right: true, cell: (name) => count(about.get(name)?.ItemCount) },
                { id: 'size', title: 'Size', right: true, cell: (name) => bytesText(about.get(name)?.TableSizeBytes) },
                { id: 'indexes', title: 'Indexes', right: true, cell: (name) => { const t = about.get(name); return t?.KeySchema ? String((t.GlobalSecondaryIndexes?.length || 0) + (t.LocalSecondaryIndexes?.length || 0)) : ''; } },
                { id: 'stream', title: 'Stream', cell: (name) => (about.get(name)?.StreamSpecification?.StreamEnabled ? badge('stream', 'info') : '') },
                { id: 'state', title: 'State', cell: (name) => { const t = about.get(name); return t?.TableStatus ? badge(t.TableStatus.toLowerCase(), t.TableStatus === 'ACTIVE' ? 'good' : 'warn') : t?.problem ? badge(t.problem.code, 'bad') : ''; } },
                { id: 'about', title: '', cell: (name) => h('a', { href: href('/tables', name), 'aria-label': `Settings of ${name}` }, 'Settings') },
            ],
        });
        const list = h('div'), soonShow = throttle(() => show(), 200);
        function show() {
            const wanted = search.value.trim().toLowerCase(), found = wanted ? names.filter((name) => name.toLowerCase().includes(wanted)) : names;
            table.setRows(found, false, `${count(found.length)} of ${many(names.length, 'table')}`);
        }
        async function reload() {
            await load(list, async () => {
                about.forget();
                names = await tableNames({ signal: ctx.signal, progress: (some) => {
                    if (some.length > names.length) { /* not while it is read anew */
                        names = [...some];
                        list.contains(table.node) || list.replaceChildren(table.node);
                        soonShow();
                    }
                } });
                show();
                return names.length ? table.node : empty('No tables yet', 'Make one here, or start your program: tables appear by themselves.', make());
            }, { signal: ctx.signal });
        }
        const make = () => writeButton('Create table', () => createTable(ctx, (name) => go('/tables', name)), { class: 'primary' });
        ctx.head({ title: 'Tables', actions: [make()] });
        add(root, h('div.bar', search, table.chooser()), list);
        await reload();
        const soon = debounce(reload, 400);
        ctx.on('writes', (w) => (w.all || w.tables?.some((name) => !names.includes(name))) && soon());
        ctx.on('back', reload);
    },
};
