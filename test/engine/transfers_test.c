/*
 * engine/transfers_test.c: exports and imports: what comes out goes in again, by every format; counts of
 * what is wrong; kills in the middle. (n) is an invariant of engine/transfer/ transfers.c, export.c or
 * import.c. Requests and their errors are in test/conformance/transfers/.
 */
#include "help.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

#include "base/buf.h"
#include "http/http.h"

enum { ITEMS = 700 };

/* A world on `kind` whose buckets are folders of a directory, of which "bk" is there. */
struct place {
    struct world w;
    char dir[512];
    char url[544];
};

static void place_open(struct place *p, struct test *t, const char *kind)
{
    p->w = world_open(t, kind);
    snprintf(p->dir, sizeof(p->dir), "%s", test_directory(t));
    snprintf(p->url, sizeof(p->url), "dir:%s", p->dir);
    p->w.options.buckets = hf_str_from(p->url);
    world_reopen(&p->w);
    mkdir(hf_scope_format(p->w.scope, "%s/bk", p->dir).ptr, 0700);
}

static void file_write(struct place *p, const char *key, struct hf_bytes bytes)
{
    struct hf_str path = hf_scope_format(p->w.scope, "%s/bk/%s", p->dir, key);
    FILE *out;

    for (char *slash = strchr((char *)(uintptr_t)path.ptr + strlen(p->dir) + 4, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path.ptr, 0700);
        *slash = '/';
    }
    out = fopen(path.ptr, "w");
    CHECK(out != NULL);
    if (bytes.len)
        CHECK_INT(bytes.len, fwrite(bytes.ptr, 1, bytes.len, out));
    fclose(out);
}

static void text_write(struct place *p, const char *key, const char *text)
{
    struct hf_str json = world_json(&p->w, text);

    file_write(p, key, hf_bytes_of(json.ptr, json.len));
}

static struct hf_str file_read(struct place *p, const char *key)
{
    struct hf_str path = hf_scope_format(p->w.scope, "%s/bk/%s", p->dir, key);
    struct hf__buf text = {.scope = p->w.scope};
    FILE *in = fopen(path.ptr, "r");
    char room[4096];
    size_t got;

    if (!in)
        return hf_str_of(NULL, 0);
    while ((got = fread(room, 1, sizeof(room), in)) > 0)
        hf__buf_put(&text, room, got);
    fclose(in);
    return hf_str_of(text.ptr ? (const char *)text.ptr : "", text.len);
}

/* The value behind "name": in an answer, without quotes. */
static struct hf_str member(struct world *w, struct hf_str answer, const char *name)
{
    struct hf_str mark = hf_scope_format(w->scope, "\"%s\":", name);
    const char *at = memmem(answer.ptr, answer.len, mark.ptr, mark.len);
    size_t len = 0;

    if (!at)
        return hf_str_of(NULL, 0);
    at += mark.len;
    if (*at == '"') {
        at++;
        while (at[len] != '"')
            len++;
    } else {
        while (at[len] != ',' && at[len] != '}')
            len++;
    }
    return hf_str_of(at, len);
}

#define CHECK_MEMBER(w, expected, answer, name) CHECK_STR(expected, member((w), (answer), (name)))

/* Export a table, let it be done, and return its description. */
static struct hf_str export_table(struct place *p, const char *table, const char *more)
{
    struct world *w = &p->w;
    struct hf_str begun =
        callf(w, "ExportTableToPointInTime",
              "{'TableArn':'arn:aws:dynamodb:us-east-1:123456789012:table/%s','S3Bucket':'bk'%s}",
              table, more);
    struct hf_str arn = member(w, begun, "ExportArn");

    CHECK_MEMBER(w, "IN_PROGRESS", begun, "ExportStatus");
    upkeep(w);
    return callf(w, "DescribeExport", "{'ExportArn':'%.*s'}", HF_FMT(arn));
}

/* Import what is below a prefix into a table with the key pk; its description. */
static struct hf_str import_table(struct place *p, const char *table, const char *prefix,
                                  const char *format, const char *more)
{
    struct world *w = &p->w;
    struct hf_str begun =
        callf(w, "ImportTable",
              "{'S3BucketSource':{'S3Bucket':'bk','S3KeyPrefix':'%s'},'InputFormat':'%s'%s,"
              "'TableCreationParameters':" PK_TABLE("%s", "") "}",
              prefix, format, more, table);
    struct hf_str arn = member(w, begun, "ImportArn");

    CHECK_MEMBER(w, "IN_PROGRESS", begun, "ImportStatus");
    upkeep(w);
    return callf(w, "DescribeImport", "{'ImportArn':'%.*s'}", HF_FMT(arn));
}

static void put(struct world *w, const char *table, struct hf_item item)
{
    CHECK_OK(hf_put_item(w->scope, w->db,
                         &(struct hf_put_item){.table = hf_str_from(table), .item = item}, NULL));
}

