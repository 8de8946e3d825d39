# Headers, libraries, pkg-config files, the CMake package; what belongs to the command.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/holdfast TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(TARGETS holdfast holdfast_static holdfast_engine holdfast_engine_static holdfast_server
        holdfast_server_static
    EXPORT holdfast-targets)

# README.md, and all that its links lead to. Links of documents into the sources become plain text.
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md
              ${CMAKE_SOURCE_DIR}/SECURITY.md ${CMAKE_SOURCE_DIR}/CONTRIBUTING.md
              ${CMAKE_SOURCE_DIR}/CHANGELOG.md TYPE DOC)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs ${CMAKE_SOURCE_DIR}/changes TYPE DOC
        FILES_MATCHING PATTERN "*.md" PATTERN "*.png")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples TYPE DOC FILES_MATCHING PATTERN "*.c")
install(CODE "
    set(doc_dir \"${CMAKE_INSTALL_DOCDIR}\")
    cmake_path(ABSOLUTE_PATH doc_dir BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
    file(GLOB_RECURSE documents \"\$ENV{DESTDIR}\${doc_dir}/docs/*.md\")
    foreach(document \${documents})
        file(READ \${document} text)
        string(REGEX REPLACE \"\\\\[([^]\\n]*)\\\\]\\\\((([.][.]/)+(src|test|include|bench|console|bindings))/[^)\\n]*\\\\)\" \"\\\\1\"
            text \"\${text}\")
        file(WRITE \${document} \"\${text}\")
    endforeach()")

set(HF_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
install(EXPORT holdfast-targets NAMESPACE holdfast:: DESTINATION ${HF_PACKAGE_DIR})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/holdfast-config.cmake.in
    ${CMAKE_BINARY_DIR}/holdfast-config.cmake INSTALL_DESTINATION ${HF_PACKAGE_DIR})
# Until 1.0 a minor version may break what the one before it had.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/holdfast-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/holdfast-config.cmake
              ${CMAKE_BINARY_DIR}/holdfast-config-version.cmake
        DESTINATION ${HF_PACKAGE_DIR})

# Paths relative to the .pc file, so that an installed tree can be moved.
file(RELATIVE_PATH HF_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" HF_PC_TO_PREFIX ${HF_PC_TO_PREFIX})
# With --static a program is linked with our archives. The .pc files of the shared libraries come
# behind them then, and as nothing is left to be found there, --as-needed drops those.
# What RocksDB's archive needs is named for `cc -static`, as its own .pc file does not do that.
set(HF_PC_ROCKSDB -lrocksdb)
foreach(archive ${HF_ARCHIVES})
    get_filename_component(name ${archive} NAME_WE)
    string(REGEX REPLACE "^lib" "-l" name ${name})
    if(NOT name STREQUAL "-lrocksdb")
        string(APPEND HF_PC_ROCKSDB " ${name}")
    endif()
endforeach()
foreach(name holdfast holdfast-shared holdfast-engine holdfast-engine-shared holdfast-server
        holdfast-server-shared)
    configure_file(${CMAKE_SOURCE_DIR}/cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# Section 3 of the manual, made from the headers. Without Python there is none.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
    file(GLOB HF_HEADERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/holdfast/*.h)
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man3.made
        COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/man3.py
            ${CMAKE_SOURCE_DIR}/include/holdfast ${CMAKE_BINARY_DIR}/man3 ${PROJECT_VERSION}
        COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/man3.made
        DEPENDS ${HF_HEADERS} ${CMAKE_SOURCE_DIR}/cmake/man3.py
        COMMENT "Manual pages of section 3" VERBATIM)
    add_custom_target(man3 ALL DEPENDS ${CMAKE_BINARY_DIR}/man3.made)
    install(DIRECTORY ${CMAKE_BINARY_DIR}/man3/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
else()
    message(STATUS "No Python: without the manual pages of section 3")
endif()

# hf_install_texts(TARGET): what the command writes about itself: section 1 of the manual, from its tables,
# and completion for shells. A command with sanitizers is not installed, and one for another machine may
# not run here.
function(hf_install_texts target)
    if(HF_SANITIZE OR (CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR))
        message(STATUS "Without the manual pages of section 1, and completion")
        return()
    endif()
    set(texts ${CMAKE_BINARY_DIR}/texts)
    add_custom_command(OUTPUT ${texts}/made
        COMMAND ${CMAKE_COMMAND} -E rm -rf ${texts}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${texts}
        COMMAND ${target} manual ${texts}/man1
        COMMAND ${target} completion bash > ${texts}/holdfast
        COMMAND ${target} completion zsh > ${texts}/_holdfast
        COMMAND ${target} completion fish > ${texts}/holdfast.fish
        COMMAND ${CMAKE_COMMAND} -E touch ${texts}/made
        DEPENDS ${target}
        COMMENT "Manual pages of section 1, completion" VERBATIM)
    add_custom_target(texts ALL DEPENDS ${texts}/made)
    install(DIRECTORY ${texts}/man1/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${texts}/holdfast
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${texts}/_holdfast DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${texts}/holdfast.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endfunction()

# Units for systemd.
# The unit names the command by its whole path, and the prefix is known when it is installed:
# `cmake --install --prefix` may give another one than the configuration had.
install(CODE "
    set(command_dir \"${CMAKE_INSTALL_BINDIR}\")
    cmake_path(ABSOLUTE_PATH command_dir BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\"
        OUTPUT_VARIABLE CMAKE_INSTALL_FULL_BINDIR)
    configure_file(\"${CMAKE_SOURCE_DIR}/packaging/systemd/holdfast.service.in\"
        \"${CMAKE_BINARY_DIR}/holdfast.service\" @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/holdfast.service
              ${CMAKE_SOURCE_DIR}/packaging/systemd/holdfast.socket
        DESTINATION lib/systemd/system)
