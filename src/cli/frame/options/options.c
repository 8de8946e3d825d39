/*
 * cli/frame/options/options.c: from arguments to a struct, by a table. See options.h for what is understood.
 *
 * Values come in three rounds, each over the one before: the defaults of the table, the variables
 * that the table names or has a prefix for, the arguments. A value is read in one place, read_value(), wherever it is
 * from; `label` is how its error calls it: the option as it was typed, or the variable.
 *
 * What always holds:
 *
 *  (1) After OPTIONS_OK every field has a value that the table allows.
 *  (2) An error names the option as it was typed, and the value.
 *  (3) Nothing is guessed: no abbreviations, no number without a unit where there are units.
 */
#include "cli/frame/options/options.h"

#include "cli/frame/options/nearest.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { LABEL_MAX = 80, RANGE_MAX = 48 };

struct parser {
    struct hf_scope *s;
    const struct options_table *table;
    void *fields;
    struct options *options;
    const char **operands;
    size_t operands_len;
};

#define BAD(p, ...) (parser_fail((p), hf_scope_format((p)->s, __VA_ARGS__)))

static enum options_result parser_fail(struct parser *p, struct hf_str error)
{
    p->options->error = error.ptr ? error : HF_STR("out of memory");
    return OPTIONS_BAD;
}

static void *field_of(const struct parser *p, const struct option_spec *spec)
{
    assert(p->fields && p->table->len > 0);
    return (char *)p->fields + spec->offset;
}

bool hf__options_takes_value(const struct option_spec *spec)
{
    return spec->kind != OPTION_FLAG;
}

/* ---- values --------------------------------------------------------------------------------- */

/* Digits, and what follows them. */
static bool read_digits(const char *text, uint64_t *number, const char **rest)
{
    uint64_t sum = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');

        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *number = sum;
    *rest = at;
    return at > text;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit time_units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 60 * 60 * 1000}, {"d", 24 * 60 * 60 * 1000}};

static const struct unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"KiB", 1ULL << 10},
    {"MiB", 1ULL << 20},
    {"GiB", 1ULL << 30},
    {"TiB", 1ULL << 40},
    {"KB", 1000},
    {"MB", 1000 * 1000},
    {"GB", 1000 * 1000 * 1000},
    {"TB", 1000ULL * 1000 * 1000 * 1000},
};

static bool read_units(const char *text, const struct unit *units, size_t units_len,
                       uint64_t *product)
{
    uint64_t number;
    const char *rest;

    assert(units_len > 0 && product);
    if (!read_digits(text, &number, &rest))
        return false;
    for (size_t i = 0; i < units_len; i++)
        if (strcasecmp(rest, units[i].name) == 0) {
            *product = number * units[i].factor;
            return number <= UINT64_MAX / units[i].factor;
        }
    return false;
}

bool hf__options_number(const char *text, uint64_t *number)
{
    const char *rest;

    return read_digits(text, number, &rest) && *rest == '\0';
}

bool hf__options_duration(const char *text, uint64_t *ms)
{
    if (strcmp(text, "0") == 0) {
        *ms = 0;
        return true;
    }
    return read_units(text, time_units, sizeof(time_units) / sizeof(time_units[0]), ms);
}

bool hf__options_size(const char *text, uint64_t *bytes)
{
    return read_units(text, size_units, sizeof(size_units) / sizeof(size_units[0]), bytes);
}

/* The number with the largest unit that loses nothing. */
static void write_units(char room[RANGE_MAX], uint64_t number, const struct unit *units,
                        size_t units_len)
{
    const struct unit *best = &units[0];

    assert(units_len > 0 && units[0].factor == 1);
    for (size_t i = 0; i < units_len; i++)
        if (number % units[i].factor == 0 && number >= units[i].factor &&
            units[i].factor > best->factor)
            best = &units[i];
    assert(number % best->factor == 0); /* it loses nothing */
    snprintf(room, RANGE_MAX, "%llu%s", (unsigned long long)(number / best->factor), best->name);
}