/* Every item of a is in b, and there are as many. */
static void check_equal(struct world *w, const char *a, const char *b, size_t expected)
{
    struct hf_scan_result scanned;
    struct hf_item start = {NULL, 0};
    struct hf_scan scan = {.table = hf_str_from(a)};
    size_t count = 0, there = 0;

    do {
        scan.start = start;
        CHECK_OK(hf_scan(w->scope, w->db, &scan, &scanned));
        for (size_t i = 0; i < scanned.items_len; i++, count++) {
            struct hf_get_item_result got;

            CHECK_OK(
                hf_get_item(w->scope, w->db,
                            &(struct hf_get_item){
                                .table = hf_str_from(b),
                                .key = HF_ITEM(w->scope, HF_V("pk", hf_item_get(scanned.items[i],
                                                                                HF_STR("pk"))))},
                            &got));
            CHECK(hf_item_equal(scanned.items[i], got.item));
        }
        start = scanned.last;
    } while (start.ptr);
    scan = (struct hf_scan){.table = hf_str_from(b)};
    do {
        CHECK_OK(hf_scan(w->scope, w->db, &scan, &scanned));
        there += scanned.items_len;
        scan.start = scanned.last;
    } while (scan.start.ptr);
    CHECK_INT(expected, count);
    CHECK_INT(expected, there);
}

/* ---- round trips ---------------------------------------------------------------------------- */

/* A random value, nested at most so deep. */
static struct hf_value random_value(struct world *w, int depth)
{
    static const char *const numbers[] = {"0",         "1",
                                          "-1",        "600",
                                          "103",       "1.5",
                                          "-0.0001",   "1E-130",
                                          "-2000",     "1E+20",
                                          "0.0000001", "12345678901234567890123456789012345678",
                                          "9.9E+125"};
    static const char *const texts[] = {
        "",        "plain",     "with \"quotes\" and 'others'",
        "\\ back", "a\nb\tc\r", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80",
        "{[(,)]}", "\x01\x7F"};
    struct test *t = w->t;
    struct hf_scope *s = w->scope;
    struct hf_str two[2] = {HF_STR("b"), HF_STR("a\"'")};
    struct hf_str three[3] = {HF_STR("1"), HF_STR("-2.50"), HF_STR("3E+9")};

    switch (test_random_below(t, depth > 3 ? 8 : 10)) {
    case 0:
        return hf_value_make(s, hf_attr_of(HF_STR("x"), HF_TYPE_S,
                                           hf_str_from(texts[test_random_below(t, 8)]), 0));
    case 1:
    case 2:
        return hf_value_make(s, hf_attr_of(HF_STR("x"), HF_TYPE_N,
                                           hf_str_from(numbers[test_random_below(t, 13)]), 0));
    case 3:
        return hf_value_make(s,
                             hf_attr_of(HF_STR("x"), HF_TYPE_B,
                                        hf_str_of("\x00\xFF\x80{}\"", test_random_below(t, 7)), 0));
    case 4:
        return hf_value_make(s, hf_attr_of(HF_STR("x"), HF_TYPE_BOOL, hf_str_of(NULL, 0),
                                           (int64_t)test_random_below(t, 2)));
    case 5:
        return hf_value_make(s, hf_attr_of(HF_STR("x"), HF_TYPE_NULL, hf_str_of(NULL, 0), 0));
    case 6:
        return hf_value_make(s, hf_attr_of_set(HF_STR("x"),
                                               test_random_below(t, 2) ? HF_TYPE_SS : HF_TYPE_BS,
                                               two, 1 + test_random_below(t, 2)));
    case 7:
        return hf_value_make(s, hf_attr_of_set(HF_STR("x"), HF_TYPE_NS, three,
                                               1 + test_random_below(t, 3)));
    case 8:
        return HF_LIST(s, HF_V("0", random_value(w, depth + 1)),
                       HF_V("1", random_value(w, depth + 1)));
    default:
        return hf_item_value(HF_ITEM(s, HF_V("null", random_value(w, depth + 1)),
                                     HF_V("a b", random_value(w, depth + 1)),
                                     HF_V("$5", random_value(w, depth + 1)),
                                     HF_V("'q'\"\n", random_value(w, depth + 1))));
    }
}

static void fill_random(struct world *w, const char *table, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        put(w, table,
            HF_ITEM(w->scope, HF_S("pk", hf_scope_format(w->scope, "key %u", i)),
                    HF_V("v", random_value(w, 1)), HF_V("w-x", random_value(w, 1)), HF_N("n", i)));
}

/* Items of every type, nested, come back equal, by both formats of exports. */
static void round_trip(struct test *t, const char *kind, const char *format)
{
    struct place p;
    struct hf_str described;
    char more[80];

    place_open(&p, t, kind);
    world_ok(&p.w, "CreateTable", PK_TABLE("tab", ""));
    fill_random(&p.w, "tab", ITEMS);
    snprintf(more, sizeof(more), ",'ExportFormat':'%s','S3Prefix':'out/'", format);
    described = export_table(&p, "tab", more);
    CHECK_MEMBER(&p.w, "COMPLETED", described, "ExportStatus");
    CHECK_MEMBER(&p.w, "700", described, "ItemCount");
    described = import_table(&p, "new", "out/AWSDynamoDB/", format, "");
    CHECK_MEMBER(&p.w, "FAILED", described, "ImportStatus"); /* manifests, and it is compressed */
    world_ok(&p.w, "DeleteTable", "{'TableName':'new'}");
    described = callf(&p.w, "ListExports", "{}");
    snprintf(more, sizeof(more), "out/AWSDynamoDB/%.*s/data/", 23,
             strstr(member(&p.w, described, "ExportArn").ptr, "/export/") + 8);
    described = import_table(&p, "new", more, format, ",'InputCompressionType':'GZIP'");
    CHECK_MEMBER(&p.w, "COMPLETED", described, "ImportStatus");
    CHECK_MEMBER(&p.w, "700", described, "ImportedItemCount");
    CHECK_MEMBER(&p.w, "700", described, "ProcessedItemCount");
    CHECK_MEMBER(&p.w, "0", described, "ErrorCount");
    check_equal(&p.w, "tab", "new", ITEMS);
    world_close(&p.w);
}

