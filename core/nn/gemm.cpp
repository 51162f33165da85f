#include "core/nn/gemm.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>

#include "core/base/error.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/split_products.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"
#include "core/sim/torch_error.h"

// Exported by libtorch_cpu but declared in no installed header. Weak, so that a LibTorch without it still links and MKL
// is used.
namespace at::native {
__attribute__((weak)) void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& result, float beta,
                                         float alpha);
}

namespace ranklab {

thread_local constinit bool products_are_split = false;

namespace {

std::atomic<GemmLibrary> g_library{GemmLibrary::kMkl};

bool for_onednn(const at::Tensor& a, const at::Tensor& b) {
  return g_library.load(std::memory_order_relaxed) == GemmLibrary::kOneDnn && a.is_cpu() &&
         a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat && a.numel() > 0 && b.numel() > 0;
}

std::string probe_onednn() {
  if (&at::native::mkldnn_matmul == nullptr || !at::globalContext().hasMKLDNN()) return "this LibTorch has no oneDNN";
  const NoCostScope no_cost;
  const at::Tensor a = at::ones({2, 3}, at::kFloat), b = at::ones({3, 2}, at::kFloat), result = at::zeros({2, 2});
  try {
    at::native::mkldnn_matmul(a, b, result, /*beta=*/0, /*alpha=*/1);
  } catch (const std::exception& error) {
    const std::string words = message_of(error);
    const bool processor = words.find("needs the cpu support") != std::string::npos;
    return processor ? "LibTorch's oneDNN needs a processor with AVX-512" : "oneDNN does not multiply here: " + words;
  }
  return "";
}

// The cost of a product, whichever library computes it; `more_bytes`: bytes read besides a and b.
CostScope product_cost(const at::Tensor& a, const at::Tensor& b, double more_bytes = 0) {
  const double k = std::max(static_cast<double>(a.size(1)), 1.0), n = static_cast<double>(b.size(1));
  const double m = static_cast<double>(a.numel()) / k;
  const double written = static_cast<double>(a.size(0)) * n * static_cast<double>(a.itemsize());
  return {{"gemm", m, n, k},
          2 * static_cast<double>(a.numel()) * n,
          stored_bytes(a) + stored_bytes(b) + written + more_bytes,
          dtype_of(a.scalar_type())};
}

void onednn_mm(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b, float kept = 0) {
  const ScratchScope scratch;
  try {
    at::native::mkldnn_matmul(a, b, result, /*beta=*/kept, /*alpha=*/1.0f);
  } catch (const Error&) {
    throw;  // a failed allocation
  } catch (const std::exception& error) {
    // oneDNN reports only "could not execute a primitive" when it cannot allocate memory for its generated code.
    throw Error(ErrorKind::kEnvironment, {.where = "memory",
                                          .what = "oneDNN cannot multiply, most likely for lack of memory",
                                          .got = message_of(error) + ": " + std::to_string(a.size(0)) + " x " +
                                                 std::to_string(a.size(1)) + " by " + std::to_string(b.size(1)),
                                          .want = "memory for its code and for packed matrices",
                                          .fix = "raise ulimit -v or free memory, or pass --gemm mkl"});
  }
}

// An fp32 operand or result that is not charged to the memory model, because a GPU multiplies fp16 without it.
class WideMatrix {
 public:
  WideMatrix(int64_t rows, int64_t cols)
      : numbers_(new float[static_cast<size_t>(rows * cols)]),
        matrix_(at::from_blob(numbers_.get(), {rows, cols}, at::TensorOptions(at::kFloat))) {}
  explicit WideMatrix(const at::Tensor& x) : WideMatrix(x.size(0), x.size(1)) { matrix_.copy_(x); }
  at::Tensor& matrix() { return matrix_; }

