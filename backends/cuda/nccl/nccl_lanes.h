// The messages of one group: each lane has a communicator of two ranks with a stream of its own. Both ends of a lane
// report through the store how many messages they have posted, and launch a message when both have posted it. So no
// kernel on a GPU ever waits for something that a host has yet to launch, and operations that block a host until its
// GPU is idle do end: the first use of cuBLAS, memory from the driver, loading of a kernel. (With immediate launches,
// 1F1B hung in its first step on an H100: the receive of the first gradient, posted ahead, was spinning on the GPU; the
// first forward's set-up waited for the GPU to be idle; and the gradient depended on that forward.) Cost: one round
// trip to the store to post, one or two to check; a receiver's host waits for its sender's host, not for its GPU.
// Thread rule: its rank's thread.
#pragma once
#include <ATen/cuda/CUDAEvent.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "backends/cuda/nccl/nccl_comm.h"
#include "backends/cuda/nccl/nccl_work.h"

namespace ranklab {

// A message that this end has posted.
struct PostedMessage {
  Call call;
  CallTimes times;
  at::cuda::CUDAEvent ready;            // recorded after the work on this rank that the message has to wait for
  std::shared_ptr<NcclSpan> span = {};  // null until it is launched
};
using PostedMessagePtr = std::shared_ptr<PostedMessage>;

// Launches `start` on the communicator's stream, after `ready`, between two events.
std::shared_ptr<NcclSpan> launch(NcclComm& comm, const Call& call, const CallTimes& times, at::cuda::CUDAEvent& ready,
                                 const std::function<void()>& start);

class NcclLanes {
 public:
  explicit NcclLanes(NcclContextPtr context) : context_(std::move(context)) {}

  bool contains(const MessageLane& lane) const { return lanes_.contains(lane); }
  // Collective over the lane's two ends: connects them, blocking the host until the other end has arrived.
  void open(const MessageLane& lane, NcclMembers members);
  void post(const MessageLane& lane, PostedMessagePtr message);
  // Launches the messages that both ends have posted, in each lane in order.
  void launch_matched();
  // Blocks until the message is launched. Throws the watchdog's error if there is one.
  void wait_launched(const PostedMessage& message);

 private:
  struct Lane {
    std::unique_ptr<NcclComm> comm;
    std::string my_key, their_key;  // keys under which the numbers of posted messages are stored
    int64_t posted = 0, launched = 0, posted_there = 0;
    std::deque<PostedMessagePtr> waiting;
  };
  bool posted_there(Lane& lane);
  bool launch_next(Lane& lane);

  NcclContextPtr context_;
  std::map<MessageLane, Lane> lanes_;
};

// A message as its caller sees it.
class NcclMessageWork final : public Work, public OffersTiming {
 public:
  // `before_wait` (may be empty) is called once, by the first wait().
  NcclMessageWork(std::shared_ptr<NcclLanes> lanes, PostedMessagePtr message, std::function<void()> before_wait)
      : lanes_(std::move(lanes)), message_(std::move(message)), before_wait_(std::move(before_wait)) {}

  at::Tensor wait() override;
  bool is_completed() const override;
  CallTimes times() const override { return message_->span->call_times(); }
  std::shared_ptr<const CallTiming> timing() const override { return message_->span; }

 private:
  std::shared_ptr<NcclLanes> lanes_;
  PostedMessagePtr message_;
  std::function<void()> before_wait_;
};

}  // namespace ranklab
