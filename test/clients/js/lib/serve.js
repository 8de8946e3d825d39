/*
 * lib/serve.js: servers for the suite. They listen on a port of their own choice, keep everything in
 * memory unless they are given a directory, and are ended by their process id, whatever becomes of us.
 *
 *     start()                    the one of the suite; no server when ENDPOINT names one
 *     startOwn('--tls-cert', f)  one more, with options
 */
'use strict';
const { spawn } = require('child_process');
const readline = require('readline');

/* What the log must not have: warnings and errors of ours, and what the sanitizers say. */
const COMPLAINT = /^\S+ (warn|error) |Sanitizer|runtime error:/;

const STOP_MS = 60000;

async function start() {
    if (process.env.ENDPOINT)
        return { endpoint: process.env.ENDPOINT, stop: async () => null };
    return startOwn();
}

async function startOwn(...options) {
    if (!process.env.HOLDFAST)
        throw new Error('HOLDFAST has to name the program, or ENDPOINT an address');

    const memory = options.includes('--db-path') ? [] : ['--in-memory'];
    const args = ['serve', '--port', '0', '--admin', ...memory, ...options];
    const child = spawn(process.env.HOLDFAST, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const log = [];
    readline.createInterface({ input: child.stderr }).on('line', (line) => log.push(line));
    const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal)));
    const kill = () => child.kill('SIGKILL');
    process.on('exit', kill);

    const endpoint = await new Promise((resolve, reject) => {
        child.on('error', reject);
        ended.then((code) => reject(new Error(`the server ended with ${code}: ${log.join('\n')}`)));
        readline.createInterface({ input: child.stdout }).on('line', (line) => {
            const found = /serves on (https?:\S+)/.exec(line);
            if (found)
                resolve(found[1]);
        });
    });

    /* Ask it to end; null when it did so in order, else what was wrong. */
    async function stop() {
        child.kill('SIGTERM');
        const late = setTimeout(kill, STOP_MS);
        const code = await ended;
        clearTimeout(late);
        process.removeListener('exit', kill);
        const complaint = log.find((line) => COMPLAINT.test(line));
        if (code !== 0)
            return `ended with ${code}: ${log.slice(-20).join('\n')}`;
        return complaint ? `logged: ${complaint}` : null;
    }
    /* As when the machine fails: nothing is finished, nothing is said. */
    async function crash() {
        child.kill('SIGKILL');
        await ended;
        process.removeListener('exit', kill);
    }
    return { endpoint, log, stop, crash };
}

module.exports = { start, startOwn };
