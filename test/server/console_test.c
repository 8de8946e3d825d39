/*
 * server/console_test.c: /console/: the files, and who gets them; (n) is of server/console/console.h.
 */
#include "help.h"

#include <libdeflate.h>
#include <sys/stat.h>

#include "base/fnv.h"
#include "server/console/console.h"

enum { UNPACKED_MAX = 4 * 1024 * 1024 }; /* bytes of a file of the console */

static void get(struct line *c, struct hf_scope *s, const char *method, const char *path,
                const char *fields)
{
    line_text(c, hf_scope_format(s, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method, path,
                                 fields)
                     .ptr);
    if (strcmp(method, "HEAD") == 0)
        line_read_head(c);
    else
        line_read(c);
}

/* ---- files ---------------------------------------------------------------------------------- */

TEST(console, its_page_is_part_of_the_program)
{
    struct site site;
    struct line c;
    struct hf_str etag, len;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    get(&c, site.s, "GET", "/console/", "");
    CHECK_INT(200, c.status);
    CHECK(contains(c.body, "<!doctype html>"));
    CHECK_STR("text/html; charset=utf-8", line_field(&c, "Content-Type"));
    CHECK_STR("nosniff", line_field(&c, "X-Content-Type-Options"));
    CHECK_STR("no-referrer", line_field(&c, "Referrer-Policy"));
    CHECK_STR("no-cache", line_field(&c, "Cache-Control"));
    CHECK(contains(line_field(&c, "Content-Security-Policy"), "default-src 'none'; "));
    CHECK(contains(line_field(&c, "Content-Security-Policy"), "frame-ancestors 'none'"));
    CHECK(!line_field(&c, "Content-Encoding").ptr);
    CHECK(!line_field(&c, "x-amz-crc32").ptr);
    etag = hf_scope_copy(site.s, line_field(&c, "ETag"));
    len = hf_scope_copy(site.s, line_field(&c, "Content-Length"));

    get(&c, site.s, "HEAD", "/console/index.html?a=b", "");
    CHECK_INT(200, c.status);
    CHECK_STR(len.ptr, line_field(&c, "Content-Length"));
    CHECK_STR(etag.ptr, line_field(&c, "ETag"));

    get(&c, site.s, "GET", "/console", "");
    CHECK_INT(308, c.status);
    CHECK_STR("/console/", line_field(&c, "Location"));
    line_close(&c);
    site_close(&site);
}

TEST(console, who_has_a_file_does_not_get_it_again)
{
    struct site site;
    struct line c;
    struct hf_str etag;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    get(&c, site.s, "GET", "/console/", "");
    etag = hf_scope_copy(site.s, line_field(&c, "ETag"));
    line_text(&c, hf_scope_format(site.s,
                                  "GET /console/ HTTP/1.1\r\nHost: localhost\r\n"
                                  "If-None-Match: \"x\", %s\r\n\r\n",
                                  etag.ptr)
                      .ptr);
    line_read_head(&c);
    CHECK_INT(304, c.status);
    CHECK_STR(etag.ptr, line_field(&c, "ETag"));
    get(&c, site.s, "GET", "/console/", "If-None-Match: \"0123\"\r\n");
    CHECK_INT(200, c.status); /* and so nothing came behind the 304 */
    line_close(&c);
    site_close(&site);
}

TEST(console, files_are_sent_packed)
{
    struct libdeflate_decompressor *unpack = libdeflate_alloc_decompressor();
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    CHECK(hf__console_files_len > 0);
    for (size_t i = 0; i < hf__console_files_len; i++) {
        const struct console_file *file = &hf__console_files[i];
        const char *path = hf_scope_format(site.s, "/console/%s", file->path).ptr;
        uint8_t *out = hf_scope_alloc(site.s, UNPACKED_MAX);
        size_t len = 0;
        char etag[32];

        CHECK(!file->plain.ptr); /* or the program has it twice */
        get(&c, site.s, "GET", path, "Accept-Encoding: br, gzip\r\n");
        CHECK_INT(200, c.status);
        CHECK_STR("gzip", line_field(&c, "Content-Encoding"));
        CHECK_STR("Accept-Encoding", line_field(&c, "Vary"));
        CHECK(libdeflate_gzip_decompress(unpack, c.body.ptr, c.body.len, out, UNPACKED_MAX, &len) ==
              LIBDEFLATE_SUCCESS);
        CHECK_INT(c.body.len, file->packed.len);
        get(&c, site.s, "GET", path, "Accept-Encoding: deflate\r\n");
        CHECK(!line_field(&c, "Content-Encoding").ptr);
        CHECK_INT(len, c.body.len);
        CHECK(memcmp(out, c.body.ptr, len) == 0);
        snprintf(etag, sizeof(etag), "W/\"%016llx\"",
                 (unsigned long long)fnv_add(FNV_BEGIN, c.body.ptr, c.body.len));
        CHECK_STR(etag, line_field(&c, "ETag"));
    }
    libdeflate_free_decompressor(unpack);
    line_close(&c);
    site_close(&site);
}

