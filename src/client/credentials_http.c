/*
 * client/credentials_http.c: what the machine or the container that we run in hands out over HTTP.
 *
 * A container has the address in a variable: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is a path on
 * ECS's agent, AWS_CONTAINER_CREDENTIALS_FULL_URI anywhere else (EKS's agent, an agent on this
 * machine). The request may carry a token, from a variable or from a file that is read each time.
 *
 * A machine of EC2 has its metadata service on a fixed address of the link. It is asked by version
 * 2 of its protocol alone, a token first (PUT) and then with it: version 1 is what forged requests
 * get through. Machines without the service drop packets to that address, hence the short timeout
 * and the single attempt; both can be set.
 *
 * What always holds:
 *
 *  (1) Neither is ever asked through a proxy, which would be asked for its own credentials.
 *  (2) Without TLS a container's address is this machine or one of the agents' link-local ones: a
 *      changed variable does not send the token elsewhere in the clear.
 *  (3) No metadata service, or one that has nothing for us, is no failure, but only until it gave
 *      us keys once.
 */
#include "client/source.h"

#include <assert.h>

enum {
    CONTAINER_MS = 2000,
    METADATA_MS = 1000,
    METADATA_ATTEMPTS = 1,
    ATTEMPTS_MAX = 100,
    TIMEOUT_MAX_S = 3600,
    NAME_MAX_BYTES = 128 /* of a role; IAM allows 64 */
};

#define TOKEN_TTL_S "21600"

static struct hf_str body_text(const struct http_answer *answer)
{
    return hf_str_of((const char *)answer->body.ptr, answer->body.len);
}

/* ---- containers ----------------------------------------------------------------------------- */

/* An URL as where to connect to and what to ask for. */
static enum hf_status split_url(struct hf_scope *s, struct hf_str url, struct endpoint *endpoint,
                                struct hf_str *target)
{
    const char *scheme = memmem(url.ptr, url.len, "://", 3);
    struct hf_str origin = url;

    if (scheme) {
        origin.len = (size_t)(scheme + 3 - url.ptr);
        while (origin.len < url.len && url.ptr[origin.len] != '/' && url.ptr[origin.len] != '?' &&
               url.ptr[origin.len] != '#')
            origin.len++;
    }
    TRY(hf__endpoint_of_url(s, origin, endpoint));
    *target = hf_str_of(url.ptr + origin.len, url.len - origin.len);
    *target = hf_scope_format(s, "%s%.*s", target->len && *target->ptr == '/' ? "" : "/",
                              HF_FMT(*target));
    return target->ptr ? HF_OK : hf__fail_nomem(s);
}

/* What can stand in the first line of a request. */
static bool is_target(struct hf_str target)
{
    for (size_t i = 0; i < target.len; i++)
        if (target.ptr[i] <= ' ' || target.ptr[i] > '~' || target.ptr[i] == '#')
            return false;
    return true;
}

/* (2) */
static bool is_trusted(const struct endpoint *endpoint)
{
    static const char *const agents[] = {"http://169.254.170.2", "http://169.254.170.23",
                                         "http://[fd00:ec2::23]"};
    struct hf_str rest;

    if (str_after(endpoint->origin, HF_STR("https://"), &rest) ||
        hf__endpoint_is_loopback(endpoint))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(agents); i++)
        if (str_after(endpoint->origin, hf_str_from(agents[i]), &rest) &&
            (rest.len == 0 || *rest.ptr == ':'))
            return true;
    return false;
}

enum hf_status hf__source_container_place(struct hf_scope *s, struct source *source, bool *found,
                                          struct endpoint *endpoint, struct hf_str *target)
{
    static const char relative[] = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    static const char full[] = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    struct hf_str path = hf__config_variable(source->config, relative);
    struct hf_str url = hf__config_variable(source->config, full);
    const char *name = path.ptr ? relative : full;
    enum hf_status status;

    *found = path.ptr || url.ptr;
    if (!*found)
        return HF_OK;
    if (path.ptr) {
        if (*path.ptr != '/')
            return hf__fail(s, HF_INVALID, "%s does not start with a slash", relative);
        url = hf_scope_format(s, "http://169.254.170.2%.*s", HF_FMT(path));
        if (!url.ptr)
            return hf__fail_nomem(s);
    }
    status = split_url(s, url, endpoint, target);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK || !is_target(*target))
        return hf__fail(s, HF_INVALID, "%s is not a valid URL", name);
    if (!is_trusted(endpoint))
        return hf__fail(s, HF_INVALID,
                        "%s names a host that is neither this machine nor a container agent: "
                        "use https",
                        name);
    return HF_OK;
}

