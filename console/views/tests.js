/* views/tests.js: for tests of programs: the clock of the database, faults, snapshots, maintenance now. */
import { fill, h } from '../lib/dom.js';
import { bytesText, count, durationText, many, timeNode } from '../lib/time.js';
import { ask, badge, code, facts, nothing, panel, rows, section, writes } from '../lib/panels.js';
import { milliseconds } from './limits.js';
import { job, toast, toastProblem } from '../lib/ui.js';

const KINDS = [['throttle', 'throttle: refused, too many requests'], ['conflict', 'conflict: a transaction is canceled'], ['unprocessed', 'unprocessed: a part of a batch is left'], ['error', 'error: an internal error, nothing happened'],
    ['lost_answer', 'lost_answer: it happened, and the answer says that it failed'], ['latency', 'latency: it takes longer'], ['lost_request', 'lost_request: it never arrived']];
const OPERATIONS = ['', 'GetItem', 'PutItem', 'UpdateItem', 'DeleteItem', 'Query', 'Scan', 'BatchGetItem', 'BatchWriteItem', 'TransactGetItems', 'TransactWriteItems', 'ExecuteStatement', 'BatchExecuteStatement', 'ExecuteTransaction', 'GetRecords', 'GetShardIterator', 'DescribeTable', 'CreateTable', 'DeleteTable', 'UpdateTable', 'ListTables'];

const faultText = (f) => [f.operation || 'every operation', f.table ? `on ${f.table}` : '', f.probability ? `with probability ${f.probability}` : '', f.skip ? `after ${f.skip}` : '', f.count ? `at most ${f.count} times` : '', f.latency_ms ? `${f.latency_ms} ms` : ''].filter(Boolean).join(', ');

