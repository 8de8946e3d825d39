/*
 * store/map.c: a B+tree whose old states stay readable.
 *
 * A cache miss costs more here than all the instructions of a lookup, so the tree is built to have
 * few: nodes are wide, and for every key a node keeps its `head`, the eight bytes behind the
 * prefix that all keys of the node share (`skip` is the length of that prefix), as a number that
 * sorts as those bytes do. A search runs over the heads, which lie together, and follows one
 * pointer when it is done. Keys with equal heads are distinguished by reading them, which works
 * for any keys and is rare for ours.
 *
 *     inner node   child 0 | separator 0 | child 1 | separator 1 | child 2 ...
 *                  a separator is <= all keys to its right and > all keys to its left; it is the
 *                  shortest such key, an entry without a value
 *     leaf         entries: key and value in one allocation
 *
 * Old states. Nodes and entries count who points at them. A snapshot is one more pointer at the
 * root. A writer changes a node in place if it is the only one to hold it and all above it, and a
 * copy otherwise ("unshare"), so a snapshot costs nothing until something under it changes, and
 * whoever holds one reads without a lock. Counters are atomic, as snapshots are dropped without a
 * lock as well.
 *
 * A batch happens wholly or not at all, although memory may run out in its middle. All that can
 * fail comes first and changes nothing that can be seen:
 *
 *     prepare   every put that needs a new slot gets one, which is marked dead; every node that
 *               will change is unshared
 *     apply     puts fill their slots, deletes mark theirs dead: a slot killed by an early change
 *               is still there for a later put
 *     sweep     dead slots are removed; the same step cleans up when preparing failed
 *
 * Dead is the lowest bit of a slot. What always holds between batches:
 *
 *  (1) Keys ascend through the leaves, and lie between the separators above them.
 *  (2) No slot is dead; no leaf is empty; an inner node has one child more than separators.
 *  (3) All leaves are equally deep, at most MAP_HEIGHT_MAX.
 *  (4) All keys of a node share its first `skip` bytes, and heads[i] belongs to key i.
 *  (5) A node or entry reached from a retained root does not change.
 */
#include "store/map.h"

#include "base/assert_held.h"

enum {
    NODE_MAX = 64,     /* entries of a leaf, separators of an inner node */
    NODE_THIN = 16,    /* a node with fewer entries looks for a neighbour to merge with */
    NODE_MERGED = 40,  /* entries that a merged node may have at most */
    PREFIX_NEAR = 53,  /* fills the first cache line of a node */
    VALUE_AHEAD = 512, /* bytes of an entry that a lookup prefetches */
    HEAD_GAIN = 4,     /* bytes by which a prefix must grow before heads are recomputed */
    LINE = 64,         /* bytes of a cache line */
    KEY_LEN_MAX = (1 << 30) - 1
};

struct map_node {
    atomic_uint refs;
    uint32_t skip;
    uint16_t count;
    bool leaf;
    uint8_t prefix[PREFIX_NEAR]; /* the first bytes that the keys share, at most `skip` of them */
    uint64_t heads[NODE_MAX];
    uintptr_t slots[NODE_MAX];   /* struct map_entry *, lowest bit: dead */
    struct map_node *children[]; /* NODE_MAX + 1 of them in inner nodes */
};

enum { LEAF_SIZE = sizeof(struct map_node) };
enum { INNER_SIZE = LEAF_SIZE + (NODE_MAX + 1) * sizeof(struct map_node *) };

_Static_assert(offsetof(struct map_node, heads) == LINE, "a node's first cache line is its head");
_Static_assert(_Alignof(struct map_entry) > 1, "the lowest bit of a slot is free");
_Static_assert(offsetof(struct map_entry, bytes) == 12, "what an entry costs beside its bytes");

static struct map_entry *entry_of(uintptr_t slot)
{
    return (struct map_entry *)(slot & ~(uintptr_t)1);
}

static struct map_entry *entry_at(const struct map_node *node, int i)
{
    return entry_of(node->slots[i]);
}

