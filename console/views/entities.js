/*
 * views/entities.js: a table that holds several kinds of items: which kinds there are, and how the
 * items of one partition belong together.
 *
 * Kinds are told from a sample: by an attribute that names the type, or by the text before the first
 * separator of the keys (CUSTOMER#7, ORDER#2026-11).
 */
import { add, fill, h } from '../lib/dom.js';
import { keysOf, toQuery } from '../lib/expr.js';
import { href } from '../lib/router.js';
import { grid } from '../lib/table.js';
import { bytesText, count, many } from '../lib/time.js';
import { button, empty, load, select } from '../lib/ui.js';
import { bare, cellText, itemSize, typeOf } from '../lib/values.js';
import { editItem, keyOf } from './editor.js';
import { tableHead } from './items.js';

const SAMPLE = 2000, TYPE_NAMES = /^(_?type|_?kind|entity(_?type)?|_et|__typename|item_?type)$/i;

/* CUSTOMER#7 -> CUSTOMER# ; 17 -> (number) ; 2026-11-19 -> (date); abc -> (text) */
export function pattern(value) {
    if (!value)
        return '';
    if (typeOf(value) !== 'S')
        return typeOf(value) === 'N' ? '(number)' : '(binary)';
    const text = value.S, prefix = /^([A-Za-z_][\w.-]{0,40}?)([#|:/~]|::)/.exec(text);
    return prefix ? prefix[1] + prefix[2] : /^\d{4}-\d\d/.test(text) ? '(date)' : /^[0-9a-f]{8}-[0-9a-f-]{27}$|^[0-9A-HJKMNP-TV-Z]{26}$/i.test(text) ? '(id)' : /^[A-Z][A-Z_]{1,30}$/.test(text) ? text : '(text)';
}

export function kindOf(item, by, hash, range) {
    if (by)
        return item[by]?.S ?? (item[by] ? cellText(item[by], 40) : '(none)');
    return [pattern(item[hash]), range && pattern(item[range])].filter(Boolean).join('  ·  ');
}

export default {
    title: 'Entities',
    async open(root, params, ctx) {
        const name = params.table, place = h('div.view');
        tableHead(ctx, name, 'entities');
        const { Table: table } = await ctx.db('DescribeTable', { TableName: name });
        const indexes = (table.GlobalSecondaryIndexes || []).map((i) => i.IndexName);
        let items = [], next = null, by = params.by, index = params.index || '', partition = params.partition || null, shade = new Map();
        const request = () => ({ TableName: name, ...(index ? { IndexName: index } : {}) });

        async function sample(more) {
            if (!more) {
                items = [];
                next = null;
            }
            for (let n = 0; n < SAMPLE;) {
                const page = await ctx.db('Scan', { ...request(), Limit: Math.min(1000, SAMPLE - n), ...(next ? { ExclusiveStartKey: next } : {}) });
                items.push(...page.Items.map(bare));
                n += page.ScannedCount;
                next = page.LastEvaluatedKey || null;
                if (!next)
                    break;
            }
        }
        const set = () => ctx.setQuery({ by, index, partition });

        function draw() {
            const k = keysOf(table, index), hash = k.hash[0], range = k.range[0], names = [...new Set(items.flatMap((i) => Object.keys(i)))];
            by ??= names.find((n) => TYPE_NAMES.test(n) && items.filter((i) => i[n]?.S).length > items.length / 2) || '';
            const kinds = new Map(), parts = new Map();
            for (const item of items) {
                const kind = kindOf(item, by, hash, range), one = kinds.get(kind) || { kind, n: 0, bytes: 0, names: new Map(), example: item };
                one.n++;
                one.bytes += itemSize(item);
                for (const [n, v] of Object.entries(item))
                    one.names.set(n, { n: (one.names.get(n)?.n || 0) + 1, type: typeOf(v) });
                kinds.set(kind, one);
                const id = JSON.stringify(item[hash]), part = parts.get(id) || { id, value: item[hash], n: 0, bytes: 0, kinds: new Map() };
                part.n++;
                part.bytes += itemSize(item);
                part.kinds.set(kind, (part.kinds.get(kind) || 0) + 1);
                parts.set(id, part);
            }
            const list = [...kinds.values()].sort((a, b) => b.n - a.n);
            shade = new Map(list.map((one, i) => [one.kind, i % 6]));
            const kindTable = grid({ label: 'Kinds of items', key: (o) => o.kind, columns: [
                { id: 'kind', title: 'Kind', cell: (o) => mark(o.kind) , sort: (o) => o.kind },
                { id: 'n', title: 'Items', right: true, cell: (o) => count(o.n), sort: (o) => o.n },
                { id: 'share', title: 'Share', right: true, cell: (o) => `${Math.round(1000 * o.n / items.length) / 10} %` },
                { id: 'size', title: 'Average size', right: true, cell: (o) => bytesText(o.bytes / o.n), sort: (o) => o.bytes / o.n },
                { id: 'names', title: 'Attributes', class: 'value', cell: (o) => [...o.names].map(([n, v]) => `${n}:${v.type}${v.n < o.n ? '?' : ''}`).join(', ') },
                { id: 'find', title: '', cell: (o) => h('a', { href: href('/tables', name, 'items', toQuery(filterOf(o, by, hash, range, index))) }, 'Find all') }] });
            kindTable.setRows(list, false, `${many(list.length, 'kind')} in ${many(items.length, 'item')}`);
            const partTable = grid({ label: 'Item collections', key: (o) => o.id, open: (o) => { partition = o.id; set(); collection(); }, columns: [
                { id: 'value', title: hash, class: 'value', cell: (o) => cellText(o.value), sort: (o) => cellText(o.value) },
                { id: 'n', title: 'Items', right: true, cell: (o) => count(o.n), sort: (o) => o.n },
                { id: 'size', title: 'Size', right: true, cell: (o) => bytesText(o.bytes), sort: (o) => o.bytes },
                { id: 'kinds', title: 'What is in it', cell: (o) => [...o.kinds].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([kind, n]) => [mark(kind, n), ' ']) }] });
            partTable.setRows([...parts.values()].sort((a, b) => b.n - a.n), false, `${many(parts.size, 'partition')} in this sample; choose one to see its items`);
            fill(place, h('div.bar.end', h('label.field', h('span', 'Kinds by'), select([['', 'patterns of the keys'], ...names.map((n) => [n, `the attribute ${n}`])], by, (v) => { by = v; set(); draw(); collection(); })),
                h('label.field', h('span', 'Collections of'), select([['', 'the table'], ...indexes.map((i) => [i, `index ${i}`])], index, async (v) => { index = v; partition = null; set(); await start(); })),
                h('span.muted', next ? `A sample of ${many(items.length, 'item')}.` : `All ${many(items.length, 'item')}.`), next && button('Read more', async () => { await load(place, async () => { await sample(true); draw(); }, { signal: ctx.signal }); })),
            h('section.panel', h('h2', 'Kinds'), kindTable.node), box, h('section.panel', h('h2', 'Item collections'), partTable.node));
        }

        const mark = (kind, n) => h('span.kind', { class: `k${shade.get(kind) ?? 5}`, title: kind }, kind || '(none)', n > 1 ? ` × ${count(n)}` : '');
        const box = h('section.panel', { hidden: true });

        async function collection() {
            box.hidden = !partition;
            if (!partition)
                return;
            const k = keysOf(table, index), value = JSON.parse(partition);
            await load(box, async () => {
                const answer = await ctx.db('Query', { ...request(), KeyConditionExpression: '#h = :h', ExpressionAttributeNames: { '#h': k.hash[0] }, ExpressionAttributeValues: { ':h': value }, Limit: 300, ReturnConsumedCapacity: 'TOTAL' });
                const keys = new Set([...table.KeySchema.map((one) => one.AttributeName), k.hash[0], k.range[0]]);
                return [h('div.bar', h('h2', `${k.hash[0]} = ${cellText(value, 80)}`), h('span.muted', `${count(answer.Count)}${answer.LastEvaluatedKey ? ' or more' : ''} items · ${answer.ConsumedCapacity?.CapacityUnits ?? '–'} units`), button('Close', () => { partition = null; set(); collection(); }, { class: 'small' })),
                    h('ol.collection', answer.Items.map((item) => h('li', h('button.row-button', { type: 'button', onclick: () => edit(item) },
                        h('span.kind-cell', mark(kindOf(item, by, k.hash[0], k.range[0]))), h('strong.mono', k.range[0] ? cellText(item[k.range[0]] || { S: '' }, 60) : ''),
                        h('span.rest', Object.entries(item).filter(([n]) => !keys.has(n) && n !== by).map(([n, v]) => h('span', h('span.muted', `${n} `), cellText(v, 48))))))))];
            }, { signal: ctx.signal });
            box.scrollIntoView({ block: 'nearest' });
        }

        async function edit(row) {
            const { Item } = await ctx.db('GetItem', { TableName: name, Key: keyOf(table, row), ConsistentRead: true });
            if (Item)
                editItem(ctx, table, Item, { done: collection });
        }

        const start = () => load(place, async () => {
            await sample(false);
            if (!items.length)
                return empty('No items yet', 'The kind of a table is recognised by its items.', h('a.button', { href: href('/tables', name, 'items') }, 'Items'));
            draw();
        }, { signal: ctx.signal });
        add(root, place);
        await start();
        if (partition && items.length)
            await collection().catch(() => { partition = null; });
        ctx.on('back', start);
    },
};

/* A scan that finds the items of a kind. */
function filterOf(one, by, hash, range, index) {
    const filters = [];
    if (by)
        filters.push({ name: by, op: '=', type: 'S', value: one.kind });
    else
        for (const key of [hash, range].filter(Boolean)) {
            const text = pattern(one.example[key]);
            if (text && text[0] !== '(')
                filters.push({ name: /[.[\]"]/.test(key) ? JSON.stringify(key) : key, op: /\w$/.test(text) ? '=' : 'begins_with', type: 'S', value: text });
        }
    return { index, mode: 'scan', filters };
}
