/*
 * cli/table/cmd_table_stats.c: `holdfast table stats`: how large a table is, and what is in it.
 *
 * Without --exact it is what DescribeTable knows, at once. With it the table is scanned. A scan returns the items
 * of one hash key together, so the largest partitions are found while it runs: only the present one and the
 * largest so far are kept, however many there are.
 *
 * What always holds: memory does not grow with the table. Of attributes, ATTRIBUTES_MAX names are counted;
 * what comes later is counted together.
 */
#include "base/base.h"
#include "cli/frame/output/json.h"
#include "cli/frame/output/progress.h"
#include "cli/table/table.h"

#include <holdfast/pages.h>

#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES_MAX = 1000, SLOTS = 4096, NAME_MAX_BYTES = 255 };
enum { TOP_MAX = 100, TYPES = HF_TYPE_BS + 1, KEY_TEXT_MAX = 2048 };

_Static_assert((SLOTS & (SLOTS - 1)) == 0 && SLOTS > 2 * ATTRIBUTES_MAX, "a table of names");

struct settings {
    struct database_settings database;
    bool exact;
    uint64_t top;
};

static const struct option_spec stats_specs[] = {
    OPT_FLAG("exact", exact,
             "Read the whole table: exact counts, the largest items and partitions, and all "
             "attributes. At Amazon that costs what a scan costs.",
             .letter = 'x'),
    OPT_NUMBER("top", top, 1, TOP_MAX, "With --exact: how many of the largest partitions to show.",
               .letter = 'n', .fallback = "5"),
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS_WITH(struct settings, "Time limit for a request; then the exit code is 7."),
};

static const struct option_example stats_examples[] = {
    {"holdfast table stats orders", "Items and bytes, of the table and its indexes."},
    {"holdfast table stats orders --exact",
     "Also the largest partitions, and which attributes there "
     "are."},
    {"holdfast table stats orders --exact --json | jq .largest_partitions", "For programs."},
};

const struct options_table hf__table_stats_options = {
    .name = "table stats",
    .operands = "NAME",
    .about =
        "Print how many items a table has, how large they are, and how large its indexes are.\n\n"
        "These figures are the database's own. Amazon updates them about every six hours; holdfast's are "
        "always current. With --exact the table is read and counted instead.",
    COMMAND_SPECS(stats),
};

/* ---- what is counted ------------------------------------------------------------------------ */

struct attribute_count {
    char *name; /* NULL: a free slot */
    size_t len;
    uint64_t items;
    uint64_t types[TYPES];
};

struct partition_count {
    char key[KEY_TEXT_MAX + 1]; /* as JSON, perhaps cut */
    uint64_t items;
    uint64_t bytes;
};

struct table_stats {
    struct command_ctx *c;
    const struct hf_table_description *table;
    uint64_t items;
    uint64_t bytes;
    uint64_t largest_bytes;
    struct hf_str largest_key; /* as JSON, in `kept` */
    uint64_t partitions;
    uint64_t largest_items; /* in one partition */
    struct hf_scope *kept;  /* the present hash key and the key of the largest item */
    struct hf_value hash;   /* the present one, in `kept`; absent: none yet */
    struct partition_count present;
    struct partition_count *top;
    size_t top_len;
    struct attribute_count *attributes; /* SLOTS of them */
    size_t attributes_len;
    uint64_t other_attributes; /* of names for which there was no slot */
};

/* ---- attributes ----------------------------------------------------------------------------- */

static size_t name_hash(struct hf_str name)
{
    uint64_t hash = 14695981039346656037ULL;

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.ptr[i]) * 1099511628211ULL;
    return (size_t)(hash ^ (hash >> 32));
}

/* NULL: there are too many names, or there is no memory. */
static struct attribute_count *attribute_find(struct table_stats *stats, struct hf_str name)
{
    size_t at = name_hash(name) & (SLOTS - 1);
    struct attribute_count *slot;

