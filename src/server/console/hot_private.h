/*
 * server/console/hot_private.h: what the threads count, for hot.c, which counts, and hot_report.c, which reads it.
 */
#ifndef HF_SERVER_HOT_PRIVATE_H
#define HF_SERVER_HOT_PRIVATE_H

#include "server/console/hot.h"

#include <pthread.h>

enum {
    HOT_TABLES = 128,
    HOT_KEYS = 64,
    HOT_LARGEST = 8,
    HOT_NAME = 64, /* bytes of an attribute's name; keys with longer ones are not counted */
    HOT_TEXT = 96, /* bytes of a key that are kept */
    HOT_TABLE_NAME = 255,
    HOT_HALF_S = 10
};

#define HOT_SECOND_NS UINT64_C(1000000000)

struct hot_name {
    uint8_t len; /* 0: not known */
    char text[HOT_NAME];
};

struct hot_text {
    uint8_t len;
    bool cut; /* the key is longer */
    char text[HOT_TEXT];
};

struct hot_table {
    uint64_t hash; /* of the name; 0: free */
    uint64_t used_ns;
    uint64_t reads, writes, errors;
    uint8_t len;
    char name[HOT_TABLE_NAME];
    struct hot_name key, range;
};

struct hot_key {
    uint64_t hash; /* of table and key; 0: free */
    uint64_t table;
    uint64_t count;
    struct hot_text text;
};

struct hot_item {
    uint64_t hash; /* of table and whole key; 0: free */
    uint64_t table;
    uint64_t len;   /* of the struct hf_item */
    uint64_t bytes; /* as DynamoDB counts */
    struct hot_text key, range;
};

struct hot {
    pthread_mutex_t lock; /* guards all of it */
    struct hot_table tables[HOT_TABLES];
    struct hot_key keys[HOT_KEYS];
    struct hot_item largest[HOT_LARGEST];
    uint64_t least_len; /* of `largest`; 0 while one is free */
    uint64_t halved_ns; /* when counts were halved, or counting began */
    double counted_s;   /* the time before that, halved as often as the counts were */
    uint64_t second;    /* of the next */
    uint32_t in_second;
    uint32_t random;
};

/* With the lock held: halve the counts as often as it is due. */
void hf__hot_counts_halve(struct hot *hot, uint64_t now_ns);

#endif
