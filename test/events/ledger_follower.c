/*
 * test/events/ledger_follower.c: processes that follow, and write a line for each event into a log.
 *
 * Lines are as those of journals: a newline at both ends and a dot as the last word, so that one
 * which a kill cut in two is known, and its event is one that was not handled.
 */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/subscribe.h>

enum { LEASE_MS = 600, POLL_MS = 40, TAIL = 4096, CALL_MS = 8000 };

static int log_open(const struct site *site, const char *name, char path[PATH_ROOM])
{
    int fd;

    site_path(site, name, path);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        FAIL("%s: %s", path, strerror(errno));
    return fd;
}

static void log_event(int fd, const struct hf_stored_event *event)
{
    char line[LINE_ROOM], text[LINE_ROOM + 8];
    int len;

    plan_line(event, line);
    len = snprintf(text, sizeof(text), "\n%s .\n", line);
    if (write(fd, text, (size_t)len) != len)
        FAIL("a log cannot be written: %s", strerror(errno));
}

/* ---- readers -------------------------------------------------------------------------------- */

/* The position of the last line that is whole; empty: there is none. */
static void log_last(const char *path, char position[HF_POSITION_LEN + 1])
{
    FILE *file = fopen(path, "re");
    char line[LINE_ROOM];

    position[0] = '\0';
    if (!file)
        FAIL("%s: %s", path, strerror(errno));
    if (fseek(file, -TAIL, SEEK_END) != 0)
        rewind(file);
    else
        (void)!fgets(line, sizeof(line), file); /* the end of a line */
    while (fgets(line, sizeof(line), file))
        if (strlen(line) > HF_POSITION_LEN && strstr(line, " .\n")) {
            memcpy(position, line, HF_POSITION_LEN);
            position[HF_POSITION_LEN] = '\0';
        }
    fclose(file);
}

int read_main(const struct site *site, int number)
{
    struct hf_scope *s = hf_scope_new(NULL);
    char path[PATH_ROOM], name[16], position[HF_POSITION_LEN + 1];
    pid_t parent = getppid();
    struct hf_db *db;
    struct hf_events *store = site_store(s, site, &db);
    struct hf_events_all_options options = {.size = sizeof(options), .limit = 20};
    struct hf_events_reader *reader;
    int fd;

    snprintf(name, sizeof(name), "read-%d", number);
    fd = log_open(site, name, path);
    log_last(path, position);
    if (position[0])
        options.after = hf_str_from(position);
    MUST_OK(s, hf_events_reader_open(s, store, &options, &reader));
    while (getppid() == parent) {
        const struct hf_stored_event *events;
        size_t len = 0;

        hf_scope_reset(s);
        hf_scope_timeout_ms(s, CALL_MS);
        if (hf_events_reader_next(s, reader, &events, &len) == HF_OK)
            for (size_t i = 0; i < len; i++)
                log_event(fd, &events[i]);
        if (len == 0)
            nap_ms(5);
    }
    return 0;
}

/* ---- subscribers ---------------------------------------------------------------------------- */

static enum hf_status seen(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    (void)s;
    log_event(*(int *)user, event);
    return HF_OK;
}

int subscribe_main(const struct site *site, int number)
{
    struct hf_scope *s = hf_scope_new(NULL);
    char path[PATH_ROOM];
    int fd = log_open(site, "subscribe", path);
    pid_t parent = getppid();
    struct hf_db *db;
    struct hf_events *store = site_store(s, site, &db);
    struct hf_subscription *subscription;

    (void)number;
    MUST_OK(s,
            hf_subscribe(s, store, HF_STR("ledger"),
                         HF_OPTIONS(hf_subscribe_options, .each = seen, .user = &fd,
                                    .lease_ms = LEASE_MS, .poll_ms = POLL_MS, .checkpoint_ms = 100),
                         &subscription));
    MUST_OK(s, hf_subscription_start(s, subscription));
    while (getppid() == parent)
        nap_ms(20);
    return 0;
}

/* ---- consumers ------------------------------------------------------------------------------ */

/* It tells what became of it, or forgets about it: then it comes again. */
static void consume(struct hf_scope *s, struct hf_group *group, const struct hf_group_event *event,
                    int fd, uint64_t *random)
{
    uint64_t dice = random_below(random, 100);

    if (dice < 2)
        return;
    if (dice < 5) {
        (void)!hf_group_nack(s, group, event, HF_STR("not now"));
        return;
    }
    if (dice < 7) {
        (void)!hf_group_park(s, group, event, HF_STR("not here"));
        return;
    }
    log_event(fd, &event->event);
    (void)!hf_group_ack(s, group, event); /* or not: it comes again */
}

int consume_main(const struct site *site, int number)
{
    struct hf_scope *s = hf_scope_new(NULL);
    uint64_t random = (uint64_t)now_us() * 2 + 1;
    char path[PATH_ROOM];
    int fd = log_open(site, "consume", path);
    pid_t parent = getppid();
    struct hf_db *db;
    struct hf_events *store = site_store(s, site, &db);
    struct hf_group *group;
    struct hf_group_list list;

    (void)number;
    for (;;) { /* it makes a table: the server may be down */
        enum hf_status status =
            hf_group_open(s, store, HF_STR("group"),
                          HF_OPTIONS(hf_group_options, .lease_ms = LEASE_MS, .poll_ms = POLL_MS,
                                     .buckets = 4, .backoff_ms = 20, .backoff_max_ms = 200),
                          &group);

        if (status == HF_OK)
            break;
        if (!is_passing(s))
            FAIL("hf_group_open: %s", hf_scope_error_text(s));
        hf_scope_reset(s);
        nap_ms(50);
    }
    MUST_OK(s, hf_group_start(s, group));
    while (getppid() == parent) {
        hf_scope_reset(s);
        hf_scope_timeout_ms(s, CALL_MS);
        if (random_below(&random, 100) == 0)
            (void)!hf_group_replay(s, group, NULL, 0, NULL);
        if (hf_group_fetch(s, group, 20, &list) != HF_OK || list.events_len == 0) {
            nap_ms(10);
            continue;
        }
        for (size_t i = 0; i < list.events_len; i++)
            consume(s, group, &list.events[i], fd, &random);
    }
    return 0;
}
