// Who this process is among the ranks of a run, read from what its launcher left in the environment. In order of
// precedence: torchrun's names (also set by `ranklab launch`), Open MPI's, SLURM's, PMI's. The inner launcher wins:
// torchrun may run under srun or mpirun, and mpirun inside a SLURM allocation, each with numbers of its own.
// Partial or contradicting variables are an error that names them, never a guess. A shell inside `salloc` has
// SLURM_NTASKS but no SLURM_PROCID: it is no rank. Sources: PyTorch torch.distributed.run, Open MPI 4 mpirun(1), SLURM
// srun(1). Torch-free. Thread rule: pure.
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
  int local_rank = 0;        // among the ranks of this host: index of this process's GPU
  int local_world_size = 0;  // ranks of this host; 0: the launcher does not tell
  int node_rank = 0;
  std::string master_addr;   // where rank 0 is reached; empty: not given
  int master_port = 0;       // 0: not given
  bool agent_store = false;  // torchrun's agent serves a key-value store there (TORCHELASTIC_USE_AGENT_STORE)
  std::string restart;       // TORCHELASTIC_RESTART_COUNT: a restarted job must not meet ranks of the run before
  std::string run_id;        // names the job, the same on every rank; may be empty
  std::string node_list;     // of SLURM: "node[01-04]"

  bool one_host() const { return local_world_size == world_size; }
};

using GetEnv = std::function<const char*(const char* name)>;

// Launcher::kNone and a world of one when no launcher is found. Throws kInvalidArgument when variables are missing,
// make no sense or contradict one another.
ProcessEnv read_process_env(const GetEnv& get_env);
ProcessEnv read_process_env();  // of this process

// Fills in where rank 0 is when the launcher does not say: on one host the loopback address and a port derived from the
// job's id; on several the first host of SLURM's list. Throws kInvalidArgument when it cannot be known.
void complete_master(ProcessEnv& env);

// First host of a SLURM node list: "node[007-12,20],b1" -> "node007".
std::string first_host(const std::string& node_list);

struct ProcessEnvLine {
  std::string launcher;   // "torchrun, ranklab launch"
  std::string variables;  // "RANK=1 WORLD_SIZE=8 ...", or the names that are looked for
  bool found = false;     // its rank variable is set
  bool used = false;      // this is the one that counts
};
// The launchers in order of precedence, with what was found of each. Never throws.
std::vector<ProcessEnvLine> describe_process_env(const GetEnv& get_env);

}  // namespace ranklab
