#include <gtest/gtest.h>

#include <numeric>

#include "tests/conformance/cases.h"

namespace ranklab::conformance {

void all_gather_case(const Backend& backend) {
  for_each_setting(backend, [](const Member& m, const Setting& s, const Backend& b) {
    std::vector<at::Tensor> all;
    for (int r = 0; r < m.size(); ++r) all.push_back(values(r, s.count, s.dtype));
    const at::Tensor input = m.mine(s.count, s.dtype);
    const at::Tensor got = m.comm.all_gather(input);
    expect_same(got, at::cat(all), b, false, "all_gather over " + std::to_string(m.size()));
    expect_same(input, values(m.rank(), s.count, s.dtype), b, false, "input of all_gather");
  });
}

void all_to_all_case(const Backend& backend) {
  for_each_setting(backend, [](const Member& m, const Setting& s, const Backend& b) {
    const int64_t n = m.size();
    // Rank r sends elements [j count, (j + 1) count) of its values to rank j.
    std::vector<at::Tensor> want;
    for (int r = 0; r < n; ++r) want.push_back(values(r, s.count, s.dtype, m.rank() * s.count));
    const at::Tensor got = m.comm.all_to_all(m.mine(n * s.count, s.dtype));
    expect_same(got, at::cat(want), b, false, "all_to_all over " + std::to_string(n));
  });
}

void broadcast_case(const Backend& backend) {
  for_each_setting(backend, [](const Member& m, const Setting& s, const Backend& b) {
    for (int root = 0; root < m.size(); ++root) {
      const at::Tensor tensor = m.mine(s.count, s.dtype);
      const at::Tensor got = m.comm.broadcast(tensor, root);
      EXPECT_EQ(got.data_ptr(), tensor.data_ptr());
      expect_same(got, values(root, s.count, s.dtype), b, false, "broadcast from " + std::to_string(root));
      const at::Tensor later = m.mine(s.count, s.dtype);
      const at::Tensor filled = m.comm.broadcast_async(later, root)->wait();
      EXPECT_EQ(filled.data_ptr(), later.data_ptr());
      expect_same(filled, values(root, s.count, s.dtype), b, false, "awaited, from " + std::to_string(root));
    }
  });
}

// Everyone sends to the next member: even members send first, odd ones receive first; then all at once, async.
void send_recv_case(const Backend& backend) {
  for_each_setting(backend, [](const Member& m, const Setting& s, const Backend& b) {
    const int n = m.size();
    if (n == 1) return;
    const int next = (m.rank() + 1) % n;
    const int previous = (m.rank() + n - 1) % n;
    const at::Tensor mine = m.mine(s.count, s.dtype);
    const at::Tensor want = values(previous, s.count, s.dtype);
    at::Tensor got = at::zeros_like(mine);
    if (m.rank() % 2 == 0) {
      m.comm.send(mine, next);
      m.comm.recv(got, previous);
    } else {
      m.comm.recv(got, previous);
      m.comm.send(mine, next);
    }
    expect_same(got, want, b, false, "recv");
    // Two messages on different tags, received in the other order where tags tell them apart.
    at::Tensor first = at::zeros_like(mine);
    at::Tensor second = at::zeros_like(mine);
    const WorkPtr sends[] = {m.comm.send_async(mine, next, 1), m.comm.send_async(at::neg(mine), next, 2)};
    if (b.has_tags) {
      m.comm.recv(second, previous, 2);
      m.comm.recv(first, previous, 1);
    } else {
      m.comm.recv(first, previous, 1);
      m.comm.recv(second, previous, 2);
    }
    for (const WorkPtr& work : sends) work->wait();
    expect_same(first, want, b, false, "recv of tag 1");
    expect_same(second, at::neg(want), b, false, "recv of tag 2");
  });
}

// Messages in lanes that were opened up front: forward and backward between neighbours, receives posted ahead, many in
// flight. Both ends of a lane post in the same order, which is all that a backend without tags has.
void lanes_case(const Backend& backend) {
  for (const int size : backend.sizes) {
    if (size == 1) continue;
    run_world(backend, size, [&](const Member& m) {
      std::vector<MessageLane> lanes;
      for (int r = 0; r + 1 < size; ++r) {
        lanes.push_back({r, r + 1, 1});
        lanes.push_back({r + 1, r, 2});
      }
      EXPECT_EQ(m.comm.open_lanes(lanes), !backend.has_tags);
      EXPECT_EQ(m.comm.open_lanes(lanes), !backend.has_tags) << "open lanes stay open";
      constexpr int kMessages = 12;
      constexpr int64_t kCount = 3000;
      std::vector<WorkPtr> sends, receives;
      std::vector<at::Tensor> want;
      const auto exchange = [&](int to, int from, int lane) {
        for (int k = 0; k < kMessages; ++k) {
          if (to >= 0 && to < size) sends.push_back(m.comm.send_async(m.mine(kCount, at::kFloat, k), to, {k, lane}));
          if (from < 0 || from >= size) continue;
          const at::Tensor into = at::zeros({kCount}, at::TensorOptions(at::kFloat).device(m.device));
          receives.push_back(m.comm.recv_async(into, from, {k, lane}));
          want.push_back(values(from, kCount, at::kFloat, k));
        }
      };
      exchange(m.rank() + 1, m.rank() - 1, 1);
      exchange(m.rank() - 1, m.rank() + 1, 2);
      for (size_t k = 0; k < receives.size(); ++k)
        expect_same(receives[k]->wait(), want[k], backend, false, "message " + std::to_string(k) + " of a lane");
      for (const WorkPtr& work : sends) work->wait();
    });
  }
}

void barrier_case(const Backend& backend) {
  for (const int size : backend.sizes) {
    std::atomic<int> arrived{0};
    const auto world = backend.make_world(size);
    const int here = world->local_ranks();  // ranks elsewhere count for themselves
    world->run([&](Endpoint& endpoint) {
      const CommunicatorPtr comm = endpoint.communicator(whole_world(endpoint));
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        comm->barrier();
        EXPECT_GE(arrived.load(), round * here) << "someone left the barrier before all had come";
        comm->barrier();
      }
    });
  }
}

}  // namespace ranklab::conformance
