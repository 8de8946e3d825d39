/* One item at a time: put, get, update, delete; conditions, projections, return values, errors. */
'use strict';
const assert = require('assert');
const dynamodb = require('@aws-sdk/client-dynamodb');
const { before, after, test, eq, fails } = require('../lib/suite');
const { api, newName, makeTable, dropTable, without$ } = require('../lib/clients');

let T, C; /* a table with a hash key, and one with a sort key too */
let n = 0;
const S = (text) => ({ S: text });
const N = (number) => ({ N: String(number) });
const fresh = () => S(`k${++n}`);
const get = async (pk, more = {}) => (await api.GetItem({ TableName: T, Key: { pk }, ConsistentRead: true, ...more })).Item;

async function put(more = {}) {
    const pk = fresh();
    await api.PutItem({ TableName: T, Item: { pk, ...more } });
    return pk;
}

before(async () => {
    T = await makeTable('items', 'pk:S');
    C = await makeTable('items2', 'pk:S', 'sk:N');
});
after(async () => {
    await dropTable(T);
    await dropTable(C);
});

/* ---- put, get, delete ----------------------------------------------------------------------- */

test('PutItem and GetItem', async () => {
    const pk = await put({ a: S('x'), b: N(1) });
    eq(await get(pk), { pk, a: S('x'), b: N(1) });
});

test('PutItem replaces all of the item', async () => {
    const pk = await put({ a: S('x') });
    await api.PutItem({ TableName: T, Item: { pk, b: S('y') } });
    eq(await get(pk), { pk, b: S('y') });
});

test('GetItem of nothing has no Item', async () => {
    eq(without$(await api.GetItem({ TableName: T, Key: { pk: fresh() } })), {});
});

test('PutItem answers with nothing', async () => {
    eq(without$(await api.PutItem({ TableName: T, Item: { pk: fresh() } })), {});
});

test('PutItem with ALL_OLD', async () => {
    const pk = await put({ a: N(1) });
    const old = await api.PutItem({ TableName: T, Item: { pk, a: N(2) }, ReturnValues: 'ALL_OLD' });
    eq(old.Attributes, { pk, a: N(1) });
});

test('PutItem with ALL_OLD of a new item', async () => {
    eq(without$(await api.PutItem({ TableName: T, Item: { pk: fresh() }, ReturnValues: 'ALL_OLD' })), {});
});

test('PutItem with ALL_NEW is refused', () =>
    fails(api.PutItem({ TableName: T, Item: { pk: fresh() }, ReturnValues: 'ALL_NEW' }), 'ValidationException',
        'ReturnValues can only be ALL_OLD or NONE'));

test('DeleteItem', async () => {
    const pk = await put({ a: N(1) });
    eq(without$(await api.DeleteItem({ TableName: T, Key: { pk } })), {});
    eq(await get(pk), undefined);
});

test('DeleteItem with ALL_OLD', async () => {
    const pk = await put({ a: N(1) });
    const { Attributes } = await api.DeleteItem({ TableName: T, Key: { pk }, ReturnValues: 'ALL_OLD' });
    eq(Attributes, { pk, a: N(1) });
});

test('DeleteItem of nothing', async () => {
    eq(without$(await api.DeleteItem({ TableName: T, Key: { pk: fresh() }, ReturnValues: 'ALL_OLD' })), {});
});

test('sort keys tell items apart', async () => {
    const pk = fresh();
    for (const sk of [1, 2])
        await api.PutItem({ TableName: C, Item: { pk, sk: N(sk), v: N(sk * 10) } });
    eq((await api.GetItem({ TableName: C, Key: { pk, sk: N(2) } })).Item, { pk, sk: N(2), v: N(20) });
    await api.DeleteItem({ TableName: C, Key: { pk, sk: N(2) } });
    eq((await api.GetItem({ TableName: C, Key: { pk, sk: N(1) } })).Item, { pk, sk: N(1), v: N(10) });
});

test('a number key is the number, not its text', async () => {
    const pk = fresh();
    await api.PutItem({ TableName: C, Item: { pk, sk: N('1000') } });
    eq((await api.GetItem({ TableName: C, Key: { pk, sk: N('1e3') } })).Item, { pk, sk: N('1000') });
    eq((await api.GetItem({ TableName: C, Key: { pk, sk: N('01000.0') } })).Item, { pk, sk: N('1000') });
});

