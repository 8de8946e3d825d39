/*
 * bind/bind.c: a database with its methods: what they have opened, calls and their cancellation.
 * bind_request.c has the functions that need no scope.
 *
 *  (1) Objects are opened once for each kind and table, and closed with the bind, the last first.
 *  (2) `mutex` is never held while a pattern is called. What is being opened is in the list of openings,
 *      so that two who need the same table do not open it twice: the second waits, as long as its scope
 *      lives, and looks again. Nobody else waits for an opening.
 *  (3) A call that runs is in the list of calls, so that it can be canceled, and so that closing
 *      waits for it.
 *  (4) A failure always has its JSON, unless there is no memory.
 *  (5) With hf__bind_serve() a call uses only what was opened for the table that there is: others may
 *      delete it, make it anew, or restore a snapshot. What an object knows (how many buckets an outbox
 *      has) is that of one table. The table is asked for before its object is opened, and at each
 *      use; who uses an object of the table before goes on with it until the call ends.
 */
#include "bind/bind.h"

#include <holdfast/client.h>
#include <holdfast/table.h>

#include <time.h>

#include "base/wait.h"
#include "bind/serve.h"
#include "bind/session.h"

enum { TABLE_ID_MAX = 128 }; /* bytes of what tells a table from others of its name */

/* (5) */
struct table_id {
    char text[TABLE_ID_MAX];
    size_t len; /* 0: not known */
};

struct bind_object {
    struct bind_object *next;
    const struct bind_opener *kind;
    void *object;
    size_t size; /* of this */
    struct hf_str table;
    struct table_id id;  /* (5) */
    struct hf_str asked; /* the options that it was opened with, as JSON; absent: none */
};

/* (2) Both are on the stacks of who opens, and of who waits. */
struct bind_opening {
    struct bind_opening *next;
    const struct bind_opener *kind;
    struct hf_str table;
};
struct bind_waiter {
    struct bind_waiter *next;
    struct hf_scope *scope; /* woken when any opening has ended */
};

struct bind_call {
    struct bind_call *next;
    struct hf_scope *scope;
    uint64_t cancel; /* 0: none */
    uint64_t take;   /* the deliveries that it has taken; 0: none */
};

struct hf_db *hf__bind_db(struct hf_bind *bind)
{
    return bind->db;
}

const struct hf_env *hf__bind_env(struct hf_bind *bind)
{
    return &bind->env;
}

struct hf_str hf__bind_owner(struct hf_bind *bind)
{
    return bind->owner;
}

struct bind_sessions *hf__bind_sessions(struct hf_bind *bind)
{
    return bind->sessions;
}

/* ---- which table: (5) ------------------------------------------------------------------------ */

/* (5) Without a table there is no id. */
static enum hf_status ask_table(struct hf_scope *s, struct hf_bind *bind, struct hf_str table,
                                struct table_id *id)
{
    struct hf_describe_table ask = {.table = table};
    struct hf_describe_table_result got;
    enum hf_status status;
    int len;

    id->len = 0;
    status = hf_describe_table(s, bind->db, &ask, &got);
    if (status == HF_NOT_FOUND)
        hf__scope_error_clear(s);
    if (status == HF_NOT_FOUND)
        return HF_OK;
    TRY(status);
    if (!got.table)
        return HF_OK;
    len = snprintf(id->text, sizeof(id->text), "%lld %.*s", (long long)got.table->created_us,
                   HF_FMT(got.table->id));
    if (len > 0 && (size_t)len < sizeof(id->text))
        id->len = (size_t)len;
    return HF_OK;
}

