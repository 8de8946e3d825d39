# The three libraries, each shared and static, from the objects of the folders.
#
# What libholdfast shows is decided by one version script, cmake/holdfast.map.in: hf_* to everybody,
# hf__* to the libholdfast-engine of the very same version, nothing else to anybody. The reasons are
# in docs/decisions/0001-two-libraries.md; the public names are in cmake/symbols/, and a test
# compares them.

configure_file(${CMAKE_SOURCE_DIR}/cmake/holdfast.map.in ${CMAKE_BINARY_DIR}/holdfast.map @ONLY)
configure_file(${CMAKE_SOURCE_DIR}/cmake/holdfast-engine.map.in
    ${CMAKE_BINARY_DIR}/holdfast-engine.map @ONLY)
configure_file(${CMAKE_SOURCE_DIR}/cmake/holdfast-server.map.in
    ${CMAKE_BINARY_DIR}/holdfast-server.map @ONLY)

# Until 1.0 a minor version may break what the one before it had, so it has a name of its own for
# the loader: libholdfast.so.0.1. docs/abi.md says what is kept within one.
set(HF_SOVERSION ${HF_SOVERSION})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(HF_SOVERSION 0.${PROJECT_VERSION_MINOR})
endif()

function(hf_library target output objects)
    add_library(${target} SHARED $<TARGET_OBJECTS:${objects}>)
    add_library(${target}_static STATIC $<TARGET_OBJECTS:${objects}>)
    foreach(library ${target} ${target}_static)
        set_target_properties(${library} PROPERTIES OUTPUT_NAME ${output})
        target_include_directories(${library} PUBLIC
            $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    endforeach()
    set_target_properties(${target} PROPERTIES
        VERSION ${PROJECT_VERSION}
        SOVERSION ${HF_SOVERSION}
        LINK_DEPENDS ${CMAKE_BINARY_DIR}/${output}.map)
    # Calls inside the library stay inside it; no table lookup, nobody can put himself in between.
    target_link_options(${target} PRIVATE
        -Wl,--version-script=${CMAKE_BINARY_DIR}/${output}.map -Wl,-Bsymbolic-functions)
    if(NOT HF_SANITIZE)
        target_link_options(${target} PRIVATE -Wl,-z,defs)
    endif()
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:hf_flags> Threads::Threads)
endfunction()

hf_library(holdfast holdfast core)
target_link_libraries(holdfast PRIVATE $<BUILD_INTERFACE:PkgConfig::XXHASH>
    $<BUILD_INTERFACE:PkgConfig::OPENSSL> $<BUILD_INTERFACE:PkgConfig::DEFLATE>
    $<BUILD_INTERFACE:${CMAKE_DL_LIBS}>)

hf_library(holdfast_engine holdfast-engine engine)
target_link_libraries(holdfast_engine
    PUBLIC holdfast
    PRIVATE $<BUILD_INTERFACE:PkgConfig::XXHASH> $<BUILD_INTERFACE:PkgConfig::ZLIB>
            $<BUILD_INTERFACE:${ROCKSDB_LIBRARY}>)

hf_library(holdfast_server holdfast-server server)
target_link_libraries(holdfast_server
    PUBLIC holdfast_engine holdfast
    PRIVATE $<BUILD_INTERFACE:PkgConfig::UV> $<BUILD_INTERFACE:PkgConfig::OPENSSL>
            $<BUILD_INTERFACE:PkgConfig::DEFLATE>)

# They find the others where they lie themselves, in whatever prefix.
set_target_properties(holdfast_engine holdfast_server PROPERTIES INSTALL_RPATH "$ORIGIN")

# For find_package(); inside this build nobody links the archives. Plain -l names: the packages
# that they come from are the business of whoever links statically.
target_link_libraries(holdfast_static INTERFACE Threads::Threads
    $<INSTALL_INTERFACE:-lxxhash;-lssl;-lcrypto;-ldeflate>)
target_link_libraries(holdfast_engine_static INTERFACE
    holdfast_static $<INSTALL_INTERFACE:-lrocksdb;-lz>)
target_link_libraries(holdfast_server_static INTERFACE
    holdfast_engine_static $<INSTALL_INTERFACE:-luv;-lssl;-lcrypto;-ldeflate>)

set_target_properties(holdfast PROPERTIES EXPORT_NAME holdfast)
set_target_properties(holdfast_static PROPERTIES EXPORT_NAME holdfast_static)
set_target_properties(holdfast_engine PROPERTIES EXPORT_NAME engine)
set_target_properties(holdfast_engine_static PROPERTIES EXPORT_NAME engine_static)
set_target_properties(holdfast_server PROPERTIES EXPORT_NAME server)
set_target_properties(holdfast_server_static PROPERTIES EXPORT_NAME server_static)
