#include "core/parallel/context/travelling_keys.h"

#include <torch/csrc/autograd/autograd.h>

#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/recompute_scope.h"

namespace ranklab {
namespace {

at::Tensor wide_of(const at::Tensor& x) { return x.to(kernel_wide_type(x)); }

// The same values, detached from what they were computed from.
at::Tensor leaf(const at::Tensor& x) { return x.detach().requires_grad_(); }

}  // namespace

at::Tensor wide_zeros(const at::Tensor& like) {
  return at::zeros(like.sizes(), like.options().dtype(kernel_wide_type(like)));
}

at::Tensor KeyValue::packed() const { return at::cat({k.reshape({-1}), v.reshape({-1})}); }

KeyValue KeyValue::unpacked(const at::Tensor& flat, const KeyValue& like) {
  return {flat.narrow(0, 0, like.k.numel()).view(like.k.sizes()),
          flat.narrow(0, like.k.numel(), like.v.numel()).view(like.v.sizes())};
}

KeyValue KeyValue::wide_zeros() const { return {ranklab::wide_zeros(k), ranklab::wide_zeros(v)}; }

KeyValue KeyValue::wide() const { return {wide_of(k), wide_of(v)}; }

ArrivedKeys::ArrivedKeys(const KeyMaker& maker, const KeyValue& travelled, int of_rank, For pass)
    : maker_(maker), travelled_(travelled), heads_(travelled) {
  if (!maker.makes()) return;
  if (pass == For::kForward) {
    heads_ = maker.make(travelled, of_rank);
    return;
  }
  const c10::AutoGradMode recorded(true);
  const RecomputeScope uncounted;
  travelled_ = {leaf(travelled.k), leaf(travelled.v)};
  heads_ = maker.make(travelled_, of_rank);
}

KeyValue ArrivedKeys::grads(const KeyValue& d, std::vector<at::Tensor>& weight_grads) const {
  if (!maker_.makes()) return d;
  std::vector<at::Tensor> of = {travelled_.k, travelled_.v};
  of.insert(of.end(), maker_.weights.begin(), maker_.weights.end());
  const auto grads =
      torch::autograd::grad({heads_.k, heads_.v}, of, {d.k.to(heads_.k.scalar_type()), d.v.to(heads_.v.scalar_type())},
                            /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                            /*allow_unused=*/true);
  weight_grads.resize(maker_.weights.size());
  for (size_t i = 0; i < weight_grads.size(); ++i) {
    const at::Tensor& grad = grads[i + 2];
    if (!grad.defined()) continue;
    at::Tensor& sum = weight_grads[i];
    if (sum.defined())
      sum.add_(grad);
    else
      sum = wide_of(grad);
  }
  return KeyValue{grads[0], grads[1]}.wide();
}

}  // namespace ranklab
