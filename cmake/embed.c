/*
 * cmake/embed.c: a program of the build: the files of the console as C.
 *
 *     embed OUT.c ROOT PATH...
 *
 * Each PATH, below ROOT, becomes an entry of hf__console_files (src/server/console/console.h), in the order
 * of their names: its bytes, packed with gzip, and its ETag, which is a hash of the bytes as they were. They are in
 * every program that has the server, so they are there once.
 */
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"

enum { LEVEL = 12, PATH_LEN = 4096, LINE_BYTES = 24 };

struct bytes {
    unsigned char *ptr;
    size_t len;
};

static _Noreturn void fail(const char *what, const char *name)
{
    fprintf(stderr, "embed: %s: %s\n", name, what);
    exit(1);
}

static struct bytes read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct bytes all = {NULL, 0};
    long len = 0;

    if (!file || fseek(file, 0, SEEK_END) != 0 || (len = ftell(file)) < 0)
        fail("cannot read it", path);
    rewind(file);
    all.len = (size_t)len;
    all.ptr = malloc(all.len + 1);
    if (!all.ptr || fread(all.ptr, 1, all.len, file) != all.len)
        fail("cannot read it", path);
    fclose(file);
    return all;
}

static struct bytes pack_bytes(struct bytes from)
{
    struct libdeflate_compressor *packer = libdeflate_alloc_compressor(LEVEL);
    struct bytes to = {NULL, 0};
    size_t cap;

    if (!packer)
        fail("no memory", "gzip");
    cap = libdeflate_gzip_compress_bound(packer, from.len);
    to.ptr = malloc(cap);
    if (!to.ptr)
        fail("no memory", "gzip");
    to.len = libdeflate_gzip_compress(packer, from.ptr, from.len, to.ptr, cap);
    libdeflate_free_compressor(packer);
    return to;
}

/* A NUL follows, which does not count, so that an empty file is an array, too. */
static void write_bytes(FILE *out, const char *name, size_t number, struct bytes bytes)
{
    fprintf(out, "static const unsigned char %s_%zu[%zu] = {", name, number, bytes.len + 1);
    for (size_t i = 0; i < bytes.len; i++)
        fprintf(out, "%s%u,", i % LINE_BYTES == 0 ? "\n    " : "", bytes.ptr[i]);
    fprintf(out, "0};\n");
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int main(int argc, char **argv)
{
    size_t len = argc > 3 ? (size_t)argc - 3 : 0, i;
    char path[PATH_LEN];
    FILE *out;

    if (argc < 3)
        fail("expected OUT.c ROOT PATH...", "arguments");
    qsort(argv + 3, len, sizeof(*argv), compare_names);
    out = fopen(argv[1], "w");
    if (!out)
        fail("cannot write it", argv[1]);
    fprintf(out, "/* made by cmake/embed.c */\n#include \"server/console/console.h\"\n\n");
    for (i = 0; i < len; i++) {
        struct bytes plain, packed;

        snprintf(path, sizeof(path), "%s/%s", argv[2], argv[3 + i]);
        plain = read_file(path);
        packed = pack_bytes(plain);
        write_bytes(out, "packed", i, packed);
        fprintf(out, "#define ETAG_%zu \"W/\\\"%016llx\\\"\"\n", i,
                (unsigned long long)fnv_add(FNV_BEGIN, plain.ptr, plain.len));
        free(plain.ptr);
        free(packed.ptr);
    }
    fprintf(out, "\nconst struct console_file hf__console_files[] = {\n");
    for (i = 0; i < len; i++)
        fprintf(out,
                "    {\"%s\", ETAG_%zu, {0, 0}, {packed_%zu, sizeof(packed_%zu) - 1}},\n",
                argv[3 + i], i, i, i);
    fprintf(out, "    {0, 0, {0, 0}, {0, 0}}};\nconst size_t hf__console_files_len = %zu;\n", len);
    return fclose(out) == 0 ? 0 : 1;
}
