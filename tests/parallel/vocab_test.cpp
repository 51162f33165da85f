// Vocabulary-parallel embedding and cross entropy against the whole ones, for vocabularies that do not divide by tp.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/parallel/tensor/vocab_cross_entropy.h"
#include "core/parallel/tensor/vocab_embedding.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

using golden::wave;

constexpr int64_t kTokens = 12;
const at::ScalarType kDtypes[] = {at::kFloat, at::kDouble, at::kBFloat16};

double tolerance(at::ScalarType dtype) { return dtype == at::kDouble ? 1e-13 : 2e-6; }
// The loss of 16-bit logits is exact, their gradient is rounded.
double grad_tolerance(at::ScalarType dtype) { return dtype == at::kBFloat16 ? 4e-3 : tolerance(dtype); }

void check_cross_entropy(RankContext& context, int64_t vocab, at::ScalarType dtype) {
  Communicator& tp = context.comm(Axis::kTp);
  const at::Tensor given = wave({kTokens, vocab}, 0.3, 9.0).to(dtype);
  const at::Tensor whole = given.to(dtype == at::kBFloat16 ? at::kDouble : dtype).clone().requires_grad_(true);
  at::Tensor targets = (at::arange(kTokens, at::kLong) * 5 + 2).remainder(vocab);
  targets[3] = kIgnoreTarget;
  const at::Tensor want = at::cross_entropy_loss(whole, targets, {}, at::Reduction::Sum, kIgnoreTarget);
  torch::autograd::backward({want * 0.25}, {});

  const Partition head = shard_padded({vocab, 1}, tp.rank(), tp.size());
  const auto [begin, end] = head.ranges[0];
  // Padding columns hold large logits on purpose: they must not reach the softmax.
  at::Tensor mine = at::full({kTokens, end - begin}, 50.0, given.options());
  const int64_t real = std::clamp<int64_t>(vocab - begin, 0, end - begin);
  if (real > 0) mine.narrow(1, 0, real).copy_(given.narrow(1, begin, real));
  mine.requires_grad_(true);
  const at::Tensor loss = vocab_parallel_cross_entropy(mine, targets, head, {.comm = &tp, .sequence_parallel = false});
  torch::autograd::backward({loss * 0.25}, {});
  EXPECT_NEAR(loss.item<double>(), want.item<double>(), tolerance(dtype) * want.item<double>());
  if (real > 0) {
    EXPECT_LT(golden::relative_error(mine.grad().narrow(1, 0, real), whole.grad().narrow(1, begin, real)),
              grad_tolerance(dtype));
  }
  EXPECT_TRUE(at::equal(mine.grad().narrow(1, real, end - begin - real),
                        at::zeros({kTokens, end - begin - real}, mine.grad().options())));
  EXPECT_TRUE(at::equal(mine.grad()[3], at::zeros_like(mine.grad()[3]))) << "an ignored token";
}

TEST(VocabParallelCrossEntropy, EqualsTheWholeOne) {
  for (const int tp : {1, 2, 4, 8}) {
    run_ranks(dims_of(1, tp), [](RankContext& context) {
      for (const int64_t vocab : {16, 13, 9, 3}) {  // 3 over 8 ranks: most ranks hold padding only
        for (const at::ScalarType dtype : kDtypes) check_cross_entropy(context, vocab, dtype);
      }
    });
  }
}

