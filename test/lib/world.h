/*
 * test/lib/world.h: a database for a test to live in: virtual clock, seeded randomness, counted
 * memory, no thread of its own. Operations can be called as JSON, which is how most tests of the
 * engine are written:
 *
 *     struct world w = world_open(t, "memory:");
 *     CHECK_JSON(&w, "{}", "PutItem", "{'TableName':'t','Item':{'pk':{'S':'a'}}}");
 *     world_close(&w);
 *
 * In these texts ' stands for ".
 */
#ifndef HF_TEST_LIB_WORLD_H
#define HF_TEST_LIB_WORLD_H

#include <holdfast/db.h>
#include <holdfast/engine.h>

#include "test.h"

struct world {
    struct test *t;
    struct hf_scope *scope;
    struct hf_db *db;
    const char *url;
    struct hf_engine_options options;
};

/* "memory:", or "disk:" for a new directory that is removed afterwards. */
struct world world_open(struct test *t, const char *kind);

/* Close and open again; of "memory:" nothing is left then. */
void world_reopen(struct world *w);

/* Verify the database, close it. */
void world_close(struct world *w);

/* The answer of an operation as JSON, or its error as the body that the service would send. */
struct hf_str world_call(struct world *w, const char *operation, const char *json);

/* The same for a body as it is, in which ' is '; says whether it succeeded. */
enum hf_status world_exchange(struct world *w, const char *operation, struct hf_str body,
                              struct hf_str *answer);

/* As world_call(), but any error fails the test. */
struct hf_str world_ok(struct world *w, const char *operation, const char *json);

#define CHECK_JSON(w, expected, operation, json)                                                   \
    world_check((w), (expected), (operation), (json), __FILE__, __LINE__)
void world_check(struct world *w, const char *expected, const char *operation, const char *json,
                 const char *file, int line);

/* The operation fails with this exception and exactly this message. */
#define CHECK_FAILS(w, exception, message, operation, json)                                        \
    world_check_fails((w), (exception), (message), (operation), (json), __FILE__, __LINE__)
void world_check_fails(struct world *w, const char *exception, const char *message,
                       const char *operation, const char *json, const char *file, int line);

/* The text with ' turned into ", in the world's scope. */
struct hf_str world_json(struct world *w, const char *text);

#endif
