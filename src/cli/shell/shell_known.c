/*
 * cli/shell/shell_known.c: what Tab knows of the database: tables and indexes as the database lists them,
 * attributes that were seen in items, keys from a sample of the table.
 *
 * What always holds:
 *
 *  (1) A person who presses Tab does not wait: a call has QUICK_MS, and a failure is no offer.
 *  (2) On dynamodb:// items are not read for an offer: reading costs money.
 *  (3) A word with control characters in it is not offered.
 */
#include "cli/shell/shell.h"

#include "base/base.h"

#include <holdfast/pages.h>

#include <stdlib.h>
#include <string.h>

enum { QUICK_MS = 300, SEEN_MAX = 1000, SAMPLE_ITEMS = 100 };

struct seen_name {
    struct hf_str table, name;
};

struct shell_known {
    struct hf_scope *s;
    struct seen_name seen[SEEN_MAX];
    size_t len;
};

struct shell_known *hf__shell_known_new(void)
{
    struct shell_known *known = calloc(1, sizeof(*known));

    if (known)
        known->s = hf_scope_new(NULL);
    if (known && known->s)
        return known;
    free(known);
    return NULL;
}

void hf__shell_known_free(struct shell_known *known)
{
    if (!known)
        return;
    hf_scope_free(known->s);
    free(known);
}

void hf__shell_known_clear(struct shell_known *known)
{
    hf_scope_reset(known->s);
    known->len = 0;
}

void hf__shell_known_add(struct shell_known *known, struct hf_str table, struct hf_str name)
{
    struct seen_name *seen = &known->seen[known->len];

    for (size_t i = 0; i < known->len; i++)
        if (hf_str_equal(known->seen[i].name, name) && hf_str_equal(known->seen[i].table, table))
            return;
    if (known->len == SEEN_MAX)
        return;
    seen->table = hf_scope_copy(known->s, table);
    seen->name = hf_scope_copy(known->s, name);
    if (seen->table.ptr && seen->name.ptr)
        known->len++;
}

/* ---- offers --------------------------------------------------------------------------------- */

static bool is_clean(struct hf_str word)
{
    for (size_t i = 0; i < word.len; i++) {
        unsigned char c = (unsigned char)word.ptr[i];

        if (c < ' ' || c == 0x7F ||
            (c == 0xC2 && i + 1 < word.len && (unsigned char)word.ptr[i + 1] < 0xA0))
            return false;
    }
    return word.len > 0;
}

void hf__shell_offer(struct shell_offers *offers, struct hf_str typed, struct hf_str word)
{
    if (word.len < typed.len || !word.ptr || !is_clean(word) ||
        (typed.len && memcmp(word.ptr, typed.ptr, typed.len) != 0))
        return;
    for (size_t i = 0; i < offers->len; i++)
        if (hf_str_equal(offers->words[i], word))
            return;
    if (offers->len == SHELL_OFFERS_MAX) {
        offers->more = true;
        return;
    }
    offers->words[offers->len] = hf_scope_copy(offers->s, word);
    offers->len += offers->words[offers->len].ptr != NULL;
}

/* The database, if it may be asked now; NULL: it may not. (1) */
static struct hf_db *quick_db(struct shell *shell, struct shell_offers *offers)
{
    hf_scope_timeout_ms(offers->s, QUICK_MS);
    return shell->shared.db;
}

/* (2) */
static bool is_free(const struct shell *shell)
{
    static const char kind[] = "dynamodb:";
    struct hf_str url = shell->shared.settings.url;

    return url.len < strlen(kind) || memcmp(url.ptr, kind, strlen(kind)) != 0;
}

void hf__shell_offer_tables(struct shell *shell, struct shell_offers *offers, struct hf_str typed)
{
    struct hf_list_tables request = {.limit = 0};
    struct hf_db *db = quick_db(shell, offers);
    struct hf_pages *pages = NULL;
    struct hf_str name = {0};

    if (!db || hf_pages_list_tables(offers->s, db, &request, NULL, &pages) != HF_OK)
        return;
    while (hf_pages_next_table(offers->s, pages, &name) == HF_OK && name.ptr && !offers->more)
        hf__shell_offer(offers, typed, name);
    hf_pages_free(pages);
}

/* NULL: it is not known. */
static const struct hf_table_description *
table_describe(struct shell *shell, struct shell_offers *offers, struct hf_str table)
{
    struct hf_describe_table_result result = {0};
    struct hf_db *db = quick_db(shell, offers);

    if (!db || !table.len ||
        hf_describe_table(offers->s, db, &(struct hf_describe_table){.table = table}, &result) !=
            HF_OK)
        return NULL;
    return result.table;
}

void hf__shell_offer_indexes(struct shell *shell, struct shell_offers *offers, struct hf_str table,
                             struct hf_str typed)
{
    const struct hf_table_description *about = table_describe(shell, offers, table);

