// Writes a model as a folder that transformers, vLLM and others load: config.json, and model.safetensors or several
// files with model.safetensors.index.json. Elements are ours bit for bit, unless another type is asked for; the same
// weights always make the same bytes. Each file appears whole or not at all, config.json last.
// Cost: one tensor of ours and a part of it in memory, reading each of ours once or, where it is cut over two files,
// twice.
// Thread rule: one thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/hf_family.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

struct HfExportOptions {
  std::optional<TensorType> type = {};       // none: as they are stored
  uint64_t max_shard_bytes = 5'000'000'000;  // of a file, as save_pretrained() has it
  bool durable = true;
};

struct HfExported {
  std::string architecture = {};
  std::vector<std::string> files = {};
  size_t tensors = 0;
  uint64_t bytes = 0;  // of tensors
};

// `ours` has "weight/NAME" and "buffer/NAME" of every parameter; others, such as moments, are passed over. Throws
// kInvalidArgument when no family computes this model or the folder is not empty, kBadFile when a tensor is missing,
// left over, or of another shape than the model says.
HfExported export_hf(const TensorSource& ours, const ModelConfig& config, const std::string& folder,
                     const HfExportOptions& options = {});

}  // namespace ranklab
