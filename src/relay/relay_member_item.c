/*
 * relay/relay_member_item.c: what relays store about themselves and about whose each bucket is:
 * the requests, and the items as they are read.
 *
 * In partition "c" of the table:
 *
 *     sk       what
 *     m.RELAY  a relay: its beat, which it counts up with every heartbeat; its lease_ms; its owner,
 *              for people; `stopped` when it has ended; `opener` (opener.c); `only` if it does not
 *              deliver all events: (6)
 *     b.n      a bucket: `relay`, its owner (absent: none), and its fence; `window`, if it was taken
 *              over from a relay that did not stop properly, until relay_suspect.c removes it
 *
 * (n) is that of relay_member.c. Only the heartbeat thread uses all of this.
 */
#include <holdfast/pages.h>

#include "coord/placeholders.h"
#include "relay/relay.h"

#include <stdio.h>

enum { STOPPED_TTL_S = 3600, ENOUGH_MEMBERS = 8 };

/* ---- items ---------------------------------------------------------------------------------- */

static struct hf_str text_of(struct hf_item item, const char *name)
{
    return hf_value_str(hf_item_get(item, hf_str_from(name)));
}

static uint64_t number_of(struct hf_item item, const char *name)
{
    int64_t number = 0;

    (void)hf_value_i64(hf_item_get(item, hf_str_from(name)), &number);
    return number < 0 ? 0 : (uint64_t)number;
}

static void set_id(struct pattern_id *id, struct hf_str text)
{
    size_t len = text.len < PATTERN_ID_LEN ? text.len : PATTERN_ID_LEN;

    memset(id, 0, sizeof(*id));
    if (len)
        memcpy(id->text, text.ptr, len);
}

static struct hf_item member_key(const struct hf_relay *relay, const struct pattern_id *id)
{
    return hf__outbox_key_of(relay->heartbeat.scope, relay->outbox, HF_STR("c"),
                             hf_scope_format(relay->heartbeat.scope, "m.%s", id->text));
}

static struct hf_item row_key(const struct hf_relay *relay, uint32_t bucket)
{
    return hf__outbox_key_of(relay->heartbeat.scope, relay->outbox, HF_STR("c"),
                             hf_scope_format(relay->heartbeat.scope, "b.%03u", bucket));
}

/* ---- requests ------------------------------------------------------------------------------- */

/* The heartbeat. The first one creates the item: nobody else has our id. */
enum hf_status hf__member_send_beat(struct hf_relay *relay, bool first)
{
    struct hf_scope *s = relay->heartbeat.scope;
    uint64_t beat = relay->members.beat + 1;
    struct hf_item key = member_key(relay, &relay->members.id), item;
    struct hf_str opener = hf_db_opener(relay->outbox->db);
    struct holders h = {.s = s, .at = &relay->outbox->at};
    struct hf_update_item update = {.table = relay->outbox->table,
                                    .key = key,
                                    .update = HF_STR("SET #beat = :beat"),
                                    .condition = HF_STR("#beat < :beat AND "
                                                        "attribute_not_exists(#stopped)")};
    enum hf_status status;

    NAMES(&h, "#beat");
    VALUE(&h, HF_N(":beat", beat));
    if (first) {
        update.update = hf_scope_format(s,
                                        "SET #beat = :beat, #lease_ms = :lease, #owner = :owner"
                                        "%s%s",
                                        opener.len ? ", #opener = :opener" : "",
                                        relay->only_text.len ? ", #only = :only" : "");
        update.condition = HF_STR("attribute_not_exists(#pk)");
        NAMES(&h, "#lease_ms", "#owner", "#pk");
        VALUE(&h, HF_N(":lease", relay->o.lease_ms));
        VALUE(&h, HF_S(":owner", relay->o.owner));
        if (opener.len) {
            NAMES(&h, "#opener");
            VALUE(&h, HF_S(":opener", opener));
        }
        if (relay->only_text.len) {
            NAMES(&h, "#only");
            VALUE(&h, HF_S(":only", relay->only_text));
        }
    } else {
        NAMES(&h, "#stopped");
    }
    update.names = hf_item_make(s, h.names, h.names_len);
    update.values = hf_item_make(s, h.values, h.values_len);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.update = &update},
                               key, &item);
    if (status == HF_CONDITION)
        status =
            item.ptr && number_of(item, "beat") == beat && !hf_item_get(item, HF_STR("stopped")).ptr
                ? HF_OK
                : HF_LOST;
    if (status == HF_OK || hf_scope_error(s)->may_have_happened)
        relay->members.beat = beat;
    return status;
}

/* (2) Take a bucket without an owner, or whose owner has ended. HF_CONDITION: another relay was
 * faster. */
