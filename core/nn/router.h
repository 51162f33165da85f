// Which experts process a token, and with which weights (Shazeer et al. 2017, arXiv 1701.06538; group-limited and with
// a bias: DeepSeek-V3, arXiv 2412.19437, section 2.1.2). Always computed in fp32 (fp64 for fp64 models), because
// rounding must not decide where a token goes. Ties go to the lowest index. Legend: T tokens, E experts, K experts per
// token. Cost: a sort of E scores per token. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/spec/moe_config.h"

namespace ranklab {

// fp64 for fp64 models, else fp32.
at::ScalarType router_dtype(at::ScalarType model);

struct ExpertChoice {
  at::Tensor experts_TK;  // int64, the best first
  at::Tensor weights_TK;  // differentiable: scores of the chosen experts, normalized and scaled as configured
  at::Tensor scores_TE;   // differentiable: softmax, or sigmoid, of the logits
};

// logits [T, E]. bias [E] may be undefined; it is added to the scores only to choose experts, not in the weights.
ExpertChoice choose_experts(const at::Tensor& logits_TE, const at::Tensor& bias_E, const MoeConfig& config);

// The weights for experts [T, K] that were chosen in another way.
at::Tensor expert_weights(const at::Tensor& scores_TE, const at::Tensor& experts_TK, const MoeConfig& config);

// The experts with each token's best scores [T, K], regardless of the bias and groups used in the choice. Experts that
// were forced on a token are returned as they are.
at::Tensor best_scored_experts(const ExpertChoice& choice, const MoeConfig& config);

// Round-robin experts for debugging: token t of the sequence takes experts t K, t K + 1, ... modulo E. tokens [T]
// int64.
at::Tensor experts_in_turn(const at::Tensor& tokens_T, const MoeConfig& config);

}  // namespace ranklab
