#include "core/parallel/expert/balance_loss.h"

#include "core/comm/purpose.h"
#include "core/nn/custom_function.h"
#include "core/parallel/expert/bin_counts.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

struct AttachLoss : CustomFunction<AttachLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& loss, double scale) {
    ctx->saved_data["scale"] = scale;
    ctx->save_for_backward({loss.detach()});
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor loss = ctx->get_saved_variables()[0];
    return {grads[0], at::full_like(loss, ctx->saved_data["scale"].toDouble()), {}};
  }
};

// f per sequence (or over all tokens) [sequences or 1, E].
at::Tensor fractions(const ExpertChoice& choice, const MoeConfig& c, const BalanceGroups& g) {
  const at::NoGradGuard no_grad;
  const int64_t tokens = choice.scores_TE.size(0), rows = g.per_sequence ? g.sequences : 1;
  at::Tensor bins_TK = best_scored_experts(choice, c);
  if (g.per_sequence) {
    const at::Tensor sequence_T = at::arange(tokens, bins_TK.options()).remainder(g.sequences);
    bins_TK = bins_TK + sequence_T.unsqueeze(1) * c.num_experts;
  }
  at::Tensor counts = bin_counts(bins_TK.reshape({-1}), rows * c.num_experts);
  {
    const PurposeScope scope(Purpose::kRouting);
    for (Communicator* group : g.groups) {
      if (group->size() > 1) counts = group->all_reduce(counts);
    }
  }
  const auto counted = static_cast<double>(tokens * g.ranks / rows);
  const double factor = static_cast<double>(c.num_experts) / (static_cast<double>(c.topk) * counted);
  return counts.to(choice.scores_TE.scalar_type()).mul_(factor).view({rows, c.num_experts});
}

}  // namespace

at::Tensor balance_loss_sum(const ExpertChoice& choice, const MoeConfig& c, const BalanceGroups& g) {
  const at::Tensor f = fractions(choice, c, g);
  at::Tensor scores_TE = choice.scores_TE;
  if (c.score == RouterScore::kSigmoid) scores_TE = scores_TE / scores_TE.sum(-1, true);
  return (scores_TE.view({-1, f.size(0), c.num_experts}) * f).sum();
}

at::Tensor z_loss_sum(const at::Tensor& logits_TE) { return at::logsumexp(logits_TE, {-1}).square().sum(); }

at::Tensor attach_loss(const at::Tensor& x, const at::Tensor& loss, double scale) {
  return AttachLoss::apply(x, loss, scale);
}

}  // namespace ranklab
