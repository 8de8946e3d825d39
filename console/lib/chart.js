/*
 * lib/chart.js: line charts as SVG.
 *
 *     const c = chart({ title, format, series: [{ name }] });   c.node
 *     c.set(times, [values, ...]);                              null is a gap
 *
 * The picture follows the width of its place; a pointer or the arrow keys read single points.
 */
import { fill, h, svg } from './dom.js';
import { bytesText, clockText, shortNumber } from './time.js';

const H = 120, TOP = 8, BOTTOM = 18, LEFT = 52;

/* 1, 2 or 5 times a power of ten, not below x. */
function nice(x) {
    if (!(x > 0))
        return 1;
    const power = 10 ** Math.floor(Math.log10(x)), n = x / power;
    return (n <= 1 ? 1 : n <= 2 ? 2 : n <= 5 ? 5 : 10) * power;
}

export function chart({ title, series, format = shortNumber, note = '', min = 1 }) {
    const round = format === bytesText ? (x) => 2 ** Math.ceil(Math.log2(Math.max(x, 1024))) : nice;
    let times = [], values = series.map(() => []), width = 0, at = -1;
    const picture = svg('svg', { role: 'img', height: H, tabindex: '0' });
    const now = h('span.chart-now');
    const readings = series.map(() => h('span.chart-now'));
    const legend = series.length > 1 && h('div.legend', series.map((one, i) => h('span', h(`i.s${i}`), one.name, ' ', readings[i])));
    const node = h('figure.chart', h('figcaption', h('span', h('strong', title), note && h('span.muted', ' ', note)), now), picture, legend);

    const span = () => Math.max(1, times.at(-1) - times[0]);
    const x = (time, left) => left + (width - left - 6) * (time - times[0]) / span();

    function draw() {
        width = picture.clientWidth || node.clientWidth || 320;
        picture.setAttribute('viewBox', `0 0 ${width} ${H}`);
        const all = values.flat().filter((v) => v !== null && v !== undefined && Number.isFinite(v));
        if (times.length < 2 || !all.length) {
            picture.setAttribute('aria-label', `${title}: no data yet`);
            fill(picture, svg('text', { x: width / 2, y: H / 2, 'text-anchor': 'middle' }, 'no data yet'));
            return;
        }
        const peak = round(Math.max(min, ...all)), left = LEFT, y = (v) => TOP + (H - TOP - BOTTOM) * (1 - Math.min(v, peak) / peak);
        const lines = [0, 0.5, 1].map((part) => [
            svg('line.rule', { x1: left, x2: width - 6, y1: y(peak * part), y2: y(peak * part) }),
            svg('text', { x: left - 6, y: y(peak * part) + 3.5, 'text-anchor': 'end' }, format(peak * part))]);
        const ticks = [0, 0.5, 1].map((part) => svg('text', { x: x(times[0] + span() * part, left), y: H - 3,
            'text-anchor': part === 0 ? 'start' : part === 1 ? 'end' : 'middle' }, clockText(times[0] + span() * part)));
        const paths = values.map((list, s) => {
            let d = '', pen = false;
            list.forEach((v, i) => {
                const good = v !== null && v !== undefined && Number.isFinite(v);
                if (good)
                    d += `${pen ? 'L' : 'M'}${x(times[i], left).toFixed(1)} ${y(v).toFixed(1)}`;
                pen = good;
            });
            return svg(`path.line.s${s}`, { d });
        });
        const cursor = at >= 0 && at < times.length && svg('line.cursor', { x1: x(times[at], left), x2: x(times[at], left), y1: TOP, y2: H - BOTTOM });
        fill(picture, lines, ticks, paths, cursor || []);
        const i = at >= 0 && at < times.length ? at : times.length - 1;
        const said = series.map((one, s) => `${series.length > 1 ? one.name + ' ' : ''}${format(values[s][i])}`).join(' · ');
        fill(now, at >= 0 ? h('span.muted', clockText(times[i]), ' ') : '', series.length > 1 ? '' : said);
        readings.forEach((one, s) => fill(one, format(values[s][i])));
        picture.setAttribute('aria-label', `${title}: ${said} at ${clockText(times[i])}, at most ${format(Math.max(...all))} in this time`);
    }

    const move = (next) => {
        at = Math.max(0, Math.min(times.length - 1, next));
        draw();
    };
    picture.addEventListener('pointermove', (e) => {
        if (times.length < 2)
            return;
        const box = picture.getBoundingClientRect(), time = times[0] + span() * (e.clientX - box.left - LEFT) / (box.width - LEFT - 6);
        let low = 0, high = times.length - 1;
        while (low < high) {
            const mid = (low + high) >> 1;
            times[mid] < time ? (low = mid + 1) : (high = mid);
        }
        move(low);
    });
    const leave = () => { at = -1; draw(); };
    picture.addEventListener('pointerleave', leave);
    picture.addEventListener('blur', leave);
    picture.addEventListener('keydown', (e) => {
        const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[e.key];
        if (step && times.length) {
            e.preventDefault();
            move((at < 0 ? times.length - 1 : at) + step);
        }
    });
    new ResizeObserver(() => picture.isConnected && picture.clientWidth !== width && draw()).observe(node);

    return {
        node,
        set(nextTimes, nextValues) {
            times = nextTimes;
            values = nextValues;
            draw();
        },
    };
}
