/* PartiQL: ExecuteStatement, BatchExecuteStatement and ExecuteTransaction, by both clients. */
'use strict';
const dynamodb = require('@aws-sdk/client-dynamodb');
const { before, after, test, eq, fails } = require('../lib/suite');
const { api, doc, newName, makeTable, dropTable, without$ } = require('../lib/clients');

const S = (text) => ({ S: text });
const N = (number) => ({ N: String(number) });
let T, n = 0;
const fresh = () => `q${++n}`;
const run = (Statement, Parameters, more = {}) => api.ExecuteStatement({ Statement, Parameters, ...more });
const items = async (Statement, Parameters, more) => (await run(Statement, Parameters, more)).Items;
const get = async (pk, sk = 1) => (await doc.Get({ TableName: T, Key: { pk, sk }, ConsistentRead: true })).Item;

async function put(more = {}) {
    const pk = fresh();
    await doc.Put({ TableName: T, Item: { pk, sk: 1, ...more } });
    return pk;
}

before(async () => {
    T = await makeTable('partiql', 'pk:S', 'sk:N', {
        AttributeDefinitions: [{ AttributeName: 'g', AttributeType: 'S' }],
        GlobalSecondaryIndexes: [{
            IndexName: 'by-g', KeySchema: [{ AttributeName: 'g', KeyType: 'HASH' }], Projection: { ProjectionType: 'KEYS_ONLY' },
        }],
    });
    for (let sk = 0; sk < 10; sk++)
        await doc.Put({ TableName: T, Item: { pk: 'many', sk, g: `g${sk % 2}`, v: { n: sk * 10, l: [sk, 'x'] }, s: `s${sk}` } });
});
after(() => dropTable(T));

/* ---- reading -------------------------------------------------------------------------------- */

const numbers = (list) => list.map((item) => Number(item.sk.N));

