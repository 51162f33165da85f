#include "core/nn/custom_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/base/error.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using torch::autograd::variable_list;

// a x + y, if there is a y; and a x again. Each of `more` gets three times the gradient.
struct Scaled : CustomFunction<Scaled> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, double a, const std::optional<at::Tensor>& y,
                               at::TensorList more) {
    EXPECT_FALSE(at::GradMode::is_enabled());
    ctx->save_for_backward({x});
    ctx->saved_data["a"] = a;
    ctx->saved_data["has_y"] = y.has_value();
    ctx->saved_data["more"] = static_cast<int64_t>(more.size());
    ctx->set_materialize_grads(more.empty());
    const at::Tensor product = x * a;
    return {y ? product + *y : product.clone(), product};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    seen = grads;
    saved = ctx->get_saved_variables()[0];
    const bool has_y = ctx->saved_data["has_y"].toBool();
    const int64_t more = ctx->saved_data["more"].toInt();
    wanted.clear();
    for (int64_t i = 0; i < 1 + (has_y ? 1 : 0) + more; ++i) wanted.push_back(ctx->needs_input_grad(i));
    variable_list out = {grads[0] * ctx->saved_data["a"].toDouble(), {}, has_y ? grads[0] : at::Tensor()};
    for (int64_t i = 0; i < more; ++i) out.push_back(grads[0] * 3);
    return out;
  }
  static inline variable_list seen;
  static inline at::Tensor saved;
  static inline std::vector<bool> wanted;
};

at::Tensor leaf(double value) { return at::full({2}, value, at::kDouble).requires_grad_(); }

TEST(CustomFunction, GivesEachTensorItsGradient) {
  const at::Tensor x = leaf(3), y = leaf(4), z = leaf(0);
  const variable_list out = Scaled::apply(x, 2.0, std::optional(y), at::TensorList(z));
  EXPECT_TRUE(at::equal(out[0].detach(), at::full({2}, 10.0, at::kDouble)));
  torch::autograd::backward({out[0].sum()}, {});
  EXPECT_TRUE(at::equal(x.grad(), at::full({2}, 2.0, at::kDouble)));
  EXPECT_TRUE(at::equal(y.grad(), at::ones({2}, at::kDouble)));
  EXPECT_TRUE(at::equal(z.grad(), at::full({2}, 3.0, at::kDouble)));
  EXPECT_TRUE(Scaled::saved.is_same(x) || at::equal(Scaled::saved, x));
  EXPECT_FALSE(Scaled::seen[1].defined());  // nobody used the second output
}

TEST(CustomFunction, AnUnusedOutputsGradientIsZerosUnlessToldOtherwise) {
  const at::Tensor x = leaf(3);
  const variable_list out = Scaled::apply(x, 2.0, std::optional<at::Tensor>(), at::TensorList(variable_list{}));
  torch::autograd::backward({out[0].sum()}, {});
  EXPECT_TRUE(at::equal(Scaled::seen[1], at::zeros({2}, at::kDouble)));
}

TEST(CustomFunction, KnowsWhoseGradientIsWanted) {
  const at::Tensor x = leaf(3), z = leaf(0);
  const variable_list out = Scaled::apply(x.detach(), 2.0, std::optional<at::Tensor>(), at::TensorList(z));
  torch::autograd::backward({out[0].sum()}, {});
  EXPECT_EQ(Scaled::wanted, (std::vector<bool>{false, true}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(CustomFunction, RecordsNothingWhereNobodyAsks) {
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(
      Scaled::apply(leaf(3), 2.0, std::optional<at::Tensor>(), at::TensorList(variable_list{}))[0].requires_grad());
}

TEST(CustomFunction, ReleasesWhatItSavedAfterBackward) {
  const at::Tensor x = leaf(3), z = leaf(0);
  const at::Tensor sum = Scaled::apply(x, 2.0, std::optional<at::Tensor>(), at::TensorList(z))[0].sum();
  torch::autograd::backward({sum}, {});
  EXPECT_THROW(torch::autograd::backward({sum}, {}), std::exception);
}

struct Forgets : CustomFunction<Forgets> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x, const at::Tensor& y) { return x + y; }
  static variable_list backward(AutogradContext*, const variable_list& grads) { return {grads[0]}; }
};

struct Invents : CustomFunction<Invents> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x, double y) { return x + y; }
  static variable_list backward(AutogradContext*, const variable_list& grads) { return {grads[0], grads[0]}; }
};

std::string refusal_of_backward(const at::Tensor& out) {
  try {
    torch::autograd::backward({out.sum()}, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CustomFunction, WrongGradientsAreRefusedByName) {
  EXPECT_THAT(refusal_of_backward(Forgets::apply(leaf(1), leaf(2))),
              AllOf(HasSubstr("Forgets"), HasSubstr("too few gradients; got 1; want 2")));
  EXPECT_THAT(refusal_of_backward(Invents::apply(leaf(1), 2.0)),
              AllOf(HasSubstr("Invents"), HasSubstr("a gradient of something that is not a tensor; got input 1")));
}

// As attention's outputs do: one is for backward alone.
struct WithNote : CustomFunction<WithNote> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x) {
    const at::Tensor note = x * 7, out = x * 2;
    ctx->mark_non_differentiable({note});
    ctx->save_for_backward({out});
    return {out, note};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    EXPECT_TRUE(ctx->get_saved_variables()[0].requires_grad());  // the output itself, with its place in the graph
    return {grads[0] * 2};
  }
};

TEST(CustomFunction, OutputsMayBeSavedAndOthersLeftOut) {
  const at::Tensor x = leaf(1);
  const variable_list out = WithNote::apply(x);
  EXPECT_TRUE(out[0].requires_grad());
  EXPECT_FALSE(out[1].requires_grad());
  torch::autograd::backward({out[0].sum()}, {});
  EXPECT_TRUE(at::equal(x.grad(), at::full({2}, 2.0, at::kDouble)));
}

}  // namespace
}  // namespace ranklab