TEST(transfers, dynamodb_json_comes_back_equal)
{
    round_trip(t, "memory:", "DYNAMODB_JSON");
}

TEST(transfers, ion_comes_back_equal)
{
    round_trip(t, "memory:", "ION");
}

TEST(transfers, on_disk_too)
{
    round_trip(t, "disk:", "DYNAMODB_JSON");
}

/* (1) of export.c: what is written after the call is not in the files. */
TEST(transfers, an_export_has_the_moment_of_its_call)
{
    struct place p;
    struct hf_str begun, arn, described;

    place_open(&p, t, "memory:");
    world_ok(&p.w, "CreateTable", PK_TABLE("tab", ""));
    fill_random(&p.w, "tab", 50);
    begun = world_ok(&p.w, "ExportTableToPointInTime",
                     "{'TableArn':'arn:aws:dynamodb:us-east-1:123456789012:table/tab',"
                     "'S3Bucket':'bk'}");
    arn = member(&p.w, begun, "ExportArn");
    fill_random(&p.w, "tab", 100);
    world_ok(&p.w, "DeleteTable", "{'TableName':'tab'}");
    upkeep(&p.w);
    described = callf(&p.w, "DescribeExport", "{'ExportArn':'%.*s'}", HF_FMT(arn));
    CHECK_MEMBER(&p.w, "COMPLETED", described, "ExportStatus");
    CHECK_MEMBER(&p.w, "50", described, "ItemCount");
    world_close(&p.w);
}

