/*
 * outbox/outbox_item.c: how events are stored; nothing is sent here.
 *
 * Where an event is stored, its seq and its bucket, is in outbox_place.c, with (1) and (2) of what
 * always holds. Beyond that:
 *
 *  (3) What is left out by the caller is left out in the item, and comes back as it would have been
 *      filled in: a text is absent, not empty.
 *  (4) There is room in the item for all that may be added to it later, so that what was emitted
 *      can be claimed, can fail and be kept. Other programs may put items that leave less
 *      (hf__outbox_has_room()): nothing can be noted in those while they wait, so they are given up
 *      at their first failure, and when they move they take along what there is room for.
 *
 * Attributes: pk, sk; id (when the caller chose it), and the texts of struct hf_event under their
 * names; sequence, time, due, urgent, payload, headers; blob, blob_size: see outbox_blob.c. How it fared:
 * attempts, crashes, begun, tried, next, error, error_text, cause, ended; owner, lease, token,
 * opener, ahead of a claim, suspect after one that was taken over, and fence, which outlives all
 * the others; put, try, let, done: who wrote last, by which a lost answer is recognised; ttl; from:
 * see outbox_reject.c.
 */
#include "outbox/outbox.h"

#include <stddef.h>
#include <stdio.h>

enum {
    PARTITION_LEN = 5, /* "p.007" */
    ATTRS_MAX = 32,    /* more than an event has */
    ITEM_MAX = 400 * 1024,
    SMALL = HF_EVENT_SIZE_MAX / 8 /* bytes in memory of what is within its limit for sure */
};

_Static_assert(ITEM_MAX - HF_EVENT_SIZE_MAX >=
                   HF_EVENT_ERROR_MAX + OUTBOX_CAUSE_MAX + HF_EVENT_TEXT_MAX + 512,
               "(4)");

#define DEFAULT_CONTENT "application/json"
#define DEFAULT_SOURCE "holdfast"

/* ---- from an event to its item -------------------------------------------------------------- */

/* clang-format takes #name for a directive. */
/* clang-format off */
#define TEXT(name) {#name, offsetof(struct hf_event, name)}
/* clang-format on */
static const struct {
    const char *name;
    size_t offset;
} texts[] = {TEXT(id),           TEXT(type),           TEXT(key),         TEXT(content_type),
             TEXT(schema),       TEXT(source),         TEXT(correlation), TEXT(causation),
             TEXT(aggregate),    TEXT(aggregate_type), TEXT(tenant),      TEXT(destination),
             TEXT(trace_parent), TEXT(trace_state)};
#undef TEXT

/* Attributes of the delivery, which are not part of the event. The time to live is another one, under
 * the name that the table has for it. The fence is not here: it stays. */
static const char *const states[] = {"attempts",   "crashes", "tried",  "next",  "error",
                                     "error_text", "cause",   "ended",  "begun", "owner",
                                     "lease",      "token",   "opener", "ahead", "suspect",
                                     "put",        "try",     "let",    "done",  "from"};

static struct hf_str *text_in(struct hf_event *event, size_t i)
{
    assert(i < ARRAY_LEN(texts));
    return (struct hf_str *)(void *)((char *)event + texts[i].offset);
}

static enum hf_status fail_invalid(struct hf_scope *s, const struct hf_event *event, size_t number,
                                   const char *what)
{
    return hf_scope_fail(s, HF_INVALID, "event %zu (%.*s): %s", number, HF_FMT(event->type), what);
}

enum hf_status hf__outbox_check(struct hf_scope *s, const struct hf_event *event, size_t number)
{
    struct hf_event copy = *event;

