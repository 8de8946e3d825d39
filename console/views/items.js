/*
 * views/items.js: the items of a table or an index: browse, query, scan, edit, delete, export.
 *
 * Pages are loaded as the user scrolls. What is asked for is in the URL. With a filter, pages are
 * read until enough was found, the time is up or the user stops it; the line below says what it cost.
 */
import { add, debounce, fill, h } from '../lib/dom.js';
import { build, FILTER_OPS, fromQuery, isGlobal, KEY_OPS, keysOf, toQuery, VALUE_TYPES } from '../lib/expr.js';
import { LANGUAGES } from '../lib/codegen.js';
import { server } from '../lib/client.js';
import { href } from '../lib/router.js';
import { grid } from '../lib/table.js';
import { count, durationText, many } from '../lib/time.js';
import { badge, button, check, code, confirm, copy, dialog, download, empty, field, job, load, menu, problemNode, select, tabs, toast, toastProblem, writeButton } from '../lib/ui.js';
import { bare, cellText, compareNumbers, plainItem, TYPES, typeOf, typedText } from '../lib/values.js';
import { askBulkEdit, editItem, keyOf } from './editor.js';
import { touched } from './shared.js';

const FIRST = 100, NEXT = 300, FOUND = 50, FILTER_MS = 4000;

export function tableHead(ctx, name, current, actions = []) {
    ctx.head({ title: name, crumbs: [['Tables', href('/tables')]], actions, tabs: tabs([
        ['Items', href('/tables', name, 'items'), current === 'items'], ['Entities', href('/tables', name, 'entities'), current === 'entities'],
        ['Stream', href('/tables', name, 'stream'), current === 'stream'], ['Load', href('/tables', name, 'load'), current === 'load'],
        ['Settings', href('/tables', name), current === 'settings']]) });
}

const sortValue = (value) => {
    const type = value && typeOf(value);
    return type === 'N' ? { n: value.N, compare(b) { return b.n === undefined ? -1 : compareNumbers(this.n, b.n); } } : type ? cellText(value, 200) : null;
};

/* Columns of attributes: those of the key first, then by how often they are there. */
export function columnsOf(items, keys) {
    const seen = new Map();
    for (const item of items.slice(0, 2000))
        for (const [name, value] of Object.entries(item))
            seen.set(name, { n: (seen.get(name)?.n || 0) + 1, type: typeOf(value) });
    const names = [...keys, ...[...seen.keys()].filter((name) => !keys.includes(name)).sort((a, b) => seen.get(b).n - seen.get(a).n)];
    return names.slice(0, 200).map((name, i) => ({ id: name, title: name, hidden: i >= 16, class: 'value', right: seen.get(name)?.type === 'N',
        cell: (item) => (item[name] ? cell(item[name]) : ''), text: (item) => (item[name] ? cellText(item[name], 1000) : ''), sort: (item) => sortValue(item[name]) }));
}

function cell(value) {
    const type = typeOf(value);
    if (type === 'S' || type === 'N')
        return cellText(value);
    return [h('span.tag', { title: TYPES[type] }, type), ' ', cellText(value)];
}

/* CSV with all attributes; text that a spreadsheet would run as a formula is kept as it is, in quotes. */
export function toCsv(items) {
    const names = [...new Set(items.flatMap((item) => Object.keys(item)))];
    const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const text = (value) => (value === undefined ? '' : ['S', 'N', 'BOOL', 'B'].includes(typeOf(value)) ? String(Object.values(value)[0]) : plainItem({ x: value }).slice(5, -1));
    return [names.map(quoted).join(','), ...items.map((item) => names.map((name) => quoted(text(item[name]))).join(','))].join('\r\n') + '\r\n';
}

const EXPORTS = [['JSON lines', 'jsonl', (items) => items.map((i) => plainItem(i)).join('\n') + '\n'],
    ['JSON lines with types', 'ddb.jsonl', (items) => items.map((i) => JSON.stringify({ Item: i })).join('\n') + '\n'],
    ['JSON', 'json', (items) => '[\n' + items.map((i) => '  ' + plainItem(i)).join(',\n') + '\n]\n'], ['CSV', 'csv', toCsv]];

