// A leaf of the module tree as data: one weight, an optional bias, and how tensor parallelism shards them. Layers
// create their parameters from it, and the table of a model (module_table.h) lists it, so the two always agree on
// shapes. Torch-free. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ranklab {

// kLogUniform: the logarithm of a number between `low` and 16, as rates of decay start from. kStepBias: what softplus
// makes a number between a thousandth and a tenth of, whose logarithm is uniform, as steps of a state space start from.
enum class InitKind { kNormal, kZeros, kOnes, kLogUniform, kStepBias };
struct Init {
  InitKind kind = InitKind::kNormal;
  double std = 0.02;  // of kNormal
  double low = 0.01;  // of kLogUniform
};

// What a module is for, and when its gradients are computed in a backward pass.
enum class ModulePart {
  kEmbedding,
  kAttentionNorm,
  kAttentionIn,  // the projections to queries, keys and values
  kAttentionOut,
  kMambaIn,
  kMambaOut,
  kMlpNorm,
  kMlpUp,
  kMlpDown,
  kRouter,
  kSharedExperts,
  kLatentProjection,  // to the width that routed experts read, and back
  kExperts,
  kFinalNorm,
  kHead,
  kMtpIn,  // an MTP module's two input norms and the projection that joins them
};
const char* name(ModulePart part);  // "embedding", "routed experts", ...

// Tensor-parallel sharding: experts over etp, all else over tp. kVocabulary pads to a multiple of the ranks.
enum class ModuleSplit { kReplicated, kVocabulary, kColumn, kRow };
const char* name(ModuleSplit split);  // "vocabulary", "out features", ...

struct ModuleSpec {
  std::string name = {};                // within its parent: "qkv" for qkv.weight and qkv.bias
  std::vector<int64_t> shape = {};      // of the unsharded weight: [out, in], for a norm [width]
  std::vector<int64_t> out_parts = {};  // lengths of the fused parts of dim 0, each sharded separately; empty: one part
  ModuleSplit split = ModuleSplit::kReplicated;
  bool bias = false;
  Init init = {};  // of the weight
  Init bias_init = {.kind = InitKind::kZeros};
  ModulePart part = ModulePart::kMlpUp;
  bool is_gate = false;   // of tokens or experts: its GEMM is in fp32, whatever the precision
  bool by_heads = false;  // replicated on every tp rank, which uses it only for its own heads

  // True when tokens are multiplied by it (a GEMM).
  bool multiplies() const { return shape.size() == 2 && part != ModulePart::kEmbedding; }
  std::vector<int64_t> parts() const { return out_parts.empty() ? std::vector<int64_t>{shape.at(0)} : out_parts; }
  // With a row split every rank adds the whole bias, after the sum over ranks.
  ModuleSplit bias_split() const { return split == ModuleSplit::kRow ? ModuleSplit::kReplicated : split; }
};

}  // namespace ranklab
