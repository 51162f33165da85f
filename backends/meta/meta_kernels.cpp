#include "backends/meta/meta_kernels.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/result_type.h>
#include <torch/library.h>

#include <array>
#include <mutex>
#include <tuple>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"

namespace ranklab::meta {
namespace {

using at::Tensor;
using Maybe = const std::optional<Tensor>&;

thread_local bool t_unknown = false;

void check_may_read(const char* what) {
  RANKLAB_CHECK(t_unknown, ErrorKind::kInternal, .where = "meta tensor", .what = "a tensor without data has no numbers",
                .got = what, .want = "a rank of a world of shapes", .fix = "make the tensor on the CPU");
}

// Every .item() call ends up here.
at::Scalar local_scalar_dense(const Tensor& x) {
  check_may_read("item()");
  if (x.scalar_type() == at::kBool) return at::Scalar(true);
  return at::isIntegralType(x.scalar_type(), false) ? at::Scalar(int64_t{1}) : at::Scalar(1.0);
}
// ... and every .to(kCPU).
Tensor& copy_(Tensor& self, const Tensor&, bool) {
  if (self.is_meta()) return self;
  check_may_read("a copy into memory");
  return self.fill_(1);
}

std::tuple<Tensor, Tensor> flash(const Tensor& q, const Tensor&, const Tensor&, double, bool, Maybe,
                                 std::optional<double>) {
  const auto wide = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return {at::empty_like(q), at::empty({q.size(0), q.size(2), q.size(1)}, q.options().dtype(wide)).transpose(1, 2)};
}
std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& grad_out, const Tensor& q, const Tensor& k,
                                                  const Tensor& v, const Tensor&, const Tensor&, double, bool, Maybe,
                                                  std::optional<double>) {
  const Tensor grad_of_rows = grad_out.transpose(1, 2).contiguous();  // the CPU's kernel makes this copy
  const auto like = [](const Tensor& x) {
    return at::empty({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options()).transpose(1, 2);
  };
  return {like(q), like(k), like(v)};
}

Tensor flip(const Tensor& x, at::IntArrayRef) { return at::empty_like(x); }

// The result is stored column by column, as by LAPACK.
Tensor solve_triangular(const Tensor&, const Tensor& rhs, bool, bool, bool) {
  auto sizes = rhs.sizes().vec();
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return at::empty(sizes, rhs.options()).transpose(-1, -2);
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  auto sizes = x.sizes().vec();
  sizes[static_cast<size_t>(dim < 0 ? dim + x.dim() : dim)] = index.numel();
  return at::empty(sizes, x.options());
}
Tensor scattered(const Tensor& x) {
  return in_backward_formula() ? x : at::empty_like(x, at::MemoryFormat::Contiguous);
}
// Torch's own kernel reads the first row, which does not exist on a rank without tokens.
Tensor index_add(const Tensor& x, int64_t, const Tensor&, const Tensor&, const at::Scalar&) { return scattered(x); }
Tensor scatter_add(const Tensor& x, int64_t, const Tensor&, const Tensor&) { return scattered(x); }
Tensor embedding_dense_backward(const Tensor& grad, const Tensor&, int64_t rows, int64_t, bool) {
  return at::empty({rows, grad.size(-1)}, grad.options());
}
void fused_adamw(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, double,
                 double, double, double, double, bool, bool, Maybe, Maybe) {}
void fused_sgd(at::TensorList, at::TensorList, at::TensorList, double, double, double, double, bool, bool, bool, Maybe,
               Maybe) {}
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const auto sizes = at::infer_size(at::infer_size(condition.sizes(), a.sizes()), b.sizes());
  return at::empty(sizes, a.options().dtype(at::result_type(a, b)));
}
Tensor bincount(const Tensor& x, Maybe, int64_t least) { return at::empty({least}, x.options().dtype(at::kLong)); }
Tensor floor_divide(const Tensor& a, const Tensor& b) {
  return at::empty(at::infer_size(a.sizes(), b.sizes()), a.options());
}

Tensor as_bool(at::IntArrayRef sizes, const Tensor& like) { return at::empty(sizes, like.options().dtype(at::kBool)); }
Tensor logical_of_two(const Tensor& a, const Tensor& b) { return as_bool(at::infer_size(a.sizes(), b.sizes()), a); }
Tensor logical_of_one(const Tensor& a) { return as_bool(a.sizes(), a); }
Tensor& logical_of_two_out(const Tensor& a, const Tensor& b, Tensor& out) {
  out.resize_(at::infer_size(a.sizes(), b.sizes()));
  return out;
}
Tensor& out_of_one(const Tensor& a, Tensor& out) {
  out.resize_(a.sizes());
  return out;
}

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& x, at::IntArrayRef shape, Maybe, Maybe, double) {
  auto rows = x.sizes().vec();
  for (size_t i = rows.size() - shape.size(); i < rows.size(); ++i) rows[i] = 1;
  return {at::empty_like(x, at::MemoryFormat::Contiguous), at::empty(rows, x.options()), at::empty(rows, x.options())};
}
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor&, const Tensor& x, at::IntArrayRef, const Tensor&,
                                                       const Tensor&, Maybe weight, Maybe bias,
                                                       std::array<bool, 3> mask) {
  return {mask[0] ? at::empty_like(x) : Tensor(), mask[1] ? at::empty_like(*weight) : Tensor(),
          mask[2] ? at::empty_like(*bias) : Tensor()};
}

void register_kernels(torch::Library& m) {
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("copy_", &copy_);
  m.impl("_scaled_dot_product_flash_attention_for_cpu", &flash);
  m.impl("_scaled_dot_product_flash_attention_for_cpu_backward", &flash_backward);
  m.impl("index_select", &index_select);
  m.impl("flip", &flip);
  m.impl("linalg_solve_triangular", &solve_triangular);
  m.impl("index_add", &index_add);
  m.impl("scatter_add", &scatter_add);
  m.impl("embedding_dense_backward", &embedding_dense_backward);
  m.impl("_fused_adamw_", &fused_adamw);
  m.impl("_fused_sgd_", &fused_sgd);
  m.impl("where.self", &where);
  m.impl("bincount", &bincount);
  m.impl("floor_divide", &floor_divide);
  m.impl("native_layer_norm", &layer_norm);
  m.impl("native_layer_norm_backward", &layer_norm_backward);
  m.impl("logical_or", &logical_of_two);
  m.impl("logical_and", &logical_of_two);
  m.impl("logical_not", &logical_of_one);
  m.impl("logical_or.out", &logical_of_two_out);
  m.impl("logical_and.out", &logical_of_two_out);
  m.impl("logical_not.out", &out_of_one);
  m.impl("abs.out", &out_of_one);
}

}  // namespace

void install_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Never destroyed: that would remove the kernels while other static objects still use them.
    static auto* const library =
        new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__);
    register_kernels(*library);
  });
}

UnknownNumbers::UnknownNumbers() : previous_(t_unknown) { t_unknown = true; }
UnknownNumbers::~UnknownNumbers() { t_unknown = previous_; }

}  // namespace ranklab::meta
