/*
 * sinks/send_events.c: send a few events to a sink and tell what became of each, for tests that are
 * no C: send_events URL COUNT
 */
#include <holdfast/sink.h>

#include <stdio.h>
#include <stdlib.h>

enum { EVENTS_MAX = 10 };

int main(int argc, char **argv)
{
    static const char payload[] = "{\"a\": \"x\\n\xc3\xa4 +%&=~\"}";
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_outbox_event events[EVENTS_MAX];
    struct hf_delivery deliveries[EVENTS_MAX];
    size_t len = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    struct hf_sink *sink = NULL;
    enum hf_status status;

    if (!s || argc != 3 || len == 0 || len > EVENTS_MAX)
        return 2;
    status = hf_sink_open(s, hf_str_from(argv[1]), &sink);
    for (size_t i = 0; i < len; i++) {
        events[i] = (struct hf_outbox_event){
            .event = {.id = hf_scope_format(s, "id-%zu", i),
                      .type = HF_STR("order.placed"),
                      .source = HF_STR("/shop/\xc3\xa4 b"),
                      .key = i % 2 ? HF_STR("key & \"more\"") : HF_STR(""),
                      .sequence = i,
                      .time_us = INT64_C(1769904000250000) + (int64_t)i,
                      .payload = hf_bytes_of(payload, sizeof(payload) - 1),
                      .tenant = HF_STR("ten"),
                      .headers = HF_ITEM(s, HF_S("colour", HF_STR("blue")), HF_N("X-Size", 7))}};
        deliveries[i] = (struct hf_delivery){.event = &events[i]};
    }
    if (status == HF_OK)
        status = hf_sink_send(s, sink, deliveries, len);
    if (status != HF_OK)
        printf("%s: %s\n", hf_status_name(status), hf_scope_error_text(s));
    for (size_t i = 0; i < len && status == HF_OK; i++)
        printf("%s %d %.*s\n", hf_status_name(deliveries[i].status), deliveries[i].for_good,
               HF_FMT(deliveries[i].error));
    hf_sink_close(sink);
    hf_scope_free(s);
    return status == HF_OK ? 0 : 1;
}
