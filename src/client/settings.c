/*
 * client/settings.c: settings of the client that come from variables or the profile, checked.
 *
 * What always holds:
 *
 *  (1) An invalid value is an error that says where it stands and what is valid there; the
 *      value itself is not shown, as a secret may have ended up in the wrong place.
 */
#include "client/config.h"

#include "client/url.h"

#include <assert.h>

enum {
    ATTEMPTS_MAX = 1000000,  /* that are written down */
    ATTEMPTS_USED_MAX = 1000 /* that hf_retry_open() takes; more are as many as that */
};

/* A value and where it was found. */
struct setting {
    struct hf_str value;  /* absent: nowhere */
    const char *variable; /* its name; NULL: found in the profile */
    const char *key;      /* its name in the profile */
};

static struct setting setting_find(const struct config *config, const char *variable,
                                   const char *key)
{
    struct setting found = {.value = hf__config_variable(config, variable), .variable = variable};

    assert(variable && key);
    if (!found.value.ptr)
        found = (struct setting){.value = hf__config_value(config, hf__config_profile(config), key),
                                 .key = key};
    return found;
}

/* (1) */
static enum hf_status setting_fail(struct hf_scope *s, const struct config *config,
                                   const struct setting *setting, const char *must_be)
{
    assert(setting->value.ptr && must_be);
    assert((setting->variable != NULL) != (setting->key != NULL));
    if (setting->variable)
        return hf__fail(s, HF_INVALID, "%s must be %s", setting->variable, must_be);
    return hf__fail(s, HF_INVALID, "%s of the profile '%.*s' must be %s", setting->key,
                    HF_FMT(hf__config_profile(config)), must_be);
}

static bool is_word(struct hf_str value, const char *word)
{
    return str_is_any_case(value, word);
}

enum hf_status hf__config_region(struct hf_scope *s, const struct config *config,
                                 struct hf_str explicit, struct hf_str *region)
{
    static const char must_be[] = "the name of a region, such as eu-central-1";
    struct setting found = setting_find(config, "AWS_REGION", "region");

    if (!found.variable) {
        struct setting other = setting_find(config, "AWS_DEFAULT_REGION", "region");

        found = other.variable ? other : found;
    }
    *region = explicit.len ? explicit : found.value;
    if (!region->ptr || hf__url_is_label(*region))
        return HF_OK;
    *region = (struct hf_str){0};
    return explicit.len ? hf__fail(s, HF_INVALID, "the region must be %s", must_be)
                        : setting_fail(s, config, &found, must_be);
}

enum hf_status hf__config_flag(struct hf_scope *s, const struct config *config,
                               const char *variable, const char *key, enum hf_flag *flag)
{
    struct setting found = setting_find(config, variable, key);

    *flag = HF_UNSET;
    if (!found.value.ptr)
        return HF_OK;
    if (is_word(found.value, "true"))
        *flag = HF_YES;
    else if (is_word(found.value, "false"))
        *flag = HF_NO;
    else
        return setting_fail(s, config, &found, "true or false");
    return HF_OK;
}

static enum hf_status read_attempts(struct hf_scope *s, const struct config *config,
                                    uint32_t *attempts)
{
    struct setting found = setting_find(config, "AWS_MAX_ATTEMPTS", "max_attempts");
    uint32_t number = 0;

    for (size_t i = 0; i < found.value.len && number <= ATTEMPTS_MAX; i++) {
        char c = found.value.ptr[i];

        if (c < '0' || c > '9') {
            number = 0;
            break;
        }
        number = number * 10 + (uint32_t)(c - '0');
    }
    if (found.value.ptr && (number < 1 || number > ATTEMPTS_MAX))
        return setting_fail(s, config, &found, "a number from 1 to 1000000");
    *attempts = number < ATTEMPTS_USED_MAX ? number : ATTEMPTS_USED_MAX;
    assert((*attempts > 0) == (found.value.ptr != NULL));
    return HF_OK;
}

enum hf_status hf__config_retry(struct hf_scope *s, const struct config *config,
                                enum hf_retry_mode *mode, uint32_t *attempts)
{
    struct setting found = setting_find(config, "AWS_RETRY_MODE", "retry_mode");

    *mode = 0;
    *attempts = 0;
    if (is_word(found.value, "standard") || is_word(found.value, "legacy"))
        *mode = HF_RETRY_STANDARD;
    else if (is_word(found.value, "adaptive"))
        *mode = HF_RETRY_ADAPTIVE;
    else if (found.value.ptr)
        return setting_fail(s, config, &found, "standard, adaptive or legacy");
    assert((*mode != 0) == (found.value.ptr != NULL));
    return read_attempts(s, config, attempts);
}

struct hf_str hf__config_ca_bundle(const struct config *config)
{
    return hf__config_setting(config, "AWS_CA_BUNDLE", "ca_bundle");
}

static struct hf_str first_of(const struct config *config, const char *const *names, size_t len)
{
    struct hf_str value = {0};

    assert(len > 0);
    for (size_t i = 0; i < len && !value.ptr; i++)
        value = hf__config_variable(config, names[i]);
    return value;
}

void hf__config_proxy(const struct config *config, bool is_https, struct hf_str *proxy,
                      struct hf_str *no_proxy)
{
    static const char *const https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    static const char *const http[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    static const char *const without[] = {"no_proxy", "NO_PROXY"};

    *proxy = is_https ? first_of(config, https, ARRAY_LEN(https))
                      : first_of(config, http, ARRAY_LEN(http));
    *no_proxy = first_of(config, without, ARRAY_LEN(without));
}
