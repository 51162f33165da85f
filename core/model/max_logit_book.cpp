#include "core/model/max_logit_book.h"

#include <cmath>
#include <limits>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

}  // namespace

MaxLogitBook::MaxLogitBook(const ModelConfig& config, RankContext& context, at::ScalarType type) : context_(context) {
  const NoCostScope once;
  const MemoryScope memory(MemoryCategory::kBuffers);
  largest_ = at::full({config.num_layers + config.mtp_modules(), config.num_attention_heads}, kNone,
                      at::TensorOptions(type == at::kDouble ? at::kDouble : at::kFloat).device(context.device()));
}

at::Tensor MaxLogitBook::of_layer(int64_t layer) const {
  const int64_t own = largest_.size(1) / context_.size(Axis::kTp);
  return largest_.select(0, layer).narrow(0, context_.coordinate(Axis::kTp) * own, own);
}

const at::Tensor& MaxLogitBook::over_ranks() {
  if (all_.defined()) return all_;
  const MemoryScope memory(MemoryCategory::kBuffers);
  all_ = largest_;
  if (TypeWatch* watch = type_watch_of_thread) watch->is_same_over(all_, {});
  for (const Axis axis : {Axis::kTp, context_.replica_axis(), Axis::kPp}) {
    if (context_.size(axis) > 1) all_ = context_.comm(axis).all_reduce(all_, ReduceOp::kMax);
  }
  return all_;
}

void MaxLogitBook::end_step(ModelReport& report) {
  const at::Tensor& all = over_ranks();
  const NoCostScope free;
  if (!all.is_meta()) {
    at::Tensor numbers = all.amax().to(at::kDouble).unsqueeze(0);
    if (clipped_.defined()) numbers = at::cat({numbers, clipped_.to(at::kDouble).unsqueeze(0)});
    numbers = numbers.to(at::kCPU);  // one read, for which the host waits for the device
    const double largest = numbers[0].item<double>();
    if (largest != kNone) report.max_attention_logit = largest;  // otherwise no layer has attention
    report.clipped_heads = clipped_.defined() ? std::llround(numbers[1].item<double>()) : 0;
  }
  all_.reset();
  clipped_.reset();
  largest_.fill_(kNone);
}

}  // namespace ranklab