static enum hf_status container_token(struct hf_scope *s, struct source *source,
                                      struct hf_str *token)
{
    static const char in_file[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
    static const char in_variable[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
    struct hf_str path = hf__config_variable(source->config, in_file);

    *token = hf__config_variable(source->config, in_variable);
    if (path.ptr) {
        TRY(hf__source_file(s, path, NULL, token));
        if (!token->len)
            return hf__fail(s, HF_INVALID, "%.*s, named by %s, is empty", HF_FMT(path), in_file);
    }
    for (size_t i = 0; i < token->len; i++)
        if (token->ptr[i] < ' ' || token->ptr[i] > '~')
            return hf__fail(s, HF_INVALID, "The value of %s is not valid in a header",
                            path.ptr ? in_file : in_variable);
    return HF_OK;
}

enum hf_status hf__source_container(struct hf_scope *s, struct source *source, bool *found,
                                    struct source_keys *keys)
{
    struct endpoint endpoint;
    struct source_call call = {.what = "the container's endpoint",
                               .endpoint = &endpoint,
                               .method = "GET",
                               .timeout_ms = CONTAINER_MS,
                               .attempts = SOURCE_ATTEMPTS};
    struct http_answer answer;
    struct hf_str token;

    TRY(hf__source_container_place(s, source, found, &endpoint, &call.target));
    if (!*found)
        return HF_OK;
    TRY(container_token(s, source, &token));
    TRY(hf__source_direct(s, source, &call.transport));
    call.fields[call.fields_len++] =
        (struct http_field){HF_STR("Accept"), HF_STR("application/json")};
    if (token.ptr)
        call.fields[call.fields_len++] = (struct http_field){HF_STR("Authorization"), token};
    TRY(hf__source_call(s, source, &call, &answer));
    if (answer.status != 200)
        return hf__fail(s, answer.status == 429 || answer.status >= 500 ? HF_IO : HF_DENIED,
                        "The container's endpoint gives no credentials: HTTP status %d",
                        answer.status);
    *keys = (struct source_keys){.origin = "the container's endpoint"};
    return hf__source_read_keys(s, SOURCE_CONTAINER, body_text(&answer), keys);
}

/* ---- the metadata service ------------------------------------------------------------------- */

/* A setting that is a number from 1 to `max`. */
static enum hf_status number_setting(struct hf_scope *s, struct source *source,
                                     const char *variable, const char *key, uint32_t max,
                                     uint32_t *number)
{
    struct hf_str text = hf__config_setting(source->config, variable, key);
    uint32_t read = 0;

    assert(max > 0 && max < UINT32_MAX / 10 - 1);
    if (!text.ptr)
        return HF_OK;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || read > max)
            read = max + 1;
        else
            read = read * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    if (read < 1 || read > max)
        return hf__fail(s, HF_INVALID, "%s, or %s of the profile, is not a number from 1 to %u",
                        variable, key, max);
    *number = read;
    return HF_OK;
}

enum hf_status hf__source_metadata_place(struct hf_scope *s, struct source *source, bool *off,
                                         struct endpoint *endpoint, struct source_call *call)
{
    struct hf_str disabled = hf__config_variable(source->config, "AWS_EC2_METADATA_DISABLED");
    struct hf_str url = hf__config_setting(source->config, "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                           "ec2_metadata_service_endpoint");
    struct hf_str mode =
        hf__config_setting(source->config, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
                           "ec2_metadata_service_endpoint_mode");
    uint32_t seconds = 0;

    *off = disabled.ptr && hf__http_is(disabled, "true");
    if (*off)
        return HF_OK;
    *call = (struct source_call){.what = "the metadata service of the machine",
                                 .endpoint = endpoint,
                                 .timeout_ms = METADATA_MS,
                                 .attempts = METADATA_ATTEMPTS};
    TRY(number_setting(s, source, "AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout",
                       TIMEOUT_MAX_S, &seconds));
    TRY(number_setting(s, source, "AWS_METADATA_SERVICE_NUM_ATTEMPTS",
                       "metadata_service_num_attempts", ATTEMPTS_MAX, &call->attempts));
    if (seconds)
        call->timeout_ms = seconds * 1000;
    if (mode.ptr && !hf__http_is(mode, "IPv4") && !hf__http_is(mode, "IPv6"))
        return hf__fail(s, HF_INVALID,
                        "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE, or "
                        "ec2_metadata_service_endpoint_mode of the profile, is not IPv4 or IPv6");
    if (!url.ptr)
        url = mode.ptr && hf__http_is(mode, "IPv6") ? HF_STR("http://[fd00:ec2::254]")
                                                    : HF_STR("http://169.254.169.254");
    while (url.len && url.ptr[url.len - 1] == '/')
        url.len--;
    if (hf__endpoint_of_url(s, url, endpoint) != HF_OK)
        return hf_scope_error(s)->status == HF_NOMEM
                   ? HF_NOMEM
                   : hf__fail(s, HF_INVALID,
                              "AWS_EC2_METADATA_SERVICE_ENDPOINT, or "
                              "ec2_metadata_service_endpoint of the profile, is not a URL");
    return hf__source_direct(s, source, &call->transport);
}

/* What stands in the way of a token; NULL when it is there. (3) */
static enum hf_status metadata_token(struct hf_scope *s, struct source *source,
                                     struct source_call call, const char **absent,
                                     struct hf_str *token)
{
    struct http_answer answer;
    enum hf_status status;

