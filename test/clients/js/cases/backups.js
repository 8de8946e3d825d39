/* Backups and restores, resource policies, and what tools ask about tables that have none of it. */
'use strict';
const assert = require('assert');
const dynamodb = require('@aws-sdk/client-dynamodb');
const { before, after, test, eq, fails } = require('../lib/suite');
const { api, newName, ready, makeTable, dropTable, without$ } = require('../lib/clients');

const ITEMS = 60;
const names = [];
const arns = [];
let T, arn; /* a table with an index and some items; its ARN */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const policy = (action) => JSON.stringify({
    Version: '2012-10-17',
    Statement: [{ Effect: 'Deny', Principal: '*', Action: action, Resource: arn }],
});

before(async () => {
    T = await makeTable('backed-up', 'pk:S', undefined, {
        AttributeDefinitions: [{ AttributeName: 'g', AttributeType: 'S' }],
        GlobalSecondaryIndexes: [{ IndexName: 'byg', KeySchema: [{ AttributeName: 'g', KeyType: 'HASH' }],
            Projection: { ProjectionType: 'ALL' } }],
    });
    names.push(T);
    arn = (await api.DescribeTable({ TableName: T })).Table.TableArn;
    for (let i = 0; i < ITEMS; i++)
        await api.PutItem({ TableName: T, Item: { pk: { S: `k${i}` }, g: { S: 'g' } } });
});
after(async () => {
    for (const BackupArn of arns)
        await api.DeleteBackup({ BackupArn });
    for (const name of names)
        await dropTable(name);
});

async function backUp(BackupName) {
    const { BackupDetails: made } = await api.CreateBackup({ TableName: T, BackupName });
    for (let status = made.BackupStatus; status !== 'AVAILABLE'; await pause(20)) {
        assert.strictEqual(status, 'CREATING');
        const { BackupDescription: b } = await api.DescribeBackup({ BackupArn: made.BackupArn });
        status = b.BackupDetails.BackupStatus;
    }
    arns.push(made.BackupArn);
    return made;
}

async function restore(BackupArn, more = {}) {
    const TargetTableName = newName('restored');
    const { TableDescription: t } = await api.RestoreTableFromBackup({ TargetTableName, BackupArn, ...more });
    eq(t.TableStatus, 'CREATING');
    eq(t.RestoreSummary.RestoreInProgress, true);
    eq(t.RestoreSummary.SourceBackupArn, BackupArn);
    eq(t.RestoreSummary.SourceTableArn, arn);
    assert(t.RestoreSummary.RestoreDateTime instanceof Date);
    names.push(TargetTableName);
    await ready(TargetTableName);
    return TargetTableName;
}

/* ---- backups -------------------------------------------------------------------------------- */

test('CreateBackup, DescribeBackup, ListBackups, DeleteBackup', async () => {
    const made = await backUp('first');
    assert.match(made.BackupArn, new RegExp(`^${arn}/backup/\\d{14}-[0-9a-f]{8}$`));
    eq([made.BackupName, made.BackupType, made.BackupExpiryDateTime], ['first', 'USER', undefined]);
    assert(made.BackupCreationDateTime instanceof Date);
    const { BackupDescription: b } = await api.DescribeBackup({ BackupArn: made.BackupArn });
    eq(b.SourceTableDetails.TableName, T);
    eq(b.SourceTableDetails.BillingMode, 'PAY_PER_REQUEST');
    eq(b.SourceTableFeatureDetails.GlobalSecondaryIndexes[0].IndexName, 'byg');
    const { BackupSummaries: list } = await api.ListBackups({ TableName: T });
    eq(list.map((each) => each.BackupArn), [made.BackupArn]);
    arns.pop();
    const { BackupDescription: gone } = await api.DeleteBackup({ BackupArn: made.BackupArn });
    eq(gone.BackupDetails.BackupStatus, 'DELETED');
    await fails(api.DescribeBackup({ BackupArn: made.BackupArn }), dynamodb.BackupNotFoundException,
        `Backup not found: ${made.BackupArn}`);
});

test('ListBackups in pages and by time', async () => {
    const made = [await backUp('one'), await backUp('two'), await backUp('two')];
    const all = [];
    let ExclusiveStartBackupArn;
    do {
        const page = await api.ListBackups({ TableName: T, Limit: 2, ExclusiveStartBackupArn });
        all.push(...page.BackupSummaries.map((each) => each.BackupArn));
        ExclusiveStartBackupArn = page.LastEvaluatedBackupArn;
    } while (ExclusiveStartBackupArn);
    eq(all, made.map((each) => each.BackupArn));
    const { BackupSummaries: later } = await api.ListBackups(
        { TableName: T, TimeRangeLowerBound: made[1].BackupCreationDateTime });
    eq(later.map((each) => each.BackupArn), all.slice(1));
    const { BackupSummaries: before } = await api.ListBackups(
        { TableName: T, TimeRangeUpperBound: made[1].BackupCreationDateTime });
    eq(before.map((each) => each.BackupArn), all.slice(0, 1));
});

