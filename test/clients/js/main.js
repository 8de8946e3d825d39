/*
 * main.js: run the cases against a server of our own, or the one that ENDPOINT names.
 *
 * Every file in cases/ is a list of cases about one subject, with tables of its own. They run one
 * after another, so that a failure is where it happened. What fails is printed in a line; the last
 * line is "N passed, N failed". The server has to end with 0 and without a complaint in its log:
 * that is one more case.
 */
'use strict';
const fs = require('fs');
const path = require('path');
const { start } = require('./lib/serve');
const suite = require('./lib/suite');

async function main(words) {
    const server = await start();
    process.env.ENDPOINT = server.endpoint;
    const folder = path.join(__dirname, 'cases');
    for (const file of fs.readdirSync(folder).sort())
        if (file.endsWith('.js'))
            suite.load(path.basename(file, '.js'), () => require(path.join(folder, file)));
    const result = await suite.run(words);
    require('./lib/clients').destroy();
    const complaint = await server.stop();
    if (complaint) {
        console.log(`FAILED server: ${complaint}`);
        result.failed++;
    } else {
        result.passed++;
    }
    console.log(`${result.passed} passed, ${result.failed} failed`);
    return result.failed === 0 && result.passed > 1 ? 0 : 1;
}

for (const signal of ['SIGTERM', 'SIGINT'])
    process.on(signal, () => process.exit(1)); /* which ends our servers, see lib/serve.js */

main(process.argv.slice(2)).then(
    (status) => process.exit(status),
    (error) => {
        console.log(`FAILED ${error.stack}`);
        console.log('0 passed, 1 failed');
        process.exit(1);
    });
