/* Tables: create, describe, list, update, delete; indexes, limits, endpoints; waiters. */
'use strict';
const assert = require('assert');
const dynamodb = require('@aws-sdk/client-dynamodb');
const { after, test, eq, fails } = require('../lib/suite');
const { api, client, newName, makeTable, dropTable, without$ } = require('../lib/clients');

const names = [];
const keep = (name) => (names.push(name), name);
const hash = (AttributeName) => ({ AttributeName, KeyType: 'HASH' });
const range = (AttributeName) => ({ AttributeName, KeyType: 'RANGE' });
const def = (AttributeName, AttributeType = 'S') => ({ AttributeName, AttributeType });
const simple = (TableName, more = {}) => ({
    TableName, KeySchema: [hash('pk')], AttributeDefinitions: [def('pk')], BillingMode: 'PAY_PER_REQUEST', ...more,
});

after(async () => {
    for (const name of names)
        await dropTable(name);
});

test('CreateTable describes what it made', async () => {
    const TableName = keep(newName('made'));
    const { TableDescription: t } = await api.CreateTable(simple(TableName));
    eq(t.TableName, TableName);
    eq(t.KeySchema, [hash('pk')]);
    eq(t.AttributeDefinitions, [def('pk')]);
    eq(t.ItemCount, 0);
    eq(t.TableSizeBytes, 0);
    eq(t.BillingModeSummary.BillingMode, 'PAY_PER_REQUEST');
    eq(t.DeletionProtectionEnabled, false);
    assert(['CREATING', 'ACTIVE'].includes(t.TableStatus));
    assert(t.CreationDateTime instanceof Date);
    assert(Math.abs(t.CreationDateTime - Date.now()) < 600000);
    assert.match(t.TableId, /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/);
    assert.match(t.TableArn, new RegExp(`^arn:aws:dynamodb:[a-z0-9-]+:\\d{12}:table/${TableName}$`));
});

test('DescribeTable of a table with a sort key', async () => {
    const TableName = keep(await makeTable('described', 'pk:S', 'sk:B'));
    const { Table } = await api.DescribeTable({ TableName });
    eq(Table.TableStatus, 'ACTIVE');
    eq(Table.KeySchema, [hash('pk'), range('sk')]);
    eq(Table.AttributeDefinitions.sort((a, b) => (a.AttributeName < b.AttributeName ? -1 : 1)),
        [def('pk'), def('sk', 'B')]);
    eq(Table.ProvisionedThroughput.ReadCapacityUnits, 0);
    eq(Table.ProvisionedThroughput.NumberOfDecreasesToday, 0);
    eq(Table.GlobalSecondaryIndexes, undefined);
    eq(Table.StreamSpecification, undefined);
    eq(Table.LatestStreamArn, undefined);
});

test('DescribeTable takes an ARN for a name', async () => {
    const TableName = keep(await makeTable('arn', 'pk:S'));
    const { Table } = await api.DescribeTable({ TableName });
    const again = await api.DescribeTable({ TableName: Table.TableArn });
    eq(again.Table, Table);
});

test('provisioned throughput is kept', async () => {
    const TableName = keep(newName('provisioned'));
    await api.CreateTable(simple(TableName, {
        BillingMode: undefined, ProvisionedThroughput: { ReadCapacityUnits: 5, WriteCapacityUnits: 7 },
    }));
    const { Table } = await api.DescribeTable({ TableName });
    eq(Table.ProvisionedThroughput.ReadCapacityUnits, 5);
    eq(Table.ProvisionedThroughput.WriteCapacityUnits, 7);
    eq(Table.BillingModeSummary, undefined);
});

test('throughput is needed unless it is on demand', async () => {
    await fails(api.CreateTable(simple(newName('none'), { BillingMode: 'PROVISIONED' })), 'ValidationException',
        'One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified when ' +
        'BillingMode is PROVISIONED');
});

test('throughput with on demand is refused', async () => {
    await fails(api.CreateTable(simple(newName('both'), {
        ProvisionedThroughput: { ReadCapacityUnits: 1, WriteCapacityUnits: 1 },
    })), 'ValidationException', 'One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits ' +
        'can be specified when BillingMode is PAY_PER_REQUEST');
});

test('a table that exists cannot be made', async () => {
    const TableName = keep(await makeTable('twice', 'pk:S'));
    await fails(api.CreateTable(simple(TableName)), dynamodb.ResourceInUseException,
        `Table already exists: ${TableName}`);
});

