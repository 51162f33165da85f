// The dtypes of a run's training state: parameters, main parameters, accumulated gradients, AdamW's moments
// (Megatron-LM's precision-aware optimizer). A flag decides, else the recipe (core/precision/recipe.h), else: fp32 main
// parameters and moments for 16-bit parameters, gradients in the dtype of the parameters. Updates are computed in fp32
// (fp64) whatever is stored. Torch-free. Thread rule: plain data.
#pragma once
#include <optional>

#include "core/base/dtype.h"
#include "core/config/train_config.h"

namespace ranklab {

struct StateTypes {
  DType params = DType::kFloat32;       // and activations, and gradients as backward produces them
  DType main_params = DType::kFloat32;  // equal to `params`: no main copy, the parameters are updated directly
  DType main_grads = DType::kFloat32;   // of gradient accumulation over microbatches and reduction over ranks
  DType exp_avg = DType::kFloat32;      // for SGD the momentum
  DType exp_avg_sq = DType::kFloat32;
  int moments = 2;               // number of moments, in this order: 2 for AdamW, 1 or 0 for SGD
  int matrix_moments = moments;  // of hidden matrices (core/spec/hidden_matrix.h): 1 for Muon

  bool operator==(const StateTypes&) const = default;
  bool has_masters() const { return main_params != params; }
  int64_t param_bytes() const { return size_bytes(params); }
  int64_t grad_bytes() const { return size_bytes(main_grads); }
  int64_t moment_bytes(bool hidden_matrix = false) const;
  // Bytes of optimizer state per element: moments, and the main parameter where there is one.
  int64_t optimizer_bytes(bool hidden_matrix = false) const {
    return moment_bytes(hidden_matrix) + (has_masters() ? size_bytes(main_params) : 0);
  }
};

// The default dtypes. `moments`: of the run's optimizer; of hidden matrices, unset: as many.
StateTypes usual_state_types(DType params, int moments, std::optional<int> matrix_moments = std::nullopt);
// Throws kInvalidArgument for a dtype that is less precise than what it copies or accumulates.
StateTypes state_types(const RunPlan& plan);
// Bytes of optimizer state per parameter of the whole model: a mean, where hidden matrices have other moments.
double mean_optimizer_bytes(const RunPlan& plan);

}  // namespace ranklab