static const char *const ways_out[] = {
    "/console/../serve.h",
    "/console/..%2fsecret",
    "/console/%2e%2e/secret",
    "/console/lib/../../secret",
    "/console//etc/passwd",
    "/console/.hidden.js",
    "/console/lib/.hidden.js",
    "/console/none.js",
    "/console/lib",
    "/console/lib/",
    "/console/index.html/",
    "/console/..",
    "/console/secret.txt",
    "/console/link.js",
    "/console/a//b.js",
    "/console/index.html%00.css",
    "/console/folder.js",
    "/console/api",
    "/console/pipe.js",
};

static void write_file(struct hf_scope *s, const char *folder, const char *name, const char *text)
{
    FILE *file = fopen(hf_scope_format(s, "%s/%s", folder, name).ptr, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(console, nothing_leads_out_of_its_folder)
{
    const char *root = test_directory(t);
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *folder = hf_scope_format(s, "%s/page", root).ptr;
    struct site site;
    struct line c;

    CHECK_INT(0, mkdir(folder, 0700));
    CHECK_INT(0, mkdir(hf_scope_format(s, "%s/lib", folder).ptr, 0700));
    CHECK_INT(0, mkdir(hf_scope_format(s, "%s/folder.js", folder).ptr, 0700));
    CHECK_INT(0, mkfifo(hf_scope_format(s, "%s/pipe.js", folder).ptr, 0600));
    write_file(s, root, "secret", "secret");
    write_file(s, root, "secret.js", "secret");
    write_file(s, folder, "index.html", "first");
    write_file(s, folder, "secret.txt", "secret");
    write_file(s, folder, ".hidden.js", "secret");
    write_file(s, folder, "lib/.hidden.js", "secret");
    write_file(s, folder, "lib/a-b.c.js", "");
    CHECK_INT(0, symlink("../secret.js", hf_scope_format(s, "%s/link.js", folder).ptr));
    for (int disk = 0; disk < 2; disk++) {
        site_open(t, &site,
                  &(struct server_options){.console = true,
                                           .console_dir =
                                               disk ? hf_str_from(folder) : (struct hf_str){0}});
        line_open(&site, &c);
        for (size_t i = 0; i < ARRAY_LEN(ways_out); i++) {
            get(&c, site.s, "GET", ways_out[i], "");
            if (c.status != 404 || contains(c.body, "secret"))
                fail_msg("%s gives %d", ways_out[i], c.status);
            CHECK_STR("nosniff", line_field(&c, "X-Content-Type-Options"));
        }
        line_close(&c);
        if (disk) { /* and it shows what is there now */
            line_open(&site, &c);
            get(&c, site.s, "GET", "/console/", "");
            CHECK_STR("first", c.body);
            write_file(s, folder, "index.html", "second");
            get(&c, site.s, "GET", "/console/", "Accept-Encoding: gzip\r\n");
            CHECK_STR("second", c.body);
            get(&c, site.s, "GET", "/console/lib/a-b.c.js", "");
            CHECK_INT(200, c.status);
            CHECK_STR("", c.body);
            line_close(&c);
        }
        site_close(&site);
    }
    hf_scope_free(s);
}

TEST(console, long_paths_are_answered)
{
    struct hf__buf path = {0};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    path.scope = site.s;
    hf__buf_put_str(&path, HF_STR("/console/"));
    for (int i = 0; i < 3000; i++)
        hf__buf_put_str(&path, HF_STR("a/.."));
    hf__buf_put(&path, "", 1);
    line_open(&site, &c);
    get(&c, site.s, "GET", (const char *)path.ptr, "");
    CHECK_INT(404, c.status);
    line_close(&c);
    site_close(&site);
}

TEST(console, files_are_only_read)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        get(&c, site.s, methods[i], "/console/", "Content-Length: 0\r\n");
        CHECK_INT(405, c.status);
        CHECK_STR("GET, HEAD", line_field(&c, "Allow"));
    }
    line_close(&c);
    site_close(&site);
}

