#include "core/sim/hardware_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "core/sim/collective_efficiency.h"
#include "core/sim/link_cost.h"

namespace ranklab {
namespace {

// The weight of a constant's distance (in the logarithm) from its initial value, relative to the points' errors. When a
// fit starts from a known GPU's constants, a few products of the new GPU then leave constants unchanged on which they
// give little information. (With some 27 products of a table of 2,500, half of the others are within 4 to 7 %, and nine
// of ten within 12 to 26 %; without it, within 8 to 14 and 30 to 81 %.)
constexpr double kLoyaltyToGuess = 0.05, kLoyaltyToKnown = 0.5;
constexpr size_t kEnough = 9;  // number of points from which on a third is held out

// Holds out a third of all points in mixed order, because points come in loops over sizes.
bool is_held_out(size_t i) { return (static_cast<uint32_t>(i) * 2654435761U >> 16) % 3 == 0; }

// Fits `start` to the points. `ratio(constants, point)` is the predicted over the measured time.
template <typename Point>
FitRow fit(const std::string& table, const std::string& what, const std::vector<Point>& points,
           std::vector<double>& constants, double loyalty,
           const std::function<double(std::span<const double>, const Point&)>& ratio) {
  FitRow row{.table = table, .what = what, .points = points.size(), .held_out = points.size() >= kEnough, .error = {}};
  const auto fitted = [&](size_t i) { return !row.held_out || !is_held_out(i); };
  const std::vector<double> start = constants;
  constants = fit_constants(constants, [&](std::span<const double> at) {
    double sum = 0;
    for (size_t i = 0; i < at.size(); ++i) sum += loyalty * std::abs(std::log(at[i] / start[i]));
    for (size_t i = 0; i < points.size(); ++i)
      if (fitted(i)) sum += std::abs(std::log(ratio(at, points[i])));
    return sum;
  });
  std::vector<double> ratios;
  for (size_t i = 0; i < points.size(); ++i)
    if (!row.held_out || !fitted(i)) ratios.push_back(ratio(constants, points[i]));
  row.error = fit_error(ratios);
  return row;
}

using Constants = std::span<const double>;

// The constants that are fitted for each kind of kernel.
constexpr std::array kGemm = {&GemmEfficiency::efficiency, &GemmEfficiency::tile_loss, &GemmEfficiency::inner_overhead,
                              &GemmEfficiency::launch_us, &GemmEfficiency::bandwidth};
constexpr std::array kAttention = {&AttentionEfficiency::efficiency,     &AttentionEfficiency::width_loss,
                                   &AttentionEfficiency::launch_us,      &AttentionEfficiency::bandwidth,
                                   &AttentionEfficiency::inner_overhead, &AttentionEfficiency::tail};

template <typename Efficiency, typename Members>
std::vector<double> constants_of(const Efficiency& of, const Members& members) {
  std::vector<double> constants;
  for (const auto member : members) constants.push_back(of.*member);
  return constants;
}
template <typename Efficiency, typename Members>
void put_constants(Constants constants, const Members& members, Efficiency& to) {
  for (size_t i = 0; i < members.size(); ++i) to.*members[i] = constants[i];
}
// Replaces constants that a profile leaves at 0 by a guess, because factors cannot change 0.
template <typename Efficiency, typename Members>
void guess_missing(const Efficiency& guess, const Members& members, Efficiency& of) {
  for (const auto member : members)
    if (!(of.*member > 0)) of.*member = guess.*member;
}

class Fitter {
 public:
  // Starts from the constants of the profile's kernels, if it has any: a few points determine better how far these are
  // off than all constants from scratch.
  Fitter(HardwareProfile& profile, const HardwarePoints& points) : profile_(profile), points_(points) {
    KernelEfficiency guess;
    guess.gemm_16bit = {
        .efficiency = 0.9, .tile_loss = 5, .inner_overhead = 10, .launch_us = 1, .bandwidth = 0.8, .wave_rounding = 0};
    guess.attention = {.efficiency = 0.6,
                       .width_loss = 10,
                       .launch_us = 5,
                       .bandwidth = 0.5,
                       .inner_overhead = 20,
                       .tail = 0.3,
                       .backward = 0.9};
    kernels_ = guess;
    if (!profile.kernels) return;
    kernels_ = *profile.kernels;
    loyalty_ = kLoyaltyToKnown;
    guess_missing(guess.gemm_16bit, kGemm, kernels_.gemm_16bit);
    guess_missing(guess.attention, kAttention, kernels_.attention);
  }

