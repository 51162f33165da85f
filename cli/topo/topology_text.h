// A topology as text and as JSON.
#pragma once
#include <string>

#include "cli/common/style.h"
#include "cli/topo/topology.h"

namespace ranklab {

// A drawing of the nodes with boxes around their tensor-parallel groups, with coordinates, groups and traffic. Large
// worlds are shortened unless `all`.
std::string topology_text(const Topology& topology, const Style& style, bool all);
// Everything, whatever the size: {"world_size", "ranks", "groups", "traffic", ...}
std::string topology_json(const Topology& topology);

// Only the traffic table: one row per axis.
std::string traffic_table(const std::vector<AxisTraffic>& traffic, const Style& style,
                          const std::string& indent = "  ");

}  // namespace ranklab
