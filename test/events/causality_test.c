/*
 * test/events/causality_test.c: by id, by cause, by correlation, as a tree; (n) is an invariant of
 * events_causality.c.
 */
#include "events_kit.h"

#include <stdio.h>

/* One event with an id and a cause; absent: none. */
static void add(struct kit *k, struct hf_events *store, const char *stream, const char *id,
                const char *cause, const char *correlation)
{
    struct hf_new_event event = {.id = hf_str_from(id),
                                 .type = HF_STR("happened"),
                                 .payload = hf_bytes_of(id, strlen(id)),
                                 .content_type = HF_STR("text/plain"),
                                 .causation = hf_str_from(cause),
                                 .correlation = hf_str_from(correlation)};
    struct hf_append append = {.stream = {HF_STR("order"), hf_str_from(stream)},
                               .events = &event,
                               .events_len = 1};

    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
}

/* "a b c", of the ids. */
static struct hf_str ids_of(struct kit *k, const struct hf_stored_event *events, size_t len)
{
    struct hf_str text = HF_STR("");

    for (size_t i = 0; i < len; i++)
        text = hf_scope_format(k->scope, "%.*s%s%.*s", HF_FMT(text), i ? " " : "",
                               HF_FMT(events[i].id));
    return text;
}

static struct hf_str tree_text(struct kit *k, const struct hf_event_tree *tree)
{
    struct hf_str text = tree->event.id;

    if (!tree->children_len)
        return text;
    text = hf_scope_format(k->scope, "%.*s(", HF_FMT(text));
    for (size_t i = 0; i < tree->children_len; i++)
        text = hf_scope_format(k->scope, "%.*s%s%.*s", HF_FMT(text), i ? " " : "",
                               HF_FMT(tree_text(k, &tree->children[i])));
    return hf_scope_format(k->scope, "%.*s)", HF_FMT(text));
}

/* D5.1: by id, on every database, whether the id was chosen or is the position. */
KIT_TEST_TX(causality, by_id_d5_1)
{
    struct hf_events *store = open_store(k);
    struct hf_stored_event event;
    struct hf_appended done;

    add(k, store, "1", "chosen", NULL, NULL);
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, &done));
    CHECK_OK(hf_events_get(k->scope, store, HF_STR("chosen"), &event));
    CHECK_INT(1, event.version);
    CHECK_STR("chosen", payload_of(&event));
    CHECK_STR("order", event.stream.domain);
    CHECK_OK(hf_events_get(k->scope, store, done.ids[1], &event));
    CHECK_INT(3, event.version);
    CHECK(hf_str_equal(done.ids[1], event.position));
    hf_events_close(store);
}

/* D5.2: events by their cause are whole. */
KIT_TEST_TX(causality, caused_by_is_whole_d5_2)
{
    struct hf_events *store = open_store(k);
    const struct hf_stored_event *events;
    size_t len;

    add(k, store, "1", "root", NULL, NULL);
    add(k, store, "2", "one", "root", "root");
    add(k, store, "3", "two", "root", "root");
    add(k, store, "3", "deep", "two", "root");
    CHECK_OK(hf_events_caused_by(k->scope, store, HF_STR("root"), &events, &len));
    CHECK_STR("one two", ids_of(k, events, len));
    CHECK_STR("order", events[1].stream.domain);
    CHECK_STR("3", events[1].stream.id);
    CHECK_INT(1, events[1].version);
    CHECK_STR("happened", events[1].type);
    CHECK_STR("two", payload_of(&events[1]));
    CHECK_STR("text/plain", events[1].content_type);
    CHECK_STR("root", events[1].causation);
    CHECK_STR("root", events[1].correlation);
    CHECK_INT(32, events[1].hash.len);
    CHECK(events[1].time_us > 0);

    CHECK_OK(hf_events_correlated(k->scope, store, HF_STR("root"), &events, &len));
    CHECK_STR("root one two deep", ids_of(k, events, len));
    CHECK_OK(hf_events_caused_by(k->scope, store, HF_STR("deep"), &events, &len));
    CHECK_INT(0, len);
    CHECK_OK(hf_events_caused_by(k->scope, store, HF_STR("nobody"), &events, &len));
    CHECK_INT(0, len);
    CHECK_STATUS(HF_INVALID, hf_events_caused_by(k->scope, store, HF_STR(""), &events, &len));
    hf_events_close(store);
}

/* A correlation that is no event's id; one that was said to be the event's own. */
KIT_TEST_TX(causality, correlations_of_all_kinds)
{
    struct hf_events *store = open_store(k);
    const struct hf_stored_event *events;
    size_t len;

    add(k, store, "1", "a", NULL, "request/7");
    add(k, store, "2", "b", "a", "request/7");
    add(k, store, "2", "own", NULL, "own");
    CHECK_OK(hf_events_correlated(k->scope, store, HF_STR("request/7"), &events, &len));
    CHECK_STR("a b", ids_of(k, events, len));
    CHECK_OK(hf_events_correlated(k->scope, store, HF_STR("own"), &events, &len));
    CHECK_STR("own", ids_of(k, events, len));
    CHECK_OK(hf_events_correlated(k->scope, store, HF_STR("a"), &events, &len));
    CHECK_INT(0, len); /* it is there, but correlated with something else */
    hf_events_close(store);
}