  std::vector<FitRow> all() {
    kernels_.launch_us = points_.shortest_kernel_s * 1e6;
    kernel_row("kernels", "elementwise", points_.elementwise, {kernels_.bandwidth},
               [](Constants c, KernelEfficiency& e) { e.bandwidth = c[0]; });
    kernel_row("kernels.gemm_16bit", "products", points_.products, constants_of(kernels_.gemm_16bit, kGemm),
               [](Constants c, KernelEfficiency& e) { put_constants(c, kGemm, e.gemm_16bit); });
    const AttentionEfficiency& a = kernels_.attention;
    kernel_row("kernels.attention", "attention", points_.attention, constants_of(a, kAttention),
               [](Constants c, KernelEfficiency& e) { put_constants(c, kAttention, e.attention); });
    kernel_row("kernels.attention", "its backward", points_.attention_backward, {a.backward},
               [](Constants c, KernelEfficiency& e) { e.attention.backward = c[0]; });
    kernel_row("kernels.attention", "without a mask", points_.attention_square, {a.square},
               [](Constants c, KernelEfficiency& e) { e.attention.square = c[0]; });
    profile_.kernels = std::make_shared<const KernelEfficiency>(kernels_);
    if (!points_.collectives.empty()) collectives();
    return rows_;
  }

 private:
  void kernel_row(const std::string& table, const std::string& what, const std::vector<KernelPoint>& points,
                  std::vector<double> constants, const std::function<void(Constants, KernelEfficiency&)>& put) {
    HardwareProfile tried = profile_;
    const auto scratch = std::make_shared<KernelEfficiency>(kernels_);
    tried.kernels = scratch;
    rows_.push_back(
        fit<KernelPoint>(table, what, points, constants, loyalty_, [&](Constants at, const KernelPoint& point) {
          put(at, *scratch);
          return std::max<double>(1, static_cast<double>(kernel_ns(tried, point.work))) * 1e-9 / point.seconds;
        }));
    put(constants, kernels_);
  }

  // The constants from which the fit starts, derived from the shortest call and the highest rate.
  static std::vector<double> first_guess(const std::vector<CollectivePoint>& points) {
    double shortest_us = 1e12, gb_s = 0;
    for (const CollectivePoint& point : points) {
      shortest_us = std::min(shortest_us, point.seconds * 1e6);
      gb_s = std::max(gb_s, static_cast<double>(point.bytes) / point.seconds * 1e-9);
    }
    const double base = shortest_us / 2, hop = shortest_us / 4;
    return {base, hop, gb_s / 10, 3 * base, hop, gb_s, 1, 1, 1};
  }

  static CollectiveEfficiency efficiency_of(Constants c) {
    const Protocol longer{c[3], c[4], c[5]};  // two protocols are enough for threads
    return {.protocols = {Protocol{c[0], c[1], c[2]}, longer, longer},
            .reduce_scatter = c[6],
            .all_reduce = c[7],
            .all_to_all = c[8]};
  }

  void collectives() {
    HardwareProfile tried = profile_;
    const auto scratch = std::make_shared<CollectiveEfficiency>();
    tried.collectives = scratch;
    std::vector<double> constants = first_guess(points_.collectives);
    rows_.push_back(fit<CollectivePoint>(
        "collectives", "collectives", points_.collectives, constants, kLoyaltyToGuess,
        [&](Constants at, const CollectivePoint& point) {
          *scratch = efficiency_of(at);
          std::vector<int> ranks(static_cast<size_t>(point.ranks));
          std::iota(ranks.begin(), ranks.end(), 0);
          const LinkCost links(tried, ranks, point.ranks);
          return static_cast<double>(links.collective(point.verb, point.bytes).total_ns) * 1e-9 / point.seconds;
        }));
    const CollectiveEfficiency found = efficiency_of(constants);
    profile_.collectives = std::make_shared<const CollectiveEfficiency>(found);
    const Protocol& first = found.protocols.front();
    double most = 0;
    for (const Protocol& p : found.protocols) most = std::max(most, p.gb_s);
    profile_.intra_node = {.latency_ns = (first.base_us + first.hop_us) * 1e3, .bandwidth_bytes_per_ns = most};
    profile_.inter_node = profile_.intra_node;
  }

  HardwareProfile& profile_;
  const HardwarePoints& points_;
  KernelEfficiency kernels_;
  double loyalty_ = kLoyaltyToGuess;
  std::vector<FitRow> rows_;
};

}  // namespace

std::vector<FitRow> fit_profile(HardwareProfile& profile, const HardwarePoints& points) {
  return Fitter(profile, points).all();
}

}  // namespace ranklab
