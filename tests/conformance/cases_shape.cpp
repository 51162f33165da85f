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

void uneven_all_to_all(const Member& m, const Backend& backend) {
  const int n = m.size();
  Rows send_rows, recv_rows;
  for (int peer = 0; peer < n; ++peer) {
    send_rows.push_back(rows_between(m.rank(), peer));
    recv_rows.push_back(rows_between(peer, m.rank()));
  }
  std::vector<at::Tensor> want = {at::empty({0, 3})};
  for (int peer = 0; peer < n; ++peer) {
    int64_t first = 0;
    for (int to = 0; to < m.rank(); ++to) first += rows_between(peer, to);
    want.push_back(table(peer, rows_between(peer, m.rank()), first));
  }
  const at::Tensor got = m.comm.all_to_all(m.here(table(m.rank(), total(send_rows))), send_rows, recv_rows);
  expect_same(got, at::cat(want), backend, false, "uneven all_to_all over " + std::to_string(n));
}

void uneven_gather_and_scatter(const Member& m, const Backend& backend, bool all_empty) {
  const int n = m.size();
  Rows rows;
  for (int r = 0; r < n; ++r) rows.push_back(all_empty ? 0 : (r * 7 + 1) % 4);
  std::vector<at::Tensor> parts, inputs;
  for (int r = 0; r < n; ++r) parts.push_back(table(r, rows[static_cast<size_t>(r)]));
  const at::Tensor gathered = m.comm.all_gather(m.here(parts[static_cast<size_t>(m.rank())]), rows);
  expect_same(gathered, at::cat(parts), backend, false, "uneven all_gather");

  for (int r = 0; r < n; ++r) inputs.push_back(table(r, total(rows)));
  const int64_t first = std::accumulate(rows.begin(), rows.begin() + m.rank(), int64_t{0});
  const at::Tensor want = reduced(inputs, ReduceOp::kSum).slice(0, first, first + rows[static_cast<size_t>(m.rank())]);
  const at::Tensor mine = m.here(inputs[static_cast<size_t>(m.rank())]);
  const at::Tensor scattered = m.comm.reduce_scatter(mine, ReduceOp::kSum, rows);
  expect_same(scattered, want, backend, true, "uneven reduce_scatter");
}

// A fixed program over all verbs; delays must not change a bit of its results.
at::Tensor delayed_program(const Member& m, uint64_t seed) {
  Communicator& comm = m.comm;
  std::mt19937_64 random(seed);
  const auto delay = [&] {
    const auto pick = random() % 8;
    if (pick < 4) std::this_thread::yield();
    if (pick == 7) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  };
  at::Tensor x = m.mine(64, at::kFloat);
  delay();
  comm.all_reduce(x, ReduceOp::kAvg);
  delay();
  const WorkPtr pending = comm.all_gather_async(x);
  delay();
  const at::Tensor mixed = comm.all_to_all(at::mul(x, m.rank() + 1).repeat({m.size()}));
  delay();
  const at::Tensor scattered = comm.reduce_scatter(at::mul(mixed, 0.3));
  delay();
  return at::cat({pending->wait(), mixed, scattered}).cpu();
}

}  // namespace

void non_contiguous_case(const Backend& backend) {
  for (const int size : backend.sizes) {
    run_world(backend, size, [&](const Member& m) {
      std::vector<at::Tensor> all;
      for (int r = 0; r < size; ++r) all.push_back(table(r, 10).t().contiguous());
      const auto mine = [&] { return m.here(table(m.rank(), 10)).t(); };  // [3, 10], strides (1, 3)

      const at::Tensor view = mine();
      ASSERT_FALSE(view.is_contiguous());
      const at::Tensor sum = m.comm.all_reduce(view);
      EXPECT_EQ(sum.data_ptr(), view.data_ptr()) << "in place also for a view";
      expect_same(view.contiguous(), reduced(all, ReduceOp::kSum), backend, true, "all_reduce of a transpose");
      expect_same(m.comm.all_gather(mine()), at::cat(all), backend, false, "all_gather of a transpose");
      const at::Tensor target = mine();
      m.comm.broadcast(target, size - 1);
      expect_same(target.contiguous(), all.back(), backend, false, "broadcast into a transpose");
      if (size == 1) return;
      if (m.rank() == 0) m.comm.send(mine(), 1);
      if (m.rank() == 1) {
        const at::Tensor into = m.here(at::zeros({10, 3})).t();
        m.comm.recv(into, 0);
        expect_same(into.contiguous(), all[0], backend, false, "recv into a transpose");
      }
    });
  }
}

void uneven_and_empty_rows_case(const Backend& backend) {
  for (const int size : backend.sizes) {
    run_world(backend, size, [&](const Member& m) {
      uneven_all_to_all(m, backend);
      uneven_gather_and_scatter(m, backend, false);
      uneven_gather_and_scatter(m, backend, true);
    });
  }
}

// Many calls in flight, waited for in another order than they were posted.
void async_case(const Backend& backend) {
  for (const int size : backend.sizes) {
    run_world(backend, size, [&](const Member& m) {
      std::vector<WorkPtr> works;
      std::vector<at::Tensor> want;
      for (int64_t k = 0; k < 6; ++k) {
        std::vector<at::Tensor> inputs;
        for (int r = 0; r < size; ++r) inputs.push_back(values(r, 100 + k, at::kFloat, k));
        const at::Tensor mine = m.here(inputs[static_cast<size_t>(m.rank())].clone());
        works.push_back(k % 2 == 0 ? m.comm.all_reduce_async(mine) : m.comm.all_gather_async(mine));
        want.push_back(k % 2 == 0 ? reduced(inputs, ReduceOp::kSum) : at::cat(inputs));
      }
      for (const size_t k : {5, 0, 3, 1, 4, 2}) {
        const at::Tensor got = works[k]->wait();
        if (m.device.is_cpu()) {
          EXPECT_TRUE(works[k]->is_completed()) << "on a GPU the stream waits, not the host";
        }
        expect_same(got, want[k], backend, k % 2 == 0, "async call " + std::to_string(k));
        expect_same(works[k]->wait(), want[k], backend, k % 2 == 0, "a second wait()");
      }
      const WorkPtr polled = m.comm.all_reduce_async(m.here(at::ones({5})));
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
    // NCCL connects a group at its first collective, where the members' hosts wait for each other.
    for (const CommunicatorPtr& comm : comms) comm->barrier();
    for (int round = 0; round < 10; ++round) {
      std::vector<WorkPtr> works(3);
      for (size_t k = 0; k < 3; ++k) {
        const size_t a = (k + static_cast<size_t>(rank + round)) % 3;
        works[a] = comms[a]->all_reduce_async(at::full({1000}, static_cast<double>(1 << rank)).to(endpoint.device()));
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
  run_world(backend, size, [&](const Member& m) {
    const auto index = static_cast<size_t>(m.rank());
    for (int run = 0; run < backend.delay_runs; ++run) {
      const at::Tensor got = delayed_program(m, static_cast<uint64_t>(run * size + m.rank()));
      if (run == 0) first[index] = got;
      ASSERT_TRUE(at::equal(got, first[index])) << backend.name << ": run " << run << " differs on rank " << index;
    }
  });
}

}  // namespace ranklab::conformance
