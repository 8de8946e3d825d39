/*
 * process.test.js: threads, workers, ends of processes, and the event loop, which goes on meanwhile.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const net = require('net');
const os = require('os');
const path = require('path');
const { spawn, spawnSync } = require('child_process');
const { Worker } = require('worker_threads');
const { once } = require('events');
const { open, HoldfastError } = require('holdfast');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-test.'));
test.after(() => fs.rmSync(folder, { recursive: true }));

let number = 0;
const fresh = () => `embedded:${path.join(folder, `db${++number}`)}`;

/* Run a script in a process of its own, which may print lines. */
function script(text, ...args) {
    const child = spawn(process.execPath, ['-e', text, ...args], { stdio: ['pipe', 'pipe', 'inherit'], cwd: __dirname });
    child.text = '';
    child.stdout.setEncoding('utf8').on('data', (part) => (child.text += part));
    child.ended = once(child, 'close').then(([code, signal]) => code ?? signal);
    child.line = async (n) => {
        while (child.text.split('\n').length <= n)
            await Promise.race([once(child.stdout, 'data'),
                child.ended.then((code) => { throw new Error(`ended with ${code}: ${child.text}`); })]);
        return child.text.split('\n')[n];
    };
    return child;
}

test('a directory is opened by one at a time, and what was written stays', async () => {
    const url = fresh();
    const db = await open(url);
    await assert.rejects(open(url), (error) => error instanceof HoldfastError && error.code === 'HF_LOCKED');
    await db.createTable('things', { key: { id: 'string' } });
    await db.put('things', { id: 'a' });
    await Promise.all([db.close(), db.close()]);
    await assert.rejects(db.get('things', { id: 'a' }), { code: 'HF_STOPPED' });
    const again = await open(url);
    assert.deepStrictEqual(await again.get('things', { id: 'a' }), { id: 'a' });
    await again.close();
    const reader = await open(url, { readOnly: true });
    assert.deepStrictEqual(await reader.get('things', { id: 'a' }), { id: 'a' });
    await assert.rejects(reader.put('things', { id: 'b' }), { code: 'HF_DENIED' });
    await reader.close();
});

test('what cannot be opened says why', async () => {
    await assert.rejects(open('nonsense:x'), { code: 'HF_INVALID' });
    await assert.rejects(open(`embedded:${folder}/no/such/parent`), { code: 'HF_IO' });
    await assert.rejects(open(5), { code: 'HF_INVALID' });
    await assert.rejects(open('memory:', { readonly: true }), /no option readonly; it has readOnly/);
});

test('without the package of the platform, the error says what to do', () => {
    const to = path.join(folder, 'alone', 'node_modules', 'holdfast');
    fs.cpSync(path.dirname(require.resolve('holdfast/package.json')), to, { recursive: true, dereference: true });
    const { HOLDFAST_NATIVE, ...env } = process.env;
    const run = (text) => spawnSync(process.execPath, ['-e', text], { cwd: path.join(folder, 'alone'), env, encoding: 'utf8' });
    const opened = run("require('holdfast').open('memory:').catch((error) => console.log(error.message))");
    assert.match(opened.stdout, /@holdfast\/linux-x64 is not installed.*optional/);
    const launched = spawnSync(process.execPath, [path.join(to, 'bin/holdfast.js')], { env, encoding: 'utf8' });
    assert.strictEqual(launched.status, 1);
    assert.match(launched.stderr, /@holdfast\/linux-x64 is not installed/);
});

test('the event loop goes on while calls run', async () => {
    const db = await open('memory:');
    const held = await db.lock('one');
    let waiting = 20;
    const locks = Array.from({ length: 20 }, () => db.lock('one', { pollMs: 5 }).then((lock) => {
        waiting--;
        return lock.release();
    }));
    for (let round = 0; round < 200; round++)
        await new Promise(setImmediate);
    assert.strictEqual(waiting, 20);
    await held.release();
    await Promise.all(locks);
    await db.close();
});

/* Calls that are done at once would keep everything else waiting if nobody looked after the time. */
test('the event loop goes on in a loop of calls', async () => {
    for (const url of ['memory:', fresh()]) {
        const db = await open(url);
        await db.createTable('things', { key: { id: 'string' } });
        await db.put('things', { id: 'a' });
        const server = net.createServer((socket) => socket.end('b')).listen(0, '127.0.0.1');
        await once(server, 'listening');
        let rung = 0, answered = false;
        setTimeout(() => (rung++, setTimeout(() => rung++, 1)), 1);
        net.connect(server.address().port, '127.0.0.1').on('data', () => (answered = true));
        while (rung < 2 || !answered) /* for ever, if the loop did not go on */
            assert.deepStrictEqual(await db.get('things', { id: 'a' }), { id: 'a' });
        let ended = false;
        setTimeout(() => (ended = true), 1);
        await Promise.all(Array.from({ length: 16 }, async () => {
            while (!ended)
                await db.get('things', { id: 'a' });
        }));
        server.close();
        await db.close();
        await assert.rejects(db.get('things', { id: 'a' }), { code: 'HF_STOPPED' });
    }
});

test('calls that wait for their turn end when the database is closed, or when they are canceled', async () => {
    const db = await open('memory:');
    await db.createTable('things', { key: { id: 'string' } });
    const controller = new AbortController();
    let done = 0, canceled = 0, stopped = 0;
    const work = Array.from({ length: 8 }, async (_, i) => {
        try {
            for (;;) {
                await db.put('things', { id: `t${i}` }, i % 2 ? { signal: controller.signal } : {});
                if (++done === 10000)
                    setImmediate(() => controller.abort());
                if (canceled === 4)
                    setImmediate(() => db.close());
            }
        } catch (error) {
            if (error.code === 'HF_CANCELED')
                canceled++;
            else if (error.code === 'HF_STOPPED')
                stopped++;
            else
                throw error;
        }
    });
    await Promise.all(work);
    assert.deepStrictEqual([canceled, stopped], [4, 4]);
    await db.close();
});

