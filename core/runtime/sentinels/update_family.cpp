// Gradients, weights and updates, by parameter, by layer and in total. Each logical element counts once, whichever
// ranks have copies or pieces of it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "core/runtime/sentinels/families.h"
#include "core/runtime/sentinels/parameter_keys.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr double kRatioEpsilon = 1e-6;    // added to denominators, as in clipping
constexpr int64_t kSampledElements = 64;  // elements of each piece that are compared before and after the update

class UpdateFamily final : public SentinelFamily, public UpdateWatch {
 public:
  UpdateFamily(SentinelContext& context, RankTable& table)
      : context_(context), debug_(context.plan.config.sentinels.mode == SentinelMode::kDebug) {
    for (const std::string& key : context.parameters)
      keys_.emplace(key, Key{.slots = table.reserve(kSums), .layer = layer_of_key(key)});
    rank_slots_ = table.reserve(kRankSlots);
  }

  UpdateWatch* update_watch() override { return this; }
  void begin(int64_t) override { sums_.clear(), before_.clear(), seen_ = false; }

  void before_update(const UpdateView& update) override {
    const NoCostScope free;
    const at::NoGradGuard no_grad;
    seen_ = true;
    lr_ = update.lr;
    clip_ = update.factor / update.unscale;
    sampled_ = changed_ = 0;
    for (const Parameter* piece : update.pieces) {
      if (!counts_in_world(*piece, context_.ctx, update.axes)) continue;
      Sums& sums = sums_[parameter_key(*piece)];
      const at::Tensor& grad = piece->data.grad();
      sums.matrix = piece->partition.global_shape.size() > 1;
      sums.grad_squares += sum_of_squares(grad) * update.unscale * update.unscale;
      sums.weight_squares += sum_of_squares(piece->data);
      if (debug_) {
        sums.grad_sum += grad.to(at::kDouble).sum().item<double>() * update.unscale;
        sums.elements += static_cast<double>(grad.numel());
        sums.whole = whole_elements(*piece);
      }
      before_.push_back({piece, (debug_ ? piece->data : sample(*piece)).detach().clone()});
    }
  }

  void after_update(const UpdateView&) override {
    const NoCostScope free;
    const at::NoGradGuard no_grad;
    for (const auto& [piece, kept] : before_) {
      const at::Tensor was = debug_ ? kept.flatten().narrow(0, 0, std::min(kSampledElements, kept.numel())) : kept;
      sampled_ += static_cast<double>(was.numel());
      changed_ += sample(*piece).ne(was).sum().item<double>();
      if (!debug_) continue;
      sums_[parameter_key(*piece)].update_squares +=
          sum_of_squares((piece->data.to(at::kDouble) - kept.to(at::kDouble)).contiguous());
    }
    before_.clear();
  }

  void fill(const SentinelStep&, RankTable& table) override {
    if (!seen_) return;
    for (const auto& [name, sums] : sums_) {
      const size_t slots = keys_.at(name).slots;
      table.mine(slots + kGrad) = sums.grad_squares;
      table.mine(slots + kWeight) = sums.weight_squares;
      table.mine(slots + kMatrix) = sums.matrix ? 1 : 0;
      if (!debug_) continue;
      table.mine(slots + kGradSum) = sums.grad_sum;
      table.mine(slots + kElements) = sums.elements;
      table.mine(slots + kWhole) = sums.whole;
      table.mine(slots + kUpdate) = sums.update_squares;
    }
    table.mine(rank_slots_ + kSampled) = sampled_;
    table.mine(rank_slots_ + kChanged) = changed_;
    table.mine(rank_slots_ + kNotFinite) = not_finite();
    table.mine(rank_slots_ + kLr) = lr_;
    table.mine(rank_slots_ + kClip) = clip_;
  }

  void report(const SentinelStep&, const RankTable& table, SentinelReport& out) override {
    if (!seen_) return;  // the update was skipped, on all ranks
    // Rank 0's values are used on all ranks, even if a fault gives one of them another value.
    lr_ = table.of(0, rank_slots_ + kLr);
    clip_ = table.of(0, rank_slots_ + kClip);
    double weights = 0, grads = 0;
    std::map<int64_t, Squares> layers;
    std::vector<double> ratios;
    for (const auto& [name, key] : keys_) {
      const Squares s{table.sum(key.slots + kGrad), table.sum(key.slots + kWeight)};
      if (std::isnan(s.weight)) continue;
      grads += s.grad;
      weights += s.weight;
      if (key.layer >= 0 && table.most(key.slots + kMatrix) == 1) {
        layers[key.layer] += s;
        ratios.push_back(ratio(s));
      }
      if (debug_ || watches(key.layer)) report_parameter(name, s, out);
      if (debug_) report_debug(name, key.slots, s, table, out);
    }
    out.add("weight_norm", std::sqrt(weights));
    if (lr_ > 0) {
      out.add("update_ratio", ratio({grads, weights}));
      report_quantiles(ratios, out);
      out.add("no_update", table.sum(rank_slots_ + kChanged) / table.sum(rank_slots_ + kSampled));
    }
    out.add("optimizer_state", table.sum(rank_slots_ + kNotFinite) == 0 ? 1 : 0);
    report_layers(layers, out);
  }

