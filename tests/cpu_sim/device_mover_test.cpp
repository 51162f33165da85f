// What rank threads require of a device's queues: a call is ordered after every member's kernels, members continue
// after the call, and memory lives as long as the work that uses it. The conformance suite checks the bits.
#include <c10/core/AutogradState.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/cpu_sim/faults.h"

namespace ranklab::cpu_sim_test {
namespace {

class NotedMark final : public QueueMark {};

// Orders run at once; notes who asked for what.
class NotedQueues : public DeviceQueues {
 public:
  struct Transfer {
    std::set<const QueueMark*> after;
    QueueMarkPtr done;
  };

  c10::Device device() const override { return c10::DeviceType::CPU; }
  std::string describe() const override { return "noted"; }
  int64_t free_bytes() const override { return 0; }
  void enter() override { ++entered; }
  void finish() override { ++finished; }
  QueueMarkPtr mark() override {
    const std::lock_guard lock(mutex);
    return set[std::this_thread::get_id()].emplace_back(std::make_shared<NotedMark>());
  }
  void wait(const QueueMark& mark) override {
    const std::lock_guard lock(mutex);
    waited[std::this_thread::get_id()].insert(&mark);
  }
  QueueMarkPtr transfer(std::span<const QueueMarkPtr> after, std::function<void()> work) override {
    work();
    const std::lock_guard lock(mutex);
    Transfer& transfer = transfers.emplace_back();
    for (const QueueMarkPtr& mark : after) transfer.after.insert(mark.get());
    return transfer.done = std::make_shared<NotedMark>();
  }
  void keep(const at::Tensor& tensor) override {
    const std::lock_guard lock(mutex);
    kept.insert(tensor.const_data_ptr());
  }

  std::mutex mutex;
  std::map<std::thread::id, std::vector<QueueMarkPtr>> set;
  std::map<std::thread::id, std::set<const QueueMark*>> waited;
  std::vector<Transfer> transfers;
  std::set<const void*> kept;
  std::atomic<int> entered{0}, finished{0};
};

Outcome run_on(std::shared_ptr<DeviceQueues> queues, int size, const std::function<void(Communicator&)>& body) {
  return run_world({.size = size, .device = std::move(queues)}, [&](Endpoint&, Communicator& comm) { body(comm); });
}

TEST(DeviceMover, OrdersACallBehindEveryMemberAndEveryMemberBehindIt) {
  const auto queues = std::make_shared<NotedQueues>();
  constexpr int kRanks = 4, kCalls = 3;
  const Outcome outcome = run_on(queues, kRanks, [&](Communicator& comm) {
    for (int call = 0; call < kCalls; ++call) comm.all_reduce(at::ones({5}));
  });
  EXPECT_FALSE(outcome.error) << outcome.text();
  EXPECT_EQ(queues->entered, kRanks);
  EXPECT_EQ(queues->finished, kRanks);
  ASSERT_EQ(queues->transfers.size(), kCalls);
  ASSERT_EQ(queues->set.size(), kRanks);
  for (int call = 0; call < kCalls; ++call) {
    std::set<const QueueMark*> want;  // of each rank the mark that it set when it posted this call
    for (const auto& [thread, marks] : queues->set) {
      ASSERT_EQ(marks.size(), kCalls);
      want.insert(marks[static_cast<size_t>(call)].get());
    }
    const NotedQueues::Transfer& transfer = queues->transfers[static_cast<size_t>(call)];
    EXPECT_EQ(transfer.after, want) << "call " << call;
    for (const auto& [thread, waited] : queues->waited) EXPECT_TRUE(waited.contains(transfer.done.get())) << call;
  }
  EXPECT_EQ(queues->waited.size(), kRanks);
  EXPECT_TRUE(queues->kept.empty()) << "whoever waits frees behind the call";
}

// Rank 1 sends and never waits: before rank 0 is there to receive, and after.
TEST(DeviceMover, KeepsTheTensorsOfAMemberThatDoesNotWait) {
  for (const bool before : {true, false}) {
    const auto queues = std::make_shared<NotedQueues>();
    std::atomic<const void*> sent{nullptr};
    std::atomic<bool> gone{false}, ordered{false};
    std::thread::id sender;
    const Outcome outcome = run_on(queues, 2, [&](Communicator& comm) {
      if (comm.rank() == 1) {
        sender = std::this_thread::get_id();
        const at::Tensor mine = at::full({3}, 7.0);
        sent = mine.const_data_ptr();
        WorkPtr work = comm.send_async(mine, 0);
        if (!before) ordered.wait(false);
        work.reset();
        gone = true;
        gone.notify_all();
        return;
      }
      if (before) gone.wait(false);
      EXPECT_TRUE(at::equal(comm.recv(at::empty({3}), 1), at::full({3}, 7.0)));
      ordered = true;
      ordered.notify_all();
    });
    EXPECT_FALSE(outcome.error) << outcome.text();
    // Either no rank's queue continues past the call, or the sender's does.
    EXPECT_EQ(queues->kept.contains(sent), before);
    EXPECT_EQ(queues->waited[sender].size(), before ? 0U : 1U);
  }
}

class FailingQueues : public NotedQueues {
 public:
  QueueMarkPtr transfer(std::span<const QueueMarkPtr>, std::function<void()>) override {
    throw std::runtime_error("out of memory");
  }
};

TEST(DeviceMover, AnErrorOfTheDeviceEndsEveryRank) {
  const Outcome outcome =
      run_on(std::make_shared<FailingQueues>(), 3, [](Communicator& comm) { comm.all_reduce(at::ones({5})); });
  EXPECT_THAT(outcome.text(), testing::HasSubstr("the bytes could not be moved; got out of memory"));
}

// The same when it shows only where a member waits.
TEST(DeviceMover, ALateErrorReachesWhoWaits) {
  class Late : public NotedQueues {
   public:
    void wait(const QueueMark&) override { throw std::runtime_error("an illegal memory access was encountered"); }
  };
  const Outcome outcome =
      run_on(std::make_shared<Late>(), 2, [](Communicator& comm) { comm.all_reduce(at::ones({5})); });
  EXPECT_THAT(outcome.text(), testing::HasSubstr("illegal memory access"));
}

TEST(DeviceMover, RefusesTensorsThatAreElsewhereAndGloo) {
  const Outcome elsewhere =
      run_on(make_host_queues(), 2, [](Communicator& comm) { comm.all_reduce(at::ones({5}, at::kMeta)); });
  EXPECT_THAT(elsewhere.text(), testing::HasSubstr("on another device than the ranks"));
  const Outcome gloo = run_world({.size = 2, .collectives = Collectives::kGloo, .device = make_host_queues()},
                                 [](Endpoint&, Communicator&) {});
  EXPECT_THAT(gloo.text(), testing::HasSubstr("Gloo moves the host's memory"));
}

// Backward of a device's tensors on the rank's own thread: autograd asks this.
TEST(DeviceMover, RanksRunTheirOwnBackward) {
  run_on(make_host_queues(), 2,
         [](Communicator&) { EXPECT_FALSE(c10::AutogradState::get_tls_state().get_multithreading_enabled()); });
}

}  // namespace
}  // namespace ranklab::cpu_sim_test
