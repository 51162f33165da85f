#include "core/parity/compare/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/parity/epsilon.h"
#include "core/parity/rounding/adamw_apart.h"
#include "core/parity/rounding/routing_flips.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// epsilons: a tensor is zero or not finite in one of two runs
constexpr double kNoMeasure = 1e30;

bool is_of_weights(const TensorKey& key) { return key.kind == "updated weight" || key.phase == ParityPhase::kWeights; }

// The loss and the gradient norm are sums over everything, in which the rounding of the parts averages out. In an fp32
// run the sums have no more bits than their summands.
constexpr double kLeastOfAll = 0.25, kFloat = 0x1p-23;
bool is_of_all(const TensorKey& key) { return key.phase == ParityPhase::kLoss || key.phase == ParityPhase::kNorm; }

// The tolerance for a tensor as a whole, if perturbed copies are `apart` from it; both are relative to its size. In low
// precision `factor * apart` alone would let everything pass, so the tolerance is limited: a tensor of zeros, or one no
// closer to the reference than zeros, must be found. A single piece may be small and gets the plain factor, since one
// element may cause all of its distance. If the perturbed copies are as far away as zeros, the tensor is only rounding
// and its size is unknown.
double allowed_together(double apart, double factor) {
  constexpr double kLikeZeros = 0.9, kOfMuch = 1.5;
  if (apart >= 1) return factor * apart;
  return std::min(factor * apart, std::max(kLikeZeros, kOfMuch * apart));
}

at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) { return a.defined() ? a + b : b; }

}  // namespace

ParityReference::ParityReference(ParityRecord record, const std::vector<ParityRecord>& perturbed, double factor,
                                 double least)
    : record_(std::move(record)), keys_(causal_order(record_)), epsilon_(epsilon_of(record_.type)), factor_(factor) {
  for (const auto& [key, pieces] : record_.tensors) {
    whole_.emplace(key, put_together(pieces));
    tolerance_[key] = is_of_all(key) ? std::min(least, std::max(kLeastOfAll, least * kFloat / epsilon_)) : least;
    together_[key] = tolerance_[key];
  }
  measure_idle_experts();
  for (const ParityRecord& other : perturbed) add(other);
}

// An expert without tokens has a gradient of zero, to which no distance is small. It is measured by the gradients of
// the layer's other experts: rounding may send it a token whose scores were nearly tied.
void ParityReference::measure_idle_experts() {
  for (auto& [key, whole] : whole_) {
    const auto place = whole.rms == 0 ? expert_place(key.name) : std::nullopt;
    if (!place) continue;
    TensorKey other = key;
    for (int64_t expert = 0; has(other = {key.step, key.phase, place->of(expert), key.kind}); ++expert)
      whole.rms = std::max(whole.rms, whole_.at(other).rms);
  }
}

// The tolerances of moments determine how far apart weights may be, so weights come last.
void ParityReference::add(const ParityRecord& perturbed) {
  widen(perturbed, false);
  widen(perturbed, true);
}

void ParityReference::widen(const ParityRecord& perturbed, bool weights) {
  for (const auto& [key, pieces] : perturbed.tensors) {
    if (!whole_.contains(key) || is_of_weights(key) != weights) continue;
    const at::Tensor known = slack(perturbed, key);
    const PiecesApart apart = distances(key, pieces, known);
    if (apart.largest >= kNoMeasure) continue;
    tolerance_[key] = std::max(tolerance_[key], factor_ * apart.largest);
    together_[key] = std::max(together_[key], allowed_together(apart.together * epsilon_, factor_) / epsilon_);
  }
}

// Elements for which rounding may decide the sign of the update: those that are small (in low precision, smaller than
// the rounding of the moment), and those whose moment has the other sign although it is within its tolerance. The size
// is limited, because otherwise all elements could count as such, and a wrong update from right moments would pass.
at::Tensor ParityReference::turned(const WholeTensor& got, const TensorKey& moment) const {
  constexpr double kSmall = 0.03, kMost = 0.25;  // relative to the root mean square
  const WholeTensor& want = whole_.at(moment);
  const double allowed = tolerance_.at(moment) * epsilon_;
  const at::Tensor near = (got.values - want.values).abs().le(allowed * want.rms);
  return want.values.abs()
      .lt(std::clamp(allowed, kSmall, kMost) * want.rms)
      .logical_or((got.values * want.values).lt(0).logical_and(near));
}