/* ---- values --------------------------------------------------------------------------------- */

const VALUES = {
    'a string': S('text'),
    'an empty string': S(''),
    'unicode beyond the plane': S('žluťoučký 😀 \u{10ffff} \u0000 end'),
    'quotes and controls': S('"\\\b\f\n\r\t\u001f\u007f/'),
    'an integer': N('42'),
    '38 digits': N('12345678901234567890123456789012345678'),
    'a negative number of 38 digits': N('-1.2345678901234567890123456789012345678'),
    'the greatest number': N('9'.repeat(38) + '0'.repeat(88)),
    'the smallest number': N('0.' + '0'.repeat(129) + '1'),
    'zero': N('0'),
    'binary': { B: Uint8Array.from([0, 1, 127, 128, 255]) },
    'empty binary': { B: new Uint8Array(0) },
    'true': { BOOL: true },
    'false': { BOOL: false },
    'null': { NULL: true },
    'a string set': { SS: ['a', 'b', 'ü'] },
    'an empty list': { L: [] },
    'an empty map': { M: {} },
    'a list of everything': { L: [S('a'), N(1), { BOOL: true }, { NULL: true }, { L: [] }, { M: {} }] },
    'a map with odd names': { M: { 'a.b': N(1), 'ü': N(2), '#x': N(3), ':y': N(4), ' ': N(5) } },
};

for (const [name, value] of Object.entries(VALUES))
    test(`value: ${name}`, async () => {
        const pk = await put({ v: value });
        eq(await get(pk), { pk, v: value });
    });

test('value: a number set', async () => {
    const pk = await put({ v: { NS: ['3', '1e1', '-2.50'] } });
    eq((await get(pk)).v.NS.map(Number).sort((a, b) => a - b), [-2.5, 3, 10]);
});

test('value: a binary set', async () => {
    const set = [Uint8Array.from([1, 2]), Uint8Array.from([255])];
    const pk = await put({ v: { BS: set } });
    const back = (await get(pk)).v.BS;
    assert(back.every((each) => each instanceof Uint8Array));
    eq(back.map((each) => [...each]).sort((a, b) => a[0] - b[0]), [[1, 2], [255]]);
});

test('value: 31 levels of lists', async () => {
    let v = S('deep');
    for (let i = 0; i < 31; i++)
        v = { L: [v] };
    const pk = await put({ v });
    eq((await get(pk)).v, v);
});

test('value: 33 levels are too many', () => {
    let v = S('deep');
    for (let i = 0; i < 33; i++)
        v = { M: { v } };
    return fails(put({ v }), 'ValidationException',
        'Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit');
});

for (const [written, stored] of [['1.0', '1'], ['+5', '5'], ['1e-3', '0.001'], ['-0', '0'], ['007', '7'], ['1E+2', '100'],
    ['.5', '0.5']])
    test(`number ${written} comes back as ${stored}`, async () => {
        eq((await get(await put({ v: { N: written } }))).v, { N: stored });
    });

test('number: 39 digits are too many', () =>
    fails(put({ v: N('1'.repeat(39)) }), 'ValidationException',
        'Attempting to store more than 38 significant digits in a Number'));
test('number: 1e126 is too great', () =>
    fails(put({ v: N('1e126') }), 'ValidationException',
        'Number overflow. Attempting to store a number with magnitude larger than supported range'));
test('number: 1e-131 is too small', () =>
    fails(put({ v: N('1e-131') }), 'ValidationException',
        'Number underflow. Attempting to store a number with magnitude smaller than supported range'));
test('number: text is none', () =>
    fails(put({ v: N('abc') }), 'ValidationException',
        'The parameter cannot be converted to a numeric value: abc'));

test('an empty string set is refused', () =>
    fails(put({ v: { SS: [] } }), 'ValidationException',
        'One or more parameter values were invalid: An string set  may not be empty'));
