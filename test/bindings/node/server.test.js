/*
 * server.test.js: startServer(), and the command by npm: arguments, exit codes, signals, a terminal.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { spawn, spawnSync } = require('child_process');
const { once } = require('events');
const { open, startServer } = require('holdfast');

const bin = path.join(__dirname, '../node_modules/.bin/holdfast');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-test.'));
test.after(() => fs.rmSync(folder, { recursive: true }));

const things = { key: { id: 'string' } };

test('a server for tests: snapshot, restore, clock, faults, stop', async () => {
    const server = await startServer();
    const db = await open(server.endpoint);
    await db.createTable('things', { ...things, expires: 'until' });
    await db.put('things', { id: 'a' });
    await server.snapshot();
    await db.put('things', { id: 'b' });
    await db.deleteTable('things');
    await server.restore();
    assert.deepStrictEqual(await db.scan('things').all(), [{ id: 'a' }]);
    await assert.rejects(server.restore('nonsense'), { code: 'HF_NOT_FOUND' });

    await db.put('things', { id: 'c', until: Math.floor(Date.now() / 1000) + 3600 });
    await server.clock(7200);
    await server.maintain();
    assert.strictEqual(await db.get('things', { id: 'c' }), undefined);
    await server.clock(null);

    await server.faults([{ kind: 'throttle', operation: 'PutItem', count: 1 }]);
    await db.put('things', { id: 'd' }); /* the client tries again */
    await server.faults([]);

    await db.close();
    await server.stop();
    await server.stop();
});

test('several servers at the same time, and one with a directory', async () => {
    const dir = path.join(folder, 'shop.db');
    const servers = await Promise.all([startServer(), startServer(), startServer({ path: dir })]);
    assert.strictEqual(new Set(servers.map((server) => server.endpoint)).size, 3);
    const db = await open(servers[2].endpoint);
    await db.createTable('things', things);
    await db.put('things', { id: 'kept' });
    await db.close();
    await Promise.all(servers.map((server) => server.stop()));
    const again = await open(`embedded:${dir}`);
    assert.deepStrictEqual(await again.scan('things').all(), [{ id: 'kept' }]);
    await assert.rejects(startServer({ path: dir }), (error) => error.code === 'HF_IO' && /shop\.db/.test(error.message));
    await assert.rejects(startServer({ prot: 1 }), { code: 'HF_INVALID' });
    await again.close();
});

test('a server ends with the process that started it', async () => {
    const child = spawn(process.execPath, ['-e', `require('holdfast').startServer().then((s) => { console.log(s.pid); process.exit(3); })`],
        { cwd: __dirname, stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (part) => (text += part));
    const [code] = await once(child, 'close');
    assert.strictEqual(code, 3);
    /* It was killed before its parent ended; init may take a moment to bury it. */
    for (;;) {
        try {
            const status = fs.readFileSync(`/proc/${Number(text)}/stat`, 'utf8');
            if (/\) Z/.test(status))
                break;
            await new Promise((resolve) => setTimeout(resolve, 10));
        } catch {
            break;
        }
    }
});

test('npx holdfast: arguments, output and exit codes are those of the command', () => {
    const run = (...args) => spawnSync(bin, args, { encoding: 'utf8', cwd: folder });
    const version = run('--version');
    assert.strictEqual(version.status, 0, version.stderr);
    assert.match(version.stdout, new RegExp(require('holdfast/package.json').version.replaceAll('.', '\\.')));
    const wrong = run('no such command');
    assert.strictEqual(wrong.status, 2);
    assert.match(wrong.stderr, /no such command/);
    const input = spawnSync(bin, ['item', 'list', 'things', '--db', `embedded:${path.join(folder, 'none')}`], { encoding: 'utf8' });
    assert.notStrictEqual(input.status, 0);
});

/* Start it and wait until it serves. `pid` is the process that was started, the server itself. */
async function serve(command, args, options = {}) {
    const child = spawn(command, args, { cwd: folder, stdio: ['pipe', 'pipe', 'pipe'], ...options });
    child.text = '';
    const ended = once(child, 'close').then(([code, signal]) => signal ?? code);
    const ready = new Promise((resolve) => {
        for (const stream of [child.stdout, child.stderr])
            stream.setEncoding('utf8').on('data', (part) => {
                child.text += part;
                if (/serves on/.test(child.text))
                    resolve();
            });
    });
    await Promise.race([ready, ended.then((code) => { throw new Error(`ended with ${code}: ${child.text}`); })]);
    return { child, ended };
}

test('npx holdfast without arguments serves; a signal that it alone gets ends it in order', async () => {
    for (const signal of ['SIGTERM', 'SIGINT']) {
        const { child, ended } = await serve(bin, [], { env: { ...process.env, HOLDFAST_PORT: '0' } });
        child.kill(signal);
        assert.strictEqual(await ended, 0, child.text);
        assert.match(child.text, /stopped\n$/);
    }
    assert(fs.existsSync(path.join(folder, 'holdfast.db')));
});

/*
 * A terminal around a command: what we write is typed there, what the command prints is ours to read, all
 * of it, and its exit code is passed on. Not script(1): when the command has ended it waits 10 ms for the
 * last of the output, which on a busy machine may come later.
 */
const terminal = `
import os, pty, select, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
typed = [0]
while True:
    ready = select.select([fd] + typed, [], [])[0]
    if 0 in ready:
        text = os.read(0, 100)
        os.write(fd, text)
        if not text:
            typed = []
    if fd in ready:
        try:
            os.write(1, os.read(fd, 4096))
        except OSError:
            break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)
`;

test('Ctrl-C on a terminal ends it once, and the exit code is its own', async (t) => {
    if (spawnSync('python3', ['--version']).status !== 0)
        return t.skip('there is no python3, which makes the terminal');
    for (let round = 0; round < 3; round++) {
        const { child, ended } = await serve('python3', ['-c', terminal, bin, 'serve', '--in-memory', '--port', '0']);
        child.stdin.write('\x03'); /* the terminal sends SIGINT to all of its processes */
        assert.strictEqual(await ended, 0, child.text);
        assert.strictEqual(child.text.match(/stopping/g)?.length, 1, child.text);
        assert.match(child.text, /stopped\s*$/);
    }
});
