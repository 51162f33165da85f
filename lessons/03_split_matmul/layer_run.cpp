#include "lessons/03_split_matmul/layer_run.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "core/model/block.h"
#include "core/sim/aten.h"

namespace ranklab::lesson {
namespace {

constexpr int kLayerRanks = 8;
constexpr int kForward = 0, kBackward = 1;  // step number of the recorded events

bool is_large(const Event& event) {
  return event.kind == EventKind::kCollective && event.logical_bytes == kLayerNumbers * 8;
}

void span(RankContext& context, const char* name, int64_t begin_ns) {
  context.tracer().record({.kind = EventKind::kCompute,
                           .name = context.tracer().intern(name),
                           .virtual_begin_ns = begin_ns,
                           .virtual_end_ns = context.clock().now_ns()});
}

void forward_backward(RankContext& context, bool sequence_parallel) {
  const ModelConfig config = {.num_layers = 1,
                              .hidden_size = kLayerHidden,
                              .ffn_hidden_size = 4 * kLayerHidden,
                              .num_attention_heads = kLayerRanks,
                              .seq_length = kLayerSequence,
                              .activation = ActivationKind::kGelu};
  const TensorParallel tp{&context.comm(Axis::kTp), sequence_parallel};
  ParameterRegistry registry(5, at::kDouble, context.device());
  ResidualStream stream;
  RopeTable rope;
  at::Tensor x;
  {
    const NoCostScope no_cost;
    rope =
        make_rope_table(kLayerSequence, config.head_dim(), config.rope_theta, at::TensorOptions().dtype(at::kDouble));
    const int64_t positions = sequence_parallel ? kLayerSequence / kLayerRanks : kLayerSequence;
    x = at::ones({positions, kLayerBatch, kLayerHidden}, at::TensorOptions().dtype(at::kDouble).requires_grad(true));
    stream.x_SBH = x;
  }
  const TransformerBlock block(ModuleScope(registry, "layers.0"), config, {.layer = 0, .rope = rope, .tp = tp});
  const int64_t forward_begin_ns = context.clock().now_ns();
  context.tracer().set_step(kForward);
  block.forward(stream, {});
  const at::Tensor y = stream.x_SBH + stream.branch_SBH;
  span(context, "F", forward_begin_ns);
  const int64_t backward_begin_ns = context.clock().now_ns();
  context.tracer().set_step(kBackward);
  torch::autograd::backward({y.sum()}, {});
  span(context, "B", backward_begin_ns);
}

}  // namespace

int64_t LayerRun::calls(Verb verb) const {
  const auto& events = records[0].trace.events;
  return std::count_if(events.begin(), events.end(), [&](const Event& e) { return is_large(e) && e.verb == verb; });
}

int64_t LayerRun::forward_calls(Verb verb) const {
  const auto& events = records[0].trace.events;
  return std::count_if(events.begin(), events.end(),
                       [&](const Event& e) { return is_large(e) && e.verb == verb && e.step == kForward; });
}

double LayerRun::numbers_sent() const {
  int64_t bytes = 0;
  for (const Event& event : records[0].trace.events) bytes += is_large(event) ? event.algorithm_bytes : 0;
  return static_cast<double>(bytes) / static_cast<double>(kLayerNumbers * 8);
}

int64_t LayerRun::time_ns() const { return records[0].virtual_ns; }

LayerRun run_layer(bool sequence_parallel) {
  return {run_ranks({.dims = {.world = kLayerRanks, .tp = kLayerRanks}, .hardware = "laptop"},
                    [&](RankContext& context) { forward_backward(context, sequence_parallel); })};
}

}  // namespace ranklab::lesson
