#include "core/runtime/gemm_choice.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>

#include "core/base/system.h"
#include "core/base/text.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

constexpr double kBudgetSeconds = 0.05;  // time for measuring all shapes together
constexpr double kLargestError = 1e-5;   // relative to the largest element: fp32 is near 1e-6, bf16 near 4e-3
constexpr int64_t kLargestFlops = 100'000'000;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Operands {
  at::Tensor x_MK, w_NK, dy_MN;
};

// Large batches are measured with fewer rows, which leads to the same choice in less time.
Operands make_operands(const GemmShape& shape) {
  int64_t m = shape.m;
  while (m > 32 && 2 * m * shape.n * shape.k > kLargestFlops) m /= 2;
  // Any values with full mantissas serve; a sine needs no generator.
  const auto fill = [](int64_t rows, int64_t cols) {
    return at::arange(rows * cols, at::kFloat).mul_(0.7371).sin_().view({rows, cols});
  };
  return {fill(m, shape.k), fill(shape.n, shape.k), fill(m, shape.n)};
}

void run_once(const Operands& o) {
  gemm(o.x_MK, o.w_NK.t());   // forward
  gemm(o.dy_MN, o.w_NK);      // input gradient
  gemm(o.dy_MN.t(), o.x_MK);  // weight gradient
}

// Best of three, after one warm-up call.
double best_seconds(const Operands& operands, GemmLibrary library) {
  use_gemm(library);
  run_once(operands);
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double begin = now();
    run_once(operands);
    best = std::min(best, now() - begin);
  }
  return best;
}

double relative_error(const Operands& o) {
  const at::Tensor reference = at::mm(o.x_MK.to(at::kDouble), o.w_NK.t().to(at::kDouble));
  const at::Tensor difference = gemm(o.x_MK, o.w_NK.t()).to(at::kDouble) - reference;
  return (difference.abs().max() / reference.abs().max()).item<double>();
}

struct Totals {
  double mkl_s = 0, onednn_s = 0, onednn_error = 0;
};

Totals measure(std::span<const GemmShape> shapes) {
  Totals totals;
  const double begin = now();
  for (const GemmShape& shape : shapes) {
    const Operands operands = make_operands(shape);
    const auto count = static_cast<double>(shape.count);
    totals.mkl_s += count * best_seconds(operands, GemmLibrary::kMkl);
    totals.onednn_s += count * best_seconds(operands, GemmLibrary::kOneDnn);
    totals.onednn_error = std::max(totals.onednn_error, relative_error(operands));  // oneDNN is the library in use here
    if (now() - begin > kBudgetSeconds) break;
  }
  return totals;
}

// One math thread, as ranks run; restores library and thread count.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() {
    use_gemm(library_);
    at::set_num_threads(threads_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  at::NoGradGuard no_grad_;
  int threads_ = at::get_num_threads();
  GemmLibrary library_ = gemm_in_use();
};

GemmChoice too_wrong(double error) {
  return {GemmLibrary::kMkl, strprintf("MKL: oneDNN's error is %.0e against fp64, more than fp32 should have", error)};
}

}  // namespace

GemmChoice usual_gemm() {
  if (!onednn_available()) return {GemmLibrary::kMkl, "MKL: " + why_no_onednn()};
  if (processor_vendor() == "GenuineIntel") return {GemmLibrary::kMkl, "MKL, as on every Intel processor"};
  const OneThread one_thread;
  use_gemm(GemmLibrary::kOneDnn);
  constexpr GemmShape kProbe{.m = 128, .n = 128, .k = 512};
  if (const double error = relative_error(make_operands(kProbe)); error > kLargestError) return too_wrong(error);
  return {GemmLibrary::kOneDnn, "oneDNN, as on every processor but Intel's"};
}

GemmChoice measure_gemm(std::span<const GemmShape> shapes) {
  if (!onednn_available()) return {GemmLibrary::kMkl, "MKL: " + why_no_onednn()};
  if (shapes.empty()) return {GemmLibrary::kMkl, "MKL: nothing to measure"};
  const OneThread one_thread;
  const Totals totals = measure(shapes);
  const double speedup = totals.mkl_s / totals.onednn_s;
  if (totals.onednn_error > kLargestError) return too_wrong(totals.onednn_error);
  if (speedup > 1.0) {
    return {GemmLibrary::kOneDnn,
            strprintf("oneDNN: %.2fx as fast as MKL on this model's shapes, error %.0e against fp64", speedup,
                      totals.onednn_error)};
  }
  return {GemmLibrary::kMkl, strprintf("MKL: %.2fx as fast as oneDNN on this model's shapes", 1 / speedup)};
}

}  // namespace ranklab