    if (!event->type.len)
        return hf_scope_fail(s, HF_INVALID, "event %zu has no type", number);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (text_in(&copy, i)->len > HF_EVENT_TEXT_MAX) {
            if (event->type.len > HF_EVENT_TEXT_MAX)
                copy.type.len = 20;
            return hf_scope_fail_limit(s, HF_INVALID,
                                       HF_ERROR_LIMIT(HF_EVENT_TEXT_MAX,
                                                      i == 1 ? event->type.len
                                                             : text_in(&copy, i)->len),
                                       "event %zu (%.*s): %s has %zu bytes, more than %d", number,
                                       HF_FMT(copy.type), texts[i].name,
                                       i == 1 ? event->type.len : text_in(&copy, i)->len,
                                       HF_EVENT_TEXT_MAX);
        }
    if (event->sequence > INT64_MAX)
        return fail_invalid(s, event, number, "its sequence number is too large");
    if (event->due_us / 1000 > OUTBOX_DUE_MAX_MS)
        return fail_invalid(s, event, number, "the time when it is due is too far away");
    if (event->urgent && event->due_us)
        return fail_invalid(s, event, number,
                            "an urgent event is due at once: leave out due_us, or urgent");
    return HF_OK;
}

struct hf_str hf__outbox_event_key(const struct hf_event *event)
{
    return event->key.len ? event->key : event->aggregate;
}

static struct hf_attr named_text(const char *name, struct hf_str text)
{
    return (struct hf_attr){.name = hf_str_from(name), .type = HF_TYPE_S, .text = text};
}

/* The texts as they are stored (3): texts that are equal to their defaults are left out. */
static size_t add_texts(const struct hf_outbox *outbox, const struct hf_event *given,
                        struct hf_attr *attrs)
{
    struct hf_event event = *given;
    size_t len = 0;

    event.key = hf__outbox_event_key(given);
    if (!event.source.len)
        event.source = outbox->source;
    if (hf_str_equal(event.source, HF_STR(DEFAULT_SOURCE)))
        event.source.len = 0;
    if (hf_str_equal(event.content_type, HF_STR(DEFAULT_CONTENT)))
        event.content_type.len = 0;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (text_in(&event, i)->len)
            attrs[len++] = named_text(texts[i].name, *text_in(&event, i));
    assert(len <= ARRAY_LEN(texts));
    return len;
}

/* Fail with the part of the event because of which its item is invalid. */
static enum hf_status fail_unstorable(struct hf_scope *s, const struct hf_event *event,
                                      size_t number)
{
    struct hf_event copy = *event;

    if (hf_scope_error(s)->status != HF_INVALID)
        return hf_scope_error(s)->status;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (text_in(&copy, i)->len &&
            hf_item_check(s, HF_ITEM(s, HF_S("text", *text_in(&copy, i)))) == HF_INVALID)
            return hf_scope_fail(s, HF_INVALID, "event %zu: %s is not UTF-8", number,
                                 texts[i].name);
    return hf_scope_fail(s, HF_INVALID, "event %zu (%.*s): its headers are not a valid item",
                         number, HF_FMT(event->type));
}

