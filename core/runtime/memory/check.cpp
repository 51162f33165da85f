#include "core/runtime/memory/check.h"

#include <string>

#include "core/base/error.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/config/sharding.h"
#include "core/config/state_types.h"
#include "core/spec/hidden_matrix.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

// The number of copies of a module over all ranks together.
int64_t holders(const RunPlan& plan, const ModuleRow& row) {
  if (row.is_expert()) return plan.mesh.size(Axis::kEdp);
  const bool whole = row.split == ModuleSplit::kReplicated && row.multiplies;
  return plan.replicas() * (whole ? plan.mesh.size(Axis::kTp) : 1);
}

// The number of ranks that shard it, with a ZeRO stage.
int64_t sharers(const RunPlan& plan, const ModuleRow& row) {
  return plan.mesh.size(row.is_expert() ? Axis::kEdpShard : Axis::kDpShard);
}

}  // namespace

int64_t fixed_bytes(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const StateTypes types = state_types(plan);
  const auto held = [&](bool sharded, int64_t bytes, const ModuleRow& row) {
    return row.parameters() * bytes * holders(plan, row) / (sharded ? sharers(plan, row) : 1);
  };
  const ZeroStage& zero = plan.zero();
  const bool shards_grads = shards_gradients(plan) && !accumulates_whole_gradients(plan);
  int64_t sum = 0;
  for (const ModuleRow& row : module_table(c.model)) {
    sum += held(zero.parameters, types.param_bytes(), row) + held(shards_grads, types.grad_bytes(), row) +
           held(zero.optimizer, types.optimizer_bytes(is_hidden_matrix(row)), row) +
           held(false, c.cuda_graph ? c.element_bytes() : 0, row);  // CUDA graphs keep a microbatch's gradients
  }
  return sum * plan.schedule.num_chains();
}

void check_memory(const RunPlan& plan, int64_t available_bytes) {
  const int64_t available = available_bytes > 0 ? available_bytes : available_memory_bytes();
  if (available == 0) return;  // unknown: nothing is refused
  const int64_t needed = fixed_bytes(plan);
  const TrainConfig& c = plan.config;
  std::string fix = "use fewer --num-layers";
  if (c.model.moe.enabled()) fix += ", fewer --num-experts";
  if (plan.replicas() > 1 && !plan.zero().parameters) fix += ", --zero-stage 3";
  if (plan.dp() > 1) fix += ", fewer replicas (dp is " + std::to_string(plan.dp()) + "; raise --tp)";
  if (c.model.vocab_size > 256) fix += ", --vocab-size 256 (text is read as bytes)";
  if (state_types(plan).moments > 0) fix += ", or --optimizer sgd";
  if (c.cuda_graph) fix += ", or leave --cuda-graph out";
  RANKLAB_CHECK(needed <= available, ErrorKind::kEnvironment, .where = "memory",
                .what = std::string("parameters, gradients") +
                        (c.cuda_graph ? ", the CUDA graphs' gradients of a microbatch" : "") +
                        " and optimizer state of all ranks do not fit this machine",
                .got = human_bytes(static_cast<double>(needed)) + " for " +
                       human_count(static_cast<double>(c.model.parameter_count())) + " parameters x " +
                       std::to_string(plan.replicas() * plan.schedule.num_chains()) + " replicas",
                .want = "at most the available " + human_bytes(static_cast<double>(available)), .fix = fix);
}

}  // namespace ranklab