/* The layout that AWS documents: names of files, members of the manifests, checksums. */
TEST(transfers, layout_of_an_export)
{
    struct place p;
    struct hf_str described, id, text, key, sum;
    char name[256];

    place_open(&p, t, "memory:");
    world_ok(&p.w, "CreateTable", PK_TABLE("tab", ""));
    world_ok(&p.w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'},'n':{'N':'600'}}}");
    described = export_table(&p, "tab", ",'ClientToken':'once','S3Prefix':'2026-Nov'");
    id = member(&p.w, described, "ExportArn");
    id = hf_str_of(strstr(id.ptr, "/export/") + 8, 23);
    snprintf(name, sizeof(name), "2026-Nov/AWSDynamoDB/%.*s/manifest-summary.json", HF_FMT(id));
    CHECK_MEMBER(&p.w, name, described, "ExportManifest");
    CHECK_MEMBER(&p.w, "AES256", described, "S3SseAlgorithm");
    text = file_read(&p, name);
    CHECK_MEMBER(&p.w, "2020-06-30", text, "version");
    CHECK_MEMBER(&p.w, "2026-01-01T00:00:00.000Z", text, "exportTime");
    CHECK_MEMBER(&p.w, "bk", text, "s3Bucket");
    CHECK_MEMBER(&p.w, "2026-Nov", text, "s3Prefix");
    CHECK_MEMBER(&p.w, "1", text, "itemCount");
    CHECK_MEMBER(&p.w, "DYNAMODB_JSON", text, "outputFormat");
    CHECK_MEMBER(&p.w, "FULL_EXPORT", text, "exportType");
    snprintf(name, sizeof(name), "%.*s", HF_FMT(member(&p.w, text, "manifestFilesS3Key")));
    text = file_read(&p, name);
    CHECK_MEMBER(&p.w, "1", text, "itemCount");
    CHECK_INT(24, member(&p.w, text, "md5Checksum").len);
    CHECK_INT(32, member(&p.w, text, "etag").len);
    key = member(&p.w, text, "dataFileS3Key");
    CHECK(memmem(key.ptr, key.len, "/data/", 6) != NULL);
    snprintf(name, sizeof(name), "%.*s", HF_FMT(key));
    text = file_read(&p, name);
    CHECK(text.len > 18 && (unsigned char)text.ptr[0] == 0x1F);
    snprintf(name, sizeof(name), "2026-Nov/AWSDynamoDB/%.*s/_started", HF_FMT(id));
    sum = file_read(&p, name);
    CHECK(sum.ptr && sum.len == 0);
    snprintf(name, sizeof(name), "2026-Nov/AWSDynamoDB/%.*s/manifest-files.md5", HF_FMT(id));
    CHECK_INT(24, file_read(&p, name).len);
    world_close(&p.w);
}

/* ---- CSV ------------------------------------------------------------------------------------ */

/* Keys have their types, other columns are strings, empty cells are nothing. */
TEST(transfers, csv)
{
    static const char csv[] = "pk,n,text\na,1,\"with \"\"quotes\"\", and\nlines\"\nb,,\r\n";
    struct place p;
    struct hf_str described;

    place_open(&p, t, "memory:");
    file_write(&p, "in/1.csv", hf_bytes_of(csv, sizeof(csv) - 1));
    described = import_table(&p, "tab", "in/", "CSV", "");
    CHECK_MEMBER(&p.w, "COMPLETED", described, "ImportStatus");
    CHECK_MEMBER(&p.w, "2", described, "ImportedItemCount");
    CHECK_MEMBER(&p.w, "48", described, "ProcessedSizeBytes");
    CHECK_JSON(&p.w,
               "{'Item':{'n':{'S':'1'},'pk':{'S':'a'},"
               "'text':{'S':'with \\'quotes\\', and\\nlines'}}}",
               "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}}}");
    CHECK_JSON(&p.w, "{'Item':{'pk':{'S':'b'}}}", "GetItem",
               "{'TableName':'tab','Key':{'pk':{'S':'b'}}}");
    text_write(&p, "other/1.csv", "a;x\nb;y\n");
    described = import_table(&p, "more", "other/", "CSV",
                             ",'InputFormatOptions':{'Csv':{'Delimiter':';','HeaderList':"
                             "['pk','val']}}");
    CHECK_MEMBER(&p.w, "2", described, "ImportedItemCount");
    CHECK_JSON(&p.w, "{'Item':{'pk':{'S':'a'},'val':{'S':'x'}}}", "GetItem",
               "{'TableName':'more','Key':{'pk':{'S':'a'}}}");
    world_close(&p.w);
}

TEST(transfers, csv_keys_of_numbers)
{
    struct place p;

    place_open(&p, t, "memory:");
    text_write(&p, "in/1.csv", "id,at,g\n1,2.50,7\n1,x,8\n1,3,\n");
    world_ok(
        &p.w, "ImportTable",
        "{'S3BucketSource':{'S3Bucket':'bk','S3KeyPrefix':'in/'},'InputFormat':'CSV',"
        "'TableCreationParameters':{'TableName':'tab','BillingMode':'PAY_PER_REQUEST',"
        "'AttributeDefinitions':[{'AttributeName':'id','AttributeType':'N'},"
        "{'AttributeName':'at','AttributeType':'N'},{'AttributeName':'g','AttributeType':'N'}],"
        "'KeySchema':[{'AttributeName':'id','KeyType':'HASH'},"
        "{'AttributeName':'at','KeyType':'RANGE'}],'GlobalSecondaryIndexes':[{'IndexName':"
        "'byg','KeySchema':[{'AttributeName':'g','KeyType':'HASH'}],'Projection':"
        "{'ProjectionType':'ALL'}}]}}");
    upkeep(&p.w);
    CHECK_JSON(&p.w,
               "{'Items':[{'at':{'N':'2.5'},'g':{'N':'7'},'id':{'N':'1'}}],'Count':1,"
               "'ScannedCount':1}",
               "Scan", "{'TableName':'tab','IndexName':'byg'}");
    CHECK_JSON(&p.w, "{'Count':2,'ScannedCount':2}", "Scan",
               "{'TableName':'tab','Select':'COUNT'}");
    world_close(&p.w);
}

/* ---- what is wrong -------------------------------------------------------------------------- */

static void check_counts(struct place *p, struct hf_str described, const char *status,
                         const char *processed, const char *imported, const char *errors)
{
    CHECK_MEMBER(&p->w, status, described, "ImportStatus");
    CHECK_MEMBER(&p->w, processed, described, "ProcessedItemCount");
    CHECK_MEMBER(&p->w, imported, described, "ImportedItemCount");
    CHECK_MEMBER(&p->w, errors, described, "ErrorCount");
    if (strcmp(errors, "0") != 0)
        CHECK_MEMBER(&p->w, "ItemValidationError", described, "FailureCode");
}

#define LINE(pk) "{'Item':{'pk':{'S':'" pk "'}}}\n"

/* An item that the table cannot have is left out; the table is there with the others. */
TEST(transfers, a_wrong_item_is_left_out)
{
    struct place p;
    struct hf_str described;

    place_open(&p, t, "memory:");
    text_write(&p, "in/1",
               LINE("a") "{'Item':{'x':{'S':'no key'}}}\n" LINE(
                   "b") "{'Item':{'pk':{'N':'1'}}}\n" LINE("") "\n" LINE("c"));
    described = import_table(&p, "tab", "in", "DYNAMODB_JSON", "");
    check_counts(&p, described, "FAILED", "6", "3", "3");
    CHECK_JSON(&p.w, "{'Count':3,'ScannedCount':3}", "Scan",
               "{'TableName':'tab','Select':'COUNT'}");
    world_close(&p.w);
}

/* A record that is malformed ends its object, and not the next one. */
TEST(transfers, a_malformed_record_ends_its_object)
{
    struct place p;

    place_open(&p, t, "memory:");
    text_write(&p, "in/1", LINE("a") LINE("b") "garbage\n" LINE("c"));
    text_write(&p, "in/2", LINE("d"));
    text_write(&p, "in2/3", "\n\n");
    check_counts(&p, import_table(&p, "tab", "in", "DYNAMODB_JSON", ""), "FAILED", "4", "3", "1");
    check_counts(&p,
                 import_table(&p, "packed", "in", "DYNAMODB_JSON",
                              ",'InputCompressionType':'GZIP'"),
                 "FAILED", "3", "0", "3");
    check_counts(&p, import_table(&p, "none", "nothing", "DYNAMODB_JSON", ""), "COMPLETED", "0",
                 "0", "0");
    check_counts(&p, import_table(&p, "ion", "in/2", "ION", ""), "FAILED", "1", "0", "1");
    world_close(&p.w);
}

/* (2) of import.c, also within one chunk; counts and indexes are right. */
TEST(transfers, the_last_of_equal_keys_stays)
{
    struct place p;
    struct hf__buf text;

    place_open(&p, t, "memory:");
    text = (struct hf__buf){.scope = p.w.scope};
    for (unsigned i = 0; i < 300; i++)
        hf__buf_format(&text, "{\"Item\":{\"pk\":{\"S\":\"k%u\"},\"n\":{\"N\":\"%u\"}}}\n", i % 7,
                       i);
    file_write(&p, "in/1", hf_bytes_of(text.ptr, text.len));
    check_counts(&p, import_table(&p, "tab", "in", "DYNAMODB_JSON", ""), "COMPLETED", "300", "300",
                 "0");
    CHECK_JSON(&p.w, "{'Item':{'n':{'N':'299'},'pk':{'S':'k5'}}}", "GetItem",
               "{'TableName':'tab','Key':{'pk':{'S':'k5'}}}");
    CHECK_MEMBER(&p.w, "7", world_ok(&p.w, "DescribeTable", "{'TableName':'tab'}"), "ItemCount");
    world_close(&p.w);
}

TEST(transfers, gzip_that_is_cut_is_one_error)
{
    struct place p;
    struct hf_bytes packed;
    struct hf_str text;

    place_open(&p, t, "memory:");
    text = world_json(&p.w, LINE("a") LINE("b"));
    CHECK_OK(hf__http_pack(p.w.scope, HTTP_GZIP, hf_bytes_of(text.ptr, text.len), &packed));
    file_write(&p, "in/1", hf_bytes_of(packed.ptr, packed.len - 9));
    check_counts(&p,
                 import_table(&p, "tab", "in", "DYNAMODB_JSON", ",'InputCompressionType':'GZIP'"),
                 "FAILED", "3", "2", "1");
    world_close(&p.w);
}

/* Two frames of zstd; and one that is cut. */
TEST(transfers, zstd)
{
    struct place p;
    struct hf_str one, two;
    char room[2048];
    size_t len;

    place_open(&p, t, "memory:");
    one = world_json(&p.w, LINE("a") LINE("b"));
    two = world_json(&p.w, LINE("c"));
    len = ZSTD_compress(room, sizeof(room), one.ptr, one.len, 3);
    CHECK(!ZSTD_isError(len));
    len += ZSTD_compress(room + len, sizeof(room) - len, two.ptr, two.len, 3);
    file_write(&p, "in/1", hf_bytes_of(room, len));
    check_counts(&p,
                 import_table(&p, "tab", "in", "DYNAMODB_JSON", ",'InputCompressionType':'ZSTD'"),
                 "COMPLETED", "3", "3", "0");
    file_write(&p, "cut/1", hf_bytes_of(room, len - 3));
    check_counts(&p,
                 import_table(&p, "cut", "cut", "DYNAMODB_JSON", ",'InputCompressionType':'ZSTD'"),
                 "FAILED", "3", "2", "1");
    text_write(&p, "no/1", LINE("a"));
    check_counts(&p,
                 import_table(&p, "not", "no", "DYNAMODB_JSON", ",'InputCompressionType':'ZSTD'"),
                 "FAILED", "1", "0", "1");
    world_close(&p.w);
}

/* A bucket that is not there: both end as FAILED, and there is no table. */
TEST(transfers, no_such_bucket)
{
    struct place p;
    struct hf_str described, arn;

    place_open(&p, t, "memory:");
    world_ok(&p.w, "CreateTable", PK_TABLE("tab", ""));
    rmdir(hf_scope_format(p.w.scope, "%s/bk", p.dir).ptr);
    described = export_table(&p, "tab", "");
    CHECK_MEMBER(&p.w, "FAILED", described, "ExportStatus");
    CHECK_MEMBER(&p.w, "S3NoSuchBucket", described, "FailureCode");
    described = import_table(&p, "new", "in", "CSV", "");
    arn = member(&p.w, described, "ImportArn");
    CHECK_MEMBER(&p.w, "FAILED", described, "ImportStatus");
    CHECK_MEMBER(&p.w, "S3NoSuchBucket", described, "FailureCode");
    CHECK_FAILS(&p.w, "ResourceNotFoundException",
                "Requested resource not found: Table: new not found", "DescribeTable",
                "{'TableName':'new'}");
    CHECK(!is_error(callf(&p.w, "DescribeImport", "{'ImportArn':'%.*s'}", HF_FMT(arn))));
    world_close(&p.w);
}

/* ---- while it runs -------------------------------------------------------------------------- */

/* (2) of transfers.c: the table is CREATING and of no use to others until the import has ended. */
TEST(transfers, a_table_that_is_being_filled)
{
    struct place p;

    place_open(&p, t, "memory:");
    text_write(&p, "in/1", LINE("a"));
    world_ok(&p.w, "ImportTable",
             "{'S3BucketSource':{'S3Bucket':'bk'},'InputFormat':'DYNAMODB_JSON','ClientToken':'t',"
             "'TableCreationParameters':" PK_TABLE("tab", "") "}");
    CHECK_MEMBER(&p.w, "CREATING", world_ok(&p.w, "DescribeTable", "{'TableName':'tab'}"),
                 "TableStatus");
    CHECK_FAILS(&p.w, "ResourceNotFoundException", "Requested resource not found", "PutItem",
                "{'TableName':'tab','Item':{'pk':{'S':'x'}}}");
    CHECK_FAILS(&p.w, "ResourceInUseException",
                "Attempt to change a resource which is still in use: Table is being created: tab",
                "DeleteTable", "{'TableName':'tab'}");
    CHECK_FAILS(&p.w, "ResourceInUseException", "Table is being used: tab", "CreateTable",
                PK_TABLE("tab", ""));
    /* the same token is the same import; another table is another one */
    CHECK_MEMBER(&p.w, "IN_PROGRESS",
                 world_ok(&p.w, "ImportTable",
                          "{'S3BucketSource':{'S3Bucket':'bk'},'InputFormat':'CSV',"
                          "'ClientToken':'t','TableCreationParameters':" PK_TABLE("tab", "") "}"),
                 "ImportStatus");
    CHECK_FAILS(&p.w, "ImportConflictException",
                "Import conflict: Duplicate request detected with conflicting parameters",
                "ImportTable",
                "{'S3BucketSource':{'S3Bucket':'bk'},'InputFormat':'CSV','ClientToken':'t',"
                "'TableCreationParameters':" PK_TABLE("other", "") "}");
    upkeep(&p.w);
    CHECK_MEMBER(&p.w, "ACTIVE", world_ok(&p.w, "DescribeTable", "{'TableName':'tab'}"),
                 "TableStatus");
    world_ok(&p.w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'x'}}}");
    world_close(&p.w);
}

