#include "backends/cuda/nccl/nccl_verbs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "backends/cuda/nccl/nccl_types.h"
#include "core/base/error.h"
#include "core/comm/call_check.h"

namespace ranklab {
namespace {

size_t bytes_of(const at::Tensor& tensor) { return static_cast<size_t>(tensor.nbytes()); }
char* data_of(const at::Tensor& tensor) { return static_cast<char*>(tensor.data_ptr()); }

bool all_equal(const std::vector<int64_t>& counts) {
  return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

// Byte ranges of each member's rows.
struct Parts {
  explicit Parts(const at::Tensor& tensor, const std::vector<int64_t>& rows) {
    const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    const size_t row = total == 0 ? 0 : bytes_of(tensor) / static_cast<size_t>(total);
    size_t at = 0;
    for (const int64_t count : rows) {
      begin.push_back(at);
      size.push_back(row * static_cast<size_t>(count));
      at += size.back();
    }
  }
  std::vector<size_t> begin, size;
};

class Starter {
 public:
  Starter(NcclComm& comm, const Group& group, const Call& call) : comm_(comm), group_(group), call_(call) {}

  void all_reduce();
  void reduce_scatter();
  void all_gather();
  void all_to_all();
  void broadcast();
  void barrier();

 private:
  // The tensor to reduce: the input itself, or its fp32 copy.
  at::Tensor widened(const at::Tensor& tensor) const {
    return travels_in_fp32(group_, call_) ? tensor.to(at::kFloat) : tensor;
  }

  NcclComm& comm_;
  const Group& group_;
  const Call& call_;
};

void Starter::all_reduce() {
  if (call_.input.numel() == 0) return;
  const at::Tensor wide = widened(call_.input);
  comm_.accept(ncclAllReduce(wide.data_ptr(), wide.data_ptr(), static_cast<size_t>(wide.numel()),
                             nccl_type(wide.scalar_type()), nccl_reduction(call_.op), comm_.handle(), comm_.stream()),
               "starting an all_reduce");
  if (!wide.is_same(call_.input)) call_.output.copy_(wide);
}

void Starter::reduce_scatter() {
  if (call_.input.numel() == 0) return;
  const at::Tensor wide = widened(call_.input);
  at::Tensor out = wide.is_same(call_.input) ? call_.output : at::empty_like(call_.output, wide.options());
  const ncclDataType_t type = nccl_type(wide.scalar_type());
  const ncclRedOp_t op = nccl_reduction(call_.op);
  const auto element = static_cast<size_t>(wide.element_size());
  if (all_equal(call_.input_splits)) {
    comm_.accept(ncclReduceScatter(wide.data_ptr(), out.data_ptr(), static_cast<size_t>(out.numel()), type, op,
                                   comm_.handle(), comm_.stream()),
                 "starting a reduce_scatter");
  } else {
    const Parts parts(wide, call_.input_splits);
    NcclGroup group(comm_);
    for (int r = 0; r < group_.size(); ++r) {
      const auto i = static_cast<size_t>(r);
      if (parts.size[i] == 0) continue;
      comm_.accept(ncclReduce(data_of(wide) + parts.begin[i], r == group_.group_rank ? out.data_ptr() : nullptr,
                              parts.size[i] / element, type, op, r, comm_.handle(), comm_.stream()),
                   "starting an uneven reduce_scatter");
    }
    group.end();
  }
  if (!out.is_same(call_.output)) call_.output.copy_(out);
}

void Starter::all_gather() {
  if (call_.output.numel() == 0) return;
  if (all_equal(call_.output_splits)) {
    comm_.accept(ncclAllGather(call_.input.data_ptr(), call_.output.data_ptr(), bytes_of(call_.input), ncclInt8,
                               comm_.handle(), comm_.stream()),
                 "starting an all_gather");
    return;
  }
  const Parts parts(call_.output, call_.output_splits);
  NcclGroup group(comm_);
  for (int r = 0; r < group_.size(); ++r) {
    const auto i = static_cast<size_t>(r);
    if (parts.size[i] == 0) continue;
    comm_.accept(
        ncclBroadcast(r == group_.group_rank ? call_.input.data_ptr() : nullptr, data_of(call_.output) + parts.begin[i],
                      parts.size[i], ncclInt8, r, comm_.handle(), comm_.stream()),
        "starting an uneven all_gather");
  }
  group.end();
}

void Starter::all_to_all() {
  const Parts sent(call_.input, call_.input_splits), received(call_.output, call_.output_splits);
  NcclGroup group(comm_);
  for (int r = 0; r < group_.size(); ++r) {
    const auto i = static_cast<size_t>(r);
    if (sent.size[i] > 0) {
      comm_.accept(
          ncclSend(data_of(call_.input) + sent.begin[i], sent.size[i], ncclInt8, r, comm_.handle(), comm_.stream()),
          "starting an all_to_all");
    }
    if (received.size[i] > 0) {
      comm_.accept(ncclRecv(data_of(call_.output) + received.begin[i], received.size[i], ncclInt8, r, comm_.handle(),
                            comm_.stream()),
                   "starting an all_to_all");
    }
  }
  group.end();
}

void Starter::broadcast() {
  if (call_.input.numel() == 0) return;
  comm_.accept(ncclBroadcast(call_.input.data_ptr(), call_.input.data_ptr(), bytes_of(call_.input), ncclInt8,
                             call_.peer, comm_.handle(), comm_.stream()),
               "starting a broadcast");
}

void Starter::barrier() {
  const at::Tensor token = at::zeros({1}, at::dtype(at::kInt).device(comm_.stream().device()));
  comm_.accept(ncclAllReduce(token.data_ptr(), token.data_ptr(), 1, ncclInt32, ncclSum, comm_.handle(), comm_.stream()),
               "starting a barrier");
}

}  // namespace

void start_collective(NcclComm& comm, const Group& group, const Call& call) {
  Starter starter(comm, group, call);
  switch (call.verb) {
    case Verb::kAllReduce:
      return starter.all_reduce();
    case Verb::kReduceScatter:
      return starter.reduce_scatter();
    case Verb::kAllGather:
      return starter.all_gather();
    case Verb::kAllToAll:
      return starter.all_to_all();
    case Verb::kBroadcast:
      return starter.broadcast();
    case Verb::kBarrier:
      return starter.barrier();
    case Verb::kSend:
    case Verb::kRecv:
    case Verb::kCount:
      break;
  }
  throw Error(ErrorKind::kInternal, {.where = "nccl", .what = "not a collective", .got = std::string(name(call.verb))});
}

void start_message(NcclComm& comm, const Call& call) {
  const bool send = call.verb == Verb::kSend;
  const at::Tensor& tensor = send ? call.input : call.output;
  if (tensor.numel() == 0) return;
  constexpr int kFrom = 0, kTo = 1;
  comm.accept(send ? ncclSend(tensor.data_ptr(), bytes_of(tensor), ncclInt8, kTo, comm.handle(), comm.stream())
                   : ncclRecv(tensor.data_ptr(), bytes_of(tensor), ncclInt8, kFrom, comm.handle(), comm.stream()),
              send ? "starting a send" : "starting a recv");
}

bool travels_in_fp32(const Group& group, const Call& call) {
  if (call.verb != Verb::kAllReduce && call.verb != Verb::kReduceScatter) return false;
  const at::ScalarType type = call.input.scalar_type();
  if ((type != at::kBFloat16 && type != at::kHalf) || !call.reduce_in_fp32) return false;
  switch (group.axis) {
    case Axis::kTp:
    case Axis::kKv:
    case Axis::kCp:
    case Axis::kCpHeads:
    case Axis::kCpRing:
    case Axis::kPp:
    case Axis::kEp:
    case Axis::kEtp:
      return false;
    default:
      return true;
  }
}

int64_t ring_bytes(const Group& group, const Call& call) {
  const int64_t n = group.size(), bytes = logical_bytes(call) * (travels_in_fp32(group, call) ? 2 : 1);
  switch (call.verb) {
    case Verb::kAllReduce:
      return 2 * (n - 1) * bytes / n;
    case Verb::kReduceScatter:
    case Verb::kAllGather:
      return (n - 1) * bytes / n;
    case Verb::kAllToAll: {
      const Parts sent(call.input, call.input_splits);
      return static_cast<int64_t>(bytes_of(call.input) - sent.size[static_cast<size_t>(group.group_rank)]);
    }
    case Verb::kBroadcast:
    case Verb::kSend:
      return bytes;
    case Verb::kRecv:
    case Verb::kBarrier:
    case Verb::kCount:
      break;
  }
  return 0;
}

}  // namespace ranklab
