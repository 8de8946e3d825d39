/*
 * lib/values.js: DynamoDB's values, kept as they are on the wire: {"N": "1.50"}, {"SS": [...]}.
 *
 * A number stays text from the server to the screen and back, so none of its 38 digits is lost; a
 * set stays a set. Plain JSON is read by a parser of our own for the same reason.
 */

export const TYPES = { S: 'String', N: 'Number', B: 'Binary', BOOL: 'Boolean', NULL: 'Null', M: 'Map', L: 'List',
    SS: 'String set', NS: 'Number set', BS: 'Binary set' };

/* An item without what objects inherit: an attribute may be called constructor, or __proto__. */
export const bare = (item) => item && Object.assign(Object.create(null), item);

export const typeOf = (value) => Object.keys(value)[0];

/* ---- numbers ---- */

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/* {digits, exponent, negative}: digits without zeros at either end; null if it is no number. */
function parts(text) {
    if (!NUMBER.test(text))
        return null;
    const [, mantissa, power] = /^[+-]?([\d.]+)(?:[eE]([+-]?\d+))?$/.exec(text);
    const [whole, fraction = ''] = mantissa.split('.'), all = (whole + fraction).replace(/^0+/, '');
    const digits = all.replace(/0+$/, '');
    return { digits, exponent: Number(power || 0) - fraction.length + (all.length - digits.length), negative: text[0] === '-' };
}

/* What is wrong with `text` as a number; null if nothing is. */
export function numberProblem(text) {
    const p = parts(text.trim());
    if (!p)
        return 'not a number';
    if (p.digits.length > 38)
        return `${p.digits.length} significant digits; at most 38 are stored`;
    const magnitude = p.digits.length + p.exponent;
    if (p.digits && magnitude > 126)
        return 'too large: at most 9.99…E+125';
    if (p.digits && magnitude < -129)
        return 'too small: at least 1E-130';
    return null;
}

/* Of two numbers as text: below 0, 0, above 0; exact. */
export function compareNumbers(a, b) {
    const x = parts(a), y = parts(b);
    if (!x || !y)
        return a < b ? -1 : a > b ? 1 : 0;
    const sign = (p) => (p.digits === '' ? 0 : p.negative ? -1 : 1);
    if (sign(x) !== sign(y))
        return sign(x) - sign(y);
    const order = x.digits.length + x.exponent - (y.digits.length + y.exponent);
    const size = order || (x.digits < y.digits ? -1 : x.digits > y.digits ? 1 : 0);
    return sign(x) < 0 ? -size : size;
}

/* ---- binary ---- */

export function base64ToBytes(text) {
    const raw = atob(text.replace(/\s+/g, ''));
    return Uint8Array.from(raw, (c) => c.charCodeAt(0));
}

export function bytesToBase64(bytes) {
    let raw = '';
    for (let i = 0; i < bytes.length; i += 8192)
        raw += String.fromCharCode(...bytes.subarray(i, i + 8192));
    return btoa(raw);
}

export const bytesToHex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join(' ');

export function hexToBytes(text) {
    const digits = text.replace(/[\s:]+/g, '');
    if (!/^([0-9a-f]{2})*$/i.test(digits))
        throw new Error('hexadecimal digits come in pairs of 0-9 and a-f');
    return Uint8Array.from(digits.match(/../g) || [], (pair) => parseInt(pair, 16));
}

/* ---- text ---- */

/* One line for a cell, at most about `max` characters. */
export function cellText(value, max = 120) {
    const text = brief(value, max);
    return text.length > max ? text.slice(0, max - 1) + '…' : text;
}

function brief(value, max) {
    const type = typeOf(value), v = value[type];
    switch (type) {
    case 'S': return v.length > max ? v.slice(0, max) + '…' : v;
    case 'N': return v;
    case 'B': return v.length > max ? v.slice(0, max) + '…' : v;
    case 'BOOL': return String(v);
    case 'NULL': return 'null';
    case 'SS': case 'NS': case 'BS': return '{' + few(v, max, (x) => (type === 'SS' ? JSON.stringify(x) : x)) + '}';
    case 'L': return '[' + few(v, max, (x) => quoted(x, max)) + ']';
    case 'M': return '{' + few(Object.entries(v), max, ([k, x]) => `${k}: ${quoted(x, max)}`) + '}';
    }
    return '?';
}

const quoted = (value, max) => (typeOf(value) === 'S' ? JSON.stringify(brief(value, max)) : brief(value, max));

function few(list, max, text) {
    const out = [];
    let length = 0;
    for (const one of list) {
        out.push(text(one));
        length += out.at(-1).length + 2;
        if (length > max) {
            if (out.length < list.length)
                out.push('…');
            break;
        }
    }
    return out.join(', ');
}

/* Typed JSON as people like to read it: short lists on one line. */
export function typedText(value) {
    return layout(value, '');
}

