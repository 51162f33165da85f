#include "core/comm/communicator.h"

#include <c10/core/GradMode.h>

#include <numeric>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/call_check.h"
#include "core/comm/tree_reduce.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

using Site = Communicator::Site;
using Rows = std::vector<int64_t>;

// A call in a group of one, complete immediately.
class FinishedWork final : public Work {
 public:
  explicit FinishedWork(at::Tensor output) : output_(std::move(output)) {}
  at::Tensor wait() override { return output_; }
  bool is_completed() const override { return true; }
  CallTimes times() const override { return {}; }

 private:
  at::Tensor output_;
};

// An in-place verb on a non-contiguous tensor: the backend fills a contiguous copy, wait() writes it back.
class CopyBackWork final : public Work {
 public:
  CopyBackWork(WorkPtr inner, at::Tensor target) : inner_(std::move(inner)), target_(std::move(target)) {}
  at::Tensor wait() override {
    const at::Tensor result = inner_->wait();
    if (!copied_) {
      const c10::AutoGradMode no_grad(false);
      target_.copy_(result);
      copied_ = true;
    }
    return target_;
  }
  bool is_completed() const override { return inner_->is_completed(); }
  CallTimes times() const override { return inner_->times(); }

 private:
  WorkPtr inner_;
  at::Tensor target_;
  bool copied_ = false;
};

// Checks the arguments of one call, and knows who called what and where.
class Checker {
 public:
  Checker(const Communicator& comm, Verb verb, const Site& site) : comm_(comm), verb_(verb), site_(site) {}

  [[noreturn]] void fail(std::string what, std::string got, std::string want, std::string fix) const {
    throw Error(ErrorKind::kInvalidArgument,
                {.where = "rank " + std::to_string(comm_.group().global_rank()) + ", " + comm_.group().label() + ", " +
                          std::string(name(verb_)) + " at " + describe(site_),
                 .what = std::move(what),
                 .got = std::move(got),
                 .want = std::move(want),
                 .fix = std::move(fix)});
  }
  void tensor(const at::Tensor& t) const {
    if (!t.defined())
      fail("the tensor is undefined", "no tensor", "a dense tensor", "create the tensor before the call");
    if (t.layout() != at::kStrided)
      fail("the tensor is not dense", "a sparse layout", "a strided tensor", "call to_dense() first");
  }
  void rows_tensor(const at::Tensor& t) const {
    tensor(t);
    if (t.dim() == 0) fail("a scalar has no rows", "a 0-dim tensor", "at least one dimension", "use unsqueeze(0)");
  }
  void reduction(const at::Tensor& t, ReduceOp op) const {
    const DType dtype = dtype_of(t.scalar_type());
    if (can_reduce(dtype, op)) return;
    fail("this dtype cannot be reduced that way", std::string(name(dtype)) + " with " + std::string(name(op)),
         "fp32, fp64, bf16, fp16 (any op), or int64, int32, uint8 (sum, min, max)", "convert the tensor first");
  }
  void peer(int peer, const char* role, bool may_be_self) const {
    const int n = comm_.size();
    if (peer < 0 || peer >= n)
      fail(std::string("no such ") + role + " in this group", std::to_string(peer),
           "a group rank from 0 to " + std::to_string(n - 1), "pass the rank in the group, not the global rank");
    if (!may_be_self && peer == comm_.rank())
      fail("a rank cannot message itself", std::string(role) + " " + std::to_string(peer) + " is this rank",
           "another member of the group", "copy the tensor instead");
  }
  // Checks that there is one count per member, that none is negative, and that they add up to `total` if that is not
  // -1.
  void rows(const Rows& rows, int64_t total, const char* what) const {
    // Formatted only when an error is reported, since a group may have hundreds of members.
    const auto got = [&] { return std::string(what) + " [" + join(std::span<const int64_t>(rows), " ") + "]"; };
    if (rows.size() != static_cast<size_t>(comm_.size()))
      fail("one row count per member is needed", got(), std::to_string(comm_.size()) + " counts",
           "pass a count for every group rank, 0 where there is nothing");
    for (const int64_t count : rows)
      if (count < 0) fail("a row count is negative", got(), "0 or more", "check the split computation");
    const int64_t sum = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    if (total >= 0 && sum != total)
      fail("the row counts do not add up to the tensor's dim 0", got() + ", sum " + std::to_string(sum),
           "sum " + std::to_string(total), "make the counts cover the input");
  }
  Rows equal_rows(int64_t total) const {
    const int64_t n = comm_.size();
    if (total % n != 0) {
      const int64_t below = total / n * n;
      fail("dim 0 is not divisible by the group size",
           std::to_string(total) + " rows for " + std::to_string(n) + " ranks",
           std::to_string(below) + " or " + std::to_string(below + n) + " rows, or explicit row counts",
           "pad dim 0, or pass the rows argument");
    }
    return Rows(static_cast<size_t>(n), total / n);
  }

