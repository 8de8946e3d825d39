/*
 * bench/lib_request.h: the requests that the benchmark of servers sends, ready to go as bytes.
 *
 * Tables are "bench" and "bench-gsi"; the second has the index "by-owner" with projection ALL. Item
 * number n of either:
 *
 *     pk       S   partition n / 50
 *     sk       N   10000 + n % 50
 *     owner    S   n modulo the number of partitions: 50 items each; hash key of the index
 *     created  N   random with every put, so that its entry moves; range key of the index
 *     name, email, active, score, visits, tags, body: what makes 1 KiB and eleven attributes
 */
#ifndef HF_BENCH_LIB_REQUEST_H
#define HF_BENCH_LIB_REQUEST_H

#include "lib.h"

enum {
    REQUEST_PARTITION = 50, /* items of a partition, and of a Query */
    REQUEST_BATCH = 25,     /* items of a BatchWriteItem, the most that a request has */
    REQUEST_TEXT = 64 * 1024
};

struct request_slot; /* bytes that differ from one request to the next */

/* The bytes of one kind of request; read only once it is made. */
struct request_form {
    const char *name;
    char *bytes;
    size_t len;
    struct request_slot *slots;
    size_t slots_len;
    size_t items;        /* numbers that bench_request_fill() wants */
    size_t answer_bytes; /* about what a body of an answer has */
    uint64_t partitions;
    char text[REQUEST_TEXT]; /* random letters that bodies are cut from */
};

/*
 * The form of the operation called `name`, for tables of `items` and a server at `port`; NULL when
 * there is no such operation. With `echo` its path is the size of the answer that is wanted.
 */
struct request_form *bench_request_new(const char *name, uint64_t items, unsigned port, bool echo);
void bench_request_free(struct request_form *form);

/* Fill in the items `numbers` in `bytes`, a copy of form->bytes. */
void bench_request_fill(const struct request_form *form, char *bytes, const uint64_t *numbers,
                        struct bench_dice *dice);

/* Could this be the body of the answer? A long one is looked into only when `closely`. */
bool bench_request_plausible(const struct request_form *form, const uint64_t *numbers,
                             const char *body, size_t len, bool closely);

#endif
