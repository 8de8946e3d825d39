/*
 * lib/native.js: finds and loads the package of this platform, which has the engine and the command.
 */
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');

const name = `@holdfast/${process.platform}-${process.arch}`;

/* The folder of that package. HOLDFAST_NATIVE names another one, as builds of one's own do. */
function folder() {
    if (process.env.HOLDFAST_NATIVE)
        return process.env.HOLDFAST_NATIVE;
    try {
        return path.dirname(require.resolve(`${name}/package.json`));
    } catch (error) {
        throw new Error(`holdfast: the package ${name} is not installed. ` +
            (process.platform === 'linux' && process.arch === 'x64'
                ? 'Install without --omit=optional, or add it to your dependencies.'
                : `There are packages for linux-x64 only, and this is ${process.platform}-${process.arch}.`),
        { cause: error });
    }
}

let loaded;

/*
 * The addon. Node has OpenSSL, zlib and others in its own binary and shows their functions to every
 * library; RTLD_DEEPBIND lets those of ours find the ones that they were built with.
 */
function native() {
    if (loaded)
        return loaded;
    const file = path.join(folder(), 'holdfast.node');
    const { RTLD_NOW, RTLD_DEEPBIND = 0 } = os.constants.dlopen;
    const module = { exports: {} };
    try {
        process.dlopen(module, file, RTLD_NOW | RTLD_DEEPBIND);
    } catch (error) {
        throw new Error(`holdfast: ${file} cannot be loaded: ${error.message}`, { cause: error });
    }
    const own = require('../package.json').version;
    if (module.exports.version !== own)
        throw new Error(`holdfast ${own} needs ${name} ${own}, but ${file} is ${module.exports.version}`);
    loaded = module.exports;
    /* When the process or the worker ends, what is running is canceled and databases are closed. */
    process.on('exit', () => loaded.teardown());
    return loaded;
}

/* The holdfast command of the platform. HOLDFAST_COMMAND names another one. */
function command() {
    if (process.env.HOLDFAST_COMMAND)
        return process.env.HOLDFAST_COMMAND;
    const file = path.join(folder(), 'holdfast');
    if (!fs.existsSync(file))
        throw new Error(`holdfast: ${file} is missing: install ${name} again`);
    return file;
}

/* Become the program: this process ends, and what it had open is closed. Returns only by throwing. */
function become(file, args) {
    const module = { exports: {} };
    process.dlopen(module, path.join(folder(), 'exec.node'));
    try {
        module.exports.exec(file, [file, ...args]);
    } catch (error) {
        throw new Error(`holdfast: ${file} cannot be run: ${error.message}`, { cause: error });
    }
}

module.exports = { native, command, become };
