/*
 * sdk.test.js: the AWS SDK in this process, unchanged: the cases of test/clients/js, which say what a
 * server answers, on a database without one.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const path = require('path');
const { PassThrough } = require('stream');
const { open } = require('holdfast');

const hasSdk = fs.existsSync(path.join(__dirname, '../node_modules/@aws-sdk'));

test('the cases of the suite for servers', { skip: !hasSdk && 'the AWS SDK cannot be fetched' }, async () => {
    const db = await open('memory:');
    global.handlerInProcess = () => db.requestHandler();
    process.env.ENDPOINT = 'http://dynamodb.us-east-1.amazonaws.com'; /* which nobody asks */
    const suite = require('./clients/lib/suite');
    const cases = path.join(__dirname, 'clients/cases');
    for (const file of fs.readdirSync(cases).sort())
        if (file !== 'transport.js') /* about HTTP */
            suite.load(path.basename(file, '.js'), () => require(path.join(cases, file)));
    const { passed, failed } = await suite.run([]);
    require('./clients/lib/clients').destroy();
    await db.close();
    assert.strictEqual(failed, 0);
    assert(passed > 100, `${passed} cases`);
});

test('an answer is bytes, and a stream for who wants one', async () => {
    const db = await open('memory:');
    const ask = async () => (await db.requestHandler().handle({
        headers: { 'x-amz-target': 'DynamoDB_20120810.ListTables' }, body: '{}',
    })).response;
    const expected = '{"TableNames":[]}';
    const { statusCode, headers, body } = await ask();
    assert.strictEqual(statusCode, 200);
    assert(body instanceof Uint8Array);
    assert.strictEqual(Buffer.from(body).toString(), expected);
    assert.strictEqual(headers['content-length'], String(expected.length));
    let text = '';
    for await (const part of (await ask()).body)
        text += part.toString();
    assert.strictEqual(text, expected);
    const collected = (await ask()).body.pipe(new PassThrough());
    assert.strictEqual((await collected.toArray()).join(''), expected);
    const ids = new Set();
    for (let i = 0; i < 100; i++)
        ids.add((await ask()).headers['x-amzn-requestid']);
    assert.strictEqual(ids.size, 100);
    await db.close();
});

/* Nobody looks at a signature here. Who gives clients a signer of his own keeps it. */
test('requests that stay in this process are not signed', { skip: !hasSdk && 'the AWS SDK cannot be fetched' }, async () => {
    const { DynamoDBClient, ListTablesCommand } = require('@aws-sdk/client-dynamodb');
    const db = await open('memory:');
    for (const [more, signed] of [[{}, false], [{ signer: undefined }, true]]) {
        const client = new DynamoDBClient({ ...db.clientConfig(), ...more });
        let seen;
        client.middlewareStack.add((next) => (args) => {
            seen = args.request.headers.authorization ?? args.request.headers.Authorization;
            return next(args);
        }, { step: 'finalizeRequest', priority: 'low' });
        assert.deepStrictEqual((await client.send(new ListTablesCommand({}))).TableNames, []);
        assert.strictEqual(seen !== undefined, signed);
    }
    await db.close();
});
