/* What belongs to a table beside its items: time to live, tags, policies, backups, and what other
 * services would do for it. */
'use strict';
const assert = require('assert');
const dynamodb = require('@aws-sdk/client-dynamodb');
const { before, after, test, eq, fails } = require('../lib/suite');
const { api, client, newName, makeTable, dropTable, ready, without$ } = require('../lib/clients');

const S = (text) => ({ S: text });
const N = (number) => ({ N: String(number) });
let T, arn;
const extra = [];

before(async () => {
    T = await makeTable('services', 'pk:S');
    arn = (await api.DescribeTable({ TableName: T })).Table.TableArn;
});
after(async () => {
    for (const each of [T, ...extra])
        await dropTable(each);
});
const table = async (...more) => {
    const name = await makeTable(...more);
    extra.push(name);
    return name;
};

/* ---- time to live --------------------------------------------------------------------------- */

const ttl = (TableName, Enabled, AttributeName = 'ttl') =>
    api.UpdateTimeToLive({ TableName, TimeToLiveSpecification: { Enabled, AttributeName } });

test('time to live is off at first', async () => {
    const TableName = await table('ttl', 'pk:S');
    eq((await api.DescribeTimeToLive({ TableName })).TimeToLiveDescription, { TimeToLiveStatus: 'DISABLED' });
});
test('time to live on and off', async () => {
    const TableName = await table('ttl', 'pk:S');
    eq((await ttl(TableName, true)).TimeToLiveSpecification, { Enabled: true, AttributeName: 'ttl' });
    eq((await api.DescribeTimeToLive({ TableName })).TimeToLiveDescription, { TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' });
    await fails(ttl(TableName, true), 'ValidationException', 'TimeToLive is already enabled');
    await fails(ttl(TableName, true, 'other'), 'ValidationException',
        'TimeToLive is active on a different AttributeName: current AttributeName is ttl');
    await ttl(TableName, false);
    eq((await api.DescribeTimeToLive({ TableName })).TimeToLiveDescription, { TimeToLiveStatus: 'DISABLED' });
    await fails(ttl(TableName, false), 'ValidationException', 'TimeToLive is already disabled');
});
test('items expire', async () => {
    const TableName = await table('ttl', 'pk:S');
    await ttl(TableName, true);
    const now = Math.floor(Date.now() / 1000);
    await api.PutItem({ TableName, Item: { pk: S('old'), ttl: N(now - 60) } });
    await api.PutItem({ TableName, Item: { pk: S('ancient'), ttl: N(now - 6 * 366 * 86400) } });
    await api.PutItem({ TableName, Item: { pk: S('new'), ttl: N(now + 3600) } });
    await api.PutItem({ TableName, Item: { pk: S('text'), ttl: S(`${now - 60}`) } });
    for (const end = Date.now() + 60000; Date.now() < end;) {
        const { Items } = await api.Scan({ TableName });
        if (!Items.some((item) => item.pk.S === 'old'))
            break;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    eq((await api.Scan({ TableName })).Items.map((item) => item.pk.S).sort(), ['ancient', 'new', 'text']);
});
test('time to live of no table', () => {
    const TableName = newName('missing');
    return fails(api.DescribeTimeToLive({ TableName }), dynamodb.ResourceNotFoundException,
        `Requested resource not found: Table: ${TableName} not found`);
});

/* ---- tags ----------------------------------------------------------------------------------- */

const tags = async (ResourceArn) => {
    const seen = [];
    let NextToken;
    do {
        const page = await api.ListTagsOfResource({ ResourceArn, NextToken });
        seen.push(...page.Tags);
        NextToken = page.NextToken;
    } while (NextToken);
    return Object.fromEntries(seen.sort((a, b) => (a.Key < b.Key ? -1 : 1)).map(({ Key, Value }) => [Key, Value]));
};

test('tags come and go', async () => {
    eq(await tags(arn), {});
    eq(without$(await api.TagResource({ ResourceArn: arn, Tags: [{ Key: 'a', Value: '1' }, { Key: 'ü', Value: '' }] })), {});
    await api.TagResource({ ResourceArn: arn, Tags: [{ Key: 'a', Value: '2' }] });
    eq(await tags(arn), { a: '2', 'ü': '' });
    eq(without$(await api.UntagResource({ ResourceArn: arn, TagKeys: ['a', 'nothing'] })), {});
    eq(await tags(arn), { 'ü': '' });
});
test('tags at creation', async () => {
    const TableName = await table('tags', 'pk:S', null, { Tags: [{ Key: 'team', Value: 'storage' }] });
    const { Table } = await api.DescribeTable({ TableName });
    eq(await tags(Table.TableArn), { team: 'storage' });
});
test('fifty tags and not one more', async () => {
    const TableName = await table('tags', 'pk:S');
    const ResourceArn = (await api.DescribeTable({ TableName })).Table.TableArn;
    await api.TagResource({ ResourceArn, Tags: Array.from({ length: 50 }, (_, i) => ({ Key: `k${i}`, Value: `v${i}` })) });
    eq(Object.keys(await tags(ResourceArn)).length, 50);
    await fails(api.TagResource({ ResourceArn, Tags: [{ Key: 'more', Value: '' }] }), 'ValidationException',
        'Number of Tags exceed the current limit for the provided ResourceArn');
    eq(Object.keys(await tags(ResourceArn)).length, 50);
});
test('tagging at the same time loses none', async () => {
    const TableName = await table('tags', 'pk:S');
    const ResourceArn = (await api.DescribeTable({ TableName })).Table.TableArn;
    await Promise.all(Array.from({ length: 20 }, (_, i) => api.TagResource({ ResourceArn, Tags: [{ Key: `k${i}`, Value: '' }] })));
    eq(Object.keys(await tags(ResourceArn)).length, 20);
});
test('tags of a table that is not there', () => {
    const ResourceArn = arn.replace(T, newName('missing'));
    return fails(api.ListTagsOfResource({ ResourceArn }), dynamodb.ResourceNotFoundException,
        `Requested resource not found: ResourceArn: ${ResourceArn} not found`);
});
test('tags of what is no ARN', () =>
    fails(api.ListTagsOfResource({ ResourceArn: 'table' }), 'ValidationException', 
        "One or more parameter values were invalid: ARNs must start with 'arn:': table"));
test('no tags to add', () =>
    fails(api.TagResource({ ResourceArn: arn, Tags: [] }), 'ValidationException', 'Atleast one Tag needs to be provided as Input.'));

/* ---- policies ------------------------------------------------------------------------------- */

test('a policy is kept', async () => {
    await fails(api.GetResourcePolicy({ ResourceArn: arn }), dynamodb.PolicyNotFoundException,
        `Resource-based policy not found for the provided ResourceArn: ${arn}`);
    const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [] });
    const { RevisionId } = await api.PutResourcePolicy({ ResourceArn: arn, Policy });
    eq(without$(await api.GetResourcePolicy({ ResourceArn: arn })), { Policy, RevisionId });
    await fails(api.PutResourcePolicy({ ResourceArn: arn, Policy: '{}', ExpectedRevisionId: `${RevisionId}0` }),
        dynamodb.PolicyNotFoundException, 'Resource-based policy not found for the provided ResourceArn: Requested update for policy ' +
        `with revision id ${RevisionId}0, but the policy associated to target table ${T} has revision id ${RevisionId}.`);
    eq(without$(await api.DeleteResourcePolicy({ ResourceArn: arn, ExpectedRevisionId: RevisionId })), { RevisionId });
    await fails(api.GetResourcePolicy({ ResourceArn: arn }), dynamodb.PolicyNotFoundException);
});

/* ---- backups -------------------------------------------------------------------------------- */

/* A backup is copied beside other work, and can neither be restored nor deleted before that is done. */
const backup = async (TableName, BackupName) => {
    const { BackupDetails } = await api.CreateBackup({ TableName, BackupName });
    const { BackupArn } = BackupDetails;
    while ((await api.DescribeBackup({ BackupArn })).BackupDescription.BackupDetails.BackupStatus === 'CREATING')
        await new Promise((resolve) => setTimeout(resolve, 20));
    return BackupDetails;
};

test('a backup brings back what was then', async () => {
    const TableName = await table('backed', 'pk:S', null, {
        AttributeDefinitions: [{ AttributeName: 'g', AttributeType: 'S' }],
        GlobalSecondaryIndexes: [{
            IndexName: 'by-g', KeySchema: [{ AttributeName: 'g', KeyType: 'HASH' }], Projection: { ProjectionType: 'ALL' },
        }],
    });
    for (let i = 0; i < 30; i++)
        await api.PutItem({ TableName, Item: { pk: S(`${i}`), g: S(`g${i % 3}`), v: N(i) } });
    const BackupDetails = await backup(TableName, 'before-the-change');
    eq([BackupDetails.BackupName, BackupDetails.BackupType], ['before-the-change', 'USER']);
    assert(BackupDetails.BackupCreationDateTime instanceof Date);
    const { BackupArn } = BackupDetails;
    await api.PutItem({ TableName, Item: { pk: S('0'), v: S('changed') } });

    const { BackupDescription } = await api.DescribeBackup({ BackupArn });
    eq(BackupDescription.BackupDetails.BackupStatus, 'AVAILABLE');
    eq(BackupDescription.SourceTableDetails.TableName, TableName);
    eq(BackupDescription.SourceTableDetails.ItemCount, 30);
    eq(BackupDescription.SourceTableFeatureDetails.GlobalSecondaryIndexes.map((each) => each.IndexName), ['by-g']);

    const TargetTableName = newName('restored');
    const { TableDescription } = await api.RestoreTableFromBackup({ BackupArn, TargetTableName });
    extra.push(TargetTableName);
    eq(TableDescription.TableName, TargetTableName);
    eq(TableDescription.RestoreSummary.SourceBackupArn, BackupArn);
    await ready(TargetTableName);
    eq((await api.GetItem({ TableName: TargetTableName, Key: { pk: S('0') } })).Item, { pk: S('0'), g: S('g0'), v: N(0) });
    eq((await api.Scan({ TableName: TargetTableName })).Count, 30);
    eq((await api.Query({
        TableName: TargetTableName, IndexName: 'by-g', KeyConditionExpression: 'g = :g', ExpressionAttributeValues: { ':g': S('g1') },
    })).Count, 10);

    const { BackupDescription: gone } = await api.DeleteBackup({ BackupArn });
    eq(gone.BackupDetails.BackupStatus, 'DELETED');
    await fails(api.DescribeBackup({ BackupArn }), dynamodb.BackupNotFoundException, `Backup not found: ${BackupArn}`);
});
test('backups are listed', async () => {
    const TableName = await table('listed', 'pk:S');
    const made = [];
    for (const BackupName of ['one', 'two', 'three'])
        made.push((await backup(TableName, BackupName)).BackupArn);
    const seen = [];
    let ExclusiveStartBackupArn;
    do {
        const page = await api.ListBackups({ TableName, Limit: 2, ExclusiveStartBackupArn });
        assert(page.BackupSummaries.length <= 2);
        seen.push(...page.BackupSummaries);
        ExclusiveStartBackupArn = page.LastEvaluatedBackupArn;
    } while (ExclusiveStartBackupArn);
    eq(seen.map((each) => each.BackupName).sort(), ['one', 'three', 'two']);
    eq(new Set(seen.map((each) => each.TableName)), new Set([TableName]));
    for (const BackupArn of made)
        await api.DeleteBackup({ BackupArn });
    eq((await api.ListBackups({ TableName })).BackupSummaries, []);
});
test('a backup of no table', () => {
    const TableName = newName('missing');
    return fails(api.CreateBackup({ TableName, BackupName: 'none' }), dynamodb.TableNotFoundException, `Table not found: ${TableName}`);
});
test('restoring over a table', async () => {
    const { BackupArn } = await backup(T, 'over');
    await fails(api.RestoreTableFromBackup({ BackupArn, TargetTableName: T }), dynamodb.TableAlreadyExistsException,
        `Table already exists: ${T}`);
    await api.DeleteBackup({ BackupArn });
});
test('continuous backups', async () => {
    const expected = {
        ContinuousBackupsStatus: 'ENABLED', PointInTimeRecoveryDescription: { PointInTimeRecoveryStatus: 'DISABLED' },
    };
    eq((await api.DescribeContinuousBackups({ TableName: T })).ContinuousBackupsDescription, expected);
    eq((await api.UpdateContinuousBackups({
        TableName: T, PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: false },
    })).ContinuousBackupsDescription, expected);
    await fails(api.UpdateContinuousBackups({
        TableName: T, PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    }), dynamodb.ContinuousBackupsUnavailableException, `Point in time recovery is not available for table: ${T}`);
});

