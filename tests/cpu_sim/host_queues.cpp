#include "tests/cpu_sim/host_queues.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace ranklab {
namespace {

class HostMark final : public QueueMark {
 public:
  void reach(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    error_ = std::move(error);
    changed_.notify_all();
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool reached_ = false;
  std::exception_ptr error_;
};

// One rank's transfers.
class Transfers {
 public:
  Transfers() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  std::shared_ptr<HostMark> add(std::vector<QueueMarkPtr> after, std::function<void()> work) {
    auto mark = std::make_shared<HostMark>();
    const std::lock_guard lock(mutex_);
    orders_.push_back({std::move(after), std::move(work), mark});
    changed_.notify_one();
    return last_ = mark;
  }
  void finish() {
    std::shared_ptr<HostMark> last;
    {
      const std::lock_guard lock(mutex_);
      last = last_;
    }
    if (last) last->wait();
  }

 private:
  struct Order {
    std::vector<QueueMarkPtr> after;
    std::function<void()> work;
    std::shared_ptr<HostMark> done;
  };

  void run(const std::stop_token& stop) {
    at::set_num_threads(1);
    for (int number = 0;; ++number) {
      Order order;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !orders_.empty(); })) return;
        order = std::move(orders_.front());
        orders_.pop_front();
      }
      if (number % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
      order.done->reach(try_to(order));
    }
  }

  static std::exception_ptr try_to(Order& order) {
    try {
      for (const QueueMarkPtr& mark : order.after) static_cast<const HostMark&>(*mark).wait();
      std::exchange(order.work, nullptr)();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Order> orders_;
  std::shared_ptr<HostMark> last_;
  std::jthread thread_;  // last: the others must be there before it starts
};

class HostQueues final : public DeviceQueues {
 public:
  c10::Device device() const override { return c10::DeviceType::CPU; }
  std::string describe() const override { return "the host"; }
  int64_t free_bytes() const override { return 0; }

  void enter() override {
    const std::lock_guard lock(mutex_);
    t_mine = all_.emplace_back(std::make_unique<Transfers>()).get();
  }
  void finish() override { t_mine->finish(); }

  QueueMarkPtr mark() override {
    auto reached = std::make_shared<HostMark>();
    reached->reach(nullptr);
    return reached;
  }
  void wait(const QueueMark& mark) override { static_cast<const HostMark&>(mark).wait(); }
  QueueMarkPtr transfer(std::span<const QueueMarkPtr> after, std::function<void()> work) override {
    for (const QueueMarkPtr& mark : after) {
      if (!mark) throw std::logic_error("a member posted without a mark");
    }
    return t_mine->add({after.begin(), after.end()}, std::move(work));
  }
  void keep(const at::Tensor&) override {}  // an order owns its tensors until it is done

 private:
  static thread_local Transfers* t_mine;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Transfers>> all_;
};

thread_local Transfers* HostQueues::t_mine = nullptr;

}  // namespace

std::shared_ptr<DeviceQueues> make_host_queues() { return std::make_shared<HostQueues>(); }

}  // namespace ranklab
