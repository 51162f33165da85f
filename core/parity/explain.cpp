#include "core/parity/explain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

constexpr std::array<Axis, 4> kAxes = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};

double norm(const at::Tensor& values) { return std::sqrt(values.square().sum().item<double>()); }

std::string names_of(const std::vector<Axis>& axes) {
  std::vector<std::string> names;
  for (const Axis axis : axes) names.emplace_back(name(axis));
  return join(names, " and ");
}
std::vector<std::string> list_of(const std::vector<Axis>& axes) {
  std::vector<std::string> names;
  for (const Axis axis : axes) names.emplace_back(name(axis));
  return names;
}

// The wrong tensor, one rank's piece of it, and what is right.
class Case {
 public:
  Case(const ParityRecord& got, const ParityReference& want, const TensorVerdict& wrong)
      : got_(got), want_(want), wrong_(wrong), pieces_(got.tensors.at(wrong.key)) {
    const int rank = wrong.worst.eps > 0 ? wrong.worst_rank : wrong.wrong_ranks.front();
    piece_ = &*std::ranges::find(pieces_, rank, &TensorPiece::rank);
    const at::Tensor slack = wrong.tolerance > 0 ? want.slack(got, wrong.key) : at::Tensor();
    for (const TensorPiece& piece : pieces_) {
      const auto apart = want.distance(wrong.key, piece, slack);
      if (piece.rank == rank && apart && apart->eps == wrong.worst.eps) piece_ = &piece;
    }
    value_ = piece_->value.to(at::kDouble);
    right_ = want.at_slice(wrong.key, piece_->slice);
    for (const Axis axis : kAxes)
      if (mesh().size(axis) > 1) axes_.push_back(axis);
  }

  std::vector<Explanation> all() const {
    std::vector<Explanation> found;
    for (const auto tried :
         {&Case::nothing, &Case::local_sums, &Case::missing_sum, &Case::scaled, &Case::of_another_rank, &Case::stale,
          &Case::in_another_order, &Case::copies_differ, &Case::some_ranks})
      if (auto one = (this->*tried)()) found.push_back(std::move(*one));
    return found;
  }

 private:
  const ParityMesh& mesh() const { return got_.mesh; }
  std::string label(int rank) const { return strprintf("rank %d (%s)", rank, mesh().label(rank).c_str()); }

  // Equal up to rounding; the difference that is to be explained is far larger.
  bool same(const at::Tensor& a, const at::Tensor& b) const {
    const double size = norm(right_);
    const double allowed = std::max(4 * wrong_.tolerance * want_.epsilon(), 1e-12);
    return norm(a - b) <= std::min(allowed, 1e-3 + 1e-2 * wrong_.worst.eps * want_.epsilon()) * size;
  }

  std::optional<Explanation> nothing() const {
    if (value_.count_nonzero().item<int64_t>() > 0 || right_.count_nonzero().item<int64_t>() == 0) return {};
    return Explanation{"everything is zero: nothing was written here, or it was cleared later", {}};
  }

  // The ranks whose coordinates differ from those of `rank` only in these axes, with `rank` itself.
  std::vector<int> group(int rank, const std::vector<Axis>& axes) const {
    std::vector<int> members;
    for (int other = 0; other < mesh().world_size(); ++other) {
      const bool belongs = std::ranges::all_of(kAxes, [&](Axis axis) {
        return std::ranges::find(axes, axis) != axes.end() ||
               mesh().coordinate(axis, other) == mesh().coordinate(axis, rank);
      });
      if (belongs) members.push_back(other);
    }
    return members;
  }

  const TensorPiece* piece_of(int rank, const GlobalSlice& slice) const {
    const auto found = std::ranges::find_if(
        pieces_, [&](const TensorPiece& piece) { return piece.rank == rank && piece.slice == slice; });
    return found == pieces_.end() ? nullptr : &*found;
  }

  std::vector<std::vector<Axis>> axis_sets() const {
    std::vector<std::vector<Axis>> sets;
    for (unsigned chosen = 0; chosen < 1U << axes_.size(); ++chosen) {
      std::vector<Axis>& set = sets.emplace_back();
      for (size_t i = 0; i < axes_.size(); ++i)
        if ((chosen >> i & 1U) != 0) set.push_back(axes_[i]);
    }
    std::ranges::stable_sort(sets, {}, &std::vector<Axis>::size);
    return sets;
  }

