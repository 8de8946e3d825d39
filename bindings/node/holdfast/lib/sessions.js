/*
 * lib/sessions.js: what lasts longer than a call: locks that are held, and whatever gets deliveries.
 *
 * One call of session.next waits for the deliveries and notices of all sessions of a database, on a
 * thread of the addon and in the background: it keeps no process alive. A session does, until it ends, by
 * a timer that never comes to its end; one that says `background` does not.
 */
'use strict';

const WAIT_MS = 60000; /* then it is asked again */
const AT_ONCE = 256; /* deliveries in one answer */
const FOREVER = 0x7fffffff;
const ENDED = ['HF_STOPPED', 'HF_CANCELED'];
const PAUSE_MS = 20; /* when it cannot be asked; longer each time */
const PAUSE_MAX_MS = 5000;

/* The sessions that are open keep the process alive, not this. */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref());

class Sessions {
    #connection;
    #open = new Map(); /* number -> { onDelivery, onNotice } */
    #early = new Map(); /* number -> what came before we knew the number */
    #looping = false;
    #closed = false;
    constructor(connection) {
        this.#connection = connection;
    }

    /* From now on that session is heard. */
    begin(number, session) {
        if (this.#closed) {
            session.onClosed?.();
            return;
        }
        this.#open.set(number, session);
        session.alive = setInterval(() => {}, FOREVER);
        if (session.background)
            session.alive.unref();
        const early = this.#early.get(number);
        this.#early.delete(number);
        early?.forEach((each) => this.#hand(session, each));
        if (!this.#looping)
            this.#loop();
    }

    end(number) {
        clearInterval(this.#open.get(number)?.alive);
        this.#open.delete(number);
        this.#early.delete(number);
    }

    /* The database is closed, and so are all sessions. */
    closed() {
        this.#closed = true;
        this.#early.clear();
        for (const [number, session] of [...this.#open]) {
            this.end(number);
            session.onClosed?.();
        }
    }

    /* What is wrong with one does not keep the others from theirs. */
    #hand(session, { delivery, notice }) {
        try {
            if (delivery)
                session.onDelivery?.(delivery);
            else
                session.onNotice?.(notice);
        } catch (error) {
            queueMicrotask(() => { throw error; });
        }
    }

    #take(number, each) {
        const session = this.#open.get(number);
        if (session)
            return this.#hand(session, each);
        if (!this.#early.has(number))
            this.#early.set(number, []);
        this.#early.get(number).push(each);
    }

    async #loop() {
        let failures = 0;
        this.#looping = true;
        while (this.#open.size > 0) {
            try {
                const { deliveries = [], notices = [] } =
                    await this.#connection.background('session.next', { limit: AT_ONCE, wait_ms: WAIT_MS });
                failures = 0;
                for (const notice of notices)
                    this.#take(notice.session, { notice });
                for (const delivery of deliveries)
                    this.#take(delivery.session, { delivery });
            } catch (error) {
                if (ENDED.includes(error.code))
                    break;
                for (const session of [...this.#open.values()])
                    this.#hand(session, { notice: { type: 'error', error } });
                await pause(Math.min(PAUSE_MS * 2 ** failures++, PAUSE_MAX_MS));
            }
        }
        this.#looping = false;
    }
}

module.exports = { Sessions };
