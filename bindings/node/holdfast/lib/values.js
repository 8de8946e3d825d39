/*
 * lib/values.js: JavaScript's values as DynamoDB's, and back.
 *
 *     string                  S
 *     number, bigint          N; also NumberValue, which keeps every digit
 *     boolean                 BOOL
 *     null                    NULL
 *     Uint8Array, ArrayBuffer B, a copy
 *     array                   L
 *     plain object, Map       M; members that are undefined are left out
 *     Set                     SS, NS or BS: of strings, of numbers or of bytes, not empty
 *
 * On the way back a number is a `number` where that loses nothing, a `bigint` where it is whole and
 * beyond Number.MAX_SAFE_INTEGER, otherwise a NumberValue.
 */
'use strict';

const DEPTH_MAX = 100; /* DynamoDB refuses more than 32 levels; this is against circles */

/* A decimal number of up to 38 digits, as its text. */
class NumberValue {
    constructor(text) {
        text = String(text).trim();
        if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text))
            throw new TypeError(`NumberValue: "${text}" is not a decimal number`);
        this.text = text;
        Object.freeze(this);
    }
    toString() {
        return this.text;
    }
    toJSON() {
        return this.text;
    }
    valueOf() {
        return Number(this.text);
    }
    /* A bigint; throws when there is a fraction. */
    toBigInt() {
        const { sign, digits, exponent } = decimal(this.text);
        if (exponent < 0)
            throw new RangeError(`NumberValue: ${this.text} is not a whole number`);
        return BigInt(sign + digits + '0'.repeat(exponent));
    }
}

/* A number's sign, its digits without zeros at both ends, and the power of ten behind them. */
function decimal(text) {
    const [, sign, whole, fraction = '', power = '0'] =
        /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text);
    let digits = (whole + fraction).replace(/^0+/, '');
    let exponent = Number(power) - fraction.length;
    const tail = /0*$/.exec(digits)[0].length;
    digits = digits.slice(0, digits.length - tail);
    exponent += tail;
    return digits === '' ? { sign: '', digits: '0', exponent: 0 } : { sign: sign === '-' ? '-' : '', digits, exponent };
}

function sameDecimal(a, b) {
    const x = decimal(a), y = decimal(b);
    return x.sign === y.sign && x.digits === y.digits && x.exponent === y.exponent;
}

/* ---- to DynamoDB ---------------------------------------------------------------------------- */

function bad(path, message) {
    /* Not at the top: errors.js needs this file. */
    const { HoldfastError } = require('./errors');
    return new HoldfastError('HF_INVALID', `${path || 'the value'}: ${message}`);
}

function numberText(value, path) {
    if (typeof value === 'number') {
        if (!Number.isFinite(value))
            throw bad(path, `${value} is not a number that can be stored`);
        return Object.is(value, -0) ? '0' : String(value);
    }
    return String(value);
}

const isBytes = (value) => value instanceof Uint8Array || value instanceof ArrayBuffer;

function base64(value) {
    if (value instanceof ArrayBuffer)
        return Buffer.from(value).toString('base64');
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
}

const isNumber = (value) => typeof value === 'number' || typeof value === 'bigint' || value instanceof NumberValue;

function fromSet(set, path) {
    const members = [...set];
    if (members.length === 0)
        throw bad(path, 'a set must not be empty: leave the attribute out instead');
    if (members.every((each) => typeof each === 'string'))
        return { SS: members.map((each) => text(each, path)) };
    if (members.every(isNumber))
        return { NS: members.map((each) => numberText(each, path)) };
    if (members.every(isBytes))
        return { BS: members.map(base64) };
    throw bad(path, 'a set has strings, numbers or bytes, all of one kind');
}

