#include "core/parity/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/config/state_types.h"
#include "core/parity/epsilon.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

constexpr double kNoMeasure = 1e30;  // epsilons: of a tensor that is zero or not finite in one of two runs

double root_mean_square(const at::Tensor& values) {
  return values.numel() == 0 ? 0 : std::sqrt(values.square().mean().item<double>());
}

WholeTensor put_together(const std::vector<TensorPiece>& pieces) {
  const GlobalSlice& first = pieces.front().slice;
  WholeTensor whole{.values = at::zeros({first.global_elements()}, at::kDouble),
                    .known = at::zeros({first.global_elements()}, at::kBool),
                    .shape = first.shape};
  for (const TensorPiece& piece : pieces) {
    const at::Tensor index = piece.slice.index(), real = index.ge(0);
    const at::Tensor places = index.masked_select(real);
    whole.values.index_copy_(0, places, piece.value.to(at::kDouble).masked_select(real));
    whole.known.index_fill_(0, places, true);
  }
  whole.rms = root_mean_square(whole.values.masked_select(whole.known.logical_and(whole.values.isfinite())));
  return whole;
}

// Differences of numbers that are not finite count where only one of them is.
at::Tensor difference(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor same = got.eq(want).logical_or(got.isnan().logical_and(want.isnan()));
  const at::Tensor d = (got - want).masked_fill(same, 0);
  return d.masked_fill(d.isfinite().logical_not(), std::numeric_limits<double>::max() / 1e200);
}

// `apart`: their absolute differences; `rms`: the reference's.
TensorDistance distance_of(const at::Tensor& apart, const at::Tensor& got, const at::Tensor& want, double rms,
                           double epsilon, const GlobalSlice& slice) {
  const int64_t worst = apart.argmax().item<int64_t>();
  const double largest = apart[worst].item<double>();
  if (largest == 0) return {};
  return {.eps = root_mean_square(apart) / (rms > 0 ? rms : std::numeric_limits<double>::min()) / epsilon,
          .largest = largest,
          .place = slice.index()[worst].item<int64_t>(),
          .got = got[worst].item<double>(),
          .want = want[worst].item<double>()};
}

bool is_of_weights(const TensorKey& key) { return key.kind == "updated weight" || key.phase == ParityPhase::kWeights; }

}  // namespace

ParityReference::ParityReference(ParityRecord record, const std::vector<ParityRecord>& perturbed, double factor,
                                 double least)
    : record_(std::move(record)), keys_(causal_order(record_)), epsilon_(epsilon_of(record_.type)), factor_(factor) {
  for (const auto& [key, pieces] : record_.tensors) {
    whole_.emplace(key, put_together(pieces));
    tolerance_[key] = least;
  }
  find_undecided();
  for (const ParityRecord& other : perturbed) add(other);
}

void ParityReference::find_undecided() {
  for (auto& [key, whole] : whole_) whole.undecided = undecided(key);
}

// What is allowed of moments decides which elements of weights are compared, so weights come last.
void ParityReference::add(const ParityRecord& perturbed) {
  widen(perturbed, false);
  find_undecided();
  widen(perturbed, true);
}

void ParityReference::widen(const ParityRecord& perturbed, bool weights) {
  for (const auto& [key, pieces] : perturbed.tensors) {
    if (!whole_.contains(key) || is_of_weights(key) != weights) continue;
    for (const TensorPiece& piece : pieces)
      if (const auto apart = distance(key, piece, whole_.at(key).undecided); apart && apart->eps < kNoMeasure)
        tolerance_[key] = std::max(tolerance_[key], factor_ * apart->eps);
  }
}

// The first moments that a weight has seen so far, of optimizers that have them.
std::vector<TensorKey> ParityReference::moments_of(const TensorKey& key) const {
  std::vector<TensorKey> moments;
  if (!is_of_weights(key)) return moments;
  const int64_t last = key.phase == ParityPhase::kWeights ? key.step - 1 : key.step;
  for (int64_t step = 0; step <= last; ++step) {
    const TensorKey moment{step, ParityPhase::kUpdate, key.name, "exp_avg"};
    if (has(moment) && whole_.at(moment).shape == whole_.at(key).shape) moments.push_back(moment);
  }
  return moments;
}

// Elements whose update's sign rounding may decide, in any step so far: small ones, and in few bits those that are
// smaller than what rounding may make of the moment. Without a limit all elements could be that, and a wrong update of
// right moments would pass.
at::Tensor ParityReference::undecided(const TensorKey& key) const {
  constexpr double kSmall = 0.03, kMost = 0.25;  // of the root mean square
  at::Tensor all;
  for (const TensorKey& moment : moments_of(key)) {
    const WholeTensor& whole = whole_.at(moment);
    const double small = std::clamp(tolerance_.at(moment) * epsilon_, kSmall, kMost);
    const at::Tensor here = whole.values.abs().lt(small * whole.rms);
    all = all.defined() ? all.logical_or(here) : here;
  }
  return all;
}

