/*
 * lib/event-store/transfer.js: all events as an array, as a text, and back.
 */
'use strict';
const { EventStoreRepo } = require('./repo');

const PAGE = 200;
const BATCH = 100;

async function exportEventsToArray(repo, { pageSize = PAGE, onProgress } = {}) {
    const events = [];
    for await (const page of await repo.getAllEvents(pageSize)) {
        events.push(...page);
        onProgress?.(events.length);
    }
    return events;
}

const createSnapshot = (events) => ({ exportedAt: new Date().toISOString(), count: events.length, events });

const dated = (event) => ({ ...event, created: new Date(event.created) });

function parseSnapshot(json) {
    const snapshot = JSON.parse(json);
    return { ...snapshot, events: snapshot.events.map(dated) };
}

/* Sequences are kept, or it fails; what is there already is not stored again. */
async function importEventsFromArray(repo, events, { batchSize = BATCH, replace = false, onProgress } = {}) {
    if (replace)
        await repo.resetStore();
    for (let i = 0; i < events.length; i += batchSize) {
        const batch = events.slice(i, i + batchSize).map(dated);
        await (repo instanceof EventStoreRepo ? repo.importEvents(batch) : repo.storeEvents(batch));
        onProgress?.(i + batch.length);
    }
}

module.exports = { exportEventsToArray, importEventsFromArray, createSnapshot, parseSnapshot };
