#include "core/comm/device_mesh.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"

namespace ranklab {
namespace {

// The distance between neighbours on an axis, and their number.
struct Stride {
  int step = 1, size = 1;
  int of(int rank) const { return rank / step % size; }
};

// Mixed radix, the first axis of `order` varying fastest.
std::map<std::string_view, Stride> strides(std::string_view order, const std::map<std::string_view, int>& sizes) {
  std::map<std::string_view, Stride> out;
  int step = 1;
  for (size_t begin = 0; begin < order.size();) {
    const size_t end = std::min(order.find('-', begin), order.size());
    const std::string_view axis = order.substr(begin, end - begin);
    out[axis] = {step, sizes.at(axis)};
    step *= sizes.at(axis);
    begin = end + 1;
  }
  return out;
}

}  // namespace

DeviceMesh::DeviceMesh(const ParallelDims& dims) : dims_(dims.resolved()) {
  const auto dense =
      strides(dims_.order, {{"tp", dims_.tp}, {"cp", dims_.cp}, {"ep", 1}, {"dp", dims_.dp}, {"pp", dims_.pp}});
  // For expert layers, etp and edp take the place of tp and dp; cp is folded into them (Megatron-Core's expert rank
  // generator). They number the ranks of a pipeline stage, which are the same ranks as for dense layers, wherever pp is
  // in the order.
  const auto expert =
      strides(dims_.order, {{"tp", dims_.etp}, {"cp", 1}, {"ep", dims_.ep}, {"dp", dims_.edp}, {"pp", 1}});
  const Stride tp = dense.at("tp"), cp = dense.at("cp"), dp = dense.at("dp"), pp = dense.at("pp");
  const Stride etp = expert.at("tp"), ep = expert.at("ep"), edp = expert.at("dp");
  std::vector<int> in_stage(static_cast<size_t>(dims_.pp), 0);
  std::vector<int> replicas(static_cast<size_t>(dims_.tp) * static_cast<size_t>(dims_.pp), 0);
  std::vector<Coordinates> all;
  all.reserve(static_cast<size_t>(dims_.world));
  for (int rank = 0; rank < dims_.world; ++rank) {
    const int number = in_stage[static_cast<size_t>(pp.of(rank))]++;
    const int replica = replicas[static_cast<size_t>(tp.of(rank) * dims_.pp + pp.of(rank))]++;
    all.push_back({.tp = tp.of(rank),
                   .cp = cp.of(rank),
                   .dp = dp.of(rank),
                   .pp = pp.of(rank),
                   .ep = ep.of(number),
                   .etp = etp.of(number),
                   .edp = edp.of(number),
                   .replica = replica});
  }
  coordinates_ = std::make_shared<const std::vector<Coordinates>>(std::move(all));
}

int DeviceMesh::size(Axis axis) const { return dims_.size(axis); }

const DeviceMesh::Coordinates& DeviceMesh::at(int global_rank) const {
  RANKLAB_CHECK(global_rank >= 0 && global_rank < dims_.world, ErrorKind::kInvalidArgument, .where = "device mesh",
                .what = "no such rank", .got = std::to_string(global_rank),
                .want = "0 to " + std::to_string(dims_.world - 1), .fix = "pass a global rank of this world");
  return (*coordinates_)[static_cast<size_t>(global_rank)];
}

// Members share every coordinate but the axis's own. Ascending global rank is ascending coordinate, because a faster
// axis has the smaller stride; so the product axis dp-cp comes out with its faster factor first, as in Megatron.
DeviceMesh::Place DeviceMesh::place(Axis axis, const Coordinates& c, int global_rank) const {
  const auto joined = [](std::initializer_list<std::pair<int, int>> coordinates_and_sizes) {
    int64_t number = 0;
    for (const auto& [coordinate, size] : coordinates_and_sizes) number = number * size + coordinate;
    return number;
  };
  const std::pair tp{c.tp, dims_.tp}, cp{c.cp, dims_.cp}, dp{c.dp, dims_.dp}, pp{c.pp, dims_.pp};
  const std::pair etp{c.etp, dims_.etp}, ep{c.ep, dims_.ep}, edp{c.edp, dims_.edp};
  const int shards = size(Axis::kDpShard), edp_shards = size(Axis::kEdpShard), heads = dims_.cp_heads;
  switch (axis) {
    case Axis::kWorld:
      return {0, global_rank};
    case Axis::kTp:
      return {joined({cp, dp, pp}), c.tp};
    case Axis::kCp:
      return {joined({tp, dp, pp}), c.cp};
    case Axis::kDp:
      return {joined({tp, cp, pp}), c.dp};
    case Axis::kPp:
      return {joined({tp, cp, dp}), c.pp};
    case Axis::kDpCp:
      return {joined({tp, pp}), c.replica};
    case Axis::kEp:
      return {joined({etp, edp, pp}), c.ep};
    case Axis::kEtp:
      return {joined({ep, edp, pp}), c.etp};
    case Axis::kEdp:
      return {joined({etp, ep, pp}), c.edp};
    case Axis::kDpShard:
      return {joined({{c.replica / shards, dims_.world}, tp, pp}), c.replica % shards};
    case Axis::kDpReplica:
      return {joined({{c.replica % shards, shards}, tp, pp}), c.replica / shards};
    case Axis::kEdpShard:
      return {joined({{c.edp / edp_shards, dims_.edp}, etp, ep, pp}), c.edp % edp_shards};
    case Axis::kEdpReplica:
      return {joined({{c.edp % edp_shards, edp_shards}, etp, ep, pp}), c.edp / edp_shards};
    case Axis::kKv:
      return {joined({{c.tp / dims_.kv_copies, dims_.tp}, cp, dp, pp}), c.tp % dims_.kv_copies};
    case Axis::kCpHeads:
      return {joined({{c.cp / heads, dims_.cp}, tp, dp, pp}), c.cp % heads};
    case Axis::kCpRing:
      // no heads are exchanged, so there is no ring of such groups
      if (heads == 1) return {joined({cp, tp, dp, pp}), 0};
      return {joined({{c.cp % heads, heads}, tp, dp, pp}), c.cp / heads};
    case Axis::kCount:
      break;
  }
  throw Error(ErrorKind::kInternal, {.where = "device mesh", .what = "not an axis", .got = std::to_string(int(axis))});
}

Group DeviceMesh::group(Axis axis, int global_rank) const {
  const int64_t own = place(axis, at(global_rank), global_rank).group;
  Group out{.axis = axis, .global_ranks = {}, .group_rank = coordinate(axis, global_rank)};
  for (int rank = 0; rank < dims_.world; ++rank)
    if (place(axis, at(rank), rank).group == own) out.global_ranks.push_back(rank);
  return out;
}

int DeviceMesh::coordinate(Axis axis, int global_rank) const {
  return place(axis, at(global_rank), global_rank).member;
}

std::vector<Group> DeviceMesh::groups(Axis axis) const {
  std::vector<Group> out;
  std::unordered_map<int64_t, size_t> index;
  for (int rank = 0; rank < dims_.world; ++rank) {
    const size_t number = index.try_emplace(place(axis, at(rank), rank).group, out.size()).first->second;
    if (number == out.size()) out.push_back({.axis = axis, .global_ranks = {}});
    out[number].global_ranks.push_back(rank);
  }
  return out;
}

std::string DeviceMesh::label(int global_rank) const {
  const Coordinates& c = at(global_rank);
  const std::array<std::pair<Axis, int>, 6> parts = {{{Axis::kDp, c.dp},
                                                      {Axis::kTp, c.tp},
                                                      {Axis::kCp, c.cp},
                                                      {Axis::kPp, c.pp},
                                                      {Axis::kEp, c.ep},
                                                      {Axis::kEtp, c.etp}}};
  std::string out;
  for (const auto& [axis, value] : parts) {
    if (size(axis) <= 1) continue;
    if (!out.empty()) out += ' ';
    out += std::string(name(axis)) + std::to_string(value);
  }
  return out.empty() ? "rank" + std::to_string(global_rank) : out;
}

}  // namespace ranklab
