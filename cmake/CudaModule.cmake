# ranklab_cuda: libranklab_cuda.so, opened at run time by backends/cuda/load.cpp. It links the CUDA half of the same
# LibTorch and the system's NCCL. The libraries that libtorch_cuda itself needs (cuDNN, cuBLAS ...) are looked for at run
# time only, so that a machine without a GPU can build it.
find_package(CUDAToolkit REQUIRED)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
foreach(part c10_cuda torch_cuda)
  if(NOT EXISTS ${RANKLAB_TORCH_ROOT}/lib/lib${part}.so)
    message(FATAL_ERROR "CUDA backend: want ${RANKLAB_TORCH_ROOT}/lib/lib${part}.so; got a LibTorch without CUDA; "
                        "do: use a CUDA LibTorch, or -DRANKLAB_WITH_CUDA=OFF")
  endif()
  add_library(torch_part_${part} SHARED IMPORTED)
  set_target_properties(torch_part_${part} PROPERTIES IMPORTED_LOCATION ${RANKLAB_TORCH_ROOT}/lib/lib${part}.so)
endforeach()

# What the module is made of, also linked by its unit tests.
add_library(ranklab_nccl STATIC nccl_types.cpp nccl_api.cpp nccl_comm.cpp nccl_verbs.cpp nccl_work.cpp
                                nccl_communicator.cpp canonical_reduce.cpp rendezvous.cpp cuda_world.cpp)
add_library(ranklab::nccl ALIAS ranklab_nccl)
target_include_directories(ranklab_nccl SYSTEM PUBLIC ${NCCL_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(ranklab_nccl PUBLIC ranklab_compiler ranklab::comm ranklab::cuda_loader torch_part_c10_cuda
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
