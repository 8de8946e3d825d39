/*
 * lib/many.js: very many items and tables, and how long a person waits for the first of them. Times are those in
 * the page, from what the person does to rows that can be seen.
 */
'use strict';
const { spawn } = require('child_process');
const { once } = require('events');
const { visit } = require('./kit');

/* A table of so many items, by the command: a million take seconds, where requests of 25 took minutes. */
async function filled(s, name, items) {
    const env = { ...process.env, AWS_ACCESS_KEY_ID: 'any', AWS_SECRET_ACCESS_KEY: 'any', AWS_REGION: 'us-east-1' };
    const child = spawn(process.env.HOLDFAST, ['import', '--table', name, '--key', 'id:S', '--format', 'jsonl', '--quiet', '--db', s.endpoint, '-'], { stdio: ['pipe', 'inherit', 'inherit'], env });
    const ended = once(child, 'exit'), from = performance.now();
    child.stdin.on('error', () => { }); /* it has ended, and says why */
    for (let i = 0; i < items && child.exitCode === null;) {
        let lines = '';
        for (const to = Math.min(items, i + 5000); i < to; i++)
            lines += `{"id":"item-${i}","n":${i},"text":"some text"}\n`;
        if (!child.stdin.write(lines))
            await Promise.race([once(child.stdin, 'drain'), ended]);
    }
    child.stdin.end();
    const [code] = await ended;
    if (code !== 0)
        throw new Error(`holdfast import ended with ${code}`);
    console.log(`${items.toLocaleString('en')} items by the command:   ${((performance.now() - from) / 1000).toFixed(1)} s`);
}

/* From the change of the URL to the first rows of a table. */
async function firstRows(p, s, name) {
    await visit(p, s.endpoint, '/tables');
    return p.evaluate((table) => new Promise((done) => {
        const from = performance.now();
        const look = () => (document.querySelector('[data-view=items] tbody tr[data-i]') ? done(performance.now() - from) : requestAnimationFrame(look));
        location.hash = `#/tables/${table}/items`;
        look();
    }), name);
}

/* From a text in the search among tables, which is open, to the one that has it. */
const search = (p, text) => p.evaluate((wanted) => new Promise((done) => {
    const input = document.querySelector('input[type=search]'), from = performance.now();
    input.value = wanted;
    input.dispatchEvent(new Event('input'));
    const look = () => (document.querySelector('tbody tr[data-i]')?.textContent.includes(`table-${wanted}`) ? done(performance.now() - from) : requestAnimationFrame(look));
    look();
}), text);

module.exports = { filled, firstRows, search };