enum hf_status hf__outbox_image(struct hf_scope *s, const struct hf_outbox *outbox,
                                const struct outbox_draft *draft, struct hf_item *item)
{
    const struct hf_event *event = draft->event;
    const struct outbox_place *place = draft->place;
    struct hf_attr attrs[ARRAY_LEN(texts) + 13] = {
        outbox_key_attr(outbox->at.hash, hf__outbox_pk(s, "p", place->bucket)),
        outbox_key_attr(outbox->at.sort, place_seq(place)),
        HF_N("time", event->time_us ? event->time_us : outbox->env.wall_us(outbox->env.user))};
    size_t len = 3 + add_texts(outbox, event, attrs + 3);

    assert(place->bucket < outbox->buckets && strlen(place->seq) == OUTBOX_SEQ_LEN);
    if (event->sequence)
        attrs[len++] = (struct hf_attr)HF_N("sequence", event->sequence);
    if (event->due_us)
        attrs[len++] = (struct hf_attr)HF_N("due", event->due_us);
    if (event->urgent)
        attrs[len++] = (struct hf_attr)HF_BOOL("urgent", true);
    if (draft->blob.len) {
        attrs[len++] = (struct hf_attr)HF_S("blob", draft->blob);
        attrs[len++] = (struct hf_attr)HF_N("blob_size", event->payload.len);
    } else if (event->payload.len) {
        attrs[len++] = (struct hf_attr)HF_B("payload", event->payload);
    }
    if (event->headers.ptr && hf_item_count(event->headers))
        attrs[len++] = (struct hf_attr)HF_M("headers", event->headers);
    if (draft->put.len)
        attrs[len++] = (struct hf_attr)HF_S("put", draft->put);
    assert(len <= ARRAY_LEN(attrs));
    *item = hf_item_make(s, attrs, len);
    if (hf_item_check(s, *item) != HF_OK)
        return fail_unstorable(s, event, draft->number);
    if (hf_item_size(*item) > HF_EVENT_SIZE_MAX)
        return hf_scope_fail_limit(
            s, HF_LIMIT, HF_ERROR_LIMIT(HF_EVENT_SIZE_MAX, hf_item_size(*item)),
            "event %zu (%.*s) has %zu bytes, of these %zu of payload: more than "
            "the %d that an event may have",
            draft->number, HF_FMT(event->type), hf_item_size(*item), event->payload.len,
            HF_EVENT_SIZE_MAX);
    return HF_OK;
}

static bool is_key(const struct hf_outbox *outbox, struct hf_str name)
{
    return hf_str_equal(name, outbox->at.hash) || hf_str_equal(name, outbox->at.sort);
}

static bool is_state(const struct hf_outbox *outbox, struct hf_str name)
{
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        if (hf_str_equal(name, hf_str_from(states[i])))
            return true;
    return hf_str_equal(name, outbox->at.expires) || is_key(outbox, name);
}

static struct hf_item item_move(struct hf_scope *s, const struct hf_outbox *outbox,
                                struct hf_item item, const struct outbox_move *to)
{
    struct hf_attr *attrs =
        hf_scope_alloc(s, (hf_item_count(item) + to->more_len + 2) * sizeof(*attrs));
    struct hf_item_walk walk = {0};
    size_t len = 0;

    if (!attrs)
        return (struct hf_item){0};
    attrs[len++] =
        outbox_key_attr(outbox->at.hash, hf__outbox_pk(s, to->partition, to->place->bucket));
    attrs[len++] = outbox_key_attr(outbox->at.sort, hf_scope_copy(s, place_seq(to->place)));
    while (hf_item_next(item, &walk))
        if (!is_state(outbox, walk.name))
            attrs[len++] = (struct hf_attr){.name = walk.name, .value = walk.value};
    for (size_t i = 0; i < to->more_len; i++)
        attrs[len++] = to->more[i];
    assert(len <= hf_item_count(item) + to->more_len + 2);
    return hf_item_make(s, attrs, len);
}

/* (4) Add the attributes that there is room for, from the first on; the last one, a text, is cut. */
static struct hf_item moved_into(struct hf_scope *s, struct hf_item bare,
                                 const struct hf_attr *more, size_t more_len)
{
    size_t room = ITEM_MAX - hf_item_size(bare);
    struct hf_attr *kept = hf_scope_alloc(s, more_len * sizeof(*kept));
    size_t len = 0;

    assert(hf_item_size(bare) <= ITEM_MAX);
    for (size_t i = 0; kept && i < more_len; i++) {
        struct hf_item alone = hf_item_make(s, &more[i], 1);
        size_t size = hf_item_size(alone), over = size > room ? size - room : 0;

        kept[len] = more[i];
        if (over && i + 1 == more_len && more[i].type == HF_TYPE_S && more[i].text.len > over)
            kept[len].text = hf__pattern_text(s, more[i].text, more[i].text.len - over);
        else if (over)
            continue;
        room -= hf_item_size(hf_item_make(s, &kept[len++], 1));
    }
    return len ? hf_item_with(s, bare, kept, len) : bare;
}

