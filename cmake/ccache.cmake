# Compilers run behind ccache where it is installed: a fresh clone then compiles only what no clone on this machine
# has compiled. -DHF_CCACHE=OFF leaves it out; so do a launcher of your own, a compiler that is ccache already,
# and coverage, whose notes name folders.
#
#   CCACHE_BASEDIR     paths below this clone are made relative, so that those of other clones are the same
#   CCACHE_NOHASHDIR   nor does the folder of the build count. Debug information that came from another clone names
#                      that clone's folder, whose sources were the same then; a release names no folder at all
#   CCACHE_DEPEND      a file that is not known is compiled and not preprocessed before
option(HF_CCACHE "compile behind ccache, if it is installed" ON)
get_filename_component(compiler "${CMAKE_C_COMPILER}" REALPATH)
if(NOT HF_CCACHE OR HF_COVERAGE OR CMAKE_C_COMPILER_LAUNCHER OR compiler MATCHES "/ccache$")
    return()
endif()
find_program(HF_CCACHE_PROGRAM ccache)
find_program(HF_ENV_PROGRAM env)
mark_as_advanced(HF_CCACHE_PROGRAM HF_ENV_PROGRAM)
if(HF_CCACHE_PROGRAM AND HF_ENV_PROGRAM)
    set(CMAKE_C_COMPILER_LAUNCHER ${HF_ENV_PROGRAM} CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=yes
        CCACHE_DEPEND=yes ${HF_CCACHE_PROGRAM})
    message(STATUS "Compilers run behind ccache")
endif()
