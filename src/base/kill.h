/*
 * base/kill.h: places at which a test can have the process killed.
 *
 * HF_KILL_AT=name:n in the environment ends the process with SIGKILL when it passes the point
 * `name` for the nth time. A process that wants to count from some place on calls hf__kill_at("name:n")
 * there: setenv() beside threads that pass points would move the environment under their hands.
 * Built only with the CMake option HF_KILL_POINTS; otherwise a kill point is nothing at all, and the
 * library reads no environment variable.
 */
#ifndef HF_BASE_KILL_H
#define HF_BASE_KILL_H

#ifdef HF_KILL_POINTS
void hf__kill_point(const char *name);

/* In place of HF_KILL_AT, once; `at` must stay. */
void hf__kill_at(const char *at);
#else
#define hf__kill_point(name) ((void)0)
#define hf__kill_at(at) ((void)(at))
#endif

#endif
