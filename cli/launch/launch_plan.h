// The plan of `ranklab launch`: torchrun's flags, checked, and the environment of each rank. Names and meanings are
// torchrun's (PyTorch torch.distributed.run), so that scripts carry over. There is no elasticity: each node has its
// --node-rank, and the number of nodes is fixed. Thread rule: pure, except for inspecting this machine.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ranklab {

class CommandLine;
class CommandOption;

// As given on the command line.
struct LaunchFlags {
  std::string nnodes = "1";
  std::string nproc_per_node;  // empty: the configuration's world size
  int node_rank = -1;          // -1: not given
  std::string master_addr;
  int master_port = 0;
  bool standalone = false;
  std::string rdzv_backend = "static";
  std::string rdzv_endpoint;
  std::string rdzv_id;
  std::string token_file;
  int max_restarts = 0;
  std::string tee;
  std::string local_ranks_filter;
  std::vector<std::string> program;
};
// Declares the flags on `app`, each also with underscores instead of dashes. RETURNS: their options, to distinguish
// them from those of train.
std::set<const CommandOption*> add_launch_flags(CommandLine& app, LaunchFlags& flags);

enum TeeStream { kTeeNone = 0, kTeeOut = 1, kTeeErr = 2, kTeeBoth = 3 };

struct LaunchPlan {
  int nodes = 1;
  int node_rank = 0;
  int ranks_here = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  // 0: any free one
  std::string run_id;
  std::string token;
  int max_restarts = 0;
  std::map<int, int> tee;            // local rank -> TeeStream
  std::set<int> shown;               // local ranks whose output is shown; empty: all
  std::string log_folder;            // for --tee
  bool trains = false;               // the ranks are `ranklab train`, whose exit codes are known
  bool saves = false;                // the ranks write a checkpoint before they end
  std::vector<std::string> program;  // argv

  int world_size() const { return nodes * ranks_here; }
  int first_rank() const { return node_rank * ranks_here; }
};

// Throws kInvalidArgument naming the flag, and kEnvironment for --nproc-per-node gpu without GPUs. `world_size`: the
// configuration's; `world_is_given`: whether a source set it.
LaunchPlan plan_launch(const LaunchFlags& flags, int world_size, bool world_is_given);

// The "NAME=value" variables of a rank, in addition to this process's environment.
std::map<std::string, std::string> rank_environment(const LaunchPlan& plan, int local_rank, int restart);

}  // namespace ranklab
