/*
 * cli/frame/database.h: what commands that talk to a database have in common: which one, for how long,
 * how a failure ends the program.
 *
 *     struct settings {
 *         struct database_settings database;
 *         bool all;
 *     };
 *     static const struct option_spec specs[] = {
 *         {.kind = OPTION_FLAG, .name = "all", ...},
 *         DATABASE_SPECS(struct settings),
 *     };
 *
 * command.c opens it by them.
 */
#ifndef HF_CLI_FRAME_DATABASE_H
#define HF_CLI_FRAME_DATABASE_H

#include "cli/frame/cli.h"

#include <holdfast/blob.h>
#include <holdfast/db.h>

#define DATABASE_DEFAULT "http://127.0.0.1:8000"

/*
 * *ends of an open, where `absent_ok` is set: the table is not there, as nothing was stored yet.
 * Nothing was shown. A table that was named (--table) has to be there all the same: it may be a
 * slip.
 */
enum { DATABASE_ABSENT = -1 };

enum { DATABASE_TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000 };

struct database_settings {
    struct hf_str url;
    struct hf_str prefix;
    struct hf_str profile;
    struct hf_str region;
    uint64_t timeout_ms;
    bool json;
    bool jsonl; /* of commands that list */
    bool quiet;
    bool create;    /* of commands that write: a directory that is missing is made */
    bool read_only; /* of commands that read all of it: nothing changes a directory meanwhile */
    size_t memtable_bytes; /* of a directory, as the next; 0: the default */
    uint64_t bulk_bytes;   /* about to be put at once */
    size_t cache_bytes;
    bool absent_ok;    /* the command copes with a table that is not there: DATABASE_ABSENT */
    const char *maker; /* the command that makes the table, for the error */
};

/* Its options, for a struct whose member `database` is the settings. */
#define DATABASE_SPECS_WITH(type, timeout_text)                                                    \
    {.heading = "Database",                                                                        \
     .kind = OPTION_TEXT,                                                                          \
     .name = "db",                                                                                 \
     .value = "URL",                                                                               \
     .fallback = DATABASE_DEFAULT,                                                                 \
     .env = "HOLDFAST_DB",                                                                         \
     .text = "The database: http://HOST:PORT, https://HOST:PORT, dynamodb://REGION, "              \
             "embedded:DIR, or @NAME for one of 'holdfast config'.",                               \
     .offset = offsetof(type, database.url)},                                                      \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "prefix",                                                                         \
         .value = "TEXT",                                                                          \
         .env = "HOLDFAST_PREFIX",                                                                 \
         .text = "Prefix for all table names.",                                                    \
         .offset = offsetof(type, database.prefix)},                                               \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "profile",                                                                        \
         .value = "NAME",                                                                          \
         .text = "Profile in AWS's config files. By default credentials come from where AWS's "    \
                 "tools find them.",                                                               \
         .offset = offsetof(type, database.profile)},                                              \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "region",                                                                         \
         .value = "NAME",                                                                          \
         .text = "Region to sign requests for.",                                                   \
         .offset = offsetof(type, database.region)},                                               \
    {                                                                                              \
        .kind = OPTION_DURATION, .name = "timeout", .value = "TIME", .min = 1,                     \
        .max = DATABASE_TIMEOUT_MAX_MS, .fallback = "30s", .text = timeout_text,                   \
        .offset = offsetof(type, database.timeout_ms)                                              \
    }
#define DATABASE_SPECS(type)                                                                       \
    DATABASE_SPECS_WITH(type, "Time limit for the database; then the exit code is 7.")

/* Options for the output. */
#define DATABASE_JSON(type)                                                                        \
    {                                                                                              \
        .heading = "Output", .kind = OPTION_FLAG, .name = "json",                                  \
        .text = "Print the result as a JSON object.", .offset = offsetof(type, database.json)      \
    }
#define DATABASE_JSONL(type)                                                                       \
    {                                                                                              \
        .kind = OPTION_FLAG, .name = "jsonl", .text = "Print one JSON object per line.",           \
        .offset = offsetof(type, database.jsonl)                                                   \
    }
#define DATABASE_QUIET(type)                                                                       \
    {                                                                                              \
        .kind = OPTION_FLAG, .letter = 'q', .name = "quiet", .text = "Print errors only.",         \
        .offset = offsetof(type, database.quiet)                                                   \
    }

