/*
 * cli/shell/shell.h: the shell: what it is on, how it prints, and what its parts do for each other.
 *
 *     cmd_shell.c        options; lines from an editor, a pipe, a file or -c
 *     shell_input.c      where a statement or a command ends
 *     shell_run.c        running one on the database that is open
 *     shell_meta.c       \d, \watch, \timing and the like
 *     shell_describe.c   what \d prints
 *     shell_screen.c     paging
 *     shell_editor.c     a line with editing, or without
 *     shell_complete.c   what Tab offers
 *     shell_known.c      tables, attributes and keys, for that
 *     shell_history.c    the file of lines
 */
#ifndef HF_CLI_SHELL_SHELL_H
#define HF_CLI_SHELL_SHELL_H

#include "cli/frame/command.h"
#include "cli/frame/process/child.h"
#include "cli/shell/shell_input.h"

struct shell_history;
struct shell_known;

/* How items are printed where a person reads them; programs get JSON in any case. */
enum shell_format { SHELL_TABLE, SHELL_JSON, SHELL_DYNAMODB };

struct shell_settings {
    struct database_settings database;
    struct option_list commands; /* -c */
    struct option_list files;    /* -f */
    bool keep_going;
    bool dynamodb;
    struct hf_str history;
    bool no_pager;
};

struct shell {
    struct command_ctx *c; /* of `holdfast shell` itself */
    struct shell_settings *settings;
    struct hf_scope *kept;         /* what stays: the URL of \use */
    struct hf_scope *work;         /* of the command that runs */
    struct database_shared shared; /* the database, opened by the first command that needs it */
    bool interactive;              /* a person types, and sees the output */
    bool editing;                  /* by the editor, so the terminal is a real one */
    enum shell_format format;
    bool expanded;
    bool timing;
    int64_t ended_us;    /* when the last command had ended, without the time to read it */
    uint64_t limit;      /* items of a statement; 0: all */
    struct hf_str table; /* which the command that runs reads, for what is known of it */
    char *last;          /* what \watch repeats; NULL: nothing yet */
    enum shell_unit_kind last_kind;
    FILE *file;          /* of \o; NULL: standard output */
    char *file_name;     /* of that one */
    unsigned depth;      /* of \i */
    struct shell_tx *tx; /* between BEGIN and COMMIT; NULL: not */
    struct shell_known *known;
    struct shell_history *history; /* NULL: none is kept */
    bool interrupted; /* SIGINT came since the line was typed: what is left of it is not run */
    bool quit;
    int ends; /* of the whole shell */
};

/* ---- running, shell_run.c ------------------------------------------------------------------- */

/* Run a unit. Returns an exit code; its error was shown. */
int hf__shell_run(struct shell *shell, enum shell_unit_kind kind, struct hf_str text);

/* Run a command by its words. Words that are no command are an error. */
int hf__shell_run_words(struct shell *shell, size_t len, const char *const *words);

/* Repeat the last one every `ms`, `count` times (0: until a signal). */
int hf__shell_watch(struct shell *shell, uint64_t ms, uint64_t count);

/* Run a command of the shell's own on the database: with its error, its deadline, and on a page. */
int hf__shell_call(struct shell *shell, const struct command *command,
                   const struct options_table *table, size_t operands_len,
                   const char *const *operands);

/* The shell whose command runs. */
struct shell *hf__shell_of(const struct command_ctx *c);

/* Nothing runs: the scope of commands is empty, and a SIGINT that a person sent is forgotten. Any other signal
 * ends the shell. */
void hf__shell_idle(struct shell *shell);

/* A program has ended with this exit code. If that was by Ctrl-C, the terminal gave it to the program alone: it
 * ends a script all the same. */
void hf__shell_program_ended(struct shell *shell, int ends);

/* Open the database, unless it is a directory that does not exist yet. Returns an exit code. */
int hf__shell_connect(struct shell *shell);

/* Which signal ended the command; 0: none. */
int hf__shell_signal(struct shell *shell);

/* What goes wrong with the shell itself. */
int hf__shell_fail(struct shell *shell, int ends, const char *format, ...) HF_PRINTF(3, 4);
void hf__shell_note(struct shell *shell, const char *format, ...) HF_PRINTF(2, 3);

/* ---- transactions, shell_tx.c --------------------------------------------------------------- */

/* BEGIN, COMMIT, ROLLBACK, and statements in between. False: it is none of these. */
bool hf__shell_tx_run(struct shell *shell, struct hf_str text, int *ends);
void hf__shell_tx_drop(struct shell *shell);

/* Refuse something while a transaction is open, which then cannot be committed. */
int hf__shell_tx_refuse(struct shell *shell, const char *what);

