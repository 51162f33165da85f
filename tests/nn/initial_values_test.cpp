// Any part of a parameter is made with the bits that it has in the whole.
#include "core/nn/initial_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

const std::vector<Partition> kPartitions = {
    replicated({7, 30}),           replicated({}),
    shard_dim({12, 10}, 0, 1, 3),  shard_dim({12, 10}, 1, 1, 2),
    shard_dim({3, 8, 5}, 1, 1, 2), shard_segments({12, 10}, {4, 8}, 1, 2),
    shard_padded({5, 3}, 1, 4),  // row 4 would be the fifth of eight
    shard_padded({5, 3}, 2, 4),  // one row and one of padding
    shard_padded({5, 3}, 3, 4),  // padding alone
};

Parameter& create(ParameterRegistry& registry, const Partition& partition, InitKind kind = InitKind::kNormal) {
  return registry.create("w", partition, {kind, 0.3}, true);
}

TEST(InitialValues, AnyPartHasTheBitsOfTheWhole) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    for (const InitKind kind :
         {InitKind::kNormal, InitKind::kOnes, InitKind::kZeros, InitKind::kLogUniform, InitKind::kStepBias}) {
      for (const Partition& partition : kPartitions) {
        ParameterRegistry now(7, type, at::kCPU), later(7, type, at::kCPU);
        later.make_values_later();
        const at::Tensor whole = create(now, partition, kind).data.detach().view({-1});
        const Parameter& unmade = create(later, partition, kind);
        const int64_t count = whole.numel();
        for (int64_t begin = 0; begin < count; ++begin) {
          for (int64_t end = begin; end <= count; end += 1 + end % 7) {
            const at::Tensor part = at::full({end - begin}, 99, at::TensorOptions(type));
            fill_initial(unmade, begin, part);
            ASSERT_TRUE(at::equal(part, whole.narrow(0, begin, end - begin))) << begin << " to " << end;
          }
        }
      }
    }
  }
}

// As Mamba-2's: steps whose logarithm is uniform between a thousandth and a tenth, rates of decay uniform from 1 to 16.
TEST(InitialValues, StepsAndRatesOfAStateSpace) {
  ParameterRegistry registry(7, at::kFloat, at::kCPU);
  const Partition partition = replicated({20000});
  const at::Tensor bias = registry.create("dt", partition, {.kind = InitKind::kStepBias}, false).data.detach();
  const at::Tensor steps = at::softplus(bias.to(at::kDouble)).log();
  EXPECT_NEAR(steps.min().item<double>(), std::log(1e-3), 1e-3);
  EXPECT_NEAR(steps.max().item<double>(), std::log(0.1), 1e-3);
  EXPECT_NEAR(steps.mean().item<double>(), std::log(1e-2), 0.05);
  const Init rate{.kind = InitKind::kLogUniform, .low = 1};
  const at::Tensor rates = registry.create("a", partition, rate, false).data.detach().to(at::kDouble).exp();
  EXPECT_NEAR(rates.min().item<double>(), 1, 5e-3);
  EXPECT_NEAR(rates.max().item<double>(), 16, 5e-3);
  EXPECT_NEAR(rates.mean().item<double>(), 8.5, 0.15);
}

// The whole comes from the same code, so once by hand: row 1 of 2 of each segment, columns as they are.
TEST(InitialValues, AreThoseOfTheStreamAtTheGlobalPlace) {
  ParameterRegistry later(7, at::kFloat, at::kCPU);
  later.make_values_later();
  const Parameter& unmade = create(later, shard_segments({12, 10}, {4, 8}, 1, 2));
  const at::Tensor part = at::empty({17}, at::kFloat);
  fill_initial(unmade, 15, part);
  const RandomStream stream(7, RandomPurpose::kInit, "w");
  const std::vector<int64_t> rows = {2, 3, 8, 9, 10, 11};
  for (int64_t i = 0; i < part.numel(); ++i) {
    const int64_t local = 15 + i, global = rows[static_cast<size_t>(local / 10)] * 10 + local % 10;
    EXPECT_EQ(part[i].item<float>(), stream.normal(static_cast<uint64_t>(global)) * 0.3F) << local;
  }
}