 private:
  std::unique_ptr<float[]> numbers_;
  at::Tensor matrix_;
};

// On CPUs without fp16 units ATen falls back to a plain loop, 40 times slower than this and with different rounding.
at::Tensor fp16_mm(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_meta()) return at::empty({a.size(0), b.size(1)}, a.options());
  WideMatrix wide_a(a), wide_b(b), product(a.size(0), b.size(1));
  at::mm_out(product.matrix(), wide_a.matrix(), wide_b.matrix());
  return at::empty({a.size(0), b.size(1)}, a.options()).copy_(product.matrix());
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (as_on_cpu(a) && a.scalar_type() == at::kHalf) return fp16_mm(a, b);
  if (!for_onednn(a, b)) return without_scratch([&] { return at::mm(a, b); });
  at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
  onednn_mm(result, a, b);
  return result;
}

bool splits(const at::Tensor& a) { return products_are_split && a.size(1) > 1; }

// Each half is rounded to the type of the product, like a rank's partial sum.
at::Tensor sum_of_halves(const at::Tensor& a, const at::Tensor& b) {
  const SplitProducts whole(false);
  const int64_t half = a.size(1) / 2, rest = a.size(1) - half;
  return gemm(a.narrow(1, 0, half), b.narrow(0, 0, half)) + gemm(a.narrow(1, half, rest), b.narrow(0, half, rest));
}

}  // namespace

std::string why_no_onednn() {
  static const std::string why = probe_onednn();
  return why;
}

bool onednn_available() { return why_no_onednn().empty(); }

void use_gemm(GemmLibrary library) {
  RANKLAB_CHECK(library != GemmLibrary::kOneDnn || onednn_available(), ErrorKind::kEnvironment, .where = "gemm",
                .what = why_no_onednn(), .fix = "use --gemm mkl or --gemm auto");
  g_library = library;
}

GemmLibrary gemm_in_use() { return g_library; }

at::Tensor gemm(const at::Tensor& a, const at::Tensor& b) {
  if (splits(a)) return sum_of_halves(a, b);
  const CostScope cost = product_cost(a, b);
  return product(a, b);
}

at::Tensor turned_gemm(const at::Tensor& a, const at::Tensor& b) {
  if (splits(a)) return sum_of_halves(a, b).t().contiguous();
  at::Tensor turned;
  {
    const CostScope cost = product_cost(a, b);
    turned = as_on_cpu(a) ? product(a, b).t() : product(b.t(), a.t());
  }
  const bool is_copied = turned.size(0) > 1 && turned.size(1) > 1;
  if (!is_copied) return turned.contiguous();
  const CostScope cost("copy_", 0, 2 * static_cast<double>(turned.nbytes()), dtype_of(turned.scalar_type()));
  return turned.contiguous();
}

void gemm_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  at::Tensor result = out;
  if (splits(a)) {
    result.copy_(sum_of_halves(a, b));
    return;
  }
  const CostScope cost = product_cost(a, b);
  if (for_onednn(a, b)) return onednn_mm(out, a, b);
  if (as_on_cpu(a) && a.scalar_type() == at::kHalf) {
    result.copy_(fp16_mm(a, b));
    return;
  }
  const ScratchScope packed;
  at::mm_out(result, a, b);
}

void gemm_groups_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  const double g = static_cast<double>(a.size(0)), m = static_cast<double>(a.size(1));
  const double k = static_cast<double>(b.size(0)), n = static_cast<double>(b.size(1));
  const double bytes = static_cast<double>(a.itemsize()) * (g * m * (k + n) + k * n);
  const CostScope cost({"gemm", KernelShape::product(m, n, k, g)}, 2 * g * m * k * n, bytes, dtype_of(a.scalar_type()));
  if (!as_on_cpu(a) && !products_are_split) {
    at::Tensor result = out;
    const ScratchScope packed;
    at::bmm_out(result, a, b.expand({a.size(0), b.size(0), b.size(1)}));
    return;
  }
  for (int64_t group = 0; group < a.size(0); ++group) gemm_into(out.select(0, group), a.select(0, group), b);
}

void gemm_add(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  at::Tensor result = out;
  if (splits(a)) {
    result.add_(sum_of_halves(a, b));
    return;
  }
  const CostScope cost = product_cost(a, b, stored_bytes(out));
  if (for_onednn(a, b)) return onednn_mm(out, a, b, 1);
  if (as_on_cpu(a) && a.scalar_type() == at::kHalf) {
    result.add_(fp16_mm(a, b));
    return;
  }
  const ScratchScope packed;
  result.addmm_(a, b);
}

}  // namespace ranklab
