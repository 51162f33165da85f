// One group's collectives, with NCCL's names. Code above this interface cannot tell a thread world from a GPU cluster.
//
// Each verb takes and returns at::Tensor and has an async form that returns Work; the result is valid after
// Work::wait(), and the tensors must not be touched before. Calls of a group are ordered: every member makes the same
// calls in the same order. A group of one returns at once. Reductions have one documented order, a balanced binary tree
// over group rank (tree_reduce.h), on every path and size, in fp32 for 16-bit inputs; so results do not depend on
// timing and all_reduce equals all_gather(reduce_scatter) bit for bit. (NCCL's own order is not specified; see
// backends/cuda.) A mismatch between members is an Error naming both calls; nothing hangs. Thread rule: one
// communicator belongs to one rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <compare>
#include <memory>
#include <source_location>
#include <vector>

#include "core/comm/call.h"
#include "core/comm/group.h"

namespace ranklab {

// A call in flight. Dropping it without wait() is allowed only while unwinding an error.
class Work {
 public:
  virtual ~Work() = default;
  virtual at::Tensor
  wait() = 0;  // blocks the caller, or on a device its stream; returns the output (send, barrier: none) or throws
  virtual bool is_completed() const = 0;
  virtual CallTimes times() const = 0;  // REQUIRES: wait() returned
};
using WorkPtr = std::shared_ptr<Work>;

// What identifies a message besides its bytes: a number that distinguishes it from others in flight, and its queue (see
// open_lanes).
struct MessageTag {
  int tag = 0;
  int lane = 0;

  constexpr MessageTag(int its_tag = 0, int its_lane = 0) : tag(its_tag), lane(its_lane) {}  // implicit
};

// A one-way queue of messages between two members of a group; `lane` is the number of the queue between them.
struct MessageLane {
  int from = 0;  // group ranks
  int to = 0;
  int lane = 0;

  auto operator<=>(const MessageLane&) const = default;
};

class Communicator {
 public:
  using Site = std::source_location;
  virtual ~Communicator() = default;

  const Group& group() const { return group_; }
  int size() const { return group_.size(); }
  int rank() const { return group_.group_rank; }  // in the group

  // In place; returns `tensor` (a non-contiguous tensor is copied in and out).
  at::Tensor all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::kSum, Site site = Site::current());
  WorkPtr all_reduce_async(const at::Tensor& tensor, ReduceOp op = ReduceOp::kSum, Site site = Site::current());

  // input [sum(rows), ...] -> output [rows[rank], ...]; equal rows when `rows` is empty (dim 0 must then divide by
  // size()).
  at::Tensor reduce_scatter(const at::Tensor& input, ReduceOp op = ReduceOp::kSum, std::vector<int64_t> rows = {},
                            Site site = Site::current());
  WorkPtr reduce_scatter_async(const at::Tensor& input, ReduceOp op = ReduceOp::kSum, std::vector<int64_t> rows = {},
                               Site site = Site::current());

  // input [rows[rank], ...] -> output [sum(rows), ...], in group order; equal rows when `rows` is empty.
  at::Tensor all_gather(const at::Tensor& input, std::vector<int64_t> rows = {}, Site site = Site::current());
  WorkPtr all_gather_async(const at::Tensor& input, std::vector<int64_t> rows = {}, Site site = Site::current());

  // input [sum(send_rows), ...] -> output [sum(recv_rows), ...]: rows for rank 0 first. Both empty: equal splits. Zeros
  // are allowed.
  at::Tensor all_to_all(const at::Tensor& input, std::vector<int64_t> send_rows = {},
                        std::vector<int64_t> recv_rows = {}, Site site = Site::current());
  WorkPtr all_to_all_async(const at::Tensor& input, std::vector<int64_t> send_rows = {},
                           std::vector<int64_t> recv_rows = {}, Site site = Site::current());

  // In place: every member's tensor gets the values of the root's.
  at::Tensor broadcast(const at::Tensor& tensor, int root, Site site = Site::current());
  WorkPtr broadcast_async(const at::Tensor& tensor, int root, Site site = Site::current());

  // send() returns when the receiver has the bytes (rendezvous, like NCCL); use the async form to continue earlier.
  // recv fills `tensor` in place.
  void send(const at::Tensor& tensor, int destination, MessageTag tag = {}, Site site = Site::current());
  WorkPtr send_async(const at::Tensor& tensor, int destination, MessageTag tag = {}, Site site = Site::current());
  at::Tensor recv(const at::Tensor& tensor, int source, MessageTag tag = {}, Site site = Site::current());
  WorkPtr recv_async(const at::Tensor& tensor, int source, MessageTag tag = {}, Site site = Site::current());

  void barrier(Site site = Site::current());

  // Prepares for messages in these lanes. Every member calls it with the same lanes in the same order; lanes that are
  // already open stay open. RETURNS: true if messages match by their order in a lane (NCCL), so that both ends must
  // post them in the same order; otherwise messages match by tag, and this does nothing.
  virtual bool open_lanes(const std::vector<MessageLane>& /*lanes*/) { return false; }

  // Every verb ends up here as a checked, contiguous Call. Backends and observers implement only this. REQUIRES:
  // validated by the verbs above. Calls of one communicator are posted in order.
  virtual WorkPtr post(Call call) = 0;

 protected:
  explicit Communicator(Group group) : group_(std::move(group)) {}

 private:
  Group group_;
};
using CommunicatorPtr = std::shared_ptr<Communicator>;

}  // namespace ranklab
