/*
 * test/fuzz/fuzz_prepare.c: what is wrong with a request in itself.
 *
 * The first byte chooses the operation and the wording, the rest is the body. Whatever the body
 * says, once it could be read it is prepared or refused with a message; and it is so again, word
 * for word, when its expressions come from a cache.
 */
#include "expr/cache.h"
#include "ops/prepare.h"
#include "wire/wire.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { STRUCT_MAX = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum hf_status prepare_page(struct hf_scope *s, struct hf__expr_cache *cache, enum hf_op op,
                                   const void *request)
{
    struct prepared_page page;

    if (op == HF_OP_QUERY)
        TRY(hf__prepare_query(s, cache, request, &page));
    else
        TRY(hf__prepare_scan(s, cache, request, &page));
    MUST(page.limit >= 0 && page.total_segments >= 1 && page.segment < page.total_segments);
    MUST(op == HF_OP_SCAN || page.key);
    return hf__prepare_select(s, &page);
}

static enum hf_status prepare(struct hf_scope *s, struct hf__expr_cache *cache, enum hf_op op,
                              const void *request)
{
    struct prepared_write write;
    struct prepared_read read, *reads;
    struct prepared_action *actions;
    struct prepared_get *several;

    switch (op) {
    case HF_OP_PUT_ITEM:
        return hf__prepare_put_item(s, cache, request, &write);
    case HF_OP_UPDATE_ITEM:
        return hf__prepare_update_item(s, cache, request, &write);
    case HF_OP_DELETE_ITEM:
        return hf__prepare_delete_item(s, cache, request, &write);
    case HF_OP_GET_ITEM:
        return hf__prepare_get_item(s, cache, request, &read);
    case HF_OP_QUERY:
    case HF_OP_SCAN:
        return prepare_page(s, cache, op, request);
    case HF_OP_BATCH_GET_ITEM:
        return hf__prepare_batch_get_item(s, cache, request, &reads);
    case HF_OP_BATCH_WRITE_ITEM:
        return hf__prepare_batch_write_item(s, request, NULL);
    case HF_OP_TRANSACT_WRITE_ITEMS:
        return hf__prepare_transact_write_items(s, cache, request, &actions);
    case HF_OP_TRANSACT_GET_ITEMS:
        return hf__prepare_transact_get_items(s, cache, request, &several);
    case HF_OP_CREATE_TABLE:
        return hf__prepare_create_table(s, request);
    case HF_OP_UPDATE_TABLE:
        return hf__prepare_update_table(s, request);
    case HF_OP_TAG_RESOURCE:
        return hf__prepare_tag_resource(s, request);
    case HF_OP_UNTAG_RESOURCE:
        return hf__prepare_untag_resource(s, request);
    default:
        return hf__prepare_plain(s, op, request);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _Alignas(16) uint8_t request[STRUCT_MAX] = {0};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf__expr_cache *cache;
    enum hf_op op;

    if (size > 0) {
        op = (enum hf_op)(data[0] % HF_OP_COUNT);
        hf__scope_set_wording(s,
                              data[0] / HF_OP_COUNT % 2 ? HF__WORDING_2026 : HF__WORDING_CLASSIC);
        MUST(hf__op(op)->request->size <= STRUCT_MAX);
        if (hf__wire_read(s, hf__op(op)->request, hf_str_of((const char *)data + 1, size - 1),
                          request) == HF_OK) {
            enum hf_status status = prepare(s, NULL, op, request);
            struct hf_str message = hf_scope_error(s)->message;

            MUST(status == HF_OK || status == HF_INVALID || status == HF_LIMIT);
            MUST(status == HF_OK || message.len > 0);
            cache = hf__expr_cache_new(NULL);
            for (int i = 0; i < 2; i++) {
                MUST(prepare(s, cache, op, request) == status);
                MUST(status == HF_OK || hf_str_equal(hf_scope_error(s)->message, message));
            }
            hf__expr_cache_free(cache);
        }
    }
    hf_scope_free(s);
    return 0;
}
