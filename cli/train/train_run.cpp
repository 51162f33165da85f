#include "cli/train/train_run.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "cli/common/interrupt.h"
#include "cli/common/pipeline_text.h"
#include "cli/train/console.h"
#include "cli/train/gemm.h"
#include "cli/train/json_hook.h"
#include "cli/train/run_record.h"
#include "cli/world/adopt_world.h"
#include "cli/world/make_world.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/dump_choice.h"
#include "core/config/requirements.h"
#include "core/parity/watch.h"
#include "core/parity/watch_layer.h"
#include "core/runtime/engine.h"
#include "core/runtime/memory/check.h"
#include "core/runtime/record/run_log.h"
#include "core/runtime/record/tensorboard.h"
#include "core/runtime/record/torch_profile.h"
#include "core/sim/memory_scope.h"
#include "core/trace/find_trace.h"

namespace ranklab {
namespace {

// Initializing a large model takes seconds to minutes before the run prints its first line.
void announce_long_start(const RunPlan& plan) {
  const double weights = static_cast<double>(plan.config.model.parameter_count()) * plan.dp();
  if (!plan.config.can(Capability::kMakesRanks) || weights < 5e7) return;
  std::fprintf(stderr, "making %s weights (%s parameters x %d replicas) ...\n", human_count(weights).c_str(),
               human_count(static_cast<double>(plan.config.model.parameter_count())).c_str(), plan.dp());
}

void report_unwatched_layers(const RunPlan& plan) {
  const std::string why = plan.config.sentinels.parity_interval > 0 ? why_not_alone(plan) : "";
  if (why.empty()) return;
  std::fprintf(stderr,
               "--watch: no layer is computed by one rank alone (parity_layer): %s; ranks' copies are compared\n",
               why.c_str());
}

// A paused run cannot finish its step when Ctrl-C or SIGTERM requests a stop, so the stepper then releases all ranks.
class ReleaseOnSignal {
 public:
  explicit ReleaseOnSignal(Stepper* stepper) {
    if (stepper == nullptr) return;
    thread_ = std::jthread([stepper](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (interrupt_requested()) return stepper->detach();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  }

 private:
  std::jthread thread_;
};

// If this process exits during the run, ranks elsewhere are notified, and the trace is kept up to its last complete
// step.
class NotifyOnExit {
 public:
  NotifyOnExit(std::shared_ptr<World> world, std::shared_ptr<TraceWriterHook> trace) {
    notify_before_exit([world = std::move(world), trace = std::move(trace)](const std::string& why) {
      world->give_up(why);
      if (trace) trace->keep();
    });
  }
  ~NotifyOnExit() { notify_before_exit({}); }
  NotifyOnExit(const NotifyOnExit&) = delete;
  NotifyOnExit& operator=(const NotifyOnExit&) = delete;
};

}  // namespace

TrainRun::TrainRun(const ConfigOptions& options, TrainRunOptions how) : how_(std::move(how)) {
  make_the_world(options);
  install_booking_allocator();
}

TrainRun::~TrainRun() = default;

void TrainRun::make_the_world(const ConfigOptions& options) {
  TrainConfig config = options.config();
  watch_interrupts();
  const ProcessEnv env = read_process_env();
  if (how_.watched) check_command(config, Capability::kHeldRanks, how_.command);
  RANKLAB_CHECK(!how_.watched || env.world_size <= 1, ErrorKind::kInvalidArgument, .where = how_.command,
                .what = "only ranks that are threads of this process can be paused and watched",
                .got = std::to_string(env.world_size) + " processes", .want = "simulated ranks in one process",
                .fix = "start it without launch, mpirun or torchrun");
  if (config.can(Capability::kMakesRanks)) {
    config = launched_config(options, env);
  } else {
    world_ = make_world(config);
    adopt_world(config, world_->size(), options);
  }
  plan_ = std::make_unique<RunPlan>(options.resolve(config));
  check_reached(*plan_);
  origins_ = options.merged().origins;
  if (world_ ? world_->has_rank_zero() : env.rank == 0) options.report_idle(*plan_);
  if (how_.watched) {
    stepper_ = std::make_shared<Stepper>(plan_->mesh.world_size(), how_.start_paused);
    live_feed_ = std::make_shared<LiveFeed>(plan_->mesh.world_size());
  }
  if (world_) return;
  if (env.world_size == 1 || (env.rank == 0 && env.one_host())) check_memory(*plan_, memory_of_ranks(plan_->config));
  world_ = make_world(plan_->config, env, stepper_);
}

const std::string& TrainRun::log_dir() {
  if (log_dir_.empty()) log_dir_ = plan_->config.log_dir.empty() ? default_log_dir() : plan_->config.log_dir;
  return log_dir_;
}

// Adds the hooks of rank 0's process: the user's output, and the files.
void TrainRun::add_hooks(RuntimeEngine& engine, const std::string& gemm) {
  const TrainConfig& config = plan_->config;
  const auto add = [&](std::shared_ptr<Hook> hook, const char* output) {
    engine.add_hook(without_ending_the_run(std::move(hook), output, lost_));
  };
  add(make_run_log_hook(log_dir()), "log");
  add(record_ = make_run_record_hook(log_dir(), origins_), "record");
  if (config.trace) add(trace_ = std::make_shared<TraceWriterHook>(log_dir(), *plan_, run_title(*plan_)), "trace");
  if (config.profile) add(make_torch_profile_hook(log_dir() + "/" + kProfileFileName, config.on_gpu()), "profile");
  if (!config.tensorboard_dir.empty()) add(make_tensorboard_hook(config.tensorboard_dir), "tensorboard");
  const ConsoleOptions console{.log_interval = config.log_interval,
                               .gemm = gemm,
                               .log_dir = log_dir(),
                               .trace_path = config.trace ? trace_path(log_dir()) : "",
                               .out = how_.json ? stderr : stdout,
                               .progress = how_.progress,
                               .lost = lost_};
  engine.add_hook(make_console_hook(console));
  if (how_.json) engine.add_hook(make_json_hook(console));
  for (const auto& hook : hooks_) engine.add_hook(hook);
  report_unwatched_layers(*plan_);
  announce_long_start(*plan_);
}

int TrainRun::fit() {
  const std::string gemm = choose_gemm(*plan_, *world_);
  RuntimeEngine engine(with_parity_watch(default_components(world_, *plan_)), *plan_);
  constexpr std::chrono::seconds kToSave{60};
  if (!plan_->config.save_dir.empty()) give_interrupts(kToSave);
  engine.set_stop_request([this] { return interrupt_requested() || stopping_; });
  engine.set_stepper(stepper_);
  engine.set_live_feed(live_feed_);
  engine.set_lost_outputs(lost_);
  engine.stream_traces();
  if (world_->has_rank_zero()) {
    engine.set_output_folder(log_dir());
    add_hooks(engine, gemm);
  }
  const NotifyOnExit telling(world_, trace_);
  const TrainResult result = engine.fit();
  RANKLAB_CHECK(result.stopped.empty(), ErrorKind::kSentinel, .where = "sentinels", .what = "a sentinel ended the run",
                .got = result.stopped, .want = "a number within its bounds",
                .fix = "see sentinels.jsonl in the run's folder; --sentinel 'NAME stop=none' lets the run continue");
  // If a viewer ended the run, it ended as intended. If another process received a signal, this one has not finished
  // its work.
  if (result.interrupted && (interrupt_requested() || !stopping_)) return interrupt_exit_code();
  return lost_->any() ? exit_code(ErrorKind::kOutputLost) : 0;
}

// If a sentinel ended the run, the record already says so.
void TrainRun::record_error(const Error& error) {
  if (!record_ || error.kind() == ErrorKind::kSentinel) return;
  try {
    record_->on_error(error.what());
  } catch (const Error& lost) {
    lost_->note("record", lost.what());
  }
}

int TrainRun::run() {
  // Viewers and prompts wait for the end of the run; they are notified last.
  struct End {
    TrainRun& run;
    std::string error = {};
    ~End() {
      if (run.live_feed_) run.live_feed_->end(error);
      if (run.stepper_) run.stepper_->end_run();
    }
  } end{*this};
  const ReleaseOnSignal release(stepper_.get());
  try {
    return fit();
  } catch (const Error& error) {
    end.error = error.what();
    // Does not report peers that were ended by the same Ctrl-C, and shows an error only once if rank 0 shows it.
    if (is_caused_by_interrupt(error)) {
      if (how_.json && world_->has_rank_zero()) std::fputs(json_interrupted().c_str(), stdout);
      return interrupt_exit_code();
    }
    record_error(error);
    if (world_->error_is_shown_elsewhere()) return exit_code(error.kind());
    throw;
  }
}

}  // namespace ranklab