    assert(call.endpoint && call.transport);
    assert(call.fields_len < ARRAY_LEN(call.fields));
    call.method = "PUT";
    call.target = HF_STR("/latest/api/token");
    call.fields[call.fields_len++] =
        (struct http_field){HF_STR("X-aws-ec2-metadata-token-ttl-seconds"), HF_STR(TOKEN_TTL_S)};
    status = hf__source_call(s, source, &call, &answer);
    if (status == HF_IO && !source->metadata_seen) {
        *absent = "does not answer";
        return HF_OK;
    }
    TRY(status);
    if (answer.status >= 400 && answer.status < 500 && answer.status != 429 &&
        !source->metadata_seen) {
        *absent = answer.status == 403 ? "is switched off" : "does not support version 2";
        return HF_OK;
    }
    *token = body_text(&answer);
    if (answer.status != 200 || !token->len || !is_target(*token))
        return hf__fail(s, HF_IO, "The metadata service of the machine gave no token: %s %d",
                        answer.status == 200 ? "invalid answer with HTTP status" : "HTTP status",
                        answer.status);
    return HF_OK;
}

static enum hf_status metadata_get(struct hf_scope *s, struct source *source,
                                   struct source_call call, struct hf_str token,
                                   struct hf_str target, struct http_answer *answer)
{
    assert(call.fields_len < ARRAY_LEN(call.fields) && token.len && target.len);
    call.method = "GET";
    call.target = target;
    call.fields[call.fields_len++] = (struct http_field){HF_STR("X-aws-ec2-metadata-token"), token};
    TRY(hf__source_call(s, source, &call, answer));
    if (answer->status != 200 && answer->status != 404)
        return hf__fail(s, HF_IO, "The metadata service of the machine failed: HTTP status %d",
                        answer->status);
    return HF_OK;
}

/* The first line, where it is a name; else absent. */
static struct hf_str name_in(const struct http_answer *answer)
{
    struct hf_str text = body_text(answer);
    size_t len = 0;

    assert(answer->status == 200);
    while (len < text.len && text.ptr[len] != '\n' && text.ptr[len] != '\r')
        len++;
    for (size_t i = 0; i < len; i++) {
        char c = text.ptr[i];

        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              char_in(c, "_+=,.@-")))
            return hf_str_of(NULL, 0);
    }
    return len && len <= NAME_MAX_BYTES ? hf_str_of(text.ptr, len) : hf_str_of(NULL, 0);
}

#define ROLES "/latest/meta-data/iam/security-credentials/"

enum hf_status hf__source_metadata(struct hf_scope *s, struct source *source, const char **absent,
                                   struct source_keys *keys)
{
    struct endpoint endpoint;
    struct source_call call;
    struct http_answer answer;
    struct hf_str token, role, target;
    bool off;

    assert(source->config);
    *absent = NULL;
    TRY(hf__source_metadata_place(s, source, &off, &endpoint, &call));
    if (off) {
        *absent = "is switched off by AWS_EC2_METADATA_DISABLED";
        return HF_OK;
    }
    TRY(metadata_token(s, source, call, absent, &token));
    if (*absent)
        return HF_OK;
    TRY(metadata_get(s, source, call, token, HF_STR(ROLES), &answer));
    if (answer.status == 404) {
        *absent = "has no role";
        return HF_OK;
    }
    role = name_in(&answer);
    if (!role.ptr)
        return hf__fail(s, HF_IO, "The metadata service of the machine named an invalid role");
    target = hf_scope_format(s, ROLES "%.*s", HF_FMT(role));
    if (!target.ptr)
        return hf__fail_nomem(s);
    TRY(metadata_get(s, source, call, token, target, &answer));
    if (answer.status != 200)
        return hf__fail(s, HF_IO,
                        "The metadata service of the machine has no credentials for its role");
    *keys = (struct source_keys){.origin = "the metadata service of the machine", .outlast = true};
    return hf__source_read_keys(s, SOURCE_METADATA, body_text(&answer), keys);
}

enum hf_status hf__source_metadata_region(struct hf_scope *s, struct source *source,
                                          struct hf_str *region)
{
    struct endpoint endpoint;
    struct source_call call;
    struct http_answer answer;
    const char *absent = NULL;
    struct hf_str token;
    bool off;

    *region = hf_str_of(NULL, 0);
    TRY(hf__source_metadata_place(s, source, &off, &endpoint, &call));
    if (off)
        return HF_OK;
    TRY(metadata_token(s, source, call, &absent, &token));
    if (absent)
        return HF_OK;
    TRY(metadata_get(s, source, call, token, HF_STR("/latest/meta-data/placement/region"),
                     &answer));
    if (answer.status == 200)
        *region = name_in(&answer);
    if (answer.status == 200 && !region->ptr)
        return hf__fail(s, HF_IO, "The metadata service of the machine named an invalid region");
    return HF_OK;
}
