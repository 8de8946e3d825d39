/*
 * client/credentials_profile.c: keys that stand in variables or in a profile, and profiles that say
 * where to get them.
 *
 * A profile with role_arn is a role, which needs keys to ask for it with: those of another profile
 * (source_profile), which may be a role again, of one of three other sources (credential_source),
 * or a token in a file instead (web_identity_token_file). So profiles form a chain. It is walked
 * down to a profile that stands on its own, and then up again, one role for each step.
 *
 * What always holds:
 *
 *  (1) No profile is entered twice, but one that names itself as its source and has keys, for its
 *      keys: the chain ends there. A loop is an error that names it.
 *  (2) In the profile that was chosen role_arn goes before keys; in one that another names as its
 *      source, keys go before role_arn.
 *  (3) A chain has at most CHAIN_MAX profiles.
 */
#include "client/source.h"

#include <assert.h>

enum { CHAIN_MAX = 8 };

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

/* ---- what a profile has --------------------------------------------------------------------- */

static struct hf_str profile_value(const struct source *source, struct hf_str profile,
                                   const char *key)
{
    return hf__config_value(source->config, profile, key);
}

static bool profile_has(const struct source *source, struct hf_str profile, const char *key)
{
    return profile_value(source, profile, key).ptr != NULL;
}

static bool has_sso(const struct source *source, struct hf_str profile)
{
    return profile_has(source, profile, "sso_account_id") ||
           profile_has(source, profile, "sso_role_name") ||
           profile_has(source, profile, "sso_start_url");
}

static enum hf_status static_keys(struct hf_scope *s, struct source *source, struct hf_str profile,
                                  struct source_keys *keys)
{
    assert(profile_has(source, profile, "aws_access_key_id"));
    *keys = (struct source_keys){
        .access_key = profile_value(source, profile, "aws_access_key_id"),
        .secret_key = profile_value(source, profile, "aws_secret_access_key"),
        .session_token = profile_value(source, profile, "aws_session_token"),
        .account = profile_value(source, profile, "aws_account_id"),
        .origin = "the profile",
        .fixed = true,
    };
    if (!keys->secret_key.ptr)
        return hf__fail(s, HF_INVALID,
                        "Profile \"%.*s\" has aws_access_key_id, but no aws_secret_access_key",
                        HF_FMT(profile));
    return HF_OK;
}

/* Keys that need no other keys. *found is false when the profile has none of that. */
static enum hf_status own_keys(struct hf_scope *s, struct source *source, struct hf_str profile,
                               bool *found, struct source_keys *keys)
{
    *found = true;
    if (profile_has(source, profile, "aws_access_key_id"))
        return static_keys(s, source, profile, keys);
    if (has_sso(source, profile))
        return hf__source_sso(s, source, profile, keys);
    if (profile_has(source, profile, "login_session"))
        return hf__source_login(s, source, profile, keys);
    if (profile_has(source, profile, "credential_process")) {
        TRY(hf__source_process(s, source, profile,
                               profile_value(source, profile, "credential_process"), keys));
        if (!keys->account.ptr)
            keys->account = profile_value(source, profile, "aws_account_id");
        return HF_OK;
    }
    *found = false;
    return HF_OK;
}

/* ---- roles ---------------------------------------------------------------------------------- */

static enum hf_status credential_source(struct hf_scope *s, struct source *source,
                                        struct hf_str profile, struct hf_str name,
                                        struct source_keys *keys)
{
    const char *absent = NULL;
    bool found = true;

    assert(name.len > 0);
    if (hf_str_equal(name, HF_STR("Environment"))) {
        TRY(hf__source_environment(s, source, &found, keys));
        absent = found ? NULL : "but AWS_ACCESS_KEY_ID is not set";
    } else if (hf_str_equal(name, HF_STR("EcsContainer"))) {
        TRY(hf__source_container(s, source, &found, keys));
        absent = found ? NULL : "but no AWS_CONTAINER_CREDENTIALS_ variable is set";
    } else if (hf_str_equal(name, HF_STR("Ec2InstanceMetadata"))) {
        TRY(hf__source_metadata(s, source, &absent, keys));
        if (absent)
            return hf__fail(s, HF_DENIED,
                            "Profile \"%.*s\" has credential_source = %.*s, but that %s",
                            HF_FMT(profile), HF_FMT(name), absent);
    } else {
        return hf__fail(s, HF_INVALID,
                        "credential_source of profile \"%.*s\" is not Environment, EcsContainer or "
                        "Ec2InstanceMetadata",
                        HF_FMT(profile));
    }
    if (absent)
        return hf__fail(s, HF_DENIED, "Profile \"%.*s\" has credential_source = %.*s, %s",
                        HF_FMT(profile), HF_FMT(name), absent);
    return HF_OK;
}

