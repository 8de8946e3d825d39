/*
 * cli/outbox/outbox_names.c: an outbox whose attributes have other names than the usual. A program has them
 * in its options; the user need not repeat what the table says itself: the names of the key are in
 * its description, and that of the time to live is in its mark (docs/tables.md).
 *
 * Most tables have the usual names, so those are tried first. A failed attempt changes
 * nothing: it only looks at the table.
 */
#include "cli/outbox/outbox.h"

#include "base/base.h"

#include <holdfast/db.h>

/* Is it an outbox under other names? In the scope. */
static bool find_names(struct hf_scope *s, struct hf_db *db, struct hf_outbox_options *options)
{
    struct hf_str table = options->table.len ? options->table : HF_STR("outbox");
    struct hf_describe_table_result described;
    struct hf_get_item get = {.table = table, .consistent = HF_YES};
    const struct hf_key_element *keys;
    struct hf_get_item_result got;
    struct hf_value expires;
    struct hf_attr key[2];

    if (hf_describe_table(s, db, &(struct hf_describe_table){.table = table}, &described) !=
            HF_OK ||
        described.table->key_schema_len != 2)
        return false;
    keys = described.table->key_schema;
    key[0] = (struct hf_attr){.name = keys[0].name, .type = HF_TYPE_S, .text = HF_STR("c")};
    key[1] = (struct hf_attr){.name = keys[1].name, .type = HF_TYPE_S, .text = HF_STR("config")};
    get.key = hf_item_make(s, key, 2);
    if (hf_scope_built(s) != HF_OK || hf_get_item(s, db, &get, &got) != HF_OK ||
        !hf_str_equal(hf_value_str(hf_item_get(got.item, HF_STR("kind"))), HF_STR("outbox")))
        return false;
    options->hash_attribute = keys[0].name;
    options->sort_attribute = keys[1].name;
    expires = hf_item_get(got.item, HF_STR("expires_attribute"));
    if (expires.ptr)
        options->expires_attribute = hf_value_str(expires);
    return true;
}

/* hf_outbox_open(), under the names that the table has. */
static enum hf_status outbox_open_named(struct hf_scope *s, struct hf_db *db,
                                        const struct hf_outbox_options *options,
                                        struct hf_outbox **outbox)
{
    enum hf_status status = hf_outbox_open(s, db, options, outbox);
    struct hf_outbox_options with = *options;
    uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX);
    struct hf_scope *look;

    if (status != HF_INVALID)
        return status;
    look = hf_scope_new(hf_scope_env(s)); /* so that the refusal stays, if it is one */
    if (look && left_ms != UINT32_MAX)
        hf_scope_timeout_ms(look, left_ms ? left_ms : 1);
    if (look && find_names(look, db, &with))
        status = hf_outbox_open(s, db, &with, outbox);
    hf_scope_free(look);
    return status;
}

enum hf_status hf__cli_outbox_place_open(struct command_ctx *c, struct hf_str blobs,
                                         const struct hf_outbox_options *options)
{
    struct hf_outbox_options with = *options;
    struct hf_outbox *outbox;

    TRY(hf__command_open_blobs(c, blobs));
    with.blobs = c->blobs;
    with.no_create = !c->makes;
    TRY(outbox_open_named(c->scope, c->db, &with, &outbox));
    c->place = outbox;
    return HF_OK;
}

void hf__cli_outbox_place_close(void *place)
{
    hf_outbox_close(place);
}