test('a string twice in a set is refused', () =>
    fails(put({ v: { SS: ['a', 'b', 'a'] } }), 'ValidationException',
        'One or more parameter values were invalid: Input collection [a, b, a] contains duplicates.'));
test('a number twice in a set is refused, however it is written', () =>
    fails(put({ v: { NS: ['1', '1.0'] } }), 'ValidationException', 'Input collection contains duplicates'));
test('NULL false is refused', () =>
    fails(put({ v: { NULL: false } }), 'ValidationException',
        'One or more parameter values were invalid: Null attribute value types must have the value of true'));

/* ---- sizes ---------------------------------------------------------------------------------- */

test('an item of 400 KB is kept', async () => {
    const pk = fresh();
    const v = S('x'.repeat(409600 - 2 - pk.S.length - 1));
    await api.PutItem({ TableName: T, Item: { pk, v } });
    eq((await get(pk)).v.S.length, v.S.length);
    await api.DeleteItem({ TableName: T, Key: { pk } });
});

test('a byte more is too much', async () => {
    const pk = fresh();
    const v = S('x'.repeat(409600 - 2 - pk.S.length));
    await fails(api.PutItem({ TableName: T, Item: { pk, v } }), 'ValidationException',
        'Item size has exceeded the maximum allowed size');
});

test('an update cannot make an item too big', async () => {
    const pk = await put({ v: S('x'.repeat(300000)) });
    await fails(api.UpdateItem({
        TableName: T, Key: { pk }, UpdateExpression: 'SET w = :w',
        ExpressionAttributeValues: { ':w': S('y'.repeat(200000)) },
    }), 'ValidationException', 'Item size to update has exceeded the maximum allowed size');
    eq(Object.keys(await get(pk)).sort(), ['pk', 'v']);
});

test('hash keys have at most 2048 bytes', async () => {
    await api.PutItem({ TableName: T, Item: { pk: S('k'.repeat(2048)) } });
    await fails(api.PutItem({ TableName: T, Item: { pk: S('k'.repeat(2049)) } }), 'ValidationException',
        'One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes');
});

test('names of attributes have at most 65,535 bytes', async () => {
    const name = 'n'.repeat(65535);
    const pk = await put({ [name]: N(1) });
    eq(await get(pk), { pk, [name]: N(1) });
    await fails(put({ [`${name}n`]: N(1) }), 'ValidationException',
        'One or more parameter values were invalid: Attribute name is too large, must be less than 65535 bytes');
});
test('names of attributes are not empty', () =>
    fails(put({ '': N(1) }), 'ValidationException', 'One or more parameter values were invalid: Empty attribute name'));
test('a value without a type', () =>
    fails(put({ v: {} }), 'ValidationException',
        'Supplied AttributeValue is empty, must contain exactly one of the supported datatypes'));
test('half a surrogate pair is refused, and nothing is written', async () => {
    const pk = fresh();
    await fails(api.PutItem({ TableName: T, Item: { pk, v: S('a\ud800b') } }), 'SerializationException');
    eq(await get(pk), undefined);
});
test('a hundred attributes', async () => {
    const item = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`a${i}`, N(i)]));
    const pk = await put(item);
    eq(await get(pk), { pk, ...item });
});

/* ---- errors of keys ------------------------------------------------------------------------- */

test('PutItem without the key', () =>
    fails(api.PutItem({ TableName: T, Item: { a: N(1) } }), 'ValidationException',
        'One or more parameter values were invalid: Missing the key pk in the item'));
test('PutItem with a key of another type', () =>
    fails(api.PutItem({ TableName: T, Item: { pk: N(1) } }), 'ValidationException',
        'One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N'));
test('an empty key is refused', () =>
    fails(api.PutItem({ TableName: T, Item: { pk: S('') } }), 'ValidationException',
        'One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty ' +
        'string value. Key: pk'));
test('GetItem with a member too many', () =>
    fails(api.GetItem({ TableName: T, Key: { pk: S('a'), b: S('b') } }), 'ValidationException',
        'The provided key element does not match the schema'));
test('GetItem without the sort key', () =>
    fails(api.GetItem({ TableName: C, Key: { pk: S('a') } }), 'ValidationException',
        'The provided key element does not match the schema'));
