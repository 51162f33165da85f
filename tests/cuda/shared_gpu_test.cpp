// What only a GPU can show of ranks that share one: that backward runs on each rank's own thread, that its memory is
// booked, and that kernels of different ranks keep their order without the host.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <thread>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/equivalence/precision_run.h"

namespace ranklab {
namespace {

Group everyone(const Endpoint& endpoint) {
  Group group;
  for (int rank = 0; rank < endpoint.world_size(); ++rank) group.global_ranks.push_back(rank);
  group.group_rank = endpoint.global_rank();
  return group;
}

struct NotesItsThread : torch::autograd::Function<NotesItsThread> {
  static inline thread_local int rank = -1;
  static inline std::array<std::atomic<int>, 4> seen{};

  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, int64_t of_rank) {
    ctx->saved_data["rank"] = of_rank;
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    seen[static_cast<size_t>(ctx->saved_data["rank"].toInt())] = rank;
    return {grads[0] * 2, {}};
  }
};

TEST(SharedGpu, BackwardRunsOnTheRanksThread) {
  make_test_world(4)->run([](Endpoint& endpoint) {
    NotesItsThread::rank = endpoint.global_rank();
    const at::Tensor x = at::ones({8}, endpoint.device()).requires_grad_(true);
    torch::autograd::backward({NotesItsThread::apply(x, endpoint.global_rank()).sum()}, {});
    EXPECT_TRUE(at::equal(x.grad().cpu(), at::full({8}, 2.0)));
  });
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(NotesItsThread::seen[static_cast<size_t>(rank)], rank);
}

TEST(SharedGpu, MemoryIsBookedUntilAnyThreadGivesItBack) {
  make_test_world(1)->run([](Endpoint& endpoint) {
    const auto book = std::make_shared<MemoryBook>();
    set_thread_memory_book(book);
    constexpr int64_t kBytes = 4 << 20;
    at::Tensor weights;
    {
      const MemoryScope scope(MemoryCategory::kParameters);
      weights = at::empty({kBytes}, at::TensorOptions(at::kByte).device(endpoint.device()));
    }
    EXPECT_EQ(book->bytes(MemoryCategory::kParameters), kBytes);
    std::thread([&] { weights.reset(); }).join();
    EXPECT_EQ(book->total_bytes(), 0);
    EXPECT_EQ(book->peak_bytes(), kBytes);
    set_thread_memory_book(nullptr);
  });
}

// Long chains of kernels in front of each call, and tensors that are freed and taken again at once behind it: an order
// that is missing gives wrong sums.
TEST(SharedGpu, LongKernelsAndReusedMemoryKeepTheirOrder) {
  constexpr int kRanks = 8, kRounds = 50;
  make_test_world(kRanks)->run([&](Endpoint& endpoint) {
    const CommunicatorPtr comm = endpoint.communicator(everyone(endpoint));
    const auto on = at::TensorOptions(at::kDouble).device(endpoint.device());
    at::Tensor wrong = at::zeros({1}, on);
    for (int round = 0; round < kRounds; ++round) {
      const int64_t count = 1 << (10 + round % 9);
      at::Tensor mine = at::zeros({count}, on);
      // Ranks are late in turn.
      const int kernels = (round + endpoint.global_rank()) % kRanks * 20;
      for (int i = 0; i < kernels; ++i) mine.add_(1.0);
      mine.fill_(static_cast<double>(endpoint.global_rank() + round));
      const WorkPtr pending = comm->all_gather_async(mine);
      const at::Tensor sum = comm->all_reduce(mine.clone());
      const double want = kRanks * (kRanks - 1) / 2.0 + static_cast<double>(kRanks * round);
      wrong.add_(sum.ne(want).sum());
      wrong.add_(pending->wait().sum().ne(want * static_cast<double>(count)).to(at::kDouble));
    }
    EXPECT_EQ(wrong.item<double>(), 0.0) << "rank " << endpoint.global_rank();
  });
}

// The clock is of the simulated machine: what a step takes there does not depend on what runs it here.
TEST(SharedGpu, ShowsTheTimesOfTheHost) {
  for (const bool bf16 : {false, true}) {
    TrainConfig config = small_run(8, 2);
    config.parallel.pp = 2;
    config.bf16 = bf16;
    config.train_iters = 2;
    const TrainingRecord gpu = record_training(config);
    const OnTestDevice host(TestDevice::kHost);
    const TrainingRecord cpu = record_training(config);
    for (size_t i = 0; i < cpu.steps.size(); ++i)
      EXPECT_EQ(gpu.steps[i].virtual_step_ms, cpu.steps[i].virtual_step_ms) << "bf16 " << bf16 << ", step " << i;
  }
}

// And training goes the same way, but for rounding.
TEST(SharedGpu, TrainsAsTheHostDoes) {
  TrainConfig config = small_run(8, 2);
  config.parallel.pp = 2;
  const TrainingRecord gpu = record_training(config);
  const OnTestDevice host(TestDevice::kHost);
  expect_near(gpu, record_training(config), 1e-4, 1e-2);
}

}  // namespace
}  // namespace ranklab
