/*
 * lib/errors.js: the one class of errors, made of what the engine says.
 */
'use strict';
const { fromItem } = require('./values');

/*
 * code             what went wrong, such as "HF_CONDITION": the list is in docs/errors.md
 * retryable        the same call may succeed later
 * mayHaveHappened  the effect may be there although the call failed
 */
class HoldfastError extends Error {
    constructor(code, message, details = {}) {
        super(message, details.cause ? { cause: details.cause } : undefined);
        this.code = code;
        this.retryable = details.retryable ?? false;
        this.mayHaveHappened = details.mayHaveHappened ?? false;
        for (const name of ['exception', 'operation', 'table', 'retryAfterMs', 'limit', 'item', 'reasons'])
            if (details[name] !== undefined)
                this[name] = details[name];
    }
}
Object.defineProperty(HoldfastError.prototype, 'name', { value: 'HoldfastError', configurable: true, writable: true });

const invalid = (message) => new HoldfastError('HF_INVALID', message);

const itemOf = (item) => (item ? fromItem(item) : undefined);

/* What the addon rejected the promise of `method` with: the error as JSON. */
function errorFrom(thrown, method) {
    if (typeof thrown !== 'string')
        return thrown;
    const error = errorOf(JSON.parse(thrown));
    if (!error.message) /* DynamoDB has no words for it */
        error.message = `${method}: ${error.exception ?? error.code}`;
    return error;
}

function errorOf(error) {
    const reasons = error.reasons ?? error.CancellationReasons;
    return new HoldfastError(error.code ?? 'HF_INTERNAL', error.message ?? error.Message ?? '', {
        retryable: error.retryable,
        mayHaveHappened: error.may_have_happened,
        exception: error.exception ?? error.__type?.replace(/^.*#/, ''),
        operation: error.operation,
        table: error.table,
        retryAfterMs: error.retry_after_ms,
        limit: error.limit,
        item: itemOf(error.item ?? error.Item),
        reasons: reasons?.map((reason) => ({
            code: reason.code ?? reason.Code,
            message: reason.message ?? reason.Message,
            item: itemOf(reason.item ?? reason.Item),
        })),
        cause: error.cause ? errorOf(error.cause) : undefined,
    });
}

/* ---- what functions of the user throw ------------------------------------------------------- */

const TEXT_MAX = 1000; /* UTF-16 units */

/* Its text, which can be stored: anything can be thrown, and half a character is not UTF-8. */
function textOf(error) {
    let text;
    try {
        text = String(error?.message ?? error);
    } catch {
        text = 'something was thrown that has no text';
    }
    return Buffer.from(text.slice(0, TEXT_MAX)).toString();
}

/* As session.done takes it. */
function failureOf(error) {
    let permanent;
    try {
        permanent = error?.permanent === true ? true : undefined;
    } catch {} /* then it does not say so */
    return { message: textOf(error), permanent };
}

/* Call onError. What it throws is an uncaught exception, and never keeps us from what we do. */
function tell(onError, ...what) {
    try {
        onError?.(...what);
    } catch (error) {
        queueMicrotask(() => { throw error; });
    }
}

module.exports = { HoldfastError, invalid, errorFrom, textOf, failureOf, tell };