/* Records survive a reopen; an export that had not been done has failed (3), an import goes on. */
TEST(transfers, after_a_reopen)
{
    struct place p;
    struct hf_str answer, arn;
    char export_arn[160];

    place_open(&p, t, "disk:");
    world_ok(&p.w, "CreateTable", PK_TABLE("tab", ""));
    text_write(&p, "in/1", LINE("a"));
    answer = world_ok(&p.w, "ExportTableToPointInTime",
                      "{'TableArn':'arn:aws:dynamodb:us-east-1:123456789012:table/tab',"
                      "'S3Bucket':'bk'}");
    snprintf(export_arn, sizeof(export_arn), "%.*s", HF_FMT(member(&p.w, answer, "ExportArn")));
    world_ok(&p.w, "ImportTable",
             "{'S3BucketSource':{'S3Bucket':'bk','S3KeyPrefix':'in'},'InputFormat':"
             "'DYNAMODB_JSON','TableCreationParameters':" PK_TABLE("new", "") "}");
    world_reopen(&p.w);
    CHECK_MEMBER(&p.w, "CREATING", world_ok(&p.w, "DescribeTable", "{'TableName':'new'}"),
                 "TableStatus");
    upkeep(&p.w);
    answer = callf(&p.w, "DescribeExport", "{'ExportArn':'%s'}", export_arn);
    CHECK_MEMBER(&p.w, "FAILED", answer, "ExportStatus");
    CHECK_MEMBER(&p.w, "InternalServerError", answer, "FailureCode");
    answer = world_ok(&p.w, "ListImports", "{}");
    CHECK_MEMBER(&p.w, "COMPLETED", answer, "ImportStatus");
    arn = member(&p.w, answer, "ImportArn");
    CHECK_MEMBER(&p.w, "1", callf(&p.w, "DescribeImport", "{'ImportArn':'%.*s'}", HF_FMT(arn)),
                 "ImportedItemCount");
    test_advance_ms(t, INT64_C(91) * 24 * 3600 * 1000); /* (5) */
    world_reopen(&p.w);
    CHECK_JSON(&p.w, "{'ImportSummaryList':[]}", "ListImports", "{}");
    world_close(&p.w);
}

