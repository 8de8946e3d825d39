/*
 * client/credentials_sts.c: roles, from the Security Token Service.
 *
 * Two of its operations, in AWS's query protocol: a form goes there, XML comes back. AssumeRole is
 * signed with the keys of the caller; AssumeRoleWithWebIdentity is not signed, as the token
 * in it says who asks. The token's file is read each time, as its owner replaces it.
 */
#include "client/source.h"
#include "client/xml.h"

#include <assert.h>

enum {
    SESSION_NAME_MAX = 64,
    DURATION_MIN_S = 900,
    DURATION_MAX_S = 43200 /* STS knows how much less the role allows */
};

/* ---- the request ---------------------------------------------------------------------------- */

static void put_parameter(struct hf__buf *buf, const char *name, struct hf_str value)
{
    hf__buf_format(buf, "&%s=", name);
    hf__buf_put_url(buf, value, "");
}

/* What STS takes as the name of a session: letters, digits and a few signs. */
static bool is_session_name(struct hf_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              char_in(c, "_+=,.@-")))
            return false;
    }
    return name.len >= 2 && name.len <= SESSION_NAME_MAX;
}

static bool is_duration(struct hf_str text)
{
    int64_t seconds = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || seconds > DURATION_MAX_S)
            return false;
        seconds = seconds * 10 + (text.ptr[i] - '0');
    }
    return seconds >= DURATION_MIN_S && seconds <= DURATION_MAX_S;
}

static enum hf_status make_body(struct hf_scope *s, struct source *source,
                                const struct source_role *role, struct hf_str token,
                                struct hf_bytes *body)
{
    struct hf__buf buf = {.scope = s};
    struct hf_str name = role->session_name;

    assert(role->arn.len && (role->keys != NULL) == !token.len);
    if (!name.ptr)
        name = hf_scope_format(s, "holdfast-%lld",
                               (long long)(hf__env_wall_us(source->env) / 1000000));
    if (name.ptr && !is_session_name(name))
        return hf__fail(s, HF_INVALID,
                        "The name of the session for role %.*s is not 2 to %d letters, digits and "
                        "_+=,.@-",
                        HF_FMT(role->arn), SESSION_NAME_MAX);
    if (role->duration_s.ptr && !is_duration(role->duration_s))
        return hf__fail(s, HF_INVALID,
                        "duration_seconds for role %.*s is not a number from %d to %d",
                        HF_FMT(role->arn), DURATION_MIN_S, DURATION_MAX_S);
    hf__buf_format(&buf, "Action=%s&Version=2011-06-15",
                   role->keys ? "AssumeRole" : "AssumeRoleWithWebIdentity");
    put_parameter(&buf, "RoleArn", role->arn);
    put_parameter(&buf, "RoleSessionName", name);
    if (role->external_id.ptr && role->keys)
        put_parameter(&buf, "ExternalId", role->external_id);
    if (role->duration_s.ptr)
        put_parameter(&buf, "DurationSeconds", role->duration_s);
    if (!role->keys)
        put_parameter(&buf, "WebIdentityToken", token);
    if (buf.failed || !name.ptr)
        return hf__fail_nomem(s);
    *body = hf_bytes_of(buf.ptr, buf.len);
    return HF_OK;
}

/* STS is asked in the region that the client works in; where none is known, in the first one. */
static enum hf_status find_endpoint(struct hf_scope *s, struct source *source,
                                    struct endpoint *endpoint)
{
    struct hf_str region;

    TRY(hf__config_region(s, source->config, source->region, &region));
    if (!region.ptr)
        region = HF_STR("us-east-1");
    return hf__endpoint_find(s, source->config,
                             &(struct endpoint_ask){.service = ENDPOINT_STS, .region = region},
                             endpoint);
}

/* ---- the answer ----------------------------------------------------------------------------- */

enum hf_status hf__source_read_sts(struct hf_scope *s, struct hf_str xml, struct sts_answer *answer)
{
    struct sts_answer by_token = {.access_key = {NULL, 0}};
    const struct xml_want wants[] = {
#define SIGNED "AssumeRoleResponse/AssumeRoleResult/"
        {SIGNED "Credentials/AccessKeyId", &answer->access_key},
        {SIGNED "Credentials/SecretAccessKey", &answer->secret_key},
        {SIGNED "Credentials/SessionToken", &answer->session_token},
        {SIGNED "Credentials/Expiration", &answer->expiration},
        {SIGNED "AssumedRoleUser/Arn", &answer->arn},
#define BY_TOKEN "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/"
        {BY_TOKEN "Credentials/AccessKeyId", &by_token.access_key},
        {BY_TOKEN "Credentials/SecretAccessKey", &by_token.secret_key},
        {BY_TOKEN "Credentials/SessionToken", &by_token.session_token},
        {BY_TOKEN "Credentials/Expiration", &by_token.expiration},
        {BY_TOKEN "AssumedRoleUser/Arn", &by_token.arn},
        {"ErrorResponse/Error/Code", &answer->error_code},
        {"ErrorResponse/Error/Message", &answer->error_message},
    };

    *answer = (struct sts_answer){.access_key = {NULL, 0}};
    TRY(hf__xml_read(s, xml, wants, ARRAY_LEN(wants)));
    assert(!by_token.access_key.ptr || !answer->access_key.ptr);
    if (by_token.access_key.ptr)
        *answer = by_token; /* a document has one root, so the rest is absent */
    return HF_OK;
}

static bool has_code(const struct http_answer *answer, const char *code)
{
    assert(code[0]);
    return answer->body.len &&
           memmem(answer->body.ptr, answer->body.len, code, strlen(code)) != NULL;
}