test('a name of two characters is too short', () =>
    fails(api.CreateTable(simple('ab')), 'ValidationException',
        "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: " +
        'Member must have length greater than or equal to 3'));

test('a name with a space cannot be', () =>
    fails(api.CreateTable(simple('a table')), 'ValidationException',
        "1 validation error detected: Value 'a table' at 'tableName' failed to satisfy constraint: " +
        'Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+'));

test('an attribute that no key uses is refused', async () => {
    await fails(api.CreateTable(simple(newName('unused'), { AttributeDefinitions: [def('pk'), def('other')] })), 'ValidationException',
        'One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes ' +
        'defined in AttributeDefinitions');
});

test('a key that is not defined is refused', () =>
    fails(api.CreateTable(simple(newName('undefined'), { AttributeDefinitions: [def('other')] })),
        'ValidationException', 
        'One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. ' +
        'Keys: [pk], AttributeDefinitions: [other]'));

test('a key schema begins with the hash key', () =>
    fails(api.CreateTable(simple(newName('order'), { KeySchema: [range('pk')] })), 'ValidationException',
        'Invalid KeySchema: The first KeySchemaElement is not a HASH key type'));

test('hash and range key differ', () =>
    fails(api.CreateTable(simple(newName('same'), {
        KeySchema: [hash('pk'), range('pk')], AttributeDefinitions: [def('pk'), def('other')],
    })), 'ValidationException',
        'Both the Hash Key and the Range Key element in the KeySchema have the same name'));

test('DescribeTable of a table that is not there', async () => {
    const TableName = newName('missing');
    const error = await fails(api.DescribeTable({ TableName }), dynamodb.ResourceNotFoundException,
        `Requested resource not found: Table: ${TableName} not found`);
    eq(error.$metadata.httpStatusCode, 400);
    eq(error.$fault, 'client');
});

test('DeleteTable of a table that is not there', async () => {
    const TableName = newName('missing');
    await fails(api.DeleteTable({ TableName }), dynamodb.ResourceNotFoundException,
        `Requested resource not found: Table: ${TableName} not found`);
});

test('DeleteTable', async () => {
    const TableName = await makeTable('deleted', 'pk:S');
    const { TableDescription } = await api.DeleteTable({ TableName });
    eq(TableDescription.TableName, TableName);
    eq(TableDescription.TableStatus, 'DELETING');
    await dynamodb.waitUntilTableNotExists({ client, maxWaitTime: 60 }, { TableName });
    await fails(api.GetItem({ TableName, Key: { pk: { S: 'a' } } }), dynamodb.ResourceNotFoundException,
        'Requested resource not found');
});

test('a protected table cannot be deleted', async () => {
    const TableName = keep(newName('protected'));
    await api.CreateTable(simple(TableName, { DeletionProtectionEnabled: true }));
    eq((await api.DescribeTable({ TableName })).Table.DeletionProtectionEnabled, true);
    await fails(api.DeleteTable({ TableName }), 'ValidationException',
        'Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.');
    const { TableDescription } = await api.UpdateTable({ TableName, DeletionProtectionEnabled: false });
    eq(TableDescription.DeletionProtectionEnabled, false);
});

test('ListTables has a new table', async () => {
    const TableName = keep(await makeTable('listed', 'pk:S'));
    let found = false;
    for await (const page of dynamodb.paginateListTables({ client }, {}))
        found = found || page.TableNames.includes(TableName);
    eq(found, true);
});

test('ListTables in pages of one', async () => {
    const base = newName('pages');
    const wanted = ['a', 'b', 'c'].map((each) => `${base}-${each}`);
    for (const TableName of wanted)
        await api.CreateTable(simple(keep(TableName)));
    const seen = [];
    let ExclusiveStartTableName = base;
    for (let i = 0; i < 3; i++) {
        const page = await api.ListTables({ Limit: 1, ExclusiveStartTableName });
        eq(page.TableNames.length, 1);
        seen.push(page.TableNames[0]);
        if (i < 2)
            eq(page.LastEvaluatedTableName, page.TableNames[0]);
        ExclusiveStartTableName = page.TableNames[0];
    }
    eq(seen, wanted);
});

test('paginateListTables with a page size', async () => {
    let pages = 0, all = [];
    for await (const page of dynamodb.paginateListTables({ client, pageSize: 2 }, {})) {
        assert(page.TableNames.length <= 2);
        all = all.concat(page.TableNames);
        pages++;
    }
    assert(pages >= 2);
    eq(all, [...all].sort());
    eq(new Set(all).size, all.length);
});

