// Writes a model as a folder that transformers, vLLM and others load: config.json, and model.safetensors or several
// files with model.safetensors.index.json. Elements are bit-identical to ours unless another type is requested, and the
// same weights always produce the same bytes. Each file appears whole or not at all; config.json is written last. Cost:
// one of our tensors and a part of it in memory; each of our tensors is read once, or twice if it is split over two
// files. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/hf/family.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

// Which tokenizer.json and tokenizer_config.json to write with the model: those of a byte tokenizer, or none if its
// tokens come from another one. kAuto: the model's own tokenizer if it has one, or a byte tokenizer if its vocabulary
// is the 256 bytes.
enum class HfTokenizer { kAuto, kBytes, kNone };

struct HfExportOptions {
  std::optional<TensorType> type = {};       // unset: as stored
  uint64_t max_shard_bytes = 5'000'000'000;  // per file; the default of save_pretrained()
  HfTokenizer tokenizer = HfTokenizer::kAuto;
  std::string own_tokenizer = {};  // the text of the model's tokenizer.json; "": it has none
  std::string own_end_token = {};  // the token of that tokenizer that ends a document; "": unknown
  bool durable = true;
};

struct HfExported {
  std::string architecture = {};
  std::vector<std::string> files = {};
  size_t tensors = 0;
  uint64_t bytes = 0;  // of tensors
};

// `ours` has "weight/NAME" and "buffer/NAME" for every parameter; other tensors, such as moments, are ignored. Throws
// kInvalidArgument when no family computes this model, when the folder is not empty, or when a byte tokenizer is
// requested for a smaller vocabulary; kBadFile when a tensor is missing, left over, or has a different shape than the
// model declares.
HfExported export_hf(const TensorSource& ours, const ModelConfig& config, const std::string& folder,
                     const HfExportOptions& options = {});

}  // namespace ranklab
