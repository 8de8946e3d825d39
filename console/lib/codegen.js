/* lib/codegen.js: a request as a command or a program: "copy as". */
import { typeOf } from './values.js';

const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
const snake = (name) => name.replace(/[A-Z]/g, (c, i) => (i ? '-' : '') + c.toLowerCase());

function aws(operation, request, endpoint) {
    const args = Object.entries(request).map(([name, value]) => {
        if (name === 'ScanIndexForward')
            return '--no-scan-index-forward';
        if (value === true)
            return `--${snake(name)}`;
        return `--${snake(name)} ${typeof value === 'object' ? shell(JSON.stringify(value)) : /^[\w./:-]+$/.test(value) ? value : shell(String(value))}`;
    });
    return [`aws dynamodb ${snake(operation)}`, ...args, `--endpoint-url ${endpoint}`].join(' \\\n    ');
}

const C_FIELDS = { TableName: 'table', IndexName: 'index', KeyConditionExpression: 'key_condition', FilterExpression: 'filter', ProjectionExpression: 'projection',
    ExpressionAttributeNames: 'names', ExpressionAttributeValues: 'values', ScanIndexForward: 'forward', ConsistentRead: 'consistent', Limit: 'limit', Statement: 'statement' };
const quote = (text) => JSON.stringify(text).replace(/\\u([0-9a-f]{4})/g, (_, hex) => `\\x${hex.slice(2)}""`);

function cValue(name, value) {
    const type = typeOf(value), v = value[type];
    switch (type) {
    case 'S': return `HF_S(${quote(name)}, HF_STR(${quote(v)}))`;
    case 'N': return /^-?\d{1,18}$/.test(v) ? `HF_N(${quote(name)}, ${v})` : `HF_NUM(${quote(name)}, HF_STR(${quote(v)}))`;
    case 'BOOL': return `HF_BOOL(${quote(name)}, ${v})`;
    case 'NULL': return `HF_NULL(${quote(name)})`;
    }
    return null;
}

/* Values that have no macro are read from JSON. */
function c(operation, request) {
    const fn = snake(operation).replaceAll('-', '_'), lines = [];
    let before = '';
    for (const [name, value] of Object.entries(request)) {
        const field = C_FIELDS[name];
        if (!field)
            continue;
        if (name === 'ExpressionAttributeNames') {
            lines.push(`.names = HF_ITEM(s, ${Object.entries(value).map(([k, v]) => `HF_S(${quote(k)}, HF_STR(${quote(v)}))`).join(', ')})`);
        } else if (name === 'ExpressionAttributeValues') {
            const made = Object.entries(value).map(([k, v]) => cValue(k, v));
            if (made.every(Boolean)) {
                lines.push(`.values = HF_ITEM(s, ${made.join(', ')})`);
            } else {
                before = `struct hf_item values;\n\nif (hf_item_from_json(s, HF_STR(${quote(JSON.stringify(value))}), &values) != HF_OK)\n    return complain(hf_scope_error_text(s));\n`;
                lines.push('.values = values');
            }
        } else {
            lines.push(`.${field} = ${value === true ? 'HF_YES' : value === false ? 'HF_NO' : typeof value === 'number' ? value : `HF_STR(${quote(value)})`}`);
        }
    }
    return `#include <holdfast/db.h>\n\n${before}struct hf_${fn} request = {\n    ${lines.join(',\n    ')}};\nstruct hf_${fn}_result result;\n\nif (hf_${fn}(s, db, &request, &result) != HF_OK)\n    return complain(hf_scope_error_text(s));\nfor (size_t i = 0; i < result.items_len; i++)\n    puts(hf_item_to_json(s, result.items[i]).ptr);`;
}

function javascript(operation, request, endpoint, region) {
    return `import { DynamoDBClient, ${operation}Command } from '@aws-sdk/client-dynamodb';\n\nconst client = new DynamoDBClient({ endpoint: '${endpoint}', region: '${region}' });\nconst answer = await client.send(new ${operation}Command(${JSON.stringify(request, null, 4)}));\nconsole.log(answer.Items);`;
}

function python(operation, request, endpoint, region) {
    const value = (v, indent) => {
        const inner = indent + '    ';
        if (Array.isArray(v))
            return `[${v.map((one) => value(one, indent)).join(', ')}]`;
        if (v && typeof v === 'object')
            return `{${Object.entries(v).map(([k, one]) => `${JSON.stringify(k)}: ${value(one, inner)}`).join(', ')}}`;
        return v === true ? 'True' : v === false ? 'False' : JSON.stringify(v);
    };
    const args = Object.entries(request).map(([name, v]) => `    ${name}=${value(v, '    ')},\n`).join('');
    return `import boto3\n\nclient = boto3.client("dynamodb", endpoint_url="${endpoint}", region_name="${region}")\nanswer = client.${snake(operation).replaceAll('-', '_')}(\n${args})\nprint(answer["Items"])`;
}

/* The command has names for the same things; a key condition goes by --where. */
function command(operation, request, endpoint) {
    const db = `--db ${endpoint}`, args = [];
    const text = (option, name) => request[name] !== undefined && args.push(`${option} ${shell(request[name])}`);
    if (operation === 'ExecuteStatement')
        return `holdfast sql ${shell(request.Statement)} ${db}`;
    text('--where', 'KeyConditionExpression');
    text('--index', 'IndexName');
    text('--filter', 'FilterExpression');
    if (request.ProjectionExpression)
        args.push(`--attributes ${shell(request.ProjectionExpression.replace(/#n\d+/g, (n) => request.ExpressionAttributeNames[n]).replaceAll(', ', ','))}`);
    const used = Object.entries(request.ExpressionAttributeNames || {}).filter(([k]) => [request.KeyConditionExpression, request.FilterExpression].some((e) => e?.includes(k)));
    if (used.length)
        args.push(`--names ${shell(JSON.stringify(Object.fromEntries(used)))}`);
    if (request.ExpressionAttributeValues)
        args.push(`--dynamodb --values ${shell(JSON.stringify(request.ExpressionAttributeValues))}`);
    if (request.ScanIndexForward === false)
        args.push('--reverse');
    if (request.ConsistentRead)
        args.push('--consistent');
    return [`holdfast ${operation.toLowerCase()} ${request.TableName}`, ...args, db].join(' \\\n    ');
}

export const LANGUAGES = [['holdfast', command], ['AWS CLI', aws], ['C', c], ['JavaScript', javascript], ['Python', python]];
