// A leaf of the module tree as numbers: one weight and a bias or none, with how tensor parallelism cuts them. Layers
// make their parameters of it, and the table of a model (module_table.h) lists it, so that either has the other's
// shapes. Torch-free. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ranklab {

enum class InitKind { kNormal, kZeros, kOnes };
struct Init {
  InitKind kind = InitKind::kNormal;
  double std = 0.02;
};

// What a module is for, and where its gradients come in a backward pass.
enum class ModulePart {
  kEmbedding,
  kAttentionNorm,
  kAttentionIn,  // what makes queries, keys and values
  kAttentionOut,
  kMlpNorm,
  kMlpUp,
  kMlpDown,
  kRouter,
  kSharedExperts,
  kExperts,
  kFinalNorm,
  kHead,
  kMtpIn,  // the norms of the two inputs of an MTP module and what joins them
};
const char* name(ModulePart part);  // "embedding", "routed experts", ...

// By tensor parallelism: experts over etp, everything else over tp. kVocabulary pads up to a multiple of the ranks.
enum class ModuleSplit { kReplicated, kVocabulary, kColumn, kRow };
const char* name(ModuleSplit split);  // "vocabulary", "out features", ...

struct ModuleSpec {
  std::string name = {};                // within its parent, "qkv": of qkv.weight and qkv.bias
  std::vector<int64_t> shape = {};      // of the weight of the whole model: [out, in], of a norm [width]
  std::vector<int64_t> out_parts = {};  // lengths of what is fused along dim 0, each cut by itself; empty: one part
  ModuleSplit split = ModuleSplit::kReplicated;
  bool bias = false;
  Init init = {};  // of the weight; a bias starts at 0
  ModulePart part = ModulePart::kMlpUp;
  bool is_gate = false;   // of tokens or experts: multiplied in fp32, whatever the precision
  bool by_heads = false;  // on every tp rank, each of which uses it for its own heads alone

  // Tokens are multiplied with it.
  bool multiplies() const { return shape.size() == 2 && part != ModulePart::kEmbedding; }
  std::vector<int64_t> parts() const { return out_parts.empty() ? std::vector<int64_t>{shape.at(0)} : out_parts; }
  // The bias of a row split is added after the sum over ranks, by each of them.
  ModuleSplit bias_split() const { return split == ModuleSplit::kRow ? ModuleSplit::kReplicated : split; }
};

}  // namespace ranklab
