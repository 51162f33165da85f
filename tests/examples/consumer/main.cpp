// A program outside the ranklab tree: two ranks add their numbers.
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cstdio>

#include "backends/cpu_sim/thread_world.h"

int main() {
  ranklab::make_thread_world({.size = 2})->run([](ranklab::Endpoint& endpoint) {
    const auto comm = endpoint.communicator({ranklab::Axis::kWorld, {0, 1}, endpoint.global_rank()});
    const at::Tensor sum = comm->all_reduce(at::full({1}, endpoint.global_rank() + 1.0f));
    if (comm->rank() == 0) std::printf("sum %g\n", sum.item<double>());
  });
}
