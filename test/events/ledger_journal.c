/*
 * test/events/ledger_journal.c: what a writer was about to do and was told, in a file that only
 * grows.
 *
 *     begin NUMBER EXPECTED
 *     done NUMBER FIRST FIRST ...       versions of the first events, in each stream
 *     refused NUMBER                    the stream was at another version
 *     unknown NUMBER
 *
 * Lines begin and end with a newline and the last word is a dot, so that one which a kill cut in
 * two is known and does not spoil the next.
 */
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct entry *entry_of(struct journal *j, uint32_t number)
{
    while (number >= j->len) {
        uint32_t len = j->len ? 2 * j->len : 1024;
        struct entry *entries = realloc(j->entries, len * sizeof(*entries));

        if (!entries)
            FAIL("out of memory");
        memset(entries + j->len, 0, (len - j->len) * sizeof(*entries));
        j->entries = entries;
        j->len = len;
    }
    return &j->entries[number];
}

static void read_line(struct journal *j, const char *line)
{
    char word[16], first[PARTS_MAX][24];
    unsigned number;
    struct entry *entry;
    int n;

    if (!strstr(line, " .\n"))
        return;
    n = sscanf(line, "%15s %u %23s %23s %23s %23s", word, &number, first[0], first[1], first[2],
               first[3]);
    if (n < 3)
        FAIL("a journal says '%s'", line);
    entry = entry_of(j, number);
    if (strcmp(word, "begin") == 0) {
        entry->fate = FATE_BEGUN;
        entry->expected = strtoll(first[0], NULL, 10);
    } else {
        entry->fate = strcmp(word, "done") == 0      ? FATE_DONE
                      : strcmp(word, "refused") == 0 ? FATE_REFUSED
                                                     : FATE_UNKNOWN;
    }
    if (entry->fate == FATE_DONE)
        for (int i = 0; i < n - 2; i++)
            entry->first[i] = strtoull(first[i], NULL, 10);
}

void journal_open(struct journal *j, const struct site *site, int writer)
{
    char path[PATH_ROOM], name[32], line[LINE_ROOM];
    FILE *file;

    snprintf(name, sizeof(name), "journal-%d", writer);
    site_path(site, name, path);
    *j = (struct journal){.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    file = fopen(path, "re");
    if (j->fd < 0 || !file)
        FAIL("%s: %s", path, strerror(errno));
    (void)entry_of(j, 0);
    while (fgets(line, sizeof(line), file))
        read_line(j, line);
    fclose(file);
}

static void write_line(struct journal *j, const char *line, size_t len)
{
    if (write(j->fd, line, len) != (ssize_t)len)
        FAIL("a journal cannot be written: %s", strerror(errno));
}

void journal_begin(struct journal *j, const struct op *op, int64_t expected)
{
    char line[LINE_ROOM];
    int len = snprintf(line, sizeof(line), "\nbegin %u %lld .\n", op->number, (long long)expected);

    entry_of(j, op->number)->fate = FATE_BEGUN;
    entry_of(j, op->number)->expected = expected;
    write_line(j, line, (size_t)len);
}

void journal_end(struct journal *j, const struct op *op, enum fate fate,
                 const struct hf_appended *results)
{
    static const char *const words[] = {"", "begin", "done", "refused", "unknown"};
    struct entry *entry = entry_of(j, op->number);
    char line[LINE_ROOM];
    int len = snprintf(line, sizeof(line), "\n%s %u", words[fate], op->number);

    entry->fate = fate;
    for (size_t i = 0; fate == FATE_DONE && i < op->len; i++) {
        entry->first[i] = results[i].first;
        len += snprintf(line + len, sizeof(line) - (size_t)len, " %llu",
                        (unsigned long long)results[i].first);
    }
    len += snprintf(line + len, sizeof(line) - (size_t)len, " .\n");
    write_line(j, line, (size_t)len);
}

void journal_close(struct journal *j)
{
    close(j->fd);
    free(j->entries);
}
