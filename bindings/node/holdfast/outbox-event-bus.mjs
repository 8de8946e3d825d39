import all from './lib/outbox-event-bus.js';

export const {
    OutboxEventBus, DynamoDBAwsSdkOutbox, HoldfastOutbox, OutboxError, ConfigurationError, DuplicateListenerError, UnsupportedOperationError,
    ValidationError, BatchSizeLimitError, OperationalError, TimeoutError, MaxRetriesExceededError, HandlerError,
} = all;