// More rows than are computed at once.
TEST(VocabParallelCrossEntropy, ManyRowsOf16BitLogits) {
  run_ranks(dims_of(1, 2), [](RankContext& context) {
    Communicator& tp = context.comm(Axis::kTp);
    constexpr int64_t kRows = 150, kVocab = 1200;
    const at::Tensor given = wave({kRows, kVocab}, 0.7, 6.0).to(at::kHalf);
    const at::Tensor whole = given.to(at::kDouble).requires_grad_(true);
    const at::Tensor targets = (at::arange(kRows, at::kLong) * 37).remainder(kVocab);
    const at::Tensor want = at::cross_entropy_loss(whole, targets, {}, at::Reduction::Sum, kIgnoreTarget);
    torch::autograd::backward({want}, {});
    const Partition head = shard_padded({kVocab, 1}, tp.rank(), 2);
    const auto [begin, end] = head.ranges[0];
    const at::Tensor mine = given.narrow(1, begin, end - begin).contiguous().requires_grad_(true);
    const at::Tensor loss = vocab_parallel_cross_entropy(mine, targets, head, {.comm = &tp});
    torch::autograd::backward({loss}, {});
    EXPECT_EQ(loss.scalar_type(), at::kFloat);
    EXPECT_NEAR(loss.item<double>(), want.item<double>(), 1e-6 * want.item<double>());
    EXPECT_LT(golden::relative_error(mine.grad(), whole.grad().narrow(1, begin, end - begin)), 5e-4);
  });
}

TEST(VocabParallelCrossEntropy, SurvivesExtremeLogits) {
  run_ranks(dims_of(1, 2), [](RankContext& context) {
    Communicator& tp = context.comm(Axis::kTp);
    const Partition head = shard_padded({4, 1}, tp.rank(), 2);
    const at::Tensor logits = at::full({1, 2}, tp.rank() == 0 ? -3e4f : 3e4f).requires_grad_(true);
    const at::Tensor loss = vocab_parallel_cross_entropy(logits, at::tensor({2}, at::kLong), head, {.comm = &tp});
    EXPECT_NEAR(loss.item<double>(), std::log(2.0), 1e-6);
    torch::autograd::backward({loss}, {});
    EXPECT_TRUE(at::isfinite(logits.grad()).all().item<bool>());
  });
}

TEST(VocabParallelEmbedding, LooksUpExactlyAndTrainsOnlyItsRows) {
  constexpr int64_t kVocab = 11, kHidden = 4, kSeq = 8, kBatch = 3;
  const at::Tensor tokens = (at::arange(kSeq * kBatch, at::kLong) * 7 + 1).remainder(kVocab).view({kSeq, kBatch});
  ParameterRegistry whole(9, at::kFloat, at::kCPU);
  const at::Tensor weight = whole.create("e.weight", replicated({kVocab, kHidden}), {}, true).data;
  const at::Tensor want = at::embedding(weight, tokens);
  const at::Tensor seed = wave(want.sizes(), 0.2).to(at::kFloat);
  torch::autograd::backward({want}, {seed});
  for (const int size : {1, 2, 4, 8}) {
    for (const bool sp : {false, true}) {
      run_ranks(dims_of(1, size), [&](RankContext& context) {
        Communicator& tp = context.comm(Axis::kTp);
        ParameterRegistry registry(9, at::kFloat, at::kCPU);
        const ModuleSpec spec{.name = "e", .shape = {kVocab, kHidden}, .split = ModuleSplit::kVocabulary};
        const VocabParallelEmbedding embedding(ModuleScope(registry), spec, {&tp, sp});
        const at::Tensor got = embedding(tokens, {});
        const int64_t rows = sp ? kSeq / size : kSeq;
        const int64_t first = sp ? rows * tp.rank() : 0;
        EXPECT_TRUE(at::equal(got, want.narrow(0, first, rows)));
        torch::autograd::backward({got}, {seed.narrow(0, first, rows)});
        const auto [begin, end] = embedding.weight().partition.ranges[0];
        const int64_t real = std::clamp<int64_t>(kVocab - begin, 0, end - begin);
        const at::Tensor grad = embedding.weight().data.grad();
        EXPECT_TRUE(at::equal(grad.narrow(0, 0, real), weight.grad().narrow(0, std::min(begin, kVocab), real)));
        EXPECT_EQ(grad.narrow(0, real, end - begin - real).count_nonzero().item<int64_t>(), 0);
      });
    }
  }
}

}  // namespace
}  // namespace ranklab
