#include "core/runtime/checkpoint/manager.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <mutex>
#include <span>
#include <utility>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/injected_bug.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/checkpoint/run_folder.h"
#include "core/checkpoint/run_lock.h"
#include "core/runtime/checkpoint/choice.h"
#include "core/runtime/checkpoint/restore.h"
#include "core/runtime/checkpoint/saver.h"
#include "core/runtime/record/trace_span.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

class NoCheckpoints : public CheckpointManager {
 public:
  int64_t load(StepContext&) override { return 0; }
  void save(StepContext&, int64_t) override {}
};

// Where a run starts: equal on all of its ranks.
struct Start {
  int64_t step = -1;  // step of the checkpoint; -1: none
  int64_t first_step = 0;
  int64_t first_sample = 0;
  int64_t token = 0;
  int64_t there = 0;  // 1: the checkpoint is already in the folder of --save
};

class RunCheckpoints : public CheckpointManager {
 public:
  RunCheckpoints(const World& world, const RunPlan& plan, const std::map<std::string, std::string>& data,
                 std::string tokenizer, FileCalls& calls)
      : config_(plan.config),
        data_(data),
        tokenizer_(std::move(tokenizer)),
        calls_(calls),
        local_ranks_(world.local_ranks()),
        leads_(world.has_rank_zero()) {
    if (!leads_) return;
    if (!config_.save_dir.empty()) {
      make_run_folder(config_.save_dir);
      lock_ = std::make_unique<RunLock>(config_.save_dir);
      remove_leftovers(config_.save_dir, calls_);
    }
    choice_ = choose_checkpoint(plan, data_);
    start_.token = wall_now_ns() ^ (int64_t{::getpid()} << 40);
    if (!choice_.checkpoint) return;
    const CheckpointManifest& manifest = choice_.checkpoint->manifest();
    warn_of_other_tokens(manifest);
    if (tokenizer_.empty()) tokenizer_ = choice_.checkpoint->tokenizer();
    start_.step = manifest.step;
    if (config_.finetune) return;
    const DataCursor cursor = data_cursor(choice_, config_.finetune);
    start_.first_step = cursor.step;
    start_.first_sample = cursor.samples;
    choice_.text += other_training(manifest, config_) + other_gemm(manifest, config_);
    std::error_code ignored;
    start_.there = std::filesystem::equivalent(choice_.checkpoint->folder(),
                                               config_.save_dir + "/" + step_folder_name(start_.step), ignored)
                       ? 1
                       : 0;
  }

  DataCursor start(RankContext& ctx) override {
    settle(ctx);
    return {.step = start_.first_step, .samples = start_.first_sample};
  }

  int64_t load(StepContext& context) override {
    if (choice_.checkpoint) {
      const Restored restored = restore(*choice_.checkpoint, context, config_.finetune);
      if (context.ctx.global_rank() == 0) choice_.text += notes_of(restored);
    }
    const bool restarts = injected(InjectedBug::kResumeRestartsData);
    context.data.seek(start_.first_step, restarts ? 0 : start_.first_sample);
    return start_.first_step;
  }

  void after_step(StepContext& context, int64_t done) override {
    if (!saver_) return;
    saver_->check();
    if (config_.save_interval > 0 && done % config_.save_interval == 0) begin_save(context, done);
  }

  void save(StepContext& context, int64_t done) override {
    if (!saver_) return;
    const bool saved = config_.save_interval > 0 && done > start_.first_step && done % config_.save_interval == 0;
    if (!saved && !(done == start_.first_step && start_.there)) begin_save(context, done);
    saver_->wait_for(done);
    saver_->wait_for_earlier(done);
  }

  std::string loaded() const override { return choice_.text; }
  std::vector<CheckpointNote> take_notes() override {
    return saver_ ? saver_->take_notes() : std::vector<CheckpointNote>();
  }

 private:
  void warn_of_other_tokens(const CheckpointManifest& manifest) const {
    const std::string hash = tokenizer_.empty() ? "" : xxh3_text(xxh3(std::as_bytes(std::span(tokenizer_))));
    const std::string warning = other_tokens(manifest, config_, hash);
    if (!warning.empty()) log_warning(warning);
  }

  static std::string notes_of(const Restored& restored) {
    std::string text;
    if (restored.missing_moments > 0)
      text += "; it has no optimizer states for " + std::to_string(restored.missing_moments) +
              " tensors, which begin at zero";
    if (restored.new_histories > 0)
      text += "; it has no such amax histories for " + std::to_string(restored.new_histories) +
              " modules, which begin at zero";
    for (const std::string& change : restored.converted) text += "; " + change;
    return text;
  }

