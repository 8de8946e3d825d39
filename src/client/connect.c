/*
 * client/connect.c: hf_connect(): from a URL to a database that tries again.
 *
 *     URL + options + AWS's files and variables -> parts -> client -> retry -> prefix
 *
 * The URL's parameters are laid over the options first; the rest of the file sees options alone.
 * What the options leave out is looked up in the config.
 */
#include <holdfast/client.h>
#include <holdfast/prefix.h>

#include "client/client.h"
#include "client/url.h"

#include <assert.h>

/* ---- parameters of the URL ------------------------------------------------------------------ */

enum param_kind { PARAM_STR, PARAM_NUMBER, PARAM_YES_NO, PARAM_YES, PARAM_RETRY };

#define PARAM(name_, kind_, member)                                                                \
    {                                                                                              \
        name_, kind_, offsetof(struct hf_client_options, member)                                   \
    }

/* PARAM_YES_NO sets an enum hf_flag; PARAM_YES a bool. */
static const struct param {
    const char *name;
    enum param_kind kind;
    size_t at;
} params[] = {
    PARAM("region", PARAM_STR, region),
    PARAM("profile", PARAM_STR, profile),
    PARAM("prefix", PARAM_STR, table_prefix),
    PARAM("ca_file", PARAM_STR, ca_file),
    PARAM("proxy", PARAM_STR, proxy),
    PARAM("attempts", PARAM_NUMBER, retry.max_attempts),
    PARAM("retry", PARAM_RETRY, retry.mode),
    PARAM("connect_ms", PARAM_NUMBER, connect_ms),
    PARAM("attempt_ms", PARAM_NUMBER, attempt_ms),
    PARAM("connections", PARAM_NUMBER, connections),
    PARAM("fips", PARAM_YES_NO, fips),
    PARAM("dual_stack", PARAM_YES_NO, dual_stack),
    PARAM("insecure", PARAM_YES, insecure),
    PARAM("gzip", PARAM_YES_NO, gzip),
};

_Static_assert(sizeof(enum hf_flag) == sizeof(int) && sizeof(enum hf_retry_mode) == sizeof(int),
               "set_param() writes them where they lie");

static bool is_word(struct hf_str text, const char *word)
{
    return hf_str_equal(text, hf_str_from(word));
}

static enum hf_status wrong_param(struct hf_scope *s, const struct param *param,
                                  struct hf_str value, const char *wanted)
{
    assert(wanted);
    return hf__fail(s, HF_INVALID, "the URL's parameter %s is %s, not \"%.*s\"", param->name,
                    wanted, HF_FMT(value));
}

static enum hf_status set_number(struct hf_scope *s, const struct param *param, struct hf_str value,
                                 uint32_t *out)
{
    uint64_t number = 0;

    for (size_t i = 0; i < value.len && number <= INT32_MAX; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9')
            return wrong_param(s, param, value, "a number");
        number = number * 10 + (uint64_t)(value.ptr[i] - '0');
    }
    if (number == 0 || number > INT32_MAX)
        return wrong_param(s, param, value, "a number from 1 to 2147483647");
    assert(number <= UINT32_MAX);
    *out = (uint32_t)number;
    return HF_OK;
}

static enum hf_status set_retry(struct hf_scope *s, const struct param *param, struct hf_str value,
                                enum hf_retry_mode *out)
{
    static const struct {
        const char *word;
        enum hf_retry_mode mode;
    } modes[] = {{"standard", HF_RETRY_STANDARD},
                 {"adaptive", HF_RETRY_ADAPTIVE},
                 {"off", HF_RETRY_OFF}};

    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (is_word(value, modes[i].word)) {
            *out = modes[i].mode;
            return HF_OK;
        }
    }
    return wrong_param(s, param, value, "standard, adaptive or off");
}

static enum hf_status set_param(struct hf_scope *s, struct hf_client_options *options,
                                const struct param *param, struct hf_str value)
{
    void *at = (char *)options + param->at;
    bool yes = is_word(value, "yes");

    assert(param->at < sizeof(*options));
    switch (param->kind) {
    case PARAM_STR:
        *(struct hf_str *)at = value;
        return HF_OK;
    case PARAM_NUMBER:
        return set_number(s, param, value, at);
    case PARAM_RETRY:
        return set_retry(s, param, value, at);
    default:
        break;
    }
    if (!yes && !is_word(value, "no"))
        return wrong_param(s, param, value, "yes or no");
    if (param->kind == PARAM_YES_NO)
        *(enum hf_flag *)at = yes ? HF_YES : HF_NO;
    else
        *(bool *)at = yes;
    return HF_OK;
}