enum hf_status hf__member_send_take(struct hf_relay *relay, uint32_t bucket, uint32_t window)
{
    struct hf_scope *s = relay->heartbeat.scope;
    const struct relay_row *row = &relay->members.rows[bucket];
    struct hf_item key = row_key(relay, bucket), item;
    bool from = row->owner.text[0];
    struct hf_attr names[] = {HF_S("#relay", HF_STR("relay")), HF_S("#fence", HF_STR("fence")),
                              HF_S("#window", HF_STR("window"))};
    struct hf_attr values[5] = {HF_S(":me", id_str(&relay->members.id)),
                                HF_N(":new", row->fence + 1)};
    size_t len = 2;
    struct hf_update_item update = {
        .table = relay->outbox->table,
        .key = key,
        .update = window ? HF_STR("SET #relay = :me, #fence = :new, #window = :window")
                         : HF_STR("SET #relay = :me, #fence = :new"),
        .condition = !row->there ? HF_STR("attribute_not_exists(#fence)")
                     : from      ? HF_STR("#relay = :from AND #fence = :fence")
                                 : HF_STR("attribute_not_exists(#relay) AND #fence = :fence"),
        .names = hf_item_make(s, names, window ? 3 : 2)};
    enum hf_status status;

    if (window)
        values[len++] = (struct hf_attr)HF_N(":window", window);
    if (row->there)
        values[len++] = (struct hf_attr)HF_N(":fence", row->fence);
    if (row->there && from)
        values[len++] = (struct hf_attr)HF_S(":from", hf_str_from(row->owner.text));
    update.values = hf_item_make(s, values, len);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.update = &update},
                               key, &item);
    if (status == HF_CONDITION &&
        hf_str_equal(text_of(item, "relay"), id_str(&relay->members.id)) &&
        number_of(item, "fence") == row->fence + 1)
        return HF_OK;
    return status;
}

/* (2) Remove what `what` says of a bucket that is ours. HF_OK: it is removed, or not ours. */
static enum hf_status send_change(struct hf_relay *relay, uint32_t bucket, uint64_t fence,
                                  struct hf_str what, bool window)
{
    struct hf_scope *s = relay->heartbeat.scope;
    struct hf_item key = row_key(relay, bucket), item;
    struct hf_attr names[] = {HF_S("#relay", HF_STR("relay")), HF_S("#fence", HF_STR("fence")),
                              HF_S("#window", HF_STR("window"))};
    struct hf_update_item update = {.table = relay->outbox->table,
                                    .key = key,
                                    .update = what,
                                    .condition = HF_STR("#relay = :me AND #fence = :fence"),
                                    .names = hf_item_make(s, names, window ? 3 : 2),
                                    .values = HF_ITEM(s, HF_S(":me", id_str(&relay->members.id)),
                                                      HF_N(":fence", fence))};
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.update = &update},
                               key, &item);
    return status == HF_CONDITION ? HF_OK : status;
}

/* (2) HF_OK: it is not ours any more. `over`: no suspects are left in it. */
enum hf_status hf__member_send_release(struct hf_relay *relay, uint32_t bucket, uint64_t fence,
                                       bool over)
{
    return send_change(relay, bucket, fence,
                       over ? HF_STR("REMOVE #relay, #window") : HF_STR("REMOVE #relay"), over);
}

enum hf_status hf__member_send_window(struct hf_relay *relay, uint32_t bucket, uint64_t fence)
{
    return send_change(relay, bucket, fence, HF_STR("REMOVE #window"), true);
}

/* We have ended, or are to be another one. */
enum hf_status hf__member_send_stopped(struct hf_relay *relay)
{
    struct hf_scope *s = relay->heartbeat.scope;
    struct hf_item key = member_key(relay, &relay->members.id), item;
    struct hf_update_item update = {
        .table = relay->outbox->table,
        .key = key,
        .update = HF_STR("SET #stopped = :true, #ttl = :ttl"),
        .condition = HF_STR("attribute_exists(#beat)"),
        .names = HF_ITEM(s, HF_S("#stopped", HF_STR("stopped")), HF_S("#beat", HF_STR("beat")),
                         HF_S("#ttl", relay->outbox->at.expires)),
        .values = HF_ITEM(s, HF_BOOL(":true", true),
                          HF_N(":ttl", hf__env_wall_ms(&relay->env) / 1000 + STOPPED_TTL_S))};
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.update = &update},
                               key, &item);
    return status == HF_CONDITION ? HF_OK : status;
}

enum hf_status hf__member_send_remove(struct hf_relay *relay, const struct relay_member *member)
{
    struct hf_scope *s = relay->heartbeat.scope;
    struct hf_item key = member_key(relay, &member->id), item;
    struct hf_delete_item del = {.table = relay->outbox->table,
                                 .key = key,
                                 .condition = HF_STR("#beat = :beat"),
                                 .names = HF_ITEM(s, HF_S("#beat", HF_STR("beat"))),
                                 .values = HF_ITEM(s, HF_N(":beat", member->sight.beat))};

