/*
 * lib/handler.js: the AWS SDK for JavaScript, version 3, in this process.
 *
 * A client of the SDK gives each request to a handler, which answers as a server would. This one calls
 * the database. Nothing is signed for anybody and nothing is checked: who has the database may use it.
 */
'use strict';
const { randomBytes } = require('crypto');
const { Readable } = require('stream');
const zlib = require('zlib');

const JSON_TYPE = 'application/x-amz-json-1.0';
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';

const table = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let i = 0; i < 8; i++)
        n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n;
});

function slowCrc32(bytes) {
    let crc = 0xffffffff;
    for (let i = 0; i < bytes.length; i++)
        crc = table[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
    return (crc ^ 0xffffffff) >>> 0;
}

const crc32 = zlib.crc32 ?? slowCrc32; /* Node 20.15 and later have one */

/* 52 letters and digits: 36 at random for this process, then a number. */
const idOfProcess = Array.from(randomBytes(36), (byte) => DIGITS[byte % DIGITS.length]).join('');
let requests = 0;
const requestId = () => idOfProcess + (++requests).toString(36).toUpperCase().padStart(16, '0');

/*
 * The body of an answer. The SDK takes bytes as they are; making a stream of them, and bytes of the stream, took as
 * long as the call. For who reads the body as the stream that it is over HTTP it is one, too.
 */
class Body extends Uint8Array {
    #stream() {
        return Readable.from([Buffer.from(this.buffer, this.byteOffset, this.byteLength)]);
    }
    [Symbol.asyncIterator]() {
        return this.#stream()[Symbol.asyncIterator]();
    }
    pipe(...args) {
        return this.#stream().pipe(...args);
    }
    static fromText(text) {
        const bytes = Buffer.from(text);
        return new Body(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
}

async function bodyOf(body) {
    if (body === undefined || body === null || typeof body === 'string')
        return body || '{}';
    if (body instanceof Uint8Array)
        return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
    const parts = [];
    for await (const part of body)
        parts.push(Buffer.from(part));
    return Buffer.concat(parts).toString();
}

function aborted(signal) {
    return Object.assign(new Error('Request aborted'), { name: 'AbortError', cause: signal?.reason });
}

/* An AbortSignal of the platform, from that or from the SDK's own, older kind. */
function signalOf(given) {
    if (!given || given instanceof AbortSignal)
        return given;
    const controller = new AbortController();
    if (given.aborted)
        controller.abort();
    given.onabort = () => controller.abort();
    return controller.signal;
}

const OURS = ['code', 'retryable', 'may_have_happened', 'operation', 'exception', 'table', 'retry_after_ms', 'item',
    'reasons', 'limit', 'cause'];

/* An error without the members that we add: the SDK takes `code` for the name of an exception. */
function onTheWire({ ...error }) {
    for (const name of OURS)
        delete error[name];
    error.__type ??= 'com.amazonaws.dynamodb.v20120810#InternalServerError'; /* it did not come to the operation */
    return error;
}

class RequestHandler {
    #connection;
    #config = {};
    metadata = { handlerProtocol: 'http/1.1' };
    constructor(connection) {
        this.#connection = connection;
        Object.defineProperty(this, 'connection', { value: connection });
    }

    async handle(request, { abortSignal, requestTimeout } = {}) {
        const signal = signalOf(abortSignal);
        if (signal?.aborted)
            throw aborted(signal);
        const target = request.headers['x-amz-target'] ?? request.headers['X-Amz-Target'] ?? '';
        const operation = target.slice(target.indexOf('.') + 1);
        const json = await bodyOf(request.body);
        let text, statusCode = 200;
        try {
            text = await this.#connection.text(operation, json, { signal, timeoutMs: requestTimeout });
        } catch (thrown) {
            if (signal?.aborted)
                throw aborted(signal);
            if (typeof thrown !== 'string')
                throw thrown;
            const error = onTheWire(JSON.parse(thrown));
            statusCode = /InternalServerError$/.test(error.__type) ? 500 : 400;
            text = JSON.stringify(error);
        }
        const body = Body.fromText(text);
        return {
            response: {
                statusCode,
                reason: undefined,
                headers: {
                    'content-type': JSON_TYPE,
                    'content-length': String(body.length),
                    'x-amz-crc32': String(crc32(body)),
                    'x-amzn-requestid': requestId(),
                },
                body,
            },
        };
    }

    updateHttpClientConfig(key, value) {
        this.#config[key] = value;
    }

    httpHandlerConfigs() {
        return { ...this.#config };
    }

    /* The database stays open: it belongs to who opened it. */
    destroy() {}
}

module.exports = { RequestHandler };
