// Ranks that share a GPU: the conformance suite, and what shared_gpu_test.cpp asks. Skipped with the reason without
// one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/conformance/conformance.h"
#include "tests/cpu_sim/test_world.h"

int main(int argc, char** argv) {
  setenv("RANKLAB_TEST_DEVICE", "cuda", 1);
  ::testing::InitGoogleTest(&argc, argv);
  ranklab::conformance::register_suite(
      {.name = "shared_gpu", .make_world = ranklab::make_test_world, .delay_runs = 20});
  return RUN_ALL_TESTS();
}
