/*
 * wire/checks.h: what GET and POST /_holdfast/check answer with: for the server that writes it and
 * the client that reads it.
 */
#ifndef HF_WIRE_CHECKS_H
#define HF_WIRE_CHECKS_H

#include "ops/fields.h"

#define CHECKS_PATH "/_holdfast/check"

enum checks_state { CHECKS_NONE = 1, CHECKS_RUNNING, CHECKS_SOUND, CHECKS_DAMAGED, CHECKS_FAILED };

struct wire_check {
    int state;           /* checks_state */
    int64_t number;      /* of the checks since the server started, from 1 */
    int64_t keys;        /* how far it is, as in struct hf_check_progress */
    int64_t bytes;       /* ... */
    int64_t about_bytes; /* ... */
    int64_t tables;      /* the rest as in struct hf_check_report */
    int64_t items;
    int64_t index_entries;
    int64_t stream_records;
    int64_t expiry_entries;
    int64_t tokens;
    int64_t backups;
    int64_t backup_items;
    int64_t problems;
    struct hf_str problem; /* a sentence; absent: none */
};

extern const struct fields hf__wire_check;

#endif
