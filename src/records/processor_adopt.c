/*
 * records/processor_adopt.c: a processor looks for records that other programs put
 * (records_adopt.c), at a cost that does not depend on how large the table is: one page of it when
 * a run begins, and one every adopt_ms.
 *
 *  (1) In a run that lasts, page follows page, so that every item is looked at sooner or later.
 *  (2) The first page is that where the table begins: a small table is seen whole. Of a larger one
 *      a second page follows from a random place on, or runs that are short would never come
 *      further.
 *  (3) A failure here is no failure of the run.
 */
#include "records/processor.h"

/* (2) */
static struct hf_item random_key(struct hf_scope *s, const struct hf_processor *p)
{
    struct pattern_id id = hf__pattern_id_make(&p->env);

    return hf__records_key(s, p->records, (struct record_key){id_str(&id), id_str(&id)});
}

/* One page, and where to go on. */
static enum hf_status adopt_page(struct hf_scope *s, struct hf_processor *p, struct hf_item *last)
{
    struct adopting *a = &p->adopting;
    uint64_t count = 0;
    enum hf_status status =
        hf__records_adopt_page(s, p->records, a->next, HF_PROCESSOR_ADOPT_PAGE, &count, last);

    pthread_mutex_lock(&p->mutex);
    p->metrics.adopted += count;
    p->metrics.trouble += status != HF_OK && status != HF_DENIED;
    pthread_mutex_unlock(&p->mutex);
    return status;
}

void hf__processor_adopt(struct hf_scope *s, struct hf_processor *p, bool first)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct adopting *a = &p->adopting;
    int64_t now_us = hf__env_elapsed_us(&p->env);
    struct hf_item last = {0};
    enum hf_status status;

    if (p->o.adopt_ms == UINT32_MAX || a->due_us == INT64_MAX || (!first && now_us < a->due_us))
        return;
    a->due_us = now_us + (int64_t)p->o.adopt_ms * 1000;
    if (first) {
        hf_scope_reset(a->memory);
        a->next = (struct hf_item){0};
    }
    status = adopt_page(s, p, &last);
    if (status == HF_OK && first && last.ptr) {
        a->next = random_key(a->memory, p);
        status = adopt_page(s, p, &last);
    }
    if (status == HF_OK) {
        hf_scope_reset(a->memory);
        a->next = last.ptr ? hf_item_copy(a->memory, last) : last;
        if (hf_scope_built(a->memory) != HF_OK)
            a->next = (struct hf_item){0};
    } else if (status == HF_DENIED) {
        a->due_us = INT64_MAX;
    }
    hf_scope_ok(s);
    hf_scope_rewind(s, mark);
}
