#include "lessons/07_where_does_memory_go/measured_model.h"

#include <memory>

#include "backends/cpu_sim/thread_world.h"
#include "core/model/block.h"
#include "core/runtime/memory/measure.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {
namespace {

constexpr int64_t kStepCounterBytes = 2 * 4;  // AdamW's: one for weights with weight decay, one for the others

ModelConfig config_of(const Model& m) {
  return {.num_layers = m.layers,
          .hidden_size = m.hidden,
          .ffn_hidden_size = m.ffn,
          .num_attention_heads = m.heads,
          .vocab_size = m.vocab,
          .seq_length = kMemorySequence};
}

// Runs three layers in sequence and measures what the last one adds after the previous one has released its output.
int64_t bytes_a_layer_keeps(const Model& m) {
  install_booking_allocator();
  int64_t kept = 0;
  run_ranks({.dims = {.world = 1}}, [&](RankContext& context) {
    const auto book = std::make_shared<MemoryBook>();
    set_thread_memory_book(book);
    const ModelConfig config = config_of(m);
    const TensorParallel tp{&context.comm(Axis::kTp), false};
    ParameterRegistry registry(7, at::kBFloat16, context.device());
    const RopeTable rope =
        make_rope_table(kMemorySequence, config.head_dim(), config.rope_theta, at::TensorOptions().dtype(at::kFloat));
    std::vector<TransformerBlock> blocks;
    for (int layer = 0; layer < 3; ++layer) {
      const ModuleScope scope(registry, "layers." + std::to_string(layer));
      blocks.emplace_back(scope, config, BlockContext{.layer = layer, .rope = rope, .tp = tp});
    }
    ResidualStream stream;
    stream.x_SBH = at::ones({kMemorySequence, kMemoryBatch, m.hidden},
                            at::TensorOptions().dtype(at::kBFloat16).requires_grad(true));
    int64_t before = 0;
    for (const TransformerBlock& block : blocks) {
      before = book->bytes(MemoryCategory::kActivations);
      block.forward(stream, {});
    }
    kept = book->bytes(MemoryCategory::kActivations) - before;
    stream = {};
    set_thread_memory_book(nullptr);
  });
  return kept;
}

}  // namespace

MeasuredModel measure_model(const Model& m) {
  TrainConfig c;
  c.model = config_of(m);
  c.parallel = {.world = 1, .tp = 1, .pp = 1};
  c.bf16 = true;
  c.global_batch_size = 2 * kMemoryBatch;
  c.micro_batch_size = kMemoryBatch;
  c.lr_warmup_iters = 0;
  c.mock_data = true;
  const RunPlan plan = resolve(c);
  const MeasuredMemory rank = measure_memory(default_components(make_thread_world({.size = 1}), plan), plan).at(0);
  const auto at_end = [&](MemoryCategory category) { return rank.at_end[static_cast<size_t>(category)]; };
  return {.parameters = c.model.parameter_count(),
          .parameter_bytes = at_end(MemoryCategory::kParameters),
          .gradient_bytes = at_end(MemoryCategory::kGradients),
          .optimizer_bytes = at_end(MemoryCategory::kOptimizer) - kStepCounterBytes,
          .peak_bytes = rank.peak_bytes,
          .peak_activations = rank.at_peak[static_cast<size_t>(MemoryCategory::kActivations)],
          .layer_bytes = bytes_a_layer_keeps(m)};
}

}  // namespace ranklab::lesson