test('close waits for what runs, and cancels what is left', async () => {
    const db = await open(fresh());
    await db.createTable('things', { key: { id: 'string' } });
    const calls = Array.from({ length: 300 }, (_, i) => db.put('things', { id: `t${i}` }));
    const results = Promise.allSettled(calls);
    await db.close();
    for (const { status, reason } of await results)
        assert(status === 'fulfilled' || ['HF_STOPPED', 'HF_CANCELED'].includes(reason.code), String(reason));
});

test('more calls that wait than there are threads, and close', async () => {
    const db = await open('memory:');
    const held = await db.lock('one');
    const waiting = Array.from({ length: 1200 }, () => db.lock('one', { pollMs: 60000 }).then(() => 'held', (error) => error.code));
    await db.createTable('things', { key: { id: 'string' } }); /* other calls go on */
    await db.close();
    assert.deepStrictEqual([...new Set(await Promise.all(waiting))].filter((code) => !['HF_CANCELED', 'HF_STOPPED'].includes(code)), []);
    assert.strictEqual(held.lost, true);
});

test('a signal that is aborted cancels, and so does a time limit', async () => {
    /* A server that never answers. */
    const server = net.createServer((socket) => socket.on('error', () => {}));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const db = await open(`http://127.0.0.1:${server.address().port}?attempts=1&attempt_ms=600000`);
    await assert.rejects(db.get('things', { id: 'a' }, { signal: AbortSignal.abort(new Error('no')) }), { code: 'HF_CANCELED', message: /no/ });
    const controller = new AbortController();
    server.once('connection', () => controller.abort());
    await assert.rejects(db.put('things', { id: 'a' }, { signal: controller.signal }), { code: 'HF_CANCELED' });
    await assert.rejects(db.put('things', { id: 'a' }, { timeoutMs: 20 }), { code: 'HF_TIMEOUT' });
    const waiting = assert.rejects(db.get('things', { id: 'a' }), { code: 'HF_CANCELED' });
    await once(server, 'connection');
    await db.close();
    await waiting;
    server.close();
});

test('workers have databases of their own, and can be ended at any time', async () => {
    const body = `
        const { parentPort, workerData } = require('worker_threads');
        const { open } = require('holdfast');
        (async () => {
            const db = await open(workerData.url);
            await db.createTable('things', { key: { id: 'string' }, ifMissing: true });
            for (let i = 0; ; i++) {
                await Promise.all([1, 2, 3].map((n) => db.put('things', { id: i + '.' + n })));
                if (i % 5 === 0) parentPort.postMessage(i);
                if (i === workerData.last) break;
            }
            if (workerData.close) await db.close();
            parentPort.postMessage('end');
        })();`;
    const start = (data) => new Worker(body, { eval: true, workerData: data });
    const workers = [1, 2, 3].map(() => start({ url: fresh(), last: 20, close: number % 2 === 0 }));
    await Promise.all(workers.map((worker) => once(worker, 'exit').then(([code]) => assert.strictEqual(code, 0))));
    for (let i = 0; i < 4; i++) {
        const url = fresh();
        const worker = start({ url });
        for (let j = 0; j < 3; j++)
            await once(worker, 'message');
        await worker.terminate();
        const db = await open(url); /* which the worker has closed */
        assert((await db.scan('things').all()).length >= 15);
        await db.close();
    }
});

test('a process ends by itself when nothing is left to do, and process.exit() at any time', async () => {
    const url = fresh();
    const text = (end) => `
        const { open } = require('holdfast');
        (async () => {
            const db = await open(process.argv[1]);
            await db.createTable('things', { key: { id: 'string' }, ifMissing: true });
            for (let i = 0; i < 200; i++) db.put('things', { id: String(i) }).catch(() => {});
            ${end}
        })();`;
    for (const [end, code] of [['', 0], ['process.exit(7);', 7], ['setImmediate(() => process.exit(8));', 8],
        ['await db.close();', 0], ['setTimeout(() => { throw new Error("x"); });process.on("uncaughtException", () => process.exit(9));', 9]])
        assert.strictEqual(await script(text(end), url).ended, code, end);
    const db = await open(url);
    assert.strictEqual((await db.scan('things').all()).length, 200);
    await db.close();
});

test('kill -9: nothing that was acknowledged is lost', async () => {
    const url = fresh();
    const seen = new Set();
    for (let round = 0; round < 3; round++) {
        const child = script(`
            const { open } = require('holdfast');
            (async () => {
                const db = await open(process.argv[1]);
                await db.createTable('things', { key: { id: 'string' }, ifMissing: true });
                for (let i = 0; ; i++) {
                    const ids = [1, 2, 3, 4].map((n) => process.argv[2] + '.' + i + '.' + n);
                    await Promise.all(ids.map((id) => db.put('things', { id }).then(() => console.log(id))));
                }
            })();`, url, String(round));
        await child.line(40 + round * 7);
        child.kill('SIGKILL');
        assert.strictEqual(await child.ended, 'SIGKILL');
        child.text.split('\n').slice(0, -1).forEach((id) => seen.add(id));
    }
    const db = await open(url);
    const there = new Set((await db.scan('things').all()).map((thing) => thing.id));
    assert.deepStrictEqual([...seen].filter((id) => !there.has(id)), []);
    assert(seen.size >= 120);
    await db.close();
});