    TRY(hf_scope_built(s));
    return hf__pattern_write(s, relay->outbox->db, &(struct hf_transact_write){.del = &del}, key,
                             &item);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct relay_member *hf__member_find(const struct hf_relay *relay, const struct pattern_id *id)
{
    for (size_t i = 0; i < relay->members.len; i++)
        if (compare_ids(&relay->members.list[i].id, id) == 0)
            return &relay->members.list[i];
    return NULL;
}

/* In the order of ids. NULL: no memory. */
static struct relay_member *member_add(struct hf_relay *relay, const struct pattern_id *id)
{
    size_t at = relay->members.len, size = relay->members.size;

    if (at == size) {
        size_t larger = size ? size * 2 : ENOUGH_MEMBERS;
        struct relay_member *members =
            hf__env_resize(&relay->env, relay->members.list, size * sizeof(*members),
                           larger * sizeof(*members));

        if (!members)
            return NULL;
        relay->members.list = members;
        relay->members.size = larger;
    }
    while (at && compare_ids(&relay->members.list[at - 1].id, id) > 0) {
        relay->members.list[at] = relay->members.list[at - 1];
        at--;
    }
    relay->members.list[at] = (struct relay_member){.id = *id};
    relay->members.len++;
    return &relay->members.list[at];
}

static enum hf_status see_member(struct hf_relay *relay, struct hf_str sk, struct hf_item item)
{
    struct relay_member *member;
    struct pattern_id id;

    set_id(&id, hf_str_of(sk.ptr + 2, sk.len - 2));
    member = hf__member_find(relay, &id);
    member = member ? member : member_add(relay, &id);
    if (!member)
        return hf_scope_fail(relay->heartbeat.scope, HF_NOMEM, "no memory for another relay");
    hf__watch_see(&member->sight, number_of(item, "beat"), relay_now_us(relay));
    member->lease_ms = (uint32_t)number_of(item, "lease_ms");
    member->stopped = hf_value_true(hf_item_get(item, HF_STR("stopped")));
    member->orphaned = hf__pattern_is_orphan(relay->outbox->db, text_of(item, "opener"));
    member->differs = !hf_str_equal(text_of(item, "only"), relay->only_text);
    snprintf(member->only, sizeof(member->only), "%.*s", HF_FMT(text_of(item, "only")));
    snprintf(member->owner, sizeof(member->owner), "%.*s", HF_FMT(text_of(item, "owner")));
    member->there = true;
    return HF_OK;
}

static void see_row(struct hf_relay *relay, struct hf_str sk, struct hf_item item)
{
    uint32_t bucket = 0;

    for (size_t i = 2; i < sk.len; i++)
        bucket = bucket * 10 + (uint32_t)(sk.ptr[i] - '0');
    if (bucket >= relay->outbox->buckets)
        return;
    relay->members.rows[bucket].there = true;
    relay->members.rows[bucket].fence = number_of(item, "fence");
    relay->members.rows[bucket].window = (uint32_t)number_of(item, "window");
    set_id(&relay->members.rows[bucket].owner, text_of(item, "relay"));
}

static bool text_begins(struct hf_str text, const char *with)
{
    return text.len > 2 && memcmp(text.ptr, with, 2) == 0;
}

/* One query of the partition; pages are followed. */
enum hf_status hf__member_read_all(struct hf_relay *relay)
{
    struct hf_scope *s = relay->heartbeat.scope;
    struct hf_query query = {.table = relay->outbox->table,
                             .key_condition = HF_STR("#pk = :c"),
                             .names = HF_ITEM(s, HF_S("#pk", relay->outbox->at.hash)),
                             .values = HF_ITEM(s, HF_S(":c", HF_STR("c"))),
                             .consistent = HF_YES};
    struct hf_outbox_pause pause;
    struct hf_pages *pages;
    enum hf_status status;
    struct hf_item item;

    memset(relay->members.rows, 0, relay->outbox->buckets * sizeof(*relay->members.rows));
    for (size_t i = 0; i < relay->members.len; i++)
        relay->members.list[i].there = false;
    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, relay->outbox->db, &query, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_str sk = sk_of(relay->outbox, item);

        if (text_begins(sk, "b."))
            see_row(relay, sk, item);
        else if (hf_str_equal(sk, HF_STR("config")))
            hf__relay_pause_all(relay, hf__outbox_config_paused(item, &pause));
        else if (text_begins(sk, "m.") && (status = see_member(relay, sk, item)) != HF_OK)
            break;
    }
    hf_pages_free(pages);
    return status;
}
