#include "cli/train/json_hook.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common/interrupt.h"
#include "cli/common/json_output.h"
#include "cli/common/stdout_text.h"
#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/config/batch_choice.h"
#include "core/config/traced_steps.h"
#include "core/runtime/record/run_log.h"

namespace ranklab {
namespace {

class JsonHook : public Hook {
 public:
  explicit JsonHook(ConsoleOptions options) : options_(std::move(options)) {}

  void on_train_begin(const RunPlan& plan, const TrainInfo& info) override {
    config_ = plan.config;
    first_ = info.first_step;
    end_ = steps_of_run(plan);
  }
  void on_step_end(const StepMetrics& m) override {
    if (m.step % options_.log_interval == 0 || m.step + 1 == end_) print(metrics_json(m) + "\n");
    const auto begins = [](const SentinelAlarm& alarm) { return alarm.begins; };
    if (m.sentinels && std::ranges::any_of(m.sentinels->alarms, begins))
      print(sentinels_json(m.step, *m.sentinels) + "\n");
  }
  void on_checkpoint(const CheckpointNote& note) override { print(checkpoint_json(note) + "\n"); }
  void on_validation(int64_t step, double loss) override { print(validation_json(step, loss) + "\n"); }
  void on_train_end(const TrainResult& result) override {
    if (!result.stopped.empty()) return;  // the error object is printed instead of a result
    const bool traced = traces_a_step(config_, first_, result.steps_done) && is_there(options_.trace_path);
    const nlohmann::ordered_json data = {
        {"steps_done", result.steps_done},     {"interrupted", result.interrupted},
        {"first_loss", result.first_loss},     {"last_loss", result.last_loss},
        {"total_wall_s", result.total_wall_s}, {"sample", result.sample},
        {"log_dir", options_.log_dir},         {"trace", traced ? options_.trace_path : ""}};
    if (result.interrupted) return print(json_interrupted(data));
    std::vector<std::string> warnings = options_.lost->said();
    if (const std::string none = no_step_text(config_, first_, result.steps_done); !none.empty())
      warnings.push_back("trace: " + none);
    print(json_result(data, warnings, -1));
  }

 private:
  void print(const std::string& line) const {
    std::fputs(line.c_str(), stdout);
    if (const std::string lost = lost_text(stdout); !lost.empty() && !reader_is_gone())
      options_.lost->note("stdout", lost);
  }
  ConsoleOptions options_;
  TrainConfig config_;
  int64_t first_ = 0, end_ = 0;
};

}  // namespace

std::string json_interrupted(const nlohmann::ordered_json& data) {
  const int code = interrupt_exit_code();
  const Error interrupted(ErrorKind::kInterrupted, {.where = "ranklab train",
                                                    .what = code == 143 ? "terminated" : "interrupted by Ctrl-C",
                                                    .fix = "log and trace hold what was done"});
  return json_error(interrupted, data, code);
}

std::string json_interrupted() { return json_interrupted(nlohmann::ordered_json()); }

std::shared_ptr<Hook> make_json_hook(ConsoleOptions options) { return std::make_shared<JsonHook>(std::move(options)); }

}  // namespace ranklab