    for (size_t i = 0; about && i < about->global_indexes_len; i++)
        hf__shell_offer(offers, typed, about->global_indexes[i].name);
    for (size_t i = 0; about && i < about->local_indexes_len; i++)
        hf__shell_offer(offers, typed, about->local_indexes[i].name);
}

/* Items of the table, as they come. False: they are not to be had now. */
static bool sample_read(struct shell *shell, struct shell_offers *offers, struct hf_str table,
                        struct hf_scan_result *result)
{
    struct hf_db *db = quick_db(shell, offers);

    *result = (struct hf_scan_result){0};
    return db && is_free(shell) &&
           hf_scan(offers->s, db, &(struct hf_scan){.table = table, .limit = SAMPLE_ITEMS},
                   result) == HF_OK;
}

void hf__shell_offer_attributes(struct shell *shell, struct shell_offers *offers,
                                struct hf_str table, struct hf_str typed)
{
    const struct hf_table_description *about = table_describe(shell, offers, table);
    struct shell_known *known = shell->known;
    struct hf_scan_result sample;

    if (!about)
        return;
    for (size_t i = 0; i < about->attributes_len; i++)
        hf__shell_known_add(known, table, about->attributes[i].name);
    if (sample_read(shell, offers, table, &sample))
        for (size_t i = 0; i < sample.items_len; i++) {
            struct hf_item_walk walk = {.next = 0};

            while (hf_item_next(sample.items[i], &walk))
                hf__shell_known_add(known, table, walk.name);
        }
    for (size_t i = 0; i < known->len; i++)
        if (hf_str_equal(known->seen[i].table, table))
            hf__shell_offer(offers, typed, known->seen[i].name);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static struct hf_str key_name(const struct hf_table_description *about, enum hf_key_type type)
{
    for (size_t i = 0; about && i < about->key_schema_len; i++)
        if (about->key_schema[i].type == type)
            return about->key_schema[i].name;
    return (struct hf_str){0};
}

int hf__shell_key_part(struct shell *shell, struct shell_offers *offers, struct hf_str table,
                       struct hf_str name)
{
    const struct hf_table_description *about = table_describe(shell, offers, table);

    if (!about || !name.len)
        return 0;
    if (hf_str_equal(key_name(about, HF_KEY_HASH), name))
        return 1;
    return hf_str_equal(key_name(about, HF_KEY_RANGE), name) ? 2 : 0;
}

/* A key as it is typed; absent: bytes. */
static struct hf_str key_text(struct hf_scope *s, struct hf_value value)
{
    if (hf_value_type(value) == HF_TYPE_S)
        return hf_value_str(value);
    return hf_value_type(value) == HF_TYPE_N ? hf_value_number(s, value) : (struct hf_str){0};
}

static bool hash_is_number(const struct hf_table_description *about, struct hf_str hash)
{
    for (size_t i = 0; i < about->attributes_len; i++)
        if (hf_str_equal(about->attributes[i].name, hash))
            return about->attributes[i].type == HF_SCALAR_N;
    return false;
}

/* The items with that hash key. */
static bool range_read(struct shell *shell, struct shell_offers *offers,
                       const struct hf_table_description *about, struct hf_str hash,
                       struct hf_query_result *result)
{
    struct hf_db *db = quick_db(shell, offers);
    struct hf_str name = key_name(about, HF_KEY_HASH);
    struct hf_attr value = {.type = hash_is_number(about, name) ? HF_TYPE_N : HF_TYPE_S,
                            .text = hash};
    struct hf_query query = {.table = about->name,
                             .key_condition = HF_STR("#h = :h"),
                             .names = HF_ITEM(offers->s, HF_S("#h", name)),
                             .values =
                                 HF_ITEM(offers->s, HF_V(":h", hf_value_make(offers->s, value))),
                             .limit = SAMPLE_ITEMS};

    *result = (struct hf_query_result){0};
    return db && is_free(shell) && hf_query(offers->s, db, &query, result) == HF_OK;
}

void hf__shell_offer_keys(struct shell *shell, struct shell_offers *offers, struct hf_str table,
                          struct hf_str hash, struct hf_str typed)
{
    const struct hf_table_description *about = table_describe(shell, offers, table);
    struct hf_str name = key_name(about, hash.ptr ? HF_KEY_RANGE : HF_KEY_HASH);
    struct hf_scan_result sample;
    struct hf_query_result range;

    if (!name.ptr)
        return;
    if (hash.ptr && range_read(shell, offers, about, hash, &range))
        for (size_t i = 0; i < range.items_len; i++)
            hf__shell_offer(offers, typed, key_text(offers->s, hf_item_get(range.items[i], name)));
    if (!hash.ptr && sample_read(shell, offers, table, &sample))
        for (size_t i = 0; i < sample.items_len; i++)
            hf__shell_offer(offers, typed, key_text(offers->s, hf_item_get(sample.items[i], name)));
}
