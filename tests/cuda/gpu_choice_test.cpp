#include "backends/cuda/gpu_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/error.h"

namespace ranklab {
namespace {

using ::testing::HasSubstr;

ProcessEnv local(int rank) {
  ProcessEnv env;
  env.rank = env.local_rank = rank;
  env.world_size = 8;
  return env;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

TEST(GpuChoice, TheLocalRankOrTheOneInSight) {
  EXPECT_EQ(choose_gpu(local(3), 8, false), 3);
  EXPECT_EQ(choose_gpu(local(3), 1, false), 0) << "SLURM's --gpus-per-task shows each process one";
  EXPECT_EQ(choose_gpu(local(5), 2, true), 1);
  try {
    choose_gpu(local(2), 2, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("RANKLAB_SHARE_GPU=1"));
  }
}

TEST(GpuChoice, SharingMakesEachRankAHostOfItsOwnAndKeepsWhatTheUserSet) {
  setenv("RANKLAB_SHARE_GPU", "1", 1);
  setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
  unsetenv("NCCL_HOSTID");
  prepare_nccl_environment(local(3));
  EXPECT_THAT(variable("NCCL_HOSTID"), HasSubstr("rank-3"));
  EXPECT_EQ(variable("NCCL_SOCKET_IFNAME"), "eth7");
  EXPECT_EQ(variable("NCCL_NET"), "Socket");
  for (const char* name : {"RANKLAB_SHARE_GPU", "NCCL_SOCKET_IFNAME", "NCCL_HOSTID", "NCCL_NET", "NCCL_MNNVL_ENABLE"})
    unsetenv(name);
  prepare_nccl_environment(local(3));
  EXPECT_EQ(variable("NCCL_HOSTID"), "") << "only in that mode";
}

TEST(GpuChoice, FewHardwareQueuesAreRefusedWherePipelinesNeedThem) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  EXPECT_NO_THROW(require_queues(0));
  EXPECT_THROW(require_queues(6), Error);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  EXPECT_NO_THROW(require_queues(12));
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  prepare_cuda_environment();
  EXPECT_EQ(variable("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
}

}  // namespace
}  // namespace ranklab