/* The HTTP status alone does not say which errors of STS are transient. */
static bool is_passing(const struct http_answer *answer)
{
    return answer->status == 429 || answer->status >= 500 ||
           (answer->status == 400 && (has_code(answer, "<Code>Throttling") ||
                                      has_code(answer, "<Code>IDPCommunicationError<") ||
                                      has_code(answer, "<Code>RequestTimeout")));
}

static enum hf_status fail_with(struct hf_scope *s, const struct source_role *role,
                                const struct http_answer *http, const struct sts_answer *answer,
                                struct hf_str token)
{
    const struct hf_str secrets[] = {token, role->keys ? role->keys->secret_key : token,
                                     role->keys ? role->keys->session_token : token};
    struct hf_str code = hf__source_quote(s, answer->error_code, secrets, ARRAY_LEN(secrets));
    struct hf_str message = hf__source_quote(s, answer->error_message, secrets, ARRAY_LEN(secrets));

    assert(http->status != 200);
    return hf__fail(s, is_passing(http) ? HF_IO : HF_DENIED,
                    "STS refused role %.*s: HTTP status %d%s%.*s%s%.*s", HF_FMT(role->arn),
                    http->status, code.len ? ", " : "", HF_FMT(code), message.len ? ": " : "",
                    HF_FMT(message));
}

/* arn:aws:sts::123456789012:assumed-role/name/session */
static struct hf_str account_of(struct hf_str arn)
{
    struct hf_str part = {NULL, 0};

    for (int colons = 0; colons < 5; colons++) {
        const char *at = arn.len ? memchr(arn.ptr, ':', arn.len) : NULL;

        if (!at)
            return hf_str_of(NULL, 0);
        part = hf_str_of(arn.ptr, (size_t)(at - arn.ptr));
        assert(part.len < arn.len);
        arn = hf_str_of(at + 1, arn.len - part.len - 1);
    }
    return part;
}

static enum hf_status take_answer(struct hf_scope *s, const struct source *source,
                                  const struct source_role *role, const struct http_answer *http,
                                  struct hf_str token, struct source_keys *keys)
{
    struct sts_answer answer;
    struct hf_str xml = hf_str_of((const char *)http->body.ptr, http->body.len);
    enum hf_status status = hf__source_read_sts(s, xml, &answer);

    if (status == HF_NOMEM)
        return status;
    if (http->status != 200)
        return fail_with(s, role, http, &answer, token);
    if (status != HF_OK || !answer.access_key.len || !answer.secret_key.len ||
        !answer.session_token.len)
        return hf__fail(s, HF_IO, "The answer of STS for role %.*s has no credentials in it",
                        HF_FMT(role->arn));
    *keys = (struct source_keys){.access_key = answer.access_key,
                                 .secret_key = answer.secret_key,
                                 .session_token = answer.session_token,
                                 .account = account_of(answer.arn),
                                 .origin = "STS"};
    if (!hf__source_time(answer.expiration, &keys->expires_us))
        return hf__fail(s, HF_IO, "The answer of STS for role %.*s does not say when it expires",
                        HF_FMT(role->arn));
    keys->expires_us -= source->skew_s * 1000000; /* by our clock */
    assert(keys->access_key.len && keys->secret_key.len && keys->session_token.len);
    return HF_OK;
}

enum hf_status hf__source_role(struct hf_scope *s, struct source *source,
                               const struct source_role *role, struct source_keys *keys)
{
    struct endpoint endpoint;
    struct hf_str token = {NULL, 0};
    struct sign_credentials sign = {.access_key = {NULL, 0}};
    struct source_call call = {.what = "STS",
                               .transport = source->transport,
                               .endpoint = &endpoint,
                               .method = "POST",
                               .target = HF_STR("/"),
                               .timeout_ms = SOURCE_CALL_MS,
                               .attempts = SOURCE_ATTEMPTS,
                               .again = is_passing};
    struct http_answer answer;

    assert(role->arn.len && (role->keys || role->token_file.ptr)); /* one of the two proves it */
    TRY(find_endpoint(s, source, &endpoint));
    if (!role->keys) {
        TRY(hf__source_file(s, role->token_file, NULL, &token));
        if (!token.len)
            return hf__fail(s, HF_INVALID, "The file of the web identity token, %.*s, is empty",
                            HF_FMT(role->token_file));
    }
    TRY(make_body(s, source, role, token, &call.body));
    call.fields[call.fields_len++] =
        (struct http_field){HF_STR("Content-Type"),
                            HF_STR("application/x-www-form-urlencoded; charset=utf-8")};
    if (role->keys) {
        sign = (struct sign_credentials){.access_key = role->keys->access_key,
                                         .secret_key = role->keys->secret_key};
        if (role->keys->session_token.len)
            sign.session_token = role->keys->session_token;
        call.sign = &sign;
    }
    TRY(hf__source_call(s, source, &call, &answer));
    return take_answer(s, source, role, &answer, token, keys);
}

/* ---- by variables --------------------------------------------------------------------------- */

enum hf_status hf__source_web_identity(struct hf_scope *s, struct source *source, bool *found,
                                       struct source_keys *keys)
{
    const struct config *config = source->config;
    struct source_role role = {
        .arn = hf__config_variable(config, "AWS_ROLE_ARN"),
        .session_name = hf__config_variable(config, "AWS_ROLE_SESSION_NAME"),
        .token_file = hf__config_variable(config, "AWS_WEB_IDENTITY_TOKEN_FILE"),
    };

    assert(source->config);
    *found = role.token_file.ptr != NULL;
    if (!*found)
        return HF_OK;
    if (!role.arn.ptr)
        return hf__fail(s, HF_INVALID,
                        "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not");
    return hf__source_role(s, source, &role, keys);
}
