// A precision recipe: the type of each tensor role in training (weights, activations, gradients, master weights,
// moments, communicated tensors), and for the products of linear layers the format, granularity, scale rule and
// rounding. A new one needs one file in recipes/ and one row in recipe.cpp; users write theirs as TOML (recipe_toml.h).
// Torch-free. Thread rule: plain data.
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
  // Type of parameters and of activations between products.
  DType compute = DType::kBFloat16;
  LinearPrecision linear = {};
  // Patterns of modules whose products stay in `compute` (precision_policy.h).
  std::vector<std::string> high_precision = {};
  DType main_params = DType::kFloat32;
  DType main_grads = DType::kFloat32;  // accumulation type of gradients
  DType exp_avg = DType::kFloat32;
  DType exp_avg_sq = DType::kFloat32;
  // Wire format of token dispatch; combine sends outputs in `compute`.
  TensorPrecision dispatch = {};
  // Wire format of the all_gather of quantized weights (ZeRO stage 3).
  TensorPrecision gather = {};

  bool operator==(const PrecisionRecipe&) const = default;
};

std::span<const PrecisionRecipe> precision_recipes();
// Throws kInvalidArgument, with the nearest name, if there is no such recipe.
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

// The built-in formats, for recipes; valid for the whole program.
const NumberFormat* e4m3();
const NumberFormat* e5m2();
const NumberFormat* e2m1();

}  // namespace ranklab
