#include "core/nn/rotary_pairs.h"

#include "core/nn/custom_function.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// x [..., heads, elements from RotaryPairs::first on], whose first `rotary` elements are the rotated pairs.
at::Tensor to_halves(const at::Tensor& x, int64_t rotary) {
  const int64_t others = x.size(-1) - rotary;
  const at::Tensor pairs = x.narrow(-1, 0, rotary).unflatten(-1, {rotary / 2, 2}).transpose(-1, -2);
  if (others == 0) return pairs.flatten(-2);
  return at::cat({pairs, x.narrow(-1, rotary, others).unflatten(-1, {2, others / 2})}, -1).flatten(-2);
}

at::Tensor to_pairs(const at::Tensor& x, int64_t rotary) {
  const int64_t width = x.size(-1);
  const at::Tensor halves = x.unflatten(-1, {2, width / 2});
  const at::Tensor pairs = halves.narrow(-1, 0, rotary / 2).transpose(-1, -2).flatten(-2);
  if (rotary == width) return pairs;
  return at::cat({pairs, halves.narrow(-1, rotary / 2, (width - rotary) / 2).flatten(-2)}, -1);
}

at::Tensor reordered(const at::Tensor& x, int64_t heads, const RotaryPairs& p, bool back) {
  const NoCostScope no_cost;
  const int64_t width = heads * p.head;
  const at::Tensor by_head = x.narrow(-1, 0, width).unflatten(-1, {heads, p.head});
  const at::Tensor behind = by_head.narrow(-1, p.first, p.head - p.first);
  const at::Tensor turned = back ? to_pairs(behind, p.rotary) : to_halves(behind, p.rotary);
  at::Tensor out = (p.first == 0 ? turned : at::cat({by_head.narrow(-1, 0, p.first), turned}, -1)).flatten(-2);
  if (width < x.size(-1)) out = at::cat({out, x.narrow(-1, width, x.size(-1) - width)}, -1);
  return out.contiguous();
}

struct HalvesOfPairs : CustomFunction<HalvesOfPairs> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, int64_t heads, const RotaryPairs& pairs) {
    ctx->saved_data["heads"] = heads;
    ctx->saved_data["head"] = pairs.head;
    ctx->saved_data["first"] = pairs.first;
    ctx->saved_data["rotary"] = pairs.rotary;
    return reordered(x, heads, pairs, false);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto number = [&](const char* name) { return ctx->saved_data[name].toInt(); };
    return {reordered(grads[0], number("heads"), {number("head"), number("first"), number("rotary")}, true), {}, {}};
  }
};

}  // namespace

at::Tensor halves_of_pairs(const at::Tensor& x, int64_t heads, const RotaryPairs& pairs) {
  return HalvesOfPairs::apply(x, heads, pairs);
}

}  // namespace ranklab