at::Tensor ParityReference::slack(const ParityRecord& got, const TensorKey& key) const {
  if (!is_of_weights(key)) return {};
  const int64_t last = key.phase == ParityPhase::kWeights ? key.step - 1 : key.step;
  at::Tensor all;
  for (int64_t step = 0; step <= last; ++step) {
    const TensorKey mean{step, ParityPhase::kUpdate, key.name, "exp_avg"};
    TensorKey square = mean;
    square.kind = "exp_avg_sq";
    const auto means = got.tensors.find(mean), squares = got.tensors.find(square);
    if (!has(mean) || whole_.at(mean).shape != whole_.at(key).shape || means == got.tensors.end()) continue;
    const WholeTensor here = put_together(means->second);
    if (here.shape != whole_.at(mean).shape) continue;
    if (record_.plan && has(square) && squares != got.tensors.end()) {
      const auto moments = [&](const WholeTensor& first, const WholeTensor& second) {
        return AdamMoments{first.values, second.values, type(mean), type(square)};
      };
      all = sum_of(all, adamw_apart(moments(here, put_together(squares->second)),
                                    moments(whole_.at(mean), whole_.at(square)), record_.plan->config, step));
    } else {
      const at::Tensor none = at::zeros_like(here.values);
      all = sum_of(all, none.masked_fill(turned(here, mean), std::numeric_limits<double>::infinity()));
    }
  }
  return all;
}

double ParityReference::by_flips(const ParityRecord& got, const TensorKey& key) const {
  constexpr double kMost = 3;  // times the average contribution of a token of the layer
  const auto place = expert_place(key.name);
  const bool moment = key.phase == ParityPhase::kUpdate, squared = key.kind == "exp_avg_sq";
  if (!place || (key.kind != "grad" && key.kind != "exp_avg" && !squared)) return 0;
  double flipped = 0, tokens = 0, of_all = 0;
  size_t experts = 0;
  for (int64_t step = moment ? 0 : key.step; step <= key.step; ++step) {
    const auto flips = routing_flips(got, record_, step, place->layer);
    if (!flips) continue;
    experts = flips->tokens.size();
    flipped += static_cast<double>(flips->flipped.at(static_cast<size_t>(place->expert)));
    for (const int64_t some : flips->tokens) tokens += static_cast<double>(some);
  }
  if (flipped == 0 || tokens == 0) return 0;
  for (size_t expert = 0; expert < experts; ++expert) {
    const TensorKey other{key.step, key.phase, place->of(static_cast<int64_t>(expert)), key.kind};
    if (has(other)) of_all += std::pow(root_mean_square(whole_.at(other).values), squared ? 1 : 2);
  }
  // Contributions of tokens have random signs, so their squares add up. For second moments, (g + d)^2 differs from g^2
  // by 2 g d + d^2.
  const WholeTensor& whole = whole_.at(key);
  const double square = kMost * kMost * flipped * of_all / tokens;
  const double apart = squared ? 2 * std::sqrt(whole.rms * square) + square : std::sqrt(square);
  return whole.rms > 0 ? apart / whole.rms / epsilon_ : 0;
}

at::Tensor ParityReference::at_slice(const TensorKey& key, const GlobalSlice& slice) const {
  if (slice.is_whole()) return whole_.at(key).values;
  const at::Tensor index = slice.index();
  return whole_.at(key).values.index_select(0, index.clamp_min(0)).masked_fill(index.lt(0), 0);
}

std::optional<TensorDistance> ParityReference::distance(const TensorKey& key, const TensorPiece& piece,
                                                        const at::Tensor& slack) const {
  const WholeTensor& whole = whole_.at(key);
  if (whole.shape != piece.slice.shape || piece.slice.elements() != piece.value.numel()) return {};
  if (piece.value.numel() == 0) return TensorDistance{};
  const at::Tensor want = at_slice(key, piece.slice), got = piece.value.to(at::kDouble);
  at::Tensor apart = difference(got, want).abs();
  // If scaled gradients overflow, the step is skipped, and how far infinities spread depends on which elements a kernel
  // processes together. That the step is skipped is compared elsewhere.
  if (!whole.finite && key.phase == ParityPhase::kBackward && has({key.step, ParityPhase::kNorm, "loss_scale", ""}))
    apart = apart.masked_fill(got.isfinite().logical_and(want.isfinite()).logical_not(), 0);
  if (slack.defined()) {
    const at::Tensor index = piece.slice.index();
    apart = (apart - slack.index_select(0, index.clamp_min(0)).masked_fill(index.lt(0), 0)).clamp_min(0);
  }
  return distance_of(apart, got, want, whole.rms, epsilon_, piece.slice);
}

PiecesApart ParityReference::distances(const TensorKey& key, const std::vector<TensorPiece>& pieces,
                                       const at::Tensor& slack) const {
  PiecesApart result;
  double squares = 0, elements = 0;
  for (const TensorPiece& piece : pieces) {
    const auto& apart = result.pieces.emplace_back(distance(key, piece, slack));
    if (!apart || piece.value.numel() == 0) continue;
    const auto count = static_cast<double>(piece.value.numel());
    result.largest = std::max(result.largest, apart->eps);
    squares += apart->eps * apart->eps * count;
    elements += count;
  }
  if (elements > 0) result.together = std::sqrt(squares / elements);
  return result;
}

}  // namespace ranklab
