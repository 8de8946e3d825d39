/*
 * lib/event-store/queue.js: tasks in lanes: one at a time in each lane, lanes at the same time. Equal keys
 * have the same lane.
 */
'use strict';

class Lanes {
    #tails;
    #running = 0;
    #idle = [];
    constructor(count) {
        this.#tails = Array.from({ length: Math.max(1, count) }, () => Promise.resolve());
    }

    /* The lane of a key, as the library has it: its hash of UTF-16 units; without a key the first one. */
    #lane(key) {
        if (!key)
            return 0;
        let hash = 5381;
        for (let i = 0; i < key.length; i++)
            hash = (Math.imul(hash, 33) + key.charCodeAt(i)) >>> 0;
        return hash % this.#tails.length;
    }

    run(key, task) {
        const lane = this.#lane(key);
        this.#running++;
        const result = this.#tails[lane].then(task);
        this.#tails[lane] = result.then(() => {}, () => {}).finally(() => {
            if (--this.#running === 0)
                this.#idle.splice(0).forEach((resolve) => resolve());
        });
        return result;
    }

    get size() {
        return this.#running;
    }

    /* When nothing runs and nothing waits. */
    drain() {
        return this.#running === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
    }
}

module.exports = { Lanes };
