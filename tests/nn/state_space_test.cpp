// Mamba-2's recurrence: chunks against its definition, documents against each of them alone, decoding against whole
// sequences; its gated norm against the formula.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "core/nn/output_gate.h"
#include "core/nn/recurrent/short_convolution.h"
#include "core/nn/recurrent/state_space.h"
#include "core/sim/aten.h"
#include "tests/nn/recurrence.h"

namespace ranklab {
namespace {

using namespace recurrence;

const StateSpaceShape kStateShape{.heads = 6, .groups = 2, .head_dim = 5, .state_dim = 4};

StateSpaceInput random_state_input(const StateSpaceShape& shape, int64_t positions, int64_t sequences) {
  return {random({positions, sequences, shape.convolved_width()}), random({positions, sequences, shape.heads}),
          random({shape.heads}), random({shape.heads}), random({shape.heads})};
}

Tensors leaves_of(const StateSpaceInput& in) { return {in.xbc, in.dt, in.a_log, in.dt_bias, in.d}; }

// Of rows [begin, begin + length) of the first so many sequences.
StateSpaceInput part_of(const StateSpaceInput& in, int64_t begin, int64_t length, int64_t sequences) {
  const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, length).narrow(1, 0, sequences); };
  return {part(in.xbc), part(in.dt), in.a_log, in.dt_bias, in.d};
}

TEST(StateSpace, ChunksAreItsDefinition) {
  at::manual_seed(1);
  for (const int64_t positions : {1, 2, 63, 64, 65, 200}) {
    SCOPED_TRACE(positions);
    const StateSpaceInput in = random_state_input(kStateShape, positions, 2);
    // Nothing that the first position reads has decayed.
    expect_same(state_space(in, kStateShape), state_space_reference(in, kStateShape), leaves_of(in), positions > 1);
  }
}

TEST(StateSpace, StepsHaveALeastLength) {
  at::manual_seed(2);
  StateSpaceShape shape = kStateShape;
  shape.min_step = 0.9;
  const StateSpaceInput in = random_state_input(shape, 70, 2);
  expect_same(state_space(in, shape), state_space_reference(in, shape), leaves_of(in));
  EXPECT_FALSE(at::equal(state_space(in, shape), state_space(in, kStateShape)));
}

TEST(StateSpace, SegmentsDoNotRememberEachOther) {
  at::manual_seed(3);
  const at::Tensor segment_SB = segments_of({documents({10, 54, 1, 70, 15}), documents({64, 64, 22})});
  const StateSpaceInput in = random_state_input(kStateShape, 150, 2);
  expect_same(state_space(in, kStateShape, segment_SB), state_space_reference(in, kStateShape, segment_SB),
              leaves_of(in));
  // ... and the definition's are those of each document alone.
  const at::Tensor all = state_space(in, kStateShape, segment_SB);
  int64_t begin = 0;
  for (const int64_t length : {10, 54, 1, 70, 15}) {
    expect_near(all.narrow(0, begin, length).narrow(1, 0, 1),
                state_space_reference(part_of(in, begin, length, 1), kStateShape));
    begin += length;
  }
}

TEST(StateSpace, ContinuesFromItsState) {
  at::manual_seed(4);
  const StateSpaceInput in = random_state_input(kStateShape, 140, 2);
  const at::NoGradGuard no_grad;
  const at::Tensor whole = state_space(in, kStateShape);
  at::Tensor state = at::zeros({2, 6, 4, 5}, at::kDouble);
  int64_t begin = 0;
  for (const int64_t length : {70, 1, 1, 66, 2}) {
    expect_near(state_space_after(part_of(in, begin, length, 2), kStateShape, state), whole.narrow(0, begin, length));
    begin += length;
  }
}

TEST(StateSpace, SixteenBitsAreSummedInThirtyTwo) {
  at::manual_seed(5);
  const StateSpaceInput in = random_state_input(kStateShape, 100, 2);
  const at::NoGradGuard no_grad;
  const auto as = [](const StateSpaceInput& x, at::ScalarType type) {
    return StateSpaceInput{x.xbc.to(type), x.dt.to(type), x.a_log.to(type), x.dt_bias.to(type), x.d.to(type)};
  };
  const StateSpaceInput bf16 = as(in, at::kBFloat16);
  const at::Tensor want = state_space_reference(as(bf16, at::kDouble), kStateShape);
  const at::Tensor got = state_space(bf16, kStateShape);
  EXPECT_EQ(got.scalar_type(), at::kBFloat16);
  expect_near(got.to(at::kDouble), want, 1.0 / 256);  // rounded once
}

TEST(ShortConvolution, ABiasIsAddedBeforeSilu) {
  at::manual_seed(6);
  const at::Tensor x = random({9, 2, 3}), weight = random({3, 1, 1}), bias = random({3});
  const at::Tensor sum = x * weight.view({3}) + bias;
  expect_same(short_convolution(x, {weight, bias}), sum / (1 + (-sum).exp()), {x, weight, bias});
}

TEST(OutputGate, GroupNormIsItsFormula) {
  at::manual_seed(7);
  const at::Tensor x = random({5, 2, 12}), gate = random({5, 2, 12}), weight = random({12});
  const at::Tensor gated = (x * gate / (1 + (-gate).exp())).unflatten(-1, {3, 4});
  const at::Tensor normed = gated / (gated.pow(2).mean(-1, true) + 1e-3).sqrt();
  const RecomputableOutput got = gated_group_norm(x, gate, weight, 3, 1e-3);
  expect_same(got.out, normed.flatten(-2) * weight, {x, gate, weight});
  ASSERT_TRUE(got.recomputer);
  EXPECT_TRUE(at::equal(got.recomputer->take(), got.out));
}

}  // namespace
}  // namespace ranklab
