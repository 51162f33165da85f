#include "core/comm/parallel_dims.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/size_error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr const char* kWhere = "parallel dims";

std::string divisors(int value) {
  std::vector<int> out;
  for (int d = 1; d <= value; ++d)
    if (value % d == 0) out.push_back(d);
  return join(std::span<const int>(out), ", ");
}

void check_order(const std::string& order) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= order.size();) {
    const size_t end = std::min(order.find('-', begin), order.size());
    parts.push_back(order.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<std::string> sorted = parts;
  std::sort(sorted.begin(), sorted.end());
  const std::vector<std::string> want = {"cp", "dp", "ep", "pp", "tp"};
  RANKLAB_CHECK(sorted == want, ErrorKind::kInvalidArgument, .where = kWhere,
                .what = "--order must name tp, cp, ep, dp and pp once each", .got = quote(order),
                .want = "a permutation such as \"tp-cp-ep-dp-pp\"",
                .fix = "list the fastest-varying axis first, joined with '-'");
}

void check_dense(const ParallelDims& dims) {
  const int64_t model = int64_t{dims.tp} * dims.cp * dims.pp;
  const std::string product =
      strprintf("--tp %d x --cp %d x --pp %d = %ld", dims.tp, dims.cp, dims.pp, static_cast<long>(model));
  if (dims.world % model != 0)
    throw SizeError({.where = kWhere,
                     .what = "--world-size is not a multiple of --tp x --cp x --pp",
                     .got = "--world-size " + std::to_string(dims.world) + ", " + product,
                     .want = "a world of " + nearest_multiples(dims.world, model) +
                             " ranks, or a product that divides " + std::to_string(dims.world) + " (" +
                             divisors(dims.world) + ")",
                     .fix = "change the number of ranks, or the split"});
  if (dims.dp != 0 && dims.dp * model != dims.world)
    throw SizeError(
        {.where = kWhere,
         .what = "--dp x --tp x --cp x --pp is not --world-size",
         .got = "--dp " + std::to_string(dims.dp) + ", " + product + ", --world-size " + std::to_string(dims.world),
         .want = "dp " + std::to_string(dims.world / model) + ", or a world of " + std::to_string(dims.dp * model) +
                 " ranks",
         .fix = "leave dp out (it is derived), or change the number of ranks"});
}

void check_expert(const ParallelDims& dims) {
  const int stage = dims.dp * dims.cp * dims.tp;
  const int expert = dims.ep * dims.etp;
  const std::string got = strprintf("--ep %d x --etp %d = %d, dp %d x --cp %d x --tp %d = %d", dims.ep, dims.etp,
                                    expert, dims.dp, dims.cp, dims.tp, stage);
  if (stage % expert != 0)
    throw SizeError({.where = kWhere,
                     .what = "--ep x --etp does not divide dp x cp x tp, the ranks of a pipeline stage",
                     .got = got,
                     .want = "a product among " + divisors(stage),
                     .fix = "change one of them"});
  RANKLAB_CHECK(dims.edp == 0 || dims.edp * expert == stage, ErrorKind::kInvalidArgument, .where = kWhere,
                .what = "edp x ep x etp is not dp x cp x tp", .got = "edp " + std::to_string(dims.edp) + ", " + got,
                .want = "edp " + std::to_string(stage / expert), .fix = "leave edp out (it is derived)");
}

void check_replicas(const ParallelDims& dims) {
  const int ranks = dims.dp * dims.cp;
  const std::string got = strprintf("--num-distributed-optimizer-instances %d, dp%s %d, edp %d", dims.replicas,
                                    dims.cp > 1 ? " x cp" : "", ranks, dims.edp);
  RANKLAB_CHECK(dims.replicas >= 1 && ranks % dims.replicas == 0, ErrorKind::kInvalidArgument, .where = kWhere,
                .what = "the groups that shard optimizer states do not divide the data-parallel ranks", .got = got,
                .want = "one of " + divisors(ranks), .fix = "change it, or the number of ranks");
  RANKLAB_CHECK(dims.edp % dims.replicas == 0, ErrorKind::kInvalidArgument, .where = kWhere,
                .what = "the groups that shard optimizer states do not divide the ranks with the same experts",
                .got = got, .want = "one of " + divisors(dims.edp), .fix = "lower it, or --ep");
}

}  // namespace

