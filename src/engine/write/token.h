/*
 * engine/write/token.h: client tokens of transactions.
 */
#ifndef HF_ENGINE_WRITE_TOKEN_H
#define HF_ENGINE_WRITE_TOKEN_H

#include "engine/engine.h"

/* What a transaction's request comes to, kept with its token. */
struct token_digest {
    uint8_t bytes[16];
};

size_t hf__token_latch(struct hf_str token);
enum hf_status hf__token_digest(struct hf_scope *s, const struct hf_transact_write_items *request,
                                struct token_digest *digest);
/* The same of ExecuteTransaction; and its token, in a space of its own. */
enum hf_status hf__token_digest_statements(struct hf_scope *s,
                                           const struct hf_execute_transaction *request,
                                           struct token_digest *digest);
struct hf_str hf__token_of_statements(struct hf_scope *s, struct hf_str token);
/* *seen: the token was used for this very request less than ten minutes ago; *sizes is what was
 * kept with it. A stored token is u64be time, digest, then a u32be size for each action. */
enum { TOKEN_HEAD = 8 + sizeof(struct token_digest), TOKEN_SIZE = 4 };
enum hf_status hf__token_look(struct hf_scope *s, struct engine *e, struct hf_str token,
                              const struct token_digest *digest, bool *seen,
                              struct hf_bytes *sizes);
void hf__token_add(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                   struct hf_str token, const struct token_digest *digest, struct hf_bytes sizes);
enum hf_status hf__tokens_drop(struct hf_scope *s, struct engine *e, uint64_t *dropped);

#endif
