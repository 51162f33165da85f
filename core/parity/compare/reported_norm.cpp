#include "core/parity/compare/reported_norm.h"

#include <cmath>
#include <set>
#include <string>

#include "core/parity/compare/reference.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

struct ReportedNorm {
  double over_own = 0;
  std::set<std::string> gradients = {};
};

// `whole_of` returns a gradient of the record, assembled from its pieces.
template <typename WholeOf>
std::optional<ReportedNorm> reported_norm(const ParityRecord& record, int64_t step, const WholeOf& whole_of) {
  const auto reported = record.tensors.find({step, ParityPhase::kNorm, "grad_norm", ""});
  if (reported == record.tensors.end()) return {};
  ReportedNorm norm;
  double squares = 0;
  for (const auto& [key, pieces] : record.tensors) {
    if (key.step != step || key.phase != ParityPhase::kBackward || key.kind != "grad") continue;
    const WholeTensor& whole = whole_of(key);
    if (!whole.finite || !whole.known.all().item<bool>()) return {};
    squares += whole.values.dot(whole.values).item<double>();
    norm.gradients.insert(key.name);
  }
  norm.over_own = reported->second.front().value[0].item<double>() / std::sqrt(squares);
  return norm;
}

}  // namespace

std::optional<double> reported_norm_ratio(const ParityRecord& got, const ParityReference& want, int64_t step) {
  const auto put = [&](const TensorKey& key) { return put_together(got.tensors.at(key)); };
  const auto kept = [&](const TensorKey& key) -> const WholeTensor& { return want.whole(key); };
  const auto here = reported_norm(got, step, put), there = reported_norm(want.record(), step, kept);
  if (!here || !there || here->gradients != there->gradients) return {};
  const double ratio = here->over_own / there->over_own;
  return std::isfinite(ratio) ? std::optional(ratio) : std::nullopt;
}

}  // namespace ranklab