  // The ranks' own sums of a gradient, before any reduction, added over a group; undefined where one is missing.
  at::Tensor sum_of_locals(const std::vector<int>& ranks) const {
    const auto found = got_.local_grads.find(wrong_.key);
    if (found == got_.local_grads.end()) return {};
    at::Tensor sum;
    for (const int rank : ranks) {
      const auto local = std::ranges::find(found->second, rank, &TensorPiece::rank);
      if (local == found->second.end() || local->slice.shape != piece_->slice.shape) continue;
      const at::Tensor index = local->slice.index(), real = index.ge(0);
      const at::Tensor whole = at::zeros({piece_->slice.global_elements()}, at::kDouble);
      whole.index_copy_(0, index.masked_select(real), local->value.to(at::kDouble).masked_select(real));
      const at::Tensor own = piece_->slice.index();
      const at::Tensor part = whole.index_select(0, own.clamp_min(0)).masked_fill(own.lt(0), 0);
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }

  // Which sums of the ranks' own gradients give the right value, and which one gives the value that is there.
  std::optional<Explanation> local_sums() const {
    std::optional<std::vector<Axis>> right, there;
    for (const std::vector<Axis>& axes : axis_sets()) {
      const at::Tensor sum = sum_of_locals(group(piece_->rank, axes));
      if (!sum.defined()) continue;
      if (!right && same(sum, right_)) right = axes;
      if (!there && same(sum, value_)) there = axes;
    }
    if (!right || !there) return {};
    std::vector<Axis> missing, extra;
    std::ranges::set_difference(*right, *there, std::back_inserter(missing));
    std::ranges::set_difference(*there, *right, std::back_inserter(extra));
    if (missing.empty() && extra.empty()) return {};
    const std::string wanted = right->empty() ? "no other rank's" : "those of " + names_of(*right);
    if (!missing.empty())
      return Explanation{"the sum over " + names_of(missing) + " is missing: the ranks' own gradients, added over " +
                             names_of(*right) + ", give the right one" +
                             (there->empty() ? ", and this is one rank's own"
                                             : ", and this is added over " + names_of(*there) + " alone"),
                         list_of(missing)};
    return Explanation{"a sum over " + names_of(extra) + " too many: the right gradient adds " + wanted,
                       list_of(extra)};
  }

  // A sum over some axes that was never computed, for tensors other than gradients of parameters. If all ranks have
  // equal numbers, these are copies and not summands.
  std::optional<Explanation> missing_sum() const {
    for (const std::vector<Axis>& axes : axis_sets()) {
      if (axes.empty()) continue;
      at::Tensor sum;
      bool whole = true, copies = true;
      for (const int rank : group(piece_->rank, axes)) {
        const TensorPiece* piece = piece_of(rank, piece_->slice);
        whole = whole && piece != nullptr;
        if (piece == nullptr) continue;
        const at::Tensor share = piece->value.to(at::kDouble);
        copies = copies && same(share, value_);
        sum = sum.defined() ? sum + share : share;
      }
      if (whole && !copies && same(sum, right_))
        return Explanation{
            "the sum over " + names_of(axes) + " is missing: each rank has its share, and added up they are right",
            list_of(axes)};
    }
    return {};
  }

  std::optional<Explanation> scaled() const {
    const double size = right_.square().sum().item<double>();
    if (size == 0 || !wrong_.broken.empty()) return {};  // any number is a multiple of any other
    const double factor = (value_ * right_).sum().item<double>() / size;
    if (std::abs(factor - 1) < 1e-6 || factor == 0 || !same(value_, factor * right_)) return {};
    if (factor < 0) return Explanation{strprintf("every element is %.6g times what it should be", factor), {}};
    const double times = factor > 1 ? factor : 1 / factor;
    std::vector<Axis> fits;
    if (std::abs(times - std::round(times)) < 1e-3 * times) {
      for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp, Axis::kEp, Axis::kEtp})
        if (mesh().size(axis) == std::round(times)) fits.push_back(axis);
    }
    std::string what = factor > 1 ? strprintf("every element is %.6g times too large", times)
                                  : strprintf("every element is %.6g times too small", times);
    if (fits.size() == 1)
      what += factor > 1 ? ": added once too often over the " + std::to_string(mesh().size(fits[0])) + " ranks of " +
                               names_of(fits) + ", or not divided by their number"
                         : ": divided by the " + std::to_string(mesh().size(fits[0])) + " ranks of " + names_of(fits) +
                               " once too often, or their sum is missing";
    return Explanation{what, list_of(fits.size() == 1 ? fits : std::vector<Axis>{})};
  }

  std::vector<Axis> differing(int a, int b) const {
    std::vector<Axis> axes;
    for (const Axis axis : axes_)
      if (mesh().coordinate(axis, a) != mesh().coordinate(axis, b)) axes.push_back(axis);
    return axes;
  }

  std::optional<Explanation> of_another_rank() const {
    for (const TensorPiece& other : pieces_) {
      if (other.slice == piece_->slice || other.value.numel() != value_.numel()) continue;
      if (!same(value_, want_.at_slice(wrong_.key, other.slice))) continue;
      return Explanation{label(piece_->rank) + " has what belongs to " + label(other.rank) + ": " + other.slice.text(),
                         list_of(differing(piece_->rank, other.rank))};
    }
    return {};
  }

  std::optional<Explanation> stale() const {
    std::vector<std::pair<TensorKey, std::string>> before;
    TensorKey key = wrong_.key;
    if (key.phase == ParityPhase::kUpdate && key.kind == "updated weight")
      before.emplace_back(TensorKey{key.step, ParityPhase::kWeights, key.name, "weight"},
                          "as it was before the update");
    if (key.step > 0) {
      --key.step;
      before.emplace_back(key, strprintf("as it was in step %lld", static_cast<long long>(key.step)));
    }
    for (const auto& [earlier, when] : before) {
      if (!want_.has(earlier) || want_.whole(earlier).shape != piece_->slice.shape) continue;
      if (same(value_, want_.at_slice(earlier, piece_->slice))) return Explanation{"it is stale: " + when, {}};
    }
    return {};
  }

  std::optional<Explanation> in_another_order() const {
    if (value_.numel() < 2) return {};
    const auto sorted = [](const at::Tensor& values) { return std::get<0>(at::sort(values)); };
    if (!same(sorted(value_), sorted(right_))) return {};
    return Explanation{"the elements are right, in another order", {}};
  }

  // Ranks that should hold the same numbers and do not.
  std::optional<Explanation> copies_differ() const {
    for (const Axis axis : axes_) {
      for (const TensorPiece& other : pieces_) {
        if (other.rank == piece_->rank || !(other.slice == piece_->slice)) continue;
        if (differing(other.rank, piece_->rank) != std::vector<Axis>{axis}) continue;
        if (wrong_.broken.empty() ? same(other.value.to(at::kDouble), value_) : same_bits(other.value, piece_->value))
          continue;
        return Explanation{"the ranks of " + names_of({axis}) +
                               " hold copies of these elements, and their copies differ: " + label(other.rank) +
                               " has different values than " + label(piece_->rank),
                           list_of({axis})};
      }
    }
    return {};
  }

  // The coordinate on one axis decides which ranks are wrong.
  std::optional<Explanation> some_ranks() const {
    if (wrong_.right_ranks.empty()) return {};
    for (const Axis axis : axes_) {
      std::set<int> wrong, right;
      for (const int rank : wrong_.wrong_ranks) wrong.insert(mesh().coordinate(axis, rank));
      for (const int rank : wrong_.right_ranks) right.insert(mesh().coordinate(axis, rank));
      std::vector<int> both;
      std::ranges::set_intersection(wrong, right, std::back_inserter(both));
      if (!both.empty()) continue;
      std::vector<std::string> places;
      for (const int place : wrong) places.push_back(std::to_string(place));
      return Explanation{"exactly the ranks at " + names_of({axis}) + " " + join(places, ", ") + " are wrong",
                         list_of({axis})};
    }
    return {};
  }

  const ParityRecord& got_;
  const ParityReference& want_;
  const TensorVerdict& wrong_;
  const std::vector<TensorPiece>& pieces_;
  const TensorPiece* piece_ = nullptr;
  at::Tensor value_, right_;
  std::vector<Axis> axes_;
};

}  // namespace

