/* base/error_test.c: (n) is an invariant of base/error.c. */
#include "base/base.h"

#include "test.h"

/* As much as an error can have. The texts are in memory that `other` gives back. */
static enum hf_status fail_with_all(struct hf_scope *other)
{
    static const uint8_t bytes[] = {1, 2, 3};
    struct hf_cancel_reason *reasons = hf__scope_array(other, 2, sizeof(*reasons));
    uint8_t *item = hf_scope_alloc(other, sizeof(bytes));
    struct hf_error *error;

    (void)hf__fail(other, HF_INVALID, "the %s", "root");
    (void)hf_scope_fail_because(other, HF_IO, hf_scope_error(other), "the %s", "middle");
    (void)hf_scope_fail_because(other, HF_TX_CANCELED, hf_scope_error(other), "the %s", "top");
    if (!reasons || !item)
        return HF_TX_CANCELED;
    memcpy(item, bytes, sizeof(bytes));
    error = hf__scope_error_edit(other);
    error->operation = hf_scope_copy(other, HF_STR("TransactWriteItems"));
    error->table = hf_scope_copy(other, HF_STR("orders"));
    error->may_retry = error->may_have_happened = true;
    error->retry_after_ms = 700;
    error->item = (struct hf_item){item, sizeof(bytes)};
    error->limit = (struct hf_error_limit){hf_scope_copy(other, HF_STR("LIMIT")), 4, 5};
    reasons[0].code = HF_STR("None");
    reasons[1] = (struct hf_cancel_reason){.code = hf_scope_copy(other, HF_STR("Conflict")),
                                           .message = hf_scope_copy(other, HF_STR("busy")),
                                           .item = error->item};
    error->reasons = reasons;
    error->reasons_len = 2;
    hf__scope_error_say(other, hf_scope_copy(other, HF_STR("the top of orders")));
    return HF_TX_CANCELED;
}

/* What is in the scope's memory is overwritten, and then gone. */
static void forget(struct hf_scope *other)
{
    hf_scope_reset(other);
    for (int i = 0; i < 7; i++)
        memset(hf_scope_alloc(other, 1000), 'x', 1000);
    hf_scope_free(other);
}

static void check_all(struct hf_scope *s)
{
    const struct hf_error *error = hf_scope_error(s);

    CHECK_ERROR(HF_TX_CANCELED, "the top", s);
    CHECK_STR("the top of orders", hf_str_from(hf_scope_error_text(s)));
    CHECK_STR("TransactWriteItems", error->operation);
    CHECK_STR("orders", error->table);
    CHECK(error->may_retry && error->may_have_happened);
    CHECK_INT(700, error->retry_after_ms);
    CHECK_INT(3, error->item.len);
    CHECK(memcmp(error->item.ptr, "\1\2\3", 3) == 0);
    CHECK_INT(2, error->reasons_len);
    CHECK_STR("None", error->reasons[0].code);
    CHECK(!error->reasons[0].message.ptr && !error->reasons[0].item.ptr);
    CHECK_STR("Conflict", error->reasons[1].code);
    CHECK_STR("busy", error->reasons[1].message);
    CHECK(memcmp(error->reasons[1].item.ptr, "\1\2\3", 3) == 0);
    CHECK_STR("LIMIT", error->limit.name);
    CHECK_INT(4, error->limit.max);
    CHECK_INT(5, error->limit.actual);
    CHECK_INT(HF_IO, error->cause->status);
    CHECK_STR("the middle", error->cause->message);
    CHECK_INT(HF_INVALID, error->cause->cause->status);
    CHECK_STR("the root", error->cause->cause->message);
    CHECK(!error->cause->cause->cause);
}

static size_t causes_of(const struct hf_scope *s)
{
    size_t count = 0;

    for (const struct hf_error *error = hf_scope_error(s)->cause; error; error = error->cause)
        count++;
    return count;
}

