# The sinks of brokers. Each needs a library's headers to be built and, as it is loaded when a sink
# is opened and not linked, the library itself only then: docs/decisions/0006-sinks-load-their-libraries.md.
#
#   HF_WITH_KAFKA, _NATS, _RABBITMQ, _REDIS, _MQTT
#       AUTO (default): when pkg-config finds the library; ON: it has to be there; OFF
#
# Gives HF_BROKERS, those that are built, and sets what the files of src/sinks need to be compiled.
set(HF_BROKERS)
file(GLOB HF_SINK_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/sinks/*.c)

# The name under which programs find that library.
function(hf_soname out library)
    execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${library} OUTPUT_VARIABLE headers ERROR_QUIET)
    if(NOT headers MATCHES "SONAME +([^ \n]+)")
        message(FATAL_ERROR "${library} has no SONAME, so it cannot be loaded; "
            "the shared library is wanted")
    endif()
    set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

foreach(broker KAFKA:rdkafka NATS:libnats RABBITMQ:librabbitmq REDIS:hiredis MQTT:libmosquitto)
    string(REPLACE ":" ";" broker ${broker})
    list(GET broker 0 name)
    list(GET broker 1 module)
    set(HF_WITH_${name} AUTO CACHE STRING "build the sink for it: AUTO, ON or OFF (${module})")
    set_property(CACHE HF_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
    if(HF_WITH_${name} STREQUAL "AUTO")
        pkg_check_modules(HF_${name} QUIET ${module})
    elseif(HF_WITH_${name})
        pkg_check_modules(HF_${name} REQUIRED ${module})
    else()
        set(HF_${name}_FOUND FALSE)
    endif()
    if(HF_${name}_FOUND)
        list(GET HF_${name}_LINK_LIBRARIES 0 library)
        hf_soname(soname ${library})
        set_property(SOURCE ${HF_SINK_SOURCES} APPEND PROPERTY COMPILE_DEFINITIONS
            HF_WITH_${name} HF_${name}_LIBRARY="${soname}")
        set_property(SOURCE ${HF_SINK_SOURCES} APPEND PROPERTY INCLUDE_DIRECTORIES
            ${HF_${name}_INCLUDE_DIRS})
        string(TOLOWER ${name} lower)
        list(APPEND HF_BROKERS ${lower})
    endif()
endforeach()

# Sources of kinds that are not built are left out.
function(hf_without_brokers sources)
    foreach(lower kafka nats rabbitmq redis mqtt)
        if(NOT lower IN_LIST HF_BROKERS)
            list(FILTER ${sources} EXCLUDE REGEX "/src/sinks/sink_${lower}[.]c$")
        endif()
    endforeach()
    set(${sources} ${${sources}} PARENT_SCOPE)
endfunction()

list(JOIN HF_BROKERS " " names)
message(STATUS "Sinks of brokers: ${names}")
