// The conformance suite on NCCL: at world size 1 on a machine with one GPU, at torchrun's world size under torchrun,
// and skipped with the reason without a GPU.
#include <gtest/gtest.h>

#include <memory>

#include "backends/cuda/cuda_backend.h"
#include "core/comm/process_env.h"
#include "tests/conformance/conformance.h"

namespace ranklab {
namespace {

class NoGpu : public ::testing::Test {
 public:
  explicit NoGpu(std::string reason) : reason_(std::move(reason)) {}
  void TestBody() override { GTEST_SKIP() << reason_; }

 private:
  std::string reason_;
};

void register_backend(const std::string& name, bool canonical) {
  conformance::Backend backend;
  backend.name = name;
  backend.sizes = {read_process_env().world_size};
  backend.canonical_order = canonical;
  backend.delay_runs = 10;
  backend.make_world = [canonical](int /*size*/) { return make_cuda_world({.canonical_reductions = canonical}); };
  conformance::register_suite(backend);
}

}  // namespace
}  // namespace ranklab

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  std::string why_not;
  if (ranklab::cuda_backend_available(&why_not)) {
    ranklab::register_backend("nccl", false);
    ranklab::register_backend("nccl_canonical", true);
  } else {
    ::testing::RegisterTest("Conformance_nccl", "NeedsAGpu", nullptr, nullptr, __FILE__, __LINE__,
                            [why_not]() -> ::testing::Test* { return new ranklab::NoGpu(why_not); });
  }
  return RUN_ALL_TESTS();
}
