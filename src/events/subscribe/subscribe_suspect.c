/*
 * events/subscribe/subscribe_suspect.c: events whose function ends the process, and how they are
 * found out.
 *
 * Nothing is written when a function begins. When a process ends, the event that it was handling is
 * somewhere behind the checkpoint, in the order in which they are handled. So whoever takes the
 * lease over from one that ended without a word is careful: it hands over one event at a time, and
 * before each of them writes into the item of the subscription which one it is, and how many
 * processes have ended with it so far, this one among them. The same write moves the checkpoint.
 *
 *  (1) With care one event is under way, so when the process ends the count is that of the one that
 *      did it; as far as the process ended because of this subscription.
 *  (2) An event that has ended max_attempts processes is given up as one that has failed so often.
 *  (3) What has failed is counted as a failure, in memory, and no more as a crash; so is what was
 *      under way when the subscription was stopped.
 *  (4) So many events are handled with care (`window`), which is in the item; a holder that takes
 *      over from a careful one doubles it. With the window all that was behind the checkpoint comes
 *      nearer, so it is reached.
 *  (5) The window is forgotten by the first move of the checkpoint behind it, which costs nothing.
 *      Where nobody dies there is none.
 */
#include "events/subscribe/subscribe.h"

enum { WINDOW_MIN = 128, WINDOW_MAX = 1 << 20 };

uint32_t hf__suspects_window(const struct sub_item *seen, bool from_silent)
{
    uint64_t window = 2 * (uint64_t)seen->window; /* (4) */

    if (!from_silent)
        return seen->window;
    window = window > WINDOW_MIN ? window : WINDOW_MIN;
    return window < WINDOW_MAX ? (uint32_t)window : WINDOW_MAX;
}

void hf__suspects_taken(struct hf_subscription *sub, const struct sub_item *view, bool from_us)
{
    sub->window = sub->careful = view->window;
    sub->crash_at = view->crash_at;
    sub->crashes = view->crashes;
    if (from_us && sub->counted && sub->crashes) /* one of them is ours, and we live */
        sub->crashes--;
    sub->counted = false;
    assert(sub->careful == sub->window);
}

static uint32_t crashes_at(const struct hf_subscription *sub, const struct checkpoint *at)
{
    return strcmp(sub->crash_at.text, at->text) == 0 ? sub->crashes : 0;
}

bool hf__suspects_careful(const struct hf_subscription *sub, const struct checkpoint *at)
{
    return sub->careful || crashes_at(sub, at);
}

static struct sub_move move_of(const struct hf_subscription *sub)
{
    return (struct sub_move){.token = id_str(&sub->token),
                             .from = sub->written,
                             .to = sub->handled,
                             .handled = sub->handled_count};
}

enum hf_status hf__suspects_begin(struct hf_scope *s, struct hf_subscription *sub,
                                  const struct checkpoint *at, struct hf_error *error, bool *ended)
{
    uint32_t crashes = crashes_at(sub, at);
    struct sub_move move = move_of(sub);

    assert(at->text[0] && sub->o.max_attempts);
    *ended = crashes >= sub->o.max_attempts; /* (2) */
    if (*ended) {
        *error = (struct hf_error){
            .status = HF_TIMEOUT,
            .message = hf_scope_format(
                s,
                "its process ended while handling it, or was silent for a whole lease: %u time%s",
                crashes, crashes == 1 ? "" : "s")};
        return hf_scope_built(s);
    }
    TRY(hf__sub_count(s, sub->store, sub->pk, &move, at, crashes + 1));
    sub->written = move.to;
    sub->written_us = hf__env_elapsed_us(&sub->env);
    sub->crash_at = *at;
    sub->crashes = crashes;
    sub->counted = true;
    return HF_OK;
}

/* (3) */
enum hf_status hf__suspects_failed(struct hf_scope *s, struct hf_subscription *sub)
{
    struct sub_move move = move_of(sub);

    if (!sub->counted)
        return HF_OK;
    TRY(hf__sub_count(s, sub->store, sub->pk, &move, &sub->crash_at, sub->crashes));
    sub->counted = false;
    return HF_OK;
}

void hf__suspects_passed(struct hf_subscription *sub, size_t count)
{
    sub->careful -= sub->careful < count ? sub->careful : (uint32_t)count;
    sub->crashes = 0;
}

enum sub_forget hf__suspects_forget(const struct hf_subscription *sub)
{
    return sub->window && !sub->careful ? FORGET_WINDOW /* (5) */
           : sub->counted               ? FORGET_COUNT
                                        : FORGET_NOTHING;
}

void hf__suspects_forgot(struct hf_subscription *sub, enum sub_forget forget)
{
    assert(forget != FORGET_WINDOW || !sub->careful);
    if (forget == FORGET_WINDOW)
        sub->window = 0;
    if (forget != FORGET_NOTHING)
        sub->counted = false;
}