 private:
  const Communicator& comm_;
  Verb verb_;
  Site site_;
};

at::Tensor empty_rows(const at::Tensor& like, int64_t rows) {
  const NoCostScope no_cost;  // a GPU library preallocates its buffers, so this allocation is not charged as an op
  std::vector<int64_t> shape = like.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, like.options().requires_grad(false));
}

at::Tensor fresh_copy(const at::Tensor& input) {
  const NoCostScope no_cost;
  return input.detach().clone(at::MemoryFormat::Contiguous);
}

// Autograd must notice that a tensor which it may have saved was overwritten.
void mark_written(const at::Tensor& tensor) {
  if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
}

WorkPtr post_in_place(Communicator& comm, Call call, const at::Tensor& tensor) {
  const bool contiguous = tensor.is_contiguous();
  const at::Tensor buffer = contiguous ? tensor : tensor.contiguous();
  if (call.verb != Verb::kRecv) call.input = buffer;
  call.output = buffer;
  mark_written(tensor);
  WorkPtr work = comm.post(std::move(call));
  return contiguous ? work : std::make_shared<CopyBackWork>(std::move(work), tensor);
}

WorkPtr start_all_reduce(Communicator& comm, const at::Tensor& tensor, ReduceOp op, bool blocking, Site site) {
  const Checker check(comm, Verb::kAllReduce, site);
  check.tensor(tensor);
  check.reduction(tensor, op);
  if (comm.size() == 1) return std::make_shared<FinishedWork>(tensor);
  return post_in_place(comm, {.verb = Verb::kAllReduce, .op = op, .site = site, .blocking = blocking}, tensor);
}

WorkPtr start_reduce_scatter(Communicator& comm, const at::Tensor& input, ReduceOp op, Rows rows, bool blocking,
                             Site site) {
  const Checker check(comm, Verb::kReduceScatter, site);
  check.rows_tensor(input);
  check.reduction(input, op);
  if (rows.empty()) rows = check.equal_rows(input.size(0));
  check.rows(rows, input.size(0), "rows");
  if (comm.size() == 1) return std::make_shared<FinishedWork>(fresh_copy(input));
  Call call{.verb = Verb::kReduceScatter, .input = input.contiguous(), .op = op, .site = site, .blocking = blocking};
  call.output = empty_rows(input, rows[static_cast<size_t>(comm.rank())]);
  call.input_splits = std::move(rows);
  return comm.post(std::move(call));
}

WorkPtr start_all_gather(Communicator& comm, const at::Tensor& input, Rows rows, bool blocking, Site site) {
  const Checker check(comm, Verb::kAllGather, site);
  check.rows_tensor(input);
  if (rows.empty()) rows.assign(static_cast<size_t>(comm.size()), input.size(0));
  check.rows(rows, -1, "rows");
  const int64_t mine = rows[static_cast<size_t>(comm.rank())];
  if (mine != input.size(0))
    check.fail("this member's row count is not its dim 0", std::to_string(input.size(0)) + " rows",
               std::to_string(mine) + " rows", "pass every member's dim 0 in group order");
  if (comm.size() == 1) return std::make_shared<FinishedWork>(fresh_copy(input));
  Call call{.verb = Verb::kAllGather, .input = input.contiguous(), .site = site, .blocking = blocking};
  call.output = empty_rows(input, std::accumulate(rows.begin(), rows.end(), int64_t{0}));
  call.output_splits = std::move(rows);
  return comm.post(std::move(call));
}

WorkPtr start_all_to_all(Communicator& comm, const at::Tensor& input, Rows send_rows, Rows recv_rows, bool blocking,
                         Site site) {
  const Checker check(comm, Verb::kAllToAll, site);
  check.rows_tensor(input);
  if (send_rows.empty() != recv_rows.empty())
    check.fail("only one side's row counts are given", send_rows.empty() ? "recv_rows" : "send_rows", "both or neither",
               "exchange the counts first (an all_to_all of integers), then pass both");
  if (send_rows.empty()) recv_rows = send_rows = check.equal_rows(input.size(0));
  check.rows(send_rows, input.size(0), "send_rows");
  check.rows(recv_rows, -1, "recv_rows");
  if (comm.size() == 1) {
    check.rows(recv_rows, send_rows[0], "recv_rows");
    return std::make_shared<FinishedWork>(fresh_copy(input));
  }
  Call call{.verb = Verb::kAllToAll, .input = input.contiguous(), .site = site, .blocking = blocking};
  call.output = empty_rows(input, std::accumulate(recv_rows.begin(), recv_rows.end(), int64_t{0}));
  call.input_splits = std::move(send_rows);
  call.output_splits = std::move(recv_rows);
  return comm.post(std::move(call));
}

