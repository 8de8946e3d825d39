/*
 * views/overview.js: how the server is: health with advice, and an hour of figures.
 *
 * The server keeps a point for every 5 seconds; while this page is open it sends one each second.
 * Those of the last minutes are shown as they come, older ones are joined to points of 5 seconds.
 */
import { add, fill, h, throttle } from '../lib/dom.js';
import { chart } from '../lib/chart.js';
import { href } from '../lib/router.js';
import { tableNames, server } from '../lib/client.js';
import { bytesText, count, durationText, shortNumber } from '../lib/time.js';
import { badge, empty, load, select } from '../lib/ui.js';

const LIVE = 300, HOUR = 720, SERIES = 5;
const us = (n) => (n > 0 ? durationText(n / 1000) : n === 0 ? '0' : '–');
const rate = (n, ms) => (n === undefined ? null : n * 1000 / (ms || 1000));

/* One point of the stream. */
function pointOf(f) {
    const ms = f.interval_ms || 1000, p = { t: f.time_ms, ops: {}, errors: 0 };
    for (const [name, op] of Object.entries(f.ops || {})) {
        p.ops[name] = rate(op.count, ms);
        p.errors += rate(op.errors, ms);
    }
    const times = (one, prefix) => {
        p[prefix + '50'] = one?.count ? one.p50_us : null;
        p[prefix + '99'] = one?.count ? one.p99_us : null;
    };
    times(f.read, 'r');
    times(f.write, 'w');
    times(f.commit, 'c');
    p.fsyncs = rate(f.fsyncs, ms);
    p.group = f.commit?.count ? f.commit.answers / f.commit.count : null;
    p.in = rate(f.bytes_in, ms);
    p.out = rate(f.bytes_out, ms);
    for (const [to, from] of GAUGES)
        p[to] = f[from] ?? null;
    return p;
}

const GAUGES = [['connections', 'connections'], ['resident', 'resident_bytes'], ['input', 'input_bytes'], ['output', 'output_bytes'], ['waiting', 'work_waiting'], ['running', 'work_running'], ['store', 'store_bytes'], ['disk', 'disk_bytes'], ['free', 'disk_free_bytes']];

/* The arrays of /console/api/history as points. */
function pointsOf(a) {
    const ms = a.interval_ms || 5000, at = (name, i) => a[name]?.[i] ?? null, some = (x) => x || null;
    return (a.time_ms || []).map((t, i) => {
        const p = { t, ops: {}, errors: 0 };
        for (const [name, op] of Object.entries(a.ops || {})) {
            if (op.count[i])
                p.ops[name] = rate(op.count[i], ms);
            p.errors += rate(op.errors[i], ms);
        }
        Object.assign(p, { r50: some(at('read_p50_us', i)), r99: some(at('read_p99_us', i)), w50: some(at('write_p50_us', i)), w99: some(at('write_p99_us', i)), c50: some(at('commit_p50_us', i)), c99: some(at('commit_p99_us', i)),
            fsyncs: a.fsyncs ? rate(a.fsyncs[i], ms) : null, group: at('commits', i) ? at('committed', i) / at('commits', i) : null, in: rate(at('bytes_in', i), ms), out: rate(at('bytes_out', i), ms) });
        for (const [to, from] of GAUGES)
            p[to] = at(from, i);
        return p;
    });
}

/* Several points as one: rates are averaged, the worst p99 and the last gauge count. */
function joined(list) {
    const p = { ...list.at(-1), ops: {}, errors: 0 }, n = list.length;
    for (const one of list) {
        for (const [name, r] of Object.entries(one.ops))
            p.ops[name] = (p.ops[name] || 0) + r / n;
        p.errors += one.errors / n;
    }
    for (const name of ['r50', 'r99', 'w50', 'w99', 'c50', 'c99'])
        p[name] = list.reduce((m, one) => (one[name] === null ? m : Math.max(m ?? 0, one[name])), null);
    for (const name of ['fsyncs', 'in', 'out'])
        p[name] = list.reduce((m, one) => m + (one[name] || 0), 0) / n;
    return p;
}

const total = (p) => Object.values(p.ops).reduce((a, b) => a + b, 0);