TEST(console, it_is_off_unless_asked_for)
{
    static const char *const paths[] = {"/console", "/console/", "/console/api/info"};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        get(&c, site.s, "GET", paths[i], "");
        CHECK_INT(404, c.status);
        CHECK(contains(c.body, "--console on"));
    }
    get(&c, site.s, "GET", "/consoles", ""); /* which is not ours */
    CHECK(contains(c.body, "UnknownOperationException"));
    line_close(&c);
    site_close(&site);
}

/* ---- who may ask ---------------------------------------------------------------------------- */

/* (1): by what only browsers send, whatever --cors allows. */
TEST(console, other_pages_cannot_use_it)
{
    static const struct {
        const char *fields;
        int status;
    } cases[] = {
        {"", 200},
        {"Origin: http://localhost\r\n", 200},
        {"Sec-Fetch-Site: same-origin\r\n", 200},
        {"Sec-Fetch-Site: none\r\n", 200},
        {"Origin: http://evil\r\n", 403},
        {"Origin: null\r\n", 403},
        {"Origin: http://localhost:1\r\n", 403},
        {"Origin: https://localhost\r\n", 403},
        {"Sec-Fetch-Site: cross-site\r\n", 403},
        {"Sec-Fetch-Site: same-site\r\n", 403},
        {"Sec-Fetch-Site: \r\n", 403},
        {"Origin: http://localhost\r\nSec-Fetch-Site: cross-site\r\n", 403},
    };
    struct site site;
    struct line c;

    for (int cors = 0; cors < 2; cors++) {
        site_open(t, &site,
                  &(struct server_options){.console = true,
                                           .cors = cors ? HF_STR("*") : (struct hf_str){0}});
        line_open(&site, &c);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            get(&c, site.s, "GET", "/console/api/info", cases[i].fields);
            if (c.status != cases[i].status)
                fail_msg("%s gives %d", cases[i].fields, c.status);
            CHECK(c.status == 200 || !contains(c.body, "version"));
        }
        line_close(&c);
        site_close(&site);
    }
}

TEST(console, foreign_names_are_refused)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    line_text(&c, "GET /console/ HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    line_read(&c);
    CHECK_INT(403, c.status);
    line_text(&c, "GET /console/api/info HTTP/1.1\r\nHost: evil.example\r\n"
                  "Origin: http://evil.example\r\n\r\n");
    line_read(&c);
    CHECK_INT(403, c.status);
    CHECK(!contains(c.body, "version"));
    line_close(&c);
    site_close(&site);
}

/* ---- info ----------------------------------------------------------------------------------- */

TEST(console, it_says_what_this_is)
{
    static const char *const methods[] = {"lock.list", "outbox.show", NULL};
    struct site site;
    struct line c;

    site_open(t, &site,
              &(struct server_options){.console = true,
                                       .database = HF_STR("embedded:a\"b"),
                                       .region_shown = HF_STR("eu-north-1"),
                                       .methods = methods,
                                       .read_only = true});
    line_open(&site, &c);
    get(&c, site.s, "GET", "/console/api/info", "");
    CHECK_INT(200, c.status);
    CHECK_STR("application/json", line_field(&c, "Content-Type"));
    CHECK_STR("no-store", line_field(&c, "Cache-Control"));
    CHECK_STR(hf_scope_format(site.s,
                              "{\"version\":\"%s\",\"access\":\"open\",\"read_only\":true,"
                              "\"admin\":false,\"database\":{\"kind\":\"engine\",\"url\":"
                              "\"embedded:a\\\"b\"},\"region\":\"eu-north-1\","
                              "\"methods\":[\"lock.list\",\"outbox.show\"]}",
                              hf_version())
                  .ptr,
              c.body);
    get(&c, site.s, "GET", "/console/api/none", "");
    CHECK_INT(404, c.status);
    CHECK(contains(c.body, "{\"error\":{\"code\":\"HF_NOT_FOUND\""));
    get(&c, site.s, "DELETE", "/console/api/info", "");
    CHECK_INT(405, c.status);
    line_close(&c);
    site_close(&site);
}

