/*
 * lib/stream.js: what the server sends by itself: figures, writes, health, requests.
 *
 * One connection for the page, opened by fetch() so that it can be signed, kept while somebody
 * listens and the tab is visible. Live requests are asked for only while a view wants them. When
 * the connection ends it is made again, after 0.25 to 5 seconds; the banner is told by `reach`.
 * What was written while there was none is not sent later: all may have been.
 */
import { emit, listeners, on } from './bus.js';
import { reach, refused, send, Problem } from './client.js';

const EVENTS = ['figures', 'writes', 'health', 'request', 'dropped'];
let current = null; /* {abort, requests} of the connection that is open or being opened */
let delay = 250, timer = 0, before = false;
export const stream = { available: false, connected: false };

/* Events in the text of a stream, as it arrives. */
export function parser(found) {
    let text = '', event = '', data = [];
    return (part) => {
        text += part;
        let at;
        while ((at = text.indexOf('\n')) >= 0) {
            const line = text.slice(0, at).replace(/\r$/, '');
            text = text.slice(at + 1);
            if (line === '') {
                if (data.length)
                    found(event || 'message', data.join('\n'));
                event = '';
                data = [];
            } else if (line.startsWith('event:')) {
                event = line.slice(6).trim();
            } else if (line.startsWith('data:')) {
                data.push(line.slice(5).replace(/^ /, ''));
            }
        }
    };
}

async function run(mine) {
    const answer = await send('/console/api/stream' + (mine.requests ? '?requests=1' : ''), { signal: mine.abort.signal });
    if (!answer.ok) {
        const body = await answer.json().catch(() => ({}));
        const problem = new Problem(body.error?.code || (body.__type || '').split('#').pop() || 'Failure', body.message, { status: answer.status });
        if (refused(problem, '/console/api/stream'))
            emit('key', problem);
        throw problem;
    }
    delay = 250;
    stream.connected = true;
    if (before)
        emit('writes', { all: true });
    before = true;
    const decoder = new TextDecoder(), reader = answer.body.getReader();
    const parse = parser((event, data) => {
        let value;
        try {
            value = JSON.parse(data);
        } catch {
            return;
        }
        emit(event, value);
    });
    for (; ;) {
        const { done, value } = await reader.read();
        if (done)
            return;
        parse(decoder.decode(value, { stream: true }));
    }
}

function wanted() {
    return stream.available && document.visibilityState !== 'hidden';
}

function update() {
    const requests = listeners('request') > 0;
    if (current && (!wanted() || current.requests !== requests)) {
        const old = current;
        current = null;
        old.abort.abort();
    }
    if (!current && wanted() && !timer)
        connect(requests);
}

function connect(requests) {
    const mine = { abort: new AbortController(), requests };
    current = mine;
    run(mine).catch((problem) => problem).then((problem) => {
        if (current !== mine)
            return; /* replaced, or not wanted any more */
        current = null;
        stream.connected = false;
        if (problem?.status === 404)
            return void (stream.available = false); /* a server without a stream */
        if (!problem?.status && problem?.code !== 'Unreachable') /* of that send() has told */
            reach(false);
        timer = setTimeout(() => {
            timer = 0;
            update();
        }, problem && refused(problem, '/console/api/stream') ? 5000 : delay);
        delay = Math.min(delay * 2, 5000);
    });
}

/* Try at once: the user asks, or there is a new key. */
export function reconnect() {
    clearTimeout(timer);
    timer = 0;
    delay = 250;
    current?.abort.abort();
    current = null;
    update();
}

export function startStream() {
    stream.available = true;
    on('listen', (event) => EVENTS.includes(event) && update());
    document.addEventListener('visibilitychange', update);
    update();
}
