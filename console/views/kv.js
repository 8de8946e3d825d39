/* views/kv.js: keys and values: browsing by namespace and prefix, editing, sets. */
import { fill, h } from '../lib/dom.js';
import { count, timeNode } from '../lib/time.js';
import { ask, badge, facts, filters, json, more, nothing, patternPage, rows, section, writes } from '../lib/panels.js';
import { all, has, many, partitioned } from '../lib/patterns.js';
import { cellText, fromPlain, typedText, valueProblem } from '../lib/values.js';
import { method } from '../lib/client.js';
import { dialog, toast } from '../lib/ui.js';

const keyArgs = (table, e) => ({ table, ...(e.partition !== undefined ? { partition: e.partition } : {}), ...(e.space !== undefined ? { space: e.space } : {}), id: e.id });
const keyText = (e) => [e.partition, e.space, e.id].filter(Boolean).join(' / ');

/* What was typed: typed JSON such as {"S": "x"}, or plain JSON, or a text that is none. */
export function valueOf(text) {
    let value;
    try {
        value = JSON.parse(text);
    } catch {
        return { S: text };
    }
    return value && typeof value === 'object' && !valueProblem(value) ? value : fromPlain(text);
}

export default {
    title: 'Keys and values',
    async open(root, params, ctx) {
        const { prefix = '', space = '', partition = '' } = ctx.query;
        return patternPage(root, 'values', ctx, { open: (body, table) => {
            const box = h('div.view');
            let most = 100;
            fill(body, filters('/kv', table, [['space', 'Namespace', space], ['prefix', 'Id begins with', prefix], ['partition', 'Partition', partition]]), box);
            const left = (e) => (e?.expires_s ? Math.max(1, Number(e.expires_s) - Math.ceil(Date.now() / 1000)) : ''); /* as kv.set counts: whole seconds from the next one */
            const edit = (e, ttl = String(left(e))) => ask(e ? `Change ${e.id}` : 'Set a key', { wide: true, verb: 'Set', text: e ? 'It is refused if somebody else changed it meanwhile.' : null, fields: [
                ...(e ? [] : [{ name: 'id', label: 'Id', required: true }, { name: 'space', label: 'Namespace', value: space, hint: 'Empty: that of the table, global.' }, ...(partition ? [{ name: 'partition', label: 'Partition', value: partition }] : [])]),
                { name: 'value', label: 'Value', type: 'area', rows: 10, value: e ? typedText(e.value) : '', hint: 'Typed, as {"S": "text"} or {"SS": ["a", "b"]}; or plain JSON; or any text.' },
                { name: 'ttl', label: 'Expires after (seconds)', type: 'number', value: ttl, hint: `Empty: never.${ttl && ' Untouched: when it expires now.'}` }], run: async (v) => {
                const seconds = v.ttl === ttl ? left(e) : v.ttl.trim();
                if (seconds !== '' && !(Number(seconds) > 0))
                    throw new Error(`“${seconds}” is not a number of seconds.`);
                const key = e ? keyArgs(table, e) : keyArgs(table, { id: v.id, space: v.space || undefined, partition: v.partition });
                await method('kv.set', { ...key, value: valueOf(v.value), ...(seconds === '' ? {} : { ttl_s: Math.max(1, Math.round(Number(seconds))) }), ...(e ? e.version ? { if_version: e.version } : {} : { if_absent: true }) });
                toast(`${key.id} is set.`, 'good');
                view.refresh();
            } });
            const remove = (e) => ask(`Delete ${e.id}`, { typed: e.id, verb: 'Delete', text: 'Refused if somebody else changed it meanwhile.', run: async () => {
                await method('kv.delete', { ...keyArgs(table, e), ...(e.version ? { if_version: e.version } : {}) });
                view.refresh();
            } });
            const element = (e, name) => ask(name === 'set.add' ? `Add to ${e.id}` : `Remove from ${e.id}`, { verb: name === 'set.add' ? 'Add' : 'Remove', fields: [{ name: 'value', label: 'Element', required: true, hint: 'JSON, or any text.' }], run: async (v) => {
                const change = await method(name, { ...keyArgs(table, e), elements: [valueOf(v.value)] });
                toast(Number(change.added) || Number(change.removed) ? `It has ${many(Number(change.len), 'element')} now.` : 'Nothing changed.', 'good');
                view.refresh();
            } });
            const detail = (e) => {
                const isSet = e.value.L && has('set.add');
                dialog({ title: e.id, wide: true, actions: [{ text: 'Close' }], body: [facts([['Namespace', e.space], ['Partition', e.partition], ['Version', e.version], ['Expires', e.expires_s ? timeNode(Number(e.expires_s) * 1000) : 'never']]),
                    json(typedText(e.value)), isSet && h('div.bar', writes('Add an element…', () => element(e, 'set.add')), writes('Remove an element…', () => element(e, 'set.remove')))] });
            };
            const view = section(box, async (signal) => all('kv.list', { table, ...await partitioned(table), ...(space ? { space } : { all_spaces: true }), ...(prefix ? { prefix } : {}), ...(partition ? { partition } : {}) }, 'entries', most, signal), ({ list, more: next }) => (list.length ? [h('p.muted', many(list.length, 'key', next)), rows([
                { label: 'Id', cell: (e) => e.id }, ...(list.some((e) => e.partition) ? [{ label: 'Partition', cell: (e) => e.partition }] : []), { label: 'Namespace', cell: (e) => e.space || '(none)' },
                { label: 'Value', wide: true, cell: (e) => h('span.mono', cellText(e.value, 100)) }, { label: 'Type', cell: (e) => badge(Object.keys(e.value)[0]) },
                { label: 'Expires', cell: (e) => (e.expires_s ? timeNode(Number(e.expires_s) * 1000, { relative: true }) : '–') }], list, { caption: 'Keys', keyOf: keyText, open: detail,
                actions: (e) => [writes('Change…', () => edit(e), { small: true, focus: 'e' + keyText(e) }), writes('Delete…', () => remove(e), { small: true, danger: true, focus: 'd' + keyText(e) })] }), more(next, () => { most += 500; view.refresh(); })]
                : nothing('No keys', space || prefix || partition ? 'None is like that.' : 'A value with a time to live:', 'holdfast kv set motd "Back at noon" --ttl 1h')));
            return { ...view, actions: writes('Set a key…', () => edit(null)) };
        } });
    },
};
