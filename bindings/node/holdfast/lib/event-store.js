/*
 * lib/event-store.js: the interface of the schemeless event store and of its adapter for DynamoDB, on the
 * event store of holdfast.
 *
 * Code that was written for them changes its imports. Events are in a table of holdfast's layout, which is
 * made when it is missing; `holdfast events` looks at it. Side effects are in an outbox beside it.
 */
'use strict';
const { EventStoreRepo } = require('./event-store/repo');
const { makeEventStore, sideEffectFinishedPromise } = require('./event-store/store');
const { makeEventStoreCore } = require('./event-store/core');
const transfer = require('./event-store/transfer');
const { refusal, ...errors } = require('./event-store/errors');

module.exports = { makeEventStore, sideEffectFinishedPromise, EventStoreRepo, makeEventStoreCore, ...transfer, ...errors };
