/*
 * lib/client-of.js: the database that a client of the AWS SDK speaks to.
 */
'use strict';
const { open } = require('./database');
const { RequestHandler } = require('./handler');

/*
 * { db, own }: `own` when it was opened for this and is to be closed. A client of db.clientConfig() has
 * the database of this process; every other one has an endpoint, or is of Amazon's service.
 */
async function databaseOf(client) {
    const { requestHandler, endpoint, region } = client.config;
    if (requestHandler instanceof RequestHandler)
        return { db: { connection: requestHandler.connection }, own: false };
    const where = typeof endpoint === 'function' ? await endpoint() : undefined;
    const zone = await region();
    if (!where)
        return { db: await open(`dynamodb://${zone}`), own: true };
    const url = `${where.protocol}//${where.hostname}${where.port ? `:${where.port}` : ''}`;
    return { db: await open(url, { region: zone }), own: true };
}

module.exports = { databaseOf };
