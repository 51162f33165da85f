#include "tests/support/uneven_batches.h"

#include <algorithm>

#include "core/base/numbers/philox.h"
#include "core/runtime/provide.h"
#include "core/sim/aten.h"

namespace ranklab {

Batch uneven_batch(const RankContext& ctx, const RunPlan& plan, int64_t step, int64_t first_sample, int64_t count) {
  const int64_t seq = plan.config.model.seq_length;
  const DocumentSettings& documents = plan.config.documents;
  const RandomStream stream(99, RandomPurpose::kTest, "tokens", static_cast<uint64_t>(step));
  at::Tensor tokens = at::empty({count, seq + 1}, at::kLong);
  at::Tensor ignored = at::zeros({count, seq}, at::kBool);
  for (int64_t b = 0; b < count; ++b) {
    const int64_t sample = first_sample + b;
    int64_t* row = tokens.mutable_data_ptr<int64_t>() + b * (seq + 1);
    for (int64_t s = 0; s <= seq; ++s) {
      const auto element = static_cast<uint64_t>(sample * (seq + 1) + s);
      row[s] = static_cast<int64_t>(stream.below(element, static_cast<uint64_t>(plan.config.model.vocab_size)));
      if (documents.any() && row[s] % 4 == 0) row[s] = documents.eod_token;  // documents have four tokens on average
    }
    const int64_t counted = seq - sample * seq / std::max<int64_t>(1, plan.sequences_of(step) - 1);
    ignored[b].narrow(0, counted, seq - counted).fill_(true);
  }
  return {.tokens_BS = tokens.narrow(1, 0, seq).contiguous().to(ctx.device()),
          .targets_BS = tokens.narrow(1, 1, seq).masked_fill(ignored, -100).to(ctx.device()),
          .first_sample = first_sample,
          .step = step};
}

std::shared_ptr<DataProvider> uneven_batches() {
  return provide_data("uneven batches", [](const RankContext& ctx, const RunPlan& plan, int64_t step, int64_t mb) {
    const int64_t first = (ctx.coordinate(Axis::kDp) * plan.microbatches_of(step) + mb) * plan.micro_batch_size;
    return uneven_batch(ctx, plan, step, first, plan.micro_batch_size);
  });
}

}  // namespace ranklab
