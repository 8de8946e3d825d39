/*
 * docs.test.js: the examples of docs/node.md run, each one in a folder of its own.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const path = require('path');
const { spawn } = require('child_process');
const { once } = require('events');

const text = fs.readFileSync(path.join(__dirname, 'node.md'), 'utf8');
const blocks = [...text.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map((found) => found[1]);
const folder = fs.mkdtempSync(path.join(__dirname, 'docs.'));
test.after(() => fs.rmSync(folder, { recursive: true }));

test('there are examples', () => assert(blocks.length >= 6, `${blocks.length}`));

blocks.forEach((block, i) => test(`example ${i + 1}: ${block.split('\n').find((line) => /await/.test(line))}`, async () => {
    const at = path.join(folder, String(i));
    fs.mkdirSync(at);
    fs.writeFileSync(path.join(at, 'example.mjs'), block);
    const child = spawn(process.execPath, ['example.mjs'], { cwd: at, stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '', complained = '';
    child.stdout.on('data', (part) => (printed += part));
    child.stderr.on('data', (part) => (complained += part));
    const [code] = await once(child, 'close');
    assert.strictEqual(code, 0, complained);
    assert.strictEqual(complained, '');
    /* What a comment behind console.log() promises, up to a colon. */
    for (const [, promised] of block.matchAll(/^\s*console\.log\(.*\); \/\/ ([^\n:]*)/gm)) {
        const flat = (shown) => shown.replace(/\s+/g, ' ').trim();
        assert(flat(printed).includes(flat(promised)), `${promised}\nis not in\n${printed}`);
    }
}));
