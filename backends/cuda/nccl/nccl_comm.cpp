#include "backends/cuda/nccl/nccl_comm.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "backends/cuda/gpu_choice.h"
#include "backends/cuda/nccl/nccl_api.h"
#include "core/base/error.h"

namespace ranklab {
namespace {

// NCCL reports the death of a peer within a fraction of a second, but does not name it; the heartbeat, which does,
// needs a few seconds.
constexpr std::chrono::milliseconds kNaming{6'000};
// How long an abort waits for the rank's thread to return from a call.
constexpr std::chrono::milliseconds kComeOut{2'000};

bool looks_remote(ncclResult_t code) { return code == ncclRemoteError || code == ncclSystemError; }

}  // namespace

NcclComm::NcclComm(NcclMembers members, NcclContextPtr context)
    : members_(std::move(members)),
      context_(std::move(context)),
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, context_->device.index())) {
  check_in();
  const std::string bytes = exchange_id();
  ncclUniqueId id;
  RANKLAB_CHECK(bytes.size() == sizeof(id.internal), ErrorKind::kCommunication, .where = "nccl " + members_.label,
                .what = "a unique id of the wrong size", .got = std::to_string(bytes.size()) + " bytes",
                .want = std::to_string(sizeof(id.internal)), .fix = "use the same NCCL on every host");
  std::memcpy(id.internal, bytes.data(), bytes.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  if (members_.max_ctas > 0) config.maxCTAs = members_.max_ctas;
  {
    const Use use(*this, "making the communicator " + members_.label);
    ncclComm_t made = nullptr;
    const ncclResult_t code =
        ncclCommInitRankConfig(&made, static_cast<int>(members_.global_ranks.size()), id, members_.rank, &config);
    accept(code, "making a communicator");
    comm_ = made;
  }
  context_->watchdog.add(this);
}

NcclComm::~NcclComm() {
  // After an error the peers may never arrive.
  if (std::uncaught_exceptions() > 0) {
    context_->failure.set_unwinding();
    context_->watchdog.abort_now();
  }
  // The order matters: calls in progress must end before the memory is freed.
  const Watchdog::HostCall call(context_->watchdog, "closing the communicator " + members_.label);
  cudaStreamSynchronize(stream_);
  context_->watchdog.remove(this);
  const std::lock_guard lock(in_use_);
  if (comm_ == nullptr) return;
  ncclCommFinalize(comm_);
  ncclCommDestroy(comm_);
}

// Every member first announces itself and its GPU, because NCCL would wait for a missing member without naming it.
void NcclComm::check_in() {
  Rendezvous& rendezvous = context_->rendezvous;
  const std::string here = members_.key + "/here/";
  const int mine = members_.global_ranks[static_cast<size_t>(members_.rank)];
  rendezvous.set(here + std::to_string(mine), context_->gpu);
  for (const int rank : members_.global_ranks) {
    const std::string theirs = rendezvous.get(here + std::to_string(rank), rank);
    RANKLAB_CHECK(rank == mine || theirs != context_->gpu || shares_gpu(), ErrorKind::kEnvironment,
                  .where = "nccl " + members_.label, .what = "two ranks have the same GPU",
                  .got = "ranks " + std::to_string(mine) + " and " + std::to_string(rank) + " on " + theirs,
                  .want = "a GPU for each rank",
                  .fix = "check LOCAL_RANK and CUDA_VISIBLE_DEVICES, or share it for a test (RANKLAB_SHARE_GPU=1)");
  }
}

std::string NcclComm::exchange_id() {
  const std::string key = members_.key + "/id";
  if (members_.rank == 0) {
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "making a unique id");
    context_->rendezvous.set(key, std::string(id.internal, sizeof(id.internal)));
  }
  return context_->rendezvous.get(key, members_.global_ranks.front());
}

NcclComm::Use::Use(NcclComm& comm, std::string doing)
    : lock_(comm.in_use_), call_(comm.context_->watchdog, std::move(doing)) {
  comm.context_->failure.throw_if_set();
}

void NcclComm::accept(ncclResult_t code, const char* doing) {
  if (looks_remote(code) && context_->failure.wait_for(kNaming)) context_->failure.throw_if_set();
  check_nccl(code, doing, comm_);
}

std::optional<Error> NcclComm::reported_error(bool& remote) {
  // A call in progress reports its own errors.
  const std::unique_lock lock(in_use_, std::try_to_lock);
  if (!lock.owns_lock() || comm_ == nullptr) return std::nullopt;
  ncclResult_t state = ncclSuccess;
  if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) return std::nullopt;
  if (state == ncclSuccess || state == ncclInProgress) return std::nullopt;
  remote = looks_remote(state);
  try {
    check_nccl(state, ("calls of " + members_.label + " were under way").c_str(), comm_);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

void NcclComm::abort_together(const std::vector<WatchedComm*>& comms) {
  // A communicator whose call does not return is not aborted; the end of the process frees it.
  std::vector<std::unique_lock<std::timed_mutex>> locks;
  ncclGroupStart();
  for (WatchedComm* each : comms) {
    auto* comm = dynamic_cast<NcclComm*>(each);
    if (comm == nullptr) continue;  // the launches of a graph, which end with the communicators of its calls
    std::unique_lock lock(comm->in_use_, std::defer_lock);
    if (!lock.try_lock_for(kComeOut)) continue;
    if (comm->comm_ != nullptr) ncclCommAbort(std::exchange(comm->comm_, nullptr));
    locks.push_back(std::move(lock));
  }
  ncclGroupEnd();
}

NcclGroup::NcclGroup(NcclComm& comm) : comm_(comm) { comm_.accept(ncclGroupStart(), "starting a group of calls"); }

NcclGroup::~NcclGroup() {
  if (open_) ncclGroupEnd();
}

void NcclGroup::end() {
  open_ = false;
  comm_.accept(ncclGroupEnd(), "starting the calls of a group");
}

}  // namespace ranklab
