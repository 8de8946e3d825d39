/*
 * lib/event-store/ids.js: ids of events: ULIDs, each greater than the one before in this process.
 */
'use strict';
const { createHash, randomBytes } = require('crypto');

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const TIME_LEN = 10, RANDOM_LEN = 16;

const digits = (bytes) => Array.from(bytes, (byte) => byte & 31);
const text = (numbers) => numbers.map((n) => DIGITS[n]).join('');

function timePart(ms) {
    let part = '';
    for (let i = 0; i < TIME_LEN; i++, ms = Math.floor(ms / 32))
        part = DIGITS[ms % 32] + part;
    return part;
}

let lastMs = 0;
let last = [];

/* The next one of this millisecond is one more than the one before. */
function ulid() {
    const now = Date.now();
    if (now > lastMs) {
        lastMs = now;
        last = digits(randomBytes(RANDOM_LEN));
    } else {
        let i = RANDOM_LEN - 1;
        while (i >= 0 && last[i] === 31)
            last[i--] = 0;
        if (i >= 0)
            last[i]++;
        else
            lastMs++; /* all of them are used: that of the next millisecond */
    }
    return timePart(lastMs) + text(last);
}

/* An id that follows from another: whoever makes it again makes the same. */
function derived(id, word, number) {
    const bytes = createHash('sha256').update(`${id} ${word} ${number}`).digest();
    const time = /^[0-9A-HJKMNP-TV-Z]{26}$/.test(id) ? id.slice(0, TIME_LEN) : timePart(0);
    return time + text(digits(bytes.subarray(0, RANDOM_LEN)));
}

module.exports = { ulid, derived };
