/*
 * db/table.c: tables that are waited for, made and compared; their names.
 *
 * hf_table_ensure() works in rounds. A round looks at the table and does at most one thing: create
 * it, switch on what is off, add one index. Then the next round looks again, at once after
 * something was done, otherwise after a delay that grows. What always holds:
 *
 *  (1) What a round does follows from what it saw, never from what an earlier round did. So an
 *      answer that was lost, or another program that does the same, only means another round.
 *  (2) A table that differs in what cannot be repaired is not touched.
 *  (3) The delay is capped, and the rounds end with the time limit or with the scope.
 *  (4) A round gives its memory back, so waiting long takes no more of it than waiting short.
 *  (5) A service that never answered is not waited for: the URL may be wrong. How often it is tried is up to the
 *      database, see retry.h. Once something answered, a connection that breaks is waited out.
 */
#include <holdfast/pages.h>
#include <holdfast/table.h>

#include "db/db.h"
#include "db/table_diff.h"

enum {
    TIMEOUT_MS = 5 * 60 * 1000,
    DELAY_MS = 50,
    DELAY_MAX_MS = 2000,
    REFUSALS_MAX = 5, /* of one repair: others may be at it, and what we see may be old */
    NAME_MIN = 3,
    NAME_MAX = 255
};

static const char *const status_names[] = {"in an unknown state", "CREATING", "UPDATING",
                                           "DELETING", "ACTIVE"};

static const char *status_name(enum hf_table_status status)
{
    return (unsigned)status < ARRAY_LEN(status_names) ? status_names[(unsigned)status]
                                                      : status_names[0];
}

/* ---- looking again and again ---------------------------------------------------------------- */

/* How a round ends that did not fail. */
enum outcome { DONE, AGAIN, LATER };

struct wait {
    struct hf_db *db;
    struct hf_str table;
    struct hf_str seen; /* with LATER: how the table is, such as "is CREATING" */
    bool answered;      /* (5) */
    int64_t end_us;
    uint32_t timeout_ms;
    uint32_t delay_ms;
    uint32_t max_delay_ms;
};

static struct wait wait_of(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                           const struct hf_table_wait_options *options)
{
    struct hf_table_wait_options o = {.size = sizeof(o)};
    struct wait w = {.db = db, .table = table};

    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    w.timeout_ms = o.timeout_ms ? o.timeout_ms : TIMEOUT_MS;
    w.max_delay_ms = o.max_delay_ms ? o.max_delay_ms : DELAY_MAX_MS;
    w.delay_ms = o.delay_ms ? o.delay_ms : DELAY_MS;
    if (w.delay_ms > w.max_delay_ms)
        w.delay_ms = w.max_delay_ms;
    w.end_us = hf__env_elapsed_us(hf__scope_env(s)) + (int64_t)w.timeout_ms * 1000;
    return w;
}

static enum hf_status fail_late(struct hf_scope *s, const struct wait *w, const char *limit)
{
    return hf__fail(s, HF_TIMEOUT, "table %.*s %.*s; the %s has passed", HF_FMT(w->table),
                    HF_FMT(w->seen), limit);
}

static enum hf_status pause_for(struct hf_scope *s, struct wait *w)
{
    int64_t left_us = w->end_us - hf__env_elapsed_us(hf__scope_env(s));
    int64_t delay_us = (int64_t)w->delay_ms * 1000;
    enum hf_status status;

    if (left_us <= 0)
        return fail_late(s, w, "time limit");
    /* The last look comes when the time is up. */
    if (delay_us > left_us)
        delay_us = left_us;
    status = hf_scope_sleep_ms(s, (uint32_t)((delay_us + 999) / 1000));
    if (status == HF_TIMEOUT)
        return fail_late(s, w, "deadline");
    w->delay_ms = w->delay_ms > w->max_delay_ms / 2 ? w->max_delay_ms : w->delay_ms * 2;
    return status;
}

/* A failure that may pass ends the round only. Lack of memory is for the caller to know. */
static enum hf_status round_failed(struct hf_scope *s, struct wait *w, enum hf_status status,
                                   enum outcome *outcome)
{
    const struct hf_error *error = hf_scope_error(s);