/* (1): more than a batch, and more than a page. */
KIT_TEST_TX(causality, all_pages_are_followed)
{
    enum { EACH = 30, APPENDS = 9 };
    struct hf_events *store = open_store(k);
    struct hf_new_event list[EACH];
    const struct hf_stored_event *events;
    uint8_t large[6000] = {0};
    size_t len;

    for (int i = 0; i < EACH; i++)
        list[i] = (struct hf_new_event){.type = HF_STR("t"),
                                        .payload = hf_bytes_of(large, sizeof(large)),
                                        .causation = HF_STR("cause"),
                                        .correlation = HF_STR("cause")};
    for (int i = 0; i < APPENDS; i++) {
        struct hf_append append = {.stream = {HF_STR("many"), HF_STR("")},
                                   .events = list,
                                   .events_len = EACH};

        CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    }
    CHECK_OK(hf_events_caused_by(k->scope, store, HF_STR("cause"), &events, &len));
    CHECK_INT(EACH * APPENDS, len);
    for (size_t i = 0; i < len; i++) {
        CHECK_INT(i + 1, events[i].version);
        CHECK_INT(sizeof(large), events[i].payload.len);
    }
    hf_events_close(store);
}

KIT_TEST_TX(causality, a_tree)
{
    struct hf_events *store = open_store(k);
    struct hf_event_tree tree;

    add(k, store, "1", "root", NULL, NULL);
    add(k, store, "1", "a", "root", "root");
    add(k, store, "2", "b", "root", "other"); /* trees go by causes alone */
    add(k, store, "2", "a1", "a", "root");
    add(k, store, "3", "a2", "a", "root");
    add(k, store, "3", "b1", "b", "root");
    add(k, store, "3", "a2x", "a2", "root");
    CHECK_OK(hf_events_tree(k->scope, store, HF_STR("root"), 0, &tree));
    CHECK_STR("root(a(a1 a2(a2x)) b(b1))", tree_text(k, &tree));
    CHECK_STR("a2x", payload_of(&tree.children[0].children[1].children[0].event));
    CHECK_OK(hf_events_tree(k->scope, store, HF_STR("a2"), 0, &tree));
    CHECK_STR("a2(a2x)", tree_text(k, &tree));
    CHECK_STATUS(HF_NOT_FOUND, hf_events_tree(k->scope, store, HF_STR("none"), 0, &tree));

    /* The limit, and one past it. */
    CHECK_OK(hf_events_tree(k->scope, store, HF_STR("root"), 3, &tree));
    CHECK_STATUS(HF_LIMIT, hf_events_tree(k->scope, store, HF_STR("root"), 2, &tree));
    CHECK_ERROR(HF_LIMIT, "the tree of event \"root\" has more than 2 levels", k->scope);
    CHECK_INT(0, tree.children_len);
    hf_events_close(store);
}

/* (3) */
KIT_TEST_TX(causality, a_circle_has_an_end)
{
    struct hf_events *store = open_store(k);
    struct hf_event_tree tree;

    add(k, store, "1", "hen", "egg", NULL);
    add(k, store, "1", "egg", "hen", NULL);
    add(k, store, "1", "self", "self", NULL);
    CHECK_STATUS(HF_LIMIT, hf_events_tree(k->scope, store, HF_STR("hen"), 0, &tree));
    CHECK_ERROR(HF_LIMIT, "the tree of event \"hen\" has more than 100 levels", k->scope);
    CHECK_STATUS(HF_LIMIT, hf_events_tree(k->scope, store, HF_STR("self"), 5, &tree));
    hf_events_close(store);
}

static void remove_item(struct kit *k, const char *pk, const char *sk)
{
    struct hf_delete_item del = {.table = k->table,
                                 .key = HF_ITEM(k->scope, HF_S("pk", hf_str_from(pk)),
                                                HF_S("sk", hf_str_from(sk)))};

    CHECK_OK(hf_delete_item(k->scope, k->db, &del, NULL));
}

/* (2): what is missing is said, unless it may be. */
KIT_TEST_TX(causality, nothing_is_left_out_silently)
{
    struct hf_events *store = open_store(k);
    const struct hf_stored_event *events;
    struct hf_event_tree tree;
    size_t len;

    add(k, store, "1", "root", NULL, NULL);
    add(k, store, "2", "one", "root", "root");
    add(k, store, "2", "two", "root", "root");
    add(k, store, "3", "three", "root", "root");
    remove_item(k, "s.order.2", "0000000000000001");
    CHECK_STATUS(HF_CORRUPT, hf_events_caused_by(k->scope, store, HF_STR("root"), &events, &len));
    CHECK(strstr(hf_scope_error_text(k->scope), "version 1 of stream \"order/2\", is missing"));
    CHECK_STATUS(HF_CORRUPT, hf_events_correlated(k->scope, store, HF_STR("root"), &events, &len));
    CHECK_STATUS(HF_CORRUPT, hf_events_tree(k->scope, store, HF_STR("root"), 0, &tree));

    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("2"), 2));
    CHECK_OK(hf_events_caused_by(k->scope, store, HF_STR("root"), &events, &len));
    CHECK_STR("two three", ids_of(k, events, len));
    CHECK_OK(hf_events_tombstone(k->scope, store, ORDER("3"), HF_EXPECT_ANY, 0));
    CHECK_OK(hf_events_correlated(k->scope, store, HF_STR("root"), &events, &len));
    CHECK_STR("root two", ids_of(k, events, len));
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 2));
    CHECK_STATUS(HF_NOT_FOUND, hf_events_tree(k->scope, store, HF_STR("root"), 0, &tree));
    CHECK_OK(hf_events_correlated(k->scope, store, HF_STR("root"), &events, &len));
    CHECK_STR("two", ids_of(k, events, len));
    hf_events_close(store);
}
