#include "core/runtime/observe/lost_outputs.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

class ForgivenHook : public Hook {
 public:
  ForgivenHook(std::shared_ptr<Hook> hook, std::string output, std::shared_ptr<LostOutputs> lost)
      : hook_(std::move(hook)), output_(std::move(output)), lost_(std::move(lost)) {}

  // Errors are not forgiven here, because nothing is lost yet: a run that cannot even start its log is refused.
  void on_train_begin(const RunPlan& plan, const TrainInfo& info) override { hook_->on_train_begin(plan, info); }
  void on_step_begin(int64_t step) override {
    forgive([&] { hook_->on_step_begin(step); });
  }
  void on_step_end(const StepMetrics& metrics) override {
    forgive([&] { hook_->on_step_end(metrics); });
  }
  void on_validation(int64_t step, double loss) override {
    forgive([&] { hook_->on_validation(step, loss); });
  }
  void on_checkpoint(const CheckpointNote& note) override {
    forgive([&] { hook_->on_checkpoint(note); });
  }
  void on_traces(const TracePiece& traces) override {
    forgive([&] { hook_->on_traces(traces); });
  }
  void on_train_end(const TrainResult& result) override {
    forgive([&] { hook_->on_train_end(result); });
  }

 private:
  template <typename Call>
  void forgive(const Call& call) {
    lost_->forgive(output_, call);
  }
  std::shared_ptr<Hook> hook_;
  std::string output_;
  std::shared_ptr<LostOutputs> lost_;
};

}  // namespace

void LostOutputs::note(const std::string& output, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  const bool known =
      std::any_of(outputs_.begin(), outputs_.end(), [&](const auto& one) { return one.first == output; });
  if (known) return;
  outputs_.emplace_back(output, reason);
  log_error(reason + strprintf(" (the run continues and ends with exit code %d)", exit_code(ErrorKind::kOutputLost)));
}

std::vector<std::string> LostOutputs::said() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [output, reason] : outputs_) out.push_back(reason);
  return out;
}

std::shared_ptr<Hook> without_ending_the_run(std::shared_ptr<Hook> hook, std::string output,
                                             std::shared_ptr<LostOutputs> lost) {
  return std::make_shared<ForgivenHook>(std::move(hook), std::move(output), std::move(lost));
}

}  // namespace ranklab
