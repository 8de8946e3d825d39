/*
 * test/lib/rig.h: an engine in memory, a server before it, and a chaos proxy before that, all in
 * the test's process. Whoever asks the engine itself sees what is true, whatever a client was told.
 *
 *     struct rig rig;
 *     rig_open(&rig);
 *     hf_connect(s, rig_url(&rig, s), &options, &db);     by way of the proxy
 *     rig_true(&rig, "GetItem", "{'TableName':'t','Key':{'pk':{'S':'a'}}}");
 *     rig_close(&rig);
 *
 * Clocks and memory are the system's. A rig is one thread's; it aborts when it cannot do its work,
 * as a failed check of cmocka's would, on a thread that is not the test's own.
 */
#ifndef HF_TEST_LIB_RIG_H
#define HF_TEST_LIB_RIG_H

#include <holdfast/db.h>

#include <pthread.h>

#include "chaos.h"
#include "server/server.h"
#include "world.h"

struct rig {
    struct world truth; /* the engine, and a scope for what it says */
    struct server *server;
    struct chaos *chaos;
    uint16_t port; /* the server's own */
    pthread_t thread;
};

void rig_open(struct rig *rig);
void rig_close(struct rig *rig);

/* Stop the server, which drains, and start another on the same port. */
void rig_stop_server(struct rig *rig);
void rig_start_server(struct rig *rig);

/* "http://127.0.0.1:PORT" of the proxy. */
struct hf_str rig_url(const struct rig *rig, struct hf_scope *s);

/* A world of clients without variables, and without a metadata service that could be asked. */
struct hf_env rig_plain_env(void);

/* What the engine answers, or its error as JSON; lives until the next call. ' stands for ". */
struct hf_str rig_true(struct rig *rig, const char *operation, const char *json);

/* The same, which has to succeed. */
struct hf_str rig_do(struct rig *rig, const char *operation, const char *json);

/* How often `part` is in the text; in `part` ' stands for ". */
size_t occurrences(struct hf_str text, const char *part);

#endif
