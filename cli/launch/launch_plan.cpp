#include "cli/launch/launch_plan.h"
#include "cli/common/command_line.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include "backends/cpu_sim/transport/handshake.h"
#include "cli/world/make_world.h"
#include "cli/world/run_token.h"
#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
constexpr int kDefaultPort = 29500;  // torchrun's default
constexpr int kMostRanks = 512;

[[noreturn]] void refuse(const std::string& flag, const std::string& what, const std::string& got,
                         const std::string& want, const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument, {.where = flag, .what = what, .got = got, .want = want, .fix = fix});
}

int whole_number(const std::string& flag, const std::string& text, int lowest, int highest) {
  int out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < lowest || out > highest) {
    refuse(flag, "the value is invalid", quote(text),
           "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest), "see --help");
  }
  return out;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

int count_gpus() {
  int count = 0;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator("/dev", unreadable)) {
    const std::string name = entry.path().filename().string();
    const bool is_gpu = name.starts_with("nvidia") && name.size() > 6 &&
                        std::all_of(name.begin() + 6, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    count += is_gpu ? 1 : 0;
  }
  RANKLAB_CHECK(count > 0, ErrorKind::kEnvironment, .where = "--nproc-per-node gpu", .what = "this machine has no GPU",
                .got = "no /dev/nvidia0", .want = "one at least", .fix = "use --nproc-per-node cpu, or a number");
  return count;
}

int nodes_of(const LaunchFlags& flags) {
  if (flags.nnodes.find(':') != std::string::npos) {
    const std::vector<std::string> ends = split(flags.nnodes, ':');
    if (ends.size() != 2 || ends[0] != ends[1])
      refuse("--nnodes", "the number of nodes is fixed here", quote(flags.nnodes), "one number", "pass --nnodes N");
    return whole_number("--nnodes", ends[0], 1, kMostRanks);
  }
  return whole_number("--nnodes", flags.nnodes, 1, kMostRanks);
}

int ranks_here(const LaunchFlags& flags, int nodes, int world_size, bool world_is_given) {
  const std::string& text = flags.nproc_per_node;
  if (text.empty()) {
    if (world_size % nodes != 0)
      refuse("--nnodes", "the world size is not divisible by the number of nodes",
             "world size " + std::to_string(world_size) + " on " + std::to_string(nodes) + " nodes",
             "a multiple of " + std::to_string(nodes), "pass --nproc-per-node, or another --world-size");
    return world_size / nodes;
  }
  int count = 0;
  if (text == "cpu") {
    count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  } else if (text == "gpu") {
    count = count_gpus();
  } else {
    count = whole_number("--nproc-per-node", text, 1, kMostRanks);
  }
  if (world_is_given && nodes * count != world_size)
    refuse("--nproc-per-node", "two world sizes",
           std::to_string(nodes) + " x " + std::to_string(count) + " ranks, and a configured world size of " +
               std::to_string(world_size),
           "the same", "leave one of them out");
  return count;
}

void plan_master(const LaunchFlags& flags, LaunchPlan& plan) {
  std::string address = flags.master_addr;
  int port = flags.master_port;
  if (!flags.rdzv_endpoint.empty()) {
    const size_t colon = flags.rdzv_endpoint.rfind(':');
    address = flags.rdzv_endpoint.substr(0, colon);
    if (colon != std::string::npos)
      port = whole_number("--rdzv-endpoint", flags.rdzv_endpoint.substr(colon + 1), 0, 65535);
  }
  if (flags.standalone && plan.nodes > 1)
    refuse("--standalone", "one node only", std::to_string(plan.nodes) + " nodes", "--nnodes 1",
           "pass --master-addr and --master-port instead");
  if (flags.standalone) return;
  if (plan.nodes > 1) {
    if (flags.node_rank < 0)
      refuse("--node-rank", "the index of this node is not given",
             "nothing, of " + std::to_string(plan.nodes) + " nodes", "0 to " + std::to_string(plan.nodes - 1),
             "pass --node-rank, a different one on each node");
    if (address.empty())
      refuse("--master-addr", "the address of node 0 is not given", "nothing",
             "an address of node 0 that all can reach",
             "pass --master-addr (or --rdzv-endpoint HOST:PORT) on every node");
    if (port == 0) port = kDefaultPort;
  }
  if (!address.empty()) plan.master_addr = address;
  plan.master_port = port;
}

std::string token_of(const LaunchFlags& flags, const LaunchPlan& plan) {
  if (!flags.token_file.empty()) {
    constexpr uint64_t kMostBytes = 1 << 16;
    std::istringstream in(read_whole_file(
        flags.token_file, kMostBytes,
        {.where = "--rdzv-token-file", .fix = "openssl rand -hex 32 > FILE, the same file on every node"}));
    std::string token;
    in >> token;
    return checked_run_token(token, "--rdzv-token-file");
  }
  if (std::string given = run_token_of_environment(); !given.empty()) return given;
  return plan.nodes == 1 ? cpu_sim::new_token() : "";
}

// "3", or "0:1,2:3" (local rank : stream).
std::map<int, int> tee_of(const std::string& text, int ranks) {
  std::map<int, int> tee;
  for (const std::string& part : split(text, ',')) {
    const size_t colon = part.find(':');
    if (colon == std::string::npos) {
      for (int rank = 0; rank < ranks; ++rank) tee[rank] = whole_number("--tee", part, kTeeNone, kTeeBoth);
    } else {
      tee[whole_number("--tee", part.substr(0, colon), 0, ranks - 1)] =
          whole_number("--tee", part.substr(colon + 1), kTeeNone, kTeeBoth);
    }
  }
  return tee;
}

}  // namespace

