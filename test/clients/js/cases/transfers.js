/* Exports of tables to files, and imports of files into new tables. */
'use strict';
const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const dynamodb = require('@aws-sdk/client-dynamodb');
const { testOwn, eq, fails } = require('../lib/suite');
const { startOwn } = require('../lib/serve');
const { make, commands } = require('../lib/clients');

const LIMIT_MS = 60000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const TABLE = {
    TableName: 'orders', KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }], BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
};
const ARN = 'arn:aws:dynamodb:us-east-1:123456789012:table/orders';

/* What ask() gives, as soon as it is no longer in progress. */
async function ended(ask) {
    for (const until = Date.now() + LIMIT_MS; ; await pause(20)) {
        const found = await ask();
        if ((found.ExportStatus ?? found.ImportStatus) !== 'IN_PROGRESS')
            return found;
        assert(Date.now() < until, JSON.stringify(found));
    }
}

testOwn('an export is imported into another table', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-js-'));
    fs.mkdirSync(path.join(folder, 'bucket'));
    const server = await startOwn('--buckets', `dir:${folder}`);
    try {
        const own = commands(make({ endpoint: server.endpoint }), dynamodb);
        await own.CreateTable(TABLE);
        for (let i = 0; i < 50; i++)
            await own.PutItem({ TableName: 'orders', Item: { pk: { S: `k${i}` }, l: { L: [{ N: `${i}` }, { NULL: true }] } } });
        const { ExportDescription: begun } = await own.ExportTableToPointInTime({ TableArn: ARN, S3Bucket: 'bucket' });
        const exported = await ended(async () =>
            (await own.DescribeExport({ ExportArn: begun.ExportArn })).ExportDescription);
        eq([exported.ExportStatus, exported.ItemCount], ['COMPLETED', 50]);

        const { ImportTableDescription: first } = await own.ImportTable({
            S3BucketSource: { S3Bucket: 'bucket', S3KeyPrefix: `${path.dirname(exported.ExportManifest)}/data/` },
            InputFormat: 'DYNAMODB_JSON', InputCompressionType: 'GZIP',
            TableCreationParameters: { ...TABLE, TableName: 'again' },
        });
        const imported = await ended(async () =>
            (await own.DescribeImport({ ImportArn: first.ImportArn })).ImportTableDescription);
        eq([imported.ImportStatus, imported.ImportedItemCount, imported.ErrorCount], ['COMPLETED', 50, 0]);
        eq((await own.Scan({ TableName: 'again' })).Items, (await own.Scan({ TableName: 'orders' })).Items);
        eq((await own.ListImports({})).ImportSummaryList.map((one) => one.ImportArn), [first.ImportArn]);
        await fails(own.ImportTable({
            S3BucketSource: { S3Bucket: 'bucket' }, InputFormat: 'CSV', TableCreationParameters: TABLE,
        }), 'ResourceInUseException');
    } finally {
        eq(await server.stop(), null);
        fs.rmSync(folder, { recursive: true });
    }
});