function layout(value, indent) {
    const flat = JSON.stringify(value);
    if (value === null || typeof value !== 'object' || flat.length + indent.length < 76)
        return spaced(value);
    const inner = indent + '  ';
    if (Array.isArray(value))
        return `[\n${value.map((one) => inner + layout(one, inner)).join(',\n')}\n${indent}]`;
    return `{\n${Object.entries(value).map(([k, v]) => `${inner}${JSON.stringify(k)}: ${layout(v, inner)}`).join(',\n')}\n${indent}}`;
}

function spaced(value) {
    if (Array.isArray(value))
        return `[${value.map(spaced).join(', ')}]`;
    if (value && typeof value === 'object')
        return Object.keys(value).length ? `{ ${Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${spaced(v)}`).join(', ')} }` : '{}';
    return JSON.stringify(value);
}

/* Plain JSON of a value, as the command has it: all digits of numbers, {"$set": [...]}, {"$binary": "..."}. */
export function plainText(value) {
    const type = typeOf(value), v = value[type];
    switch (type) {
    case 'S': case 'BOOL': return JSON.stringify(v);
    case 'B': return `{"$binary":${JSON.stringify(v)}}`;
    case 'N': return v;
    case 'NULL': return 'null';
    case 'SS': case 'NS': case 'BS': return `{"$set":[${v.map((x) => plainText({ [type[0]]: x })).join(',')}]}`;
    case 'L': return `[${v.map(plainText).join(',')}]`;
    case 'M': return plainItem(v);
    }
    return 'null';
}

export const plainItem = (item) => `{${Object.entries(item).map(([k, v]) => `${JSON.stringify(k)}:${plainText(v)}`).join(',')}}`;

/* ---- checking ---- */

/* What is wrong with a typed value; null if nothing is. The text names the place. */
export function valueProblem(value, at = 'value') {
    if (!value || typeof value !== 'object' || Array.isArray(value))
        return `${at}: expected a typed value such as {"S": "text"}`;
    const keys = Object.keys(value);
    if (keys.length !== 1 || !TYPES[keys[0]])
        return `${at}: expected one of the types ${Object.keys(TYPES).join(', ')}${keys.length ? `, not ${keys.join(', ')}` : ''}`;
    const type = keys[0], v = value[type];
    const text = (x) => typeof x === 'string';
    switch (type) {
    case 'S': return text(v) ? null : `${at}: S takes a string`;
    case 'N': return text(v) ? named(at, numberProblem(v)) : `${at}: N takes the number as a string: {"N": "1.5"}`;
    case 'B': return text(v) ? binaryProblem(v, at) : `${at}: B takes base64 in a string`;
    case 'BOOL': return typeof v === 'boolean' ? null : `${at}: BOOL takes true or false`;
    case 'NULL': return v === true ? null : `${at}: NULL takes true`;
    case 'L':
        if (!Array.isArray(v))
            return `${at}: L takes a list`;
        return first(v.map((one, i) => valueProblem(one, `${at}[${i}]`)));
    case 'M':
        if (!v || typeof v !== 'object' || Array.isArray(v))
            return `${at}: M takes an object`;
        return first(Object.entries(v).map(([k, one]) => valueProblem(one, `${at}.${k}`)));
    }
    if (!Array.isArray(v) || v.length === 0 || !v.every(text))
        return `${at}: a set takes a list of strings and has at least one element`;
    const seen = new Set(v.map((x) => (type === 'NS' ? canonical({ N: x }) : x)));
    if (seen.size !== v.length)
        return `${at}: a set holds each element once`;
    return first(v.map((x) => (type === 'NS' ? named(at, numberProblem(x)) : type === 'BS' ? binaryProblem(x, at) : null)));
}

const named = (at, problem) => (problem ? `${at}: ${problem}` : null);
const first = (list) => list.find(Boolean) || null;

function binaryProblem(text, at) {
    try {
        base64ToBytes(text);
        return null;
    } catch {
        return `${at}: not base64`;
    }
}

export function itemProblem(item) {
    if (!item || typeof item !== 'object' || Array.isArray(item))
        return 'expected an object with an attribute per name';
    return first(Object.entries(item).map(([k, v]) => valueProblem(v, k)));
}

/* ---- comparing ---- */

/* A text that is equal for equal values: order of a map or a set does not count, nor 1.0 and 1. */
export function canonical(value) {
    const type = typeOf(value), v = value[type];
    switch (type) {
    case 'N': {
        const p = parts(v);
        return p ? `N${p.digits && p.negative ? '-' : ''}${p.digits || '0'}e${p.digits ? p.exponent : 0}` : `N${v}`;
    }
    case 'L': return `L[${v.map(canonical).join()}]`;
    case 'M': return `M{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${canonical(v[k])}`).join()}}`;
    case 'NS': return `NS[${v.map((x) => canonical({ N: x })).sort().join()}]`;
    case 'SS': case 'BS': return `${type}${JSON.stringify([...v].sort())}`;
    }
    return type + JSON.stringify(v);
}

