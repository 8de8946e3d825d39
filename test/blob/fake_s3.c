/* test/blob/fake_s3.c: see fake_s3.h. Objects are an array, in the order of their keys. */
#include "fake_s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/sha.h>

#include "../http/signed.h"
#include "http/sign.h"

/* A request, taken apart. */
struct call {
    struct fake_s3 *fake;
    struct peer *peer;
    struct hf_scope *s;
    char method[8];
    char key[700];
    bool on_bucket;
    struct hf_str query;
    struct hf_bytes body;
    enum fake_mood mood;
};

static void wrong(struct fake_s3 *fake, const char *format, ...) HF_PRINTF(2, 3);

static void wrong(struct fake_s3 *fake, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    pthread_mutex_lock(&fake->lock);
    if (!fake->wrong[0])
        vsnprintf(fake->wrong, sizeof(fake->wrong), format, args);
    pthread_mutex_unlock(&fake->lock);
    va_end(args);
}

static int64_t now_s(const struct fake_s3 *fake)
{
    return (int64_t)time(NULL) + fake->clock_off_s;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void date_text(int64_t seconds, char *text, size_t size)
{
    time_t at = (time_t)seconds;
    struct tm tm;

    gmtime_r(&at, &tm);
    strftime(text, size, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

static void say(struct call *call, int status, const char *more, const void *body, size_t len)
{
    bool no_body = strcmp(call->method, "HEAD") == 0 || status == 204;
    char head[2048], date[80];

    date_text(now_s(call->fake), date, sizeof(date));
    snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\nDate: %s\r\n%s", status, date, more);
    peer_say(call->peer, head);
    if (status != 204) {
        snprintf(head, sizeof(head), "Content-Length: %zu\r\n", len);
        peer_say(call->peer, head);
    }
    peer_say(call->peer, "\r\n");
    if (!no_body)
        peer_send(call->peer, body, call->mood == CUT ? len / 2 : len);
}

static void say_text(struct call *call, int status, const char *more, const char *text)
{
    say(call, status, more, text, strlen(text));
}

static void refuse(struct call *call, int status, const char *code, const char *message)
{
    char body[1024];
    char more[128] = "";

    if (status == 301)
        snprintf(more, sizeof(more), "x-amz-bucket-region: %s\r\n", call->fake->region);
    snprintf(body, sizeof(body),
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s"
             "</Message><RequestId>1</RequestId></Error>",
             code, message);
    if (strcmp(call->method, "HEAD") == 0)
        say(call, status, more, "", 0);
    else
        say_text(call, status, more, body);
}

/* ---- objects -------------------------------------------------------------------------------- */

static struct fake_object *find(struct fake_s3 *fake, const char *key)
{
    for (size_t i = 0; i < fake->objects_len; i++)
        if (strcmp(fake->objects[i].key, key) == 0)
            return &fake->objects[i];
    return NULL;
}

struct fake_object *fake_find(struct fake_s3 *fake, const char *key)
{
    struct fake_object *object;

    pthread_mutex_lock(&fake->lock);
    object = find(fake, key);
    pthread_mutex_unlock(&fake->lock);
    return object;
}

static void store(struct fake_s3 *fake, const char *key, const void *bytes, size_t len)
{
    struct fake_object *object = find(fake, key);
    uint8_t *copy = malloc(len + 1);

    memcpy(copy, bytes, len);
    if (!object) {
        size_t at = 0;

        while (at < fake->objects_len && strcmp(fake->objects[at].key, key) < 0)
            at++;
        if (fake->objects_len == FAKE_OBJECTS)
            abort();
        memmove(fake->objects + at + 1, fake->objects + at,
                (fake->objects_len - at) * sizeof(fake->objects[0]));
        fake->objects_len++;
        object = &fake->objects[at];
        memset(object, 0, sizeof(*object));
        snprintf(object->key, sizeof(object->key), "%s", key);
    }
    free(object->bytes);
    object->bytes = copy;
    object->len = len;
    object->at_s = now_s(fake);
}

void fake_add(struct fake_s3 *fake, const char *key, const char *text)
{
    pthread_mutex_lock(&fake->lock);
    store(fake, key, text, strlen(text));
    pthread_mutex_unlock(&fake->lock);
}

static void drop(struct fake_s3 *fake, const char *key)
{
    struct fake_object *object = find(fake, key);
    size_t at;

    if (!object)
        return;
    at = (size_t)(object - fake->objects);
    free(object->bytes);
    memmove(object, object + 1, (fake->objects_len - at - 1) * sizeof(*object));
    fake->objects_len--;
}

static struct fake_upload *find_upload(struct fake_s3 *fake, struct hf_str id, const char *key)
{
    for (size_t i = 0; i < FAKE_UPLOADS; i++)
        if (fake->uploads[i].id[0] && hf_str_equal(id, hf_str_from(fake->uploads[i].id)) &&
            strcmp(fake->uploads[i].key, key) == 0)
            return &fake->uploads[i];
    return NULL;
}

static void drop_upload(struct fake_upload *upload)
{
    for (size_t i = 0; i < FAKE_PARTS; i++)
        free(upload->parts[i].bytes);
    memset(upload, 0, sizeof(*upload));
}

size_t fake_uploads(struct fake_s3 *fake)
{
    size_t count = 0;

    pthread_mutex_lock(&fake->lock);
    for (size_t i = 0; i < FAKE_UPLOADS; i++)
        count += fake->uploads[i].id[0] != '\0';
    pthread_mutex_unlock(&fake->lock);
    return count;
}

static struct hf_str param(const struct call *call, const char *name)
{
    struct hf_str value = {NULL, 0};

    if (hf__sign_param(call->s, call->query, name, &value) != HF_OK)
        abort();
    return value;
}

/* ---- operations, with the lock held --------------------------------------------------------- */

static void get(struct call *call)
{
    struct fake_s3 *fake = call->fake;
    struct fake_object *object = find(fake, call->key);
    struct hf_str range = hf__http_field(&call->peer->reader.head, "range");
    unsigned long long from = 0, to = 0;
    char more[400], modified[80];

    if (!object) {
        refuse(call, 404, "NoSuchKey", "The specified key does not exist.");
        return;
    }
    date_text(object->at_s, modified, sizeof(modified));
    snprintf(more, sizeof(more), "ETag: \"x\"\r\nLast-Modified: %s\r\n", modified);
    if (call->mood == PACKED)
        snprintf(more, sizeof(more), "Content-Encoding: gzip\r\n");
    if (!range.ptr || fake->no_ranges) {
        say(call, 200, more, object->bytes, object->len);
        return;
    }
    if (sscanf(range.ptr, "bytes=%llu-%llu\r", &from, &to) != 2 || to < from)
        wrong(fake, "the range %.*s", HF_FMT(range));
    if (from >= object->len) {
        refuse(call, 416, "InvalidRange", "The requested range is not satisfiable");
        return;
    }
    if (to >= object->len)
        to = object->len - 1;
    if (call->mood == WRONG_RANGE)
        from++;
    snprintf(more + strlen(more), sizeof(more) - strlen(more),
             "Content-Range: bytes %llu-%llu/%zu\r\n", from, to, object->len);
    say(call, 206, more, object->bytes + from, to - from + 1);
}

static void head(struct call *call)
{
    struct fake_object *object = find(call->fake, call->key);
    char more[200], modified[80];

    if (!object) {
        refuse(call, 404, "", "");
        return;
    }
    date_text(object->at_s, modified, sizeof(modified));
    snprintf(more, sizeof(more), "Last-Modified: %s\r\n", modified);
    say(call, 200, more, "", object->len);
}

static void copy_object(struct call *call, struct hf_str source)
{
    struct fake_s3 *fake = call->fake;
    struct hf_str directive = hf__http_field(&call->peer->reader.head, "x-amz-metadata-directive");
    struct fake_object *object;
    struct hf_str from, rest = {NULL, 0};
    char key[700], prefix[100];
    uint8_t *bytes;
    size_t len;

    atomic_fetch_add(&fake->copies, 1);
    snprintf(prefix, sizeof(prefix), "/%s/", fake->bucket);
    if (hf__sign_param(call->s, hf_scope_format(call->s, "x=%.*s", HF_FMT(source)), "x", &from) !=
        HF_OK)
        abort();
    if (!str_after(from, hf_str_from(prefix), &rest))
        wrong(fake, "copied from %.*s", HF_FMT(from));
    snprintf(key, sizeof(key), "%.*s", HF_FMT(rest));
    if (strcmp(key, call->key) == 0 && !hf_str_equal(directive, HF_STR("REPLACE")))
        wrong(fake, "copied onto itself without replacing anything");
    object = find(fake, key);
    if (!object) {
        refuse(call, 404, "NoSuchKey", "The specified key does not exist.");
        return;
    }
    if (call->mood == LATE_ERROR) {
        say_text(call, 200, "",
                 "<Error><Code>InternalError</Code><Message>Sorry.</Message></Error>");
        return;
    }
    len = object->len;
    bytes = malloc(len + 1);
    memcpy(bytes, object->bytes, len);
    store(fake, call->key, bytes, len);
    free(bytes);
    say_text(call, 200, "",
             "<?xml version=\"1.0\"?>\n<CopyObjectResult><ETag>&quot;x&quot;</ETag>"
             "</CopyObjectResult>");
}

static void put_part(struct call *call, struct hf_str id)
{
    struct fake_s3 *fake = call->fake;
    struct fake_upload *upload = find_upload(fake, id, call->key);
    size_t number = strtoul(param(call, "partNumber").ptr, NULL, 10);
    char more[80];

    atomic_fetch_add(&fake->part_puts, 1);
    if (call->mood == BAD_PART) {
        refuse(call, 400, "InvalidPart", "no such part");
        return;
    }
    if (!upload) {
        refuse(call, 404, "NoSuchUpload", "The specified upload does not exist.");
        return;
    }
    if (number < 1 || number > FAKE_PARTS)
        abort();
    free(upload->parts[number - 1].bytes);
    upload->parts[number - 1].bytes = malloc(call->body.len + 1);
    memcpy(upload->parts[number - 1].bytes, call->body.ptr, call->body.len);
    upload->parts[number - 1].len = call->body.len;
    snprintf(more, sizeof(more), "ETag: \"part-%zu\"\r\n", number);
    say(call, 200, more, "", 0);
}

static void begin_upload(struct call *call)
{
    struct fake_s3 *fake = call->fake;
    char body[1024];

    for (size_t i = 0; i < FAKE_UPLOADS; i++) {
        struct fake_upload *upload = &fake->uploads[i];

        if (upload->id[0])
            continue;
        snprintf(upload->id, sizeof(upload->id), "id+%d/=&", ++fake->ids);
        snprintf(upload->key, sizeof(upload->key), "%s", call->key);
        upload->at_s = now_s(fake);
        snprintf(body, sizeof(body),
                 "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>"
                 "<UploadId>id+%d/=&amp;</UploadId></InitiateMultipartUploadResult>",
                 fake->ids);
        say_text(call, 200, "", body);
        return;
    }
    abort();
}

static void complete_upload(struct call *call, struct hf_str id)
{
    struct fake_s3 *fake = call->fake;
    struct fake_upload *upload = find_upload(fake, id, call->key);
    size_t parts = 0, len = 0, at = 0;
    char expected[FAKE_PARTS * 80] = "";
    uint8_t *all;

    if (!upload) {
        refuse(call, 404, "NoSuchUpload", "The specified upload does not exist.");
        return;
    }
    if (call->mood == LATE_ERROR) {
        say_text(call, 200, "",
                 "  \n<Error><Code>InternalError</Code><Message>Sorry.</Message></Error>");
        return;
    }
    while (parts < FAKE_PARTS && upload->parts[parts].bytes)
        len += upload->parts[parts++].len;
    for (size_t i = 0; i + 1 < parts; i++)
        if (upload->parts[i].len < 5 * 1024 * 1024)
            wrong(fake, "the part %zu is too small", i + 1);
    for (size_t i = 0; i < parts; i++)
        snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected),
                 "<Part><PartNumber>%zu</PartNumber><ETag>\"part-%zu\"</ETag></Part>", i + 1,
                 i + 1);
    if (!memmem(call->body.ptr, call->body.len, expected, strlen(expected)))
        wrong(fake, "completed with something else: %.*s", (int)call->body.len,
              (const char *)call->body.ptr);
    all = malloc(len + 1);
    for (size_t i = 0; i < parts; at += upload->parts[i++].len)
        memcpy(all + at, upload->parts[i].bytes, upload->parts[i].len);
    store(fake, call->key, all, len);
    free(all);
    drop_upload(upload);
    say_text(call, 200, "",
             "<?xml version=\"1.0\"?>\n   \n<CompleteMultipartUploadResult><ETag>x</ETag>"
             "</CompleteMultipartUploadResult>");
}

static void time_text(int64_t seconds, char text[32])
{
    time_t at = (time_t)seconds;
    struct tm tm;

    gmtime_r(&at, &tm);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%S.000Z", &tm);
}

static void list(struct call *call)
{
    struct fake_s3 *fake = call->fake;
    size_t size = 512 * 1024, page = fake->page ? (size_t)fake->page : 1000, sent = 0;
    struct hf_str prefix = param(call, "prefix"), token = param(call, "continuation-token"), rest;
    char *text = calloc(1, size), at[32];
    const char *last = NULL;
    bool more = false;

    atomic_fetch_add(&fake->lists, 1);
    if (!hf_str_equal(param(call, "list-type"), HF_STR("2")))
        wrong(fake, "an old list");
    if (!fake->deep_lists && !hf_str_equal(param(call, "delimiter"), HF_STR("/")))
        wrong(fake, "a list of all that is below");
    snprintf(text, size,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
             "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><Prefix/>"
             "<CommonPrefixes><Prefix>x/</Prefix></CommonPrefixes>");
    for (size_t i = 0; i < fake->objects_len; i++) {
        struct fake_object *object = &fake->objects[i];

        if (!str_after(hf_str_from(object->key), prefix, &rest) ||
            (token.ptr && strncmp(object->key, token.ptr, token.len) <= 0 && !fake->same_page))
            continue;
        if (!fake->deep_lists &&
            memchr(rest.ptr, '/', rest.len)) /* one prefix, which counts and is not looked at */
            continue;
        if (sent == page) {
            more = true;
            break;
        }
        time_text(object->at_s, at);
        snprintf(text + strlen(text), size - strlen(text),
                 "<Contents><Key>%s</Key><LastModified>%s</LastModified>"
                 "<ETag>&quot;x&quot;</ETag><Size>%zu</Size><StorageClass>STANDARD</StorageClass>"
                 "</Contents>",
                 object->key, at, object->len);
        last = object->key;
        sent++;
    }
    snprintf(text + strlen(text), size - strlen(text), "<IsTruncated>%s</IsTruncated>",
             more || fake->same_page ? "true" : "false");
    if (more || fake->same_page)
        snprintf(text + strlen(text), size - strlen(text),
                 "<NextContinuationToken>%s</NextContinuationToken>", last);
    snprintf(text + strlen(text), size - strlen(text), "</ListBucketResult>");
    say_text(call, 200, "", text);
    free(text);
}

static void list_uploads(struct call *call)
{
    struct fake_s3 *fake = call->fake;
    size_t size = 64 * 1024;
    char *text = calloc(1, size), at[32];

    snprintf(text, size, "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>");
    for (size_t i = 0; i < FAKE_UPLOADS; i++) {
        struct fake_upload *upload = &fake->uploads[i];

        if (!upload->id[0])
            continue;
        time_text(upload->at_s, at);
        snprintf(text + strlen(text), size - strlen(text),
                 "<Upload><Key>%s</Key><UploadId>%.*s&amp;</UploadId><Initiator><ID>1</ID>"
                 "</Initiator><Initiated>%s</Initiated></Upload>",
                 upload->key, (int)strlen(upload->id) - 1, upload->id, at);
    }
    snprintf(text + strlen(text), size - strlen(text), "</ListMultipartUploadsResult>");
    say_text(call, 200, "", text);
    free(text);
}

static void on_bucket(struct call *call)
{
    struct fake_s3 *fake = call->fake;
    const char *constraint = strcmp(fake->region, "us-east-1") == 0 ? NULL : fake->region;

    if (strcmp(call->method, "PUT") == 0) {
        atomic_fetch_add(&fake->bucket_puts, 1);
        if (fake->there) {
            refuse(call, 409, "BucketAlreadyOwnedByYou", "It is yours.");
            return;
        }
        if (constraint ? !memmem(call->body.ptr, call->body.len, constraint, strlen(constraint))
                       : call->body.len > 0)
            wrong(fake, "the constraint of a bucket");
        fake->there = true;
        say(call, 200, "", "", 0);
    } else if (!fake->there) {
        refuse(call, 404, "NoSuchBucket", "The specified bucket does not exist");
    } else if (strcmp(call->method, "HEAD") == 0) {
        say(call, 200, "", "", 0);
    } else if (strcmp(call->method, "GET") == 0 && param(call, "uploads").ptr) {
        list_uploads(call);
    } else if (strcmp(call->method, "GET") == 0) {
        list(call);
    } else {
        wrong(fake, "%s of the bucket", call->method);
    }
}

static void on_object(struct call *call)
{
    struct fake_s3 *fake = call->fake;
    struct hf_str id = param(call, "uploadId");
    struct hf_str source = hf__http_field(&call->peer->reader.head, "x-amz-copy-source");
    struct hf_str once = hf__http_field(&call->peer->reader.head, "if-none-match");
    struct fake_upload *upload;

    if (!fake->there) {
        refuse(call, 404, "NoSuchBucket", "The specified bucket does not exist");
    } else if (strcmp(call->method, "GET") == 0) {
        atomic_fetch_add(&fake->gets, 1);
        get(call);
    } else if (strcmp(call->method, "HEAD") == 0) {
        atomic_fetch_add(&fake->heads, 1);
        head(call);
    } else if (strcmp(call->method, "PUT") == 0 && source.ptr) {
        copy_object(call, source);
    } else if (strcmp(call->method, "PUT") == 0 && id.ptr) {
        put_part(call, id);
    } else if (strcmp(call->method, "PUT") == 0 && once.ptr && fake->no_conditions) {
        refuse(call, 501, "NotImplemented",
               "A header you provided implies functionality that is "
               "not implemented");
    } else if (strcmp(call->method, "PUT") == 0 && once.ptr && find(fake, call->key)) {
        if (!hf_str_equal(once, HF_STR("*")))
            wrong(fake, "If-None-Match: %.*s", HF_FMT(once));
        refuse(call, 412, "PreconditionFailed",
               "At least one of the pre-conditions you specified did not hold");
    } else if (strcmp(call->method, "PUT") == 0) {
        atomic_fetch_add(&fake->puts, 1);
        store(fake, call->key, call->body.ptr, call->body.len);
        say(call, 200, "ETag: \"x\"\r\n", "", 0);
    } else if (strcmp(call->method, "POST") == 0 && id.ptr) {
        complete_upload(call, id);
    } else if (strcmp(call->method, "POST") == 0 && param(call, "uploads").ptr) {
        begin_upload(call);
    } else if (strcmp(call->method, "DELETE") == 0 && id.ptr) {
        upload = find_upload(fake, id, call->key);
        if (upload)
            drop_upload(upload);
        say(call, 204, "", "", 0);
    } else if (strcmp(call->method, "DELETE") == 0) {
        atomic_fetch_add(&fake->deletes, 1);
        drop(fake, call->key);
        say(call, 204, "", "", 0);
    } else {
        wrong(fake, "%s of an object", call->method);
    }
}

/* ---- calls ---------------------------------------------------------------------------------- */

static bool check(struct call *call)
{
    struct fake_s3 *fake = call->fake;
    const struct http_reader *reader = &call->peer->reader;
    struct hf_str hash = hf__http_field(&reader->head, "x-amz-content-sha256");
    const struct signed_by by = {.secret = HF_STR(FAKE_SECRET),
                                 .region = hf_str_from(fake->region),
                                 .service = HF_STR("s3"),
                                 .payload = hash};
    struct hf_str region_there = hf__http_field(&reader->head, "authorization");
    uint8_t bytes[SHA256_DIGEST_LENGTH];
    char hex[65], why[400], scope[80];
    int64_t at_s;

    SHA256(reader->body.ptr, reader->body.len, bytes);
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    if (!hf_str_equal(hash, hf_str_from(hex)))
        wrong(fake, "the hash of the body");
    snprintf(scope, sizeof(scope), "/%s/s3/aws4_request", fake->region);
    if (!memmem(region_there.ptr, region_there.len, scope, strlen(scope))) {
        refuse(call, 301, "PermanentRedirect", "elsewhere");
        return false;
    }
    at_s = signed_check(reader, &by, why, sizeof(why));
    if (!at_s)
        wrong(fake, "%s", why);
    if (at_s > now_s(fake) - 900 && at_s < now_s(fake) + 900)
        return true;
    refuse(call, 403, "RequestTimeTooSkewed", "The difference is too large.");
    return false;
}

static void take_apart(struct call *call)
{
    const struct http_head *h = &call->peer->reader.head;
    struct hf_str path = h->path, decoded = {NULL, 0};
    struct hf_str bucket;

    snprintf(call->method, sizeof(call->method), "%.*s", HF_FMT(h->method));
    call->query = h->query;
    call->body = call->peer->reader.body;
    str_cut(&path, '/');
    bucket = str_cut(&path, '/');
    if (!hf_str_equal(bucket, hf_str_from(call->fake->bucket)))
        wrong(call->fake, "another bucket: %.*s", HF_FMT(h->path));
    if (hf__sign_param(call->s, hf_scope_format(call->s, "x=%.*s", HF_FMT(path)), "x", &decoded) !=
        HF_OK)
        abort();
    call->on_bucket = decoded.len == 0;
    snprintf(call->key, sizeof(call->key), "%.*s", HF_FMT(decoded));
    if (memmem(h->path.ptr, h->path.len, "//", 2))
        wrong(call->fake, "two slashes: %.*s", HF_FMT(h->path));
    if ((strcmp(call->method, "PUT") == 0 || strcmp(call->method, "POST") == 0) &&
        !hf__http_field(h, "content-length").ptr)
        wrong(call->fake, "no length");
}

static void work(struct call *call)
{
    struct fake_s3 *fake = call->fake;

    pthread_mutex_lock(&fake->lock);
    snprintf(fake->last_body, sizeof(fake->last_body), "%.*s", (int)call->body.len,
             call->body.len ? (const char *)call->body.ptr : "");
    if (fake->forbidden)
        refuse(call, 403, "AccessDenied", "Access Denied");
    else if (call->on_bucket)
        on_bucket(call);
    else
        on_object(call);
    pthread_mutex_unlock(&fake->lock);
}

/* What was said is thrown away: into a peer that is closed already. */
static void work_silently(struct call *call)
{
    struct peer deaf = *call->peer;
    struct peer *peer = call->peer;

    deaf.fd = -1;
    call->peer = &deaf;
    work(call);
    call->peer = peer;
}

static bool serve_mood(struct call *call)
{
    switch (call->mood) {
    case BROKEN_AFTER:
        work_silently(call);
        refuse(call, 500, "InternalError", "We encountered an internal error.");
        return true;
    case BROKEN:
        refuse(call, 500, "InternalError", "We encountered an internal error.");
        return true;
    case SLOW_DOWN:
        refuse(call, 503, "SlowDown", "Please reduce your request rate.");
        return true;
    case GATEWAY:
        say_text(call, 502, "", "<html><body>Bad gateway");
        return true;
    case HANG_UP:
        return false;
    case LOST:
        work_silently(call);
        return false;
    case GARBAGE:
        say_text(call, 200, "", "<html>It works!");
        return true;
    case DENIED:
        refuse(call, 403, "AccessDenied", "Access Denied");
        return true;
    case EXPIRED:
        refuse(call, 400, "ExpiredToken", "The provided token has expired.");
        return true;
    case FULL:
        refuse(call, 507, "XMinioStorageFull",
               "Storage backend has reached its minimum free "
               "drive threshold.");
        return true;
    case LEAK:
        refuse(call, 403, "SignatureDoesNotMatch", "it should have been " FAKE_SECRET);
        return true;
    default:
        work(call);
        return call->mood != CUT;
    }
}

static bool serve_call(struct peer *peer)
{
    struct fake_s3 *fake = peer->listener->user;
    size_t nth = (size_t)atomic_fetch_add(&fake->calls, 1);
    struct call call = {.fake = fake, .peer = peer, .s = hf_scope_new(NULL), .mood = WELL};
    bool is_get, goes_on = true;

    pthread_mutex_lock(&fake->lock);
    if (nth < fake->moods_len)
        call.mood = fake->moods[nth];
    pthread_mutex_unlock(&fake->lock);
    take_apart(&call);
    is_get = strcmp(call.method, "GET") == 0 && !call.on_bucket;
    if (is_get && fake->slow_ms) {
        int now = atomic_fetch_add(&fake->under_way, 1) + 1, most = atomic_load(&fake->most);

        while (now > most && !atomic_compare_exchange_weak(&fake->most, &most, now))
            continue;
        sleep_ms(fake->slow_ms);
    }
    if (fake->slow_copy_ms && hf__http_field(&peer->reader.head, "x-amz-copy-source").ptr)
        sleep_ms(fake->slow_copy_ms);
    if (check(&call))
        goes_on = serve_mood(&call);
    if (is_get && fake->slow_ms)
        atomic_fetch_sub(&fake->under_way, 1);
    hf_scope_free(call.s);
    return goes_on;
}

static void serve(struct peer *peer)
{
    while (peer_read(peer) && serve_call(peer))
        continue;
}

/* ---- for tests ------------------------------------------------------------------------------ */

void fake_open(struct fake_s3 *fake)
{
    memset(fake, 0, sizeof(*fake));
    fake->bucket = "test-bucket";
    fake->region = "eu-central-1";
    fake->there = true;
    pthread_mutex_init(&fake->lock, NULL);
    listener_open(&fake->listener, serve, fake, NULL);
}

void fake_close(struct fake_s3 *fake)
{
    listener_close(&fake->listener);
    for (size_t i = 0; i < fake->objects_len; i++)
        free(fake->objects[i].bytes);
    for (size_t i = 0; i < FAKE_UPLOADS; i++)
        drop_upload(&fake->uploads[i]);
    pthread_mutex_destroy(&fake->lock);
    if (fake->wrong[0])
        fprintf(stderr, "wrong: %s\n", fake->wrong);
    CHECK(!fake->wrong[0]);
}

void fake_moods(struct fake_s3 *fake, const enum fake_mood *moods, size_t len)
{
    size_t from = (size_t)atomic_load(&fake->calls);

    pthread_mutex_lock(&fake->lock);
    for (size_t i = fake->moods_len; i < from; i++)
        fake->moods[i] = WELL;
    memcpy(fake->moods + from, moods, len * sizeof(*moods));
    fake->moods_len = from + len;
    pthread_mutex_unlock(&fake->lock);
}
