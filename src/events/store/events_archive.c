/*
 * events/store/events_archive.c: streams that are taken out of the global order, and put back.
 *
 * The head says `x` = "archived", and while commits are being moved `y` = "in" or "out".
 * `k` numbers the moves: it grows whenever one begins. Events stay in their stream; their commits
 * move from a.DAY.SHARD to z.DAY.SHARD, keys and all, so positions stay as they are.
 *
 *  (1) From the update on that sets `x` no event is appended, so a walk over the stream meets all
 *      of its commits. `x` is set first, and goes last.
 *  (2) A commit is moved by one transaction: it is in one of the two parts, never in both and never
 *      in neither. The transaction checks that the head still says what it did, so of two calls
 *      that move one stream in opposite directions one stops; and that the commit still has the
 *      first of its events, so that nothing comes back that the sweep has taken out meanwhile.
 *  (3) After a crash the next call walks over the stream again from its beginning, and moves what
 *      is still there. `y` goes when all was moved, and then there is nothing more to do.
 *  (4) Each write is on the condition that the head still has that number, so a request that was on
 *      its way for long, and sent again meanwhile, does no harm later.
 *  (5) Each move counts itself, in its transaction: d/moved.N has how many went `in` and `out`. A
 *      reader of both parts, one after the other, knows by that whether something slipped through
 *      between them. N is from the stream, so that moves of other streams rarely meet.
 */
#include "events/store/events.h"

#include <holdfast/batch.h>
#include <holdfast/pages.h>

enum {
    MOVE_MAX = 25,
    MOVE_BYTES = 1500 * 1000,
    MOVE_ATTEMPTS = 20,
    MOVE_DELAY_MS = 20,
    COUNTS = 8 /* items that count moves */
};

_Static_assert(2 + 2 * MOVE_MAX <= HF_TX_ACTIONS_MAX, "check, count, and a put and a delete each");

struct move {
    struct hf_event_stream_key stream;
    struct hf_str pk;
    char from, to;     /* 'a' and 'z', or the other way round */
    struct hf_str way; /* "in" or "out" */
    uint64_t number;   /* the head's, while we move */
    struct events_position commits[MOVE_MAX];
    size_t len;
};

/* ---- moving --------------------------------------------------------------------------------- */

/* (2) */
static struct hf_condition_check head_check(struct hf_scope *s, struct hf_events *store,
                                            const struct move *move)
{
    return (struct hf_condition_check){
        .table = store->table,
        .key = HF_ITEM(s, HF_S("pk", move->pk), HF_S("sk", HF_STR("h"))),
        .condition = HF_STR("#x = :archived AND #k = :number"),
        .names = HF_ITEM(s, HF_S("#k", HF_STR("k")), HF_S("#x", HF_STR("x"))),
        .values = HF_ITEM(s, HF_S(":archived", HF_STR("archived")), HF_N(":number", move->number)),
        .returns_on_failure = HF_ON_FAILURE_ALL_OLD};
}

struct hf_str hf__events_commit_mark(struct hf_item commit)
{
    struct hf_item_walk walk = {0};

    while (hf_item_next(commit, &walk))
        if (hf_str_equal(walk.name, HF_STR("l")) || (walk.name.len == 3 && walk.name.ptr[0] == 'x'))
            return walk.name;
    return HF_STR("pk");
}

struct move_pair {
    struct hf_put_item put;
    struct hf_delete_item del;
};

static void move_actions(struct hf_scope *s, struct hf_events *store, const struct move *move,
                         struct hf_item commit, struct move_pair *both)
{
    struct hf_str sk = hf_value_str(hf_item_get(commit, HF_STR("sk")));
    struct hf_attr pk = HF_S("pk", hf__events_part_of(s, move->to, sk));

    both->put =
        (struct hf_put_item){.table = store->table, .item = hf_item_with(s, commit, &pk, 1)};
    both->del = (struct hf_delete_item){
        .table = store->table,
        .key = HF_ITEM(s, HF_S("pk", hf__events_part_of(s, move->from, sk)), HF_S("sk", sk)),
        .condition = HF_STR("attribute_exists(#first)"),
        .names = HF_ITEM(s, HF_S("#first", hf__events_commit_mark(commit)))};
}

