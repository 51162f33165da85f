#include "core/sim/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(BlockPool, CutsABlockForASmallerOneAndJoinsThePieces) {
  BlockPool pool;
  constexpr size_t kWhole = 1 << 20, kPart = 256 << 10;
  auto* whole = static_cast<char*>(pool.take(kWhole));
  pool.give(whole, kWhole);
  // In the order in which they are cut, given back in another: it is one block again.
  std::vector<char*> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(static_cast<char*>(pool.take(kPart)));
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i], whole + i * kPart);
  EXPECT_EQ(pool.free_bytes(), 0u);
  for (const size_t i : {1u, 3u, 0u, 2u}) pool.give(parts[i], kPart);
  EXPECT_EQ(pool.free_bytes(), kWhole);
  EXPECT_EQ(pool.take(kWhole), whole);
}

TEST(BlockPool, TakesTheSmallestBlockThatIsLargeEnough) {
  BlockPool pool;
  constexpr size_t kLarge = 8 << 20, kMiddle = 2 << 20, kWall = 64 << 10;
  // Blocks in use lie between them, so that freed ones are not adjacent.
  auto* region = static_cast<char*>(pool.take(kLarge + kWall + kMiddle));
  pool.give(region, kLarge + kWall + kMiddle);
  void* large = pool.take(kLarge);
  void* wall = pool.take(kWall);
  void* middle = pool.take(kMiddle);
  pool.give(large, kLarge);
  pool.give(middle, kMiddle);
  EXPECT_EQ(pool.take(1 << 20), middle);
  EXPECT_EQ(pool.take(4 << 20), large);
  pool.give(wall, kWall);
}

// Experts get another number of tokens at every step: the pool holds what they need at once, not every size ever seen.
TEST(BlockPool, SizesThatDifferAtEveryStepNeedNoMoreThanTheLargest) {
  BlockPool pool;
  constexpr size_t kTensors = 8;
  size_t most = 0, held = 0;
  for (size_t step = 0; step < 200; ++step) {
    std::vector<std::pair<void*, size_t>> live;
    size_t bytes_now = 0;
    for (size_t i = 0; i < kTensors; ++i) {
      const size_t bytes = (100u << 10) + (step * 7919 + i * 104729) % (1u << 20);
      live.emplace_back(pool.take(bytes), bytes);
      bytes_now += (bytes + 4095) / 4096 * 4096;
    }
    most = std::max(most, bytes_now);
    for (const auto& [block, bytes] : live) pool.give(block, bytes);
    held = pool.free_bytes();
  }
  EXPECT_LE(held, most + most / 4);
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

TEST(BlockPool, ReturnsWhatItHoldsWhenMuchIsFreeAndNoneOfItFits) {
  BlockPool pool;
  constexpr size_t kPiece = 1 << 20, kPieces = 600;  // address space only: no page is touched
  pool.give(pool.take(kPieces * kPiece), kPieces * kPiece);
  std::vector<void*> pieces;
  for (size_t i = 0; i < kPieces; ++i) pieces.push_back(pool.take(kPiece));
  for (size_t i = 0; i < kPieces; i += 2) pool.give(pieces[i], kPiece);
  EXPECT_EQ(pool.free_bytes(), kPieces / 2 * kPiece);
  void* larger = pool.take(2 * kPiece);
  EXPECT_EQ(pool.free_bytes(), 0u);
  pool.give(larger, 2 * kPiece);
  for (size_t i = 1; i < kPieces; i += 2) pool.give(pieces[i], kPiece);
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
