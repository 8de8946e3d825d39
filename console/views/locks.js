/* views/locks.js: locks: who holds them, since when, with which fence; taking one away. */
import { fill, h } from '../lib/dom.js';
import { agoText, count, durationText, timeNode } from '../lib/time.js';
import { ask, badge, facts, filters, json, more, nothing, patternPage, rows, section, tiles, writes } from '../lib/panels.js';
import { all, plainItem } from '../lib/patterns.js';
import { dialog, toast } from '../lib/ui.js';
import { method } from '../lib/client.js';

const ms = (us) => Number(us || 0) / 1000;

/* By the clocks of the holder and of this machine, which may differ: so it is said, and not relied on. */
function heartbeat(holder) {
    const silent = Date.now() - ms(holder.renewed_us), lease = Number(holder.lease_ms);
    return silent > lease ? badge(`silent for ${durationText(silent)}`, 'bad') : badge('alive', 'good');
}

const brk = (table, lock, holder, then) => ask(`Break the lock ${lock.name}`, {
    text: `${holder ? holder.owner : lock.holders.length === 1 ? lock.holders[0].owner : `All ${lock.holders.length} holders`} lose${holder || lock.holders.length === 1 ? 's' : ''} it at once, and learn${holder || lock.holders.length === 1 ? 's' : ''} it with the next heartbeat. What runs until then is stopped by nothing but the fence ${lock.fence}: be sure that what the lock protects checks it, or that the holder is gone.`,
    typed: lock.name, verb: 'Break', run: async () => {
        const { broken } = await method('lock.break', { table, name: lock.name, ...(holder ? { id: holder.id } : {}) });
        toast(broken ? `The lock ${lock.name} is broken.` : `Nobody held ${lock.name} any more.`, 'good');
        then();
    } });

const holders = (table, lock, then) => rows([
    { label: 'Holder', cell: (x) => x.owner }, { label: 'Fence', num: true, cell: (x) => String(x.fence) }, { label: 'Since', cell: (x) => timeNode(ms(x.since_us), { relative: true }) },
    { label: 'Heartbeat', cell: (x) => [heartbeat(x), ' ', h('span.muted', agoText(ms(x.renewed_us)))] }, { label: 'Lease', num: true, cell: (x) => durationText(Number(x.lease_ms)) }], lock.holders, {
    caption: `Holders of ${lock.name}`, actions: (x) => writes('Break…', () => brk(table, lock, x, then), { small: true, danger: true }) });

export default {
    title: 'Locks',
    async open(root, params, ctx) {
        const free = ctx.query.free === '1', prefix = ctx.query.prefix || '';
        return patternPage(root, 'locks', ctx, { open: (body, table) => {
            const box = h('div.view');
            let most = 200;
            fill(body, filters('/locks', table, [['prefix', 'Name begins with', prefix], ['free', 'Free ones too', free, 'check']]), box);
            const view = section(box, (signal) => all('lock.list', { table, ...(prefix ? { prefix } : {}), free_too: true }, 'locks', most, signal), ({ list, more: next }) => {
                const held = list.filter((l) => l.holders?.length), shown = (free ? list : held).sort((a, b) => (a.name < b.name ? -1 : 1));
                const silent = held.flatMap((l) => l.holders).filter((x) => Date.now() - ms(x.renewed_us) > Number(x.lease_ms)).length;
                const detail = (lock) => dialog({ title: lock.name, wide: true, actions: [{ text: 'Close' }], body: [facts([['Mode', lock.mode || 'free'], ['Highest fence', String(lock.fence)]]),
                    lock.holders?.length ? holders(table, lock, () => view.refresh()) : h('p.muted', 'Nobody holds it.'), lock.data && Object.keys(lock.data).length && [h('h3', 'Data'), json(plainItem(lock.data))]] });
                return [tiles([{ label: 'Held', value: count(held.length) }, { label: 'Free', value: count(list.length - held.length) + (next ? '+' : ''), hint: 'held before' },
                    { label: 'Silent holders', value: count(silent), level: silent ? 'warn' : null, hint: 'longer than their lease' }]),
                shown.length ? [rows([
                    { label: 'Name', cell: (l) => l.name }, { label: 'Holder', wide: true, cell: (l) => (l.holders?.length ? l.holders.length > 1 ? `${l.holders[0].owner} and ${l.holders.length - 1} more` : l.holders[0].owner : h('span.muted', 'free')) },
                    { label: 'Mode', cell: (l) => l.mode || '–' }, { label: 'Fence', num: true, cell: (l) => String(l.fence) },
                    { label: 'Held for', num: true, cell: (l) => (l.holders?.length ? durationText(Math.max(0, Date.now() - Math.min(...l.holders.map((x) => ms(x.since_us))))) : '–') },
                    { label: 'Heartbeat', cell: (l) => (l.holders?.length ? heartbeat(l.holders.reduce((a, b) => (ms(a.renewed_us) > ms(b.renewed_us) ? a : b))) : h('span.muted', '–')) }], shown, {
                    caption: 'Locks', keyOf: (l) => l.name, open: detail,
                    actions: (l) => (l.holders?.length ? writes('Break…', () => brk(table, l, null, view.refresh), { small: true, danger: true, focus: 'b/' + l.name }) : null) }), more(next, () => { most += 1000; view.refresh(); })]
                    : nothing(prefix ? 'No lock begins like that' : free ? 'No lock was ever held' : 'No lock is held now', free || !list.length ? 'A program that runs while it holds one:' : `${count(list.length)} ${list.length === 1 ? 'was' : 'were'} held before. A program that runs while it holds one:`, 'holdfast lock run backup -- sleep 60')];
            });
            return view;
        } });
    },
};
