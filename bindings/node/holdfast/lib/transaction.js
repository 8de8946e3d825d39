/*
 * lib/transaction.js: writes that happen all or not at all.
 */
'use strict';
const { randomUUID } = require('crypto');
const requests = require('./requests');
const { invalid } = require('./errors');

class Transaction {
    #connection;
    #actions = [];
    #done = false;
    #parts = [];
    #after = [];
    constructor(connection) {
        this.#connection = connection;
    }

    #add(kind, { ReturnValues, ...action }) {
        if (ReturnValues !== undefined)
            throw invalid('a transaction returns no values');
        this.add({ [kind]: action });
    }

    /* An action as DynamoDB has it: { Put: { TableName, Item, ... } }. */
    add(action) {
        if (this.#done)
            throw invalid('the transaction is over: add to it before the function that got it ends');
        this.#actions.push(action);
    }

    /*
     * Actions that a pattern makes, which takes a moment: they are part of the transaction even if
     * nobody waits for them. `after` is called when the transaction has been written.
     */
    join(making, after) {
        if (this.#done)
            throw invalid('the transaction is over: add to it before the function that got it ends');
        const part = making.then((made) => {
            this.#actions.push(...made.actions);
            if (after)
                this.#after.push(after);
            return made;
        });
        this.#parts.push(part);
        part.catch(() => {}); /* commit() reports it */
        return part;
    }

    put(table, item, options) {
        this.#add('Put', requests.put(table, item, options));
    }

    update(table, key, change, options) {
        this.#add('Update', requests.update(table, key, change, options));
    }

    delete(table, key, options) {
        this.#add('Delete', requests.remove(table, key, options));
    }

    /* Write only if the condition holds for this item, too. */
    check(table, key, condition, options) {
        this.#add('ConditionCheck', requests.conditionCheck(table, key, condition, options));
    }

    get size() {
        return this.#actions.length;
    }

    /* All that was added, for a method that writes it with something of its own. Nothing can be added any more. */
    async take() {
        this.#done = true;
        await Promise.all(this.#parts);
        return this.#actions;
    }

    async commit({ token, ...options }) {
        await this.take();
        if (this.#actions.length === 0)
            return;
        await this.#connection.call('TransactWriteItems',
            { TransactItems: this.#actions, ClientRequestToken: token ?? randomUUID() }, options);
        await this.written();
    }

    async written() {
        for (const after of this.#after) {
            try {
                await after();
            } catch {} /* it has been written: it must not be repeated */
        }
    }
}

module.exports = { Transaction };
