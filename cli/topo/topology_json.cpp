#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/common/json_output.h"
#include "cli/topo/topology_text.h"

namespace ranklab {
namespace {

using Json = nlohmann::ordered_json;

std::set<int> node_set(const Topology& t, const Group& group) {
  std::set<int> nodes;
  for (const int rank : group.global_ranks) nodes.insert(t.node(rank));
  return nodes;
}

Json step_traffic_json(const Topology& t) {
  const RunPlan& s = *t.step;
  Json out = {{"preset", t.preset},
              {"seq_length", s.config.model.seq_length},
              {"micro_batch_size", s.micro_batch_size},
              {"microbatches", s.num_microbatches},
              {"params_dtype", name(s.config.element_dtype())},
              {"sequence_parallel", s.sequence_parallel && t.mesh.dims().tp > 1},
              {"num_experts", s.config.model.moe.num_experts},
              {"axes", Json::array()}};
  for (const AxisTraffic& row : t.traffic) {
    out["axes"].push_back({{"axis", name(row.axis)},
                           {"size", row.group_size},
                           {"groups", row.groups},
                           {"groups_across_nodes", row.groups_across_nodes},
                           {"calls_per_rank", row.per_rank.calls},
                           {"logical_bytes_per_rank", row.per_rank.logical_bytes},
                           {"sent_bytes_per_rank", row.per_rank.ring_bytes},
                           {"sent_bytes", row.total_bytes},
                           {"bytes_across_nodes", row.bytes_across_nodes}});
  }
  return out;
}

}  // namespace

std::string topology_json(const Topology& t) {
  Json data = {{"world_size", t.mesh.world_size()},
               {"nodes", t.nodes()},
               {"gpus_per_node", t.gpus_per_node},
               {"order", t.mesh.dims().order}};
  for (const Axis axis : kTopologyAxes) data["sizes"][std::string(name(axis))] = t.mesh.size(axis);
  for (int rank = 0; rank < t.mesh.world_size(); ++rank) {
    Json row = {{"rank", rank}, {"node", t.node(rank)}};
    for (const Axis axis : kTopologyAxes) row[std::string(name(axis))] = t.mesh.coordinate(axis, rank);
    data["ranks"].push_back(std::move(row));
  }
  for (const Axis axis : kTopologyAxes) {
    Json& list = data["groups"][std::string(name(axis))] = Json::array();
    for (const Group& group : t.mesh.groups(axis)) {
      list.push_back({{"ranks", group.global_ranks}, {"nodes", node_set(t, group)}});
    }
  }
  if (t.step) data["traffic"] = step_traffic_json(t);
  return json_result(data);
}

}  // namespace ranklab
