#include "backends/meta/meta_world.h"

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <c10/util/Exception.h>

#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "backends/meta/meta_booking.h"
#include "backends/meta/meta_communicator.h"
#include "backends/meta/meta_kernels.h"
#include "core/base/error.h"
#include "core/comm/world.h"
#include "core/sim/rank_threads.h"

namespace ranklab {
namespace meta {
namespace {

using StandIn = std::shared_ptr<const std::vector<int>>;

class MetaEndpoint final : public Endpoint {
 public:
  MetaEndpoint(int rank, StandIn stand_in, std::shared_ptr<Meetings> meetings)
      : rank_(rank), stand_in_(std::move(stand_in)), meetings_(std::move(meetings)) {}
  int global_rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(stand_in_->size()); }
  c10::Device device() const override { return at::kMeta; }
  c10::Device control_device() const override { return at::kCPU; }
  CommunicatorPtr communicator(const Group& group) override {
    // The meeting is identified by the ranks that run for the group's members, because the representatives of the two
    // ends of a message may belong to other groups. A second communicator of the same group numbers its calls
    // separately.
    std::set<int> running;
    for (int latest = -1; const int rank : group.global_ranks) {
      const int own = (*stand_in_)[static_cast<size_t>(rank)];
      // neighbouring ranks mostly have the same representative, and there may be thousands of ranks
      if (own != latest) running.insert(own);
      latest = own;
    }
    std::string label = std::string(name(group.axis));
    for (const int rank : running) label += ' ' + std::to_string(rank);
    label += '#' + std::to_string(copies_[label]++);
    return make_meta_communicator(group, label, meetings_, stand_in_);
  }

 private:
  int rank_;
  StandIn stand_in_;
  std::shared_ptr<Meetings> meetings_;
  std::map<std::string, int> copies_;
};

class MetaWorld final : public World {
 public:
  explicit MetaWorld(std::vector<int> stand_in)
      : stand_in_(std::make_shared<const std::vector<int>>(std::move(stand_in))) {
    for (int rank = 0; rank < size(); ++rank)
      if ((*stand_in_)[static_cast<size_t>(rank)] == rank) running_.push_back(rank);
  }
  int size() const override { return static_cast<int>(stand_in_->size()); }
  // Meta tensors can represent any kind of run that is planned.
  Capabilities capabilities() const override { return Capabilities::all(); }
  std::string describe() const override {
    return std::to_string(running_.size()) + " ranks of shapes for " + std::to_string(size());
  }

  void run(const std::function<void(Endpoint&)>& body) override {
    const auto meetings = std::make_shared<Meetings>(static_cast<int>(running_.size()));
    std::mutex mutex;
    std::exception_ptr first;
    make_thread_pool();
    std::vector<std::thread> threads;
    for (const int rank : running_) {
      threads.emplace_back([&, rank] {
        try {
          run_rank(rank, body, meetings);
          meetings->returned();
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
          meetings->failed();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (first) rethrow(first);
  }

 private:
  void run_rank(int rank, const std::function<void(Endpoint&)>& body, const std::shared_ptr<Meetings>& meetings) {
    at::set_num_threads(1);
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    const UnknownNumbers unknown;
    MetaEndpoint endpoint(rank, stand_in_, meetings);
    body(endpoint);
  }

  [[noreturn]] static void rethrow(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const c10::Error& foreign) {
      throw Error(ErrorKind::kInternal, {.where = "world of shapes",
                                         .what = "an operator failed on shapes",
                                         .got = foreign.what_without_backtrace(),
                                         .want = "operators that need no numbers",
                                         .fix = "give it a kernel in backends/meta/meta_kernels.cpp"});
    }
  }

  StandIn stand_in_;
  std::vector<int> running_;
};

}  // namespace
}  // namespace meta

std::shared_ptr<World> make_meta_world(std::vector<int> stand_in) {
  for (const int rank : stand_in) {
    const bool runs =
        rank >= 0 && rank < static_cast<int>(stand_in.size()) && stand_in[static_cast<size_t>(rank)] == rank;
    RANKLAB_CHECK(runs, ErrorKind::kInvalidArgument, .where = "world of shapes",
                  .what = "a rank stands in for others and does not run itself", .got = std::to_string(rank),
                  .want = "stand_in[rank] == rank for it", .fix = "name ranks that stand in for themselves");
  }
  meta::install_kernels();
  meta::install_booking();
  return std::make_shared<meta::MetaWorld>(std::move(stand_in));
}

}  // namespace ranklab
