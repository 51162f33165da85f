#include "core/sim/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace ranklab {
namespace {

TEST(BlockPool, GivesAFreedBlockToTheNextOfItsSize) {
  BlockPool pool;
  void* first = pool.take(1 << 20);
  void* second = pool.take(1 << 20);
  EXPECT_NE(first, second);
  pool.give(first, 1 << 20);
  EXPECT_EQ(pool.free_bytes(), size_t{1} << 20);
  EXPECT_EQ(pool.take((1 << 20) - 100), first) << "same whole pages";
  EXPECT_EQ(pool.free_bytes(), 0u);
  EXPECT_NE(pool.take(2 << 20), first);
}

TEST(BlockPool, AlignsEverySizeAndKeepsLiveBlocksApart) {
  BlockPool pool;
  std::vector<std::pair<unsigned char*, size_t>> live;
  for (const size_t bytes : {1u, 63u, 64u, 1000u, 65535u, 65536u, 65537u, 1000000u}) {
    auto* block = static_cast<unsigned char*>(pool.take(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
    std::memset(block, static_cast<int>(live.size()), bytes);
    live.emplace_back(block, bytes);
  }
  for (size_t i = 0; i < live.size(); ++i) {
    EXPECT_EQ(live[i].first[0], i);
    EXPECT_EQ(live[i].first[live[i].second - 1], i);
    pool.give(live[i].first, live[i].second);
  }
}

TEST(BlockPool, ReturnsWhatItHoldsWhenTheSizesChange) {
  BlockPool pool;
  constexpr size_t kLarge = 300 << 20;  // address space only: no page is touched
  pool.give(pool.take(kLarge), kLarge);
  EXPECT_EQ(pool.free_bytes(), kLarge);
  pool.give(pool.take(1 << 20), 1 << 20);
  EXPECT_EQ(pool.free_bytes(), size_t{1} << 20);
}

TEST(BlockPool, ServesThreadsAtOnce) {
  BlockPool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 2000; ++i) {
        const size_t bytes = (64u << 10) + 4096u * static_cast<size_t>(i % 5);
        auto* block = static_cast<int*>(pool.take(bytes));
        block[0] = t;
        block[bytes / sizeof(int) - 1] = t;
        ASSERT_EQ(block[0], t);
        ASSERT_EQ(block[bytes / sizeof(int) - 1], t);
        pool.give(block, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ranklab