static bool is_same_table(const struct table_id *a, const struct table_id *b)
{
    return a->len && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* Another thread may have added one that it opened for a table that is gone by now. */
static bool is_of_table(const struct hf_bind *bind, const struct bind_object *o,
                        const struct table_id *id)
{
    return !bind->serves || is_same_table(&o->id, id);
}

/* (5) Calls that have found an object of another table of that name may still use it. */
static void retire_objects(struct hf_bind *bind, struct hf_str table, const struct table_id *id)
{
    struct bind_object **at = &bind->objects;

    pthread_mutex_lock(&bind->mutex);
    while (*at) {
        struct bind_object *o = *at;

        if (!hf_str_equal(o->table, table) || is_same_table(&o->id, id)) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        o->next = bind->retired;
        bind->retired = o;
    }
    pthread_mutex_unlock(&bind->mutex);
}

/* ---- what is open --------------------------------------------------------------------------- */

/* What somebody wants to be open. */
struct bind_wanted {
    const struct bind_opener *kind;
    struct hf_str table;
    bool create;
    const void *options; /* for the kind; NULL: none */
    struct hf_str asked; /* the same as JSON */
    struct table_id id;  /* (5) */
};

/* With the mutex held. */
static const struct bind_object *find_object(const struct hf_bind *bind,
                                             const struct bind_wanted *wanted)
{
    for (const struct bind_object *o = bind->objects; o; o = o->next)
        if (o->kind == wanted->kind && hf_str_equal(o->table, wanted->table) &&
            is_of_table(bind, o, &wanted->id))
            return o;
    return NULL;
}

/* Is that table being opened? With the mutex held. */
static bool is_opening(const struct hf_bind *bind, const struct bind_wanted *wanted)
{
    for (const struct bind_opening *o = bind->openings; o; o = o->next)
        if (o->kind == wanted->kind && hf_str_equal(o->table, wanted->table))
            return true;
    return false;
}

/* (2) Until the next opening has ended. With the mutex held, which is not while it waits. */
static enum hf_status wait_for_opening(struct hf_scope *s, struct hf_bind *bind)
{
    struct bind_waiter waiter = {.next = bind->waiters, .scope = s};
    uint32_t wakes = hf__scope_wakes(s);
    struct bind_waiter **at;
    enum hf_status status;

    bind->waiters = &waiter;
    pthread_mutex_unlock(&bind->mutex);
    status = hf__scope_wait(s, wakes, INT64_MAX);
    pthread_mutex_lock(&bind->mutex);
    for (at = &bind->waiters; *at != &waiter; at = &(*at)->next)
        assert(*at);
    *at = waiter.next;
    return status;
}

/* Either *object is what is open for it, or it is ours to open, until opening_end(). (2) */
static enum hf_status opening_begin(struct hf_scope *s, struct hf_bind *bind,
                                    const struct bind_wanted *wanted, struct bind_opening *opening,
                                    const struct bind_object **object)
{
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&bind->mutex);
    do
        *object = find_object(bind, wanted);
    while (!*object && is_opening(bind, wanted) && (status = wait_for_opening(s, bind)) == HF_OK);
    if (status == HF_OK && !*object) {
        *opening = (struct bind_opening){.next = bind->openings,
                                         .kind = wanted->kind,
                                         .table = wanted->table};
        bind->openings = opening;
    }
    pthread_mutex_unlock(&bind->mutex);
    return status;
}

static void opening_end(struct hf_bind *bind, struct bind_opening *opening)
{
    struct bind_opening **at;

    pthread_mutex_lock(&bind->mutex);
    for (at = &bind->openings; *at != opening; at = &(*at)->next)
        assert(*at);
    *at = opening->next;
    for (struct bind_waiter *waiter = bind->waiters; waiter; waiter = waiter->next)
        hf__scope_wake(waiter->scope);
    pthread_mutex_unlock(&bind->mutex);
}

/* (1) One that is open stays as it was opened. */
static enum hf_status use_object(struct hf_scope *s, const struct bind_object *o,
                                 const struct bind_wanted *wanted, void **object)
{
    if (wanted->asked.ptr && !hf_str_equal(wanted->asked, o->asked))
        return hf_scope_fail(s, HF_INVALID,
                             "table \"%.*s\" is open already, with other options: give them before "
                             "any other method uses the table, and the same ones every time",
                             HF_FMT(o->table));
    *object = o->object;
    return HF_OK;
}

