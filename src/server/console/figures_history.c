/*
 * server/console/figures_history.c: the points of the last hour or so, as lists for the charts of the
 * console. A request copies them, so that the thread of figures.c goes on meanwhile.
 */
#include "server/console/figures_private.h"

#include "server/private.h"

/* ---- history -------------------------------------------------------------------------------- */

typedef double point_value_fn(const struct point *point);

#define VALUE(name, expression)                                                                    \
    static double name(const struct point *point)                                                  \
    {                                                                                              \
        return (double)(expression);                                                               \
    }
VALUE(time_of, point->time_ms)
VALUE(read_p50_of, point->read_p50)
VALUE(read_p99_of, point->read_p99)
VALUE(write_p50_of, point->write_p50)
VALUE(write_p99_of, point->write_p99)
VALUE(commit_p50_of, point->commit_p50)
VALUE(commit_p99_of, point->commit_p99)
VALUE(commits_of, point->commits)
VALUE(committed_of, point->committed)
VALUE(syncs_of, point->syncs)
VALUE(bytes_in_of, point->events.bytes_in)
VALUE(bytes_out_of, point->events.bytes_out)
VALUE(connections_of, point->gauges.connections)
VALUE(resident_of, point->gauges.resident)
VALUE(input_of, point->gauges.input)
VALUE(output_of, point->gauges.output)
VALUE(waiting_of, point->gauges.waiting)
VALUE(running_of, point->gauges.running)
VALUE(store_of, point->gauges.store)
VALUE(disk_of, point->gauges.disk)
VALUE(disk_free_of, point->gauges.disk_free)
#undef VALUE

static void put_values(struct hf__buf *out, const struct figures *f, const char *name,
                       point_value_fn *value)
{
    hf__buf_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < f->points_len; i++)
        hf__buf_format(out, "%s%.0f", i ? "," : "", value(hf__figures_point(f, i)));
    hf__buf_put_byte(out, ']');
}

static void put_counts(struct hf__buf *out, const struct figures *f, const char *name, size_t at)
{
    hf__buf_format(out, "\"%s\":[", name);
    for (size_t i = 0; i < f->points_len; i++)
        hf__buf_format(out, "%s%u", i ? "," : "",
                       *(const uint32_t *)(const void *)((const char *)hf__figures_point(f, i) +
                                                         at));
    hf__buf_put_byte(out, ']');
}

static bool was_called(const struct figures *f, int op)
{
    for (size_t i = 0; i < f->points_len; i++) {
        if (hf__figures_point(f, i)->count[op])
            return true;
    }
    return false;
}

static void put_history(struct hf__buf *out, const struct figures *f)
{
    static const struct {
        const char *name;
        point_value_fn *value;
    } values[] = {
        {"time_ms", time_of},
        {"read_p50_us", read_p50_of},
        {"read_p99_us", read_p99_of},
        {"write_p50_us", write_p50_of},
        {"write_p99_us", write_p99_of},
        {"commit_p50_us", commit_p50_of},
        {"commit_p99_us", commit_p99_of},
        {"commits", commits_of},
        {"committed", committed_of},
        {"fsyncs", syncs_of},
        {"bytes_in", bytes_in_of},
        {"bytes_out", bytes_out_of},
        {"connections", connections_of},
        {"resident_bytes", resident_of},
        {"input_bytes", input_of},
        {"output_bytes", output_of},
        {"work_waiting", waiting_of},
        {"work_running", running_of},
        {"store_bytes", store_of},
        {"disk_bytes", disk_of},
        {"disk_free_bytes", disk_free_of},
    };
    bool any = false;

    hf__buf_format(out, "{\"interval_ms\":%d,\"ops\":{", POINT_MS);
    for (int op = 0; op < HF_OP_COUNT; op++) {
        size_t at = (size_t)op * sizeof(uint32_t);

        if (!was_called(f, op))
            continue;
        hf__buf_format(out, "%s\"%.*s\":{", any ? "," : "", HF_FMT(hf__op((enum hf_op)op)->name));
        put_counts(out, f, "count", offsetof(struct point, count) + at);
        hf__buf_put_byte(out, ',');
        put_counts(out, f, "errors", offsetof(struct point, errors) + at);
        hf__buf_put_byte(out, '}');
        any = true;
    }
    hf__buf_put_byte(out, '}');
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        put_values(out, f, values[i].name, values[i].value);
    hf__buf_put_byte(out, '}');
}

/* The points are copied, so that the thread does not wait while they are written. */
void hf__figures_history(struct answer *answer, struct hf_bytes body)
{
    struct figures *f = answer->context->server->figures;
    struct hf_scope *s = answer->context->scope;
    struct figures copy = {.points_len = 0};

    (void)body;
    if (!answer->context->worker) {
        answer->conn->for_worker = true;
        return;
    }
    copy.points = hf__scope_array(s, POINTS, sizeof(*copy.points));
    if (copy.points) {
        pthread_mutex_lock(&f->lock);
        memcpy(copy.points, f->points, POINTS * sizeof(*copy.points));
        copy.points_len = f->points_len;
        copy.points_next = f->points_next;
        pthread_mutex_unlock(&f->lock);
    }
    put_history(hf__answer_begin(answer), &copy);
    hf__answer_end(answer, 200);
}
