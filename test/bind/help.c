#include "help.h"

struct rig_bind bind_rig(struct test *t, bool read_only)
{
    struct rig_bind r = {.t = t, .s = hf_scope_new(test_env(t))};

    CHECK(r.s != NULL);
    CHECK_OK(hf_open(r.s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &r.db));
    CHECK_OK(hf_bind_open(r.s, r.db, HF_OPTIONS(hf_bind_options, .read_only = read_only), &r.bind));
    return r;
}

struct rig_bind bind_rig_real(struct test *t, const char *url)
{
    struct rig_bind r = {.t = t, .s = hf_scope_new(NULL)};

    CHECK(r.s != NULL);
    CHECK_OK(hf_open(r.s, hf_str_from(url), NULL, &r.db));
    CHECK_OK(hf_bind_open(r.s, r.db, NULL, &r.bind));
    return r;
}

void bind_rig_reopen(struct rig_bind *r)
{
    hf_bind_close(r->bind);
    CHECK_OK(hf_bind_open(r->s, r->db, NULL, &r->bind));
}

void bind_rig_close(struct rig_bind *r)
{
    hf_bind_close(r->bind);
    hf_db_close(r->db);
    hf_scope_free(r->s);
}

struct hf_str bind_json(struct rig_bind *r, const char *text)
{
    struct hf_str copy = hf_scope_copy(r->s, hf_str_from(text));

    for (size_t i = 0; i < copy.len; i++)
        if (copy.ptr[i] == '\'')
            ((char *)(uintptr_t)copy.ptr)[i] = '"';
    return copy;
}

enum hf_status bind_call(struct rig_bind *r, const char *method, const char *json)
{
    return hf_bind_call(r->s, r->bind, hf_str_from(method), bind_json(r, json), &r->result);
}

void bind_check(struct rig_bind *r, enum hf_status status, const char *expected, const char *method,
                const char *json, const char *file, int line)
{
    enum hf_status is = bind_call(r, method, json);

    test_check_str(bind_json(r, expected), r->result, method, file, line);
    test_check_status(status, is, method, file, line);
}

void bind_check_refuses(struct rig_bind *r, const char *message, const char *method,
                        const char *json, const char *file, int line)
{
    test_check_status(HF_INVALID, bind_call(r, method, json), method, file, line);
    test_check_str(hf_str_from(message), hf_scope_error(r->s)->message, method, file, line);
    test_check(strstr(r->result.ptr, "{\"code\":\"HF_INVALID\",\"message\":\"") == r->result.ptr,
               "the result is the error", file, line);
}

struct hf_str bind_member(struct rig_bind *r, const char *name)
{
    struct hf_str quoted = hf_scope_format(r->s, "\"%s\":", name);
    const char *at = strstr(r->result.ptr, quoted.ptr), *end;

    if (!at)
        return (struct hf_str){0};
    at += quoted.len;
    if (*at == '"') {
        end = strchr(++at, '"');
        return hf_str_of(at, (size_t)(end - at));
    }
    return hf_str_of(at, strcspn(at, ",}]"));
}
