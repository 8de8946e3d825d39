/*
 * cli/frame/cli.h: what the commands have in common.
 *
 * A command is a line in the table of main.c: its name, which may be a noun and a verb with a blank
 * between them, its options, and what it does: a struct command (command.h).
 */
#ifndef HF_CLI_FRAME_CLI_H
#define HF_CLI_FRAME_CLI_H

#include "cli/frame/options/options.h"

/*
 * How the program ends. Scripts rely on these numbers: they do not change. topics.c has
 * them for users.
 *
 * `serve` is older than most of them, and has meanings of its own for 3 and 4: cli/serve/serve.h. A
 * command that runs a program ends as that does, if it came to that; 128 and a signal's number when
 * it was the signal that ended it, or us.
 */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,      /* for a reason that no other number has */
    CLI_USAGE = 2,       /* invalid arguments, or an invalid variable or file */
    CLI_NOT_FOUND = 3,   /* no such table, lock, key */
    CLI_CONDITION = 4,   /* condition not met, held by another, or a limit is reached */
    CLI_DENIED = 5,      /* missing or wrong credentials */
    CLI_UNAVAILABLE = 6, /* the database is not reachable, is locked, or throttles */
    CLI_TIMEOUT = 7,     /* --timeout is exceeded */
    CLI_CORRUPT = 8,     /* stored data is damaged, or newer than the program */
    CLI_TOO_LONG = 124,  /* the program that was run took too long, as timeout(1) has it */
    CLI_NO_EXEC = 126,   /* it cannot be run, as shells have it */
    CLI_NO_PROGRAM = 127 /* program not found, as shells have it */
};

enum { CLI_SIGNAL = 128 }; /* and its number */

struct guard;
struct database_shared;

/* What a command tells the program part that runs it besides what it prints: the shell shows it in its own
 * words. */
struct cli_outcome {
    bool listed;    /* items were printed, or a list of none */
    uint64_t items; /* how many */
    bool more;      /* --limit has ended the list */
    bool counted;   /* capacity was counted: */
    struct hf_scope_capacity consumed;
    void (*on_item)(void *user, struct hf_item item); /* for each one that is printed; NULL: none */
    void *user;
};

struct cli {
    struct hf_scope *scope;
    FILE *out;
    const char *out_name; /* of a file that is `out`; NULL: it is standard output */
    FILE *err;
    size_t width;           /* of help */
    bool terminal;          /* `out` is one: lists are for people */
    size_t columns;         /* of that terminal; 0: not known */
    bool styled;            /* bold text and colours: hf__cli_is_styled() */
    bool expanded;          /* lists on it have a line for each field */
    bool json;              /* --json or --jsonl was given: errors are JSON, too */
    bool table_named;       /* --table was given */
    const char *unwritable; /* why the directory was opened to be read only; NULL: it was not */
    struct guard *guard; /* canceled calls were ended by the signal that it has seen; NULL: none */
    bool ends_by_signal; /* and the command has not failed then */
    struct database_shared *shared; /* a database that stays open between commands; NULL: none */
    struct cli_outcome *outcome;    /* wanted by who runs the command; NULL: nobody asks */
    options_env_fn *env;
    bool (*set_env)(const char *name, const char *value); /* false: no memory */
    const struct cli_command *commands;
    size_t commands_len;
    const struct cli_group *groups;
    size_t groups_len;
    const struct cli_noun *nouns; /* those that have more to say than their commands */
    size_t nouns_len;
};

/* Commands whose first words are one of `nouns`, under a heading of the help, in that order. The last
 * group also has what no group names. */
struct cli_group {
    const char *heading;
    const char *nouns; /* with a blank between them */
};

/* The first word of commands. */
struct cli_noun {
    const char *word;
    const char *summary; /* in the list, and of the manual page; NULL: that of the command */
    const char *about;   /* a text as in text.h; NULL: none */
    const char *see;     /* other nouns that the manual page refers to; NULL: none */
};

struct cli_command {
    const char *name;
    const char *summary; /* NULL: not listed */
    const struct options_table *options;
    const struct command *command; /* command.h */
};

/* Find and run a command; `args` is all behind the program's name. Returns how to end. */
int hf__cli_run(struct cli *cli, size_t args_len, const char *const *args);

/* The command with the longest name that the arguments start with, and how many words that is. */
const struct cli_command *hf__cli_find(const struct cli *cli, size_t args_len,
                                       const char *const *args, size_t *words);

/*
 * `holdfast --db URL kv get x` is `holdfast kv get --db URL x`: options that all commands share may
 * come first. The first returns how many arguments they are; the second the arguments with these
 * after the name of the command (NULL: no memory).
 */
size_t hf__cli_leading(size_t args_len, const char *const *args);
const char *const *hf__cli_options_moved(struct cli *cli, size_t args_len, const char *const *args,
                                         size_t leading);

/*
 * Read the arguments of a command. False when there is nothing more to do: the help was shown or
 * the error was, and *ends says how to end.
 */
bool hf__cli_options(struct cli *cli, const struct options_table *table, size_t args_len,
                     const char *const *args, void *fields, struct options *options, int *ends);

/*
 * The same for a command with operands, of which there have to be from `min` to `max`; the error
 * shows the table's.
 */
bool hf__cli_operands(struct cli *cli, const struct options_table *table, size_t args_len,
                      const char *const *args, size_t min, size_t max, void *fields,
                      struct options *options, int *ends);

/*
 * "holdfast serve: ..." on cli->err; with --json an object in one line:
 *
 *     {"error":{"code":"not_found","message":"key 'x' does not exist",
 *      "may_have_happened":false,"command":"kv get"}}
 *
 * Invalid arguments also have a "hint", which says where to find help. Returns `ends`.
 */
int hf__cli_fail(struct cli *cli, const char *command, int ends, const char *format, ...)
    HF_PRINTF(4, 5);

/*
 * Print a line on stderr that is not the final error of the command; from any thread. Control
 * characters, which may come from stored data, are replaced by blanks. With --json the line is
 *
 *     {"notice":{"message":"event e1 (x) will be retried: no","command":"relay"}}
 */
void hf__cli_notice(struct cli *cli, const char *command, const char *format, ...) HF_PRINTF(3, 4);

/* hf__cli_fail() for an error of the library: in JSON its status is the code, and it has the limit
 * that was passed and the causes, as docs/operations.md shows them. NULL: as hf__cli_fail(). */
int hf__cli_fail_with(struct cli *cli, const char *command, int ends, const struct hf_error *error,
                      const char *message);

/* The terminal can do nothing but print: TERM is dumb, or there is none. */
bool hf__cli_is_dumb(const struct cli *cli);

/* Are bold text and colours wanted? On a terminal that has them, unless NO_COLOR is set: no-color.org. The one
 * place that decides it; cli->styled is the answer. */
bool hf__cli_is_styled(const struct cli *cli);

/* Is the output read by a person? Then times are local, and in words. */
bool hf__cli_for_people(const struct cli *cli);

/* Which RocksDB the command was built with: "7.8.3, part of the command". */
const char *hf__cli_rocksdb(void);

/* What `out` is called in errors. */
const char *hf__cli_out_name(const struct cli *cli);

/* Flush the output. CLI_FAILED if it could not be written: a full disk, a closed pipe. */
int hf__cli_flushed(struct cli *cli, int ends);

#endif
