/*
 * outbox/outbox_pause.c: pausing all relays of an outbox.
 *
 * The item c/config has the mark, `paused`: a map with `since`, in microseconds since 1970, and `why`.
 * Ordered relays read that partition anyway, when they look at each other (relay_member_item.c);
 * competing ones read the item as often (relay_pause.c).
 */
#include "outbox/outbox.h"

#include "coord/placeholders.h"

static struct hf_item config_key(struct hf_scope *s, const struct hf_outbox *outbox)
{
    return hf__outbox_key_of(s, outbox, HF_STR("c"), HF_STR("config"));
}

bool hf__outbox_config_paused(struct hf_item config, struct hf_outbox_pause *pause)
{
    struct hf_value mark = hf_item_get(config, HF_STR("paused"));
    struct hf_item map = hf_value_item(mark);

    *pause = (struct hf_outbox_pause){.paused = mark.ptr != NULL};
    (void)hf_value_i64(hf_item_get(map, HF_STR("since")), &pause->since_us);
    pause->why = hf_value_str(hf_item_get(map, HF_STR("why")));
    return pause->paused;
}

enum hf_status hf_outbox_paused(struct hf_scope *s, struct hf_outbox *outbox,
                                struct hf_outbox_pause *pause)
{
    struct hf_item config;

    *pause = (struct hf_outbox_pause){.paused = false};
    TRY(hf__pattern_read(s, outbox->db, outbox->table, config_key(s, outbox), &config));
    (void)hf__outbox_config_paused(config, pause);
    return hf_scope_ok(s);
}

/* HF_OK also where the condition says that it is as wanted. */
static enum hf_status pause_send(struct hf_scope *s, struct hf_outbox *outbox,
                                 struct hf_update_item *update)
{
    struct hf_item found;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = update},
                               update->key, &found);
    if (status != HF_CONDITION)
        return status;
    return found.ptr ? hf_scope_ok(s)
                     : hf_scope_fail(s, HF_NOT_FOUND, "outbox %.*s has no configuration any more",
                                     HF_FMT(outbox->table));
}

enum hf_status hf_outbox_pause(struct hf_scope *s, struct hf_outbox *outbox, struct hf_str why)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_update_item update = {.table = outbox->table, .key = config_key(s, outbox)};
    struct hf_item mark;

    if (why.len > HF_EVENT_TEXT_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_EVENT_TEXT_MAX, why.len),
                                   "the reason of a pause has at most %d bytes, not %zu",
                                   HF_EVENT_TEXT_MAX, why.len);
    mark = why.len ? HF_ITEM(s, HF_N("since", hf__env_wall_us(&outbox->env)), HF_S("why", why))
                   : HF_ITEM(s, HF_N("since", hf__env_wall_us(&outbox->env)));
    NAMES(&h, "#pk", "#paused");
    VALUE(&h, HF_M(":mark", mark));
    update.update = HF_STR("SET #paused = :mark");
    update.condition = HF_STR("attribute_exists(#pk) AND attribute_not_exists(#paused)");
    update.names = hf_item_make(s, h.names, h.names_len);
    update.values = hf_item_make(s, h.values, h.values_len);
    return pause_send(s, outbox, &update);
}

enum hf_status hf_outbox_resume(struct hf_scope *s, struct hf_outbox *outbox)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_update_item update = {.table = outbox->table,
                                    .key = config_key(s, outbox),
                                    .update = HF_STR("REMOVE #paused"),
                                    .condition = HF_STR("attribute_exists(#paused)")};

    NAMES(&h, "#paused");
    update.names = hf_item_make(s, h.names, h.names_len);
    return pause_send(s, outbox, &update);
}
