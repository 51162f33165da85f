// A precision recipe's settings for a tensor, as table text and as JSON. Thread rule: pure functions.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/precision/recipe.h"

namespace ranklab {

// "e4m3 1x128", "e2m1 16x16 scale e4m3 stochastic"; `otherwise` when it is not quantized
std::string tensor_text(const TensorPrecision& tensor, const std::string& otherwise);
// null when it is not quantized
nlohmann::ordered_json tensor_json(const TensorPrecision& tensor);
nlohmann::ordered_json linear_json(const LinearPrecision& linear);
nlohmann::ordered_json recipe_json(const PrecisionRecipe& recipe);

// "master weights fp32, gradients fp32, moments bf16 and bf16"
std::string states_text(const PrecisionRecipe& recipe);
// "tokens to experts e4m3 1x128, back bf16; sharded weights bf16"
std::string sent_text(const PrecisionRecipe& recipe, bool experts);
// The settings of a quantizing recipe that do not belong to one tensor: sums, the second quantization of x, the
// Hadamard rotation; "" if there are none.
std::string products_text(const LinearPrecision& linear);

}  // namespace ranklab
