// The conformance suite on NCCL, at the world size of the launcher that started this process:
//   RANKLAB_SHARE_GPU=1 ./ranklab launch --nproc-per-node 2 -- build/cuda/bin/nccl_conformance_test
// runs it between two processes, also on one GPU. Alone it is one rank, whose groups need no NCCL: then it says so.
// Without a GPU it is skipped with the reason.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "backends/cuda/cuda_backend.h"
#include "core/comm/process_env.h"
#include "tests/conformance/conformance.h"

namespace ranklab {
namespace {

class Skipped : public ::testing::Test {
 public:
  explicit Skipped(std::string reason) : reason_(std::move(reason)) {}
  void TestBody() override { GTEST_SKIP() << reason_; }

 private:
  std::string reason_;
};

void register_skipped(const char* suite, const char* name, const std::string& reason) {
  ::testing::RegisterTest(suite, name, nullptr, nullptr, __FILE__, __LINE__,
                          [reason]() -> ::testing::Test* { return new Skipped(reason); });
}

void register_backend(const std::string& name, int world_size, bool canonical) {
  conformance::Backend backend;
  backend.name = name;
  backend.sizes = {world_size};
  backend.canonical_order = canonical;
  backend.has_tags = false;
  backend.delay_runs = 10;
  backend.make_world = [canonical](int /*size*/) {
    return make_cuda_world({.hang_timeout = std::chrono::seconds(30), .canonical_reductions = canonical});
  };
  conformance::register_suite(backend);
}

void register_suites() {
  std::string why_not;
  if (!cuda_backend_available(&why_not)) return register_skipped("Conformance_nccl", "NeedsAGpu", why_not);
  const int world_size = read_process_env().world_size;
  if (world_size > 1) {
    register_backend("nccl", world_size, false);
    register_backend("nccl_canonical", world_size, true);
    return;
  }
  const char* const note =
      "one rank: its groups do not use NCCL; start several (RANKLAB_SHARE_GPU=1 ranklab launch --nproc-per-node 2 -- "
      "nccl_conformance_test)";
  std::printf("note: %s\n", note);
  register_backend("cuda_group_of_one", 1, true);
  register_skipped("Conformance_nccl", "NeedsTwoRanks", note);
}

}  // namespace
}  // namespace ranklab

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  ranklab::register_suites();
  return RUN_ALL_TESTS();
}
