#include "core/runtime/trainer.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace ranklab {

// What the loop's thread and the run's threads share.
struct Trainer::Run {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<StepMetrics> given;  // a step that the loop has not taken yet
  bool wanted = false;               // the loop waits for a step
  bool stops = false, done = false;
  bool saves = false;        // requested in the body of this step
  int64_t decided = 0;       // number of steps whose body has ended
  int64_t saved_after = -1;  // number of steps done
  std::exception_ptr error;
  TrainResult result;
  std::unique_ptr<RuntimeEngine> engine;
  bool can_save = false;
  std::thread thread;

  std::optional<StepMetrics> next() {
    std::unique_lock lock(mutex);
    wanted = true;
    changed.notify_all();
    changed.wait(lock, [&] { return given || done; });
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
    return std::exchange(given, std::nullopt);
  }

  void end() {
    {
      const std::lock_guard lock(mutex);
      stops = true;
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }
};

namespace {

template <typename Run>
class GiveSteps final : public Hook {
 public:
  explicit GiveSteps(Run& run) : run_(run) {}
  // Called on rank 0, between two steps.
  void on_step_end(const StepMetrics& metrics) override {
    std::unique_lock lock(run_.mutex);
    run_.given = metrics;
    run_.wanted = false;
    run_.changed.notify_all();
    run_.changed.wait(lock, [&] { return run_.wanted || run_.stops; });
    run_.decided = metrics.step + 1;
    if (run_.saves) run_.saved_after = run_.decided;
    run_.saves = false;
    run_.changed.notify_all();
  }

 private:
  Run& run_;
};

// Saves where the loop requested it; all ranks wait for the decision that rank 0's hook received.
template <typename Run>
class AskedCheckpoints final : public CheckpointManager {
 public:
  AskedCheckpoints(std::shared_ptr<CheckpointManager> inner, Run& run) : inner_(std::move(inner)), run_(run) {}
  DataCursor start(RankContext& ctx) override { return inner_->start(ctx); }
  int64_t load(StepContext& context) override { return inner_->load(context); }
  void after_step(StepContext& context, int64_t done) override {
    inner_->after_step(context, done);
    if (asked(done)) inner_->save(context, done);
  }
  void save(StepContext& context, int64_t done) override {
    if (!asked(done)) inner_->save(context, done);
  }
  std::string loaded() const override { return inner_->loaded(); }
  std::vector<CheckpointNote> take_notes() override { return inner_->take_notes(); }

 private:
  bool asked(int64_t done) {
    std::unique_lock lock(run_.mutex);
    run_.changed.wait(lock, [&] { return run_.decided >= done || run_.stops || run_.done; });
    return run_.saved_after == done;
  }
  std::shared_ptr<CheckpointManager> inner_;
  Run& run_;
};

}  // namespace

Trainer::Trainer(RuntimeComponents parts, RunPlan plan) : run_(std::make_unique<Run>()) {
  RANKLAB_CHECK(parts.world != nullptr && parts.world->local_ranks() == parts.world->size(),
                ErrorKind::kInvalidArgument, .where = "Trainer", .what = "a loop needs all ranks in its process",
                .got = parts.world == nullptr ? "no world" : parts.world->describe(), .want = "rank threads",
                .fix = "use RuntimeEngine::fit() with hooks, or make_thread_world()");
  run_->can_save = !plan.config.save_dir.empty();
  parts.checkpoint_manager = std::make_shared<AskedCheckpoints<Run>>(parts.checkpoint_manager, *run_);
  run_->engine = std::make_unique<RuntimeEngine>(std::move(parts), std::move(plan));
  run_->engine->add_hook(std::make_shared<GiveSteps<Run>>(*run_));
  run_->engine->set_stop_request([run = run_.get()] {
    const std::lock_guard lock(run->mutex);
    return run->stops;
  });
}

Trainer::~Trainer() { run_->end(); }

Trainer::Steps Trainer::train(int64_t steps) {
  RANKLAB_CHECK(!run_->thread.joinable(), ErrorKind::kInvalidArgument, .where = "Trainer::train",
                .what = "the run has begun", .got = "a second call", .want = "one loop", .fix = "make another Trainer");
  run_->thread = std::thread([run = run_.get(), steps] {
    std::exception_ptr error;
    TrainResult result;
    try {
      result = run->engine->fit(steps);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(run->mutex);
    run->error = error;
    run->result = std::move(result);
    run->done = true;
    run->changed.notify_all();
  });
  return Steps(*run_);
}

void Trainer::save_checkpoint() {
  RANKLAB_CHECK(run_->can_save, ErrorKind::kInvalidArgument, .where = "Trainer::save_checkpoint",
                .what = "a checkpoint has no folder", .got = "an empty save_dir", .want = "a folder",
                .fix = "set TrainConfig::save_dir");
  const std::lock_guard lock(run_->mutex);
  run_->saves = true;
}

TrainResult Trainer::shutdown() {
  run_->end();
  if (run_->error) std::rethrow_exception(std::exchange(run_->error, nullptr));
  return run_->result;
}

Trainer::Steps::Iterator::Iterator(Run& run) : run_(&run), metrics_(run.next()) {}

Trainer::Steps::Iterator& Trainer::Steps::Iterator::operator++() {
  metrics_ = run_->next();
  return *this;
}

}  // namespace ranklab
