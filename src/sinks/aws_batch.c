/*
 * sinks/aws_batch.c: deliveries as entries of calls, and an outcome for each.
 *
 *     deliveries -> entries -> calls of one target, within the limits -> what the answer says
 *
 * SQS, SNS and EventBridge have different forms of entries and answers; all of them take ten entries
 * at once, limit the bytes of all together, and may accept some entries of a call and refuse others.
 *
 * They also refuse a whole call because of one entry. Then the call is sent again in halves, until
 * the entry that is to blame is alone; the others are not held up by it. As nothing of a refused
 * call was done, nothing is sent twice.
 *
 * What always holds:
 *
 *  (1) A delivery is done only when the answer to a call that had it says so, once.
 *  (2) No call has more entries or bytes than the limits, except that one entry by itself may have
 *      as many bytes as an entry may.
 *  (3) When a call fails as a whole, later entries are not sent: the relay sends them again in the
 *      same order.
 */
#include "sinks/aws.h"

#include "client/service.h"

struct run {
    struct hf_scope *s;
    const struct aws_sender *by;
};

/* ---- outcomes ------------------------------------------------------------------------------- */

_Static_assert(AWS_BATCH <= 100, "the ids of entries have at most two digits");

size_t hf__aws_place(struct hf_str id, size_t len)
{
    size_t place = 0;

    if (id.len == 0 || id.len > 2 || (id.len == 2 && id.ptr[0] == '0'))
        return SIZE_MAX;
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] < '0' || id.ptr[i] > '9')
            return SIZE_MAX;
        place = place * 10 + (size_t)(id.ptr[i] - '0');
    }
    return place < len ? place : SIZE_MAX;
}

/* The error text of a delivery whose outcome is not known yet, recognized by its address. */
static const char no_outcome[] = "";

void hf__aws_outcome(struct hf_scope *s, const char *service, struct hf_delivery *delivery,
                     const struct aws_outcome *outcome)
{
    struct hf_str code = hf__service_printable(s, outcome->code, AWS_CODE_MAX);
    struct hf_str message = hf__service_printable(s, outcome->message, AWS_MESSAGE_MAX);
    enum hf_status status = HF_IO;
    bool for_good = false;

    if (delivery->error.ptr != no_outcome) {
        hf__delivery_fail(s, delivery, HF_IO, false, "%s reported two outcomes for it", service);
        return;
    }
    if (outcome->done) {
        hf__delivery_done(delivery);
        return;
    }
    if (!hf__aws_is_service_code(outcome->code, &status)) {
        for_good = outcome->for_good;
        status = for_good ? HF_INVALID : HF_IO;
    }
    hf__delivery_fail(s, delivery, status, for_good, "%s refused it: %.*s%s%.*s", service,
                      HF_FMT(code), message.len ? ": " : "", HF_FMT(message));
}

/* Were all entries throttled or denied? Then the service is to blame, not the entries. */
static bool is_service_failure(struct hf_delivery *const *deliveries, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (deliveries[i]->status != HF_THROTTLED && deliveries[i]->status != HF_DENIED)
            return false;
    return len > 0;
}

static enum hf_status take_answer(const struct run *run, struct hf_str body,
                                  struct aws_entry *const *entries, size_t len)
{
    struct hf_delivery *deliveries[AWS_BATCH];
    enum hf_status status;

    assert(len > 0 && len <= AWS_BATCH);
    for (size_t i = 0; i < len; i++) {
        deliveries[i] = entries[i]->delivery;
        deliveries[i]->status = HF_IO;
        deliveries[i]->error = hf_str_of(no_outcome, 0);
    }
    status = run->by->service->read(run->s, run->by->self, body, deliveries, len);
    for (size_t i = 0; i < len; i++) {
        if (status != HF_OK) { /* (1) nothing of an invalid document counts */
            hf__delivery_fail(run->s, deliveries[i], HF_IO, false,
                              "the answer of %s could not be read", hf__aws_name(run->by->aws));
        } else if (deliveries[i]->error.ptr == no_outcome) {
            hf__delivery_fail(run->s, deliveries[i], HF_IO, false, "%s reported no outcome for it",
                              hf__aws_name(run->by->aws));
        }
    }
    for (size_t i = 0; i < len; i++)
        assert(deliveries[i]->error.ptr != no_outcome);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK)
        return hf__aws_unreadable(run->s, run->by->aws, "is not a valid answer to the call");
    if (is_service_failure(deliveries, len))
        return hf__fail(run->s, deliveries[0]->status, "%.*s", HF_FMT(deliveries[0]->error));
    return HF_OK;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Take the refusal of a call; *halve: the entries have to be sent again, in halves. */
