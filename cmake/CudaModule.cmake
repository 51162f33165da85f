# ranklab_cuda: libranklab_cuda.so, opened at run time by backends/cuda/load.cpp. It links the CUDA half of the same
# LibTorch and NCCL. The libraries that libtorch_cuda itself needs (cuDNN, cuBLAS ...) are looked for at run
# time only, so that a machine without a GPU can build it.
# What lies beside LibTorch is taken before the system's: pip lays NVIDIA's wheels there, and so does ./ranklab setup --cuda
# (the compiler, too). It is of LibTorch's own release of CUDA, and LibTorch's CUDA half loads the same NCCL.
cmake_path(SET nvidia NORMALIZE ${RANKLAB_TORCH_ROOT}/../nvidia)
if(NOT CUDAToolkit_ROOT AND EXISTS ${nvidia}/cu13/bin/nvcc)
  set(CUDAToolkit_ROOT ${nvidia}/cu13)
endif()
find_package(CUDAToolkit REQUIRED)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${nvidia}/nccl/include ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${nvidia}/nccl/lib ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
foreach(part c10_cuda torch_cuda)
  if(NOT EXISTS ${RANKLAB_TORCH_ROOT}/lib/lib${part}.so)
    message(FATAL_ERROR "CUDA backend: want ${RANKLAB_TORCH_ROOT}/lib/lib${part}.so; got a LibTorch without CUDA; "
                        "do: use a CUDA LibTorch, or -DRANKLAB_WITH_CUDA=OFF")
  endif()
  add_library(torch_part_${part} SHARED IMPORTED)
  set_target_properties(torch_part_${part} PROPERTIES IMPORTED_LOCATION ${RANKLAB_TORCH_ROOT}/lib/lib${part}.so)
endforeach()

# Kernels, by nvcc itself: CMake's CUDA language would have to be enabled for every folder that links them. Those that
# quantize have the CPU's bits, so no fused multiply-add; the others are equal but for rounding.
set(RANKLAB_CUDA_ARCHITECTURES "80;90" CACHE STRING "Compute capabilities of the kernels, such as 80;90")
set(kernel_flags -O3 -ccbin ${CMAKE_CXX_COMPILER} -I${PROJECT_SOURCE_DIR} -Werror all-warnings -Xcompiler -fPIC,-Wall,-Wextra)
foreach(architecture ${RANKLAB_CUDA_ARCHITECTURES})
  list(APPEND kernel_flags -gencode arch=compute_${architecture},code=[sm_${architecture},compute_${architecture}])
endforeach()
set(kernel_objects)
function(ranklab_kernels source)
  cmake_path(GET source STEM kernels)
  set(kernel_object ${CMAKE_CURRENT_BINARY_DIR}/${kernels}.o)
  add_custom_command(OUTPUT ${kernel_object}
                     COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} ${kernel_flags} ${ARGN} -MD -MF ${kernel_object}.d
                             -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${kernel_object}
                     DEPENDS ${source} DEPFILE ${kernel_object}.d
                     COMMENT "nvcc ${kernels}.cu" VERBATIM)
  set(kernel_objects ${kernel_objects} ${kernel_object} PARENT_SCOPE)
endfunction()
foreach(kernels quantize_kernels operand_kernels cast_kernels scaled_squares)
  ranklab_kernels(kernels/${kernels}.cu -std=c++17 --fmad=false)
endforeach()
foreach(kernels norm_kernels swiglu_kernels qkv_kernels merge_kernels loss_kernels lists_kernels sum_kernels)
  ranklab_kernels(kernels/${kernels}.cu -std=c++20)
endforeach()

# What the module is made of, also linked by its unit tests.
add_library(ranklab_nccl STATIC nccl/nccl_types.cpp nccl/nccl_api.cpp nccl/nccl_comm.cpp nccl/nccl_verbs.cpp nccl/nccl_work.cpp
                                nccl/nccl_communicator.cpp nccl/recorded_call.cpp nccl/nccl_lanes.cpp nccl/nccl_context.cpp nccl/call_compare.cpp nccl/canonical_reduce.cpp
                                nccl/failure.cpp nccl/watchdog.cpp nccl/heartbeat.cpp gpu_choice.cpp nccl/device_clock.cpp stream_graph.cpp nccl/rendezvous.cpp cuda_world.cpp cuda_rounding.cpp cuda_kernels.cpp
                                device_queues.cpp ${kernel_objects})
set_source_files_properties(${kernel_objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_library(ranklab::nccl ALIAS ranklab_nccl)
target_include_directories(ranklab_nccl SYSTEM PUBLIC ${NCCL_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(ranklab_nccl PUBLIC ranklab_compiler ranklab::comm ranklab::precision ranklab::row_kernels ranklab::cuda_loader torch_part_c10_cuda
                                          torch::cpu CUDA::cudart ${NCCL_LIBRARY})
if(RANKLAB_USE_PCH)
  target_precompile_headers(ranklab_nccl REUSE_FROM ranklab_torch_pch)
endif()

add_library(ranklab_cuda MODULE module.cpp)
# Nothing in the module names a symbol of libtorch_cuda, but loading it is what registers the CUDA kernels.
target_link_libraries(ranklab_cuda PRIVATE ranklab_nccl -Wl,--push-state,--no-as-needed torch_part_torch_cuda
                                           torch_part_c10_cuda -Wl,--pop-state)
target_link_options(ranklab_cuda PRIVATE -Wl,--allow-shlib-undefined)
set_target_properties(ranklab_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