// More than what waits in fp32 at a time.
TEST(InitialValues, ChunksOfOtherTypesMeet) {
  const Partition partition = replicated({900, 700});
  ParameterRegistry wide(3, at::kFloat, at::kCPU), narrow(3, at::kBFloat16, at::kCPU);
  EXPECT_TRUE(at::equal(create(wide, partition).data.detach().to(at::kBFloat16), create(narrow, partition).data));
}

TEST(InitialValues, AreNotThereUntilTheyAreMade) {
  install_booking_allocator();
  const auto book = std::make_shared<MemoryBook>();
  std::thread rank([&] {
    set_thread_memory_book(book);
    ParameterRegistry registry(7, at::kFloat, at::kCPU);
    registry.make_values_later();
    Parameter& parameter = create(registry, replicated({40, 25}));
    const at::Tensor same = parameter.data;
    EXPECT_EQ(parameter.data.sizes(), (std::vector<int64_t>{40, 25}));
    EXPECT_TRUE(parameter.data.requires_grad() && parameter.data.is_leaf() && parameter.data.is_contiguous());
    EXPECT_EQ(parameter.data.storage().nbytes(), 0u);
    EXPECT_EQ(book->total_bytes(), 0);
    make_values(registry);
    EXPECT_FALSE(parameter.unmade);
    EXPECT_EQ(book->bytes(MemoryCategory::kParameters), 4000);
    EXPECT_EQ(book->peak_bytes(), 4000) << "nothing beside it";
    ParameterRegistry now(7, at::kFloat, at::kCPU);
    EXPECT_TRUE(at::equal(same, create(now, replicated({40, 25})).data)) << "who has the tensor has the values";
    parameter.data.detach().fill_(3);
    make_values(registry);
    EXPECT_EQ(same.min().item<float>(), 3) << "once";
  });
  rank.join();
  EXPECT_EQ(book->total_bytes(), 0);
}

TEST(InitialValues, OfExpertsAreAdjacent) {
  install_booking_allocator();
  const auto book = std::make_shared<MemoryBook>();
  std::thread rank([&] {
    set_thread_memory_book(book);
    ParameterRegistry registry(7, at::kFloat, at::kCPU), now(7, at::kFloat, at::kCPU);
    registry.make_values_later();
    std::vector<Parameter*> experts;
    for (const char* name : {"experts.0.up", "experts.1.up", "experts.2.up"}) {
      experts.push_back(&registry.create(name, replicated({8, 5}), {InitKind::kNormal, 0.3}, true));
      experts.back()->is_expert = true;
      EXPECT_EQ(parameter_key(*experts.back()), "experts.*.up");
    }
    make_adjacent_values(experts);
    EXPECT_EQ(book->bytes(MemoryCategory::kParameters), 3 * 160);
    for (size_t i = 0; i < experts.size(); ++i) {
      const Parameter& expert = *experts[i];
      const at::Tensor want = now.create(expert.name, replicated({8, 5}), {InitKind::kNormal, 0.3}, true).data;
      EXPECT_TRUE(at::equal(expert.data, want)) << expert.name;
      EXPECT_TRUE(expert.data.is_leaf() && expert.data.storage().nbytes() == 160u && !expert.unmade);
      EXPECT_EQ(expert.data.const_data_ptr<float>(), experts[0]->data.const_data_ptr<float>() + 40 * i);
    }
  });
  rank.join();
  EXPECT_EQ(book->total_bytes(), 0);
}

TEST(InitialValues, RefuseWhatIsNotThePartOfAnUnmadeOne) {
  ParameterRegistry now(7, at::kFloat, at::kCPU), later(7, at::kFloat, at::kCPU);
  later.make_values_later();
  const at::Tensor out = at::empty({5}, at::kFloat);
  EXPECT_THROW(fill_initial(create(now, replicated({4, 4})), 0, out), Error);
  const Parameter& unmade = create(later, replicated({4, 4}));
  EXPECT_NO_THROW(fill_initial(unmade, 11, out));
  EXPECT_THROW(fill_initial(unmade, 12, out), Error);
  EXPECT_THROW(fill_initial(unmade, -1, out), Error);
}

}  // namespace
}  // namespace ranklab
