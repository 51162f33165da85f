// Writes tensors as safetensors files of limited size: each file gets as many tensors as fit, in their order. Cost:
// each tensor is produced once, in that order, and one is in memory at a time. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

// Groups of consecutive tensors of at most `most_bytes` each (a larger tensor forms a group alone).
std::vector<std::vector<TensorInfo>> files_of_at_most(const std::vector<TensorInfo>& tensors, uint64_t most_bytes);

// `bytes_of` produces the bytes of a tensor of the given type and shape.
WrittenSafetensors write_tensors(const std::string& path, const std::vector<TensorInfo>& tensors,
                                 const std::function<std::vector<std::byte>(const TensorInfo&)>& bytes_of,
                                 const SafetensorsWriteOptions& options = {});

// Creates a folder to write into, or accepts an existing empty one. Throws kInvalidArgument when it is not empty, kIo.
void make_empty_folder(const std::string& folder);

}  // namespace ranklab
