/*
 * cli/demo/demo_view.c: what a person sees while the demo runs.
 *
 * On a terminal it is a picture of a line for each part, drawn again over itself a few times a
 * second: the cursor goes up, and every line is cut at the width that the terminal has at that
 * moment, so that none wraps. The cursor is hidden meanwhile and shown at the end; nothing else of
 * the terminal is changed, and the last picture stays. Elsewhere it is a line a second.
 */
#include "base/base.h"
#include "cli/demo/demo.h"
#include "cli/frame/output/rows.h"

#include <holdfast/relay.h>

#include <sys/ioctl.h>
#include <unistd.h>

enum {
    COLUMNS_USUAL = 80,
    COLUMNS_MIN = 20, /* in less, or without a row for each line, there is no picture, but lines */
    LINES = 8,
    BAR = 24,
    LINE_US = 1000000,
    NAME_WIDTH = 13
};

#define CURSOR_HIDE "\033[?25l"
#define CURSOR_SHOW "\033[?25h"
#define LINE_CLEAR "\033[K"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

/* Figures of one moment. */
struct moment {
    uint64_t placed, refused, cents, place_us, attempted;
    uint64_t paid, paid_again;
    uint64_t delivered, given_up, waiting, running;
    uint64_t projected;
    int64_t elapsed_us;
    uint32_t night;
    uint64_t fence, skipped;
    const char *holder;
    uint64_t fee_cents;
};

static struct moment moment_of(struct hf_scope *s, struct demo *demo)
{
    const struct hf_env *env = hf_scope_env(s);
    struct hf_subscription_metrics projection = {.handled = 0};
    struct hf_relay_metrics relay = {.delivered = 0};
    struct moment now = {.placed = atomic_load(&demo->placed),
                         .refused = atomic_load(&demo->refused),
                         .cents = atomic_load(&demo->cents),
                         .place_us = atomic_load(&demo->place_us),
                         .attempted = atomic_load(&demo->attempted),
                         .paid = atomic_load(&demo->paid),
                         .paid_again = atomic_load(&demo->paid_again),
                         .fee_cents = atomic_load(&demo->fee_cents),
                         .elapsed_us = env->elapsed_us(env->user) - demo->begin_us};

    hf_relay_metrics(hf_bus_relay(demo->bus), &relay);
    hf_subscription_metrics(demo->projection, &projection);
    now.delivered = relay.delivered;
    now.given_up = relay.given_up;
    now.running = relay.running;
    now.waiting = 2 * now.placed > relay.delivered + relay.given_up
                      ? 2 * now.placed - relay.delivered - relay.given_up
                      : 0;
    now.projected = projection.handled;
    pthread_mutex_lock(&demo->mutex);
    now.night = demo->night;
    now.fence = demo->fence;
    now.skipped = demo->skipped;
    now.holder = demo->holder;
    pthread_mutex_unlock(&demo->mutex);
    return now;
}

/* Rates of about the last second. */
static void rates_update(struct demo_view *view, const struct moment *now)
{
    double took_s = (double)(now->elapsed_us - view->last_us) / 1e6;

    if (took_s < 1.0)
        return;
    view->orders_rate = (double)(now->placed - view->last_placed) / took_s;
    view->delivered_rate = (double)(now->delivered - view->last_delivered) / took_s;
    view->projected_rate = (double)(now->projected - view->last_projected) / took_s;
    view->last_placed = now->placed;
    view->last_delivered = now->delivered;
    view->last_projected = now->projected;
    view->last_us = now->elapsed_us;
}

/* ---- the picture ---------------------------------------------------------------------------- */

/* How wide the terminal is now; 0: it is too small for a picture. */
static size_t columns_now(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return COLUMNS_USUAL;
    return size.ws_col < COLUMNS_MIN || size.ws_row <= LINES ? 0 : size.ws_col;
}

/* One line, cut. The name of the part is in bold. */
static void line_draw(struct demo_view *view, const char *name, struct hf_str text)
{
    size_t width = view->columns - 1, used = 0;

    if (view->colors)
        fputs(BOLD, view->out);
    used = hf__rows_print_cut(view->out, hf_str_from(name), width);
    if (view->colors)
        fputs(PLAIN, view->out);
    while (used < NAME_WIDTH && used < width) {
        fputc(' ', view->out);
        used++;
    }
    if (used < width)
        hf__rows_print_cut(view->out, text, width - used);
    fputs(LINE_CLEAR "\n", view->out);
    view->drawn++;
}