at::Tensor ParityReference::turned(const ParityRecord& got, const TensorKey& key) const {
  at::Tensor all;
  for (const TensorKey& moment : moments_of(key)) {
    const auto found = got.tensors.find(moment);
    if (found == got.tensors.end() || found->second.front().slice.shape != whole_.at(moment).shape) continue;
    const WholeTensor& want = whole_.at(moment);
    const at::Tensor values = put_together(found->second).values;
    const double near = tolerance_.at(moment) * epsilon_ * want.rms;
    const at::Tensor here = (values * want.values).lt(0).logical_and((values - want.values).abs().le(near));
    all = all.defined() ? all.logical_or(here) : here;
  }
  return all;
}

at::Tensor ParityReference::at_slice(const TensorKey& key, const GlobalSlice& slice) const {
  if (slice.is_whole()) return whole_.at(key).values;
  const at::Tensor index = slice.index();
  return whole_.at(key).values.index_select(0, index.clamp_min(0)).masked_fill(index.lt(0), 0);
}

std::optional<TensorDistance> ParityReference::distance(const TensorKey& key, const TensorPiece& piece,
                                                        const at::Tensor& left_out) const {
  const WholeTensor& whole = whole_.at(key);
  if (whole.shape != piece.slice.shape || piece.slice.elements() != piece.value.numel()) return {};
  if (piece.value.numel() == 0) return TensorDistance{};
  const at::Tensor want = at_slice(key, piece.slice), got = piece.value.to(at::kDouble);
  at::Tensor apart = difference(got, want).abs();
  if (left_out.defined()) apart = apart.masked_fill(left_out.index_select(0, piece.slice.index().clamp_min(0)), 0);
  return distance_of(apart, got, want, whole.rms, epsilon_, piece.slice);
}

const TensorVerdict* ParityComparison::first_wrong() const {
  const auto found = std::ranges::find_if(verdicts, &TensorVerdict::wrong);
  return found == verdicts.end() ? nullptr : &*found;
}

const TensorVerdict* ParityComparison::closest() const {
  const auto found = std::ranges::max_element(verdicts, {}, [](const TensorVerdict& one) {
    return one.tolerance > 0 ? one.worst.eps / one.tolerance : one.worst.eps;
  });
  return found == verdicts.end() ? nullptr : &*found;
}

size_t ParityComparison::count_wrong() const {
  return static_cast<size_t>(std::ranges::count_if(verdicts, &TensorVerdict::wrong));
}

