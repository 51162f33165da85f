// Linear attention: the chunks of the gated delta rule against its definition, the short convolution against ATen's,
// documents against each of them alone, and decoding against whole sequences.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <ATen/ops/conv1d.h>
#include <ATen/record_function.h>

#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "core/nn/output_gate.h"
#include "core/nn/recurrent/delta_scan.h"
#include "core/nn/recurrent/gated_delta_rule.h"
#include "core/nn/recurrent/short_convolution.h"
#include "core/sim/aten.h"
#include "tests/nn/recurrence.h"

namespace ranklab {
namespace {

using namespace recurrence;

DeltaInput random_input(const DeltaShape& shape, int64_t positions, int64_t sequences) {
  return {random({positions, sequences, shape.convolved_width()}),
          random({positions, sequences, 2 * shape.value_heads}), random({shape.value_heads}),
          random({shape.value_heads})};
}

Tensors leaves_of(const DeltaInput& in) { return {in.qkv, in.gates, in.a_log, in.dt_bias}; }

const DeltaShape kShape{.key_heads = 2, .value_heads = 4, .key_dim = 6, .value_dim = 5};

TEST(GatedDeltaRule, ChunksAreItsDefinition) {
  at::manual_seed(1);
  for (const int64_t positions : {1, 2, 63, 64, 65, 150}) {
    SCOPED_TRACE(positions);
    const DeltaInput in = random_input(kShape, positions, 2);
    // Nothing that the first position reads has decayed.
    expect_same(gated_delta_rule(in, kShape), gated_delta_rule_reference(in, kShape), leaves_of(in), positions > 1);
  }
}

// Keys that are all equal, never decay and are written whole make the system of a chunk as ill as it gets.
TEST(GatedDeltaRule, EqualKeysThatNothingDecaysStayExact) {
  at::manual_seed(2);
  const DeltaShape one{.key_heads = 1, .value_heads = 1, .key_dim = 4, .value_dim = 3};
  DeltaInput in = random_input(one, 130, 1);
  const at::NoGradGuard no_grad;
  in.qkv.narrow(-1, 4, 4).fill_(1);
  in.gates.select(-1, 0).fill_(40);
  in.gates.select(-1, 1).fill_(-60);
  expect_near(gated_delta_rule(in, one), gated_delta_rule_reference(in, one));
}

TEST(GatedDeltaRule, SegmentsDoNotRememberEachOther) {
  at::manual_seed(3);
  const at::Tensor segment_SB = segments_of({documents({10, 54, 1, 70, 15}), documents({64, 64, 22})});
  const DeltaInput in = random_input(kShape, 150, 2);
  expect_same(gated_delta_rule(in, kShape, segment_SB), gated_delta_rule_reference(in, kShape, segment_SB),
              leaves_of(in));
  // ... and the definition's are those of each document alone.
  const at::Tensor all = gated_delta_rule(in, kShape, segment_SB);
  int64_t begin = 0;
  for (const int64_t length : {10, 54, 1, 70, 15}) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, length).narrow(1, 0, 1); };
    expect_near(part(all), gated_delta_rule_reference({part(in.qkv), part(in.gates), in.a_log, in.dt_bias}, kShape));
    begin += length;
  }
}

TEST(GatedDeltaRule, ContinuesFromWhatItRemembers) {
  at::manual_seed(4);
  const DeltaInput in = random_input(kShape, 140, 2);
  const at::NoGradGuard no_grad;
  const at::Tensor whole = gated_delta_rule(in, kShape);
  at::Tensor memory = at::zeros({2, 4, 6, 5}, at::kDouble);
  int64_t begin = 0;
  for (const int64_t length : {70, 1, 1, 66, 2}) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, length); };
    expect_near(gated_delta_rule_after({part(in.qkv), part(in.gates), in.a_log, in.dt_bias}, kShape, memory),
                part(whole));
    begin += length;
  }
}

TEST(GatedDeltaRule, SixteenBitsAreSummedInThirtyTwo) {
  at::manual_seed(5);
  const DeltaInput in = random_input(kShape, 100, 2);
  const at::NoGradGuard no_grad;
  const auto narrow = [](const at::Tensor& x) { return x.to(at::kBFloat16); };
  const DeltaInput bf16{narrow(in.qkv), narrow(in.gates), narrow(in.a_log), narrow(in.dt_bias)};
  const auto wide = [](const at::Tensor& x) { return x.to(at::kDouble); };
  const at::Tensor want =
      gated_delta_rule_reference({wide(bf16.qkv), wide(bf16.gates), wide(bf16.a_log), wide(bf16.dt_bias)}, kShape);
  const at::Tensor got = gated_delta_rule(bf16, kShape);
  EXPECT_EQ(got.scalar_type(), at::kBFloat16);
  expect_near(got.to(at::kDouble), want, 1.0 / 256);  // rounded once
}

// The loop that GPUs run beside that of a CPU: outputs, the last memory and gradients.
TEST(DeltaScan, BothLoopsAreOneRecurrence) {
  at::manual_seed(6);
  for (const int64_t chunks : {1, 2, 5}) {
    SCOPED_TRACE(chunks);
    constexpr int64_t kHeads = 3, kPositions = 7, kKey = 6, kValue = 5;
    const Tensors leaves = {
        random({kHeads, chunks, kPositions, kValue}),    random({kHeads, chunks, kPositions, kKey}, 0.3),
        random({kHeads, chunks, kPositions, kKey}),      random({kHeads, chunks, kPositions, kPositions}),
        random({kHeads, chunks, kKey, kPositions}, 0.3), random({kHeads, chunks, 1, 1})};
    const DeltaChunks in{leaves[0], leaves[1], leaves[2], leaves[3], leaves[4], leaves[5]};
    at::Tensor memory = random({kHeads, kKey, kValue}).detach(), want_memory = memory.clone();
    const at::Tensor got = delta_scan(in, memory, DeltaLoop::kTransitions);
    const at::Tensor want = delta_scan(in, want_memory, DeltaLoop::kProducts);
    expect_same(got, want, leaves, false);
    expect_near(memory, want_memory);
  }
}

