/*
 * cli/frame/options/nearest.c: the nearest of several words, by how many slips of the hand lie between.
 *
 * The distance counts letters inserted, dropped, replaced, and neighbours swapped. Three rows of
 * the usual table are enough, as a swap looks back two rows. A word is near when about a third of
 * its letters, and at least one, had to change: `sevre` is near `serve`, `x` is near nothing long.
 * The dashes of an option are no letters: else any three of them would be near any other three.
 */
#include "cli/frame/options/nearest.h"

#include <stdint.h>
#include <string.h>

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t hf__nearest_distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_LEN_MAX + 1];
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);

    if (a_len > NEAREST_LEN_MAX || b_len > NEAREST_LEN_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = min_size(above[j], now[j - 1]) + 1;
            now[j] = min_size(now[j], above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_size(now[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

/* ---- candidates ----------------------------------------------------------------------------- */

static size_t count_dashes(const char *word)
{
    return strspn(word, "-");
}

static const char *skip_dashes(const char *word)
{
    return word + count_dashes(word);
}

static void candidate_consider(struct nearest *nearest, const char *candidate, size_t distance,
                               size_t most)
{
    bool other_dashes = count_dashes(candidate) != count_dashes(nearest->word);

    if (distance > most)
        return;
    if (nearest->best && (nearest->distance < distance ||
                          (nearest->distance == distance && nearest->other_dashes <= other_dashes)))
        return;
    nearest->best = candidate;
    nearest->distance = distance;
    nearest->other_dashes = other_dashes;
}

void hf__nearest_offer(struct nearest *nearest, const char *candidate)
{
    size_t len = strlen(skip_dashes(nearest->word));

    candidate_consider(nearest, candidate,
                       hf__nearest_distance(skip_dashes(nearest->word), skip_dashes(candidate)),
                       len < 3 ? 1 : len / 3);
}

void hf__nearest_offer_start(struct nearest *nearest, const char *candidate)
{
    const char *word = skip_dashes(nearest->word), *whole = skip_dashes(candidate);
    char start[NEAREST_LEN_MAX + 1];
    size_t len = strlen(word);

    if (len < NEAREST_PART_MIN || len > NEAREST_LEN_MAX || strlen(whole) <= len)
        return;
    memcpy(start, whole, len);
    start[len] = '\0';
    candidate_consider(nearest, candidate, hf__nearest_distance(word, start), len / 4);
}

void hf__nearest_offer_last(struct nearest *nearest, const char *candidate)
{
    const char *word = skip_dashes(nearest->word), *last = strrchr(skip_dashes(candidate), '-');

    if (last && strlen(word) >= NEAREST_PART_MIN)
        candidate_consider(nearest, candidate, hf__nearest_distance(word, last + 1), 0);
}
