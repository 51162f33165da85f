// The watchdog of calls in flight, with scripted calls and communicators.
#include "backends/cuda/nccl/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/eventually.h"

namespace ranklab {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using State = WatchedCall::State;

// What need not happen soon on a busy machine.
constexpr milliseconds kLong{60'000};

class FakeCall final : public WatchedCall {
 public:
  explicit FakeCall(State state, std::string what = "#7 all_reduce(sum) fp32 [4] at train.cpp:12")
      : now(state), what_(std::move(what)) {}
  State state() const override { return now; }
  std::string describe() const override { return what_; }
  std::atomic<State> now;

 private:
  std::string what_;
};

class FakeComm final : public WatchedComm {
 public:
  std::string describe() const override { return "dp[0 1]"; }
  std::optional<Error> reported_error(bool& remote) override {
    if (!reports) return std::nullopt;
    remote = is_remote;
    return Error(ErrorKind::kCommunication, {.what = "NCCL failed"});
  }
  std::atomic<bool> reports{false}, is_remote{false};
};

struct Fixture {
  Failure failure;
  std::atomic<int> aborts{0};
  std::atomic<bool> left{false};
  FakeComm comm;

  WatchdogOptions options(milliseconds hang) {
    WatchdogOptions out;
    out.where = "cuda world, rank 3";
    out.hang_timeout = out.host_timeout = hang;
    out.tick = milliseconds(2);
    out.grace = milliseconds(50);
    out.naming = milliseconds(100);
    out.abort_all = [this](const std::vector<WatchedComm*>&) { ++aborts; };
    out.leave = [this](const Error&) { left = true; };
    return out;
  }
  std::string text() const { return failure.get() ? failure.get()->what() : ""; }
};

TEST(Watchdog, ACallThatRunsTooLongIsNamedAndEverythingIsAborted) {
  Fixture f;
  auto call = std::make_shared<FakeCall>(State::kRunning);
  {
    Watchdog dog(f.failure, f.options(milliseconds(30)));
    dog.add(&f.comm);
    f.comm.add(call);
    ASSERT_TRUE(f.failure.wait_for(kLong));
    dog.remove(&f.comm);
  }
  EXPECT_THAT(f.text(), AllOf(HasSubstr("cuda world, rank 3"), HasSubstr("no end of dp[0 1] #7 all_reduce(sum)"),
                              HasSubstr("train.cpp:12"), HasSubstr("30 ms")));
  EXPECT_EQ(f.failure.get()->kind(), ErrorKind::kTimeout);
  EXPECT_EQ(f.aborts, 1);
}

TEST(Watchdog, AHangSaysWhichRanksAreSilent) {
  Fixture f;
  WatchdogOptions options = f.options(milliseconds(30));
  options.silent_ranks = [] { return "no sign of life of rank 1"; };
  {
    Watchdog dog(f.failure, options);
    dog.add(&f.comm);
    f.comm.add(std::make_shared<FakeCall>(State::kRunning));
    ASSERT_TRUE(f.failure.wait_for(kLong));
    dog.remove(&f.comm);
  }
  EXPECT_THAT(f.text(), AllOf(HasSubstr("no end of dp[0 1]"), HasSubstr("no sign of life of rank 1"),
                              HasSubstr("killed or stopped")));
}

// As CUDA's driver does: while the rank's thread is held in it, a query of another thread does not come back either.
class HeldCall final : public WatchedCall {
 public:
  State state() const override {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return is_free_; });
    return State::kRunning;
  }
  std::string describe() const override { return "#8 all_gather fp32 [4] at train.cpp:13"; }
  void free() {
    const std::lock_guard lock(mutex_);
    is_free_ = true;
    freed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable freed_;
  bool is_free_ = false;
};

TEST(Watchdog, ADriverThatLetsNobodyAskIsAHang) {
  Fixture f;
  auto call = std::make_shared<HeldCall>();
  WatchdogOptions options = f.options(milliseconds(30));
  options.grace = kLong;
  options.abort_all = [&](const std::vector<WatchedComm*>& comms) {
    EXPECT_EQ(comms.size(), 1u);
    call->free();  // the kernel that waited for a peer ends, and the driver with it
  };
  {
    Watchdog dog(f.failure, options);
    dog.add(&f.comm);
    f.comm.add(call);
    ASSERT_TRUE(f.failure.wait_for(kLong));
    dog.remove(&f.comm);
  }
  EXPECT_THAT(f.text(), AllOf(HasSubstr("no end of dp[0 1] #8 all_gather"), HasSubstr("driver does not answer")));
  EXPECT_FALSE(f.left);
}

// Named by another thread, as by the heartbeat, and nothing gets it out of the driver.
TEST(Watchdog, ADriverThatHoldsForGoodDoesNotKeepTheProcess) {
  Fixture f;
  auto call = std::make_shared<HeldCall>();
  WatchdogOptions options = f.options(milliseconds(60'000));
  options.leave = [&](const Error&) {
    f.left = true;
    call->free();
  };
  {
    Watchdog dog(f.failure, options);
    dog.add(&f.comm);
    f.comm.add(call);
    f.failure.set(Error(ErrorKind::kCommunication, {.what = "rank 1 is gone"}), true);
    while (!f.left) std::this_thread::sleep_for(milliseconds(5));
    dog.remove(&f.comm);
  }
  EXPECT_THAT(f.text(), HasSubstr("rank 1 is gone"));
}

TEST(Watchdog, TimeCountsFromTheBeginOfEachCall) {
  Fixture f;
  Watchdog dog(f.failure, f.options(milliseconds(1'000)));
  dog.add(&f.comm);
  // Ten calls, together longer than the limit, each far shorter; the last waits for the one before it all the while.
  std::vector<std::shared_ptr<FakeCall>> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(std::make_shared<FakeCall>(State::kWaiting));
  for (const auto& call : calls) f.comm.add(call);
  for (const auto& call : calls) {
    call->now = State::kRunning;
    std::this_thread::sleep_for(milliseconds(150));
    call->now = State::kDone;
  }
  EXPECT_FALSE(f.failure.is_set()) << f.text();
  dog.remove(&f.comm);
}

TEST(Watchdog, NoLimitIsNoLimit) {
  Fixture f;
  Watchdog dog(f.failure, f.options(milliseconds(0)));
  dog.add(&f.comm);
  f.comm.add(std::make_shared<FakeCall>(State::kRunning));
  EXPECT_FALSE(f.failure.wait_for(milliseconds(60)));
  dog.remove(&f.comm);
}

TEST(Watchdog, AHostHeldInsideTheLibraryIsFound) {
  Fixture f;
  Watchdog dog(f.failure, f.options(milliseconds(30)));
  const Watchdog::HostCall call(dog, "making the communicator tp[0 1]");
  ASSERT_TRUE(f.failure.wait_for(kLong));
  EXPECT_THAT(f.text(), HasSubstr("no end of making the communicator tp[0 1]"));
}

TEST(Watchdog, ACallWithinACallDoesNotEndTheWatchOverTheOuterOne) {
  Fixture f;
  Watchdog dog(f.failure, f.options(milliseconds(40)));
  const Watchdog::HostCall outer(dog, "waiting for the other side of a message");
  { const Watchdog::HostCall inner(dog, "starting another message"); }
  ASSERT_TRUE(f.failure.wait_for(kLong));
  EXPECT_THAT(f.text(), HasSubstr("no end of waiting for the other side of a message"));
}

TEST(Watchdog, AnErrorOfTheLibraryIsTakenAtOnceUnlessItSmellsOfADeadPeer) {
  Fixture f;
  Watchdog dog(f.failure, f.options(milliseconds(0)));
  dog.add(&f.comm);
  f.comm.reports = true;
  ASSERT_TRUE(f.failure.wait_for(kLong));
  EXPECT_THAT(f.text(), HasSubstr("NCCL failed"));
  dog.remove(&f.comm);

  Fixture g;
  WatchdogOptions options = g.options(milliseconds(0));
  options.naming = milliseconds(2'000);
  Watchdog other(g.failure, options);
  other.add(&g.comm);
  g.comm.is_remote = true;
  g.comm.reports = true;
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(g.failure.is_set()) << "the heartbeat gets the time to name the rank";
  g.failure.set(Error(ErrorKind::kCommunication, {.what = "rank 2 is gone"}), true);
  std::this_thread::sleep_for(options.naming + milliseconds(20));
  EXPECT_THAT(g.text(), HasSubstr("rank 2 is gone"));
  other.remove(&g.comm);
}

TEST(Watchdog, ARankThatDoesNotComeBackLeaves) {
  Fixture f;
  Watchdog dog(f.failure, f.options(milliseconds(0)));
  f.failure.set(Error(ErrorKind::kCommunication, {.what = "the first error"}), true);
  EXPECT_TRUE(eventually([&] { return f.left.load(); }));
  EXPECT_TRUE(eventually([&] { return f.aborts == 1; })) << "another thread's work";
}

TEST(Watchdog, ARankThatComesBackStays) {
  Fixture f;
  {
    WatchdogOptions options = f.options(milliseconds(0));
    options.grace = kLong;
    Watchdog dog(f.failure, options);
    f.failure.set(Error(ErrorKind::kCommunication, {.what = "the first error"}), true);
    while (f.aborts == 0) std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_FALSE(f.left);
}

TEST(Failure, TheFirstErrorStaysAndIsToldOnce) {
  Failure failure;
  EXPECT_NO_THROW(failure.throw_if_set());
  EXPECT_TRUE(failure.set(Error(ErrorKind::kTimeout, {.what = "first"}), true));
  EXPECT_FALSE(failure.set(Error(ErrorKind::kNumeric, {.what = "second"}), true));
  EXPECT_THROW(failure.throw_if_set(), Error);
  EXPECT_EQ(failure.get()->kind(), ErrorKind::kTimeout);
  EXPECT_TRUE(failure.take_unreported().has_value());
  EXPECT_FALSE(failure.take_unreported().has_value());
}

TEST(Failure, AnErrorThatUnwindsIsReplacedByItsText) {
  Failure failure;
  failure.set_unwinding();
  EXPECT_TRUE(failure.is_set());
  EXPECT_FALSE(failure.take_unreported().has_value());
  EXPECT_TRUE(failure.set(Error(ErrorKind::kNumeric, {.what = "the loss is NaN"}), true));
  EXPECT_FALSE(failure.set(Error(ErrorKind::kNumeric, {.what = "later"}), true));
  EXPECT_THAT(failure.get()->what(), HasSubstr("the loss is NaN"));
}

}  // namespace
}  // namespace ranklab
