// The dtypes of a run's training state: parameters, main parameters, accumulated gradients and AdamW's moments
// (Megatron-LM's precision-aware optimizer). A flag decides; without one, the recipe (core/precision/recipe.h); without
// either, 16-bit parameters get fp32 main parameters and moments, and gradients have the dtype of the parameters.
// Updates are computed in fp32 (or fp64) whatever dtype is stored. Torch-free. Thread rule: plain data.
#pragma once
#include <algorithm>
#include <optional>

#include "core/base/dtype.h"
#include "core/config/train_config.h"

namespace ranklab {

struct StateTypes {
  DType params = DType::kFloat32;  // also of activations, and of gradients as backward produces them
  // equal to `params`: there is no main copy, and the parameters are updated directly
  DType main_params = DType::kFloat32;
  DType main_grads = DType::kFloat32;  // in gradient accumulation over microbatches and in the reduction over ranks
  DType exp_avg = DType::kFloat32;     // for SGD: the momentum
  DType exp_avg_sq = DType::kFloat32;
  int moments = 2;               // number of moments: 2 for AdamW, 1 or 0 for SGD; exp_avg comes first
  int matrix_moments = moments;  // the same for hidden matrices (core/spec/hidden_matrix.h): 1 for Muon
  // DiLoCo: outer parameters, their momentum, and with a delay the mean movement, in fp32 or fp64
  int outer_numbers = 0;

  bool operator==(const StateTypes&) const = default;
  bool has_masters() const { return main_params != params; }
  int64_t param_bytes() const { return size_bytes(params); }
  int64_t grad_bytes() const { return size_bytes(main_grads); }
  int64_t moment_bytes(bool hidden_matrix = false) const;
  int64_t outer_bytes() const { return outer_numbers * std::max(size_bytes(main_params), size_bytes(DType::kFloat32)); }
  // Bytes of optimizer state per element: the moments, the main parameter if there is one, and DiLoCo's.
  int64_t optimizer_bytes(bool hidden_matrix = false) const {
    return moment_bytes(hidden_matrix) + (has_masters() ? size_bytes(main_params) : 0) + outer_bytes();
  }
};

// The default dtypes. `moments`: the number of moments of the run's optimizer; `matrix_moments`: the number for hidden
// matrices, the same if unset.
StateTypes usual_state_types(DType params, int moments, std::optional<int> matrix_moments = std::nullopt);
// Throws kInvalidArgument for a dtype that is less precise than the values it copies or accumulates.
StateTypes state_types(const RunPlan& plan);
// Bytes of optimizer state per parameter of the whole model; an average where hidden matrices have a different number
// of moments.
double mean_optimizer_bytes(const RunPlan& plan);

}  // namespace ranklab