static struct hf_item count_key(struct hf_scope *s, unsigned number)
{
    return HF_ITEM(s, HF_S("pk", HF_STR("d")), HF_S("sk", hf_scope_format(s, "moved.%u", number)));
}

/* (5) */
static struct hf_update_item count_update(struct hf_scope *s, struct hf_events *store,
                                          const struct move *move)
{
    unsigned number = (unsigned)(fnv_add(FNV_BEGIN, move->pk.ptr, move->pk.len) % COUNTS);

    return (struct hf_update_item){.table = store->table,
                                   .key = count_key(s, number),
                                   .update = HF_STR("ADD #way :one"),
                                   .names = HF_ITEM(s, HF_S("#way", move->way)),
                                   .values = HF_ITEM(s, HF_N(":one", 1))};
}

enum hf_status hf__events_moves(struct hf_scope *s, struct hf_events *store,
                                struct events_moves *moves)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_get gets[COUNTS];
    struct hf_get_many_result got;

    *moves = (struct events_moves){.in = 0};
    for (unsigned i = 0; i < COUNTS; i++)
        gets[i] = (struct hf_get){.table = store->table, .key = count_key(s, i)};
    TRY(hf_scope_built(s));
    TRY(hf_get_many(s, store->db, gets, COUNTS, HF_OPTIONS(hf_many_options, .consistent = true),
                    &got));
    for (size_t i = 0; i < COUNTS; i++) {
        int64_t in = 0, out = 0;

        (void)hf_value_i64(hf_item_get(got.items[i], HF_STR("in")), &in);
        (void)hf_value_i64(hf_item_get(got.items[i], HF_STR("out")), &out);
        moves->in += (uint64_t)in;
        moves->out += (uint64_t)out;
    }
    hf_scope_rewind(s, mark);
    return HF_OK;
}

/* Those of the list that are still there, moved as one. *left: there are more than went into it. */
static enum hf_status move_some(struct hf_scope *s, struct hf_events *store,
                                const struct move *move, bool *left)
{
    struct hf_condition_check check = head_check(s, store, move);
    struct hf_update_item count = count_update(s, store, move);
    struct hf_transact_write actions[2 + 2 * MOVE_MAX] = {{.check = &check}};
    struct hf_transact_write_items tx = {.actions = actions, .actions_len = 1};
    struct hf_get gets[MOVE_MAX];
    struct hf_get_many_result got;
    struct move_pair both[MOVE_MAX];
    size_t bytes = 0, len = 0;

    assert(move->len > 0 && move->len <= MOVE_MAX);
    assert(move->from != move->to && move->pk.len);
    *left = false;
    for (size_t i = 0; i < move->len; i++)
        gets[i] = (struct hf_get){
            .table = store->table,
            .key = HF_ITEM(s,
                           HF_S("pk",
                                hf__events_part_of(s, move->from, position_str(&move->commits[i]))),
                           HF_S("sk", position_str(&move->commits[i])))};
    TRY(hf_scope_built(s));
    TRY(hf_get_many(s, store->db, gets, move->len, HF_OPTIONS(hf_many_options, .consistent = true),
                    &got));
    for (size_t i = 0; i < move->len; i++) {
        if (!got.items[i].ptr)
            continue; /* (3), or it was swept */
        bytes += hf_item_size(got.items[i]);
        *left = len && bytes > MOVE_BYTES;
        if (*left)
            break;
        move_actions(s, store, move, got.items[i], &both[len]);
        actions[tx.actions_len++] = (struct hf_transact_write){.put = &both[len].put};
        actions[tx.actions_len++] = (struct hf_transact_write){.del = &both[len].del};
        len++;
    }
    actions[tx.actions_len++] = (struct hf_transact_write){.update = &count};
    assert(tx.actions_len == 2 + 2 * len);
    TRY(hf_scope_built(s));
    return len ? hf_transact_write_items(s, store->db, &tx, NULL) : HF_OK;
}

/* Was it the head that refused? */
static enum hf_status move_check_stopped(struct hf_scope *s, const struct move *move)
{
    const struct hf_error *error = hf_scope_error(s);
    struct events_head head;

