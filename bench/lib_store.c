/*
 * bench/lib_store.c: opening a database by URL, and reading options.
 */
#include "lib_store.h"

#include <fnmatch.h>

#include <holdfast/client.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

void bench_place_open(struct hf_scope *s, struct bench_place *place)
{
    struct hf_str url = hf_str_from(place->url);
    enum hf_status status;

    if (begins(place->url, "http")) {
        place->label = "http";
        status = hf_connect(s, url,
                            HF_OPTIONS(hf_client_options, .env = &bench_env, .no_aws_config = true),
                            &place->db);
    } else {
        place->label = begins(place->url, "memory")  ? "memory"
                       : place->sync == HF_SYNC_NONE ? "none"
                                                     : "full";
        status =
            hf_open(s, url, HF_OPTIONS(hf_engine_options, .env = &bench_env, .sync = place->sync),
                    &place->db);
    }
    if (status != HF_OK)
        bench_die("%s: %s", place->url, hf_scope_error_text(s));
}

size_t bench_read_counts(const char *text, unsigned most, unsigned counts[BENCH_COUNTS_MAX])
{
    size_t len = 0;

    for (;;) {
        char *end;
        unsigned long count = strtoul(text, &end, 10);

        if (end == text || count == 0 || count > most || (*end && *end != ',') ||
            len == BENCH_COUNTS_MAX)
            bench_die("a list of at most %d numbers from 1 to %u was expected at '%s'",
                      BENCH_COUNTS_MAX, most, text);
        counts[len++] = (unsigned)count;
        if (!*end)
            return len;
        text = end + 1;
    }
}

bool bench_wanted(const char *only, const char *name)
{
    if (!only)
        return true;
    return strpbrk(only, "*?[") ? fnmatch(only, name, 0) == 0 : strstr(name, only) != NULL;
}

struct bench_record *bench_next_record(struct bench_report *report, size_t max)
{
    if (report->len == max)
        bench_die("too many results");
    report->records[report->len] = (struct bench_record){.is_cell = false};
    return &report->records[report->len++];
}