static enum options_result read_number(struct parser *p, const struct option_spec *spec,
                                       const char *label, const char *text)
{
    uint64_t *number = field_of(p, spec);
    const char *what = "a number";
    char low[RANGE_MAX], high[RANGE_MAX];
    bool fine;

    assert(spec->kind == OPTION_NUMBER || spec->kind == OPTION_DURATION ||
           spec->kind == OPTION_SIZE);
    assert(spec->min <= spec->max);
    if (spec->kind == OPTION_DURATION) {
        what = "a time such as 300ms, 5s, 2h or 7d";
        fine = hf__options_duration(text, number);
        write_units(low, spec->min, time_units, sizeof(time_units) / sizeof(time_units[0]));
        write_units(high, spec->max, time_units, sizeof(time_units) / sizeof(time_units[0]));
    } else if (spec->kind == OPTION_SIZE) {
        what = "a size such as 512KiB or 32MiB";
        fine = hf__options_size(text, number);
        write_units(low, spec->min, size_units, 6);
        write_units(high, spec->max, size_units, 6);
    } else {
        fine = hf__options_number(text, number);
        snprintf(low, sizeof(low), "%llu", (unsigned long long)spec->min);
        snprintf(high, sizeof(high), "%llu", (unsigned long long)spec->max);
    }
    if (!fine)
        return BAD(p, "%s: '%s' is not %s", label, text, what);
    if (*number < spec->min || *number > spec->max)
        return BAD(p, "%s: '%s' is out of range: use %s to %s", label, text, low, high);
    return OPTIONS_OK;
}

static enum options_result read_choice(struct parser *p, const struct option_spec *spec,
                                       const char *label, const char *text)
{
    unsigned *choice = field_of(p, spec);
    size_t len = strlen(text);
    const char *word = spec->choices;

    assert(spec->kind == OPTION_CHOICE && spec->choices);
    for (unsigned i = 0; *word; i++) {
        size_t word_len = strcspn(word, " ");

        if (word_len == len && memcmp(word, text, len) == 0) {
            *choice = i;
            return OPTIONS_OK;
        }
        word += word_len;
        word += *word == ' ';
    }
    return BAD(p, "%s: '%s' is invalid: use one of %s", label, text, spec->choices);
}

static enum options_result read_list(struct parser *p, const struct option_spec *spec,
                                     struct hf_str text)
{
    struct option_list *list = field_of(p, spec);
    struct hf_str *longer = hf_scope_alloc(p->s, (list->len + 1) * sizeof(*longer));

    assert(spec->kind == OPTION_LIST && text.len);
    if (!longer)
        return parser_fail(p, (struct hf_str){0});
    if (list->len)
        memcpy(longer, list->values, list->len * sizeof(*longer));
    longer[list->len] = text;
    list->values = longer;
    list->len++;
    return OPTIONS_OK;
}

static enum options_result read_value(struct parser *p, const struct option_spec *spec,
                                      const char *label, const char *text)
{
    struct hf_str copy;

    assert(spec->kind != OPTION_FLAG);
    switch (spec->kind) {
    case OPTION_NUMBER:
    case OPTION_DURATION:
    case OPTION_SIZE:
        return read_number(p, spec, label, text);
    case OPTION_CHOICE:
        return read_choice(p, spec, label, text);
    case OPTION_TEXT:
    case OPTION_LIST:
    case OPTION_FLAG:
        break;
    }
    if (*text == '\0')
        return BAD(p, "%s: the value is empty", label);
    copy = hf_scope_copy(p->s, hf_str_from(text));
    if (!copy.ptr)
        return parser_fail(p, copy);
    if (spec->kind == OPTION_LIST)
        return read_list(p, spec, copy);
    *(struct hf_str *)field_of(p, spec) = copy;
    return OPTIONS_OK;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* Is `arg`, up to its end or a '=', that name? Then *value is behind the '=', or NULL. */
static bool is_name(const char *arg, const char *name, const char **value)
{
    size_t len = name ? strlen(name) : 0;

    if (len == 0 || strncmp(arg, name, len) != 0 || (arg[len] != '\0' && arg[len] != '='))
        return false;
    *value = arg[len] == '=' ? arg + len + 1 : NULL;
    return true;
}

/* The option that `arg` names by a whole word or a letter alone; NULL: none does. */
const struct option_spec *hf__options_find(const struct options_table *table, const char *arg,
                                           const char **value, bool *negated)
{
    *negated = false;
    *value = NULL;
    if (arg[0] != '-' || arg[1] == '\0')
        return NULL;
    for (size_t i = 0; i < table->len; i++) {
        const struct option_spec *spec = &table->specs[i];
        char letter[2] = {spec->letter, '\0'};

        if (arg[1] != '-') {
            if (is_name(arg + 1, spec->local, value) || is_name(arg + 1, letter, value))
                return spec;
            continue;
        }
        if (is_name(arg + 2, spec->name, value))
            return spec;
        if (spec->kind == OPTION_FLAG && strncmp(arg + 2, "no-", 3) == 0 &&
            is_name(arg + 5, spec->name, value)) {
            *negated = true;
            return spec;
        }
    }
    return NULL;
}

static bool is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-help") == 0 || strcmp(arg, "-h") == 0;
}

