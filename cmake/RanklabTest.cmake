# ranklab_test(NAME SOURCES a_test.cpp ... [DEPS targets ...] [TORCH] [ALONE] [LABELS ...] [TIMEOUT s] [COST s] [ARGS ...]
#              [DEFINITIONS A=b ...] [NEEDS targets ...])
#   One ctest entry NAME: the GoogleTest cases written in SOURCES, run in a process of their own.
#   The entries of a folder share a program, FOLDER_tests (FOLDER_torch_tests for those with TORCH, which see the shared
#   precompiled header), and each runs its part by a filter. That is for the compiler's sake: what a test costs it is
#   gtest's and torch's headers, and a program's sources are compiled several at a time (RANKLAB_UNITY).
#   ALONE: a program of its own, NAME, for what has a main() of its own, replaces functions of the C library, or is copied
#   to another machine (every test with the label gpu is).
#   NEEDS: programs and modules that the test starts or opens. COST: about how many seconds it takes, if more than 5: the
#   longest start first, so that no processor waits for one of them at the end.

# Where a row's tests are: the names of its suites, as a filter of GoogleTest.
function(ranklab_test_filter out)
  set(patterns)
  foreach(source ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(READ ${source} text)
    string(REGEX MATCHALL "\n(TEST|TEST_F|TEST_P|TYPED_TEST)\\([A-Za-z0-9_]+" heads "\n${text}")
    if(NOT heads AND source MATCHES "_test\\.cpp$")
      message(FATAL_ERROR "${source} has no test that begins a line with TEST, TEST_F, TEST_P or TYPED_TEST")
    endif()
    foreach(head ${heads})
      string(REGEX REPLACE "^.*\\(" "" suite "${head}")
      if(head MATCHES "TEST_P")
        list(APPEND patterns "*/${suite}.*")
      elseif(head MATCHES "TYPED_TEST")
        list(APPEND patterns "${suite}/*.*")
      else()
        list(APPEND patterns "${suite}.*")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES patterns)
  list(JOIN patterns ":" filter)
  set(${out} "${filter}" PARENT_SCOPE)
endfunction()

# What the headers of a test cost is gtest's more than half.
if(RANKLAB_USE_PCH AND RANKLAB_UNITY)
  set(gtest_headers <gtest/gtest.h> <gmock/gmock.h>)
  ranklab_pch(ranklab_test_pch HEADERS ${gtest_headers} ${RANKLAB_STD_HEADERS} <nlohmann/json.hpp> DEPS GTest::gtest GTest::gmock)
  ranklab_pch(ranklab_torch_test_pch HEADERS ${gtest_headers} ${RANKLAB_TORCH_HEADERS} ${RANKLAB_STD_HEADERS}
              DEPS GTest::gtest GTest::gmock torch::cpu)
endif()
function(ranklab_use_test_pch target)
  if(TARGET ranklab_test_pch)
    target_precompile_headers(${target} REUSE_FROM ranklab_test_pch)
  endif()
endfunction()
function(ranklab_use_torch_test_pch target)
  if(TARGET ranklab_torch_test_pch)
    target_precompile_headers(${target} REUSE_FROM ranklab_torch_test_pch)
  elseif(RANKLAB_USE_PCH)
    target_precompile_headers(${target} REUSE_FROM ranklab_torch_pch)
  endif()
endfunction()

add_library(ranklab_own_temp_dir OBJECT ${PROJECT_SOURCE_DIR}/tests/own_temp_dir.cpp)
target_link_libraries(ranklab_own_temp_dir PRIVATE ranklab_compiler GTest::gtest)

# The program that a row's tests are compiled into: made by the first row that wants it.
function(ranklab_test_program program)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPS;DEFINITIONS;NEEDS" ${ARGN})
  if(NOT TARGET ${program})
    add_executable(${program})
    # Exported names are what a hung rank is in (core/base/thread_stack.h).
    set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON UNITY_BUILD ${RANKLAB_UNITY} UNITY_BUILD_BATCH_SIZE 9)
    target_link_libraries(${program} PRIVATE ranklab_compiler GTest::gtest GTest::gmock ranklab_own_temp_dir)
    ranklab_cold_regex(${program})  # what a test does itself is little
    if(ARG_TORCH)
      target_link_libraries(${program} PRIVATE torch::cpu)
      ranklab_use_torch_test_pch(${program})
    else()
      ranklab_use_test_pch(${program})
    endif()
  endif()
  # A source that two rows name is compiled once.
  get_target_property(known ${program} SOURCES)
  foreach(source ${ARG_SOURCES})
    if(NOT source IN_LIST known)
      target_sources(${program} PRIVATE ${source})
    endif()
  endforeach()
  target_link_libraries(${program} PRIVATE ${ARG_DEPS})
  target_compile_definitions(${program} PRIVATE ${ARG_DEFINITIONS})
  if(ARG_NEEDS)
    add_dependencies(${program} ${ARG_NEEDS})
  endif()
endfunction()

function(ranklab_test name)
  cmake_parse_arguments(ARG "TORCH;ALONE" "TIMEOUT;COST" "SOURCES;DEPS;LABELS;ARGS;DEFINITIONS;NEEDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 1800)  # a busy machine is not a hang
  endif()
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  if("gpu" IN_LIST ARG_LABELS)  # also run on a machine with a GPU, by tests/gpu
    set_property(GLOBAL APPEND PROPERTY RANKLAB_GPU_TESTS ${name})
    set(ARG_ALONE TRUE)
  endif()
  if(ARG_ALONE)
    set(program ${name})
    set(selection)
  else()
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
    string(REPLACE "/" "_" program ${folder})
    if(ARG_TORCH)
      string(APPEND program "_torch")
    endif()
    string(APPEND program "_tests")
    list(APPEND ARG_DEPS GTest::gmock_main)
    ranklab_test_filter(filter ${ARG_SOURCES})
    set(selection --gtest_filter=${filter})
    set_property(GLOBAL APPEND_STRING PROPERTY RANKLAB_TEST_FILTERS "$<TARGET_FILE:${program}>\t${name}\t${filter}\n")
  endif()
  set(torch)
  if(ARG_TORCH)
    set(torch TORCH)
  endif()
  ranklab_test_program(${program} ${torch} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS} DEFINITIONS ${ARG_DEFINITIONS} NEEDS ${ARG_NEEDS})
  add_test(NAME ${name} COMMAND ${program} --gtest_brief=1 ${selection} ${ARG_ARGS})
  # Threads of OpenMP that wait do not spin: the other tests want their processors.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       FAIL_REGULAR_EXPRESSION " 0 tests from 0 test suites ran"
                       ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp;OMP_WAIT_POLICY=passive")
  if(ARG_COST)
    set_tests_properties(${name} PROPERTIES COST ${ARG_COST})
  endif()
endfunction()

# A test that no case is lost or run twice: the rows' filters, held to what each program says it has.
function(ranklab_test_of_filters)
  get_property(rows GLOBAL PROPERTY RANKLAB_TEST_FILTERS)
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/filters.txt CONTENT "${rows}")
  add_test(NAME every_test_runs_once COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/every_test_runs_once.py
                                             ${CMAKE_CURRENT_BINARY_DIR}/filters.txt)
endfunction()
