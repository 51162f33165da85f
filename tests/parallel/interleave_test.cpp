// Two pieces of a rank's work in turns: in which order they run, that both see their own autograd state and
// recomputation, and what happens when one fails.
#include "core/parallel/interleave.h"

#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>
#include <string>

#include "core/sim/aten.h"
#include "core/sim/recompute_scope.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

WorkPtr post(Communicator& comm) { return comm.all_gather_async(at::full({1}, comm.rank(), at::kLong)); }

TEST(Interleave, PiecesSwitchWhereTheyWait) {
  std::mutex mutex;
  std::vector<std::string> orders;
  run_ranks({.world = 2}, [&](RankContext& context) {
    Communicator& dp = context.comm(Axis::kDp);
    std::string order;
    interleave(
        [&] {
          for (int i = 0; i < 2; ++i) {
            order += "f";
            await_in_turns(post(dp));
            order += at::GradMode::is_enabled() && !recomputing() ? "F" : "!";
          }
        },
        [&] {
          const at::NoGradGuard no_grad;
          const RecomputeScope scope;
          order += "b";
          await_in_turns(post(dp));
          order += at::GradMode::is_enabled() || !recomputing() ? "!" : "B";
        },
        {.resumed = [&](int piece) { order += std::to_string(piece); }, .suspended = {}});
    EXPECT_FALSE(is_interleaved());
    EXPECT_TRUE(at::GradMode::is_enabled());
    EXPECT_FALSE(recomputing());
    const std::lock_guard lock(mutex);
    orders.push_back(order);
  });
  EXPECT_EQ(orders, std::vector<std::string>(2, "0f1b0Ff1B0F"));
}

struct Turns : TurnWatch {
  explicit Turns(std::string& its_order) : order(its_order), outer(exchange_turn_watch(this)) {}
  ~Turns() override { exchange_turn_watch(outer); }
  void suspended() override { order += 's'; }
  void resumed() override { order += 'r'; }
  std::string& order;
  TurnWatch* outer;
};

// Each piece is watched by its own watch alone.
TEST(Interleave, AWatchSeesTheTurnsOfItsPiece) {
  run_ranks({.world = 2}, [&](RankContext& context) {
    Communicator& dp = context.comm(Axis::kDp);
    std::string first, second;
    interleave(
        [&] {
          const Turns watch(first);
          await_in_turns(post(dp));
          take_turns();
        },
        [&] {
          await_in_turns(post(dp));
          const Turns watch(second);
          await_in_turns(post(dp));
        },
        {});
    EXPECT_EQ(first, "srsr");
    EXPECT_EQ(second, "sr");
    EXPECT_EQ(exchange_turn_watch(nullptr), nullptr);
  });
}

TEST(Interleave, WhenOneFailsTheOtherStopsAtItsNextTurn) {
  run_ranks({.world = 2}, [&](RankContext& context) {
    Communicator& dp = context.comm(Axis::kDp);
    bool went_on = false;
    try {
      interleave(
          [&] {
            await_in_turns(post(dp));
            went_on = true;
          },
          [] { throw std::runtime_error("the first error"); }, {});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the first error");
    }
    EXPECT_FALSE(went_on);
    EXPECT_FALSE(is_interleaved());
    dp.barrier();
  });
}

}  // namespace
}  // namespace ranklab
