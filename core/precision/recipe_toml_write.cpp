#include "core/base/text.h"
#include "core/base/toml/toml_string.h"
#include "core/precision/recipe_toml.h"

namespace ranklab {
namespace {

std::string row(const std::string& key, const std::string& value) { return key + " = " + value + "\n"; }
std::string row(const std::string& key, std::string_view value) { return row(key, toml_string(std::string(value))); }
std::string row(const std::string& key, bool value) { return key + (value ? " = true\n" : " = false\n"); }

std::string tensor_table(const std::string& role, const TensorPrecision& t) {
  if (!t.quantized()) return "";
  std::string text = "\n[" + role + "]\n" + row("format", t.format->name) + row("granularity", name(t.granularity));
  if (t.block > 0) text += row("block", std::to_string(t.block));
  return text + row("scale", name(t.scale)) + row("rounding", name(t.rounding));
}

}  // namespace

std::string recipe_toml(const PrecisionRecipe& recipe) {
  const LinearPrecision& linear = recipe.linear;
  std::vector<std::string> kept;
  for (const std::string& pattern : recipe.high_precision) kept.push_back(toml_string(pattern));
  return row("name", std::string_view(recipe.name)) + row("summary", std::string_view(recipe.summary)) +
         row("source", std::string_view(recipe.source)) + row("compute", name(recipe.compute)) +
         row("main_params", name(recipe.main_params)) + row("main_grads", name(recipe.main_grads)) +
         row("exp_avg", name(recipe.exp_avg)) + row("exp_avg_sq", name(recipe.exp_avg_sq)) +
         row("high_precision", "[" + join(kept, ", ") + "]") +
         row("requantize_activation", linear.requantize_activation) + row("hadamard", linear.hadamard) +
         row("sum", name(linear.sum)) + tensor_table("activation", linear.activation) +
         tensor_table("weight", linear.weight) + tensor_table("gradient", linear.gradient) +
         tensor_table("dispatch", recipe.dispatch) + tensor_table("gather", recipe.gather);
}

}  // namespace ranklab
