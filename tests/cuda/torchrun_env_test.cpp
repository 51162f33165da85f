#include "backends/cuda/torchrun_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"

namespace ranklab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Env = std::map<std::string, std::string>;

TorchrunEnv read(const Env& env) {
  return read_torchrun_env([&](const char* name) -> const char* {
    const auto it = env.find(name);
    return it == env.end() ? nullptr : it->second.c_str();
  });
}

const Env kWhole = {
    {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "host"}, {"MASTER_PORT", "29500"}};

std::string error_with(const std::string& name, const char* value) {
  Env env = kWhole;
  env.erase(name);
  if (value != nullptr) env[name] = value;
  try {
    read(env);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    return error.what();
  }
  return "";
}

TEST(TorchrunEnv, ReadsTheWholeEnvironment) {
  Env env = kWhole;
  env["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  env["TORCHELASTIC_RESTART_COUNT"] = "2";
  const TorchrunEnv got = read(env);
  EXPECT_EQ(got.rank, 3);
  EXPECT_EQ(got.world_size, 8);
  EXPECT_EQ(got.local_rank, 1);
  EXPECT_EQ(got.master_addr, "host");
  EXPECT_EQ(got.master_port, 29500);
  EXPECT_TRUE(got.agent_store);
  EXPECT_EQ(got.restart, "2");
  EXPECT_FALSE(read(kWhole).agent_store);
}

TEST(TorchrunEnv, WithoutItTheWorldIsOne) {
  EXPECT_EQ(read({}).world_size, 1);
  EXPECT_EQ(read({}).rank, 0);
  EXPECT_EQ(read({{"LOCAL_RANK", "2"}}).local_rank, 2);
  EXPECT_EQ(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).world_size, 1);
}

TEST(TorchrunEnv, AMissingVariableIsNamed) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(error_with(name, nullptr), AllOf(HasSubstr("variable " + std::string(name)), HasSubstr("torchrun")));
  }
}

TEST(TorchrunEnv, ABadNumberIsShownWithItsRange) {
  EXPECT_THAT(error_with("RANK", "8"), AllOf(HasSubstr("got '8'"), HasSubstr("from 0 to 7")));
  EXPECT_THAT(error_with("RANK", "two"), HasSubstr("got 'two'"));
  EXPECT_THAT(error_with("WORLD_SIZE", "0"), HasSubstr("from 1"));
  EXPECT_THAT(error_with("MASTER_PORT", "99999"), HasSubstr("65535"));
  EXPECT_THAT(error_with("LOCAL_RANK", "1x"), HasSubstr("got '1x'"));
}

}  // namespace
}  // namespace ranklab
