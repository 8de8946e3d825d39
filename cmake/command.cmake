# How the holdfast command is linked: docs/decisions/0008-the-command-is-linked-statically.md.
#
#   HF_COMMAND_STATIC
#       AUTO (default): if there are archives of RocksDB and of what it needs, and no sanitizer
#       ON: they have to be there; OFF: the command is linked with shared libraries, as tests are
#
# Statically means: RocksDB, its compressors, the runtime of C++, libuv, xxHash and libdeflate are parts of the
# command, and OpenSSL is loaded when it is needed (src/cli/frame/process/openssl.c). Only the C library is
# shared, and one of an older system will do (src/cli/frame/process/portable.c, test/check/portable).
# Gives hf_link_command(TARGET).
set(HF_COMMAND_STATIC AUTO CACHE STRING "link RocksDB into the command: AUTO, ON or OFF")
set_property(CACHE HF_COMMAND_STATIC PROPERTY STRINGS AUTO ON OFF)

include(CheckSourceCompiles)

# The archives, as they were found. RocksDB's has to lie next to the shared one, whose headers are
# those that are used.
function(hf_find_archives out)
    get_filename_component(folder ${ROCKSDB_LIBRARY} DIRECTORY)
    find_library(HF_ARCHIVE_rocksdb NAMES librocksdb.a PATHS ${folder} NO_DEFAULT_PATH)
    set(found)
    foreach(name rocksdb snappy lz4 zstd bz2 z gflags)
        if(NOT name STREQUAL "rocksdb")
            find_library(HF_ARCHIVE_${name} NAMES lib${name}.a)
        endif()
        mark_as_advanced(HF_ARCHIVE_${name})
        if(HF_ARCHIVE_${name})
            list(APPEND found ${HF_ARCHIVE_${name}})
        endif()
    endforeach()
    # Compilers answer with the bare name when they do not have it.
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libstdc++.a
        OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(IS_ABSOLUTE "${runtime}")
        list(APPEND found ${runtime})
    endif()
    set(${out} ${found} PARENT_SCOPE)
endfunction()

# What else the command needs, for hf_link_command(). They are found beside the shared ones
# that pkg-config names, as their headers are those that are used.
function(hf_find_own_archives out)
    set(found)
    foreach(pair UV:uv_a XXHASH:xxhash DEFLATE:deflate)
        string(REPLACE ":" ";" pair ${pair})
        list(GET pair 0 module)
        list(GET pair 1 name)
        list(GET ${module}_LINK_LIBRARIES 0 shared)
        get_filename_component(folder ${shared} DIRECTORY)
        find_library(HF_ARCHIVE_${name} NAMES lib${name}.a PATHS ${folder} NO_DEFAULT_PATH)
        mark_as_advanced(HF_ARCHIVE_${name})
        if(NOT HF_ARCHIVE_${name})
            set(${out} NOTFOUND PARENT_SCOPE)
            return()
        endif()
        list(APPEND found ${HF_ARCHIVE_${name}})
    endforeach()
    set(${out} ${found} PARENT_SCOPE)
endfunction()

# hf_rocksdb_version(OUT): that of its headers, such as "7.8.3, part of the command", for `holdfast version`. The
# header is one of C++, so it is read as text.
function(hf_rocksdb_version out)
    find_path(ROCKSDB_INCLUDE rocksdb/version.h)
    mark_as_advanced(ROCKSDB_INCLUDE)
    set(version)
    if(ROCKSDB_INCLUDE)
        file(READ ${ROCKSDB_INCLUDE}/rocksdb/version.h text)
        foreach(part MAJOR MINOR PATCH)
            if(text MATCHES "#define ROCKSDB_${part} ([0-9]+)")
                list(APPEND version ${CMAKE_MATCH_1})
            endif()
        endforeach()
        list(JOIN version . version)
    endif()
    if(HF_LINKS_ARCHIVES)
        string(APPEND version ", part of the command")
    else()
        string(APPEND version ", the system's")
    endif()
    set(${out} "${version}" PARENT_SCOPE)
endfunction()

