// The settings of the precision of a run: modes, recipe, exceptions by module, types of what the optimizer keeps, the
// loss scale. precision_choice.h makes one policy of them. Torch-free. Thread rule: plain data.
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
  std::string fp8_format = "auto";  // auto (the recipe's) | e4m3 | hybrid: gradients in E5M2
  std::string recipe;               // a name of recipe.h, or a TOML file; empty: none
  int64_t block_size = 0;           // of tiles and blocks; 0: the recipe's
  std::string sums = "auto";        // auto (the recipe's) | fp32 | hopper | hopper_promoted

  // Patterns of module names, separated by commas.
  std::string include;           // quantized; empty: all linear modules
  std::string exclude;           // not quantized
  std::string compute_rules;     // PATTERN=DTYPE: products in this type; the last match wins
  std::string compute_override;  // MODULE=DTYPE, exact names: also of quantized modules, which then are not

  // auto: the recipe's.
  std::string main_params_dtype = "auto";  // auto | fp32 | bf16 | fp16
  std::string main_grads_dtype = "auto";
  std::string exp_avg_dtype = "auto";
  std::string exp_avg_sq_dtype = "auto";

  // Delayed scaling.
  int64_t amax_history_len = 16;
  std::string amax_compute_algo = "max";  // max | most_recent

  // In the recipe's format; unset: as the recipe says.
  std::optional<bool> dispatch;      // tokens on their way to experts
  std::optional<bool> param_gather;  // quantized weights on their way to ranks that share them out

  int64_t stats_interval = 10;  // steps between statistics of quantized tensors in the trace; 0: none

  double loss_scale = 0;  // 0: dynamic in fp16, else none
  double initial_loss_scale = 65536;
  double min_loss_scale = 1;
  double max_loss_scale = 16777216;
  int64_t loss_scale_window = 2000;  // steps without overflow until it doubles
};

}  // namespace ranklab