 private:
  enum Slot { kGrad, kWeight, kMatrix, kGradSum, kElements, kWhole, kUpdate, kSums };
  enum RankSlot { kSampled, kChanged, kNotFinite, kLr, kClip, kRankSlots };
  struct Key {
    size_t slots = 0;
    int64_t layer = -1;
  };
  struct Sums {
    double grad_squares = 0, weight_squares = 0, grad_sum = 0, elements = 0, whole = 0, update_squares = 0;
    bool matrix = false;
  };
  struct Squares {
    double grad = 0, weight = 0;
    void operator+=(const Squares& other) { grad += other.grad, weight += other.weight; }
  };

  static at::Tensor sample(const Parameter& piece) {
    const at::Tensor flat = piece.data.detach().view({-1});
    return flat.narrow(0, 0, std::min(kSampledElements, flat.numel()));
  }
  bool watches(int64_t layer) const { return std::ranges::count(context_.sentinel_layers, layer) > 0; }
  double ratio(const Squares& s) const {
    return lr_ * clip_ * std::sqrt(s.grad) / (std::sqrt(s.weight) + kRatioEpsilon);
  }

  // The number of this rank's moments that contain an infinity or NaN.
  double not_finite() {
    const NoCostScope free;
    double count = 0;
    for (const OwnedState& state : context_.optimizer.owned_state()) {
      if (!debug_ && !watches(layer_of_key(state.parameter->name))) continue;
      for (const auto& [name, moment] : state.moments) count += std::isfinite(sum_of_squares(moment)) ? 0 : 1;
    }
    return count;
  }

  void report_parameter(const std::string& name, const Squares& s, SentinelReport& out) const {
    out.add("parameter_grad_norm", std::sqrt(s.grad), name);
    out.add("parameter_norm", std::sqrt(s.weight), name);
    if (lr_ > 0) out.add("parameter_ratio", ratio(s), name);
  }
  static void report_debug(const std::string& name, size_t slots, const Squares& s, const RankTable& table,
                           SentinelReport& out) {
    const double whole = table.most(slots + kWhole), elements = whole > 0 ? whole : table.sum(slots + kElements);
    const double mean = table.sum(slots + kGradSum) / elements;
    const double update = std::sqrt(table.sum(slots + kUpdate));
    out.add("parameter_grad_mean", mean, name);
    out.add("parameter_grad_std", std::sqrt(std::max(0.0, s.grad / elements - mean * mean)), name);
    out.add("parameter_update_norm", update, name);
    out.add("parameter_update_ratio", update / (std::sqrt(s.weight) + kRatioEpsilon), name);
  }

  static void report_quantiles(std::vector<double>& ratios, SentinelReport& out) {
    if (ratios.empty()) return;
    std::sort(ratios.begin(), ratios.end());
    const auto at = [&](double share) {
      return ratios[static_cast<size_t>(share * static_cast<double>(ratios.size() - 1) + 0.5)];
    };
    out.add("update_ratio_p50", at(0.5));
    out.add("update_ratio_p95", at(0.95));
    out.add("update_ratio_max", ratios.back());
  }

  void report_layers(const std::map<int64_t, Squares>& layers, SentinelReport& out) const {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const auto& [layer, s] : layers) {
      const std::string place = std::to_string(layer);
      out.add("block_grad_norm", std::sqrt(s.grad), place);
      out.add("block_weight_norm", std::sqrt(s.weight), place);
      if (lr_ > 0) out.add("block_update_ratio", ratio(s), place);
      least = std::min(least, std::sqrt(s.weight));
      most = std::max(most, std::sqrt(s.weight));
    }
    if (layers.size() < 2) return;
    const Squares &first = layers.begin()->second, &last = layers.rbegin()->second;
    out.add("weight_spread", most / least);
    out.add("grad_depth_ratio", std::sqrt(first.grad) / std::sqrt(last.grad));
    if (lr_ > 0) out.add("update_depth_ratio", ratio(first) / ratio(last));
  }

  SentinelContext& context_;
  bool debug_;
  std::map<std::string, Key> keys_;
  size_t rank_slots_ = 0;
  std::map<std::string, Sums> sums_;
  std::vector<std::pair<const Parameter*, at::Tensor>> before_;
  double lr_ = 0, clip_ = 1, sampled_ = 0, changed_ = 0;
  bool seen_ = false;
};

}  // namespace

std::unique_ptr<SentinelFamily> make_update_family(SentinelContext& context, RankTable& table) {
  return std::make_unique<UpdateFamily>(context, table);
}

}  // namespace ranklab
