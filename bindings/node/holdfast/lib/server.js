/*
 * lib/server.js: a server for tests, in a process of its own.
 *
 *     const server = await startServer();
 *     new DynamoDBClient(server.clientConfig());
 *     await server.snapshot();      once, when tables and data are there
 *     await server.restore();       before each test
 *     await server.stop();
 */
'use strict';
const http = require('http');
const { spawn } = require('child_process');
const { command } = require('./native');
const { HoldfastError, invalid } = require('./errors');
const { check } = require('./requests');

const STOP_MS = 30000; /* then it is killed */
const LOG_LINES = 200; /* the newest are kept for messages */

/* What it prints, line by line. */
function lines(stream, each) {
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('data', (text) => {
        const parts = (rest + text).split('\n');
        rest = parts.pop();
        parts.forEach(each);
    });
}

class Server {
    #child;
    #ended;
    #kill;
    constructor(endpoint, child, ended, kill, log) {
        this.endpoint = endpoint;
        this.region = 'us-east-1';
        this.credentials = { accessKeyId: 'holdfast', secretAccessKey: 'holdfast' };
        this.log = log;
        this.pid = child.pid;
        this.#child = child;
        this.#ended = ended;
        this.#kill = kill;
    }

    /* For `new DynamoDBClient(...)`. */
    clientConfig() {
        return { endpoint: this.endpoint, region: this.region, credentials: { ...this.credentials } };
    }

    /* For processes that find their endpoint in the environment, as all SDKs do. */
    get env() {
        return {
            AWS_ENDPOINT_URL_DYNAMODB: this.endpoint,
            AWS_ENDPOINT_URL_DYNAMODB_STREAMS: this.endpoint,
            AWS_REGION: this.region,
            AWS_ACCESS_KEY_ID: this.credentials.accessKeyId,
            AWS_SECRET_ACCESS_KEY: this.credentials.secretAccessKey,
        };
    }

    /* Keep the whole database under that name. */
    async snapshot(name = 'default') {
        await this.#admin('PUT', `snapshots/${encodeURIComponent(name)}`);
    }

    /* Set the whole database back to it, in one step. */
    async restore(name = 'default') {
        await this.#admin('POST', `snapshots/${encodeURIComponent(name)}/restore`);
    }

    /* Move the clock of the database, by seconds or to a time; null: back to the true one. */
    async clock(to) {
        if (to === null)
            return this.#admin('PUT', 'clock', { reset: true });
        const body = to instanceof Date ? { now_s: to.getTime() / 1000 } : { advance_s: to };
        return this.#admin('PUT', 'clock', body);
    }

    /* Do now what maintenance does once a second: expiry, trimming. */
    async maintain() {
        return this.#admin('POST', 'upkeep');
    }

    /* Let calls fail: see docs/operations.md. An empty list ends that. */
    async faults(faults) {
        return faults.length ? this.#admin('PUT', 'faults', { faults }) : this.#admin('DELETE', 'faults');
    }

    #admin(method, path, body) {
        const text = body === undefined ? '' : JSON.stringify(body);
        return new Promise((resolve, reject) => {
            const request = http.request(`${this.endpoint}/_holdfast/${path}`, {
                method, agent: false, headers: { 'content-length': Buffer.byteLength(text) },
            }, (response) => {
                let answer = '';
                response.setEncoding('utf8');
                response.on('data', (part) => (answer += part));
                response.on('error', reject);
                response.on('end', () => {
                    if (response.statusCode < 300)
                        return resolve(answer ? JSON.parse(answer) : undefined);
                    let message = answer;
                    try {
                        message = JSON.parse(answer).message ?? answer;
                    } catch {} /* then as it is */
                    reject(new HoldfastError(response.statusCode === 404 ? 'HF_NOT_FOUND' : 'HF_INVALID', message));
                });
            });
            request.on('error', reject);
            request.end(text);
        });
    }

    /* Ask it to end, and wait for that. Once more is no mistake. */
    async stop() {
        if (this.#child.exitCode === null && this.#child.signalCode === null)
            process.kill(this.#child.pid, 'SIGTERM'); /* Deno takes child.kill() for how it ended */
        const late = setTimeout(this.#kill, STOP_MS);
        const code = await this.#ended;
        clearTimeout(late);
        process.removeListener('exit', this.#kill);
        if (code !== 0)
            throw new HoldfastError('HF_INTERNAL', `the server ended with ${code}:\n${this.log.join('\n')}`);
    }
}
if (Symbol.asyncDispose)
    Server.prototype[Symbol.asyncDispose] = Server.prototype.stop;

/*
 * Start a server on a free port, with its data in memory, or in the directory `path`. `args` are more
 * options of `holdfast serve`. It ends with this process, unless that is killed.
 */
async function startServer(options = {}) {
    check(options, ['path', 'port', 'args', 'env'], 'startServer');
    const { path, port = 0, args = [], env = {} } = options;
    if (!Number.isInteger(port) || port < 0 || port > 65535)
        throw invalid(`port is a number up to 65535, not ${port}`);
    const data = path === undefined ? ['--in-memory'] : ['--db-path', path];
    const child = spawn(command(), ['serve', '--port', String(port), '--admin', ...data, ...args], {
        stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env },
    });
    const log = [];
    const kill = () => child.kill('SIGKILL');
    process.on('exit', kill);
    lines(child.stderr, (line) => {
        log.push(line);
        if (log.length > LOG_LINES)
            log.shift();
    });
    const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal)));
    const endpoint = await new Promise((resolve, reject) => {
        const failed = (error) => {
            process.removeListener('exit', kill);
            reject(error);
        };
        child.on('error', (error) => failed(new HoldfastError('HF_IO', `${command()}: ${error.message}`)));
        ended.then((code) => failed(new HoldfastError('HF_IO', `the server ended with ${code}:\n${log.join('\n')}`)));
        lines(child.stdout, (line) => {
            const found = /serves on (https?:\S+)/.exec(line);
            if (found)
                resolve(found[1]);
        });
    });
    return new Server(endpoint, child, ended, kill, log);
}

module.exports = { startServer };
