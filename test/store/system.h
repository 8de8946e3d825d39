/*
 * store/system.h: the system's calls as tests want them. This program has its own write(),
 * pwrite(), pread(), fdatasync() and fstatvfs(), in disk_test.c, which look at these.
 */
#ifndef HF_TEST_STORE_SYSTEM_H
#define HF_TEST_STORE_SYSTEM_H

#include <stdatomic.h>

extern atomic_int write_errno;           /* what writes fail with; 0: they do not */
extern const char *_Atomic write_target; /* those to files with this in their names, NULL: all */
extern atomic_int sync_errno;            /* what fdatasync() fails with */
extern atomic_int read_errno;            /* the same of pread() */
extern const char *_Atomic read_target;
extern atomic_uint_fast64_t system_bytes_free; /* that disks claim to have; 0: what they have */

#endif