test('GetItem of no table', () =>
    fails(api.GetItem({ TableName: newName('missing'), Key: { pk: S('a') } }), dynamodb.ResourceNotFoundException,
        'Requested resource not found'));
test('PutItem into no table', () =>
    fails(api.PutItem({ TableName: newName('missing'), Item: { pk: S('a') } }), dynamodb.ResourceNotFoundException,
        'Requested resource not found'));
test('an enum value that does not exist', () =>
    fails(api.GetItem({ TableName: T, Key: { pk: S('a') }, ReturnConsumedCapacity: 'SOME' }), 'ValidationException',
        "1 validation error detected: Value 'SOME' at 'returnConsumedCapacity' failed to satisfy constraint: " +
        'Member must satisfy enum value set: [INDEXES, TOTAL, NONE]'));

/* ---- projections ---------------------------------------------------------------------------- */

const DOCUMENT = { a: { M: { b: { L: [N(1), N(2), { M: { c: S('x') } }] }, d: S('y') } }, status: S('ok') };

for (const [expression, expected, names] of [
    ['a.d', { a: { M: { d: S('y') } } }],
    ['a.b[1]', { a: { M: { b: { L: [N(2)] } } } }],
    ['a.b[2].c, a.b[0]', { a: { M: { b: { L: [N(1), { M: { c: S('x') } }] } } } }],
    ['#s', { status: S('ok') }, { '#s': 'status' }],
    ['absent', {}],
    ['a.absent, pk', null],
])
    test(`projection ${expression}`, async () => {
        const pk = await put(DOCUMENT);
        const item = await get(pk, { ProjectionExpression: expression, ExpressionAttributeNames: names });
        eq(item, expected || { pk });
    });

test('projection of a reserved word', () =>
    fails(get(S('a'), { ProjectionExpression: 'status' }), 'ValidationException',
        'Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: status'));
test('projections that overlap', () =>
    fails(get(S('a'), { ProjectionExpression: 'a, a.b' }), 'ValidationException',
        'Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these ' +
        'paths; path one: [a], path two: [a, b]'));
test('a name that is not used', () =>
    fails(get(S('a'), { ProjectionExpression: 'a', ExpressionAttributeNames: { '#b': 'b' } }), 'ValidationException',
        'Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}'));
test('AttributesToGet', async () => {
    const pk = await put(DOCUMENT);
    eq(await get(pk, { AttributesToGet: ['status', 'pk'] }), { pk, status: S('ok') });
});

/* ---- conditions ----------------------------------------------------------------------------- */

test('attribute_not_exists lets only the first through', async () => {
    const pk = fresh();
    const once = () => api.PutItem({ TableName: T, Item: { pk }, ConditionExpression: 'attribute_not_exists(pk)' });
    await once();
    const error = await fails(once(), dynamodb.ConditionalCheckFailedException, 'The conditional request failed');
    eq(error.name, 'ConditionalCheckFailedException');
    eq(error.Item, undefined);
    eq(error.$metadata.httpStatusCode, 400);
});

test('a failed condition brings the item when asked', async () => {
    const pk = await put({ a: N(1), b: { B: Uint8Array.from([9]) } });
    const error = await fails(api.UpdateItem({
        TableName: T, Key: { pk }, UpdateExpression: 'SET a = :two', ConditionExpression: 'a = :two',
        ExpressionAttributeValues: { ':two': N(2) }, ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }), dynamodb.ConditionalCheckFailedException);
    eq(error.Item, { pk, a: N(1), b: { B: Uint8Array.from([9]) } });
});