static enum hf_status take_refusal(const struct run *run, enum aws_blame blame,
                                   struct aws_entry *const *entries, size_t len, bool *halve)
{
    assert(blame != AWS_NOBODY && hf_scope_error(run->s)->status != HF_OK && len > 0);
    *halve = false;
    if (blame == AWS_SINK || (blame == AWS_TARGET && run->by->target_is_fixed))
        return hf_scope_error(run->s)->status;
    if (blame == AWS_TARGET) {
        for (size_t i = 0; i < len; i++)
            hf__delivery_fail_with(run->s, entries[i]->delivery, false);
    } else if (len > 1) {
        *halve = true;
    } else {
        hf__delivery_fail_with(run->s, entries[0]->delivery, blame == AWS_ENTRY);
    }
    hf__scope_error_clear(run->s);
    return HF_OK;
}

static enum hf_status send_call(const struct run *run, struct aws_entry *const *entries, size_t len)
{
    struct aws_request request = {.content_type = NULL};
    struct aws_answer answer;
    bool halve;

    assert(len > 0 && len <= AWS_BATCH);
    for (size_t i = 1; i < len; i++)
        assert(hf_str_equal(entries[i]->target, entries[0]->target));
    TRY(run->by->service->request(run->s, run->by->self, entries, len, &request));
    TRY(hf__aws_call(run->s, run->by->aws, &request, &answer));
    if (answer.blame == AWS_NOBODY)
        return take_answer(run, answer.body, entries, len);
    TRY(take_refusal(run, answer.blame, entries, len, &halve));
    if (!halve)
        return HF_OK;
    TRY(send_call(run, entries, len / 2)); /* ten entries: four deep at most */
    return send_call(run, entries + len / 2, len - len / 2);
}

/* ---- entries -------------------------------------------------------------------------------- */

static enum hf_status make_entry(const struct run *run, struct hf_delivery *delivery,
                                 struct aws_entry *entry)
{
    enum hf_status status;

    *entry = (struct aws_entry){.delivery = delivery};
    status = run->by->service->make(run->s, run->by->self, &delivery->event->event, entry);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK) {
        hf__delivery_fail_with(run->s, delivery, true);
        hf__scope_error_clear(run->s);
        return HF_OK;
    }
    if (entry->bytes > run->by->limits->max_bytes) {
        hf__delivery_fail(run->s, delivery, HF_LIMIT, true,
                          "it has %zu bytes as %s counts them; the limit is %llu", entry->bytes,
                          hf__aws_name(run->by->aws),
                          (unsigned long long)run->by->limits->max_bytes);
        return HF_OK;
    }
    assert(entry->text.len > 0);
    entry->ready = true;
    return HF_OK;
}

/* Choose entries from `first` on for one call; they are not ready any more. Returns how many. */
static size_t entries_gather(const struct run *run, struct aws_entry *all, size_t len, size_t first,
                             struct aws_entry **entries)
{
    size_t count = 0, bytes = 0;

    assert(first < len && all[first].ready);
    for (size_t i = first; i < len && count < AWS_BATCH; i++) {
        if (!all[i].ready || !hf_str_equal(all[i].target, all[first].target))
            continue;
        if (count > 0 && bytes + all[i].bytes > run->by->limits->batch_bytes)
            break;
        bytes += all[i].bytes;
        all[i].ready = false;
        entries[count++] = &all[i];
    }
    assert(count > 0 && (count == 1 || bytes <= run->by->limits->batch_bytes)); /* (2) */
    return count;
}

enum hf_status hf__aws_send(struct hf_scope *s, const struct aws_sender *sender,
                            struct hf_delivery *deliveries, size_t len)
{
    const struct run run = {.s = s, .by = sender};
    struct aws_entry *all = hf__scope_array(s, len, sizeof(*all));

    if (!all)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        TRY(make_entry(&run, &deliveries[i], &all[i]));
    for (size_t i = 0; i < len; i++) {
        struct aws_entry *entries[AWS_BATCH];

        if (!all[i].ready)
            continue;
        TRY(send_call(&run, entries, entries_gather(&run, all, len, i, entries)));
    }
    return HF_OK;
}
