/*
 * lib/expr.js: from what the query builder holds to a request of Query or Scan.
 *
 * A state is a flat object that fits into a URL: index, mode (scan, query), hash, op, range, to,
 * filters [{name, op, type, value, to, not}], any (OR instead of AND), project, desc, consistent.
 */
import { base64ToBytes, fromPlain, numberProblem, valueProblem } from './values.js';

export const KEY_OPS = [['', 'any'], ['=', '='], ['<', '<'], ['<=', '≤'], ['>', '>'], ['>=', '≥'], ['between', 'between'], ['begins_with', 'begins with']];
export const FILTER_OPS = [['=', '='], ['<>', '≠'], ['<', '<'], ['<=', '≤'], ['>', '>'], ['>=', '≥'], ['between', 'between'], ['in', 'one of'],
    ['begins_with', 'begins with'], ['contains', 'contains'], ['exists', 'exists'], ['type', 'has type'],
    ['size =', 'size ='], ['size <', 'size <'], ['size >', 'size >']];
export const VALUE_TYPES = [['S', 'String'], ['N', 'Number'], ['BOOL', 'Boolean'], ['NULL', 'Null'], ['B', 'Binary'], ['JSON', 'JSON']];

/* The text of a field as a value of a type; throws what is wrong with it. `at` names the field. */
export function valueOf(text, type, at) {
    text ??= '';
    if (type === 'N') {
        const problem = numberProblem(text);
        if (problem)
            throw new Error(`${at}: ${JSON.stringify(text)} is ${problem}`);
        return { N: text.trim() };
    }
    if (type === 'BOOL')
        return { BOOL: text.trim() === 'true' };
    if (type === 'NULL')
        return { NULL: true };
    if (type === 'B') {
        try {
            base64ToBytes(text);
        } catch {
            throw new Error(`${at}: expected base64`);
        }
        return { B: text };
    }
    if (type === 'JSON') { /* typed, or plain */
        try {
            const typed = JSON.parse(text);
            if (!valueProblem(typed))
                return typed;
        } catch { /* fromPlain says where */ }
        return fromPlain(text);
    }
    return { S: text };
}

/* a.b[0]."c.d" -> ["a", "b", 0, "c.d"] */
export function pathOf(text) {
    const out = [];
    let rest = text.trim();
    while (rest) {
        const found = /^(?:"((?:[^"\\]|\\.)*)"|\[(\d+)\]|([^.[\]"]+))\.?/.exec(rest);
        if (!found)
            throw new Error(`${text}: expected a path such as address.city, lines[0] or "name with dots"`);
        out.push(found[1] !== undefined ? JSON.parse(`"${found[1]}"`) : found[2] !== undefined ? Number(found[2]) : found[3].trim());
        rest = rest.slice(found[0].length);
    }
    if (!out.length || typeof out[0] === 'number')
        throw new Error('name an attribute');
    return out;
}

/* Placeholders of one request. */
export function placeholders() {
    const names = {}, values = {}, known = new Map();
    const name = (text) => {
        if (!known.has(text)) {
            known.set(text, `#n${known.size}`);
            names[known.get(text)] = text;
        }
        return known.get(text);
    };
    return {
        names, values, name,
        path: (text) => pathOf(text).map((part, i) => (typeof part === 'number' ? `[${part}]` : (i ? '.' : '') + name(part))).join(''),
        value: (v) => {
            const key = `:v${Object.keys(values).length}`;
            values[key] = v;
            return key;
        },
        into(request) {
            if (Object.keys(names).length)
                request.ExpressionAttributeNames = names;
            if (Object.keys(values).length)
                request.ExpressionAttributeValues = values;
            return request;
        },
    };
}