// How many kernels `work` launches: views and memory are none, nor is what a product does inside on a CPU.
int64_t kernels(const std::function<void()>& work) {
  constexpr std::string_view kProduct = "aten::baddbmm_";
  static thread_local int64_t count, inside;
  count = inside = 0;
  const auto on_start = [](const at::RecordFunction& fn) -> std::unique_ptr<at::ObserverContext> {
    static const std::set<std::string_view> kViews = {"aten::select", "aten::as_strided", "aten::transpose",
                                                      "aten::empty"};
    if (inside == 0 && !kViews.contains(fn.name())) ++count;
    if (fn.name() == kProduct) ++inside;
    return nullptr;
  };
  const auto on_end = [](const at::RecordFunction& fn, at::ObserverContext*) {
    if (fn.name() == kProduct) --inside;
  };
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(on_start, on_end).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return count;
}

// A GPU launches one a chunk forward and one backward, whatever else is of all chunks at once.
TEST(DeltaScan, AGpusLoopLaunchesOneKernelAChunk) {
  const auto launched = [](int64_t chunks) {
    const Tensors leaves = {random({2, chunks, 4, 3}), random({2, chunks, 4, 3}), random({2, chunks, 4, 3}),
                            random({2, chunks, 4, 4}), random({2, chunks, 3, 4}), random({2, chunks, 1, 1})};
    const DeltaChunks in{leaves[0], leaves[1], leaves[2], leaves[3], leaves[4], leaves[5]};
    at::Tensor memory = at::zeros({2, 3, 3}, at::kDouble);
    return kernels([&] { gradients(delta_scan(in, memory, DeltaLoop::kTransitions), leaves); });
  };
  EXPECT_EQ(launched(24) - launched(14), 2 * 10);
}

at::Tensor convolution_of_aten(const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor padded = at::constant_pad_nd(x.permute({1, 2, 0}), {weight.size(-1) - 1, 0});
  return at::silu(at::conv1d(padded, weight, std::optional<at::Tensor>(), at::IntArrayRef{1}, at::IntArrayRef{0},
                             at::IntArrayRef{1}, x.size(-1)))
      .permute({2, 0, 1});
}

TEST(ShortConvolution, IsThatOfAten) {
  at::manual_seed(6);
  for (const int64_t positions : {1, 3, 20}) {
    const at::Tensor x = random({positions, 2, 7}), weight = random({7, 1, 4});
    const at::Tensor got = short_convolution(x, {weight}), want = convolution_of_aten(x, weight);
    expect_near(got, want);
    const Tensors a = gradients(got, {x, weight}), b = gradients(want, {x, weight});
    expect_near(a[0], b[0]);
    expect_near(a[1], b[1]);
  }
}

TEST(ShortConvolution, SegmentsDoNotSeeEachOther) {
  at::manual_seed(7);
  const at::Tensor x = random({12, 2, 3}), weight = random({3, 1, 4});
  const at::Tensor got = short_convolution(x, {weight}, segments_of({documents({5, 1, 2, 4}), documents({12})}));
  Tensors parts;
  int64_t begin = 0;
  for (const int64_t length : {5, 1, 2, 4}) {
    parts.push_back(convolution_of_aten(x.narrow(0, begin, length).narrow(1, 0, 1), weight));
    begin += length;
  }
  const at::Tensor want = at::cat({at::cat(parts, 0), convolution_of_aten(x.narrow(1, 1, 1), weight)}, 1);
  expect_same(got, want, {x, weight});
}

TEST(ShortConvolution, ContinuesFromItsLastInputs) {
  at::manual_seed(8);
  const at::NoGradGuard no_grad;
  const at::Tensor x = random({11, 2, 3}), weight = random({3, 1, 4});
  const at::Tensor whole = short_convolution(x, {weight});
  at::Tensor past = at::zeros({3, 2, 3}, at::kDouble);
  int64_t begin = 0;
  for (const int64_t length : {2, 1, 5, 3}) {
    expect_near(short_convolution_after(x.narrow(0, begin, length), {weight}, past), whole.narrow(0, begin, length));
    begin += length;
  }
}

TEST(OutputGate, SigmoidAndNormAreTheirFormulas) {
  at::manual_seed(9);
  const at::Tensor x = random({5, 2, 12}), gate = random({5, 2, 12}), weight = random({4});
  expect_same(sigmoid_gated(x, gate).out, x / (1 + (-gate).exp()), {x, gate});
  const at::Tensor heads = x.unflatten(-1, {3, 4});
  const at::Tensor normed = heads / (heads.pow(2).mean(-1, true) + 1e-3).sqrt() * weight;
  expect_same(gated_head_norm(x, gate, weight, 1e-3).out, normed.flatten(-2) * gate / (1 + (-gate).exp()),
              {x, gate, weight});
}

TEST(OutputGate, TheOutputIsRecomputedBitForBit) {
  at::manual_seed(10);
  const at::Tensor x = random({5, 2, 12}), gate = random({5, 2, 12}), weight = random({4});
  for (const RecomputableOutput& output : {sigmoid_gated(x, gate), gated_head_norm(x, gate, weight, 1e-3)}) {
    ASSERT_TRUE(output.recomputer);
    EXPECT_TRUE(at::equal(output.recomputer->take(), output.out));
  }
}

}  // namespace
}  // namespace ranklab
