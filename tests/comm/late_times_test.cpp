// Calls whose end the host only learns after wait(), as on a GPU: each is one event, with the times of its end.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/comm/call_timing.h"
#include "core/comm/traced_communicator.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

struct Clockwork final : public CallTiming {
  bool known() const override {
    ++asked;
    return ended || asked >= ends_when_asked;
  }
  CallTimes call_times() const override {
    return {.posted_wall_ns = 10, .matched_wall_ns = 20, .done_wall_ns = 30, .sequence = 7};
  }
  bool ended = false;
  mutable int asked = 0;
  int ends_when_asked = 1 << 30;
};

class LateWork final : public Work, public OffersTiming {
 public:
  LateWork(at::Tensor output, std::shared_ptr<Clockwork> clockwork)
      : output_(std::move(output)), clockwork_(std::move(clockwork)) {}
  at::Tensor wait() override { return output_; }
  bool is_completed() const override { return clockwork_->ended; }
  CallTimes times() const override { return {.posted_wall_ns = 10, .wire_bytes = 5, .sequence = 7}; }
  std::shared_ptr<const CallTiming> timing() const override { return clockwork_; }

 private:
  at::Tensor output_;
  std::shared_ptr<Clockwork> clockwork_;
};

class LateCommunicator final : public Communicator {
 public:
  LateCommunicator() : Communicator({Axis::kDp, {0, 1}, 0}) {}
  WorkPtr post(Call call) override {
    calls.push_back(std::make_shared<Clockwork>());
    return std::make_shared<LateWork>(std::move(call.output), calls.back());
  }
  std::vector<std::shared_ptr<Clockwork>> calls;
};

struct LateTimes : public testing::Test {
  Tracer tracer{0, "test"};
  std::shared_ptr<LateCommunicator> inner = std::make_shared<LateCommunicator>();
  CommunicatorPtr comm = make_traced_communicator(inner, nullptr, &tracer, nullptr);
  const std::vector<Event>& events() const { return tracer.trace().events; }
};

TEST_F(LateTimes, AnEventIsRecordedWhenItsCallHasEnded) {
  tracer.set_step(3);
  tracer.set_microbatch(1);
  comm->all_reduce(at::ones({4}));
  EXPECT_TRUE(events().empty()) << "the host knows no end yet";
  tracer.set_microbatch(2);
  inner->calls[0]->ended = true;
  const WorkPtr second = comm->all_reduce_async(at::ones({4}));
  ASSERT_EQ(events().size(), 1U);
  EXPECT_EQ(events()[0].wall_begin_ns, 10);
  EXPECT_EQ(events()[0].wall_matched_ns, 20);
  EXPECT_EQ(events()[0].wall_end_ns, 30);
  EXPECT_EQ(events()[0].step, 3);
  EXPECT_EQ(events()[0].microbatch, 1) << "that of its call, not of now";
  EXPECT_EQ(tracer.microbatch(), 2);
  inner->calls[1]->ended = true;
  second->wait();
  EXPECT_EQ(events().size(), 2U) << "what has ended by then is recorded at once";
}

TEST_F(LateTimes, TheEndOfARunWaitsForAll) {
  comm->all_reduce(at::ones({4}));
  comm->all_reduce(at::ones({4}));
  tracer.set_enabled(false);
  comm->all_reduce(at::ones({4}));
  for (const auto& call : inner->calls) call->ends_when_asked = call->asked + 5;
  settle_traced_calls();
  EXPECT_EQ(events().size(), 2U) << "those of the traced steps";
  EXPECT_FALSE(tracer.enabled());
  settle_traced_calls();
  EXPECT_EQ(events().size(), 2U);
}

TEST_F(LateTimes, CallsDoNotKeepTheirTensors) {
  at::Tensor big = at::ones({1000});
  const c10::weak_intrusive_ptr<c10::TensorImpl> watched(big.getIntrusivePtr());
  comm->all_reduce(big);
  big.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_F(LateTimes, ACommunicatorThatGoesTakesItsCallsAlong) {
  comm->all_reduce(at::ones({4}));
  comm.reset();
  settle_traced_calls();
  EXPECT_TRUE(events().empty());
}

}  // namespace
}  // namespace ranklab