struct hf_item hf__outbox_moved(struct hf_scope *s, const struct hf_outbox *outbox,
                                struct hf_item item, const struct outbox_move *to)
{
    const struct outbox_move without = {.partition = to->partition, .place = to->place};
    struct hf_item bare, whole = item_move(s, outbox, item, to);

    if (whole.len < SMALL || hf_item_size(whole) <= ITEM_MAX)
        return whole;
    bare = item_move(s, outbox, item, &without);
    return hf_item_size(bare) > ITEM_MAX ? bare : moved_into(s, bare, to->more, to->more_len);
}

bool hf__outbox_has_room(struct hf_scope *s, const struct hf_outbox *outbox, struct hf_item item)
{
    struct hf_item_walk walk = {0};
    size_t size;

    if (item.len < SMALL || (size = hf_item_size(item)) <= HF_EVENT_SIZE_MAX)
        return true;
    while (hf_item_next(item, &walk)) {
        struct hf_attr attr = {.name = walk.name, .value = walk.value};

        if ((is_state(outbox, walk.name) && !is_key(outbox, walk.name)) ||
            hf_str_equal(walk.name, HF_STR("fence"))) /* which is no state, as it stays */
            size -= hf_item_size(hf_item_make(s, &attr, 1));
    }
    return size <= HF_EVENT_SIZE_MAX;
}

/* ---- failures ------------------------------------------------------------------------------- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || (uint8_t)c >= 0x80;
}

/* Words with a digit in them, and what is in quotes, differ between failures of one kind. */
static struct hf_str common_part(struct hf_scope *s, struct hf_str text)
{
    char *to = hf_scope_alloc(s, text.len + 1);
    size_t len = 0;

    for (size_t at = 0; to && at < text.len;) {
        size_t end = at + 1;
        bool replace = false;
        const char *quote =
            text.ptr[at] == '"' ? memchr(text.ptr + end, '"', text.len - end) : NULL;

        if (quote) {
            end = (size_t)(quote - text.ptr) + 1;
            replace = true;
        } else if (is_word(text.ptr[at])) {
            for (end = at; end < text.len && is_word(text.ptr[end]); end++)
                replace = replace || (text.ptr[end] >= '0' && text.ptr[end] <= '9');
        }
        if (replace) {
            to[len++] = '#';
        } else {
            memcpy(to + len, text.ptr + at, end - at);
            len += end - at;
        }
        at = end;
    }
    return hf_str_of(to, to ? len : 0);
}

struct outbox_failure hf__outbox_failure(struct hf_scope *s, const struct hf_error *error)
{
    struct outbox_failure failure = {.status =
                                         error->status == HF_OK ? HF_INTERNAL : error->status};
    struct hf_str text = error->message.ptr ? error->message : HF_STR("");

    failure.name = hf_str_from(hf_status_name(failure.status));
    failure.text = hf__pattern_text(s, text, HF_EVENT_ERROR_MAX);
    text = common_part(s, failure.text);
    text = text.len ? hf_scope_format(s, "%.*s: %.*s", HF_FMT(failure.name), HF_FMT(text))
                    : failure.name;
    failure.cause = hf__pattern_text(s, text, OUTBOX_CAUSE_MAX);
    return failure;
}

/* ---- from an item to its event -------------------------------------------------------------- */

/* The attributes of an item. Most attributes that are looked up are absent, so the item is walked
 * once, and lookups search this list. */
struct attrs {
    struct hf_item item;
    struct hf_item_walk list[ATTRS_MAX];
    size_t len;
    bool more; /* others have added so many that they are not all in the list */
};

static void attrs_read(struct hf_item item, struct attrs *attrs)
{
    struct hf_item_walk at = {0};

    attrs->item = item;
    attrs->len = 0;
    while (attrs->len < ATTRS_MAX && hf_item_next(item, &at))
        attrs->list[attrs->len++] = at;
    attrs->more = attrs->len == ATTRS_MAX;
}