/* (4) of transfers.c */
TEST(transfers, a_snapshot_that_is_put_back)
{
    struct place p;
    struct hf_engine_snapshot *before;
    struct hf_str answer;

    place_open(&p, t, "memory:");
    text_write(&p, "in/1", LINE("a"));
    CHECK_OK(hf_engine_snapshot_take(p.w.scope, p.w.db, &before));
    world_ok(&p.w, "ImportTable",
             "{'S3BucketSource':{'S3Bucket':'bk'},'InputFormat':'DYNAMODB_JSON',"
             "'TableCreationParameters':" PK_TABLE("new", "") "}");
    CHECK_OK(hf_engine_snapshot_restore(p.w.scope, p.w.db, before));
    upkeep(&p.w);
    answer = world_ok(&p.w, "ListImports", "{}");
    CHECK_MEMBER(&p.w, "FAILED", answer, "ImportStatus");
    CHECK_JSON(&p.w, "{'TableNames':[]}", "ListTables", "{}");
    hf_engine_snapshot_free(before);
    world_close(&p.w);
}

/* Pages of a list: the newest first, each once; a token of one list is none of the other. */
TEST(transfers, lists_in_pages)
{
    struct place p;
    struct hf_str page, token = {NULL, 0};
    unsigned count = 0;

    place_open(&p, t, "memory:");
    world_ok(&p.w, "CreateTable", PK_TABLE("tab", ""));
    for (unsigned i = 0; i < 23; i++) {
        test_advance_ms(t, 5);
        (void)export_table(&p, "tab", "");
    }
    do {
        struct hf_str rest;

        page = token.ptr ? callf(&p.w, "ListExports", "{'NextToken':'%.*s'}", HF_FMT(token))
                         : world_ok(&p.w, "ListExports", "{}");
        CHECK(!is_error(page));
        rest = page;
        while (after(&rest, "\"ExportArn\"").ptr)
            count++;
        token = member(&p.w, page, "NextToken");
        if (token.ptr)
            CHECK(is_error(callf(&p.w, "ListImports", "{'NextToken':'%.*s'}", HF_FMT(token))));
    } while (token.ptr);
    CHECK_INT(23, count);
    world_close(&p.w);
}

