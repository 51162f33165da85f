#include "cli/precision/precision_text.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/text.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

std::string groups_text(const TensorPrecision& t) {
  switch (t.granularity) {
    case Granularity::kTensor:
      return "tensor";
    case Granularity::kRow:
      return "rows";
    case Granularity::kTile:
      return "1x" + std::to_string(t.block);
    case Granularity::kBlock:
      return std::to_string(t.block) + "x" + std::to_string(t.block);
  }
  return "?";
}

}  // namespace

std::string tensor_text(const TensorPrecision& t, const std::string& otherwise) {
  if (!t.quantized()) return otherwise;
  std::string text = std::string(t.format->name) + " " + groups_text(t);
  if (t.scale != ScaleRule::kFp32) text += " scale " + std::string(name(t.scale));
  if (t.rounding == Rounding::kStochastic) text += " stochastic";
  return text;
}

ordered_json tensor_json(const TensorPrecision& t) {
  if (!t.quantized()) return nullptr;
  return {{"format", t.format->name},
          {"granularity", name(t.granularity)},
          {"block", t.block},
          {"scale", name(t.scale)},
          {"rounding", name(t.rounding)}};
}

ordered_json linear_json(const LinearPrecision& linear) {
  return {{"activation", tensor_json(linear.activation)},
          {"weight", tensor_json(linear.weight)},
          {"gradient", tensor_json(linear.gradient)},
          {"requantize_activation", linear.requantize_activation},
          {"hadamard", linear.hadamard},
          {"sum", name(linear.sum)}};
}

ordered_json recipe_json(const PrecisionRecipe& r) {
  return {{"name", r.name},
          {"summary", r.summary},
          {"source", r.source},
          {"compute", name(r.compute)},
          {"linear", linear_json(r.linear)},
          {"high_precision", r.high_precision},
          {"main_params", name(r.main_params)},
          {"main_grads", name(r.main_grads)},
          {"exp_avg", name(r.exp_avg)},
          {"exp_avg_sq", name(r.exp_avg_sq)},
          {"dispatch", tensor_json(r.dispatch)},
          {"gather", tensor_json(r.gather)}};
}

std::string states_text(const PrecisionRecipe& r) {
  const auto text = [](DType dtype) { return std::string(name(dtype)); };
  return "master weights " + text(r.main_params) + ", gradients " + text(r.main_grads) + ", moments " +
         text(r.exp_avg) + " and " + text(r.exp_avg_sq);
}

std::string sent_text(const PrecisionRecipe& r, bool experts) {
  const std::string compute(name(r.compute));
  const std::string tokens = "tokens to experts " + tensor_text(r.dispatch, compute) + ", back " + compute + "; ";
  return (experts ? tokens : "") + "sharded weights " + tensor_text(r.gather, compute);
}

std::string products_text(const LinearPrecision& linear) {
  std::vector<std::string> parts;
  if (linear.sum == SumPrecision::kHopper) parts.emplace_back("sums in 14 bits, as on Hopper");
  if (linear.sum == SumPrecision::kHopperPromoted)
    parts.emplace_back("sums in 14 bits, moved to fp32 every 128 products");
  if (linear.requantize_activation) parts.emplace_back("weight gradients use x as rounded in the forward pass");
  if (linear.hadamard) parts.emplace_back("a random Hadamard transform for weight gradients");
  return join(parts, "; ");
}

}  // namespace ranklab
