#include "cli/model/model_stats.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/checkpoint/tensor_stats.h"

namespace ranklab {
namespace {

using LongUnsigned = unsigned long long;

}  // namespace

std::string stats_text(const TensorSource& tensors, const Style& style) {
  size_t widest = 6;
  for (const TensorInfo& tensor : tensors.tensors()) widest = std::max(widest, tensor.name.size());
  const int names = static_cast<int>(widest);
  std::string text = style.bold(strprintf("  %-*s %-4s %-15s %12s %12s %12s %12s %8s %6s %6s", names, "tensor", "type",
                                          "shape", "elements", "mean", "std", "largest", "zeros", "NaN", "inf")) +
                     "\n";
  for (const TensorInfo& tensor : tensors.tensors()) {
    const ValueSpread s = tensor_stats(tensors, tensor);
    const std::string type(name(tensor.type)), shape = shape_text(tensor.shape);
    const std::string row = strprintf(
        "  %-*s %-4s %-15s %12llu %12.5g %12.5g %12.5g %8llu %6llu %6llu", names, tensor.name.c_str(), type.c_str(),
        shape.c_str(), static_cast<LongUnsigned>(s.elements()), s.mean(), s.std(), s.largest(),
        static_cast<LongUnsigned>(s.zeros), static_cast<LongUnsigned>(s.nans), static_cast<LongUnsigned>(s.infinities));
    text += (s.nans + s.infinities > 0 ? style.bold(row) : row) + "\n";
  }
  return text + "\n";
}

nlohmann::ordered_json stats_json(const TensorSource& tensors) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const TensorInfo& tensor : tensors.tensors()) {
    const ValueSpread s = tensor_stats(tensors, tensor);
    rows.push_back({{"name", tensor.name},
                    {"dtype", name(tensor.type)},
                    {"shape", tensor.shape},
                    {"elements", s.elements()},
                    {"mean", s.mean()},
                    {"std", s.std()},
                    {"largest", s.largest()},
                    {"zeros", s.zeros},
                    {"nans", s.nans},
                    {"infinities", s.infinities}});
  }
  return rows;
}

}  // namespace ranklab
