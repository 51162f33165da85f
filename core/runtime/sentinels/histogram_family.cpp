// Histograms of gradients and weights, by parameter, for TensorBoard: of all parameters in debug mode, else of the
// sentinel layers. Each logical element counts once, whichever ranks have copies or pieces of it, and padding does not
// count. Cost: some passes over the tensors in a step that measures them, and 781 numbers per parameter in the ranks'
// exchange.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "core/base/numbers/value_histogram.h"
#include "core/runtime/sentinels/families.h"
#include "core/runtime/sentinels/parameter_keys.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Counts over a rank's pieces of a tensor. Extremes ignore zeros, because padding is zero.
struct Counted {
  std::vector<double> counts = std::vector<double>(ValueHistogram::kBins);
  double least = kInfinity, most = -kInfinity, zeros = 0, sum = 0, squares = 0;

  void add(const at::Tensor& x) {
    if (x.numel() == 0) return;
    const at::Tensor bits = x.to(at::kFloat).abs().view(at::kInt);
    constexpr int64_t kDropped = 21;  // bits dropped of the 23 in a float's fraction
    constexpr int64_t kFirst = (127 + ValueHistogram::kLeastPower) * ValueHistogram::kPerPower - 1;
    const at::Tensor from_zero = bits.bitwise_right_shift(at::Scalar(kDropped)).sub_(kFirst);
    const at::Tensor magnitude = from_zero.clamp_(0, ValueHistogram::kMagnitudes);
    const at::Tensor bin = at::where(x.lt(0), -magnitude, magnitude).add_(ValueHistogram::kMagnitudes);
    const at::Tensor found = at::bincount(bin.flatten(), {}, ValueHistogram::kBins).to(at::kCPU);
    for (int64_t i = 0; i < ValueHistogram::kBins; ++i)
      counts[static_cast<size_t>(i)] += static_cast<double>(found.const_data_ptr<int64_t>()[i]);
    const at::Tensor wide = x.to(at::kDouble), zero = wide.eq(0);
    zeros += static_cast<double>(zero.sum().item<int64_t>());
    least = std::min(least, wide.masked_fill(zero, kInfinity).min().item<double>());
    most = std::max(most, wide.masked_fill(zero, -kInfinity).max().item<double>());
    sum += wide.sum().item<double>();
    squares += wide.square().sum().item<double>();
  }
};

class HistogramFamily final : public SentinelFamily, public UpdateWatch {
 public:
  HistogramFamily(SentinelContext& context, RankTable& table) : context_(context) {
    const bool all = context.plan.config.sentinels.mode == SentinelMode::kDebug;
    for (const std::string& key : context.parameters)
      if (all || std::ranges::count(context.sentinel_layers, layer_of_key(key)) > 0)
        slots_.emplace(key, table.reserve(kSlots));
  }

  UpdateWatch* update_watch() override { return this; }
  void begin(int64_t) override { counted_.clear(); }

  void before_update(const UpdateView& update) override {
    const NoCostScope free;
    const at::NoGradGuard no_grad;
    for (const Parameter* piece : update.pieces) {
      const auto slots = slots_.find(parameter_key(*piece));
      if (slots == slots_.end() || !counts_in_world(*piece, context_.ctx, update.axes)) continue;
      Both& both = counted_[slots->second];
      both.of[kGradients].add(piece->data.grad().to(at::kDouble) * update.unscale);
      both.of[kWeights].add(piece->data.detach());
      both.elements = whole_elements(*piece);
    }
  }
  void after_update(const UpdateView&) override {}

  void fill(const SentinelStep&, RankTable& table) override {
    for (const auto& [slots, both] : counted_) {
      table.mine(slots) = both.elements;
      for (const Kind kind : {kGradients, kWeights}) {
        const Counted& one = both.of[kind];
        const size_t first = slots + 1 + kind * kOfOne;
        table.mine(first + kLeast) = one.least;
        table.mine(first + kMost) = one.most;
        table.mine(first + kZeros) = one.zeros;
        table.mine(first + kSum) = one.sum;
        table.mine(first + kSquares) = one.squares;
        for (size_t i = 0; i < one.counts.size(); ++i) table.mine(first + kCounts + i) = one.counts[i];
      }
    }
  }

  void report(const SentinelStep&, const RankTable& table, SentinelReport& out) override {
    const auto histograms = std::make_shared<std::vector<ValueHistogram>>();
    for (const auto& [key, slots] : slots_) {
      if (std::isnan(table.most(slots))) continue;  // the step was skipped
      histograms->push_back(histogram(table, slots, kGradients, "gradients_hist/" + key));
      histograms->push_back(histogram(table, slots, kWeights, "weights_hist/" + key));
    }
    out.histograms = histograms;
  }

 private:
  enum Kind : size_t { kGradients, kWeights };
  enum Slot : size_t { kLeast, kMost, kZeros, kSum, kSquares, kCounts };
  static constexpr size_t kOfOne = kCounts + ValueHistogram::kBins, kSlots = 1 + 2 * kOfOne;
  struct Both {
    double elements = 0;  // elements of the whole tensor; 0: use the number of counted elements
    Counted of[2];
  };

  static ValueHistogram histogram(const RankTable& table, size_t slots, Kind kind, std::string tag) {
    const size_t first = slots + 1 + kind * kOfOne;
    ValueHistogram out{.tag = std::move(tag), .sum = table.sum(first + kSum), .squares = table.sum(first + kSquares)};
    for (size_t i = 0; i < ValueHistogram::kBins; ++i) {
      out.counts.push_back(table.sum(first + kCounts + i));
      out.elements += out.counts.back();
    }
    const double whole = table.most(slots), padding = whole > 0 ? out.elements - whole : 0;
    out.elements -= padding;
    out.counts[ValueHistogram::kMagnitudes] -= padding;
    const bool has_zero = table.sum(first + kZeros) > padding;
    out.least = has_zero ? std::min(0.0, table.least(first + kLeast)) : table.least(first + kLeast);
    out.most = has_zero ? std::max(0.0, table.most(first + kMost)) : table.most(first + kMost);
    return out;
  }

  SentinelContext& context_;
  std::map<std::string, size_t> slots_;  // by key
  std::map<size_t, Both> counted_;       // by slot
};

}  // namespace

std::unique_ptr<SentinelFamily> make_histogram_family(SentinelContext& context, RankTable& table) {
  return std::make_unique<HistogramFamily>(context, table);
}

}  // namespace ranklab
