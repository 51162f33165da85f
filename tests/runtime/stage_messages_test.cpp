// Messages between stages arrive at the right microbatch, for every schedule, with tags and without.
#include "core/runtime/pipeline/stage_messages.h"

#include <gtest/gtest.h>

#include <set>

#include "core/sim/aten.h"
#include "tests/comm/world_fixture.h"
#include "tests/pipeline/all_schedules.h"

namespace ranklab {
namespace {

// Messages match by their order in a lane, as NCCL's do: tags are taken off.
class Tagless final : public Communicator {
 public:
  explicit Tagless(CommunicatorPtr inner) : Communicator(inner->group()), inner_(std::move(inner)) {}
  WorkPtr post(Call call) override {
    const MessageLane lane = call.verb == Verb::kSend ? MessageLane{rank(), call.peer, call.lane}
                                                      : MessageLane{call.peer, rank(), call.lane};
    EXPECT_TRUE(open_.contains(lane)) << lane.from << ">" << lane.to << "." << lane.lane;
    call.tag = call.lane;
    return inner_->post(std::move(call));
  }
  bool open_lanes(const std::vector<MessageLane>& lanes) override {
    open_.insert(lanes.begin(), lanes.end());
    return true;
  }

 private:
  CommunicatorPtr inner_;
  std::set<MessageLane> open_;
};

// A tensor that carries its own label.
at::Tensor labelled(bool forward, int stage, int microbatch) {
  return at::full({4}, (forward ? 1 : -1) * (1 + 1000.0 * stage + microbatch));
}

void expect_label(const at::Tensor& tensor, bool forward, int stage, int microbatch, const std::string& who) {
  EXPECT_TRUE(at::equal(tensor, labelled(forward, stage, microbatch)))
      << who << ", the " << (forward ? "output" : "gradient") << " of stage " << stage << ", microbatch " << microbatch
      << ": got " << tensor[0].item<double>();
}

// One rank's way through the schedule, in the runner's order, with labels for tensors.
void walk(Communicator& comm, const Schedule& schedule) {
  const std::vector<std::vector<int64_t>> shapes(static_cast<size_t>(schedule.chain_length), {4});
  StageMessages messages(comm, schedule, {shapes, at::TensorOptions(at::kFloat)});
  const std::string who = schedule.name + ", rank " + std::to_string(comm.rank());
  const std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(comm.rank())];
  for (size_t i = 0; i < actions.size(); ++i) {
    messages.prepare(i);
    const Action& a = actions[i];
    if (a.has_forward()) {
      if (!schedule.is_first(a.stage))
        expect_label(messages.take_activation(a.stage, a.microbatch), true, a.stage - 1, a.microbatch, who);
      if (!schedule.is_last(a.stage))
        messages.give_activation(a.stage, a.microbatch, labelled(true, a.stage, a.microbatch));
    }
    if (!a.has_input_grad()) continue;
    const int stage = a.backward_stage(), microbatch = a.backward_microbatch();
    if (!schedule.is_last(stage))
      expect_label(messages.take_gradient(stage, microbatch), false, stage + 1, microbatch, who);
    if (!schedule.is_first(stage)) messages.give_gradient(stage, microbatch, labelled(false, stage, microbatch));
  }
  messages.finish();
}

void walk_all(const std::vector<Schedule>& schedules, bool tags) {
  for (const Schedule& schedule : schedules) {
    comm_test::run_ranks(schedule.num_ranks(), [&](Endpoint& endpoint) {
      CommunicatorPtr comm = endpoint.communicator(comm_test::all_ranks(endpoint, Axis::kPp));
      if (!tags) comm = std::make_shared<Tagless>(std::move(comm));
      walk(*comm, schedule);
      walk(*comm, schedule);  // the next step, over the same lanes
    });
  }
}

TEST(StageMessages, ArriveByTag) { walk_all(all_schedules({2, 4}, {8}), true); }
TEST(StageMessages, ArriveByTheirOrderInALane) { walk_all(all_schedules({2, 3, 4}, {4, 8}), false); }
TEST(StageMessages, AReceiverWithAnOrderOfItsOwnGetsTheRightOnes) {
  walk_all({crossed_schedule()}, true);
  walk_all({crossed_schedule()}, false);
}

}  // namespace
}  // namespace ranklab
