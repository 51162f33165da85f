#include "core/runtime/pipeline/stage_messages.h"

#include <utility>

#include "core/sim/aten.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// Receives are posted this many actions ahead. One is enough when a message takes less time than an action.
constexpr int kPrefetch = 2;

int lane_number(bool forward) { return forward ? 1 : 2; }  // lane 0 is for other messages

std::vector<MessageLane> lanes_of(const Schedule& schedule) {
  std::vector<MessageLane> lanes;
  for (const LaneOrder& order : message_lanes(schedule))
    lanes.push_back({order.lane.from, order.lane.to, lane_number(order.lane.forward)});
  return lanes;
}

}  // namespace

StageMessages::StageMessages(Communicator& pipeline, const Schedule& schedule, BoundaryTensor boundary)
    : pipeline_(pipeline), schedule_(schedule), boundary_(std::move(boundary)) {
  const bool ordered = pipeline.open_lanes(lanes_of(schedule));
  receives_ =
      receives_before(schedule, pipeline.rank(), kPrefetch, ordered ? ReceiveOrder::kAsSent : ReceiveOrder::kAsNeeded);
  const size_t cells = cell(schedule.num_stages(), 0);
  forward_at_.assign(cells, 0);
  backward_at_.assign(cells, 0);
  for (const auto& actions : schedule.ranks) {
    for (size_t i = 0; i < actions.size(); ++i) {
      const Action& a = actions[i];  // in a pair the forward half runs first
      if (a.has_forward()) forward_at_[cell(a.stage, a.microbatch)] = 2 * i;
      if (a.has_input_grad()) backward_at_[cell(a.backward_stage(), a.backward_microbatch())] = 2 * i + 1;
    }
  }
}

size_t StageMessages::cell(int stage, int microbatch) const {
  return static_cast<size_t>(stage) * static_cast<size_t>(schedule_.num_microbatches) + static_cast<size_t>(microbatch);
}

MessageTag StageMessages::tag(const PipelineMessage& message) const {
  const int number = 2 * static_cast<int>(cell(message.stage, message.microbatch)) + (message.forward ? 1 : 0);
  return {number, lane_number(message.forward)};
}

size_t StageMessages::made_at(const PipelineMessage& m) const {
  return (m.forward ? forward_at_ : backward_at_)[cell(m.stage, m.microbatch)];
}

size_t StageMessages::used_at(const PipelineMessage& m) const {
  return (m.forward ? forward_at_ : backward_at_)[cell(m.consumer_stage(), m.microbatch)];
}

void StageMessages::prepare(size_t action) {
  for (const PipelineMessage& message : receives_[action]) post_receive(message);
}

void StageMessages::post_receive(const PipelineMessage& message) {
  const int peer = schedule_.rank(message.stage);
  const int part = schedule_.part(message.stage) - (message.forward ? 0 : 1);
  const at::Tensor buffer = at::empty(boundary_.shapes[static_cast<size_t>(part)], boundary_.options);
  coming_[message] = pipeline_.recv_async(buffer, peer, tag(message));
}

at::Tensor StageMessages::take(const PipelineMessage& message) {
  if (auto local = kept_.extract(message)) return local.mapped();
  const at::Tensor tensor = coming_.extract(message).mapped()->wait();
  release_sends(schedule_.rank(message.stage), made_at(message));
  return tensor;
}

void StageMessages::give(const PipelineMessage& message, int consumer_stage, const at::Tensor& tensor) {
  const int peer = schedule_.rank(consumer_stage);
  if (peer == pipeline_.rank()) {
    kept_[message] = tensor;
  } else {
    sent_.push_back({peer, used_at(message), pipeline_.send_async(tensor, peer, tag(message))});
  }
}

void StageMessages::release_sends(int peer, size_t place) {
  std::erase_if(sent_, [&](const Sent& sent) {
    if (sent.peer != peer || sent.used_at > place) return false;
    sent.work->wait();  // it has already arrived, in wall time and in virtual time
    return true;
  });
}

void StageMessages::finish() {
  for (const Sent& sent : sent_) sent.work->wait();
  sent_.clear();
}

void type_boundary(const at::Tensor& tensor, bool sequence_parallel) {
  TypeWatch* watch = type_watch_of_thread;
  if (watch == nullptr) return;
  if (sequence_parallel)
    watch->is_same_over(tensor, {});
  else
    watch->is_same_over(tensor, {Axis::kTp});
}

}  // namespace ranklab
