/* views/counters.js: counters of a table: their values, adding, setting, deleting. Values have 64 bits: BigInt. */
import { fill, h } from '../lib/dom.js';
import { count } from '../lib/time.js';
import { ask, filters, more, nothing, patternPage, rows, section, tiles, writes } from '../lib/panels.js';
import { all, partitioned } from '../lib/patterns.js';
import { method } from '../lib/client.js';
import { toast } from '../lib/ui.js';

const keyOf = (c) => [c.partition, c.space, c.id].filter((x) => x !== undefined).join(' / ');
const keyArgs = (table, c) => ({ table, ...(c.partition ? { partition: c.partition } : {}), ...(c.space !== undefined ? { space: c.space } : {}), id: c.id });

export default {
    title: 'Counters',
    async open(root, params, ctx) {
        const { prefix = '', space = '', partition = '' } = ctx.query, began = new Map();
        return patternPage(root, 'counters', ctx, { open: (body, table) => {
            const box = h('div.view');
            let most = 200;
            fill(body, filters('/counters', table, [['prefix', 'Id begins with', prefix], ['space', 'Namespace (empty: global)', space], ['partition', 'Partition', partition]]), box);
            const add = (c) => ask(c ? `Add to ${c.id}` : 'Add to a counter', { fields: [...(c ? [] : [{ name: 'id', label: 'Counter', required: true }, { name: 'space', label: 'Namespace', value: space, hint: 'Empty: that of the table, global.' }]),
                { name: 'by', label: 'How much', type: 'number', value: '1', required: true, hint: 'May be negative.' }], verb: 'Add', run: async (v) => {
                const { value } = await method('counter.add', { ...(c ? keyArgs(table, c) : { table, id: v.id, ...(v.space ? { space: v.space } : {}) }), by: whole(v.by) });
                toast(`${c?.id || v.id} is ${count(BigInt(value))} now.`, 'good');
                view.refresh();
            } });
            const set = (c) => ask(`Set ${c.id}`, { text: 'No add is lost: the answer says what the value was right before.', fields: [{ name: 'value', label: 'New value', type: 'number', value: '0', required: true }], verb: 'Set', danger: true,
                typed: c.id, run: async (v) => {
                    const value = whole(v.value), { was } = await method('counter.set', { ...keyArgs(table, c), value });
                    toast(`${c.id} was ${count(BigInt(was))}, and is ${count(BigInt(value))} now.`, 'good');
                    view.refresh();
                } });
            const remove = (c) => ask(`Delete ${c.id}`, { text: 'The counter goes with the ids of requests that it remembers, so an add that is repeated counts again.', typed: c.id, verb: 'Delete', run: async () => {
                await method('counter.delete', keyArgs(table, c));
                view.refresh();
            } });
            const view = section(box, async (signal) => all('counter.list', { table, ...await partitioned(table), ...(prefix ? { prefix } : {}), ...(space ? { space } : {}), ...(partition ? { partition } : {}) }, 'counters', most, signal), ({ list, more: next }) => {
                list.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
                for (const c of list)
                    if (!began.has(keyOf(c)))
                        began.set(keyOf(c), BigInt(c.value));
                return list.length ? [tiles([{ label: 'Counters', value: count(list.length) + (next ? '+' : '') }, { label: 'Sum', value: count(list.reduce((n, c) => n + BigInt(c.value), 0n)) }]), rows([
                    { label: 'Counter', cell: (c) => c.id }, ...(list.some((c) => c.partition) ? [{ label: 'Partition', cell: (c) => c.partition }] : []), ...(list.some((c) => c.space !== undefined) ? [{ label: 'Namespace', cell: (c) => c.space || '(none)' }] : []),
                    { label: 'Value', num: true, cell: (c) => count(BigInt(c.value)) },
                    { label: 'Since you look', num: true, cell: (c) => { const d = BigInt(c.value) - began.get(keyOf(c)); return d ? h('span', { class: d > 0n ? 'good-text' : 'bad-text' }, (d > 0n ? '+' : '−') + count(d > 0n ? d : -d)) : '–'; } }], list, {
                    caption: 'Counters', keyOf, actions: (c) => [writes('Add…', () => add(c), { small: true, focus: 'a' + keyOf(c) }), writes('Set…', () => set(c), { small: true, focus: 's' + keyOf(c) }), writes('Delete…', () => remove(c), { small: true, danger: true, focus: 'd' + keyOf(c) })] }),
                more(next, () => { most += 1000; view.refresh(); })]
                    : nothing('No counters', prefix || space || partition ? 'None is like that.' : 'The first add makes one:', 'holdfast counter add visits');
            });
            return { ...view, actions: writes('Add to a counter…', () => add(null)) };
        } });
    },
};

/* As a method takes it: a number, or digits where a double has not enough of them. */
function whole(text) {
    if (!/^\s*[+-]?\d+\s*$/.test(text))
        throw new Error(`“${text}” is not a whole number.`);
    const n = BigInt(text.trim().replace(/^\+/, ''));
    if (n !== BigInt.asIntN(64, n))
        throw new Error(`${n} is beyond what a counter holds: from −2^63 to 2^63 − 1.`);
    return Number.isSafeInteger(Number(n)) ? Number(n) : String(n);
}
