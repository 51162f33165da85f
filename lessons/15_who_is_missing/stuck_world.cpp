#include "lessons/15_who_is_missing/stuck_world.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/device_mesh.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {
namespace {

constexpr int kSteps = 2;
const ParallelDims kDims{.world = 8, .tp = 2, .pp = 2};

// A step: two calls for tensor parallelism, then gradients over dp, then the norm over pp.
constexpr Axis kCalls[] = {Axis::kTp, Axis::kTp, Axis::kDp, Axis::kPp};

}  // namespace

std::vector<GroupOfRanks> StuckWorld::groups() const {
  std::vector<GroupOfRanks> all;
  for (size_t i = 0; i < members.size(); ++i) all.push_back({names[i].c_str(), members[i]});
  return all;
}

std::vector<StuckRank> StuckWorld::ranks() const {
  std::vector<StuckRank> all;
  for (size_t i = 0; i < made.size(); ++i) all.push_back({made[i], waits_in[i]});
  return all;
}

int StuckWorld::waits_for(int rank) const {
  const int group = waits_in[static_cast<size_t>(rank)];
  if (group < 0) return -1;
  const int call = made[static_cast<size_t>(rank)][static_cast<size_t>(group)];
  for (const int peer : members[static_cast<size_t>(group)])
    if (made[static_cast<size_t>(peer)][static_cast<size_t>(group)] < call) return peer;
  return -1;
}

int StuckWorld::hops_to_culprit(int rank) const {
  int hops = 0;
  for (; rank != culprit && rank >= 0 && hops < 8; rank = waits_for(rank)) ++hops;
  return hops;
}

StuckWorld stuck_world(int culprit, int call) {
  const DeviceMesh mesh(kDims);
  StuckWorld world{.members = {}, .names = {}, .made = {}, .waits_in = {}, .culprit = culprit};
  std::map<std::pair<Axis, std::vector<int>>, size_t> known;
  std::vector<std::vector<size_t>> calls(8);  // per rank: groups in the order in which the program calls them
  for (int rank = 0; rank < 8; ++rank)
    for (int step = 0; step < kSteps; ++step)
      for (const Axis axis : kCalls) {
        const std::vector<int> members = mesh.group(axis, rank).global_ranks;
        const auto [found, is_new] = known.try_emplace({axis, members}, world.members.size());
        if (is_new) {
          world.members.push_back(members);
          world.names.push_back(std::string(name(axis)) + " of " + join(std::span<const int>(members), " "));
        }
        calls[static_cast<size_t>(rank)].push_back(found->second);
      }
  calls[static_cast<size_t>(culprit)].resize(static_cast<size_t>(call));
  world.made.assign(8, std::vector<int>(world.members.size()));
  world.waits_in.assign(8, -1);
  std::vector<size_t> next(8);
  // A rank makes its next call when all members of its last call have come.
  for (bool moves = true; moves;) {
    moves = false;
    for (int rank = 0; rank < 8; ++rank) {
      const auto r = static_cast<size_t>(rank);
      if (world.waits_for(rank) >= 0) continue;
      world.waits_in[r] = -1;
      if (next[r] == calls[r].size()) continue;
      const size_t group = calls[r][next[r]++];
      ++world.made[r][group];
      world.waits_in[r] = static_cast<int>(group);
      moves = true;
    }
  }
  return world;
}

std::string reported(int culprit, int call) {
  try {
    run_ranks({.dims = kDims}, [&](RankContext& ctx) {
      int made = 0;
      std::vector<double> sum(1);
      for (int step = 0; step < kSteps; ++step)
        for (const Axis axis : kCalls) {
          if (ctx.global_rank() == culprit && made++ == call) return;
          make_comm(ctx.comm(axis))->all_reduce(sum);
        }
    });
  } catch (const Error& error) {
    const std::string guilty = "rank " + std::to_string(culprit);
    const bool names = std::string(error.what()).find(guilty) != std::string::npos;
    return error.text().what + (names ? ", with the name of " + guilty : "");
  }
  return "nothing";
}

}  // namespace ranklab::lesson
