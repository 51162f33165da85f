// A stepper in a thread world: what it must not disturb (deadlocks, errors, the hang watch), on each path of the bytes.
#include <atomic>
#include <thread>

#include "core/comm/traced_communicator.h"
#include "core/live/stepper.h"
#include "tests/cpu_sim/faults.h"
#include "tests/eventually.h"

namespace ranklab::cpu_sim_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

using TracedBody = std::function<void(Endpoint&, Tracer&, Communicator&)>;

// Runs `body` with a recorder that obeys the stepper, in another thread.
class TracedWorld {
 public:
  TracedWorld(ThreadWorldOptions options, TracedBody body)
      : stepper_(std::make_shared<Stepper>(options.size, true)), body_(std::move(body)) {
    options.stepper = stepper_;
    thread_ = std::thread([this, options] {
      outcome_ = run_world(options, [this](Endpoint& endpoint, Communicator&) {
        Tracer tracer(endpoint.global_rank(), "");
        tracer.set_stepper(stepper_.get());
        tracer.set_step(0);
        const CommunicatorPtr comm =
            make_traced_communicator(endpoint.communicator(everyone(endpoint)), nullptr, &tracer, nullptr);
        body_(endpoint, tracer, *comm);
      });
    });
  }
  ~TracedWorld() {
    stepper_->detach();
    if (thread_.joinable()) thread_.join();
  }
  Stepper& stepper() { return *stepper_; }
  StepperMode wait() {
    EXPECT_TRUE(stepper_->wait_paused(seconds(30)));
    return stepper_->state().mode;
  }
  Outcome outcome() {
    thread_.join();
    return outcome_;
  }

 private:
  std::shared_ptr<Stepper> stepper_;
  TracedBody body_;
  Outcome outcome_;
  std::thread thread_;
};

class StepperWorldTest : public testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, StepperWorldTest, testing::ValuesIn(kPaths), path_name);

void step_to_end(TracedWorld& world) {
  for (int i = 0; i < 10'000 && world.wait() == StepperMode::kPaused; ++i) world.stepper().step_events(1);
}

TEST_P(StepperWorldTest, EveryVerbBlockingAndAsync) {
  TracedWorld world(options_of(GetParam(), 4), [](Endpoint&, Tracer&, Communicator& comm) {
    const int next = (comm.rank() + 1) % 4, previous = (comm.rank() + 3) % 4;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(comm.all_reduce(at::ones({3000}))[7].item<float>(), 4);
      const WorkPtr sum = comm.all_reduce_async(at::ones({40'000}));
      const WorkPtr all = comm.all_gather_async(at::full({2}, comm.rank(), at::kFloat));
      const WorkPtr sent = comm.send_async(at::full({5}, comm.rank(), at::kFloat), next);
      EXPECT_EQ(comm.recv(at::empty({5}), previous)[0].item<float>(), static_cast<float>(previous));
      EXPECT_EQ(all->wait()[7].item<float>(), 3);
      EXPECT_EQ(sum->wait()[0].item<float>(), 4);
      sent->wait();
      comm.broadcast(at::ones({4}), 1);
      comm.barrier();
    }
  });
  step_to_end(world);
  const Outcome outcome = world.outcome();
  EXPECT_FALSE(outcome.error) << outcome.text();
}

TEST_P(StepperWorldTest, ADeadlockIsNamedWhileStepping) {
  TracedWorld world(options_of(GetParam(), 3), [](Endpoint&, Tracer&, Communicator& comm) {
    const at::Tensor x = at::ones({4});
    if (comm.rank() == 2) {
      comm.recv(x, 0, 7);  // never sent
      return;
    }
    comm.recv(x, 1 - comm.rank());
    comm.send(x, 1 - comm.rank());
  });
  ASSERT_EQ(world.wait(), StepperMode::kPaused);
  world.stepper().step_rank(0, 1);  // it waits for rank 1, which goes on, too
  EXPECT_EQ(world.wait(), StepperMode::kEnded);
  const Outcome outcome = world.outcome();
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kCommunication);
  EXPECT_THAT(outcome.text(), HasSubstr("deadlock: each rank waits for the next one, in a circle"));
}

TEST_P(StepperWorldTest, AHeldRankIsNotHung) {
  ThreadWorldOptions options = options_of(GetParam(), 2);
  options.hang_timeout = kHang;
  TracedWorld world(options, [](Endpoint&, Tracer&, Communicator& comm) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(comm.all_reduce(at::ones({64}))[0].item<float>(), 2);
  });
  ASSERT_EQ(world.wait(), StepperMode::kPaused);
  world.stepper().step_rank(0, 1);  // into its all_reduce, where it waits for rank 1, which is let go in turn
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(world.wait(), StepperMode::kPaused);
    std::this_thread::sleep_for(2 * kHang);  // a person thinks
    world.stepper().step_events(1);
  }
  step_to_end(world);
  const Outcome outcome = world.outcome();
  EXPECT_FALSE(outcome.error) << outcome.text();
}

TEST_P(StepperWorldTest, AHungRankIsStillNamed) {
  ThreadWorldOptions options = options_of(GetParam(), 2);
  options.hang_timeout = kHang;
  options.grace = seconds(30);         // for rank 1 to see it
  std::atomic<bool> given_up = false;  // as its peer has seen
  TracedWorld world(options, [&](Endpoint&, Tracer&, Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 1) eventually([&] { return given_up.load(); });
    try {
      comm.barrier();
    } catch (const Error&) {
      given_up = true;
      throw;
    }
  });
  ASSERT_EQ(world.wait(), StepperMode::kPaused);
  world.stepper().resume();
  EXPECT_EQ(world.wait(), StepperMode::kEnded);
  const Outcome outcome = world.outcome();
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kTimeout);
  EXPECT_THAT(outcome.text(), HasSubstr("rank 1"));
}

TEST_P(StepperWorldTest, ARankThatThrowsEndsAllHeldOnes) {
  TracedWorld world(options_of(GetParam(), 4), [](Endpoint&, Tracer& tracer, Communicator& comm) {
    tracer.at_boundary({.kind = BoundaryKind::kSpan, .name = "F"});
    if (comm.rank() == 0) throw Error(ErrorKind::kNumeric, {.where = "", .what = "made up"});
    comm.barrier();
  });
  ASSERT_EQ(world.wait(), StepperMode::kPaused);
  world.stepper().step_rank(0, 1);
  EXPECT_EQ(world.wait(), StepperMode::kEnded);
  const Outcome outcome = world.outcome();
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.text(), HasSubstr("rank 0] made up"));
}

TEST(StepperWorldTest, WantsAStepperOfItsSize) {
  ThreadWorldOptions options{.size = 2};
  options.stepper = std::make_shared<Stepper>(3);
  EXPECT_THROW(make_thread_world(options), Error);
}

}  // namespace
}  // namespace ranklab::cpu_sim_test
