/*
 * test/oracle/oracle.h: a second, deliberately naive DynamoDB, for random operations to be compared
 * with. Tables are unsorted arrays of items, an item is a tree, an index is a walk over all items.
 * It shares no code with the engine: expressions reach it as trees that the generator made, which
 * are written out as text for the engine alone.
 *
 * Numbers are whole thousandths in 64 bits; what 38 digits do is tested in test/model.
 *
 * All memory comes from one arena and is given back at the end of a round.
 */
#ifndef HF_TEST_ORACLE_H
#define HF_TEST_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory, randomness, text (value.c) ----------------------------------------------------- */

struct arena {
    struct arena_block *blocks;
};
void *arena_alloc(struct arena *arena, size_t size); /* zeroed; ends the program without memory */
void arena_free(struct arena *arena);

struct rnd {
    uint64_t state;
};
uint64_t rnd_next(struct rnd *rnd);
int rnd_below(struct rnd *rnd, int bound);
bool rnd_one_in(struct rnd *rnd, int n);

struct text {
    struct arena *arena;
    char *ptr; /* always ends in a NUL */
    size_t len;
    size_t cap;
};
void text_put(struct text *text, const char *bytes, size_t len);
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- values (value.c) ------------------------------------------------------------------------ */

enum vtype { V_NONE, V_S, V_N, V_B, V_BOOL, V_NULL, V_M, V_L, V_SS, V_NS, V_BS };

struct val {
    enum vtype type;
    bool truth;          /* BOOL */
    bool dead;           /* removed from its list, which is still numbered as it was */
    int64_t thousandths; /* N */
    const char *bytes;   /* S, B */
    size_t len;
    struct val **at; /* elements: of an M in the order of names, of a set in its own order */
    const char **names;
    size_t count;
};

const char *type_tag(enum vtype type);
struct val *val_new(struct arena *arena, enum vtype type);
struct val *val_string(struct arena *arena, enum vtype type, const char *bytes, size_t len);
struct val *val_number(struct arena *arena, int64_t thousandths);
struct val *val_copy(struct arena *arena, const struct val *val);
struct val *map_get(const struct val *map, const char *name);
void map_set(struct arena *arena, struct val *map, const char *name, struct val *val);
void map_remove(struct val *map, const char *name);
void list_add(struct arena *arena, struct val *list, struct val *val);
void set_add(struct arena *arena, struct val *set, struct val *val);
bool set_has(const struct val *set, const struct val *val);

/* Of two S, N or B of one type: less, equal, more. */
int val_compare(const struct val *a, const struct val *b);
bool val_equal(const struct val *a, const struct val *b);
size_t val_size(const struct val *val);
size_t item_size(const struct val *item);

/* As DynamoDB's JSON: canonical, or with numbers and sets written in some other way. */
void val_json(struct text *text, const struct val *val, struct rnd *noise);
void item_json(struct text *text, const struct val *item, struct rnd *noise);
const char *item_text(struct arena *arena, const struct val *item); /* "none" for NULL */

/* ---- expressions (expr.c) -------------------------------------------------------------------- */

enum { STEPS_MAX = 4, ACTIONS_MAX = 6, PATHS_MAX = 4 };

struct step {
    const char *name; /* NULL: an index */
    int index;
};
struct path {
    struct step steps[STEPS_MAX];
    int len;
};

enum operand_kind { O_PATH, O_VALUE, O_SIZE, O_IF_NOT_EXISTS, O_LIST_APPEND };
struct operand {
    enum operand_kind kind;
    struct path path;
    struct val *value;
    struct operand *a, *b; /* of a function */
};

enum cond_kind {
    C_COMPARE,
    C_BETWEEN,
    C_IN,
    C_EXISTS,
    C_NOT_EXISTS,
    C_TYPE,
    C_BEGINS,
    C_CONTAINS,
    C_AND,
    C_OR,
    C_NOT
};
enum compare { EQ, NE, LT, LE, GT, GE };
struct cond {
    enum cond_kind kind;
    enum compare op;
    struct operand *x[4];
    int x_len;
    enum vtype wanted;
    struct cond *l, *r;
};

enum section { SET, REMOVE, ADD, DELETE };
struct action {
    enum section section;
    struct path target;
    struct operand *a;
    char sum; /* '+', '-' or 0 */
    struct operand *b;
};
struct update {
    struct action actions[ACTIONS_MAX];
    int len;
};
struct projection {
    struct path paths[PATHS_MAX];
    int len;
};

struct val *path_get(const struct val *item, const struct path *path);
bool paths_clash(const struct path *a, const struct path *b);
bool cond_match(const struct cond *cond, const struct val *item);
bool cond_mentions(const struct cond *cond, const char *name);
struct val *project(struct arena *arena, const struct path *paths, int len, const struct val *item);

