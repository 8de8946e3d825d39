/*
 * test/fuzz/fuzz_xml.c: client/xml.c on any text, as S3, SNS, SQS and STS may answer with.
 *
 *  - A document is walked or refused as HF_INVALID; the element of an accepted one that ends last
 * is its root.
 *  - A path has no empty step and is no longer than the document; no text is longer than it.
 *  - hf__xml_read() finds for a path what the walk met first; references in other texts it does not
 *    look at.
 *  - The numbers and times of S3 are read, or are none.
 */
#include <string.h>

#include "blob/s3.h"
#include "client/xml.h"
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct met {
    size_t document;
    size_t count;
    bool root; /* the last one */
    struct hf_str path, text;
    char path_bytes[256];
};

static bool meet(void *user, struct hf_str path, struct hf_str text)
{
    struct met *met = user;
    int64_t us;

    MUST(path.len && path.len < met->document && text.len <= met->document);
    MUST(path.ptr[0] != '/' && path.ptr[path.len - 1] != '/');
    MUST(!memmem(path.ptr, path.len, "//", 2));
    met->root = !memchr(path.ptr, '/', path.len);
    met->count++;
    if (text.ptr && !met->path.ptr && path.len < sizeof(met->path_bytes) &&
        !memchr(path.ptr, 0, path.len)) {
        memcpy(met->path_bytes, path.ptr, path.len);
        met->path_bytes[path.len] = '\0';
        met->path = hf_str_of(met->path_bytes, path.len);
        met->text = text;
    }
    hf__s3_number(text);
    (void)hf__s3_time(text, &us);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_str xml = hf_str_of((const char *)data, size);
    struct hf_scope *s = hf_scope_new(NULL);
    struct met met = {.document = size};
    enum hf_status status = hf__xml_walk(s, xml, meet, &met);
    struct hf_str value = {NULL, 0};
    struct xml_want want = {.path = met.path_bytes, .value = &value};

    MUST(status == HF_OK || status == HF_INVALID);
    MUST(status != HF_OK || !met.count || met.root);
    if (met.path.ptr) {
        enum hf_status read = hf__xml_read(s, xml, &want, 1);

        MUST(status != HF_OK || read == HF_OK);
        MUST(read == HF_OK ? hf_str_equal(value, met.text) : !value.ptr);
    }
    hf_scope_free(s);
    return 0;
}
