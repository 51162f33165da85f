// torchrun's environment: who this process is and where the others meet. Torch-free. Thread rule: pure.
#pragma once
#include <functional>
#include <string>

namespace ranklab {

struct TorchrunEnv {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;  // index of this process's GPU
  std::string master_addr;
  int master_port = 0;
  bool agent_store = false;  // torchrun's agent already serves the store (TORCHELASTIC_USE_AGENT_STORE)
  std::string restart;       // TORCHELASTIC_RESTART_COUNT: a restarted job must not read keys of the run before
};

using GetEnv = std::function<const char*(const char* name)>;

// A world of one when RANK and WORLD_SIZE are both unset. Throws kEnvironment when some of the variables are missing or
// make no sense, naming them.
TorchrunEnv read_torchrun_env(const GetEnv& get_env);
TorchrunEnv read_torchrun_env();  // of this process

}  // namespace ranklab