/* ---- what others would do ------------------------------------------------------------------- */

test('there are no global tables', async () => {
    eq(without$(await api.ListGlobalTables()), { GlobalTables: [] });
    await fails(api.DescribeGlobalTable({ GlobalTableName: T }), dynamodb.GlobalTableNotFoundException,
        `Global table with name: '${T}' does not exist.`);
});
test('nothing streams to Kinesis', async () => {
    eq(without$(await api.DescribeKinesisStreamingDestination({ TableName: T })), { TableName: T, KinesisDataStreamDestinations: [] });
});
test('there are no contributor insights', async () => {
    eq(without$(await api.DescribeContributorInsights({ TableName: T })), { TableName: T, ContributorInsightsStatus: 'DISABLED' });
    eq((await api.ListContributorInsights({ TableName: T })).ContributorInsightsSummaries, []);
});
test('there are no exports', async () => {
    eq(without$(await api.ListExports()), { ExportSummaries: [] });
    const ExportArn = `${arn}/export/01234567890123-a1b2c3d4`;
    await fails(api.DescribeExport({ ExportArn }), dynamodb.ExportNotFoundException, `Export not found: ${ExportArn}`);
    for await (const page of dynamodb.paginateListExports({ client }, {}))
        eq(page.ExportSummaries, []);
});
test('there are no imports', async () => {
    eq(without$(await api.ListImports()), { ImportSummaryList: [] });
    const ImportArn = `${arn}/import/01234567890123-a1b2c3d4`;
    await fails(api.DescribeImport({ ImportArn }), dynamodb.ImportNotFoundException, `Import not found: ${ImportArn}`);
});
test('there is no replica auto scaling', () =>
    fails(api.DescribeTableReplicaAutoScaling({ TableName: T }), dynamodb.ResourceNotFoundException,
        `Global table with name: '${T}' does not exist.`));
test('no table has recovery to a point in time', () =>
    fails(api.ExportTableToPointInTime({ TableArn: arn, S3Bucket: 'bucket', ExportTime: new Date(1e12) }), dynamodb.PointInTimeRecoveryUnavailableException,
        `Point in time recovery is not enabled for table '${T}'`));
test('an operation that the server does not have', async () => {
    const error = await fails(api.UpdateKinesisStreamingDestination({
        TableName: T, StreamArn: 'arn:aws:kinesis:us-east-1:123456789012:stream/s',
    }), 'UnknownOperationException');
    eq(error.$metadata.httpStatusCode, 400);
});
