/*
 * coord/kind.c: tables of ours say so, and others are left alone.
 *
 * A table has a mark: an item that says which patterns keep something in it, and in which format.
 * Most have this one, in the table's own key attributes:
 *
 *     hash key    "holdfast:table"; so is the range key, where there is one
 *     holdfast    M  of each pattern: its name, and its format as an N; and if the pattern's time to
 *                    live is not in "expires": its name with ".expires", and the attribute as an S
 *
 * The outbox and the event store (keys "c" and "config") and records ("holdfast:records", "shards")
 * have an item with what they agree on, and that is their mark: it has a kind and a format.
 *
 *  (1) A table is opened with one read of its mark. When there is none, it is looked at: it gets a
 *      mark when it is empty, when another pattern of ours is in it, or when the caller says that
 *      it is to be adopted. Into any other nothing is written.
 *  (2) No user's key is that of a mark. What users choose freely is refused where it would be
 *      (hf__kind_is_mark()); all other keys of patterns have a dot in them.
 *  (3) A mark is put on the condition that there is none, and one more pattern is added on the
 *      condition that it is not there: of several who do so at once all see the same in the end.
 *  (4) To find out whether a table is empty, its first item is asked for (Scan). Where a Scan is
 *      not allowed, the count of DescribeTable decides, which every pattern asks for in any case;
 *      on AWS that is up to six hours old.
 *  (5) An event store shares its table with no pattern of ours, nor does do-once. Their marks and
 *      those of others are different items. Where the keys are those of an event store, which are
 *      also those of an outbox, a mark is put in a transaction that checks that none of the others
 *      is there that may not be: of two who open an empty table at once, the second is refused and
 *      leaves nothing behind. Where there are no transactions a mark is put by itself: there are no
 *      event stores, and of do-once and an outbox that are opened first in the same moment both
 *      succeed. To add to a mark that is there needs no check: what excludes it is not there.
 *  (6) Counters are not begun beside those of a library that keeps them under other keys.
 *  (7) Names of locks and limits, and the users and keys of do-once, are whatever people choose, so
 *      they may be the keys of any other pattern: they share a table with nobody. A lock and a
 *      limit of one name would be one item: the time to live of the limit, or its being cleared,
 *      would remove a lock that is held. Tables that have the marks of both from earlier versions
 *      are opened.
 *  (8) The first one to open a table decides which attribute is the time to live; a later one that
 *      names another attribute is refused. A lock that is taken again loses its time to live: were
 *      it another attribute than the one that was set, the database would remove a lock that is
 *      held.
 *  (9) The format in a mark only grows (hf__kind_raise()). A process that has the table open
 *      already does not learn of it.
 */
#include "coord/names.h"

#include <holdfast/table.h>

#define MARK HF_STR("holdfast:table")
#define KINDS HF_STR("holdfast")

#define CONFIG_HASH HF_STR("c") /* of the outbox and the event store */
#define CONFIG_RANGE HF_STR("config")
#define RECORDS_HASH HF_STR("holdfast:records")
#define RECORDS_RANGE HF_STR("shards")
#define RECORDS_ATTR HF_STR("Shards")

enum {
    ROUNDS = 4,
    NAMES_SHOWN = 6,
    NAME_SHOWN = 40,
    CHECKS = 2,
    PUT_ROUNDS = 6,
    DELAY_MS = 20,
    COUNTS_PAGE = 1000
};

/* Which patterns can share a table: those of one family. (7) */
enum family {
    FAMILY_PREFIXED, /* their keys begin in ways of their own */
    FAMILY_LOCKS,
    FAMILY_LIMITS,
    FAMILY_ONCE,
    FAMILY_EVENTS
};

