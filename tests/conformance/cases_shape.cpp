#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "core/comm/device_mesh.h"
#include "tests/conformance/cases.h"

namespace ranklab::conformance {
namespace {

using Rows = std::vector<int64_t>;

// [rows, 3] values; row k of rank r.
at::Tensor table(int rank, int64_t rows, int64_t first_row = 0) {
  return values(rank, rows * 3, at::kFloat, first_row * 3).view({rows, 3});
}

// Rank `from` sends this many rows to rank `to`: uneven, often none.
int64_t rows_between(int from, int to) { return (from * 5 + to * 3) % 4 == 0 ? 0 : (from + 2 * to) % 5; }

int64_t total(const Rows& rows) { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }

void uneven_all_to_all(Communicator& comm, const Backend& backend) {
  const int n = comm.size();
  Rows send_rows, recv_rows;
  for (int peer = 0; peer < n; ++peer) {
    send_rows.push_back(rows_between(comm.rank(), peer));
    recv_rows.push_back(rows_between(peer, comm.rank()));
  }
  std::vector<at::Tensor> want = {at::empty({0, 3})};
  for (int peer = 0; peer < n; ++peer) {
    int64_t first = 0;
    for (int to = 0; to < comm.rank(); ++to) first += rows_between(peer, to);
    want.push_back(table(peer, rows_between(peer, comm.rank()), first));
  }
  const at::Tensor got = comm.all_to_all(table(comm.rank(), total(send_rows)), send_rows, recv_rows);
  expect_same(got, at::cat(want), backend, false, "uneven all_to_all over " + std::to_string(n));
}

void uneven_gather_and_scatter(Communicator& comm, const Backend& backend, bool all_empty) {
  const int n = comm.size();
  Rows rows;
  for (int r = 0; r < n; ++r) rows.push_back(all_empty ? 0 : (r * 7 + 1) % 4);
  std::vector<at::Tensor> parts, inputs;
  for (int r = 0; r < n; ++r) parts.push_back(table(r, rows[static_cast<size_t>(r)]));
  const at::Tensor gathered = comm.all_gather(parts[static_cast<size_t>(comm.rank())], rows);
  expect_same(gathered, at::cat(parts), backend, false, "uneven all_gather");

  for (int r = 0; r < n; ++r) inputs.push_back(table(r, total(rows)));
  const int64_t first = std::accumulate(rows.begin(), rows.begin() + comm.rank(), int64_t{0});
  const at::Tensor want =
      reduced(inputs, ReduceOp::kSum).slice(0, first, first + rows[static_cast<size_t>(comm.rank())]);
  const at::Tensor scattered = comm.reduce_scatter(inputs[static_cast<size_t>(comm.rank())], ReduceOp::kSum, rows);
  expect_same(scattered, want, backend, true, "uneven reduce_scatter");
}

// A fixed program over all verbs; the delays must not change a bit of what it returns.
at::Tensor delayed_program(Communicator& comm, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto delay = [&] {
    const auto pick = random() % 8;
    if (pick < 4) std::this_thread::yield();
    if (pick == 7) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  };
  at::Tensor x = values(comm.rank(), 64, at::kFloat);
  delay();
  comm.all_reduce(x, ReduceOp::kAvg);
  delay();
  const WorkPtr pending = comm.all_gather_async(x);
  delay();
  const at::Tensor mixed = comm.all_to_all(at::mul(x, comm.rank() + 1).repeat({comm.size()}));
  delay();
  const at::Tensor scattered = comm.reduce_scatter(at::mul(mixed, 0.3));
  delay();
  return at::cat({pending->wait(), mixed, scattered});
}

}  // namespace

void non_contiguous_case(const Backend& backend) {
  for (const int size : backend.sizes) {
    backend.make_world(size)->run([&](Endpoint& endpoint) {
      const CommunicatorPtr comm = endpoint.communicator(whole_world(endpoint));
      std::vector<at::Tensor> all;
      for (int r = 0; r < size; ++r) all.push_back(table(r, 10).t().contiguous());
      const auto mine = [&] { return table(comm->rank(), 10).t(); };  // [3, 10], strides (1, 3)

      const at::Tensor view = mine();
      ASSERT_FALSE(view.is_contiguous());
      const at::Tensor sum = comm->all_reduce(view);
      EXPECT_EQ(sum.data_ptr(), view.data_ptr()) << "in place also for a view";
      expect_same(view.contiguous(), reduced(all, ReduceOp::kSum), backend, true, "all_reduce of a transpose");
      expect_same(comm->all_gather(mine()), at::cat(all), backend, false, "all_gather of a transpose");
      const at::Tensor target = mine();
      comm->broadcast(target, size - 1);
      expect_same(target.contiguous(), all.back(), backend, false, "broadcast into a transpose");
      if (size == 1) return;
      if (comm->rank() == 0) comm->send(mine(), 1);
      if (comm->rank() == 1) {
        const at::Tensor into = at::zeros({10, 3}).t();
        comm->recv(into, 0);
        expect_same(into.contiguous(), all[0], backend, false, "recv into a transpose");
      }
    });
  }
}

void uneven_and_empty_rows_case(const Backend& backend) {
  for (const int size : backend.sizes) {
    backend.make_world(size)->run([&](Endpoint& endpoint) {
      const CommunicatorPtr comm = endpoint.communicator(whole_world(endpoint));
      uneven_all_to_all(*comm, backend);
      uneven_gather_and_scatter(*comm, backend, false);
      uneven_gather_and_scatter(*comm, backend, true);
    });
  }
}

// Many calls in flight, waited for in another order than they were posted.
void async_case(const Backend& backend) {
  for (const int size : backend.sizes) {
    backend.make_world(size)->run([&](Endpoint& endpoint) {
      const CommunicatorPtr comm = endpoint.communicator(whole_world(endpoint));
      std::vector<WorkPtr> works;
      std::vector<at::Tensor> want;
      for (int64_t k = 0; k < 6; ++k) {
        std::vector<at::Tensor> inputs;
        for (int r = 0; r < size; ++r) inputs.push_back(values(r, 100 + k, at::kFloat, k));
        const at::Tensor mine = inputs[static_cast<size_t>(comm->rank())].clone();
        works.push_back(k % 2 == 0 ? comm->all_reduce_async(mine) : comm->all_gather_async(mine));
        want.push_back(k % 2 == 0 ? reduced(inputs, ReduceOp::kSum) : at::cat(inputs));
      }
      for (const size_t k : {5, 0, 3, 1, 4, 2}) {
        const at::Tensor got = works[k]->wait();
        EXPECT_TRUE(works[k]->is_completed());
        expect_same(got, want[k], backend, k % 2 == 0, "async call " + std::to_string(k));
        expect_same(works[k]->wait(), want[k], backend, k % 2 == 0, "a second wait()");
      }
      const WorkPtr polled = comm->all_reduce_async(at::ones({5}));
      while (!polled->is_completed()) std::this_thread::yield();
      expect_same(polled->wait(), at::full({5}, static_cast<double>(size)), backend, true, "a polled call");
    });
  }
}

// tp 2 x dp 2 x pp 2: calls of three axes in flight together, posted in an order that differs between the axes'
// members.
void several_axes_case(const Backend& backend) {
  if (backend.sizes.back() < 8) GTEST_SKIP() << "needs 8 ranks";
  const DeviceMesh mesh({.world = 8, .tp = 2, .pp = 2});
  backend.make_world(8)->run([&](Endpoint& endpoint) {
    const int rank = endpoint.global_rank();
    const Axis axes[] = {Axis::kTp, Axis::kDp, Axis::kPp};
    std::vector<CommunicatorPtr> comms;
    for (const Axis axis : axes) comms.push_back(endpoint.communicator(mesh.group(axis, rank)));
    for (int round = 0; round < 10; ++round) {
      std::vector<WorkPtr> works(3);
      for (size_t k = 0; k < 3; ++k) {
        const size_t a = (k + static_cast<size_t>(rank + round)) % 3;
        works[a] = comms[a]->all_reduce_async(at::full({1000}, static_cast<double>(1 << rank)));
      }
      for (size_t a = 0; a < 3; ++a) {
        double want = 0;
        for (const int member : mesh.group(axes[a], rank).global_ranks) want += 1 << member;
        expect_same(works[a]->wait(), at::full({1000}, want), backend, true, std::string(name(axes[a])));
      }
    }
  });
}

void random_delays_case(const Backend& backend) {
  const int size = backend.sizes.back();
  std::vector<at::Tensor> first(static_cast<size_t>(size));
  backend.make_world(size)->run([&](Endpoint& endpoint) {
    const CommunicatorPtr comm = endpoint.communicator(whole_world(endpoint));
    const auto index = static_cast<size_t>(comm->rank());
    for (int run = 0; run < backend.delay_runs; ++run) {
      const at::Tensor got = delayed_program(*comm, static_cast<uint64_t>(run * size + comm->rank()));
      if (run == 0) first[index] = got;
      ASSERT_TRUE(at::equal(got, first[index])) << backend.name << ": run " << run << " differs on rank " << index;
    }
  });
}

}  // namespace ranklab::conformance