export const equal = (a, b) => (a && b ? canonical(a) === canonical(b) : a === b);
export const sameItem = (a, b) => equal(a && { M: a }, b && { M: b });

/* [{path, before, after}] of what is different; maps are compared inside. */
export function diff(before, after, path = []) {
    const out = [];
    before = bare(before);
    after = bare(after);
    for (const key of new Set([...Object.keys(before || {}), ...Object.keys(after || {})])) {
        const a = before?.[key], b = after?.[key];
        if (equal(a, b))
            continue;
        if (a?.M && b?.M)
            out.push(...diff(a.M, b.M, [...path, key]));
        else
            out.push({ path: [...path, key], before: a, after: b });
    }
    return out;
}

/* About what DynamoDB counts for an item, in bytes. */
export function itemSize(item) {
    const bytes = (text) => new TextEncoder().encode(text).length;
    const size = (value) => {
        const type = typeOf(value), v = value[type];
        switch (type) {
        case 'S': return bytes(v);
        case 'N': return 1 + Math.ceil((parts(v)?.digits.length || 0) / 2) + (v[0] === '-' ? 1 : 0);
        case 'B': return Math.floor(v.replace(/=+$/, '').length * 3 / 4);
        case 'SS': return v.reduce((n, x) => n + bytes(x), 0);
        case 'NS': return v.reduce((n, x) => n + size({ N: x }), 0);
        case 'BS': return v.reduce((n, x) => n + size({ B: x }), 0);
        case 'L': return 3 + v.reduce((n, x) => n + 1 + size(x), 0);
        case 'M': return 3 + Object.entries(v).reduce((n, [k, x]) => n + 1 + bytes(k) + size(x), 0);
        }
        return 1;
    };
    return Object.entries(item).reduce((n, [k, v]) => n + bytes(k) + size(v), 0);
}

/* ---- plain JSON, without loss ---- */

class JsonProblem extends Error { }

/* {"$set": [...]} and {"$binary": "..."} are what plainText() writes them for. */
function special(map) {
    const names = Object.keys(map);
    if (names.length !== 1)
        return null;
    if (names[0] === '$binary' && map.$binary.S !== undefined)
        return { B: map.$binary.S };
    const list = names[0] === '$set' && map.$set.L, type = list?.length && typeOf(list[0]);
    return list && 'SNB'.includes(type) && list.every((one) => typeOf(one) === type) ? { [type + 'S']: list.map((one) => one[type]) } : null;
}

/* Plain JSON text -> a typed value. Throws with the line and what was expected. */
export function fromPlain(text) {
    let at = 0;
    const fail = (what) => {
        const line = text.slice(0, at).split('\n').length;
        throw new JsonProblem(`line ${line}: expected ${what}${at < text.length ? `, not ${JSON.stringify(text[at])}` : ', but the text ends'}`);
    };
    const blank = () => {
        while (at < text.length && ' \t\r\n'.includes(text[at]))
            at++;
    };
    const string = () => {
        const from = at++;
        while (at < text.length && text[at] !== '"')
            at += text[at] === '\\' ? 2 : 1;
        if (at >= text.length)
            fail('the end of a string');
        at++;
        try {
            return JSON.parse(text.slice(from, at));
        } catch {
            at = from;
            return fail('a string without control characters');
        }
    };
    const value = (depth) => {
        if (depth > 64)
            fail('at most 64 levels');
        blank();
        const c = text[at];
        if (c === '"')
            return { S: string() };
        if (c === '{') {
            const map = Object.create(null);
            at++;
            blank();
            if (text[at] === '}')
                return at++, { M: {} };
            for (; ;) {
                blank();
                if (text[at] !== '"')
                    fail('a name in quotes');
                const name = string();
                blank();
                if (text[at] !== ':')
                    fail('":"');
                at++;
                map[name] = value(depth + 1);
                blank();
                if (text[at] === '}')
                    return at++, special(map) || { M: { ...map } };
                if (text[at] !== ',')
                    fail('"," or "}"');
                at++;
            }
        }
        if (c === '[') {
            const list = [];
            at++;
            blank();
            if (text[at] === ']')
                return at++, { L: list };
            for (; ;) {
                list.push(value(depth + 1));
                blank();
                if (text[at] === ']')
                    return at++, { L: list };
                if (text[at] !== ',')
                    fail('"," or "]"');
                at++;
            }
        }
        const word = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/.exec(text.slice(at, at + 400))?.[0];
        if (!word)
            fail('a value');
        at += word.length;
        return word === 'null' ? { NULL: true } : word === 'true' || word === 'false' ? { BOOL: word === 'true' } : { N: word };
    };
    const all = value(0);
    blank();
    if (at < text.length)
        fail('the end');
    return all;
}
