/*
 * lib/explain.js: what a statement of PartiQL will read, told before it runs.
 *
 * DynamoDB's rule is short: a statement reads the table, or the index that FROM names, and never
 * chooses one by itself. With an equality (or IN) for the whole partition key it is a query, with the
 * whole key of the table it reads one item, and else it is a scan of everything.
 */
import { keysOf } from './expr.js';

/* [{kind: word, name, string, number, mark, text}] */
export function tokens(text) {
    const out = [], pattern = /\s+|--[^\n]*|([A-Za-z_]\w*)|"((?:[^"]|"")*)"|'((?:[^']|'')*)'|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(<=|>=|<>|!=|\|\||<<|>>|[^\s])/gy;
    for (let m; pattern.lastIndex < text.length && (m = pattern.exec(text));)
        if (m[1] !== undefined)
            out.push({ kind: 'word', text: m[1], up: m[1].toUpperCase() });
        else if (m[2] !== undefined)
            out.push({ kind: 'name', text: m[2].replaceAll('""', '"') });
        else if (m[3] !== undefined)
            out.push({ kind: 'string', text: m[3].replaceAll("''", "'") });
        else if (m[4] !== undefined)
            out.push({ kind: 'number', text: m[4] });
        else if (m[5] !== undefined)
            out.push({ kind: 'mark', text: m[5] });
    return out;
}

const isName = (token) => token && (token.kind === 'word' || token.kind === 'name');

/* {verb, table, index, terms: [{name, op, count}], or} or null, if it is none that we understand. */
export function parse(text) {
    const all = tokens(text), verb = all[0]?.up;
    if (!['SELECT', 'UPDATE', 'DELETE', 'INSERT'].includes(verb))
        return null;
    const at = verb === 'UPDATE' ? 1 : all.findIndex((t) => t.up === (verb === 'INSERT' ? 'INTO' : 'FROM')) + 1;
    if (at === 0 || !isName(all[at]))
        return null;
    const out = { verb, table: all[at].text, index: null, terms: [], or: false };
    if (all[at + 1]?.text === '.' && isName(all[at + 2]))
        out.index = all[at + 2].text;
    const where = all.findIndex((t) => t.up === 'WHERE');
    if (where < 0)
        return out;
    let depth = 0;
    for (let i = where + 1; i < all.length; i++) {
        const t = all[i];
        if ('([{'.includes(t.text) && t.kind === 'mark')
            depth++;
        else if (')]}'.includes(t.text) && t.kind === 'mark')
            depth--;
        else if (t.up === 'OR')
            out.or = true;
        else if (t.up === 'ORDER' || t.up === 'RETURNING')
            break;
        else if (depth === 0 && isName(t) && (t.kind === 'name' || !['AND', 'NOT', 'IN', 'BETWEEN', 'IS', 'MISSING', 'NULL', 'TRUE', 'FALSE'].includes(t.up))) {
            const next = all[i + 1], not = all[i - 1]?.up === 'NOT';
            if (t.kind === 'word' && next?.text === '(' && next.kind === 'mark') { /* a function */
                if (isName(all[i + 2]))
                    out.terms.push({ name: all[i + 2].text, op: t.text.toLowerCase(), count: 1 });
            } else if (next && !not && (['=', '<', '<=', '>', '>=', '<>', '!='].includes(next.text) || ['IN', 'BETWEEN'].includes(next.up)) && all[i - 1]?.text !== '.') {
                let n = 1;
                if (next.up === 'IN')
                    for (let j = i + 3, d = 0; j < all.length && !(d === 0 && [')', ']'].includes(all[j].text)); j++)
                        n += all[j].text === ',' ? 1 : 0;
                out.terms.push({ name: t.text, op: (next.up || next.text).toLowerCase(), count: n });
            }
        }
    }
    return out;
}

/* {kind: get|query|scan|write, uses, reads, units, why, advice: [{text, from}]} for what parse() gave and DescribeTable says. */
export function explain(statement, table) {
    const index = [...(table.GlobalSecondaryIndexes || []), ...(table.LocalSecondaryIndexes || [])].find((i) => i.IndexName === statement.index);
    if (statement.index && !index)
        return { kind: 'error', why: `${table.TableName} has no index ${statement.index}.`, advice: [] };
    const keys = keysOf(table, statement.index), of = index || table, items = of.ItemCount || 0, bytes = of.IndexSizeBytes ?? of.TableSizeBytes ?? 0;
    const fixed = (name, k = keys) => !statement.or && statement.terms.find((t) => t.name === name && (t.op === '=' || t.op === 'in') && k);
    const uses = statement.index ? `index ${statement.index}` : `table ${statement.table}`;
    if (statement.verb !== 'SELECT') {
        const missing = statement.verb === 'INSERT' ? [] : [...keys.hash, ...keys.range].filter((name) => !statement.terms.some((t) => t.name === name && t.op === '='));
        return { kind: missing.length ? 'error' : 'write', uses, reads: 1, why: missing.length ? `A statement that writes names the whole key; ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} missing.` : 'Writes one item.', advice: [] };
    }
    const hashes = keys.hash.map((name) => fixed(name));
    const average = items ? bytes / items : 0, unit = (n) => Math.max(0.5, Math.ceil(n / 4096) / 2);
    if (keys.hash.length && hashes.every(Boolean)) {
        const partitions = hashes.reduce((n, t) => n * t.count, 1);
        if (!statement.index && keys.range.every((name) => fixed(name))) {
            const n = partitions * keys.range.reduce((m, name) => m * fixed(name).count, 1);
            return { kind: 'get', uses, reads: n, units: n * unit(average), why: `The whole key is given: ${n === 1 ? 'one item is' : `${n} items are`} read.`, advice: [] };
        }
        const range = keys.range[0] && statement.terms.find((t) => t.name === keys.range[0] && t.op !== '<>' && t.op !== 'contains');
        return { kind: 'query', uses, reads: null, partitions, average, unitOfItems: (n) => unit(n * average), keys,
            why: `The partition key is given: ${partitions === 1 ? 'one partition is' : `${partitions} partitions are`} read${range ? `, of it what matches ${range.name}` : ' as a whole'}. Other conditions choose among what was read.`, advice: [] };
    }
    const advice = [];
    for (const i of [null, ...(table.GlobalSecondaryIndexes || []), ...(table.LocalSecondaryIndexes || [])]) {
        const name = i?.IndexName || null, k = keysOf(table, name);
        if (name !== statement.index && k.hash.every((one) => fixed(one, k)))
            advice.push({ text: `FROM "${statement.table}"${name ? `."${name}"` : ''} makes it a query`, from: name });
    }
    const wanted = statement.terms.find((t) => t.op === '=' || t.op === 'in');
    if (!advice.length && wanted && !statement.or)
        advice.push({ text: `An index with the partition key ${wanted.name} would make it a query.` });
    return { kind: 'scan', uses, reads: items, units: unit(bytes), why: statement.or ? 'OR across attributes reads everything and filters.' : `No equality on ${keys.hash.join(' and ')}: everything is read, and filtered.`, advice };
}
