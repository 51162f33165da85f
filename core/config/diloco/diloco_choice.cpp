#include "core/config/diloco/diloco_choice.h"

#include <array>
#include <string>

#include "core/base/counted.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want,
                         const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument, {.where = "config", .what = what, .got = got, .want = want, .fix = fix});
}

std::string flag(const char* name, int64_t value) {
  return "--diloco-" + std::string(name) + " " + std::to_string(value);
}

void check_times(const DilocoConfig& c, int64_t layers) {
  if (c.fragments > layers)
    refuse("there are more fragments than layers", flag("fragments", c.fragments) + ", " + counted(layers, "layer"),
           "at most " + std::to_string(layers), "lower --diloco-fragments");
  if (c.sync_steps % c.fragments != 0)
    refuse("the fragments do not divide the steps between two outer updates of a fragment",
           flag("sync-steps", c.sync_steps) + ", " + flag("fragments", c.fragments),
           "a multiple of " + std::to_string(c.fragments), "change --diloco-sync-steps or --diloco-fragments");
  if (c.sync_delay >= c.interval())
    refuse("a fragment's synchronization would still run when the next one starts",
           flag("sync-delay", c.sync_delay) + ", a fragment every " + counted(c.interval(), "step"),
           "at most " + std::to_string(c.interval() - 1), "lower --diloco-sync-delay, or raise --diloco-sync-steps");
}

void check_replicas(const DilocoConfig& c, const DeviceMesh& mesh) {
  const int dp = mesh.size(Axis::kDp), edp = mesh.size(Axis::kEdp);
  const int replicas = c.replicas == 0 ? dp : c.replicas;
  const std::string got = flag("replicas", replicas) + ", dp " + std::to_string(dp);
  if (replicas < 2)
    refuse("DiLoCo needs at least two replicas", got, "--dp 2 or more", "raise --dp, or leave --diloco-sync-steps out");
  if (dp % replicas != 0)
    refuse("the DiLoCo replicas do not divide the data-parallel ranks", got, "a divisor of " + std::to_string(dp),
           "change --diloco-replicas or --dp");
  if (edp % replicas != 0)
    refuse("each DiLoCo replica needs all experts", got + ", edp " + std::to_string(edp),
           "a divisor of " + std::to_string(edp), "lower --diloco-replicas or --ep");
}

// Ranks that compute one replica together must not be spread over several.
void check_order(const DeviceMesh& mesh) {
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kPp, Axis::kEp, Axis::kEtp}) {
    for (const Group& group : mesh.groups(axis)) {
      for (const int rank : group.global_ranks) {
        const int first = group.global_ranks.front();
        const bool together = mesh.coordinate(Axis::kDpReplica, rank) == mesh.coordinate(Axis::kDpReplica, first) &&
                              mesh.coordinate(Axis::kEdpReplica, rank) == mesh.coordinate(Axis::kDpReplica, rank);
        if (!together)
          refuse("the order of ranks spreads a DiLoCo replica's " + std::string(name(axis)) + " group over replicas",
                 "--order " + mesh.dims().order + ": ranks " + std::to_string(first) + " and " + std::to_string(rank),
                 "dp after cp and ep, as in tp-cp-ep-dp-pp", "change --order");
      }
    }
  }
}

}  // namespace

void settle_diloco(TrainConfig& config) {
  const DilocoConfig& c = config.diloco;
  if (!c.enabled()) return;
  check_times(c, config.model.num_layers);
  int& groups = config.parallel.replicas;
  ParallelDims in_one_group = config.parallel;
  in_one_group.replicas = 1;
  const DeviceMesh mesh(in_one_group);
  check_replicas(c, mesh);
  const int replicas = c.replicas == 0 ? mesh.size(Axis::kDp) : c.replicas;
  if (groups != 1 && groups != replicas)
    refuse("a DiLoCo replica cannot consist of several sharding groups",
           flag("replicas", replicas) + ", --num-distributed-optimizer-instances " + std::to_string(groups),
           "each replica is one group", "leave --num-distributed-optimizer-instances out");
  groups = replicas;
  check_order(DeviceMesh(config.parallel));
}

}  // namespace ranklab
