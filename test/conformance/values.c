/*
 * test/conformance/values.c: filling requests, comparing answers.
 *
 * Words are strings that begin with $, or objects whose only or first member does. An ordinary
 * value that looks like one cannot be written in a file; none has been missed so far.
 *
 *  (1) Filling leaves the words of answers alone, so one call serves requests and expectations.
 *  (2) A file with a word that nobody knows fails, it is not taken for text.
 */
#include "values.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4 << 20, PATH_MAX_LEN = 256 };

__attribute__((format(printf, 2, 3))) static void *refuse(struct holes *h, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(h->why, sizeof(h->why), format, args);
    va_end(args);
    return NULL;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- filling -------------------------------------------------------------------------------- */

/* "$repeat:3:ab" is "ababab". */
static json_t *fill_repeat(struct holes *h, const char *text)
{
    char *end;
    long times = strtol(text, &end, 10);
    size_t len = *end == ':' ? strlen(end + 1) : 0;
    json_t *filled;
    char *all;

    if (len == 0 || times < 0 || (size_t)times * len > TEXT_MAX)
        return refuse(h, "$repeat:%.60s is not COUNT:TEXT", text);
    all = malloc((size_t)times * len + 1);
    if (!all)
        return refuse(h, "no memory");
    for (long i = 0; i < times; i++)
        memcpy(all + (size_t)i * len, end + 1, len);
    filled = json_stringn(all, (size_t)times * len);
    free(all);
    return filled;
}

/* Each ${i} is the turn. Strings with a NUL have none: they are taken as they are. */
static json_t *fill_turn(struct holes *h, const json_t *value)
{
    const char *text = json_string_value(value);
    const char *hole = strstr(text, "${i}");
    char filled[1024];
    size_t len = 0;

    if (!hole)
        return json_stringn(text, json_string_length(value));
    for (; hole; text = hole + 4, hole = strstr(text, "${i}")) {
        len += (size_t)snprintf(filled + len, sizeof(filled) - len, "%.*s%ld", (int)(hole - text),
                                text, h->turn);
        if (len >= sizeof(filled))
            return refuse(h, "a text with ${i} is too long");
    }
    len += (size_t)snprintf(filled + len, sizeof(filled) - len, "%s", text);
    if (len >= sizeof(filled))
        return refuse(h, "a text with ${i} is too long");
    return json_string(filled);
}

static json_t *fill_string(struct holes *h, const json_t *value)
{
    static const char *const answers[] = {"$any",    "$string", "$number",
                                          "$absent", "$save:",  "$collect:"};
    const char *text = json_string_value(value);

    if (starts(text, "$repeat:"))
        return fill_repeat(h, text + strlen("$repeat:"));
    if (starts(text, "$use:")) {
        json_t *kept = json_object_get(h->saved, text + strlen("$use:"));

        return kept ? json_deep_copy(kept) : refuse(h, "%.80s was not saved", text);
    }
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if (starts(text, answers[i]))
            return json_deep_copy(value);
    if (text[0] == '$' && text[1] != '{')
        return refuse(h, "%.80s: no such word", text);
    return fill_turn(h, value);
}

/* {"$nest": 3, "in": "L", "value": v} is v in three lists; "M": in three maps, each named "m". */
static json_t *fill_nest(struct holes *h, const json_t *value)
{
    const char *in = json_string_value(json_object_get(value, "in"));
    json_t *nest = hf__holes_fill(h, json_object_get(value, "value"));

    if (!nest || !in || (strcmp(in, "L") != 0 && strcmp(in, "M") != 0)) {
        json_decref(nest);
        return refuse(h, "$nest needs a value, and in: L or M");
    }
    for (json_int_t i = json_integer_value(json_object_get(value, "$nest")); i > 0; i--)
        nest =
            *in == 'L' ? json_pack("{s:[o]}", "L", nest) : json_pack("{s:{s:o}}", "M", "m", nest);
    return nest;
}

/* {"$series": 3, "of": v}: a list of v with ${i} from 0 to 2. */
static json_t *fill_series(struct holes *h, const json_t *value)
{
    json_int_t count = json_integer_value(json_object_get(value, "$series"));
    json_t *all = json_array();
    long turn = h->turn;
    int failed = 0;

    for (h->turn = 0; h->turn < count && !failed; h->turn++)
        failed = json_array_append_new(all, hf__holes_fill(h, json_object_get(value, "of")));
    h->turn = turn;
    if (failed) {
        json_decref(all);
        return NULL;
    }
    return all;
}

/* {"$map": 3, "key": "a${i}", "value": v}: an object with three members. */
static json_t *fill_map(struct holes *h, const json_t *value)
{
    json_int_t count = json_integer_value(json_object_get(value, "$map"));
    json_t *all = json_object();
    long turn = h->turn;
    int failed = 0;

    for (h->turn = 0; h->turn < count && !failed; h->turn++) {
        json_t *key = hf__holes_fill(h, json_object_get(value, "key"));

        failed = !key || json_object_set_new(all, json_string_value(key),
                                             hf__holes_fill(h, json_object_get(value, "value")));
        json_decref(key);
    }
    h->turn = turn;
    if (failed) {
        json_decref(all);
        return NULL;
    }
    return all;
}

static size_t add_pieces(char *to, size_t at, const json_t *pieces, const char *by)
{
    size_t i;
    json_t *piece;

    json_array_foreach(pieces, i, piece)
    {
        if (json_is_array(piece)) {
            at = add_pieces(to, at, piece, by);
            continue;
        }
        if (by && i > 0)
            at += (size_t)snprintf(to + at, TEXT_MAX - at, "%s", by);
        if (at + json_string_length(piece) >= TEXT_MAX)
            return at;
        memcpy(to + at, json_string_value(piece), json_string_length(piece));
        at += json_string_length(piece);
    }
    return at;
}

/* {"$concat": ["a", "$repeat:9:b"], "by": ", "}: one text; `by` goes between members of a series.
 */
static json_t *fill_concat(struct holes *h, const json_t *value)
{
    json_t *pieces = hf__holes_fill(h, json_object_get(value, "$concat"));
    const char *by = json_string_value(json_object_get(value, "by"));
    json_t *filled = NULL;
    char *all = malloc(TEXT_MAX);

    if (pieces && all) {
        size_t len = 0, i;
        json_t *piece;

        json_array_foreach(pieces, i, piece)
        {
            json_t *one = json_is_array(piece) ? json_incref(piece) : json_pack("[O]", piece);

            len = add_pieces(all, len, one, by);
            json_decref(one);
        }
        filled = json_stringn(all, len);
    }
    free(all);
    json_decref(pieces);
    return filled;
}

static json_t *fill_object(struct holes *h, const json_t *value)
{
    static const char *const answers[] = {"$unordered", "$count", "$contains"};
    json_t *all;
    const char *key;
    json_t *member;

    if (json_object_get(value, "$nest"))
        return fill_nest(h, value);
    if (json_object_get(value, "$series"))
        return fill_series(h, value);
    if (json_object_get(value, "$map"))
        return fill_map(h, value);
    if (json_object_get(value, "$concat"))
        return fill_concat(h, value);
    all = json_object();
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        json_t *text = json_string(key), *name = NULL;
        bool word = false;

        for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
            word = word || strcmp(key, answers[i]) == 0;
        name = word ? json_incref(text) : fill_string(h, text);
        json_decref(text);
        if (!name || json_object_set_new(all, json_string_value(name), hf__holes_fill(h, member))) {
            json_decref(name);
            json_decref(all);
            return NULL;
        }
        json_decref(name);
    }
    return all;
}