WorkPtr start_broadcast(Communicator& comm, const at::Tensor& tensor, int root, bool blocking, Site site) {
  const Checker check(comm, Verb::kBroadcast, site);
  check.tensor(tensor);
  check.peer(root, "root", true);
  if (comm.size() == 1) return std::make_shared<FinishedWork>(tensor);
  return post_in_place(comm, {.verb = Verb::kBroadcast, .peer = root, .site = site, .blocking = blocking}, tensor);
}

WorkPtr start_send(Communicator& comm, const at::Tensor& tensor, int destination, MessageTag tag, bool blocking,
                   Site site) {
  const Checker check(comm, Verb::kSend, site);
  check.tensor(tensor);
  check.peer(destination, "destination", false);
  return comm.post({.verb = Verb::kSend,
                    .input = tensor.contiguous(),
                    .peer = destination,
                    .tag = tag.tag,
                    .lane = tag.lane,
                    .site = site,
                    .blocking = blocking});
}

WorkPtr start_recv(Communicator& comm, const at::Tensor& tensor, int source, MessageTag tag, bool blocking, Site site) {
  const Checker check(comm, Verb::kRecv, site);
  check.tensor(tensor);
  check.peer(source, "source", false);
  return post_in_place(
      comm, {.verb = Verb::kRecv, .peer = source, .tag = tag.tag, .lane = tag.lane, .site = site, .blocking = blocking},
      tensor);
}

}  // namespace

at::Tensor Communicator::all_reduce(const at::Tensor& tensor, ReduceOp op, Site site) {
  return start_all_reduce(*this, tensor, op, true, site)->wait();
}
WorkPtr Communicator::all_reduce_async(const at::Tensor& tensor, ReduceOp op, Site site) {
  return start_all_reduce(*this, tensor, op, false, site);
}

at::Tensor Communicator::reduce_scatter(const at::Tensor& input, ReduceOp op, Rows rows, Site site) {
  return start_reduce_scatter(*this, input, op, std::move(rows), true, site)->wait();
}
WorkPtr Communicator::reduce_scatter_async(const at::Tensor& input, ReduceOp op, Rows rows, Site site) {
  return start_reduce_scatter(*this, input, op, std::move(rows), false, site);
}

at::Tensor Communicator::all_gather(const at::Tensor& input, Rows rows, Site site) {
  return start_all_gather(*this, input, std::move(rows), true, site)->wait();
}
WorkPtr Communicator::all_gather_async(const at::Tensor& input, Rows rows, Site site) {
  return start_all_gather(*this, input, std::move(rows), false, site);
}

at::Tensor Communicator::all_to_all(const at::Tensor& input, Rows send_rows, Rows recv_rows, Site site) {
  return start_all_to_all(*this, input, std::move(send_rows), std::move(recv_rows), true, site)->wait();
}
WorkPtr Communicator::all_to_all_async(const at::Tensor& input, Rows send_rows, Rows recv_rows, Site site) {
  return start_all_to_all(*this, input, std::move(send_rows), std::move(recv_rows), false, site);
}

at::Tensor Communicator::broadcast(const at::Tensor& tensor, int root, Site site) {
  return start_broadcast(*this, tensor, root, true, site)->wait();
}
WorkPtr Communicator::broadcast_async(const at::Tensor& tensor, int root, Site site) {
  return start_broadcast(*this, tensor, root, false, site);
}

void Communicator::send(const at::Tensor& tensor, int destination, MessageTag tag, Site site) {
  start_send(*this, tensor, destination, tag, true, site)->wait();
}
WorkPtr Communicator::send_async(const at::Tensor& tensor, int destination, MessageTag tag, Site site) {
  return start_send(*this, tensor, destination, tag, false, site);
}
at::Tensor Communicator::recv(const at::Tensor& tensor, int source, MessageTag tag, Site site) {
  return start_recv(*this, tensor, source, tag, true, site)->wait();
}
WorkPtr Communicator::recv_async(const at::Tensor& tensor, int source, MessageTag tag, Site site) {
  return start_recv(*this, tensor, source, tag, false, site);
}

void Communicator::barrier(Site site) {
  if (size() > 1) post({.verb = Verb::kBarrier, .site = site, .blocking = true})->wait();
}

}  // namespace ranklab
