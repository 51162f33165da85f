#include <gtest/gtest.h>

#include <numeric>

#include "tests/conformance/cases.h"

namespace ranklab::conformance {

void all_gather_case(const Backend& backend) {
  for_each_setting(backend, [](Communicator& comm, const Setting& s, const Backend& b) {
    std::vector<at::Tensor> all;
    for (int r = 0; r < comm.size(); ++r) all.push_back(values(r, s.count, s.dtype));
    const at::Tensor input = values(comm.rank(), s.count, s.dtype);
    const at::Tensor got = comm.all_gather(input);
    expect_same(got, at::cat(all), b, false, "all_gather over " + std::to_string(comm.size()));
    expect_same(input, values(comm.rank(), s.count, s.dtype), b, false, "input of all_gather");
  });
}

void all_to_all_case(const Backend& backend) {
  for_each_setting(backend, [](Communicator& comm, const Setting& s, const Backend& b) {
    const int64_t n = comm.size();
    // Rank r sends elements [j count, (j + 1) count) of its values to rank j.
    std::vector<at::Tensor> want;
    for (int r = 0; r < n; ++r) want.push_back(values(r, s.count, s.dtype, comm.rank() * s.count));
    const at::Tensor got = comm.all_to_all(values(comm.rank(), n * s.count, s.dtype));
    expect_same(got, at::cat(want), b, false, "all_to_all over " + std::to_string(n));
  });
}

void broadcast_case(const Backend& backend) {
  for_each_setting(backend, [](Communicator& comm, const Setting& s, const Backend& b) {
    for (int root = 0; root < comm.size(); ++root) {
      const at::Tensor tensor = values(comm.rank(), s.count, s.dtype);
      const at::Tensor got = comm.broadcast(tensor, root);
      EXPECT_EQ(got.data_ptr(), tensor.data_ptr());
      expect_same(got, values(root, s.count, s.dtype), b, false, "broadcast from " + std::to_string(root));
    }
  });
}

// Everyone sends to the next member: even members send first, odd ones receive first; then all at once, async.
void send_recv_case(const Backend& backend) {
  for_each_setting(backend, [](Communicator& comm, const Setting& s, const Backend& b) {
    const int n = comm.size();
    if (n == 1) return;
    const int next = (comm.rank() + 1) % n;
    const int previous = (comm.rank() + n - 1) % n;
    const at::Tensor mine = values(comm.rank(), s.count, s.dtype);
    const at::Tensor want = values(previous, s.count, s.dtype);
    at::Tensor got = at::zeros_like(mine);
    if (comm.rank() % 2 == 0) {
      comm.send(mine, next);
      comm.recv(got, previous);
    } else {
      comm.recv(got, previous);
      comm.send(mine, next);
    }
    expect_same(got, want, b, false, "recv");
    // Two messages on different tags, received in the other order.
    at::Tensor first = at::zeros_like(mine);
    at::Tensor second = at::zeros_like(mine);
    const WorkPtr sends[] = {comm.send_async(mine, next, 1), comm.send_async(at::neg(mine), next, 2)};
    comm.recv(second, previous, 2);
    comm.recv(first, previous, 1);
    for (const WorkPtr& work : sends) work->wait();
    expect_same(first, want, b, false, "recv of tag 1");
    expect_same(second, at::neg(want), b, false, "recv of tag 2");
  });
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