for (const [condition, holds] of [
    ['a = :five', true], ['a <> :five', false], ['a < :six', true], ['a >= :six', false], ['a BETWEEN :five AND :six', true],
    ['a IN (:six, :five)', true], ['begins_with(s, :te)', true], ['contains(s, :te)', true], ['contains(l, :five)', true],
    ['contains(ss, :te)', false], ['size(s) = :five', false], ['size(l) < :five', true], ['attribute_exists(m.k)', true],
    ['attribute_exists(m.z)', false], ['attribute_type(m, :M)', true],
    ['NOT a = :five', false], ['a = :six OR (b = :five AND a = :five)', false], ['absent <> :five', true],
    ['absent = :five', false], ['l[1] = :six', true], ['m.k = s', true], ['s < :te', false],
])
    test(`condition ${condition} is ${holds}`, async () => {
        const pk = await put({
            a: N(5), s: S('text'), l: { L: [N(5), N(6)] }, m: { M: { k: S('text') } }, ss: { SS: ['x', 'y'] },
        });
        const values = { ':five': N(5), ':six': N(6), ':te': S('te'), ':M': S('M') };
        const used = Object.fromEntries(Object.entries(values).filter(([key]) => new RegExp(`${key}\\b`).test(condition)));
        const call = api.DeleteItem({
            TableName: T, Key: { pk }, ConditionExpression: condition,
            ExpressionAttributeValues: Object.keys(used).length ? used : undefined,
        });
        if (holds)
            await call;
        else
            await fails(call, dynamodb.ConditionalCheckFailedException);
        eq((await get(pk)) === undefined, holds);
    });

test('a condition that cannot be read', () =>
    fails(api.DeleteItem({ TableName: T, Key: { pk: S('a') }, ConditionExpression: 'a = = b' }), 'ValidationException',
        'Invalid ConditionExpression: Syntax error; token: "=", near: "= = b"'));
test('a value that is not defined', () =>
    fails(api.DeleteItem({ TableName: T, Key: { pk: S('a') }, ConditionExpression: 'a = :v' }), 'ValidationException',
        'Invalid ConditionExpression: An expression attribute value used in expression is not defined; attribute value: :v'));
test('a name that is not defined', () =>
    fails(api.DeleteItem({ TableName: T, Key: { pk: S('a') }, ConditionExpression: 'attribute_exists(#a)' }),
        'ValidationException', 'Invalid ConditionExpression: An expression attribute name used in the document path is not ' +
        'defined; attribute name: #a'));
test('values without an expression', () =>
    fails(api.PutItem({ TableName: T, Item: { pk: S('a') }, ExpressionAttributeValues: { ':v': N(1) } }), 'ValidationException',
        'ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null'));
test('old and new parameters do not mix', () =>
    fails(api.PutItem({
        TableName: T, Item: { pk: S('a') }, Expected: { a: { Exists: false } }, ConditionExpression: 'attribute_exists(a)',
    }), 'ValidationException', 'Can not use both expression and non-expression parameters in the same request: ' +
        'Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}'));
test('Expected still works', async () => {
    const pk = await put({ a: N(1) });
    const call = (value) => api.PutItem({ TableName: T, Item: { pk, a: N(2) }, Expected: { a: { Value: value } } });
    await fails(call(N(7)), dynamodb.ConditionalCheckFailedException);
    await call(N(1));
    eq((await get(pk)).a, N(2));
});

/* ---- updates -------------------------------------------------------------------------------- */

const update = (pk, UpdateExpression, values, more = {}) =>
    api.UpdateItem({ TableName: T, Key: { pk }, UpdateExpression, ExpressionAttributeValues: values, ...more });

