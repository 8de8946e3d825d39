/*
 * lib/event-store/core.js: the log alone, as its version 6 has it: makeEventStoreCore(repo).
 */
'use strict';
const { tell } = require('../errors');
const { EventStoreError } = require('./errors');
const { importEventsFromArray } = require('./transfer');

const PAGE = 200;

function makeEventStoreCore(repo) {
    const scan = async function* ({ pageSize = PAGE, startFromId } = {}) {
        yield* await repo.getAllEvents(pageSize, startFromId);
    };
    return {
        repo,
        init: () => repo.init(),
        append: (events) => repo.storeEvents(events),
        stream: (domain, identifier, fromSequence = 0) => repo.getStreamEvents(domain, identifier, fromSequence),
        scan,
        export: scan,
        import: (events, options = {}) => importEventsFromArray(repo, events, options),
        /* Every event to the observers whose filters it matches, by their priority; `reset` first. */
        async rebuildReadModels({ observers = [], reset, startFromId, pageSize = PAGE } = {}) {
            if (observers.some(({ apply }) => typeof apply !== 'function'))
                throw new EventStoreError('An observer has a function apply(event)');
            const sorted = [...observers].sort((a, b) => (a.priority ?? 0) - (b.priority ?? 0));
            await reset?.();
            for await (const page of scan({ pageSize, startFromId }))
                for (const event of page)
                    for (const { filters, apply, onError } of sorted) {
                        if (filters?.length && !filters.some(({ domain, type }) => domain === event.domain && type === event.type))
                            continue;
                        try {
                            await apply(event); /* also those that are not waited for otherwise */
                        } catch (error) {
                            if (!onError)
                                throw error;
                            tell(onError, error, event);
                        }
                    }
        },
        close: () => repo.close(),
    };
}

module.exports = { makeEventStoreCore };
