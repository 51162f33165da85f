// A leaf of the module tree as data: one weight, an optional bias, and how tensor parallelism shards them. Layers
// create their parameters from it, and the table of a model (module_table.h) lists it, so the two always agree on
// shapes. Torch-free. Thread rule: plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ranklab {

// kLogUniform: the logarithm of a uniform number between `low` and 16, the initial value of decay rates. kStepBias: a
// value that softplus maps to a number between 0.001 and 0.1 whose logarithm is uniform, the initial value of the
// step sizes of a state space.
enum class InitKind { kNormal, kZeros, kOnes, kLogUniform, kStepBias };
struct Init {
  InitKind kind = InitKind::kNormal;
  double std = 0.02;  // for kNormal
  double low = 0.01;  // for kLogUniform
};

// What a module is for. Also determines when its gradients are computed in a backward pass.
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
  kLatentProjection,  // to the width that routed experts read, and back to the hidden size
  kExperts,
  kFinalNorm,
  kHead,
  kMtpIn,  // an MTP module's two input norms, and the projection that combines their outputs
};
const char* name(ModulePart part);  // "embedding", "routed experts", ...

// Tensor-parallel sharding: experts over etp, everything else over tp. kVocabulary pads to a multiple of the ranks.
enum class ModuleSplit { kReplicated, kVocabulary, kColumn, kRow };
constexpr const char* name(ModuleSplit split) {
  constexpr std::array kNames = {"-", "vocabulary", "out features", "in features"};
  return kNames[static_cast<size_t>(split)];
}

struct ModuleSpec {
  std::string name = {};            // within its parent: "qkv" for qkv.weight and qkv.bias
  std::vector<int64_t> shape = {};  // unsharded shape of the weight: [out, in], or [width] for a norm
  // lengths of the fused parts of dim 0, each of which is sharded separately; empty: one part
  std::vector<int64_t> out_parts = {};
  ModuleSplit split = ModuleSplit::kReplicated;
  bool bias = false;
  Init init = {};  // for the weight
  Init bias_init = {.kind = InitKind::kZeros};
  ModulePart part = ModulePart::kMlpUp;
  bool is_gate = false;   // a gate of tokens or experts: its GEMM is in fp32, whatever the precision
  bool by_heads = false;  // replicated on every tp rank, which uses it only for its own heads

  // Whether tokens are multiplied by it (a GEMM).
  bool multiplies() const { return shape.size() == 2 && part != ModulePart::kEmbedding; }
  std::vector<int64_t> parts() const { return out_parts.empty() ? std::vector<int64_t>{shape.at(0)} : out_parts; }
  // With a row split every rank has the whole bias and adds it after the sum over ranks.
  ModuleSplit bias_split() const { return split == ModuleSplit::kRow ? ModuleSplit::kReplicated : split; }
};

}  // namespace ranklab
