/*
 * oracle/drive.h: one round of random operations on the engine and on the oracle.
 */
#ifndef HF_TEST_ORACLE_DRIVE_H
#define HF_TEST_ORACLE_DRIVE_H

#include "oracle.h"
#include "world.h"

struct drive {
    struct test *t;
    struct world w;
    struct oracle o;
    struct gen g;
    bool on_disk;
    uint64_t seed;
    int step;
    const char *operation; /* the newest call, for the report of a mismatch */
    const char *request;
    uint64_t calls;
    uint64_t refused; /* calls that both sides refused */
};

/* Call the operation; *response is its typed answer, when it succeeded. */
enum hf_status drive_call(struct drive *d, const char *operation, const char *request,
                          void *response_out);
/* The same, when it cannot be refused. */
void drive_ok(struct drive *d, const char *operation, const char *request, void *response_out);

/* End the test with all that is needed to repeat it. */
void mismatch(struct drive *d, const char *what, const char *expected, const char *actual)
    __attribute__((noreturn));
void expect_text(struct drive *d, const char *what, const char *expected, const char *actual);
void expect_number(struct drive *d, const char *what, int64_t expected, int64_t actual);
void expect_item(struct drive *d, const char *what, const struct val *expected,
                 struct hf_item actual);
const char *engine_item(struct drive *d, struct hf_item item);
bool chance(struct drive *d, int one_in);
struct otable *some_table(struct drive *d);

/* drive_write.c */
void do_write(struct drive *d);
void do_batch_write(struct drive *d);
void do_transact_write(struct drive *d);

/* drive_read.c */
void do_get(struct drive *d);
void do_batch_get(struct drive *d);
void do_transact_get(struct drive *d);
void do_query(struct drive *d);
void do_scan(struct drive *d);
void compare_tables(struct drive *d);

/* drive_time.c */
void make_tables(struct drive *d);
void do_index_change(struct drive *d);
void do_enable_ttl(struct drive *d);
void do_upkeep(struct drive *d);
void do_advance(struct drive *d);
void compare_streams(struct drive *d);

#endif
