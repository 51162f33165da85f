// Worlds in forked processes, as those of lessons' exercises and of the planner's workers.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "backends/cpu_sim/thread_world.h"
#include "backends/meta/meta_world.h"
#include "core/comm/world.h"

namespace ranklab {
namespace {

// LibTorch's thread pool, which ranks request at their start, is created again in each of these processes.
int failures_among(int processes, std::shared_ptr<World> (*make)()) {
  at::set_num_threads(at::get_num_threads());  // so that this process has one
  int failures = 0;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        make()->run([](Endpoint&) {});
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    }
    int status = -1;
    if (::waitpid(child, &status, 0) != child || status != 0) ++failures;
  }
  return failures;
}

TEST(ForkedProcess, RunsRankThreads) {
  EXPECT_EQ(failures_among(30, []() -> std::shared_ptr<World> { return make_thread_world({.size = 8}); }), 0);
}

TEST(ForkedProcess, RunsRanksOfShapes) {
  EXPECT_EQ(failures_among(30, [] { return make_meta_world({0, 1, 2, 3, 4, 5, 6, 7}); }), 0);
}

}  // namespace
}  // namespace ranklab