static bool dead_at(const struct map_node *node, int i)
{
    return node->slots[i] & 1;
}

static struct hf_bytes key_at(const struct map_node *node, int i)
{
    return map_key(entry_at(node, i));
}

static size_t node_size(const struct map_node *node)
{
    return node->leaf ? LEAF_SIZE : INNER_SIZE;
}

static void *map_alloc(struct map *map, size_t size)
{
    void *ptr = hf__env_alloc(map->env, size);

    if (ptr)
        atomic_fetch_add_explicit(&map->bytes, size, memory_order_relaxed);
    return ptr;
}

static void map_free(struct map *map, void *ptr, size_t size)
{
    size_t before = atomic_fetch_sub_explicit(&map->bytes, size, memory_order_relaxed);

    assert(before >= size);
    hf__env_free(map->env, ptr, size);
}

/* ---- counted pointers ----------------------------------------------------------------------- */

static void entry_retain(struct map_entry *entry)
{
    unsigned refs = atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);

    assert(refs > 0);
}

static size_t entry_size(const struct map_entry *entry)
{
    return sizeof(*entry) + entry->key_len + entry->value_len;
}

struct map_entry *hf__map_entry_make(const struct hf_env *env, struct hf_bytes key,
                                     struct hf_bytes head, struct hf_bytes body)
{
    struct map_entry *entry = hf__env_alloc(env, sizeof(*entry) + key.len + head.len + body.len);

    if (!entry)
        return NULL;
    assert(key.len <= KEY_LEN_MAX && body.len <= UINT32_MAX - head.len);
    atomic_init(&entry->refs, 1);
    entry->key_len = (uint32_t)key.len & KEY_LEN_MAX;
    entry->gone = false;
    entry->fresh = false;
    entry->value_len = (uint32_t)(head.len + body.len);
    if (key.len)
        memcpy(entry->bytes, key.ptr, key.len);
    if (head.len)
        memcpy(entry->bytes + key.len, head.ptr, head.len);
    if (body.len)
        memcpy(entry->bytes + key.len + head.len, body.ptr, body.len);
    return entry;
}

void hf__map_entry_adopt(struct map *map, const struct map_entry *entry)
{
    atomic_fetch_add_explicit(&map->bytes, entry_size(entry), memory_order_relaxed);
}

void hf__map_entry_disown(struct map *map, const struct map_entry *entry)
{
    atomic_fetch_sub_explicit(&map->bytes, entry_size(entry), memory_order_relaxed);
}

void hf__map_entry_drop(const struct hf_env *env, struct map_entry *entry)
{
    assert(atomic_load(&entry->refs) == 1);
    hf__env_free(env, entry, entry_size(entry));
}

/* An entry that separates two nodes: it says where the right one begins. */
static struct map_entry *separator_new(struct map *map, struct hf_bytes key)
{
    const struct hf_bytes none = hf_bytes_of(NULL, 0);
    struct map_entry *separator = hf__map_entry_make(map->env, key, none, none);

    if (separator)
        hf__map_entry_adopt(map, separator);
    return separator;
}

void hf__map_entry_release(struct map *map, struct map_entry *entry)
{
    unsigned refs = atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel);

    assert(refs > 0);
    if (refs == 1)
        map_free(map, entry, entry_size(entry));
}

static struct map_node *node_new(struct map *map, bool leaf)
{
    struct map_node *node = map_alloc(map, leaf ? LEAF_SIZE : INNER_SIZE);

    if (!node)
        return NULL;
    atomic_init(&node->refs, 1);
    node->skip = 0;
    node->count = 0;
    node->leaf = leaf;
    return node;
}

struct map_node *hf__map_retain(struct map_node *root)
{
    if (root)
        atomic_fetch_add_explicit(&root->refs, 1, memory_order_relaxed);
    return root;
}

void hf__map_release(struct map *map, struct map_node *node)
{
    if (!node || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < node->count; i++)
        hf__map_entry_release(map, entry_at(node, i));
    for (int i = 0; !node->leaf && i <= node->count; i++)
        hf__map_release(map, node->children[i]);
    map_free(map, node, node_size(node));
}

