// A world of shapes: what its ranks may read, what they exchange, the sizes of their tensors, and that no rank waits
// for a call that no rank makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>

#include "backends/meta/meta_world.h"
#include "core/base/error.h"
#include "core/comm/world.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

const at::TensorOptions kShape = at::TensorOptions(at::kFloat).device(at::kMeta);

Group world_group(int size, int rank) {
  Group group{.axis = Axis::kWorld, .global_ranks = {}, .group_rank = rank};
  for (int member = 0; member < size; ++member) group.global_ranks.push_back(member);
  return group;
}

// The error that a run ends with.
std::string error_of(World& world, const std::function<void(Endpoint&)>& body) {
  try {
    world.run(body);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(MetaWorld, NumbersAreUnknownOnItsRanksAndAnErrorElsewhere) {
  const auto world = make_meta_world({0});
  world->run([](Endpoint&) {
    EXPECT_EQ(at::empty({3}, kShape).sum().item<float>(), 1.0F);
    EXPECT_EQ(at::empty({3}, kShape.dtype(at::kLong)).sum().item<int64_t>(), 1);
  });
  EXPECT_THROW(at::empty({3}, kShape).sum().item<float>(), std::exception);
  EXPECT_THROW(at::empty({3}, kShape).to(at::kCPU), std::exception);
}

TEST(MetaWorld, HostNumbersAreThoseOfTheRanksThatRun) {
  std::mutex mutex;
  std::map<int, std::vector<float>> gathered;
  std::map<int, float> summed;
  make_meta_world({0, 0, 2, 2})->run([&](Endpoint& endpoint) {
    const auto comm = endpoint.communicator(world_group(4, endpoint.global_rank()));
    const at::Tensor mine = at::full({1}, 1.0F + static_cast<float>(endpoint.global_rank()));
    const at::Tensor all = comm->all_gather(mine);
    const at::Tensor sum = comm->all_reduce(mine.clone());
    const std::lock_guard lock(mutex);
    gathered[endpoint.global_rank()] = {all.const_data_ptr<float>(), all.const_data_ptr<float>() + 4};
    summed[endpoint.global_rank()] = sum.item<float>();
  });
  const std::vector<float> want = {1, 1, 3, 3};
  EXPECT_EQ(gathered, (std::map<int, std::vector<float>>{{0, want}, {2, want}}));
  EXPECT_EQ(summed, (std::map<int, float>{{0, 8}, {2, 8}}));
}

TEST(MetaWorld, ShapesPassAsTheVerbsMakeThem) {
  make_meta_world({0, 0, 0, 0})->run([](Endpoint& endpoint) {
    const auto comm = endpoint.communicator(world_group(4, 0));
    EXPECT_EQ(comm->all_gather(at::empty({2, 5}, kShape)).sizes(), (std::vector<int64_t>{8, 5}));
    EXPECT_EQ(comm->reduce_scatter(at::empty({8, 5}, kShape)).sizes(), (std::vector<int64_t>{2, 5}));
    EXPECT_EQ(comm->all_to_all(at::empty({4, 5}, kShape), {1, 0, 3, 0}, {2, 2, 2, 0}).sizes(),
              (std::vector<int64_t>{6, 5}));
  });
}

TEST(MetaWorld, RanksThatGetNoTokensAddNoRows) {
  make_meta_world({0})->run([](Endpoint&) {
    for (const int64_t rows : {0, 3}) {
      const at::Tensor sum = at::empty({rows, 5}, kShape);
      const at::Tensor none = at::empty({0}, kShape.dtype(at::kLong));
      EXPECT_EQ(sum.index_add(0, none, at::empty({0, 5}, kShape)).sizes(), sum.sizes());
    }
  });
}

int64_t nanoseconds_of(const std::function<void()>& body) {
  HardwareProfile byte_per_ns;
  byte_per_ns.memory_bandwidth = 1e9;
  byte_per_ns.peak_flops_fp32 = 1e15;
  VirtualClock clock;
  const OpObserver observer(byte_per_ns, clock);
  body();
  return clock.now_ns();
}

// In a backward a gather's gradient is scattered in place, also where LibTorch has another formula for tensors without
// data. Any other scatter out of place copies its table, with or without gradients, whether its tensors have data or
// not.
TEST(MetaWorld, ScattersCostWhatTheyDoWithData) {
  constexpr int64_t kRows = 10, kTable = 1000, kWidth = 16;
  const auto backward_of = [&](at::Device device, bool by_rows) {
    const at::Tensor table = at::ones({kTable, kWidth}, at::device(device)).requires_grad_(true);
    const at::Tensor index = at::zeros({kRows, kWidth}, at::dtype(at::kLong).device(device));
    const at::Tensor result = by_rows ? table.index_select(0, index.select(1, 0)) : table.gather(0, index);
    const at::Tensor grad = at::ones_like(result);
    return nanoseconds_of([&] { result.backward(grad); });
  };
  make_meta_world({0})->run([&](Endpoint&) {
    for (const bool by_rows : {true, false})
      EXPECT_EQ(backward_of(at::kMeta, by_rows), backward_of(at::kCPU, by_rows)) << by_rows;
    for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {
      for (const bool trains : {true, false}) {
        const c10::AutoGradMode mode(trains);
        const at::Tensor table = at::ones({kTable, kWidth}, at::device(device));
        const at::Tensor rows = at::ones({kRows, kWidth}, at::device(device));
        const at::Tensor index = at::zeros({kRows}, at::dtype(at::kLong).device(device));
        EXPECT_EQ(nanoseconds_of([&] { table.index_add(0, index, rows); }),
                  kRows * 8 + 3 * kRows * kWidth * 4 + 2 * kTable * kWidth * 4);
      }
    }
  });
}

TEST(MetaWorld, BytesAreBookedAndNotHeld) {
  constexpr int64_t kElements = int64_t{1} << 50;  // more than any machine has
  make_meta_world({0})->run([](Endpoint&) {
    const auto book = std::make_shared<MemoryBook>();
    set_thread_memory_book(book);
    {
      const MemoryScope scope(MemoryCategory::kGradients);
      const at::Tensor large = at::empty({kElements}, kShape);
      EXPECT_EQ(book->bytes(MemoryCategory::kGradients), 4 * kElements);
      const at::Tensor view = large.view({2, -1}).select(0, 1);
      EXPECT_EQ(book->total_bytes(), 4 * kElements);
    }
    EXPECT_EQ(book->total_bytes(), 0);
    EXPECT_EQ(book->peak_bytes(), 4 * kElements);
    set_thread_memory_book(nullptr);
  });
}

TEST(MetaWorld, CallsThatNobodyMakesAreToldAndNotWaitedFor) {
  const auto world = make_meta_world({0, 1});
  const std::string alone = error_of(*world, [](Endpoint& endpoint) {
    const auto comm = endpoint.communicator(world_group(2, endpoint.global_rank()));
    if (endpoint.global_rank() == 0) comm->all_reduce(at::empty({4}, kShape));
  });
  EXPECT_THAT(alone, testing::HasSubstr("calls that nobody makes"));
  EXPECT_THAT(alone, testing::HasSubstr("world 0 1"));
  const std::string crossed = error_of(*world, [](Endpoint& endpoint) {
    const auto comm = endpoint.communicator(world_group(2, endpoint.global_rank()));
    comm->recv(at::empty({4}, kShape), 1 - endpoint.global_rank());
  });
  EXPECT_THAT(crossed, testing::HasSubstr("message from"));
}

TEST(MetaWorld, TheFirstErrorOfARankIsTheOneTold) {
  const std::string error = error_of(*make_meta_world({0, 1}), [](Endpoint& endpoint) {
    const auto comm = endpoint.communicator(world_group(2, endpoint.global_rank()));
    if (endpoint.global_rank() == 1)
      throw Error(ErrorKind::kNumeric, {.where = "rank 1", .what = "it broke", .got = {}, .want = {}, .fix = {}});
    comm->all_reduce(at::empty({4}, kShape));
  });
  EXPECT_THAT(error, testing::HasSubstr("it broke"));
}

TEST(MetaWorld, AStandInMustRun) {
  EXPECT_THROW(make_meta_world({1, 0}), Error);
  EXPECT_THROW(make_meta_world({0, 2}), Error);
}

}  // namespace
}  // namespace ranklab