/* A role of a profile says all that is needed, once, and nothing that we cannot do. */
static enum hf_status check_role(struct hf_scope *s, struct source *source, struct hf_str profile)
{
    int ways = profile_has(source, profile, "source_profile") +
               profile_has(source, profile, "credential_source") +
               profile_has(source, profile, "web_identity_token_file");

    assert(profile_has(source, profile, "role_arn"));
    if (profile_has(source, profile, "mfa_serial"))
        return hf__fail(s, HF_INVALID,
                        "Profile \"%.*s\" has mfa_serial, but a library cannot ask for a "
                        "code: use credential_process, or keys of a session with MFA",
                        HF_FMT(profile));
    if (ways != 1)
        return hf__fail(s, HF_INVALID,
                        "Profile \"%.*s\" has role_arn and %s of source_profile, credential_source "
                        "and web_identity_token_file",
                        HF_FMT(profile), ways ? "more than one" : "none");
    return HF_OK;
}

/* The role of that profile, asked for with `with`, or by its token file when that is NULL. */
static enum hf_status take_role(struct hf_scope *s, struct source *source, struct hf_str profile,
                                const struct source_keys *with, struct source_keys *keys)
{
    assert(!with || (with->access_key.len && with->secret_key.len));
    return hf__source_role(s, source,
                           &(struct source_role){
                               .arn = profile_value(source, profile, "role_arn"),
                               .session_name = profile_value(source, profile, "role_session_name"),
                               .external_id = profile_value(source, profile, "external_id"),
                               .duration_s = profile_value(source, profile, "duration_seconds"),
                               .token_file =
                                   profile_value(source, profile, "web_identity_token_file"),
                               .keys = with,
                           },
                           keys);
}

struct chain {
    struct hf_str profiles[CHAIN_MAX]; /* roles, the chosen one first */
    size_t len;
};

static enum hf_status add_role(struct hf_scope *s, struct source *source, struct chain *chain,
                               struct hf_str profile)
{
    assert(chain->len <= CHAIN_MAX && profile.len);
    for (size_t i = 0; i < chain->len; i++)
        if (hf_str_equal(chain->profiles[i], profile)) /* (1) */
            return hf__fail(s, HF_INVALID,
                            "The roles of profile \"%.*s\" form a cycle: source_profile leads "
                            "back to \"%.*s\"",
                            HF_FMT(chain->profiles[0]), HF_FMT(profile));
    if (chain->len == CHAIN_MAX)
        return hf__fail(s, HF_INVALID, "Profile \"%.*s\" needs more than %d roles",
                        HF_FMT(chain->profiles[0]), CHAIN_MAX);
    TRY(check_role(s, source, profile));
    assert(chain->len < CHAIN_MAX); /* (3) */
    chain->profiles[chain->len++] = profile;
    return HF_OK;
}

/* Down the chain to the first keys. *found is false when the last profile has nothing. */
static enum hf_status walk_down(struct hf_scope *s, struct source *source, struct chain *chain,
                                struct hf_str profile, bool *found, struct source_keys *keys)
{
    assert(chain->len == 0 && profile.len);
    *found = true;
    while (profile_has(source, profile, "role_arn") &&
           !(chain->len && profile_has(source, profile, "aws_access_key_id"))) { /* (2) */
        struct hf_str next = profile_value(source, profile, "source_profile");
        struct hf_str other = profile_value(source, profile, "credential_source");

        TRY(add_role(s, source, chain, profile));
        if (other.ptr)
            return credential_source(s, source, profile, other, keys);
        if (!next.ptr) {
            assert(chain->len > 0);
            chain->len--; /* this role needs no keys, those before it do */
            return take_role(s, source, profile, NULL, keys);
        }
        if (!hf__config_has_profile(source->config, next))
            return hf__fail(s, HF_INVALID,
                            "Profile \"%.*s\" has source_profile = %.*s, which does not exist",
                            HF_FMT(profile), HF_FMT(next));
        profile = next;
    }
    TRY(own_keys(s, source, profile, found, keys));
    if (!*found && chain->len)
        return hf__fail(s, HF_INVALID,
                        "Profile \"%.*s\" is named as a source_profile, but has no credentials",
                        HF_FMT(profile));
    return HF_OK;
}

enum hf_status hf__source_profile(struct hf_scope *s, struct source *source, bool *found,
                                  struct source_keys *keys)
{
    struct chain chain = {.len = 0};

    TRY(walk_down(s, source, &chain, hf__config_profile(source->config), found, keys));
    while (*found && chain.len > 0) {
        struct source_keys with = *keys;

        TRY(take_role(s, source, chain.profiles[--chain.len], &with, keys));
    }
    return HF_OK;
}