test('SELECT by key', async () => {
    eq(await items(`SELECT * FROM "${T}" WHERE pk = 'many' AND sk = 3`),
        [{ pk: S('many'), sk: N(3), g: S('g1'), v: { M: { n: N(30), l: { L: [N(3), S('x')] } } }, s: S('s3') }]);
});
test('SELECT with parameters', async () => {
    eq(numbers(await items(`SELECT * FROM "${T}" WHERE pk = ? AND sk BETWEEN ? AND ?`, [S('many'), N(2), N(4)])), [2, 3, 4]);
});
test('SELECT of paths', async () => {
    eq(await items(`SELECT v.n, v.l[0], s FROM "${T}" WHERE pk = 'many' AND sk = 5`), [{ n: N(50), 'l[0]': N(5), s: S('s5') }]);
});
test('SELECT with a further condition', async () => {
    eq(numbers(await items(`SELECT * FROM "${T}" WHERE pk = 'many' AND v.n > 60 AND begins_with("s", 's')`)), [7, 8, 9]);
});
test('SELECT with IN', async () => {
    eq(numbers(await items(`SELECT * FROM "${T}" WHERE pk = 'many' AND sk IN [1, 8]`)), [1, 8]);
});
test('SELECT in reverse', async () => {
    eq(numbers(await items(`SELECT * FROM "${T}" WHERE pk = 'many' ORDER BY sk DESC`)), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
});
test('SELECT from an index', async () => {
    const found = await items(`SELECT * FROM "${T}"."by-g" WHERE g = 'g1'`);
    eq(found.map((item) => Number(item.sk.N)).sort(), [1, 3, 5, 7, 9]);
    eq(Object.keys(found[0]).sort(), ['g', 'pk', 'sk']);
});
test('SELECT in pages', async () => {
    const seen = [];
    let NextToken, pages = 0;
    do {
        const page = await run(`SELECT * FROM "${T}" WHERE pk = 'many'`, undefined, { Limit: 4, NextToken });
        seen.push(...numbers(page.Items));
        NextToken = page.NextToken;
        pages++;
    } while (NextToken);
    eq(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    eq(pages, 3);
});
test('SELECT of nothing', async () => {
    eq(without$(await run(`SELECT * FROM "${T}" WHERE pk = 'nobody'`)), { Items: [] });
});

/* ---- writing -------------------------------------------------------------------------------- */

test('INSERT', async () => {
    const pk = fresh();
    eq(await items(`INSERT INTO "${T}" VALUE {'pk': ?, 'sk': 1, 'list': [1, 'two', null], 'set': <<'a'>>, 'map': {'x': true}}`, [S(pk)]), []);
    eq(await get(pk), { pk, sk: 1, list: [1, 'two', null], set: new Set(['a']), map: { x: true } });
});
test('INSERT of what is there', async () => {
    const pk = await put({ v: 1 });
    await fails(run(`INSERT INTO "${T}" VALUE {'pk': '${pk}', 'sk': 1}`), dynamodb.DuplicateItemException,
        'Duplicate primary key exists in table');
    eq(await get(pk), { pk, sk: 1, v: 1 });
});
test('UPDATE', async () => {
    const pk = await put({ v: 1, w: 2 });
    eq(await items(`UPDATE "${T}" SET v = v + 5 SET x = ? REMOVE w WHERE pk = '${pk}' AND sk = 1`, [{ L: [N(1)] }]), []);
    eq(await get(pk), { pk, sk: 1, v: 6, x: [1] });
});
test('UPDATE RETURNING ALL NEW', async () => {
    const pk = await put({ v: 1 });
    eq(await items(`UPDATE "${T}" SET v = 2 WHERE pk = '${pk}' AND sk = 1 RETURNING ALL NEW *`), [{ pk: S(pk), sk: N(1), v: N(2) }]);
});
test('UPDATE of what is not there', async () => {
    const pk = fresh();
    await fails(run(`UPDATE "${T}" SET v = 1 WHERE pk = '${pk}' AND sk = 1`), dynamodb.ConditionalCheckFailedException,
        'The conditional request failed');
    eq(await get(pk), undefined);
});
test('UPDATE with a condition that does not hold', async () => {
    const pk = await put({ v: 1 });
    const error = await fails(run(`UPDATE "${T}" SET v = 9 WHERE pk = '${pk}' AND sk = 1 AND v = 7`, undefined,
        { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' }), dynamodb.ConditionalCheckFailedException);
    eq(error.Item, { pk: S(pk), sk: N(1), v: N(1) });
});
test('DELETE', async () => {
    const pk = await put({ v: 1 });
    eq(await items(`DELETE FROM "${T}" WHERE pk = '${pk}' AND sk = 1 RETURNING ALL OLD *`), [{ pk: S(pk), sk: N(1), v: N(1) }]);
    eq(await get(pk), undefined);
    eq(await items(`DELETE FROM "${T}" WHERE pk = '${pk}' AND sk = 1`), []);
});

/* ---- errors --------------------------------------------------------------------------------- */

test('a statement that cannot be read', () =>
    fails(run('SELEKT * FROM x'), 'ValidationException', /^Statement wasn't well formed, can't be processed: /));
test('a statement about no table', () =>
    fails(run(`SELECT * FROM "${newName('missing')}" WHERE pk = 'a'`), dynamodb.ResourceNotFoundException,
        'Requested resource not found'));
test('a statement about no index', () =>
    fails(run(`SELECT * FROM "${T}"."nope" WHERE pk = 'a'`), 'ValidationException', 'The table does not have the specified index'));
test('an UPDATE without the whole key', () =>
    fails(run(`UPDATE "${T}" SET v = 1 WHERE pk = 'many'`), 'ValidationException',
        'Where clause does not contain a mandatory equality on all key attributes'));
test('parameters that are too few', () =>
    fails(run(`SELECT * FROM "${T}" WHERE pk = ? AND sk = ?`, [S('a')]), 'ValidationException',
        'Number of parameters in request and statement don\'t match.'));

/* ---- batches and transactions --------------------------------------------------------------- */

test('BatchExecuteStatement reads', async () => {
    const { Responses } = await api.BatchExecuteStatement({
        Statements: [1, 2, 77].map((sk) => ({ Statement: `SELECT s FROM "${T}" WHERE pk = 'many' AND sk = ?`, Parameters: [N(sk)] })),
    });
    eq(Responses, [{ TableName: T, Item: { s: S('s1') } }, { TableName: T, Item: { s: S('s2') } }, { TableName: T }]);
});
test('BatchExecuteStatement has errors inside', async () => {
    const [old, pk] = [await put(), fresh()];
    const { Responses } = await api.BatchExecuteStatement({
        Statements: [
            { Statement: `INSERT INTO "${T}" VALUE {'pk': '${pk}', 'sk': 1}` },
            { Statement: `INSERT INTO "${T}" VALUE {'pk': '${old}', 'sk': 1}` },
        ],
    });
    eq(Responses[0], { TableName: T });
    eq([Responses[1].Error.Code, Responses[1].Error.Message], ['DuplicateItem', 'Duplicate primary key exists in table']);
    eq(await get(pk), { pk, sk: 1 });
});
test('ExecuteTransaction writes all', async () => {
    const [a, b] = [fresh(), await put({ v: 1 })];
    eq(without$(await api.ExecuteTransaction({
        TransactStatements: [
            { Statement: `INSERT INTO "${T}" VALUE {'pk': ?, 'sk': 1}`, Parameters: [S(a)] },
            { Statement: `UPDATE "${T}" SET v = v + 1 WHERE pk = ? AND sk = 1`, Parameters: [S(b)] },
        ],
    })), { Responses: [] });
    eq([await get(a), await get(b)], [{ pk: a, sk: 1 }, { pk: b, sk: 1, v: 2 }]);
});
test('ExecuteTransaction writes nothing when one fails', async () => {
    const [a, b] = [fresh(), await put()];
    const error = await fails(api.ExecuteTransaction({
        TransactStatements: [a, b].map((pk) => ({ Statement: `INSERT INTO "${T}" VALUE {'pk': '${pk}', 'sk': 1}` })),
    }), dynamodb.TransactionCanceledException,
    'Transaction cancelled, please refer cancellation reasons for specific reasons [None, DuplicateItem]');
    eq(error.CancellationReasons.map((reason) => reason.Code), ['None', 'DuplicateItem']);
    eq(await get(a), undefined);
});
test('ExecuteTransaction reads', async () => {
    const { Responses } = await api.ExecuteTransaction({
        TransactStatements: [4, 5].map((sk) => ({ Statement: `SELECT s FROM "${T}" WHERE pk = 'many' AND sk = ${sk}` })),
    });
    eq(Responses, [{ Item: { s: S('s4') } }, { Item: { s: S('s5') } }]);
});

/* ---- the document client -------------------------------------------------------------------- */

test('document ExecuteStatementCommand', async () => {
    const pk = fresh();
    await doc.ExecuteStatement({ Statement: `INSERT INTO "${T}" VALUE {'pk': ?, 'sk': ?, 'v': ?}`, Parameters: [pk, 1, { x: [true, null] }] });
    const { Items } = await doc.ExecuteStatement({ Statement: `SELECT * FROM "${T}" WHERE pk = ?`, Parameters: [pk] });
    eq(Items, [{ pk, sk: 1, v: { x: [true, null] } }]);
});
test('document BatchExecuteStatementCommand', async () => {
    const { Responses } = await doc.BatchExecuteStatement({
        Statements: [6, 7].map((sk) => ({ Statement: `SELECT * FROM "${T}" WHERE pk = ? AND sk = ?`, Parameters: ['many', sk] })),
    });
    eq(Responses.map((each) => each.Item.v), [{ n: 60, l: [6, 'x'] }, { n: 70, l: [7, 'x'] }]);
});
test('document ExecuteTransactionCommand', async () => {
    const pk = fresh();
    await doc.ExecuteTransaction({
        TransactStatements: [{ Statement: `INSERT INTO "${T}" VALUE {'pk': ?, 'sk': ?, 'v': ?}`, Parameters: [pk, 1, new Set([1])] }],
    });
    eq(await get(pk), { pk, sk: 1, v: new Set([1]) });
});