/* (3) */
TEST(console, with_keys_it_says_no_more_than_that)
{
    const struct sign_credentials ann = {.access_key = HF_STR("ANN"),
                                         .secret_key = HF_STR("secret")};
    struct site site;
    struct line c;

    site_open(t, &site,
              &(struct server_options){.console = true,
                                       .database = HF_STR("embedded:hidden"),
                                       .keys = &ann,
                                       .keys_len = 1});
    line_open(&site, &c);
    get(&c, site.s, "GET", "/console/", "");
    CHECK_INT(200, c.status);
    get(&c, site.s, "GET", "/console/api/info", "");
    CHECK_INT(200, c.status);
    CHECK_STR(hf_scope_format(site.s, "{\"version\":\"%s\",\"access\":\"keys\"}", hf_version()).ptr,
              c.body);
    get(&c, site.s, "GET", "/console/api/info", SIGNED); /* by nobody we know */
    CHECK_INT(403, c.status);
    CHECK(!contains(c.body, "hidden"));
    line_close(&c);
    site_close(&site);
}

/* ---- calls ---------------------------------------------------------------------------------- */

struct calls {
    atomic_int running;
    atomic_bool go;
};

static enum hf_status call_for_test(struct hf_scope *s, void *user, struct hf_str method,
                                    struct hf_str json, struct hf_str *result)
{
    struct calls *calls = user;
    enum hf_status status = HF_OK;

    *result =
        hf_scope_format(s, "{\"method\":\"%.*s\",\"json\":%.*s}", HF_FMT(method), HF_FMT(json));
    if (hf_str_equal(method, HF_STR("fail"))) {
        *result = HF_STR("{\"code\":\"HF_DENIED\"}");
        return HF_DENIED;
    }
    if (!hf_str_equal(method, HF_STR("wait")))
        return HF_OK;
    atomic_fetch_add(&calls->running, 1);
    while (status == HF_OK && !atomic_load(&calls->go)) {
        sleep_ms(1); /* the clock of the test stands still */
        status = hf_scope_sleep_ms(s, 0);
    }
    atomic_fetch_sub(&calls->running, 1);
    if (status != HF_OK)
        *result = HF_STR("{\"code\":\"HF_CANCELED\"}");
    return status;
}

static void send_call(struct line *c, struct hf_scope *s, const char *fields, const char *body)
{
    struct hf_str json = quoted_json(s, body);

    line_text(c, hf_scope_format(s,
                                 "POST /console/api/call HTTP/1.1\r\nHost: localhost\r\n%s"
                                 "Content-Length: %zu\r\n\r\n%.*s",
                                 fields, json.len, HF_FMT(json))
                     .ptr);
}

#define JSON "Content-Type: application/json\r\n"

TEST(console, it_calls_patterns)
{
    static const struct {
        const char *fields;
        const char *body;
        int status;
        const char *answer;
    } cases[] = {
        {JSON, "{'method':'lock.list'}", 200, "{'result':{'method':'lock.list','json':{}}}"},
        {JSON, " { 'arguments' : {'a': [1, {}]} , 'method' : 'x\\u002ey' } ", 200,
         "{'result':{'method':'x.y','json':{'a': [1, {}]}}}"},
        {"Content-Type: application/json; charset=utf-8\r\n", "{'method':'fail'}", 403,
         "{'error':{'code':'HF_DENIED'}}"},
        {JSON, "", 400, NULL},
        {JSON, "{}", 400, NULL},
        {JSON, "[]", 400, NULL},
        {JSON, "{'method':7}", 400, NULL},
        {JSON, "{'method':'a','arguments':[]}", 400, NULL},
        {JSON, "{'method':'a','arguments':{}", 400, NULL},
        {JSON, "{'method':'a','arguments':{}}x", 400, NULL},
        {JSON, "{'method':'a','other':{}}", 400, NULL},
        {JSON, "{'method':'a','arguments':{'a':}}", 400, NULL},
        /* what a form of another page can send */
        {"", "{'method':'a'}", 415, NULL},
        {"Content-Type: text/plain\r\n", "{'method':'a'}", 415, NULL},
        {"Content-Type: application/x-www-form-urlencoded\r\n", "{'method':'a'}", 415, NULL},
        {"Content-Type: multipart/form-data; boundary=application/json\r\n", "{'method':'a'}", 415,
         NULL},
        {"Content-Type: application/jsonp\r\n", "{'method':'a'}", 415, NULL},
        {JSON "Origin: http://evil\r\n", "{'method':'a'}", 403, NULL},
        {JSON "Sec-Fetch-Site: cross-site\r\n", "{'method':'a'}", 403, NULL},
    };
    struct calls calls = {0};
    struct site site;
    struct line c;

    site_open(t, &site,
              &(struct server_options){.console = true,
                                       .call = call_for_test,
                                       .call_user = &calls});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        send_call(&c, site.s, cases[i].fields, cases[i].body);
        line_read(&c);
        if (c.status != cases[i].status)
            fail_msg("%s gives %d: %.*s", cases[i].body, c.status, HF_FMT(c.body));
        if (cases[i].answer)
            CHECK_STR(quoted_json(site.s, cases[i].answer).ptr, c.body);
        else
            CHECK(c.status == 403 || contains(c.body, "\"error\":{\"code\":\"HF_INVALID\""));
    }
    get(&c, site.s, "GET", "/console/api/call", "");
    CHECK_INT(405, c.status);
    line_close(&c);
    site_close(&site);
}