    if (status == HF_NOMEM || !(error->may_retry || error->may_have_happened))
        return status;
    if (status == HF_IO && !w->answered)
        return status;
    w->answered = true;
    w->seen = hf_scope_format(s, "could not be read: %.*s", HF_FMT(error->message));
    *outcome = LATER;
    return w->seen.ptr ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status round_again(struct hf_scope *s, struct wait *w, enum outcome *outcome,
                                  const char *format, ...) HF_PRINTF(4, 5);
static enum hf_status round_again(struct hf_scope *s, struct wait *w, enum outcome *outcome,
                                  const char *format, ...)
{
    struct hf__buf buf = {.scope = s};
    va_list args;

    va_start(args, format);
    hf__buf_vformat(&buf, format, args);
    va_end(args);
    w->seen = hf_str_of((const char *)buf.ptr, buf.len);
    *outcome = LATER;
    return buf.failed ? hf__fail_nomem(s) : HF_OK;
}

typedef enum hf_status round_fn(struct hf_scope *s, struct wait *w, void *user,
                                enum outcome *outcome);

static enum hf_status rounds_run(struct hf_scope *s, struct wait *w, round_fn *round, void *user)
{
    enum outcome outcome = AGAIN;

    while (outcome != DONE) {
        struct hf__mark mark = hf__scope_mark(s);

        TRY(hf__scope_alive(s));
        TRY(round(s, w, user, &outcome));
        if (outcome == LATER)
            TRY(pause_for(s, w));
        hf__scope_rewind(s, mark); /* (4) */
    }
    hf__scope_error_clear(s);
    return HF_OK;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static const struct hf_index_description *idle_index(const struct hf_table_description *table)
{
    for (size_t i = 0; i < table->global_indexes_len; i++)
        if (table->global_indexes[i].status != HF_TABLE_ACTIVE)
            return &table->global_indexes[i];
    return NULL;
}

static enum hf_status wait_round(struct hf_scope *s, struct wait *w, void *user,
                                 enum outcome *outcome)
{
    enum hf_table_until until = *(const enum hf_table_until *)user;
    const struct hf_describe_table request = {.table = w->table};
    struct hf_describe_table_result result;
    enum hf_status status = hf_describe_table(s, w->db, &request, &result);
    const struct hf_index_description *idle;

    *outcome = DONE;
    w->answered = w->answered || status != HF_IO;
    if (status == HF_NOT_FOUND)
        return until == HF_TABLE_UNTIL_GONE ? HF_OK : round_again(s, w, outcome, "does not exist");
    if (status != HF_OK)
        return round_failed(s, w, status, outcome);
    if (until == HF_TABLE_UNTIL_GONE || result.table->status != HF_TABLE_ACTIVE)
        return round_again(s, w, outcome, "is %s", status_name(result.table->status));
    idle = until == HF_TABLE_UNTIL_INDEXES_ACTIVE ? idle_index(result.table) : NULL;
    if (idle)
        return round_again(s, w, outcome, "is ACTIVE, its index %.*s is %s", HF_FMT(idle->name),
                           status_name(idle->status));
    return HF_OK;
}

enum hf_status hf_table_wait(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                             enum hf_table_until until, const struct hf_table_wait_options *options)
{
    struct wait w = wait_of(s, db, table, options);

    hf__scope_error_clear(s);
    if (until < HF_TABLE_UNTIL_ACTIVE || until > HF_TABLE_UNTIL_GONE)
        return hf__fail(s, HF_INVALID, "hf_table_wait(): unknown state %d", (int)until);
    return rounds_run(s, &w, wait_round, &until);
}

/* ---- ensuring ------------------------------------------------------------------------------- */

#define ISOLATION_TAG "system:write_isolation"

struct ensure {
    const struct hf_create_table *spec;
    struct hf_table_options options;
    bool asked;              /* whether `scylla` is known */
    bool scylla;             /* it has no transactions, so it is ScyllaDB */
    struct hf_str isolation; /* what the tag should be */
    struct hf_str refused;   /* the repair that was refused last, by a word for it */
    unsigned refusals;       /* how often in a row */
};

/* What was seen of the table beside its description. */
struct look {
    const struct hf_table_description *table;
    struct hf_ttl_description ttl;
    struct hf_str isolation; /* the tag; absent when there is none */
    struct table_diff diff;
    bool ttl_off;
    bool isolation_off;
};

static struct hf_str tag_of(const struct hf_tag *tags, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(tags[i].key, HF_STR(ISOLATION_TAG)))
            return tags[i].value;
    return hf_str_of(NULL, 0);
}

static enum hf_status table_create(struct hf_scope *s, struct wait *w, const struct ensure *e,
                                   enum outcome *outcome)
{
    struct hf_create_table request = *e->spec;
    struct hf_tag *tags = hf__scope_array(s, request.tags_len + 1, sizeof(*tags));
    enum hf_status status;

