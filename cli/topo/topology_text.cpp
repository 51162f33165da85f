#include "cli/topo/topology_text.h"

#include <algorithm>
#include <array>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/comm/node_members.h"

namespace ranklab {
namespace {

constexpr int kShownTopologyRanks = 16;
constexpr int kShownNodes = 4;
constexpr size_t kShownGroups = 8;
constexpr size_t kShownMembers = 12;

std::string text(Axis axis) { return std::string(name(axis)); }

std::string header(const Topology& t) {
  const ParallelDims& d = t.mesh.dims();
  std::string out = counted(d.world, "rank") + " on " + counted(t.nodes(), "node") +
                    strprintf(" of %d: pp %d x dp %d x cp %d x tp %d", t.gpus_per_node, d.pp, d.dp, d.cp, d.tp);
  if (d.ep * d.etp > 1) out += strprintf("; experts edp %d x ep %d x etp %d", d.edp, d.ep, d.etp);
  return out + "; order " + d.order + "\n";
}

// Neighbouring ranks of one tensor-parallel group on one node.
struct Box {
  std::string ranks, label;
  int color = 0;
  size_t width() const { return std::max(ranks.size(), label.size()); }
};

std::string box_label(const DeviceMesh& mesh, int rank) {
  std::string out;
  for (const Axis axis : {Axis::kPp, Axis::kDp, Axis::kCp}) {
    if (mesh.size(axis) == 1) continue;
    out += (out.empty() ? "" : " ") + text(axis) + std::to_string(mesh.coordinate(axis, rank));
  }
  return out;
}

std::vector<Box> boxes_of(const Topology& t, int node) {
  const DeviceMesh& mesh = t.mesh;
  std::vector<Box> boxes;
  const int end = std::min((node + 1) * t.gpus_per_node, mesh.world_size());
  for (int rank = node * t.gpus_per_node; rank < end; ++rank) {
    const std::string label = box_label(mesh, rank);
    if (boxes.empty() || boxes.back().label != label || rank == node * t.gpus_per_node) {
      const Axis by = mesh.size(Axis::kPp) > 1 ? Axis::kPp : Axis::kDp;
      boxes.push_back({.ranks = std::to_string(rank), .label = label, .color = mesh.coordinate(by, rank)});
    } else {
      boxes.back().ranks += " " + std::to_string(rank);
    }
  }
  return boxes;
}

std::string repeated(const char* glyph, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += glyph;
  return out;
}

std::string padded(const std::string& what, size_t width) { return what + std::string(width - what.size(), ' '); }

std::string drawing(const Topology& t, const Style& style, bool all) {
  std::string out;
  const int shown = all ? t.nodes() : std::min(t.nodes(), kShownNodes);
  const size_t indent = 2 + std::string("node ").size() + std::to_string(t.nodes() - 1).size();
  for (int node = 0; node < shown; ++node) {
    const std::vector<Box> boxes = boxes_of(t, node);
    std::array<std::string, 4> lines;
    for (const Box& box : boxes) {
      const size_t width = box.width();
      lines[0] += " " + style.group(box.color, "┌" + repeated("─", width + 2) + "┐");
      lines[1] += " " + style.group(box.color, "│ " + padded(box.ranks, width) + " │");
      lines[2] += " " + style.group(box.color, "│ " + padded(box.label, width) + " │");
      lines[3] += " " + style.group(box.color, "└" + repeated("─", width + 2) + "┘");
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i == 2 && boxes.front().label.empty()) continue;
      const std::string side = i == 1 ? padded("  node " + std::to_string(node), indent) : std::string(indent, ' ');
      out += side + lines[i] + "\n";
    }
  }
  if (shown < t.nodes()) out += strprintf("  ... and %d more nodes (--all shows them)\n", t.nodes() - shown);
  return out + style.dim("  a box: ranks of one tensor-parallel group that share a node") + "\n";
}

std::vector<Axis> axes_of(const DeviceMesh& mesh) {
  std::vector<Axis> out;
  for (const Axis axis : kTopologyAxes) {
    const bool expert = axis == Axis::kEp || axis == Axis::kEtp || axis == Axis::kEdp;
    const bool part_of_another = axis == Axis::kKv || axis == Axis::kCpHeads || axis == Axis::kCpRing;
    if (part_of_another && mesh.size(axis) == 1) continue;
    if (!expert || mesh.size(Axis::kEp) * mesh.size(Axis::kEtp) > 1) out.push_back(axis);
  }
  return out;
}

std::string coordinates(const Topology& t, const Style& style, bool all) {
  const std::vector<Axis> axes = axes_of(t.mesh);
  std::string head = "  rank  node";
  for (const Axis axis : axes) head += strprintf("  %4s", text(axis).c_str());
  std::string out = style.bold(head) + "\n";
  const int world = t.mesh.world_size();
  const int shown = all || world <= 2 * kShownTopologyRanks ? world : kShownTopologyRanks;
  for (int rank = 0; rank < shown; ++rank) {
    out += strprintf("  %4d  %4d", rank, t.node(rank));
    for (const Axis axis : axes) out += strprintf("  %4d", t.mesh.coordinate(axis, rank));
    out += "\n";
  }
  if (shown < world) out += strprintf("  ... and %d more ranks (--all shows them)\n", world - shown);
  return out;
}

std::string members(const Group& group, bool all) {
  const std::vector<int>& ranks = group.global_ranks;
  if (all || ranks.size() <= kShownMembers) return join(std::span<const int>(ranks), " ");
  const std::string first = join(std::span<const int>(ranks).first(6), " ");
  return first + " ... " + std::to_string(ranks.back());
}

std::string groups(const Topology& t, const Style& style, bool all) {
  std::string out;
  for (const Axis axis : axes_of(t.mesh)) {
    if (t.mesh.size(axis) == 1) continue;
    const std::vector<Group> list = t.mesh.groups(axis);
    size_t crossing = 0;
    for (const Group& group : list) crossing += members_of_nodes(group, t.gpus_per_node).size() > 1 ? 1 : 0;
    const std::string where =
        crossing == 0 ? style.green("none across nodes") : style.yellow(std::to_string(crossing) + " across nodes");
    out += style.bold(padded("  " + text(axis), 6)) +
           strprintf(" %zu group%s of %d, ", list.size(), list.size() == 1 ? "" : "s", t.mesh.size(axis)) + where +
           "\n";
    const size_t shown = all ? list.size() : std::min(list.size(), kShownGroups);
    for (size_t i = 0; i < shown; ++i) {
      const size_t nodes = members_of_nodes(list[i], t.gpus_per_node).size();
      out += "         " + members(list[i], all);
      if (nodes > 1) out += style.yellow("   on " + std::to_string(nodes) + " nodes");
      out += "\n";
    }
    if (shown < list.size()) out += strprintf("         ... and %zu more (--all)\n", list.size() - shown);
  }
  return out;
}

std::string step_text(const Topology& t) {
  const RunPlan& plan = *t.step;
  const ModelConfig& m = plan.config.model;
  std::string out =
      strprintf("one step of %s: %s of %ld x %s on each of %s, %s%s", t.preset.c_str(),
                counted(plan.num_microbatches, "microbatch", "es").c_str(), static_cast<long>(plan.micro_batch_size),
                counted(plan.config.model.seq_length, "token").c_str(), counted(t.mesh.dims().dp, "replica").c_str(),
                std::string(name(plan.config.element_dtype())).c_str(),
                plan.sequence_parallel && t.mesh.dims().tp > 1 ? ", sequence parallel" : "");
  if (m.moe.enabled()) {
    out += strprintf(", %ld experts top-%ld in %ld of %ld layers", static_cast<long>(m.moe.num_experts),
                     static_cast<long>(m.moe.topk), static_cast<long>(m.moe_layer_count()),
                     static_cast<long>(m.num_layers));
  }
  return out + "\n";
}

}  // namespace

