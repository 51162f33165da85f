#include "core/base/fiber.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ranklab {
namespace {

TEST(Fiber, RunsUntilItSuspendsAndGoesOnThere) {
  std::string order;
  Fiber fiber([&] {
    order += "a";
    Fiber::suspend();
    order += "c";
  });
  fiber.resume();
  order += "b";
  EXPECT_FALSE(fiber.done());
  fiber.resume();
  EXPECT_TRUE(fiber.done());
  EXPECT_EQ(order, "abc");
  EXPECT_THROW(fiber.resume(), std::exception);
}

TEST(Fiber, LocalsLiveOnItsOwnStackAndAreDestroyed) {
  const auto alive = std::make_shared<int>(1);
  {
    Fiber fiber([alive_inside = alive] {
      std::vector<std::shared_ptr<int>> many(1000, alive_inside);
      Fiber::suspend();
      EXPECT_EQ(*many[999], 1);
    });
    fiber.resume();
    EXPECT_GT(alive.use_count(), 1000);
    fiber.resume();
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Fiber, ItsExceptionReachesTheResumer) {
  Fiber fiber([] {
    Fiber::suspend();
    throw std::runtime_error("from inside");
  });
  fiber.resume();
  try {
    fiber.resume();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from inside");
  }
  EXPECT_TRUE(fiber.done());
}

// Two alternating fibers, as for the pieces of a pair of microbatches; on several threads at once, as with ranks.
TEST(Fiber, TwoTakeTurnsOnEveryThread) {
  const auto take_turns = [](std::string& order) {
    Fiber a([&] {
      for (int i = 0; i < 3; ++i) {
        order += "a";
        Fiber::suspend();
      }
    });
    Fiber b([&] {
      for (int i = 0; i < 2; ++i) {
        order += "b";
        Fiber::suspend();
      }
    });
    while (!a.done() || !b.done()) {
      if (!a.done()) a.resume();
      if (!b.done()) b.resume();
    }
  };
  std::vector<std::string> orders(4);
  std::vector<std::thread> threads;
  for (std::string& order : orders) threads.emplace_back([&] { take_turns(order); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& order : orders) EXPECT_EQ(order, "ababa");
}

}  // namespace
}  // namespace ranklab
