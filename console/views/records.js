/* views/records.js: records that are processed once: how far, what failed and why, retrying. */
import { fill, h } from '../lib/dom.js';
import { count, many, timeNode } from '../lib/time.js';
import { ask, badge, bar, facts, inParts, json, more, nothing, patternPage, rows, section, tiles, writes } from '../lib/panels.js';
import { all, plainItem } from '../lib/patterns.js';
import { method } from '../lib/client.js';
import { dialog, toast } from '../lib/ui.js';

const TABS = [['unprocessed', 'Unprocessed'], ['failed', 'Failed'], ['processed', 'Processed']], MOST = 5000;
const LEVEL = { unprocessed: 'info', processed: 'good', failed: 'bad' };
const key = (r) => ({ account: r.account, run_time: r.run_time });

/* The number of processed ones needs an index that most tables do not have; then it is unknown. */
const counted = (table, state, signal) => method('records.count', { table, state }, { signal }).then((r) => Number(r.count), (error) => {
    if (state === 'processed')
        return null;
    throw error;
});

export default {
    title: 'Records',
    async open(root, params, ctx) {
        const tab = ctx.query.tab || 'unprocessed', chosen = new Set();
        return patternPage(root, 'records', ctx, { tabs: TABS, tab, open: (body, table) => {
            let most = 100, began = null;
            const one = (name, said) => async (r) => {
                await method(name, { table, ...key(r) });
                toast(`${r.account} ${r.run_time} ${said}.`, 'good');
                view.refresh();
            };
            const retry = one('records.reset', 'is unprocessed again'), mark = one('records.mark', 'counts as processed');
            const remove = (r) => ask(`Delete a record of ${r.account}`, { text: `The record of ${r.run_time} is deleted with all its attributes.`, typed: r.account, verb: 'Delete', run: () => one('records.delete', 'is deleted')(r) });
            const view = section(body, async (signal) => {
                const [page, waiting, failed, processed] = await Promise.all([all('records.list', { table, state: tab }, 'records', most, signal), ...['unprocessed', 'failed', 'processed'].map((s) => counted(table, s, signal))]);
                began ??= { waiting, at: performance.now() };
                return { ...page, waiting, failed, processed };
            }, ({ list, more: next, waiting, failed, processed }) => {
                const done = began.waiting - waiting, seconds = (performance.now() - began.at) / 1000, working = list.filter((r) => r.owner && tab === 'unprocessed').length;
                const tools = h('div.bar'), byId = new Map(list.map((r) => [`${r.account} ${r.run_time}`, r]));
                const show = () => fill(tools, chosen.size ? [h('span', `${count(chosen.size)} selected`), writes('Process again', () => {
                    const some = [...chosen].map((id) => byId.get(id)).filter(Boolean);
                    chosen.clear();
                    inParts('Process records again', some.length, async () => {
                        const r = some.pop();
                        return r ? (await method('records.reset', { table, ...key(r) }), 1) : 0;
                    }, (n) => `${many(n, 'record')} ${n === 1 ? 'is' : 'are'} unprocessed again`).then(view.refresh);
                }, { primary: true, focus: 'retry' })] : writes('Process all failed ones again', () => inParts('Process failed records again', failed, async (signal) => Number((await method('records.retry_failed', { table, limit: 100 }, { signal })).count),
                    (n) => `${many(n, 'record')} ${n === 1 ? 'is' : 'are'} unprocessed again`).then(view.refresh), { focus: 'retry-all' }));
                const detail = (r) => dialog({ title: `${r.account} ${r.run_time}`, wide: true, actions: [{ text: 'Close' }], body: [facts([['State', badge(r.state, LEVEL[r.state])], ['Attempts', r.attempts ? String(r.attempts) : null], ['Failures', r.failures ? String(r.failures) : null],
                    ['Owner', r.owner], ['Fence', String(r.fence ?? '')], ['Error', r.error_text ? `${r.error || ''} ${r.error_text}` : null], ['Done by', r.done_by]]), h('h3', 'Item'), json(plainItem(r.item || {}))] });
                return [tiles([{ label: 'Unprocessed', value: count(waiting), hint: done > 0 ? `${(done / Math.max(1, seconds)).toFixed(1)} a second since you look` : done < 0 ? 'growing' : null }, { label: 'Being worked on', value: count(working), hint: next ? `of the first ${count(list.length)}` : null },
                    { label: 'Failed', value: count(failed), level: failed ? 'bad' : null }, { label: 'Processed', value: processed === null ? 'not counted' : count(processed), hint: processed === null ? 'needs index_processed' : null }]),
                processed !== null || done > 0 ? h('label.progress', 'Progress ', bar(processed ?? done, (processed ?? done) + waiting, 'processed')) : null,
                list.length ? [tab === 'failed' ? tools : null, tab === 'failed' ? (show(), null) : null, rows([{ label: 'Account', cell: (r) => r.account }, { label: 'Run time', cell: (r) => r.run_time },
                    { label: 'State', cell: (r) => (r.owner && r.state === 'unprocessed' ? badge('in work: ' + r.owner, 'info') : badge(r.state, LEVEL[r.state])) }, { label: 'Attempts', num: true, cell: (r) => count(Number(r.attempts || 0)) },
                    { label: 'Error', wide: true, cell: (r) => r.error_text || '–' }, { label: 'Updated', cell: (r) => { const at = Date.parse(r.item?.UpdatedAt?.S || ''); return at ? timeNode(at, { relative: true }) : '–'; } }], list, { caption: 'Records', keyOf: (r) => `${r.account} ${r.run_time}`,
                    select: tab === 'failed' ? chosen : null, onSelect: show, open: detail, actions: (r) => [tab !== 'unprocessed' && writes('Process again', () => retry(r), { small: true, focus: 'r' + r.account + r.run_time }), tab !== 'processed' && writes('Mark done', () => mark(r), { small: true }), writes('Delete…', () => remove(r), { small: true, danger: true })] }),
                more(next && list.length < MOST, () => { most += 500; view.refresh(); })]
                    : nothing(tab === 'failed' ? 'Nothing failed' : tab === 'processed' ? 'Nothing is processed yet' : 'Nothing waits', tab === 'unprocessed' ? 'A record that waits to be processed:' : null, tab === 'unprocessed' ? 'holdfast records put \'{"AccountId":"A1","RunTime":"2026-11-19T12:00:00Z"}\'' : null)];
            });
            return view;
        } });
    },
};