static struct hf_str text_put(char **to, struct hf_str text)
{
    struct hf_str copy = hf_str_of(*to, text.len);

    if (!text.ptr)
        return text;
    memcpy(*to, text.ptr, text.len);
    *to += text.len;
    return copy;
}

static enum hf_status add_object(struct hf_scope *s, struct hf_bind *bind,
                                 const struct bind_wanted *wanted, void **object)
{
    size_t size = sizeof(struct bind_object) + wanted->table.len + wanted->asked.len;
    struct bind_object *o = hf__env_zalloc(&bind->env, size);
    enum hf_status status;
    char *texts;

    if (!o)
        return hf__fail_nomem(s);
    texts = (char *)(o + 1);
    o->table = text_put(&texts, wanted->table);
    o->asked = text_put(&texts, wanted->asked);
    o->kind = wanted->kind;
    o->id = wanted->id;
    o->size = size;
    status = o->kind->open(s, bind, o->table, wanted->create && !bind->read_only, wanted->options,
                           &o->object);
    if (status != HF_OK) {
        hf__env_free(&bind->env, o, size);
        return status;
    }
    assert(o->object);
    pthread_mutex_lock(&bind->mutex);
    o->next = bind->objects;
    bind->objects = o;
    pthread_mutex_unlock(&bind->mutex);
    *object = o->object;
    return HF_OK;
}

static enum hf_status open_wanted(struct hf_scope *s, struct hf_bind *bind,
                                  struct bind_wanted *wanted, void **object)
{
    const struct bind_object *o;
    struct bind_opening opening;
    enum hf_status status;

    if (!wanted->table.ptr)
        wanted->table = hf_str_from(wanted->kind->table);
    if (wanted->table.len == 0)
        return hf_scope_fail(s, HF_INVALID, "\"table\" is empty");
    if (bind->serves) {
        TRY(ask_table(s, bind, wanted->table, &wanted->id));
        retire_objects(bind, wanted->table, &wanted->id);
    }
    TRY(opening_begin(s, bind, wanted, &opening, &o));
    if (o)
        return use_object(s, o, wanted, object);
    status = add_object(s, bind, wanted, object);
    if (status == HF_OK && bind->serves && !wanted->id.len) {
        status =
            ask_table(s, bind, wanted->table, &wanted->id); /* made just now: again, to know it */
        if (status == HF_OK && wanted->id.len)
            status = add_object(s, bind, wanted, object);
    }
    opening_end(bind, &opening);
    return status;
}

enum hf_status hf__bind_open_object(struct hf_scope *s, struct hf_bind *bind,
                                    const struct bind_opener *kind, struct hf_str table,
                                    bool create, void **object)
{
    struct bind_wanted wanted = {.kind = kind, .table = table, .create = create};

    return open_wanted(s, bind, &wanted, object);
}

enum hf_status hf__bind_open_with(struct hf_scope *s, struct hf_bind *bind,
                                  const struct bind_opener *kind, struct hf_str table,
                                  const struct bind_fields *fields, const void *args,
                                  const void *options)
{
    struct bind_wanted wanted = {.kind = kind, .table = table, .create = true, .options = options};
    const void *nothing = hf__scope_array(s, 1, fields->size);
    struct hf__buf asked = {.scope = s}, none = {.scope = s};
    void *object;

    if (!nothing)
        return hf__fail_nomem(s);
    hf__bind_write(&asked, fields, args);
    hf__bind_write(&none, fields, nothing);
    if (asked.failed || none.failed)
        return hf__fail_nomem(s);
    if (asked.len != none.len || memcmp(asked.ptr, none.ptr, none.len) != 0)
        wanted.asked = hf_str_of((const char *)asked.ptr, asked.len);
    return open_wanted(s, bind, &wanted, &object);
}

void hf__bind_serve(struct hf_bind *bind, uint32_t list_max)
{
    assert(!bind->objects && !bind->calls && list_max);
    bind->serves = true;
    bind->list_max = list_max;
}

