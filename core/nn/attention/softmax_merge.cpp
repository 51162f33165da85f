#include "core/nn/attention/softmax_merge.h"

#include <ATen/ops/logaddexp.h>

#include <limits>

#include "core/nn/attention/attention_sinks.h"
#include "core/nn/attention/block_attention.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/kernels/merge_kernels.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

}  // namespace

void merge_softmax(const SoftmaxedHeads& sums, const SoftmaxedHeads& part, at::ScalarType charged) {
  const at::Tensor &out = sums.out, &log_sum_exp = sums.log_sum_exp;
  const auto numbers = static_cast<double>(out.numel()), queries = static_cast<double>(log_sum_exp.numel());
  const auto wide = static_cast<double>(out.itemsize());
  const CostScope cost("merge_softmax", 0.0,
                       numbers * (2 * wide + static_cast<double>(c10::elementSize(charged))) + 3 * queries * wide,
                       dtype_of(out));
  if (!has_row_kernels(part.out)) return merge_softmax_reference(sums, part);
  const at::Tensor from = with_dense_rows(part.out), added = part.log_sum_exp.to(log_sum_exp.scalar_type());
  const kernels::MergeShape shape{out.size(0), out.size(1), out.size(2), out.size(3)};
  const kernels::MergeStrides strides{strides_of(out), strides_of(log_sum_exp), strides_of(from), strides_of(added)};
  if (const DeviceKernels* device = device_kernels_of(out)) {
    device->merge_softmax({device_number(from), shape, strides, device_in(from), device_in(added), device_out(out),
                           device_out(log_sum_exp)});
    return;
  }
  for_kernel_type(from, [&]<typename T>() {
    using Wide = KernelWide<T>;
    kernels::merge_softmax(shape, strides, kernel_in<T>(from), kernel_in<Wide>(added), kernel_out<Wide>(out),
                           kernel_out<Wide>(log_sum_exp));
  });
}

void merge_softmax_reference(const SoftmaxedHeads& sums, const SoftmaxedHeads& part) {
  const at::Tensor &out = sums.out, &sum = sums.log_sum_exp;
  const at::Tensor added = part.log_sum_exp.to(sum.scalar_type()), hidden = added.eq(kUnseen);
  const at::Tensor both = at::where(hidden, sum, at::logaddexp(sum, added));
  const auto share = [&](const at::Tensor& x, double of_hidden) {
    return (x - both).exp_().masked_fill_(hidden, of_hidden).unsqueeze(-1);
  };
  out.mul_(share(sum, 1)).addcmul_(part.out.to(out.scalar_type()), share(added, 0));
  sum.copy_(both);
}

SoftmaxMerge::SoftmaxMerge(const at::Tensor& q, int64_t value_dim) : type_(q.scalar_type()) {
  const auto options = q.options().dtype(kernel_wide_type(q));
  // In the layout of the layers around attention, so that by_position() need not copy.
  out_ = at::zeros({q.size(2), q.size(0), q.size(1), value_dim}, options).permute({1, 2, 0, 3});
  log_sum_exp_ = at::full({q.size(0), q.size(1), q.size(2)}, kUnseen, options);
  report_kernel_results({out_, log_sum_exp_}, q);
}

SoftmaxMerge::SoftmaxMerge(at::ScalarType type, at::Tensor out, at::Tensor log_sum_exp)
    : type_(type), out_(std::move(out)), log_sum_exp_(std::move(log_sum_exp)) {}

SoftmaxMerge SoftmaxMerge::of_sequences(int64_t first, int64_t count) const {
  if (count == out_.size(0)) return *this;
  return {type_, out_.narrow(0, first, count), log_sum_exp_.narrow(0, first, count)};
}

void SoftmaxMerge::add(const AttentionBlock& block, const SoftmaxedHeads& result, at::ScalarType charged) {
  merge_softmax({queries_of_block(out_, block), queries_of_block(log_sum_exp_, block)}, result, charged);
}

void SoftmaxMerge::add_sinks(const at::Tensor& sinks) {
  const NoCostScope within_the_kernel;
  join_sinks({out_, log_sum_exp_}, sinks);
}

SoftmaxedHeads SoftmaxMerge::result() const { return {out_.to(type_), log_sum_exp_}; }

}  // namespace ranklab
