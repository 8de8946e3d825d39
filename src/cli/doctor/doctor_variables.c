/*
 * cli/doctor/doctor_variables.c: environment variables that do not do what somebody may hope.
 *
 * Which variables of HOLDFAST_ there are the tables of options say, and a list of those that programs
 * get which the command runs. Of AWS_ there is a list: those that the client reads. Others are
 * AWS's own tools', so one of these is reported only if it is nearly one that the client reads.
 */
#include "cli/doctor/doctor.h"

#include "base/aws_variables.h"
#include "cli/frame/options/nearest.h"
#include "cli/frame/options/time_arg.h"

#include <unistd.h>

enum { NAME_MAX_BYTES = 128, SLIPS_MAX = 2 /* letters that may be wrong in a name */ };

/* Which file names the databases: no option has it. */
#define OF_CONFIG "HOLDFAST_CONFIG"

/* What programs get that the command runs: a nested command sees them. */
static const char *const given[] = {
    "HOLDFAST_EVENT_ID",     "HOLDFAST_EVENT_POSITION",  "HOLDFAST_EVENT_STREAM",
    "HOLDFAST_EVENT_TYPE",   "HOLDFAST_EVENT_VERSION",   "HOLDFAST_LOCK_NAME",
    "HOLDFAST_LOCK_TOKEN",   "HOLDFAST_ONCE_KEY",        "HOLDFAST_ONCE_TRY",
    "HOLDFAST_OPTIONS",      "HOLDFAST_RECORD_ACCOUNT",  "HOLDFAST_RECORD_ATTEMPT",
    "HOLDFAST_RECORD_FENCE", "HOLDFAST_RECORD_RUN_TIME",
};

static const char *const of_aws[] = {AWS_VARIABLES};

/* Is it one of ours? `nearest` gets all of them offered. */
static bool is_ours(const struct cli *cli, const char *name, struct nearest *nearest)
{
    bool found = false;

    for (size_t i = 0; i < cli->commands_len; i++) {
        const struct options_table *table = cli->commands[i].options;

        for (size_t at = 0; table && at < table->len; at++) {
            if (!table->specs[at].env)
                continue;
            found = found || strcmp(table->specs[at].env, name) == 0;
            hf__nearest_offer(nearest, table->specs[at].env);
        }
    }
    hf__nearest_offer(nearest, OF_CONFIG);
    found = found || strcmp(OF_CONFIG, name) == 0;
    for (size_t i = 0; i < COMMAND_LEN(given); i++)
        found = found || strcmp(given[i], name) == 0;
    return found;
}

static bool is_aws(const char *name, struct nearest *nearest)
{
    bool found = false;

    for (size_t i = 0; i < COMMAND_LEN(of_aws); i++) {
        found = found || strcmp(of_aws[i], name) == 0;
        hf__nearest_offer(nearest, of_aws[i]);
    }
    return found;
}

static void name_check(struct doctor *d, const char *name)
{
    struct nearest nearest = {.word = name};
    bool ours = strncmp(name, "HOLDFAST_", strlen("HOLDFAST_")) == 0;
    bool known = ours ? is_ours(d->cli, name, &nearest) : is_aws(name, &nearest);
    bool near = nearest.best && hf__nearest_distance(name, nearest.best) <= SLIPS_MAX;

    if (known || (!ours && !near))
        return;
    hf__doctor_add(d, "variable", FINDING_WARNING,
                   hf__doctor_text(d, "%s is set and has no effect", name),
                   near ? hf__doctor_text(d, "Did you mean %s?", nearest.best)
                        : HF_STR("Remove it. 'holdfast COMMAND --help' shows the variables that "
                                 "commands read."));
}

static bool is_set(const struct doctor *d, const char *name)
{
    const char *value = d->cli->env(name);

    return value && *value;
}

/* Of two that say the same thing one wins. */
static void pairs_check(struct doctor *d)
{
    const char *region = d->cli->env("AWS_REGION"), *other = d->cli->env("AWS_DEFAULT_REGION");

    if (is_set(d, "AWS_REGION") && is_set(d, "AWS_DEFAULT_REGION") && strcmp(region, other) != 0)
        hf__doctor_add(d, "variable", FINDING_WARNING,
                       hf__doctor_text(d, "AWS_REGION is %s, and AWS_DEFAULT_REGION is %s", region,
                                       other),
                       HF_STR("AWS_REGION is used. Some tools read the other: set both to the "
                              "same region."));
    if (is_set(d, "AWS_PROFILE") && is_set(d, "AWS_ACCESS_KEY_ID"))
        hf__doctor_add(d, "variable", FINDING_WARNING,
                       HF_STR("AWS_PROFILE is set, and so is AWS_ACCESS_KEY_ID"),
                       HF_STR("The key is used, not the profile's. Unset AWS_ACCESS_KEY_ID, or use "
                              "--profile."));
    if (is_set(d, "AWS_ACCESS_KEY_ID") != is_set(d, "AWS_SECRET_ACCESS_KEY"))
        hf__doctor_add(d, "variable", FINDING_PROBLEM,
                       HF_STR("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set"),
                       HF_STR("Set both, or none."));
}

/* Tools that set temporary keys say when they expire. */
static void expiry_check(struct doctor *d)
{
    const struct hf_env *env = hf_scope_env(d->s);
    const char *text = d->cli->env("AWS_CREDENTIAL_EXPIRATION");
    int64_t us;

    if (is_set(d, "AWS_ACCESS_KEY_ID") && text && hf__time_arg_parse_time(text, &us) &&
        us <= env->wall_us(env->user))
        hf__doctor_add(d, "variable", FINDING_PROBLEM,
                       hf__doctor_text(d, "AWS_CREDENTIAL_EXPIRATION is %s: the key has expired",
                                       text),
                       HF_STR("Get new credentials from the tool that set these."));
}

void hf__doctor_variables(struct doctor *d)
{
    size_t before = d->counts[FINDING_WARNING] + d->counts[FINDING_PROBLEM];

    for (char **at = environ; at && *at; at++) {
        size_t len = strcspn(*at, "=");
        char name[NAME_MAX_BYTES];

        if ((strncmp(*at, "HOLDFAST_", 9) != 0 && strncmp(*at, "AWS_", 4) != 0) ||
            len >= sizeof(name))
            continue;
        memcpy(name, *at, len);
        name[len] = '\0';
        name_check(d, name);
    }
    pairs_check(d);
    expiry_check(d);
    if (before == d->counts[FINDING_WARNING] + d->counts[FINDING_PROBLEM])
        hf__doctor_add(d, "variables", FINDING_OK,
                       HF_STR("none of HOLDFAST_* and AWS_* is misspelt or contradicts another"),
                       HF_STR(""));
}