static const struct kind {
    const char *name; /* in marks */
    const char *what; /* in messages */
    int64_t format;   /* the newest that this version knows */
    enum family family;
} kinds[] = {
    [KIND_LOCKS] = {"locks", "a table of locks", 1, FAMILY_LOCKS},
    [KIND_ONCE] = {"once", "a do-once table", 1, FAMILY_ONCE},
    [KIND_LIMITS] = {"limits", "a table of limits", 1, FAMILY_LIMITS},
    [KIND_VALUES] = {"values", "a table of values", KIND_VALUES_SPACED, FAMILY_PREFIXED},
    [KIND_COUNTERS] = {"counters", "a table of counters", 1, FAMILY_PREFIXED},
    [KIND_POSITIONS] = {"positions", "a table of positions in streams", 1, FAMILY_PREFIXED},
    [KIND_RECORDS] = {"records", "a table of records", 1, FAMILY_PREFIXED},
    [KIND_OUTBOX] = {"outbox", "an outbox", 1, FAMILY_PREFIXED},
    [KIND_EVENTS] = {"events", "an event store", 1, FAMILY_EVENTS},
    [KIND_COPIES] = {"copies", "a table of copies", 1, FAMILY_PREFIXED},
};

_Static_assert(ARRAY_LEN(kinds) == KIND_COPIES + 1, "every kind has a name and a format");

struct hf_str hf__kind_name(enum pattern_kind kind)
{
    assert(kind < ARRAY_LEN(kinds));
    return hf_str_from(kinds[kind].name);
}

int64_t hf__kind_format(enum pattern_kind kind)
{
    return kinds[kind].format;
}

static struct hf_str what_is(struct hf_scope *s, struct hf_str name)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (hf_str_equal(name, hf_str_from(kinds[i].name)))
            return hf_str_from(kinds[i].what);
    return hf_scope_format(s, "of a kind that this version does not know, \"%.*s\"",
                           HF_FMT(hf__pattern_text(s, name, NAME_SHOWN)));
}

bool hf__kind_is_mark(struct hf_str key)
{
    return hf_str_equal(key, MARK);
}

/* ---- marks ---------------------------------------------------------------------------------- */

static struct hf_item mark_key(struct hf_scope *s, const struct hf_create_table *spec)
{
    struct hf_attr key[2];

    assert(spec->key_schema_len >= 1 && spec->key_schema_len <= ARRAY_LEN(key));
    for (size_t i = 0; i < spec->key_schema_len; i++)
        key[i] =
            (struct hf_attr){.name = spec->key_schema[i].name, .type = HF_TYPE_S, .text = MARK};
    return hf_item_make(s, key, spec->key_schema_len);
}

/* Could it be an event store? */
static bool has_event_keys(const struct hf_create_table *spec)
{
    return spec->key_schema_len == 2 && hf_str_equal(spec->key_schema[0].name, HF_STR("pk")) &&
           hf_str_equal(spec->key_schema[1].name, HF_STR("sk"));
}

/* Under the names that the table has, of which there are two. */
static struct hf_item event_key(struct hf_scope *s, const struct hf_create_table *spec,
                                struct hf_str hash, struct hf_str range)
{
    const struct hf_attr key[] = {
        {.name = spec->key_schema[0].name, .type = HF_TYPE_S, .text = hash},
        {.name = spec->key_schema[1].name, .type = HF_TYPE_S, .text = range}};

    assert(spec->key_schema_len == ARRAY_LEN(key));
    return hf_item_make(s, key, ARRAY_LEN(key));
}

/* Where the mark of records is, in a table of whatever keys. */
static struct hf_item records_key(struct hf_scope *s, const struct hf_create_table *spec)
{
    const struct hf_attr key[] = {
        {.name = spec->key_schema[0].name, .type = HF_TYPE_S, .text = RECORDS_HASH},
        {.name = spec->key_schema[1].name, .type = HF_TYPE_S, .text = RECORDS_RANGE}};

    assert(spec->key_schema_len == ARRAY_LEN(key));
    return hf_item_make(s, key, ARRAY_LEN(key));
}

/* (5), (7) May a table not be both? Of a kind that we do not know, only an event store says so. */
static bool kind_excludes(enum pattern_kind kind, struct hf_str other)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (hf_str_equal(other, hf_str_from(kinds[i].name)))
            return kinds[i].family != kinds[kind].family;
    return other.len && kind == KIND_EVENTS;
}

