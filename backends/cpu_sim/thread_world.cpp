#include "backends/cpu_sim/thread_world.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cpu_sim/direct_mover.h"
#include "backends/cpu_sim/gloo_mover.h"
#include "backends/cpu_sim/thread_communicator.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace cpu_sim {
namespace {

using std::chrono::milliseconds;

// Makes the mover of each communicator; Gloo's contexts are shared by a group's members.
class Movers {
 public:
  explicit Movers(const ThreadWorldOptions& options) : options_(options) {
    if (options.collectives == Collectives::kDirect)
      direct_ = std::make_shared<DirectMover>();
    else if (options.transport == Transport::kTcp)
      tcp_device_ = make_loopback_tcp_device();
  }

  std::shared_ptr<Mover> get(const std::string& label, int group_size) {
    if (direct_) return direct_;
    // Ranks enter Gloo only after all have made the call, so this limit is for a broken transport, not for slow ranks.
    const milliseconds timeout = options_.hang_timeout.count() > 0 ? options_.hang_timeout : milliseconds(600'000);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Mover>& mover = of_group_[label];
    if (!mover) mover = std::make_shared<GlooMover>(std::make_shared<GlooGroup>(group_size, tcp_device_, timeout));
    return mover;
  }

 private:
  const ThreadWorldOptions& options_;
  std::shared_ptr<Mover> direct_;
  std::shared_ptr<gloo::transport::Device> tcp_device_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Mover>> of_group_;
};

class ThreadEndpoint final : public Endpoint {
 public:
  ThreadEndpoint(std::shared_ptr<Run> run, Movers& movers, int rank, int world_size)
      : run_(std::move(run)), movers_(movers), rank_(rank), world_size_(world_size) {}

  int global_rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  c10::Device device() const override { return c10::Device(c10::DeviceType::CPU); }

  CommunicatorPtr communicator(const Group& group) override {
    check(group);
    std::string label = group.label();
    // A second communicator of the same group has call numbers of its own.
    if (const int copy = copies_[label]++; copy > 0) label += "(" + std::to_string(copy + 1) + ")";
    return make_thread_communicator(run_, group, label, movers_.get(label, group.size()));
  }

 private:
  void check(const Group& group) const {
    std::vector<int> ranks = group.global_ranks;
    std::sort(ranks.begin(), ranks.end());
    const bool valid = !ranks.empty() && ranks.front() >= 0 && ranks.back() < world_size_ &&
                       std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
    RANKLAB_CHECK(valid, ErrorKind::kInvalidArgument, .where = "rank " + std::to_string(rank_) + ", communicator",
                  .what = "not a group of this world", .got = group.label(),
                  .want = "different ranks from 0 to " + std::to_string(world_size_ - 1),
                  .fix = "take groups from a DeviceMesh of this world's size");
    const bool mine = group.group_rank >= 0 && group.group_rank < group.size() && group.global_rank() == rank_;
    RANKLAB_CHECK(mine, ErrorKind::kInvalidArgument, .where = "rank " + std::to_string(rank_) + ", communicator",
                  .what = "this rank does not sit at group_rank of the group",
                  .got = group.label() + " with group_rank " + std::to_string(group.group_rank),
                  .want = "global_ranks[group_rank] == " + std::to_string(rank_),
                  .fix = "ask DeviceMesh::group(axis, this rank)");
  }

