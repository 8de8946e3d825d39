/*
 * lib/bus.js: what happens, and who wants to know. `on` returns what ends it.
 *
 * away, back       the server does not answer; it answers again
 * key              the server wants a key, or another one
 * zone, theme      how times and colours are shown has changed
 * figures, writes, health, request     from the server's stream (lib/stream.js)
 */

const lists = new Map();
let health; /* is sent only when it changes, so who comes later gets the last one */

export function on(event, fn) {
    if (!lists.has(event))
        lists.set(event, new Set());
    lists.get(event).add(fn);
    emit('listen', event);
    if (event === 'health' && health)
        fn(health);
    return () => {
        lists.get(event).delete(fn);
        emit('listen', event);
    };
}

export function emit(event, value) {
    if (event === 'health' || event === 'away')
        health = value;
    for (const fn of [...(lists.get(event) || [])])
        fn(value);
}

export const listeners = (event) => lists.get(event)?.size || 0;