for (const [name, expression, values, expected] of [
    ['SET', 'SET a = :v', { ':v': S('new') }, { a: S('new') }],
    ['SET plus', 'SET n = n + :v', { ':v': N('0.5') }, { n: N('5.5') }],
    ['SET minus', 'SET n = n - :v', { ':v': N(7) }, { n: N(-2) }],
    ['SET from another', 'SET a = s', undefined, { a: S('text') }],
    ['if_not_exists of a missing one', 'SET a = if_not_exists(zz, :v)', { ':v': N(1) }, { a: N(1) }],
    ['if_not_exists of one that is there', 'SET n = if_not_exists(n, :v)', { ':v': N(1) }, { n: N(5) }],
    ['list_append', 'SET l = list_append(l, :v)', { ':v': { L: [N(3)] } }, { l: { L: [N(1), N(2), N(3)] } }],
    ['a counter that begins', 'SET c = if_not_exists(c, :z) + :v', { ':z': N(0), ':v': N(1) }, { c: N(1) }],
    ['a list element', 'SET l[0] = :v', { ':v': N(9) }, { l: { L: [N(9), N(2)] } }],
    ['beyond the end of a list', 'SET l[7] = :v', { ':v': N(9) }, { l: { L: [N(1), N(2), N(9)] } }],
    ['a member of a map', 'SET m.x = :v', { ':v': N(9) }, { m: { M: { k: S('v'), x: N(9) } } }],
    ['REMOVE', 'REMOVE s', undefined, { s: undefined }],
    ['REMOVE from a list', 'REMOVE l[0]', undefined, { l: { L: [N(2)] } }],
    ['REMOVE what is not there', 'REMOVE zz', undefined, {}],
    ['ADD to a number', 'ADD n :v', { ':v': N(-1) }, { n: N(4) }],
    ['ADD to nothing', 'ADD zz :v', { ':v': N(3) }, { zz: N(3) }],
    ['ADD to a set', 'ADD ss :v', { ':v': { SS: ['b', 'c'] } }, { ss: { SS: ['a', 'b', 'c'] } }],
    ['DELETE from a set', 'DELETE ss :v', { ':v': { SS: ['b', 'q'] } }, { ss: { SS: ['a'] } }],
    ['DELETE all of a set', 'DELETE ss :v', { ':v': { SS: ['a', 'b'] } }, { ss: undefined }],
    ['all four', 'SET a = :a REMOVE s ADD n :n DELETE ss :s', { ':a': N(1), ':n': N(1), ':s': { SS: ['a'] } },
        { a: N(1), s: undefined, n: N(6), ss: { SS: ['b'] } }],
    ['a swap reads the old item', 'SET s = n, n = s', undefined, { s: N(5), n: S('text') }],
])
    test(`update: ${name}`, async () => {
        const start = { n: N(5), s: S('text'), l: { L: [N(1), N(2)] }, m: { M: { k: S('v') } }, ss: { SS: ['a', 'b'] } };
        const pk = await put(start);
        const { Attributes } = await update(pk, expression, values, { ReturnValues: 'ALL_NEW' });
        const wanted = { pk, ...start, ...expected };
        for (const key of Object.keys(wanted))
            if (wanted[key] === undefined)
                delete wanted[key];
        if (Attributes.ss)
            Attributes.ss.SS.sort();
        eq(Attributes, wanted);
        const stored = await get(pk);
        if (stored.ss)
            stored.ss.SS.sort();
        eq(stored, wanted);
    });

test('update creates an item', async () => {
    const pk = fresh();
    await update(pk, 'SET a = :v', { ':v': N(1) });
    eq(await get(pk), { pk, a: N(1) });
});
test('an update that only removes creates nothing', async () => {
    const pk = fresh();
    await update(pk, 'REMOVE a');
    eq(await get(pk), undefined);
});
test('an update without an expression creates the bare item', async () => {
    const pk = fresh();
    await api.UpdateItem({ TableName: T, Key: { pk } });
    eq(await get(pk), { pk });
});
for (const [kind, expected] of [['NONE', undefined], ['ALL_OLD', { a: N(1), b: N(2) }], ['UPDATED_OLD', { a: N(1) }],
    ['ALL_NEW', { a: N(3), b: N(2) }], ['UPDATED_NEW', { a: N(3) }]])
    test(`UpdateItem returns ${kind}`, async () => {
        const pk = await put({ a: N(1), b: N(2) });
        const { Attributes } = await update(pk, 'SET a = :v', { ':v': N(3) }, { ReturnValues: kind });
        eq(Attributes, expected && kind.startsWith('ALL') ? { pk, ...expected } : expected);
    });
test('UPDATED_NEW has only the touched leaf', async () => {
    const pk = await put({ a: { M: { b: N(1), c: { L: [N(1), N(2), N(3)] } } } });
    const { Attributes } = await update(pk, 'SET a.c[1] = :v', { ':v': N(9) }, { ReturnValues: 'UPDATED_NEW' });
    eq(Attributes, { a: { M: { c: { L: [N(9)] } } } });
});
test('the key cannot be updated', () =>
    fails(update(S('a'), 'SET pk = :v', { ':v': S('b') }), 'ValidationException',
        'One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key'));
