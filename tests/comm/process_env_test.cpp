// What each launcher leaves in the environment, which one counts, and every way in which it can be wrong.
#include "core/comm/process_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"

namespace ranklab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Env = std::map<std::string, std::string>;

GetEnv getter(const Env& env) {
  return [&env](const char* name) -> const char* {
    const auto it = env.find(name);
    return it == env.end() ? nullptr : it->second.c_str();
  };
}

ProcessEnv read(const Env& env) { return read_process_env(getter(env)); }

std::string env_error(const Env& env) {
  try {
    ProcessEnv got = read(env);
    complete_master(got);
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.kind()), 2);
    return error.what();
  }
  return "no error";
}

Env with(Env env, const Env& more) {
  for (const auto& [name, value] : more) env[name] = value;
  return env;
}

const Env kTorchrun = {
    {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "host"}, {"MASTER_PORT", "29500"}};
const Env kMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                  {"PMIX_NAMESPACE", "1234"}};
const Env kSlurm = {{"SLURM_PROCID", "5"},     {"SLURM_NTASKS", "8"},        {"SLURM_LOCALID", "1"},
                    {"SLURM_NODEID", "1"},     {"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_JOB_NODELIST", "gpu[07-08]"},
                    {"SLURM_JOB_ID", "424242"}};

TEST(ProcessEnv, ReadsTorchrun) {
  const ProcessEnv got = read(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                               {"TORCHELASTIC_RESTART_COUNT", "2"},
                                               {"LOCAL_WORLD_SIZE", "4"},
                                               {"GROUP_RANK", "1"}}));
  EXPECT_EQ(got.launcher, Launcher::kTorchrun);
  EXPECT_EQ(got.rank, 3);
  EXPECT_EQ(got.world_size, 8);
  EXPECT_EQ(got.local_rank, 1);
  EXPECT_EQ(got.local_world_size, 4);
  EXPECT_EQ(got.node_rank, 1);
  EXPECT_EQ(got.master_addr, "host");
  EXPECT_EQ(got.master_port, 29500);
  EXPECT_TRUE(got.agent_store);
  EXPECT_EQ(got.restart, "2");
  EXPECT_FALSE(read(kTorchrun).agent_store);
}