    if (!tags)
        return hf__fail_nomem(s);
    if (!request.billing && !request.throughput)
        request.billing = HF_BILLING_PAY_PER_REQUEST;
    if (e->scylla && !e->options.any_isolation && !tag_of(request.tags, request.tags_len).ptr) {
        if (request.tags_len)
            memcpy(tags, request.tags, request.tags_len * sizeof(*tags));
        tags[request.tags_len++] =
            (struct hf_tag){.key = HF_STR(ISOLATION_TAG), .value = e->isolation};
        request.tags = tags;
    }
    status = hf_create_table(s, w->db, &request, NULL);
    *outcome = AGAIN;
    if (status == HF_IN_USE)
        return round_again(s, w, outcome, "is being created by others");
    return status == HF_OK ? HF_OK : round_failed(s, w, status, outcome);
}

/* The tag of the table; there may be pages of others before it. */
static enum hf_status look_at_isolation(struct hf_scope *s, struct wait *w, struct look *look)
{
    const struct hf_list_tags_of_resource request = {.arn = look->table->arn};
    struct hf_pages *pages;
    struct hf_page page;
    enum hf_status status;

    TRY(hf_pages_list_tags_of_resource(s, w->db, &request, NULL, &pages));
    do {
        status = hf_pages_next(s, pages, &page);
        look->isolation = tag_of(page.tags, page.len);
    } while (status == HF_OK && page.found && !look->isolation.ptr);
    if (look->isolation.ptr) { /* it is the page's */
        look->isolation = hf_scope_copy(s, look->isolation);
        if (!look->isolation.ptr)
            status = hf__fail_nomem(s);
    }
    hf_pages_free(pages);
    return status;
}

static enum hf_status look_at_ttl(struct hf_scope *s, struct wait *w, struct look *look)
{
    const struct hf_describe_time_to_live request = {.table = w->table};
    struct hf_describe_time_to_live_result result;

    TRY(hf_describe_time_to_live(s, w->db, &request, &result));
    if (result.description)
        look->ttl = *result.description;
    return HF_OK;
}

static void compare_ttl(struct look *look, struct hf_str want)
{
    bool on = look->ttl.status == HF_TTL_ENABLED || look->ttl.status == HF_TTL_ENABLING;

    if (on && hf_str_equal(look->ttl.attribute, want))
        return;
    if (on) {
        look->diff.fixed = true;
        hf__diff_add(&look->diff, "time to live is by %.*s, expected %.*s",
                     HF_FMT(look->ttl.attribute), HF_FMT(want));
    } else if (look->ttl.status == HF_TTL_DISABLING) {
        look->diff.fixed = true;
        hf__diff_add(&look->diff, "time to live is being switched off, expected %.*s",
                     HF_FMT(want));
    } else {
        look->ttl_off = true;
        hf__diff_add(&look->diff, "time to live is off, expected %.*s", HF_FMT(want));
    }
}

/* ScyllaDB goes by the first letter: "a", "always" and "always_use_lwt" are one. */
static void compare_isolation(struct look *look, struct hf_str want)
{
    struct hf_str is = look->isolation;

    if (is.len && want.len && is.ptr[0] == want.ptr[0])
        return;
    if (is.len) {
        look->diff.fixed = true;
        hf__diff_add(&look->diff, "write isolation is %.*s, expected %.*s", HF_FMT(is),
                     HF_FMT(want));
    } else {
        look->isolation_off = true;
        hf__diff_add(&look->diff, "write isolation is not set, expected %.*s", HF_FMT(want));
    }
}

/* ---- repairs: one per round ----------------------------------------------------------------- */

/*
 * What an attempt at a repair means. A refusal may be due to another program that was faster, or to
 * a description that was old: look again, but not forever.
 */
static enum hf_status repair_attempted(struct hf_scope *s, struct wait *w, struct ensure *e,
                                       struct hf_str repair, enum hf_status status,
                                       enum outcome *outcome)
{
    bool refused = status == HF_INVALID;

