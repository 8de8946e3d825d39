/*
 * lib/event-store/effects.js: side effects: events of an outbox beside the store, put there by the
 * transaction that stores the event. Whatever process runs the flows runs them, at least once: again when
 * a process is killed before it could note that it was done.
 *
 *  (1) What a side effect returns is submitted as new roots whose ids follow from the event's: they are
 *      stored once, however often it is run.
 *  (2) One that fails comes again, later and later, as often as its flow allows; then it is a dead letter of
 *      the outbox. So is one whose event or whose flow is not there.
 *  (3) Many of one tree are stored together, as there is no room for all of them in the transaction of the
 *      tree; such a message is replaced by one for each, all of them by one transaction. If it comes again, because the
 *      process was killed then, so do they, as any of them may.
 */
'use strict';
const { PermanentError } = require('../messages');
const { textOf, failureOf } = require('../errors');
const { SideEffectsState } = require('./errors');
const { derived } = require('./ids');

const ATTEMPTS = 1000000; /* ours are those of the flow */
const LOOK_MS = 500;

class Effects {
    #context;
    #concurrency;
    #options;
    #handling;
    #waiting = new Map(); /* of this process's events, until they are done: id -> whether it is stored already */
    #alive; /* keeps the process until they are */
    #running = new Set();
    #looking = false;
    #changed = () => {};
    #change;
    constructor(context, concurrency, options) {
        this.#context = context;
        this.#concurrency = concurrency;
        this.#options = options;
        this.#renew();
    }

    #renew() {
        this.#changed();
        this.#change = new Promise((resolve) => (this.#changed = resolve));
    }

    async start() {
        const { outbox, onError } = this.#context;
        this.#handling = await outbox.deliver(async (deliveries) => {
            const failures = [];
            for (const [index, delivery] of deliveries.entries())
                try {
                    await this.#run(delivery);
                } catch (error) {
                    failures.push({ index, ...failureOf(error) });
                }
            return failures;
        }, { workers: this.#concurrency, maxAttempts: ATTEMPTS, background: true, ...this.#options,
            onError: (error, notice) => {
                if (notice?.type !== 'given_up') /* we have said so */
                    onError(error);
            } });
    }

    /* Side effects will be stored: the process is kept until they were run here, or by another. */
    expect(events) {
        for (const { id } of events)
            this.#waiting.set(id, false);
        if (this.#waiting.size)
            this.#alive ??= setInterval(() => this.#look().catch(() => {}), LOOK_MS);
    }

    stored(events) {
        for (const { id } of events)
            if (this.#waiting.has(id))
                this.#waiting.set(id, true);
    }

    /* They were not stored. */
    forget(events) {
        for (const { id } of events)
            this.#ended(id);
    }

    /* Others may have run what is ours. */
    async #look() {
        if (this.#looking)
            return;
        this.#looking = true;
        try {
            const known = [...this.#waiting.keys()].filter((id) => this.#waiting.get(id));
            const waiting = this.#context.outbox.pending({ limit: 1, notDueToo: true, retryingToo: true });
            if ((await waiting.next()).done)
                known.filter((id) => !this.#running.has(id)).forEach((id) => this.#ended(id));
        } finally {
            this.#looking = false;
        }
    }

    #ended(id) {
        this.#waiting.delete(id);
        if (this.#waiting.size === 0) {
            clearInterval(this.#alive);
            this.#alive = undefined;
        }
        this.#renew();
    }

    async #run({ headers, payload, attempts = 0, crashes = 0 }) {
        if (headers?.effects) { /* (3) */
            await this.#context.outbox.emit(payload);
            return;
        }
        const { flows, repo, emit, submit, inside } = this.#context;
        const id = headers?.event;
        const stored = id && await repo.getEventById(id); /* what fails here is no attempt that counts */
        const event = stored && await flows.upcast(stored);
        const flow = event && flows.find(event);
        if (!flow?.sideEffect) {
            this.#ended(id);
            throw new PermanentError(event ? `there is no flow with a side effect for ${event.domain}/${event.type}`
                : `there is no event ${id}`);
        }
        const attempt = attempts - crashes + 1;
        this.#running.add(event.id);
        try {
            const made = await inside('effect', () => flow.sideEffect(event, { attempt })) ?? [];
            for (const [i, root] of made.entries())
                await submit(root, { parent: event, id: derived(event.id, 'effect', i + 1) }); /* (1) */
        } catch (error) {
            if (attempt > (flow.meta?.sideEffectFailedRetryAllowed ?? 0) || error?.permanent === true) { /* (2) */
                emit(SideEffectsState.fail, event, error);
                this.#ended(event.id);
                throw new PermanentError(textOf(error));
            }
            emit(SideEffectsState.retry, event, error);
            throw error;
        } finally {
            this.#running.delete(event.id);
        }
        emit(SideEffectsState.done, event);
        this.#ended(event.id);
    }

    /* When all side effects of this process's events were run or have failed, here or elsewhere. */
    async finished() {
        while (this.#waiting.size)
            await this.#change;
    }

    async stop(drainMs) {
        clearInterval(this.#alive);
        this.#alive = undefined;
        await this.#handling?.stop({ drainMs });
    }
}

module.exports = { Effects };
