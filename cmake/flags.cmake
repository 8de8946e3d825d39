# Flags that every target gets, through hf_flags.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON) # no path of the build machine in what is built

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

# Asserts stay on in every build, whoever chose the flags.
foreach(type RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${type} "${CMAKE_C_FLAGS_${type}}")
endforeach()

# Programs are position-independent too.
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

add_library(hf_flags INTERFACE)
target_compile_definitions(hf_flags INTERFACE _GNU_SOURCE)
target_compile_options(hf_flags INTERFACE
    -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
    -Wcast-qual -Wundef -Wwrite-strings -Wvla -Wno-sign-conversion
    -fno-common -fstack-protector-strong -fstack-clash-protection)
target_link_options(hf_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

# gcc finds some mistakes only where it inlines and follows values. So what is not sanitized, dev above all, is compiled
# as a release is: test/check/optimised.
set(HF_AS_RELEASE OFF)
if(NOT HF_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(HF_AS_RELEASE ON)
    target_compile_options(hf_flags INTERFACE -fno-semantic-interposition)
endif()

# A release is the same bytes wherever it was built. Elsewhere only __FILE__ is cut short, so that
# debuggers and coverage still find the sources.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(hf_flags INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
else()
    target_compile_options(hf_flags INTERFACE -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
endif()
if(HF_WERROR)
    target_compile_options(hf_flags INTERFACE -Werror)
endif()
if(HF_SANITIZE)
    target_compile_options(hf_flags INTERFACE
        -fsanitize=${HF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(hf_flags INTERFACE -fsanitize=${HF_SANITIZE})
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    # Needs an optimiser, and hides from the sanitizers what they look for.
    target_compile_options(hf_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
if(HF_FUZZ)
    target_compile_options(hf_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(HF_COVERAGE)
    target_compile_options(hf_flags INTERFACE --coverage)
    target_link_options(hf_flags INTERFACE --coverage)
endif()
if(HF_KILL_POINTS)
    target_compile_definitions(hf_flags INTERFACE HF_KILL_POINTS)
endif()
