/* oracle/drive_write.c: writes, batches of them, and transactions. */
#include <stdio.h>
#include <string.h>

#include "drive.h"

enum { TX_MAX = 5, BATCH_MAX = 6 };

static int64_t now_us(struct drive *d)
{
    return d->t->wall_us;
}

static struct owrite gen_write(struct drive *d, enum write_kind kind)
{
    struct otable *table = some_table(d);
    struct owrite write = {.kind = kind, .table = table};

    write.item = kind == W_PUT ? gen_item(&d->g, table) : gen_key(&d->g, table);
    if (kind == W_CHECK || chance(d, 3))
        write.cond = gen_cond(&d->g, table, 3, NULL, NULL);
    if (kind == W_UPDATE && !chance(d, 20))
        write.update = gen_update(&d->g, table);
    write.old_on_failure = chance(d, 2);
    return write;
}

/* The request without its closing brace. */
static struct text write_request(struct drive *d, const struct owrite *write)
{
    struct text json = {.arena = &d->o.arena};
    struct text cond = {.arena = &d->o.arena};
    struct text update = {.arena = &d->o.arena};
    struct render r;

    render_begin(&r, &d->o.arena, &d->g.rnd);
    text_add(&json, "{\"TableName\":\"%s\",\"%s\":", write->table->name,
             write->kind == W_PUT ? "Item" : "Key");
    item_json(&json, write->item, &d->g.rnd);
    if (write->cond) {
        render_cond(&r, &cond, write->cond);
        text_add(&json, ",\"ConditionExpression\":\"%s\"", cond.ptr);
    }
    if (write->update) {
        render_update(&r, &update, write->update);
        text_add(&json, ",\"UpdateExpression\":\"%s\"", update.ptr);
    }
    render_end(&r, &json);
    if (write->cond && write->old_on_failure)
        text_add(&json, ",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"");
    return json;
}

static void expect_one_of(struct drive *d, const struct judged *judged, struct hf_str message)
{
    for (int i = 0; i < judged->messages_len; i++)
        if (hf_str_equal(hf_str_from(judged->messages[i]), message))
            return;
    mismatch(d, "message", judged->messages[0], hf_scope_copy(d->w.scope, message).ptr);
}

/* ---- single writes --------------------------------------------------------------------------- */

static const char *const returns[] = {"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"};

static struct val *returned(struct drive *d, const struct owrite *write,
                            const struct judged *judged, int which)
{
    struct val *image = which == 1 || which == 3 ? judged->before : judged->after;
    struct path paths[ACTIONS_MAX];
    struct val *out;

    if (which == 0 || !image)
        return NULL;
    if (which <= 2)
        return image;
    if (!write->update)
        return NULL;
    for (int i = 0; i < write->update->len; i++)
        paths[i] = write->update->actions[i].target;
    out = project(&d->o.arena, paths, write->update->len, image);
    return out->count ? out : NULL;
}

void do_write(struct drive *d)
{
    static const char *const names[] = {"PutItem", "UpdateItem", "DeleteItem"};
    enum write_kind kind = (enum write_kind)rnd_below(&d->g.rnd, 3);
    struct owrite write = gen_write(d, kind);
    struct judged judged = judge(&d->o, &write);
    struct text json = write_request(d, &write);
    int which = rnd_below(&d->g.rnd, kind == W_UPDATE ? 5 : 2);
    const struct hf_error *error;
    struct hf_update_item_result result; /* all three begin with the attributes */
    enum hf_status status;

    _Static_assert(sizeof(struct hf_put_item_result) == sizeof(result), "alike");
    _Static_assert(sizeof(struct hf_delete_item_result) == sizeof(result), "alike");
    text_add(&json, ",\"ReturnValues\":\"%s\"}", returns[which]);
    status = drive_call(d, names[kind], json.ptr, &result);
    error = hf_scope_error(d->w.scope);
    if (judged.verdict == FINE) {
        expect_text(d, "status", "", status == HF_OK ? "" : hf_scope_error_text(d->w.scope));
        expect_item(d, "attributes", returned(d, &write, &judged, which), result.attributes);
        apply(&d->o, &write, &judged, now_us(d));
    } else if (judged.verdict == CONDITION_FAILED) {
        expect_number(d, "status", HF_CONDITION, status);
        expect_item(d, "item of the error", write.old_on_failure ? judged.before : NULL,
                    error->item);
    } else {
        expect_number(d, "status", HF_INVALID, status);
        expect_one_of(d, &judged, error->message);
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

static bool same_item(const struct owrite *a, const struct owrite *b, struct oracle *o)
{
    return a->table == b->table &&
           val_equal(key_of(o, a->table, a->item), key_of(o, b->table, b->item));
}

/* Up to `max` writes to different items. */
static int gen_writes(struct drive *d, struct owrite *writes, int max, bool batch)
{
    int len = 0;

    for (int tries = 1 + rnd_below(&d->g.rnd, max); tries > 0; tries--) {
        bool twice = false;

        writes[len] = gen_write(d, batch ? chance(d, 2) ? W_PUT : W_DELETE
                                         : (enum write_kind)rnd_below(&d->g.rnd, 4));
        if (writes[len].kind == W_UPDATE && !writes[len].update)
            writes[len].update = gen_update(&d->g, writes[len].table); /* must be there */
        if (batch)
            writes[len].cond = NULL;
        else if (writes[len].kind != W_CHECK && !chance(d, 3))
            writes[len].cond = NULL; /* or hardly any transaction would happen */
        else
            writes[len].cond = gen_cond(&d->g, writes[len].table, 1, NULL, NULL);
        for (int i = 0; i < len; i++)
            twice |= same_item(&writes[i], &writes[len], &d->o);
        len += !twice;
    }
    return len;
}

void do_batch_write(struct drive *d)
{
    struct owrite writes[BATCH_MAX];
    struct judged judged[BATCH_MAX];
    int len = gen_writes(d, writes, BATCH_MAX, true);
    struct text json = {.arena = &d->o.arena};
    struct hf_batch_write_item_result result;
    const struct judged *wrong = NULL;
    enum hf_status status;
    const char *between = "";

    text_add(&json, "{\"RequestItems\":{");
    for (int t = 0; t < d->o.tables_len; t++) {
        bool first = true;

        for (int i = 0; i < len; i++) {
            if (writes[i].table != &d->o.tables[t])
                continue;
            if (first)
                text_add(&json, "%s\"%s\":[", between, writes[i].table->name);
            text_add(&json,
                     writes[i].kind == W_PUT ? "%s{\"PutRequest\":{\"Item\":"
                                             : "%s{\"DeleteRequest\":{\"Key\":",
                     first ? "" : ",");
            first = false;
            item_json(&json, writes[i].item, &d->g.rnd);
            text_add(&json, "}}");
            judged[i] = judge(&d->o, &writes[i]);
            if (!wrong && judged[i].verdict == INVALID)
                wrong = &judged[i];
        }
        if (!first) {
            text_add(&json, "]");
            between = ",";
        }
    }
    text_add(&json, "}}");
    status = drive_call(d, "BatchWriteItem", json.ptr, &result);
    if (wrong) {
        expect_number(d, "status", HF_INVALID, status);
        expect_one_of(d, wrong, hf_scope_error(d->w.scope)->message);
        return;
    }
    expect_text(d, "status", "", status == HF_OK ? "" : hf_scope_error_text(d->w.scope));
    expect_number(d, "unprocessed", 0, (int64_t)result.unprocessed_len);
    for (int i = 0; i < len; i++)
        apply(&d->o, &writes[i], &judged[i], now_us(d));
}

/* ---- transactions ---------------------------------------------------------------------------- */

static struct text transact_request(struct drive *d, const struct owrite *writes, int len,
                                    bool *token)
{
    static const char *const names[] = {"Put", "Update", "Delete", "ConditionCheck"};
    struct text json = {.arena = &d->o.arena};

    text_add(&json, "{\"TransactItems\":[");
    for (int i = 0; i < len; i++) {
        struct text one = write_request(d, &writes[i]);

        text_add(&json, "%s{\"%s\":%s}}", i ? "," : "", names[writes[i].kind], one.ptr);
    }
    text_add(&json, "]");
    *token = chance(d, 2);
    if (*token)
        text_add(&json, ",\"ClientRequestToken\":\"token-%llx-%d\"", (unsigned long long)d->seed,
                 d->step);
    text_add(&json, "}");
    return json;
}

static void expect_reason(struct drive *d, const struct owrite *write, const struct judged *judged,
                          bool only_at_once, bool reached, const struct hf_cancel_reason *reason)
{
    const char *code = judged->verdict == FINE || !reached || (only_at_once && !judged->at_once)
                           ? "None"
                       : judged->verdict == INVALID ? "ValidationError"
                                                    : "ConditionalCheckFailed";

    expect_text(d, "code of a reason", code, hf_scope_copy(d->w.scope, reason->code).ptr);
    if (code[0] == 'N') {
        expect_number(d, "message of a reason that is none", 0, reason->message.len != 0);
        expect_item(d, "item of a reason", NULL, reason->item);
    } else if (code[0] == 'V') {
        expect_one_of(d, judged, reason->message);
        expect_item(d, "item of a reason", NULL, reason->item);
    } else {
        expect_text(d, "message of a reason", "The conditional request failed",
                    hf_scope_copy(d->w.scope, reason->message).ptr);
        expect_item(d, "item of a reason", write->old_on_failure ? judged->before : NULL,
                    reason->item);
    }
}

void do_transact_write(struct drive *d)
{
    struct owrite writes[TX_MAX];
    struct judged judged[TX_MAX];
    int len = gen_writes(d, writes, TX_MAX, false);
    bool token;
    struct text json;
    struct hf_transact_write_items_result result;
    const struct hf_error *error;
    enum hf_status status;
    bool fine = true, only_at_once = false, reached = true;

    for (int i = 0; i < len; i++) {
        if (chance(d, 2) || !writes[i].update)
            continue;
        writes[i].update->len = 1; /* fewer that fail by themselves */
    }
    json = transact_request(d, writes, len, &token);
    for (int i = 0; i < len; i++) {
        judged[i] = judge(&d->o, &writes[i]);
        fine &= judged[i].verdict == FINE;
        only_at_once |= judged[i].at_once;
    }
    status = drive_call(d, "TransactWriteItems", json.ptr, &result);
    if (fine) {
        expect_text(d, "status", "", status == HF_OK ? "" : hf_scope_error_text(d->w.scope));
        for (int i = 0; i < len; i++)
            apply(&d->o, &writes[i], &judged[i], now_us(d));
        if (token && chance(d, 2)) /* again, without effect */
            drive_ok(d, "TransactWriteItems", json.ptr, &result);
        return;
    }
    error = hf_scope_error(d->w.scope);
    expect_number(d, "status", HF_TX_CANCELED, status);
    expect_number(d, "reasons", len, (int64_t)error->reasons_len);
    for (int i = 0; i < len; i++) {
        expect_reason(d, &writes[i], &judged[i], only_at_once, reached, &error->reasons[i]);
        if (only_at_once && judged[i].at_once)
            reached = false;
    }
}