static enum hf_status parameter_decode(struct hf_scope *s, struct hf_str raw, struct hf_str *out)
{
    enum hf_status status = hf__url_decode(s, raw, out);

    if (status == HF_INVALID)
        return hf__fail(s, HF_INVALID, "the URL's parameters have a %% without two hex digits");
    return status == HF_OK ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status apply_param(struct hf_scope *s, struct hf_client_options *options,
                                  struct hf_str text)
{
    struct hf_str value = text;
    struct hf_str name = str_cut(&value, '=');

    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        if (!is_word(name, params[i].name))
            continue;
        TRY(parameter_decode(s, value, &value));
        return set_param(s, options, &params[i], value);
    }
    return hf__fail(s, HF_INVALID,
                    "the URL has a parameter \"%.*s\", which is none of region, profile, prefix, "
                    "ca_file, proxy, attempts, retry, connect_ms, attempt_ms, connections, fips, "
                    "dual_stack, insecure, gzip",
                    HF_FMT(name));
}

/* ---- the URL -------------------------------------------------------------------------------- */

/* The endpoint, or nothing but the region of Amazon's; parameters go to the options. */
static enum hf_status read_url(struct hf_scope *s, struct hf_str url,
                               struct hf_client_options *options, struct endpoint *fixed)
{
    struct hf_str rest = url;
    struct hf_str base = str_cut(&rest, '?');
    struct hf_str region;

    assert(options->size == sizeof(*options));
    *fixed = (struct endpoint){.origin = {NULL, 0}};
    while (rest.len > 0)
        TRY(apply_param(s, options, str_cut(&rest, '&')));
    if (str_after(base, HF_STR("http://"), &region) || str_after(base, HF_STR("https://"), &region))
        return hf__endpoint_of_url(s, base, fixed);
    if (!str_after(base, HF_STR("dynamodb:"), &region))
        return hf__fail(s, HF_INVALID,
                        "\"%.*s\" is not the URL of a service; known are http://HOST:PORT, "
                        "https://HOST:PORT and dynamodb://REGION",
                        HF_FMT(base));
    str_after(region, HF_STR("//"), &region);
    if (region.len > 0)
        options->region = region;
    return HF_OK;
}

/* ---- parts ---------------------------------------------------------------------------------- */

enum { CONNECT_MS = 1000, ATTEMPT_MS = 10000, CONNECTIONS = 64 };

struct hf_client_options hf__client_options(const struct hf_client_options *options)
{
    struct hf_client_options o = {.size = sizeof(o)};

    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    o.size = sizeof(o);
    return o;
}

static enum hf_status make_transport(struct hf_scope *s, const struct hf_client_options *o,
                                     struct client_parts *parts)
{
    struct transport_options t = {.env = &parts->env,
                                  .connect_ms = o->connect_ms ? o->connect_ms : CONNECT_MS,
                                  .idle_max = o->connections ? o->connections : CONNECTIONS,
                                  .ca_file = o->ca_file,
                                  .http_proxy = o->proxy,
                                  .https_proxy = o->proxy,
                                  .insecure = o->insecure};

    assert(parts->config && !parts->transport);
    if (is_word(o->proxy, "none")) {
        t.http_proxy = t.https_proxy = (struct hf_str){0};
    } else if (!o->proxy.len) {
        hf__config_proxy(parts->config, false, &t.http_proxy, &t.no_proxy);
        hf__config_proxy(parts->config, true, &t.https_proxy, &t.no_proxy);
    }
    if (!t.ca_file.len)
        t.ca_file = hf__config_ca_bundle(parts->config);
    return hf__transport_open(s, &t, &parts->transport);
}

static enum hf_status find_region(struct hf_scope *s, const struct hf_client_options *o,
                                  const char *say, struct client_parts *parts)
{
    struct hf_str region;

    TRY(hf__config_region(s, parts->config, o->region, &region));
    if (!region.len && parts->fixed.origin.ptr)
        region = HF_STR("us-east-1"); /* any will do: it is only signed */
    if (!region.len)
        TRY(hf__credentials_region(s, parts->config, &region));
    if (!region.len)
        return hf__fail(s, HF_INVALID,
                        "no region: use %s, or set AWS_REGION, or region in the profile", say);
    assert(!parts->region.ptr); /* it is found once */
    parts->region = hf_scope_copy(parts->memory, region);
    return parts->region.ptr ? HF_OK : hf__fail_nomem(s);
}