/* Which other pattern of ours is in the table; absent: none. */
static enum hf_status find_other(struct hf_scope *s, struct hf_db *db,
                                 const struct hf_create_table *spec, struct hf_str *other)
{
    struct hf_item common = mark_key(s, spec), mark;
    struct hf_item_walk walk = {0};

    *other = (struct hf_str){0};
    TRY(hf_scope_built(s));
    TRY(hf__pattern_read(s, db, spec->table, common, &mark));
    if (hf_item_next(hf_value_item(hf_item_get(mark, KINDS)), &walk)) {
        *other = walk.name;
        return HF_OK;
    }
    if (spec->key_schema_len != 2)
        return HF_OK;
    TRY(hf__pattern_read(s, db, spec->table, event_key(s, spec, CONFIG_HASH, CONFIG_RANGE), &mark));
    *other = hf_value_str(hf_item_get(mark, HF_STR(KIND_ATTR)));
    if (other->len || !has_event_keys(spec))
        return HF_OK;
    TRY(hf__pattern_read(s, db, spec->table, records_key(s, spec), &mark));
    if (hf_item_get(mark, RECORDS_ATTR).ptr)
        *other = hf__kind_name(KIND_RECORDS);
    return HF_OK;
}

/* ---- tables without one --------------------------------------------------------------------- */

/* Some item of the table; absent: it is empty, or `unseen` says how many there are. (4) */
static enum hf_status first_item(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                 struct hf_item *item, int64_t *unseen)
{
    struct hf_scan scan = {.table = table, .limit = 1, .consistent = HF_YES};
    struct hf_describe_table_result described;
    struct hf_scan_result result;
    enum hf_status status = hf_scan(s, db, &scan, &result);

    *item = (struct hf_item){0};
    *unseen = 0;
    if (status == HF_OK && result.items_len)
        *item = result.items[0];
    if (status != HF_DENIED)
        return status;
    TRY(hf_describe_table(s, db, &(struct hf_describe_table){.table = table}, &described));
    *unseen = described.table->item_count;
    return HF_OK;
}

/* Names of its attributes, so that an error shows whose item it may be. */
static struct hf_str names_of(struct hf_scope *s, struct hf_item item)
{
    struct hf_str names = HF_STR("");
    struct hf_item_walk walk = {0};
    size_t len = 0;

    while (hf_item_next(item, &walk) && len++ < NAMES_SHOWN)
        names = hf_scope_format(s, "%.*s%s%.*s", HF_FMT(names), len > 1 ? ", " : "",
                                HF_FMT(hf__pattern_text(s, walk.name, NAME_SHOWN)));
    return len > NAMES_SHOWN ? hf_scope_format(s, "%.*s and others", HF_FMT(names)) : names;
}

/* ---- tables of @paradoxical-io/common-aws --------------------------------------------------- */

#define OTHER_LIBRARY "@paradoxical-io/common-aws"

static const char *import_command(enum pattern_kind kind)
{
    return kind == KIND_LOCKS      ? "lock import"
           : kind == KIND_VALUES   ? "kv import"
           : kind == KIND_COUNTERS ? "counter import"
                                   : NULL;
}

/* What its users are to do; an empty text: nothing is known of such a table. */
static struct hf_str import_hint(struct hf_scope *s, struct hf_str table, enum pattern_kind kind)
{
    if (!import_command(kind))
        return HF_STR("");
    return hf_scope_format(s,
                           ". It looks like a table of " OTHER_LIBRARY ": 'holdfast %s "
                           "--from %.*s --table ANOTHER' copies what it has",
                           import_command(kind), HF_FMT(table));
}

/* Is this what that library stores? cli/foreign/cmd_foreign.c has its layout. */
static bool is_common_aws(enum pattern_kind kind, struct hf_item item)
{
    if (kind == KIND_LOCKS)
        return hf_value_type(hf_item_get(item, HF_STR("expiresAt"))) == HF_TYPE_N;
    return !hf_item_get(item, HF_STR("version")).ptr && !hf_item_get(item, HF_STR("rev")).ptr &&
           (hf_value_type(hf_item_get(item, HF_STR("data"))) == HF_TYPE_S ||
            hf_value_type(hf_item_get(item, HF_STR("count"))) == HF_TYPE_N);
}

/* Are keys of that library's table under these names, or, where it has the names of ours, its
 * items? */
