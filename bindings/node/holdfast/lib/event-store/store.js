/*
 * lib/event-store/store.js: the runtime: makeEventStore(repo, options)(flows, observers).
 *
 * An event that is submitted goes through one lane: its tree is made and stored (tree.js). Then observers are
 * called, in a lane of their own, and side effects are run (effects.js). What is stored stays stored, whatever
 * an observer throws.
 *
 *  (1) A function of a flow that waited for submit() would wait for itself, so that is refused there.
 *      An observer may submit; there submit() does not wait for observers.
 */
'use strict';
const { AsyncLocalStorage } = require('async_hooks');
const { tell } = require('../errors');
const { EventStoreError, EventCursorNotFoundError, ShutdownTimeoutError, EventOutputState, EventObserverState } = require('./errors');
const { EventStoreRepo, keyOf } = require('./repo');
const { Flows, submitTree, loadAggregate, isAggregate } = require('./tree');
const { Transaction } = require('../transaction');
const { Effects } = require('./effects');
const { Revert } = require('./revert');
const { Output } = require('./output');
const { Lanes } = require('./queue');

const SHUTDOWN_MS = 5000;
const PAGE = 200;

const where = new AsyncLocalStorage(); /* 'flow', 'observer' or 'effect' */
const complain = (error) => process.emitWarning(error instanceof Error ? error : String(error), 'HoldfastWarning');

const observes = ({ filters }, { domain, type }) =>
    !filters?.length || filters.some((filter) => filter.domain === domain && filter.type === type);

class EventStore {
    #repo;
    #flows;
    #observers;
    #options;
    #output = new Output();
    #main;
    #observing;
    #effects;
    #context;
    #revert;
    #stopped;
    mainQueue = null; /* as since its version 5 */
    sideEffectQueue = null;
    constructor(repo, flows, observers, options) {
        this.#repo = repo;
        this.#flows = flows;
        this.#observers = [...observers].sort((a, b) => (a.priority ?? 0) - (b.priority ?? 0));
        this.#options = options;
        this.#main = new Lanes(options.mainQueueConcurrent ?? 1);
        this.#observing = new Lanes(options.observerQueueConcurrent ?? 1);
        const { observable } = this.#output;
        this.output$ = observable;
        for (const name of ['receive', 'submit', 'replay', 'shutdown', 'on'])
            this[name] = this[name].bind(this); /* may be taken apart */
    }

    get eventStoreRepo() {
        return this.#repo;
    }

    get capabilities() {
        return { aggregate: true };
    }

    #report(error) {
        tell(this.#options.onError ?? complain, error);
    }

