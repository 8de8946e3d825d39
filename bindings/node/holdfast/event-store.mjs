import all from './lib/event-store.js';

export const {
    makeEventStore, sideEffectFinishedPromise, EventStoreRepo, makeEventStoreCore, exportEventsToArray, importEventsFromArray, createSnapshot,
    parseSnapshot, EventStoreError, StreamConcurrencyError, ConcurrencyError, FlowNotFoundError, AggregateError, ValidationError, RevertError,
    ShutdownTimeoutError, InvalidIdentifierError, InvalidStreamBatchError, SnapshotError, EventCursorNotFoundError, EventOutputState,
    SideEffectsState, EventObserverState,
} = all;
