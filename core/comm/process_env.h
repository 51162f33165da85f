// The identity of this process among the ranks of a run, read from the environment that its launcher set. In order of
// precedence: the names of torchrun (also set by `ranklab launch`), Open MPI, SLURM, PMI. The inner launcher wins,
// because torchrun may run under srun or mpirun, and mpirun inside a SLURM allocation, each with its own numbers.
// Incomplete or contradicting variables cause an error that names them, never a guess. A shell inside `salloc` has
// SLURM_NTASKS but no SLURM_PROCID: it is not a rank. Sources: PyTorch torch.distributed.run, Open MPI 4 mpirun(1),
// SLURM srun(1). Torch-free. Thread rule: pure.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab {

enum class Launcher { kNone, kTorchrun, kOpenMpi, kSlurm, kPmi };
std::string_view name(Launcher launcher);  // "torchrun"

struct ProcessEnv {
  Launcher launcher = Launcher::kNone;
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;        // index among the ranks of this host, and index of this process's GPU
  int local_world_size = 0;  // number of ranks on this host; 0: the launcher does not say
  int node_rank = 0;
  std::string master_addr;   // address at which rank 0 is reached; empty: not given
  int master_port = 0;       // 0: not given
  bool agent_store = false;  // torchrun's agent serves a key-value store there (TORCHELASTIC_USE_AGENT_STORE)
  // TORCHELASTIC_RESTART_COUNT: ranks of a restarted job must not connect to ranks of the run before
  std::string restart;
  std::string run_id;     // names the job, the same on every rank; may be empty
  std::string node_list;  // from SLURM: "node[01-04]"

  bool one_host() const { return local_world_size == world_size; }
};

using GetEnv = std::function<const char*(const char* name)>;

// Launcher::kNone and a world of one if no launcher is found. Throws kInvalidArgument when variables are missing, are
// invalid, or contradict one another.
ProcessEnv read_process_env(const GetEnv& get_env);
ProcessEnv read_process_env();  // of this process

// Fills in the address of rank 0 if the launcher does not give it: on a single host, the loopback address and a port
// derived from the job's id; on several hosts, the first host in SLURM's list. Throws kInvalidArgument when it cannot
// be determined.
void complete_master(ProcessEnv& env);

// First host of a SLURM node list: "node[007-12,20],b1" -> "node007".
std::string first_host(const std::string& node_list);

struct ProcessEnvLine {
  std::string launcher;   // "torchrun, ranklab launch"
  std::string variables;  // "RANK=1 WORLD_SIZE=8 ...", or the names that were looked for
  bool found = false;     // whether its rank variable is set
  bool used = false;      // whether this launcher is the one used
};
// The launchers in order of precedence, with what was found for each. Never throws.
std::vector<ProcessEnvLine> describe_process_env(const GetEnv& get_env);

}  // namespace ranklab
