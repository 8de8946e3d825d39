// beside.js PORT DATABASE... -- COMMAND...: start the database, wait until it listens on the port, run
// the command with HF_KIT_URL, and stop the database whatever happens. Exits as the command does.
'use strict';
const { spawn } = require('child_process');
const net = require('net');

const [port, ...words] = process.argv.slice(2);
const split = words.indexOf('--');
const [database, command] = [words.slice(0, split), words.slice(split + 1)];
const PATIENCE_MS = 60000;

let said = '';
let ended = false;
const engine = spawn(database[0], database.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
engine.stdout.on('data', (text) => (said += text));
engine.stderr.on('data', (text) => (said += text));
engine.on('exit', () => (ended = true));

function stop(status) {
    if (!ended)
        engine.kill('SIGKILL'); // it keeps everything in memory
    process.exit(status);
}

function listens(then, otherwise) {
    const socket = net.connect(Number(port), '127.0.0.1');
    socket.on('connect', () => { socket.destroy(); then(); });
    socket.on('error', otherwise);
}

function run() {
    const env = { ...process.env, HF_KIT_URL: `http://127.0.0.1:${port}` };
    const child = spawn(command[0], command.slice(1), { stdio: 'inherit', env });
    child.on('exit', (code) => {
        if (code !== 0)
            console.error(said.slice(-4000));
        stop(code === null ? 1 : code);
    });
}

const begin = Date.now();
(function look() {
    listens(run, () => {
        if (ended || Date.now() - begin > PATIENCE_MS) {
            console.error(`${database[0]} does not listen:\n${said}`);
            stop(1);
        }
        setTimeout(look, 50);
    });
})();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => stop(1));
