#include "backends/cpu_sim/run.h"

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <c10/util/Exception.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "backends/cpu_sim/rank_communicator.h"
#include "core/base/exhausted.h"
#include "core/base/log.h"

namespace ranklab::cpu_sim {
namespace {

class RankEndpoint final : public Endpoint {
 public:
  RankEndpoint(std::shared_ptr<Run> run, int rank, int world_size)
      : run_(std::move(run)), rank_(rank), world_size_(world_size) {}

  int global_rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  c10::Device device() const override { return run_->device(); }

  CommunicatorPtr communicator(const Group& group) override {
    check(group);
    std::string label = group.label();
    // A second communicator of the same group numbers its calls separately.
    if (const int copy = copies_[label]++; copy > 0) label += "(" + std::to_string(copy + 1) + ")";
    return make_rank_communicator(run_, group, label, run_->mover(label, group));
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
  int rank_;
  int world_size_;
  std::map<std::string, int> copies_;
};

Error foreign(const char* what) {
  return Error(ErrorKind::kCommunication, {.where = {}, .what = "the rank threw", .got = what, .want = {}, .fix = {}});
}

}  // namespace

void Run::retire(std::unique_ptr<CommThread> thread) {
  const std::lock_guard lock(mutex_);
  retired_.push_back(std::move(thread));
}

void Run::join_comm_threads() {
  const std::lock_guard lock(mutex_);
  retired_.clear();
}

void run_rank_body(const std::shared_ptr<Run>& run, int rank, int world_size,
                   const std::function<void(Endpoint&)>& body) {
  set_log_rank(rank);
  pthread_setname_np(pthread_self(), ("rank " + std::to_string(rank)).c_str());
  at::set_num_threads(1);
  // Needed on a device, too, where one autograd thread would run all ranks' backward and know nothing of ranks.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  DeviceQueues* const queues = run->device_queues();
  try {
    if (queues != nullptr) queues->enter();
    {
      RankEndpoint endpoint(run, rank, world_size);
      body(endpoint);
    }
    if (queues != nullptr) queues->finish();
    run->body_returned(rank);
  } catch (const Error& error) {
    run->body_failed(rank, error);
  } catch (const c10::OutOfMemoryError& error) {
    ErrorText text = memory_exhausted().text();
    text.got = error.what_without_backtrace();
    run->body_failed(rank, Error(ErrorKind::kEnvironment, text));
  } catch (const c10::Error& error) {
    run->body_failed(rank, foreign(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    run->body_failed(rank, as_exhausted(error).value_or(foreign(error.what())));
  } catch (...) {
    run->body_failed(rank, foreign("something that is not a std::exception"));
  }
}

void leave(const Error& error, bool silently) {
  if (!silently) std::fprintf(stderr, "ranklab: error: %s\n", error.what());
  std::fflush(nullptr);
  ::_exit(exit_code(error.kind()));
}

}  // namespace ranklab::cpu_sim
