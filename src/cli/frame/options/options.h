/*
 * cli/frame/options/options.h: the options of a command, as a table.
 *
 * A command says in a table what it accepts, and has one struct with a field per option. From the
 * table come the parser, the help and the completion:
 *
 *     struct settings {
 *         uint64_t port;
 *         bool quiet;
 *     };
 *     static const struct option_spec specs[] = {
 *         OPT_NUMBER("port", port, 0, 65535, "Port to listen on.", .letter = 'p', .fallback = "8000"),
 *         OPT_FLAG("quiet", quiet, "Say less."),
 *     };
 *
 * On the command line:
 *
 *     --port 8000   --port=8000   -p 8000   -p8000   --quiet   --no-quiet   -h, --help, -help
 *     -inMemory     a name that DynamoDB Local has, with one dash
 *     --            what follows is no option
 *     -5            a number is none either, where operands are accepted
 *
 * If an option is given twice, the last value is used; lists collect all values. An argument that is
 * an option is never taken as the value of another: write --name=-x.
 */
#ifndef HF_CLI_FRAME_OPTIONS_H
#define HF_CLI_FRAME_OPTIONS_H

#include <holdfast/scope.h>

#include <stdio.h>

enum { OPTIONS_MAX = 64 }; /* in one table */
enum { OPTION_DAY_MS = 24 * 60 * 60 * 1000, OPTION_WEEK_MS = 7 * OPTION_DAY_MS };

/* The kinds of options, and the types of their fields. */
enum option_kind {
    OPTION_FLAG = 1, /* bool; --no-NAME makes it false */
    OPTION_TEXT,     /* struct hf_str, followed by a NUL; absent when not given; never empty */
    OPTION_LIST,     /* struct option_list */
    OPTION_CHOICE,   /* unsigned: which of `choices`, from 0 */
    OPTION_NUMBER,   /* uint64_t */
    OPTION_DURATION, /* uint64_t, milliseconds: 300ms 5s 2m 1h; 0 needs no unit */
    OPTION_SIZE      /* uint64_t, bytes: 512 32KiB 8MiB 1GiB, and KB MB GB by thousands */
};

struct option_list {
    const struct hf_str *values;
    size_t len;
};

struct option_spec {
    enum option_kind kind;
    char letter;          /* 'p' for -p; 0: none */
    const char *heading;  /* of the group in the help that starts here */
    const char *name;     /* "port" for --port; NULL when only DynamoDB Local has it */
    const char *local;    /* DynamoDB Local's name, for -port; NULL: none */
    const char *value;    /* what the help calls the value; FILE and DIR complete as such */
    const char *text;     /* a sentence or two */
    const char *fallback; /* the default, as it would be written; NULL: absent, false, 0 */
    const char *env;      /* a variable that gives a default; none for flags and lists */
    const char *choices;  /* words with a blank between them */
    uint64_t min;         /* of numbers, durations (ms) and sizes (bytes) */
    uint64_t max;
    size_t offset; /* of its field */
};

/*
 * An option in short: its name, what else its kind needs, its field, its text; then other members of the
 * spec, such as .letter or .fallback. The field is one of OPTIONS_OF, which a file with
 * another struct defines again. Macros that several commands share
 * have a struct of their own, and use the forms that end with _IN.
 */
#define OPTIONS_OF struct settings

#define OPT_FLAG(name, field, ...) OPT_FLAG_IN(OPTIONS_OF, name, field, __VA_ARGS__)
#define OPT_TEXT(name, value, field, ...) OPT_TEXT_IN(OPTIONS_OF, name, value, field, __VA_ARGS__)
#define OPT_LIST(name, value, field, ...) OPT_LIST_IN(OPTIONS_OF, name, value, field, __VA_ARGS__)
#define OPT_CHOICE(name, words, field, ...)                                                        \
    OPT_CHOICE_IN(OPTIONS_OF, name, words, field, __VA_ARGS__)
#define OPT_NUMBER(name, field, min, max, ...)                                                     \
    OPT_NUMBER_IN(OPTIONS_OF, name, field, min, max, __VA_ARGS__)
#define OPT_TIME(name, field, min_ms, max_ms, ...)                                                 \
    OPT_TIME_IN(OPTIONS_OF, name, field, min_ms, max_ms, __VA_ARGS__)
#define OPT_SIZE(name, field, min_bytes, max_bytes, ...)                                           \
    OPT_SIZE_IN(OPTIONS_OF, name, field, min_bytes, max_bytes, __VA_ARGS__)

