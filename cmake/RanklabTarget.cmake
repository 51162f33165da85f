# ranklab_library(NAME SOURCES a.cpp ... [DEPS targets ...] [TORCH] [UNITY_BY_FOLDER] [COLD])
#   A static library ranklab_NAME with alias ranklab::NAME. TORCH: links LibTorch and uses the shared
#   precompiled header; leave it out for folders that must not know torch.
function(ranklab_use_torch target)
  target_link_libraries(${target} PUBLIC torch::cpu)
  if(RANKLAB_USE_PCH)
    target_precompile_headers(${target} REUSE_FROM ranklab_torch_pch)
  endif()
endfunction()

# The headers of the standard library that most sources include, precompiled for targets that know no torch. Where sources
# are compiled one by one it is left out: that build shows that each includes what it uses.
set(RANKLAB_STD_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstddef> <cstdint> <cstdio>
    <cstdlib> <cstring> <deque> <filesystem> <fstream> <functional> <map> <memory> <mutex> <numeric> <optional> <set> <span>
    <sstream> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>)
# ranklab_pch(NAME HEADERS <a> ... [DEPS targets ...]): a precompiled header that targets reuse from NAME.
function(ranklab_pch name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "// Carries the precompiled header.\n")
  add_library(${name} STATIC ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ranklab_compiler ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()
if(RANKLAB_USE_PCH AND RANKLAB_UNITY)
  ranklab_pch(ranklab_plain_pch HEADERS ${RANKLAB_STD_HEADERS})
endif()
function(ranklab_use_plain_pch target)
  if(TARGET ranklab_plain_pch)
    target_precompile_headers(${target} REUSE_FROM ranklab_plain_pch)
  endif()
endfunction()

# ranklab_unity(TARGET): most of the time to compile a source goes into the headers it includes, so several sources are
#   compiled as one, in the order in which they are listed, RANKLAB_UNITY_BYTES of text at a time: enough to be quick
#   from nothing, and few enough that a change of one source is compiled again within seconds. Sources of different
#   folders (a lesson each) are kept apart with BY_FOLDER.
#   Anonymous namespaces of one target therefore share their names.
set(RANKLAB_UNITY_BYTES 84000 CACHE STRING "Text of the sources that are compiled as one (0: a whole target)")
function(ranklab_unity target)
  cmake_parse_arguments(ARG "BY_FOLDER" "" "" ${ARGN})
  if(NOT RANKLAB_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^/$]+.*\\.cpp$")  # generated ones stay alone
  set(total 0)
  foreach(source ${sources})
    file(SIZE ${CMAKE_CURRENT_SOURCE_DIR}/${source} bytes)
    math(EXPR total "${total} + ${bytes}")
  endforeach()
  set(share ${total})
  if(RANKLAB_UNITY_BYTES GREATER 0 AND total GREATER 0)
    math(EXPR share "${total} / ((${total} + ${RANKLAB_UNITY_BYTES} - 1) / ${RANKLAB_UNITY_BYTES})")
  endif()
  set(filled 0)
  set(group 0)
  set(folder "")
  foreach(source ${sources})
    cmake_path(GET source PARENT_PATH here)
    if(filled GREATER_EQUAL share OR (ARG_BY_FOLDER AND filled GREATER 0 AND NOT here STREQUAL folder))
      math(EXPR group "${group} + 1")
      set(filled 0)
    endif()
    set(folder "${here}")
    file(SIZE ${CMAKE_CURRENT_SOURCE_DIR}/${source} bytes)
    math(EXPR filled "${filled} + ${bytes}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# ranklab_cold(TARGET): what reads settings, files and commands and prints runs a few times in all, and what calls Torch's
#   operators waits for them; -Og compiles it in 55 to 70 % of the time and fits a header precompiled at -O2. Loops over
#   numbers are elsewhere, and so is what reads traces, which would take a fifth longer.
function(ranklab_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
endfunction()
# ranklab_cold_regex(TARGET): also where std::regex is used, whose own variables GCC takes for uninitialized at -Og.
function(ranklab_cold_regex target)
  ranklab_cold(${target})
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
endfunction()

function(ranklab_library name)
  cmake_parse_arguments(ARG "TORCH;UNITY_BY_FOLDER;COLD" "" "SOURCES;DEPS" ${ARGN})
  add_library(ranklab_${name} STATIC ${ARG_SOURCES})
  add_library(ranklab::${name} ALIAS ranklab_${name})
  set_target_properties(ranklab_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(ranklab_${name} PUBLIC ranklab_compiler ${ARG_DEPS})
  if(ARG_TORCH)
    ranklab_use_torch(ranklab_${name})
  else()
    ranklab_use_plain_pch(ranklab_${name})
  endif()
  if(ARG_COLD)
    ranklab_cold(ranklab_${name})
  endif()
  if(ARG_UNITY_BY_FOLDER)
    ranklab_unity(ranklab_${name} BY_FOLDER)
  else()
    ranklab_unity(ranklab_${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY RANKLAB_LIBRARIES ranklab_${name})
endfunction()