test('a path that cannot be updated', async () => {
    const pk = await put({ a: N(1) });
    await fails(update(pk, 'SET a.b = :v', { ':v': S('b') }), 'ValidationException',
        'The document path provided in the update expression is invalid for update');
});
test('an operand of the wrong type', async () => {
    const pk = await put({ a: S('x') });
    await fails(update(pk, 'SET a = a + :v', { ':v': N(1) }), 'ValidationException',
        'An operand in the update expression has an incorrect data type');
});
test('an operand that is not there', async () => {
    const pk = await put();
    await fails(update(pk, 'SET a = b + :v', { ':v': N(1) }), 'ValidationException',
        'The provided expression refers to an attribute that does not exist in the item');
});
test('paths that overlap in an update', () =>
    fails(update(S('a'), 'SET a = :v, a.b = :v', { ':v': N(1) }), 'ValidationException',
        'Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these paths; ' +
        'path one: [a], path two: [a, b]'));
test('SET twice', () =>
    fails(update(S('a'), 'SET a = :v SET b = :v', { ':v': N(1) }), 'ValidationException',
        'Invalid UpdateExpression: The "SET" section can only be used once in an update expression;'));
test('sums are exact', async () => {
    const pk = await put({ a: N('0.1') });
    const { Attributes } = await update(pk, 'SET a = a + :v', { ':v': N('0.2') }, { ReturnValues: 'UPDATED_NEW' });
    eq(Attributes, { a: N('0.3') });
});
test('a sum beyond 38 digits fails', async () => {
    const pk = await put({ a: N('1e50') });
    await fails(update(pk, 'SET a = a + :v', { ':v': N(1) }), 'ValidationException', 
        'Number overflow. Attempting to store a number with magnitude larger than supported range');
    eq((await get(pk)).a, N('1' + '0'.repeat(50)));
});
test('AttributeUpdates still works', async () => {
    const pk = await put({ a: N(1), b: S('x') });
    const { Attributes } = await api.UpdateItem({
        TableName: T, Key: { pk }, ReturnValues: 'ALL_NEW',
        AttributeUpdates: { a: { Action: 'ADD', Value: N(4) }, b: { Action: 'DELETE' }, c: { Value: S('put') } },
    });
    eq(Attributes, { pk, a: N(5), c: S('put') });
});
test('a hundred updates of one counter all count', async () => {
    const pk = fresh();
    await Promise.all(Array.from({ length: 100 }, () => update(pk, 'ADD n :one', { ':one': N(1) })));
    eq((await get(pk)).n, N(100));
});
test('of many conditional creations one wins', async () => {
    const pk = fresh();
    const results = await Promise.allSettled(Array.from({ length: 30 }, (_, i) => api.PutItem({
        TableName: T, Item: { pk, by: N(i) }, ConditionExpression: 'attribute_not_exists(pk)',
    })));
    eq(results.filter((each) => each.status === 'fulfilled').length, 1);
    for (const each of results)
        if (each.status === 'rejected')
            assert(each.reason instanceof dynamodb.ConditionalCheckFailedException);
    eq((await get(pk)).by, N(results.findIndex((each) => each.status === 'fulfilled')));
});

/* ---- consumed capacity ---------------------------------------------------------------------- */

test('capacity of reads and writes', async () => {
    const pk = fresh();
    const wrote = await api.PutItem({
        TableName: T, Item: { pk, v: S('x'.repeat(3000)) }, ReturnConsumedCapacity: 'TOTAL',
    });
    eq(wrote.ConsumedCapacity, { TableName: T, CapacityUnits: 3 });
    const read = async (ConsistentRead) => (await api.GetItem({
        TableName: T, Key: { pk }, ConsistentRead, ReturnConsumedCapacity: 'TOTAL',
    })).ConsumedCapacity.CapacityUnits;
    eq(await read(true), 1);
    eq(await read(false), 0.5);
});
test('capacity with INDEXES has the table apart', async () => {
    const { ConsumedCapacity } = await api.PutItem({ TableName: T, Item: { pk: fresh() }, ReturnConsumedCapacity: 'INDEXES' });
    eq(ConsumedCapacity, { TableName: T, CapacityUnits: 1, Table: { CapacityUnits: 1 } });
});