test('ListTables takes no limit above 100', () =>
    fails(api.ListTables({ Limit: 101 }), 'ValidationException',
        "1 validation error detected: Value '101' at 'limit' failed to satisfy constraint: " +
        'Member must have value less than or equal to 100'));

test('global secondary indexes are described', async () => {
    const TableName = keep(await makeTable('gsi', 'pk:S', null, {
        AttributeDefinitions: [def('g'), def('h', 'N')],
        GlobalSecondaryIndexes: [{
            IndexName: 'by-g', KeySchema: [hash('g'), range('h')],
            Projection: { ProjectionType: 'INCLUDE', NonKeyAttributes: ['x', 'y'] },
        }],
    }));
    const { Table } = await api.DescribeTable({ TableName });
    eq(Table.GlobalSecondaryIndexes.length, 1);
    const [index] = Table.GlobalSecondaryIndexes;
    eq(index.IndexName, 'by-g');
    eq(index.KeySchema, [hash('g'), range('h')]);
    eq(index.Projection.ProjectionType, 'INCLUDE');
    eq([...index.Projection.NonKeyAttributes].sort(), ['x', 'y']);
    eq(index.IndexStatus, 'ACTIVE');
    eq(index.IndexArn, `${Table.TableArn}/index/by-g`);
    eq(index.ItemCount, 0);
});

test('local secondary indexes are described', async () => {
    const TableName = keep(await makeTable('lsi', 'pk:S', 'sk:S', {
        AttributeDefinitions: [def('l', 'N')],
        LocalSecondaryIndexes: [{
            IndexName: 'by-l', KeySchema: [hash('pk'), range('l')], Projection: { ProjectionType: 'KEYS_ONLY' },
        }],
    }));
    const { Table } = await api.DescribeTable({ TableName });
    const [index] = Table.LocalSecondaryIndexes;
    eq(index.IndexName, 'by-l');
    eq(index.KeySchema, [hash('pk'), range('l')]);
    eq(index.Projection, { ProjectionType: 'KEYS_ONLY' });
    eq(index.IndexStatus, undefined);
});

test('two indexes of one name are refused', () =>
    fails(api.CreateTable(simple(newName('dup'), {
        AttributeDefinitions: [def('pk'), def('g')],
        GlobalSecondaryIndexes: [1, 2].map(() =>
            ({ IndexName: 'twin', KeySchema: [hash('g')], Projection: { ProjectionType: 'ALL' } })),
    })), 'ValidationException', 'One or more parameter values were invalid: Duplicate index name: twin'));

test('a local index needs a sort key of the table', () =>
    fails(api.CreateTable(simple(newName('lsi'), {
        AttributeDefinitions: [def('pk'), def('l')],
        LocalSecondaryIndexes: [{ IndexName: 'local', KeySchema: [hash('pk'), range('l')], Projection: { ProjectionType: 'ALL' } }],
    })), 'ValidationException', 'One or more parameter values were invalid: Table KeySchema does not have a range key, ' +
        'which is required when specifying a LocalSecondaryIndex'));

