/* views/load.js: paste or drop CSV, JSON or JSON lines; look at what they become; load them. */
import { add, debounce, fill, h } from '../lib/dom.js';
import { href } from '../lib/router.js';
import { grid } from '../lib/table.js';
import { bytesText, count, many } from '../lib/time.js';
import { field, job, select, writeButton } from '../lib/ui.js';
import { bare, fromPlain, itemProblem, numberProblem } from '../lib/values.js';
import { columnsOf, tableHead, writeAll } from './items.js';

const SHOWN = 200;

/* Lines of fields; quotes as in RFC 4180. */
export function parseCsv(text, separator) {
    const rows = [];
    let row = [], at = 0;
    text = text.replace(/^\ufeff/, '');
    while (at < text.length) {
        let value = '';
        if (text[at] === '"') {
            for (at++; ; at++) {
                const end = text.indexOf('"', at);
                if (end < 0)
                    throw new Error(`line ${rows.length + 1}: a quote is not closed`);
                value += text.slice(at, end);
                at = end + 1;
                if (text[at] !== '"')
                    break;
                value += '"';
            }
        } else {
            let end = at;
            while (end < text.length && text[end] !== separator && text[end] !== '\n' && text[end] !== '\r')
                end++;
            value = text.slice(at, end);
            at = end;
        }
        row.push(value);
        if (text[at] === separator) {
            at++;
            if (at === text.length)
                row.push('');
            continue;
        }
        if (at < text.length && text[at] !== '\r' && text[at] !== '\n')
            throw new Error(`line ${rows.length + 1}: expected ${separator === '\t' ? 'a tab' : `"${separator}"`} after a quoted field`);
        at += text.startsWith('\r\n', at) ? 2 : 1;
        if (row.length > 1 || row[0] !== '')
            rows.push(row);
        row = [];
    }
    if (row.length)
        rows.push(row);
    return rows;
}

function formatOf(text) {
    const start = text.trimStart();
    return start[0] === '[' ? 'json' : start[0] === '{' ? (/^\s*\{[^\n]*\}\s*(\n|$)/.test(start) ? 'jsonl' : 'json') : 'csv';
}

const separatorOf = (text) => [',', ';', '\t'].map((s) => [s, text.slice(0, text.search(/[\r\n]|$/)).split(s).length]).sort((a, b) => b[1] - a[1])[0][0];

/* The type that all values of a column have. */
function guess(values) {
    const some = values.filter((v) => v !== '');
    return !some.length ? 'S' : some.every((v) => !numberProblem(v) && !/^[+-]?0\d/.test(v)) ? 'N' : some.every((v) => v === 'true' || v === 'false') ? 'BOOL' : 'S';
}

/* An object of plain or typed JSON as an item: {"Item": {...}}, {"a": {"S": "x"}} or {"a": "x"}. */
function itemOf(text) {
    const plain = fromPlain(text);
    if (!plain.M)
        throw new Error('expected an object for each item');
    let typed = JSON.parse(text);
    if (typed.Item && Object.keys(typed).length === 1 && !itemProblem(typed.Item))
        typed = typed.Item;
    return Object.keys(typed).length && !itemProblem(typed) ? typed : plain.M;
}

