/*
 * events/store/order_close.h: days of the global order, and closing them: what readers and
 * events_order_close.c share.
 */
#ifndef HF_EVENTS_STORE_ORDER_CLOSE_H
#define HF_EVENTS_STORE_ORDER_CLOSE_H

#include "events/store/events.h"

#include <string.h>

struct day {
    char text[EVENTS_DAY_LEN + 1]; /* "": none */
    bool closed;
};

static inline bool position_is_before(const struct events_position *a,
                                      const struct events_position *b)
{
    return memcmp(a->text, b->text, HF_POSITION_LEN) < 0;
}

static inline struct events_position position_of(struct hf_str text)
{
    struct events_position position = {0};

    if (text.len == HF_POSITION_LEN)
        memcpy(position.text, text.ptr, HF_POSITION_LEN);
    return position;
}

static inline struct hf_str day_str(const struct day *day)
{
    return hf_str_of(day->text, strlen(day->text));
}

/* Close all shards of the day up to a position. `bound` (may be NULL) is up to where they are then,
 * which may be further. */
enum hf_status hf__events_close_upto(struct hf_scope *s, struct hf_events *store, struct hf_str day,
                                     const struct events_position *to,
                                     struct events_position *bound);

/* After it no event can be appended to a day before that one. */
enum hf_status hf__events_close_before(struct hf_scope *s, struct hf_events *store,
                                       struct hf_str day);

/* The position up to which a day is closed when it is for good: the first of the next one. */
struct events_position hf__events_day_end(struct hf_str day);

/* The first day of the list at that text or behind it; `newest`: the last one at it or before.
 * None: its text is "". */
enum hf_status hf__events_day_find(struct hf_scope *s, struct hf_events *store, struct hf_str from,
                                   bool newest, struct day *day);

/* The newest commit of a day's shards behind `after`, and not behind `upto` (if any); with archived
 * ones, when those are asked for. "": there is none. */
enum hf_status hf__events_newest_of(struct hf_scope *s, struct hf_events *store, struct hf_str day,
                                    bool archived, const struct events_position *after,
                                    const struct events_position *upto,
                                    struct events_position *newest);

#endif
