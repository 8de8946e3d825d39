/* views/partiql.js: statements of PartiQL, with what they will read, what they cost, and a history. */
import { add, debounce, fill, h } from '../lib/dom.js';
import { tableNames, server } from '../lib/client.js';
import { LANGUAGES } from '../lib/codegen.js';
import { explain, parse } from '../lib/explain.js';
import { grid } from '../lib/table.js';
import { count, durationText, many, timeNode } from '../lib/time.js';
import { badge, button, code, confirm, copy, dialog, download, empty, load, menu, problemNode, toastProblem } from '../lib/ui.js';
import { bare, typedText } from '../lib/values.js';
import { columnsOf, toCsv } from './items.js';

const KEPT = 100;
const history = {
    all() {
        try {
            return JSON.parse(localStorage.getItem('holdfast.partiql')) || [];
        } catch {
            return [];
        }
    },
    put(entry) {
        localStorage.setItem('holdfast.partiql', JSON.stringify([entry, ...history.all().filter((one) => one.text !== entry.text)].slice(0, KEPT)));
    },
    clear: () => localStorage.removeItem('holdfast.partiql'),
};

export default {
    title: 'PartiQL',
    async open(root, params, ctx) {
        let names = [], items = [], next = null, cost, busy = null, ran = '', tables = new Map(); /* ran: the statement of the rows, which a NextToken goes on with */
        const text = h('textarea', { rows: 5, value: params.q || '', spellcheck: 'false', 'aria-label': 'Statement', placeholder: 'SELECT * FROM "orders" WHERE customer = \'ann\'', autofocus: true });
        const plan = h('div.plan', { 'aria-live': 'polite' }), place = h('div'), past = h('div');
        const list = grid({ label: 'Result', columns: [], key: (item) => item, open: (item) => dialog({ title: 'Item', wide: true, body: code(typedText(item)), actions: [{ text: 'Close' }] }), more: () => more() });
        const describe = async (name) => {
            const known = tables; /* it is forgotten when a statement has run, which may be meanwhile */
            if (!known.has(name))
                known.set(name, (await ctx.db('DescribeTable', { TableName: name })).Table);
            return known.get(name);
        };

        /* ---- before it runs ---- */

        async function drawPlan() {
            const statement = parse(text.value), now = text.value;
            ctx.setQuery({ q: text.value });
            if (!statement)
                return void fill(plan, text.value.trim() ? h('p.muted', 'SELECT, INSERT, UPDATE or DELETE, with the name of a table.') : '');
            let table;
            try {
                table = await describe(statement.table);
            } catch (problem) {
                return void (problem.code === 'Canceled' || fill(plan, h('p.bad-text', problem.code === 'ResourceNotFoundException' ? `There is no table ${statement.table}.` : problem.message)));
            }
            const x = explain(statement, table);
            let told = null; /* by the code that will run it; a server that is not ours has none */
            try {
                told = await ctx.api('/console/api/explain', { statement: text.value });
            } catch (problem) {
                if (problem.code === 'Canceled')
                    return;
                if (problem.status === 400)
                    Object.assign(x, { kind: 'error', why: problem.message, advice: [] });
            }
            if (told?.full_scan)
                x.kind = 'scan';
            else if (told?.operation === 'Query' && x.kind === 'scan')
                Object.assign(x, { kind: 'get', units: '–', why: told.note || '', advice: [] }); /* it found a key where we did not */
            if (told?.note?.startsWith('It will fail'))
                Object.assign(x, { kind: 'error', why: told.note });
            if (now !== text.value)
                return; /* it was changed meanwhile */
            const kind = { get: ['one item', 'good'], query: ['query', 'good'], scan: ['scan', 'warn'], write: ['write', 'info'], error: ['will fail', 'bad'] }[x.kind];
            const measured = h('span');
            fill(plan, h('p', badge(...kind), ' ', x.uses && h('strong', x.uses), ' ', x.why),
                told && x.kind !== 'error' && h('p.muted', [told.reads > 1 && `${count(told.reads)} reads`, told.key_condition && [' Key: ', h('code', told.key_condition)], told.filter && [' Filter: ', h('code', told.filter)]].filter(Boolean)),
                x.kind === 'scan' && h('p', `Reads ${many(x.reads, 'item')}, about ${count(x.units)} units.`),
                x.kind === 'get' && h('p', `About ${x.units} units.`),
                x.kind === 'query' && h('p', button('Estimate', () => estimate(statement, x, measured), { class: 'small' }), ' ', measured),
                x.advice.map((one) => h('p', one.text, ' ', one.from !== undefined && button('Use it', () => { text.value = withIndex(text.value, statement, one.from); drawPlan(); text.focus(); }, { class: 'small' }))));
        }

        /* A count of what the key conditions select: reads the same, and returns nothing. */
        async function estimate(statement, x, into) {
            fill(into, 'counting…');
            const where = text.value.slice(text.value.search(/\bWHERE\b/i)), from = `"${statement.table.replaceAll('"', '""')}"${statement.index ? `."${statement.index.replaceAll('"', '""')}"` : ''}`;
            try {
                let n = 0, units = 0, token, pages = 0;
                do {
                    const key = x.keys.hash[0];
                    const answer = await ctx.db('ExecuteStatement', { Statement: `SELECT "${key}" FROM ${from} ${where}`, ReturnConsumedCapacity: 'TOTAL', ...(token ? { NextToken: token } : {}) });
                    n += answer.Items.length;
                    units += answer.ConsumedCapacity?.CapacityUnits || 0;
                    token = answer.NextToken;
                } while (token && ++pages < 20);
                fill(into, `${count(n)}${token ? ' or more' : ''} items match; reading them takes ${count(Math.round(units * 10) / 10)} units${token ? ' so far' : ''}.`);
            } catch (problem) {
                fill(into, problem.message);
            }
        }

        const withIndex = (all, statement, index) => all.replace(/(\bFROM\s+)("(?:[^"]|"")*"|\w+)(\s*\.\s*("(?:[^"]|"")*"|\w+))?/i, (_, from, table) => `${from}${table[0] === '"' ? table : `"${table}"`}${index ? `."${index}"` : ''}`);

        /* ---- running ---- */

        const units = (c) => (!c ? [] : [c.Table && `table ${c.Table.CapacityUnits}`, ...Object.entries({ ...c.GlobalSecondaryIndexes, ...c.LocalSecondaryIndexes }).map(([name, one]) => `index ${name} ${one.CapacityUnits}`)].filter(Boolean));
        const said = () => [many(items.length, 'item'), `${cost.pages} ${cost.pages === 1 ? 'read' : 'reads'}`, `${Math.round(cost.units * 10) / 10} units${cost.where.length ? ` (${cost.where.join(', ')})` : ''}`, durationText(cost.ms)].join(' · ');

        async function more() {
            const from = performance.now();
            const answer = await ctx.db('ExecuteStatement', { Statement: ran, ReturnConsumedCapacity: 'INDEXES', ...(next ? { NextToken: next } : {}) }, { signal: busy?.signal || ctx.signal });
            items = items.concat((answer.Items || []).map(bare));
            next = answer.NextToken || null;
            cost = { units: cost.units + (answer.ConsumedCapacity?.CapacityUnits || 0), pages: cost.pages + 1, ms: cost.ms + performance.now() - from, where: units(answer.ConsumedCapacity) };
            list.setColumns(columnsOf(items, []));
            list.setRows(items, !!next, said());
            return answer;
        }

        async function run() {
            const statement = parse(text.value);
            if (!text.value.trim())
                return;
            if (statement?.verb === 'DELETE' && !await confirm({ title: 'Run this DELETE?', text: h('code', text.value), action: 'Run it' }))
                return;
            busy?.abort();
            busy = new AbortController();
            stop.hidden = false;
            ran = text.value;
            items = [];
            next = null;
            cost = { units: 0, pages: 0, ms: 0, where: [] };
            await load(place, async () => {
                try {
                    await more();
                    /* A scan with a filter may have pages without items. */
                    for (const until = performance.now() + 4000; next && items.length < 30 && performance.now() < until;)
                        await more();
                } catch (problem) {
                    if (problem.code === 'Canceled')
                        return [empty('Stopped', `Read ${cost.pages} pages.`)];
                    return problemNode(problem);
                }
                history.put({ text: ran, at: Date.now(), n: items.length, units: cost.units });
                drawPast();
                tables = new Map();
                return items.length || next ? list.node : empty(statement?.verb === 'SELECT' ? 'Nothing found' : 'Done', said());
            }, { signal: ctx.signal });
            stop.hidden = true;
        }

        function drawPast() {
            const all = history.all();
            fill(past, h('details', { open: !params.q && all.length > 0 && !items.length }, h('summary', `History (${all.length})`), all.length ? [h('ul.history', all.map((one) => h('li', button(one.text.length > 200 ? one.text.slice(0, 200) + '…' : one.text, () => { text.value = one.text; drawPlan(); text.focus(); }, { class: 'quiet mono' }),
                h('span.muted', timeNode(one.at, { relative: true }), ` · ${many(one.n, 'item')} · ${Math.round(one.units * 10) / 10} units`)))), button('Clear history', () => { history.clear(); drawPast(); }, { class: 'small' })] : h('p.muted', 'Statements that you run are kept in this browser.')));
        }

        const stop = button('Stop', () => busy?.abort(), { hidden: true });
        const changed = debounce(drawPlan, 200);
        text.addEventListener('input', changed);
        text.addEventListener('keydown', (e) => {
            if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
                e.preventDefault();
                run();
            }
        });
        const insert = (what) => { text.setRangeText(what, text.selectionStart, text.selectionEnd, 'end'); text.focus(); drawPlan(); };
        ctx.head({ title: 'PartiQL' });
        add(root, text, plan, h('div.bar', button('Run', run, { class: 'primary', title: 'Ctrl+Enter' }), stop,
            menu('Tables ▾', () => names.slice(0, 200).map((name) => [name, () => insert(text.value.trim() ? `"${name}"` : `SELECT * FROM "${name}"`)])),
            menu('Copy as ▾', LANGUAGES.map(([language, make]) => [language, () => dialog({ title: language, wide: true, body: code(make('ExecuteStatement', { Statement: text.value }, location.origin, server.region)), actions: [{ text: 'Close' }] })])),
            button('Copy link', () => copy(location.href, 'Link copied')), list.chooser(),
            menu('Export ▾', [['CSV', () => download('result.csv', toCsv(items), 'text/csv')], ['JSON with types', () => download('result.json', typedText(items))]]), h('span.muted', 'Ctrl+Enter runs it')), place, past);
        drawPast();
        await drawPlan();
        tableNames({ signal: ctx.signal }).then((all) => { names = all; }, toastProblem);
        return () => busy?.abort();
    },
};
