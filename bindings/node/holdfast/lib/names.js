/*
 * lib/names.js: options and results of the seam, which have names_like_this, as JavaScript has them.
 *
 *     pollMs            poll_ms
 *     a Date            microseconds, and _us at the end of the name: { from: date } is from_us
 *     timeUs, dueUs     time, dueAt: Dates, in results
 */
'use strict';

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

const microseconds = (date) => Math.round(date.getTime() * 1000);

/* { name: value } of options; those that are undefined are left out. */
function toArgs(options) {
    const args = {};
    for (const [name, value] of Object.entries(options)) {
        if (value === undefined)
            continue;
        if (value instanceof Date)
            args[`${snake(name).replace(/_at$/, '')}_us`] = microseconds(value);
        else
            args[snake(name)] = typeof value === 'bigint' ? String(value) : value;
    }
    return args;
}

/* These are whole numbers without a limit. */
const BIG = new Set(['fence', 'term', 'version', 'sequence']);
/* These are "at" a time already, or have names of their own. */
const TIMES = { time_us: 'time', at_us: 'at' };

function fromResult(result) {
    const made = {};
    for (const [name, value] of Object.entries(result)) {
        if (name.endsWith('_us') && typeof value === 'number')
            made[TIMES[name] ?? camel(name.replace(/_us$/, '_at'))] = new Date(value / 1000);
        else
            made[camel(name)] = Array.isArray(value) ? value.map(part)
                : value !== null && typeof value === 'object' ? fromResult(value) : value;
    }
    return made;
}

const part = (value) => (value !== null && typeof value === 'object' ? fromResult(value) : value);

const big = (value) => (value === undefined ? undefined : BigInt(value));

/* ---- bytes, and payloads as any JSON -------------------------------------------------------- */

const toBytes = (bytes) => (typeof bytes === 'string' ? bytes
    : { base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') });

const fromBytes = (bytes) => (typeof bytes === 'string' ? new Uint8Array(Buffer.from(bytes))
    : new Uint8Array(Buffer.from(bytes.base64, 'base64')));

const isText = (contentType) => /^text\//i.test(contentType ?? '');

/* A Uint8Array is as it is, and so is a string under text/...; everything else is JSON. */
function toPayload(payload, contentType) {
    if (payload === undefined)
        return { content_type: contentType };
    if (payload instanceof Uint8Array)
        return { payload: toBytes(payload), content_type: contentType ?? 'application/octet-stream' };
    if (typeof payload === 'string' && isText(contentType))
        return { payload, content_type: contentType };
    return { payload: JSON.stringify(payload), content_type: contentType ?? 'application/json' };
}

/* Anybody may have stored it, so what says that it is JSON and is none is given as bytes. */
function fromPayload(payload, contentType) {
    if (payload === undefined)
        return undefined;
    if (typeof payload === 'string' && isText(contentType))
        return payload;
    if (typeof payload !== 'string' || !/[/+]json\b/i.test(contentType ?? ''))
        return fromBytes(payload);
    try {
        return payload === '' ? undefined : JSON.parse(payload);
    } catch {
        return fromBytes(payload);
    }
}

module.exports = { toArgs, fromResult, big, toBytes, fromBytes, toPayload, fromPayload, microseconds, BIG };
