/*
 * lib/event-store/revert.js: taking a tree back: for each of its events, leaves before their parents and
 * the newest child first, its flow says what takes it back, and all of that is stored by one append.
 *
 * Ids of such events follow from that of the event that is taken back, and in the tree they are children
 * of it that are passed over: a second call finds them, and stores nothing.
 */
'use strict';
const { RevertError, EventOutputState } = require('./errors');
const { byStream } = require('./repo');
const { derived } = require('./ids');

const DEPTH_MAX = 100;

const takesBack = (child, event) => child.meta?.compensatesEventId === event.id;

/* { event, children, taken }: what took the event back before is in `taken`. */
async function readTree(repo, flows, event, depth = 0) {
    if (depth > DEPTH_MAX)
        throw new RevertError(`The tree of events is deeper than ${DEPTH_MAX}`);
    const below = await repo.findByCausationId(event.id);
    const node = { event: await flows.upcast(event), children: [], taken: below.filter((child) => takesBack(child, event)) };
    for (const child of below)
        if (!takesBack(child, event))
            node.children.push(await readTree(repo, flows, child, depth + 1));
    return node;
}

const flatten = (node) => [node, ...node.children.flatMap(flatten)];

class Revert {
    #context;
    constructor(context) {
        this.#context = context;
    }

    async #look(id) {
        const { repo, flows } = this.#context;
        const event = await repo.getEventById(id);
        if (!event)
            return { reason: `There is no event ${id}` };
        if (event.causationId)
            return { reason: `Event ${id} is not a root: event ${event.causationId} caused it. Only whole trees are reverted` };
        const tree = await readTree(repo, flows, event);
        const missing = flatten(tree).filter(({ event: each, taken }) => !taken.length && !flows.find(each)?.compensate)
            .map(({ event: { id: its, domain, type } }) => ({ id: its, domain, type }));
        return { tree, missing, reason: missing.length
            ? `These have no compensate: ${missing.map(({ domain, type }) => `${domain}/${type}`).join(', ')}` : undefined };
    }

    async canRevert(id) {
        const { reason, missing } = await this.#look(id);
        if (!reason)
            return { canRevert: true };
        return missing?.length ? { canRevert: false, reason, missingCompensateEvents: missing } : { canRevert: false, reason };
    }

    async previewRevert(id) {
        const { tree, reason } = await this.#look(id);
        if (!tree)
            throw new RevertError(reason);
        const [root, ...descendants] = flatten(tree).map(({ event }) => event);
        return { rootEvent: root, descendantEvents: descendants, totalEventCount: 1 + descendants.length };
    }

    /* The result of a tree; what is new goes to `made`. */
    async #take({ event, children, taken }, made) {
        const { flows } = this.#context;
        const childResults = [];
        for (const child of [...children].reverse())
            childResults.push(await this.#take(child, made));
        if (taken.length)
            return { revertedEventId: event.id, compensatingEvents: taken, childResults };
        const given = [await flows.of(event).compensate(event) ?? []].flat();
        if (given.length === 0)
            throw new RevertError(`compensate of ${event.domain}/${event.type} has returned no event`);
        const events = given.map((input, i) => ({
            id: derived(event.id, 'revert', i + 1),
            domain: input.domain ?? event.domain, type: input.type,
            meta: { ...input.meta, schemaVersion: flows.find(input)?.schemaVersion ?? 1, isCompensating: true, compensatesEventId: event.id },
            payload: input.payload,
            ...(event.identifier === undefined ? {} : { identifier: event.identifier }),
            correlationId: event.correlationId, causationId: event.id,
            created: new Date(),
        }));
        made.push(...events);
        return { revertedEventId: event.id, compensatingEvents: events, childResults };
    }

    async revert(id) {
        const { repo, emit } = this.#context;
        const { tree, reason } = await this.#look(id);
        if (reason)
            throw new RevertError(reason);
        const made = [];
        try {
            const result = await this.#take(tree, made);
            if (made.length === 0)
                return result;
            const parts = [...byStream(made).values()].map((list) => ({ domain: list[0].domain, identifier: list[0].identifier, events: list }));
            try {
                const versions = await repo.appendAll(parts);
                parts.forEach((part, i) => part.events.forEach((event, n) => (event.sequence = versions[i][n])));
            } catch (error) {
                /* Another has done the same, or the answer was lost. */
                if (!(error.code === 'HF_DUPLICATE' || error.mayHaveHappened) || !await repo.getEventById(made.at(-1).id))
                    throw error;
                return await this.revert(id);
            }
            for (const { event, taken } of flatten(tree))
                if (!taken.length)
                    emit(EventOutputState.reverted, event);
            return result;
        } catch (error) {
            emit(EventOutputState.revertFailed, tree.event, error);
            throw error;
        }
    }
}

module.exports = { Revert };
