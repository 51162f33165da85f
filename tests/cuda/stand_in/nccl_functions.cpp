// The functions of NCCL that backends/cuda calls, over cliques of ranks that are threads of this process.
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/stand_in/cuda_runtime.h"
#include "tests/cuda/stand_in/device_memory.h"
#include "tests/cuda/stand_in/nccl_clique.h"
#include "tests/cuda/stand_in/nccl_control.h"

using ranklab::stand_in::Clique;
using ranklab::stand_in::Kind;
using ranklab::stand_in::Operation;
using ranklab::stand_in::Outcome;

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  std::atomic<ncclResult_t> found{ncclSuccess};
};

namespace {

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

ncclResult_t fail(ncclResult_t code, const std::string& words) {
  last_error() = words;
  return code;
}

ncclResult_t report(const Outcome& outcome) {
  return outcome.code == ncclSuccess ? ncclSuccess : fail(outcome.code, outcome.words);
}

class Registry {
 public:
  std::shared_ptr<Clique> clique(const ncclUniqueId& id, int size) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<Clique>& known = cliques_[std::string(id.internal, sizeof(id.internal))];
    std::shared_ptr<Clique> clique = known.lock();
    if (!clique) known = clique = std::make_shared<Clique>(size);
    return clique;
  }
  void add(ncclComm* comm) {
    const std::lock_guard lock(mutex_);
    comms_.insert(comm);
  }
  bool remove(ncclComm* comm) {
    const std::lock_guard lock(mutex_);
    return comms_.erase(comm) > 0;
  }
  bool contains(ncclComm* comm) {
    const std::lock_guard lock(mutex_);
    return comms_.contains(comm);
  }
  std::set<ncclComm*> comms() {
    const std::lock_guard lock(mutex_);
    return comms_;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Clique>> cliques_;
  std::set<ncclComm*> comms_;
};

Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

// The calls that this thread's open group has collected: one launch for each communicator, in the order of their first
// calls.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::pair<ncclComm*, std::vector<Operation>>> launches;
  std::map<ncclComm*, cudaStream_t> streams;

  void add(ncclComm* comm, const Operation& operation, cudaStream_t stream) {
    auto mine = std::find_if(launches.begin(), launches.end(), [&](const auto& each) { return each.first == comm; });
    if (mine == launches.end()) mine = launches.emplace(mine, comm, std::vector<Operation>());
    mine->second.push_back(operation);
    streams[comm] = stream;
  }
};

thread_local Group t_group;

bool sends_itself_what_it_receives(const ncclComm& comm, const std::vector<Operation>& operations) {
  int open = 0;
  for (const Operation& each : operations) {
    if (each.is_message() && each.peer == comm.rank) open += each.kind == Kind::kSend ? 1 : -1;
  }
  return open == 0;
}

ncclResult_t launch(ncclComm* comm, std::vector<Operation> operations, cudaStream_t stream) {
  if (!sends_itself_what_it_receives(*comm, operations))
    return fail(ncclInvalidUsage, "Trying to send to self without a matching recv");
  const bool in_graph = ranklab::stand_in::stream_of(stream).captures();
  if (const Outcome ready = comm->clique->prepare(comm->rank, operations, in_graph); ready.code != ncclSuccess)
    return report(ready);
  ranklab::stand_in::launch(stream, [clique = comm->clique, rank = comm->rank, all = std::move(operations), in_graph] {
    clique->run(rank, all, in_graph);
  });
  return ncclSuccess;
}

ncclResult_t enqueue(ncclComm* comm, const Operation& operation, cudaStream_t stream) {
  const auto checked = [&] {
    if (!registry().contains(comm)) return fail(ncclInvalidArgument, "a communicator that is gone");
    if (operation.peer < 0 || operation.peer >= comm->clique->size()) return fail(ncclInvalidArgument, "no such peer");
    return ncclSuccess;
  };
  if (const ncclResult_t code = checked(); code != ncclSuccess) {
    if (t_group.depth > 0) t_group.error = code;
    return code;
  }
  if (operation.count == 0 && !operation.is_message()) return ncclSuccess;
  Operation there = operation;
  there.from = ranklab::stand_in::on_host(operation.from);
  there.to = ranklab::stand_in::on_host(operation.to);
  if (t_group.depth == 0) return launch(comm, {there}, stream);
  t_group.add(comm, there, stream);
  return ncclSuccess;
}

}  // namespace

namespace ranklab::stand_in {

void report_error(int device, ncclResult_t error) {
  for (ncclComm* comm : registry().comms()) {
    if (comm->device == device) comm->found = error;
  }
}

int live_communicators() { return static_cast<int>(registry().comms().size()); }

}  // namespace ranklab::stand_in

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t code) {
  switch (code) {
    case ncclSuccess:
      return "no error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unhandled error";
  }
}

const char* ncclGetLastError(ncclComm_t /*comm*/) { return last_error().c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int64_t> number{0};
  const int64_t mine = ++number;
  std::memset(id->internal, 0, sizeof(id->internal));
  std::memcpy(id->internal, &mine, sizeof(mine));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config != nullptr && config->blocking == 0)
    return fail(ncclInvalidArgument, "the stand-in knows blocking communicators only");
  const std::shared_ptr<Clique> clique = registry().clique(id, size);
  if (clique->size() != size) return fail(ncclInvalidArgument, "members that disagree on their number");
  int device = 0;
  cudaGetDevice(&device);
  if (const Outcome joined = clique->join(rank, device); joined.code != ncclSuccess) return report(joined);
  *comm = new ncclComm{clique, rank, device};
  registry().add(*comm);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (!registry().contains(comm)) return fail(ncclInvalidArgument, "a communicator that is gone");
  comm->clique->finish(comm->rank);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!registry().remove(comm)) return fail(ncclInvalidArgument, "a communicator that is gone");
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!registry().remove(comm)) return fail(ncclInvalidArgument, "a communicator that is gone");
  comm->clique->abort(comm->rank);  // kept: another thread may be inside one of its calls
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (!registry().contains(comm)) return fail(ncclInvalidArgument, "a communicator that is gone");
  *error = comm->found;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++t_group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (t_group.depth == 0) return fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call");
  if (--t_group.depth > 0) return ncclSuccess;
  const Group group = std::exchange(t_group, Group());
  if (group.error != ncclSuccess) return group.error;
  for (const auto& [comm, operations] : group.launches) {
    if (const ncclResult_t code = launch(comm, operations, group.streams.at(comm)); code != ncclSuccess) return code;
  }
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, {Kind::kAllReduce, from, to, count, type, op}, stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, {Kind::kReduceScatter, from, to, count, type, op}, stream);
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, {Kind::kReduce, from, to, count, type, op, root}, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return enqueue(comm, {Kind::kAllGather, from, to, count, type}, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return enqueue(comm, {Kind::kBroadcast, from, to, count, type, ncclSum, root}, stream);
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue(comm, {Kind::kSend, from, nullptr, count, type, ncclSum, peer}, stream);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return enqueue(comm, {Kind::kRecv, nullptr, to, count, type, ncclSum, peer}, stream);
}
}