function filterText(filter, p, i) {
    const at = `filter ${i + 1}`, path = p.path(filter.name), value = (text) => p.value(valueOf(text, filter.type, at));
    let text;
    switch (filter.op) {
    case 'between': text = `${path} BETWEEN ${value(filter.value)} AND ${value(filter.to)}`; break;
    case 'in': {
        const list = (filter.value || '').split(',').map((one) => one.trim()).filter((one) => one !== '');
        if (!list.length || list.length > 100)
            throw new Error(`${at}: expected 1 to 100 values with commas between them`);
        text = `${path} IN (${list.map(value).join(', ')})`;
        break;
    }
    case 'begins_with': case 'contains': text = `${filter.op}(${path}, ${value(filter.value)})`; break;
    case 'exists': text = `attribute_exists(${path})`; break;
    case 'type': text = `attribute_type(${path}, ${p.value({ S: filter.value || 'S' })})`; break;
    default:
        if (filter.op.startsWith('size'))
            text = `size(${path}) ${filter.op.slice(5)} ${p.value(valueOf(filter.value, 'N', at))}`;
        else
            text = `${path} ${filter.op} ${value(filter.value)}`;
    }
    if (!filter.not)
        return text;
    return filter.op === 'exists' ? `attribute_not_exists(${path})` : `NOT ${/ (BETWEEN|IN) |^[^(]* [=<>]/.test(text) ? `(${text})` : text}`;
}

/* The keys of the table or the index that a state reads: {hash: [..], range: [..], type(name)}. */
export function keysOf(table, index) {
    const of = !index ? table : [...(table.GlobalSecondaryIndexes || []), ...(table.LocalSecondaryIndexes || [])].find((one) => one.IndexName === index) || table;
    const pick = (kind) => of.KeySchema.filter((k) => k.KeyType === kind).map((k) => k.AttributeName);
    return { hash: pick('HASH'), range: pick('RANGE'), type: (name) => table.AttributeDefinitions.find((a) => a.AttributeName === name)?.AttributeType || 'S' };
}

export const isGlobal = (table, index) => (table.GlobalSecondaryIndexes || []).some((one) => one.IndexName === index);

/* {operation, request}; throws an Error that names the field. */
export function build(table, state) {
    const p = placeholders(), keys = keysOf(table, state.index), request = { TableName: table.TableName };
    const operation = state.mode === 'query' ? 'Query' : 'Scan';
    if (state.index)
        request.IndexName = state.index;
    if (operation === 'Query') {
        const parts = keys.hash.map((name, i) => {
            const text = i === 0 ? state.hash : state[`hash${i}`];
            if (text === undefined || text === '')
                throw new Error(`${name}: a query needs a value of the partition key`);
            return `${p.name(name)} = ${p.value(valueOf(text, keys.type(name), name))}`;
        });
        const range = keys.range[0];
        if (range && state.op) {
            const type = keys.type(range), value = (text) => p.value(valueOf(text, type, range));
            parts.push(state.op === 'between' ? `${p.name(range)} BETWEEN ${value(state.range)} AND ${value(state.to)}`
                : state.op === 'begins_with' ? `begins_with(${p.name(range)}, ${value(state.range)})` : `${p.name(range)} ${state.op} ${value(state.range)}`);
        }
        request.KeyConditionExpression = parts.join(' AND ');
        if (state.desc)
            request.ScanIndexForward = false;
    }
    const filters = (state.filters || []).filter((one) => one.name);
    if (filters.length) {
        const texts = filters.map((one, i) => filterText(one, p, i));
        request.FilterExpression = texts.length === 1 ? texts[0] : texts.join(state.any ? ' OR ' : ' AND ');
    }
    if (state.project?.trim())
        request.ProjectionExpression = state.project.split(/,(?![^"]*"(?:[^"]*"[^"]*")*[^"]*$)/).map((one) => p.path(one)).join(', ');
    if (state.consistent && !isGlobal(table, state.index))
        request.ConsistentRead = true;
    return { operation, request: p.into(request) };
}

/* ---- in a URL ---- */

export function toQuery(state) {
    const { filters = [], ...rest } = state, used = filters.filter((one) => one.name);
    return { ...rest, mode: state.mode === 'query' ? 'query' : '', any: state.any ? '1' : '', desc: state.desc ? '1' : '', consistent: state.consistent ? '1' : '',
        filters: used.length ? JSON.stringify(used) : '' };
}

export function fromQuery(query) {
    let filters = [];
    try {
        filters = JSON.parse(query.filters || '[]').filter((one) => one && typeof one.name === 'string')
            .map((one) => ({ type: 'S', op: '=', ...one }));
    } catch { /* a URL that somebody has cut */ }
    const { index, hash, hash1, hash2, hash3, op, range, to, project } = query;
    return { index, hash, hash1, hash2, hash3, op, range, to, project, filters, mode: query.mode === 'query' ? 'query' : 'scan', any: !!query.any, desc: !!query.desc, consistent: !!query.consistent };
}