static struct hf_value value_named(const struct attrs *attrs, struct hf_str name)
{
    for (size_t i = 0; i < attrs->len; i++)
        if (attrs->list[i].name.len == name.len &&
            memcmp(attrs->list[i].name.ptr, name.ptr, name.len) == 0)
            return attrs->list[i].value;
    return attrs->more ? hf_item_get(attrs->item, name) : (struct hf_value){0};
}

static struct hf_value value_of(const struct attrs *attrs, const char *name)
{
    return value_named(attrs, hf_str_from(name));
}

/* A mistake as text; NULL: there is none; "": there is no memory for the text. */
static const char *mistake_text(struct hf_str text)
{
    return text.ptr ? text.ptr : "";
}

/* Read a number; 0 when it is absent. Returns the mistake, or NULL. */
static const char *read_i64(struct hf_scope *s, const struct attrs *attrs, const char *name,
                            int64_t least, int64_t most, int64_t *out)
{
    struct hf_value value = value_of(attrs, name);

    *out = 0;
    if (!value.ptr || (hf_value_i64(value, out) && *out >= least && *out <= most))
        return NULL;
    return mistake_text(
        hf_scope_format(s, "its %s is not an N with a whole number in range", name));
}

static enum hf_status status_named(struct hf_str name)
{
    for (int i = 0; name.len && i < 256; i++)
        if (hf_str_equal(name, hf_str_from(hf_status_name((enum hf_status)i))))
            return (enum hf_status)i;
    return name.len ? HF_INTERNAL : HF_OK;
}

static const char *read_place(struct hf_scope *s, const struct hf_outbox *outbox,
                              const struct attrs *attrs, struct hf_outbox_event *event)
{
    const struct pattern_at *at = &outbox->at;
    struct hf_str pk = hf_value_str(value_named(attrs, at->hash));
    struct outbox_place place;
    uint32_t bucket;

    event->ref = hf_value_str(value_named(attrs, at->sort));
    if (hf__outbox_seq_bucket(event->ref, &bucket) && bucket >= outbox->buckets)
        return mistake_text(hf_scope_format(s, "its bucket is %u, and buckets are 0 to %u", bucket,
                                            outbox->buckets - 1));
    if (!hf__outbox_place_read(outbox, event->ref, &place))
        return mistake_text(
            hf_scope_format(s,
                            "its %.*s is not of 10 digits of a time, 2 of a bucket and 14 "
                            "others, in base 32",
                            HF_FMT(at->sort)));
    if (pk.len != PARTITION_LEN || pk.ptr[1] != '.' ||
        pk.ptr[2] != (char)('0' + place.bucket / 100) ||
        pk.ptr[3] != (char)('0' + place.bucket / 10 % 10) ||
        pk.ptr[4] != (char)('0' + place.bucket % 10))
        return mistake_text(hf_scope_format(s, "its %.*s and its %.*s name different buckets",
                                            HF_FMT(at->hash), HF_FMT(at->sort)));
    event->bucket = place.bucket;
    event->state = pk.ptr[0] == 'p'   ? HF_OUTBOX_PENDING
                   : pk.ptr[0] == 'f' ? HF_OUTBOX_FAILED
                   : pk.ptr[0] == 'h' ? HF_OUTBOX_PUBLISHED
                                      : (enum hf_outbox_state)0;
    return event->state ? NULL
                        : mistake_text(hf_scope_format(s, "its %.*s does not begin with p, f or h",
                                                       HF_FMT(at->hash)));
}

/* A payload is bytes, a text, or any other value, which becomes JSON. */
static const char *read_payload(struct hf_scope *s, struct hf_value value, struct hf_event *event)
{
    enum hf_type type = hf_value_type(value);
    struct hf_str text = hf_value_str(value);

    event->payload = hf_value_bytes(value);
    if (type == HF_TYPE_NONE || type == HF_TYPE_B)
        return NULL;
    if (type != HF_TYPE_S && hf__plain_write(s, value, &text) != HF_OK)
        return hf_scope_error(s)->status == HF_NOMEM ? "" : "its payload is not JSON";
    event->payload = hf_bytes_of(text.ptr, text.len);
    return NULL;
}

