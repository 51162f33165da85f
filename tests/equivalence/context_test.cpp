// Context parallelism in fp32, where the sums over the blocks of other ranks' keys are in another order than on one
// rank (tier T: 1e-6 after one step, 1e-5 after ten), and what it is for: a rank's activations are 1/cp of a
// sequence's. In fp64 every split is factorizations_test.cpp's; attention alone is
// tests/parallel/context_attention_test.cpp's, heads that are exchanged bit for bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/sim/memory_scope.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

TrainConfig context_config(int cp, ContextSplit split) {
  TrainConfig c = small_config();
  c.parallel = {.world = cp, .cp = cp};
  c.context_split = split;
  c.trace = false;
  return c;
}

class ContextInFp32 : public ::testing::TestWithParam<ContextExchange> {};

TEST_P(ContextInFp32, IsOneRankWithinRounding) {
  for (const std::string variant : {"llama_gqa", "some_windows"}) {
    // A norm whose gradient nearly cancels over the tokens is 1.01e-6 apart with GCC 14.
    const double first = variant == "some_windows" ? 2e-6 : 1e-6;
    TrainConfig alone = context_config(1, {});
    variant_named(variant).change(alone.model);
    alone.model.num_layers = 2;
    alone.model.num_attention_heads = 8;
    alone.params_dtype = "fp32";
    alone.train_iters = 10;
    alone.lr = 3e-4;
    alone.adam_eps = 1e-4;  // a gradient that is little but rounding makes no step of its size
    alone.global_batch_size = 4;
    const TrainingRecord want = record_training(alone, {.data = uneven_batches()});
    for (const int cp : {2, 8}) {
      for (const SequenceBalance balance :
           {SequenceBalance::kContiguous, SequenceBalance::kZigzag, SequenceBalance::kStripe}) {
        SCOPED_TRACE(variant + ", cp " + std::to_string(cp) + ", " + std::string(name(balance)));
        TrainConfig config = alone;
        config.parallel = {.world = cp, .cp = cp};
        config.context_split = {GetParam(), balance};
        expect_same_training(record_training(config, {.data = uneven_batches()}), want,
                             {.first = first, .later = 1e-5, .loss = 1e-5, .norm = 1e-5});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(T, ContextInFp32,
                         ::testing::Values(ContextExchange::kP2p, ContextExchange::kAllGather,
                                           ContextExchange::kAllToAll),
                         [](const auto& one) { return std::string(name(one.param)); });

// Whatever the exchange of softmax attention, linear attention exchanges heads. In fp64: its recurrence rounds more
// often than attention does.
TEST(ContextInFp64, LinearAttentionAndOutputGatesAreOneRank) {
  for (const std::string variant : {"delta_net", "mamba", "output_gate"}) {
    TrainConfig alone = context_config(1, {});
    alone.model.num_layers = 2;
    alone.model.num_attention_heads = 8;
    variant_named(variant).change(alone.model);
    alone.params_dtype = "fp64";
    alone.train_iters = 3;
    alone.global_batch_size = 4;
    const TrainingRecord want = record_training(alone, {.data = uneven_batches()});
    for (const ContextSplit& split : {ContextSplit{ContextExchange::kP2p, SequenceBalance::kZigzag},
                                      ContextSplit{ContextExchange::kAllGather, SequenceBalance::kStripe},
                                      ContextSplit{ContextExchange::kAllToAll, SequenceBalance::kContiguous}}) {
      for (const int cp : {2, 4}) {
        SCOPED_TRACE(variant + ", cp " + std::to_string(cp) + ", " + std::string(name(split.exchange)));
        TrainConfig config = alone;
        config.parallel = {.world = cp, .cp = cp};
        config.context_split = split;
        expect_same_training(record_training(config, {.data = uneven_batches()}), want, kRounding);
      }
    }
  }
}

int64_t peak_of(const TrainingRecord& record) {
  return std::ranges::max_element(record.peak_activation_bytes, {}, [](const auto& one) { return one.second; })->second;
}

TrainConfig long_config(int cp, ContextExchange exchange) {
  TrainConfig c = context_config(cp, {exchange, SequenceBalance::kZigzag});
  c.params_dtype = "fp32";
  c.global_batch_size = 1;
  return c;
}

double peak_of(int cp, ContextExchange exchange) {
  TrainConfig config = long_config(cp, exchange);
  config.model.num_layers = 2;
  config.model.hidden_size = 64;
  config.model.num_attention_heads = 8;
  config.model.seq_length = 2048;
  config.train_iters = 1;
  return static_cast<double>(peak_of(record_training(config)));
}

// The table of docs/parallelism.md, whose sequences are longer. Apart from its part a rank has the blocks of the
// kernels, which are of one size, and after a gather one layer's keys and values, and their gradients, whole.
TEST(ContextMemory, ARankHoldsItsPartOfASequence) {
  install_booking_allocator();
  const double alone = peak_of(1, ContextExchange::kP2p);
  for (const auto& [exchange, blocks] : {std::pair{ContextExchange::kP2p, 0.02}, {ContextExchange::kAllToAll, 0.08}}) {
    SCOPED_TRACE(std::string(name(exchange)));
    const double of_two = peak_of(2, exchange);
    EXPECT_LT(of_two, 0.65 * alone);
    EXPECT_NEAR(peak_of(8, exchange) / of_two, 2.0 / 8, blocks);
  }
  const double whole = peak_of(8, ContextExchange::kAllGather) - peak_of(8, ContextExchange::kP2p);
  EXPECT_NEAR(whole / (4 * 2048 * 64 * 4), 1, 0.25);
}

// With a window, so that a test may do it: the whole triangle of 64k queries and keys takes half a minute.
TEST(ContextMemory, SixtyFourThousandTokensTrain) {
  install_booking_allocator();
  TrainConfig config = long_config(8, ContextExchange::kP2p);
  config.model.num_layers = 1;
  config.model.hidden_size = 16;
  config.model.ffn_hidden_size = 32;
  config.model.num_attention_heads = 1;
  config.model.seq_length = 65536;
  config.model.window_size = 256;
  const TrainingRecord record = record_training(config);
  EXPECT_LT(record.losses().back(), record.losses().front());
  EXPECT_LT(peak_of(record), int64_t{40} << 20);
}

}  // namespace
}  // namespace ranklab
