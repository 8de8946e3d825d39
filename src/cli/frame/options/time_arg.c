/*
 * cli/frame/options/time_arg.c: times of day as they are typed and as lists print them: RFC 3339. What names no zone is
 * UTC.
 */
#include "cli/frame/options/time_arg.h"

#include "cli/frame/options/options.h"

#include <string.h>
#include <time.h>

/* The digits behind a '.', as microseconds; more of them than we keep are passed over. */
static const char *take_fraction(const char *at, int64_t *us)
{
    int64_t digit_us = 100000;

    for (; *at >= '0' && *at <= '9'; at++) {
        *us += (*at - '0') * digit_us;
        digit_us /= 10;
    }
    return at;
}

/* "+05:30", in seconds to the east; false when it is none. */
static bool take_offset(const char **at, int64_t *east_s)
{
    int hours, minutes, len = 0;

    if (sscanf(*at + 1, "%2d:%2d%n", &hours, &minutes, &len) != 2 || len != 5 || hours < 0 ||
        hours > 23 || minutes < 0 || minutes > 59)
        return false;
    *east_s = (hours * 60 + minutes) * 60 * (**at == '-' ? -1 : 1);
    *at += 1 + len;
    return true;
}

bool hf__time_arg_parse_time(const char *text, int64_t *us)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm parts = {.tm_isdst = 0}, meant;
        const char *end = strptime(text, forms[i], &parts);
        int64_t fraction_us = 0, east_s = 0;
        time_t seconds;

        if (!end)
            continue;
        if (i == 0 && *end == '.')
            end = take_fraction(end + 1, &fraction_us);
        if (*end == 'Z')
            end++;
        else if (i < 2 && (*end == '+' || *end == '-') && !take_offset(&end, &east_s))
            return false;
        meant = parts;
        seconds = timegm(&parts); /* makes the 31st of February one of March */
        seconds -= (time_t)east_s;
        if (*end || seconds <= 0 || parts.tm_mday != meant.tm_mday)
            return false;
        *us = (int64_t)seconds * 1000000 + fraction_us;
        return true;
    }
    return false;
}

bool hf__time_arg_parse(struct hf_scope *s, const char *text, int64_t *us)
{
    const struct hf_env *env = hf_scope_env(s);
    int64_t now_us = env->wall_us(env->user);
    uint64_t ago_ms;

    if (!hf__options_duration(text, &ago_ms) || ago_ms >= (uint64_t)now_us / 1000)
        return hf__time_arg_parse_time(text, us);
    *us = now_us - (int64_t)ago_ms * 1000;
    return true;
}
