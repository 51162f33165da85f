#include "core/model/recompute.h"

#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <utility>

#include "core/nn/custom_function.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {
namespace {

struct KeptPiece : torch::CustomClassHolder {
  KeptPiece(Piece kept, ForwardContext with) : piece(std::move(kept)), context(std::move(with)) {}

  void run(RecomputePass pass, ResidualStream& stream) const {
    ForwardContext own = context;
    own.pass = pass;
    piece(stream, own);
  }

  Piece piece;
  ForwardContext context;
};
using PiecePtr = c10::intrusive_ptr<KeptPiece>;

// The first norm adds the branch to the stream, and its backward is one pass over both. Only their sum is saved, so the
// recomputation adds a branch of zeros to it; then the same kernel runs and gives the same bits.
at::Tensor zero_branch(const at::Tensor& sum) {
  const NoCostScope no_cost;
  return at::zeros_like(sum);
}

struct RecomputedFunction : CustomFunction<RecomputedFunction> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const std::optional<at::Tensor>& branch,
                               const PiecePtr& piece) {
    ResidualStream stream{branch ? x + *branch : x, {}};
    ctx->save_for_backward({stream.x_SBH});
    ctx->saved_data["piece"] = c10::IValue::make_capsule(piece);
    ctx->saved_data["has_branch"] = branch.has_value();
    ctx->set_materialize_grads(false);
    piece->run(RecomputePass::kFirst, stream);
    return {stream.x_SBH, stream.branch_SBH};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor input = ctx->get_saved_variables()[0].detach().requires_grad_();
    const bool has_branch = ctx->saved_data["has_branch"].toBool();
    variable_list roots, root_grads;
    {
      const ResidualStream out = recompute(ctx, input, has_branch);
      for (const auto& [tensor, grad] : {std::pair(out.x_SBH, grads[0]), std::pair(out.branch_SBH, grads[1])}) {
        if (!grad.defined()) continue;
        roots.push_back(tensor);
        root_grads.push_back(grad);
      }
    }
    torch::autograd::backward(roots, root_grads);
    return {input.grad(), has_branch ? input.grad() : at::Tensor(), {}};
  }

  static ResidualStream recompute(AutogradContext* ctx, const at::Tensor& input, bool has_branch) {
    const c10::AutoGradMode recorded(true);
    const RecomputeScope uncounted;
    ResidualStream stream{input, has_branch ? zero_branch(input) : at::Tensor()};
    const auto piece = ctx->saved_data["piece"].toCapsule();
    static_cast<const KeptPiece&>(*piece).run(RecomputePass::kRecompute, stream);
    return stream;
  }
};

}  // namespace

void recomputed(const Piece& piece, ResidualStream& stream, const ForwardContext& context) {
  // If no input requires a gradient, backward would not reach this function and the weights would get no gradients.
  if (!at::GradMode::is_enabled() || !stream.x_SBH.requires_grad()) return piece(stream, context);
  const std::optional<at::Tensor> branch =
      stream.branch_SBH.defined() ? std::optional<at::Tensor>(stream.branch_SBH) : std::nullopt;
  const variable_list out =
      RecomputedFunction::apply(stream.x_SBH, branch, c10::make_intrusive<KeptPiece>(piece, context));
  stream = {out[0], out[1]};
}

}  // namespace ranklab
