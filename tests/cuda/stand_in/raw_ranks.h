// Ranks that call the stand-in's NCCL themselves, without our backend: each a thread with a device, a stream and one
// communicator of all. Thread rule: members are used by their rank's thread; the rest by the test's.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "tests/cuda/stand_in/cuda_runtime.h"
#include "tests/cuda/stand_in/nccl_control.h"

namespace ranklab::stand_in {

struct RawRank {
  int rank = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;

  bool idle() const { return cudaStreamQuery(stream) == cudaSuccess; }
  ncclResult_t send(const std::vector<int>& data, int to) const {
    return ncclSend(data.data(), data.size(), ncclInt32, to, comm, stream);
  }
  ncclResult_t receive(std::vector<int>& data, int from) const {
    return ncclRecv(data.data(), data.size(), ncclInt32, from, comm, stream);
  }
  // Both at once, as one launch.
  ncclResult_t exchange(const std::vector<int>& out, std::vector<int>& in, int peer) const {
    ncclGroupStart();
    const ncclResult_t code = send(out, peer);
    return code != ncclSuccess ? code : (receive(in, peer), ncclGroupEnd());
  }
  void sync() const { cudaStreamSynchronize(stream); }
};

inline void run_raw_ranks(int size, const std::function<void(RawRank&)>& body) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      cudaSetDevice(rank);
      RawRank mine{.rank = rank};
      cudaStreamCreateWithPriority(&mine.stream, cudaStreamNonBlocking, 0);
      ASSERT_EQ(ncclCommInitRankConfig(&mine.comm, size, id, rank, nullptr), ncclSuccess);
      body(mine);
      if (mine.comm != nullptr) {
        EXPECT_EQ(ncclCommFinalize(mine.comm), ncclSuccess);
        EXPECT_EQ(ncclCommDestroy(mine.comm), ncclSuccess);
      }
    });
  }
}

// For what must not happen: long enough for it to happen if it can.
inline void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

}  // namespace ranklab::stand_in
