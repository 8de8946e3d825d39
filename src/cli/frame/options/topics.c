/*
 * cli/frame/options/topics.c: what holds for all commands, as texts: `holdfast help TOPIC`. They are sections
 * of holdfast(1) as well.
 */
#include "cli/frame/options/help.h"

const char hf__help_about[] =
    "holdfast is a DynamoDB-compatible database and a set of durable building blocks: locks, "
    "counters, rate limits, run-once jobs, an outbox and an event store. The building blocks "
    "work on any such database.";

const struct help_topic hf__help_topics[] = {
    {"options", "OPTIONS", "how options are written",
     "These can come before the command:\n"
     "  --env-file FILE\tSet the environment variables of a file, such as .env, for this command "
     "and the programs that it runs. Variables that are already set are not changed. The option "
     "can be repeated; if a name occurs several times, the last value is used. A line is "
     "NAME=VALUE, or blank, or a comment that begins with #. A value can be in single or double "
     "quotes; without quotes it ends before a # that follows a blank. Nothing is expanded. "
     "Limits: 64 KiB per file, 1000 variables in all files.\n"
     "  -h, --help\tShow the commands, or after a command its options.\n"
     "  -V, --version\tShow the version. 'holdfast version' also shows the broker sinks and the "
     "version of RocksDB.\n"
     "  --db, --prefix, --profile, --region, --timeout, --json, --jsonl, -q, --quiet\tThe options "
     "that most commands share. They can be before the command or behind it.\n\n"
     "--port 8000 and --port=8000 are the same, and so are -p 8000 and -p8000 where there is a "
     "short form. Flags have a form --no-NAME that turns them off. If an option is given twice, "
     "the last value is used, unless the option can be repeated. Names cannot be abbreviated. "
     "-- ends the options.\n\n"
     "Times have a unit: 300ms, 5s, 2m, 1h, 7d. Sizes are bytes or have a unit: 512KiB, 32MiB, "
     "1GiB, and KB, MB, GB (powers of 1000)."},
    {"database", "DATABASE", "which database a command uses",
     "Commands take the database by --db URL or the variable HOLDFAST_DB:\n"
     "  http://HOST:PORT, https://HOST:PORT\tA server: 'holdfast serve', DynamoDB Local, ScyllaDB "
     "and others that speak DynamoDB's protocol. http://127.0.0.1:8000 is the default.\n"
     "  dynamodb://REGION\tAmazon DynamoDB.\n"
     "  embedded:DIR\tA data directory. Only one process can open it at a time. The error names "
     "the process that has it open, and its URL if it is a server. 'lock run' and 'once run' wait "
     "until it is free. Commands that store something new create the directory; for others it "
     "must exist (exit code 3).\n"
     "  memory:\tAn empty database that is lost on exit.\n\n"
     "If nothing was stored yet, lists, an outbox and an event store are empty, with exit code 0; "
     "but a table that you name with --table must exist. Only commands that store something "
     "create a table, a data directory or the folder of --blobs dir:PATH."},
    {"output", "OUTPUT", "what commands print, for people and for programs",
     "Lists are tables on a terminal. Elsewhere they have one line per row, with tabs between the "
     "fields, - for absent values, and \\n, \\t, \\\\, \\x1b for control characters. With --json "
     "the output is one JSON object on one line, with --jsonl one per row. New versions may add "
     "members to these objects, but do not change or remove any.\n\n"
     "On a terminal times are local, with their offset, and durations are like 14m 59s; elsewhere "
     "times are UTC and durations milliseconds. If a table is too wide for the terminal, long "
     "texts are shortened, or each row is shown as several lines. Headings are bold unless the "
     "variable NO_COLOR is set or TERM is dumb.\n\n"
     "Errors are one line on standard error. With --json or --jsonl that line is an object. Every "
     "command takes --json; for those whose output has no JSON it changes only this:\n\n"
     "  {\"error\":{\"code\":\"not_found\",\"message\":\"key 'x' does not exist\",\n"
     "   \"may_have_happened\":false,\"command\":\"kv get\"}}\n\n"
     "The code is a status of the library in lower case without HF_, such as not_found, "
     "condition, denied, throttled or io (docs/errors.md has all of them); or, for an error that "
     "the command itself detects, invalid, not_found, condition, unavailable, timeout or failed. "
     "\"may_have_happened\" is true if the change may have been made although the response was "
     "lost. If a limit was exceeded, the object has \"limit\", with its \"name\", \"max\" and "
     "\"actual\". If another error led to this one, it has \"cause\", an object with a code, a "
     "message, and possibly a limit and a cause of its own. Errors about arguments also have "
     "\"hint\", which says where to find help. The exit code is the same as without --json."},
    {"exit-codes", "EXIT STATUS", "what the exit codes mean to scripts",
     "The meaning of these numbers does not change:\n"
     "  0\tSuccess.\n"
     "  1\tFailed for any other reason.\n"
     "  2\tInvalid arguments, or an invalid variable or file; nothing was done.\n"
     "  3\tNot found: no such table, lock or key.\n"
     "  4\tCondition not met, or held by another: also a limit that is reached, or a table that "
     "already exists.\n"
     "  5\tAccess denied: missing or wrong credentials.\n"
     "  6\tService not reachable or throttling, or the data directory is in use; a later attempt "
     "may succeed.\n"
     "  7\tTimed out: --timeout was exceeded.\n"
     "  8\tStored data is damaged, or newer than the program.\n"
     "  124\tThe program took too long and was stopped, as with timeout(1).\n"
     "  126\tThe program cannot be executed.\n"
     "  127\tProgram not found.\n\n"
     "128 + N: signal N ended the program that was run, or the command. 'serve' uses 3 and 4 "
     "differently: see 'holdfast serve --help'."},
    {"environment", "ENVIRONMENT", "the variables that commands read",
     "Commands read only the variables that their help names. Options override variables.\n\n"
     "  HOLDFAST_DB\tThe database: --db.\n"
     "  HOLDFAST_PREFIX\tPrefix for all table names: --prefix.\n"
     "  NO_COLOR\tNo bold text and no colours.\n\n"
     "Commands that connect to a service also read the variables and files of AWS, as AWS's own "
     "tools do (AWS_PROFILE, AWS_REGION, AWS_ACCESS_KEY_ID and so on, ~/.aws/config, "
     "~/.aws/credentials), and the variables of proxies (HTTPS_PROXY, NO_PROXY)."},
    {"files", "FILES", "the files that commands use",
     "  holdfast.db\tThe data directory of 'holdfast serve', in the working directory. docs/format.md "
     "describes it; copy it only while no process has it open.\n"
     "  ~/.aws/config, ~/.aws/credentials\tProfiles, regions and keys of AWS's tools.\n"
     "  holdfast.service, holdfast.socket\tUnits for systemd."},
};

const size_t hf__help_topics_len = sizeof(hf__help_topics) / sizeof(hf__help_topics[0]);
