# Flags that every target gets, through hf_flags.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(hf_flags INTERFACE)
target_compile_definitions(hf_flags INTERFACE _GNU_SOURCE)
target_compile_options(hf_flags INTERFACE
    -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
    -Wcast-qual -Wundef -Wwrite-strings -Wvla -Wno-sign-conversion
    -fno-common -fstack-protector-strong -fstack-clash-protection
    $<$<CONFIG:Release>:-fno-semantic-interposition>)
if(HF_WERROR)
    target_compile_options(hf_flags INTERFACE -Werror)
endif()
if(HF_SANITIZE)
    target_compile_options(hf_flags INTERFACE
        -fsanitize=${HF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(hf_flags INTERFACE -fsanitize=${HF_SANITIZE})
endif()
if(HF_COVERAGE)
    target_compile_options(hf_flags INTERFACE --coverage)
    target_link_options(hf_flags INTERFACE --coverage)
endif()
if(HF_KILL_POINTS)
    target_compile_definitions(hf_flags INTERFACE HF_KILL_POINTS)
endif()
