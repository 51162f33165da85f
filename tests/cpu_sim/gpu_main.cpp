// The main of a suite that runs again with its ranks on one GPU (test_world.h): those of its tests that
// RANKLAB_GPU_FILTER names, unless asked for others.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("RANKLAB_TEST_DEVICE", "cuda", 1);
  // The flag itself: GoogleTest has read its environment before main.
  if (std::getenv("GTEST_FILTER") == nullptr) GTEST_FLAG_SET(filter, RANKLAB_GPU_FILTER);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
