/*
 * test/crash/expected.c: the expected-state log.
 *
 * Entries are of fixed size and appended by single writes to a file in append mode, so those of
 * several threads do not mix and stand in the order in which they were made. A last entry that is
 * not whole was never finished, and neither was the call behind it begun or answered: it is ignored
 * when reading, and cut off by the next writer.
 */
#include "crash.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(struct entry) == 24, "entries have no padding");

int log_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat info;

    if (fd < 0 || fstat(fd, &info) ||
        ftruncate(fd, info.st_size - info.st_size % (off_t)sizeof(struct entry))) {
        perror(path);
        exit(EXIT_BAD);
    }
    return fd;
}

void log_add(int fd, struct entry entry)
{
    if (write(fd, &entry, sizeof(entry)) != (ssize_t)sizeof(entry)) {
        perror("the expected-state log");
        exit(EXIT_BAD);
    }
}

static void remember(struct key_state *key, uint64_t n)
{
    if (key->history_len == key->history_cap) {
        key->history_cap = key->history_cap ? 2 * key->history_cap : 64;
        key->history = realloc(key->history, key->history_cap * sizeof(*key->history));
        if (!key->history)
            abort();
    }
    key->history[key->history_len++] = n;
}

static void put(struct key_state *key, uint64_t n, int64_t c)
{
    key->there = true;
    key->n = n;
    key->c = c;
    remember(key, n);
}

void model_apply(struct model *model, const struct entry *entry, uint32_t key)
{
    struct thread_state *thread = &model->threads[entry->thread];
    struct key_state *state = &thread->keys[key];

    switch ((enum what)entry->what) {
    case DO_PUT:
    case DO_BATCH:
        put(state, entry->n, 0);
        break;
    case DO_UPDATE:
        put(state, entry->n, state->c + 1);
        break;
    case DO_DELETE:
        if (state->there)
            remember(state, 0);
        state->there = false;
        break;
    case DO_TRANSACT:
        put(state, entry->n, 0);
        thread->in_b[key] = entry->n;
        thread->own++;
        thread->last_tx = *entry;
        thread->has_last_tx = true;
        break;
    case DO_EXPIRING:
        put(&thread->expiring, entry->n, 0);
        break;
    case DO_COUNT:
    case DO_REFUSED:
    case DO_DOOMED:
    case DO_SCHEMA:
        break;
    }
}

static void apply_whole(struct model *model, const struct entry *entry)
{
    model_apply(model, entry, entry->key);
    if (entry->what == DO_BATCH)
        model_apply(model, entry, (entry->key + 1) % KEYS);
}

/* The judge's word on an open call; of a batch it comes once per key. */
static void settle(struct model *model, struct thread_state *thread, const struct entry *entry)
{
    if (entry->phase == SETTLED_YES)
        model_apply(model, &thread->open, entry->key);
    if (entry->what != DO_BATCH || entry->key != thread->open.key)
        thread->has_open = false;
    if (!thread->has_open)
        model->open--;
}

static void take(struct model *model, const struct entry *entry)
{
    struct thread_state *thread;

    if (entry->what == DO_SCHEMA) {
        model->schema = *entry;
        model->has_schema = true;
        return;
    }
    if (entry->phase == OBSERVED) {
        model->shared_low = model->shared_high = (int64_t)entry->n;
        return;
    }
    thread = &model->threads[entry->thread];
    switch ((enum phase)entry->phase) {
    case INTENT:
        thread->open = *entry;
        thread->has_open = true;
        thread->next = entry->n + 1;
        model->open++;
        model->shared_high += entry->what == DO_COUNT;
        break;
    case DONE:
        apply_whole(model, entry);
        model->shared_low += entry->what == DO_COUNT;
        /* fall through */
    case NOT_DONE:
        thread->has_open = false;
        model->open--;
        model->acked++;
        model->refused += entry->phase == NOT_DONE;
        break;
    case SETTLED_YES:
    case SETTLED_NO:
        settle(model, thread, entry);
        break;
    case OBSERVED:
        break;
    }
}

void model_read(const char *path, struct model *model)
{
    FILE *file = fopen(path, "rb");
    struct entry entry;

    memset(model, 0, sizeof(*model));
    for (unsigned i = 0; i < WRITERS; i++)
        model->threads[i].next = 1;
    if (!file)
        return;
    while (fread(&entry, sizeof(entry), 1, file) == 1)
        take(model, &entry);
    fclose(file);
}

void model_free(struct model *model)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        for (unsigned j = 0; j < KEYS; j++)
            free(model->threads[i].keys[j].history);
        free(model->threads[i].expiring.history);
    }
}