static bool has_common_aws(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                           enum pattern_kind kind)
{
    struct hf_describe_table_result described;
    const struct hf_key_element *keys;
    struct hf_item item;
    int64_t unseen;

    if (hf_describe_table(s, db, &(struct hf_describe_table){.table = table}, &described) != HF_OK)
        return false;
    keys = described.table->key_schema;
    if (described.table->key_schema_len == 2)
        return hf_str_equal(keys[0].name, HF_STR("partitionKey")) &&
               hf_str_equal(keys[1].name, HF_STR("sortKey"));
    return hf_str_equal(keys[0].name, HF_STR("key")) &&
           (kind == KIND_LOCKS || (first_item(s, db, table, &item, &unseen) == HF_OK && item.ptr &&
                                   is_common_aws(kind, item)));
}

enum hf_status hf__kind_keys(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                             enum pattern_kind kind, enum hf_status status)
{
    struct hf_str why, hint = HF_STR("");
    bool named;

    if (status != HF_INVALID)
        return status;
    named = strstr(hf_scope_error_text(s), OTHER_LIBRARY) != NULL;
    why = hf_scope_copy(s, hf_str_from(hf_scope_error_text(s)));
    if (!named && has_common_aws(s, db, table, kind))
        hint = import_hint(s, table, kind);
    return hf_scope_fail(s, HF_INVALID, "%.*s%.*s", HF_FMT(why), HF_FMT(hint));
}

/*
 * (6) Counters of that library are not ours, and ours would begin at 0 beside them. With `adopt`
 * the whole table is searched for them, once; otherwise one page is.
 */
static enum hf_status no_other_counts(struct hf_scope *s, struct hf_db *db,
                                      const struct hf_create_table *spec, bool all)
{
    struct hf_scan scan = {.table = spec->table,
                           .filter = HF_STR("attribute_type(#count, :number) AND "
                                            "attribute_not_exists(#rev)"),
                           .names = HF_ITEM(s, HF_S("#count", HF_STR("count")),
                                            HF_S("#rev", HF_STR("rev"))),
                           .values = HF_ITEM(s, HF_S(":number", HF_STR("N"))),
                           .limit = all ? 0 : COUNTS_PAGE};

    do {
        struct hf_scan_result page;
        enum hf_status status;

        TRY(hf_scope_built(s));
        status = hf_scan(s, db, &scan, &page);
        if (status == HF_DENIED)
            return HF_OK;
        TRY(status);
        for (size_t i = 0; i < page.items_len; i++) {
            struct hf_str hint = import_hint(s, spec->table, KIND_COUNTERS);
            struct hf_str key = hf_value_str(
                hf_item_get(page.items[i], spec->key_schema[spec->key_schema_len - 1].name));

            if (hf_item_count(page.items[i]) == spec->key_schema_len + 1 &&
                (key.len < 7 || memcmp(key.ptr, "%count.", 7) != 0))
                return hf_scope_fail(s, HF_INVALID,
                                     "table %.*s has counters of another library, such as "
                                     "\"%.*s\", and ours would begin at 0%.*s",
                                     HF_FMT(spec->table),
                                     HF_FMT(hf__pattern_text(s, key, NAME_SHOWN)), HF_FMT(hint));
        }
        scan.start = page.last;
    } while (all && scan.start.ptr);
    return HF_OK;
}

static enum hf_status fail_foreign(struct hf_scope *s, struct hf_str table, enum pattern_kind kind,
                                   struct hf_item item, int64_t unseen)
{
    struct hf_str hint =
        item.ptr && is_common_aws(kind, item) ? import_hint(s, table, kind) : HF_STR("");
    struct hf_str seen = item.ptr ? hf_scope_format(s, "one has %.*s", HF_FMT(names_of(s, item)))
                                  : hf_scope_format(s, "%lld of them", (long long)unseen);

    return hf_scope_fail(s, HF_INVALID,
                         "table %.*s is not %s: it has items (%.*s) and no mark of holdfast, so it "
                         "seems to be another program's; nothing was written. Use another table, "
                         "or open this one with `adopt`, which puts the mark into it%.*s",
                         HF_FMT(table), kinds[kind].what, HF_FMT(seen), HF_FMT(hint));
}

static enum hf_status fail_other_kind(struct hf_scope *s, struct hf_str table,
                                      enum pattern_kind kind, struct hf_str other)
{
    return hf_scope_fail(s, HF_INVALID, "table %.*s is not %s: it is %.*s. Use another table",
                         HF_FMT(table), kinds[kind].what, HF_FMT(what_is(s, other)));
}