json_t *hf__holes_fill(struct holes *h, const json_t *value)
{
    json_t *all, *member;
    size_t i;

    if (json_is_string(value))
        return fill_string(h, value);
    if (json_is_object(value))
        return fill_object(h, value);
    if (!json_is_array(value))
        return value ? json_deep_copy(value) : refuse(h, "a value is missing");
    all = json_array();
    json_array_foreach(value, i, member) if (json_array_append_new(all, hf__holes_fill(h, member)))
    {
        json_decref(all);
        return NULL;
    }
    return all;
}

/* ---- comparing ------------------------------------------------------------------------------ */

/* The way from the answer's top to a value, for the message when it is another than expected. */
struct place {
    const struct place *up;
    const char *key; /* NULL for a list */
    size_t index;
};

static size_t print_place(const struct place *p, char *to, size_t size)
{
    size_t len = p->up ? print_place(p->up, to, size) : 0;

    if (len >= size || !p->up)
        return len;
    len += (size_t)(p->key ? snprintf(to + len, size - len, "/%.60s", p->key)
                           : snprintf(to + len, size - len, "/%zu", p->index));
    return len < size ? len : size;
}

static bool differ(struct holes *h, const struct place *p, const char *what)
{
    char path[PATH_MAX_LEN] = "";

    print_place(p, path, sizeof(path));
    refuse(h, "at %s: %s", path[0] ? path : "/", what);
    return false;
}

static bool match(struct holes *h, const struct place *p, const json_t *e, const json_t *a);

/* Each expected element has an actual one of its own. Trying in order is enough for our files. */
static bool match_unordered(struct holes *h, const struct place *p, const json_t *e,
                            const json_t *a, bool all)
{
    size_t i, k, count = json_array_size(a);
    bool *taken = calloc(count + 1, sizeof(*taken));
    const json_t *want, *have;
    bool fits = taken && json_is_array(a) && (!all || json_array_size(e) == count);

    json_array_foreach(e, i, want)
    {
        bool found = false;

        for (k = 0; fits && k < count && !found; k++) {
            struct place at = {.up = p, .index = k};

            have = json_array_get(a, k);
            found = !taken[k] && match(h, &at, want, have);
            taken[k] = taken[k] || found;
        }
        fits = fits && found;
    }
    free(taken);
    return fits || differ(h, p, "not the same members");
}

