#include "core/parallel/tensor/collectives.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/custom_function.h"
#include "core/parallel/saved_group.h"
#include "core/sim/aten.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

// all_reduce works in place, but a gradient or activation may be shared, so it is copied first.
at::Tensor reduced_copy(const at::Tensor& x, Communicator& group) {
  return group.all_reduce(x.clone(at::MemoryFormat::Contiguous));
}

struct CopyToTp : CustomFunction<CopyToTp> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, Communicator& tp) {
    save_group(ctx, tp);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {reduced_copy(grads[0], saved_group(ctx)), {}};
  }
};

struct ReduceFromTp : CustomFunction<ReduceFromTp> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x, Communicator& tp) { return reduced_copy(x, tp); }
  static variable_list backward(AutogradContext*, const variable_list& grads) { return {grads[0], {}}; }
};

struct GatherFromSp : CustomFunction<GatherFromSp> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, Communicator& tp) {
    save_group(ctx, tp);
    return tp.all_gather(x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {saved_group(ctx).reduce_scatter(grads[0]), {}};
  }
};

struct ReduceScatterToSp : CustomFunction<ReduceScatterToSp> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, Communicator& tp) {
    save_group(ctx, tp);
    return tp.reduce_scatter(x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {saved_group(ctx).all_gather(grads[0]), {}};
  }
};

}  // namespace

at::Tensor copy_to_tp(const at::Tensor& x, Communicator& tp) { return tp.size() == 1 ? x : CopyToTp::apply(x, tp); }
at::Tensor reduce_from_tp(const at::Tensor& x, Communicator& tp) {
  return tp.size() == 1 ? x : ReduceFromTp::apply(x, tp);
}
at::Tensor gather_from_sp(const at::Tensor& x, Communicator& tp) {
  return tp.size() == 1 ? x : GatherFromSp::apply(x, tp);
}
at::Tensor reduce_scatter_to_sp(const at::Tensor& x, Communicator& tp) {
  return tp.size() == 1 ? x : ReduceScatterToSp::apply(x, tp);
}
at::Tensor own_rows(const at::Tensor& x, const Communicator& group) {
  const int64_t rows = x.size(0);
  RANKLAB_CHECK(rows % group.size() == 0, ErrorKind::kInvalidArgument, .where = "sequence parallelism",
                .what = "the sequence length is not divisible by the tensor-parallel size",
                .got = strprintf("%lld positions over %d ranks", static_cast<long long>(rows), group.size()),
                .want = strprintf("a multiple of %d", group.size()), .fix = "change --seq-length or --tp");
  const int64_t each = rows / group.size();
  at::Tensor own = x.narrow(0, group.rank() * each, each);
  if (TypeWatch* watch = type_watch_of_thread) watch->is_part(own, group.group().axis);
  return own;
}

}  // namespace ranklab
