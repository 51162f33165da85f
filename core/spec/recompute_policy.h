// Which layers keep only their input for backward and recompute the rest there (Chen et al. 2016, arXiv 1604.06174;
// selective: Korthikanti et al. 2022, arXiv 2205.05198; the flags are Megatron-LM's).
//   selective  the modules of a layer that `modules` names:
//              core_attn  attention keeps its projected inputs, not its output
//              mlp, moe   the second half of a dense layer, or of a layer with experts (including router and
//                         exchanges), keeps only its input: the residual stream, from which its norm is recomputed,
//                         too, or, where both halves read one norm (ResidualForm::kParallelOneNorm), the output of
//                         that norm
//   full       block:   the first `num_layers` layers of each stage, each separately; 0: all, and MTP modules
//              uniform: all layers, in chunks of `num_layers` (0: 1; a stage's last chunk may be shorter), each MTP
//                       module separately. Only a chunk's input is kept; one chunk is recomputed at a time.
// Torch-free. Thread rule: plain data.
#pragma once
#include <algorithm>
#include <cstdint>

namespace ranklab {

enum class Recompute { kNone, kSelective, kFull };
enum class RecomputeMethod { kBlock, kUniform };

struct RecomputedModules {
  bool core_attn = true, mlp = false, moe = false;
};
struct RecomputedModuleName {
  const char* name;
  bool RecomputedModules::*chosen;
};
inline constexpr RecomputedModuleName kRecomputedModules[] = {
    {"core_attn", &RecomputedModules::core_attn},
    {"mlp", &RecomputedModules::mlp},
    {"moe", &RecomputedModules::moe},
};

struct RecomputePolicy {
  Recompute granularity = Recompute::kNone;
  RecomputedModules modules = {};
  RecomputeMethod method = RecomputeMethod::kBlock;
  int64_t num_layers = 0;

  bool core_attention() const { return granularity == Recompute::kSelective && modules.core_attn; }
  // Whether the MLP or the experts of a layer, which follow its attention, are recomputed.
  bool feed_forward(bool has_experts) const {
    return granularity == Recompute::kSelective && (has_experts ? modules.moe : modules.mlp);
  }
  bool full() const { return granularity == Recompute::kFull; }

  // The number of layers in the chunk that begins with `layer`, of a stage with `layers` layers; 0: nothing is
  // recomputed, everything is kept.
  int64_t piece(int64_t layer, int64_t layers) const {
    if (!full()) return 0;
    if (method == RecomputeMethod::kBlock) return num_layers == 0 || layer < num_layers ? 1 : 0;
    return std::min(std::max<int64_t>(num_layers, 1), layers - layer);
  }
  bool covers_mtp() const { return full() && (method == RecomputeMethod::kUniform || num_layers == 0); }
};

}  // namespace ranklab