/* Without memory a call fails, or what it began goes on later; no record is counted twice. */
TEST(transfers, any_allocation_may_fail)
{
    struct place p;

    place_open(&p, t, "memory:");
    text_write(&p, "in/1", LINE("a") "{'Item':{'x':{'S':'no key'}}}\n" LINE("b"));
    text_write(&p, "in/2", LINE("c"));
    ALLOC_SWEEP (t, nth) {
        struct world w = {.t = t, .scope = hf_scope_new(test_env(t)), .url = "memory:"};
        struct hf_str request = {NULL, 0}, answer = {NULL, 0};
        enum hf_status status = HF_NOMEM;

        if (w.scope)
            status = hf_open(w.scope, HF_STR("memory:"), &p.w.options, &w.db);
        if (status == HF_OK)
            request =
                world_json(&w,
                           "{'S3BucketSource':{'S3Bucket':'bk','S3KeyPrefix':'in'},'InputFormat':"
                           "'DYNAMODB_JSON','TableCreationParameters':" PK_TABLE("new", "") "}");
        if (status == HF_OK)
            status = world_exchange(&w, "ImportTable", request, &answer);
        if (status == HF_OK)
            (void)!hf_engine_upkeep(w.scope, w.db, NULL);
        ALLOC_SWEEP_STOP(t);
        if (status == HF_OK) {
            upkeep(&w);
            answer = world_ok(&w, "ListImports", "{}");
            answer = callf(&w, "DescribeImport", "{'ImportArn':'%.*s'}",
                           HF_FMT(member(&w, answer, "ImportArn")));
            check_counts(&p, answer, "FAILED", "4", "3", "1");
            CHECK_JSON(&w, "{'Count':3,'ScannedCount':3}", "Scan",
                       "{'TableName':'new','Select':'COUNT'}");
            CHECK_OK(hf_engine_check(w.scope, w.db, NULL));
        }
        hf_db_close(w.db);
        hf_scope_free(w.scope);
    }
    world_close(&p.w);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Wait until no import and no export of the database runs. */
static void wait_until_ended(struct world *w)
{
    for (int tries = 0; tries < 60000; tries++) {
        struct hf_str imports = world_ok(w, "ListImports", "{'PageSize':25}");
        struct hf_str exports = world_ok(w, "ListExports", "{'MaxResults':25}");

        if (!memmem(imports.ptr, imports.len, "IN_PROGRESS", 11) &&
            !memmem(exports.ptr, exports.len, "IN_PROGRESS", 11))
            return;
        usleep(1000);
        hf_scope_reset(w->scope);
    }
    fail_msg("they run for a minute");
}

/* Several at once, of which the database is closed in the middle, beside writers. */
TEST(transfers, threads_run_them)
{
    enum { TABLES = 6, EACH = 400 };
    struct place p;
    struct hf__buf text;

    place_open(&p, t, "disk:");
    p.w.options.no_upkeep_thread = false;
    world_reopen(&p.w);
    world_ok(&p.w, "CreateTable", PK_TABLE("tab", ""));
    text = (struct hf__buf){.scope = p.w.scope};
    for (unsigned i = 0; i < EACH; i++)
        hf__buf_format(&text, "{\"Item\":{\"pk\":{\"S\":\"%u\"}}}\n", i);
    file_write(&p, "in/1", hf_bytes_of(text.ptr, text.len));
    for (unsigned i = 0; i < TABLES; i++) {
        CHECK(!is_error(callf(
            &p.w, "ImportTable",
            "{'S3BucketSource':{'S3Bucket':'bk','S3KeyPrefix':'in'},"
            "'InputFormat':'DYNAMODB_JSON','TableCreationParameters':" PK_TABLE("new%u", "") "}",
            i)));
        fill_random(&p.w, "tab", 20);
        world_ok(&p.w, "ExportTableToPointInTime",
                 "{'TableArn':'arn:aws:dynamodb:us-east-1:123456789012:table/tab',"
                 "'S3Bucket':'bk'}");
    }
    world_reopen(&p.w);
    wait_until_ended(&p.w);
    for (unsigned i = 0; i < TABLES; i++) {
        struct hf_str answer = callf(&p.w, "Scan", "{'TableName':'new%u','Select':'COUNT'}", i);

        CHECK_MEMBER(&p.w, "400", answer, "Count");
    }
    world_close(&p.w);
}

/* ---- killed half-way ------------------------------------------------------------------------ */

#ifdef HF_KILL_POINTS

static const char buckets_variable[] = "HF_TEST_BUCKETS";

/* In the process that is killed. */
static int run_transfers(struct world *w)
{
    w->options.buckets = hf_str_from(getenv(buckets_variable));
    world_reopen(w);
    return hf_engine_upkeep(w->scope, w->db, NULL) == HF_OK ? 0 : 1;
}

/* (1) of import.c: it goes on where it was; every record is counted once, and the table has the items. */
TEST(transfers, imports_that_were_killed_go_on)
{
    static const char *const points[] = {"before_apply:2", "after_apply:3", "import_chunk:4",
                                         "import_end:1"};
    struct place p;

    crash_here(t, run_transfers);
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        struct hf_str answer, arn;

        place_open(&p, t, "disk:");
        setenv(buckets_variable, p.url, 1);
        for (unsigned file = 0; file < 3; file++) {
            struct hf__buf text = {.scope = p.w.scope};
            char key[16];

            for (unsigned k = 0; k < 250; k++)
                hf__buf_format(&text, "{\"Item\":{\"%s\":{\"S\":\"%u-%u\"},\"n\":{\"N\":\"1\"}}}\n",
                               k == 100 ? "px" : "pk", file, k);
            snprintf(key, sizeof(key), "in/%u", file);
            file_write(&p, key, hf_bytes_of(text.ptr, text.len));
        }
        answer = world_ok(&p.w, "ImportTable",
                          "{'S3BucketSource':{'S3Bucket':'bk'},'InputFormat':'DYNAMODB_JSON',"
                          "'TableCreationParameters':" PK_TABLE("new", "") "}");
        CHECK(crash_at(&p.w, points[i]));
        CHECK_MEMBER(&p.w, "CREATING", world_ok(&p.w, "DescribeTable", "{'TableName':'new'}"),
                     "TableStatus");
        upkeep(&p.w);
        arn = member(&p.w, world_ok(&p.w, "ListImports", "{}"), "ImportArn");
        answer = callf(&p.w, "DescribeImport", "{'ImportArn':'%.*s'}", HF_FMT(arn));
        check_counts(&p, answer, "FAILED", "750", "747", "3");
        CHECK_JSON(&p.w, "{'Count':747,'ScannedCount':747}", "Scan",
                   "{'TableName':'new','Select':'COUNT'}");
        CHECK_MEMBER(&p.w, "747", world_ok(&p.w, "DescribeTable", "{'TableName':'new'}"),
                     "ItemCount");
        world_close(&p.w);
    }
}