/* (1) Twice: others may make the table what it is to be between our looks at it. So may those who
 * open the same as we do: `other` can be our own kind, put since we read the mark. */
enum hf_status hf__kind_read(struct hf_scope *s, const struct kind_table *of, struct hf_item key,
                             struct hf_item *mark)
{
    const struct hf_create_table *spec = of->spec;
    const enum pattern_kind kind = of->kind;

    for (int look = 0;; look++) {
        struct hf_item item;
        struct hf_str other;
        int64_t unseen;

        TRY(hf__pattern_read(s, of->db, spec->table, key, mark));
        if (mark->ptr || of->adopt)
            return HF_OK;
        TRY(find_other(s, of->db, spec, &other));
        if (hf_str_equal(other, hf__kind_name(kind)) && !look)
            continue;
        if (other.len)
            return kind_excludes(kind, other) ? fail_other_kind(s, spec->table, kind, other)
                                              : HF_OK;
        TRY(first_item(s, of->db, spec->table, &item, &unseen));
        if (!item.ptr && !unseen)
            return HF_OK;
        if (look)
            return fail_foreign(s, spec->table, kind, item, unseen);
    }
}

/* Where the mark of that kind is. */
static struct hf_item own_key(struct hf_scope *s, const struct hf_create_table *spec,
                              enum pattern_kind kind)
{
    if (kind == KIND_OUTBOX || kind == KIND_EVENTS)
        return event_key(s, spec, CONFIG_HASH, CONFIG_RANGE);
    return kind == KIND_RECORDS ? records_key(s, spec) : mark_key(s, spec);
}

enum hf_status hf__kind_look(struct hf_scope *s, const struct kind_table *of, bool *marked)
{
    struct hf_item key = own_key(s, of->spec, of->kind), mark, marks;
    struct hf_str other;

    *marked = false;
    TRY(hf_scope_built(s));
    TRY(hf__kind_read(s, of, key, &mark));
    marks = hf_value_item(hf_item_get(mark, KINDS));
    *marked = mark.ptr && (!marks.ptr || hf_item_get(marks, hf__kind_name(of->kind)).ptr);
    if (*marked)
        return HF_OK;
    TRY(find_other(s, of->db, of->spec, &other));
    return kind_excludes(of->kind, other) ? fail_other_kind(s, of->spec->table, of->kind, other)
                                          : HF_OK;
}

/* ---- checking ------------------------------------------------------------------------------- */

enum hf_status hf__kind_check(struct hf_scope *s, struct hf_str table, enum pattern_kind kind,
                              struct hf_str found, struct hf_value format)
{
    int64_t number;

    if (!found.len)
        return hf_scope_fail(s, HF_INVALID,
                             "table %.*s is not %s: the item where its mark would be is another "
                             "program's. Use another table",
                             HF_FMT(table), kinds[kind].what);
    if (!hf_str_equal(found, hf__kind_name(kind)))
        return fail_other_kind(s, table, kind, found);
    if (!hf_value_i64(format, &number) || number < 1)
        return hf_scope_fail(s, HF_CORRUPT, "table %.*s is %s, but its mark has no valid format",
                             HF_FMT(table), kinds[kind].what);
    if (number > kinds[kind].format)
        return hf_scope_fail(s, HF_FORMAT,
                             "table %.*s is %s in format %lld, and this version of holdfast knows "
                             "formats up to %lld: use a newer version",
                             HF_FMT(table), kinds[kind].what, (long long)number,
                             (long long)kinds[kind].format);
    return HF_OK;
}

/* ---- putting one ---------------------------------------------------------------------------- */

/* In the common mark there is nothing that excludes `kind`, whose mark is another item: of those
 * with two keys that is do-once, or for an event store all. */
static struct hf_condition_check no_common(struct hf_scope *s, const struct hf_create_table *spec,
                                           enum pattern_kind kind)
{
    bool any = kind == KIND_EVENTS;

    return (
        struct hf_condition_check){.table = spec->table,
                                   .key = mark_key(s, spec),
                                   .condition = any ? HF_STR("attribute_not_exists(#kinds)")
                                                    : HF_STR("attribute_not_exists(#kinds.#once)"),
                                   .names = any ? HF_ITEM(s, HF_S("#kinds", KINDS))
                                                : HF_ITEM(s, HF_S("#kinds", KINDS),
                                                          HF_S("#once", hf__kind_name(KIND_ONCE)))};
}

