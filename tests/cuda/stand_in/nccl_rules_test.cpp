// The stand-in for NCCL keeps NCCL's rules: what matches, what holds a host, what never ends, and what an abort ends;
// and that for CUDA's runtime what its events promise.
#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <utility>

#include "tests/cuda/stand_in/raw_ranks.h"

namespace ranklab::stand_in {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Its launches never end; the abort ends them.
void expect_held(RawRank& mine, std::barrier<>& all) {
  wait_a_little();
  EXPECT_FALSE(mine.idle());
  all.arrive_and_wait();
  EXPECT_EQ(ncclCommAbort(std::exchange(mine.comm, nullptr)), ncclSuccess);
  mine.sync();
}

TEST(NcclStandIn, TheNthSendMeetsTheNthReceive) {
  run_raw_ranks(2, [](RawRank& mine) {
    std::vector<int> first = {1}, second = {2};
    if (mine.rank == 0) {
      EXPECT_EQ(mine.send(first, 1), ncclSuccess);
      EXPECT_EQ(mine.send(second, 1), ncclSuccess);
    } else {
      EXPECT_EQ(mine.receive(second, 0), ncclSuccess);
      EXPECT_EQ(mine.receive(first, 0), ncclSuccess);
    }
    mine.sync();
    EXPECT_THAT(second, ElementsAre(mine.rank == 0 ? 2 : 1));
    EXPECT_THAT(first, ElementsAre(mine.rank == 0 ? 1 : 2));
  });
}

TEST(NcclStandIn, FirstMessagesMustConnectTheSameDirections) {
  run_raw_ranks(2, [](RawRank& mine) {
    std::vector<int> data = {1}, other = {0};
    const ncclResult_t code = mine.rank == 0 ? mine.exchange(data, other, 1) : mine.receive(other, 0);
    EXPECT_EQ(code, ncclInternalError);
    EXPECT_THAT(ncclGetLastError(mine.comm), HasSubstr("Message truncated"));
  });
}

TEST(NcclStandIn, OnceConnectedGroupsNeedNotMirrorEachOther) {
  run_raw_ranks(2, [](RawRank& mine) {
    std::vector<int> data = {mine.rank}, other = {-1};
    EXPECT_EQ(mine.exchange(data, other, 1 - mine.rank), ncclSuccess);
    if (mine.rank == 0) {
      EXPECT_EQ(mine.exchange(data, other, 1), ncclSuccess);
    } else {
      EXPECT_EQ(mine.receive(other, 0), ncclSuccess);
      EXPECT_EQ(mine.send(data, 0), ncclSuccess);
    }
    mine.sync();
    EXPECT_THAT(other, ElementsAre(1 - mine.rank));
  });
}

TEST(NcclStandIn, OnlyTheFirstMessageHoldsTheHost) {
  std::atomic<bool> receiver_came{false}, receiver_may_come{false};
  run_raw_ranks(2, [&](RawRank& mine) {
    std::vector<int> data = {7};
    if (mine.rank == 0) {
      EXPECT_EQ(mine.send(data, 1), ncclSuccess);
      EXPECT_TRUE(receiver_came);
      EXPECT_EQ(mine.send(data, 1), ncclSuccess);
      EXPECT_FALSE(mine.idle());
      receiver_may_come = true;
    } else {
      wait_a_little();
      receiver_came = true;
      EXPECT_EQ(mine.receive(data, 0), ncclSuccess);
      receiver_may_come.wait(false);
      EXPECT_EQ(mine.receive(data, 0), ncclSuccess);
    }
    receiver_may_come.notify_all();
    mine.sync();
  });
}

TEST(NcclStandIn, TheFirstCollectiveHoldsTheHost) {
  std::atomic<bool> late_came{false};
  run_raw_ranks(3, [&](RawRank& mine) {
    if (mine.rank == 2) {
      wait_a_little();
      late_came = true;
    }
    int one = 1;
    EXPECT_EQ(ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, mine.comm, mine.stream), ncclSuccess);
    EXPECT_TRUE(late_came);
    mine.sync();
    EXPECT_EQ(one, 3);
  });
}

TEST(NcclStandIn, AWaitingSendHoldsTheReceiveBehindIt) {
  std::barrier all(2);
  run_raw_ranks(2, [&](RawRank& mine) {
    std::vector<int> data = {1}, other = {0};
    EXPECT_EQ(mine.exchange(data, other, 1 - mine.rank), ncclSuccess);
    mine.sync();
    EXPECT_EQ(mine.send(data, 1 - mine.rank), ncclSuccess);
    EXPECT_EQ(mine.receive(other, 1 - mine.rank), ncclSuccess);
    expect_held(mine, all);
  });
}

