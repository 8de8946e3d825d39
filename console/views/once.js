/*
 * views/once.js: do-once records: what was done, by whom, with which result; forgetting one.
 *
 * Without a user the table is scanned, a page at a time (src/once/once_item.c has its layout).
 */
import { fill, h } from '../lib/dom.js';
import { count, durationText, timeNode } from '../lib/time.js';
import { ask, badge, facts, filters, json, more, nothing, patternPage, rows, section, tiles, writes } from '../lib/panels.js';
import { all, plainItem, shapeOf } from '../lib/patterns.js';
import { db, method } from '../lib/client.js';
import { dialog, toast } from '../lib/ui.js';

const us = (n) => (n === undefined ? undefined : Number(n) * 1000);

async function scan(table, prefix, most, signal) {
    const { hash, sort } = await shapeOf(table), list = [];
    for (let next; list.length < most;) {
        const page = await db('Scan', { TableName: table, Limit: 200, ...(next ? { ExclusiveStartKey: next } : {}) }, { signal });
        for (const raw of page.Items) {
            const item = plainItem(raw);
            if (item[hash] !== 'holdfast:table' && item.state && String(item[sort]).startsWith(prefix))
                list.push({ user: item[hash], key: item[sort], state: item.state, owner: item.owner, tries: item.tries, result: raw.result?.M, at_us: us(item.done_ms), until_us: us(item.until_ms),
                    began_us: us(item.began_ms), renewed_us: us(item.renewed_ms), timeout_ms: item.timeout_ms, attempt: item.attempt });
        }
        next = page.LastEvaluatedKey;
        if (!next)
            return { list, more: false };
    }
    return { list, more: true };
}

const LEVEL = { done: 'good', failed: 'bad', running: 'info' };
const ms = (n) => Number(n || 0) / 1000;
const silent = (r) => r.state === 'running' && r.renewed_us && Date.now() - ms(r.renewed_us) > Number(r.timeout_ms);

export default {
    title: 'Do-once',
    async open(root, params, ctx) {
        const { user = '', prefix = '', state = '' } = ctx.query;
        return patternPage(root, 'once', ctx, { open: (body, table) => {
            const box = h('div.view');
            let most = 200;
            fill(body, filters('/once', table, [['user', 'User', user], ['prefix', 'Key begins with', prefix], ['state', 'State', state, ['', 'running', 'done', 'failed']]]), box);
            const forget = (r) => ask(`Forget ${r.key}`, { text: `It can be done again, for the user ${r.user || '(none)'}.${r.state === 'running' ? ' The attempt that runs now loses it, and its result is refused.' : ''}`, typed: r.key, verb: 'Forget', run: async () => {
                const { cleared } = await method('once.clear', { table, user: r.user, key: r.key });
                toast(cleared ? `${r.key} is forgotten.` : `${r.key} was not there any more.`, 'good');
                view.refresh();
            } });
            const detail = (r) => dialog({ title: r.key, wide: true, actions: [{ text: 'Close' }], body: [facts([['User', r.user], ['State', badge(r.state, LEVEL[r.state])], ['Owner', r.owner], ['Attempts', r.tries ? String(r.tries) : null],
                ['Began', r.began_us ? timeNode(ms(r.began_us), { withMs: true }) : null], ['Last heartbeat', r.renewed_us ? timeNode(ms(r.renewed_us), { relative: true }) : null], ['Timeout', r.timeout_ms ? durationText(Number(r.timeout_ms)) : null],
                ['Completed', r.at_us ? timeNode(ms(r.at_us), { withMs: true }) : null], ['Took', r.at_us && r.began_us ? durationText(Math.max(0, ms(r.at_us) - ms(r.began_us))) : null], ['Kept until', r.until_us ? timeNode(ms(r.until_us)) : r.state === 'running' ? null : 'forever'], ['Attempt', r.attempt]]),
            h('h3', 'Result'), r.result && Object.keys(r.result).length ? json(plainItem(r.result)) : h('p.muted', 'none')] });
            const view = section(box, (signal) => (user ? all('once.list', { table, user, ...(prefix ? { prefix } : {}) }, 'records', most, signal) : scan(table, prefix, most, signal)), ({ list, more: next }) => {
                const n = (s) => list.filter((r) => r.state === s).length, shown = list.filter((r) => !state || r.state === state), plus = next ? '+' : '';
                shown.sort((a, b) => ms(b.at_us || b.began_us) - ms(a.at_us || a.began_us));
                return [tiles([{ label: 'Done', value: count(n('done')) + plus }, { label: 'Running', value: count(n('running')) + plus, hint: list.some(silent) ? `${list.filter(silent).length} silent beyond the timeout` : null, level: list.some(silent) ? 'warn' : null },
                    { label: 'Failed', value: count(n('failed')) + plus, level: n('failed') ? 'bad' : null }]),
                shown.length ? [rows([{ label: 'Key', cell: (r) => r.key }, { label: 'User', cell: (r) => r.user }, { label: 'State', cell: (r) => (silent(r) ? badge('running, silent', 'warn') : badge(r.state, LEVEL[r.state])) },
                    { label: 'Result', wide: true, cell: (r) => h('span.mono', r.result ? JSON.stringify(plainItem(r.result)).slice(0, 120) : '–') },
                    { label: 'When', cell: (r) => timeNode(ms(r.at_us || r.began_us), { relative: true }) }, { label: 'Owner', cell: (r) => r.owner || '–' }], shown, {
                    caption: 'Do-once records', keyOf: (r) => `${r.user} ${r.key}`, open: detail, actions: (r) => writes('Forget…', () => forget(r), { small: true, danger: true, focus: `f${r.user} ${r.key}` }) }), more(next, () => { most += 1000; view.refresh(); })]
                    : nothing('No records', user || prefix || state ? 'None is like that.' : 'Something that is done once, however often it is started:', 'holdfast once run invoices-2026-11 -- echo done')];
            });
            return view;
        } });
    },
};
