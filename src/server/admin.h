/*
 * server/admin.h: /_holdfast/, for users' tests: the clock, upkeep now, faults on purpose.
 */
#ifndef HF_SERVER_ADMIN_H
#define HF_SERVER_ADMIN_H

#include "base/base.h"

struct answer;
struct server;

/* Is the path one of these, and are they offered? */
bool hf__admin_path(const struct server *server, struct hf_str path);

void hf__admin(struct answer *answer, struct hf_bytes body);

#endif