/* All of it, for commands that print one thing, and for those that print a list. */
#define DATABASE_ONE(type) DATABASE_JSON(type), DATABASE_QUIET(type), DATABASE_SPECS(type)
#define DATABASE_LIST(type)                                                                        \
    DATABASE_JSON(type), DATABASE_JSONL(type), DATABASE_QUIET(type), DATABASE_SPECS(type)

/*
 * A database that stays open while one command after the other uses it, as in the shell: a directory can
 * be opened once. cli->shared names it. The first command whose options name the same one opens it, as
 * it would for itself alone, and the others find it open.
 */
struct database_shared {
    struct database_settings settings; /* which one: URL, prefix, profile and region */
    struct hf_db *db;                  /* NULL: not open yet */
    const char *unwritable;            /* as that of struct cli */
};

/* Close what hf__database_open() has opened, unless it is shared. NULL is accepted. */
void hf__database_close(struct cli *cli, struct hf_db *db);

/* Replace @NAME in settings->url by what the config file has. False: the error was shown, in *ends. */
bool hf__database_resolve(struct cli *cli, const char *command, struct database_settings *settings,
                          int *ends);

/*
 * Open the database, and give cli->scope the deadline. A directory is made with settings->create
 * only. False: the error was shown, *ends says how to end; a directory that another process has
 * open is CLI_UNAVAILABLE, and that process is named.
 */
bool hf__database_open(struct cli *cli, const char *command,
                       const struct database_settings *settings, struct hf_db **db, int *ends);

/* How long to wait for a directory that another process has open. */
struct database_wait {
    bool bounded;       /* at most `wait_ms`; 0: not at all */
    uint64_t wait_ms;   /* with `bounded` */
    int busy_code;      /* how to end when it was in vain */
    uint64_t waited_ms; /* out */
};

/*
 * The same, waiting while another process has the directory open. After a moment standard error
 * says which. A signal that cancels cli->scope ends it: then *ends is CLI_FAILED, and nothing was
 * shown. A server that has it at the end of the wait is CLI_UNAVAILABLE: it is there to stay.
 */
bool hf__database_open_waiting(struct cli *cli, const char *command,
                               const struct database_settings *settings, struct database_wait *wait,
                               struct hf_db **db, int *ends);

/* A blob store by its URL, with the credentials that the database's options name. It is made with
 * settings->create, and otherwise one that is not there has no blobs. */
enum hf_status hf__database_open_blobs(struct cli *cli, const struct database_settings *settings,
                                       struct hf_str url, struct hf_blobs **blobs);

/*
 * How to end when a pattern could not be opened on the database: the error of cli->scope is shown,
 * unless its table is not there and settings->absent_ok: DATABASE_ABSENT.
 *
 * The first asks for no more than whether the table is not there, as nothing was stored yet.
 */
bool hf__database_nothing_yet(const struct cli *cli);
int hf__database_unopened(struct cli *cli, const char *command,
                          const struct database_settings *settings);

/* Is it reached over the network? Otherwise it is a directory, or in memory. */
bool hf__database_is_service(struct hf_str url);

/* The URL that is opened, with what profile and region add to it; absent: no memory. */
struct hf_str hf__database_url(struct hf_scope *s, const struct database_settings *settings);

/* The exit code for an error; no other function maps statuses to exit codes. */
int hf__database_exit(const struct hf_error *error);

/* Show that another process has the directory open, which one, and what to do; HF_LOCKED is the
 * error of cli->scope. Returns CLI_UNAVAILABLE: it is no condition of ours, and may pass. */
int hf__database_taken(struct cli *cli, const char *command, const char *path);

/* Which process has the directory open, and what to do: "process 4711 (holdfast serve); connect to it
 * with --db http://127.0.0.1:8000". Absent: none can be seen. */
struct hf_str hf__database_holder(struct hf_scope *s, const char *path);

/* Show the error of cli->scope in one line; returns how to end. */
int hf__database_fail(struct cli *cli, const char *command);

/* The same for the error of another scope, and beginning with `what` unless that is NULL. */
int hf__database_fail_of(struct cli *cli, const char *command, const struct hf_scope *s,
                         const char *what);

#endif
