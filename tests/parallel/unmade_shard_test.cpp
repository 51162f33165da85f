// Shards of parameters that were never materialized whole: the same bits as those that were, with memory only for the
// shards.
#include <gtest/gtest.h>

#include "core/parallel/data/grad_reducer.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

constexpr int kShardRanks = 4;

// Two units, rows that other ranks have and a norm; edges that fill no cache lines.
void fill(ParameterRegistry& registry, int tp_rank) {
  registry.begin_unit({.name = "embedding"});
  registry.create("embedding.weight", shard_padded({35, 12}, tp_rank, 2), {}, true);
  registry.begin_unit({.name = "layers.0"});
  registry.create("layers.0.up.weight", shard_segments({24, 12}, {12, 12}, tp_rank, 2), {}, true);
  registry.create("layers.0.down.weight", shard_dim({12, 24}, 1, tp_rank, 2), {InitKind::kNormal, 0.1}, true);
  registry.create("layers.0.norm.weight", replicated({12}), {InitKind::kOnes}, false);
  registry.create("layers.0.norm.bias", replicated({12}), {InitKind::kZeros}, false);
}

struct Shared {
  Shared(RankContext& context, at::ScalarType type, bool later) : registry(11, type, at::kCPU) {
    if (later) registry.make_values_later();
    fill(registry, context.coordinate(Axis::kTp));
    reducer = std::make_unique<GradReducer>(registry.parameters(), context.comm(Axis::kDp), nullptr,
                                            GradReducerOptions{.zero = kZeroStages[3]});
    reducer->shard_parameters(units);
  }
  ParameterRegistry registry;
  ShardedUnits units;
  std::unique_ptr<GradReducer> reducer;
};

TEST(UnmadeShards, AreThoseOfTheWhole) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    run_ranks(dims_of(kShardRanks, 2), [&](RankContext& context) {
      Shared made(context, type, false), unmade(context, type, true);
      const std::vector<Parameter*> want = made.reducer->owned(), got = unmade.reducer->owned();
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_FALSE(got[i]->unmade);
        EXPECT_TRUE(at::equal(got[i]->data, want[i]->data)) << want[i]->name;
        EXPECT_EQ(unmade.reducer->origin_of(got[i]).second, made.reducer->origin_of(want[i]).second);
      }
      ParameterRegistry whole(11, type, at::kCPU);
      fill(whole, context.coordinate(Axis::kTp));
      for (const Parameter* parameter : unmade.registry.parameters()) {
        EXPECT_FALSE(parameter->unmade);
        EXPECT_TRUE(is_freed(parameter->data));
        const std::string unit = parameter->unit.name;
        unmade.units.enter(unit, "");
        EXPECT_TRUE(at::equal(parameter->data, whole.find(parameter->name)->data)) << parameter->name;
        unmade.units.leave(unit);
      }
    });
  }
}

TEST(UnmadeShards, TakeNoMoreThanTheirOwnMemory) {
  install_booking_allocator();
  run_ranks(dims_of(kShardRanks, 2), [&](RankContext& context) {
    const auto book = std::make_shared<MemoryBook>();
    set_thread_memory_book(book);
    {
      const Shared unmade(context, at::kBFloat16, true);
      int64_t shards = 0, whole = 0;
      for (const GradBucket& bucket : unmade.reducer->buckets()) {
        shards += bucket.layout.elements / kShardRanks * bucket.parameter_bytes();
        whole += (bucket.layout.elements - bucket.layout.padding()) * bucket.parameter_bytes();
      }
      EXPECT_EQ(book->bytes(MemoryCategory::kParameters), shards);
      EXPECT_EQ(book->peak_bytes(MemoryCategory::kParameters), shards);
      EXPECT_LT(shards, whole / 2);
    }
    set_thread_memory_book(nullptr);
  });
}

// Values that somebody gave them are kept.
TEST(UnmadeShards, LeaveMadeOnesAsTheyAre) {
  run_ranks(dims_of(2, 1), [&](RankContext& context) {
    ParameterRegistry registry(11, at::kFloat, at::kCPU);
    registry.begin_unit({.name = "layers.0"});
    Parameter& own = registry.create("layers.0.own", replicated({6, 6}), {}, true);
    own.data.detach().copy_(at::arange(36, at::kFloat).view({6, 6}));
    registry.make_values_later();
    Parameter& drawn = registry.create("layers.0.drawn", replicated({6, 6}), {InitKind::kOnes}, true);
    GradReducer reducer(registry.parameters(), context.comm(Axis::kDp), nullptr, {.zero = kZeroStages[3]});
    ShardedUnits units;
    reducer.shard_parameters(units);
    units.enter("layers.0", "");
    EXPECT_TRUE(at::equal(own.data.flatten(), at::arange(36, at::kFloat)));
    EXPECT_EQ(drawn.data.min().item<float>(), 1);
    units.leave("layers.0");
  });
}

}  // namespace
}  // namespace ranklab