/* There is no event store, and if `kind` excludes an outbox no such either. */
static struct hf_condition_check no_config(struct hf_scope *s, const struct hf_create_table *spec,
                                           enum pattern_kind kind)
{
    struct hf_condition_check check = {.table = spec->table,
                                       .key = event_key(s, spec, CONFIG_HASH, CONFIG_RANGE),
                                       .condition = HF_STR("attribute_not_exists(#kind)"),
                                       .names = HF_ITEM(s, HF_S("#kind", HF_STR(KIND_ATTR)))};

    if (!kind_excludes(kind, hf__kind_name(KIND_OUTBOX))) {
        check.condition = HF_STR("attribute_not_exists(#kind) OR #kind <> :events");
        check.values = HF_ITEM(s, HF_S(":events", hf__kind_name(KIND_EVENTS)));
    }
    return check;
}

static struct hf_condition_check no_records(struct hf_scope *s, const struct hf_create_table *spec)
{
    return (struct hf_condition_check){.table = spec->table,
                                       .key = records_key(s, spec),
                                       .condition = HF_STR("attribute_not_exists(#shards)"),
                                       .names = HF_ITEM(s, HF_S("#shards", RECORDS_ATTR))};
}

/* (5) What has to hold while the mark is put: how many checks, of the items where others have their
 * marks. What has its mark in the same item is seen by the condition of the write. */
static size_t checks_of(struct hf_scope *s, const struct hf_create_table *spec,
                        enum pattern_kind kind, struct hf_condition_check checks[CHECKS])
{
    size_t len = 0;

    if (!has_event_keys(spec))
        return 0;
    if (kind == KIND_EVENTS || kind == KIND_OUTBOX || kind == KIND_RECORDS)
        checks[len++] = no_common(s, spec, kind);
    if (kind != KIND_EVENTS && kind != KIND_OUTBOX)
        checks[len++] = no_config(s, spec, kind);
    if (kind_excludes(kind, hf__kind_name(KIND_RECORDS)))
        checks[len++] = no_records(s, spec);
    assert(len <= CHECKS);
    return len;
}

/* A write, and the checks that are one transaction with it. */
struct checked_write {
    const struct hf_transact_write *write;
    struct hf_condition_check checks[CHECKS];
    size_t len;
};

static enum hf_status send_checked(struct hf_scope *s, struct hf_db *db,
                                   const struct checked_write *w)
{
    struct hf_tx *tx;

    TRY(hf_tx_new(s, db, &tx));
    TRY(hf_tx_add(s, tx, w->write));
    for (size_t i = 0; i < w->len; i++)
        TRY(hf_tx_add(s, tx, &(struct hf_transact_write){.check = &w->checks[i]}));
    return hf_tx_commit(s, tx, NULL);
}

/* (5) A transaction that was canceled says why in its reasons, or just that others were there at
 * the same time: what is in the table now says more. */
static enum hf_status put_checked(struct hf_scope *s, const struct kind_table *of,
                                  const struct checked_write *w, struct hf_item key,
                                  struct hf_item *mark)
{
    const struct hf_create_table *spec = of->spec;
    struct backoff backoff = {.first_ms = DELAY_MS, .max_ms = UINT32_MAX};

    for (int round = 0; round < PUT_ROUNDS; round++) {
        enum hf_status status = send_checked(s, of->db, w);
        struct hf_str other;

        if (status != HF_TX_CANCELED && status != HF_TX_CONFLICT)
            return status;
        TRY(hf__pattern_read(s, of->db, spec->table, key, mark));
        if (mark->ptr)
            return hf_scope_fail(s, HF_CONDITION, "The conditional request failed");
        TRY(find_other(s, of->db, spec, &other));
        if (kind_excludes(of->kind, other))
            return fail_other_kind(s, spec->table, of->kind, other);
        TRY(hf__backoff_sleep(s, &backoff));
    }
    return hf_scope_fail(s, HF_IN_USE,
                         "the mark of table %.*s keeps changing, as others open it, too; try again",
                         HF_FMT(spec->table));
}