TEST(console, without_patterns_it_says_so)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    send_call(&c, site.s, JSON, "{'method':'lock.list'}");
    line_read(&c);
    CHECK_INT(404, c.status);
    CHECK(contains(c.body, "HF_UNKNOWN_OPERATION"));
    line_close(&c);
    site_close(&site);
}

static void wait_until(atomic_int *number, int value)
{
    int64_t until = now_ms() + DEADLINE_MS;

    while (atomic_load(number) != value && now_ms() < until)
        sleep_ms(1);
    CHECK_INT(value, atomic_load(number));
}

/* (4) of work.h: what needs a worker gets one, however many calls wait for something. */
TEST(console, calls_never_take_all_workers)
{
    struct calls calls = {0};
    struct site site;
    struct line c[6];

    site_open(t, &site,
              &(struct server_options){
                  .console = true, .workers = 3, .call = call_for_test, .call_user = &calls});
    for (size_t i = 0; i < 5; i++) {
        line_open(&site, &c[i]);
        send_call(&c[i], site.s, JSON, "{'method':'wait'}");
    }
    wait_until(&calls.running, 2);
    line_open(&site, &c[5]);
    for (int i = 0; i < 5; i++) {
        line_call(&c[5], "DeleteTable", "{'TableName':'none'}"); /* workers do it */
        line_read(&c[5]);
        CHECK_INT(400, c[5].status);
        CHECK_INT(2, atomic_load(&calls.running));
    }
    atomic_store(&calls.go, true);
    for (size_t i = 0; i < 5; i++) {
        line_read(&c[i]);
        CHECK_INT(200, c[i].status);
    }
    for (size_t i = 0; i < 6; i++)
        line_close(&c[i]);
    site_close(&site);
}

/* (4) of work.h, for a call that has waited for so long that its time is over. */
TEST(console, a_call_whose_time_is_over_is_refused)
{
    struct calls calls = {0};
    struct site site;
    struct line first, second, other;

    site_open(t, &site,
              &(struct server_options){.console = true,
                                       .workers = 2,
                                       .body_ms = 1000,
                                       .call = call_for_test,
                                       .call_user = &calls});
    line_open(&site, &first);
    send_call(&first, site.s, JSON, "{'method':'wait'}");
    wait_until(&calls.running, 1);
    line_open(&site, &second);
    send_call(&second, site.s, JSON, "{'method':'wait'}");
    line_read(&second);
    CHECK_INT(503, second.status);
    CHECK(contains(second.body, "Other calls take too long"));
    CHECK_INT(1, atomic_load(&calls.running));
    line_open(&site, &other);
    line_call(&other, "DeleteTable", "{'TableName':'none'}"); /* a worker does it */
    line_read(&other);
    CHECK_INT(400, other.status);
    atomic_store(&calls.go, true);
    line_read(&first);
    CHECK_INT(200, first.status);
    line_close(&first);
    line_close(&second);
    line_close(&other);
    site_close(&site);
}

TEST(console, a_stop_cancels_calls)
{
    struct calls calls = {0};
    struct site site;
    struct line c;

    site_open(t, &site,
              &(struct server_options){
                  .console = true, .drain_ms = 50, .call = call_for_test, .call_user = &calls});
    line_open(&site, &c);
    send_call(&c, site.s, JSON, "{'method':'wait'}");
    wait_until(&calls.running, 1);
    hf__server_stop(site.server);
    site_join(&site);
    CHECK_INT(0, atomic_load(&calls.running));
    line_close(&c);
    site_close(&site);
}