std::vector<Explanation> explain(const ParityRecord& got, const ParityReference& want, const TensorVerdict& wrong) {
  if (!wrong.fits)
    return {
        {"a rank's tensor does not have the reference's shape: say with slice/NAME which part of it a rank has", {}}};
  return Case(got, want, wrong).all();
}

std::vector<Explanation> explain_copies(const ParityMesh& mesh, const std::vector<int>& ranks,
                                        const std::function<bool(size_t, size_t)>& differ) {
  std::vector<Explanation> found;
  const auto apart_along = [&](int a, int b, Axis axis) {
    return std::ranges::all_of(
        kAxes, [&](Axis one) { return (mesh.coordinate(one, a) != mesh.coordinate(one, b)) == (one == axis); });
  };
  const auto first_pair = [&](Axis axis) -> std::optional<std::pair<int, int>> {
    for (size_t a = 0; a < ranks.size(); ++a)
      for (size_t b = 0; b < ranks.size(); ++b)
        if (ranks[a] < ranks[b] && apart_along(ranks[a], ranks[b], axis) && differ(a, b))
          return std::pair(ranks[a], ranks[b]);
    return {};
  };
  for (const Axis axis : kAxes) {
    if (mesh.size(axis) == 1) continue;
    const auto pair = first_pair(axis);
    if (!pair) continue;
    const auto [a, b] = *pair;
    found.push_back({strprintf("copies differ over %s: rank %d (%s) has different values than rank %d (%s)",
                               std::string(name(axis)).c_str(), b, mesh.label(b).c_str(), a, mesh.label(a).c_str()),
                     {std::string(name(axis))}});
  }
  return found;
}

