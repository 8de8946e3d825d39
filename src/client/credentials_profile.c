/*
 * client/credentials_profile.c: keys that stand in variables or in a profile.
 */
#include "client/source.h"

/* ---- variables ------------------------------------------------------------------------------ */

enum hf_status hf__source_environment(struct hf_scope *s, struct source *source, bool *found,
                                      struct source_keys *keys)
{
    const struct config *config = source->config;
    struct hf_str access_key = hf__config_variable(config, "AWS_ACCESS_KEY_ID");
    struct hf_str secret_key = hf__config_variable(config, "AWS_SECRET_ACCESS_KEY");

    *found = access_key.ptr != NULL;
    if (!*found)
        return HF_OK;
    if (!secret_key.ptr)
        return hf__fail(s, HF_INVALID,
                        "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not");
    *keys = (struct source_keys){
        .access_key = access_key,
        .secret_key = secret_key,
        .session_token = hf__config_variable(config, "AWS_SESSION_TOKEN"),
        .account = hf__config_variable(config, "AWS_ACCOUNT_ID"),
        .origin = "the variable AWS_ACCESS_KEY_ID",
        .fixed = true,
    };
    return HF_OK;
}

/* ---- profiles ------------------------------------------------------------------------------- */

static enum hf_status static_keys(struct hf_scope *s, struct source *source, struct hf_str profile,
                                  struct source_keys *keys)
{
    const struct config *config = source->config;

    *keys = (struct source_keys){
        .access_key = hf__config_value(config, profile, "aws_access_key_id"),
        .secret_key = hf__config_value(config, profile, "aws_secret_access_key"),
        .session_token = hf__config_value(config, profile, "aws_session_token"),
        .account = hf__config_value(config, profile, "aws_account_id"),
        .origin = "the profile",
        .fixed = true,
    };
    if (!keys->secret_key.ptr)
        return hf__fail(s, HF_INVALID,
                        "Profile \"%.*s\" has aws_access_key_id, but no aws_secret_access_key",
                        HF_FMT(profile));
    return HF_OK;
}

enum hf_status hf__source_profile(struct hf_scope *s, struct source *source, bool *found,
                                  struct source_keys *keys)
{
    struct hf_str profile = hf__config_profile(source->config);

    *found = hf__config_value(source->config, profile, "aws_access_key_id").ptr != NULL;
    return *found ? static_keys(s, source, profile, keys) : HF_OK;
}
