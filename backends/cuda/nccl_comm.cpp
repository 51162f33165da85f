#include "backends/cuda/nccl_comm.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "backends/cuda/nccl_api.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

using Clock = std::chrono::steady_clock;

// Spins while an answer is near, then sleeps, so that eight waiting processes do not burn eight cores.
class Backoff {
 public:
  void pause() {
    if (Clock::now() - start_ < std::chrono::microseconds(200)) return;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

 private:
  Clock::time_point start_ = Clock::now();
};

std::string exchange_id(const Group& group, int serial, Rendezvous& rendezvous) {
  const std::string key = "nccl/" + group.label() + "/" + std::to_string(serial);
  const int root = group.global_ranks.front();
  // Everyone checks in first: NCCL itself would wait for a missing member without saying whom.
  rendezvous.set(key + "/here/" + std::to_string(group.global_rank()), "1");
  for (const int rank : group.global_ranks) rendezvous.get(key + "/here/" + std::to_string(rank), rank);
  if (group.group_rank == 0) {
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "making a unique id");
    rendezvous.set(key + "/id", std::string(id.internal, sizeof(id.internal)));
  }
  return rendezvous.get(key + "/id", root);
}

}  // namespace

NcclComm::NcclComm(const Group& group, int serial, c10::Device device, Rendezvous& rendezvous)
    : group_(group),
      rendezvous_(rendezvous),
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {
  const std::string bytes = exchange_id(group, serial, rendezvous);
  ncclUniqueId id;
  RANKLAB_CHECK(bytes.size() == sizeof(id.internal), ErrorKind::kCommunication, .where = "nccl " + group.label(),
                .what = "a unique id of the wrong size", .got = std::to_string(bytes.size()) + " bytes",
                .want = std::to_string(sizeof(id.internal)), .fix = "use the same NCCL on every host");
  std::memcpy(id.internal, bytes.data(), bytes.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check_nccl(ncclCommInitRankConfig(&comm_, group.size(), id, group.group_rank, &config), "making a communicator");
  settle("making a communicator");
}

NcclComm::~NcclComm() {
  // In an error the peers may never come; otherwise let NCCL finish in order.
  if (std::uncaught_exceptions() > 0) abort();
  if (comm_ != nullptr) ncclCommDestroy(comm_);
}

void NcclComm::abort() noexcept {
  if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
}

void NcclComm::group_begin() {
  check_nccl(ncclGroupStart(), "starting a group of calls", comm_);
  grouping_ = true;
}

void NcclComm::group_end() {
  grouping_ = false;
  accept(ncclGroupEnd(), "starting the calls of a group");
}

void NcclComm::accept(ncclResult_t code, const char* doing) {
  check_nccl(code, doing, comm_);
  if (!grouping_) settle(doing);
}

void NcclComm::settle(const char* doing) {
  wait_until(
      [&] {
        ncclResult_t state = ncclInProgress;
        check_nccl(ncclCommGetAsyncError(comm_, &state), doing, comm_);
        check_nccl(state, doing, comm_);
        return state == ncclSuccess;
      },
      doing);
}

void NcclComm::wait_until(const std::function<bool()>& done, const std::string& waiting_for) {
  const std::string where = "nccl " + group_.label() + ", rank " + std::to_string(group_.global_rank());
  RANKLAB_CHECK(comm_ != nullptr, ErrorKind::kCommunication, .where = where, .what = "the group was given up",
                .got = waiting_for, .want = "no call after an error", .fix = "see the first error of this rank");
  const auto deadline = Clock::now() + rendezvous_.timeout();
  auto next_look = Clock::now() + std::chrono::milliseconds(200);
  Backoff backoff;
  try {
    while (!done()) {
      const auto now = Clock::now();
      RANKLAB_CHECK(now < deadline, ErrorKind::kTimeout, .where = where, .what = "no end of " + waiting_for,
                    .got = "nothing for " + std::to_string(rendezvous_.timeout().count()) + " ms",
                    .want = "the same call on every member of the group",
                    .fix = "see which rank is behind; --check-calls finds calls that differ");
      if (now >= next_look) {
        rendezvous_.check_failure();
        ncclResult_t state = ncclSuccess;
        check_nccl(ncclCommGetAsyncError(comm_, &state), "looking at a communicator", comm_);
        check_nccl(state, waiting_for.c_str(), comm_);
        next_look = now + std::chrono::milliseconds(200);
      }
      backoff.pause();
    }
  } catch (...) {
    abort();
    throw;
  }
}

}  // namespace ranklab