/* (1) */
static void close_objects(struct hf_bind *bind, struct bind_object *objects)
{
    while (objects) {
        struct bind_object *o = objects;

        objects = o->next;
        o->kind->close(o->object);
        hf__env_free(&bind->env, o, o->size);
    }
}

/* ---- opening and closing -------------------------------------------------------------------- */

static struct hf_bind_options fill_options(const struct hf_bind_options *options)
{
    struct hf_bind_options o = {.size = sizeof(o)};

    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    return o;
}

enum hf_status hf_bind_open(struct hf_scope *s, struct hf_db *db,
                            const struct hf_bind_options *options, struct hf_bind **bind)
{
    struct hf_bind_options o = fill_options(options);
    const struct hf_env *env = hf__scope_env(s);
    struct hf_bind *b;

    *bind = NULL;
    hf__scope_error_clear(s);
    if (!db)
        return hf__fail(s, HF_INVALID, "hf_bind_open() was called without a database (NULL)");
    b = hf__env_zalloc(env, sizeof(*b));
    if (!b)
        return hf__fail_nomem(s);
    b->env = *env;
    b->texts = hf_scope_new(env);
    if (b->texts && o.owner.ptr)
        b->owner = hf_scope_copy(b->texts, o.owner);
    b->sessions = hf__sessions_new(env);
    if (!b->sessions || !b->texts || (o.owner.ptr && !b->owner.ptr)) {
        if (b->sessions)
            hf__sessions_free(b->sessions);
        hf_scope_free(b->texts);
        hf__env_free(env, b, sizeof(*b));
        return hf__fail_nomem(s);
    }
    b->db = db;
    b->own_db = o.own_db;
    b->read_only = o.read_only;
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->ended, NULL);
    *bind = b;
    return HF_OK;
}

/* (3) */
static void wait_for_calls(struct hf_bind *bind)
{
    pthread_mutex_lock(&bind->mutex);
    bind->closing = true;
    for (struct bind_call *call = bind->calls; call; call = call->next)
        hf_scope_cancel(call->scope);
    while (bind->calls || bind->requests)
        pthread_cond_wait(&bind->ended, &bind->mutex);
    pthread_mutex_unlock(&bind->mutex);
}

void hf_bind_close(struct hf_bind *bind)
{
    struct hf_env env;

    if (!bind)
        return;
    wait_for_calls(bind);
    hf__sessions_close_all(bind->sessions);
    hf__sessions_free(bind->sessions);
    close_objects(bind, bind->objects);
    close_objects(bind, bind->retired);
    for (size_t i = 0; i < bind->scopes_len; i++)
        hf_scope_free(bind->scopes[i]);
    hf_scope_free(bind->texts);
    if (bind->own_db)
        hf_db_close(bind->db);
    pthread_cond_destroy(&bind->ended);
    pthread_mutex_destroy(&bind->mutex);
    env = bind->env;
    hf__env_free(&env, bind, sizeof(*bind));
}

/* ---- calls ---------------------------------------------------------------------------------- */

static bool begin_call(struct hf_bind *bind, struct bind_call *call)
{
    bool closing;

    pthread_mutex_lock(&bind->mutex);
    closing = bind->closing;
    if (!closing) {
        call->next = bind->calls;
        bind->calls = call;
    }
    pthread_mutex_unlock(&bind->mutex);
    return !closing;
}

static void end_call(struct hf_bind *bind, struct bind_call *call)
{
    struct bind_object *unused = NULL;
    struct bind_call **at;

    pthread_mutex_lock(&bind->mutex);
    if (bind->calls == call && !call->next) { /* (5): no other; this one is counted still */
        unused = bind->retired;
        bind->retired = NULL;
    }
    pthread_mutex_unlock(&bind->mutex);
    close_objects(bind, unused);
    pthread_mutex_lock(&bind->mutex);
    for (at = &bind->calls; *at != call; at = &(*at)->next)
        assert(*at);
    *at = call->next;
    pthread_cond_broadcast(&bind->ended);
    pthread_mutex_unlock(&bind->mutex);
}