# Which of them RocksDB was built to need is not written anywhere, nor whether they can be part of a
# program that is position-independent. So it is tried.
function(hf_try_archives archives)
    if(NOT "${HF_ARCHIVES_TRIED}" STREQUAL "${archives}")
        unset(HF_ARCHIVES_LINK CACHE)
        set(HF_ARCHIVES_TRIED "${archives}" CACHE INTERNAL "what HF_ARCHIVES_LINK is about")
    endif()
    set(CMAKE_REQUIRED_QUIET ON)
    set(CMAKE_REQUIRED_FLAGS -fPIE)
    set(CMAKE_REQUIRED_LINK_OPTIONS -pie -static-libgcc)
    set(CMAKE_REQUIRED_LIBRARIES ${archives} m Threads::Threads ${CMAKE_DL_LIBS})
    check_source_compiles(C "
        void *rocksdb_open(const void *options, const char *name, char **error);
        int main(void) { char *error = 0; return rocksdb_open(0, \"\", &error) != 0; }"
        HF_ARCHIVES_LINK)
endfunction()

set(HF_LINKS_ARCHIVES OFF)
if(HF_COMMAND_STATIC STREQUAL "AUTO" AND HF_SANITIZE)
    message(STATUS "The command: shared libraries, for the sanitizers")
elseif(HF_COMMAND_STATIC)
    hf_find_archives(HF_ARCHIVES)
    hf_find_own_archives(HF_OWN_ARCHIVES)
    hf_try_archives("${HF_ARCHIVES};${HF_OWN_ARCHIVES}")
    if(HF_ARCHIVES_LINK)
        set(HF_LINKS_ARCHIVES ON)
        message(STATUS "The command: RocksDB is a part of it")
    elseif(HF_COMMAND_STATIC STREQUAL "AUTO")
        message(STATUS "The command: shared libraries, as archives do not link: ${HF_ARCHIVES}")
    else()
        message(FATAL_ERROR "HF_COMMAND_STATIC is on, but these do not link: ${HF_ARCHIVES}")
    endif()
endif()

# The editor of `holdfast shell` needs libedit's header to be built, and the library itself, which is loaded
# and not linked, only when the shell runs on a terminal.
#
#   HF_WITH_LIBEDIT
#       AUTO (default): when pkg-config finds it; ON: it has to be there; OFF: lines cannot be edited
set(HF_WITH_LIBEDIT AUTO CACHE STRING "edit lines in the shell: AUTO, ON or OFF")
set_property(CACHE HF_WITH_LIBEDIT PROPERTY STRINGS AUTO ON OFF)

function(hf_libedit source)
    if(HF_WITH_LIBEDIT STREQUAL "AUTO")
        pkg_check_modules(HF_LIBEDIT QUIET libedit)
    elseif(HF_WITH_LIBEDIT)
        pkg_check_modules(HF_LIBEDIT REQUIRED libedit)
    else()
        set(HF_LIBEDIT_FOUND FALSE)
    endif()
    if(HF_LIBEDIT_FOUND)
        list(GET HF_LIBEDIT_LINK_LIBRARIES 0 library)
        hf_soname(soname ${library})
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
            HF_WITH_LIBEDIT HF_LIBEDIT_LIBRARY="${soname}")
        set_property(SOURCE ${source} APPEND PROPERTY INCLUDE_DIRECTORIES ${HF_LIBEDIT_INCLUDE_DIRS})
        message(STATUS "The shell: lines are edited by ${soname}")
    else()
        message(STATUS "The shell: lines cannot be edited, as there is no libedit")
    endif()
endfunction()

# hf_find_unused(OUT): options for the linker, one for each function of C++ that cmake/rocksdb_unused.txt names and a
# part of RocksDB's archive asks for. Names of C++ are mangled: DB::Open begins with _ZN7rocksdb2DB4Open, and with
# _ZNK if it is const. (GNU's linker then leaves out what only they need; lld keeps it, but nobody gets there.)
function(hf_find_unused out)
    set(list ${CMAKE_SOURCE_DIR}/cmake/rocksdb_unused.txt)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
    file(STRINGS ${list} lines REGEX "^[A-Z]")
    set(begins)
    foreach(line ${lines})
        string(REGEX REPLACE " .*" "" path ${line})
        string(REPLACE "::" ";" path ${path})
        set(mangled _ZNK?7rocksdb)
        foreach(name ${path})
            string(LENGTH ${name} length)
            string(APPEND mangled ${length}${name})
        endforeach()
        list(APPEND begins ${mangled})
    endforeach()
    list(JOIN begins "|" begins)
    execute_process(COMMAND ${CMAKE_NM} -u ${HF_ARCHIVE_rocksdb} OUTPUT_VARIABLE names ERROR_QUIET)
    string(REGEX MATCHALL " (${begins})[A-Za-z0-9_]+" names "${names}")
    list(REMOVE_DUPLICATES names)
    list(SORT names)
    list(TRANSFORM names REPLACE " (.+)" "-Wl,--defsym=\\1=hf__rocksdb_unused" OUTPUT_VARIABLE options)
    set(${out} ${options} -Wl,-u,hf__rocksdb_unused PARENT_SCOPE)
endfunction()

function(hf_link_command target)
    if(NOT HF_LINKS_ARCHIVES)
        target_link_libraries(${target} PRIVATE inside PkgConfig::ZLIB)
        return()
    endif()
    target_sources(${target} PRIVATE src/cli/frame/process/openssl.c src/cli/frame/process/portable.c)
    foreach(library ${OPENSSL_LINK_LIBRARIES})
        if(library MATCHES "/lib(ssl|crypto)[.][^/]*$")
            string(TOUPPER ${CMAKE_MATCH_1} name)
            hf_soname(soname ${library})
            set_property(SOURCE src/cli/frame/process/openssl.c APPEND PROPERTY COMPILE_DEFINITIONS
                HF_${name}_LIBRARY="${soname}")
        endif()
    endforeach()
    target_include_directories(${target} PRIVATE ${OPENSSL_INCLUDE_DIRS})
    # Not inside_archive itself, which brings the shared libraries of the tests along.
    add_dependencies(${target} inside_archive)
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} PRIVATE hf_flags $<TARGET_FILE:inside_archive>
        ${HF_ARCHIVES} ${HF_OWN_ARCHIVES} m Threads::Threads ${CMAKE_DL_LIBS})
    # What nobody calls is left out. The options are in a file, too, for test/check/unused.
    hf_find_unused(unused)
    target_sources(${target} PRIVATE src/cli/frame/process/unused.c)
    list(JOIN unused "\n" lines)
    list(JOIN HF_ARCHIVES "\n" archives)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/rocksdb_unused CONTENT "${lines}\n${archives}\n" @ONLY)
    target_link_options(${target} PRIVATE -static-libgcc -Wl,--gc-sections ${unused})
endfunction()
