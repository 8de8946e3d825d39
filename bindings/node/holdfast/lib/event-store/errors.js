/*
 * lib/event-store/errors.js: what goes wrong, under the names that the library of flows has for it, and
 * the states that its outputs have.
 */
'use strict';

class EventStoreError extends Error {
    constructor(message, cause) {
        super(message, cause ? { cause } : undefined);
        this.name = new.target.name;
    }
}

/* Somebody else has appended to the stream. */
class StreamConcurrencyError extends EventStoreError {
    constructor(domain, identifier, expectedVersion, actualVersion, cause) {
        super(`The stream ${domain}/${identifier} is at version ${actualVersion}, not at ${expectedVersion}`, cause);
        this.domain = domain;
        this.identifier = identifier;
        this.expectedVersion = expectedVersion;
        this.actualVersion = actualVersion;
        this.streamKey = `${domain}::${identifier}`;
        this.expectedSequence = expectedVersion;
        this.actualSequence = actualVersion;
    }
}

class FlowNotFoundError extends EventStoreError {
    constructor(domain, type) {
        super(`There is no flow for ${domain}/${type}: give it to makeEventStore()`);
        this.domain = domain;
        this.type = type;
    }
}

/* Why: no_identifier, or apply_must_return_state. */
class AggregateError extends EventStoreError {
    constructor(flow, reason) {
        super(reason === 'no_identifier'
            ? `An event of ${flow.domain}/${flow.type} has no identifier, and so no aggregate`
            : `apply of ${flow.domain}/${flow.type} has to return the new state`);
        this.flow = flow;
        this.reason = reason;
    }
}

/*
 * What a validate() threw or returned is thrown as it is, and is one of these, too: `flow` and `eventId`
 * say of what.
 */
const refused = new WeakSet();
class ValidationError extends EventStoreError {
    static [Symbol.hasInstance](error) {
        return error !== null && typeof error === 'object' && refused.has(error);
    }
}
function refusal(thrown, flow, eventId) {
    const error = thrown instanceof Error ? thrown : new EventStoreError(String(thrown));
    refused.add(error);
    for (const [name, value] of [['flow', flow], ['eventId', eventId]])
        if (!(name in error) && Object.isExtensible(error))
            Object.defineProperty(error, name, { value, configurable: true });
    return error;
}

class RevertError extends EventStoreError {}
class ShutdownTimeoutError extends EventStoreError {
    constructor(timeout) {
        super(`EventStore shutdown timeout: not all was done after ${timeout} ms; side effects that are left are stored`);
        this.timeout = timeout;
    }
}
class InvalidIdentifierError extends EventStoreError {}
class InvalidStreamBatchError extends EventStoreError {}
class SnapshotError extends EventStoreError {}
class EventCursorNotFoundError extends EventStoreError {
    constructor(id) {
        super(`There is no event ${id} to go on behind`);
        this.id = id;
    }
}

const EventOutputState = Object.freeze({
    success: 'Event:success', invalid: 'Event:invalid', canceled: 'Event:canceled',
    reverted: 'Event:reverted', revertFailed: 'Event:revertFailed',
});
const SideEffectsState = Object.freeze({ done: 'SideEffects:done', retry: 'SideEffects:retry', fail: 'SideEffects:fail' });
const EventObserverState = Object.freeze({ success: 'Observer:success' });

module.exports = {
    EventStoreError, StreamConcurrencyError, ConcurrencyError: StreamConcurrencyError, FlowNotFoundError, AggregateError,
    ValidationError, refusal, RevertError, ShutdownTimeoutError, InvalidIdentifierError, InvalidStreamBatchError, SnapshotError,
    EventCursorNotFoundError, EventOutputState, SideEffectsState, EventObserverState,
};
