/*
 * test/fuzz/replay.c: main() for fuzz targets in builds without libFuzzer.
 *
 *     fuzz_NAME [DIRECTORY or FILE]...
 *
 * Runs the empty input, every file named, every file in the directories named, and then
 * HF_FUZZ_RUNS (default 20000) mutations of them. The mutations follow from HF_SEED, which is
 * printed; by default from the clock, so that every run looks somewhere else. An input that fails a
 * target ends the program; then its name is printed, and a mutation is kept in the file
 * fuzz_NAME-failed.
 *
 * What always holds:
 *
 *  (1) The target sees a copy of exact size in a fresh allocation, so that the address sanitizer
 *      sees a read past its end.
 *  (2) A run ends after RUN_SECONDS even if mutations are left: a slow target is not a failed one.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { INPUTS_MAX = 65536, INPUT_MAX = 1024 * 1024, RUNS = 20000, RUN_SECONDS = 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* There when linked with a sanitizer, which ends the program without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

struct input {
    uint8_t *data;
    size_t size;
};

static struct input inputs[INPUTS_MAX];
static size_t inputs_len;
static uint64_t seed;

/* What is running now, for the report. */
static const char *current_name;
static const uint8_t *current_data;
static size_t current_size;
static char kept_name[256];

static uint64_t next_random(void)
{
    uint64_t z = seed += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static size_t below(size_t bound)
{
    return (size_t)(next_random() % bound);
}

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nothing else to say it with */
}

/* Called while the program dies, so only with what is allowed in a signal handler. */
static void report(void)
{
    if (!current_data)
        return;
    say("failed on: ");
    say(current_name ? current_name : "a mutation, kept in the file ");
    say(current_name ? "" : kept_name);
    say("\n");
    if (!current_name) {
        int fd = open(kept_name, O_WRONLY | O_CREAT | O_TRUNC, 0666);

        if (fd < 0 || write(fd, current_data, current_size) != (ssize_t)current_size)
            say("and it could not be kept\n");
        close(fd);
    }
    current_data = NULL;
}

static void on_signal(int number)
{
    report();
    signal(number, SIG_DFL);
    raise(number);
}

static void run_input(const char *name, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    current_name = name;
    current_data = copy;
    current_size = size;
    LLVMFuzzerTestOneInput(copy, size);
    current_data = NULL;
    free(copy);
}

static bool run_file(const char *path)
{
    struct input input = {.data = malloc(INPUT_MAX)};
    FILE *file = fopen(path, "rb");
    uint8_t *shrunk;

    if (!file || !input.data || inputs_len == INPUTS_MAX) {
        fprintf(stderr, "cannot read %s\n", path);
        free(input.data);
        if (file)
            fclose(file);
        return false;
    }
    input.size = fread(input.data, 1, INPUT_MAX, file);
    fclose(file);
    shrunk = realloc(input.data, input.size ? input.size : 1);
    input.data = shrunk ? shrunk : input.data;
    inputs[inputs_len++] = input;
    run_input(path, input.data, input.size);
    return true;
}

static bool run_path(const char *path)
{
    struct stat info;
    struct dirent **entries;
    int count;
    bool good = true;

    if (stat(path, &info) != 0)
        return true; /* a target may have no corpus yet */
    if (!S_ISDIR(info.st_mode))
        return run_file(path);
    count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char full[4096];

        snprintf(full, sizeof(full), "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            good = run_file(full) && good;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return good;
}

/* Change up to a few places of data, which has room for INPUT_MAX bytes; returns the new size. */
static size_t mutate(uint8_t *data, size_t size)
{
    for (size_t change = 1 + below(4); change > 0; change--) {
        size_t at = size ? below(size) : 0;
        const struct input *other = &inputs[below(inputs_len)];
        size_t from, len;

        switch (size ? below(7) : 6) {
        case 0: /* flip a bit */
            data[at] ^= (uint8_t)(1u << below(8));
            break;
        case 1: /* another byte */
            data[at] = (uint8_t)next_random();
            break;
        case 2: /* a byte that means something in lengths, numbers and texts */
            data[at] = (uint8_t) "\x00\x01\x7f\x80\xff\"\\{}[]:,.-+eE0 \t\n"[below(22)];
            break;
        case 3: /* cut off the end */
            size = at;
            break;
        case 4: /* take out a piece */
            len = below(size - at) + 1;
            memmove(data + at, data + at + len, size - at - len);
            size -= len;
            break;
        case 5: /* repeat a piece */
            len = below(size - at < 64 ? size - at : 64) + 1;
            if (len > size - at)
                len = size - at;
            if (size + len <= INPUT_MAX) {
                memmove(data + at + len, data + at, size - at);
                size += len;
            }
            break;
        case 6: /* put in a piece of another input, or a byte when it is empty */
            from = other->size ? below(other->size) : 0;
            len = other->size ? below(other->size - from) + 1 : 1;
            if (size + len > INPUT_MAX)
                break;
            memmove(data + at + len, data + at, size - at);
            if (other->size)
                memcpy(data + at, other->data + from, len);
            else
                data[at] = (uint8_t)next_random();
            size += len;
            break;
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM};
    const char *seed_text = getenv("HF_SEED");
    const char *runs_text = getenv("HF_FUZZ_RUNS");
    unsigned long runs = runs_text ? strtoul(runs_text, NULL, 10) : RUNS;
    unsigned long done = 0;
    time_t end = time(NULL) + RUN_SECONDS;
    uint8_t *data = malloc(INPUT_MAX);
    bool good = data != NULL;

    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
        signal(deadly[i], on_signal);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(report);
    seed =
        seed_text ? strtoull(seed_text, NULL, 0) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    snprintf(kept_name, sizeof(kept_name), "%s-failed", basename(argv[0]));
    printf("HF_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);

    inputs[inputs_len++] = (struct input){0};
    run_input("the empty input", (const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++)
        good = run_path(argv[i]) && good;
    for (; good && done < runs && time(NULL) < end; done++) {
        const struct input *input = &inputs[below(inputs_len)];

        if (input->size)
            memcpy(data, input->data, input->size);
        run_input(NULL, data, mutate(data, input->size));
    }
    printf("%zu inputs, %lu mutations\n", inputs_len, done);
    for (size_t i = 0; i < inputs_len; i++)
        free(inputs[i].data);
    free(data);
    return good ? 0 : 1;
}