function isPlain(value) {
    const prototype = Object.getPrototypeOf(value);
    /* An object of another realm, such as vm's or a test runner's, has another Object. */
    return prototype === null || prototype === Object.prototype ||
        (Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf'));
}

function hint(value) {
    if (value instanceof Date)
        return 'a Date has no type of its own: store date.toISOString() or date.getTime()';
    if (ArrayBuffer.isView(value))
        return `${value.constructor.name} is not bytes: use a Uint8Array`;
    const name = value.constructor?.name ?? 'an object of a class';
    return `${name} is not a plain object: use {...value}, or a string, number, Uint8Array, Set or array`;
}

/* A string that UTF-8 can hold. */
function text(value, path) {
    if (/\p{Surrogate}/u.test(value))
        throw bad(path, 'the string has half of a surrogate pair');
    return value;
}

/* One value. `path` is where it stands, for errors. */
function toValue(value, path = '', depth = 0) {
    switch (typeof value) {
    case 'string':
        return { S: text(value, path) };
    case 'number':
    case 'bigint':
        return { N: numberText(value, path) };
    case 'boolean':
        return { BOOL: value };
    case 'undefined':
        throw bad(path, 'undefined cannot be stored: use null, or leave it out');
    case 'object':
        break;
    default:
        throw bad(path, `a ${typeof value} cannot be stored`);
    }
    if (value === null)
        return { NULL: true };
    if (depth > DEPTH_MAX)
        throw bad(path.slice(0, 60), 'more than 100 levels: is there a circle?');
    if (Array.isArray(value))
        return { L: Array.from(value, (each, i) => toValue(each, `${path}[${i}]`, depth + 1)) };
    if (value instanceof NumberValue)
        return { N: value.text };
    if (isBytes(value))
        return { B: base64(value) };
    if (value instanceof Set)
        return fromSet(value, path);
    if (value instanceof Map)
        return { M: toMap(value, path, depth + 1) };
    if (!isPlain(value))
        throw bad(path, hint(value));
    return { M: toMap(Object.entries(value), path, depth + 1) };
}

function toMap(entries, path, depth) {
    const map = {};
    for (const [name, value] of entries) {
        if (value === undefined)
            continue;
        if (typeof name !== 'string')
            throw bad(path, 'the keys of a Map have to be strings');
        /* Not map[name] = ...: "__proto__" is a name like any other. */
        Object.defineProperty(map, name, {
            value: toValue(value, path ? `${path}.${name}` : name, depth),
            enumerable: true, configurable: true, writable: true,
        });
    }
    return map;
}

function toItem(item, what = 'an item') {
    if (item === null || typeof item !== 'object' || Array.isArray(item) || !(item instanceof Map || isPlain(item)))
        throw bad('', `${what} is a plain object, not ${item === null ? 'null' : Array.isArray(item) ? 'an array' : typeof item}`);
    return toMap(item instanceof Map ? item : Object.entries(item), '', 1);
}

/* ---- from DynamoDB -------------------------------------------------------------------------- */

function toNumber(text) {
    const number = Number(text);
    if (/^-?\d+$/.test(text))
        return Number.isSafeInteger(number) ? number : BigInt(text);
    /* A double keeps 15 digits, whatever they are. */
    if (/^-?[\d.]{1,16}$/.test(text) || (Number.isFinite(number) && sameDecimal(text, String(number))))
        return number;
    return new NumberValue(text);
}

const bytes = (text) => new Uint8Array(Buffer.from(text, 'base64'));

function fromValue(value) {
    for (const type in value) {
        const inner = value[type];
        switch (type) {
        case 'S': case 'BOOL': return inner;
        case 'N': return toNumber(inner);
        case 'NULL': return null;
        case 'B': return bytes(inner);
        case 'L': return inner.map(fromValue);
        case 'M': return fromItem(inner);
        case 'SS': return new Set(inner);
        case 'NS': return new Set(inner.map(toNumber));
        case 'BS': return new Set(inner.map(bytes));
        }
    }
    return undefined;
}

function fromItem(item) {
    const result = {};
    for (const name of Object.keys(item)) {
        if (name === '__proto__')
            Object.defineProperty(result, name,
                { value: fromValue(item[name]), enumerable: true, configurable: true, writable: true });
        else
            result[name] = fromValue(item[name]);
    }
    return result;
}

module.exports = { NumberValue, toValue, toItem, fromValue, fromItem, toNumber };
