/*
 * base/kill.h: places at which a test can have the process killed.
 *
 * HF_KILL_AT=name:n in the environment ends the process with SIGKILL when it passes the point
 * `name` for the nth time. Built only with the CMake option HF_KILL_POINTS; otherwise a kill point
 * is nothing at all, and the library reads no environment variable.
 */
#ifndef HF_BASE_KILL_H
#define HF_BASE_KILL_H

#ifdef HF_KILL_POINTS
void hf__kill_point(const char *name);
#else
#define hf__kill_point(name) ((void)0)
#endif

#endif