TEST(NcclStandIn, WhatDiffersNeverEnds) {
  for (const bool message : {true, false}) {
    std::barrier all(2);
    run_raw_ranks(2, [&](RawRank& mine) {
      std::vector<int> data(mine.rank == 0 ? 4 : 5), sum(1);
      if (message) {
        EXPECT_EQ(mine.rank == 0 ? mine.send(data, 1) : mine.receive(data, 0), ncclSuccess);
      } else {
        EXPECT_EQ(ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, mine.comm, mine.stream),
                  ncclSuccess);
      }
      expect_held(mine, all);
    });
  }
}

TEST(NcclStandIn, AnAbortEndsTheKernelsOfItsOwnRankAlone) {
  std::barrier all(2);
  run_raw_ranks(2, [&](RawRank& mine) {
    std::vector<int> data(4), other(4);
    EXPECT_EQ(mine.exchange(data, other, 1 - mine.rank), ncclSuccess);
    mine.sync();
    EXPECT_EQ(mine.receive(data, 1 - mine.rank), ncclSuccess);
    all.arrive_and_wait();
    if (mine.rank == 0) {
      EXPECT_EQ(ncclCommAbort(mine.comm), ncclSuccess);
      mine.sync();
      EXPECT_EQ(mine.send(data, 1), ncclInvalidArgument) << "an aborted communicator is gone";
      mine.comm = nullptr;
      all.arrive_and_wait();
    } else {
      all.arrive_and_wait();
      EXPECT_FALSE(mine.idle());
      EXPECT_EQ(ncclCommAbort(std::exchange(mine.comm, nullptr)), ncclSuccess);
      mine.sync();
    }
  });
}

// As two launches, each member's first would connect its own direction alone.
TEST(NcclStandIn, AGroupIsOneLaunchForEachCommunicator) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  run_raw_ranks(2, [&](RawRank& mine) {
    RawRank second = mine;
    ASSERT_EQ(ncclCommInitRankConfig(&second.comm, 2, id, mine.rank, nullptr), ncclSuccess);
    std::vector<int> data = {mine.rank}, other = {-1}, another = {-1};
    ncclGroupStart();
    EXPECT_EQ(mine.send(data, 1 - mine.rank), ncclSuccess);
    EXPECT_EQ(second.send(data, 1 - mine.rank), ncclSuccess);
    EXPECT_EQ(mine.receive(other, 1 - mine.rank), ncclSuccess);
    EXPECT_EQ(second.receive(another, 1 - mine.rank), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    mine.sync();
    EXPECT_THAT(other, ElementsAre(1 - mine.rank));
    EXPECT_THAT(another, ElementsAre(1 - mine.rank));
    EXPECT_EQ(ncclCommDestroy(second.comm), ncclSuccess);
  });
}

TEST(NcclStandIn, AnAverageOfIntegersIsTheirSumDivided) {
  run_raw_ranks(3, [](RawRank& mine) {
    std::vector<int> data = mine.rank == 2 ? std::vector{6, -6} : std::vector{1 + mine.rank, -1 - mine.rank};
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 2, ncclInt32, ncclAvg, mine.comm, mine.stream), ncclSuccess);
    mine.sync();
    EXPECT_THAT(data, ElementsAre(3, -3));
  });
}

TEST(CudaStandIn, AWaitIsForTheRecordBeforeItAlone) {
  cudaStream_t held = nullptr, idle = nullptr, waiting = nullptr;
  for (cudaStream_t* stream : {&held, &idle, &waiting}) cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, 0);
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  std::atomic<bool> free{false};
  launch(held, [&] { free.wait(false); });
  cudaEventRecord(event, held);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  cudaStreamWaitEvent(waiting, event, 0);
  cudaEventRecord(event, idle);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  wait_a_little();
  EXPECT_EQ(cudaStreamQuery(waiting), cudaErrorNotReady) << "the record that it saw is not reached";
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "the last one is";
  free = true;
  free.notify_all();
  EXPECT_EQ(cudaStreamSynchronize(waiting), cudaSuccess);
}

TEST(NcclStandIn, WrongUseIsRefused) {
  run_raw_ranks(2, [](RawRank& mine) {
    std::vector<int> data = {1};
    EXPECT_EQ(mine.send(data, mine.rank), ncclInvalidUsage) << "to itself, without a receive";
    EXPECT_EQ(mine.send(data, 2), ncclInvalidArgument);
    ncclGroupStart();
    EXPECT_EQ(mine.send(data, 2), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument) << "and nothing of the group starts";
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  });
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  const auto join = [&](int rank) {
    ncclComm_t comm = nullptr;
    cudaSetDevice(0);
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, nullptr), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("Duplicate GPU"));
  };
  std::jthread other(join, 1);
  join(0);
}

}  // namespace
}  // namespace ranklab::stand_in
