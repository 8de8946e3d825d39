/*
 * blob/s3_list.c: what is in the bucket, page by page, and sweeping it: see blob_s3.c for how.
 *
 * A page is read completely, in a scope of its own, before the callback gets any of it. Memory that
 * a call for one object takes from the caller's scope is released after it: there may be millions.
 */
#include "blob/private.h"

#include "base/kill.h"
#include "blob/s3.h"
#include "client/xml.h"

enum { PAGE_FIRST = 64 };

/* ---- listing -------------------------------------------------------------------------------- */

/* One object, or one upload in parts. */
struct entry {
    struct hf_str key;
    struct hf_str id; /* of an upload */
    uint64_t size;
    int64_t at_us; /* by the clock of S3 */
};

struct page {
    struct hf_scope *scope; /* of the page */
    struct entry *list;
    size_t len, cap;
    struct entry entry; /* the entry that is being read */
    struct hf_str next, next_id;
    bool more;
    bool nomem;
};

static bool add_entry(struct page *page)
{
    if (page->len == page->cap) {
        size_t cap = page->cap ? page->cap * 2 : PAGE_FIRST;
        struct entry *list = hf_scope_alloc(page->scope, cap * sizeof(*list));

        page->nomem = !list;
        if (!list)
            return false;
        if (page->len)
            memcpy(list, page->list, page->len * sizeof(*list));
        page->list = list;
        page->cap = cap;
    }
    assert(page->len < page->cap);
    page->list[page->len++] = page->entry;
    page->entry = (struct entry){0};
    return true;
}

static bool read_element(void *user, struct hf_str path, struct hf_str text)
{
    struct page *page = user;
    struct hf_str name;

    if (str_is(path, "ListBucketResult/Contents") ||
        str_is(path, "ListMultipartUploadsResult/Upload"))
        return add_entry(page);
    if (str_after(path, HF_STR("ListBucketResult/Contents/"), &name) ||
        str_after(path, HF_STR("ListMultipartUploadsResult/Upload/"), &name)) {
        if (str_is(name, "Key"))
            page->entry.key = text;
        else if (str_is(name, "UploadId"))
            page->entry.id = text;
        else if (str_is(name, "Size"))
            page->entry.size = hf__s3_number(text);
        else if (str_is(name, "LastModified") || str_is(name, "Initiated"))
            return hf__s3_time(text, &page->entry.at_us);
        return true;
    }
    if (!str_after(path, HF_STR("ListBucketResult/"), &name) &&
        !str_after(path, HF_STR("ListMultipartUploadsResult/"), &name))
        return true;
    if (str_is(name, "IsTruncated"))
        page->more = str_is(text, "true");
    else if (str_is(name, "NextContinuationToken") || str_is(name, "NextKeyMarker"))
        page->next = text;
    else if (str_is(name, "NextUploadIdMarker"))
        page->next_id = text;
    return true;
}

/* The next page, in a scope of its own. Ages become times of our clock. */
static enum hf_status read_page(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str query,
                                const char *result, struct page *page)
{
    const struct s3_call call = {.method = "GET", .query = query, .result = result};
    int64_t now_us = hf__env_wall_us(&blobs->env);
    struct s3_answer answer;
    enum hf_status status;
    int64_t date_s;

    TRY(hf__s3_call(s, hf__s3_of(blobs), &call, &answer));
    *page = (struct page){.scope = s};
    status = hf__xml_walk(s, hf_str_of((const char *)answer.http.body.ptr, answer.http.body.len),
                          read_element, page);
    if (status == HF_NOMEM || page->nomem)
        return hf__fail_nomem(s);
    if (status != HF_OK || (page->more && !page->next.len))
        return hf__s3_unreadable(s, hf__s3_of(blobs), "is not a valid list");
    date_s = hf__http_answer_date_s(&answer.http);
    for (size_t i = 0; i < page->len && date_s; i++)
        page->list[i].at_us = now_us - (date_s * 1000000 - page->list[i].at_us);
    return HF_OK;
}

/* Called with each object or upload below the prefix. */
typedef enum hf_status entry_fn(struct hf_scope *s, struct hf_blobs *blobs,
                                const struct entry *entry, void *user);

struct walk {
    const char *first;  /* the query up to the prefix: "list-type=2&prefix=" */
    const char *folder; /* follows the prefix of the store */
    const char *marker; /* "&continuation-token=" */
    const char *marker_id;
    const char *result;
};

static enum hf_status make_query(struct hf_scope *s, struct hf_blobs *blobs,
                                 const struct walk *walk, const struct page *last,
                                 struct hf_str *query)
{
    struct hf__buf buf = {.scope = s};
    struct hf_str prefix;