static bool is_ours(struct map_node *node)
{
    return atomic_load_explicit(&node->refs, memory_order_acquire) == 1;
}

/* Make *at a node that only the map references, given that this holds for all nodes above it. */
static bool node_unshare(struct map *map, struct map_node **at)
{
    struct map_node *old = *at;
    struct map_node *copy;

    if (is_ours(old))
        return true;
    copy = node_new(map, old->leaf);
    if (!copy)
        return false;
    copy->skip = old->skip;
    memcpy(copy->prefix, old->prefix, sizeof(old->prefix));
    copy->count = old->count;
    memcpy(copy->heads, old->heads, old->count * sizeof(old->heads[0]));
    memcpy(copy->slots, old->slots, old->count * sizeof(old->slots[0]));
    for (int i = 0; i < copy->count; i++)
        entry_retain(entry_at(copy, i));
    for (int i = 0; !copy->leaf && i <= copy->count; i++)
        copy->children[i] = hf__map_retain(old->children[i]);
    *at = copy;
    hf__map_release(map, old);
    return true;
}

/* ---- searching ------------------------------------------------------------------------------ */

static uint64_t head_of(struct hf_bytes key, uint32_t skip)
{
    uint8_t bytes[8] = {0};

    if (key.len >= (size_t)skip + 8)
        return load_u64be(key.ptr + skip);
    if (key.len > skip)
        memcpy(bytes, key.ptr + skip, key.len - skip);
    return load_u64be(bytes);
}

static uint32_t common_prefix(struct hf_bytes a, struct hf_bytes b)
{
    uint32_t i = 0;

    while (i < a.len && i < b.len && a.ptr[i] == b.ptr[i])
        i++;
    return i;
}

/* The first of `len` heads that is >= `head`. */
static int first_head(const uint64_t *heads, int len, uint64_t head)
{
    const uint64_t *base = heads;

    while (len > 0) {
        int half = len / 2;

        if (base[half] < head) {
            base += half + 1;
            len -= half + 1;
        } else {
            len = half;
        }
    }
    return (int)(base - heads);
}

/*
 * The first slot whose key is >= `key`, and whether it is equal. With `guess` the key is taken to
 * share the prefix of the node: if it does not, the place is wrong but never `equal`, which is all
 * that a lookup in a leaf needs and saves it a cache miss.
 */
