/*
 * server/admin/admin.h: /_holdfast/, for users' tests: the clock, maintenance now, injected faults,
 * snapshots; and the check of everything, which every server offers (checker.h).
 */
#ifndef HF_SERVER_ADMIN_H
#define HF_SERVER_ADMIN_H

#include "base/base.h"

struct answer;
struct server;

/* Is the path one of these, and are they offered? */
bool hf__admin_path(const struct server *server, struct hf_str path);

void hf__admin_handle(struct answer *answer, struct hf_bytes body);

/* ---- what the files of it share ------------------------------------------------------------- */

struct fields;

struct admin_request {
    struct hf_bytes body;
    struct hf_str name; /* what stands for NAME in the path; empty when there is none */
};

/* Answer with that struct as JSON; with an error of that text; with the error of the scope. */
void hf__admin_answer(struct answer *answer, const struct fields *fields, const void *body);
void hf__admin_error(struct answer *answer, int status, struct hf_str message);
void hf__admin_failure(struct answer *answer, enum hf_status status);

/* ---- admin_snapshots.c ---------------------------------------------------------------------- */

struct snapshots; /* those that the server keeps */

/* NULL when there is no memory. */
struct snapshots *hf__snapshots_new(const struct hf_env *env);
void hf__snapshots_free(struct snapshots *snapshots);

void hf__admin_snapshots_list(struct answer *answer, const struct admin_request *request);
void hf__admin_snapshots_take(struct answer *answer, const struct admin_request *request);
void hf__admin_snapshots_restore(struct answer *answer, const struct admin_request *request);
void hf__admin_snapshots_delete(struct answer *answer, const struct admin_request *request);

#endif
