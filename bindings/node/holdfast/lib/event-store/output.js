/*
 * lib/event-store/output.js: what became of events: on('processed', handler), and output$.
 *
 * output$ is an observable as far as it needs no library: subscribe(), and from(output$) of RxJS.
 * pipe() takes operators of RxJS where the program has that.
 */
'use strict';
const path = require('path');
const { createRequire } = require('module');
const { invalid, tell } = require('../errors');

function rxjs() {
    for (const from of [require.main?.filename, path.join(process.cwd(), 'x.js'), __filename])
        try {
            return createRequire(from)('rxjs');
        } catch {} /* not there, or there is no main module */
    throw invalid('output$.pipe() needs the package rxjs: install it, or use eventStore.on("processed", handler)');
}

class Output {
    #handlers = new Set();
    #ended = false;

    on(handler) {
        if (typeof handler !== 'function')
            throw invalid('on("processed", handler) needs a function');
        const each = { next: handler };
        this.#handlers.add(each);
        return () => {
            this.#handlers.delete(each);
        };
    }

    /* What a handler throws is an uncaught exception, and keeps nobody from anything. */
    emit(state, event, error) {
        const output = error === undefined ? { state, event } : { state, event, error };
        for (const { next } of [...this.#handlers])
            tell(next, output);
    }

    end() {
        this.#ended = true;
        for (const { complete } of [...this.#handlers])
            tell(complete);
        this.#handlers.clear();
    }

    get observable() {
        const subscribe = (observer) => {
            const each = typeof observer === 'function' ? { next: observer }
                : { next: observer?.next?.bind(observer), complete: observer?.complete?.bind(observer) };
            const subscription = { closed: this.#ended, unsubscribe: () => {
                subscription.closed = true;
                this.#handlers.delete(each);
            } };
            if (this.#ended)
                tell(each.complete);
            else
                this.#handlers.add(each);
            return subscription;
        };
        const observable = {
            subscribe,
            pipe: (...operators) => rxjs().from(observable).pipe(...operators),
            [Symbol.observable ?? '@@observable']: () => observable,
            '@@observable': () => observable,
        };
        return observable;
    }
}

module.exports = { Output };
