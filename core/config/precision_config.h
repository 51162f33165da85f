// The precision settings of a run: modes, recipe, exceptions by module, dtypes of optimizer states, the loss scale.
// precision_choice.h turns them into one policy. Torch-free. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace ranklab {

struct PrecisionConfig {
  // Modes; at most one of bf16 (TrainConfig), fp16, fp8, fp4. fp8 and fp4 name a recipe when `recipe` is empty.
  bool fp16 = false;
  bool fp8 = false;
  bool fp4 = false;
  std::string fp8_format = "auto";  // auto (as in the recipe) | e4m3 | hybrid: gradients in E5M2
  std::string recipe;               // a name of recipe.h, or a TOML file; empty: none
  int64_t block_size = 0;           // of tiles and blocks; 0: as in the recipe
  std::string sums = "auto";        // auto (as in the recipe) | fp32 | hopper | hopper_promoted

  // Patterns of module names, separated by commas.
  std::string include;           // quantized; empty: all linear modules
  std::string exclude;           // not quantized
  std::string compute_rules;     // PATTERN=DTYPE: GEMMs in this dtype; the last match wins
  std::string compute_override;  // MODULE=DTYPE, exact names: overrides quantization too

  // auto: the dtype in the recipe.
  std::string main_params_dtype = "auto";  // auto | fp32 | bf16 | fp16
  std::string main_grads_dtype = "auto";
  std::string exp_avg_dtype = "auto";
  std::string exp_avg_sq_dtype = "auto";

  // Delayed scaling.
  int64_t amax_history_len = 16;
  std::string amax_compute_algo = "max";  // max | most_recent

  // Quantized communication, in the recipe's format; unset: the recipe's choice.
  std::optional<bool> dispatch;      // tokens that are dispatched to experts
  std::optional<bool> param_gather;  // quantized weights in the all-gather of ranks that shard them

  int64_t stats_interval = 10;  // steps between statistics of quantized tensors in the trace; 0: none

  double loss_scale = 0;  // 0: dynamic in fp16, else none
  double initial_loss_scale = 65536;
  double min_loss_scale = 1;
  double max_loss_scale = 16777216;
  int64_t loss_scale_window = 2000;  // steps without overflow until the scale doubles
};

}  // namespace ranklab