static bool match_string(struct holes *h, const struct place *p, const json_t *e, const json_t *a)
{
    const char *text = json_string_value(e);

    if (strcmp(text, "$any") == 0)
        return true;
    if (strcmp(text, "$string") == 0)
        return json_is_string(a) || differ(h, p, "not a string");
    if (strcmp(text, "$number") == 0)
        return json_is_number(a) || differ(h, p, "not a number");
    if (starts(text, "$save:"))
        return json_object_set_new(h->saved, text + strlen("$save:"), json_deep_copy(a)) == 0;
    if (starts(text, "$collect:")) {
        const char *name = text + strlen("$collect:");
        json_t *list = json_object_get(h->saved, name);

        if (!json_is_array(a))
            return differ(h, p, "not a list");
        if (!list) {
            list = json_array();
            json_object_set_new(h->saved, name, list);
        }
        return json_array_extend(list, (json_t *)(uintptr_t)a) == 0;
    }
    return json_equal(e, a) || differ(h, p, "another value");
}

/* All pieces are in the text; or, for a list, each has a member that fits. */
static bool match_contains(struct holes *h, const struct place *p, const json_t *e, const json_t *a)
{
    size_t i;
    const json_t *piece;

    if (json_is_array(a))
        return match_unordered(h, p, e, a, false);
    json_array_foreach(
        e, i, piece) if (!json_is_string(a) ||
                         !strstr(json_string_value(a),
                                 json_string_value(piece))) return differ(h, p,
                                                                          json_string_value(piece));
    return true;
}

static bool match_members(struct holes *h, const struct place *p, const json_t *e, const json_t *a)
{
    const char *key;
    json_t *want;
    size_t expected = 0;

    if (!json_is_object(a))
        return differ(h, p, "not an object");
    json_object_foreach((json_t *)(uintptr_t)e, key, want)
    {
        struct place at = {.up = p, .key = key};
        const json_t *have = json_object_get(a, key);

        if (json_is_string(want) && strcmp(json_string_value(want), "$absent") == 0) {
            if (have)
                return differ(h, &at, "is present");
            continue;
        }
        expected++;
        if (!have)
            return differ(h, &at, "is absent");
        if (!match(h, &at, want, have))
            return false;
    }
    if (expected == json_object_size(a))
        return true;
    json_object_foreach((json_t *)(uintptr_t)a, key, want)
    {
        struct place at = {.up = p, .key = key};

        if (!json_object_get(e, key))
            return differ(h, &at, "was not expected");
    }
    return false;
}

static bool match_object(struct holes *h, const struct place *p, const json_t *e, const json_t *a)
{
    static const char *const sets[] = {"SS", "NS", "BS"};
    const json_t *word;

    if ((word = json_object_get(e, "$unordered")))
        return match_unordered(h, p, word, a, true);
    if ((word = json_object_get(e, "$contains")))
        return match_contains(h, p, word, a);
    if ((word = json_object_get(e, "$count"))) {
        size_t count = json_is_array(a)    ? json_array_size(a)
                       : json_is_object(a) ? json_object_size(a)
                                           : json_string_length(a);

        return (json_int_t)count == json_integer_value(word) || differ(h, p, "another count");
    }
    for (size_t i = 0; i < 3; i++)
        if (json_object_size(e) == 1 && json_is_array(json_object_get(e, sets[i])) &&
            json_is_array(json_object_get(a, sets[i])) && json_object_size(a) == 1)
            return match_unordered(h, p, json_object_get(e, sets[i]), json_object_get(a, sets[i]),
                                   true);
    return match_members(h, p, e, a);
}

static bool match(struct holes *h, const struct place *p, const json_t *e, const json_t *a)
{
    size_t i;
    const json_t *want;

    if (json_is_string(e))
        return match_string(h, p, e, a);
    if (json_is_object(e))
        return match_object(h, p, e, a);
    if (json_is_number(e))
        return (json_is_number(a) && json_number_value(e) == json_number_value(a)) ||
               differ(h, p, "another number");
    if (!json_is_array(e))
        return json_equal(e, a) || differ(h, p, "another value");
    if (!json_is_array(a) || json_array_size(a) != json_array_size(e))
        return differ(h, p, "another number of elements");
    json_array_foreach(e, i, want)
    {
        struct place at = {.up = p, .index = i};

        if (!match(h, &at, want, json_array_get(a, i)))
            return false;
    }
    return true;
}

bool hf__holes_match(struct holes *h, const json_t *expected, const json_t *actual)
{
    return match(h, &(struct place){.up = NULL}, expected, actual);
}

void hf__holes_take(struct holes *h, const json_t *expected, const json_t *actual)
{
    const char *key;
    json_t *want;
    size_t i;

    if (!expected || !actual)
        return;
    if (json_is_string(expected) && starts(json_string_value(expected), "$save:"))
        json_object_set_new(h->saved, json_string_value(expected) + strlen("$save:"),
                            json_deep_copy(actual));
    json_object_foreach((json_t *)(uintptr_t)expected, key, want)
        hf__holes_take(h, want, json_object_get(actual, key));
    json_array_foreach(expected, i, want) hf__holes_take(h, want, json_array_get(actual, i));
}