export default {
    title: 'Load',
    async open(root, params, ctx) {
        const name = params.table;
        tableHead(ctx, name, 'load');
        const { Table: table } = await ctx.db('DescribeTable', { TableName: name }), keys = table.KeySchema.map((k) => k.AttributeName);
        const keyType = (k) => table.AttributeDefinitions.find((a) => a.AttributeName === k).AttributeType;
        let format = '', types = {}, rows = [], items = [], bad = [], source = '', existing = 'replace';
        const text = h('textarea', { rows: 8, spellcheck: 'false', 'aria-label': 'Data to load', placeholder: `Paste CSV, JSON or JSON lines here, or drop a file.\n\n${keys.join(',')},name\n…`, oninput: () => {
            if (text.value.length < 200000)
                return take(text.value);
            options.hidden = true; /* until it is read, so that nobody loads what was there before */
            later();
        } });
        const later = debounce(() => take(text.value), 200);
        const file = h('input', { type: 'file', accept: '.csv,.tsv,.json,.jsonl,.ndjson,.txt', 'aria-label': 'File to load', onchange: () => file.files[0] && takeFile(file.files[0]) });
        const options = h('div.bar.end'), note = h('div.note', { role: 'alert' }), summary = h('div'), place = h('div'), columns = h('div.fields');
        const preview = grid({ label: 'Preview', columns: [], key: (x) => x, sortable: false });
        const drop = h('div.drop', text, h('div.bar', file, h('span.muted', 'or drop a file here')));
        for (const event of ['dragover', 'dragleave', 'drop'])
            drop.addEventListener(event, (e) => {
                e.preventDefault();
                drop.classList.toggle('over', event === 'dragover');
                if (event === 'drop' && e.dataTransfer.files[0])
                    takeFile(e.dataTransfer.files[0]);
                else if (event === 'drop') {
                    text.value = e.dataTransfer.getData('text');
                    take(text.value);
                }
            });

        async function takeFile(one) {
            if (one.size > 256 * 1024 * 1024)
                return fill(note, `${one.name} has ${bytesText(one.size)}; the page takes up to 256 MiB. "holdfast import" takes any size.`);
            const all = await one.text();
            text.value = all.length > 200000 ? '' : all;
            text.placeholder = all.length > 200000 ? `${one.name}, ${bytesText(one.size)}` : text.placeholder;
            take(all);
        }

        function take(all) {
            source = all;
            format = formatOf(all);
            types = {};
            understand();
        }

        function understand() {
            note.replaceChildren();
            items = [];
            bad = [];
            rows = [];
            try {
                if (!source.trim())
                    return draw();
                if (format === 'csv') {
                    const lines = parseCsv(source, separatorOf(source)), head = lines.shift() || [];
                    if (head.some((n, i) => !n || head.indexOf(n) !== i))
                        throw new Error('The first line has the names of the attributes, each once.');
                    rows = lines;
                    head.forEach((n, i) => { types[n] ||= keys.includes(n) ? keyType(n) : guess(lines.slice(0, 1000).map((line) => line[i] ?? '')); });
                    lines.forEach((line, i) => put(() => {
                        if (line.length > head.length)
                            throw new Error(`${line.length} fields, but there are ${head.length} names`);
                        return Object.fromEntries(head.flatMap((n, c) => fieldOf(n, line[c] ?? '')));
                    }, i + 2));
                } else if (format === 'jsonl') {
                    source.split('\n').forEach((line, i) => line.trim() && put(() => itemOf(line), i + 1));
                } else {
                    const whole = fromPlain(source), list = JSON.parse(source), all = Array.isArray(list) ? list : list.Items && Array.isArray(list.Items) ? list.Items : null;
                    if (all) { /* each as its own text, so that no digit is lost */
                        const plain = whole.L || whole.M.Items.L;
                        all.forEach((one, i) => put(() => {
                            const typed = one.Item && Object.keys(one).length === 1 ? one.Item : one;
                            if (!plain[i].M)
                                throw new Error('expected an object for each item');
                            return Object.keys(typed).length && !itemProblem(typed) ? typed : plain[i].M;
                        }, i + 1));
                    } else {
                        put(() => itemOf(source), 1);
                    }
                }
            } catch (error) {
                fill(note, error.message);
            }
            draw();
        }

        function fieldOf(n, value) {
            const type = types[n];
            if (type === '-' || (value === '' && type !== 'S') || (value === '' && keys.includes(n)))
                return [];
            if (type === 'N') {
                const problem = numberProblem(value);
                if (problem)
                    throw new Error(`${n}: ${JSON.stringify(value)} is ${problem}`);
                return [[n, { N: value.trim() }]];
            }
            if (type === 'BOOL') {
                if (!/^(true|false)$/i.test(value))
                    throw new Error(`${n}: expected true or false, not ${JSON.stringify(value)}`);
                return [[n, { BOOL: value.toLowerCase() === 'true' }]];
            }
            return [[n, type === 'JSON' ? fromPlain(value) : { [type]: value }]];
        }

        function put(make, line) {
            try {
                const item = bare(make());
                for (const k of keys)
                    if (!item[k] || item[k][keyType(k)] === undefined)
                        throw new Error(item[k] ? `${k} is not of the type ${keyType(k)}` : `the key ${k} is missing`);
                const problem = itemProblem(item);
                if (problem)
                    throw new Error(problem);
                items.push(item);
            } catch (error) {
                bad.push({ line, text: error.message });
            }
        }

        function draw() {
            options.hidden = !source.trim();
            fill(options, field('Format', select([['csv', 'CSV'], ['json', 'JSON'], ['jsonl', 'JSON lines']], format || 'csv', (v) => { format = v; understand(); })),
                field('Items that are there already', select([['replace', 'Replace'], ['keep', 'Keep, and skip the new one']], existing, (v) => { existing = v; })),
                writeButton(`Load ${many(items.length, 'item')}`, run, { class: 'primary', ...(items.length ? {} : { disabled: true }) }));
            fill(columns, format === 'csv' && Object.keys(types).slice(0, 60).map((n) => field(n, select([['S', 'String'], ['N', 'Number'], ['BOOL', 'Boolean'], ['JSON', 'JSON'], ['B', 'Binary, base64'], ['-', 'Leave out']], types[n], (v) => { types[n] = v; understand(); }, { disabled: keys.includes(n) }))));
            fill(summary, bad.length > 0 && h('div.hint.warn', h('strong', `${count(bad.length)} of ${count(bad.length + items.length)} are left out. `), bad.slice(0, 5).map((one) => h('div', `${format === 'json' ? 'item' : 'line'} ${one.line}: ${one.text}`)), bad.length > 5 && `and ${count(bad.length - 5)} more`));
            preview.setColumns(columnsOf(items.slice(0, SHOWN), keys));
            preview.setRows(items.slice(0, SHOWN), false, items.length > SHOWN ? `the first ${SHOWN} of ${count(items.length)}` : many(items.length, 'item'));
            fill(place, items.length ? preview.node : '');
        }

        async function run() {
            const all = items, keep = existing === 'keep', idOf = (item) => JSON.stringify(keys.map((k) => item[k]));
            await job(`Load ${many(all.length, 'item')} into ${name}`, async (step, signal) => {
                let done = 0, skipped = 0;
                const write = async (part) => {
                    if (!keep) {
                        /* A batch takes each key once: the last one counts, as one after another. */
                        await writeAll(ctx, name, [...new Map(part.map((item) => [idOf(item), item])).values()].map((Item) => ({ PutRequest: { Item } })), signal);
                    } else {
                        for (const Item of part)
                            await ctx.db('PutItem', { TableName: name, Item, ConditionExpression: 'attribute_not_exists(#k)', ExpressionAttributeNames: { '#k': keys[0] } }, { signal }).catch((problem) => {
                                if (problem.code !== 'ConditionalCheckFailedException')
                                    throw problem;
                                skipped++;
                            });
                    }
                    done += part.length;
                    step(done, all.length);
                };
                for (let i = 0; i < all.length; i += 25)
                    await write(all.slice(i, i + 25));
                return `${count(all.length - skipped)} loaded${skipped ? `, ${count(skipped)} were there already` : ''}`;
            });
        }

        add(root, drop, options, note, summary, columns, place, h('p.muted', 'Files of any size: ', h('code', 'holdfast import'), '. ', h('a', { href: href('/tables', name, 'items') }, 'Back to the items')));
        draw();
    },
};
