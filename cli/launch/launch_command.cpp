// `ranklab launch`
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>

#include "backends/cpu_sim/backend_row.h"
#include "backends/cpu_sim/transport/socket.h"
#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/config/config_options.h"
#include "cli/launch/launch_group.h"
#include "cli/launch/launch_plan.h"
#include "cli/world/adopt_world.h"
#include "cli/world/make_world.h"
#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/base/process_limit.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/config/dump_choice.h"
#include "core/config/requirements.h"
#include "core/runtime/memory/check.h"
#include "core/runtime/record/run_log.h"

namespace ranklab {
namespace {

struct Launch {
  explicit Launch(CommandLine& command) : app(command), own(add_launch_flags(command, flags)), options(command) {}
  CommandLine& app;
  LaunchFlags flags;
  std::set<const CommandOption*> own;
  ConfigOptions options;
};

// The train options that the user gave, as command-line arguments.
std::vector<std::string> train_arguments(const Launch& launch) {
  std::vector<std::string> out;
  for (const CommandOption* option : launch.app.options()) {
    if (option->count() == 0 || launch.own.contains(option) || option->names().empty()) continue;
    for (const std::string& value : option->results()) out.push_back(option->names()[0] + "=" + value);
  }
  return out;
}

bool trains(const Launch& launch) {
  return launch.flags.program.empty() || (launch.flags.program.size() == 1 && launch.flags.program[0] == "train");
}

// Rejects, once and before any process starts, what every rank would reject.
void check_training(const Launch& launch, const LaunchPlan& plan, TrainConfig config) {
  adopt_world(config, plan.world_size(), launch.options);
  check_processes(config, plan.world_size());
  if (config.can(Capability::kMakesRanks))
    require_descriptors(descriptors_of_rank(plan.first_rank(), plan.world_size()), "launch",
                        std::to_string(plan.world_size()) + " ranks in processes");
  const RunPlan run = launch.options.resolve(config);
  check_reached(run);
  if (config.can(Capability::kMakesRanks) && plan.world_size() > 1)
    check_world(run.config, cpu_sim::kOfProcesses, std::to_string(plan.world_size()) + " rank processes");
  if (config.can(Capability::kMakesRanks) && plan.nodes == 1) check_memory(run);
}

// Checked here, so that the error does not appear once per rank after the fork.
void check_program(const std::string& program) {
  std::vector<std::string> places = {program};
  if (program.find('/') == std::string::npos) {
    places.clear();
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) places.push_back(folder + "/" + program);
  }
  for (const std::string& place : places)
    if (!is_folder(place) && ::access(place.c_str(), X_OK) == 0) return;
  throw Error(ErrorKind::kInvalidArgument, {.where = "launch",
                                            .what = "there is no such program",
                                            .got = quote(program),
                                            .want = "a path, or a name that is found on PATH",
                                            .fix = "to train, leave it out: ranklab launch --nproc-per-node 4 ..."});
}

LaunchPlan make_plan(const Launch& launch, const TrainConfig& config) {
  LaunchPlan plan = plan_launch(launch.flags, config.parallel.world, launch.options.given("parallel.world_size"));
  plan.log_folder = config.log_dir;
  std::vector<std::string> arguments = train_arguments(launch);
  if (!plan.tee.empty() && plan.log_folder.empty()) {
    plan.log_folder = default_log_dir();
    arguments.push_back("--log-dir=" + plan.log_folder);
  }
  if (!trains(launch)) {
    check_program(plan.program[0]);
    return plan;
  }
  check_training(launch, plan, config);
  plan.trains = true;
  plan.saves = !config.save_dir.empty();
  plan.program = {program_path().string(), "train"};
  plan.program.insert(plan.program.end(), arguments.begin(), arguments.end());
  return plan;
}

// Node 0 opens the rendezvous before it starts a rank, so that no one else can take the port in between; rank 0
// inherits it. A program that opens MASTER_PORT itself (c10d's store) gets the number of a port that was free just
// before.
cpu_sim::Socket open_rendezvous(LaunchPlan& plan, bool for_ranklab) {
  if (plan.node_rank != 0 || (!for_ranklab && plan.master_port != 0)) return {};
  const std::string address = cpu_sim::resolve_host(plan.master_addr);
  RANKLAB_CHECK(!plan.token.empty() || cpu_sim::is_loopback(address), ErrorKind::kInvalidArgument,
                .where = "--master-addr", .what = "a rendezvous beyond this host needs a token",
                .got = plan.master_addr + " and no token", .want = "one secret that every node knows",
                .fix = "openssl rand -hex 32 > token, copy it to every node, and pass --rdzv-token-file token");
  cpu_sim::Socket listener = cpu_sim::listen_on(address, plan.master_port);
  plan.master_port = cpu_sim::port_of(listener);
  if (!for_ranklab) listener.close();
  return listener;
}

// Whether a restart may help. In a training run, a rejected setting or a failed check would end the next attempt in the
// same way.
bool may_succeed_on_restart(const LaunchPlan& plan, const GroupEnd& end) {
  return !plan.trains || (end.exit_code != exit_code(ErrorKind::kInvalidArgument) &&
                          end.exit_code != exit_code(ErrorKind::kCheckFailed));
}

int launch(const Launch& given) {
  const TrainConfig config = given.options.config();
  LaunchPlan plan = make_plan(given, config);
  const bool for_ranklab = trains(given) && config.can(Capability::kMakesRanks);
  const cpu_sim::Socket listener = open_rendezvous(plan, for_ranklab);
  for (int restart = 0;; ++restart) {
    const GroupEnd end = LaunchGroup(plan, restart, listener.get()).wait();
    if (!end.story.empty()) std::fprintf(stderr, "ranklab launch: %s\n", end.story.c_str());
    if (!end.failed || end.signal != 0 || restart == plan.max_restarts || !may_succeed_on_restart(plan, end))
      return end.exit_code;
    std::fprintf(stderr, "ranklab launch: restarting all ranks (%d of %d)\n", restart + 1, plan.max_restarts);
  }
}

}  // namespace

CommandAction setup_launch(CommandLine& app) {
  app.footer(
      "Examples:\n  ranklab launch --nproc-per-node 4 --tp 2 --train-iters 20\n"
      "  ranklab launch --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 --rdzv-token-file token --nproc-per-node 4\n"
      "  ranklab launch --nproc-per-node 2 -- sh -c 'echo I am rank $RANK of $WORLD_SIZE'");
  auto given = std::make_shared<Launch>(app);
  return [given] {
    const int code = launch(*given);
    // Exits without destructors: nothing is left to do, and unloading the libraries of a training program would take
    // longer than everything before.
    std::fflush(nullptr);
    ::_exit(code);
    return code;
  };
}

}  // namespace ranklab
