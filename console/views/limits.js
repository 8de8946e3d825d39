/*
 * views/limits.js: limits: what was counted, lockouts; peek, count one, refund, reset.
 *
 * What a limit allows is said by who asks, not by the table: so the page shows what is counted, and
 * peeks with a rule that you give. src/limit/limit_item.c has the layout of the items.
 */
import { fill, h } from '../lib/dom.js';
import { clockText, count, durationText, timeNode } from '../lib/time.js';
import { ask, badge, facts, filters, more, nothing, patternPage, rows, section, tiles, writes } from '../lib/panels.js';
import { plainItem, shapeOf } from '../lib/patterns.js';
import { db, method } from '../lib/client.js';
import { dialog, toast } from '../lib/ui.js';

const KINDS = [['attempts', 'attempts in a window'], ['fixed', 'fixed windows'], ['sliding', 'sliding window'], ['rate', 'rate']];

async function scan(table, prefix, most, signal) {
    const { hash } = await shapeOf(table), list = [];
    for (let next; list.length < most;) {
        const page = await db('Scan', { TableName: table, Limit: 200, ...(next ? { ExclusiveStartKey: next } : {}) }, { signal });
        for (const item of page.Items.map(plainItem))
            if (item[hash] !== 'holdfast:table' && item.version !== undefined && String(item[hash]).startsWith(prefix))
                list.push({ ...item, name: item[hash], kind: item.tat_us !== undefined ? 'rate' : item.head !== undefined ? 'sliding' : 'window' });
        next = page.LastEvaluatedKey;
        if (!next)
            return { list, next: false };
    }
    return { list, next: true };
}

const counted = (l) => (l.kind === 'window' ? Number(l.count) : l.kind === 'sliding' ? Number(l.sum) : null);
const locked = (l) => Number(l.locked_ms || 0) > Date.now();

/* "15m" -> ms */
export function milliseconds(text) {
    const found = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*$/.exec(text);
    if (!found)
        throw new Error(`“${text}” is not a time such as 30s, 15m or 1h.`);
    return Math.round(Number(found[1]) * { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 }[found[2] || 's']);
}

let rule = { kind: 'attempts', limit: '5', window: '15m', lockout: '' }; /* as it was given last */
const ruleOf = (v) => ({ kind: v.kind, limit: Number(v.limit), window_ms: milliseconds(v.window), ...(v.lockout ? { lockout_ms: milliseconds(v.lockout) } : {}) });

function verdict(v) {
    return facts([['Allowed', v.allowed ? badge('yes', 'good') : badge(v.locked ? 'no, locked out' : 'no', 'bad')], ['Used', count(Number(v.used || 0))], ['Left', count(Number(v.left || 0))],
        ['Allowed again in', v.retry_ms ? durationText(Number(v.retry_ms)) : null], ['All of it again in', v.reset_ms ? durationText(Number(v.reset_ms)) : null], ['Lockouts in a row', v.lockouts ? String(v.lockouts) : null]]);
}

export default {
    title: 'Limits',
    async open(root, params, ctx) {
        const { prefix = '' } = ctx.query;
        return patternPage(root, 'limits', ctx, { open: (body, table) => {
            const box = h('div.view');
            let most = 200;
            fill(body, filters('/limits', table, [['prefix', 'Name begins with', prefix]]), box);
            const withRule = (title, verb, name, run, text) => ask(title, { text, verb, fields: [...(name ? [] : [{ name: 'name', label: 'Name', required: true }]), { name: 'kind', label: 'Kind', type: 'choice', value: rule.kind, choices: KINDS },
                { name: 'limit', label: 'How many', type: 'number', value: rule.limit, required: true }, { name: 'window', label: 'In which time', value: rule.window, required: true, hint: 'Such as 30s, 15m, 1h.' },
                { name: 'lockout', label: 'Lockout', value: rule.lockout, hint: 'Of attempts and fixed windows; empty: none.' }], run: async (v) => {
                rule = v;
                await run(name || v.name, ruleOf(v));
            } });
            const peek = (name) => withRule(name ? `Peek at ${name}` : 'Peek at a limit', 'Peek', name, async (of, with_) => {
                const v = await method('limit.peek', { table, name: of, rule: with_ });
                dialog({ title: of, actions: [{ text: 'Close' }], body: [verdict(v), h('p.muted', 'Nothing was counted.')] });
            }, 'Would one be allowed by this rule? Nothing is counted.');
            const take = (name) => withRule(`Count one for ${name}`, 'Count', name, async (of, with_) => {
                const v = await method('limit.take', { table, name: of, rule: with_ });
                view.refresh();
                dialog({ title: of, actions: [{ text: 'Close' }, v.allowed && { text: 'Refund it', run: async () => {
                    await method('limit.refund', { table, name: of, rule: with_, verdict: { allowed: true, id: v.id, window: v.window, cost: v.cost, at_us: v.at_us, used: v.used } });
                    toast('Refunded: it does not count.', 'good');
                    view.refresh();
                } }].filter(Boolean), body: [verdict(v), h('p.muted', v.allowed ? 'It was counted. It can be refunded once, as long as its window lasts.' : 'Nothing was counted.')] });
            }, 'As a program with this rule would ask.');
            const reset = (l) => ask(`Reset ${l.name}`, { text: 'What was counted is forgotten, lockouts too.', typed: l.name, verb: 'Reset', run: async () => {
                await method('limit.clear', { table, name: l.name });
                toast(`${l.name} is reset.`, 'good');
                view.refresh();
            } });
            const view = section(box, (signal) => scan(table, prefix, most, signal), ({ list, next }) => {
                list.sort((a, b) => locked(b) - locked(a) || (counted(b) || 0) - (counted(a) || 0));
                const out = list.filter(locked).length;
                return [tiles([{ label: 'Names', value: count(list.length) + (next ? '+' : '') }, { label: 'Locked out', value: count(out), level: out ? 'warn' : null }]),
                    list.length ? [rows([{ label: 'Name', cell: (l) => l.name }, { label: 'Kind', cell: (l) => l.kind }, { label: 'Counted', num: true, cell: (l) => (l.kind === 'rate' ? '–' : count(counted(l))) },
                        { label: 'Began', cell: (l) => (locked(l) ? 'after the lockout' : l.start_ms ? timeNode(Number(l.start_ms), { relative: true }) : l.kind === 'rate' ? ['next at ', timeNode(Number(l.tat_us) / 1000, { relative: true })] : l.width_ms ? `slices of ${durationText(Number(l.width_ms))}` : '–') },
                        { label: 'Lockout', cell: (l) => (locked(l) ? badge(`until ${clockText(Number(l.locked_ms))}`, 'bad') : l.lockouts ? `${l.lockouts} before` : '–') },
                        { label: 'Refunds', num: true, cell: (l) => count(Object.keys(l.refunds || {}).length) }], list, { caption: 'Limits', keyOf: (l) => l.name,
                        actions: (l) => [h('button.small', { type: 'button', onclick: () => peek(l.name), 'data-focus': 'p' + l.name }, 'Peek…'), writes('Count one…', () => take(l.name), { small: true, focus: 'c' + l.name }), writes('Reset…', () => reset(l), { small: true, danger: true, focus: 'r' + l.name })] }), more(next, () => { most += 1000; view.refresh(); })]
                        : nothing('Nothing was counted', prefix ? 'No name begins like that.' : 'Five attempts in 15 minutes:', 'holdfast limit check login/ann --limit 5 --window 15m')];
            });
            return { ...view, actions: h('button', { type: 'button', onclick: () => peek() }, 'Peek…') };
        } });
    },
};