/* In the process that is killed: an export from its beginning. */
static int run_export(struct world *w)
{
    w->options.buckets = hf_str_from(getenv(buckets_variable));
    world_reopen(w);
    world_ok(w, "ExportTableToPointInTime",
             "{'TableArn':'arn:aws:dynamodb:us-east-1:123456789012:table/tab','S3Bucket':'bk'}");
    return hf_engine_upkeep(w->scope, w->db, NULL) == HF_OK ? 0 : 1;
}

/* (2) and (3) of export.c: it has failed, and there is no summary. */
TEST(transfers, exports_that_were_killed_have_failed)
{
    static const char *const points[] = {"export_file:1", "export_manifest:1"};
    struct place p;

    crash_here(t, run_export);
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        struct hf_str answer;
        char name[128];

        place_open(&p, t, "disk:");
        setenv(buckets_variable, p.url, 1);
        world_ok(&p.w, "CreateTable", PK_TABLE("tab", ""));
        fill_random(&p.w, "tab", 20);
        CHECK(crash_at(&p.w, points[i]));
        answer = world_ok(&p.w, "ListExports", "{}");
        CHECK_MEMBER(&p.w, "IN_PROGRESS", answer, "ExportStatus");
        upkeep(&p.w);
        answer = world_ok(&p.w, "ListExports", "{}");
        CHECK_MEMBER(&p.w, "FAILED", answer, "ExportStatus");
        snprintf(name, sizeof(name), "AWSDynamoDB/%.*s/manifest-summary.json", 23,
                 strstr(member(&p.w, answer, "ExportArn").ptr, "/export/") + 8);
        CHECK(!file_read(&p, name).ptr);
        world_close(&p.w);
    }
}

#endif
