/*
 * test/lib/rig.c: engine, server and proxy together.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "requests.h"

static void *run(void *user)
{
    struct rig *rig = user;
    struct hf_scope *s = hf_scope_new(NULL);

    MUST(s && hf__server_run(s, rig->server) == HF_OK);
    hf_scope_free(s);
    return NULL;
}

void rig_start_server(struct rig *rig)
{
    struct server_options options = {.loops = 1, .port = rig->port, .drain_ms = 2000};

    if (hf__server_open(rig->truth.scope, rig->truth.db, &options, &rig->server) != HF_OK) {
        fprintf(stderr, "rig: %s\n", hf_scope_error_text(rig->truth.scope));
        abort();
    }
    rig->port = hf__server_port(rig->server);
    MUST(pthread_create(&rig->thread, NULL, run, rig) == 0);
}

void rig_stop_server(struct rig *rig)
{
    hf__server_stop(rig->server);
    pthread_join(rig->thread, NULL);
    hf__server_close(rig->server);
    rig->server = NULL;
}

void rig_open(struct rig *rig)
{
    struct hf_engine_options options = {.size = sizeof(options), .no_upkeep_thread = true};

    *rig = (struct rig){.truth = {.url = "memory:"}};
    rig->truth.scope = hf_scope_new(NULL);
    MUST(rig->truth.scope != NULL);
    MUST(hf_open(rig->truth.scope, HF_STR("memory:"), &options, &rig->truth.db) == HF_OK);
    rig_start_server(rig);
    rig->chaos = chaos_open(rig->port);
}

void rig_close(struct rig *rig)
{
    chaos_close(rig->chaos);
    rig_stop_server(rig);
    world_close(&rig->truth);
}

struct hf_str rig_url(const struct rig *rig, struct hf_scope *s)
{
    return hf_scope_format(s, "http://127.0.0.1:%u", (unsigned)chaos_port(rig->chaos));
}

struct hf_str rig_true(struct rig *rig, const char *operation, const char *json)
{
    hf_scope_reset(rig->truth.scope);
    return world_call(&rig->truth, operation, json);
}

struct hf_str rig_do(struct rig *rig, const char *operation, const char *json)
{
    struct hf_str answer = rig_true(rig, operation, json);

    if (hf_scope_error(rig->truth.scope)->status != HF_OK) {
        fprintf(stderr, "rig: %s %s: %.*s\n", operation, json, HF_FMT(answer));
        abort();
    }
    return answer;
}

static const char *no_variable(const char *name, void *user)
{
    (void)user;
    return strcmp(name, "AWS_EC2_METADATA_DISABLED") == 0 ? "true" : NULL;
}

struct hf_env rig_plain_env(void)
{
    return (struct hf_env){.size = sizeof(struct hf_env), .getenv = no_variable};
}

size_t occurrences(struct hf_str text, const char *part)
{
    char wanted[256];
    size_t len = strlen(part), count = 0;

    MUST(len < sizeof(wanted));
    for (size_t i = 0; i <= len; i++)
        wanted[i] = part[i] == '\'' ? '"' : part[i];
    while (text.len >= len && len) {
        const char *at = memmem(text.ptr, text.len, wanted, len);

        if (!at)
            break;
        count++;
        text.len -= (size_t)(at - text.ptr) + len;
        text.ptr = at + len;
    }
    return count;
}