export default {
    title: 'Items',
    async open(root, params, ctx) {
        const name = params.table;
        tableHead(ctx, name, 'items');
        const { Table: table } = await ctx.db('DescribeTable', { TableName: name });
        const keys = table.KeySchema.map((k) => k.AttributeName), state = fromQuery(ctx.query);
        const indexes = [...(table.GlobalSecondaryIndexes || []), ...(table.LocalSecondaryIndexes || [])];
        let open = ctx.parts[2] === 'query' || state.mode === 'query' || state.filters.length > 0;
        let items = [], next = null, running = null, cost = { read: 0, units: 0, ms: 0, pages: 0 }, what = null, asked = null, fresh = true; /* what, asked: the request and the state of the last run, which the builder may have left behind */

        const place = h('div'), form = h('form.builder', { hidden: !open, onsubmit: (e) => { e.preventDefault(); start(); } }), note = h('div.note', { role: 'alert' }), picked = h('div.bar.picked', { hidden: true });
        const stale = h('span'), message = h('div', { role: 'status' });
        tableHead(ctx, name, 'items', [writeButton('New item', () => editItem(ctx, table, {}, { isNew: true, done: () => run() }), { class: 'primary' })]);

        const list = grid({ label: `Items of ${name}`, name: `items.${name}`, columns: columnsOf([], keys), key: (item) => JSON.stringify(keys.map((k) => item[k])),
            open: show, more: () => page(), selected: (set) => drawPicked(set) });

        /* ---- the builder ---- */

        const changed = () => ctx.setQuery(toQuery(state));
        const input = (key, label, more = {}) => h('input', { type: 'text', value: state[key] || '', autocomplete: 'off', spellcheck: 'false', 'aria-label': label, oninput: (e) => { state[key] = e.target.value; changed(); }, ...more });

        function drawForm() {
            const k = keysOf(table, state.index), range = k.range[0], filters = h('div.filters');
            const between = h('span.bar', h('span.muted', 'and'), input('to', `End of ${range}`));
            const value = input('range', `Value of ${range}`);
            const ops = (v) => { between.hidden = v !== 'between'; value.hidden = !v; };
            ops(state.op);
            const drawFilters = () => fill(filters, state.filters.map((one, i) => filterRow(one, i, drawFilters)),
                h('div.bar', button('Add filter', () => { state.filters.push({ name: '', op: '=', type: 'S', value: '' }); drawFilters(); filters.querySelectorAll('.filter:last-of-type input')[0]?.focus(); }, { class: 'small' }),
                    state.filters.length > 1 && select([['', 'All must hold'], ['1', 'One must hold']], state.any ? '1' : '', (v) => { state.any = !!v; changed(); }, { 'aria-label': 'How filters are combined' })));
            drawFilters();
            fill(form,
                h('div.bar.end',
                    field('Operation', select([['scan', 'Scan'], ['query', 'Query']], state.mode, (v) => { state.mode = v; drawForm(); changed(); })),
                    field('Of', select([['', `${name} (table)`], ...indexes.map((i) => [i.IndexName, `${i.IndexName} (index)`])], state.index || '', (v) => { state.index = v; drawForm(); changed(); })),
                    state.mode === 'query' && k.hash.map((one, i) => field(`${one} =`, input(i ? `hash${i}` : 'hash', `Value of ${one}`))),
                    state.mode === 'query' && range && field(range, h('span.bar', select(KEY_OPS, state.op || '', (v) => { state.op = v; ops(v); changed(); }, { 'aria-label': `Condition for ${range}` }), value, between))),
                filters,
                h('div.bar.end', h('div.grow', field('Attributes', input('project', 'Attributes to read', { placeholder: 'all, or: id, address.city, lines[0]' }))),
                    state.mode === 'query' && range && check('Descending', state.desc, (on) => { state.desc = on; changed(); }),
                    !isGlobal(table, state.index) && check('Consistent', state.consistent, (on) => { state.consistent = on; changed(); })),
                h('div.bar', h('button.primary', { type: 'submit' }, 'Run'),
                    button('Reset', () => { Object.assign(state, fromQuery({})); drawForm(); changed(); start(); }),
                    menu('Copy as ▾', LANGUAGES.map(([language, make]) => [language, () => attempt(({ operation, request }) => showCode(language, make(operation, request, location.origin, server.region)))])),
                    button('Copy link', () => copy(location.href, 'Link copied')), button('Show request', () => attempt(({ operation, request }) => showCode(operation, JSON.stringify(request, null, 2))))));
        }

        function filterRow(one, i, redraw) {
            const label = (text) => `${text} of filter ${i + 1}`;
            const text = (key, what) => h('input', { type: 'text', value: one[key] || '', 'aria-label': label(what), autocomplete: 'off', spellcheck: 'false', placeholder: one.op === 'in' ? 'a, b, c' : one.type === 'JSON' ? '{"S": "x"} or plain' : what.toLowerCase(), oninput: (e) => { one[key] = e.target.value; changed(); } });
            const typed = !['exists', 'type'].includes(one.op) && !one.op.startsWith('size');
            return h('div.filter.bar',
                select([['', 'if'], ['1', 'if not']], one.not ? '1' : '', (v) => { one.not = v ? 1 : undefined; changed(); }, { 'aria-label': label('Negation') }),
                h('input', { type: 'text', value: one.name, 'aria-label': label('Attribute'), placeholder: 'attribute', autocomplete: 'off', spellcheck: 'false', oninput: (e) => { one.name = e.target.value; changed(); } }),
                select(FILTER_OPS, one.op, (v) => { one.op = v; redraw(); changed(); }, { 'aria-label': label('Operator') }),
                typed && select(VALUE_TYPES, one.type, (v) => { one.type = v; redraw(); changed(); }, { 'aria-label': label('Type') }),
                one.op === 'type' ? select(Object.entries(TYPES), one.value || 'S', (v) => { one.value = v; changed(); }, { 'aria-label': label('Type') })
                    : one.op === 'exists' || one.type === 'NULL' ? null : one.type === 'BOOL' && typed ? select(['true', 'false'], (one.value ||= 'true'), (v) => { one.value = v; changed(); }, { 'aria-label': label('Value') }) : text('value', 'Value'),
                one.op === 'between' && [h('span.muted', 'and'), text('to', 'End')],
                button('×', () => { state.filters.splice(i, 1); redraw(); changed(); }, { class: 'quiet', 'aria-label': `Remove filter ${i + 1}` }));
        }

        const showCode = (title, text) => dialog({ title, wide: true, body: code(text), actions: [{ text: 'Close' }] });

        function attempt(fn) {
            note.replaceChildren();
            try {
                return fn(build(table, state));
            } catch (error) {
                fill(note, error.message);
                return null;
            }
        }

        /* ---- reading ---- */

        function footText() {
            const parts = [`${count(items.length)} ${items.length === 1 ? 'item' : 'items'}${next ? ' so far' : ''}`];
            if (cost.read > items.length)
                parts.push(`read ${count(cost.read)}`);
            parts.push(`${cost.units} ${cost.units === 1 ? 'unit' : 'units'}`, durationText(cost.ms));
            return parts.join(' · ');
        }

        function drawMessage() {
            const wasteful = what?.operation === 'Scan' && what.request.FilterExpression && cost.read > 200 && cost.read > 100 * items.length;
            fill(message, wasteful && h('div.hint.warn', `This scan read ${many(cost.read, 'item')} to find ${count(items.length)}. If you ask this often, an index on ${asked.filters[0]?.name} makes it one query. `, h('a', { href: href('/tables', name) }, 'Indexes')));
        }

        /* Read on until enough was found, or the time is up. */
        async function page() {
            if (running)
                return;
            const mine = running = { abort: new AbortController() }, filtered = !!what.request.FilterExpression, until = performance.now() + FILTER_MS, from = items.length;
            ctx.signal.addEventListener('abort', () => mine.abort.abort());
            const stop = button('Stop', () => mine.abort.abort(), { class: 'small' });
            try {
                do {
                    const t = performance.now();
                    const answer = await ctx.db(what.operation, { ...what.request, Limit: filtered ? 2000 : cost.pages ? NEXT : FIRST, ReturnConsumedCapacity: 'TOTAL', ...(next ? { ExclusiveStartKey: next } : {}) }, { signal: mine.abort.signal });
                    if (running !== mine)
                        return;
                    items = items.concat(answer.Items.map(bare));
                    next = answer.LastEvaluatedKey || null;
                    cost = { read: cost.read + answer.ScannedCount, units: Math.round((cost.units + (answer.ConsumedCapacity?.CapacityUnits || 0)) * 10) / 10, ms: cost.ms + performance.now() - t, pages: cost.pages + 1 };
                    if (filtered && next)
                        fill(message, h('span.muted', `Read ${count(cost.read)}, found ${count(items.length)} … `), stop);
                } while (filtered && next && items.length - from < FOUND && performance.now() < until);
            } catch (problem) {
                if (problem.code !== 'Canceled' && running === mine) {
                    fill(message, problemNode(problem, () => page().catch(() => { })));
                    running = null;
                    list.setRows(items, false, footText());
                    return;
                }
            } finally {
                if (running === mine)
                    running = null;
            }
            list.setColumns(columnsOf(items, keys));
            drawMessage();
            list.setRows(items, !!next, footText(), !mine.abort.signal.aborted); /* what was stopped stays stopped */
        }

        /* Run what the builder says. */
        async function start() {
            const made = attempt((request) => request);
            if (!made)
                return;
            what = made;
            asked = structuredClone(state);
            await run();
        }

        /* Run what ran last, once more. */
        async function run() {
            if (!what)
                return start();
            running?.abort.abort();
            running = null;
            items = [];
            next = null;
            cost = { read: 0, units: 0, ms: 0, pages: 0 };
            fresh = true;
            fill(stale);
            list.clearSelection();
            message.replaceChildren();
            await load(place, async () => {
                await page();
                if (message.querySelector('.problem'))
                    return [];
                return items.length || next ? list.node : what.request.FilterExpression || what.operation === 'Query'
                    ? empty('Nothing found', `Read ${many(cost.read, 'item')}, ${cost.units} units.`)
                    : empty('No items yet', 'Make one here, load a file, or start your program.', writeButton('New item', () => editItem(ctx, table, {}, { isNew: true, done: () => run() }), { class: 'primary' }), h('a.button', { href: href('/tables', name, 'load') }, 'Load a file'));
            }, { signal: ctx.signal });
        }

        /* ---- one item ---- */

        async function show(row) {
            try { /* an index may have a part of it, and the table a newer one */
                const { Item: item } = await ctx.db('GetItem', { TableName: name, Key: keyOf(table, row), ConsistentRead: true });
                if (!item)
                    return toast('This item is not there any more.', 'bad');
                await editItem(ctx, table, item, { done: (saved) => {
                    const key = JSON.stringify(keys.map((k) => item[k])), at = items.findIndex((one) => JSON.stringify(keys.map((k) => one[k])) === key);
                    if (at >= 0)
                        saved ? items.splice(at, 1, bare(saved)) : items.splice(at, 1);
                    list.setRows(items, !!next, footText());
                } });
            } catch (problem) {
                toastProblem(problem);
            }
        }

        /* ---- several items ---- */

        function drawPicked(set) {
            picked.hidden = set.size === 0;
            fill(picked, h('strong', `${count(set.size)} selected`), writeButton('Edit…', bulkEdit), writeButton('Delete…', () => bulkDelete(list.selection()), { class: 'danger' }),
                menu('Export ▾', EXPORTS.map(([text, ending, make]) => [text, () => download(`${name}.${ending}`, make(list.selection()))])),
                button('Copy', () => copy(typedText(list.selection()))), button('Clear', () => list.clearSelection(), { class: 'quiet' }));
        }

        async function bulkEdit() {
            const rows = list.selection(), edit = await askBulkEdit(rows.length);
            if (!edit)
                return;
            const hash = keys[0];
            await job(`Edit ${many(rows.length, 'item')} of ${name}`, async (step, signal) => {
                let missing = 0;
                for (let i = 0; i < rows.length; i++) {
                    const request = { TableName: name, Key: keyOf(table, rows[i]), ConditionExpression: 'attribute_exists(#k)', ExpressionAttributeNames: { '#k': hash, '#a': edit.name } };
                    if (edit.act === 'set')
                        Object.assign(request, { UpdateExpression: 'SET #a = :v', ExpressionAttributeValues: { ':v': edit.value } });
                    else
                        request.UpdateExpression = 'REMOVE #a';
                    try {
                        await ctx.db('UpdateItem', request, { signal });
                    } catch (problem) {
                        if (problem.code !== 'ConditionalCheckFailedException')
                            throw problem;
                        missing++;
                    }
                    step(i + 1, rows.length);
                }
                return `${count(rows.length - missing)} changed${missing ? `, ${missing} were not there any more` : ''}`;
            });
            run();
        }

        async function bulkDelete(rows) {
            const yes = await confirm({ title: `Delete ${many(rows.length, 'item')}?`, text: `They are deleted from ${name} for good.`, typed: name, action: `Delete ${many(rows.length, 'item')}` });
            if (!yes)
                return;
            await job(`Delete ${many(rows.length, 'item')} of ${name}`, async (step, signal) => {
                for (let i = 0; i < rows.length; i += 25) {
                    await writeAll(ctx, name, rows.slice(i, i + 25).map((row) => ({ DeleteRequest: { Key: keyOf(table, row) } })), signal);
                    step(Math.min(rows.length, i + 25), rows.length);
                }
                return `${count(rows.length)} deleted`;
            });
            run();
        }

        /* All that the query finds, and not only what is loaded. */
        async function exportAll([text, ending, make]) {
            const made = what || attempt((request) => request);
            if (made)
                await job(`Export ${name} as ${text}`, async (step, signal) => {
                    const all = [];
                    for (let from = null, read = 0; ;) {
                        const answer = await ctx.db(made.operation, { ...made.request, ...(from ? { ExclusiveStartKey: from } : {}) }, { signal });
                        all.push(...answer.Items.map(bare));
                        read += answer.ScannedCount;
                        step(read, 0, `read ${count(read)}, ${count(all.length)} to export`);
                        if (!(from = answer.LastEvaluatedKey))
                            break;
                    }
                    download(`${name}.${ending}`, make(all));
                    return many(all.length, 'item');
                });
        }

        async function deleteAll() {
            if (!what)
                return;
            const { operation, request } = build(table, { ...asked, project: '' }), still = conditionOf(table, request), told = toldOf(request);
            if (!await confirm({ title: 'Delete all that match?', text: [`Everything that this ${operation.toLowerCase()}${request.IndexName ? ` of ${request.IndexName}` : ''} finds is deleted from ${name} for good${told.length ? ': ' : request.IndexName ? ': all items that the index has.' : ': all items of the table.'}`, told.map((text, i) => [i > 0 && ' and ', h('code', text)])], typed: name, action: 'Delete all that match' }))
                return;
            await job(`Delete what matches in ${name}`, async (step, signal) => {
                let done = 0, other = 0;
                const said = () => `${count(done)} deleted${other ? `, ${count(other)} did not match any more` : ''}`;
                const remove = async (row) => {
                    try {
                        await ctx.db('DeleteItem', { TableName: name, Key: keyOf(table, row), ...still }, { signal });
                        done++;
                    } catch (problem) {
                        if (problem.code !== 'ConditionalCheckFailedException')
                            throw problem;
                        other++;
                    }
                };
                for (let from = null; ;) {
                    const answer = await ctx.db(operation, { ...request, ...(from ? { ExclusiveStartKey: from } : {}) }, { signal });
                    for (let i = 0; i < answer.Items.length; i += 25) {
                        const part = answer.Items.slice(i, i + 25);
                        if (still) { /* a batch has no conditions */
                            await Promise.all(part.map(remove));
                        } else {
                            await writeAll(ctx, name, part.map((row) => ({ DeleteRequest: { Key: keyOf(table, row) } })), signal);
                            done += part.length;
                        }
                        step(done, 0, said());
                    }
                    if (!(from = answer.LastEvaluatedKey))
                        return said();
                }
            });
            run();
        }

        drawForm();
        const toggle = button('Query and filter', () => { open = !open; form.hidden = !open; toggle.setAttribute('aria-expanded', String(open)); if (open) form.querySelector('select').focus(); }, { 'aria-expanded': String(open) });
        add(root, h('div.bar', toggle, button('Refresh', () => run()), stale, h('span.grow'), list.chooser(),
            menu('Export ▾', EXPORTS.map((one) => [`All as ${one[0]}`, () => exportAll(one)])), menu('More ▾', [['Delete all that match…', deleteAll, { danger: true, disabled: ctx.readOnly }]])),
        form, note, message, picked, place);
        await start();

        /* Somebody wrote: the first page is read anew by itself, but never under the user's hands. */
        const soon = debounce(() => {
            if (fresh && scrollY < 40 && items.length <= FIRST && !running && !document.querySelector('dialog[open]') && picked.hidden && !root.contains(document.activeElement?.closest?.('form, tr')))
                run();
            else
                fill(stale, badge('the table was written', 'info'));
        }, 500);
        ctx.on('writes', (w) => touched(w, name) && soon());
        ctx.on('back', run);
        return () => running?.abort.abort();
    },
};

