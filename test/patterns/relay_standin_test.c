/* patterns/relay_standin_test.c: claims, until the outbox has them. */
#include <holdfast/outbox.h>
#define WEAK __attribute__((weak))
WEAK enum hf_status hf_outbox_claim(struct hf_scope *s, struct hf_outbox *o, const struct hf_claim_options *p, struct hf_claim_list *l) { (void)o; (void)p; (void)l; return hf_scope_fail(s, HF_UNSUPPORTED, "not yet"); }
WEAK enum hf_status hf_outbox_release(struct hf_scope *s, struct hf_outbox *o, const struct hf_claimed_event *e) { (void)o; (void)e; return hf_scope_fail(s, HF_UNSUPPORTED, "not yet"); }
WEAK enum hf_status hf_outbox_fail(struct hf_scope *s, struct hf_outbox *o, const struct hf_claimed_event *e, const struct hf_error *x, bool g, const struct hf_claim_options *p) { (void)o; (void)e; (void)x; (void)g; (void)p; return hf_scope_fail(s, HF_UNSUPPORTED, "not yet"); }
WEAK enum hf_status hf_outbox_published_many(struct hf_scope *s, struct hf_outbox *o, const struct hf_claimed_event *e, size_t n, enum hf_status *r) { (void)o; (void)e; (void)n; (void)r; return hf_scope_fail(s, HF_UNSUPPORTED, "not yet"); }
WEAK enum hf_status hf_outbox_extend(struct hf_scope *s, struct hf_outbox *o, const struct hf_claimed_event *e, uint32_t ms) { (void)o; (void)e; (void)ms; return hf_scope_fail(s, HF_UNSUPPORTED, "not yet"); }
