/*
 * cli/top/top_print.c: a view, for people, for pipes, or as JSON.
 *
 * For people it is a screen: figures on the left, names on the right, so that a narrow terminal cuts
 * names and no number. Sections share the rows that there are: operations come first, then tables,
 * partitions and large items; one that has no row left is not begun.
 *
 * What always holds:
 *
 *  (1) No line is wider than the terminal, and there are no more lines than it has rows.
 *  (2) Names and keys, which are stored data, are printed by rows_text.c: no control characters.
 */
#include "cli/top/top.h"

#include "base/base.h"
#include "cli/frame/output/json.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

enum {
    LINE_MAX_BYTES = 512,
    FIGURE_MAX = 16,
    OPS_SHOWN = 8,
    SPARK_LEVELS = 8,
    NARROW = 60,
    CUT_WIDTH = 3
};

/* ---- figures -------------------------------------------------------------------------------- */

struct figure {
    char text[FIGURE_MAX];
};

/* 0, 3.2, 845, 12.3k, 4.5M */
static struct figure figure_rate(double rate)
{
    struct figure figure;

    if (rate < 0.05)
        snprintf(figure.text, sizeof(figure.text), "0");
    else if (rate < 100)
        snprintf(figure.text, sizeof(figure.text), "%.1f", rate);
    else if (rate < 10000)
        snprintf(figure.text, sizeof(figure.text), "%.0f", rate);
    else if (rate < 1e6)
        snprintf(figure.text, sizeof(figure.text), "%.1fk", rate / 1e3);
    else
        snprintf(figure.text, sizeof(figure.text), "%.1fM", rate < 1e12 ? rate / 1e6 : 1e6);
    return figure;
}

static struct figure figure_time(double us)
{
    struct figure figure;

    if (us < 0)
        snprintf(figure.text, sizeof(figure.text), "-");
    else if (us < 1000)
        snprintf(figure.text, sizeof(figure.text), "%.0f us", us);
    else if (us < 1e6)
        snprintf(figure.text, sizeof(figure.text), "%.1f ms", us / 1e3);
    else
        snprintf(figure.text, sizeof(figure.text), "%.1f s", us < 1e12 ? us / 1e6 : 1e6);
    return figure;
}

static struct figure figure_bytes(double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    struct figure figure;
    size_t unit = 0;

    while (bytes >= 1000 && unit + 1 < COMMAND_LEN(units)) {
        bytes /= 1000;
        unit++;
    }
    snprintf(figure.text, sizeof(figure.text), "%.*f %s", unit > 0 && bytes < 100 ? 1 : 0,
             bytes < 1e6 ? bytes : 1e6, units[unit]);
    return figure;
}

/* ---- lines ---------------------------------------------------------------------------------- */

struct page {
    FILE *out;
    const struct top_look *look;
    size_t rows; /* printed */
    size_t kept; /* of the last rows, for the line of keys */
};

static bool page_has_row(const struct page *page)
{
    return page->look->rows == 0 || page->rows + page->kept < page->look->rows;
}

/* Rows that are left, at most `cap`. */
static size_t page_left(const struct page *page, size_t cap)
{
    size_t used = page->rows + page->kept, left;

    if (page->look->rows == 0)
        return cap;
    left = page->look->rows > used ? page->look->rows - used : 0;
    return left < cap ? left : cap;
}

static void line_end(struct page *page)
{
    bool last = page->look->rows && page->rows + 1 == page->look->rows;

    fputs(page->look->clears ? "\033[K" : "", page->out);
    if (!last) /* behind the last row the screen would scroll */
        fputc('\n', page->out);
    page->rows++;
}

/* Can it be shown in `width` columns, whole or with what stands for the rest? */
static bool text_fits(struct hf_str text, size_t width)
{
    return width > CUT_WIDTH || hf__rows_width(text) <= width;
}

/* A line of ASCII, and behind it stored data; both are cut at the edge. */
static void line_print(struct page *page, struct hf_str name, struct hf_str more,
                       const char *format, ...) HF_PRINTF(4, 5);

static void line_print(struct page *page, struct hf_str name, struct hf_str more,
                       const char *format, ...)
{
    size_t columns = page->look->columns, used;
    char text[LINE_MAX_BYTES];
    va_list args;

    if (!page_has_row(page))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    used = strlen(text) < columns ? strlen(text) : columns;
    fprintf(page->out, "%.*s", (int)used, text);
    if (name.ptr && text_fits(name, columns - used))
        used += hf__rows_print_cut(page->out, name, columns - used);
    if (more.ptr && used + 2 < columns && text_fits(more, columns - used - 2)) {
        fputs("  ", page->out);
        hf__rows_print_cut(page->out, more, columns - used - 2);
    }
    line_end(page);
}

