#!/usr/bin/env node
/*
 * bin/holdfast.js: the holdfast command, by npm. Without arguments it serves.
 *
 * This process becomes the command: it starts none and waits for none. So there is one process that a
 * terminal's Ctrl-C or a signal can reach, and its exit code is the command's.
 */
'use strict';
const { command, become } = require('../lib/native');

const args = process.argv.slice(2);
try {
    become(command(), args.length ? args : ['serve']);
} catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
}