    for (;; at = (at + 1) & (SLOTS - 1)) {
        slot = &stats->attributes[at];
        if (!slot->name)
            break;
        if (slot->len == name.len && memcmp(slot->name, name.ptr, name.len) == 0)
            return slot;
    }
    if (stats->attributes_len == ATTRIBUTES_MAX || name.len == 0)
        return NULL;
    assert(stats->attributes_len < ATTRIBUTES_MAX && !slot->name);
    slot->name = malloc(name.len);
    if (!slot->name)
        return NULL;
    memcpy(slot->name, name.ptr, name.len);
    slot->len = name.len;
    stats->attributes_len++;
    return slot;
}

static void attributes_count(struct table_stats *stats, struct hf_item item)
{
    struct hf_item_walk walk = {.next = 0};

    while (hf_item_next(item, &walk)) {
        struct attribute_count *attribute = attribute_find(stats, walk.name);
        enum hf_type type = hf_value_type(walk.value);

        if (!attribute) {
            stats->other_attributes++;
            continue;
        }
        attribute->items++;
        assert((size_t)type < TYPES);
        attribute->types[type]++;
    }
}

static int compare_attributes(const void *a, const void *b)
{
    const struct attribute_count *left = a, *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order;

    if (!left->name || !right->name)
        return (left->name == NULL) - (right->name == NULL);
    if (left->items != right->items)
        return left->items < right->items ? 1 : -1;
    order = memcmp(left->name, right->name, len);
    return order ? order : (left->len > right->len) - (left->len < right->len);
}

/* ---- partitions ----------------------------------------------------------------------------- */

