// The verbs of one group over NCCL. Collectives start at once on the group's own high-priority stream, after the work
// enqueued so far on the caller's stream. Messages go through lanes (nccl_lanes.h). NCCL has no tags: in a lane the
// n-th send matches the n-th receive. A lane that was not opened in advance is opened, together with the reverse one,
// at its first message, where both ends then wait for each other on the host. NCCL chooses the order of a reduction (it
// is not specified, and may change with size and topology) unless canonical_reductions is set. NCCL connects a
// communicator at its first collective, where the members' hosts wait for each other: the first calls of several groups
// must be made in an order that cannot deadlock. Thread rule: its rank's thread only.
#pragma once
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "backends/cuda/nccl/nccl_comm.h"
#include "backends/cuda/nccl/nccl_lanes.h"
#include "backends/cuda/nccl/nccl_work.h"
#include "core/comm/communicator.h"

namespace ranklab {

class NcclCommunicator final : public Communicator {
 public:
  // `serial` numbers the communicators of this group.
  NcclCommunicator(const Group& group, int serial, NcclContextPtr context);
  ~NcclCommunicator() override;

  WorkPtr post(Call call) override;
  bool open_lanes(const std::vector<MessageLane>& lanes) override;

 private:
  int64_t next_sequence(const Call& call);
  void check_device(const Call& call) const;
  void open(const MessageLane& lane);
  PostedMessagePtr post_message(const Call& call, const CallTimes& times);
  WorkPtr start(Call call, const CallTimes& times);

  NcclContextPtr context_;
  int serial_;
  std::unique_ptr<NcclComm> comm_;    // null in a group of one, which makes no calls
  std::shared_ptr<NcclLanes> lanes_;  // shared with the works that wait
  // by sender, receiver and lane; sender and receiver are -1 for collectives
  std::map<std::tuple<int, int, int>, int64_t> sequences_;
};

}  // namespace ranklab
