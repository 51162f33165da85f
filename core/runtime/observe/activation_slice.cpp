#include "core/runtime/observe/activation_slice.h"

#include "core/spec/sequence_part.h"

namespace ranklab {

std::optional<ActivationSlice> activation_slice(const RunPlan& plan, const RankContext& ctx, int64_t step,
                                                int microbatch, int64_t rows, int64_t sequences) {
  const int64_t length = plan.config.model.seq_length, cp = ctx.size(Axis::kCp), tp = ctx.size(Axis::kTp);
  if (sequences != plan.micro_batch_size) return {};
  const int64_t own = length / cp;
  const bool shared = rows * tp == own && plan.sequence_parallel && tp > 1;
  if (rows != own && !shared) return {};
  ActivationSlice slice{.positions = positions_of(sequence_part(length, static_cast<int>(cp), ctx.coordinate(Axis::kCp),
                                                                plan.config.context_split.balance))};
  if (shared) {
    const auto first = slice.positions.begin() + ctx.coordinate(Axis::kTp) * rows;
    slice.positions = {first, first + rows};
  }
  slice.first_sequence = (ctx.coordinate(Axis::kDp) * plan.microbatches_of(step) + microbatch) * plan.micro_batch_size;
  slice.end_sequence = slice.first_sequence + plan.micro_batch_size;
  return slice;
}

}  // namespace ranklab