static const char *read_headers(struct hf_scope *s, struct hf_value value, struct hf_event *event)
{
    enum hf_type type = hf_value_type(value);

    event->headers = hf_value_item(value);
    if (type == HF_TYPE_NONE || type == HF_TYPE_M)
        return NULL;
    if (type != HF_TYPE_S)
        return "its headers are neither an M nor a text that is a JSON object";
    if (hf__plain_read(s, hf_value_str(value), &event->headers) == HF_OK)
        return NULL;
    event->headers = (struct hf_item){0};
    return hf_scope_error(s)->status == HF_NOMEM
               ? ""
               : "its headers are a text that is not a JSON object";
}

/* Reading goes on after a mistake; the first one is reported. */
static void mistake_keep_first(const char **wrong, const char *another)
{
    if (!*wrong)
        *wrong = another;
}

static const char *read_event(struct hf_scope *s, const struct attrs *attrs, struct hf_event *event)
{
    const char *wrong = NULL;
    int64_t sequence = 0;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct hf_value value = value_of(attrs, texts[i].name);

        *text_in(event, i) = hf_value_str(value);
        if (value.ptr && hf_value_type(value) != HF_TYPE_S)
            mistake_keep_first(&wrong, mistake_text(hf_scope_format(s, "its %s is not an S",
                                                                    texts[i].name)));
    }
    if (!event->source.len)
        event->source = HF_STR(DEFAULT_SOURCE);
    if (!event->content_type.len)
        event->content_type = HF_STR(DEFAULT_CONTENT);
    if (!event->type.len)
        mistake_keep_first(&wrong, "it has no type");
    mistake_keep_first(&wrong, read_i64(s, attrs, "time", INT64_MIN, INT64_MAX, &event->time_us));
    mistake_keep_first(&wrong, read_i64(s, attrs, "due", 0, INT64_MAX, &event->due_us));
    mistake_keep_first(&wrong, read_i64(s, attrs, "sequence", 0, INT64_MAX, &sequence));
    mistake_keep_first(&wrong, read_payload(s, value_of(attrs, "payload"), event));
    mistake_keep_first(&wrong, read_headers(s, value_of(attrs, "headers"), event));
    event->sequence = (uint64_t)sequence;
    return wrong;
}

/* Other programs may have an attribute of that name that means something else. */
static const char *read_urgent(const struct attrs *attrs, struct hf_outbox_event *event)
{
    event->event.urgent = event->ref.len == OUTBOX_SEQ_LEN && is_urgent_seq(event->ref.ptr) &&
                          hf_value_true(value_of(attrs, "urgent"));
    return event->event.urgent && event->event.due_us ? "it is urgent, and it is due at a time"
                                                      : NULL;
}

static const char *read_state(struct hf_scope *s, const struct attrs *attrs,
                              struct hf_outbox_event *event)
{
    int64_t attempts = 0, crashes = 0, blob_size = 0;
    const char *wrong = read_i64(s, attrs, "blob_size", 0, INT64_MAX, &blob_size);

