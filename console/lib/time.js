/* lib/time.js: times, numbers and sizes as people read them. */
import { emit, on } from './bus.js';
import { h } from './dom.js';

export const zone = { utc: localStorage.getItem('holdfast.utc') === '1' };

export function setUtc(utc) {
    zone.utc = utc;
    localStorage.setItem('holdfast.utc', utc ? '1' : '0');
    emit('zone');
}

const two = (n) => String(n).padStart(2, '0');

/* 2026-11-19 14:03:07, in the zone that is chosen; with ms if asked for. */
export function timeText(ms, withMs = false) {
    const d = new Date(ms);
    if (Number.isNaN(d.getTime()))
        return '–';
    const u = zone.utc ? 'UTC' : '';
    const part = (name) => d[`get${u}${name}`]();
    return `${part('FullYear')}-${two(part('Month') + 1)}-${two(part('Date'))} ${two(part('Hours'))}:${two(part('Minutes'))}:${two(part('Seconds'))}` +
        (withMs ? '.' + String(part('Milliseconds')).padStart(3, '0') : '') + (zone.utc ? 'Z' : '');
}

export const clockText = (ms) => timeText(ms).slice(11);

/* "3 min ago", "in 2 h" */
export function agoText(ms, now = Date.now()) {
    const s = Math.round((now - ms) / 1000);
    return Math.abs(s) < 2 ? 'now' : s > 0 ? durationText(s * 1000) + ' ago' : 'in ' + durationText(-s * 1000);
}

export function durationText(ms) {
    if (ms < 1)
        return `${Math.round(ms * 1000)} µs`;
    if (ms < 1000)
        return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
    const s = ms / 1000;
    return s < 120 ? `${s < 10 ? Math.round(s * 10) / 10 : Math.round(s)} s` : s < 7200 ? `${Math.round(s / 60)} min`
        : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
}

/* An element that follows the switch between local time and UTC. */
export function timeNode(ms, { relative = false, withMs = false } = {}) {
    if (!ms)
        return h('span.muted', '–');
    const node = h('time', { datetime: new Date(ms).toISOString(), 'data-ms': ms });
    if (relative)
        node.dataset.relative = '1';
    if (withMs)
        node.dataset.withMs = '1';
    write(node);
    return node;
}

function write(node) {
    const ms = Number(node.dataset.ms), full = timeText(ms, !!node.dataset.withMs);
    node.textContent = node.dataset.relative ? agoText(ms) : full;
    node.title = node.dataset.relative ? full : agoText(ms);
}

on('zone', () => document.querySelectorAll('time[data-ms]').forEach(write));

const group = new Intl.NumberFormat('en');
export const count = (n) => (n === null || n === undefined || Number.isNaN(n) ? '–' : group.format(n));

/* 1234567 -> 1.2M; for axes and tiles */
export function shortNumber(n) {
    if (n === null || n === undefined || Number.isNaN(n))
        return '–';
    const a = Math.abs(n);
    for (const [at, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']])
        if (a >= at) {
            const x = n / (at === 1e4 ? 1e3 : at);
            return `${Math.abs(x) < 10 ? x.toFixed(1) : Math.round(x)}${unit}`;
        }
    return a >= 100 || Number.isInteger(n) ? group.format(Math.round(n)) : String(Math.round(n * 100) / 100);
}

export function bytesText(n) {
    if (n === null || n === undefined || Number.isNaN(n))
        return '–';
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let i = 0;
    for (; n >= 1024 && i < units.length - 1; i++)
        n /= 1024;
    return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

/* "1 stream", "63 streams", "200+ streams" */
export const many = (n, what, atLeast) => `${Number(n).toLocaleString('en')}${atLeast ? '+' : ''} ${what}${Number(n) === 1 && !atLeast ? '' : 's'}`;