enum hf_status hf__kind_put(struct hf_scope *s, const struct kind_table *of,
                            const struct hf_transact_write *write, struct hf_item key,
                            struct hf_item *mark)
{
    struct checked_write w = {.write = write};
    bool transactions = false;
    enum hf_status status;

    if (!mark->ptr)
        w.len = checks_of(s, of->spec, of->kind, w.checks);
    TRY(hf_scope_built(s));
    if (w.len)
        TRY(hf_db_supports(s, of->db, HF_FEATURE_TRANSACTIONS, &transactions));
    status = transactions ? put_checked(s, of, &w, key, mark)
                          : hf__pattern_write(s, of->db, write, key, mark);
    if (status != HF_DENIED)
        return status;
    return hf_scope_fail_because(s, HF_DENIED, hf_scope_error(s),
                                 "table %.*s is not marked as %s yet, and the mark cannot be "
                                 "written: %s",
                                 HF_FMT(of->spec->table), kinds[of->kind].what,
                                 hf_scope_error_text(s));
}

/* ---- the common mark ------------------------------------------------------------------------ */

/* Under which name a mark has the attribute of the time to live. */
static struct hf_str expires_of(struct hf_scope *s, enum pattern_kind kind)
{
    return hf__pattern_join(s, hf__kind_name(kind), HF_STR(".expires"));
}

/* (3) HF_CONDITION: *mark is what is there. expires absent: the mark leaves it out. */
static enum hf_status put_mark(struct hf_scope *s, const struct kind_table *of, int64_t number,
                               struct hf_str expires, struct hf_item *mark)
{
    const struct hf_attr added[] = {
        {.name = hf__kind_name(of->kind), .type = HF_TYPE_N, .number = number},
        {.name = expires_of(s, of->kind), .type = HF_TYPE_S, .text = expires}};
    const struct hf_attr names[] = {HF_S("#holdfast", KINDS), HF_S("#kind", added[0].name),
                                    HF_S("#expires", added[1].name)};
    const struct hf_attr values[] = {HF_N(":format", number), HF_S(":expires", expires)};
    size_t len = expires.ptr ? 2 : 1;
    struct hf_update_item update = {
        .table = of->spec->table,
        .key = mark_key(s, of->spec),
        .update = HF_STR("SET #holdfast = :kinds"),
        .condition = HF_STR("attribute_not_exists(#holdfast)"),
        .names = HF_ITEM(s, HF_S("#holdfast", KINDS)),
        .values = HF_ITEM(s, HF_M(":kinds", hf_item_make(s, added, len))),
    };

    if (mark->ptr) {
        update.update = len == 1 ? HF_STR("SET #holdfast.#kind = :format")
                                 : HF_STR("SET #holdfast.#kind = :format, "
                                          "#holdfast.#expires = :expires");
        update.condition = HF_STR("attribute_exists(#holdfast) AND "
                                  "attribute_not_exists(#holdfast.#kind)");
        update.names = hf_item_make(s, names, len + 1);
        update.values = hf_item_make(s, values, len);
    }
    TRY(hf_scope_built(s));
    return hf__kind_put(s, of, &(struct hf_transact_write){.update = &update}, update.key, mark);
}

/* (7) */
static enum hf_status check_shared(struct hf_scope *s, struct hf_str table, enum pattern_kind kind,
                                   struct hf_item of)
{
    struct hf_item_walk walk = {0};

    while (hf_item_next(of, &walk))
        if (kind_excludes(kind, walk.name))
            return fail_other_kind(s, table, kind, walk.name);
    return HF_OK;
}

/* (8) */
static enum hf_status check_expires(struct hf_scope *s, struct hf_str table, enum pattern_kind kind,
                                    struct hf_item of, struct hf_str expires)
{
    struct hf_value named = hf_item_get(of, expires_of(s, kind));
    struct hf_str found = named.ptr ? hf_value_str(named) : HF_STR(PATTERN_EXPIRES);

    if (hf_str_equal(found, expires))
        return HF_OK;
    return hf_scope_fail(
        s, HF_INVALID,
        "table %.*s is %s whose time to live is in the attribute \"%.*s\", not in "
        "\"%.*s\". Open it with the first as its expires_attribute, or use another "
        "table",
        HF_FMT(table), kinds[kind].what, HF_FMT(found), HF_FMT(expires));
}