    e->refusals = refused && hf_str_equal(repair, e->refused) ? e->refusals + 1 : refused;
    e->refused = repair;
    *outcome = AGAIN;
    if (status == HF_OK)
        return HF_OK;
    if (status == HF_IN_USE || status == HF_LIMIT || (refused && e->refusals < REFUSALS_MAX))
        return round_again(s, w, outcome, "cannot be changed yet: %.*s",
                           HF_FMT(hf_scope_error(s)->message));
    return round_failed(s, w, status, outcome);
}

/* DynamoDB refuses definitions of attributes that are no keys, so only those of this index. */
static enum hf_status add_index(struct hf_scope *s, struct wait *w, struct ensure *e,
                                const struct hf_index *index, enum outcome *outcome)
{
    const struct hf_create_table *spec = e->spec;
    const struct hf_index_change change = {.create = index};
    struct hf_attribute_definition *keys = hf__scope_array(s, spec->attributes_len, sizeof(*keys));
    struct hf_update_table request = {.table = w->table,
                                      .attributes = keys,
                                      .index_changes = &change,
                                      .index_changes_len = 1};

    if (!keys)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < spec->attributes_len; i++)
        for (size_t j = 0; j < index->key_schema_len; j++)
            if (hf_str_equal(spec->attributes[i].name, index->key_schema[j].name)) {
                keys[request.attributes_len++] = spec->attributes[i];
                break;
            }
    return repair_attempted(s, w, e, index->name, hf_update_table(s, w->db, &request, NULL),
                            outcome);
}

static enum hf_status table_repair(struct hf_scope *s, struct wait *w, struct ensure *e,
                                   const struct look *look, enum outcome *outcome)
{
    const struct hf_ttl_spec ttl = {.enabled = HF_YES, .attribute = e->options.ttl_attribute};
    const struct hf_tag tag = {.key = HF_STR(ISOLATION_TAG), .value = e->isolation};
    const struct hf_update_time_to_live set_ttl = {.table = w->table, .spec = &ttl};
    const struct hf_update_table set_stream = {.table = w->table, .stream = e->spec->stream};
    const struct hf_tag_resource set_tag = {.arn = look->table->arn, .tags = &tag, .tags_len = 1};

    if (look->isolation_off)
        return repair_attempted(s, w, e, HF_STR("/tag"), hf_tag_resource(s, w->db, &set_tag, NULL),
                                outcome);
    if (look->ttl_off)
        return repair_attempted(s, w, e, HF_STR("/ttl"),
                                hf_update_time_to_live(s, w->db, &set_ttl, NULL), outcome);
    if (look->diff.stream_off)
        return repair_attempted(s, w, e, HF_STR("/stream"),
                                hf_update_table(s, w->db, &set_stream, NULL), outcome);
    return add_index(s, w, e, look->diff.lost, outcome);
}

/* ---- a round -------------------------------------------------------------------------------- */

/* The first index of the spec that is there and not ready. */
static const struct hf_index_description *index_unready(const struct hf_create_table *spec,
                                                        const struct hf_table_description *table)
{
    for (size_t i = 0; i < table->global_indexes_len; i++)
        for (size_t j = 0; j < spec->global_indexes_len; j++)
            if (hf_str_equal(table->global_indexes[i].name, spec->global_indexes[j].name) &&
                table->global_indexes[i].status != HF_TABLE_ACTIVE)
                return &table->global_indexes[i];
    return NULL;
}

static enum hf_status compare_all(struct hf_scope *s, struct wait *w, const struct ensure *e,
                                  struct look *look)
{
    look->diff = (struct table_diff){.text = {.scope = s}};
    hf__diff_table(&look->diff, e->spec, look->table, e->scylla);
    if (e->options.ttl_attribute.len) {
        TRY(look_at_ttl(s, w, look));
        compare_ttl(look, e->options.ttl_attribute);
    }
    if (e->scylla && !e->options.any_isolation) {
        TRY(look_at_isolation(s, w, look));
        compare_isolation(look, e->isolation);
    }
    return look->diff.text.failed ? hf__fail_nomem(s) : HF_OK;
}

/* The table is ACTIVE. */
static enum hf_status table_finish(struct hf_scope *s, struct wait *w, struct ensure *e,
                                   const struct hf_table_description *table, enum outcome *outcome)
{
    struct look look = {.table = table};
    const struct hf_index_description *idle = index_unready(e->spec, table);
    enum hf_status status = compare_all(s, w, e, &look);

    if (status != HF_OK)
        return round_failed(s, w, status, outcome);
    *outcome = DONE;
    if (look.diff.fixed || (look.diff.text.len && e->options.no_create) ||
        (look.diff.lost && !e->options.add_indexes)) /* (2) */
        return hf__fail(s, HF_INVALID, "table %.*s: %.*s", HF_FMT(w->table),
                        (int)look.diff.text.len, (const char *)look.diff.text.ptr);
    if (idle)
        return round_again(s, w, outcome, "is ACTIVE, its index %.*s is %s", HF_FMT(idle->name),
                           status_name(idle->status));
    return look.diff.text.len ? table_repair(s, w, e, &look, outcome) : HF_OK;
}

