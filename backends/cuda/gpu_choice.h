// Which GPU a process takes, and what CUDA and NCCL must find in its environment before their first call.
//   A launcher that shows each process one GPU (SLURM's --gpus-per-task) means that one, whatever LOCAL_RANK says.
//   RANKLAB_SHARE_GPU=1 lets several ranks share a GPU, for tests on machines with fewer GPUs than ranks: NCCL refuses
//   two ranks on one GPU of one host, so each says it is a host of its own (NCCL_HOSTID), and their bytes go through
//   sockets of the loopback device. Correct, and slow.
// Thread rule: from the main thread, before the first CUDA call.
#pragma once
#include <string>

#include "core/comm/process_env.h"

namespace ranklab {

// Of a machine with `count` GPUs in sight. Throws kEnvironment when this process has none of its own.
int choose_gpu(const ProcessEnv& env, int count, bool share);
bool shares_gpu();  // RANKLAB_SHARE_GPU=1

// Variables that the user has set stay as they are.
void prepare_cuda_environment();
void prepare_nccl_environment(const ProcessEnv& env);

// Throws kEnvironment when so few hardware queues were asked for that streams which wait for messages would hold the
// ones behind them (CUDA_DEVICE_MAX_CONNECTIONS=1 is a habit of other frameworks).
void require_queues(int streams);

}  // namespace ranklab