/* The endpoint of the URL, to last as long as the client. */
static enum hf_status keep_fixed(struct hf_scope *s, struct hf_str service,
                                 struct client_parts *parts)
{
    assert(parts->region.len && service.len);
    if (!parts->fixed.origin.ptr)
        return HF_OK;
    parts->fixed.signing_region = parts->region;
    parts->fixed.signing_name = service;
    return hf__endpoint_keep(s, parts->memory, &parts->fixed);
}

static bool is_local(const struct client_parts *parts)
{
    return parts->fixed.origin.ptr && hf__endpoint_is_loopback(&parts->fixed);
}

static enum hf_status make_credentials(struct hf_scope *s, const struct hf_client_options *o,
                                       struct client_parts *parts)
{
    const struct credentials_options c = {.config = parts->config,
                                          .transport = parts->transport,
                                          .fixed = &o->credentials,
                                          .fn = o->credentials_fn,
                                          .fn_user = o->credentials_user,
                                          .region = parts->region,
                                          .profile_asked = o->profile.len > 0,
                                          .local = is_local(parts)};

    assert(parts->config && parts->transport && !parts->credentials);
    return hf__credentials_open(s, &c, &parts->credentials);
}

enum hf_status hf__client_parts_make(struct hf_scope *s, const struct hf_client_options *o,
                                     struct hf_str service, const char *say,
                                     struct client_parts *parts)
{
    assert(say && service.len && !parts->config && !parts->transport && !parts->credentials);
    if (!parts->memory)
        parts->memory = hf_scope_new(&parts->env);
    if (!parts->memory)
        return hf__fail_nomem(s);
    parts->attempt_ms = o->attempt_ms ? o->attempt_ms : ATTEMPT_MS;
    /* Bytes to this machine cost less than packing them: reading many was half as fast. */
    parts->gzip = o->gzip ? o->gzip == HF_YES : !is_local(parts);
    parts->fips = o->fips;
    parts->dual_stack = o->dual_stack;
    parts->agent = hf_scope_format(parts->memory, "holdfast/%s", hf_version());
    if (!parts->agent.ptr)
        return hf__fail_nomem(s);
    TRY(hf__config_load(s, &parts->env, o->profile, o->no_aws_config, &parts->config));
    TRY(make_transport(s, o, parts));
    TRY(find_region(s, o, say, parts));
    TRY(keep_fixed(s, service, parts));
    return make_credentials(s, o, parts);
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* Put the wrappers around a client; closes it when that fails. */
static enum hf_status client_wrap(struct hf_scope *s, const struct hf_client_options *o,
                                  const struct client_parts *parts, struct hf_db *client,
                                  struct hf_db **db)
{
    struct hf_retry_options retry = o->retry;
    struct hf_db *inner = client;
    enum hf_retry_mode mode = HF_RETRY_STANDARD;
    uint32_t attempts = 0;
    enum hf_status status = hf__config_retry(s, parts->config, &mode, &attempts);

    assert(client && parts->config);
    if (!retry.mode)
        retry.mode = mode;
    if (!retry.max_attempts)
        retry.max_attempts = attempts;
    retry.size = sizeof(retry);
    retry.env = &parts->env;
    if (status == HF_OK)
        status = hf_retry_open(s, inner, &retry, db);
    if (status == HF_OK && o->table_prefix.len) {
        inner = *db;
        status = hf_prefix_open(s, inner, o->table_prefix, db);
    }
    if (status != HF_OK) {
        hf_db_close(inner);
        *db = NULL;
    }
    assert((status == HF_OK) == (*db != NULL));
    return status;
}

enum hf_status hf__client_parts_of(struct hf_scope *s, struct hf_str url,
                                   struct hf_client_options *o, struct client_parts *parts)
{
    enum hf_status status;

    *parts = (struct client_parts){.env = hf__env_fill(o->env)};
    TRY(read_url(s, url, o, &parts->fixed));
    status = hf__client_parts_make(s, o, HF_STR("dynamodb"), "dynamodb://REGION", parts);
    if (status != HF_OK)
        hf__client_parts_free(parts);
    return status;
}

enum hf_status hf_connect(struct hf_scope *s, struct hf_str url,
                          const struct hf_client_options *options, struct hf_db **db)
{
    struct hf_client_options o = hf__client_options(options);
    struct client_parts parts;
    struct hf_db *client;
    enum hf_status status;

    *db = NULL;
    hf__scope_error_clear(s);
    TRY(hf__scope_alive(s));
    TRY(hf__client_parts_of(s, url, &o, &parts));
    status = hf__client_open(s, &parts, &client);
    if (status != HF_OK) {
        hf__client_parts_free(&parts);
        return status;
    }
    return client_wrap(s, &o, &parts, client, db);
}
