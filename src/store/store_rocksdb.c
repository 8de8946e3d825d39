#include "store/private.h"
enum hf_status hf__store_open_rocksdb(struct hf_scope *s, const struct hf_env *env,
                                      struct hf_str path, const struct store_options *options,
                                      struct hf__store **store)
{
    (void)env;
    (void)path;
    (void)options;
    (void)store;
    return hf__fail(s, HF_UNSUPPORTED, "later");
}
