/*
 * bind/help.h: a memory database and its methods for a test. In texts of tests ' stands for ".
 */
#ifndef HF_TEST_BIND_HELP_H
#define HF_TEST_BIND_HELP_H

#include <holdfast/bind.h>
#include <holdfast/engine.h>

#include "test.h"

struct rig_bind {
    struct test *t;
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_bind *bind;
    struct hf_str result; /* of the last call */
};

struct rig_bind bind_rig(struct test *t, bool read_only);
/* With the system's env, for what has threads: a database by URL. */
struct rig_bind bind_rig_real(struct test *t, const char *url);
void bind_rig_close(struct rig_bind *r);

/* End its bind and make another one for the same database. */
void bind_rig_reopen(struct rig_bind *r);

/* The text with ' turned into ", in the scope. */
struct hf_str bind_json(struct rig_bind *r, const char *text);

enum hf_status bind_call(struct rig_bind *r, const char *method, const char *json);

/* A call that succeeds with exactly this result; that fails, with exactly this error; that is
 * refused, HF_INVALID, with this message. */
#define CHECK_BIND(r, expected, method, json)                                                      \
    bind_check((r), HF_OK, (expected), (method), (json), __FILE__, __LINE__)
#define CHECK_BIND_FAILS(r, status, expected, method, json)                                        \
    bind_check((r), (status), (expected), (method), (json), __FILE__, __LINE__)
#define CHECK_BIND_REFUSES(r, message, method, json)                                               \
    bind_check_refuses((r), (message), (method), (json), __FILE__, __LINE__)

void bind_check(struct rig_bind *r, enum hf_status status, const char *expected, const char *method,
                const char *json, const char *file, int line);
void bind_check_refuses(struct rig_bind *r, const char *message, const char *method,
                        const char *json, const char *file, int line);

/* The text behind "NAME": in the last result, up to its quote or the end of the number. */
struct hf_str bind_member(struct rig_bind *r, const char *name);

#endif