test('RestoreTableFromBackup gives the table of that moment', async () => {
    const { BackupArn } = await backUp('moment');
    await api.DeleteItem({ TableName: T, Key: { pk: { S: 'k0' } } });
    const restored = await restore(BackupArn);
    await api.PutItem({ TableName: T, Item: { pk: { S: 'k0' }, g: { S: 'g' } } });
    eq((await api.Scan({ TableName: restored, Select: 'COUNT' })).Count, ITEMS);
    const { Table: t } = await api.DescribeTable({ TableName: restored });
    eq([t.ItemCount, t.GlobalSecondaryIndexes[0].ItemCount, t.RestoreSummary], [ITEMS, ITEMS, undefined]);
    await fails(api.RestoreTableFromBackup({ TargetTableName: T, BackupArn }), dynamodb.TableAlreadyExistsException,
        `Table already exists: ${T}`);
});

test('RestoreTableFromBackup with overrides', async () => {
    const { BackupArn } = await backUp('overrides');
    const restored = await restore(BackupArn, {
        BillingModeOverride: 'PROVISIONED', GlobalSecondaryIndexOverride: [],
        ProvisionedThroughputOverride: { ReadCapacityUnits: 3, WriteCapacityUnits: 4 },
    });
    const { Table: t } = await api.DescribeTable({ TableName: restored });
    eq([t.ProvisionedThroughput.ReadCapacityUnits, t.GlobalSecondaryIndexes, t.AttributeDefinitions.length],
        [3, undefined, 1]);
});

test('CreateBackup of no table', async () => {
    const none = newName('none');
    await fails(api.CreateBackup({ TableName: none, BackupName: 'none' }), dynamodb.TableNotFoundException,
        `Table not found: ${none}`);
});

/* ---- resource policies ---------------------------------------------------------------------- */

test('PutResourcePolicy, GetResourcePolicy, DeleteResourcePolicy', async () => {
    await fails(api.GetResourcePolicy({ ResourceArn: arn }), dynamodb.PolicyNotFoundException,
        `Resource-based policy not found for the provided ResourceArn: ${arn}`);
    const { RevisionId: first } = await api.PutResourcePolicy(
        { ResourceArn: arn, Policy: policy('dynamodb:GetItem'), ExpectedRevisionId: 'NO_POLICY' });
    eq(without$(await api.GetResourcePolicy({ ResourceArn: arn })),
        { Policy: policy('dynamodb:GetItem'), RevisionId: first });
    await fails(api.PutResourcePolicy(
        { ResourceArn: arn, Policy: policy('dynamodb:PutItem'), ExpectedRevisionId: '1' }),
    dynamodb.PolicyNotFoundException);
    eq(without$(await api.DeleteResourcePolicy({ ResourceArn: arn, ExpectedRevisionId: first })), { RevisionId: first });
    eq(without$(await api.DeleteResourcePolicy({ ResourceArn: arn })), {});
});

/* ---- what tools ask ------------------------------------------------------------------------- */

test('DescribeContinuousBackups', async () => {
    eq((await api.DescribeContinuousBackups({ TableName: T })).ContinuousBackupsDescription, {
        ContinuousBackupsStatus: 'ENABLED',
        PointInTimeRecoveryDescription: { PointInTimeRecoveryStatus: 'DISABLED' },
    });
});

test('what is not there is said not to be there', async () => {
    eq((await api.ListGlobalTables({})).GlobalTables, []);
    eq((await api.ListExports({ TableArn: arn })).ExportSummaries, []);
    eq((await api.ListImports({})).ImportSummaryList, []);
    eq((await api.DescribeKinesisStreamingDestination({ TableName: T })).KinesisDataStreamDestinations, []);
    eq((await api.DescribeContributorInsights({ TableName: T })).ContributorInsightsStatus, 'DISABLED');
    eq((await api.ListContributorInsights({ TableName: T })).ContributorInsightsSummaries, []);
    await fails(api.DescribeGlobalTable({ GlobalTableName: T }), dynamodb.GlobalTableNotFoundException);
    await fails(api.DescribeExport({ ExportArn: `${arn}/export/01234567890123-a1b2c3d4` }),
        dynamodb.ExportNotFoundException);
    await fails(api.DescribeImport({ ImportArn: `${arn}/import/01234567890123-a1b2c3d4` }),
        dynamodb.ImportNotFoundException);
});