static int node_search(const struct map_node *node, struct hf_bytes key, bool guess, bool *equal)
{
    uint64_t head;
    int lo, hi;

    *equal = false;
    if (!guess && node->skip && node->count) {
        const uint8_t *prefix = node->skip <= PREFIX_NEAR ? node->prefix : key_at(node, 0).ptr;
        size_t len = key.len < node->skip ? key.len : node->skip;
        int order = bytes_compare(key.ptr, len, prefix, node->skip);

        if (order)
            return order < 0 ? 0 : node->count;
    }
    head = head_of(key, node->skip);
    lo = first_head(node->heads, node->count, head);
    if (lo == node->count || node->heads[lo] != head)
        return lo;
    hi = head == UINT64_MAX ? node->count
                            : lo + first_head(node->heads + lo, node->count - lo, head + 1);
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        struct hf_bytes other = key_at(node, mid);
        int order = bytes_compare(other.ptr, other.len, key.ptr, key.len);

        if (order == 0) {
            *equal = true;
            return mid;
        }
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The child under which `key` is or would be. */
static int node_route(const struct map_node *node, struct hf_bytes key)
{
    bool equal;
    int i = node_search(node, key, false, &equal);

    return equal ? i + 1 : i;
}

/* Prefetch an entry and the beginning of its value. */
static void slot_prefetch(const struct map_node *node, int i)
{
    for (size_t at = 0; at < VALUE_AHEAD; at += LINE)
        __builtin_prefetch((const char *)entry_at(node, i) + at);
}

const struct map_entry *hf__map_find(const struct map_node *node, struct hf_bytes key)
{
    bool equal;
    int i;

    if (!node)
        return NULL;
    while (!node->leaf) {
        node = node->children[node_route(node, key)];
        /* Prefetch all heads at once: their cache misses overlap; those of a binary search would
         * not. */
        for (size_t at = 0; at < offsetof(struct map_node, slots); at += LINE)
            __builtin_prefetch((const char *)node + at);
    }
    i = first_head(node->heads, node->count, head_of(key, node->skip));
    if (i == node->count)
        return NULL;
    slot_prefetch(node, i); /* most likely this is the entry, and its value is needed */
    i = node_search(node, key, true, &equal);
    return equal ? entry_at(node, i) : NULL;
}

/* ---- changing one node ---------------------------------------------------------------------- */

/* `key` is in the node, or is about to be added. */
static void set_prefix(struct map_node *node, struct hf_bytes key, uint32_t skip)
{
    node->skip = skip;
    if (skip)
        memcpy(node->prefix, key.ptr, skip < PREFIX_NEAR ? skip : PREFIX_NEAR);
}

static void set_skip(struct map_node *node, uint32_t skip)
{
    if (node->count)
        set_prefix(node, key_at(node, 0), skip);
    else
        node->skip = 0;
    for (int i = 0; i < node->count; i++)
        node->heads[i] = head_of(key_at(node, i), skip);
}

/* After a split the keys of a node may share more than before. */
static void lengthen_skip(struct map_node *node)
{
    uint32_t shared;

    if (node->count == 0)
        return;
    shared = common_prefix(key_at(node, 0), key_at(node, node->count - 1));
    if (shared >= node->skip + HEAD_GAIN)
        set_skip(node, shared);
}

/* (4), and the heads in order. Keys that are still to be moved are not looked at. */
static void node_check(const struct map_node *node)
{
    assert(node->count <= NODE_MAX);
    for (int i = 0; i < node->count; i++) {
        assert(key_at(node, i).len >= node->skip);
        assert(node->heads[i] == head_of(key_at(node, i), node->skip));
        assert(i == 0 || node->heads[i - 1] <= node->heads[i]);
    }
}

static void insert_slot(struct map_node *node, int at, uintptr_t slot)
{
    struct hf_bytes key = map_key(entry_of(slot));
    size_t behind = (size_t)(node->count - at);

    assert(node->count < NODE_MAX && at >= 0 && at <= node->count && is_ours(node));
    if (node->count == 0) {
        set_prefix(node, key, (uint32_t)key.len);
    } else {
        uint32_t shared = common_prefix(key, key_at(node, 0));

        if (shared < node->skip)
            set_skip(node, shared);
    }
    memmove(node->heads + at + 1, node->heads + at, behind * sizeof(node->heads[0]));
    memmove(node->slots + at + 1, node->slots + at, behind * sizeof(node->slots[0]));
    node->heads[at] = head_of(key, node->skip);
    node->slots[at] = slot;
    node->count++;
    if (DEV_CHECKS)
        node_check(node);
}

/* Move the slots from `from` on, and the children behind them, to the empty node `to`. */
static void move_tail(struct map_node *node, int from, struct map_node *to)
{
    size_t moved = (size_t)(node->count - from);

    assert(from >= 0 && from <= node->count && to->count == 0 && to->leaf == node->leaf);
    memcpy(to->heads, node->heads + from, moved * sizeof(node->heads[0]));
    memcpy(to->slots, node->slots + from, moved * sizeof(node->slots[0]));
    if (!node->leaf)
        memcpy(to->children, node->children + from, (moved + 1) * sizeof(node->children[0]));
    to->skip = node->skip;
    memcpy(to->prefix, node->prefix, sizeof(node->prefix));
    to->count = (uint16_t)moved;
    node->count = (uint16_t)from;
}

/*
 * Split child `i` of `parent`, which has room, to make room for `key`. Keys that arrive in order
 * leave full nodes behind, others halves.
 */
static bool split_child(struct map *map, struct map_node *parent, int i, struct hf_bytes key)
{
    struct map_node *left = parent->children[i];
    struct map_node *right = node_new(map, left->leaf);
    struct map_entry *separator = NULL;
    bool equal;
    int at =
        node_search(left, key, false, &equal) == left->count ? left->count - 1 : left->count / 2;

    assert(is_ours(left) && left->count == NODE_MAX && parent->count < NODE_MAX);
    if (!right)
        return false;
    if (left->leaf) {
        struct hf_bytes first = key_at(left, at);

        first.len = common_prefix(key_at(left, at - 1), first) + 1;
        separator = separator_new(map, first);
        if (!separator) {
            map_free(map, right, node_size(right));
            return false;
        }
        move_tail(left, at, right);
    } else {
        separator = entry_at(left, at);
        move_tail(left, at + 1, right);
        left->count--;
    }
    lengthen_skip(left);
    lengthen_skip(right);
    memmove(parent->children + i + 2, parent->children + i + 1,
            (size_t)(parent->count - i) * sizeof(parent->children[0]));
    parent->children[i + 1] = right;
    insert_slot(parent, i, (uintptr_t)separator);
    return true;
}

/* Merge child i + 1 into child i when both are ours and together small. */
static void merge_children(struct map *map, struct map_node *parent, int i)
{
    struct map_node *left = parent->children[i];
    struct map_node *right = parent->children[i + 1];
    int sum = left->count + right->count + !left->leaf;
    int behind = parent->count - i - 1;

    if (sum > NODE_MERGED || (left->count >= NODE_THIN && right->count >= NODE_THIN) ||
        !is_ours(left) || !is_ours(right))
        return;
    if (left->leaf) {
        hf__map_entry_release(map, entry_at(parent, i));
    } else {
        left->slots[left->count++] = parent->slots[i];
        memcpy(left->children + left->count, right->children,
               (size_t)(right->count + 1) * sizeof(right->children[0]));
    }
    memcpy(left->slots + left->count, right->slots, right->count * sizeof(right->slots[0]));
    left->count = (uint16_t)sum;
    set_skip(left, sum ? common_prefix(key_at(left, 0), key_at(left, sum - 1)) : 0);
    if (DEV_CHECKS)
        node_check(left);
    map_free(map, right, node_size(right));
    memmove(parent->heads + i, parent->heads + i + 1, (size_t)behind * sizeof(parent->heads[0]));
    memmove(parent->slots + i, parent->slots + i + 1, (size_t)behind * sizeof(parent->slots[0]));
    memmove(parent->children + i + 1, parent->children + i + 2,
            (size_t)behind * sizeof(parent->children[0]));
    parent->count--;
}

/* ---- batches -------------------------------------------------------------------------------- */

/* A root with room for one more separator or entry. */
static bool prepare_root(struct map *map, struct hf_bytes key)
{
    struct map_node *above;

    if (!map->root) {
        map->root = node_new(map, true);
        return map->root != NULL;
    }
    if (!node_unshare(map, &map->root))
        return false;
    if (map->root->count < NODE_MAX)
        return true;
    above = node_new(map, false);
    if (!above)
        return false;
    above->children[0] = map->root;
    if (!split_child(map, above, 0, key)) {
        map_free(map, above, INNER_SIZE);
        return false;
    }
    map->root = above;
    return true;
}

/*
 * Make sure that the key of `entry` has a slot and that the slot may be changed. Nodes that are
 * full are split on the way down, so that there is always room above.
 */
bool hf__map_prepare_put(struct map *map, struct map_entry *entry)
{
    struct hf_bytes key = map_key(entry);
    struct map_node *node;
    bool equal;
    int i;

    if (!prepare_root(map, key))
        return false;
    node = map->root;
    while (!node->leaf) {
        i = node_route(node, key);
        if (!node_unshare(map, &node->children[i]))
            return false;
        if (node->children[i]->count == NODE_MAX) {
            if (!split_child(map, node, i, key))
                return false;
            i = node_route(node, key);
        }
        node = node->children[i];
    }
    i = node_search(node, key, false, &equal);
    if (!equal) {
        entry_retain(entry);
        insert_slot(node, i, (uintptr_t)entry | 1);
    }
    return true;
}

/* The slots, or children, of `node` that `span` touches: [*from, *to). */
static void span_slots(const struct map_node *node, const struct map_span *span, int *from, int *to)
{
    bool one = span->lower.ptr == span->upper.ptr && span->lower.len == span->upper.len;
    bool equal;

    if (node->leaf) {
        *from = *to = node_search(node, span->lower, false, &equal);
        if (!one)
            *to = node_search(node, span->upper, false, &equal);
        *to += equal && span->closed;
    } else {
        *from = node_route(node, span->lower);
        *to = (one ? *from : node_route(node, span->upper)) + 1;
    }
}

static bool span_unshare(struct map *map, struct map_node **at, const struct map_span *span)
{
    int from, to;

    if (!node_unshare(map, at))
        return false;
    if ((*at)->leaf)
        return true;
    span_slots(*at, span, &from, &to);
    for (int i = from; i < to; i++)
        if (!span_unshare(map, &(*at)->children[i], span))
            return false;
    return true;
}

bool hf__map_prepare_delete(struct map *map, const struct map_span *span)
{
    if (!map->root || (span->closed && !hf__map_find(map->root, span->lower)))
        return true;
    return span_unshare(map, &map->root, span);
}

/* The slot that was prepared for a key. */
static uintptr_t *slot_of(struct map *map, struct hf_bytes key)
{
    struct map_node *node = map->root;
    bool equal;
    int i;

    while (!node->leaf) {
        assert(is_ours(node));
        node = node->children[node_route(node, key)];
    }
    i = node_search(node, key, true, &equal);
    assert(is_ours(node) && equal);
    return &node->slots[i];
}

/* Give the slot the entry, of which the caller's reference moves here. */
static void fill_slot(struct map *map, uintptr_t *slot, struct map_entry *entry)
{
    struct map_entry *old = entry_of(*slot);

    assert(entry->key_len == old->key_len);
    *slot = (uintptr_t)entry;
    hf__map_entry_release(map, old);
}

void hf__map_put(struct map *map, struct map_entry *entry)
{
    fill_slot(map, slot_of(map, map_key(entry)), entry);
}

/*
 * The first entry of a key, with which its slot was prepared, says whether something is behind the
 * map (`fresh`). Later entries of the key take that over, even if the slot was dead in between.
 */
bool hf__map_put_over(struct map *map, struct map_entry *entry)
{
    uintptr_t *slot = slot_of(map, map_key(entry));

    entry->fresh = entry_of(*slot)->fresh;
    if (entry->gone && entry->fresh) {
        *slot |= 1;
        return false;
    }
    fill_slot(map, slot, entry);
    return true;
}

static void kill_span(struct map_node *node, const struct map_span *span)
{
    int from, to;

    span_slots(node, span, &from, &to);
    for (int i = from; i < to; i++) {
        if (node->leaf) {
            assert(is_ours(node));
            node->slots[i] |= 1;
        } else {
            kill_span(node->children[i], span);
        }
    }
}

void hf__map_delete(struct map *map, const struct map_span *span)
{
    if (map->root)
        kill_span(map->root, span);
}

static void sweep_leaf(struct map *map, struct map_node *node, int from, int to)
{
    int kept = from;

    for (int i = from; i < node->count; i++) {
        if (i < to && dead_at(node, i)) {
            hf__map_entry_release(map, entry_at(node, i));
            continue;
        }
        if (kept < i) {
            node->heads[kept] = node->heads[i];
            node->slots[kept] = node->slots[i];
        }
        kept++;
    }
    node->count = (uint16_t)kept;
}

/* Remove children that became NULL, each with a separator beside it. False: none is left. */
static bool drop_children(struct map *map, struct map_node *node)
{
    int kept = 0;

    for (int i = 0; i <= node->count; i++) {
        if (!node->children[i]) {
            if (i > 0)
                hf__map_entry_release(map, entry_at(node, i - 1));
            continue;
        }
        if (kept > 0) {
            node->heads[kept - 1] = node->heads[i - 1];
            node->slots[kept - 1] = node->slots[i - 1];
        } else if (i > 0) {
            hf__map_entry_release(map, entry_at(node, i - 1));
        }
        node->children[kept++] = node->children[i];
    }
    node->count = (uint16_t)(kept ? kept - 1 : 0);
    return kept > 0;
}

static void sweep_span(struct map *map, struct map_node **at, const struct map_span *span)
{
    struct map_node *node = *at;
    bool left = true;
    int from, to;

    /* A part that was not prepared contains no dead slot. */
    if (!is_ours(node))
        return;
    span_slots(node, span, &from, &to);
    if (node->leaf) {
        sweep_leaf(map, node, from, to);
        left = node->count > 0;
    } else {
        bool emptied = false;

        for (int i = from; i < to; i++) {
            sweep_span(map, &node->children[i], span);
            emptied |= !node->children[i];
        }
        if (emptied)
            left = drop_children(map, node);
        for (int i = from; left && i >= 0 && i + 2 > from; i--)
            if (i < node->count)
                merge_children(map, node, i);
    }
    if (!left) {
        map_free(map, node, node_size(node));
        *at = NULL;
    }
}

void hf__map_sweep(struct map *map, const struct map_span *span)
{
    if (!map->root)
        return;
    sweep_span(map, &map->root, span);
    while (map->root && !map->root->leaf && map->root->count == 0 && is_ours(map->root)) {
        struct map_node *child = map->root->children[0];

        map_free(map, map->root, INNER_SIZE);
        map->root = child;
    }
}

/* ---- cursors -------------------------------------------------------------------------------- */

static void cursor_descend(struct map_cursor *cursor, const struct map_node *node, bool last)
{
    for (;;) {
        assert(cursor->depth + 1 < MAP_HEIGHT_MAX);
        cursor->depth++;
        cursor->nodes[cursor->depth] = node;
        cursor->at[cursor->depth] = last ? node->count : 0;
        if (node->leaf)
            return;
        node = node->children[cursor->at[cursor->depth]];
    }
}

void hf__map_seek(struct map_cursor *cursor, const struct map_node *root, struct hf_bytes key)
{
    bool equal;

    cursor->depth = -1;
    for (const struct map_node *node = root; node;) {
        int at = node->leaf ? node_search(node, key, false, &equal) : node_route(node, key);

        assert(cursor->depth + 1 < MAP_HEIGHT_MAX);
        cursor->depth++;
        cursor->nodes[cursor->depth] = node;
        cursor->at[cursor->depth] = at;
        node = node->leaf ? NULL : node->children[at];
    }
}

void hf__map_seek_end(struct map_cursor *cursor, const struct map_node *root)
{
    cursor->depth = -1;
    if (root)
        cursor_descend(cursor, root, true);
}

/* Move to the neighbouring leaf; depth is -1 when there is none. */
static void cursor_cross(struct map_cursor *cursor, int step)
{
    int depth = cursor->depth - 1;

    while (depth >= 0) {
        int at = cursor->at[depth] + step;

        if (at >= 0 && at <= cursor->nodes[depth]->count) {
            cursor->at[depth] = at;
            cursor->depth = depth;
            cursor_descend(cursor, cursor->nodes[depth]->children[at], step < 0);
            return;
        }
        depth--;
    }
    cursor->depth = -1;
}

const struct map_entry *hf__map_next(struct map_cursor *cursor)
{
    const struct map_node *leaf;
    int at;

    if (cursor->depth >= 0 && cursor->at[cursor->depth] == cursor->nodes[cursor->depth]->count)
        cursor_cross(cursor, 1);
    if (cursor->depth < 0)
        return NULL;
    leaf = cursor->nodes[cursor->depth];
    at = cursor->at[cursor->depth]++;
    if (at + 1 < leaf->count)
        slot_prefetch(leaf, at + 1);
    return entry_at(leaf, at);
}

const struct map_entry *hf__map_prev(struct map_cursor *cursor)
{
    const struct map_node *leaf;
    int at;

    if (cursor->depth >= 0 && cursor->at[cursor->depth] == 0)
        cursor_cross(cursor, -1);
    if (cursor->depth < 0)
        return NULL;
    leaf = cursor->nodes[cursor->depth];
    at = --cursor->at[cursor->depth];
    if (at > 0)
        slot_prefetch(leaf, at - 1);
    return entry_at(leaf, at);
}

void hf__map_walk_begin(struct map_walk *walk, const struct map_node *root, struct hf_bytes lower,
                        struct hf_bytes upper, bool reverse)
{
    walk->reverse = reverse;
    walk->stop = reverse ? lower : upper;
    if (!reverse)
        hf__map_seek(&walk->cursor, root, lower);
    else if (upper.len)
        hf__map_seek(&walk->cursor, root, upper);
    else
        hf__map_seek_end(&walk->cursor, root);
}

const struct map_entry *hf__map_walk_next(struct map_walk *walk)
{
    const struct map_entry *entry =
        walk->reverse ? hf__map_prev(&walk->cursor) : hf__map_next(&walk->cursor);

    if (entry && walk->stop.len) {
        int order = bytes_compare(entry->bytes, entry->key_len, walk->stop.ptr, walk->stop.len);

        if (walk->reverse ? order < 0 : order >= 0) {
            walk->cursor.depth = -1;
            return NULL;
        }
    }
    return entry;
}

enum hf_status hf__map_copy_value(struct hf_scope *s, const struct map_entry *entry,
                                  struct hf_bytes *value)
{
    struct hf_bytes from;
    uint8_t *to;

    if (!entry || entry->gone)
        return HF_OK;
    from = map_value(entry);
    to = hf_scope_alloc(s, from.len);
    if (!to)
        return hf__fail_nomem(s);
    if (from.len)
        memcpy(to, from.ptr, from.len);
    *value = hf_bytes_of(to, from.len);
    return HF_OK;
}

/* ---- checking ------------------------------------------------------------------------------- */

/* The keys of `node` are in [lower, upper); an absent end is open. Sets the height. */
static bool check_node(const struct map_node *node, struct hf_bytes lower, struct hf_bytes upper,
                       int *height)
{
    int first_height = 0;

    if (node->leaf && node->count == 0)
        return false;
    for (int i = 0; i < node->count; i++) {
        struct hf_bytes key = key_at(node, i);

        if (dead_at(node, i) || node->heads[i] != head_of(key, node->skip) ||
            common_prefix(key, key_at(node, 0)) < node->skip ||
            memcmp(key.ptr, node->prefix, node->skip < PREFIX_NEAR ? node->skip : PREFIX_NEAR) != 0)
            return false;
        if (i > 0 &&
            bytes_compare(key_at(node, i - 1).ptr, key_at(node, i - 1).len, key.ptr, key.len) >= 0)
            return false;
        if ((lower.ptr && bytes_compare(lower.ptr, lower.len, key.ptr, key.len) > 0) ||
            (upper.ptr && bytes_compare(upper.ptr, upper.len, key.ptr, key.len) <= 0))
            return false;
    }
    for (int i = 0; !node->leaf && i <= node->count; i++) {
        int child_height = 0;

        if (!check_node(node->children[i], i ? key_at(node, i - 1) : lower,
                        i < node->count ? key_at(node, i) : upper, &child_height))
            return false;
        if (i > 0 && child_height != first_height)
            return false;
        first_height = child_height;
    }
    *height = first_height + 1;
    return *height <= MAP_HEIGHT_MAX;
}

bool hf__map_check(const struct map *map)
{
    int height = 0;

    return !map->root || check_node(map->root, hf_bytes_of(NULL, 0), hf_bytes_of(NULL, 0), &height);
}
