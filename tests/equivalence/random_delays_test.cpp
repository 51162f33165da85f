// A run depends on its settings and on nothing that threads do to each other: with every rank held up at random before
// each call and each wait, 100 runs record the same events at the same virtual times, and the same losses, bit for bit.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "core/base/numbers/philox.h"
#include "core/runtime/engine.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

// Longer than most calls take, so that who comes last changes. Thread rule: its rank's thread.
class Delays {
 public:
  explicit Delays(uint64_t seed) : random_(seed) {}
  void hold_up() {
    switch (random_() % 8) {
      case 0:
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 150));
        break;
      case 1:
        std::this_thread::yield();
        break;
      default:
        break;
    }
  }

 private:
  std::mt19937_64 random_;
};

class DelayedWork final : public Work {
 public:
  DelayedWork(WorkPtr inner, std::shared_ptr<Delays> delays) : inner_(std::move(inner)), delays_(std::move(delays)) {}
  at::Tensor wait() override {
    delays_->hold_up();
    return inner_->wait();
  }
  bool is_completed() const override { return inner_->is_completed(); }
  CallTimes times() const override { return inner_->times(); }

 private:
  WorkPtr inner_;
  std::shared_ptr<Delays> delays_;
};

class DelayedCommunicator final : public Communicator {
 public:
  DelayedCommunicator(CommunicatorPtr inner, std::shared_ptr<Delays> delays)
      : Communicator(inner->group()), inner_(std::move(inner)), delays_(std::move(delays)) {}
  bool open_lanes(const std::vector<MessageLane>& lanes) override { return inner_->open_lanes(lanes); }
  WorkPtr post(Call call) override {
    delays_->hold_up();
    return std::make_shared<DelayedWork>(inner_->post(std::move(call)), delays_);
  }

 private:
  CommunicatorPtr inner_;
  std::shared_ptr<Delays> delays_;
};

class DelayedEndpoint final : public Endpoint {
 public:
  DelayedEndpoint(Endpoint& inner, uint64_t seed)
      : inner_(inner), delays_(std::make_shared<Delays>(seed * 1000 + static_cast<uint64_t>(inner.global_rank()))) {}
  int global_rank() const override { return inner_.global_rank(); }
  int world_size() const override { return inner_.world_size(); }
  c10::Device device() const override { return inner_.device(); }
  c10::Device control_device() const override { return inner_.control_device(); }
  CommunicatorPtr communicator(const Group& group) override {
    return std::make_shared<DelayedCommunicator>(inner_.communicator(group), delays_);
  }

 private:
  Endpoint& inner_;
  std::shared_ptr<Delays> delays_;
};

class DelayedWorld final : public World {
 public:
  DelayedWorld(int size, uint64_t seed) : inner_(make_test_world(size)), seed_(seed) {}
  int size() const override { return inner_->size(); }
  Capabilities capabilities() const override { return inner_->capabilities(); }
  std::string describe() const override { return inner_->describe(); }
  void run(const std::function<void(Endpoint&)>& body) override {
    inner_->run([&](Endpoint& endpoint) {
      DelayedEndpoint delayed(endpoint, seed_);
      body(delayed);
    });
  }

 private:
  std::unique_ptr<World> inner_;
  uint64_t seed_;
};

template <typename Number>
uint64_t with(uint64_t hash, Number number) {
  return hash_bytes(&number, sizeof number, hash);
}

// Everything that an event says but the time of this machine.
uint64_t with(uint64_t hash, const RankTrace& trace, const Event& event) {
  const std::string& name = trace.names[event.name];
  hash = hash_bytes(name.data(), name.size(), hash);
  for (const int64_t number : {static_cast<int64_t>(event.kind),
                               static_cast<int64_t>(event.axis),
                               static_cast<int64_t>(event.verb),
                               static_cast<int64_t>(event.dtype),
                               static_cast<int64_t>(event.purpose),
                               int64_t{event.types.bits()},
                               int64_t{event.step},
                               int64_t{event.microbatch},
                               int64_t{event.stage},
                               int64_t{event.peer},
                               int64_t{event.tag},
                               event.sequence,
                               event.virtual_begin_ns,
                               event.virtual_end_ns,
                               event.virtual_posted_ns,
                               event.virtual_matched_ns,
                               event.virtual_first_byte_ns,
                               event.virtual_exposed_ns,
                               event.virtual_peer_wait_ns,
                               event.logical_bytes,
                               event.algorithm_bytes,
                               event.wire_bytes})
    hash = with(hash, number);
  return with(hash, event.value);
}

struct RunHash {
  uint64_t hash = hash_bytes(nullptr, 0);
  uint64_t wall = hash_bytes(nullptr, 0);
  size_t events = 0;
};

class HashedSteps final : public Hook {
 public:
  explicit HashedSteps(RunHash& into) : into_(into) {}
  void on_step_end(const StepMetrics& step) override {
    for (const double number : {step.loss, step.grad_norm, step.virtual_step_ms}) into_.hash = with(into_.hash, number);
  }

 private:
  RunHash& into_;
};

RunHash run_with_delays(const TrainConfig& config, uint64_t seed) {
  const RunPlan plan = resolve(config);
  RunHash run;
  RuntimeEngine engine(default_components(std::make_shared<DelayedWorld>(plan.mesh.world_size(), seed), plan), plan);
  engine.add_hook(std::make_shared<HashedSteps>(run));
  for (const RankTrace& trace : engine.fit().traces) {
    for (const Event& event : trace.events) {
      run.hash = with(run.hash, trace, event);
      run.wall = with(run.wall, event.wall_end_ns);
      ++run.events;
    }
  }
  return run;
}

struct DelayedCase {
  const char* name;
  ParallelDims parallel;
  ContextSplit split;
};

void PrintTo(const DelayedCase& one, std::ostream* out) { *out << one.name; }

class RandomDelays : public ::testing::TestWithParam<DelayedCase> {};

TEST_P(RandomDelays, LeaveOneHashOfEveryRun) {
  TrainConfig config = small_config();
  config.device = test_device_setting();
  config.parallel = GetParam().parallel;
  config.context_split = GetParam().split;
  config.model.num_layers = 2;
  config.params_dtype = "fp32";
  config.num_microbatches = config.parallel.pp;
  config.global_batch_size = 2;
  config.train_iters = 1;
  std::set<uint64_t> hashes, walls;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const RunHash run = run_with_delays(config, seed);
    hashes.insert(run.hash);
    walls.insert(run.wall);
    ASSERT_EQ(hashes.size(), 1u) << "run " << seed << " is another";
    EXPECT_GT(run.events, 8u * 20u);
  }
  EXPECT_EQ(walls.size(), 100u) << "the delays changed nothing, so the hashes show nothing";
}

// The ring sends its next hop while it computes, beside the messages of a pipeline or the reductions of gradients.
INSTANTIATE_TEST_SUITE_P(
    Layouts, RandomDelays,
    ::testing::Values(DelayedCase{"cp2_tp2_pp2",
                                  {.world = 8, .tp = 2, .cp = 2, .pp = 2},
                                  {ContextExchange::kP2p, SequenceBalance::kZigzag}},
                      DelayedCase{"dp2_cp4", {.world = 8, .cp = 4}, {ContextExchange::kP2p, SequenceBalance::kStripe}}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace ranklab