#define OPT_FLAG_IN(type, name_, field, ...)                                                       \
    {                                                                                              \
        .kind = OPTION_FLAG, .name = name_, .offset = offsetof(type, field), .text = __VA_ARGS__   \
    }
#define OPT_TEXT_IN(type, ...) OPT_VALUE_IN(OPTION_TEXT, type, __VA_ARGS__)
#define OPT_LIST_IN(type, ...) OPT_VALUE_IN(OPTION_LIST, type, __VA_ARGS__)
#define OPT_VALUE_IN(kind_, type, name_, value_, field, ...)                                       \
    {                                                                                              \
        .kind = kind_, .name = name_, .value = value_, .offset = offsetof(type, field),            \
        .text = __VA_ARGS__                                                                        \
    }
#define OPT_CHOICE_IN(type, name_, words, field, ...)                                              \
    {                                                                                              \
        .kind = OPTION_CHOICE, .name = name_, .choices = words, .offset = offsetof(type, field),   \
        .text = __VA_ARGS__                                                                        \
    }
#define OPT_NUMBER_IN(type, ...) OPT_RANGE_IN(OPTION_NUMBER, "NUMBER", type, __VA_ARGS__)
#define OPT_TIME_IN(type, ...) OPT_RANGE_IN(OPTION_DURATION, "TIME", type, __VA_ARGS__)
#define OPT_SIZE_IN(type, ...) OPT_RANGE_IN(OPTION_SIZE, "SIZE", type, __VA_ARGS__)
#define OPT_RANGE_IN(kind_, value_, type, name_, field, min_, max_, ...)                           \
    {                                                                                              \
        .kind = kind_, .name = name_, .value = value_, .min = min_, .max = max_,                   \
        .offset = offsetof(type, field), .text = __VA_ARGS__                                       \
    }

struct option_example {
    const char *command;
    const char *text;
};

struct options_table {
    const char *name;     /* "serve": what follows "holdfast" */
    const char *operands; /* "FILE..." in the usage; NULL: none are accepted */
    const char *about;    /* a text as in text.h */
    const struct option_spec *specs;
    size_t len;
    const struct option_example *examples;
    size_t examples_len;
    const char *notes; /* a text behind the examples; NULL: none */
    /* With "HOLDFAST_SERVE_", the variable HOLDFAST_SERVE_DB_PATH is for --db-path, and so on for every option
     * with a name; it beats `env`. Flags are 1, true, yes, on or 0, false, no, off; lists have commas. NULL: none. */
    const char *env_prefix;
};

enum option_source { OPTION_DEFAULT, OPTION_ENVIRONMENT, OPTION_GIVEN };
enum options_result { OPTIONS_OK, OPTIONS_HELP, OPTIONS_BAD };

struct options {
    uint8_t source[OPTIONS_MAX]; /* enum option_source, by place in the table */
    const char *const *operands; /* in the scope */
    size_t operands_len;
    struct hf_str error; /* of OPTIONS_BAD: one sentence that names option and value */
};

/* Like getenv(); NULL: there are no variables. */
typedef const char *options_env_fn(const char *name);

/*
 * Read `args`, which has neither the program's nor the command's name in it, into the struct at
 * `fields`. Texts live in the scope.
 */
enum options_result hf__options_parse(struct hf_scope *s, const struct options_table *table,
                                      size_t args_len, const char *const *args, options_env_fn *env,
                                      void *fields, struct options *options);

/* Where the value of --NAME (or of DynamoDB Local's -NAME) came from. */
enum option_source hf__options_source(const struct options_table *table,
                                      const struct options *options, const char *name);

/* The help, at most `width` columns wide; `bold` headings are for terminals. */
void hf__options_help(FILE *out, const struct options_table *table, size_t width, bool bold);

/*
 * What the last of `words` may become, a line each; ":file" and ":dir" ask the shell for its files, and
 * ":table" is the name of a table.
 * `words` may be what hf__options_parse() would get so far.
 */
void hf__options_complete(FILE *out, const struct options_table *table, size_t words_len,
                          const char *const *words);

/* Is it --json, of a command that has no such option? Then it says how errors are shown, and nothing else. */
bool hf__options_is_json(const struct options_table *table, const char *arg);

/* Parts of the parser, for the help and the completion: */
bool hf__options_takes_value(const struct option_spec *spec);
const struct option_spec *hf__options_find(const struct options_table *table, const char *arg,
                                           const char **value, bool *negated);

/* The values of units, for tests and other files. False when it is no such value. */
bool hf__options_number(const char *text, uint64_t *number);
bool hf__options_duration(const char *text, uint64_t *ms);
bool hf__options_size(const char *text, uint64_t *bytes);

#endif