std::string traffic_table(const std::vector<AxisTraffic>& traffic, const Style& style, const std::string& indent) {
  std::string out = indent +
                    style.bold(strprintf("%-6s %5s %7s %13s %13s %13s %13s", "axis", "size", "calls", "logical/rank",
                                         "sent/rank", "sent by all", "across nodes")) +
                    "\n";
  for (const AxisTraffic& row : traffic) {
    const auto bytes = [](int64_t value) { return human_bytes(static_cast<double>(value)); };
    out += indent + strprintf("%-6s %5d %7ld %13s %13s %13s ", text(row.axis).c_str(), row.group_size,
                              static_cast<long>(row.per_rank.calls), bytes(row.per_rank.logical_bytes).c_str(),
                              bytes(row.per_rank.ring_bytes).c_str(), bytes(row.total_bytes).c_str());
    const std::string away = strprintf("%13s", bytes(row.bytes_across_nodes).c_str());
    out += row.bytes_across_nodes > 0 ? style.yellow(away) : style.green(away);
    out += "\n";
  }
  return out;
}

std::string topology_text(const Topology& t, const Style& style, bool all) {
  std::string out = header(t) + "\n" + drawing(t, style, all) + "\n" + coordinates(t, style, all);
  if (t.mesh.world_size() > 1) out += "\n" + groups(t, style, all);
  if (!t.step) return out;
  out += "\n" + step_text(t);
  return out +
         (t.traffic.empty() ? "  no axis is larger than one: nothing is sent\n" : traffic_table(t.traffic, style));
}

}  // namespace ranklab
