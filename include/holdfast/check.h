/*
 * What a check of a whole database says: hf_engine_check() of engine.h does one here,
 * hf_server_check() of client.h has a server do one.
 */
#ifndef HOLDFAST_CHECK_H
#define HOLDFAST_CHECK_H

#include <holdfast/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a check looked at, and the first thing that was wrong. */
struct hf_check_report {
    uint64_t tables;
    uint64_t items;
    uint64_t index_entries;
    uint64_t stream_records;
    uint64_t expiry_entries;
    uint64_t tokens;
    uint64_t problems;
    struct hf_str first_problem; /* absent when there is none */
    uint64_t backups;
    uint64_t backup_items;
    uint64_t reserved[8];
};

/* How far a check is. Everything is read twice: first for its checksums, then to be compared. */
struct hf_check_progress {
    uint64_t keys;  /* that were compared */
    uint64_t bytes; /* of keys and values that were read, */
    uint64_t
        about_bytes; /* and about how many that will be; from `bytes` up, and equal at the end */
    uint64_t reserved[4];
};

/* Called now and then by the thread that waits for the check. Anything but HF_OK ends that, and is
 * returned. */
typedef enum hf_status hf_check_progress_fn(const struct hf_check_progress *progress, void *user);

struct hf_check_options {
    size_t size;                       /* set by HF_OPTIONS(), so that the struct can grow */
    hf_check_progress_fn *on_progress; /* default none */
    void *user;                        /* handed to it */
    uint32_t poll_ms; /* how often a server is asked how far it is; default 500, at least 10 */
};

#ifdef __cplusplus
}
#endif

#endif