static enum hf_status ensure_round(struct hf_scope *s, struct wait *w, void *user,
                                   enum outcome *outcome)
{
    struct ensure *e = user;
    const struct hf_describe_table request = {.table = w->table};
    struct hf_describe_table_result result;
    enum hf_status status = HF_OK;
    bool transactions;

    if (!e->asked) {
        status = hf_db_supports(s, w->db, HF_FEATURE_TRANSACTIONS, &transactions);
        if (status != HF_OK)
            return round_failed(s, w, status, outcome);
        e->asked = true;
        e->scylla = !transactions;
    }
    status = hf_describe_table(s, w->db, &request, &result);
    w->answered = w->answered || status != HF_IO;
    if (status == HF_NOT_FOUND && e->options.no_create)
        return hf__fail(s, HF_NOT_FOUND, "table %.*s does not exist", HF_FMT(w->table));
    if (status == HF_NOT_FOUND)
        return table_create(s, w, e, outcome);
    if (status != HF_OK)
        return round_failed(s, w, status, outcome);
    if (result.table->status != HF_TABLE_ACTIVE)
        return round_again(s, w, outcome, "is %s", status_name(result.table->status));
    return table_finish(s, w, e, result.table, outcome);
}

enum hf_status hf_table_ensure(struct hf_scope *s, struct hf_db *db,
                               const struct hf_create_table *spec,
                               const struct hf_table_options *options)
{
    struct ensure e = {.spec = spec, .options = {.size = sizeof(e.options)}};
    struct wait w;

    if (options)
        memcpy(&e.options, options,
               options->size && options->size < sizeof(e.options) ? options->size
                                                                  : sizeof(e.options));
    hf__scope_error_clear(s);
    if (!db || !spec)
        return hf__fail(s, HF_INVALID, "hf_table_ensure() was called without a %s (NULL)",
                        db ? "spec" : "database");
    if (e.options.no_create && e.options.add_indexes)
        return hf__fail(s, HF_INVALID,
                        "hf_table_ensure(): no_create and add_indexes contradict each other");
    e.isolation = tag_of(spec->tags, spec->tags_len);
    if (!e.isolation.len)
        e.isolation = HF_STR("always");
    w = wait_of(s, db, spec->table, e.options.wait);
    return rounds_run(s, &w, ensure_round, &e);
}

/* ---- names ---------------------------------------------------------------------------------- */

static bool is_name_char(char c, bool dots)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || (dots && c == '.');
}

static bool is_name(struct hf_str text, bool dots)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_name_char(text.ptr[i], dots))
            return false;
    return text.len > 0;
}

static enum hf_status check_environment(struct hf_scope *s, struct hf_str environment)
{
    if (is_name(environment, false))
        return HF_OK;
    return hf__fail(s, HF_INVALID, "invalid environment \"%.*s\": use letters, digits, '_' and '-'",
                    HF_FMT(environment));
}

static enum hf_status check_length(struct hf_scope *s, struct hf_str name)
{
    if (name.len >= NAME_MIN && name.len <= NAME_MAX)
        return HF_OK;
    return hf__fail(s, HF_INVALID,
                    "invalid table name \"%.*s\": it has %zu characters, not %d to %d",
                    HF_FMT(name), name.len, NAME_MIN, NAME_MAX);
}

enum hf_status hf_table_name(struct hf_scope *s, struct hf_str environment, struct hf_str base,
                             struct hf_str *name)
{
    struct hf_str whole;

    *name = hf_str_of(NULL, 0);
    hf__scope_error_clear(s);
    TRY(check_environment(s, environment));
    if (!is_name(base, true))
        return hf__fail(s, HF_INVALID,
                        "invalid table name \"%.*s\": use letters, digits, '_', '-' and '.'",
                        HF_FMT(base));
    whole = hf_scope_format(s, "%.*s.%.*s", HF_FMT(environment), HF_FMT(base));
    if (!whole.ptr)
        return hf__fail_nomem(s);
    TRY(check_length(s, whole));
    *name = whole;
    return HF_OK;
}

enum hf_status hf_table_guard(struct hf_scope *s, struct hf_str environment, struct hf_str name)
{
    struct hf_str rest;

    hf__scope_error_clear(s);
    TRY(check_environment(s, environment));
    if (!str_after(name, environment, &rest) || rest.len < 2 || rest.ptr[0] != '.' ||
        !is_name(name, true))
        return hf__fail(s, HF_INVALID, "table \"%.*s\" does not belong to the environment %.*s",
                        HF_FMT(name), HF_FMT(environment));
    return check_length(s, name);
}
