// Statistics of norms' outputs and of the residual stream in the sentinel layers, over all tokens of the global batch.
// Ranks with the same tokens as a tp peer are not counted again.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/runtime/sentinels/families.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr double kOutlierTimes = 10;  // multiples of the root mean square
// Magnitudes are counted in bins, because the root mean square over all ranks and microbatches is known only
// afterwards. Each power of two is divided into eight bins (a float's exponent and the first three bits of its
// fraction).
constexpr int64_t kMagnitudeBits = 20, kFirstBin = int64_t{107} << 3, kMagnitudeBins = 320;  // 2^-20 to 2^20

int64_t magnitude_bin(float magnitude) {
  const auto bits = static_cast<int64_t>(std::bit_cast<uint32_t>(magnitude));
  return std::clamp<int64_t>((bits >> kMagnitudeBits) - kFirstBin, 0, kMagnitudeBins - 1);
}

// The number of elements in each bin.
at::Tensor count_magnitudes(const at::Tensor& x) {
  const at::Tensor bits = x.to(at::kFloat).abs().view(at::kInt);
  const at::Tensor bin = bits.bitwise_right_shift(at::Scalar(kMagnitudeBits)).sub_(kFirstBin);
  return at::bincount(bin.clamp_(0, kMagnitudeBins - 1).flatten(), {}, kMagnitudeBins).to(at::kCPU);
}

class ActivationFamily final : public SentinelFamily, public ModuleHook {
 public:
  ActivationFamily(SentinelContext& context, RankTable& table)
      : counts_(context.plan.sequence_parallel || context.ctx.coordinate(Axis::kTp) == 0) {
    std::vector<std::string> norms;
    for (const int64_t layer : context.sentinel_layers) {
      const std::string block = "layers." + std::to_string(layer);
      for (const char* norm : {".attention_norm", ".attention_post_norm", ".mlp_norm", ".mlp_post_norm"})
        norms.push_back(block + norm);
      const bool attends = context.plan.config.model.has_attention(layer);
      residuals_.emplace(block + (attends ? ".attention_norm" : ".mlp_norm"),
                         Site{.place = "block_" + std::to_string(layer)});
    }
    residuals_.emplace("final_norm", Site{.place = "output"});
    for (const std::string& path : norms) norms_.emplace(path, Site{.place = path});
    for (auto* sites : {&norms_, &residuals_})
      for (auto& [path, site] : *sites) site.slots = table.reserve(kSlots);
    for (auto& [path, site] : residuals_) {
      site.bins.assign(kMagnitudeBins, 0);
      site.bin_slots = table.reserve(kMagnitudeBins);
    }
  }

  ModuleHook* module_hook() override { return this; }
  void begin(int64_t) override {
    for (auto* sites : {&norms_, &residuals_})
      for (auto& [path, site] : *sites) {
        site.squares = site.elements = site.largest = 0;
        std::ranges::fill(site.bins, 0.0);
      }
  }

  void before_forward(const std::string&, ModulePass, const at::Tensor&) override {}
  void after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) override {
    if (const auto it = norms_.find(path); it != norms_.end()) look(it->second, pass, output);
  }
  void before_backward(const std::string&, const at::Tensor&) override {}
  void after_backward(const std::string&, const at::Tensor&) override {}
  void residual_stream(const std::string& path, ModulePass pass, const at::Tensor& sum) override {
    if (const auto it = residuals_.find(path); it != residuals_.end()) look(it->second, pass, sum);
  }

  void fill(const SentinelStep&, RankTable& table) override {
    for (auto* sites : {&norms_, &residuals_}) {
      for (const auto& [path, site] : *sites) {
        if (site.elements == 0) continue;  // belongs to another stage
        table.mine(site.slots + kSquares) = site.squares;
        table.mine(site.slots + kElements) = site.elements;
        table.mine(site.slots + kLargest) = site.largest;
        for (size_t i = 0; i < site.bins.size(); ++i) table.mine(site.bin_slots + i) = site.bins[i];
      }
    }
  }

  void report(const SentinelStep&, const RankTable& table, SentinelReport& out) override {
    for (const auto& [path, site] : norms_) {
      out.add("norm_rms", rms(table, site), site.place);
      out.add("activation_max", table.most(site.slots + kLargest), site.place);
    }
    for (auto& [path, site] : residuals_) {
      const double now = rms(table, site);
      out.add("residual_rms", now, site.place);
      if (site.last_rms > 0) out.add("residual_growth", now / site.last_rms, site.place);
      if (now > 0) out.add("residual_outliers", outlier_rate(table, site, now), site.place);
      if (now > 0) site.last_rms = now;
    }
  }

  void keep(RunningValues& values) const override {
    for (const auto& [path, site] : residuals_)
      if (site.last_rms > 0) values["residual_rms/" + site.place] = site.last_rms;
  }
  void go_on_from(const RunningValues& values) override {
    for (auto& [path, site] : residuals_)
      site.last_rms = running_value(values, "residual_rms/" + site.place, site.last_rms);
  }

 private:
  enum Slot { kSquares, kElements, kLargest, kSlots };
  struct Site {
    std::string place;
    size_t slots = 0;
    double squares = 0, elements = 0, largest = 0;
    std::vector<double> bins = {};  // for the residual stream
    size_t bin_slots = 0;
    double last_rms = 0;  // over the whole batch, at the last measurement
  };

  void look(Site& site, ModulePass pass, const at::Tensor& tensor) const {
    if (pass != ModulePass::kForward || !counts_) return;
    const NoCostScope free;
    const at::NoGradGuard no_grad;
    const at::Tensor x = tensor.detach().contiguous();
    site.squares += sum_of_squares(x);
    site.elements += static_cast<double>(x.numel());
    const auto [least, most] = at::aminmax(x);
    site.largest = std::max({site.largest, std::abs(least.item<double>()), std::abs(most.item<double>())});
    if (site.bins.empty() || !std::isfinite(site.largest)) return;
    const at::Tensor counts = count_magnitudes(x);
    const int64_t* count = counts.const_data_ptr<int64_t>();
    for (size_t i = 0; i < site.bins.size(); ++i) site.bins[i] += static_cast<double>(count[i]);
  }

  static double outlier_rate(const RankTable& table, const Site& site, double rms) {
    const int64_t first = magnitude_bin(static_cast<float>(kOutlierTimes * rms)) + 1;
    double outliers = 0;
    for (int64_t i = first; i < kMagnitudeBins; ++i) outliers += table.sum(site.bin_slots + static_cast<size_t>(i));
    return outliers / table.sum(site.slots + kElements);
  }
  static double rms(const RankTable& table, const Site& site) {
    return std::sqrt(table.sum(site.slots + kSquares) / table.sum(site.slots + kElements));
  }

  bool counts_;
  std::map<std::string, Site> norms_, residuals_;  // by path
};

}  // namespace

std::unique_ptr<SentinelFamily> make_activation_family(SentinelContext& context, RankTable& table) {
  return std::make_unique<ActivationFamily>(context, table);
}

}  // namespace ranklab
