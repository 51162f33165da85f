// A precision recipe: for each role of a tensor in training (weight, activation, gradient, master weight, moment, what
// travels) its type, and for the products of linear layers the format, granularity, scale rule and rounding. A new one
// = one file in recipes/ and one row in recipe.cpp; users write theirs as TOML (recipe_toml.h). Torch-free. Thread
// rule: plain data.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/precision/tensor_precision.h"

namespace ranklab {

struct PrecisionRecipe {
  std::string name;     // "deepseek_v3"
  std::string summary;  // one line
  std::string source;   // paper or specification
  // Of parameters and activations between products.
  DType compute = DType::kBFloat16;
  LinearPrecision linear = {};
  // Modules whose products stay in `compute`, as patterns of their names (precision_policy.h).
  std::vector<std::string> high_precision = {};
  DType main_params = DType::kFloat32;
  DType main_grads = DType::kFloat32;  // in which gradients add up
  DType exp_avg = DType::kFloat32;
  DType exp_avg_sq = DType::kFloat32;
  // How tokens travel to their experts; their outputs travel back in `compute`.
  TensorPrecision dispatch = {};
  // How the shards of quantized weights are gathered (ZeRO stage 3).
  TensorPrecision gather = {};

  bool operator==(const PrecisionRecipe&) const = default;
};

std::span<const PrecisionRecipe> precision_recipes();
// Throws kInvalidArgument with the nearest name.
const PrecisionRecipe& find_precision_recipe(const std::string& name);

// The rows of `precision_recipes`.
PrecisionRecipe fp32_recipe();
PrecisionRecipe bf16_recipe();
PrecisionRecipe fp16_recipe();
PrecisionRecipe fp8_delayed_recipe();
PrecisionRecipe fp8_current_recipe();
PrecisionRecipe fp8_rowwise_recipe();
PrecisionRecipe deepseek_v3_recipe();
PrecisionRecipe mxfp8_recipe();
PrecisionRecipe nvfp4_recipe();
PrecisionRecipe mxfp4_recipe();

// For recipes: the built-in formats by name, constants of the program.
const NumberFormat* e4m3();
const NumberFormat* e5m2();
const NumberFormat* e2m1();

}  // namespace ranklab