  // Other processes receive rank 0's choice; the first rank of each process creates what its ranks share.
  void settle(RankContext& ctx) {
    if (local_ranks_ < ctx.world_size()) start_ = from_rank_zero(ctx);
    const std::lock_guard lock(mutex_);
    if (std::exchange(settled_, true)) return;
    if (!leads_ && start_.step >= 0) choice_.checkpoint = std::make_shared<Checkpoint>(folder_of(start_.step));
    if (config_.save_dir.empty()) return;
    saver_ = std::make_unique<CheckpointSaver>(
        SaverOptions{.run_folder = config_.save_dir,
                     .token = strprintf("%016llx", static_cast<unsigned long long>(start_.token)),
                     .world_size = ctx.world_size(),
                     .local_ranks = local_ranks_,
                     .leads = leads_,
                     .keep_last = config_.keep_last,
                     .tokenizer = tokenizer_,
                     .part_limit_s = config_.hang_timeout_s + 60,
                     .calls = &calls_});
  }

  Start from_rank_zero(RankContext& ctx) const {
    const NoCostScope no_cost;
    const at::Tensor mine =
        at::tensor({start_.step, start_.first_step, start_.first_sample, start_.token, start_.there}, at::kLong);
    const at::Tensor its = ctx.comm(Axis::kWorld).broadcast(mine.to(ctx.device()), 0).to(at::kCPU);
    const auto* value = its.const_data_ptr<int64_t>();
    return {.step = value[0], .first_step = value[1], .first_sample = value[2], .token = value[3], .there = value[4]};
  }

  std::string folder_of(int64_t step) const {
    const std::string root = config_.load == "auto" ? config_.save_dir : config_.load;
    return is_checkpoint(root) ? root : root + "/" + step_folder_name(step);
  }

  CheckpointManifest head(const StepContext& context, int64_t done) const {
    const RunPlan& plan = context.plan;
    const BatchRamp ramp = plan.ramp.grows() ? plan.ramp : BatchRamp{.whole = plan.config.global_batch_size};
    CheckpointManifest manifest{
        .step = done,
        .updates = context.optimizer.updates(),
        .consumed_samples = start_.first_sample + ramp.samples_before(done) - ramp.samples_before(start_.first_step)};
    if (const SkippedSteps skipped = context.optimizer.skipped(); skipped.steps > 0)
      manifest.skipped_samples = skipped.samples;
    describe_run(context.plan, data_, manifest);
    if (std::isfinite(context.loss)) manifest.metrics["loss"] = context.loss;
    if (context.sentinels != nullptr) {
      manifest.sentinels = context.sentinels->running_values();
      std::erase_if(manifest.sentinels, [](const auto& value) { return !std::isfinite(value.second); });
    }
    if (const LossScaler* scaler = context.optimizer.loss_scaler()) {
      manifest.loss_scale = {{"scale", scaler->state().scale},
                             {"clean_steps", static_cast<double>(scaler->state().clean_steps)},
                             {"skipped_steps", static_cast<double>(scaler->state().skipped_steps)}};
    }
    return manifest;
  }

  void begin_save(StepContext& context, int64_t done) {
    const TraceSpan span(context.ctx, EventKind::kPhase, "checkpoint");
    const int64_t begin_ns = wall_now_ns();
    saver_->wait_for_earlier(done);
    RankSnapshot snapshot = take_snapshot(context);
    std::optional<SaveHead> head;
    if (context.ctx.global_rank() == 0) {
      head = {.manifest = this->head(context, done),
              .begin_ns = begin_ns,
              .stalled_ns = wall_now_ns() - begin_ns,
              .ranks_wait = !config_.async_save};
    }
    saver_->submit(done, std::move(snapshot), std::move(head));
    if (!config_.async_save) saver_->wait_for(done);
  }

  const TrainConfig config_;
  const std::map<std::string, std::string> data_;
  std::string tokenizer_;
  FileCalls& calls_;
  const int local_ranks_;
  const bool leads_;
  std::unique_ptr<RunLock> lock_;  // released after the last file is written
  CheckpointChoice choice_;
  Start start_;
  std::mutex mutex_;
  bool settled_ = false;
  std::unique_ptr<CheckpointSaver> saver_;
};

}  // namespace

std::shared_ptr<CheckpointManager> no_checkpoints() { return std::make_shared<NoCheckpoints>(); }

std::shared_ptr<CheckpointManager> make_checkpoint_manager(const World& world, const RunPlan& plan,
                                                           const std::map<std::string, std::string>& data,
                                                           const std::string& tokenizer, FileCalls& calls) {
  if (plan.config.save_dir.empty() && plan.config.load.empty()) return no_checkpoints();
  return std::make_shared<RunCheckpoints>(world, plan, data, tokenizer, calls);
}

}  // namespace ranklab
