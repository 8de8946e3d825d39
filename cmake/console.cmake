# The files of console/, as a source of the server: hf_console(TARGET). They are packed when they are built, by a program
# of this build (embed.c), so nothing that is generated is in the tree. A file that is added is found by the next build.
function(hf_console target)
    set(root ${CMAKE_SOURCE_DIR}/console)
    set(made ${CMAKE_BINARY_DIR}/console_files.c)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${root}
        ${root}/*.html ${root}/*.css ${root}/*.js ${root}/*.svg ${root}/*.png ${root}/*.json)
    list(TRANSFORM files PREPEND ${root}/ OUTPUT_VARIABLE paths)

    add_executable(embed ${CMAKE_SOURCE_DIR}/cmake/embed.c)
    target_include_directories(embed PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(embed PRIVATE hf_flags PkgConfig::DEFLATE)
    add_custom_command(OUTPUT ${made} COMMAND embed ${made} ${root} ${files} DEPENDS embed ${paths}
        COMMENT "Packing the console" VERBATIM)
    target_sources(${target} PRIVATE ${made})
endfunction()
