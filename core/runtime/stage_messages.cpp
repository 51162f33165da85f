#include "core/runtime/stage_messages.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "core/sim/op_observer.h"

namespace ranklab {

StageMessages::StageMessages(Communicator& pipeline, const Schedule& schedule, BoundaryTensor boundary, int prefetch)
    : pipeline_(pipeline),
      schedule_(schedule),
      boundary_(std::move(boundary)),
      prefetch_(static_cast<size_t>(prefetch)) {
  const size_t cells = cell(schedule.num_stages(), 0);
  forward_at_.assign(cells, 0);
  backward_at_.assign(cells, 0);
  for (const auto& actions : schedule.ranks) {
    for (size_t i = 0; i < actions.size(); ++i) {
      const Action& a = actions[i];  // of a pair the forward half runs first
      if (a.has_forward()) forward_at_[cell(a.stage, a.microbatch)] = 2 * i;
      if (a.has_input_grad()) backward_at_[cell(a.backward_stage(), a.backward_microbatch())] = 2 * i + 1;
    }
  }
}

size_t StageMessages::cell(int stage, int microbatch) const {
  return static_cast<size_t>(stage) * static_cast<size_t>(schedule_.num_microbatches) + static_cast<size_t>(microbatch);
}

int StageMessages::tag(const Message& message) const {
  return 2 * static_cast<int>(cell(message.stage, message.microbatch)) + (message.forward ? 1 : 0);
}

size_t StageMessages::made_at(const Message& m) const {
  return (m.forward ? forward_at_ : backward_at_)[cell(m.stage, m.microbatch)];
}

size_t StageMessages::used_at(const Message& m) const {
  return m.forward ? forward_at_[cell(m.stage + 1, m.microbatch)] : backward_at_[cell(m.stage - 1, m.microbatch)];
}

void StageMessages::prepare(size_t action) {
  const auto& actions = schedule_.ranks[static_cast<size_t>(pipeline_.rank())];
  for (; next_ < actions.size() && next_ <= action + prefetch_; ++next_) post_receives_of(actions[next_]);
}

void StageMessages::post_receives_of(const Action& a) {
  const int back = a.backward_stage();
  if (a.has_forward() && !schedule_.is_first(a.stage)) post_receive({true, a.stage - 1, a.microbatch});
  if (a.has_input_grad() && !schedule_.is_last(back)) post_receive({false, back + 1, a.backward_microbatch()});
}

void StageMessages::post_receive(const Message& message) {
  const int peer = schedule_.rank(message.stage);
  if (peer == pipeline_.rank()) return;
  const at::Tensor buffer = at::empty(boundary_.shape, boundary_.options);
  coming_[message] = pipeline_.recv_async(buffer, peer, tag(message));
}

at::Tensor StageMessages::take(const Message& message) {
  if (auto local = kept_.extract(message)) return local.mapped();
  const at::Tensor tensor = coming_.extract(message).mapped()->wait();
  release_sends(schedule_.rank(message.stage), made_at(message));
  return tensor;
}

void StageMessages::give(const Message& message, int consumer_stage, const at::Tensor& tensor) {
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
    sent.work->wait();  // it has ended, in wall and in virtual time
    return true;
  });
}

void StageMessages::finish() {
  for (const Sent& sent : sent_) sent.work->wait();
  sent_.clear();
}

}  // namespace ranklab