    mistake_keep_first(&wrong, read_i64(s, attrs, "attempts", 0, UINT32_MAX, &attempts));
    mistake_keep_first(&wrong, read_i64(s, attrs, "crashes", 0, attempts, &crashes));
    mistake_keep_first(&wrong, read_i64(s, attrs, "tried", INT64_MIN, INT64_MAX, &event->tried_us));
    mistake_keep_first(&wrong, read_i64(s, attrs, "next", INT64_MIN, INT64_MAX, &event->next_us));
    mistake_keep_first(&wrong, read_i64(s, attrs, "ended", INT64_MIN, INT64_MAX, &event->ended_us));
    mistake_keep_first(&wrong, read_i64(s, attrs, "lease", INT64_MIN, INT64_MAX, &event->lease_us));
    event->attempts = (uint32_t)attempts;
    event->crashes = (uint32_t)crashes;
    event->error = status_named(hf_value_str(value_of(attrs, "error")));
    event->error_text = hf_value_str(value_of(attrs, "error_text"));
    event->cause = hf_value_str(value_of(attrs, "cause"));
    event->blob = hf_value_str(value_of(attrs, "blob"));
    event->blob_size = (uint64_t)blob_size;
    event->owner = hf_value_str(value_of(attrs, "owner"));
    return wrong;
}

enum hf_status hf__outbox_view(struct hf_scope *s, const struct hf_outbox *outbox,
                               struct hf_item item, struct hf_outbox_event *event)
{
    const char *wrong, *wrong_event = NULL;
    struct attrs attrs;

    *event = (struct hf_outbox_event){.item = item};
    attrs_read(item, &attrs);
    wrong = read_place(s, outbox, &attrs, event);
    if (!wrong) {
        wrong_event = read_event(s, &attrs, &event->event);
        mistake_keep_first(&wrong_event, read_urgent(&attrs, event));
        wrong = read_state(s, &attrs, event);
    }
    if (wrong_event && event->state != HF_OUTBOX_FAILED)
        wrong = wrong_event;
    if ((wrong && !*wrong) || (wrong_event && !*wrong_event))
        return hf_scope_fail(s, HF_NOMEM, "no memory to read an event");
    if (wrong)
        return hf_scope_fail(s, HF_CORRUPT,
                             "the item \"%.*s\", \"%.*s\" of table %.*s is not an event: %s",
                             HF_FMT(pk_of(outbox, item)), HF_FMT(sk_of(outbox, item)),
                             HF_FMT(outbox->table), wrong);
    assert(event->ref.len == OUTBOX_SEQ_LEN && event->bucket < outbox->buckets);
    assert(event->state >= HF_OUTBOX_PENDING && event->state <= HF_OUTBOX_PUBLISHED);
    assert(event->crashes <= event->attempts);
    if (!event->event.id.len)
        event->event.id = event->ref;
    if (!event->event.time_us)
        event->event.time_us = hf__outbox_due_ms(event) * 1000;
    return HF_OK;
}

/* The place in a copy of the item that corresponds to `ptr`; NULL: that is not in the item. */
static const void *place_in_copy(struct hf_item item, struct hf_item copy, const void *ptr,
                                 size_t len)
{
    uintptr_t at = (uintptr_t)ptr - (uintptr_t)item.ptr;

    assert(item.len == copy.len);
    return ptr && at <= item.len && len <= item.len - at ? copy.ptr + at : NULL;
}

static void text_move(struct hf_item item, struct hf_item copy, struct hf_str *text)
{
    const char *moved = place_in_copy(item, copy, text->ptr, text->len);

    if (moved) /* else it is absent, or one of our defaults */
        text->ptr = moved;
}

bool hf__outbox_view_move(struct hf_outbox_event *event, struct hf_item copy)
{
    struct hf_str *others[] = {&event->ref, &event->error_text, &event->cause, &event->owner,
                               &event->blob};
    struct hf_event *inner = &event->event;
    struct hf_item item = event->item;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        text_move(item, copy, text_in(inner, i));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        text_move(item, copy, others[i]);
    if ((inner->payload.len &&
         !place_in_copy(item, copy, inner->payload.ptr, inner->payload.len)) ||
        (inner->headers.ptr && !place_in_copy(item, copy, inner->headers.ptr, inner->headers.len)))
        return false;
    inner->payload.ptr = place_in_copy(item, copy, inner->payload.ptr, inner->payload.len);
    inner->headers.ptr = place_in_copy(item, copy, inner->headers.ptr, inner->headers.len);
    event->item = copy;
    return true;
}
