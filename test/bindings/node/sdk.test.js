/*
 * sdk.test.js: the AWS SDK in this process, unchanged: the cases of test/clients/js, which say what a
 * server answers, on a database without one.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const path = require('path');
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