std::vector<Explanation> explain_copies(const ParityRecord& got, const TensorKey& key) {
  const std::vector<TensorPiece>& pieces = got.tensors.at(key);
  std::vector<int> ranks;
  for (const TensorPiece& piece : pieces) ranks.push_back(piece.rank);
  return explain_copies(got.mesh, ranks, [&](size_t a, size_t b) {
    return pieces[a].slice == pieces[b].slice && !same_bits(pieces[a].value, pieces[b].value);
  });
}

std::string where_wrong(const ParityRecord& got, const ParityReference& want, const TensorVerdict& wrong) {
  const WholeTensor& whole = want.whole(wrong.key);
  const at::Tensor bad = at::zeros({whole.values.numel()}, at::kBool);
  const double allowed = std::max(wrong.tolerance * want.epsilon() * whole.rms, 1e-300);
  for (const TensorPiece& piece : got.tensors.at(wrong.key)) {
    if (piece.slice.shape != whole.shape) continue;
    const at::Tensor index = piece.slice.index(), real = index.ge(0);
    const at::Tensor apart = (piece.value.to(at::kDouble) - want.at_slice(wrong.key, piece.slice)).abs();
    bad.index_fill_(0, index.masked_select(real.logical_and(apart.le(allowed).logical_not())), true);
  }
  const int64_t count = bad.sum().item<int64_t>();
  if (count == 0) return "";
  std::vector<std::string> dims;
  const at::Tensor box = bad.view(whole.shape);
  for (int64_t dim = 0; dim < box.dim(); ++dim) {
    at::Tensor any = box;
    for (int64_t other = box.dim(); other-- > 0;)
      if (other != dim) any = any.any(other);
    const at::Tensor places = any.nonzero().flatten();
    const int64_t first = places[0].item<int64_t>(), last = places[-1].item<int64_t>();
    dims.push_back(first == 0 && last + 1 == box.size(dim)
                       ? ":"
                       : strprintf("%lld:%lld", static_cast<long long>(first), static_cast<long long>(last + 1)));
  }
  return strprintf("%lld of %lld elements, within [", static_cast<long long>(count),
                   static_cast<long long>(bad.numel())) +
         join(dims, ", ") + "]";
}

}  // namespace ranklab
