export * from './outbox-event-bus.js';
