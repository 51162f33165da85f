#include "core/parity/rounding/routing_flips.h"

#include <charconv>

#include "core/nn/router.h"
#include "core/parity/whole_tensor.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// The first of `keys` that the record has, in the type in which the layer computes. With sharded weights no rank
// records a weight before its use, so the result of the previous step's update is used.
at::Tensor found(const ParityRecord& record, const std::vector<TensorKey>& keys) {
  for (const TensorKey& key : keys) {
    const auto pieces = record.tensors.find(key);
    if (pieces == record.tensors.end() || pieces->second.empty()) continue;
    const WholeTensor whole = put_together(pieces->second);
    return whole.values.to(record.type).to(at::kDouble).view(whole.shape);
  }
  return {};
}

// [tokens, experts]: which experts each token goes to; undefined if the record lacks what decides it.
at::Tensor chosen(const ParityRecord& record, int64_t step, const std::string& router) {
  if (!record.plan) return {};
  const MoeConfig& moe = record.plan->config.model.moe;
  const at::Tensor inputs = found(record, {{step, ParityPhase::kForward, router, "input"}}),
                   weight = found(record, {{step, ParityPhase::kWeights, router + ".weight", "weight"},
                                           {step - 1, ParityPhase::kUpdate, router + ".weight", "updated weight"}});
  if (!inputs.defined() || !weight.defined() || moe.force_balance) return {};
  const auto bias = record.tensors.find({step, ParityPhase::kWeights, router + ".bias", "buffer"});
  const at::ScalarType type = router_dtype(record.type);
  const at::Tensor logits_TE = at::linear(inputs.flatten(0, -2).to(type), weight.to(type));
  const at::Tensor bias_E = bias == record.tensors.end() ? at::Tensor() : bias->second.front().value.to(type);
  return at::zeros_like(logits_TE, at::kBool).scatter_(1, choose_experts(logits_TE, bias_E, moe).experts_TK, true);
}

std::vector<int64_t> counted(const at::Tensor& choices_TE) {
  const at::Tensor sums = choices_TE.sum(0).contiguous();
  return {sums.const_data_ptr<int64_t>(), sums.const_data_ptr<int64_t>() + sums.numel()};
}

}  // namespace

std::optional<ExpertPlace> expert_place(const std::string& parameter) {
  constexpr std::string_view kExperts = ".experts.";
  const size_t at = parameter.find(kExperts);
  if (at == std::string::npos) return {};
  const char* const number = parameter.data() + at + kExperts.size();
  ExpertPlace place{.layer = parameter.substr(0, at)};
  const auto [end, error] = std::from_chars(number, parameter.data() + parameter.size(), place.expert);
  if (error != std::errc() || *end != '.') return {};
  place.parameter = end + 1;
  return place;
}

std::optional<RoutingFlips> routing_flips(const ParityRecord& got, const ParityRecord& want, int64_t step,
                                          const std::string& layer) {
  const std::string router = layer + ".router";
  const at::Tensor here = chosen(got, step, router), there = chosen(want, step, router);
  if (!here.defined() || !there.defined() || here.sizes() != there.sizes()) return {};
  return RoutingFlips{.tokens = counted(there), .flipped = counted(here.logical_xor(there))};
}

}  // namespace ranklab