    async open() {
        await this.#repo.init();
        const { connection } = await this.#repo.opened();
        const emit = (state, event, error) => this.#output.emit(state, event, error);
        this.#context = {
            repo: this.#repo, flows: this.#flows, connection, emit, outbox: await this.#repo.effects(),
            submit: (input, from) => this.#enqueue(input, from),
            inside: (phase, work) => where.run(phase, work),
            onError: (error) => this.#report(error),
            onFailure: (tree, error) => {
                if (tree.refused)
                    emit(EventOutputState.invalid, tree.refused, error);
                for (const { event } of tree.nodes)
                    emit(EventOutputState.canceled, event);
            },
        };
        this.#revert = new Revert(this.#context);
        if (this.#flows.list.some((flow) => flow.sideEffect) && this.#options.sideEffects !== false) {
            this.#context.effects = this.#effects = new Effects(this.#context, this.#options.sideEffectQueueConcurrent ?? 1, this.#options.sideEffects);
            await this.#effects.start();
        }
        return this;
    }

    /* ---- taking events ---------------------------------------------------------------------- */

    /* All events of the tree, the root first, when they are stored and observers were called. */
    async submit(flow, input) {
        if (this.#stopped)
            throw new EventStoreError('The event store is shut down');
        const phase = where.getStore();
        if (phase === 'flow') /* (1) */
            throw new EventStoreError(`submit() in a function of a flow would wait for itself: ` +
                `return ${flow?.domain}/${flow?.type} from createConsequentEvents() or sideEffect()`);
        const { domain, type } = this.#flows.of(flow ?? {});
        return this.#enqueue({ ...input, domain, type });
    }

    receive(flow) {
        return (input) => this.submit(flow, input);
    }

    async #enqueue(input, from = {}) {
        const key = this.#flows.shardKey({ ...input, identifier: input.identifier ?? from.parent?.identifier });
        const nodes = await this.#main.run(key, () => where.run('flow', () => submitTree(this.#context, input, from)));
        if (!nodes)
            return []; /* it was there */
        const events = nodes.map(({ event }) => event);
        for (const event of events)
            this.#context.emit(EventOutputState.success, event);
        if (this.#observers.length) {
            const observed = this.#observing.run(key, () => where.run('observer', async () => {
                for (const { event, state } of nodes)
                    await this.#observe(event, state);
            }));
            if (where.getStore() !== 'observer')
                await observed;
        }
        return events;
    }

    async #observe(event, state) {
        for (const observer of this.#observers) {
            if (!observes(observer, event))
                continue;
            const work = (async () => {
                try {
                    await (observer.aggregate ? observer.apply?.(event, state) : observer.apply?.(event));
                    this.#context.emit(EventObserverState.success, event);
                } catch (error) {
                    tell(observer.onError ?? ((each) => this.#report(each)), error, event);
                }
            })();
            if (!observer.fireAndForget)
                await work;
        }
    }

    /* on("processed", handler): { state, event, error }. Gives a function that ends it. */
    on(what, handler) {
        if (what !== 'processed')
            throw new EventStoreError(`There is on("processed", handler), not on("${what}", ...)`);
        return this.#output.on(handler);
    }

    /* ---- looking back ----------------------------------------------------------------------- */

    /*
     * All stored events, or those behind one, through apply() and the observers, in their order. Nothing is
     * validated, and no side effect is run. Options: pageSize, onError(error, event), without which the
     * first failure ends it.
     */
    async replay(startFromId, { pageSize = PAGE, onError } = {}) {
        const { flows, repo, connection } = this.#context;
        const states = new Map();
        for await (const page of await repo.getAllEvents(pageSize, startFromId))
            for (const stored of page)
                try {
                    const event = await flows.upcast(stored);
                    const flow = flows.of(event);
                    const tx = new Transaction(connection);
                    let state;
                    if (isAggregate(flow)) {
                        const key = keyOf(event);
                        if (!states.has(key))
                            states.set(key, startFromId === undefined ? undefined : (await loadAggregate(repo, flows, event.domain,
                                event.identifier, flow.aggregate, event.sequence)).state);
                        const before = states.get(key) ?? (typeof flow.aggregate.initialState === 'function'
                            ? flow.aggregate.initialState() : structuredClone(flow.aggregate.initialState));
                        state = flow.apply ? await flow.apply(event, before, tx) : flow.aggregate.reducer(before, event);
                        states.set(key, state);
                    } else {
                        await flow.apply?.(event, tx);
                    }
                    await tx.commit({});
                    await where.run('observer', () => this.#observe(event, state));
                } catch (error) {
                    if (!onError || error instanceof EventCursorNotFoundError)
                        throw Object.assign(error, { event: stored });
                    tell(onError, error, stored);
                }
    }

    /* { state, sequence }: of the events of a stream, and a snapshot if there is one. */
    getAggregate(domain, identifier, reducer, initialState) {
        return loadAggregate(this.#repo, this.#flows, domain, identifier, { reducer, initialState });
    }

    canRevert(id) {
        return this.#revert.canRevert(id);
    }
    previewRevert(id) {
        return this.#revert.previewRevert(id);
    }
    revert(id) {
        return this.#revert.revert(id);
    }

    /* ---- the end ---------------------------------------------------------------------------- */

    /* When nothing is under way any more, and the side effects of this process's events were run. */
    async finished() {
        do {
            await this.#main.drain();
            await this.#observing.drain();
            await this.#effects?.finished();
        } while (this.#main.size || this.#observing.size);
    }

    /* Take no more, wait for what is under way, at most so long, and close the repository. */
    shutdown(timeout = SHUTDOWN_MS) {
        this.#stopped ??= (async () => {
            let timer;
            const late = new Promise((resolve) => (timer = setTimeout(() => resolve(true), timeout)));
            const inTime = this.finished().then(() => false, (error) => {
                this.#report(error);
                return false;
            });
            const timedOut = await Promise.race([inTime, late]);
            clearTimeout(timer);
            await this.#effects?.stop(timedOut ? 0 : timeout);
            this.#output.end();
            await this.#repo.close();
            if (timedOut)
                throw new ShutdownTimeoutError(timeout);
        })();
        return this.#stopped;
    }
}

/*
 * Options: mainQueueConcurrent, sideEffectQueueConcurrent, observerQueueConcurrent (1 each), onError(error) of
 * observers and of what runs in the background, and sideEffects: options of a relay ({ pollMs, backoffMs, leaseMs,
 * ... }), or false for a process that runs none.
 */
const makeEventStore = (repo, options = {}) => async (flows, observers = []) => {
    if (!(repo instanceof EventStoreRepo))
        throw new EventStoreError('makeEventStore() needs an EventStoreRepo of this package');
    return new EventStore(repo, new Flows(flows), observers, options).open();
};

/* When the side effects of what was submitted were run, or have failed for good. */
const sideEffectFinishedPromise = (eventStore) => eventStore.finished();

module.exports = { makeEventStore, sideEffectFinishedPromise, EventStore };
