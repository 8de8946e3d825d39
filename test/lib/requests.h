/*
 * test/lib/requests.h: sequences of requests as bytes, for fuzz targets.
 *
 * An input is lines; the first byte of a line chooses the operation (requests.c has the letters),
 * the rest is its JSON body. A few marks in a body stand for what an earlier answer gave:
 *
 *     $I  a shard iterator      $S  a stream's ARN      $H  a shard      $L  a LastEvaluatedKey
 *
 * A machine is an engine with a clock and a randomness of its own, so that two machines that get
 * the same requests must give the same answers.
 */
#ifndef HF_TEST_LIB_REQUESTS_H
#define HF_TEST_LIB_REQUESTS_H

#include <holdfast/db.h>
#include <holdfast/engine.h>

struct hf__store;

enum { REQUESTS_MAX = 40, KEPT_MAX = 512 };

#ifndef MUST
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#endif

/* What an answer gave, for the marks of later requests. */
struct kept {
    char bytes[KEPT_MAX];
    size_t len;
};

struct machine {
    struct hf_env env;
    int64_t now_us;
    uint64_t random;
    struct hf_scope *s;
    struct hf__store *store; /* of rewind.h */
    struct hf_db *db;
    struct kept iterator, stream, shard, last;
    struct machine_state *state; /* what an engine has in memory after machine_open() */
};

/* Open one on disk, or in memory if the directory is NULL, with the tables "users", "orders" and
 * "blobs" and a few items in them. */
void machine_open(struct machine *m, const char *directory);
void machine_close(struct machine *m);

/* What is there now, is there after every input from now on. */
void machine_mark(struct machine *m);

/* After an input: everything, the clock included, is as it was after machine_open(). m->db may be
 * another one then. */
void machine_end(struct machine *m);

/* Did the input change anything that is stored? */
bool machine_changed(const struct machine *m);

/* Do one line. The answer, or the error as JSON, lives in the scope. Fails by abort() when it is
 * not one that a client may see. */
struct hf_str machine_do(struct machine *m, const uint8_t *line, size_t len,
                         enum hf_status *status);

/* The next line of an input; false at its end. */
bool next_line(const uint8_t **data, size_t *size, const uint8_t **line, size_t *len);

#endif
