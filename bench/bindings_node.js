/*
 * bindings_node.js: the side of bench/bindings in Node. Its argument is JSON, see settings() there; it prints
 * a line of JSON for every turn: { operation, side_by_side, way, us, cpu_us, times_us }: microseconds of wall time and
 * of this process's processors a call, and the quantiles of the times that calls took.
 */
'use strict';
const { open } = require('holdfast');
const { DynamoDBClient, GetItemCommand, PutItemCommand } = require('@aws-sdk/client-dynamodb');

const ITEMS = 100;
const TABLE = 'bench';
const settings = JSON.parse(process.argv[2]);

/* About 1 KiB, with eleven attributes. */
const item = (n) => ({
    pk: `key-${n % ITEMS}`, sk: 1, name: 'Ann Example', street: 'Long Street 12', city: 'Springfield', zip: '01234', total: 12.5, paid: true,
    count: n, tags: ['a', 'b', 'c'], text: 'x'.repeat(800),
});
const key = (n) => ({ pk: `key-${n % ITEMS}`, sk: 1 });

/* As the SDK without its helpers takes it. */
const attribute = (value) => (typeof value === 'string' ? { S: value } : typeof value === 'number' ? { N: String(value) }
    : typeof value === 'boolean' ? { BOOL: value } : { L: value.map(attribute) });
const attributes = (plain) => Object.fromEntries(Object.entries(plain).map(([name, value]) => [name, attribute(value)]));

const bySdk = (client) => ({
    get: (n) => client.send(new GetItemCommand({ TableName: TABLE, Key: attributes(key(n)) })),
    put: (n) => client.send(new PutItemCommand({ TableName: TABLE, Item: attributes(item(n)) })),
});

async function turn(call, sideBySide, calls) {
    const times = new Float64Array(calls);
    let next = 0;
    const cpu = process.cpuUsage(), begin = performance.now();
    await Promise.all(Array.from({ length: sideBySide }, async () => {
        while (next < calls) {
            const n = next++, before = performance.now();
            await call(n);
            times[n] = performance.now() - before;
        }
    }));
    const ms = performance.now() - begin, { user, system } = process.cpuUsage(cpu);
    times.sort();
    return {
        us: (ms * 1000) / calls,
        cpu_us: (user + system) / calls,
        times_us: settings.quantiles.map((q) => times[Math.min(calls - 1, Math.floor(q * calls))] * 1000),
    };
}

(async () => {
    const db = await open('memory:');
    await db.createTable(TABLE, { key: { pk: 'string', sk: 'number' } });
    const ways = {};
    for (const way of settings.ways)
        ways[way] = way === 'api' ? { get: (n) => db.get(TABLE, key(n)), put: (n) => db.put(TABLE, item(n)) }
            : bySdk(new DynamoDBClient(way === 'sdk' ? db.clientConfig() : { endpoint: settings.endpoints[way], region: 'us-east-1' }));
    for (const { put } of Object.values(ways))
        for (let n = 0; n < ITEMS; n++)
            await put(n);
    for (const operation of settings.operations)
        for (const sideBySide of settings.side_by_side) {
            /* What is called often is compiled anew, several times. The same number of calls for all. */
            for (const way of settings.ways)
                await turn(ways[way][operation], sideBySide, settings.warm);
            for (let round = 0; round < settings.repeat; round++)
                for (let i = 0; i < settings.ways.length; i++) {
                    const way = settings.ways[(i + round) % settings.ways.length];
                    const figures = await turn(ways[way][operation], sideBySide, settings.calls);
                    console.log(JSON.stringify({ operation, side_by_side: sideBySide, way, ...figures }));
                }
        }
    await db.close();
    process.exit(0); /* and not when the last connection is idle for long */
})().catch((error) => {
    console.error(error);
    process.exit(1);
});