/* The part of a request's names and values that an expression has. */
function partOf(expression, { ExpressionAttributeNames: names = {}, ExpressionAttributeValues: values = {} }) {
    const used = new Set(expression.match(/[#:]\w+/g)), pick = (all) => Object.fromEntries(Object.entries(all).filter(([key]) => used.has(key)));
    return Object.fromEntries([['ExpressionAttributeNames', pick(names)], ['ExpressionAttributeValues', pick(values)]].filter(([, part]) => Object.keys(part).length));
}

/* The condition that an item is still what the request finds; undefined: its key says all of it. */
function conditionOf(table, request) {
    const keys = keysOf(table, request.IndexName), inIndex = request.IndexName ? [...keys.hash, ...keys.range] : [];
    const parts = [request.IndexName && request.KeyConditionExpression, request.FilterExpression].filter(Boolean).map((text) => `(${text})`).concat(inIndex.map((_, i) => `attribute_exists(#i${i})`));
    const { ExpressionAttributeNames: names, ...rest } = partOf(parts.join(), request);
    return parts.length ? { ConditionExpression: parts.join(' AND '), ...rest, ExpressionAttributeNames: { ...names, ...Object.fromEntries(inIndex.map((key, i) => [`#i${i}`, key])) } } : undefined;
}

/* The expressions of a request, for eyes: ['customer = "ann"', 'total > 7'] */
const toldOf = ({ KeyConditionExpression, FilterExpression, ExpressionAttributeNames: names, ExpressionAttributeValues: values }) => [KeyConditionExpression, FilterExpression].filter(Boolean)
    .map((text) => text.replace(/[#:]\w+/g, (key) => (key[0] === '#' ? names[key] : plainItem({ x: values[key] }).slice(5, -1))));

/* A batch of writes, with what was left over sent again. */
export async function writeAll(ctx, table, requests, signal) {
    for (let pause = 20; requests.length; pause = Math.min(1000, pause * 2)) {
        const answer = await ctx.db('BatchWriteItem', { RequestItems: { [table]: requests } }, { signal });
        requests = answer.UnprocessedItems?.[table] || [];
        if (requests.length)
            await new Promise((resolve) => setTimeout(resolve, pause));
    }
}
