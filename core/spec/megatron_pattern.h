// Megatron-Core's unified pattern of hybrid models (--hybrid-layer-pattern): a letter per layer, "|" between pipeline
// stages, and after each "/" the layers of an MTP module (ParsedHybridPattern of its core/models/hybrid). For code that
// reads its command lines and its published runs. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ranklab {

struct MegatronPattern {
  std::string mixers;                         // letters of LayerMixer, without MTP modules
  std::vector<bool> linear = {};              // per layer: its attention is linear (a gated delta net)
  std::vector<int64_t> stages = {};           // layers of each stage; empty: the pattern does not set them
  std::vector<std::string> mtp_modules = {};  // the layers of each MTP module

  int64_t layers() const { return static_cast<int64_t>(mixers.size()); }
  bool has_linear() const;
};

// Parses "M-M*|M-M-/*-". Letters that are no mixer here stay as they are, for validate() to refuse.
MegatronPattern parse_megatron_pattern(const std::string& text);

// The layers of an MTP module of this project: attention, and the MLP or experts that the model's layers have after it.
std::string own_mtp_module(bool has_experts);
// The first MTP module that has other layers than these; "" if there is none.
std::string other_mtp_module(const MegatronPattern& pattern, bool has_experts);

}  // namespace ranklab
