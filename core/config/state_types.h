// In which types a run keeps what training needs of an element: parameters, what the optimizer updates, gradients while
// they add up, AdamW's moments (Megatron-LM's precision-aware optimizer). A flag decides, else the recipe
// (core/precision/recipe.h), else: masters and moments in fp32 beside parameters in 16 bits, gradients in the type of
// the parameters. Updates are computed in fp32 (fp64) whatever is kept. Torch-free. Thread rule: plain data.
#pragma once
#include "core/base/dtype.h"
#include "core/config/train_config.h"

namespace ranklab {

struct StateTypes {
  DType params = DType::kFloat32;       // and activations, and gradients where backward makes them
  DType main_params = DType::kFloat32;  // equal to `params`: these are updated themselves
  DType main_grads = DType::kFloat32;   // in which gradients add up over microbatches and ranks
  DType exp_avg = DType::kFloat32;      // of SGD the momentum
  DType exp_avg_sq = DType::kFloat32;
  int moments = 2;  // that the optimizer keeps: 2 of AdamW, 1 or none of SGD

  bool operator==(const StateTypes&) const = default;
  bool has_masters() const { return main_params != params; }
  int64_t param_bytes() const { return size_bytes(params); }
  int64_t grad_bytes() const { return size_bytes(main_grads); }
  int64_t moment_bytes() const;
  // What the optimizer keeps of an element: moments, and the master where there is one.
  int64_t optimizer_bytes() const { return moment_bytes() + (has_masters() ? size_bytes(main_params) : 0); }
  // What an update reads and writes of an element.
  int64_t update_bytes() const;
  // fp32 numbers an element that exist while an update runs and are kept in other types.
  int64_t widened() const;
};

// What a run has that asks for nothing else. `moments` of its optimizer.
StateTypes usual_state_types(DType params, int moments);
// Throws kInvalidArgument: a type that keeps less than what it is a copy or a sum of.
StateTypes state_types(const RunPlan& plan);

}  // namespace ranklab
