// The interface of the library outbox-event-bus, on the outbox of holdfast.
import type { Database } from './index.js';

export interface BusEvent<Type extends string = string, Payload = any> {
    id?: string;
    type: Type;
    payload: Payload;
    /** In the future: delivered then. */
    occurredAt?: Date;
    metadata?: Record<string, any>;
}
export interface FailedBusEvent extends BusEvent {
    id: string;
    error?: string;
    retryCount: number;
    lastAttemptAt?: Date;
}
export type Handled = BusEvent & { id: string; occurredAt: Date };
export type Handler = (event: Handled) => unknown;
export interface MiddlewareContext<Tx = any> {
    phase: 'emit' | 'handler';
    event: Handled;
    transaction?: Tx;
}
export type Middleware<Tx = any> = (context: MiddlewareContext<Tx>, next: (options?: { dropEvent?: boolean }) => Promise<void>) => unknown;

export interface IOutbox<Tx = any> {
    publish(events: Handled[], transaction?: Tx): Promise<void>;
    start(handler: (event: Handled) => Promise<void>, onError: (error: OutboxError) => void): Promise<void> | void;
    stop(): Promise<void>;
    getFailedEvents?(): Promise<FailedBusEvent[]>;
    retryEvents?(ids: string[]): Promise<void>;
}
export interface OutboxConfig {
    batchSize?: number;
    pollIntervalMs?: number;
    processingTimeoutMs?: number;
    maxRetries?: number;
    baseBackoffMs?: number;
    maxErrorBackoffMs?: number;
}
export interface DynamoDBAwsSdkOutboxConfig extends OutboxConfig {
    /** A client of the AWS SDK: in this process by db.clientConfig(), or of a server. */
    client?: object;
    /** Instead of a client. */
    db?: Database;
    tableName: string;
    statusIndexName?: string;
    getCollector?: () => any | undefined;
}
export class DynamoDBAwsSdkOutbox implements IOutbox<any[]> {
    constructor(config: DynamoDBAwsSdkOutboxConfig);
    publish(events: Handled[], transaction?: any[]): Promise<void>;
    start(handler: (event: Handled) => Promise<void>, onError: (error: OutboxError) => void): Promise<void>;
    stop(): Promise<void>;
    getFailedEvents(): Promise<FailedBusEvent[]>;
    retryEvents(ids: string[]): Promise<void>;
}
export { DynamoDBAwsSdkOutbox as HoldfastOutbox };

export class OutboxEventBus<Tx = any> {
    constructor(outbox: IOutbox<Tx>, onError?: ((error: OutboxError) => void) | { onError?: (error: OutboxError) => void; middlewareConcurrency?: number });
    emit(event: BusEvent, transaction?: Tx): Promise<void>;
    emitMany(events: BusEvent[], transaction?: Tx): Promise<void>;
    /** Also "order.*" and "*". */
    on(type: string, handler: Handler): this;
    addListener(type: string, handler: Handler): this;
    once(type: string, handler: Handler): this;
    off(type: string, handler: Handler): this;
    removeListener(type: string, handler: Handler): this;
    removeAllListeners(type?: string): this;
    subscribe(types: string[], handler: Handler): this;
    waitFor(type: string, timeoutMs?: number): Promise<Handled>;
    getSubscriptionCount(): number;
    listenerCount(type: string): number;
    getListener(type: string): Handler | undefined;
    eventNames(): string[];
    addMiddleware(...middlewares: Middleware<Tx>[]): this;
    addEmitMiddleware(...middlewares: Middleware<Tx>[]): this;
    addHandlerMiddleware(...middlewares: Middleware<Tx>[]): this;
    start(): Promise<void>;
    stop(): Promise<void>;
    getFailedEvents(): Promise<FailedBusEvent[]>;
    retryEvents(ids: string[]): Promise<void>;
}

export class OutboxError extends Error {
    context: Record<string, any>;
}
export class ConfigurationError extends OutboxError {}
export class DuplicateListenerError extends ConfigurationError {}
export class UnsupportedOperationError extends ConfigurationError {}
export class ValidationError extends OutboxError {}
export class BatchSizeLimitError extends ValidationError {}
export class OperationalError extends OutboxError {}
export class TimeoutError extends OperationalError {}
export class MaxRetriesExceededError extends OperationalError {}
export class HandlerError extends OperationalError {}
