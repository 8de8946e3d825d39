/*
 * counter/counter_mark.c: the marks that we have in counters, kept in memory between two adds.
 *
 * A mark belongs to one item, and to whoever took it until he gives it back: meanwhile it is not in
 * here. Several adds to one counter at the same time so have a mark each, and each mark has one add
 * under way at most, which is what makes it mean something.
 *
 *  (1) There are MARKS_MAX at most. The one that was used longest ago goes first: if its counter is
 *      added to again that is done under a new mark.
 *  (2) Hints may be wrong: whoever acts on one finds out.
 */
#include "base/assert_held.h"
#include "counter/counter.h"

_Static_assert((MARK_BUCKETS & (MARK_BUCKETS - 1)) == 0, "a power of two");
_Static_assert((HINTS & (HINTS - 1)) == 0, "a power of two");
_Static_assert((int)MARK_LEN <= (int)PATTERN_ID_LEN, "a mark is the beginning of an id");

static uint64_t hash_of(struct hf_str text)
{
    return fnv_fold(fnv_add(FNV_BEGIN, text.ptr, text.len));
}

void hf__counter_marks_init(struct marks *marks, const struct hf_env *env)
{
    marks->env = env;
    pthread_mutex_init(&marks->mutex, NULL);
}

static void marks_check(struct marks *marks)
{
    ASSERT_HELD(&marks->mutex);
    assert(marks->len <= MARKS_MAX && "(1)");
    assert((marks->len > 0) == (marks->newest != NULL));
    assert((marks->newest != NULL) == (marks->oldest != NULL));
    assert(!marks->newest || (!marks->newest->newer && !marks->oldest->older));
}

/* Out of its bucket and out of the order; the mutex is held. */
static void unlink_mark(struct marks *marks, struct mark *mark)
{
    struct mark **link = &marks->buckets[mark->hash % MARK_BUCKETS];

    ASSERT_HELD(&marks->mutex);
    assert(marks->len > 0);
    while (*link != mark) {
        assert(*link && "a mark is in the bucket of its hash");
        link = &(*link)->next;
    }
    *link = mark->next;
    *(mark->newer ? &mark->newer->older : &marks->newest) = mark->older;
    *(mark->older ? &mark->older->newer : &marks->oldest) = mark->newer;
    mark->next = mark->newer = mark->older = NULL;
    marks->len--;
}

void hf__counter_marks_free(struct marks *marks)
{
    pthread_mutex_lock(&marks->mutex);
    marks_check(marks);
    while (marks->oldest) {
        struct mark *mark = marks->oldest;

        unlink_mark(marks, mark);
        hf__env_free(marks->env, mark, mark->size);
    }
    assert(marks->len == 0);
    pthread_mutex_unlock(&marks->mutex);
    pthread_mutex_destroy(&marks->mutex);
}

static struct mark *mark_new(struct marks *marks, struct hf_str text, uint64_t hash)
{
    size_t size = sizeof(struct mark) + text.len;
    struct mark *mark = hf__env_zalloc(marks->env, size);
    struct pattern_id id;

    if (!mark)
        return NULL;
    id = hf__pattern_id_make(marks->env);
    memcpy(mark->id, id.text, MARK_LEN);
    mark->hash = hash;
    mark->size = size;
    mark->text_len = text.len;
    memcpy(mark->text, text.ptr, text.len);
    return mark;
}

struct mark *hf__counter_mark_take(struct marks *marks, struct hf_str text)
{
    uint64_t hash = hash_of(text);
    struct mark *mark;

    pthread_mutex_lock(&marks->mutex);
    for (mark = marks->buckets[hash % MARK_BUCKETS]; mark; mark = mark->next)
        if (mark->hash == hash && hf_str_equal(hf_str_of(mark->text, mark->text_len), text))
            break;
    if (mark)
        unlink_mark(marks, mark);
    pthread_mutex_unlock(&marks->mutex);
    return mark ? mark : mark_new(marks, text, hash);
}

void hf__counter_mark_give(struct marks *marks, struct mark *mark, bool again)
{
    struct mark *gone = mark;

    if (!mark)
        return;
    assert(!mark->next && !mark->newer && !mark->older && "a mark that is in use is not in here");
    if (again) {
        pthread_mutex_lock(&marks->mutex);
        mark->next = marks->buckets[mark->hash % MARK_BUCKETS];
        marks->buckets[mark->hash % MARK_BUCKETS] = mark;
        mark->older = marks->newest;
        *(marks->newest ? &marks->newest->newer : &marks->oldest) = mark;
        marks->newest = mark;
        gone = ++marks->len > MARKS_MAX ? marks->oldest : NULL; /* (1) */
        if (gone)
            unlink_mark(marks, gone);
        marks_check(marks);
        pthread_mutex_unlock(&marks->mutex);
    }
    if (gone)
        hf__env_free(marks->env, gone, gone->size);
}

int64_t hf__counter_mark_hint(struct marks *marks, struct hf_str text)
{
    uint64_t hash = hash_of(text);
    struct mark_hint hint;

    pthread_mutex_lock(&marks->mutex);
    hint = marks->hints[hash % HINTS];
    pthread_mutex_unlock(&marks->mutex);
    return hint.hash == hash ? hint.gone : 0;
}

void hf__counter_mark_set_hint(struct marks *marks, struct hf_str text, int64_t gone)
{
    uint64_t hash = hash_of(text);

    pthread_mutex_lock(&marks->mutex);
    marks->hints[hash % HINTS] = (struct mark_hint){.hash = hash, .gone = gone};
    pthread_mutex_unlock(&marks->mutex);
}
