/*
 * base/stdio_fds.h: no file of ours has the descriptor of standard input, output or error.
 *
 * A program that was started with one of them closed gives that number to the next file that is opened. If that is a
 * file of the database, whatever the program prints is written into the database. So those that are closed are opened
 * on /dev/null first, in a way in which nothing can be written: a program that prints gets an error.
 */
#ifndef HF_BASE_STDIO_FDS_H
#define HF_BASE_STDIO_FDS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* False: there is no /dev/null, or no descriptor is left. */
static inline bool stdio_fds_fill(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) != fd)
            return false;
    return true;
}

#endif
