// ranklab doctor on this machine, and on machines that lack something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/shell_quote.h"
#include "tests/cli/run_program.h"
#include "tests/fair_clock.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

struct Report {
  int exit_code = -1;
  nlohmann::json json;
  std::map<std::string, nlohmann::json> checks;
};

// `before`: shell words in front of the program.
Report doctor(const std::string& before = "") {
  const Outcome run = run_command(before + " " RANKLAB_PROGRAM " doctor --json");
  Report report{.exit_code = run.exit_code, .json = nlohmann::json::parse(run.output), .checks = {}};
  for (const auto& check : report.json["data"]["checks"]) report.checks[check["what"]] = check;
  return report;
}

TEST(Doctor, SimulationWorksWhereTheTestsRun) {
  const Report report = doctor();
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.json["ok"], true);
  EXPECT_EQ(report.json["data"]["ready"], true);
  EXPECT_EQ(report.checks.at("LibTorch")["status"], "ok");
  EXPECT_THAT(report.checks.at("LibTorch")["value"].get<std::string>(), HasSubstr("libtorch_cpu.so"));
  EXPECT_EQ(report.checks.at("Gloo")["status"], "ok");
  EXPECT_THAT(report.checks.at("Gloo")["value"].get<std::string>(), HasSubstr("libgloo"));
  for (const char* what : {"C++ compiler", "CMake",       "Ninja",   "ccache",   "clang",    "corpus", "cores",
                           "memory",       "open files",  "threads", "/dev/shm", "launcher", "GPUs",   "CUDA toolkit",
                           "NCCL",         "CUDA module", "OpenGL",  "display",  "fonts",    "ranklab"}) {
    ASSERT_TRUE(report.checks.contains(what)) << what;
    const auto& check = report.checks.at(what);
    EXPECT_THAT(check["status"].get<std::string>(), testing::AnyOf("ok", "warn", "missing")) << what;
    EXPECT_FALSE(check["value"].get<std::string>().empty()) << what;
  }
}

TEST(Doctor, OneLineEachInUnderASecondOrSo) {
  const FairClock clock;
  const Outcome run = run_command(RANKLAB_BINARY " doctor");
  EXPECT_LT(clock.seconds(), 10);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("ok       Gloo"));
  EXPECT_THAT(run.output, HasSubstr("ready: ./ranklab train"));
  EXPECT_LE(std::count(run.output.begin(), run.output.end(), '\n'), 35);
}

TEST(Doctor, OptionalThingsMayBeMissing) {
  const Report report = doctor("env -u DISPLAY -u WAYLAND_DISPLAY PATH=/nowhere RANKLAB_CUDA_MODULE=/no/module.so");
  EXPECT_EQ(report.exit_code, 0) << "what is missing is not needed for simulation";
  for (const char* what : {"C++ compiler", "CMake", "Ninja", "ccache", "clang", "corpus", "CUDA module"}) {
    EXPECT_EQ(report.checks.at(what)["status"], "missing") << what;
    EXPECT_FALSE(report.checks.at(what)["fix"].get<std::string>().empty()) << what;
  }
  EXPECT_EQ(report.checks.at("C++ compiler")["fix"], "sudo apt-get install g++");
  EXPECT_THAT(report.checks.at("CUDA module")["value"].get<std::string>(), HasSubstr("/no/module.so"));
  EXPECT_EQ(report.checks.at("display")["status"], "missing");
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// As pip and ./ranklab setup --cuda lay NVIDIA's wheels: nvidia/ beside torch/.
TEST(Doctor, FindsWhatLiesBesideLibTorch) {
  const std::string torch = doctor().checks.at("LibTorch")["value"];
  const std::filesystem::path folder = ::testing::TempDir() + "beside libtorch " + std::to_string(getpid());
  write_text(folder / "nvidia/cu13/bin/nvcc", "#!/bin/sh\necho 'release 13.7, V13.7.1'\n");
  std::filesystem::permissions(folder / "nvidia/cu13/bin/nvcc", std::filesystem::perms::owner_all);
  write_text(folder / "nvidia/nccl/include/nccl.h",
             "#define NCCL_MAJOR 2\n#define NCCL_MINOR 77\n#define NCCL_PATCH 1\n");
  write_text(folder / "nvidia/nccl/lib/libnccl.so.2", "");
  std::filesystem::create_directories(folder / "torch");
  const std::string libraries = torch.substr(torch.find('/'), torch.rfind('/') - torch.find('/'));
  std::filesystem::create_directory_symlink(libraries, folder / "torch/lib");
  const Report report = doctor("LD_LIBRARY_PATH=" + shell_quote((folder / "torch/lib").string()));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(report.checks.at("CUDA toolkit")["value"], "13.7, " + (folder / "nvidia/cu13/bin/nvcc").string());
  EXPECT_EQ(report.checks.at("NCCL")["value"], "2.77.1, " + (folder / "nvidia/nccl/lib/libnccl.so.2").string());
}

TEST(Doctor, WhatSimulationNeedsIsAnError) {
  const Report report = doctor("ulimit -n 40;");
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_EQ(report.json["data"]["ready"], false);
  EXPECT_EQ(report.checks.at("open files")["status"], "missing");
  EXPECT_THAT(report.checks.at("open files")["fix"].get<std::string>(), HasSubstr("ulimit -n"));
  const Outcome text = run_command("ulimit -n 40; " RANKLAB_PROGRAM " doctor");
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_THAT(text.output, HasSubstr("not ready"));
}

TEST(Doctor, FewOpenFilesAreAWarning) {
  const Report report = doctor("ulimit -n 256;");
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.checks.at("open files")["status"], "warn");
  ASSERT_FALSE(report.json["warnings"].empty());
}

TEST(Doctor, DisplaysAndCudaModulesAreSeen) {
  const Report report = doctor("env -u WAYLAND_DISPLAY DISPLAY=:7 RANKLAB_CUDA_MODULE=/bin/sh");
  EXPECT_EQ(report.checks.at("display")["value"], "X11, DISPLAY=:7");
  EXPECT_EQ(report.checks.at("CUDA module")["status"], "ok") << "looked for, not opened";
}

TEST(Doctor, LauncherAndPrecedence) {
  const std::string none = doctor("env -u RANK -u WORLD_SIZE").checks.at("launcher")["value"];
  const size_t torchrun = none.find("torchrun"), mpi = none.find("Open MPI"), slurm = none.find("SLURM");
  EXPECT_LT(torchrun, mpi);
  EXPECT_LT(mpi, slurm);
  EXPECT_NE(slurm, std::string::npos);
  const Report seen = doctor("env RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500");
  EXPECT_EQ(seen.checks.at("launcher")["status"], "ok");
  EXPECT_THAT(seen.checks.at("launcher")["value"].get<std::string>(), HasSubstr("RANK=1"));
  const Report broken = doctor("env -u WORLD_SIZE RANK=1");
  EXPECT_EQ(broken.checks.at("launcher")["status"], "warn");
  EXPECT_THAT(broken.checks.at("launcher")["value"].get<std::string>(), HasSubstr("WORLD_SIZE"));
}

}  // namespace
}  // namespace ranklab
