#include "cli/bench/gemm_limit.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "core/nn/gemm.h"

namespace ranklab {
namespace {

// Large enough for full speed, small enough for a core's cache.
constexpr int64_t kWidth = 512;
constexpr int kProducts = 24, kRounds = 8;

int cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double steady_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// One core's part in all rounds.
void multiply(std::barrier<>& meeting, std::vector<double>& times) {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  const at::Tensor a = at::full({kWidth, kWidth}, 1.0 / 3, at::kFloat),
                   b = at::full({kWidth, kWidth}, 1.0 / 7, at::kFloat);
  gemm(a, b);
  for (int round = 0; round < kRounds; ++round) {
    meeting.arrive_and_wait();
    times.push_back(steady_s());
    for (int i = 0; i < kProducts; ++i) gemm(a, b);
  }
  meeting.arrive_and_wait();
  times.push_back(steady_s());
}

}  // namespace

double measured_gemm_flops() {
  const int count = cores();
  std::barrier meeting(count);
  std::vector<std::vector<double>> times(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (std::vector<double>& own : times) threads.emplace_back([&] { multiply(meeting, own); });
  for (std::thread& thread : threads) thread.join();
  double best_s = 1e9;
  for (size_t round = 0; round < kRounds; ++round) best_s = std::min(best_s, times[0][round + 1] - times[0][round]);
  return 2.0 * kWidth * kWidth * kWidth * kProducts * count / best_s;
}

}  // namespace ranklab
