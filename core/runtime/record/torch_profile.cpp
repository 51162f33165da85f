#include "core/runtime/record/torch_profile.h"

#include <ATen/Context.h>
#include <kineto/libkineto.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/config/batch_choice.h"
#include "core/config/traced_steps.h"

namespace ranklab {
namespace {

namespace profiler = torch::profiler::impl;

// Starts Kineto before PyTorch does so in the first recorded step. It wants to be started on the thread that loaded
// LibTorch, and says so on stderr from a rank's thread; and it reports a missing GPU as an error. Its level of messages
// is read from the environment when it starts, where a user's own one stays.
void start_without_gpu() {
  constexpr const char* kLevel = "KINETO_LOG_LEVEL";
  constexpr const char* kNothing = "5";  // above its errors
  if (libkineto::api().isProfilerRegistered()) return;
  const bool given = std::getenv(kLevel) != nullptr;
  if (!given) ::setenv(kLevel, kNothing, /*overwrite=*/0);
  libkineto_init(/*cpuOnly=*/!at::hasCUDA(), /*logOnError=*/true);
  libkineto::api().initProfilerIfRegistered();
  if (!given) ::unsetenv(kLevel);
}

class TorchProfileHook : public Hook {
 public:
  explicit TorchProfileHook(std::string path) : path_(std::move(path)) {}

  void on_train_begin(const RunPlan& plan, const TrainInfo& info) override {
    const int64_t steps = steps_of_run(plan);
    steps_ = traced_steps(plan.config, info.first_step);
    RANKLAB_CHECK(
        steps_.first < steps, ErrorKind::kInvalidArgument, .where = "--profile",
        .what = "the steps to profile come after the last one",
        .got = "--profile-step-start " + std::to_string(steps_.first) + ", --train-iters " + std::to_string(steps),
        .want = "a start below " + std::to_string(steps), .fix = "lower it, or raise --train-iters");
    steps_.end = std::min(steps_.end, steps);
    RANKLAB_CHECK(steps_.end > info.first_step, ErrorKind::kInvalidArgument, .where = "--profile",
                  .what = "the steps to profile come before the first one of this run",
                  .got = "--profile-step-end " + std::to_string(steps_.end) + ", and the run resumes at step " +
                         std::to_string(info.first_step),
                  .want = "a later end", .fix = "raise it, or leave both ends out: the run's own first steps");
    steps_.first = std::max(steps_.first, info.first_step);
  }

  void on_step_begin(int64_t step) override {
    if (step != steps_.first) return;
    const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO, /*report_input_shapes=*/true);
    const std::set<profiler::ActivityType> activities = {profiler::ActivityType::CPU, profiler::ActivityType::CUDA};
    torch::autograd::profiler::prepareProfiler(config, activities);
    torch::autograd::profiler::enableProfiler(config, activities);
    recording_ = true;
  }

  void on_step_end(const StepMetrics& m) override {
    if (recording_ && m.step + 1 >= steps_.end) save();
  }

 private:
  void save() {
    recording_ = false;
    const std::string part = path_ + ".part";
    // Kineto writes the file itself and reports no errors.
    torch::autograd::profiler::disableProfiler()->save(part);
    std::error_code failed;
    std::filesystem::rename(part, path_, failed);
    RANKLAB_CHECK(!failed, ErrorKind::kIo, .where = "profile", .what = "cannot write the profile",
                  .got = path_ + ": " + failed.message(), .want = "a folder with free space that can be written",
                  .fix = "use another --log-dir");
  }

  std::string path_;
  TracedSteps steps_;
  bool recording_ = false;
};

}  // namespace

std::shared_ptr<Hook> make_torch_profile_hook(std::string path, bool on_gpu) {
  if (!on_gpu) start_without_gpu();
  return std::make_shared<TorchProfileHook>(std::move(path));
}

}  // namespace ranklab
