/*
 * cli/frame/process/unused.c: in the place of parts of RocksDB that the command never uses and does not have.
 *
 * cmake/rocksdb_unused.txt names them; the linker lets all of them begin here. Only the command has this file, and only
 * where HF_COMMAND_STATIC is on (cmake/command.cmake). Nothing of ours calls them, which test/check/unused verifies: they
 * are named by the functions of RocksDB's interface for C, which come as one piece.
 */
#include <stdio.h>
#include <stdlib.h>

_Noreturn void hf__rocksdb_unused(void);

_Noreturn void hf__rocksdb_unused(void)
{
    fputs(
        "holdfast: internal error: this part of RocksDB was left out of the program: cmake/rocksdb_unused.txt\n",
        stderr);
    abort();
}
