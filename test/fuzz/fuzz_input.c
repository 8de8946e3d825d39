/*
 * test/fuzz/fuzz_input.c: values and files that the command reads.
 *
 * The first byte says what the rest is: a number, duration or size (n), a time (t), JSON (j), a
 * table (s, for `table create`), credentials (k, for `serve`), lines of events (l, for `events
 * append`).
 *
 *  - It is read, or refused with a sentence.
 *  - JSON that is read has what it says: lengths, members, a value of DynamoDB.
 */
#include <holdfast/events.h>

#include <string.h>

#include "cli/events/events_line.h"
#include "cli/frame/options/options.h"
#include "cli/frame/options/time_arg.h"
#include "cli/frame/output/json.h"
#include "cli/serve/keys.h"
#include "cli/table/table_file.h"
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_values(const char *text)
{
    uint64_t number, bytes, ms;

    if (hf__options_number(text, &number)) {
        char again[32];

        snprintf(again, sizeof(again), "%llu", (unsigned long long)number);
        MUST(strcmp(again, text + strspn(text, "0")) == 0 || number == 0);
        MUST(!hf__options_size(text, &bytes) || bytes == number);
    }
    (void)!hf__options_duration(text, &ms);
    (void)!hf__options_size(text, &bytes);
}

static void read_times(struct hf_scope *s, const char *text)
{
    int64_t us;

    if (hf__time_arg_parse_time(text, &us))
        MUST(us >= 0);
    (void)!hf__time_arg_parse(s, text, &us);
}

static size_t depth_of(const struct json_node *json)
{
    size_t deepest = 0, count = 0;

    for (const struct json_node *at = json->first; at; at = at->next, count++) {
        size_t depth = depth_of(at);

        deepest = depth > deepest ? depth : deepest;
    }
    MUST(count == json->len);
    return deepest + 1;
}

static void read_json(struct hf_scope *s, struct hf_str text)
{
    struct hf_str error = {NULL, 0};
    const struct json_node *json = hf__cli_json_read(s, text, &error);

    if (!json) {
        MUST(error.len > 0);
        return;
    }
    MUST(depth_of(json) <= CLI_JSON_DEPTH_MAX + 1);
    hf__cli_json_to_value(s, json);
}

static void read_table(struct hf_scope *s, struct hf_str text)
{
    struct table_file file = {.s = s, .parameters = &(struct option_list){NULL, 0}};

    MUST(hf__cli_table_file_read(&file, text) || file.error.len > 0);
}

static void read_keys(struct hf_scope *s, struct hf_str text)
{
    struct cli_keys keys;

    if (!hf__keys_parse(s, "keys.ini", text, &keys)) {
        MUST(keys.error.len > 0);
        return;
    }
    for (size_t i = 0; i < keys.len; i++)
        MUST(keys.list[i].access.len && keys.list[i].secret.len);
}

static void read_lines(struct hf_scope *s, struct hf_str text)
{
    struct hf_event_stream_key stream = {HF_STR("order"), HF_STR("7")};
    struct events_line *lines;
    struct hf_str error = {NULL, 0};
    size_t len;

    if (!hf__cli_events_lines(s, text, stream, &lines, &len, &error)) {
        MUST(error.len > 0);
        return;
    }
    for (size_t i = 0; i < len; i++)
        MUST(lines[i].stream.domain.len && lines[i].event.type.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str text;
    char *copy;

    MUST(s);
    if (size == 0) {
        hf_scope_free(s);
        return 0;
    }
    copy = malloc(size); /* the kind makes room for a NUL behind the rest */
    MUST(copy);
    memcpy(copy, data + 1, size - 1);
    copy[size - 1] = '\0';
    text = hf_str_of(copy, size - 1);
    switch (data[0]) {
    case 'n':
        read_values(copy);
        break;
    case 't':
        read_times(s, copy);
        break;
    case 's':
        read_table(s, text);
        break;
    case 'k':
        read_keys(s, text);
        break;
    case 'l':
        read_lines(s, text);
        break;
    default:
        read_json(s, text);
    }
    free(copy);
    hf_scope_free(s);
    return 0;
}
