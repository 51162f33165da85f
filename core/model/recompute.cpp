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
  KeptPiece(Piece kept, ForwardContext with, std::vector<at::Tensor> weights)
      : piece(std::move(kept)), context(std::move(with)), shared_weights(std::move(weights)) {}

  void run(RecomputePass pass, ResidualStream& stream) const {
    ForwardContext own = context;
    own.pass = pass;
    piece(stream, own);
  }

  Piece piece;
  ForwardContext context;
  std::vector<at::Tensor> shared_weights;
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
                               at::TensorList /*shared_weights*/, const PiecePtr& piece) {
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
    const variable_list found = input_and_weight_grads(kept(ctx), input, roots, root_grads);
    variable_list out = {found[0], has_branch ? found[0] : at::Tensor()};
    out.insert(out.end(), found.begin() + 1, found.end());
    out.emplace_back();
    return out;
  }

  static const KeptPiece& kept(AutogradContext* ctx) {
    return static_cast<const KeptPiece&>(*ctx->saved_data["piece"].toCapsule());
  }

  // The gradients of the input and of the shared weights; other weights accumulate theirs. Deferred ones are undefined.
  static variable_list input_and_weight_grads(const KeptPiece& piece, const at::Tensor& input,
                                              const variable_list& roots, const variable_list& root_grads) {
    if (piece.shared_weights.empty()) {
      torch::autograd::backward(roots, root_grads);
      return {input.grad()};
    }
    variable_list sought = {input};
    sought.insert(sought.end(), piece.shared_weights.begin(), piece.shared_weights.end());
    return torch::autograd::grad(roots, sought, root_grads, std::nullopt, /*create_graph=*/false,
                                 /*allow_unused=*/true);
  }

  static ResidualStream recompute(AutogradContext* ctx, const at::Tensor& input, bool has_branch) {
    const c10::AutoGradMode recorded(true);
    const RecomputeScope uncounted;
    ResidualStream stream{input, has_branch ? zero_branch(input) : at::Tensor()};
    kept(ctx).run(RecomputePass::kRecompute, stream);
    return stream;
  }
};

}  // namespace

void recomputed(const Piece& piece, ResidualStream& stream, const ForwardContext& context,
                const std::vector<at::Tensor>& shared_weights) {
  // If no input requires a gradient, backward would not reach this function and the weights would get no gradients.
  if (!at::GradMode::is_enabled() || !stream.x_SBH.requires_grad()) return piece(stream, context);
  const std::optional<at::Tensor> branch =
      stream.branch_SBH.defined() ? std::optional<at::Tensor>(stream.branch_SBH) : std::nullopt;
  const variable_list out = RecomputedFunction::apply(stream.x_SBH, branch, at::TensorList(shared_weights),
                                                      c10::make_intrusive<KeptPiece>(piece, context, shared_weights));
  stream = {out[0], out[1]};
}

}  // namespace ranklab
