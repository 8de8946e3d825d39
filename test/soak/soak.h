/*
 * test/soak/soak.h: a server under load that is killed and stopped over and over.
 *
 *     soak.c       the plan: lives of the server, what must hold in and after each
 *     clients.c    hundreds of connections, each with keys of its own and what they must hold
 *     process.c    the server as a process: starting, ending, its memory and descriptors
 */
#ifndef HF_TEST_SOAK_H
#define HF_TEST_SOAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FAIL(...) soak_fail(__FILE__, __LINE__, __VA_ARGS__)

/* Say what is wrong and end with status 1, leaving the directory of the data. */
_Noreturn void soak_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

double soak_now(void); /* seconds of a clock that only goes forward */

/* ---- process.c ------------------------------------------------------------------------------- */

enum { PATH_ROOM = 300 };

struct process {
    const char *program;
    char dir[PATH_ROOM]; /* data and log are in it */
    pid_t pid;           /* 0: none runs */
    int out;             /* its standard output */
    unsigned port;
};

struct usage {
    double resident_mb; /* anonymous memory: heap and stacks, not mapped files */
    unsigned sockets;
    unsigned files; /* other descriptors */
};

void process_prepare(struct process *p, const char *program);
void process_start(struct process *p); /* returns when it listens */
void process_signal(const struct process *p, int number);
bool process_ended(struct process *p, int *status); /* does not wait */
struct usage process_usage(const struct process *p);
void process_remove(struct process *p); /* directory and all, when everything went well */

/* ---- clients.c ------------------------------------------------------------------------------- */

struct totals {
    uint64_t writes;   /* acknowledged */
    uint64_t reads;    /* answered as expected */
    uint64_t verified; /* items looked at after a restart */
    uint64_t open;     /* writes whose answer never came */
    uint64_t happened; /* of those: found done */
    uint64_t reconnects;
    uint64_t halves; /* requests that were begun and not ended, on purpose */
    double slowest_s;
};

struct clients;

struct clients *clients_new(size_t len, uint64_t seed);
void clients_free(struct clients *c);

void clients_connect(struct clients *c, unsigned port);
void clients_disconnect(struct clients *c);

/* Every key is read and compared. Returns when all were; nothing else may be under way. */
void clients_verify(struct clients *c);

/* Let them write and read for some time. While `dying`, connections may end and answers fail. */
void clients_run(struct clients *c, double seconds, bool dying);

/* Ask nothing more, and wait for what is under way. */
void clients_settle(struct clients *c);

/* The server is gone: what has no answer now may or may not have happened. */
void clients_lost(struct clients *c);

uint64_t clients_items(const struct clients *c); /* that must be there now */
const struct totals *clients_totals(const struct clients *c);

/* A call outside of the load, on a connection of its own; the answer's body is in `body`. */
int clients_call(unsigned port, const char *operation, const char *request, char *body,
                 size_t room);

#endif
