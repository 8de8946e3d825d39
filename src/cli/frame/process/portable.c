/*
 * cli/frame/process/portable.c: two functions of newer C libraries, so that the command runs with older ones.
 *
 * The archives of the C++ runtime are compiled for the C library of the machine that builds: libstdc++.a calls
 * arc4random(), of glibc 2.36, and libgcc_eh.a calls _dl_find_object(), of 2.35. Everything else that the
 * command needs is in 2.34. So it has these two itself; the linker takes them before it looks into libc.
 * test/check/portable reads which versions the command asks for.
 *
 * Only the command has this file, and only where HF_COMMAND_STATIC is on (cmake/command.cmake).
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 36)

/* For std::random_device. Only a kernel older than 3.17 has no getrandom(). */
uint32_t arc4random(void)
{
    uint32_t number;
    ssize_t len;

    do
        len = getrandom(&number, sizeof(number), 0);
    while (len < 0 && errno == EINTR);
    if (len != (ssize_t)sizeof(number))
        abort();
    return number;
}

#endif

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)

struct object_search {
    uintptr_t at;
    struct dl_find_object *found;
};

/* Is the address in a segment of this object, and does it have tables for the unwinder? */
static int object_look(struct dl_phdr_info *object, size_t size, void *user)
{
    struct object_search *search = user;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    void *tables = NULL;
    int inside = 0;

    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t first = object->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_GNU_EH_FRAME)
            tables = (void *)first; /* NOLINT(performance-no-int-to-ptr) */
        if (segment->p_type != PT_LOAD)
            continue;
        begin = first < begin ? first : begin;
        end = first + segment->p_memsz > end ? first + segment->p_memsz : end;
        inside = inside || (search->at >= first && search->at - first < segment->p_memsz);
    }
    if (!inside)
        return 0;
    if (tables)
        *search->found =
            (struct dl_find_object){.dlfo_map_start =
                                        (void *)begin, /* NOLINT(performance-no-int-to-ptr) */
                                    .dlfo_map_end =
                                        (void *)end, /* NOLINT(performance-no-int-to-ptr) */
                                    .dlfo_eh_frame = tables};
    return tables ? 1 : -1;
}

/*
 * For exceptions of C++, which look for the tables of each function that they leave. The unwinder reads
 * the range and dlfo_eh_frame; dlfo_link_map stays NULL.
 */
int _dl_find_object(void *address, struct dl_find_object *result)
{
    struct object_search search = {.at = (uintptr_t)address, .found = result};

    return dl_iterate_phdr(object_look, &search) == 1 ? 0 : -1;
}

#endif