static const struct option_spec *by_letter(const struct options_table *table, char letter)
{
    for (size_t i = 0; i < table->len; i++)
        if (table->specs[i].letter == letter)
            return &table->specs[i];
    return NULL;
}

static void offer_names(struct parser *p, struct nearest *nearest,
                        void (*offer)(struct nearest *nearest, const char *candidate))
{
    for (size_t i = 0; i < p->table->len; i++) {
        const struct option_spec *spec = &p->table->specs[i];
        struct hf_str name = {0};

        if (spec->local) {
            name = hf_scope_format(p->s, "-%s", spec->local);
            if (name.ptr)
                offer(nearest, name.ptr);
        }
        if (spec->name) {
            name = hf_scope_format(p->s, "--%s", spec->name);
            if (name.ptr)
                offer(nearest, name.ptr);
        }
    }
}

static enum options_result unknown_option(struct parser *p, const char *arg)
{
    struct hf_str typed = hf_scope_copy(p->s, hf_str_of(arg, strcspn(arg, "=")));
    struct nearest nearest = {.word = typed.ptr};

    assert(arg[0] == '-' && arg[1]);
    if (!typed.ptr)
        return parser_fail(p, typed);
    hf__nearest_offer(&nearest, "--help");
    offer_names(p, &nearest, hf__nearest_offer);
    if (!nearest.best) /* --nmae, of --namespace */
        offer_names(p, &nearest, hf__nearest_offer_start);
    if (!nearest.best) /* --type, of --only-type */
        offer_names(p, &nearest, hf__nearest_offer_last);
    if (!nearest.best && strncmp(arg, "--no-", 5) == 0) { /* --no-port: it is no flag */
        struct hf_str rest = hf_scope_format(p->s, "--%s", typed.ptr + 5);

        nearest.word = rest.ptr ? rest.ptr : typed.ptr;
        offer_names(p, &nearest, hf__nearest_offer);
    }
    if (nearest.best)
        return BAD(p, "unknown option '%s'; did you mean %s?", typed.ptr, nearest.best);
    return BAD(p, "unknown option '%s'", typed.ptr);
}

/* ---- arguments ------------------------------------------------------------------------------ */

static void option_mark_source(struct parser *p, const struct option_spec *spec,
                               enum option_source source)
{
    assert(spec >= p->table->specs && spec < p->table->specs + p->table->len);
    assert(source != OPTION_DEFAULT);
    p->options->source[spec - p->table->specs] = (uint8_t)source;
}

bool hf__options_is_json(const struct options_table *table, const char *arg)
{
    const char *value;
    bool negated;

    return strcmp(arg, "--json") == 0 && !hf__options_find(table, arg, &value, &negated);
}

/* Is the argument an option, and so no value of the one before it? */
static bool is_option(const struct parser *p, const char *arg)
{
    const char *value;
    bool negated;

    return strcmp(arg, "--") == 0 || strcmp(arg, "--json") == 0 ||
           hf__options_find(p->table, arg, &value, &negated) != NULL;
}

/* An option called `label` with the value behind its '=' (or NULL), or in the next argument. */
static enum options_result option_take(struct parser *p, const struct option_spec *spec,
                                       const char *label, const char *value, bool negated,
                                       const char *next, bool *used_next)
{
    assert(label[0] == '-');
    /* The arguments are a list of their own. */
    if (spec->kind == OPTION_LIST &&
        p->options->source[spec - p->table->specs] == OPTION_ENVIRONMENT)
        *(struct option_list *)field_of(p, spec) = (struct option_list){.len = 0};
    option_mark_source(p, spec, OPTION_GIVEN);
    if (spec->kind == OPTION_FLAG) {
        if (value)
            return BAD(p, "%s takes no value, but got '%s'", label, value);
        *(bool *)field_of(p, spec) = !negated;
        return OPTIONS_OK;
    }
    if (!value) {
        if (!next || is_option(p, next))
            return spec->choices ? BAD(p, "%s needs a value: one of %s", label, spec->choices)
                                 : BAD(p, "%s needs a value%s%s", label, spec->value ? ": " : "",
                                       spec->value ? spec->value : "");
        value = next;
        *used_next = true;
    }
    return read_value(p, spec, label, value);
}

