#include "core/pipeline/message_lanes.h"

#include <algorithm>
#include <map>

namespace ranklab {
namespace {

// The receives of one rank, lane by lane.
class Inbox {
 public:
  Inbox(const Schedule& schedule, int rank, ReceiveOrder order) : schedule_(schedule), order_(order) {
    if (order != ReceiveOrder::kAsSent) return;
    for (LaneOrder& lane : message_lanes(schedule)) {
      if (lane.lane.to == rank) waiting_.emplace(lane.lane, std::move(lane.messages));
    }
  }

  // Posts this message and, where order matters, everything that was sent before it.
  void post(const PipelineMessage& message, std::vector<PipelineMessage>& posts) {
    if (order_ == ReceiveOrder::kAsNeeded) return posts.push_back(message);
    const PipelineLane lane = lane_of(schedule_, message);
    const std::vector<PipelineMessage>& messages = waiting_.at(lane);
    size_t& next = posted_[lane];
    const auto place = static_cast<size_t>(std::find(messages.begin(), messages.end(), message) - messages.begin());
    while (next <= place && next < messages.size()) posts.push_back(messages[next++]);
  }

 private:
  const Schedule& schedule_;
  ReceiveOrder order_;
  std::map<PipelineLane, std::vector<PipelineMessage>> waiting_;
  std::map<PipelineLane, size_t> posted_;
};

}  // namespace

PipelineLane lane_of(const Schedule& schedule, const PipelineMessage& message) {
  return {schedule.rank(message.stage), schedule.rank(message.consumer_stage()), message.forward};
}

std::vector<PipelineMessage> needed_messages(const Schedule& schedule, const Action& a) {
  std::vector<PipelineMessage> needed;
  const int back = a.backward_stage();
  if (a.has_forward() && !schedule.is_first(a.stage)) needed.push_back({true, a.stage - 1, a.microbatch});
  if (a.has_input_grad() && !schedule.is_last(back)) needed.push_back({false, back + 1, a.backward_microbatch()});
  std::erase_if(needed, [&](const PipelineMessage& m) {
    const PipelineLane lane = lane_of(schedule, m);
    return lane.from == lane.to;
  });
  return needed;
}

std::vector<PipelineMessage> made_messages(const Schedule& schedule, const Action& a) {
  std::vector<PipelineMessage> made;
  const int back = a.backward_stage();
  if (a.has_forward() && !schedule.is_last(a.stage)) made.push_back({true, a.stage, a.microbatch});
  if (a.has_input_grad() && !schedule.is_first(back)) made.push_back({false, back, a.backward_microbatch()});
  std::erase_if(made, [&](const PipelineMessage& m) {
    const PipelineLane lane = lane_of(schedule, m);
    return lane.from == lane.to;
  });
  return made;
}

std::vector<LaneOrder> message_lanes(const Schedule& schedule) {
  std::map<PipelineLane, std::vector<PipelineMessage>> lanes;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      for (const PipelineMessage& message : made_messages(schedule, action))
        lanes[lane_of(schedule, message)].push_back(message);
    }
  }
  std::vector<LaneOrder> out;
  for (auto& [lane, messages] : lanes) out.push_back({lane, std::move(messages)});
  return out;
}

std::vector<std::vector<PipelineMessage>> receives_before(const Schedule& schedule, int rank, int prefetch,
                                                          ReceiveOrder order) {
  const std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
  std::vector<std::vector<PipelineMessage>> posts(actions.size());
  Inbox inbox(schedule, rank, order);
  size_t next = 0;  // the first action whose receives have not been posted
  for (size_t i = 0; i < actions.size(); ++i) {
    for (; next < actions.size() && next <= i + static_cast<size_t>(prefetch); ++next) {
      for (const PipelineMessage& message : needed_messages(schedule, actions[next])) inbox.post(message, posts[i]);
    }
  }
  return posts;
}

}  // namespace ranklab