TEST(ProcessEnv, ReadsMpiAndSlurmAndPmi) {
  const ProcessEnv mpi = read(kMpi);
  EXPECT_EQ(mpi.launcher, Launcher::kOpenMpi);
  EXPECT_EQ(mpi.rank, 2);
  EXPECT_EQ(mpi.world_size, 4);
  EXPECT_EQ(mpi.local_rank, 2);
  const ProcessEnv slurm = read(kSlurm);
  EXPECT_EQ(slurm.launcher, Launcher::kSlurm);
  EXPECT_EQ(slurm.rank, 5);
  EXPECT_EQ(slurm.world_size, 8);
  EXPECT_EQ(slurm.local_rank, 1);
  EXPECT_EQ(slurm.node_rank, 1);
  // A step may be smaller than its job.
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "6"}})).world_size, 6);
  const ProcessEnv pmi = read({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(pmi.launcher, Launcher::kPmi);
  EXPECT_EQ(pmi.rank, 1);
}

TEST(ProcessEnv, WithoutALauncherTheWorldIsOne) {
  EXPECT_EQ(read({}).launcher, Launcher::kNone);
  EXPECT_EQ(read({}).world_size, 1);
  EXPECT_EQ(read({{"LOCAL_RANK", "2"}}).local_rank, 2);
  EXPECT_EQ(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).world_size, 1);
  // A shell inside salloc is not a rank.
  EXPECT_EQ(read({{"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "1"}}).launcher, Launcher::kNone);
  EXPECT_EQ(read({{"MASTER_ADDR", "x"}}).launcher, Launcher::kNone);
}

TEST(ProcessEnv, AMissingVariableIsNamed) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    Env env = kTorchrun;
    env.erase(name);
    EXPECT_THAT(env_error(env),
                AllOf(HasSubstr("variable " + std::string(name) + " is missing"), HasSubstr("torchrun")));
  }
  EXPECT_THAT(
      env_error({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
      HasSubstr("LOCAL_RANK is missing; got only RANK=0 WORLD_SIZE=2; want LOCAL_RANK, MASTER_ADDR and MASTER_PORT, "
                "too, or none"));
  EXPECT_THAT(env_error({{"OMPI_COMM_WORLD_RANK", "0"}}), HasSubstr("OMPI_COMM_WORLD_SIZE is missing"));
  EXPECT_THAT(env_error({{"OMPI_COMM_WORLD_SIZE", "2"}}), HasSubstr("OMPI_COMM_WORLD_RANK is missing"));
  EXPECT_THAT(env_error({{"SLURM_PROCID", "0"}}), HasSubstr("SLURM_STEP_NUM_TASKS is missing"));
  EXPECT_THAT(env_error({{"PMI_SIZE", "2"}}), HasSubstr("PMI_RANK is missing"));
}

TEST(ProcessEnv, ABadNumberIsShownWithItsRange) {
  const auto error_with = [](const char* name, const char* value) {
    return env_error(with(kTorchrun, {{name, value}}));
  };
  EXPECT_THAT(error_with("RANK", "8"), AllOf(HasSubstr("RANK='8'"), HasSubstr("from 0 to 7")));
  EXPECT_THAT(error_with("RANK", "two"), HasSubstr("RANK='two'"));
  EXPECT_THAT(error_with("WORLD_SIZE", "0"), HasSubstr("from 1"));
  EXPECT_THAT(error_with("MASTER_PORT", "99999"), HasSubstr("65535"));
  EXPECT_THAT(error_with("LOCAL_RANK", "1x"), HasSubstr("LOCAL_RANK='1x'"));
}

TEST(ProcessEnv, ContradictionsAreRefused) {
  const std::string error = env_error(with(kTorchrun, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "8"}}));
  EXPECT_THAT(error, HasSubstr("RANK=3 WORLD_SIZE=8 but OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=8"));
  EXPECT_THAT(env_error(with(kSlurm, {{"PMI_RANK", "4"}, {"PMI_SIZE", "8"}})), HasSubstr("contradict"));
  EXPECT_EQ(read(with(kTorchrun, {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}})).rank, 3) << "the same numbers";
}

// srun torchrun: SLURM counts agents. mpirun in a batch script: SLURM's numbers are the script's.
TEST(ProcessEnv, TheInnerLauncherWins) {
  Env agent = with(with(kTorchrun, kSlurm), {{"TORCHELASTIC_RUN_ID", "7"}});
  EXPECT_EQ(read(agent).rank, 3);
  agent.erase("TORCHELASTIC_RUN_ID");
  EXPECT_THAT(env_error(agent), HasSubstr("contradict"));
  EXPECT_EQ(read(with(kMpi, kSlurm)).launcher, Launcher::kOpenMpi);
}

TEST(ProcessEnv, RankZerosAddressIsFoundWhereItCanBe) {
  ProcessEnv one_host = read(kMpi);
  complete_master(one_host);
  EXPECT_EQ(one_host.master_addr, "127.0.0.1");
  EXPECT_GE(one_host.master_port, 20000);
  EXPECT_LT(one_host.master_port, 32768) << "below the ports that the kernel hands out";
  ProcessEnv other_job = read(with(kMpi, {{"PMIX_NAMESPACE", "1235"}}));
  complete_master(other_job);
  EXPECT_NE(one_host.master_port, other_job.master_port);
  ProcessEnv hosts = read(kSlurm);
  complete_master(hosts);
  EXPECT_EQ(hosts.master_addr, "gpu07");
  ProcessEnv given = read(with(kSlurm, {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "1234"}}));
  complete_master(given);
  EXPECT_EQ(given.master_addr, "10.0.0.1");
  EXPECT_THAT(env_error(with(kMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}})), HasSubstr("MASTER_ADDR"));
}

TEST(ProcessEnv, FirstHostOfANodeList) {
  EXPECT_EQ(first_host("gpu[07-12,20],b1"), "gpu07");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("a1,b[2-3]"), "a1");
  EXPECT_EQ(first_host("x[9]"), "x9");
  EXPECT_EQ(first_host("solo"), "solo");
}

TEST(ProcessEnv, DescribesThePrecedence) {
  const Env env = with(kMpi, kSlurm);
  const std::vector<ProcessEnvLine> lines = describe_process_env(getter(env));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_FALSE(lines[0].found);
  EXPECT_EQ(lines[0].variables, "RANK WORLD_SIZE LOCAL_RANK");
  EXPECT_TRUE(lines[1].found && lines[1].used);
  EXPECT_THAT(lines[1].variables, HasSubstr("OMPI_COMM_WORLD_RANK=2"));
  EXPECT_TRUE(lines[2].found && !lines[2].used);
}

}  // namespace
}  // namespace ranklab
