/*
 * backup/ship.h: the shipper: it copies a store, while that is written, to a place outside, so that
 * the state of any moment can be restored. ship.c has how.
 */
#ifndef HF_BACKUP_SHIP_H
#define HF_BACKUP_SHIP_H

#include <holdfast/backup.h>

#include "base/base.h"
#include "store/store.h"

struct hf__shipper;

struct ship_options {
    struct hf_backup_options user; /* whole: hf__ship_fill() */
    struct hf_str directory;       /* of the store; a file in it says which epoch it began */
    bool no_threads;               /* for tests: the caller calls mark and step */
};

/* Defaults filled in, and checked. HF_INVALID */
enum hf_status hf__ship_fill(struct hf_scope *s, const struct hf_backup_options *from,
                             struct hf_backup_options *to);

/* The store outlives the shipper, and was opened with keep_bytes. Nothing is sent yet, so the place
 * need not be reachable. HF_INVALID, HF_NOT_FOUND (the key file), HF_LIMIT (no thread), HF_NOMEM */
enum hf_status hf__ship_open(struct hf_scope *s, const struct hf_env *env, struct hf__store *store,
                             const struct ship_options *options, struct hf__shipper **shipper);

/* Ship what is left, as far as that goes within close_ms, and end. NULL is accepted. */
void hf__ship_close(struct hf__shipper *shipper);

/* What is durable now was durable by now. */
void hf__ship_mark(struct hf__shipper *shipper);

/* Do what is due; with `all` whatever can be done. One thread at a time. */
enum hf_status hf__ship_step(struct hf_scope *s, struct hf__shipper *shipper, bool all);

/* Wait until all that is durable when this is called was shipped, or the scope ends. */
enum hf_status hf__ship_wait(struct hf_scope *s, struct hf__shipper *shipper);

void hf__ship_health(struct hf__shipper *shipper, struct hf_backup_health *health);

#endif
