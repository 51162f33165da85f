// What the attention probe measures of heads whose scores are known.
#include "core/runtime/sentinels/attention_probe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/nn/attention/softmax_attention.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// All scores 0, two keys for the only query that is probed: the keys share evenly what a sink of log 6 leaves, a
// quarter; one of log 2 leaves half.
TEST(AttentionProbe, TheSharesOfSinksAndKeys) {
  const at::Tensor zeros = at::zeros({1, 2, 2, 4}, at::kDouble);
  AttentionProbe probe;
  probe.attention_heads("layers.3.attention", zeros, zeros,
                        {.sinks = at::tensor({std::log(6.0), std::log(2.0)}, at::kDouble)});
  const AttentionProbe::Seen& seen = probe.seen().at(3);
  EXPECT_EQ(seen.queries, 2);
  EXPECT_NEAR(seen.sink, 0.75 + 0.5, 1e-12);
  EXPECT_NEAR(seen.entropy, 2 * std::log(2.0), 1e-12);
  EXPECT_NEAR(seen.share, 2, 1e-12);
}

}  // namespace
}  // namespace ranklab