/* *number: the format that a new mark has, 0: none is put; then that of the mark, 0: none. */
static enum hf_status open_mark(struct hf_scope *s, const struct kind_table *of,
                                struct hf_str expires, int64_t *number)
{
    const struct hf_create_table *spec = of->spec;
    const enum pattern_kind kind = of->kind;
    bool plain = hf_str_equal(expires, HF_STR(PATTERN_EXPIRES));
    struct hf_item key = mark_key(s, spec), mark;

    assert(*number >= 0 && *number <= kinds[kind].format);
    for (size_t i = 0; i < spec->key_schema_len; i++)
        if (hf_str_equal(spec->key_schema[i].name, KINDS))
            return hf_scope_fail(s, HF_INVALID,
                                 "table %.*s: a key attribute cannot be named \"%.*s\": holdfast "
                                 "uses that name for its mark",
                                 HF_FMT(spec->table), HF_FMT(KINDS));
    TRY(hf_scope_built(s));
    TRY(hf__kind_read(s, of, key, &mark));
    for (int round = 0; round < ROUNDS; round++) {
        struct hf_item marks = hf_value_item(hf_item_get(mark, KINDS));
        struct hf_value format = hf_item_get(marks, hf__kind_name(kind));
        enum hf_status status;

        if (format.ptr) { /* perhaps another has put it just now */
            TRY(hf__kind_check(s, spec->table, kind, hf__kind_name(kind), format));
            TRY(check_expires(s, spec->table, kind, marks, expires));
            (void)hf_value_i64(format, number); /* which it is: that was checked */
            return call_ends(s, HF_OK);
        }
        if (mark.ptr && !marks.ptr)
            return hf__kind_check(s, spec->table, kind, hf_str_of(NULL, 0), format);
        TRY(check_shared(s, spec->table, kind, marks));
        if (!*number)
            return call_ends(s, HF_OK);
        if (kind == KIND_COUNTERS && !round)
            TRY(no_other_counts(s, of->db, spec, of->adopt));
        status = put_mark(s, of, *number, plain ? (struct hf_str){0} : expires, &mark);
        if (status != HF_CONDITION)
            return status == HF_OK ? hf_scope_ok(s) : status;
    }
    return hf_scope_fail(s, HF_IN_USE, "the mark of table %.*s keeps changing; try again",
                         HF_FMT(spec->table));
}

enum hf_status hf__kind_open_at(struct hf_scope *s, const struct kind_table *of,
                                struct hf_str expires)
{
    int64_t format = kinds[of->kind].format;

    return open_mark(s, of, expires, &format);
}

enum hf_status hf__kind_open(struct hf_scope *s, const struct kind_table *of)
{
    return hf__kind_open_at(s, of, HF_STR(PATTERN_EXPIRES));
}

enum hf_status hf__kind_open_as(struct hf_scope *s, const struct kind_table *of, int64_t *format)
{
    return open_mark(s, of, HF_STR(PATTERN_EXPIRES), format);
}

enum hf_status hf__kind_raise(struct hf_scope *s, const struct kind_table *of, int64_t format)
{
    const struct hf_create_table *spec = of->spec;
    const enum pattern_kind kind = of->kind;
    struct hf_update_item update = {
        .table = spec->table,
        .key = mark_key(s, spec),
        .update = HF_STR("SET #holdfast.#kind = :format"),
        .condition = HF_STR("#holdfast.#kind < :format"),
        .names = HF_ITEM(s, HF_S("#holdfast", KINDS), HF_S("#kind", hf__kind_name(kind))),
        .values = HF_ITEM(s, HF_N(":format", format)),
    };
    struct hf_item mark;
    enum hf_status status;
    int64_t is;

    assert(format >= 1 && format <= kinds[kind].format && "(9)");
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, of->db, &(struct hf_transact_write){.update = &update},
                               update.key, &mark);
    if (status != HF_CONDITION)
        return status;
    if (!hf_value_i64(hf_item_get(hf_value_item(hf_item_get(mark, KINDS)), hf__kind_name(kind)),
                      &is) ||
        is < format)
        return hf_scope_fail(s, HF_CONDITION, "the mark of table %.*s is not that of %s any more",
                             HF_FMT(spec->table), kinds[kind].what);
    return call_ends(s, HF_OK);
}
