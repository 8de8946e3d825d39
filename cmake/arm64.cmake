# Cross-compile for Linux on arm64 with Debian's compiler, into a root with its libraries:
#
#   apt-get install g++-aarch64-linux-gnu qemu-user-static mmdebstrap
#   mmdebstrap --arch=arm64 --variant=extract --include=libc6-dev,libstdc++-12-dev,librocksdb-dev,libsnappy-dev,liblz4-dev,\
#       libzstd-dev,libbz2-dev,zlib1g-dev,libgflags-dev,libuv1-dev,libxxhash-dev,libdeflate-dev,libssl-dev,\
#       libcurl4-openssl-dev bookworm ROOT
#   symlinks of ROOT that begin with / have to be made relative, as for `symlinks -c`
#   HF_SYSROOT=ROOT cmake -S . -B build/arm64 -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/arm64.cmake -DCMAKE_BUILD_TYPE=Release
#   cmake --build build/arm64 --target command && qemu-aarch64-static -L ROOT build/arm64/holdfast --version
if(NOT DEFINED ENV{HF_SYSROOT})
    message(FATAL_ERROR "HF_SYSROOT has to be the root with the libraries for arm64")
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT $ENV{HF_SYSROOT})
set(CMAKE_FIND_ROOT_PATH $ENV{HF_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} $ENV{HF_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} $ENV{HF_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:$ENV{HF_SYSROOT}/usr/share/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;$ENV{HF_SYSROOT}) # for the texts that the command writes