/* "-vp8000": letters of flags, and at the end perhaps one with its value. */
static enum options_result take_letters(struct parser *p, const char *arg, const char *next,
                                        bool *used_next)
{
    struct nearest nearest = {.word = arg + 1};

    assert(arg[0] == '-' && arg[1] != '-' && arg[1]);
    /* A slip in one of DynamoDB Local's names is no heap of letters. */
    for (size_t i = 0; i < p->table->len; i++)
        if (p->table->specs[i].local)
            hf__nearest_offer(&nearest, p->table->specs[i].local);
    if (nearest.best || !by_letter(p->table, arg[1]))
        return unknown_option(p, arg);
    for (const char *at = arg + 1; *at; at++) {
        const struct option_spec *spec = by_letter(p->table, *at);
        char label[3] = {'-', *at, '\0'};
        enum options_result result;

        if (!spec)
            return unknown_option(p, arg);
        if (hf__options_takes_value(spec) && at[1])
            return option_take(p, spec, label, at + 1, false, NULL, used_next);
        result = option_take(p, spec, label, NULL, false, at[1] ? NULL : next, used_next);
        if (result != OPTIONS_OK)
            return result;
    }
    return OPTIONS_OK;
}

static enum options_result take_argument(struct parser *p, const char *arg, const char *next,
                                         bool *used_next)
{
    const char *value;
    bool negated;
    const struct option_spec *spec = hf__options_find(p->table, arg, &value, &negated);
    char label[LABEL_MAX];

    /* behind an operand it may be meant for the program that is run */
    if (!p->operands_len && hf__options_is_json(p->table, arg))
        return OPTIONS_OK;
    if (!spec && arg[1] != '-')
        return take_letters(p, arg, next, used_next);
    if (!spec)
        return unknown_option(p, arg);
    snprintf(label, sizeof(label), "%.*s", (int)strcspn(arg, "="), arg);
    return option_take(p, spec, label, value, negated, next, used_next);
}

/* "-5" is a number where operands are accepted: no option begins with a digit. */
static bool is_number(const struct parser *p, const char *arg)
{
    return p->table->operands && arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9' &&
           !by_letter(p->table, arg[1]);
}

static enum options_result take_arguments(struct parser *p, size_t len, const char *const *args)
{
    bool only_operands = false;

