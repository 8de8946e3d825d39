/*
 * test/events/ledger.h: an event store between real processes that are killed (SIGKILL) at any
 * moment or stopped (SIGSTOP) for longer than leases last, over the real server, which is killed at
 * times, too.
 *
 *     events_ledger HOLDFAST SECONDS [SEED]
 *
 * Writers append to the same few streams: events with ids that they chose, and without; to one
 * stream and to several; with any version expected and an exact one; more than fit into a
 * transaction, by number and by size. Each keeps a journal, a file that only grows: before an
 * append it says what it is about to do, afterwards what it was told. Who starts again finishes what
 * its former life had begun, by appending the same again. At times an append of long ago is
 * repeated.
 *
 * Followers have a log each, a file that only grows, with a line for each event that they read:
 *
 *     readers        read all behind the last position of their log
 *     subscribers    share one subscription and one log: its checkpoint says where to go on
 *     consumers      share one group and one log: acknowledge, refuse, forget
 *
 * and a sweeper removes what unfinished appends have staged, and whatever
 * seems so because their writer was stopped.
 *
 * In the end:
 *
 *  (1) Streams have versions from 1 on, without gap or duplicate.
 *  (2) What a writer was told happened is there, once, at the versions that it was told, however
 *      often it was appended; what it was told did not, is not. What nobody knows is there once or
 *      not at all. The events of an append are all there, or none, one behind the other.
 *  (3) A stream has the appends of one writer in the order in which they were made.
 *  (4) The global order has each event of each stream once, and never contradicts streams.
 *  (5) The log of a reader is the global order, byte by byte: so none came in front of another that
 *      had been read. That of the subscription is too, but for repetitions. The group's has every
 *      event, and nothing else.
 *  (6) The chain of hashes is whole; nothing is staged after a last sweep.
 */
#ifndef HF_TEST_EVENTS_LEDGER_H
#define HF_TEST_EVENTS_LEDGER_H

#include <holdfast/events.h>

#include <stdatomic.h>
#include <stdio.h>

enum {
    WRITERS = 3,
    STREAMS = 10,
    PARTS_MAX = 4, /* streams of one append */
    PATH_ROOM = 128,
    LINE_ROOM = 256,
    SWEEP_S = 1
};

#define MUST_OK(s, call) must_ok((s), (call), #call, __FILE__, __LINE__)
#define FAIL(...) fail(__FILE__, __LINE__, __VA_ARGS__)

void must_ok(struct hf_scope *s, enum hf_status status, const char *what, const char *file,
             int line);
_Noreturn void fail(const char *file, int line, const char *format, ...) HF_PRINTF(3, 4);

uint64_t random_below(uint64_t *state, uint64_t bound);
int64_t now_us(void);
void nap_ms(int64_t ms);

/* What all processes see, by a mapped file. */
struct board {
    atomic_int finish; /* writers end after their append; nobody is hurt any more */
    atomic_uint again; /* appends that were repeated */
    atomic_uint swept; /* appends and events that a sweep found staged */
};

struct site {
    char dir[PATH_ROOM / 2];
    char url[64];
    uint64_t seed;
    struct board *board;
};

/* From the arguments of a child: DIR URL SEED. */
void site_join(struct site *site, char **argv);
void site_path(const struct site *site, const char *name, char path[PATH_ROOM]);
/* Is the last failure one of a server that is killed, or stopped? */
bool is_passing(struct hf_scope *s);
struct hf_events *site_store(struct hf_scope *s, const struct site *site, struct hf_db **db);

/* ---- ledger_plan.c: what a writer does, which its seed decides ------------------------------ */

enum op_kind {
    OP_CHOSEN, /* ids are chosen: can be repeated until it is known what became of it */
    OP_OWN,    /* the store makes them: what is not known stays so */
    OP_EXACT   /* as OP_CHOSEN, with the version expected that the stream was seen at */
};

struct op {
    enum op_kind kind;
    int writer;
    uint32_t number; /* from 1 on */
    size_t len;      /* streams */
    struct {
        int stream;
        uint32_t count;
    } parts[PARTS_MAX];
    uint32_t bytes; /* of each payload */
};

/* What an event says about where it comes from, at the beginning of its payload. */
struct origin {
    int writer, stream;
    uint32_t number, index;
};

struct op plan_op(uint64_t seed, int writer, uint32_t number);
struct hf_event_stream_key plan_stream(struct hf_scope *s, int stream);
struct hf_append *plan_appends(struct hf_scope *s, const struct op *op, int64_t expected);
bool plan_origin(const struct hf_stored_event *event, struct origin *origin);
/* The same line in every log, without its end. */
void plan_line(const struct hf_stored_event *event, char line[LINE_ROOM]);

/* ---- ledger_journal.c ----------------------------------------------------------------------- */

enum fate { FATE_NONE, FATE_BEGUN, FATE_DONE, FATE_REFUSED, FATE_UNKNOWN };

struct entry {
    enum fate fate;
    int64_t expected;          /* for OP_EXACT, else -1 */
    uint64_t first[PARTS_MAX]; /* for FATE_DONE; the verdict fills in what it finds for others */
    uint32_t found[PARTS_MAX]; /* by the verdict */
};

struct journal {
    int fd;
    struct entry *entries; /* by number; the first is not used */
    uint32_t len;
};

void journal_open(struct journal *j, const struct site *site, int writer);
void journal_begin(struct journal *j, const struct op *op, int64_t expected);
void journal_end(struct journal *j, const struct op *op, enum fate fate,
                 const struct hf_appended *results);
void journal_close(struct journal *j);

/* ---- children ------------------------------------------------------------------------------- */

int write_main(const struct site *site, int writer);
int read_main(const struct site *site, int reader);
int subscribe_main(const struct site *site, int subscriber);
int consume_main(const struct site *site, int consumer);
int sweep_main(const struct site *site);

/* ---- ledger_verdict.c ----------------------------------------------------------------------- */

struct truth_event {
    char position[HF_POSITION_LEN + 1];
    int stream;
    uint64_t version;
    struct origin origin;
    bool consumed; /* by the group */
};

/* All that there is, in the global order. */
struct truth {
    struct truth_event *events;
    size_t len;
    uint64_t versions[STREAMS]; /* the last ones */
};

enum log_kind { LOG_EXACT, LOG_REPEATS, LOG_ANY_ORDER };

void truth_read(struct hf_scope *s, struct hf_events *store, struct truth *truth); /* (4) */

/* (5) Is all of it in the log? FAIL()s when something is that cannot be. */
bool log_is_whole(const struct site *site, const char *name, enum log_kind kind,
                  struct truth *truth);

/* (1) (2) (3) (6) */
void verdict(struct hf_scope *s, struct hf_db *db, struct hf_events *store, const struct site *site,
             const struct truth *truth);

#endif
