/*
 * server/console/console.c: /console/: the files of the page, and who may use what is behind it.
 *
 * A file is in the program packed, and is sent so to those who take gzip; it is unpacked for the few
 * who do not, and not sent at all to those who have it: its ETag is a hash of what is in it. With
 * --console-dir files are read when they are requested, on a worker.
 */
#include "server/console/console.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fnv.h"
#include "server/private.h"

#define PREFIX "/console"

enum { FILE_MAX = 4 * 1024 * 1024 }; /* bytes of a file of --console-dir */

/* (2) of console.h. */
#define POLICY                                                                                     \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "           \
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "              \
    "frame-ancestors 'none'\r\n"
#define SHIELD                                                                                     \
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n" \
    "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n"

bool hf__console_path(struct hf_str path)
{
    struct hf_str rest;

    return str_after(path, HF_STR(PREFIX), &rest) && (rest.len == 0 || rest.ptr[0] == '/');
}

/* ---- answers -------------------------------------------------------------------------------- */

static void add_fields(struct answer *answer, const char *fields)
{
    struct hf_str all =
        hf_scope_format(answer->context->scope, "%.*s%s", HF_FMT(answer->fields), fields);

    if (all.ptr) /* without memory the answer fails anyway */
        answer->fields = all;
    else
        answer->conn->close_after = true;
}

static void refuse_line(struct answer *answer, int status, struct hf_str text)
{
    struct hf__buf *out;

    answer->type = hf__type_text;
    out = hf__answer_begin(answer);
    hf__buf_put_str(out, text);
    hf__buf_put_byte(out, '\n');
    hf__answer_end(answer, status);
}

/* ---- files ---------------------------------------------------------------------------------- */

static struct hf_str type_of(struct hf_str path)
{
    static const struct {
        const char *ending;
        struct hf_str type;
    } types[] = {
        {".html", HF_STR_INIT("text/html; charset=utf-8")},
        {".js", HF_STR_INIT("text/javascript; charset=utf-8")},
        {".css", HF_STR_INIT("text/css; charset=utf-8")},
        {".svg", HF_STR_INIT("image/svg+xml")},
        {".png", HF_STR_INIT("image/png")},
        {".json", HF_STR_INIT("application/json")},
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        size_t len = strlen(types[i].ending);

        if (path.len > len && memcmp(path.ptr + path.len - len, types[i].ending, len) == 0)
            return types[i].type;
    }
    return (struct hf_str){0};
}

static const struct console_file *find_file(struct hf_str path)
{
    for (size_t i = 0; i < hf__console_files_len; i++) {
        if (hf_str_equal(path, hf_str_from(hf__console_files[i].path)))
            return &hf__console_files[i];
    }
    return NULL;
}

/* Letters, digits, '-' and '_', with single dots and slashes between them: no way out, nothing hidden. */
static bool is_plain_path(struct hf_str path)
{
    bool between = true;

    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_';

        if (!letter && ((c != '.' && c != '/') || between))
            return false;
        between = !letter;
    }
    return !between;
}

/* The file of that name in `folder`, as one of ours. False: there is none that can be sent. */
static bool load_file(struct hf_scope *s, struct hf_str folder, struct hf_str path,
                      struct console_file *file)
{
    struct hf_str name = hf_scope_format(s, "%.*s/%.*s", HF_FMT(folder), HF_FMT(path));
    int fd = name.ptr ? open(name.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    struct stat info;
    uint8_t *bytes = NULL;
    size_t len = 0;

    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= FILE_MAX)
        bytes = hf_scope_alloc(s, (size_t)info.st_size + 1);
    while (bytes && len < (size_t)info.st_size) {
        ssize_t got = read(fd, bytes + len, (size_t)info.st_size - len);

        if (got <= 0)
            break;
        len += (size_t)got;
    }
    close(fd);
    if (!bytes)
        return false;
    *file = (struct console_file){.etag = hf_scope_format(s, "W/\"%016llx\"",
                                                          (unsigned long long)fnv_add(FNV_BEGIN,
                                                                                      bytes, len))
                                              .ptr,
                                  .plain = hf_bytes_of(bytes, len)};
    return file->etag != NULL;
}

