/*
 * cli/serve/serve.h: what `holdfast serve` was asked for.
 *
 * serve.c has the options and says what cannot be; cmd_serve.c opens, serves and closes.
 */
#ifndef HF_CLI_SERVE_SERVE_H
#define HF_CLI_SERVE_SERVE_H

#include "cli/frame/cli.h"
#include "cli/serve/keys.h"
#include "cli/serve/notify.h"

/* What `serve` ends with instead of CLI_NOT_FOUND and CLI_CONDITION, which it never means. */
enum serve_exit {
    SERVE_DATABASE =
        3,             /* the database cannot be opened: locked, damaged, no permission, no space */
    SERVE_ADDRESS = 4, /* the address to listen on cannot be had */
    SERVE_FIRST = 5    /* the files of --init or --snapshot cannot be loaded */
};

struct serve_settings {
    /* listening */
    struct hf_str host;
    uint64_t port;
    struct option_list hosts;
    struct hf_str cors;
    struct hf_str tls_cert;
    struct hf_str tls_key;
    /* who may call */
    struct hf_str credentials;
    bool insecure_any_key;
    uint64_t clock_window_ms;
    /* data */
    struct hf_str db_path;
    struct hf_str db_dir; /* of -dbPath */
    bool in_memory;
    unsigned sync; /* enum hf_sync, less one */
    uint64_t sync_window_ms;
    uint64_t memtable_bytes;
    uint64_t cache_bytes;
    bool compress;
    struct hf_str buckets;
    uint64_t reserve_bytes; /* 0: by default */
    bool read_only;
    struct option_list init;
    struct hf_str snapshot;
    /* continuous backup */
    struct hf_str backup_to; /* absent: none */
    uint64_t backup_window_ms;
    uint64_t backup_snapshot_ms;
    uint64_t backup_retain_ms;
    struct hf_str backup_key;
    uint64_t backup_journal_bytes;
    /* what clients see */
    struct hf_str region;
    struct hf_str account;
    unsigned wording; /* enum hf_wording, less one */
    unsigned profile; /* enum server_profile */
    uint64_t stream_shards;
    /* limits */
    uint64_t max_tables;
    uint64_t loops; /* 0: one per core */
    uint64_t connections;
    uint64_t workers;      /* 0: as many as loops */
    uint64_t memory_bytes; /* 0: by the memory that there is */
    uint64_t input_bytes;  /* 0: half of that */
    uint64_t head_ms;
    uint64_t body_ms;
    uint64_t idle_ms;
    uint64_t drain_ms;
    /* watching it */
    bool admin;
    bool access_log;
    unsigned console; /* place in "on off" */
    struct hf_str console_dir;
    unsigned log_format; /* enum log_format */
    unsigned log_level;  /* place in "error warn info debug" */
    /* accepted from DynamoDB Local, without effect here */
    bool shared_db;
    bool delay_statuses;
    bool optimize;
    bool no_telemetry;
    struct hf_str jar;
};

/* Settings that make sense together, and what follows from them. */
struct serve_plan {
    struct serve_settings settings;
    struct hf_str path; /* of the directory; absent: in memory */
    struct hf_str url;  /* for hf_open() */
    struct cli_keys keys;
    struct notify_sockets sockets;
    bool open;            /* it can be reached from other machines */
    bool console;         /* the console is offered */
    bool address_ignored; /* --host or --port were given, but so were sockets */
};

extern const struct options_table hf__serve_options;

/*
 * Make the plan. False when it cannot be: the error was shown (or the help), *ends says how to
 * end. Reads the file of credentials and looks at the sockets that were handed over; opens nothing
 * else.
 */
bool hf__serve_plan(struct cli *cli, size_t args_len, const char *const *args,
                    struct serve_plan *plan, int *ends);

/* "http://127.0.0.1:8000": where a client on this machine finds it. */
struct hf_str hf__serve_url(struct hf_scope *s, const struct serve_plan *plan, uint16_t port);

/* The command itself. */
extern const struct command hf__serve_command;

#endif