/* When the caller's deadline is, which a method may shorten for its own time; INT64_MAX: none. */
static int64_t deadline_of(const struct hf_scope *s)
{
    int64_t left = hf__scope_left_ms(s, INT64_MAX);

    return left == INT64_MAX ? left : hf__env_elapsed_us(hf_scope_env(s)) + left * 1000;
}

static void deadline_restore(struct hf_scope *s, int64_t at_us)
{
    int64_t left = at_us == INT64_MAX ? 0 : (at_us - hf__env_elapsed_us(hf_scope_env(s))) / 1000;

    if (at_us != INT64_MAX && left < 1)
        left = 1; /* 0 is none */
    hf_scope_timeout_ms(s, left > UINT32_MAX ? UINT32_MAX : (uint32_t)left);
}

void hf__bind_shorten(struct hf_scope *s, uint32_t ms)
{
    uint32_t left = hf_scope_left_ms(s, ms);

    hf_scope_timeout_ms(s, left ? left : 1);
}

static void take_common(struct hf_bind *bind, struct bind_call *call,
                        const struct bind_common *common)
{
    if (!common->cancel)
        return;
    pthread_mutex_lock(&bind->mutex);
    call->cancel = common->cancel;
    pthread_mutex_unlock(&bind->mutex);
}

/* Memory for a struct of a table; of an empty one, too. */
static void *struct_new(struct hf_scope *s, const struct bind_fields *fields)
{
    return hf__scope_array(s, 1, fields->size ? fields->size : 1);
}

static enum hf_status call_method(struct hf_bind *bind, struct bind_call *call,
                                  const struct bind_method *method, struct hf_str json,
                                  struct hf__buf *buf)
{
    struct hf_scope *s = call->scope;
    struct bind_common common = {0};
    void *args = struct_new(s, method->args), *result = struct_new(s, method->result);
    int64_t deadline_us;
    enum hf_status status;

    if (!args || !result)
        return hf__fail_nomem(s);
    TRY(hf__bind_read(s, method->name, method->args, json, args, &common));
    if (method->access == BIND_WRITE && bind->read_only)
        return hf_scope_fail(s, HF_DENIED, "%.*s writes, and this is read-only",
                             HF_FMT(method->name));
    if (bind->serves)
        hf__bind_bound_lists(method->args, bind->list_max, args);
    take_common(bind, call, &common);
    hf__scope_error_clear(s);
    deadline_us = deadline_of(s);
    if (common.deadline_ms)
        hf__bind_shorten(s, common.deadline_ms);
    status = method->call(s, bind, args, result);
    deadline_restore(s, deadline_us);
    TRY(status);
    if (method->call == hf__bind_session_next)
        call->take = hf__session_taken(result);
    hf__bind_write(buf, method->result, result);
    return HF_OK;
}

/* An operation ignores the members that are not its own. */
static enum hf_status call_operation(struct hf_bind *bind, struct bind_call *call,
                                     struct hf_str operation, struct hf_str json,
                                     struct hf_json_answer *answer)
{
    struct hf_scope *s = call->scope;
    struct bind_common common = {0};
    int64_t deadline_us;
    enum hf_status status = hf__bind_read_common(s, operation, json, &common);

    if (status != HF_OK)
        return hf__bind_operation_refused(s, status, answer);
    take_common(bind, call, &common);
    if (!common.deadline_ms)
        return hf__bind_operation(s, bind->db, operation, json, bind->read_only, answer);
    deadline_us = deadline_of(s);
    hf__bind_shorten(s, common.deadline_ms);
    status = hf__bind_operation(s, bind->db, operation, json, bind->read_only, answer);
    deadline_restore(s, deadline_us);
    return status;
}

static enum hf_status call_named(struct hf_bind *bind, struct bind_call *call, struct hf_str name,
                                 struct hf_str json, struct hf__buf *buf)
{
    const struct bind_method *method = hf__bind_method(name);

