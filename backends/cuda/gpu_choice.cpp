#include "backends/cuda/gpu_choice.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/base/system.h"

namespace ranklab {
namespace {

constexpr const char* kShareVariable = "RANKLAB_SHARE_GPU";
constexpr const char* kQueuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr int kCudaDefaultQueues = 8;

void set_default(const char* name, const std::string& value) { ::setenv(name, value.c_str(), /*overwrite=*/0); }

}  // namespace

bool shares_gpu() {
  const std::string value = environment_variable(kShareVariable);
  return !value.empty() && value != "0";
}

int choose_gpu(const ProcessEnv& env, int count, bool share) {
  if (count == 1) return 0;
  if (share && count > 0) return env.local_rank % count;
  RANKLAB_CHECK(env.local_rank < count, ErrorKind::kEnvironment, .where = "cuda backend",
                .what = "this process has no GPU of its own", .got = "LOCAL_RANK " + std::to_string(env.local_rank),
                .want = "less than " + std::to_string(count) + ", the GPUs of this machine",
                .fix = "start at most " + std::to_string(count) + " processes here, or share them for a test (" +
                       kShareVariable + "=1)");
  return env.local_rank;
}

// Streams beyond the number of hardware queues share a queue, and one that waits for an event blocks those that come
// after it. A pipeline rank has a stream for each lane and each axis.
void prepare_cuda_environment() { set_default(kQueuesVariable, "32"); }

void prepare_nccl_environment(const ProcessEnv& env) {
  if (!shares_gpu() || env.world_size == 1) return;
  set_default("NCCL_HOSTID", "ranklab-" + environment_variable("HOSTNAME") + "-rank-" + std::to_string(env.rank));
  set_default("NCCL_NET", "Socket");
  set_default("NCCL_SOCKET_IFNAME", "lo");
  set_default("NCCL_MNNVL_ENABLE", "0");  // otherwise NCCL would recognize by the NVLink fabric that they are one host
}

void require_queues(int streams) {
  const std::string text = environment_variable(kQueuesVariable);
  const int queues = text.empty() ? kCudaDefaultQueues : std::atoi(text.c_str());
  RANKLAB_CHECK(queues > streams, ErrorKind::kEnvironment, .where = "cuda backend",
                .what = "too few hardware queues for the lanes of the pipeline",
                .got = std::string(kQueuesVariable) + "=" + text,
                .want = "more than " + std::to_string(streams) + ", the streams that may wait for other ranks",
                .fix = std::string("unset ") + kQueuesVariable + ", or set it to 32");
}

}  // namespace ranklab