static struct hf_str bar_of(struct hf_scope *s, uint64_t done, uint64_t all)
{
    char bar[BAR + 1];
    uint64_t full = all ? done * BAR / all : BAR;

    for (uint64_t i = 0; i < BAR; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR] = '\0';
    return hf_scope_copy(s, hf_str_from(bar));
}

static void picture_draw(struct demo_view *view, struct hf_scope *s, const struct demo *demo,
                         const struct moment *now, const char *state)
{
    unsigned long long seconds = (unsigned long long)now->elapsed_us / 1000000;

    if (view->drawn)
        fprintf(view->out, "\033[%zuA", view->drawn);
    view->drawn = 0;
    line_draw(view, "demo",
              hf_scope_format(s, "%llu of %u s  [%.*s]  %s", seconds, demo->seconds,
                              HF_FMT(bar_of(s, now->attempted, demo->attempts)), state));
    line_draw(view, "orders",
              hf_scope_format(
                  s, "%llu, %.0f/s, each in one transaction of %.1f ms; %llu.%02llu sold",
                  (unsigned long long)now->placed, view->orders_rate,
                  now->placed ? (double)now->place_us / 1000.0 / (double)now->placed : 0.0,
                  (unsigned long long)now->cents / 100, (unsigned long long)now->cents % 100));
    line_draw(view, "limits",
              hf_scope_format(s, "%llu orders refused; a customer may place %u",
                              (unsigned long long)now->refused, demo->limit));
    line_draw(view, "outbox",
              hf_scope_format(s, "delivered %llu, %.0f/s; waiting %llu; dead letters %llu",
                              (unsigned long long)now->delivered, view->delivered_rate,
                              (unsigned long long)now->waiting, (unsigned long long)now->given_up));
    line_draw(view, "payments",
              hf_scope_format(s, "%llu made; %llu requested again and not made again",
                              (unsigned long long)now->paid, (unsigned long long)now->paid_again));
    line_draw(view, "projection",
              hf_scope_format(s, "%llu events, %.0f/s, %llu behind",
                              (unsigned long long)now->projected, view->projected_rate,
                              (unsigned long long)(now->placed > now->projected
                                                       ? now->placed - now->projected
                                                       : 0)));
    line_draw(view, "nightly job",
              now->holder
                  ? hf_scope_format(s, "night %u of %u; lock: %s, fence %llu; %llu found it done",
                                    now->night, demo->nights, now->holder,
                                    (unsigned long long)now->fence,
                                    (unsigned long long)now->skipped)
                  : hf_scope_format(s, "two workers wait for night 1 of %u", demo->nights));
    line_draw(view, "setting",
              hf_scope_format(s, "delivery fee %llu.%02llu",
                              (unsigned long long)now->fee_cents / 100,
                              (unsigned long long)now->fee_cents % 100));
    assert(view->drawn == LINES);
    fflush(view->out);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void line_print(struct demo_view *view, const struct moment *now)
{
    fprintf(view->out,
            "%2lld s: orders %llu, refused %llu; events delivered %llu, waiting %llu, dead letters "
            "%llu; payments %llu; projected %llu; night %u, fence %llu\n",
            (long long)(now->elapsed_us / 1000000), (unsigned long long)now->placed,
            (unsigned long long)now->refused, (unsigned long long)now->delivered,
            (unsigned long long)now->waiting, (unsigned long long)now->given_up,
            (unsigned long long)now->paid, (unsigned long long)now->projected, now->night,
            (unsigned long long)now->fence);
    fflush(view->out);
}

/* ---- both ----------------------------------------------------------------------------------- */

void hf__demo_view_begin(struct demo_view *view, FILE *out, bool screen, bool colors)
{
    *view = (struct demo_view){.out = out, .screen = screen, .colors = colors && screen};
    if (out && screen)
        fputs(CURSOR_HIDE, out);
}

void hf__demo_view_show(struct demo_view *view, struct hf_scope *s, struct demo *demo,
                        const char *state)
{
    struct moment now;

    if (!view->out)
        return;
    now = moment_of(s, demo);
    rates_update(view, &now);
    view->columns = view->screen ? columns_now() : 0;
    if (view->columns) {
        picture_draw(view, s, demo, &now, state);
    } else if (now.elapsed_us - view->line_us >= LINE_US) {
        view->line_us = now.elapsed_us;
        view->drawn = 0;
        line_print(view, &now);
    }
}

void hf__demo_view_end(struct demo_view *view)
{
    if (!view->out || !view->screen)
        return;
    fputs(CURSOR_SHOW, view->out);
    fflush(view->out);
    view->screen = false;
}
