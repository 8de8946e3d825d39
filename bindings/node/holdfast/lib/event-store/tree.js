/*
 * lib/event-store/tree.js: an event with all events that follow from it: it is made by the functions of
 * the flows, in memory, and then stored by one append.
 *
 *  (1) Nothing is stored of a tree, or all of it, with what apply() wrote to its transaction and with the
 *      side effects that are to be run.
 *  (2) Whatever state of an aggregate a function has seen is a condition of the append: when another
 *      has appended meanwhile, the tree is taken back and made again.
 *  (3) What was applied is taken back by cancelApply(), the last one first, and only if it was not stored.
 */
'use strict';
const { Transaction } = require('../transaction');
const { ulid } = require('./ids');
const { byStream, keyOf } = require('./repo');
const { EventStoreError, StreamConcurrencyError, AggregateError, FlowNotFoundError, refusal } = require('./errors');

const DEPTH_MAX = 10;
const ATTEMPTS = 10;
const PAUSE_MS = 5, PAUSE_MAX_MS = 200;
const EFFECTS_APART = 20; /* with the events they are most often one transaction, if these are */
const EFFECTS_TOGETHER = 90; /* what one transaction of an outbox takes */

const isAggregate = (flow) => flow.aggregate !== undefined;
const initial = ({ initialState }) => (typeof initialState === 'function' ? initialState() : structuredClone(initialState));