namespace {

// The first rank's copy of the same elements.
const TensorPiece& first_copy(const std::vector<TensorPiece>& pieces, const TensorPiece& piece) {
  return *std::ranges::find_if(pieces, [&](const TensorPiece& other) { return other.slice == piece.slice; });
}

// Ranks whose copies of the same elements are not the first rank's are wrong.
void find_other_copies(const std::vector<TensorPiece>& pieces, TensorVerdict& verdict) {
  for (const TensorPiece& piece : pieces) {
    if (same_bits(first_copy(pieces, piece).value, piece.value)) continue;
    verdict.wrong_ranks.push_back(piece.rank);
    verdict.broken = "copies of it that should have the same bits differ";
  }
}

bool same_state_types(const ParityRecord& got, const ParityReference& want) {
  if (!got.plan || !want.record().plan) return false;
  const StateTypes a = state_types(*got.plan), b = state_types(*want.record().plan);
  return a.main_params == b.main_params && a.exp_avg == b.exp_avg && a.exp_avg_sq == b.exp_avg_sq;
}

void find_broken(const ParityRecord& got, const ParityReference& want, const std::vector<TensorPiece>& pieces,
                 TensorVerdict& verdict) {
  const TensorKey& key = verdict.key;
  if (key.phase == ParityPhase::kWeights || key.phase == ParityPhase::kNorm) find_other_copies(pieces, verdict);
  const at::ScalarType type = pieces.front().value.scalar_type();
  if (key.phase != ParityPhase::kUpdate || type == want.type(key) || !same_state_types(got, want)) return;
  for (const TensorPiece& piece : pieces) verdict.wrong_ranks.push_back(piece.rank);
  verdict.broken = std::string("it is kept in ") + c10::toString(type) + ", and in " + c10::toString(want.type(key)) +
                   " in the reference";
}

void sort_out(std::vector<int>& ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
}

// Ranks that have a piece and are not wrong are right.
void separate(const std::vector<TensorPiece>& pieces, TensorVerdict& verdict) {
  for (const TensorPiece& piece : pieces) verdict.right_ranks.push_back(piece.rank);
  sort_out(verdict.wrong_ranks);
  sort_out(verdict.right_ranks);
  std::erase_if(verdict.right_ranks, [&](int rank) {
    return std::ranges::binary_search(verdict.wrong_ranks, rank) || !verdict.ranks.at(rank).fits;
  });
}

at::Tensor both(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  return a.logical_or(b);
}

double share_of(const at::Tensor& mask) { return mask.defined() ? mask.to(at::kDouble).mean().item<double>() : 0; }

void measure(const ParityRecord& got, const ParityReference& want, const std::vector<TensorPiece>& pieces, bool exact,
             TensorVerdict& verdict) {
  at::Tensor left_out;
  if (!exact) left_out = want.whole(verdict.key).undecided;
  verdict.worst_rank = pieces.front().rank;
  for (const TensorPiece& piece : pieces) {
    auto apart = want.distance(verdict.key, piece, left_out);
    if (apart && !exact && apart->eps > verdict.tolerance) {
      left_out = both(want.whole(verdict.key).undecided, want.turned(got, verdict.key));
      apart = want.distance(verdict.key, piece, left_out);
    }
    const auto [place, first] = verdict.ranks.try_emplace(piece.rank);
    RankDistance& rank = place->second;
    rank.fits = rank.fits && apart.has_value();
    if (first || (apart && apart->eps > rank.worst.eps)) {
      rank.worst = apart.value_or(TensorDistance{});
      rank.slice = piece.slice;
    }
    verdict.fits = verdict.fits && apart.has_value();
    if (!apart) continue;
    if (apart->eps > verdict.tolerance) verdict.wrong_ranks.push_back(piece.rank);
    if (apart->eps > verdict.worst.eps) {
      verdict.worst = *apart;
      verdict.worst_rank = piece.rank;
    }
  }
  verdict.left_out = share_of(left_out);
}

}  // namespace

TensorVerdict judge(const ParityRecord& got, const ParityReference& want, const TensorKey& key, bool exact) {
  const std::vector<TensorPiece>& pieces = got.tensors.at(key);
  TensorVerdict verdict{.key = key, .tolerance = exact ? 0 : want.tolerance(key)};
  measure(got, want, pieces, exact, verdict);
  find_broken(got, want, pieces, verdict);
  separate(pieces, verdict);
  return verdict;
}

TensorVerdict audit(const ParityRecord& got, const TensorKey& key) {
  const std::vector<TensorPiece>& pieces = got.tensors.at(key);
  TensorVerdict verdict{.key = key};
  find_other_copies(pieces, verdict);
  for (const TensorPiece& piece : pieces) {
    RankDistance& rank = verdict.ranks.try_emplace(piece.rank, RankDistance{.slice = piece.slice}).first->second;
    const TensorPiece& copy = first_copy(pieces, piece);
    if (same_bits(copy.value, piece.value) || copy.value.numel() != piece.value.numel()) continue;
    const at::Tensor first = copy.value.to(at::kDouble), here = piece.value.to(at::kDouble);
    const TensorDistance apart = distance_of(difference(here, first).abs(), here, first, root_mean_square(first),
                                             epsilon_of(got.type), piece.slice);
    if (apart.eps > rank.worst.eps) rank.worst = apart;
    if (apart.eps <= verdict.worst.eps) continue;
    verdict.worst = apart;
    verdict.worst_rank = piece.rank;
  }
  separate(pieces, verdict);
  return verdict;
}

ParityComparison audit(const ParityRecord& got) {
  ParityComparison result;
  for (const TensorKey& key : causal_order(got)) {
    result.pieces += got.tensors.at(key).size();
    result.verdicts.push_back(audit(got, key));
  }
  return result;
}

ParityComparison compare(const ParityRecord& got, const ParityReference& want, bool exact) {
  ParityComparison result;
  for (const TensorKey& key : want.keys()) {
    const auto found = got.tensors.find(key);
    if (found == got.tensors.end()) {
      result.not_compared.push_back(key);
      continue;
    }
    result.pieces += found->second.size();
    TensorVerdict verdict = judge(got, want, key, exact);
    if (!verdict.fits) result.not_compared.push_back(key);
    const bool compared = std::ranges::any_of(verdict.ranks, [](const auto& one) { return one.second.fits; });
    if (compared || verdict.wrong()) result.verdicts.push_back(std::move(verdict));
  }
  for (const auto& [key, pieces] : got.tensors)
    if (!want.has(key)) result.not_compared.push_back(key);
  return result;
}

}  // namespace ranklab
