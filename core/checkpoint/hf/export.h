// Writes a model as a folder that transformers, vLLM and others load: config.json, and model.safetensors or several
// files with model.safetensors.index.json. Elements are bit-identical to ours unless another type is requested; the
// same weights always produce the same bytes. Each file appears whole or not at all, config.json last. Cost: one of our
// tensors and a part of it in memory; each of our tensors is read once, or twice where it is split over two files.
// Thread rule: one thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/hf/family.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

// tokenizer.json and tokenizer_config.json beside the model: those of bytes, or none, where its tokens are others'.
// kAuto: the model's own, if it has one, or of bytes if its vocabulary is the 256 bytes.
enum class HfTokenizer { kAuto, kBytes, kNone };

struct HfExportOptions {
  std::optional<TensorType> type = {};       // none: as stored
  uint64_t max_shard_bytes = 5'000'000'000;  // per file; the default of save_pretrained()
  HfTokenizer tokenizer = HfTokenizer::kAuto;
  std::string own_tokenizer = {};  // the text of the model's tokenizer.json; "": it has none
  std::string own_end_token = {};  // of its tokens the one that ends a document; "": not known
  bool durable = true;
};

struct HfExported {
  std::string architecture = {};
  std::vector<std::string> files = {};
  size_t tensors = 0;
  uint64_t bytes = 0;  // of tensors
};

// `ours` has "weight/NAME" and "buffer/NAME" of every parameter; other tensors, such as moments, are ignored. Throws
// kInvalidArgument when no family computes this model, the folder is not empty, or a tokenizer of bytes is asked for a
// vocabulary of fewer; kBadFile when a tensor is missing,
// left over, or has another shape than the model declares.
HfExported export_hf(const TensorSource& ours, const ModelConfig& config, const std::string& folder,
                     const HfExportOptions& options = {});

}  // namespace ranklab
