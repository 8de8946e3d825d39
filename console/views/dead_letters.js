/* views/dead_letters.js: dead letters of an outbox, by cause: look, retry, edit and resend, discard. */
import { fill, h } from '../lib/dom.js';
import { method } from '../lib/client.js';
import { count, many, timeNode } from '../lib/time.js';
import { href } from '../lib/router.js';
import { ask, inParts, nothing, panel, rows, section, writes } from '../lib/panels.js';
import { toast } from '../lib/ui.js';
import { emitForm, eventColumns, ms, showEvent } from './outbox.js';

const PART = 100; /* events of one call of a long action */

export function deadLetters(body, table, query) {
    const groups = h('div.view'), letters = h('div.view'), chosen = new Set();
    const filter = { ...(query.cause ? { cause: query.cause } : {}), ...(query.type ? { type: query.type } : {}) };
    const what = query.cause ? `with the cause “${query.cause}”` : query.type ? `of type ${query.type}` : 'of this outbox';
    let limit = 50, total = 0;
    fill(body, groups, letters);

    const all = (name, title, said) => inParts(title, total, async (signal) => Number((await method(name, { table, ...filter, limit: PART }, { signal })).done), said);
    const discardAll = () => ask('Discard all of them', { text: `All dead letters ${what} are deleted for good. They are never delivered.`, typed: table, verb: 'Discard all',
        run: async () => { all('outbox.discard_all', `Discard dead letters of ${table}`, (n) => `${count(n)} discarded`); } });
    const ids = () => [...chosen];
    const some = (name, said) => async () => {
        const { done } = await method(name, { table, ids: ids() });
        chosen.clear();
        toast(`${count(Number(done))} ${said}`, 'good');
        list.refresh();
        causes.refresh();
    };
    const resend = (event) => emitForm(table, event, { title: 'Edit and resend', verb: 'Resend',
        text: 'A copy is emitted with a new id, and the dead letter is discarded then. If its order key has events that wait, the copy comes after them.',
        after: async () => {
            await method('outbox.discard', { table, ids: [event.ref || event.id] }).catch((problem) => {
                throw new Error(`The copy is emitted, but the dead letter could not be discarded: ${problem.message.replace(/\.$/, '')}. Resend only discards it now.`);
            });
            toast('Resent; the dead letter is discarded.', 'good');
            list.refresh();
        } });

    const causes = section(groups, (signal) => method('outbox.stats', { table, limit: 100000 }, { signal }), (stats) => {
        const list = stats.causes || [], sum = Number(stats.failed || 0);
        total = query.cause ? Number(list.find((c) => c.cause === query.cause)?.count || 0) : query.type ? 0 : sum;
        return sum ? panel(`By cause`, rows([
            { label: 'Cause', wide: true, cell: (c) => h('a', { href: href('/outbox', { table, tab: 'failed', cause: c.cause }), 'aria-current': query.cause === c.cause ? 'true' : null, 'data-focus': 'c' + c.cause }, c.cause || '(none)') },
            { label: 'Dead letters', num: true, cell: (c) => count(Number(c.count)) },
            { label: 'For example', wide: true, cell: (c) => c.example }], list, { caption: 'Causes' }),
        query.cause || query.type ? h('p', h('a', { href: href('/outbox', { table, tab: 'failed' }) }, 'All causes')) : null) : null;
    });

    const list = section(letters, (signal) => method('outbox.failed', { table, ...filter, limit }, { signal }), (page) => {
        const events = page.events || [], bar = h('div.bar', { role: 'group', 'aria-label': 'Actions for dead letters' });
        [...chosen].filter((id) => !events.some((e) => (e.ref || e.id) === id)).forEach((id) => chosen.delete(id));
        const show = () => fill(bar, chosen.size ? [h('span', `${count(chosen.size)} selected`), writes('Retry', () => some('outbox.retry', 'wait to be delivered again')(), { focus: 'retry', primary: true }),
            writes('Discard…', () => ask(`Discard ${many(chosen.size, 'dead letter')}`, { text: 'They are deleted for good, and never delivered.', typed: String(chosen.size), verb: 'Discard', run: some('outbox.discard', 'discarded') }), { focus: 'discard', danger: true })]
            : [writes(`Retry all${query.cause ? ' of this cause' : ''}`, () => all('outbox.retry_all', `Retry dead letters of ${table}`, (n) => `${count(n)} wait to be delivered again`), { focus: 'retry-all' }),
                writes(`Discard all${query.cause ? ' of this cause' : ''}…`, discardAll, { focus: 'discard-all', danger: true })]);
        if (!events.length)
            return nothing('No dead letters', query.cause || query.type ? `None ${what}.` : 'An event becomes one when all its attempts failed. Relays keep it here until somebody decides.');
        const node = [bar, rows([eventColumns[0], eventColumns[1], { label: 'Error', wide: true, cell: (e) => e.error_text || e.cause || '' },
            { label: 'Attempts', num: true, cell: (e) => count(Number(e.attempts || 0)) }, { label: 'Failed', cell: (e) => timeNode(ms(e.ended_us || e.tried_us), { relative: true }) }], events, {
            caption: 'Dead letters', keyOf: (e) => e.ref || e.id, select: chosen, onSelect: show, open: showEvent,
            actions: (e) => [writes('Retry', async () => {
                await method('outbox.retry', { table, ids: [e.ref || e.id] });
                toast('It waits to be delivered again.', 'good');
                list.refresh();
            }, { small: true, focus: 'r' + e.ref }), writes('Edit…', () => resend(e), { small: true, focus: 'e' + e.ref })] }),
        h('p.muted', `${count(events.length)} shown`, page.next ? [', and more. ', h('button.small', { 'data-focus': 'more', onclick: () => { limit += 200; list.refresh(); } }, 'Show more')] : '')];
        return node;
    });
    return { refresh: () => { causes.refresh(); list.refresh(); }, close: () => { causes.close(); list.close(); } };
}

