// Writing into other ranks' memory: every row arrives whole and once, whatever the timing; who does not finish is
// named.
#include "core/comm/peer_memory.h"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "tests/cpu_sim/faults.h"

namespace ranklab::cpu_sim_test {
namespace {

using testing::HasSubstr;

constexpr Path kDirect = kPaths[0];

// `count` rows of 9 bytes, all of this value.
at::Tensor rows_of(int64_t count, int value) { return at::full({count, 9}, value, at::TensorOptions(at::kByte)); }

// Rows of each value that a delivery holds, after checking that no row is a mixture.
std::vector<int64_t> counted(const Delivery& delivery) {
  std::vector<int64_t> counts(256, 0);
  for (int64_t i = 0; i < delivery.rows.size(0); ++i) {
    const at::Tensor row = delivery.rows[i];
    const int value = row[0].item<int>();
    EXPECT_TRUE(row.eq(value).all().item<bool>());
    ++counts[static_cast<size_t>(value)];
  }
  return counts;
}

TEST(PeerMemory, EveryRowArrivesOnceWhateverTheTiming) {
  constexpr int kRanks = 4, kRounds = 30;
  const Outcome outcome = run_world(options_of(kDirect, kRanks), [](Endpoint& endpoint, Communicator& comm) {
    const PeerMemoryPtr memory = peer_memory_of(comm);
    ASSERT_NE(memory, nullptr);
    const int self = endpoint.global_rank();
    for (int round = 0; round < kRounds; ++round) {
      // Rank 3 is ahead of the others by as much as it can; the last round outgrows the buffers.
      if (self != 3) std::this_thread::yield();
      const int64_t many = round + 1 == kRounds ? 5000 : 1;
      for (int peer = 0; peer < kRanks; ++peer) {
        if (peer == (self + 1) % kRanks) continue;
        for (int put = 0; put <= self; ++put) memory->put(peer, rows_of(many * (round % 3), 10 * self + round % 10));
      }
      memory->finish();
      const Delivery delivery = memory->take();
      const std::vector<int64_t> counts = counted(delivery);
      for (int source = 0; source < kRanks; ++source) {
        const bool puts = self != (source + 1) % kRanks;
        EXPECT_EQ(counts[static_cast<size_t>(10 * source + round % 10)], puts ? (source + 1) * many * (round % 3) : 0);
        EXPECT_EQ(std::count_if(delivery.notes.begin(), delivery.notes.end(),
                                [&](const PutNote& note) { return note.source == source; }),
                  puts ? source + 1 : 0);
      }
    }
  });
  EXPECT_FALSE(outcome.error) << outcome.text();
}

TEST(PeerMemory, TwoOfOneGroupDoNotMix) {
  const Outcome outcome = run_world(options_of(kDirect, 2), [](Endpoint& endpoint, Communicator& comm) {
    const PeerMemoryPtr one = peer_memory_of(comm), other = peer_memory_of(comm);
    const int peer = 1 - endpoint.global_rank();
    one->put(peer, rows_of(1, 1));
    other->put(peer, rows_of(2, 2));
    other->finish();
    EXPECT_EQ(counted(other->take())[2], 2);
    one->finish();
    EXPECT_EQ(counted(one->take())[1], 1);
  });
  EXPECT_FALSE(outcome.error) << outcome.text();
}

TEST(PeerMemory, ARankThatFailsFreesThoseThatWait) {
  const Outcome outcome = run_world(options_of(kDirect, 3), [](Endpoint& endpoint, Communicator& comm) {
    const PeerMemoryPtr memory = peer_memory_of(comm);
    memory->put(0, rows_of(1, 1));
    if (endpoint.global_rank() == 1) throw std::runtime_error("boom");
    memory->finish();
    memory->take();
  });
  EXPECT_EQ(outcome.text(), "[rank 1] the rank threw; got boom");
}

TEST(PeerMemory, ARankThatNeverFinishesIsReportedAtOnce) {
  const Outcome outcome = run_world(options_of(kDirect, 3), [](Endpoint& endpoint, Communicator& comm) {
    const PeerMemoryPtr memory = peer_memory_of(comm);
    if (endpoint.global_rank() == 2) return;
    memory->finish();
    memory->take();
  });
  EXPECT_THAT(outcome.text(), HasSubstr("deadlock: a member will never make this call"));
  EXPECT_THAT(outcome.text(), HasSubstr("puts to rank"));
  EXPECT_THAT(outcome.text(), HasSubstr("rank 2, whose body has returned"));
  EXPECT_LT(outcome.seconds, 5);
}

TEST(PeerMemory, TakingBeforeFinishingIsAnError) {
  const Outcome outcome =
      run_world(options_of(kDirect, 1), [](Endpoint&, Communicator& comm) { peer_memory_of(comm)->take(); });
  EXPECT_THAT(outcome.text(), HasSubstr("take() before finish()"));
}

}  // namespace
}  // namespace ranklab::cpu_sim_test