static const struct hf_str nothing;

static void heading_print(struct page *page, const char *text)
{
    if (page_left(page, 3) < 3) /* an empty line, the heading and a row */
        return;
    line_print(page, nothing, nothing, "%s", "");
    line_print(page, nothing, nothing, "%s", text);
}

/* ---- sections ------------------------------------------------------------------------------- */

static void spark_print(struct page *page, const struct top_view *view)
{
    static const char *const blocks[SPARK_LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char letters[SPARK_LEVELS + 1] = "_.-:=+*#";
    struct figure most_figure;
    char label[LINE_MAX_BYTES];
    size_t room, from, width;
    double most = 0;

    if (!page_has_row(page) || !view->history_len)
        return;
    for (size_t i = 0; i < view->history_len; i++)
        most = view->history[i] > most ? view->history[i] : most;
    most_figure = figure_rate(most);
    snprintf(label, sizeof(label), " %s/s at most", most_figure.text);
    width = strlen(label);
    room = page->look->columns > width ? page->look->columns - width : page->look->columns;
    from = view->history_len > room ? view->history_len - room : 0;
    for (size_t i = from; i < view->history_len; i++) {
        double level = most > 0 ? view->history[i] / most * (SPARK_LEVELS - 1) + 0.5 : 0;
        size_t at = (size_t)level < SPARK_LEVELS ? (size_t)level : SPARK_LEVELS - 1;

        if (page->look->utf8)
            fputs(blocks[at], page->out);
        else
            fputc(letters[at], page->out);
    }
    if (page->look->columns > width)
        fputs(label, page->out);
    line_end(page);
}

static void summary_print(struct page *page, struct hf_scope *s, const struct top_view *view)
{
    const struct top_sample *sample = view->sample;
    const struct top_look *look = page->look;
    time_t seconds = (time_t)(sample->wall_us / 1000000);
    struct tm parts;
    char when[16] = "";

    tzset();
    if (localtime_r(&seconds, &parts))
        strftime(when, sizeof(when), "%H:%M:%S", &parts);
    line_print(page, look->url,
               sample->version.ptr ? hf_scope_format(s, "holdfast %.*s", HF_FMT(sample->version))
                                   : nothing,
               "%s  every %.1f s%s  ", when, (double)look->interval_ms / 1e3,
               look->paused ? "  PAUSED" : "");
    if (look->error.ptr)
        line_print(page, look->error, nothing, "NO ANSWER: ");
    line_print(page, nothing, nothing,
               "requests %s/s  errors %s/s  connections %" PRIu64 "  memory %s  disk %s",
               figure_rate(view->rate).text, figure_rate(view->errors).text, sample->connections,
               figure_bytes((double)sample->resident_bytes).text,
               figure_bytes((double)sample->disk_bytes).text);
    spark_print(page, view);
    line_print(page, nothing, nothing,
               "wait for disk p50 %s p99 %s  syncs %s/s  in %s/s  out %s/s  long requests %" PRIu64
               " waiting, %" PRIu64 " running",
               figure_time(view->commit_p50_us).text, figure_time(view->commit_p99_us).text,
               figure_rate(view->syncs).text, figure_bytes(view->received).text,
               figure_bytes(view->sent).text, sample->waiting, sample->running);
    if (sample->stopped)
        line_print(page, nothing, nothing,
                   "WRITES ARE REFUSED: a sync failed; look at the disk, then restart the server");
    if (sample->no_space)
        line_print(page, nothing, nothing, "WRITES ARE REFUSED: the disk is full");
}

/* On a narrow screen columns are narrower, and names stay in sight. */
static bool is_narrow(const struct page *page)
{
    return page->look->columns < NARROW;
}

static void op_print(struct page *page, const struct top_op_view *op)
{
    if (is_narrow(page))
        line_print(page, op->name, nothing, "%8s%8s%8s  ", figure_rate(op->rate).text,
                   figure_time(op->p50_us).text, figure_time(op->p99_us).text);
    else
        line_print(page, op->name, nothing, "%11s%11s%11s%11s  ", figure_rate(op->rate).text,
                   figure_time(op->p50_us).text, figure_time(op->p99_us).text,
                   figure_rate(op->errors).text);
}

/* Operations without requests are left out, if others have some. */
static void ops_print(struct page *page, const struct top_view *view)
{
    size_t shown = 0, most = page_left(page, OPS_SHOWN + 2);

    if (!view->ops_len || most < 3)
        return;
    heading_print(page, is_narrow(page)
                            ? "   req/s     p50     p99  operation"
                            : "      req/s        p50        p99   errors/s  operation");
    for (size_t i = 0; i < view->ops_len && shown + 2 < most; i++) {
        if (view->rate > 0 && view->ops[i].rate <= 0)
            continue;
        op_print(page, &view->ops[i]);
        shown++;
    }
}

static void tables_print(struct page *page, const struct top_view *view, size_t most)
{
    int width = is_narrow(page) ? 8 : 11;

    if (view->sample->refusal.ptr) {
        heading_print(page, "tables and partitions are not known:");
        line_print(page, view->sample->refusal, nothing, "  ");
        return;
    }
    if (!view->tables_len || most < 3)
        return;
    heading_print(page, is_narrow(page) ? "   reads  writes  errors  table"
                                        : "    reads/s   writes/s   errors/s  table");
    for (size_t i = 0; i < view->tables_len && i + 2 < most; i++)
        line_print(page, view->tables[i].name, nothing, "%*s%*s%*s  ", width,
                   figure_rate(view->tables[i].reads).text, width,
                   figure_rate(view->tables[i].writes).text, width,
                   figure_rate(view->tables[i].errors).text);
}

static void partitions_print(struct page *page, const struct top_sample *sample, size_t most)
{
    if (!sample->partitions_len || most < 3)
        return;
    heading_print(page, "      req/s  partition: table, hash key");
    for (size_t i = 0; i < sample->partitions_len && i + 2 < most; i++)
        line_print(page, sample->partitions[i].table, sample->partitions[i].key, "%11s  ",
                   figure_rate(sample->partitions[i].rate).text);
}

static void largest_print(struct page *page, struct hf_scope *s, const struct top_sample *sample,
                          size_t most)
{
    if (!sample->largest_len || most < 3)
        return;
    heading_print(page, "       size  largest item written: table, key");
    for (size_t i = 0; i < sample->largest_len && i + 2 < most; i++) {
        const struct top_largest *item = &sample->largest[i];
        struct hf_str key = item->range.ptr ? hf_scope_format(s, "%.*s %.*s", HF_FMT(item->key),
                                                              HF_FMT(item->range))
                                            : item->key;

        line_print(page, item->table, key, "%11s  ", figure_bytes((double)item->bytes).text);
    }
}

static void outboxes_print(struct page *page, struct hf_scope *s, const struct top_sample *sample)
{
    if (!sample->outboxes_len)
        return;
    heading_print(page, is_narrow(page) ? " waiting longest  failed  outbox"
                                        : "    waiting    longest     failed  outbox");
    for (size_t i = 0; i < sample->outboxes_len; i++) {
        const struct top_outbox *outbox = &sample->outboxes[i];
        struct hf_str longest = hf__rows_duration(s, (uint64_t)outbox->oldest_due_ms);
        struct hf_str waiting =
            hf_scope_format(s, "%" PRIu64 "%s", outbox->waiting, outbox->whole ? "" : "+");
        int width = is_narrow(page) ? 8 : 11;

        line_print(page, outbox->name, nothing, "%*s%*s%*" PRIu64 "  ", width,
                   waiting.ptr ? waiting.ptr : "-", width,
                   outbox->oldest_due_ms && longest.ptr ? longest.ptr : "-", width, outbox->failed);
    }
}

static void keys_print(struct page *page)
{
    static const char *const sorts[TOP_SORTS] = {"rate", "p99", "errors", "name"};

    page->kept = 0;
    while (page->rows + 1 < page->look->rows)
        line_print(page, nothing, nothing, "%s", "");
    line_print(page, nothing, nothing, "q quit  space pause  s sort (%s)  + - interval",
               sorts[page->look->sort]);
}

/* Rows that a section wants: an empty line, a heading, and one for each. */
static size_t section_rows(size_t len)
{
    return len ? len + 2 : 0;
}

void hf__top_print(FILE *out, struct hf_scope *s, const struct top_view *view,
                   const struct top_look *look)
{
    struct page page = {.out = out, .look = look, .kept = look->keys && look->rows > 1};
    const struct top_sample *sample = view->sample;
    size_t left, partitions, largest;

    assert(look->columns > 0);
    summary_print(&page, s, view);
    ops_print(&page, view);
    outboxes_print(&page, s, sample);
    /* What is left: half to the tables, and more if the others do not need it. */
    left = page_left(&page, SIZE_MAX / 4);
    partitions = section_rows(sample->partitions_len);
    largest = section_rows(sample->largest_len);
    tables_print(&page, view,
                 left > partitions + largest + left / 2 ? left - partitions - largest : left / 2);
    left = page_left(&page, SIZE_MAX / 4);
    partitions_print(&page, sample, left > largest + left * 2 / 3 ? left - largest : left * 2 / 3);
    largest_print(&page, s, sample, page_left(&page, SIZE_MAX / 4));
    if (look->keys && look->rows > 1)
        keys_print(&page);
    fputs(look->clears ? "\033[J" : "", out);
}

/* ---- for programs --------------------------------------------------------------------------- */

static void field_print(FILE *out, struct hf_str text)
{
    fputc('\t', out);
    hf__rows_print(out, text.ptr ? text : HF_STR(""));
}

void hf__top_print_lines(FILE *out, struct cli *cli, const struct top_view *view)
{
    const struct top_sample *sample = view->sample;
    struct hf_scope_mark mark = hf_scope_mark(cli->scope);
    struct hf_str when = hf__rows_time(cli, "time", sample->wall_us).text;

    when = when.ptr ? when : HF_STR("-");
    fprintf(out,
            "%.*s\ttotal\t%.1f\t%.1f\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.0f\t%.0f\t%.1f\n",
            HF_FMT(when), view->rate, view->errors, sample->connections, sample->resident_bytes,
            sample->disk_bytes, view->commit_p50_us, view->commit_p99_us, view->syncs);
    for (size_t i = 0; i < view->ops_len; i++) {
        fprintf(out, "%.*s\toperation", HF_FMT(when));
        field_print(out, view->ops[i].name);
        fprintf(out, "\t%.1f\t%.1f\t%.0f\t%.0f\n", view->ops[i].rate, view->ops[i].errors,
                view->ops[i].p50_us, view->ops[i].p99_us);
    }
    for (size_t i = 0; i < view->tables_len; i++) {
        fprintf(out, "%.*s\ttable", HF_FMT(when));
        field_print(out, view->tables[i].name);
        fprintf(out, "\t%.1f\t%.1f\t%.1f\n", view->tables[i].reads, view->tables[i].writes,
                view->tables[i].errors);
    }
    for (size_t i = 0; i < sample->partitions_len; i++) {
        fprintf(out, "%.*s\tpartition", HF_FMT(when));
        field_print(out, sample->partitions[i].table);
        field_print(out, sample->partitions[i].key);
        fprintf(out, "\t%.1f\n", sample->partitions[i].rate);
    }
    for (size_t i = 0; i < sample->largest_len; i++) {
        fprintf(out, "%.*s\tlargest", HF_FMT(when));
        field_print(out, sample->largest[i].table);
        field_print(out, sample->largest[i].key);
        field_print(out, sample->largest[i].range);
        fprintf(out, "\t%" PRIu64 "\n", sample->largest[i].bytes);
    }
    for (size_t i = 0; i < sample->outboxes_len; i++) {
        fprintf(out, "%.*s\toutbox", HF_FMT(when));
        field_print(out, sample->outboxes[i].name);
        fprintf(out, "\t%" PRIu64 "\t%" PRId64 "\t%" PRIu64 "\n", sample->outboxes[i].waiting,
                sample->outboxes[i].oldest_due_ms, sample->outboxes[i].failed);
    }
    hf_scope_rewind(cli->scope, mark);
}

static void member_write(FILE *out, const char *name, struct hf_str text)
{
    fprintf(out, "\"%s\":", name);
    if (text.ptr)
        hf__cli_json_write_text(out, text);
    else
        fputs("null", out);
}

/* A time, or null where there were no requests. */
static void time_write(FILE *out, const char *name, double us)
{
    if (us < 0)
        fprintf(out, ",\"%s\":null", name);
    else
        fprintf(out, ",\"%s\":%.0f", name, us);
}

static void ops_write(FILE *out, const struct top_view *view)
{
    fputs(",\"operations\":[", out);
    for (size_t i = 0; i < view->ops_len; i++) {
        fputs(i ? ",{" : "{", out);
        member_write(out, "operation", view->ops[i].name);
        fprintf(out, ",\"per_second\":%.1f,\"errors_per_second\":%.1f", view->ops[i].rate,
                view->ops[i].errors);
        time_write(out, "p50_us", view->ops[i].p50_us);
        time_write(out, "p99_us", view->ops[i].p99_us);
        fputc('}', out);
    }
    fputc(']', out);
}

static void tables_write(FILE *out, const struct top_view *view)
{
    const struct top_sample *sample = view->sample;

    fputc(',', out);
    member_write(out, "refused", sample->refusal);
    if (sample->refusal.ptr) { /* which is not the same as none */
        fputs(",\"tables\":null,\"partitions\":null,\"largest\":null", out);
        return;
    }
    fputs(",\"tables\":[", out);
    for (size_t i = 0; i < view->tables_len; i++) {
        fputs(i ? ",{" : "{", out);
        member_write(out, "table", view->tables[i].name);
        fprintf(out,
                ",\"reads_per_second\":%.1f,\"writes_per_second\":%.1f,\"errors_per_second\":%.1f}",
                view->tables[i].reads, view->tables[i].writes, view->tables[i].errors);
    }
    fputs("],\"partitions\":[", out);
    for (size_t i = 0; i < sample->partitions_len; i++) {
        fputs(i ? ",{" : "{", out);
        member_write(out, "table", sample->partitions[i].table);
        fputc(',', out);
        member_write(out, "key", sample->partitions[i].key);
        fprintf(out, ",\"per_second\":%.1f}", sample->partitions[i].rate);
    }
    fputs("],\"largest\":[", out);
    for (size_t i = 0; i < sample->largest_len; i++) {
        fputs(i ? ",{" : "{", out);
        member_write(out, "table", sample->largest[i].table);
        fputc(',', out);
        member_write(out, "key", sample->largest[i].key);
        fputc(',', out);
        member_write(out, "range", sample->largest[i].range);
        fprintf(out, ",\"bytes\":%" PRIu64 "}", sample->largest[i].bytes);
    }
    fputc(']', out);
}

static void outboxes_write(FILE *out, const struct top_sample *sample)
{
    fputs(",\"outboxes\":[", out);
    for (size_t i = 0; i < sample->outboxes_len; i++) {
        const struct top_outbox *outbox = &sample->outboxes[i];

        fputs(i ? ",{" : "{", out);
        member_write(out, "outbox", outbox->name);
        fprintf(out,
                ",\"waiting\":%" PRIu64 ",\"oldest_due_ms\":%" PRId64 ",\"failed\":%" PRIu64
                ",\"whole\":%s}",
                outbox->waiting, outbox->oldest_due_ms, outbox->failed,
                outbox->whole ? "true" : "false");
    }
    fputc(']', out);
}

void hf__top_print_json(FILE *out, struct cli *cli, const struct top_view *view)
{
    const struct top_sample *sample = view->sample;
    struct hf_scope_mark mark = hf_scope_mark(cli->scope);

    fputc('{', out);
    member_write(out, "time", hf__rows_time(cli, "time", sample->wall_us).text);
    fputc(',', out);
    member_write(out, "version", sample->version);
    fprintf(out,
            ",\"seconds\":%.3f,\"requests_per_second\":%.1f,\"errors_per_second\":%.1f,"
            "\"connections\":%" PRIu64 ",\"memory_bytes\":%" PRIu64
            ",\"store_memory_bytes\":%" PRIu64 ",\"disk_bytes\":%" PRIu64
            ",\"received_bytes_per_second\":%.0f,"
            "\"sent_bytes_per_second\":%.0f,\"long_requests_waiting\":%" PRIu64
            ",\"long_requests_running\":%" PRIu64 ",\"syncs_per_second\":%.1f",
            view->seconds, view->rate, view->errors, sample->connections, sample->resident_bytes,
            sample->store_bytes, sample->disk_bytes, view->received, view->sent, sample->waiting,
            sample->running, view->syncs);
    time_write(out, "disk_wait_p50_us", view->commit_p50_us);
    time_write(out, "disk_wait_p99_us", view->commit_p99_us);
    fprintf(out, ",\"writes_stopped\":%s,\"no_space\":%s", sample->stopped ? "true" : "false",
            sample->no_space ? "true" : "false");
    ops_write(out, view);
    tables_write(out, view);
    outboxes_write(out, sample);
    fputs("}\n", out);
    hf_scope_rewind(cli->scope, mark);
}
