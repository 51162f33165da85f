// A world of shapes: what its ranks may read, what they exchange, the sizes of their tensors, and that no rank waits
// for a call that no rank makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "backends/meta/meta_world.h"
#include "core/base/error.h"
#include "core/comm/world.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

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
