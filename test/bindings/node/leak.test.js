/*
 * leak.test.js: the memory of the process does not grow with the number of calls, and calls do not hold up
 * the event loop. HF_LEAK_CALLS=1000000 for a long look.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { spawn } = require('child_process');
const { once } = require('events');

const CALLS = Number(process.env.HF_LEAK_CALLS ?? 14000);
const WARM = Math.max(7000, CALLS / 4); /* calls until caches, pools and heaps are as large as they get */
const GROWTH_BYTES = 28 << 20; /* it is 40 MB in the short run when the answers of one kind of call are not freed */

/* In a process of its own, with a garbage collection that can be asked for: what `body` measures. */
async function measure(body) {
    const child = spawn(process.execPath, ['--expose-gc', '-e', `
        const { open } = require('holdfast');
        const resident = async () => {
            for (let i = 0; i < 4; i++) {
                gc();
                await new Promise(setImmediate);
            }
            return process.memoryUsage().rss;
        };
        const grows = async (call) => {
            const calls = async (count) => {
                for (let i = 0; i < count; i += 10)
                    await Promise.all(Array.from({ length: 10 }, (_, n) => call(i + n)));
            };
            await calls(${WARM});
            const before = await resident();
            await calls(${CALLS});
            return await resident() - before;
        };
        (async () => { ${body} })().catch((error) => { console.error(error); process.exit(1); });`],
    { cwd: __dirname, stdio: ['ignore', 'pipe', 'inherit'] });
    let printed = '';
    child.stdout.on('data', (text) => (printed += text));
    const [code] = await once(child, 'close');
    assert.strictEqual(code, 0);
    return JSON.parse(printed);
}

test('calls of all kinds', async () => {
    const grown = await measure(`
        const db = await open('memory:');
        await db.createTable('things', { key: { id: 'string' } });
        const payload = 'x'.repeat(20000);
        const kinds = [
            (n) => db.put('things', { id: String(n % 10), payload }),
            (n) => db.get('things', { id: String(n % 10) }),
            () => db.query('things', { id: '1' }).all(),
            () => db.get('nothing-of-that-name', { id: payload.slice(0, 2000) }).then(() => process.exit(2), () => {}),
            () => db.counter('visits').add(1),
            (n) => db.lock('nightly' + n % 10).then((held) => held.release()),
            () => db.get('things', { id: '1' }, { signal: new AbortController().signal, timeoutMs: 60000 }),
        ];
        console.log(await grows((n) => kinds[n % kinds.length](n)));
        await db.close();`);
    assert(grown < GROWTH_BYTES, `${grown} bytes`);
});

test('databases, and workers with databases', async () => {
    const grown = await measure(`
        const { Worker } = require('worker_threads');
        console.log(await grows(async (n) => {
            if (n % 100 === 0) {
                const db = await open('memory:');
                await db.createTable('things', { key: { id: 'string' } });
                await db.put('things', { id: '1', payload: 'x'.repeat(100000) });
                await db.close();
            }
            if (n % 2000 === 0)
                await new Promise((resolve) => new Worker(
                    "require('holdfast').open('memory:').then((db) => db.createTable('things', { key: { id: 'string' } }))",
                    { eval: true }).on('exit', resolve));
        }));`);
    assert(grown < GROWTH_BYTES, `${grown} bytes`);
});

/*
 * What the engine does is not done on the thread of JavaScript: while it works all the time, that one waits
 * for most of it. If a call were done there, it would wait for nothing.
 */
test('the event loop goes on under load', async () => {
    const { utilization, calls, turns } = await measure(`
        const db = await open('memory:');
        await db.createTable('things', { key: { id: 'string', n: 'number' } });
        for (let i = 0; i < 4000; i += 1000)
            await db.writeMany('things', { put: Array.from({ length: 1000 }, (_, n) => ({ id: 'a', n: i + n, payload: 'x'.repeat(200) })) });
        const filter = [...Array(40).fill('NOT contains(#p, :b)'), 'contains(#p, :b)'].join(' AND ');
        let running = true, calls = 0, turns = 0;
        const before = performance.eventLoopUtilization();
        /* Each of them looks at all items and finds none: long in the engine, short in JavaScript. */
        const load = Array.from({ length: 2 }, async () => {
            for (; running; calls++)
                if (await db.count('things', { id: 'a' }, { filter, names: { p: 'payload' }, values: { b: 'b' } }) !== 0)
                    process.exit(2);
        });
        for (const end = Date.now() + 1500; Date.now() < end || calls < 20; turns++)
            await new Promise((resolve) => setTimeout(resolve, 5));
        running = false;
        await Promise.all(load);
        const { utilization } = performance.eventLoopUtilization(before);
        await db.close();
        console.log(JSON.stringify({ utilization, calls, turns }));`);
    assert(utilization < 0.75, `${utilization} of the time, in ${turns} turns and ${calls} calls`);
    if (process.env.HF_LEAK_CALLS)
        console.log({ utilization, calls, turns });
});
