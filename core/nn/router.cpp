#include "core/nn/router.h"

#include <algorithm>
#include <limits>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

// Indices of the `count` largest of each row; ties go to the lowest index (at::topk leaves that unspecified).
at::Tensor top_indices(const at::Tensor& values, int64_t count) {
  return std::get<1>(at::sort(values, /*stable=*/true, /*dim=*/-1, /*descending=*/true)).narrow(-1, 0, count);
}

// Masks the scores outside a token's best groups.
at::Tensor within_best_groups(const at::Tensor& choice_TE, const MoeConfig& c) {
  const int64_t tokens = choice_TE.size(0), each = c.num_experts / c.num_groups;
  const at::Tensor grouped = choice_TE.view({tokens, c.num_groups, each});
  const at::Tensor best = std::get<0>(at::sort(grouped, true, -1, true)).narrow(-1, 0, std::min(c.group_best, each));
  const at::Tensor groups = top_indices(best.sum(-1), c.group_topk);
  const at::Tensor allowed =
      at::zeros({tokens, c.num_groups}, choice_TE.options().dtype(at::kBool)).scatter_(1, groups, true);
  return grouped.masked_fill(allowed.unsqueeze(-1).logical_not(), -std::numeric_limits<double>::infinity())
      .view({tokens, c.num_experts});
}

}  // namespace

at::ScalarType router_dtype(at::ScalarType model) { return model == at::kDouble ? at::kDouble : at::kFloat; }

ExpertChoice choose_experts(const at::Tensor& logits_TE, const at::Tensor& bias_E, const MoeConfig& c) {
  ExpertChoice out;
  out.scores_TE = c.score == RouterScore::kSigmoid ? at::sigmoid(logits_TE) : at::softmax(logits_TE, -1);
  {
    const at::NoGradGuard no_grad;
    at::Tensor choice_TE = bias_E.defined() ? out.scores_TE + bias_E : out.scores_TE.detach();
    if (c.limits_groups()) choice_TE = within_best_groups(choice_TE, c);
    out.experts_TK = top_indices(choice_TE, c.topk).contiguous();
  }
  out.weights_TK = expert_weights(out.scores_TE, out.experts_TK, c);
  return out;
}

at::Tensor expert_weights(const at::Tensor& scores_TE, const at::Tensor& experts_TK, const MoeConfig& c) {
  constexpr double kTiny = 1e-20;  // all chosen scores may be zero; DeepSeek's value
  at::Tensor weights_TK = scores_TE.gather(1, experts_TK);
  if (c.normalizes() && c.topk == 1)
    weights_TK = weights_TK * 0 + 1;  // avoids the rounding error in a quotient's gradient, whose sign Lion would use
  else if (c.normalizes())
    weights_TK = weights_TK / (weights_TK.sum(-1, true) + kTiny);
  return c.scaling_factor == 1.0 ? weights_TK : weights_TK * c.scaling_factor;
}

at::Tensor best_scored_experts(const ExpertChoice& choice, const MoeConfig& c) {
  const bool chosen_by_score = !c.expert_bias && !c.limits_groups();
  if (chosen_by_score || c.force_balance) return choice.experts_TK;
  const at::NoGradGuard no_grad;
  return top_indices(choice.scores_TE.detach(), c.topk);
}

at::Tensor experts_in_turn(const at::Tensor& tokens_T, const MoeConfig& c) {
  const at::Tensor slots_K = at::arange(c.topk, tokens_T.options());
  return (tokens_T.unsqueeze(1) * c.topk + slots_K).remainder(c.num_experts);
}

}  // namespace ranklab
