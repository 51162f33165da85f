# Compiler settings shared by every target, as the interface library ranklab_compiler.
add_library(ranklab_compiler INTERFACE)
target_include_directories(ranklab_compiler INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                      $<INSTALL_INTERFACE:include/ranklab>)
target_compile_options(ranklab_compiler INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow
                                                  -Wnon-virtual-dtor -Woverloaded-virtual>)
if(RANKLAB_WERROR)
  target_compile_options(ranklab_compiler INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# at::RecordFunction has debug-only members: without NDEBUG its layout differs from the release wheel's
# and callbacks read garbage. So NDEBUG is always on, and checks are RANKLAB_CHECK, never assert.
target_compile_definitions(ranklab_compiler INTERFACE NDEBUG)
# As the wheel was compiled.
target_compile_definitions(ranklab_compiler INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # Wrong wherever a function takes a temporary and returns a reference to something else (GCC bug 107532 and its likes).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
endif()
# GCC 14 warns of copies inside std::string that cannot be (gcc.gnu.org/PR105651): "a" + text + "b" is enough.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 14)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>)
endif()
# GCC 13 and later set these at -O2 alone, and then refuse a header precompiled there to sources at -O1.
include(CheckCXXCompilerFlag)
foreach(flag no-unroll-only-small-loops vzeroupper)
  check_cxx_compiler_flag(-m${flag} RANKLAB_HAS_${flag})
  if(RANKLAB_HAS_${flag})
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-m${flag}>)
  endif()
endforeach()
# GCC then collects its garbage later: a tenth less time for some hundred MB more.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-expand=200 --param ggc-min-heapsize=400000>")

if(RANKLAB_SANITIZER STREQUAL "address")
  set(_san -fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer -g1)
elseif(RANKLAB_SANITIZER STREQUAL "thread")
  set(_san -fsanitize=thread -fno-omit-frame-pointer -g1)
elseif(RANKLAB_SANITIZER STREQUAL "fuzzer")
  set(_san -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-sanitize=vptr
      -fno-omit-frame-pointer -g1)
elseif(RANKLAB_SANITIZER)
  message(FATAL_ERROR "RANKLAB_SANITIZER=${RANKLAB_SANITIZER}: want address, thread, fuzzer, or empty")
endif()
if(_san)
  # GCC 12 takes what a sanitizer weaves into std::optional for reads of nothing (GCC bug 105562 and its likes), and into
  # strings for writes behind their end.
  add_compile_options(${_san} $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                      $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  # ... and crashes in this pass over what it weaves into loops at -O3 (core/precision).
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fno-ipa-cp>)
  add_link_options(${_san})
endif()

find_program(RANKLAB_CCACHE ccache)
if(RANKLAB_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${RANKLAB_CCACHE})
endif()
# -march is left at the baseline: a floating-point sum then has the same bits on every x86-64 machine.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
find_program(RANKLAB_MOLD mold)
if(RANKLAB_MOLD AND NOT RANKLAB_SANITIZER)
  add_link_options(-fuse-ld=mold)
endif()
