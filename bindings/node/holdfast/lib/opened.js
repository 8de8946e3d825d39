/*
 * lib/opened.js: the table of an outbox, an event store or records, opened by the first call with the
 * options of whoever asks. A table stays open as it was opened, so that comes before reads, too.
 */
'use strict';
const { toArgs } = require('./names');

class Opened {
    #connection;
    #pattern;
    #table;
    #usual;
    #options;
    #opened;
    constructor(connection, pattern, usual, { table, ...options } = {}) {
        this.#connection = connection;
        this.#pattern = pattern;
        this.#table = table;
        this.#usual = usual; /* its name when none is given */
        const given = toArgs(options);
        this.#options = Object.keys(given).length ? given : undefined;
    }

    async #open() {
        this.#opened ??= this.#connection.call(`${this.#pattern}.open`, { table: this.#table, ...this.#options });
        const opening = this.#opened;
        try {
            await opening;
        } catch (error) {
            if (this.#opened === opening)
                this.#opened = undefined; /* the next call tries again */
            throw error;
        }
    }

    async #exists() {
        try {
            await this.#connection.call('DescribeTable', { TableName: this.#table ?? this.#usual });
            return true;
        } catch (error) {
            if (error.code === 'HF_NOT_FOUND')
                return false;
            throw error;
        }
    }

    async call(method, args = {}) {
        if (this.#options)
            await this.#open();
        return this.#connection.call(method, { table: this.#table, ...args });
    }

    /* One that only reads: `empty` where nobody has made the table yet, and none is made. */
    async read(method, args, empty) {
        if (this.#options) {
            if (!this.#opened && !await this.#exists())
                return empty;
            await this.#open();
        }
        return this.#connection.read(method, { table: this.#table, ...args }, empty);
    }

    /* One of its things, or undefined. */
    async get(method, args) {
        try {
            return await this.read(method, args, undefined);
        } catch (error) {
            if (error.code === 'HF_NOT_FOUND')
                return undefined;
            throw error;
        }
    }
}

module.exports = { Opened };
