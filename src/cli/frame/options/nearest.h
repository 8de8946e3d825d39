/*
 * cli/frame/options/nearest.h: what somebody may have meant.
 */
#ifndef HF_CLI_FRAME_NEAREST_H
#define HF_CLI_FRAME_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

enum { NEAREST_LEN_MAX = 64 }; /* longer words are not compared */
enum { NEAREST_PART_MIN = 3 }; /* letters of a word that stands for a longer one */

/* The best candidate so far; start with {.word = what was typed}. */
struct nearest {
    const char *word;
    const char *best;  /* NULL: nothing is near */
    size_t distance;   /* of `best` */
    bool other_dashes; /* `best` begins with another number of them than `word` */
};

/* Consider `candidate`, which has to outlive `nearest`. Dashes in front, which all options have, are
 * not compared: of two that are as near the one that begins as the word does is better. */
void hf__nearest_offer(struct nearest *nearest, const char *candidate);

/* Consider the beginning of `candidate`, for a long word that was meant to be cut short. */
void hf__nearest_offer_start(struct nearest *nearest, const char *candidate);

/* Consider the last word of `candidate`, "type" of "--only-type". */
void hf__nearest_offer_last(struct nearest *nearest, const char *candidate);

/* How many letters to insert, drop, replace or swap with a neighbour; SIZE_MAX: too long a word. */
size_t hf__nearest_distance(const char *a, const char *b);

#endif
