#include "backends/cpu_sim/thread_world.h"

#include <gloo/barrier.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cpu_sim/backend_row.h"
#include "backends/cpu_sim/device_mover.h"
#include "backends/cpu_sim/gloo_mover.h"
#include "backends/cpu_sim/run.h"
#include "backends/cpu_sim/thread_mover.h"
#include "backends/cpu_sim/transport/inproc_transport.h"
#include "backends/cpu_sim/transport/thread_links.h"
#include "core/base/exhausted.h"
#include "core/base/text.h"
#include "core/sim/rank_threads.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace cpu_sim {
namespace {

using std::chrono::milliseconds;

// Makes the mover of each communicator; a group's members use the same Gloo contexts.
class Movers {
 public:
  explicit Movers(const ThreadWorldOptions& options) : options_(options) {
    if (options.device) device_ = std::make_shared<DeviceMover>(options.device);
    if (!options.device && options.transport == Transport::kTcp) links_ = connect_threads(options.size);
    std::vector<int> everyone(static_cast<size_t>(options.size));
    std::iota(everyone.begin(), everyone.end(), 0);
    meeting_ = group("meeting", everyone);
  }

  std::shared_ptr<Mover> get(const std::string& label, const Group& of) {
    if (device_) return device_;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Mover>& mover = of_group_[label];
    if (mover) return mover;
    if (options_.collectives == Collectives::kDirect)
      mover = std::make_shared<ThreadMover>(group(label, of.global_ranks));
    else
      mover = std::make_shared<GlooMover>(group(label, of.global_ranks));
    return mover;
  }

  // Called by every rank before its body: returns when all ranks have arrived, which proves that the transport works.
  void meet(int rank) {
    if (device_) return;
    gloo::BarrierOptions options(meeting_->context(rank));
    gloo::barrier(options);
  }
  // Called if some rank will not arrive.
  void call_off() {
    meeting_->context(0);
    meeting_->close();
  }

 private:
  std::shared_ptr<GlooGroup> group(const std::string& label, const std::vector<int>& ranks) {
    // Ranks enter Gloo only after all have made the call, so this limit catches a broken transport, not slow ranks.
    const milliseconds timeout = options_.hang_timeout.count() > 0 ? options_.hang_timeout : milliseconds(600'000);
    return std::make_shared<GlooGroup>(static_cast<int>(ranks.size()), timeout, [this, label, ranks, timeout] {
      return links_.empty() ? make_inproc_contexts(static_cast<int>(ranks.size()), timeout)
                            : contexts_over_links(label, ranks, timeout);
    });
  }

  GlooContexts contexts_over_links(const std::string& label, const std::vector<int>& ranks, milliseconds timeout) {
    GlooContexts contexts;
    for (size_t seat = 0; seat < ranks.size(); ++seat)
      contexts.push_back(
          links_[static_cast<size_t>(ranks[seat])]->context(label, ranks, static_cast<int>(seat), timeout));
    return contexts;
  }

  const ThreadWorldOptions& options_;
  std::shared_ptr<Mover> device_;
  std::vector<std::shared_ptr<PeerLinks>> links_;  // by rank; none: in process
  std::shared_ptr<GlooGroup> meeting_;             // group of all ranks
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Mover>> of_group_;
};

// The ranks share the match table itself.
class ThreadRun final : public Run {
 public:
  explicit ThreadRun(const ThreadWorldOptions& options)
      : device_(options.device),
        movers_(options),
        watch_(options.size, options.hang_timeout, options.stepper.get()),
        table_(watch_, options.same_call_site) {}
  ~ThreadRun() override { join_comm_threads(); }

  Channel& channel(const ChannelInfo& info) override { return table_.channel(info); }
  ExchangePtr post(Channel& channel, int seat, Call call, Mover& mover) override {
    return table_.post(channel, seat, std::move(call), mover);
  }
  void block(int rank, const ExchangePtr& exchange) override { watch_.block(rank, exchange); }
  void finished_call(int rank, const Exchange& exchange, int seat, int64_t now_ns) override {
    watch_.finished_call(rank, exchange, seat, now_ns);
  }
  Error abort_error(int rank) override { return watch_.abort_error(rank); }
  void body_returned(int rank) override { watch_.body_returned(rank); }
  void body_failed(int rank, const Error& error) override { watch_.body_failed(rank, error); }
  std::shared_ptr<Mover> mover(const std::string& label, const Group& group) override {
    return movers_.get(label, group);
  }
  c10::Device device() const override { return device_ ? device_->device() : c10::Device(c10::DeviceType::CPU); }
  DeviceQueues* device_queues() override { return device_.get(); }
  std::shared_ptr<PeerBuffers> peer_buffers(const std::string& label, int members) override {
    if (!device().is_cpu()) return nullptr;
    const std::lock_guard lock(buffers_mutex_);
    std::shared_ptr<PeerBuffers>& buffers = buffers_[label];
    if (!buffers) buffers = std::make_shared<PeerBuffers>(members);
    return buffers;
  }