export default {
    title: 'Overview',
    async open(root, params, ctx) {
        const health = h('div.health'), tiles = h('div.tiles'), charts = h('div.charts'), first = h('div');
        let old = [], live = [], span = params.span === '60' ? 60 : 5, names = '';
        ctx.head({ title: 'Overview', actions: [select([['5', 'Last 5 minutes'], ['60', 'Last hour']], String(span), (v) => { span = Number(v); ctx.setQuery({ span: v === '5' ? '' : v }); draw(); }, { 'aria-label': 'Time shown' })] });

        const lines = (title, series, format, note) => ({ c: chart({ title, series: series.map(([name]) => ({ name })), format, note }), series });
        const plain = [
            lines('Latency', [['reads p50', 'r50'], ['reads p99', 'r99'], ['writes p50', 'w50'], ['writes p99', 'w99']], us),
            lines('Syncs to disk', [['fsyncs', 'fsyncs']], shortNumber, 'per second'),
            lines('Writes per sync', [['writes', 'group']], shortNumber, 'group size'),
            lines('Connections', [['connections', 'connections']], shortNumber),
            lines('Memory', [['process', 'resident'], ['requests', 'input'], ['answers', 'output']], bytesText),
            lines('Disk', [['on disk', 'disk'], ['data', 'store']], bytesText),
            lines('Backlog', [['waiting', 'waiting'], ['running', 'running']], shortNumber, 'long requests'),
            lines('Traffic', [['in', 'in'], ['out', 'out']], bytesText, 'per second'),
            lines('Errors', [['errors', 'errors']], shortNumber, 'per second')];
        let busiest = null;

        function points() {
            const all = [...old, ...live], from = (all.at(-1)?.t || 0) - span * 60000;
            const shown = all.filter((p) => p.t >= from), out = [];
            for (const p of shown) { /* nothing was heard for a while: a gap, not a line */
                if (out.length && p.t - out.at(-1).t > 15000)
                    out.push({ t: p.t - 1, ops: null });
                out.push(p);
            }
            return out;
        }

        function draw() {
            const all = points(), times = all.map((p) => p.t), sums = new Map();
            for (const p of all)
                for (const [name, r] of Object.entries(p.ops || {}))
                    sums.set(name, (sums.get(name) || 0) + r);
            const most = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name), shown = most.length > SERIES + 1 ? most.slice(0, SERIES) : most;
            const wanted = shown.concat(shown.length < most.length ? ['others'] : []).sort().join();
            if (!busiest || wanted !== names) {
                names = wanted;
                const list = names ? names.split(',') : ['requests'], next = { c: chart({ title: 'Throughput', note: 'requests per second', series: list.map((name) => ({ name })) }), list };
                busiest ? busiest.c.node.replaceWith(next.c.node) : charts.prepend(next.c.node);
                busiest = next;
            }
            busiest.c.set(times, busiest.list.map((name) => all.map((p) => (!p.ops ? null : name === 'others' ? Object.entries(p.ops).reduce((s, [n, r]) => s + (shown.includes(n) ? 0 : r), 0) : p.ops[name] || 0))));
            for (const { c, series } of plain) {
                const values = series.map(([, key]) => all.map((p) => p[key] ?? null));
                c.node.hidden = !values.some((list) => list.some((v) => v !== null)) && all.length > 5;
                c.set(times, values);
            }
            const p = all.at(-1);
            if (p?.ops)
                fill(tiles, [[shortNumber(total(p)), 'requests/s'], [us(p.r99), 'reads p99'], [us(p.w99), 'writes p99'], [p.fsyncs !== null && shortNumber(p.fsyncs), 'fsyncs/s'], [p.connections !== null && count(p.connections), 'connections'], [p.resident !== null && bytesText(p.resident), 'memory'],
                    [p.disk ? bytesText(p.disk) : null, 'disk'], [shortNumber(p.errors), 'errors/s']].filter(([v]) => v !== null && v !== false && v !== undefined).map(([v, text]) => h('div.tile', h('strong', v), h('span', text))));
        }

        function drawHealth(list) {
            list = Array.isArray(list) ? list : list?.health || [];
            const kind = { error: 'bad', warning: 'warn', info: '' };
            fill(health, list.length ? list.map((one) => h('div.hint', { class: kind[one.level] ?? '' }, badge(one.level, { error: 'bad', warning: 'warn' }[one.level] || 'info'), ' ', h('strong', one.what), ' ', one.advice)) : h('div.hint.good', badge('healthy', 'good'), ' Nothing to do.'));
        }

        add(root, health, tiles, charts, first);
        add(charts, plain.map(({ c }) => c.node));
        await load(first, async () => {
            try {
                old = pointsOf(await ctx.api('/console/api/history'));
            } catch (problem) {
                if (problem.status !== 404)
                    throw problem;
            }
            draw();
            const tables = await tableNames({ signal: ctx.signal });
            return tables.length ? h('p.muted', h('a', { href: href('/tables') }, `${count(tables.length)} ${tables.length === 1 ? 'table' : 'tables'}`), server.info?.database?.url ? ` in ${server.info.database.url}` : '')
                : empty('No tables yet', 'Make the first one, start your program, or run “holdfast demo”.', h('a.button', { href: href('/tables') }, 'Tables'));
        }, { signal: ctx.signal });
        const redraw = throttle(draw, 900);
        ctx.on('figures', (f) => {
            live.push(pointOf(f));
            if (live.length > LIVE + 5)
                old = [...old, joined(live.splice(0, 5))].slice(-HOUR);
            redraw();
        });
        ctx.on('health', drawHealth);
        ctx.on('zone', draw);
        ctx.on('theme', draw);
        ctx.on('back', () => ctx.reopen());
    },
};
