// The data of `ranklab topo`, without its presentation: the requested mesh, and one training step on it. Thread rule:
// pure.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/report/axis_traffic.h"

namespace ranklab {

struct TopologyOptions {
  ParallelDims dims{.world = 0};  // world 0: dp x cp x tp x pp
  int gpus_per_node = 8;
  // The model whose step is measured; "none": the mesh alone.
  std::string preset = "llama_8b";
  int64_t seq_length = 0;  // 0: the preset's
  int64_t micro_batch_size = 1;
  int64_t global_batch_size = 0;  // 0: one microbatch per pipeline stage on every replica
  std::string params_dtype = "fp32";
  std::optional<bool> sequence_parallel;  // unset: on when tp > 1
  int64_t num_experts = 0;                // 0: the preset's; without any, one per ep rank when ep > 1
  int64_t router_topk = 0;                // 0: the preset's
  int64_t bucket_bytes = 0;               // 0: the default of train
};

// In display order.
inline constexpr std::array kTopologyAxes = {Axis::kTp,  Axis::kCp,  Axis::kDp, Axis::kPp,      Axis::kEp,
                                             Axis::kEtp, Axis::kEdp, Axis::kKv, Axis::kCpHeads, Axis::kCpRing};

// Advice for a model that does not fit its layout, in a command without options for the model's own settings.
inline constexpr const char* kMeshAlone = "change the layout or the model, or --preset none for the mesh alone";

struct Topology {
  DeviceMesh mesh;
  int gpus_per_node = 8;
  std::string preset;
  std::optional<RunPlan> step;  // none without a model
  std::vector<AxisTraffic> traffic;

  int node(int rank) const { return rank / gpus_per_node; }
  int nodes() const { return (mesh.world_size() - 1) / gpus_per_node + 1; }
};

// Throws kInvalidArgument naming both numbers and the nearest legal values.
Topology make_topology(const TopologyOptions& options);

}  // namespace ranklab
