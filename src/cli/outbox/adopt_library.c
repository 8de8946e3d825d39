/*
 * cli/outbox/adopt_library.c: what `outbox adopt` has to know of each library: its keys, its claims, its
 * order, and a mark that hides a row from its programs.
 *
 *     library            a row is marked by
 *     outbox-event-bus   status "adopting": its programs ask the index for created and active ones.
 *                        gsiSortKey stays where it says when the event is due
 *     excalibur          adoptingSince, and isPublished true, which all its programs leave out. A
 *                        clean-up of theirs looks for publishedAt, which is not there
 *     excalibur-data     adoptingScheduledAt, which has the old scheduledAt or is empty;
 *                        scheduledAt at the end of time, and a retryCount that is above any limit
 *
 * A mark takes nothing from a row that the event is made of, so a marked row can be read by the next
 * run. Whoever has changed a row since it was read has changed one of its `guards`: claims, ends of
 * claims, failures, deliveries and new events under the same id all do.
 */
#include "base/base.h"
#include "cli/outbox/adopt.h"

/* ---- outbox-event-bus ----------------------------------------------------------------------- */

static void event_bus_marks(struct hf_scope *s, const struct adopt_event *event, int64_t now_us,
                            struct hf_update_item *update)
{
    bool due = !event->line.claimed && !event->line.failed;

    (void)now_us;
    update->update = due ? HF_STR("SET #mark = :mark") : HF_STR("SET #mark = :mark REMOVE #at");
    update->names =
        due ? HF_ITEM(s, HF_S("#mark", HF_STR("status")))
            : HF_ITEM(s, HF_S("#mark", HF_STR("status")), HF_S("#at", HF_STR("gsiSortKey")));
    update->values = HF_ITEM(s, HF_S(":mark", HF_STR(OUTBOX_ADOPTING_STATUS)));
}

/* As its programs take them: by when they are due. */
static void event_bus_orders(const struct adopt_event *event, int64_t *us, struct hf_str *text)
{
    const struct hf_event *e = &event->line.event;

    *us = e->due_us ? e->due_us : e->time_us;
    *text = e->id;
}

static const char *const event_bus_guards[] = {"status", "gsiSortKey", "retryCount", "occurredAt",
                                               "type"};

/* ---- Excalibur.Outbox.DynamoDb -------------------------------------------------------------- */

static void excalibur_marks(struct hf_scope *s, const struct adopt_event *event, int64_t now_us,
                            struct hf_update_item *update)
{
    (void)event;
    update->update = HF_STR("SET #mark = :mark, #done = :done");
    update->names = HF_ITEM(s, HF_S("#mark", HF_STR(OUTBOX_ADOPTING_SINCE)),
                            HF_S("#done", HF_STR("isPublished")));
    update->values = HF_ITEM(s, HF_N(":mark", now_us / 1000), HF_BOOL(":done", true));
}

/* By createdAt, to its last digit. */
static void excalibur_orders(const struct adopt_event *event, int64_t *us, struct hf_str *text)
{
    *us = event->line.event.time_us;
    *text = hf_value_str(hf_item_get(event->item, HF_STR("createdAt")));
}

static const char *const excalibur_guards[] = {"isPublished", "leasedAt", "retryCount", "createdAt",
                                               "messageType"};

/* ---- Excalibur.Data.DynamoDb ---------------------------------------------------------------- */

static void excalibur_data_marks(struct hf_scope *s, const struct adopt_event *event,
                                 int64_t now_us, struct hf_update_item *update)
{
    struct hf_str due = hf_value_str(hf_item_get(event->item, HF_STR("scheduledAt")));

    (void)now_us;
    update->update = HF_STR("SET #mark = :mark, #due = :never, #tries = :many");
    update->names =
        HF_ITEM(s, HF_S("#mark", HF_STR(OUTBOX_ADOPTING_DUE)), HF_S("#due", HF_STR("scheduledAt")),
                HF_S("#tries", HF_STR("retryCount")));
    update->values = HF_ITEM(s, HF_S(":mark", due.ptr ? due : HF_STR("")),
                             HF_S(":never", HF_STR("9999-12-31T23:59:59.9999999+00:00")),
                             HF_N(":many", INT32_MAX));
}

/* By its sort key: priority, createdAt, id. */
static void excalibur_data_orders(const struct adopt_event *event, int64_t *us, struct hf_str *text)
{
    *us = 0;
    *text = event->sort;
}

static const char *const excalibur_data_guards[] = {"status", "scheduledAt", "retryCount",
                                                    "lastAttemptAt", "messageId"};

/* ---- all of them ---------------------------------------------------------------------------- */

