// Which GPU a process uses, and the environment variables that CUDA and NCCL need before their first call. If a
// launcher makes only one GPU visible to each process (SLURM's --gpus-per-task), that one is used, whatever LOCAL_RANK
// is. RANKLAB_SHARE_GPU=1 lets several ranks share a GPU, for tests on machines with fewer GPUs than ranks. NCCL
// refuses two ranks on one GPU of one host, so each rank then claims to be on a host of its own (NCCL_HOSTID), and
// bytes go through sockets of the loopback device. This is correct, but slow. Thread rule: from the main thread, before
// the first CUDA call.
#pragma once
#include <string>

#include "core/comm/process_env.h"

namespace ranklab {

// `count`: the number of visible GPUs. Throws kEnvironment if there is none for this process.
int choose_gpu(const ProcessEnv& env, int count, bool share);
bool shares_gpu();  // RANKLAB_SHARE_GPU=1

// Variables that the user has set are not changed.
void prepare_cuda_environment();
void prepare_nccl_environment(const ProcessEnv& env);

// Throws kEnvironment if so few hardware queues are configured that a stream that waits for a message would block other
// streams in the same queue (CUDA_DEVICE_MAX_CONNECTIONS=1 is common in other frameworks).
void require_queues(int streams);

}  // namespace ranklab