export default {
    title: 'For tests',
    async open(root, params, ctx) {
        ctx.head({ title: 'For tests' });
        if (!ctx.info.admin) {
            fill(root, nothing('This server has no clock, faults and snapshots to set', ctx.info.database?.kind === 'remote' ? 'The database is remote: these belong to a server of your own. Start one for tests, with --admin, and open its console:'
                : 'Everybody who reaches a server could move its clock and replace its data. So a server offers this only if it is started with --admin. For a test, one in memory:', 'holdfast serve --in-memory --admin --port 0'));
            return null;
        }
        const send = (method, path, body) => ctx.api('/_holdfast/' + path, body, { method });
        const doing = (fn) => async () => {
            try {
                await fn();
            } catch (problem) {
                toastProblem(problem);
            }
        };
        const clockBox = h('div.view'), faultBox = h('div.view'), snapBox = h('div.view'), workBox = h('div.view');
        fill(root, panel('Clock', clockBox), panel('Faults', faultBox), panel('Snapshots', snapBox), panel('Maintenance', workBox));

        const clock = section(clockBox, () => send('GET', 'clock'), (now) => {
            const moved = Number(now.offset_s);
            const move = (s, label) => writes(label, doing(async () => { await send('PUT', 'clock', { advance_s: s }); clock.refresh(); }), { focus: 'clock' + s });
            return [h('p', 'The database thinks it is ', h('strong', timeNode(now.now * 1000)), moved ? [' ', badge(`${moved > 0 ? '+' : '−'}${durationText(Math.abs(moved) * 1000)}`, 'warn')] : ' , which is the true time.'),
                h('p.muted', 'Expiry, trimming of streams, and the age of tokens follow it. Signatures and logs keep the true time.'),
                h('div.bar', move(60, '+1 min'), move(3600, '+1 h'), move(86400, '+1 day'), move(604800, '+7 days'),
                    writes('Advance…', () => ask('Advance the clock', { fields: [{ name: 'by', label: 'By how much', value: '90m', required: true, hint: 'Such as 30s, 90m, 36h, 10d.' }], verb: 'Advance', run: async (v) => { await send('PUT', 'clock', { advance_s: Math.round(milliseconds(v.by) / 1000) }); clock.refresh(); } })),
                    writes('Set…', () => ask('Set the clock', { fields: [{ name: 'at', label: 'Time', value: new Date(now.now * 1000).toISOString().slice(0, 19) + 'Z', required: true, hint: 'RFC 3339, or seconds since 1970.' }], verb: 'Set', run: async (v) => {
                        const at = /^\d+$/.test(v.at.trim()) ? Number(v.at) : Math.round(Date.parse(v.at) / 1000);
                        if (!Number.isFinite(at))
                            throw new Error(`“${v.at}” is not a time.`);
                        await send('PUT', 'clock', { now_s: at });
                        clock.refresh();
                    } })), moved ? writes('Reset to the true time', doing(async () => { await send('PUT', 'clock', { reset: true }); clock.refresh(); }), { focus: 'reset' }) : null)];
        });

        const setFaults = async (list) => {
            await (list.length ? send('PUT', 'faults', { faults: list.map(({ struck, ...f }) => f) }) : send('DELETE', 'faults'));
            faults.refresh();
        };
        const faults = section(faultBox, () => send('GET', 'faults'), ({ faults: list }) => [
            list.length ? rows([{ label: 'Fault', cell: (f) => f.kind }, { label: 'Strikes', wide: true, cell: faultText }, { label: 'Struck', num: true, cell: (f) => count(Number(f.struck)) }], list, { caption: 'Faults',
                actions: (f, i) => writes('Remove', doing(() => setFaults(list.filter((x, n) => n !== i))), { small: true, focus: 'f' + i }) })
                : h('p.muted', 'None. A fault makes the calls fail that it matches, so that a test sees what your program does then.'),
            h('div.bar', writes('Add a fault…', () => ask('Add a fault', { verb: 'Add', text: list.length ? 'Setting faults counts all of them from 0 again.' : null, fields: [{ name: 'kind', label: 'Kind', type: 'choice', choices: KINDS, value: 'throttle' },
                { name: 'operation', label: 'Operation', type: 'choice', choices: OPERATIONS.map((o) => [o, o || 'every operation']), value: '' }, { name: 'table', label: 'Table', hint: 'Empty: every table.' },
                { name: 'probability', label: 'Probability', type: 'number', hint: 'From 0 to 1; empty: always.' }, { name: 'skip', label: 'Let this many pass first', type: 'number' }, { name: 'count', label: 'At most this often', type: 'number' }, { name: 'latency_ms', label: 'Latency (ms)', type: 'number', hint: 'Of the kind latency.' }],
            run: async (v) => {
                const fault = { kind: v.kind };
                for (const name of ['operation', 'table'])
                    if (v[name])
                        fault[name] = v[name];
                for (const name of ['probability', 'skip', 'count', 'latency_ms'])
                    if (v[name] !== '') {
                        if (!Number.isFinite(Number(v[name])))
                            throw new Error(`“${v[name]}” is not a number.`);
                        fault[name] = Number(v[name]);
                    }
                await setFaults([...list, fault]);
            } }), { focus: 'add' }), list.length ? writes('Clear all', doing(() => setFaults([])), { focus: 'clear' }) : null,
            list.length ? h('button', { type: 'button', onclick: faults_refresh, 'data-focus': 'again' }, 'Count again') : null)]);
        function faults_refresh() {
            faults.refresh();
        }

        const snapshots = section(snapBox, () => send('GET', 'snapshots'), ({ snapshots: list = [] }) => [
            list.length ? rows([{ label: 'Name', cell: (s) => s.name }, { label: 'Taken', cell: (s) => timeNode(Number(s.taken) * 1000, { relative: true }) }, { label: 'Tables', num: true, cell: (s) => count(Number(s.tables)) }, { label: 'Items', num: true, cell: (s) => count(Number(s.items)) }, { label: 'Size', num: true, cell: (s) => bytesText(Number(s.bytes)) }], list, { caption: 'Snapshots',
                actions: (s) => [writes('Restore…', () => ask(`Restore ${s.name}`, { text: 'All tables and items become what they were then. What was written since is lost. The clock and the faults stay.', typed: s.name, verb: 'Restore', run: async () => { job(`Restore ${s.name}`, async () => { await send('POST', `snapshots/${s.name}/restore`, {}); return `the database is as it was at ${s.name}`; }).then(snapshots.refresh); } }), { small: true, focus: 'r' + s.name }),
                    writes('Delete…', () => ask(`Delete ${s.name}`, { text: 'The snapshot is deleted. The database stays as it is.', typed: s.name, verb: 'Delete', run: async () => { await send('DELETE', `snapshots/${s.name}`); snapshots.refresh(); } }), { small: true, danger: true, focus: 'd' + s.name })] })
                : h('p.muted', 'None. A snapshot has the whole database, in the memory of the server: fill it once, and let every test start from there.'),
            h('div.bar', writes('Take a snapshot…', () => ask('Take a snapshot', { verb: 'Take', fields: [{ name: 'name', label: 'Name', value: 'fresh', required: true, hint: '1 to 64 letters, digits, - and _.' }], run: async (v) => {
                if (!/^[A-Za-z0-9_-]{1,64}$/.test(v.name))
                    throw new Error('A name has 1 to 64 letters, digits, - and _.');
                if (list.some((s) => s.name === v.name))
                    throw new Error(`There is a snapshot ${v.name}. Delete it first, or choose another name.`);
                await send('PUT', `snapshots/${v.name}`);
                toast(`Snapshot ${v.name} is taken.`, 'good');
                snapshots.refresh();
            } }), { focus: 'take' }))]);

        let last = null;
        const work = () => fill(workBox, h('p.muted', 'Expire items, trim streams, build indexes: what is due now, instead of within a second.'), h('div.bar', writes('Do it now', () => job('Maintenance', async () => {
            last = await send('POST', 'upkeep', {});
            work();
            const all = Object.values(last).reduce((n, v) => n + Number(v), 0);
            return all ? `${many(all, 'thing')} ${all === 1 ? 'was' : 'were'} done` : 'nothing was due';
        }))), last && facts(Object.entries(last).map(([name, n]) => [name.replace(/_/g, ' '), count(Number(n))])),
        h('h3', 'The same for scripts'), code(`curl -X PUT ${location.origin}/_holdfast/clock -d '{"advance_s": 3600}'\ncurl -X POST ${location.origin}/_holdfast/upkeep`));
        work();
        ctx.on('back', () => [clock, faults, snapshots].forEach((s) => s.refresh()));
        return () => [clock, faults, snapshots].forEach((s) => s.close());
    },
};
