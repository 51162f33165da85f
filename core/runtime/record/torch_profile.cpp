#include "core/runtime/record/torch_profile.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace ranklab {
namespace {

namespace profiler = torch::profiler::impl;

class TorchProfileHook : public Hook {
 public:
  TorchProfileHook(std::string path, int64_t first, int64_t end) : path_(std::move(path)), first_(first), end_(end) {}

  void on_train_begin(const RunPlan& plan, const TrainInfo&) override {
    const int64_t steps = plan.config.train_iters;
    RANKLAB_CHECK(first_ < steps, ErrorKind::kInvalidArgument, .where = "--profile",
                  .what = "the steps to profile come after the last one",
                  .got = "--profile-step-start " + std::to_string(first_) + ", --train-iters " + std::to_string(steps),
                  .want = "a start below " + std::to_string(steps), .fix = "lower it, or raise --train-iters");
    end_ = std::min(end_, steps);
  }

  void on_step_begin(int64_t step) override {
    if (step != first_) return;
    const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO, /*report_input_shapes=*/true);
    const std::set<profiler::ActivityType> activities = {profiler::ActivityType::CPU, profiler::ActivityType::CUDA};
    torch::autograd::profiler::prepareProfiler(config, activities);
    torch::autograd::profiler::enableProfiler(config, activities);
    recording_ = true;
  }

  void on_step_end(const StepMetrics& m) override {
    if (recording_ && m.step + 1 >= end_) save();
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
  int64_t first_, end_;
  bool recording_ = false;
};

}  // namespace

std::shared_ptr<Hook> make_torch_profile_hook(std::string path, int64_t first, int64_t end) {
  return std::make_shared<TorchProfileHook>(std::move(path), first, end);
}

}  // namespace ranklab
