#include "core/comm/device_mesh.h"

#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace ranklab {
namespace {

using Sizes = std::map<std::string_view, int>;

// Mixed-radix digits of `rank`, the first axis of `order` varying fastest.
Sizes digits(const std::string& order, const Sizes& sizes, int rank) {
  Sizes out;
  const std::string_view text = order;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('-', begin), text.size());
    const std::string_view axis = text.substr(begin, end - begin);
    const int size = sizes.at(axis);
    out[axis] = rank % size;
    rank /= size;
    begin = end + 1;
  }
  return out;
}

}  // namespace

DeviceMesh::DeviceMesh(const ParallelDims& dims) : dims_(dims.resolved()) {
  const Sizes dense = {{"tp", dims_.tp}, {"cp", dims_.cp}, {"ep", 1}, {"dp", dims_.dp}, {"pp", dims_.pp}};
  // The expert layers' tp and dp are etp and edp; cp is folded into them (Megatron-Core's expert rank generator).
  const Sizes expert = {{"tp", dims_.etp}, {"cp", 1}, {"ep", dims_.ep}, {"dp", dims_.edp}, {"pp", dims_.pp}};
  std::map<std::pair<int, int>, int> replicas;  // counted by tp and pp
  for (int rank = 0; rank < dims_.world; ++rank) {
    const Sizes d = digits(dims_.order, dense, rank);
    const Sizes e = digits(dims_.order, expert, rank);
    RANKLAB_CHECK(d.at("pp") == e.at("pp"), ErrorKind::kInvalidArgument, .where = "device mesh",
                  .what = "the dense and the expert layout put a rank in different pipeline stages",
                  .got = "order \"" + dims_.order + "\", rank " + std::to_string(rank) + ": stage " +
                         std::to_string(d.at("pp")) + " and stage " + std::to_string(e.at("pp")),
                  .want = "an order that ends (or begins) with pp, such as \"tp-cp-ep-dp-pp\"",
                  .fix = "move pp to the end of the order");
    const int replica = replicas[{d.at("tp"), d.at("pp")}]++;
    coordinates_.push_back(
        {d.at("tp"), d.at("cp"), d.at("dp"), d.at("pp"), e.at("ep"), e.at("tp"), e.at("dp"), replica});
  }
}

int DeviceMesh::size(Axis axis) const { return dims_.size(axis); }

const DeviceMesh::Coordinates& DeviceMesh::at(int global_rank) const {
  RANKLAB_CHECK(global_rank >= 0 && global_rank < dims_.world, ErrorKind::kInvalidArgument, .where = "device mesh",
                .what = "no such rank", .got = std::to_string(global_rank),
                .want = "0 to " + std::to_string(dims_.world - 1), .fix = "pass a global rank of this world");
  return coordinates_[static_cast<size_t>(global_rank)];
}

// Members share every coordinate but the axis's own. Ascending global rank is ascending coordinate, because a faster
// axis has the smaller stride; so the product axis dp-cp comes out with its faster factor first, as in Megatron.
Group DeviceMesh::group(Axis axis, int global_rank) const {
  using C = Coordinates;
  const C& mine = at(global_rank);
  const int dp_shards = size(Axis::kDpShard), edp_shards = size(Axis::kEdpShard);
  const auto same = [&](const C& c, Axis whole) {
    if (whole == Axis::kDpCp) return c.tp == mine.tp && c.pp == mine.pp;
    return c.etp == mine.etp && c.ep == mine.ep && c.pp == mine.pp;
  };
  const auto together = [&](const C& c) {
    switch (axis) {
      case Axis::kWorld:
        return true;
      case Axis::kTp:
        return c.cp == mine.cp && c.dp == mine.dp && c.pp == mine.pp;
      case Axis::kCp:
        return c.tp == mine.tp && c.dp == mine.dp && c.pp == mine.pp;
      case Axis::kDp:
        return c.tp == mine.tp && c.cp == mine.cp && c.pp == mine.pp;
      case Axis::kPp:
        return c.tp == mine.tp && c.cp == mine.cp && c.dp == mine.dp;
      case Axis::kDpCp:
        return same(c, Axis::kDpCp);
      case Axis::kEp:
        return c.etp == mine.etp && c.edp == mine.edp && c.pp == mine.pp;
      case Axis::kEtp:
        return c.ep == mine.ep && c.edp == mine.edp && c.pp == mine.pp;
      case Axis::kEdp:
        return same(c, Axis::kEdp);
      case Axis::kDpShard:
        return same(c, Axis::kDpCp) && c.replica / dp_shards == mine.replica / dp_shards;
      case Axis::kDpReplica:
        return same(c, Axis::kDpCp) && c.replica % dp_shards == mine.replica % dp_shards;
      case Axis::kEdpShard:
        return same(c, Axis::kEdp) && c.edp / edp_shards == mine.edp / edp_shards;
      case Axis::kEdpReplica:
        return same(c, Axis::kEdp) && c.edp % edp_shards == mine.edp % edp_shards;
      case Axis::kKv:
        return c.cp == mine.cp && c.dp == mine.dp && c.pp == mine.pp &&
               c.tp / dims_.kv_copies == mine.tp / dims_.kv_copies;
      case Axis::kCpHeads:
        return c.tp == mine.tp && c.dp == mine.dp && c.pp == mine.pp &&
               c.cp / dims_.cp_heads == mine.cp / dims_.cp_heads;
      case Axis::kCpRing:
        return c.tp == mine.tp && c.dp == mine.dp && c.pp == mine.pp &&
               (dims_.cp_heads > 1 ? c.cp % dims_.cp_heads == mine.cp % dims_.cp_heads : c.cp == mine.cp);
      case Axis::kCount:
        break;
    }
    throw Error(ErrorKind::kInternal,
                {.where = "device mesh", .what = "not an axis", .got = std::to_string(int(axis))});
  };
  Group out;
  out.axis = axis;
  for (int rank = 0; rank < dims_.world; ++rank) {
    if (!together(coordinates_[static_cast<size_t>(rank)])) continue;
    if (rank == global_rank) out.group_rank = out.size();
    out.global_ranks.push_back(rank);
  }
  return out;
}

int DeviceMesh::coordinate(Axis axis, int global_rank) const {
  const Coordinates& c = at(global_rank);
  switch (axis) {
    case Axis::kTp:
      return c.tp;
    case Axis::kCp:
      return c.cp;
    case Axis::kDp:
      return c.dp;
    case Axis::kPp:
      return c.pp;
    case Axis::kEp:
      return c.ep;
    case Axis::kEtp:
      return c.etp;
    case Axis::kEdp:
      return c.edp;
    default:
      return group(axis, global_rank).group_rank;  // a product of axes
  }
}

std::vector<Group> DeviceMesh::groups(Axis axis) const {
  std::vector<Group> out;
  std::vector<bool> listed(static_cast<size_t>(dims_.world), false);
  for (int rank = 0; rank < dims_.world; ++rank) {
    if (listed[static_cast<size_t>(rank)]) continue;
    Group& found = out.emplace_back(group(axis, rank));
    for (const int member : found.global_ranks) listed[static_cast<size_t>(member)] = true;
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