test('UpdateTable adds an index, fills it, and removes it', async () => {
    const TableName = keep(await makeTable('grow', 'pk:S'));
    for (const [pk, g] of [['1', 'x'], ['2', 'x'], ['3', 'y']])
        await api.PutItem({ TableName, Item: { pk: { S: pk }, g: { S: g } } });
    await api.PutItem({ TableName, Item: { pk: { S: '4' } } });
    const { TableDescription } = await api.UpdateTable({
        TableName,
        AttributeDefinitions: [def('pk'), def('g')],
        GlobalSecondaryIndexUpdates: [{
            Create: { IndexName: 'late', KeySchema: [hash('g')], Projection: { ProjectionType: 'ALL' } },
        }],
    });
    eq(TableDescription.GlobalSecondaryIndexes[0].IndexName, 'late');
    for (;;) {
        const { Table } = await api.DescribeTable({ TableName });
        if (Table.TableStatus === 'ACTIVE' && Table.GlobalSecondaryIndexes[0].IndexStatus === 'ACTIVE')
            break;
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const found = await api.Query({
        TableName, IndexName: 'late', KeyConditionExpression: 'g = :g', ExpressionAttributeValues: { ':g': { S: 'x' } },
    });
    eq(found.Items.map((item) => item.pk.S).sort(), ['1', '2']);
    await api.UpdateTable({ TableName, GlobalSecondaryIndexUpdates: [{ Delete: { IndexName: 'late' } }] });
    for (;;) {
        const { Table } = await api.DescribeTable({ TableName });
        if (Table.TableStatus === 'ACTIVE' && !Table.GlobalSecondaryIndexes)
            break;
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await fails(api.Scan({ TableName, IndexName: 'late' }), 'ValidationException',
        'The table does not have the specified index: late');
});

test('UpdateTable without a change', async () => {
    const TableName = keep(await makeTable('same', 'pk:S'));
    await fails(api.UpdateTable({ TableName }), 'ValidationException',
        'At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or ' +
        'SSESpecification or ReplicaUpdates is required');
});

test('UpdateTable changes the billing', async () => {
    const TableName = keep(await makeTable('billing', 'pk:S'));
    await api.UpdateTable({
        TableName, BillingMode: 'PROVISIONED', ProvisionedThroughput: { ReadCapacityUnits: 3, WriteCapacityUnits: 4 },
    });
    await dynamodb.waitUntilTableExists({ client, maxWaitTime: 60 }, { TableName });
    const { Table } = await api.DescribeTable({ TableName });
    eq(Table.ProvisionedThroughput.ReadCapacityUnits, 3);
    eq(Table.ProvisionedThroughput.WriteCapacityUnits, 4);
    eq(Table.BillingModeSummary.BillingMode, 'PROVISIONED');
});

test('UpdateTable of a table that is not there', async () => {
    const TableName = newName('missing');
    await fails(api.UpdateTable({ TableName, BillingMode: 'PAY_PER_REQUEST' }), dynamodb.ResourceNotFoundException,
        `Requested resource not found: Table: ${TableName} not found`);
});

test('deleting an index that is not there', async () => {
    const TableName = keep(await makeTable('noindex', 'pk:S'));
    await fails(api.UpdateTable({ TableName, GlobalSecondaryIndexUpdates: [{ Delete: { IndexName: 'nope' } }] }),
        dynamodb.ResourceNotFoundException, `Requested resource not found: Index nope for table ${TableName}`);
});

test('DescribeTable counts items', async () => {
    const TableName = keep(await makeTable('count', 'pk:S'));
    for (let i = 0; i < 3; i++)
        await api.PutItem({ TableName, Item: { pk: { S: `${i}` } } });
    const { Table } = await api.DescribeTable({ TableName });
    eq(Table.ItemCount, 3);
    eq(Table.TableSizeBytes, 9);
});

test('DescribeLimits', async () => {
    eq(without$(await api.DescribeLimits()), {
        AccountMaxReadCapacityUnits: 80000, AccountMaxWriteCapacityUnits: 80000,
        TableMaxReadCapacityUnits: 40000, TableMaxWriteCapacityUnits: 40000,
    });
});

test('DescribeEndpoints names this server', async () => {
    const { Endpoints } = await api.DescribeEndpoints();
    eq(Endpoints.length, 1);
    eq(Endpoints[0].Address, new URL(process.env.ENDPOINT).host);
    eq(Endpoints[0].CachePeriodInMinutes, 1440);
});

test('waitUntilTableExists succeeds for a table that is there', async () => {
    const TableName = keep(await makeTable('waited', 'pk:S'));
    const result = await dynamodb.waitUntilTableExists({ client, maxWaitTime: 30 }, { TableName });
    eq(result.state, 'SUCCESS');
    eq(result.reason.Table.TableName, TableName);
});

test('waitUntilTableExists waits for a table that comes later', async () => {
    const TableName = newName('later');
    const waiting = dynamodb.waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1, maxDelay: 1 }, { TableName });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await api.CreateTable(simple(keep(TableName)));
    eq((await waiting).state, 'SUCCESS');
});

test('waitUntilTableNotExists succeeds at once without a table', async () => {
    const result = await dynamodb.waitUntilTableNotExists({ client, maxWaitTime: 30 }, { TableName: newName('never') });
    eq(result.state, 'SUCCESS');
});

test('waitUntilTableNotExists waits until a table is gone', async () => {
    const TableName = await makeTable('goes', 'pk:S');
    const waiting = dynamodb.waitUntilTableNotExists({ client, maxWaitTime: 30, minDelay: 1, maxDelay: 1 }, { TableName });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await api.DeleteTable({ TableName });
    eq((await waiting).state, 'SUCCESS');
});

test('waitUntilTableExists gives up in time', async () => {
    const error = await fails(dynamodb.waitUntilTableExists(
        { client, maxWaitTime: 2, minDelay: 1, maxDelay: 1 }, { TableName: newName('never') }), 'TimeoutError');
    eq(JSON.parse(error.message).state, 'TIMEOUT');
});