class Flows {
    #flows = new Map();
    constructor(flows) {
        for (const flow of flows) {
            if (!flow?.domain || !flow.type)
                throw new EventStoreError('A flow has a domain and a type');
            const key = `${flow.domain}__${flow.type}`;
            if (this.#flows.has(key))
                throw new EventStoreError(`There are two flows for ${flow.domain}/${flow.type}`);
            this.#flows.set(key, flow);
        }
    }

    find({ domain, type }) {
        return this.#flows.get(`${domain}__${type}`);
    }

    of({ domain, type }) {
        const flow = this.find({ domain, type });
        if (!flow)
            throw new FlowNotFoundError(domain, type);
        return flow;
    }

    get list() {
        return [...this.#flows.values()];
    }

    /* An event as its flow has it today. */
    async upcast(event) {
        const flow = this.find(event);
        const current = flow?.schemaVersion ?? 1, from = event.meta?.schemaVersion ?? 1;
        if (!flow?.upcast || from >= current)
            return event;
        const newer = await flow.upcast(event, from) ?? event;
        return { ...newer, meta: { ...newer.meta, schemaVersion: current } };
    }

    shardKey(event) {
        return this.find(event)?.getShardKey?.(event) ?? event.identifier ?? '';
    }
}

/* Who an event is: nothing that preApply() may change. */
const IDENTITY = ['id', 'domain', 'type', 'identifier', 'correlationId', 'causationId'];

class Tree {
    nodes = []; /* { event, flow, state }: those that were applied, the root first */
    refused; /* the event whose function has failed */
    #flows;
    #repo;
    #tx;
    #states = new Map(); /* of aggregates: key -> { domain, identifier, state, base } */
    constructor(flows, repo, connection) {
        this.#flows = flows;
        this.#repo = repo;
        this.#tx = new Transaction(connection);
    }

    #create(input, parent, id) {
        const flow = this.#flows.of(input);
        const event = {
            id, domain: flow.domain, type: flow.type,
            meta: { ...input.meta, schemaVersion: flow.schemaVersion ?? 1 },
            payload: input.payload,
            identifier: input.identifier ?? parent?.identifier,
            correlationId: input.correlationId ?? parent?.correlationId ?? parent?.id ?? id,
            causationId: parent?.id ?? input.causationId,
            created: input.created === undefined ? new Date() : new Date(input.created),
        };
        if (isAggregate(flow)) {
            event.identifier = flow.aggregate.getIdentifier?.(event) ?? event.identifier;
            if (!event.identifier)
                throw new AggregateError(flow, 'no_identifier');
        }
        for (const name of ['identifier', 'causationId'])
            if (event[name] === undefined)
                delete event[name];
        return { event, flow };
    }

    /* The state of an aggregate before this event; read once for all events of the tree. */
    async #stateOf(flow, event) {
        const key = keyOf(event);
        if (!this.#states.has(key)) {
            const { state, sequence } = await loadAggregate(this.#repo, this.#flows, event.domain, event.identifier, flow.aggregate);
            this.#states.set(key, { domain: event.domain, identifier: event.identifier, state, base: sequence });
        }
        return this.#states.get(key);
    }

    async #apply(event, flow) {
        const held = isAggregate(flow) ? await this.#stateOf(flow, event) : undefined;
        try {
            const answer = await (held ? flow.validate?.(event, held.state) : flow.validate?.(event));
            if (answer instanceof Error)
                throw answer;
        } catch (error) {
            throw refusal(error, flow, event.id);
        }
        const changed = await flow.preApply?.(event);
        if (changed) {
            const other = IDENTITY.find((name) => changed[name] !== undefined && changed[name] !== event[name]);
            if (other)
                throw new EventStoreError(`preApply of ${flow.domain}/${flow.type} has changed the ${other} of the event`);
            event = { ...event, ...changed, created: new Date(changed.created ?? event.created) };
        }
        const node = { event, flow };
        if (held) {
            const next = flow.apply ? await flow.apply(event, held.state, this.#tx)
                : flow.aggregate.reducer(held.state, event);
            if (next === undefined)
                throw new AggregateError(flow, 'apply_must_return_state');
            node.state = held.state = next;
        } else {
            await flow.apply?.(event, this.#tx);
        }
        this.nodes.push(node);
        return node;
    }

    /* Depth first, children in their order. */
    async grow(input, parent, id, depth = 0) {
        if (depth > DEPTH_MAX)
            throw new EventStoreError(`The tree of events is deeper than ${DEPTH_MAX}: ` +
                `${input.domain}/${input.type} follows from itself?`);
        const { event, flow } = this.#create(input, parent, id);
        let node;
        try {
            node = await this.#apply(event, flow);
        } catch (error) {
            this.refused ??= event;
            throw error;
        }
        for (const child of await flow.createConsequentEvents?.(node.event) ?? [])
            await this.grow(child, node.event, ulid(), depth + 1);
    }

    /* (1) and (2) */
    async store(outbox, key) {
        const events = this.nodes.map(({ event }) => event);
        const parts = [...byStream(events).values()].map((list) => ({ domain: list[0].domain, identifier: list[0].identifier, events: list }));
        for (const { domain, identifier, base } of this.#states.values()) {
            let part = parts.find((each) => keyOf(each) === keyOf({ domain, identifier }));
            if (!part)
                parts.push(part = { domain, identifier, events: [] });
            part.expected = base;
        }
        const effects = messagesOf(this.effects, key || undefined);
        if (effects.length)
            outbox.emit(this.#tx, effects).catch(() => {}); /* take() reports it */
        const actions = await this.#tx.take();
        let versions;
        try {
            versions = await this.#repo.appendAll(parts, actions);
        } catch (error) {
            if (error.mayHaveHappened && await this.#repo.getEventById(events[0].id))
                return; /* its answer was lost */
            if (error.code === 'HF_LIMIT' && actions.length)
                throw new EventStoreError(`A tree of ${events.length} events with ${actions.length} side effects and other writes ` +
                    `does not fit into one transaction: ${error.message}`, error);
            throw await this.#repo.conflict(error, parts);
        }
        parts.forEach((part, i) => part.events.forEach((event, n) => (event.sequence = versions[i][n])));
        await this.#tx.written();
    }

    /* Events whose side effects are to be run. */
    get effects() {
        return this.nodes.filter(({ flow }) => flow.sideEffect).map(({ event }) => event);
    }

    /* (3) */
    async cancel() {
        for (const { event, flow } of [...this.nodes].reverse())
            try {
                await flow.cancelApply?.(event);
            } catch {} /* at best effort: the others are to be taken back, too */
    }

    get sawStates() {
        return this.#states.size > 0;
    }
}

/* A state by its events, and by a snapshot if there is one. */
async function loadAggregate(repo, flows, domain, identifier, { reducer, ...aggregate }, until = Infinity) {
    const snapshot = until === Infinity ? await repo.getSnapshot?.(domain, identifier) : undefined;
    let state = snapshot?.state ?? initial(aggregate), sequence = snapshot?.sequence ?? 0;
    for (const event of await repo.getStreamEvents(domain, identifier, sequence)) {
        if (event.sequence >= until)
            break;
        state = await reducer(state, await flows.upcast(event));
        sequence = event.sequence;
    }
    return { state, sequence };
}

/*
 * Make a tree and store it; again while others are faster. Gives its nodes, or undefined when the root is
 * there already, by its id.
 */
async function submitTree({ flows, repo, connection, outbox, effects, onFailure }, input, { parent, id = ulid() } = {}) {
    const key = flows.shardKey({ ...input, identifier: input.identifier ?? parent?.identifier });
    for (let attempt = 1; ; attempt++) {
        const tree = new Tree(flows, repo, connection);
        try {
            await tree.grow(input, parent, id);
            effects?.expect(tree.effects); /* before they can be run */
            await tree.store(outbox, key);
            effects?.stored(tree.effects);
            return tree.nodes;
        } catch (error) {
            effects?.forget(tree.effects);
            await tree.cancel();
            if (error.code === 'HF_DUPLICATE' && parent && await repo.getEventById(id))
                return undefined;
            const conflict = tree.sawStates && (error instanceof StreamConcurrencyError || error.code === 'HF_CONDITION');
            if (!conflict || attempt >= ATTEMPTS) {
                onFailure(tree, error);
                throw error;
            }
        }
        await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(PAUSE_MS * 2 ** attempt, PAUSE_MAX_MS)));
    }
}

const effectOf = (event, key) => ({
    type: `flow.${event.domain}.${event.type}`, key, headers: { event: event.id },
    correlation: event.correlationId, causation: event.id, aggregate: event.identifier, aggregateType: event.domain,
});

/* What runs these side effects: a message for each; if they are many, one for each EFFECTS_TOGETHER of them, which is
 * replaced by these when it is delivered (effects.js). */
function messagesOf(events, key) {
    const each = events.map((event) => effectOf(event, key));
    if (each.length <= EFFECTS_APART)
        return each;
    return Array.from({ length: Math.ceil(each.length / EFFECTS_TOGETHER) }, (_, i) => ({
        type: 'flow.effects', key, headers: { effects: 'many' },
        payload: each.slice(i * EFFECTS_TOGETHER, (i + 1) * EFFECTS_TOGETHER),
    }));
}

module.exports = { Flows, submitTree, loadAggregate, isAggregate };