const struct adopt_library hf__adopt_libraries[] = {
    {.form = OUTBOX_LINE_EVENT_BUS,
     .name = "outbox-event-bus",
     .hash = "id",
     .state = "status",
     .guards = event_bus_guards,
     .guards_len = ARRAY_LEN(event_bus_guards),
     .mark = "status",
     .mark_text = OUTBOX_ADOPTING_STATUS,
     .marks = event_bus_marks,
     .orders = event_bus_orders},
    {.form = OUTBOX_LINE_EXCALIBUR,
     .name = "excalibur",
     .sorts = true,
     .keyed = true,
     .state = "isPublished",
     .guards = excalibur_guards,
     .guards_len = ARRAY_LEN(excalibur_guards),
     .mark = OUTBOX_ADOPTING_SINCE,
     .marks = excalibur_marks,
     .orders = excalibur_orders},
    {.form = OUTBOX_LINE_EXCALIBUR_DATA,
     .name = "excalibur-data",
     .hash = "PK",
     .sort = "SK",
     .sorts = true,
     .state = "status",
     .guards = excalibur_data_guards,
     .guards_len = ARRAY_LEN(excalibur_data_guards),
     .mark = OUTBOX_ADOPTING_DUE,
     .marks = excalibur_data_marks,
     .orders = excalibur_data_orders},
};

struct hf_item hf__adopt_key(const struct adopt *a, struct hf_str hash, struct hf_str sort)
{
    const struct hf_attr key[] = {hf_attr_of_str(a->hash, hash), hf_attr_of_str(a->sort, sort)};

    return hf_item_make(a->s, key, a->sort.ptr ? 2 : 1);
}

/* A condition, with what it names. */
struct condition {
    struct hf_str text;
    struct hf_item names, values;
};

/* Each guard has the value that was read, or is still not there. */
static struct condition is_unchanged(const struct adopt *a, const struct adopt_event *event)
{
    const struct adopt_library *library = a->library;
    struct condition c = {.text = HF_STR("")};

    for (size_t i = 0; i < library->guards_len; i++) {
        struct hf_str name = hf_str_from(library->guards[i]);
        struct hf_value value = hf_item_get(event->item, name);
        struct hf_str in_names = hf_scope_format(a->s, "#g%zu", i);
        struct hf_str in_values = hf_scope_format(a->s, ":g%zu", i);
        const char *and = i ? " AND " : "";
        struct hf_attr attr = hf_attr_of_str(in_names, name);

        c.names = hf_item_with(a->s, c.names, &attr, 1);
        if (!value.ptr) {
            c.text = hf_scope_format(a->s, "%.*s%sattribute_not_exists(%.*s)", HF_FMT(c.text), and,
                                     HF_FMT(in_names));
            continue;
        }
        attr = hf_attr_of_value(in_values, value);
        c.values = hf_item_with(a->s, c.values, &attr, 1);
        c.text = hf_scope_format(a->s, "%.*s%s%.*s = %.*s", HF_FMT(c.text), and, HF_FMT(in_names),
                                 HF_FMT(in_values));
    }
    return c;
}

static struct condition is_marked(const struct adopt *a)
{
    struct hf_str mark = hf_str_from(a->library->mark);

    if (!a->library->mark_text)
        return (struct condition){.text = HF_STR("attribute_exists(#g)"),
                                  .names = HF_ITEM(a->s, HF_S("#g", mark))};
    return (struct condition){.text = HF_STR("#g = :g"),
                              .names = HF_ITEM(a->s, HF_S("#g", mark)),
                              .values =
                                  HF_ITEM(a->s, HF_S(":g", hf_str_from(a->library->mark_text)))};
}

static struct condition condition_of(const struct adopt *a, const struct adopt_event *event)
{
    return event->marked || event->line.adopting ? is_marked(a) : is_unchanged(a, event);
}

struct hf_delete_item *hf__adopt_delete(const struct adopt *a, const struct adopt_event *event)
{
    struct hf_delete_item *del = hf_scope_alloc(a->s, sizeof(*del));
    struct condition c = condition_of(a, event);

    if (del)
        *del = (struct hf_delete_item){.table = a->table,
                                       .key = hf__adopt_key(a, event->hash, event->sort),
                                       .condition = c.text,
                                       .names = c.names,
                                       .values = c.values};
    return del;
}

/* Those of the update and those of the condition together. */
static struct hf_item items_join(struct hf_scope *s, struct hf_item one, struct hf_item other)
{
    struct hf_item_walk walk = {0};

    while (hf_item_next(other, &walk)) {
        struct hf_attr attr = hf_attr_of_value(walk.name, walk.value);

        one = hf_item_with(s, one, &attr, 1);
    }
    return one;
}

struct hf_update_item *hf__adopt_mark(const struct adopt *a, const struct adopt_event *event)
{
    struct hf_update_item *update = hf_scope_alloc(a->s, sizeof(*update));
    const struct hf_env *env = hf_scope_env(a->s);
    struct condition c = is_unchanged(a, event);

    if (!update)
        return NULL;
    *update = (struct hf_update_item){.table = a->table,
                                      .key = hf__adopt_key(a, event->hash, event->sort),
                                      .condition = c.text};
    a->library->marks(a->s, event, env->wall_us(env->user), update);
    update->names = items_join(a->s, update->names, c.names);
    update->values = items_join(a->s, update->values, c.values);
    return update;
}

struct hf_put_item *hf__adopt_restore(const struct adopt *a, const struct adopt_event *event)
{
    struct hf_put_item *put = hf_scope_alloc(a->s, sizeof(*put));
    struct condition c = is_marked(a);

    if (put)
        *put = (struct hf_put_item){.table = a->table,
                                    .item = event->item,
                                    .condition = c.text,
                                    .names = c.names,
                                    .values = c.values};
    return put;
}
