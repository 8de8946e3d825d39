/*
 * test/coord/played.h: a database around a database whose stream of one table is played: shards
 * split and end, iterators expire, records are trimmed, pages are short or empty. All else, the
 * table of positions among it, is the inner database's.
 *
 * Each call of the stream is one of the inner database first (DescribeTable), so that in a
 * simulation it takes time, fails and gets lost like any other.
 */
#ifndef HF_TEST_PATTERNS_PLAYED_H
#define HF_TEST_PATTERNS_PLAYED_H

#include <holdfast/db.h>

#include "db/db.h"

enum { PLAYED_SHARDS = 24, PLAYED_RECORDS = 400, PLAYED_ITEMS = 8 };

struct played_record {
    int item;
    int n; /* of the item: 1, 2, 3, ... */
    int sequence;
    int64_t created_us;
};

struct played_shard {
    int parent;    /* -1: none */
    int low, high; /* items from low to high - 1 */
    bool closed;
    bool gone;   /* not listed, not to be read */
    bool hidden; /* not listed, but there */
    int trimmed; /* records before this index are gone */
    int len;
    int asked; /* how often */
    struct played_record records[PLAYED_RECORDS];
};

/* The stream; several databases may play one. */
struct played_stream {
    struct hf_str table;
    struct played_shard shards[PLAYED_SHARDS];
    int shards_len;
    int numbers[PLAYED_ITEMS]; /* the last n of each item */
    int sequence;
    int64_t now_us; /* when changes are made */
    int expired;    /* iterators that were made before this call are too old */
    int calls;
    int empty_every; /* each so many-th page of a shard has nothing in it */
    int page;        /* records in a page at most; 0: as asked for */
    int list_page;   /* shards in a page */
};

struct played {
    struct hf_db db;
    struct hf_db *inner;
    struct played_stream *stream;
};

void played_stream_begin(struct played_stream *stream, struct hf_str table);
void played_open(struct played *played, struct hf_db *inner, struct played_stream *stream);

/* One more change of an item. */
void played_change(struct played_stream *stream, int item);

/* The open shard that has the item. */
int played_shard_of(const struct played_stream *stream, int item);

/* Close it; two take its items over, or one when there is just one item or `half` is false. */
void played_split(struct played_stream *stream, int shard, bool half);

/* The item and the n that a change is about. */
void played_read(const struct hf_item key, const struct hf_item image, int *item, int *n);

#endif
