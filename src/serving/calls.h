/*
 * serving/calls.h: the patterns for a server's console: <holdfast/bind.h> as server_options want it.
 */
#ifndef HF_SERVING_CALLS_H
#define HF_SERVING_CALLS_H

#include <holdfast/bind.h>

#include "server/server.h"

enum {
    SERVING_METHODS = 77, /* that are offered: see calls.c */
    SERVING_LIST_MAX = 1000
};

struct serving_calls {
    struct hf_scope *memory; /* of the names */
    struct hf_bind *bind;
    const char *const *methods; /* until NULL */
};

/* For a database that outlives it. With `read_only` methods that write are refused. On failure there
 * is nothing to close. */
enum hf_status hf__serving_calls_open(struct hf_scope *s, struct hf_db *db,
                                      const struct hf_env *env, bool read_only,
                                      struct serving_calls *calls);

/* Offer them; *calls stays where it is until the server is closed. */
void hf__serving_calls_offer(struct serving_calls *calls, struct server_options *options);

/* No server uses them any more. One that is zero is accepted. */
void hf__serving_calls_close(struct serving_calls *calls);

#endif