  Movers& movers() { return movers_; }
  Watch& watch() { return watch_; }
  MatchTable& table() { return table_; }

 private:
  std::shared_ptr<DeviceQueues> device_;
  Movers movers_;
  Watch watch_;
  MatchTable table_;
  std::mutex buffers_mutex_;
  std::map<std::string, std::shared_ptr<PeerBuffers>> buffers_;  // by the communicator's label
};

// Counts the ranks that are still running, and waits for them to end.
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
  std::string gpu_name() const override { return options_.device ? options_.device->gpu_name() : ""; }
  int gpus() const override { return gpu_name().empty() ? 0 : 1; }
  Capabilities capabilities() const override {
    const bool on_gpu = options_.device && !options_.device->device().is_cpu();
    return on_gpu ? kBackendRow.on_gpu : kBackendRow.on_host;
  }

  std::string describe() const override {
    const std::string ranks =
        std::to_string(options_.size) + (options_.size == 1 ? " rank thread, " : " rank threads, ");
    if (options_.device) return ranks + "one device: " + options_.device->describe();
    const std::string gloo = options_.transport == Transport::kTcp ? "Gloo over TCP" : "Gloo in process";
    return ranks + gloo + (options_.collectives == Collectives::kDirect ? ", direct reductions" : "");
  }

  void run(const std::function<void(Endpoint&)>& body) override {
    const auto run = std::make_shared<ThreadRun>(options_);
    Countdown countdown(options_.size);
    if (options_.stepper) options_.stepper->begin_run();
    make_thread_pool();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < options_.size; ++rank) {
      try {
        threads.emplace_back([&, rank] {
          run->watch().runs_on(rank, ::pthread_self());
          run_rank_body(run, rank, options_.size, [&](Endpoint& endpoint) {
            run->movers().meet(rank);
            body(endpoint);
          });
          countdown.done();
        });
      } catch (const std::system_error& error) {
        run->body_failed(rank, threads_exhausted(error.what()));
        run->movers().call_off();
        countdown.done();
      }
    }
    watch_over(*run, countdown);
    for (std::thread& thread : threads) thread.join();
    run->table().check_nothing_open();
    run->join_comm_threads();
    if (options_.stepper) options_.stepper->end_run();
    if (const auto error = run->watch().first_error()) throw *error;
  }

 private:
  // Runs on the thread that called run(), which has nothing else to do.
  void watch_over(ThreadRun& run, Countdown& countdown) {
    const milliseconds limit = options_.hang_timeout;
    const milliseconds tick =
        limit.count() == 0 ? milliseconds(500) : std::clamp(limit / 8, milliseconds(5), milliseconds(500));
    std::optional<std::chrono::steady_clock::time_point> failed_at;
    bool reported = false;
    while (!countdown.wait_for(tick)) {
      run.watch().check_hang(wall_now_ns());
      const auto error = run.watch().first_error();
      if (!error || reported) continue;
      const auto now = std::chrono::steady_clock::now();
      if (!failed_at) failed_at = now;
      // A hung rank has used up its time already. After any other error the rest may still be computing.
      const milliseconds patience = options_.grace + (error->kind() == ErrorKind::kTimeout ? milliseconds(0) : limit);
      if (now - *failed_at < patience || (limit.count() == 0 && error->kind() != ErrorKind::kTimeout)) continue;
      reported = true;
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
  RANKLAB_CHECK(!options.device || options.collectives == Collectives::kDirect, ErrorKind::kInvalidArgument,
                .where = "thread world", .what = "Gloo moves the host's memory, and the ranks' tensors are on a device",
                .got = "Gloo, " + (options.device ? options.device->device().str() : ""), .want = "direct collectives",
                .fix = "leave the choice out");
  RANKLAB_CHECK(!options.stepper || options.stepper->world_size() == options.size, ErrorKind::kInvalidArgument,
                .where = "thread world", .what = "the stepper is made for another world",
                .got = std::to_string(options.stepper->world_size()) + " ranks",
                .want = std::to_string(options.size) + " ranks", .fix = "make a stepper per world");
  return std::make_unique<cpu_sim::ThreadWorld>(options);
}

}  // namespace ranklab