/* The shell ends: statements that were not committed are an error. Returns an exit code. */
int hf__shell_tx_end(struct shell *shell);

/* ---- lines, cmd_shell.c --------------------------------------------------------------------- */

/* All of a file; "-" is standard input. Returns an exit code. */
int hf__shell_read_file(struct shell *shell, const char *path);

/* ---- backslash commands, shell_meta.c, shell_describe.c ------------------------------------- */

int hf__shell_meta(struct shell *shell, struct hf_str text);

/* Their names, one after the other from *at = 0 on; NULL: no more. */
const char *hf__shell_meta_next(size_t *at);

int hf__shell_describe(struct shell *shell, const char *table);

/* ---- history, shell_history.c --------------------------------------------------------------- */

enum { SHELL_HISTORY_MAX = 1000 };              /* lines */
enum { SHELL_HISTORY_BYTES_MAX = 1024 * 1024 }; /* of the file */
enum { SHELL_HISTORY_LINE_MAX = 64 * 1024 };    /* longer ones are not kept */

/* The history of `path`, or of the usual file if that is absent. NULL: none is kept, and the reason was
 * shown unless it was "none". */
struct shell_history *hf__shell_history_open(struct shell *shell, struct hf_str path);
void hf__shell_history_close(struct shell_history *history);

/* The lines of the file, oldest first. */
size_t hf__shell_history_len(const struct shell_history *history);
const char *hf__shell_history_at(const struct shell_history *history, size_t at);

/* Keep what was typed, in the file at once: false when it is not kept, as it begins with a blank, is too
 * long, or is the same as before. */
bool hf__shell_history_add(struct shell_history *history, struct hf_str text);

/* ---- the editor, shell_editor.c ------------------------------------------------------------- */

enum { SHELL_PROMPT_MAX = 64 }; /* bytes, with the NUL */

enum shell_read { SHELL_READ_LINE, SHELL_READ_END, SHELL_READ_INTERRUPTED, SHELL_READ_FAILED };

struct shell_editor;

struct shell_editor *hf__shell_editor_open(struct shell *shell);
void hf__shell_editor_close(struct shell_editor *editor);

/* A line, without its end. It may have line ends inside, from the history. `pending` is what was typed
 * before it, for completion. */
enum shell_read hf__shell_editor_read(struct shell_editor *editor, const char *prompt,
                                      struct hf_str pending, struct hf_str *line);

/* What was typed, for the keys that go back in time, and for the file. */
void hf__shell_editor_remember(struct shell_editor *editor, struct hf_str text);

/* ---- completion, shell_complete.c, shell_known.c -------------------------------------------- */

enum { SHELL_OFFERS_MAX = 200 };

struct shell_offers {
    struct hf_scope *s;
    size_t start; /* in the line: the word that is completed begins there */
    struct hf_str words[SHELL_OFFERS_MAX];
    size_t len;
    bool more;          /* there are others, which did not fit */
    const char *behind; /* what follows a word that is the only one */
};

/* What the word at the end of `line` may become. */
void hf__shell_complete(struct shell *shell, struct hf_str pending, struct hf_str line,
                        struct shell_offers *offers);

/* Offer a word if it begins as the word in `typed` does, and is not there yet. */
void hf__shell_offer(struct shell_offers *offers, struct hf_str typed, struct hf_str word);

struct shell_known *hf__shell_known_new(void);
void hf__shell_known_free(struct shell_known *known);

/* An attribute of the table that was seen. */
void hf__shell_known_add(struct shell_known *known, struct hf_str table, struct hf_str name);

/* Forget all, as the database is another. */
void hf__shell_known_clear(struct shell_known *known);

/* Offers of the database. `quick` calls alone: each has a short deadline. */
void hf__shell_offer_tables(struct shell *shell, struct shell_offers *offers, struct hf_str typed);
void hf__shell_offer_indexes(struct shell *shell, struct shell_offers *offers, struct hf_str table,
                             struct hf_str typed);
void hf__shell_offer_attributes(struct shell *shell, struct shell_offers *offers,
                                struct hf_str table, struct hf_str typed);

/* Values of a part of the key. `hash`: of the range key, next to that hash key; absent: of the hash key. */
void hf__shell_offer_keys(struct shell *shell, struct shell_offers *offers, struct hf_str table,
                          struct hf_str hash, struct hf_str typed);

/* Is `name` the hash key (1) or the range key (2) of the table? 0: neither. */
int hf__shell_key_part(struct shell *shell, struct shell_offers *offers, struct hf_str table,
                       struct hf_str name);

#endif