static bool value_equals(struct hf_value a, struct hf_value b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* Keep the present partition if it is one of the largest: `top` is sorted, the largest first. */
static void partition_end(struct table_stats *stats)
{
    const struct settings *settings = stats->c->settings;
    size_t at = stats->top_len;

    if (!stats->present.items)
        return;
    stats->partitions++;
    if (stats->present.items > stats->largest_items)
        stats->largest_items = stats->present.items;
    while (at > 0 && stats->top[at - 1].bytes < stats->present.bytes)
        at--;
    if (at == settings->top)
        return;
    if (stats->top_len < settings->top)
        stats->top_len++;
    assert(at < stats->top_len && stats->top_len <= settings->top);
    memmove(&stats->top[at + 1], &stats->top[at],
            (stats->top_len - at - 1) * sizeof(stats->top[0]));
    stats->top[at] = stats->present;
}

static enum hf_status partition_begin(struct table_stats *stats, struct hf_value hash)
{
    struct hf_scope *s = stats->kept;
    uint8_t *copy;
    struct hf_str text;

    hf_scope_reset(s);
    copy = hf_scope_alloc(s, hash.len + 1);
    text = hf__cli_json_of_value(s, hash);
    if (!copy || !text.ptr)
        return hf_scope_fail(stats->c->scope, HF_NOMEM, "out of memory");
    memcpy(copy, hash.ptr, hash.len);
    stats->hash = hash;
    stats->hash.ptr = copy;
    stats->present.items = stats->present.bytes = 0;
    snprintf(stats->present.key, sizeof(stats->present.key), "%s", text.ptr);
    return HF_OK;
}

/* ---- items ---------------------------------------------------------------------------------- */

static enum hf_status item_count(struct table_stats *stats, struct hf_item item)
{
    const struct hf_table_description *table = stats->table;
    struct hf_value hash = hf_item_get(item, table->key_schema[0].name);
    size_t size = hf_item_size(item);

    if (!stats->hash.ptr || !value_equals(stats->hash, hash)) {
        partition_end(stats);
        TRY(partition_begin(stats, hash));
    }
    stats->present.items++;
    stats->present.bytes += size;
    stats->items++;
    stats->bytes += size;
    attributes_count(stats, item);
    if (size <= stats->largest_bytes)
        return HF_OK;
    stats->largest_bytes = size;
    {
        struct json_text text;

        if (hf__cli_json_text_begin(&text)) {
            fputc('{', text.out);
            for (size_t i = 0; i < table->key_schema_len; i++) {
                if (i)
                    fputc(',', text.out);
                hf__cli_json_write_text(text.out, table->key_schema[i].name);
                fputc(':', text.out);
                hf__cli_json_write_value(text.out, stats->c->scope,
                                         hf_item_get(item, table->key_schema[i].name));
            }
            fputc('}', text.out);
        }
        stats->largest_key = hf__cli_json_text_end(&text, stats->c->scope);
    }
    return stats->largest_key.ptr ? HF_OK
                                  : hf_scope_fail(stats->c->scope, HF_NOMEM, "out of memory");
}

static enum hf_status pages_count(struct table_stats *stats, struct hf_pages *pages)
{
    struct command_ctx *c = stats->c;
    uint64_t expected = hf__cli_table_count(stats->table->item_count);
    struct progress progress;
    struct hf_page page = {.found = true};
    enum hf_status status = HF_OK;

    hf__progress_begin(&progress, c->cli, c->database->quiet, false);
    while (status == HF_OK) {
        hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
        status = hf_pages_next(c->scope, pages, &page);
        if (status != HF_OK || !page.found)
            break;
        for (size_t i = 0; i < page.len && status == HF_OK; i++)
            status = item_count(stats, page.items[i]);
        if (hf__progress_due(&progress, false))
            hf__progress_print(&progress, "read %llu of about %llu items, %.0f/s",
                               (unsigned long long)stats->items,
                               (unsigned long long)(expected > stats->items ? expected
                                                                            : stats->items),
                               hf__progress_rate(&progress, stats->items));
    }
    partition_end(stats);
    hf__progress_end(&progress);
    return status;
}

/* ---- printing ------------------------------------------------------------------------------- */

static const char *const type_names[TYPES] = {"",  "S", "N",  "B",  "BOOL", "NULL",
                                              "M", "L", "SS", "NS", "BS"};

static struct hf_str name_of(const struct attribute_count *attribute)
{
    return hf_str_of(attribute->name, attribute->len);
}

static void json_indexes(FILE *out, const struct hf_table_description *table)
{
    bool more = false;

    fputs(",\"indexes\":[", out);
    for (size_t kind = 0; kind < 2; kind++) {
        size_t len = kind ? table->global_indexes_len : table->local_indexes_len;
        const struct hf_index_description *indexes =
            kind ? table->global_indexes : table->local_indexes;

        for (size_t i = 0; i < len; i++) {
            fprintf(out, "%s{\"name\":", more ? "," : "");
            hf__cli_json_write_text(out, indexes[i].name);
            fprintf(out, ",\"items\":%llu,\"bytes\":%llu}",
                    (unsigned long long)hf__cli_table_count(indexes[i].item_count),
                    (unsigned long long)hf__cli_table_count(indexes[i].size_bytes));
            more = true;
        }
    }
    fputc(']', out);
}

static void json_exact(FILE *out, const struct table_stats *stats)
{
    fprintf(out,
            ",\"largest_item_bytes\":%llu,\"largest_item_key\":%s,\"partitions\":%llu,"
            "\"largest_partition_items\":%llu,\"largest_partitions\":[",
            (unsigned long long)stats->largest_bytes,
            stats->largest_key.ptr ? stats->largest_key.ptr : "null",
            (unsigned long long)stats->partitions, (unsigned long long)stats->largest_items);
    for (size_t i = 0; i < stats->top_len; i++) {
        fprintf(out, "%s{\"key\":", i ? "," : "");
        /* a key that was cut is no JSON any more, so it is shown as text */
        if (strlen(stats->top[i].key) < KEY_TEXT_MAX)
            fputs(stats->top[i].key, out);
        else
            hf__cli_json_write_text(out, hf_str_from(stats->top[i].key));
        fprintf(out, ",\"items\":%llu,\"bytes\":%llu}", (unsigned long long)stats->top[i].items,
                (unsigned long long)stats->top[i].bytes);
    }
    fputs("],\"attributes\":[", out);
    for (size_t i = 0; i < stats->attributes_len; i++) {
        const struct attribute_count *attribute = &stats->attributes[i];
        bool more = false;

        fprintf(out, "%s{\"name\":", i ? "," : "");
        hf__cli_json_write_text(out, name_of(attribute));
        fprintf(out, ",\"items\":%llu,\"types\":{", (unsigned long long)attribute->items);
        for (size_t type = 1; type < TYPES; type++)
            if (attribute->types[type]) {
                fprintf(out, "%s\"%s\":%llu", more ? "," : "", type_names[type],
                        (unsigned long long)attribute->types[type]);
                more = true;
            }
        fputs("}}", out);
    }
    fprintf(out, "],\"other_attributes\":%llu", (unsigned long long)stats->other_attributes);
}

static void stats_json(struct table_stats *stats)
{
    const struct settings *settings = stats->c->settings;
    FILE *out = stats->c->cli->out;

    fputs("{\"name\":", out);
    hf__cli_json_write_text(out, stats->table->name);
    fprintf(out, ",\"exact\":%s,\"items\":%llu,\"bytes\":%llu,\"average_item_bytes\":%llu",
            settings->exact ? "true" : "false", (unsigned long long)stats->items,
            (unsigned long long)stats->bytes,
            (unsigned long long)(stats->items ? stats->bytes / stats->items : 0));
    if (settings->exact)
        json_exact(out, stats);
    json_indexes(out, stats->table);
    fputs("}\n", out);
}

/* 1536 as "1.5 KiB" for people, exact for programs. */
static struct hf_str bytes_text(struct command_ctx *c, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;

    if (!hf__cli_for_people(c->cli) || bytes < 1024)
        return hf_scope_format(c->scope, "%llu%s", (unsigned long long)bytes,
                               hf__cli_for_people(c->cli) ? " bytes" : "");
    while (value >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        unit++;
    }
    return hf_scope_format(c->scope, "%.1f %s", value, units[unit]);
}

static void text_indexes(struct command_ctx *c, const struct hf_index_description *indexes,
                         size_t len)
{
    FILE *out = c->cli->out;

    for (size_t i = 0; i < len; i++) {
        struct hf_str size = bytes_text(c, hf__cli_table_count(indexes[i].size_bytes));

        fputs("index        ", out);
        hf__rows_print(out, indexes[i].name);
        fprintf(out, ": %llu items, %.*s\n",
                (unsigned long long)hf__cli_table_count(indexes[i].item_count), HF_FMT(size));
    }
}

static void text_exact(struct table_stats *stats)
{
    struct command_ctx *c = stats->c;
    FILE *out = c->cli->out;

    for (size_t i = 0; i < stats->top_len; i++) {
        struct hf_str size = bytes_text(c, stats->top[i].bytes);

        fputs("partition    ", out);
        hf__rows_print(out, hf_str_from(stats->top[i].key));
        fprintf(out, ": %llu items, %.*s\n", (unsigned long long)stats->top[i].items, HF_FMT(size));
    }
    for (size_t i = 0; i < stats->attributes_len; i++) {
        const struct attribute_count *attribute = &stats->attributes[i];
        const char *between = "";

        fputs("attribute    ", out);
        hf__rows_print(out, name_of(attribute));
        fputs(": ", out);
        for (size_t type = 1; type < TYPES; type++)
            if (attribute->types[type]) {
                fprintf(out, "%s%s", between, type_names[type]);
                if (attribute->types[type] != attribute->items)
                    fprintf(out, " %llu", (unsigned long long)attribute->types[type]);
                between = ", ";
            }
        fprintf(out, ", in %llu items (%.0f %%)\n", (unsigned long long)attribute->items,
                100.0 * (double)attribute->items / (double)stats->items);
    }
    if (stats->other_attributes)
        fprintf(out, "more than %d attribute names: others were found %llu times\n",
                (int)ATTRIBUTES_MAX, (unsigned long long)stats->other_attributes);
}

static enum hf_status stats_text(struct table_stats *stats)
{
    const struct settings *settings = stats->c->settings;
    struct command_ctx *c = stats->c;
    uint64_t average = stats->items ? stats->bytes / stats->items : 0;

    if (settings->exact)
        TRY(COMMAND_PRINT(c, hf__rows_text("name", stats->table->name),
                          hf__rows_number(c->cli, "items", stats->items),
                          hf__rows_text("size", bytes_text(c, stats->bytes)),
                          hf__rows_text("average item", bytes_text(c, average)),
                          hf__rows_text("largest item", bytes_text(c, stats->largest_bytes)),
                          hf__rows_text("with the key", stats->largest_key),
                          hf__rows_number(c->cli, "partitions", stats->partitions),
                          hf__rows_number(c->cli, "most items in one", stats->largest_items)));
    else
        TRY(COMMAND_PRINT(c, hf__rows_text("name", stats->table->name),
                          hf__rows_number(c->cli, "items", stats->items),
                          hf__rows_text("size", bytes_text(c, stats->bytes)),
                          hf__rows_text("average item", bytes_text(c, average))));
    text_indexes(c, stats->table->local_indexes, stats->table->local_indexes_len);
    text_indexes(c, stats->table->global_indexes, stats->table->global_indexes_len);
    if (settings->exact)
        text_exact(stats);
    return HF_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static enum hf_status table_count(struct table_stats *stats)
{
    const struct settings *settings = stats->c->settings;
    struct hf_scan scan = {.table = hf__command_operand(stats->c, 0)};
    struct hf_pages *pages = NULL;
    enum hf_status status;

    stats->kept = hf_scope_new(NULL);
    stats->top = calloc(settings->top + 1, sizeof(*stats->top));
    stats->attributes = calloc(SLOTS, sizeof(*stats->attributes));
    if (!stats->kept || !stats->top || !stats->attributes)
        return hf_scope_fail(stats->c->scope, HF_NOMEM, "out of memory");
    TRY(hf_pages_scan(stats->c->scope, stats->c->db, &scan, NULL, &pages));
    status = pages_count(stats, pages);
    hf_pages_free(pages);
    qsort(stats->attributes, SLOTS, sizeof(*stats->attributes), compare_attributes);
    return status;
}

static void stats_free(struct table_stats *stats)
{
    for (size_t i = 0; stats->attributes && i < SLOTS; i++)
        free(stats->attributes[i].name);
    free(stats->attributes);
    free(stats->top);
    hf_scope_free(stats->kept);
}

static enum hf_status table_stats(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct table_stats *stats = hf_scope_alloc(c->scope, sizeof(*stats));
    enum hf_status status = HF_OK;

    if (!stats)
        return HF_NOMEM;
    memset(stats, 0, sizeof(*stats));
    stats->c = c;
    TRY(hf__cli_table_describe(c, hf__command_operand(c, 0), &stats->table));
    stats->items = hf__cli_table_count(stats->table->item_count);
    stats->bytes = hf__cli_table_count(stats->table->size_bytes);
    if (settings->exact) {
        stats->items = stats->bytes = 0;
        status = table_count(stats);
    }
    if (status == HF_OK && !c->database->quiet) {
        if (c->database->json)
            stats_json(stats);
        else
            status = stats_text(stats);
    }
    stats_free(stats);
    return status;
}

const struct command hf__table_stats_command = {COMMAND_SETTINGS(struct settings), .min = 1,
                                                .max = 1, .body = table_stats};
