// One training run as started by the commands `train` and `debug`: validated settings, a world, an engine with its
// hooks. If its ranks are threads of this process, a run can be watched: a stepper can pause it, and a live feed sends
// viewers what it records. Thread rule: one thread at a time.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/config/config_options.h"
#include "core/comm/world.h"
#include "core/live/live_feed.h"
#include "core/live/stepper.h"
#include "core/runtime/hooks.h"
#include "core/runtime/observe/lost_outputs.h"
#include "core/runtime/record/trace_file.h"

namespace ranklab {

class Error;
class RunRecordHook;
class RuntimeEngine;

struct TrainRunOptions {
  bool json = false;                      // stdout is for JSON
  bool watched = false;                   // run with a stepper and a live feed
  bool start_paused = false;              // paused at the first boundaries
  bool progress = true;                   // a progress bar on a terminal
  std::string command = "ranklab train";  // for messages
};

class TrainRun {
 public:
  // Checks the settings and makes the world; no rank starts. From here on Ctrl-C is handled (cli/common/interrupt.h).
  TrainRun(const ConfigOptions& options, TrainRunOptions how);
  ~TrainRun();

  const RunPlan& plan() const { return *plan_; }
  // The folder of log, metrics and trace, created on the first call.
  const std::string& log_dir();
  // Null unless watched.
  const std::shared_ptr<Stepper>& stepper() const { return stepper_; }
  const std::shared_ptr<LiveFeed>& live_feed() const { return live_feed_; }
  void add_hook(std::shared_ptr<Hook> hook) { hooks_.push_back(std::move(hook)); }
  // Ends the run after the current step. From any thread.
  void stop() { stopping_ = true; }

  // Runs to the end. RETURNS: the process's exit code: 0, 9 if an output was lost, or 130 / 143 after a signal. Throws
  // what a rank threw, also after a signal, unless the error only says that peers have left. Ends the live feed and the
  // stepper in any case.
  int run();

 private:
  void make_the_world(const ConfigOptions& options);
  int fit();
  void record_error(const Error& error);
  void add_hooks(RuntimeEngine& engine, const std::string& gemm);

  TrainRunOptions how_;
  std::unique_ptr<RunPlan> plan_;
  std::map<std::string, std::string> origins_;  // where each setting comes from
  std::shared_ptr<World> world_;
  std::shared_ptr<Stepper> stepper_;
  std::shared_ptr<LiveFeed> live_feed_;
  std::vector<std::shared_ptr<Hook>> hooks_;
  std::shared_ptr<LostOutputs> lost_ = std::make_shared<LostOutputs>();
  std::shared_ptr<TraceWriterHook> trace_;  // in rank 0's process, unless disabled
  std::shared_ptr<RunRecordHook> record_;   // in rank 0's process
  std::atomic<bool> stopping_{false};
  std::string log_dir_;
};

}  // namespace ranklab