    TRY(hf__s3_key(s, blobs, walk->folder, HF_STR(""), &prefix));
    hf__buf_put_str(&buf, hf_str_from(walk->first));
    hf__buf_put_url(&buf, prefix, "");
    if (last && last->next.len) {
        hf__buf_put_str(&buf, hf_str_from(walk->marker));
        hf__buf_put_url(&buf, last->next, "");
    }
    if (last && last->next_id.len && walk->marker_id) {
        hf__buf_put_str(&buf, hf_str_from(walk->marker_id));
        hf__buf_put_url(&buf, last->next_id, "");
    }
    if (buf.failed)
        return hf__fail_nomem(s);
    *query = hf_str_of((const char *)buf.ptr, buf.len);
    return HF_OK;
}

static enum hf_status each_entry(struct hf_scope *s, struct hf_blobs *blobs,
                                 const struct walk *walk, entry_fn *fn, void *user)
{
    struct hf_scope *scopes[2] = {hf_scope_new(&blobs->env), hf_scope_new(&blobs->env)};
    struct page pages[2];
    const struct page *last = NULL;
    enum hf_status status = scopes[0] && scopes[1] ? HF_OK : hf__fail_nomem(s);

    for (unsigned which = 0; status == HF_OK; which = !which) {
        struct hf_scope *scope = scopes[which];
        struct page *page = &pages[which];
        struct hf_str query = {0};

        assert(page != last);
        hf_scope_reset(scope);
        hf__scope_follow(scope, s);
        status = make_query(scope, blobs, walk, last, &query);
        if (status == HF_OK)
            status = read_page(scope, blobs, query, walk->result, page);
        if (status != HF_OK) {
            status = hf__s3_hand_on(s, scope);
            break;
        }
        if (page->more && last && hf_str_equal(page->next, last->next) &&
            hf_str_equal(page->next_id, last->next_id)) {
            status = hf__s3_unreadable(s, hf__s3_of(blobs), "repeats the previous page of a list");
            break;
        }
        for (size_t i = 0; i < page->len && status == HF_OK; i++)
            status = fn(s, blobs, &page->list[i], user);
        if (!page->more)
            break;
        last = page;
    }
    hf_scope_free(scopes[0]);
    hf_scope_free(scopes[1]);
    return status;
}

/* Of this store alone, not of its parts, and not of its trash. */
static const struct walk objects = {.first = "delimiter=%2F&list-type=2&prefix=",
                                    .folder = "",
                                    .marker = "&continuation-token=",
                                    .result = "ListBucketResult"};
static const struct walk trash = {.first = "delimiter=%2F&list-type=2&prefix=",
                                  .folder = S3_TRASH,
                                  .marker = "&continuation-token=",
                                  .result = "ListBucketResult"};
static const struct walk uploads = {.first = "uploads=&prefix=",
                                    .folder = "",
                                    .marker = "&key-marker=",
                                    .marker_id = "&upload-id-marker=",
                                    .result = "ListMultipartUploadsResult"};

/* Which blob is it, if any, and is it in the trash? */
static bool is_blob(struct hf_blobs *blobs, const struct entry *entry, struct hf_str *digest,
                    bool *trashed)
{
    struct hf_str rest;

    if (!str_after(entry->key, ((struct s3_blobs *)(void *)blobs)->prefix, &rest))
        return false;
    *trashed = str_after(rest, HF_STR(S3_TRASH), &rest);
    *digest = rest;
    return hf__blob_is_digest(rest);
}

struct listing {
    hf_blob_list_fn *fn;
    void *user;
};

static enum hf_status list_entry(struct hf_scope *s, struct hf_blobs *blobs,
                                 const struct entry *entry, void *user)
{
    struct listing *l = user;
    struct hf_str digest;
    bool trashed;

    if (!is_blob(blobs, entry, &digest, &trashed) || trashed)
        return HF_OK;
    return l->fn(
        s, &(struct hf_blob_info){.digest = digest, .size = entry->size, .put_us = entry->at_us},
        l->user);
}

enum hf_status hf__s3_list(struct hf_scope *s, struct hf_blobs *blobs, hf_blob_list_fn *fn,
                           void *user)
{
    struct listing l = {.fn = fn, .user = user};

    return each_entry(s, blobs, &objects, list_entry, &l);
}

struct naming {
    s3_name_fn *fn;
    void *user;
};

static enum hf_status name_entry(struct hf_scope *s, struct hf_blobs *blobs,
                                 const struct entry *entry, void *user)
{
    struct naming *n = user;
    struct hf_str name;

    if (!str_after(entry->key, ((struct s3_blobs *)(void *)blobs)->prefix, &name))
        return HF_OK;
    return n->fn(s, name, entry->size, n->user);
}

enum hf_status hf__s3_names(struct hf_scope *s, struct hf_blobs *blobs, const char *folder,
                            s3_name_fn *fn, void *user)
{
    const struct walk names = {.first = "delimiter=%2F&list-type=2&prefix=",
                               .folder = folder,
                               .marker = "&continuation-token=",
                               .result = "ListBucketResult"};
    struct naming n = {.fn = fn, .user = user};

    return each_entry(s, blobs, &names, name_entry, &n);
}

