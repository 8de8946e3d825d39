/*
 * test/ops/ops_test.h: what the tests of this folder share.
 */
#ifndef HF_TEST_OPS_TEST_H
#define HF_TEST_OPS_TEST_H

#include "ops/prepare.h"

#include "test.h"

/* The call is refused with HF_INVALID and exactly this message. */
#define REFUSED(message, call)                                                                     \
    do {                                                                                           \
        CHECK_STATUS(HF_INVALID, (call));                                                          \
        CHECK_ERROR(HF_INVALID, message, s);                                                       \
    } while (0)

#define ONE "1 validation error detected: "
#define FAILED "failed to satisfy constraint: "
#define BAD "One or more parameter values were invalid: "
#define NOT_NULL "Member must not be null"
#define LEAST(n) "Member must have length greater than or equal to " #n
#define MOST(n) "Member must have length less than or equal to " #n

/* A text that is no member of an enum, as the decoder stores it. */
static inline int bogus(struct hf_scope *s, const char *text)
{
    return hf__scope_keep_text(s, hf_str_from(text));
}

/* `len` times the character. */
static inline struct hf_str repeated(struct hf_scope *s, char c, size_t len)
{
    char *text = hf_scope_alloc(s, len + 1);

    memset(text, c, len);
    text[len] = '\0';
    return hf_str_of(text, len);
}

/* A value of `levels` levels: lists around a string. */
static inline struct hf_value nested(struct hf_scope *s, int levels)
{
    struct hf_value value = hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("x")));

    for (int i = 1; i < levels; i++)
        value = HF_LIST(s, HF_V("", value));
    return value;
}

static inline struct hf_item spoiled(struct hf_scope *s, const char *message, const char *key)
{
    return hf__item_poison_new(s, HF_INVALID, hf_str_from(message), hf_str_from(key));
}

/* Leave `room` bytes in the scope and let every allocation beyond them fail. */
static inline void scope_squeeze(struct test *t, struct hf_scope *s, size_t room)
{
    struct hf__mark mark;
    size_t left = 0;

    hf_scope_alloc(s, 1); /* so that there is a chunk */
    mark = hf__scope_mark(s);
    t->fail_at = -(int64_t)(t->allocs + 1);
    while (hf_scope_alloc(s, 16))
        left += 16;
    hf__scope_rewind(s, mark);
    if (left > room)
        hf_scope_alloc(s, left - room);
}

/*
 * Run `call` with no memory, with 16 bytes, and so on until it ends as `expected`: before that it
 * must end with HF_NOMEM, or with that status and no room for its message.
 */
#define SWEEP(expected, prepare_, call)                                                            \
    do {                                                                                           \
        bool done_ = false;                                                                        \
        for (size_t room_ = 0; !done_; room_ += 16) {                                              \
            struct hf_scope *s = hf_scope_new(test_env(t));                                        \
            enum hf_status status_;                                                                \
            CHECK(s != NULL);                                                                      \
            prepare_;                                                                              \
            scope_squeeze(t, s, room_);                                                            \
            status_ = (call);                                                                      \
            t->fail_at = 0;                                                                        \
            CHECK(status_ == (expected) || status_ == HF_NOMEM);                                   \
            CHECK(status_ == HF_OK || hf_scope_error(s)->status == status_);                       \
            done_ = status_ == HF_OK || !hf_str_equal(hf_scope_error(s)->message,                  \
                                                      hf_str_from(hf_status_text(status_)));       \
            CHECK(room_ > 0 || !done_);                                                            \
            hf_scope_free(s);                                                                      \
        }                                                                                          \
    } while (0)

#endif