std::set<const CommandOption*> add_launch_flags(CommandLine& app, LaunchFlags& flags) {
  std::set<const CommandOption*> options;
  const auto add = [&](const std::string& name, auto& value, const std::string& help, const std::string& type) {
    options.insert(app.add_option("--" + name, value, help)->group("Launch")->type_name(type));
    std::string under = name;
    std::replace(under.begin(), under.end(), '-', '_');
    if (under != name) options.insert(app.add_option("--" + under, value)->group(""));
  };
  add("nnodes", flags.nnodes, "number of nodes; run `ranklab launch` on each", "N");
  add("nproc-per-node", flags.nproc_per_node, "ranks on this node: N, gpu or cpu (default: the world size)", "N");
  add("node-rank", flags.node_rank, "index of this node", "N");
  add("master-addr", flags.master_addr, "address of node 0", "HOST");
  add("master-port", flags.master_port, "rendezvous port on node 0 (default on one node: any free port)", "PORT");
  options.insert(app.add_flag("--standalone", flags.standalone, "this node only, on a free port")->group("Launch"));
  add("rdzv-backend", flags.rdzv_backend, "static or c10d; both mean that node 0 serves the rendezvous", "NAME");
  add("rdzv-endpoint", flags.rdzv_endpoint, "--master-addr and --master-port in one", "HOST:PORT");
  add("rdzv-id", flags.rdzv_id, "name of the run, the same on every node", "ID");
  add("rdzv-token-file", flags.token_file, "file with the run's secret, required for several hosts", "FILE");
  add("max-restarts", flags.max_restarts,
      "restart all ranks up to N times when one fails (except for exit codes 2, rejected settings; 4, failed check; 9, "
      "lost output)",
      "N");
  add("tee", flags.tee,
      "also write ranks/rank_N.out|err in --log-dir: 1 stdout, 2 stderr, 3 both; or per rank, RANK:N,...", "N");
  add("local-ranks-filter", flags.local_ranks_filter, "show only these local ranks' output: 0,1", "RANKS");
  options.insert(app.add_option("program", flags.program, "what to start instead of train: -- PROGRAM ARGUMENT...")
                     ->may_be_empty());  // any of the arguments
  return options;
}

LaunchPlan plan_launch(const LaunchFlags& flags, int world_size, bool world_is_given) {
  const std::vector<std::string> backends = {"static", "c10d"};
  if (std::find(backends.begin(), backends.end(), flags.rdzv_backend) == backends.end())
    refuse("--rdzv-backend", "no such rendezvous", quote(flags.rdzv_backend), "static or c10d",
           "leave it out: node 0 serves the rendezvous");
  LaunchPlan plan;
  plan.nodes = nodes_of(flags);
  plan.ranks_here = ranks_here(flags, plan.nodes, world_size, world_is_given);
  plan.node_rank = std::max(0, flags.node_rank);
  if (plan.node_rank >= plan.nodes)
    refuse("--node-rank", "no such node", std::to_string(plan.node_rank), "0 to " + std::to_string(plan.nodes - 1),
           "nodes count from 0; --nnodes says how many there are");
  plan_master(flags, plan);
  plan.run_id = flags.rdzv_id.empty() ? "ranklab" : flags.rdzv_id;
  plan.token = token_of(flags, plan);
  if (flags.max_restarts < 0)
    refuse("--max-restarts", "a negative number", std::to_string(flags.max_restarts), "0 or more", "use 0 for none");
  plan.max_restarts = flags.max_restarts;
  plan.tee = tee_of(flags.tee, plan.ranks_here);
  for (const std::string& rank : split(flags.local_ranks_filter, ','))
    plan.shown.insert(whole_number("--local-ranks-filter", rank, 0, plan.ranks_here - 1));
  plan.program = flags.program;
  return plan;
}

std::map<std::string, std::string> rank_environment(const LaunchPlan& plan, int local_rank, int restart) {
  const std::string rank = std::to_string(plan.first_rank() + local_rank);
  const std::string world = std::to_string(plan.world_size());
  std::map<std::string, std::string> out = {
      {"RANK", rank},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"WORLD_SIZE", world},
      {"LOCAL_WORLD_SIZE", std::to_string(plan.ranks_here)},
      {"GROUP_RANK", std::to_string(plan.node_rank)},
      {"GROUP_WORLD_SIZE", std::to_string(plan.nodes)},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", rank},
      {"ROLE_WORLD_SIZE", world},
      {"MASTER_ADDR", plan.master_addr},
      {"MASTER_PORT", std::to_string(plan.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(plan.max_restarts)},
      {"TORCHELASTIC_RUN_ID", plan.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
  };
  if (!plan.token.empty()) out[kRunTokenVariable] = plan.token;
  // At most one rank per core: math threads of many ranks would only compete.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) out["OMP_NUM_THREADS"] = "1";
  return out;
}

}  // namespace ranklab
