/*
 * types.test.js: types.ts compiles, with every way of finding the types; and each name is there.
 */
'use strict';
const test = require('node:test');
const assert = require('node:assert');
const fs = require('fs');
const path = require('path');
const { spawnSync } = require('child_process');
const holdfast = require('holdfast');

const tsc = path.join(__dirname, '../node_modules/typescript/bin/tsc');
const dts = path.join(path.dirname(require.resolve('holdfast/package.json')), 'index.d.ts');
const skip = !(fs.existsSync(tsc) && fs.existsSync(path.join(__dirname, '../node_modules/@aws-sdk'))) && 'TypeScript or the SDK cannot be fetched';

test('tsc --strict', { skip }, () => {
    /* Types of libraries are not checked, which takes long; those of ours are, as a source. */
    fs.writeFileSync(path.join(__dirname, 'own.ts'), fs.readFileSync(dts, 'utf8').replace(/^export (class|function)/gm, 'export declare $1'));
    const { status, stdout } = spawnSync(process.execPath, [tsc, '--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022',
        '--lib', 'es2022,esnext.disposable', '--module', 'node16', '--moduleResolution', 'node16', '--types', 'node', '--esModuleInterop',
        path.join(__dirname, 'own.ts'), path.join(__dirname, 'types.ts')], { encoding: 'utf8', cwd: __dirname });
    assert.strictEqual(status, 0, stdout.slice(0, 2000));
});

test('by import as by require, and as the types say', async () => {
    const imported = await import('holdfast');
    const names = Object.keys(imported).filter((name) => name !== 'default').sort();
    assert.deepStrictEqual(names, Object.keys(holdfast).sort());
    assert.strictEqual(imported.default, holdfast);
    for (const name of names)
        assert.strictEqual(imported[name], holdfast[name]);
    const types = fs.readFileSync(dts, 'utf8');
    const declared = [...types.matchAll(/^export (?:class|function) (\w+)/gm)].map((found) => found[1]);
    assert.deepStrictEqual(declared.sort(), names);
});

for (const name of ['outbox-event-bus', 'event-store'])
    test(`holdfast/${name} by import as by require, and as the types say`, async () => {
        const required = require(`holdfast/${name}`), imported = await import(`holdfast/${name}`);
        const names = Object.keys(required).sort();
        assert.deepStrictEqual(Object.keys(imported).sort(), names);
        for (const each of names)
            assert.strictEqual(imported[each], required[each]);
        const types = fs.readFileSync(path.join(path.dirname(dts), `${name}.d.ts`), 'utf8');
        const declared = [...types.matchAll(/^export (?:class|function|declare const) (\w+)/gm), ...types.matchAll(/^export \{ \w+ as (\w+) \}/gm)];
        assert.deepStrictEqual(declared.map((found) => found[1]).sort(), names);
    });

test('every method is in the types', () => {
    const types = fs.readFileSync(dts, 'utf8');
    const declared = /export class Database [\s\S]*?\n}/.exec(types)[0];
    const methods = Object.getOwnPropertyNames(holdfast.Database.prototype).filter((name) => name !== 'constructor');
    for (const name of methods)
        assert.match(declared, new RegExp(`\\b${name}\\b`), name);
});