    if (error->status != HF_TX_CANCELED || !error->reasons_len ||
        !hf_str_equal(error->reasons[0].code, HF_STR("ConditionalCheckFailed")))
        return HF_OK;
    if (error->reasons[0].item.ptr &&
        hf__events_head_view(s, error->reasons[0].item, &head) == HF_OK &&
        head.state == EVENTS_DELETED)
        return hf_scope_fail(s, HF_DELETED, "stream \"%.*s\" was deleted for good",
                             HF_FMT(hf__events_stream_text(s, move->stream)));
    return hf_scope_fail(s, HF_IN_USE,
                         "stream \"%.*s\" is being archived and unarchived at the same time",
                         HF_FMT(hf__events_stream_text(s, move->stream)));
}

/* Doubtful ones are looked at again: what was moved is not there any more. */
static enum hf_status move_all(struct hf_scope *s, struct hf_events *store, struct move *move)
{
    for (int attempt = 1; move->len;) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        bool left;
        enum hf_status status = move_some(s, store, move, &left);

        if (status == HF_OK) {
            hf_scope_rewind(s, mark);
            if (left)
                continue;
            move->len = 0;
            break;
        }
        TRY(move_check_stopped(s, move));
        if (attempt++ == MOVE_ATTEMPTS || (status != HF_TX_CANCELED && status != HF_TX_CONFLICT &&
                                           !hf_scope_error(s)->may_have_happened))
            return status;
        TRY(hf_scope_sleep_ms(s, hf__backoff_jitter_ms(&store->env, MOVE_DELAY_MS)));
        hf_scope_rewind(s, mark);
    }
    return HF_OK;
}

/* ---- the commits of a stream ---------------------------------------------------------------- */

static enum hf_status add_commit(struct hf_scope *s, struct hf_events *store, struct move *move,
                                 struct hf_str position)
{
    struct events_position commit = {{0}};

    if (!hf__events_position_read(position, NULL, NULL, NULL))
        return hf_scope_fail(s, HF_CORRUPT, "stream \"%.*s\": an event has no position",
                             HF_FMT(hf__events_stream_text(s, move->stream)));
    memcpy(commit.text, position.ptr, HF_POSITION_LEN);
    hf__events_position_number(&commit, 0);
    if (move->len && memcmp(&move->commits[move->len - 1], &commit, sizeof(commit)) == 0)
        return HF_OK;
    if (move->len == MOVE_MAX)
        TRY(move_all(s, store, move));
    assert(move->len < MOVE_MAX);
    move->commits[move->len++] = commit;
    return HF_OK;
}

