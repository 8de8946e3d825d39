/*
 * cli/shell/shell_input.h: what was typed or read so far, cut into statements and commands.
 *
 *     hf__shell_input_add(&input, line);
 *     while (hf__shell_input_next(&input, &unit))
 *         ... unit.kind, unit.text ...
 *
 * What is left then is the beginning of a unit that needs more lines.
 */
#ifndef HF_CLI_SHELL_SHELL_INPUT_H
#define HF_CLI_SHELL_SHELL_INPUT_H

#include <holdfast/base.h>

/* Bytes of a statement or a command with all its lines; an item as JSON has to fit. */
enum { SHELL_UNIT_MAX = 4 * 1024 * 1024 };

enum shell_unit_kind {
    SHELL_STATEMENT, /* PartiQL, without its ; */
    SHELL_COMMAND,   /* words: a command of holdfast */
    SHELL_META       /* \d and the like, with the backslash */
};

struct shell_unit {
    enum shell_unit_kind kind;
    struct hf_str text; /* in the input, until more is added; NULs do not follow */
    uint64_t line;      /* where it begins, from 1 */
};

/* What the scanner is in. */
enum shell_scan { SCAN_PLAIN, SCAN_SINGLE, SCAN_DOUBLE, SCAN_COMMENT, SCAN_BLOCK };

struct shell_input {
    char *ptr; /* what was added and not taken yet */
    size_t cap, from, to;
    size_t scanned; /* up to there the unit at `from` has no end; at least `from` */
    enum shell_scan state;
    uint64_t line; /* of the byte at `from` */
};

/* Add a line, which gets its end back. False: no memory. */
bool hf__shell_input_add(struct shell_input *input, struct hf_str line);

/* Take the next unit that is whole. False: there is none; blanks and comments are dropped. */
bool hf__shell_input_next(struct shell_input *input, struct shell_unit *unit);

/* At the end of all input: the last statement needs no ; then. False: nothing is left. *open: it is in a
 * string, a quoted name or a comment that does not end. */
bool hf__shell_input_last(struct shell_input *input, struct shell_unit *unit, bool *open);

/* Does the input end with the end of a unit? Nothing is taken. */
bool hf__shell_input_whole(const struct shell_input *input);

/* The beginning of a unit that is not whole; empty: there is none. */
struct hf_str hf__shell_input_pending(const struct shell_input *input);

/* Forget it. */
void hf__shell_input_clear(struct shell_input *input);
void hf__shell_input_free(struct shell_input *input);

/* Does the text begin with a word of PartiQL that begins statements? */
bool hf__shell_input_is_statement(struct hf_str text);

/* A copy with a NUL behind it, to be freed; NULL: no memory. */
char *hf__shell_input_copy(struct hf_str text);

/* The same word, whatever the case of its letters. */
bool hf__shell_input_same(struct hf_str text, const char *word);

/* The first word is this one, in any case. */
bool hf__shell_input_begins(struct hf_str text, const char *word);

#endif
