#include "lessons/01_all_reduce/algorithms.h"

#include <algorithm>
#include <vector>

#include "lessons/01_all_reduce/exercise.h"

namespace ranklab::lesson {
namespace {

void receive_and_add(Comm& comm, std::span<double> data, int from) {
  std::vector<double> arrived(data.size());
  comm.recv(arrived, from);
  for (size_t i = 0; i < data.size(); ++i) data[i] += arrived[i];
}

}  // namespace

void naive_all_reduce(Comm& comm, std::span<double> data) {
  if (comm.rank() != 0) {
    comm.send(data, 0);
    comm.recv(data, 0);
    return;
  }
  for (int from = 1; from < comm.size(); ++from) receive_and_add(comm, data, from);
  for (int to = 1; to < comm.size(); ++to) comm.send(data, to);
}

void tree_all_reduce(Comm& comm, std::span<double> data) {
  const int rank = comm.rank();
  int reach = 1;  // `data` holds the sum over this many ranks, starting with this one
  while (reach < comm.size() && rank % (2 * reach) == 0) {
    receive_and_add(comm, data, rank + reach);
    reach *= 2;
  }
  if (rank != 0) {
    comm.send(data, rank - reach);
    comm.recv(data, rank - reach);
  }
  while (reach > 1) {
    reach /= 2;
    comm.send(data, rank + reach);
  }
}

void ring_all_reduce_reference(Comm& comm, std::span<double> data, const std::function<void(int)>& after_step) {
  const int n = comm.size(), rank = comm.rank();
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  std::vector<double> buffer(data.size() / static_cast<size_t>(n) + 1);
  for (int step = 0; step < 2 * (n - 1); ++step) {
    const std::span<double> into = chunk(data, rank - step - 1, n);
    const std::span<double> arrived(buffer.data(), into.size());
    comm.send_recv(chunk(data, rank - step, n), next, arrived, previous);
    const bool adds = step < n - 1;
    for (size_t i = 0; i < into.size(); ++i) into[i] = adds ? into[i] + arrived[i] : arrived[i];
    if (after_step) after_step(step + 1);
  }
}

}  // namespace ranklab::lesson
