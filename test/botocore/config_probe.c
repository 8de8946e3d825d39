/*
 * test/botocore/config_probe.c: what client/ reads in files and where it finds services, for
 * config.py, which has the questions and says how they come in.
 */
#include "client/config.h"

#include <unistd.h>

#include "client/ini.h"

enum { INPUT_MAX = 64 * 1024 * 1024 };

struct input {
    uint8_t *bytes;
    size_t len;
    size_t at;
};

static _Noreturn void die(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static uint8_t *take(struct input *in, size_t len)
{
    uint8_t *at = in->bytes + in->at;

    if (in->len - in->at < len)
        die("the input ends early");
    in->at += len;
    return at;
}

static uint64_t take_number(struct input *in)
{
    uint8_t *p = take(in, 8);

    return load_u32le(p) | (uint64_t)load_u32le(p + 4) << 32;
}

static struct hf_str take_text(struct input *in)
{
    uint32_t len = load_u32le(take(in, 4));

    if (len == UINT32_MAX)
        return (struct hf_str){0};
    return hf_str_of((const char *)take(in, len), len);
}

static void print_hex(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        printf("%02x", (unsigned char)text.ptr[i]);
    if (!text.ptr)
        printf("-");
}

_Static_assert(ENDPOINT_EVENTBRIDGE == 8, "SERVICES of config.py are in the order of the enum");

/* ---- files ---------------------------------------------------------------------------------- */

static void print_entry(struct hf_scope *s, const struct ini *ini, const struct ini_entry *entry)
{
    struct hf_str key = hf_scope_copy(s, entry->key);
    struct hf_str sub = entry->sub.ptr ? hf_scope_copy(s, entry->sub) : entry->sub;
    struct hf_str value = hf__ini_find(ini, entry->kind, entry->section, key.ptr, sub.ptr);

    if (!value.ptr) /* of a table that was replaced */
        return;
    printf("%d ", (int)entry->kind);
    print_hex(entry->section);
    printf(" ");
    print_hex(key);
    printf(" ");
    print_hex(sub);
    printf(" ");
    print_hex(value);
    printf("\n");
}

static void answer_files(struct hf_scope *s, struct input *in)
{
    struct ini ini = {0};
    bool good = true;

    for (int file = INI_CONFIG; file <= INI_CREDENTIALS; file++) {
        struct hf_str text = hf_scope_copy(s, take_text(in));

        if (!text.ptr)
            die("no memory");
        good = good && hf__ini_parse(s, s, (enum ini_file)file, "file", (char *)(uintptr_t)text.ptr,
                                     text.len, &ini) == HF_OK;
    }
    for (size_t i = 0; good && i < ini.len; i++)
        if (ini.list[i].key.ptr)
            print_entry(s, &ini, &ini.list[i]);
    printf("%s.\n", good ? "" : "error\n");
}

/* ---- endpoints ------------------------------------------------------------------------------ */

struct variables {
    const char *url;
    const char *mode;
};

static const char *get_variable(const char *name, void *user)
{
    const struct variables *variables = user;

    if (strcmp(name, "AWS_ENDPOINT_URL") == 0)
        return variables->url;
    return strcmp(name, "AWS_ACCOUNT_ID_ENDPOINT_MODE") == 0 ? variables->mode : NULL;
}

static const char *take_variable(struct hf_scope *s, struct input *in)
{
    struct hf_str text = take_text(in);

    return text.ptr ? hf_scope_copy(s, text).ptr : NULL;
}

static void answer_endpoint(struct hf_scope *s, struct input *in)
{
    struct variables variables;
    struct hf_env env = {.size = sizeof(env), .user = &variables, .getenv = get_variable};
    struct endpoint_ask ask = {.service = (enum endpoint_service)take_number(in)};
    struct endpoint endpoint;
    struct config *config;

    if (ask.service > ENDPOINT_EVENTBRIDGE)
        die("no such service");
    ask.region = take_text(in);
    ask.fips = take_number(in) ? HF_YES : HF_NO;
    ask.dual_stack = take_number(in) ? HF_YES : HF_NO;
    variables.url = take_variable(s, in);
    ask.account = take_text(in);
    variables.mode = take_variable(s, in);
    if (hf__config_load(s, &env, (struct hf_str){0}, false, &config) != HF_OK)
        die("the config cannot be loaded");
    if (hf__endpoint_find(s, config, &ask, &endpoint) == HF_OK) {
        print_hex(endpoint.origin);
        printf(" ");
        print_hex(endpoint.signing_region);
        printf("\n.\n");
    } else {
        printf("error\n.\n");
    }
    hf__config_free(config);
}

int main(void)
{
    struct input in = {.bytes = malloc(INPUT_MAX)};
    struct hf_scope *s = hf_scope_new(NULL);
    ssize_t got;

    if (!in.bytes || !s)
        die("no memory");
    while ((got = read(STDIN_FILENO, in.bytes + in.len, INPUT_MAX - in.len)) > 0)
        in.len += (size_t)got;
    while (in.at < in.len) {
        uint64_t kind = take_number(&in);

        hf_scope_reset(s);
        if (kind == 1)
            answer_files(s, &in);
        else if (kind == 2)
            answer_endpoint(s, &in);
        else
            die("no such question");
    }
    hf_scope_free(s);
    free(in.bytes);
    return 0;
}