    if (!method)
        return hf_scope_fail(call->scope, HF_UNKNOWN_OPERATION,
                             "there is no method \"%.*s\"; bind.methods lists them",
                             name.len > 100 ? 0 : (int)name.len, name.ptr);
    return call_method(bind, call, method, json, buf);
}

/* (4) */
enum hf_status hf__bind_finish(struct hf_scope *s, enum hf_status status, struct hf__buf *buf,
                               struct hf_str *result)
{
    if (status == HF_OK && buf->failed)
        status = hf__fail_nomem(s);
    if (status != HF_OK) {
        *buf = (struct hf__buf){.scope = s};
        hf__bind_write_error(buf, hf_scope_error(s));
    }
    hf__buf_put_byte(buf, '\0');
    *result = buf->failed ? (struct hf_str){0} : hf_str_of((const char *)buf->ptr, buf->len - 1);
    return status;
}

/* Methods of ours have a point in their name; operations of DynamoDB have none. */
static bool is_operation(struct hf_str name)
{
    return name.len && !memchr(name.ptr, '.', name.len);
}

enum hf_status hf__bind_run(struct hf_scope *s, struct hf_bind *bind, struct hf_str method,
                            struct hf_str json, struct hf_str *result, uint64_t *take)
{
    struct bind_call call = {.scope = s};
    struct hf__buf buf = {.scope = s};
    struct hf_json_answer answer;
    enum hf_status status;

    if (!begin_call(bind, &call))
        return hf__bind_finish(s, hf__fail(s, HF_STOPPED, "the database is being closed"), &buf,
                               result);
    if (is_operation(method)) {
        status = call_operation(bind, &call, method, json.len ? json : HF_STR("{}"), &answer);
        *result = answer.json;
    } else {
        status = hf__bind_finish(s, call_named(bind, &call, method, json, &buf), &buf, result);
        if (status != HF_OK && call.take)
            hf__session_untake(bind, call.take);
    }
    *take = call.take;
    end_call(bind, &call);
    return status;
}

enum hf_status hf_bind_call(struct hf_scope *s, struct hf_bind *bind, struct hf_str method,
                            struct hf_str json, struct hf_str *result)
{
    struct hf__buf buf = {.scope = s};
    uint64_t take = 0;

    *result = (struct hf_str){0};
    hf__scope_error_clear(s);
    if (!bind)
        return hf__bind_finish(s, hf__fail(s, HF_INVALID, "hf_bind_call() was called with NULL"),
                               &buf, result);
    return hf__bind_run(s, bind, method, json, result, &take);
}

enum { TRY_NS = 1000000, TRY_BYTES = 4 * 1024 * 1024 }; /* of hf_bind_try() */

enum hf_status hf_bind_try(struct hf_scope *s, struct hf_bind *bind, struct hf_str method,
                           struct hf_str json, bool *done, struct hf_str *result)
{
    struct hf__patience patience = {.bytes = TRY_BYTES, .no_waits = true};
    enum hf_status status;
    struct timespec now;

    *done = false;
    *result = (struct hf_str){0};
    if (!bind || !is_operation(method) || !hf__bind_is_quick(bind->db, method))
        return HF_OK;
    clock_gettime(CLOCK_MONOTONIC, &now);
    patience.until_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + TRY_NS;
    hf__scope_set_patience(s, &patience);
    status = hf_bind_call(s, bind, method, json, result);
    hf__scope_set_patience(s, NULL);
    *done = !patience.lost;
    if (*done)
        return status;
    *result = (struct hf_str){0};
    hf__scope_error_clear(s);
    return HF_OK;
}

int hf_bind_cancel(struct hf_bind *bind, uint64_t cancel)
{
    int canceled = 0;

    if (!bind || !cancel)
        return 0;
    pthread_mutex_lock(&bind->mutex);
    for (struct bind_call *call = bind->calls; call; call = call->next)
        if (call->cancel == cancel) {
            hf_scope_cancel(call->scope);
            canceled++;
        }
    pthread_mutex_unlock(&bind->mutex);
    return canceled;
}