/* What can go wrong in an update; a call that has several may report any of them. */
enum { BAD_MISSING = 1, BAD_TYPE = 2, BAD_PATH = 4, BAD_INDEX_TYPE = 8 };
extern const char text_missing[], text_type[], text_path[], text_index_type[];

/* The item after the update, or NULL when there still is none. */
struct val *update_apply(struct arena *arena, const struct update *update, const struct val *key,
                         const struct val *old, int *bad);

/* Is what the update puts there a value of the item itself, neither the request's nor computed? */
bool update_reads(const struct update *update, const struct val *base, const char *name);

/* Expressions as text, with the names and values that they need. */
struct render {
    struct arena *arena;
    struct rnd *rnd;
    struct text names; /* members of the JSON objects */
    struct text values;
    int used;
};
void render_begin(struct render *r, struct arena *arena, struct rnd *rnd);
void render_name(struct render *r, struct text *out, const char *name);
void render_value(struct render *r, struct text *out, const struct val *val);
void render_path(struct render *r, struct text *out, const struct path *path);
void render_cond(struct render *r, struct text *out, const struct cond *cond);
void render_update(struct render *r, struct text *out, const struct update *update);
void render_projection(struct render *r, struct text *out, const struct projection *projection);
void render_end(struct render *r, struct text *json); /* ,"ExpressionAttributeNames":... */

/* ---- tables (tables.c) ----------------------------------------------------------------------- */

enum { TABLE_INDEXES = 4, TABLES = 4, INCLUDED_MAX = 3 };

struct key_part {
    const char *name; /* NULL: none */
    enum vtype type;
};
enum projecting { P_ALL, P_KEYS, P_INCLUDE };
struct oindex {
    const char *name;
    bool local;
    bool building;
    struct key_part hash, range;
    enum projecting projecting;
    const char *included[INCLUDED_MAX];
    int included_len;
};
enum view { VIEW_NONE, VIEW_NEW, VIEW_OLD, VIEW_BOTH, VIEW_KEYS };
struct event {
    const char *name; /* INSERT, MODIFY, REMOVE */
    struct val *key;
    const struct val *before, *after;
    bool by_service;
    int64_t at_us;
};
struct otable {
    const char *name;
    struct key_part hash, range;
    struct oindex indexes[TABLE_INDEXES];
    int indexes_len;
    const char *ttl;
    enum view view;
    struct val **items;
    size_t len, cap;
    struct event *events;
    size_t events_len, events_cap;
};
struct oracle {
    struct arena arena;
    struct otable tables[TABLES];
    int tables_len;
};

enum write_kind { W_PUT, W_UPDATE, W_DELETE, W_CHECK };
struct owrite {
    enum write_kind kind;
    struct otable *table;
    struct val *item; /* of a put; else the key */
    struct cond *cond;
    struct update *update;
    bool old_on_failure;
};

enum verdict { FINE, CONDITION_FAILED, INVALID };
struct judged {
    enum verdict verdict;
    const char *messages[8]; /* any of them, when invalid */
    int messages_len;
    bool at_once;       /* the request alone is wrong, whatever the item is */
    struct val *before; /* NULL: none */
    struct val *after;
};

struct val *key_of(struct oracle *o, const struct otable *table, const struct val *item);
struct val *find_item(const struct otable *table, const struct val *key);
struct judged judge(struct oracle *o, const struct owrite *write);
void apply(struct oracle *o, const struct owrite *write, const struct judged *judged,
           int64_t now_us);

bool index_has(const struct oindex *index, const struct val *item);
bool index_projects(const struct otable *table, const struct oindex *index, const char *name);
struct val *index_entry(struct oracle *o, const struct otable *table, const struct oindex *index,
                        const struct val *item);

/* Delete what is due; how many. Forget events older than a day. */
size_t expire(struct oracle *o, struct otable *table, int64_t now_us);
size_t trim(struct otable *table, int64_t now_us);

/* ---- random things (generate.c) -------------------------------------------------------------- */

struct gen {
    struct oracle *o;
    struct rnd rnd;
    int64_t now_s;
};
struct val *gen_scalar(struct gen *g, enum vtype type);
struct val *gen_value(struct gen *g, int depth);
struct val *gen_key(struct gen *g, struct otable *table);
struct val *gen_item(struct gen *g, struct otable *table);
struct path gen_path(struct gen *g, struct otable *table, bool keys);
/* A condition that mentions neither `but1` nor `but2` (NULL: mention anything). */
struct cond *gen_cond(struct gen *g, struct otable *table, int depth, const char *but1,
                      const char *but2);
struct update *gen_update(struct gen *g, struct otable *table);
struct projection gen_projection(struct gen *g, struct otable *table);

#endif