test('waitUntilTableExists can be aborted', async () => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 100);
    await fails(dynamodb.waitUntilTableExists(
        { client, maxWaitTime: 60, minDelay: 20, maxDelay: 20, abortController: abort },
        { TableName: newName('never') }), 'AbortError');
});

test('a table with a multi-attribute index', async () => {
    const TableName = keep(await makeTable('multi', 'pk:S', null, {
        AttributeDefinitions: [def('a'), def('b'), def('c', 'N'), def('d')],
        GlobalSecondaryIndexes: [{
            IndexName: 'wide', KeySchema: [hash('a'), hash('b'), range('c'), range('d')],
            Projection: { ProjectionType: 'ALL' },
        }],
    }));
    for (const [pk, c, d] of [['1', '2', 'x'], ['2', '1', 'y'], ['3', '1', 'x']])
        await api.PutItem({ TableName, Item: { pk: { S: pk }, a: { S: 'A' }, b: { S: 'B' }, c: { N: c }, d: { S: d } } });
    await api.PutItem({ TableName, Item: { pk: { S: '4' }, a: { S: 'A' }, b: { S: 'B' } } });
    const found = await api.Query({
        TableName, IndexName: 'wide', KeyConditionExpression: 'a = :a AND b = :b',
        ExpressionAttributeValues: { ':a': { S: 'A' }, ':b': { S: 'B' } },
    });
    eq(found.Items.map((item) => item.pk.S), ['3', '2', '1']);
});

/* ---- options that are kept and described ---------------------------------------------------- */

test('the class of a table', async () => {
    const TableName = keep(await makeTable('class', 'pk:S', null, { TableClass: 'STANDARD_INFREQUENT_ACCESS' }));
    eq((await api.DescribeTable({ TableName })).Table.TableClassSummary, { TableClass: 'STANDARD_INFREQUENT_ACCESS' });
    const { TableDescription } = await api.UpdateTable({ TableName, TableClass: 'STANDARD' });
    eq(TableDescription.TableClassSummary.TableClass, 'STANDARD');
    assert(TableDescription.TableClassSummary.LastUpdateDateTime instanceof Date);
});
test('the limits of an on-demand table', async () => {
    const OnDemandThroughput = { MaxReadRequestUnits: 10, MaxWriteRequestUnits: 20 };
    const TableName = keep(await makeTable('limits', 'pk:S', null, { OnDemandThroughput }));
    eq((await api.DescribeTable({ TableName })).Table.OnDemandThroughput, OnDemandThroughput);
});
test('encryption is described', async () => {
    const TableName = keep(await makeTable('sse', 'pk:S', null, { SSESpecification: { Enabled: true, SSEType: 'KMS' } }));
    const { SSEDescription } = (await api.DescribeTable({ TableName })).Table;
    eq([SSEDescription.Status, SSEDescription.SSEType], ['ENABLED', 'KMS']);
});
test('there are no replicas', async () => {
    const TableName = keep(await makeTable('replica', 'pk:S'));
    await fails(api.UpdateTable({ TableName, ReplicaUpdates: [{ Create: { RegionName: 'eu-west-1' } }] }), 'ValidationException',
        'One or more parameter values were invalid: ReplicaUpdates are not supported: there are no other regions');
});
test('names with every character that may be', async () => {
    const TableName = newName('A.b_c-0.');
    await api.CreateTable(simple(keep(TableName)));
    eq((await api.DescribeTable({ TableName })).Table.TableName, TableName);
});
test('a name of 255 characters', async () => {
    const TableName = newName('long').padEnd(255, 'x');
    await api.CreateTable(simple(keep(TableName)));
    eq((await api.DescribeTable({ TableName })).Table.TableName, TableName);
    await fails(api.CreateTable(simple(`${TableName}x`)), 'ValidationException',
        /failed to satisfy constraint: Member must have length less than or equal to 255$/);
});
test('thirty tables at a time', async () => {
    const made = Array.from({ length: 30 }, () => newName('many'));
    await Promise.all(made.map((TableName) => api.CreateTable(simple(TableName))));
    await Promise.all(made.map((TableName) => api.PutItem({ TableName, Item: { pk: { S: TableName } } })));
    for (const TableName of made)
        eq((await api.Scan({ TableName })).Items, [{ pk: { S: TableName } }]);
    await Promise.all(made.map((TableName) => api.DeleteTable({ TableName })));
});
