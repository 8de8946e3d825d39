/*
 * server/conn/group_commit.c: answers that wait for a sync.
 *
 * What the requests of one iteration have written is applied and not yet durable, so their answers
 * may not leave. At the end of the iteration they are all SYNCING, and one sync, up to the highest
 * of their tickets, is for all of them.
 *
 *     READY --needs no sync--> is sent
 *       `--has a ticket--> SYNCING --sync is over--> is sent, or becomes an error and is sent
 *
 * The sync runs on the syncer's thread (syncer.h) while the loop goes on. A loop with one
 * connection has nothing to go on with, and syncs itself: to have another thread do it, and to be
 * woken by that, takes longer.
 *
 *  (1) No answer leaves before its ticket is durable. One whose sync failed is an error (500).
 *  (2) The time of a sync is not the client's: it does not count for its deadlines.
 */
#include "server/private.h"

#include "server/metrics.h"

static bool has_other_connections(const struct loop *loop)
{
    return atomic_load(&loop->conns_len) > 1;
}

static uint64_t highest_ticket(const struct loop *loop, uint64_t finished)
{
    uint64_t highest = 0;

    for (struct conn *conn = loop->lists[CONN_SYNCING].first; conn; conn = conn->list_next) {
        assert(conn->state == CONN_SYNCING && conn->pending_sync.ticket > 0);
        if (conn->pending_sync.ticket <= finished && conn->pending_sync.ticket > highest)
            highest = conn->pending_sync.ticket;
    }
    return highest;
}

/* The sync that a connection waited for is over, after so much time. */
static void deliver_synced(struct conn *conn, uint64_t waited_ns)
{
    conn->begun_ms += waited_ns / 1000000; /* (2) */
    conn->sync_began_ns = 0;
    hf__conn_deliver(conn);
}

/*
 * All syncs for tickets up to `finished` are over, and those up to `durable` went well. Ask the
 * database for what lies between, which is its error, or a sync that goes well now; then send all
 * answers that waited for that. False: there were none.
 */
static bool complete_synced(struct loop *loop, uint64_t finished, uint64_t durable)
{
    uint64_t highest = highest_ticket(loop, finished), now, oldest;
    struct hf_scope *s = loop->context.scope;
    struct conn *conn, *next;
    uint32_t answers = 0;
    bool failed = false;

    if (highest == 0)
        return false;
    if (highest > durable) {
        hf_scope_reset(s);
        failed = hf__db_sync(s, loop->server->db, highest) != HF_OK;
        uv_update_time(&loop->uv); /* (2): deadlines count from after it */
    }
    now = oldest = uv_hrtime();
    for (conn = loop->lists[CONN_SYNCING].first; conn; conn = next) {
        next = conn->list_next;
        if (conn->pending_sync.ticket > finished)
            continue;
        assert(conn->sync_began_ns <= now);
        if (failed && conn->pending_sync.ticket > durable)
            hf__call_lost(conn, hf_scope_error(s));
        answers += conn->answers;
        oldest = conn->sync_began_ns < oldest ? conn->sync_began_ns : oldest;
        deliver_synced(conn, now - conn->sync_began_ns);
    }
    if (answers > 0)
        hf__metrics_commit(loop->context.metrics, answers, now - oldest);
    return true;
}

static void note_answered(struct loop *loop)
{
    hf__busy_poll_answered(&loop->busy_poll,
                           atomic_load_explicit(&loop->conns_len, memory_order_relaxed));
}

void hf__group_commit_synced(struct loop *loop)
{
    struct syncer *syncer = &loop->server->syncer;
    uint64_t finished = atomic_load(&syncer->finished), durable = atomic_load(&syncer->durable);
    bool some = complete_synced(loop, finished, durable);

    atomic_store(&loop->awaits_sync, loop->lists[CONN_SYNCING].first != NULL);
    if (some)
        note_answered(loop);
}

/* Send answers that need no sync; the others become SYNCING. Returns their highest ticket; 0: none.
 */
static uint64_t send_ready(struct loop *loop)
{
    struct conn_list *ready = &loop->lists[CONN_READY];
    uint64_t ticket = 0, now = 0;

    while (ready->first) {
        struct conn *conn = ready->first;

        assert(conn->state == CONN_READY);
        if (!conn->pending_sync.ticket) {
            hf__conn_deliver(conn);
            continue;
        }
        now = now ? now : uv_hrtime();
        conn->sync_began_ns = now;
        ticket = conn->pending_sync.ticket > ticket ? conn->pending_sync.ticket : ticket;
        hf__conn_move(conn, CONN_SYNCING);
    }
    return ticket;
}

void hf__group_commit_flush(struct loop *loop)
{
    uint64_t ticket;

    loop->reads_began_ns = 0;
    if (!loop->lists[CONN_READY].first)
        return;
    hf__busy_poll_asked(&loop->busy_poll);
    ticket = send_ready(loop);
    if (ticket && loop->server->syncer.runs && has_other_connections(loop)) {
        atomic_store(&loop->awaits_sync, true);
        if (!hf__syncer_request(&loop->server->syncer, ticket))
            hf__group_commit_synced(loop);
        return;
    }
    if (ticket)
        (void)complete_synced(loop, ticket, 0);
    note_answered(loop);
}
