#include "core/runtime/pipeline/step_batches.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

template <typename Is>
bool has_stage(StepContext& c, const Schedule& schedule, const Is& is) {
  return std::ranges::any_of(schedule.stages_of(c.ctx.coordinate(Axis::kPp)), is);
}

bool has_last_stage(StepContext& c, const Schedule& schedule) {
  return has_stage(c, schedule, [&](int stage) { return schedule.is_last(stage); });
}

bool needs_tokens(StepContext& c, const Schedule& schedule) {
  return c.data.marks_documents() || has_stage(c, schedule, [&](int stage) {
           return schedule.is_first(stage) || schedule.is_last(stage) || schedule.part(stage) == c.plan.mtp_stage;
         });
}

void check_documents(StepContext& c, const Batch& batch) {
  const bool others_know = c.data.marks_documents() || c.ctx.size(Axis::kPp) == 1;
  RANKLAB_CHECK(batch.documents == nullptr || others_know, ErrorKind::kInvalidArgument, .where = "data",
                .what = "a batch has documents, which stages in the middle of the pipeline would not see",
                .got = "Batch::documents, and RankData::marks_documents() is false", .want = "true",
                .fix = "override it in your RankData");
}

// Ranks of one tp and cp group load the same samples; stages process different microbatches at the same time.
void type_batch(const Batch& batch) {
  TypeWatch* watch = type_watch_of_thread;
  if (watch == nullptr) return;
  for (const at::Tensor& tensor : {batch.tokens_BS, batch.targets_BS})
    if (tensor.defined()) watch->is_same_over(tensor, {Axis::kTp, Axis::kCp});
}

int64_t local_tokens(StepContext& c, const Batch& batch) {
  if (c.data.global_tokens_per_batch()) return batch.targets_BS.numel();
  const NoCostScope free;
  return count_targets(batch);
}

}  // namespace

int64_t count_targets(const Batch& batch) { return batch.targets_BS.ne(-100).sum().item<int64_t>(); }

std::vector<Batch> load_batches(StepContext& c, const Schedule& schedule,
                                const std::function<Batch(int64_t microbatch)>& load_batch) {
  const NoCostScope free;
  const bool loads = needs_tokens(c, schedule);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < schedule.num_microbatches; ++i) {
    if (loads) {
      batches.push_back(load_batch(i));
      check_documents(c, batches.back());
      type_batch(batches.back());
      continue;
    }
    const int64_t before = c.ctx.coordinate(Axis::kDp) * schedule.num_microbatches + i;
    batches.push_back(
        {.tokens_BS = {}, .targets_BS = {}, .first_sample = before * c.plan.micro_batch_size, .step = c.step});
  }
  return batches;
}

int64_t tokens_of_losses(StepContext& c, const Schedule& schedule, const std::vector<Batch>& batches) {
  int64_t tokens = 0;
  for (const int stage : schedule.stages_of(c.ctx.coordinate(Axis::kPp))) {
    for (int i = 0; i < schedule.num_microbatches; ++i) {
      if (schedule.is_last(stage) && schedule.passes(stage, i))
        tokens += local_tokens(c, batches[static_cast<size_t>(i)]);
    }
  }
  return tokens;
}

int64_t tokens_of_gradient(StepContext& c, const Schedule& whole, const std::vector<Batch>& batches) {
  const int64_t groups = c.plan.gradient_groups();
  if (const auto known = c.data.global_tokens_per_batch())
    return (c.plan.ramp.grows() ? *known / c.plan.ramp.whole * c.plan.sequences_of(c.step) : *known) / groups;
  if (!has_last_stage(c, whole)) return 1;  // no loss here
  int64_t local = 0;
  for (const Batch& batch : batches) local += local_tokens(c, batch);
  const at::Tensor count = at::scalar_tensor(local, at::TensorOptions(at::kLong).device(c.ctx.control_device()));
  // The dp peers of a last stage are last stages, too, and have all of their microbatches.
  // Context-parallel ranks, which belong to a DiLoCo replica, count the same targets.
  const int64_t total = groups > 1
                            ? c.ctx.comm(Axis::kDpShard).all_reduce(count).item<int64_t>() / c.ctx.size(Axis::kCp)
                            : c.ctx.comm(Axis::kDp).all_reduce(count).item<int64_t>();
  RANKLAB_CHECK(total > 0, ErrorKind::kInvalidArgument, .where = "step " + std::to_string(c.step),
                .what = "no token of the global batch has a target", .got = "0",
                .want = "at least one target that is not -100");
  return total;
}

}  // namespace ranklab
