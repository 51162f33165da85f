#include "core/parity/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/config/state_types.h"
#include "core/parity/epsilon.h"
#include "core/parity/parity_record.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"

namespace ranklab {

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

// The copy of the same elements on the first rank that has one.
const TensorPiece& first_copy(const std::vector<TensorPiece>& pieces, const TensorPiece& piece) {
  return *std::ranges::find_if(pieces, [&](const TensorPiece& other) { return other.slice == piece.slice; });
}

// Ranks whose copies of the same elements differ from the first rank's are wrong.
void find_other_copies(const std::vector<TensorPiece>& pieces, TensorVerdict& verdict) {
  for (const TensorPiece& piece : pieces) {
    if (same_bits(first_copy(pieces, piece).value, piece.value)) continue;
    verdict.wrong_ranks.push_back(piece.rank);
    verdict.broken = "copies of it that should have the same bits differ";
  }
}

// Padding belongs to no element: it starts as zeros and nothing reads it, so its gradients are zeros too.
void find_used_padding(const std::vector<TensorPiece>& pieces, TensorVerdict& verdict) {
  for (const TensorPiece& piece : pieces) {
    if (piece.slice.elements() != piece.value.numel()) continue;
    if (!piece.value.masked_select(piece.slice.index().lt(0)).ne(0).any().item<bool>()) continue;
    verdict.wrong_ranks.push_back(piece.rank);
    verdict.broken = "its padding, which belongs to nothing, is not zero";
  }
}

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

// The norm by which `got` clips, as it reports it, divided by the norm of its recorded gradients, relative to the same
// ratio in `want`: 1 if it is right, in any precision. Nothing if a record does not report its norm, if the two records
// have different gradients (files may have only some), or if a gradient is incomplete or not finite.
std::optional<double> reported_norm_ratio(const ParityRecord& got, const ParityReference& want, int64_t step) {
  const auto put = [&](const TensorKey& key) { return put_together(got.tensors.at(key)); };
  const auto kept = [&](const TensorKey& key) -> const WholeTensor& { return want.whole(key); };
  const auto here = reported_norm(got, step, put), there = reported_norm(want.record(), step, kept);
  if (!here || !there || here->gradients != there->gradients) return {};
  const double ratio = here->over_own / there->over_own;
  return std::isfinite(ratio) ? std::optional(ratio) : std::nullopt;
}

// A norm that leaves gradients out, or counts some twice, is not the norm of the gradients, however far rounding moves
// both.
void find_other_norm(const ParityRecord& got, const ParityReference& want, const std::vector<TensorPiece>& pieces,
                     TensorVerdict& verdict) {
  constexpr double kOfSums = 1e-5;  // squares may be added in fp32, in any order
  const auto times = reported_norm_ratio(got, want, verdict.key.step);
  if (!times || std::abs(*times - 1) <= kOfSums) return;
  for (const TensorPiece& piece : pieces) verdict.wrong_ranks.push_back(piece.rank);
  verdict.broken = strprintf("it is %.6g times the norm of the gradients that it clips", *times);
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
  find_used_padding(pieces, verdict);
  if (key.phase == ParityPhase::kNorm && key.name == "grad_norm" && key.kind.empty())
    find_other_norm(got, want, pieces, verdict);
  const at::ScalarType type = pieces.front().value.scalar_type();
  if (key.phase != ParityPhase::kUpdate || type == want.type(key) || !same_state_types(got, want)) return;
  for (const TensorPiece& piece : pieces) verdict.wrong_ranks.push_back(piece.rank);
  verdict.broken = "it is kept in " + std::string(name(dtype_of(type))) + ", and in " +
                   std::string(name(dtype_of(want.type(key)))) + " in the reference";
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

// The share of elements for which any value is accepted.
double share_left_out(const at::Tensor& slack) {
  return slack.defined() ? slack.isinf().to(at::kDouble).mean().item<double>() : 0;
}

// The tolerance of each piece in epsilons; it is lower if all pieces together are too far apart.
double tolerance_of(const ParityRecord& got, const ParityReference& want, const TensorKey& key,
                    const PiecesApart& apart) {
  const double piece = want.tolerance(key), together = std::min(piece, want.tolerance_together(key));
  if (apart.largest <= piece && apart.together <= together) return piece;
  const double flips = want.by_flips(got, key);
  return (apart.together > together + flips ? together : piece) + flips;
}

void measure(const ParityRecord& got, const ParityReference& want, const std::vector<TensorPiece>& pieces, bool exact,
             TensorVerdict& verdict) {
  const at::Tensor slack = exact ? at::Tensor() : want.slack(got, verdict.key);
  verdict.left_out = share_left_out(slack);
  verdict.worst_rank = pieces.front().rank;
  const PiecesApart all = want.distances(verdict.key, pieces, slack);
  if (!exact) verdict.tolerance = tolerance_of(got, want, verdict.key, all);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const TensorPiece& piece = pieces[i];
    const std::optional<TensorDistance>& apart = all.pieces[i];
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
}

}  // namespace

TensorVerdict judge(const ParityRecord& got, const ParityReference& want, const TensorKey& key, bool exact) {
  const std::vector<TensorPiece>& pieces = got.tensors.at(key);
  TensorVerdict verdict{.key = key};
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
