/*
 * bench/lib_store.c: opening a database by URL, and reading options.
 */
#include "lib_store.h"

#include <fnmatch.h>
#include <getopt.h>

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

/* "1,8,32", at most `most` each; ends the process when it is something else. */
static size_t read_counts(const char *text, unsigned most, unsigned counts[BENCH_COUNTS_MAX])
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

static void say_usage(const struct bench_args *args, const char *program)
{
    const char *name = strrchr(program, '/');
    char counts[BENCH_TEXT_MAX] = "", number[BENCH_TEXT_MAX] = "";

    if (args->counts_name)
        snprintf(counts, sizeof(counts), "[--%s LIST] ", args->counts_name);
    if (args->number_name)
        snprintf(number, sizeof(number), "[--%s N] ", args->number_name);
    bench_die("usage: %s [--url URL] [--sync none|full] %s%s[--seconds S] [--only NAME] "
              "[--json FILE]",
              name ? name + 1 : program, counts, number);
}

void bench_read_args(struct bench_args *args, int argc, char **argv)
{
    struct option options[] = {{"url", required_argument, NULL, 'u'},
                               {"sync", required_argument, NULL, 'y'},
                               {"seconds", required_argument, NULL, 's'},
                               {"only", required_argument, NULL, 'o'},
                               {"json", required_argument, NULL, 'j'},
                               {NULL, 0, NULL, 0},
                               {NULL, 0, NULL, 0},
                               {NULL, 0, NULL, 0}};
    size_t len = 5;
    int option;

    if (args->counts_name)
        options[len++] = (struct option){args->counts_name, required_argument, NULL, 'c'};
    if (args->number_name)
        options[len++] = (struct option){args->number_name, required_argument, NULL, 'n'};
    args->place.url = "memory:";
    args->place.sync = HF_SYNC_NONE;
    args->seconds = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'u':
            args->place.url = optarg;
            break;
        case 'y':
            args->place.sync = strcmp(optarg, "none") == 0 ? HF_SYNC_NONE : HF_SYNC_FULL;
            break;
        case 's':
            args->seconds = strtod(optarg, NULL);
            break;
        case 'o':
            args->only = optarg;
            break;
        case 'j':
            args->json = optarg;
            break;
        case 'c':
            args->counts_text = optarg;
            break;
        case 'n':
            args->number = strtoull(optarg, NULL, 10);
            break;
        default:
            say_usage(args, argv[0]);
        }
    }
    if (!(args->seconds > 0) || optind != argc)
        bench_die("--seconds must be above 0, and nothing may follow the options");
    if (args->number_name && args->number < args->number_least)
        bench_die("--%s must be %llu or more", args->number_name,
                  (unsigned long long)args->number_least);
    if (args->counts_name)
        args->counts_len = read_counts(args->counts_text, args->counts_most, args->counts);
}

void bench_finish(const struct bench_args *args, const struct bench_report *report)
{
    char about[BENCH_TEXT_MAX];

    snprintf(about, sizeof(about), "\"seconds\": %.3f, \"database\": \"%s\"", args->seconds,
             args->place.label);
    if (args->json && !bench_write_json(report, args->json, about))
        bench_die("cannot write %s", args->json);
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