/* If-None-Match: is our ETag in the list? Both are compared as weak ones. */
static bool has_it(const struct http_head *head, const char *etag)
{
    struct hf_str list = hf__http_field(head, "if-none-match");
    const char *opaque = etag + 2; /* behind W/ */

    return hf_str_equal(list, HF_STR("*")) ||
           (list.len > 0 && memmem(list.ptr, list.len, opaque, strlen(opaque)));
}

static void send_file(struct answer *answer, const struct console_file *file, struct hf_str type)
{
    bool gzip = file->packed.len > 0 &&
                hf__http_accepted(hf__http_field(answer->head, "accept-encoding")) == HTTP_GZIP;
    bool has = has_it(answer->head, file->etag);
    struct hf_bytes body = gzip ? file->packed : file->plain;

    if (!gzip && !has && file->packed.len > 0 &&
        hf__http_unpack(answer->context->scope, HF_STR("gzip"), file->packed, FILE_MAX, &body) !=
            HF_OK) {
        refuse_line(answer, 500, HF_STR("There is no memory to unpack this file"));
        return;
    }
    answer->type = type;
    answer->packed = gzip;
    answer->as_is = true;
    add_fields(answer, hf_scope_format(answer->context->scope,
                                       POLICY "ETag: %s\r\nCache-Control: no-cache\r\n"
                                              "Vary: Accept-Encoding\r\n",
                                       file->etag)
                           .ptr);
    hf__buf_put(hf__answer_begin(answer), body.ptr, body.len);
    hf__answer_end(answer, has ? 304 : 200);
}

static void answer_file(struct answer *answer, struct hf_str path)
{
    struct hf_str folder = answer->context->server->options.console_dir;
    struct hf_str type;
    struct console_file loaded;
    const struct console_file *file = NULL;

    if (path.len == 0)
        path = HF_STR("index.html");
    type = type_of(path);
    if (folder.ptr && !answer->context->worker) {
        answer->conn->for_worker = true;
        return;
    }
    if (!folder.ptr)
        file = find_file(path);
    else if (type.ptr && is_plain_path(path) &&
             load_file(answer->context->scope, folder, path, &loaded))
        file = &loaded;
    if (file && type.ptr)
        send_file(answer, file, type);
    else
        refuse_line(answer, 404, HF_STR("The console has no such file"));
}

/* ---- requests ------------------------------------------------------------------------------- */

static void answer_redirect(struct answer *answer)
{
    add_fields(answer, "Location: " PREFIX "/\r\n");
    refuse_line(answer, 308, HF_STR("The console is at " PREFIX "/"));
}

void hf__console_handle(struct answer *answer, struct hf_bytes body)
{
    const struct http_head *head = answer->head;
    struct hf_str rest;

    answer->no_crc = true;
    add_fields(answer, SHIELD);
    if (!answer->context->server->options.console) {
        refuse_line(answer, 404, HF_STR("The console is off; start the server with --console on"));
        return;
    }
    if (str_after(head->path, HF_STR(PREFIX "/api/"), &rest)) {
        hf__console_api(answer, rest, body);
        return;
    }
    if (!hf_str_equal(head->method, HF_STR("GET")) && !hf_str_equal(head->method, HF_STR("HEAD"))) {
        add_fields(answer, "Allow: GET, HEAD\r\n");
        refuse_line(answer, 405, HF_STR("Files of the console support GET and HEAD"));
    } else if (str_after(head->path, HF_STR(PREFIX "/"), &rest)) {
        answer_file(answer, rest);
    } else {
        answer_redirect(answer);
    }
}
