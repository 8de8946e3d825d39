/*
 * test/fuzz/fuzz_export.c: the manifests of an export in AWS's layout, which `import` reads:
 * cli/transfer/transfer_aws.c.
 *
 * Up to the first newline: manifest-summary.json; all the rest: manifest-files.json. There is one data file,
 * "data/one.json.gz". A first byte ! of the summary writes a checksum beside both, which is that of other bytes.
 *
 *  - The export is read, or refused with a sentence.
 *  - What is read names files in its own folder, whatever the manifests say.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "cli/transfer/transfer.h"
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void export_look(struct hf_scope *s, struct hf_str dir)
{
    struct hf_str data = hf_scope_format(s, "%.*s/data/", HF_FMT(dir));
    struct transfer_aws aws;

    if (hf__transfer_aws_read(s, dir, &aws) != HF_OK) {
        MUST(*hf_scope_error_text(s));
        return;
    }
    MUST(hf_str_equal(aws.dir, dir));
    for (size_t i = 0; i < aws.files_len; i++) {
        struct hf_str path = aws.files[i].path;

        MUST(path.len > data.len && memcmp(path.ptr, data.ptr, data.len) == 0);
        MUST(!memchr(path.ptr + data.len, '/', path.len - data.len));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char folder[] = "export";
    static bool made;
    struct hf_scope *s = hf_scope_new(NULL);
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t len = end ? (size_t)(end - data) : size;
    bool summed = size && data[0] == '!';
    struct hf_str dir, *dirs;
    size_t dirs_len;

    MUST(s);
    dir = hf_scope_format(s, "%s/%s", files_directory(), folder);
    if (!made) {
        MUST(mkdir(dir.ptr, 0700) == 0);
        MUST(mkdir(hf_scope_format(s, "%.*s/data", HF_FMT(dir)).ptr, 0700) == 0);
        files_write("export/data/one.json.gz", 0, "x", 1);
        made = true;
    }
    files_write("export/manifest-summary.json", 0, summed ? data + 1 : data, len - summed);
    files_write("export/manifest-files.json", 0, end ? (const void *)(end + 1) : "",
                end ? size - len - 1 : 0);
    if (summed) {
        files_write("export/manifest-summary.md5", 0, data, len);
        files_write("export/manifest-files.md5", 0, "AAAAAAAAAAAAAAAAAAAAAA==\n", 25);
    }
    MUST(hf__transfer_aws_find(s, dir.ptr, &dirs, &dirs_len) == HF_OK && dirs_len == 1);
    MUST(hf__transfer_aws_complete(s, dirs[0]));
    export_look(s, dirs[0]);
    files_remove("export/manifest-summary.json");
    files_remove("export/manifest-files.json");
    if (summed) {
        files_remove("export/manifest-summary.md5");
        files_remove("export/manifest-files.md5");
    }
    hf_scope_free(s);
    return 0;
}
