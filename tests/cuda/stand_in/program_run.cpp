#include "tests/cuda/stand_in/program_run.h"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/cuda/stand_in/cuda_runtime.h"
#include "tests/cuda/stand_in/nccl_control.h"

namespace ranklab::stand_in {
namespace {

using Direction = std::tuple<int, int, int>;  // channel, from, to

// The streams of all runs: a stream is never destroyed.
cudaStream_t stream_for(int rank, int channel) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, cudaStream_t> all;
  const std::lock_guard lock(mutex);
  cudaStream_t& stream = all[{rank, channel}];
  if (stream == nullptr) cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
  return stream;
}

int content_of(const PipelineMessage& message) {
  return 1 + (message.forward ? 1 : 0) + 2 * (message.stage + 1000 * message.microbatch);
}

class Run;

// One rank: its thread does what the program says.
class Rank {
 public:
  Rank(Run& run, int rank) : run_(run), rank_(rank) {}
  void work();
  void abort();

 private:
  struct Received {
    std::unique_ptr<int> data = std::make_unique<int>(0);
    cudaEvent_t done = nullptr;
  };
  void make_communicators();
  void connect();
  void step(const ProgramStep& step);
  void launch(const ProgramStep& step);
  void act(const Action& action);
  ncclResult_t start(const Transfer& transfer, int channel);
  void accept(ncclResult_t code);
  void wait_for(cudaEvent_t event);

  Run& run_;
  int rank_;
  size_t next_action_ = 0;
  std::mutex mutex_;
  std::vector<ncclComm_t> comms_;  // by channel
  std::vector<std::unique_ptr<int>> sent_;
  std::map<PipelineMessage, Received> received_;
};

struct Stopped {};

class Run {
 public:
  Run(const Schedule& its_schedule, const MessageProgram& its_program) : schedule(its_schedule), program(its_program) {
    for (int channel = 0; channel < program.num_channels; ++channel) ncclGetUniqueId(&ids.emplace_back());
    for (const auto& steps : program.ranks) {
      for (const ProgramStep& step : steps) {
        for (const Transfer& transfer : step.transfers) {
          const PipelineLane lane = lane_of(schedule, transfer.message);
          directions.insert({step.channel, lane.from, lane.to});
        }
      }
    }
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) ranks.push_back(std::make_unique<Rank>(*this, rank));
  }