/* ---- sweeping ------------------------------------------------------------------------------- */

struct sweep {
    const struct blob_sweep *how;
    uint64_t removed;
};

/* Copy the object to its new place, then remove it from the old one. */
static enum hf_status object_move(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                                  uint64_t size, const char *from, const char *to)
{
    struct s3 *s3 = hf__s3_of(blobs);
    struct hf_str source, target;
    struct s3_answer answer;
    enum hf_status status;

    TRY(hf__s3_key(s, blobs, from, digest, &source));
    TRY(hf__s3_key(s, blobs, to, digest, &target));
    status = hf__s3_copy(s, s3, source, target, size, &answer);
    if (status == HF_NOT_FOUND && !str_is(answer.code, "NoSuchBucket")) {
        hf__scope_error_clear(s); /* another process was faster */
        return HF_OK;
    }
    TRY(status);
    hf__kill_point("blob_copied");
    return hf__s3_remove(s, s3, source);
}

/* Ask for the age again: the list may be older than the newest put. */
static enum hf_status is_still_old(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                                   int64_t before_us, bool *old)
{
    struct hf_str key;
    uint64_t size;
    int64_t age_us = -1;
    bool there;

    TRY(hf__s3_key(s, blobs, "", digest, &key));
    TRY(hf__s3_head(s, hf__s3_of(blobs), key, &there, &size, &age_us));
    *old = there && (age_us < 0 || hf__env_wall_us(&blobs->env) - age_us < before_us);
    return HF_OK;
}

static enum hf_status act_on(struct hf_scope *s, struct hf_blobs *blobs, const struct entry *entry,
                             struct hf_str digest, bool trashed, bool used, struct sweep *sweep)
{
    struct hf_str key;
    bool old;

    if (trashed && used)
        return object_move(s, blobs, digest, entry->size, S3_TRASH, "");
    if (trashed) {
        TRY(hf__s3_key(s, blobs, S3_TRASH, digest, &key));
        TRY(hf__s3_remove(s, hf__s3_of(blobs), key));
        sweep->removed++;
        return HF_OK;
    }
    if (used)
        return HF_OK;
    TRY(is_still_old(s, blobs, digest, sweep->how->before_us, &old));
    return old ? object_move(s, blobs, digest, entry->size, "", S3_TRASH) : HF_OK;
}

static enum hf_status sweep_entry(struct hf_scope *s, struct hf_blobs *blobs,
                                  const struct entry *entry, void *user)
{
    struct sweep *sweep = user;
    struct hf_str digest;
    struct hf__mark mark;
    bool trashed;
    bool used = true;

    TRY(hf__scope_alive(s));
    if (!is_blob(blobs, entry, &digest, &trashed) || entry->at_us >= sweep->how->before_us)
        return HF_OK;
    TRY(sweep->how->used(s, digest, &used, sweep->how->user));
    mark = hf__scope_mark(s); /* what the caller allocated stays */
    TRY(act_on(s, blobs, entry, digest, trashed, used, sweep));
    hf__scope_rewind(s, mark);
    return HF_OK;
}

enum hf_status hf__s3_sweep(struct hf_scope *s, struct hf_blobs *blobs,
                            const struct blob_sweep *how, uint64_t *removed)
{
    struct sweep sweep = {.how = how};
    enum hf_status status = each_entry(s, blobs, &trash, sweep_entry, &sweep);

    if (status == HF_OK)
        status = each_entry(s, blobs, &objects, sweep_entry, &sweep);
    *removed = sweep.removed;
    return status;
}

/* (2) */
static enum hf_status upload_abort(struct hf_scope *s, struct hf_blobs *blobs,
                                   const struct entry *entry, void *user)
{
    struct s3_call call = {.method = "DELETE", .key = entry->key};
    struct hf__mark mark = hf__scope_mark(s);
    struct s3_answer answer;
    struct hf_str digest;
    bool trashed;
    enum hf_status status;

    if (!is_blob(blobs, entry, &digest, &trashed) || entry->at_us >= *(const int64_t *)user)
        return HF_OK;
    call.query = hf__s3_upload_query(s, 0, entry->id);
    if (!call.query.ptr)
        return hf__fail_nomem(s);
    status = hf__s3_call(s, hf__s3_of(blobs), &call, &answer);
    if (status != HF_OK && status != HF_NOT_FOUND)
        return status;
    hf__scope_error_clear(s); /* another process has aborted it */
    hf__scope_rewind(s, mark);
    return HF_OK;
}

enum hf_status hf__s3_remove_leftovers(struct hf_scope *s, struct hf_blobs *blobs,
                                       int64_t before_us)
{
    enum hf_status status = each_entry(s, blobs, &uploads, upload_abort, &before_us);

    if (status != HF_UNSUPPORTED)
        return status;
    hf__scope_error_clear(s); /* a service without lists of uploads has to expire them itself */
    return HF_OK;
}
