# torch::cpu: LibTorch's CPU half, from (first found) -DTorch_DIR / -DRANKLAB_TORCH_ROOT, or the wheel that ./ranklab
# unpacked into the user's cache. find_package(Torch) on the CUDA wheel demands a CUDA toolkit, so the target is made here.
include(${CMAKE_CURRENT_LIST_DIR}/DownloadCache.cmake)
set(RANKLAB_TORCH_ROOT "" CACHE PATH "Folder with LibTorch's include/ and lib/")
if(NOT RANKLAB_TORCH_ROOT AND Torch_DIR)
  get_filename_component(RANKLAB_TORCH_ROOT "${Torch_DIR}/../../.." ABSOLUTE)
endif()
if(NOT RANKLAB_TORCH_ROOT)
  set(RANKLAB_TORCH_ROOT "${RANKLAB_CACHE}/torch-2.11.0")
endif()
# While the wheel is still coming down (./ranklab sets the variable), targets that know no torch are built already.
if(NOT EXISTS "${RANKLAB_TORCH_ROOT}/lib/libtorch_cpu.so" AND NOT DEFINED ENV{RANKLAB_TORCH_PENDING})
  message(FATAL_ERROR "LibTorch: want ${RANKLAB_TORCH_ROOT}/lib/libtorch_cpu.so; got nothing there; "
                      "do: run ./ranklab setup, or pass -DTorch_DIR=<libtorch>/share/cmake/Torch")
endif()
add_library(torch_c10 SHARED IMPORTED GLOBAL)
set_target_properties(torch_c10 PROPERTIES IMPORTED_LOCATION ${RANKLAB_TORCH_ROOT}/lib/libc10.so)
add_library(torch_cpu SHARED IMPORTED GLOBAL)
set_target_properties(torch_cpu PROPERTIES IMPORTED_LOCATION ${RANKLAB_TORCH_ROOT}/lib/libtorch_cpu.so)
add_library(ranklab_torch INTERFACE)
add_library(torch::cpu ALIAS ranklab_torch)
target_include_directories(ranklab_torch SYSTEM INTERFACE
  $<BUILD_INTERFACE:${RANKLAB_TORCH_ROOT}/include> $<BUILD_INTERFACE:${RANKLAB_TORCH_ROOT}/include/torch/csrc/api/include>)
target_compile_definitions(ranklab_torch INTERFACE FMT_HEADER_ONLY=1 AT_PER_OPERATOR_HEADERS)
target_link_libraries(ranklab_torch INTERFACE $<BUILD_INTERFACE:torch_cpu> $<BUILD_INTERFACE:torch_c10>)
target_link_options(ranklab_torch INTERFACE $<BUILD_INTERFACE:-Wl,-rpath,${RANKLAB_TORCH_ROOT}/lib>)

# The shared precompiled header. What is in it costs each source that uses it some time, too: no more than most need.
if(RANKLAB_USE_PCH)
  set(RANKLAB_TORCH_HEADERS ${CMAKE_SOURCE_DIR}/core/sim/aten.h <torch/csrc/autograd/autograd.h> <torch/csrc/autograd/variable.h>)
  ranklab_pch(ranklab_torch_pch HEADERS ${RANKLAB_TORCH_HEADERS} ${RANKLAB_STD_HEADERS} DEPS torch::cpu)
endif()