    for (size_t i = 0; i < len; i++) {
        const char *next = i + 1 < len ? args[i + 1] : NULL;
        bool used_next = false;
        enum options_result result;

        if (!only_operands && strcmp(args[i], "--") == 0) {
            only_operands = true;
            continue;
        }
        if (only_operands || args[i][0] != '-' || args[i][1] == '\0' || is_number(p, args[i])) {
            if (!p->table->operands)
                return BAD(p, "unexpected argument '%s'", args[i]);
            assert(p->operands_len < len);
            p->operands[p->operands_len++] = args[i];
            continue;
        }
        result = take_argument(p, args[i], next, &used_next);
        if (result != OPTIONS_OK)
            return result;
        i += used_next;
    }
    return OPTIONS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* The variable of the table's prefix for this option; absent: there is none. */
static struct hf_str prefixed_name(struct hf_scope *s, const struct options_table *table,
                                   const struct option_spec *spec)
{
    char name[LABEL_MAX];
    size_t len = 0;

    if (!table->env_prefix || !spec->name)
        return (struct hf_str){0};
    for (; spec->name[len] && len < sizeof(name); len++)
        name[len] = spec->name[len] == '-' ? '_' : (char)toupper((unsigned char)spec->name[len]);
    return hf_scope_format(s, "%s%.*s", table->env_prefix, (int)len, name);
}

static bool word_is(const char *word, const char *choices)
{
    size_t len = strlen(word);
    const char *at = choices;

    while (len && (at = strcasestr(at, word))) {
        if ((at == choices || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
            return true;
        at += len;
    }
    return false;
}

/* A value of a variable with the prefix: also of flags and lists. */
static enum options_result read_variable(struct parser *p, const struct option_spec *spec,
                                         const char *name, const char *text)
{
    if (spec->kind == OPTION_FLAG) {
        bool yes = word_is(text, "1 true yes on");

        if (!yes && !word_is(text, "0 false no off"))
            return BAD(p, "%s: '%s' is neither 1 nor 0", name, text);
        *(bool *)field_of(p, spec) = yes;
        return OPTIONS_OK;
    }
    if (spec->kind != OPTION_LIST)
        return read_value(p, spec, name, text);
    while (*text) {
        size_t len = strcspn(text, ",");
        struct hf_str word = hf_scope_copy(p->s, hf_str_of(text, len));
        enum options_result result;

        if (!word.ptr)
            return parser_fail(p, word);
        result = read_value(p, spec, name, word.ptr);
        if (result != OPTIONS_OK)
            return result;
        text += len;
        text += *text == ',';
    }
    return OPTIONS_OK;
}

static enum options_result take_variable(struct parser *p, const struct option_spec *spec,
                                         options_env_fn *env)
{
    struct hf_str prefixed = prefixed_name(p->s, p->table, spec);
    const char *value = prefixed.ptr && env ? env(prefixed.ptr) : NULL;

    if (value && *value) {
        option_mark_source(p, spec, OPTION_ENVIRONMENT);
        return read_variable(p, spec, prefixed.ptr, value);
    }
    value = spec->env && env ? env(spec->env) : NULL;
    if (!value || !*value)
        return OPTIONS_OK;
    option_mark_source(p, spec, OPTION_ENVIRONMENT);
    return read_value(p, spec, spec->env, value);
}

static enum options_result take_defaults(struct parser *p, options_env_fn *env)
{
    for (size_t i = 0; i < p->table->len; i++) {
        const struct option_spec *spec = &p->table->specs[i];
        enum options_result result = OPTIONS_OK;

        if (spec->fallback) {
            result = read_value(p, spec, "default", spec->fallback);
            assert(result == OPTIONS_OK ||
                   hf_str_equal(p->options->error, HF_STR("out of memory")));
        }
        if (result == OPTIONS_OK)
            result = take_variable(p, spec, env);
        if (result != OPTIONS_OK)
            return result;
    }
    return OPTIONS_OK;
}

/* A table is ours: what it says has to make sense before the first argument is read. */
static void options_table_check(const struct options_table *table)
{
    assert(table->name && table->about && table->len <= OPTIONS_MAX);
    for (size_t i = 0; i < table->len; i++) {
        const struct option_spec *spec = &table->specs[i];

        assert(spec->kind >= OPTION_FLAG && spec->kind <= OPTION_SIZE);
        assert(spec->name || spec->local);
        assert((spec->kind == OPTION_CHOICE) == (spec->choices != NULL));
        assert(spec->min <= spec->max);
        assert(!spec->env || (spec->kind != OPTION_FLAG && spec->kind != OPTION_LIST));
        assert(!spec->letter || by_letter(table, spec->letter) == spec);
    }
}

enum options_result hf__options_parse(struct hf_scope *s, const struct options_table *table,
                                      size_t args_len, const char *const *args, options_env_fn *env,
                                      void *fields, struct options *options)
{
    struct parser p = {.s = s, .table = table, .fields = fields, .options = options};
    enum options_result result;

    options_table_check(table);
    *options = (struct options){0};
    /* Help is given even when a default from outside is wrong. */
    for (size_t i = 0; i < args_len && strcmp(args[i], "--") != 0; i++)
        if (is_help(args[i]))
            return OPTIONS_HELP;
    p.operands = hf_scope_alloc(s, (args_len + 1) * sizeof(*p.operands));
    if (!p.operands)
        return parser_fail(&p, (struct hf_str){0});
    result = take_defaults(&p, env);
    if (result == OPTIONS_OK)
        result = take_arguments(&p, args_len, args);
    options->operands = p.operands;
    options->operands_len = p.operands_len;
    return result;
}

enum option_source hf__options_source(const struct options_table *table,
                                      const struct options *options, const char *name)
{
    size_t i = 0;

    while (i < table->len) {
        const struct option_spec *spec = &table->specs[i];

        if (strcmp(spec->name ? spec->name : spec->local, name) == 0)
            break;
        i++;
    }
    assert(i < table->len);
    return (enum option_source)options->source[i];
}
