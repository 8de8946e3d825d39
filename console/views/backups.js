/* views/backups.js: backups on a time line, making them, restoring from them. */
import { add, fill, h, svg } from '../lib/dom.js';
import { tableNames } from '../lib/client.js';
import { go, href } from '../lib/router.js';
import { grid } from '../lib/table.js';
import { bytesText, count, timeNode, timeText } from '../lib/time.js';
import { badge, button, confirm, dialog, empty, field, load, select, toast, writeButton } from '../lib/ui.js';

export function createBackup(ctx, table, done) {
    const name = h('input', { type: 'text', required: true, minlength: 3, maxlength: 255, pattern: '[A-Za-z0-9_.\\-]+', value: `${table}-${new Date().toISOString().slice(0, 16).replace(/[:T]/g, '-')}` });
    return dialog({ title: `Back up ${table}`, body: field('Name', name, '3 to 255 letters, digits, dots, hyphens and underscores'), actions: [{ text: 'Cancel' }, { text: 'Back up', kind: 'primary', run: async () => {
        await ctx.db('CreateBackup', { TableName: table, BackupName: name.value });
        toast(`Backup ${name.value} is being made.`, 'good');
        done?.();
    } }] });
}

function restore(ctx, backup) {
    const name = h('input', { type: 'text', required: true, minlength: 3, maxlength: 255, pattern: '[A-Za-z0-9_.\\-]+', value: `${backup.TableName}-restored` });
    return dialog({ title: `Restore ${backup.BackupName}`, body: [h('p', 'The items of ', h('code', backup.TableName), ' as they were at ', timeText(backup.BackupCreationDateTime * 1000), ', as a new table. The table that is there now does not change.'), field('Name of the new table', name)],
        actions: [{ text: 'Cancel' }, { text: 'Restore', kind: 'primary', run: async () => {
            await ctx.db('RestoreTableFromBackup', { BackupArn: backup.BackupArn, TargetTableName: name.value });
            toast(`${name.value} is being restored.`, 'good');
            go('/tables', name.value);
        } }] });
}

/* A line for each table, a dot for each backup. */
function timeline(backups, choose) {
    const tables = [...new Set(backups.map((b) => b.TableName))].slice(0, 30), times = backups.map((b) => b.BackupCreationDateTime * 1000);
    const from = Math.min(...times), to = Math.max(Date.now(), ...times), H = 28, W = 1000, left = 0;
    const x = (t) => left + 12 + (W - left - 24) * (to === from ? 1 : (t - from) / (to - from));
    return h('div.timeline', tables.map((table) => h('div.lane', h('span.lane-name', table),
        h('div.lane-line', svg('svg', { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('line.rule', { x1: 0, x2: W, y1: H / 2, y2: H / 2 })),
            backups.filter((b) => b.TableName === table).map((b) => h('button.dot-button', { type: 'button', style: { left: `${x(b.BackupCreationDateTime * 1000) / 10}%` }, title: `${b.BackupName}, ${timeText(b.BackupCreationDateTime * 1000)}`,
                'aria-label': `Restore ${b.BackupName} of ${timeText(b.BackupCreationDateTime * 1000)}`, onclick: () => choose(b) }))))),
    h('div.lane', h('span.lane-name'), h('div.lane-ends', timeNode(from), timeNode(to))));
}

export default {
    title: 'Backups',
    async open(root, params, ctx) {
        const place = h('div.view'), line = h('div');
        let all = [], timer = 0;
        const table = grid({ label: 'Backups', name: 'backups', key: (b) => b.BackupArn, columns: [
            { id: 'name', title: 'Name', cell: (b) => b.BackupName, sort: (b) => b.BackupName },
            { id: 'table', title: 'Table', cell: (b) => h('a', { href: href('/tables', b.TableName) }, b.TableName), sort: (b) => b.TableName },
            { id: 'when', title: 'Made', cell: (b) => timeNode(b.BackupCreationDateTime * 1000), sort: (b) => b.BackupCreationDateTime },
            { id: 'ago', title: 'Age', cell: (b) => timeNode(b.BackupCreationDateTime * 1000, { relative: true }) },
            { id: 'size', title: 'Size', right: true, cell: (b) => bytesText(b.BackupSizeBytes), sort: (b) => b.BackupSizeBytes },
            { id: 'state', title: 'State', cell: (b) => badge(b.BackupStatus.toLowerCase(), b.BackupStatus === 'AVAILABLE' ? 'good' : 'warn') },
            { id: 'act', title: '', cell: (b) => h('span.actions', writeButton('Restore…', () => restore(ctx, b), { class: 'small' }), writeButton('Delete…', () => remove(b), { class: 'small danger' })) },
        ] });
        async function remove(b) {
            if (await confirm({ title: 'Delete this backup?', text: `The state of ${b.TableName} at ${timeText(b.BackupCreationDateTime * 1000)} cannot be restored then.`, typed: b.BackupName, run: () => ctx.db('DeleteBackup', { BackupArn: b.BackupArn }) }))
                reload();
        }
        const reload = () => load(place, async () => {
            all = [];
            for (let from; ;) {
                const page = await ctx.db('ListBackups', { ...(params.table ? { TableName: params.table } : {}), ...(from ? { ExclusiveStartBackupArn: from } : {}) });
                all.push(...page.BackupSummaries);
                if (!(from = page.LastEvaluatedBackupArn))
                    break;
            }
            all.sort((a, b) => b.BackupCreationDateTime - a.BackupCreationDateTime);
            clearTimeout(timer);
            if (all.some((b) => b.BackupStatus === 'CREATING')) /* only while one is being made */
                timer = setTimeout(reload, 1000);
            if (!all.length)
                return empty('No backups yet', 'A backup keeps a table as it is now, and is restored as a new table.', make());
            fill(line, timeline(all, (b) => !ctx.readOnly && restore(ctx, b)));
            table.setRows(all, false, `${count(all.length)} ${all.length === 1 ? 'backup' : 'backups'}`);
            return [line, table.node];
        }, { signal: ctx.signal });
        const make = () => writeButton('Back up a table…', async () => {
            if (params.table)
                return createBackup(ctx, params.table, reload);
            let name = null;
            const names = await tableNames({ signal: ctx.signal });
            if (await dialog({ title: 'Back up a table', body: names.length ? field('Table', select(names, name = names[0], (v) => { name = v; })) : 'There is no table.', actions: [{ text: 'Cancel' }, { text: 'Next', kind: 'primary', value: true, disabled: !names.length }] }))
                createBackup(ctx, name, reload);
        }, { class: 'primary' });
        ctx.head({ title: params.table ? `Backups of ${params.table}` : 'Backups', actions: [params.table && button('All tables', () => go('/backups')), make()] });
        add(root, place);
        await reload();
        ctx.on('back', reload);
        return () => clearTimeout(timer);
    },
};