ParallelDims ParallelDims::resolved() const {
  // number of ranks; more than any cluster has, yet few enough that a mesh is quickly built
  constexpr int kLargest = 1 << 17;
  const std::array<std::pair<const char*, int>, 6> sizes = {
      {{"--world-size", world}, {"--tp", tp}, {"--cp", cp}, {"--pp", pp}, {"--ep", ep}, {"--etp", etp}}};
  for (const auto& [flag, value] : sizes)
    RANKLAB_CHECK(value >= 1 && value <= kLargest, ErrorKind::kInvalidArgument, .where = kWhere,
                  .what = std::string(flag) + " is out of range", .got = std::to_string(value),
                  .want = "1 to " + std::to_string(kLargest),
                  .fix = value < 1 ? "use 1 for no split" : "use a smaller size");
  RANKLAB_CHECK(dp >= 0 && edp >= 0, ErrorKind::kInvalidArgument, .where = kWhere, .what = "--dp is out of range",
                .got = strprintf("--dp %d, edp %d", dp, edp), .want = "0 (derived) or more", .fix = "leave it out");
  check_order(order);
  check_dense(*this);
  ParallelDims out = *this;
  out.dp = world / (tp * cp * pp);
  check_expert(out);
  out.edp = out.dp * cp * tp / (ep * etp);
  check_replicas(out);
  RANKLAB_CHECK(cp_heads >= 1 && cp % cp_heads == 0, ErrorKind::kInvalidArgument, .where = kWhere,
                .what = "the context-parallel ranks that exchange heads do not divide --cp",
                .got = std::to_string(cp_heads) + ", --cp " + std::to_string(cp), .want = "one of " + divisors(cp),
                .fix = "change --hierarchical-context-parallel-sizes");
  RANKLAB_CHECK(kv_copies >= 1 && tp % kv_copies == 0, ErrorKind::kInvalidArgument, .where = kWhere,
                .what = "the ranks that share a key/value head do not divide --tp", .got = std::to_string(kv_copies),
                .want = "a divisor of tp " + std::to_string(tp), .fix = "change --tp or --num-query-groups");
  return out;
}

int product_of_axes(const ParallelDims& dims) {
  int64_t ranks = 1;
  for (const int size : {dims.tp, dims.cp, dims.pp, dims.dp})
    ranks = std::min<int64_t>(ranks * std::max(size, 1), std::numeric_limits<int>::max());
  return static_cast<int>(ranks);
}

int ParallelDims::size(Axis axis) const {
  switch (axis) {
    case Axis::kWorld:
      return world;
    case Axis::kTp:
      return tp;
    case Axis::kCp:
      return cp;
    case Axis::kDp:
      return dp;
    case Axis::kPp:
      return pp;
    case Axis::kEp:
      return ep;
    case Axis::kEtp:
      return etp;
    case Axis::kEdp:
      return edp;
    case Axis::kDpCp:
      return dp * cp;
    case Axis::kDpShard:
      return dp * cp / replicas;
    case Axis::kEdpShard:
      return edp / replicas;
    case Axis::kDpReplica:
    case Axis::kEdpReplica:
      return replicas;
    case Axis::kCpHeads:
      return cp_heads;
    case Axis::kCpRing:
      return cp_heads > 1 ? cp / cp_heads : 1;
    case Axis::kKv:
      return kv_copies;
    case Axis::kCount:
      break;
  }
  throw Error(ErrorKind::kInternal, {.where = kWhere, .what = "not an axis", .got = std::to_string(int(axis))});
}

}  // namespace ranklab