static enum hf_status add_step(struct hf_scope *s, struct hf_events *store,
                               const struct events_step *step, void *user)
{
    struct move *move = user;
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    if (!step->large.ptr)
        return add_commit(s, store, move, step->position);
    TRY(hf__events_large_pages(s, store, step, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        status = add_commit(s, store, move, hf_value_str(hf_item_get(item, HF_STR("p"))));
        if (status != HF_OK)
            break;
    }
    hf_pages_free(pages);
    return status;
}

/* ---- in and out ----------------------------------------------------------------------------- */

/* What the head says now; *way is absent when nothing is being moved. */
static enum hf_status head_look(struct hf_scope *s, struct hf_events *store, struct move *move,
                                struct events_head *head, struct hf_str *way)
{
    struct hf_item key = HF_ITEM(s, HF_S("pk", move->pk), HF_S("sk", HF_STR("h"))), item;
    int64_t number = 0;

    TRY(hf__pattern_read(s, store->db, store->table, key, &item));
    TRY(hf__events_head_view(s, item, head));
    *way = hf_value_str(hf_item_get(item, HF_STR("y")));
    (void)hf_value_i64(hf_item_get(item, HF_STR("k")), &number);
    move->number = (uint64_t)number;
    if (head->state == EVENTS_DELETED)
        return hf_scope_fail(s, HF_DELETED, "stream \"%.*s\" was deleted for good",
                             HF_FMT(hf__events_stream_text(s, move->stream)));
    if (!head->version)
        return hf_scope_fail(s, HF_NOT_FOUND, "stream \"%.*s\" does not exist",
                             HF_FMT(hf__events_stream_text(s, move->stream)));
    return HF_OK;
}

/* The update by which a move begins, and that by which it ends; neither can happen twice. */
static enum hf_status head_change(struct hf_scope *s, struct hf_events *store,
                                  const struct move *move, struct hf_str expression, uint64_t to)
{
    struct hf_item key = HF_ITEM(s, HF_S("pk", move->pk), HF_S("sk", HF_STR("h"))), item;
    bool begins = to != 0;
    struct hf_update_item update = {
        .table = store->table,
        .key = key,
        .update = expression,
        .condition = !begins        ? HF_STR("#k = :number AND #x = :archived AND #y = :way")
                     : move->number ? HF_STR("#k = :number AND (attribute_not_exists(#x) OR "
                                             "#x = :archived)")
                                    : HF_STR("attribute_not_exists(#k) AND "
                                             "(attribute_not_exists(#x) OR #x = :archived)"),
        .names =
            HF_ITEM(s, HF_S("#k", HF_STR("k")), HF_S("#x", HF_STR("x")), HF_S("#y", HF_STR("y"))),
        .values = HF_ITEM(s, HF_S(":archived", HF_STR("archived")), HF_S(":way", move->way))};
    struct hf_attr more[2];
    size_t len = 0;

    if (begins)
        more[len++] = (struct hf_attr)HF_N(":next", to);
    if (!begins || move->number)
        more[len++] = (struct hf_attr)HF_N(":number", move->number);
    update.values = hf_item_with(s, update.values, more, len);
    TRY(hf_scope_built(s));
    return hf__pattern_write(s, store->db, &(struct hf_transact_write){.update = &update}, key,
                             &item);
}

/* *done: there is nothing to do. */
static enum hf_status move_begin(struct hf_scope *s, struct hf_events *store, struct move *move,
                                 bool *done)
{
    enum hf_status status = HF_CONDITION;

    *done = false;
    for (int attempt = 0; attempt < MOVE_ATTEMPTS; attempt++) {
        struct events_head head;
        struct hf_str way;

        TRY(head_look(s, store, move, &head, &way));
        *done = !way.ptr && head.state == (move->to == 'z' ? EVENTS_ARCHIVED : EVENTS_LIVE);
        if (*done || hf_str_equal(way, move->way)) /* (3) */
            return HF_OK;
        status = head_change(s, store, move, HF_STR("SET #k = :next, #x = :archived, #y = :way"),
                             move->number + 1);
        if (status != HF_CONDITION && status != HF_OK)
            return status;
        /* done, or others were faster: look again */
    }
    return hf_scope_fail(s, HF_IN_USE, "stream \"%.*s\" is being archived or unarchived by others",
                         HF_FMT(hf__events_stream_text(s, move->stream)));
}

static enum hf_status move_end(struct hf_scope *s, struct hf_events *store, struct move *move)
{
    uint64_t number = move->number;
    struct events_head head;
    struct hf_str way;
    enum hf_status status =
        head_change(s, store, move, move->to == 'z' ? HF_STR("REMOVE #y") : HF_STR("REMOVE #x, #y"),
                    0);

    if (status != HF_CONDITION)
        return status;
    TRY(head_look(s, store, move, &head, &way));
    if (move->number == number && !way.ptr)
        return HF_OK; /* we did it before, or another call did the same */
    return hf_scope_fail(s, HF_IN_USE,
                         "stream \"%.*s\" is being archived and unarchived at the same time",
                         HF_FMT(hf__events_stream_text(s, move->stream)));
}

static enum hf_status move_run(struct hf_scope *s, struct hf_events *store, struct move *move)
{
    bool done;

    TRY(hf__events_stream_pk(s, 's', move->stream, &move->pk));
    hf__events_heads_drop(store, move->pk);
    TRY(move_begin(s, store, move, &done));
    if (done)
        return HF_OK;
    TRY(hf__events_steps(s, store, move->pk, 1, add_step, move));
    TRY(move_all(s, store, move));
    return move_end(s, store, move);
}

enum hf_status hf_events_archive(struct hf_scope *s, struct hf_events *store,
                                 struct hf_event_stream_key stream)
{
    struct move move = {.stream = stream, .from = 'a', .to = 'z', .way = HF_STR("in")};

    return move_run(s, store, &move);
}

enum hf_status hf_events_unarchive(struct hf_scope *s, struct hf_events *store,
                                   struct hf_event_stream_key stream)
{
    struct move move = {.stream = stream, .from = 'z', .to = 'a', .way = HF_STR("out")};

    return move_run(s, store, &move);
}
