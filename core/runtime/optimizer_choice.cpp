// Makes the optimizer that a plan names, from its settings: a function for each row of core/optim/optimizer_list.h.
#include <utility>

#include "core/base/injected_bug.h"
#include "core/config/state_types.h"
#include "core/nn/scalar_type.h"
#include "core/optim/optimizer.h"
#include "core/runtime/provide.h"

namespace ranklab {
namespace {

using Parameters = std::vector<Parameter*>;

AdamWOptions adamw_options(const TrainConfig& c, const StateTypes& types) {
  return {.beta1 = c.adam_beta1,
          .beta2 = c.adam_beta2,
          .epsilon = c.adam_eps,
          .weight_decay = c.weight_decay,
          .cpu_offload = c.optimizer_cpu_offload,
          .masters = types.has_masters() && !injected(InjectedBug::kBf16NoMaster),
          .exp_avg_type = scalar_type(types.exp_avg),
          .exp_avg_sq_type = scalar_type(types.exp_avg_sq)};
}

std::unique_ptr<Optimizer> adamw_of(Parameters parameters, const TrainConfig& c, const StateTypes& types) {
  return make_adamw(std::move(parameters), adamw_options(c, types));
}

std::unique_ptr<Optimizer> sgd_of(Parameters parameters, const TrainConfig& c, const StateTypes& types) {
  return make_sgd(std::move(parameters), {.momentum = c.sgd_momentum,
                                          .weight_decay = c.weight_decay,
                                          .cpu_offload = c.optimizer_cpu_offload,
                                          .masters = types.has_masters()});
}

std::unique_ptr<Optimizer> muon_of(Parameters parameters, const TrainConfig& c, const StateTypes& types) {
  MuonOptions options{.momentum = c.muon_momentum,
                      .nesterov = c.muon_nesterov,
                      .ns_steps = c.muon_ns_steps,
                      .others = adamw_options(c, types)};
  if (c.muon_ns_dtype != "auto") options.ns_type = scalar_type(parse_dtype(c.muon_ns_dtype));
  return make_muon(std::move(parameters), options);
}

std::unique_ptr<Optimizer> lion_of(Parameters parameters, const TrainConfig& c, const StateTypes& types) {
  return make_lion(std::move(parameters), {.beta1 = c.lion_beta1,
                                           .beta2 = c.lion_beta2,
                                           .weight_decay = c.weight_decay,
                                           .cpu_offload = c.optimizer_cpu_offload,
                                           .masters = types.has_masters(),
                                           .exp_avg_type = scalar_type(types.exp_avg)});
}

// In the order of OptimizerKind.
constexpr std::array kMakers = {adamw_of, sgd_of, muon_of, lion_of};
static_assert(kMakers.size() == kOptimizers.size());

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(std::vector<Parameter*> parameters, const RunPlan& plan) {
  return kMakers[static_cast<size_t>(plan.config.optimizer)](std::move(parameters), plan.config, state_types(plan));
}

}  // namespace ranklab