  std::string execute(std::chrono::milliseconds patience) {
    std::vector<std::jthread> threads;
    for (const auto& rank : ranks) threads.emplace_back([this, &rank] { rank->work(); });
    int64_t seen = -1;
    auto since = std::chrono::steady_clock::now();
    while (ended < schedule.num_ranks() && !stop) {
      const auto now = std::chrono::steady_clock::now();
      if (progress != seen || set_up < schedule.num_ranks()) {  // a join cannot be broken off
        seen = progress;
        since = now;
      }
      if (now - since > patience) fail(kNoProgress);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (stop) {
      for (const auto& rank : ranks) rank->abort();
    }
    threads.clear();
    const std::lock_guard lock(mutex_);
    return problem_;
  }

  void fail(const std::string& words) {
    const std::lock_guard lock(mutex_);
    if (problem_.empty()) problem_ = words;
    stop = true;
  }

  const Schedule& schedule;
  const MessageProgram& program;
  std::vector<ncclUniqueId> ids;  // by channel
  std::set<Direction> directions;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> progress{0};
  std::atomic<int> set_up{0};  // ranks whose communicators are there, and connected if the program wants it
  std::atomic<int> ended{0};
  std::vector<std::unique_ptr<Rank>> ranks;

 private:
  std::mutex mutex_;
  std::string problem_;
};

void Rank::accept(ncclResult_t code) {
  if (run_.stop) throw Stopped();
  if (code == ncclSuccess) return;
  run_.fail("rank " + std::to_string(rank_) + ": " + ncclGetLastError(nullptr));
  throw Stopped();
}

void Rank::wait_for(cudaEvent_t event) {
  while (cudaEventQuery(event) != cudaSuccess) {
    if (run_.stop) throw Stopped();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Rank::make_communicators() {
  for (const ncclUniqueId& id : run_.ids) {
    ncclComm_t comm = nullptr;
    const ncclResult_t code = ncclCommInitRankConfig(&comm, run_.schedule.num_ranks(), id, rank_, nullptr);
    if (comm != nullptr) {
      const std::lock_guard lock(mutex_);
      comms_.push_back(comm);
    }
    accept(code);
  }
}

// In the same order everywhere, so that no host waits in a circle.
void Rank::connect() {
  int token = 0;
  for (const auto& [channel, from, to] : run_.directions) {
    const auto comm = comms_[static_cast<size_t>(channel)];
    const cudaStream_t stream = stream_for(rank_, channel);
    if (from == rank_) accept(ncclSend(&token, 1, ncclInt32, to, comm, stream));
    if (to == rank_) accept(ncclRecv(&token, 1, ncclInt32, from, comm, stream));
    cudaStreamSynchronize(stream);
  }
}

ncclResult_t Rank::start(const Transfer& transfer, int channel) {
  const PipelineLane lane = lane_of(run_.schedule, transfer.message);
  const auto comm = comms_[static_cast<size_t>(channel)];
  const cudaStream_t stream = stream_for(rank_, channel);
  if (transfer.send) {
    sent_.push_back(std::make_unique<int>(content_of(transfer.message)));
    return ncclSend(sent_.back().get(), 1, ncclInt32, lane.to, comm, stream);
  }
  return ncclRecv(received_[transfer.message].data.get(), 1, ncclInt32, lane.from, comm, stream);
}

void Rank::launch(const ProgramStep& step) {
  accept(ncclGroupStart());
  for (const Transfer& transfer : step.transfers) accept(start(transfer, step.channel));
  accept(ncclGroupEnd());
  cudaEvent_t done = nullptr;
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  cudaEventRecord(done, stream_for(rank_, step.channel));
  for (const Transfer& transfer : step.transfers) {
    if (!transfer.send) received_[transfer.message].done = done;
  }
}

void Rank::act(const Action& action) {
  for (const PipelineMessage& message : needed_messages(run_.schedule, action)) {
    const Received& received = received_.at(message);
    wait_for(received.done);
    if (*received.data != content_of(message)) {
      run_.fail("rank " + std::to_string(rank_) + " got another message than " + to_text(action) + " needs");
      throw Stopped();
    }
  }
}

void Rank::step(const ProgramStep& step) {
  if (step.channel >= 0) return launch(step);
  act(run_.schedule.ranks[static_cast<size_t>(rank_)][next_action_++]);
}

void Rank::work() {
  cudaSetDevice(rank_);
  try {
    make_communicators();
    if (run_.program.connected) connect();
    ++run_.set_up;
    for (const ProgramStep& each : run_.program.ranks[static_cast<size_t>(rank_)]) {
      step(each);
      ++run_.progress;
    }
    for (int channel = 0; channel < run_.program.num_channels; ++channel) {
      cudaEvent_t end = nullptr;
      cudaEventCreateWithFlags(&end, cudaEventDisableTiming);
      cudaEventRecord(end, stream_for(rank_, channel));
      wait_for(end);
      ++run_.progress;
    }
    const std::lock_guard lock(mutex_);
    for (ncclComm_t comm : std::exchange(comms_, {})) ncclCommDestroy(comm);
  } catch (const std::out_of_range&) {
    run_.fail("rank " + std::to_string(rank_) + " never receives what an action needs");
  } catch (const Stopped&) {
    abort();  // what it made after the test's thread had looked
  }
  ++run_.ended;
}

void Rank::abort() {
  const std::lock_guard lock(mutex_);
  for (ncclComm_t comm : comms_) ncclCommAbort(comm);  // the rank's thread may still read the list
  cudaSetDevice(rank_);
  for (int channel = 0; channel < run_.program.num_channels; ++channel)
    cudaStreamSynchronize(stream_for(rank_, channel));
}

}  // namespace

std::string run_program(const Schedule& schedule, const MessageProgram& program, int patience_ms) {
  return Run(schedule, program).execute(std::chrono::milliseconds(patience_ms));
}

}  // namespace ranklab::stand_in
