#include "cli/topo/topology.h"
#include "cli/training_module.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/parallel_dims.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

constexpr const char* kTopologyWhere = "ranklab topo";
constexpr int kMaxWorld = 16384;
constexpr int64_t kMostSequences = int64_t{1} << 30;  // so that their product with the world size fits 64 bits
constexpr int64_t kMostTokens = int64_t{1} << 34;     // per step, so that the bytes of all ranks' messages fit 64 bits

// Without a given world size it is dp x cp x tp x pp, where dp is 1 unless it is given.
ParallelDims with_world(ParallelDims dims) {
  if (dims.world == 0) dims.world = product_of_axes(dims);
  RANKLAB_CHECK(dims.world >= 1 && dims.world <= kMaxWorld, ErrorKind::kInvalidArgument, .where = kTopologyWhere,
                .what = "topo does not draw a world of this size",
                .got = dims.world > kMaxWorld ? "more than " + std::to_string(kMaxWorld) : std::to_string(dims.world),
                .want = "1 to " + std::to_string(kMaxWorld) + " ranks", .fix = "give smaller --world-size or axes");
  return dims;
}

void check_multiple(const char* what, int64_t value, const char* by, int64_t divisor, const char* fix) {
  RANKLAB_CHECK(value > 0 && value % divisor == 0, ErrorKind::kInvalidArgument, .where = kTopologyWhere,
                .what = strprintf("%s must be a positive multiple of %s", what, by),
                .got = strprintf("%s %ld, %s %ld", what, static_cast<long>(value), by, static_cast<long>(divisor)),
                .want = nearest_multiples(value, divisor), .fix = fix);
}

void check_positive(const char* flag, int64_t value) {
  RANKLAB_CHECK(value >= 1, ErrorKind::kInvalidArgument, .where = kTopologyWhere,
                .what = std::string(flag) + " must be positive", .got = std::to_string(value), .want = "1 or more",
                .fix = "leave it out for its default");
}

// In a model without experts, replaces each MLP by experts: one per ep rank unless the flags request more.
void set_experts(const TopologyOptions& options, const ParallelDims& dims, ModelConfig& model) {
  MoeConfig& moe = model.moe;
  if (options.num_experts != 0) {
    moe.num_experts = options.num_experts;
  } else if (!moe.enabled() && dims.ep * dims.etp > 1) {
    moe = {.num_experts = dims.ep, .topk = std::min<int64_t>(2, dims.ep)};
  }
  if (!moe.enabled()) return;
  if (options.router_topk != 0) moe.topk = options.router_topk;
  check_multiple("--num-experts", moe.num_experts, "--ep", dims.ep, "change --num-experts or --ep");
}

RunPlan make_step(const TopologyOptions& options, const ParallelDims& dims) {
  TrainConfig c;
  c.preset = options.preset;
  c.model = model_preset(options.preset);
  if (options.seq_length != 0) c.model.seq_length = options.seq_length;
  check_positive("--seq-length", c.model.seq_length);
  check_positive("--micro-batch-size", options.micro_batch_size);
  RANKLAB_CHECK(options.micro_batch_size <= kMostSequences, ErrorKind::kInvalidArgument, .where = kTopologyWhere,
                .what = "--micro-batch-size is out of range", .got = std::to_string(options.micro_batch_size),
                .want = "1 to " + std::to_string(kMostSequences), .fix = "leave it out for its default");
  if (options.bucket_bytes != 0) check_positive("--ddp-bucket-bytes", options.bucket_bytes);
  c.sequence_parallel = options.sequence_parallel.value_or(dims.tp > 1);
  set_experts(options, dims, c.model);
  validate(c.model, dims.tp, false);
  validate_experts(c.model, {.tp = dims.tp, .ep = dims.ep, .etp = dims.etp, .sequence_parallel = *c.sequence_parallel});
  RANKLAB_CHECK(dims.pp <= c.model.num_layers, ErrorKind::kInvalidArgument, .where = kTopologyWhere,
                .what = "more pipeline stages than layers",
                .got = strprintf("pp %d, %ld layers", dims.pp, static_cast<long>(c.model.num_layers)),
                .want = strprintf("pp of at most %ld", static_cast<long>(c.model.num_layers)), .fix = kMeshAlone);
  const int64_t replica_batch = options.micro_batch_size * dims.dp;
  const int64_t batch = options.global_batch_size == 0 ? replica_batch * dims.pp : options.global_batch_size;
  check_multiple("--global-batch-size", batch, "micro batch x dp", replica_batch, "change --gbs or --mbs");
  RANKLAB_CHECK(
      batch <= kMostTokens / c.model.seq_length, ErrorKind::kInvalidArgument, .where = kTopologyWhere,
      .what = "a step of too many tokens",
      .got = strprintf("%ld sequences of %ld tokens", static_cast<long>(batch), static_cast<long>(c.model.seq_length)),
      .want = strprintf("at most %ld sequences", static_cast<long>(kMostTokens / c.model.seq_length)),
      .fix = "give a smaller --gbs, --mbs or --seq-length");
  c.micro_batch_size = options.micro_batch_size;
  c.global_batch_size = batch;
  c.parallel = dims;
  c.parallel.dp = c.parallel.edp = 0;
  c.ddp_bucket_bytes = options.bucket_bytes;
  c.params_dtype = std::string(name(parse_dtype(options.params_dtype)));
  c.gpus_per_node = options.gpus_per_node;
  c.mock_data = true;
  return resolve(c);
}

}  // namespace

Topology make_topology(const TopologyOptions& options) {
  check_positive("--gpus-per-node", options.gpus_per_node);
  ParallelDims dims = with_world(options.dims);
  if (options.preset != "none") dims.kv_copies = model_preset(options.preset).kv_copies(dims.tp);
  Topology out{.mesh = DeviceMesh(dims),
               .gpus_per_node = options.gpus_per_node,
               .preset = options.preset,
               .step = {},
               .traffic = {}};
  if (options.preset == "none") return out;
  out.step = make_step(options, out.mesh.dims());
  out.traffic = axis_traffic(training_functions().record_step(*out.step), *out.step);
  return out;
}

}  // namespace ranklab