/* (1) */
TEST(error, of_another_scope_is_whole)
{
    struct hf_scope *s = hf_scope_new(test_env(t)), *other = hf_scope_new(test_env(t));

    CHECK_STATUS(HF_TX_CANCELED, hf_scope_fail_from(s, fail_with_all(other), other));
    forget(other);
    check_all(s);
    CHECK_STATUS(HF_TX_CANCELED, hf_scope_fail_from(s, HF_TX_CANCELED, s)); /* its own stays */
    check_all(s);
    hf_scope_free(s);
}

/* A function that returns a status has not always set it. */
TEST(error, of_another_scope_with_another_status)
{
    struct hf_scope *s = hf_scope_new(test_env(t)), *other = hf_scope_new(test_env(t));

    CHECK_STATUS(HF_LOST, hf_scope_fail_from(s, HF_LOST, other));
    CHECK_ERROR(HF_LOST, hf_status_text(HF_LOST), s);
    CHECK(!hf_scope_error(s)->cause);
    (void)hf_scope_fail(other, HF_NOT_FOUND, "no %s", "key");
    CHECK_STATUS(HF_LOST, hf_scope_fail_from(s, HF_LOST, other));
    CHECK_ERROR(HF_LOST, "no key", s);
    CHECK_INT(HF_NOT_FOUND, hf_scope_error(s)->cause->status);
    CHECK_OK(hf_scope_fail_from(s, HF_OK, other));
    CHECK_INT(HF_OK, hf_scope_error(s)->status);
    hf_scope_free(other);
    hf_scope_free(s);
}

TEST(error, with_a_cause)
{
    struct hf_scope *s = hf_scope_new(test_env(t)), *other = hf_scope_new(test_env(t));
    const struct hf_error *error = hf_scope_error(s);

    CHECK_STATUS(HF_IO, hf_scope_fail_because(s, HF_IO, NULL, "it %s", "broke"));
    CHECK_ERROR(HF_IO, "it broke", s);
    CHECK(!error->cause && !error->may_retry);
    CHECK_STATUS(HF_IO, hf_scope_fail_because(s, HF_IO, hf_scope_error(other), "again"));
    CHECK(!error->cause); /* nothing had failed there */

    /* Doubt goes up; whether to repeat does if it is the same failure. */
    (void)hf_scope_fail(other, HF_IO, "cut");
    hf__scope_error_edit(other)->may_retry = true;
    hf__scope_error_edit(other)->retry_after_ms = 30;
    (void)hf_scope_doubt(other);
    CHECK_STATUS(HF_IO, hf_scope_fail_because(s, HF_IO, hf_scope_error(other), "line 7: cut"));
    CHECK(error->may_have_happened && error->may_retry);
    CHECK_INT(30, error->retry_after_ms);
    CHECK_STATUS(HF_LOST, hf_scope_fail_because(s, HF_LOST, hf_scope_error(other), "gone"));
    CHECK(error->may_have_happened && !error->may_retry);
    CHECK_INT(0, error->retry_after_ms);
    CHECK_INT(30, error->cause->retry_after_ms);
    forget(other);
    CHECK_STR("cut", error->cause->message);
    CHECK_OK(hf_scope_fail_because(s, HF_OK, error, "%s", ""));
    CHECK(error->status == HF_OK && !error->cause);
    hf_scope_free(s);
}