  std::shared_ptr<Run> run_;
  Movers& movers_;
  int rank_;
  int world_size_;
  std::map<std::string, int> copies_;
};

[[noreturn]] void leave(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  std::fflush(nullptr);
  ::_exit(exit_code(error.kind()));
}

Error foreign(const char* what) {
  return Error(ErrorKind::kCommunication, {.where = {}, .what = "the rank threw", .got = what, .want = {}, .fix = {}});
}

Error no_thread(const char* what) {
  return Error(ErrorKind::kEnvironment, {.where = "thread world",
                                         .what = "the system gives no thread for this rank",
                                         .got = what,
                                         .want = "one thread per rank",
                                         .fix = "use fewer ranks, or raise the limit of processes (ulimit -u)"});
}

// Ranks that are still running, and the wait for them.
class Countdown {
 public:
  explicit Countdown(int count) : left_(count) {}
  void done() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) zero_.notify_all();
  }
  bool wait_for(milliseconds limit) {
    std::unique_lock lock(mutex_);
    return zero_.wait_for(lock, limit, [&] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable zero_;
  int left_;
};

class ThreadWorld final : public World {
 public:
  explicit ThreadWorld(ThreadWorldOptions options) : options_(std::move(options)) {}
  int size() const override { return options_.size; }

  std::string describe() const override {
    const std::string ranks =
        std::to_string(options_.size) + (options_.size == 1 ? " rank thread, " : " rank threads, ");
    if (options_.collectives == Collectives::kDirect) return ranks + "direct collectives";
    return ranks + (options_.transport == Transport::kTcp ? "Gloo over TCP" : "Gloo in process");
  }

  void run(const std::function<void(Endpoint&)>& body) override {
    const auto run = std::make_shared<Run>(options_.size, options_.hang_timeout, options_.same_call_site);
    Movers movers(options_);
    Countdown countdown(options_.size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < options_.size; ++rank) {
      try {
        threads.emplace_back([&, rank] {
          run_rank(body, run, movers, rank);
          countdown.done();
        });
      } catch (const std::system_error& error) {
        run->watch.body_failed(rank, no_thread(error.what()));
        countdown.done();
      }
    }
    watch_over(*run, countdown);
    for (std::thread& thread : threads) thread.join();
    run->table.check_nothing_open();
    run->join_comm_threads();
    if (const auto error = run->watch.first_error()) throw *error;
  }

 private:
  void run_rank(const std::function<void(Endpoint&)>& body, const std::shared_ptr<Run>& run, Movers& movers, int rank) {
    set_log_rank(rank);
    pthread_setname_np(pthread_self(), ("rank " + std::to_string(rank)).c_str());
    at::set_num_threads(1);
    try {
      ThreadEndpoint endpoint(run, movers, rank, options_.size);
      body(endpoint);
      run->watch.body_returned(rank);
    } catch (const Error& error) {
      run->watch.body_failed(rank, error);
    } catch (const c10::Error& error) {
      run->watch.body_failed(rank, foreign(error.what_without_backtrace()));
    } catch (const std::exception& error) {
      run->watch.body_failed(rank, foreign(error.what()));
    } catch (...) {
      run->watch.body_failed(rank, foreign("something that is no std::exception"));
    }
  }

  // On the thread that called run(): it has nothing else to do.
  void watch_over(Run& run, Countdown& countdown) {
    const milliseconds limit = options_.hang_timeout;
    const milliseconds tick =
        limit.count() == 0 ? milliseconds(500) : std::clamp(limit / 8, milliseconds(5), milliseconds(500));
    std::optional<std::chrono::steady_clock::time_point> failed_at;
    bool told = false;
    while (!countdown.wait_for(tick)) {
      run.watch.check_hang(wall_now_ns());
      const auto error = run.watch.first_error();
      if (!error || told) continue;
      const auto now = std::chrono::steady_clock::now();
      if (!failed_at) failed_at = now;
      // A hung rank has had its time already. After any other error the rest may still be computing.
      const milliseconds patience = options_.grace + (error->kind() == ErrorKind::kTimeout ? milliseconds(0) : limit);
      if (now - *failed_at < patience || (limit.count() == 0 && error->kind() != ErrorKind::kTimeout)) continue;
      told = true;
      if (!options_.on_stuck) leave(*error);
      options_.on_stuck(*error);
    }
  }

  ThreadWorldOptions options_;
};

}  // namespace
}  // namespace cpu_sim

std::unique_ptr<World> make_thread_world(const ThreadWorldOptions& options) {
  constexpr int kMaxSize = 512;
  RANKLAB_CHECK(options.size >= 1 && options.size <= kMaxSize, ErrorKind::kInvalidArgument, .where = "thread world",
                .what = "the world size is out of range", .got = std::to_string(options.size),
                .want = "1 to " + std::to_string(kMaxSize) + " ranks", .fix = "change the number of ranks");
  RANKLAB_CHECK(
      options.hang_timeout.count() >= 0 && options.grace.count() >= 0, ErrorKind::kInvalidArgument,
      .where = "thread world", .what = "a time limit is negative",
      .got = strprintf("hang timeout %lld ms, grace %lld ms", static_cast<long long>(options.hang_timeout.count()),
                       static_cast<long long>(options.grace.count())),
      .want = "0 or more", .fix = "use 0 to switch the hang check off");
  return std::make_unique<cpu_sim::ThreadWorld>(options);
}

}  // namespace ranklab