/* (3) As many causes as there may be, and one more: the deepest is left out. */
TEST(error, causes_have_a_limit)
{
    struct hf_scope *s = hf_scope_new(test_env(t)), *copy = hf_scope_new(test_env(t));
    const struct hf_error *error;

    (void)hf_scope_fail(s, HF_IO, "0");
    for (size_t i = 1; i <= HF_ERROR_CAUSES_MAX + 1; i++) {
        size_t most = i < HF_ERROR_CAUSES_MAX ? i : HF_ERROR_CAUSES_MAX;

        (void)hf_scope_fail_because(s, HF_IO, hf_scope_error(s), "%zu", i);
        CHECK_INT(most, causes_of(s));
        CHECK_STATUS(HF_IO, hf_scope_fail_from(copy, HF_IO, s));
        CHECK_INT(most, causes_of(copy));
    }
    error = hf_scope_error(copy);
    for (size_t i = 0; i < HF_ERROR_CAUSES_MAX; i++)
        error = error->cause;
    CHECK_STR("1", error->message);

    /* Whatever somebody else has linked. */
    {
        struct hf_error ring = {.status = HF_IO, .message = HF_STR("round")};

        ring.cause = &ring;
        CHECK_STATUS(HF_LOST, hf_scope_fail_because(s, HF_LOST, &ring, "gone"));
        CHECK_INT(HF_ERROR_CAUSES_MAX, causes_of(s));
    }
    hf_scope_free(copy);
    hf_scope_free(s);
}

/* At the limit nothing is said of it; one more is past it. */
TEST(error, limits)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_error *error = hf_scope_error(s);
    char name[] = "jobs";

    CHECK_STATUS(HF_INVALID, hf_scope_fail_limit(s, HF_INVALID,
                                                 HF_ERROR_LIMIT(HF_ERROR_CAUSES_MAX, 8), "%d", 8));
    CHECK(!error->limit.name.ptr && !error->limit.max && !error->limit.actual);
    CHECK_STATUS(HF_LIMIT,
                 hf_scope_fail_limit(s, HF_LIMIT, HF_ERROR_LIMIT(HF_ERROR_CAUSES_MAX, 9), "%d", 9));
    CHECK_ERROR(HF_LIMIT, "9", s);
    CHECK_STR("HF_ERROR_CAUSES_MAX", error->limit.name);
    CHECK_INT(HF_ERROR_CAUSES_MAX, error->limit.max);
    CHECK_INT(9, error->limit.actual);
    (void)hf_scope_fail_limit(s, HF_LIMIT, hf_error_limit_of(name, 1, UINT64_MAX), "%d", 9);
    memset(name, 'x', 4);
    CHECK_STR("jobs", error->limit.name);
    CHECK(error->limit.actual == UINT64_MAX);
    CHECK_OK(hf_scope_fail_limit(s, HF_OK, HF_ERROR_LIMIT(HF_ERROR_CAUSES_MAX, 9), "%d", 9));
    CHECK(error->status == HF_OK && !error->limit.name.ptr);
    hf_scope_free(s);
}

/* (2) Whatever there is no memory for, the status and the flags are there, and what is told of
 * lists is there, too. */
TEST(error, without_memory)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t)), *other = hf_scope_new(test_env(t));

        if (s && other) {
            const struct hf_error *error = hf_scope_error(s);
            bool doubt;

            (void)fail_with_all(other);
            doubt = hf_scope_error(other)->may_have_happened;
            for (int i = 0; i < 4; i++)
                (void)hf_scope_alloc(s, 3000); /* so that copies need chunks of their own */
            CHECK_STATUS(HF_TX_CANCELED, hf_scope_fail_from(s, HF_TX_CANCELED, other));
            CHECK(error->status == HF_TX_CANCELED && error->message.len > 0);
            CHECK(hf_scope_error_text(s)[0] && error->may_have_happened == doubt);
            CHECK(!error->reasons_len || error->reasons);
            CHECK(causes_of(s) <= 2);
            if (!t->alloc_failed)
                check_all(s);
            CHECK_STATUS(HF_LOST, hf_scope_fail_because(s, HF_LOST, error, "%02000d", 1));
            CHECK(error->status == HF_LOST && error->message.len > 0);
            CHECK(error->may_have_happened == doubt);
            CHECK_STATUS(HF_LIMIT,
                         hf_scope_fail_limit(s, HF_LIMIT, HF_ERROR_LIMIT(2, 3), "%09000d", 1));
            CHECK(error->status == HF_LIMIT && error->message.len > 0);
        }
        hf_scope_free(other);
        hf_scope_free(s);
    }
}
