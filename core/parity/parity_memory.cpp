#include "core/parity/parity_memory.h"

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/config/precision_choice.h"
#include "core/parity/rounding/in_fp32.h"
#include "core/runtime/memory/check.h"

namespace ranklab {
namespace {

// Number of tensors of hidden size per layer: inputs and outputs of its two norms, attention, MLP and the layer itself,
// and the gradients of both.
constexpr int64_t kTensorsOfLayer = 19, kOutsideOfLayers = 6;
// Weights, gradients and moments are kept once, and weights and gradients a second time.
constexpr double kStatesKept = 1.5;
// Two runs of the reference are kept at a time; its tensors are also assembled in fp64, with one byte per element that
// tells whether it is known.
constexpr int64_t kReferenceRuns = 2, kWholeBytes = 9;

int64_t activation_elements(const RunPlan& plan, int64_t step) {
  const ModelConfig& m = plan.config.model;
  const int64_t layers = m.num_layers + m.mtp_num_layers;
  const int64_t copies = plan.sequence_parallel ? 1 : plan.mesh.size(Axis::kTp);
  const int64_t wide = layers * kTensorsOfLayer + kOutsideOfLayers;
  // A router's logits and a few tensors of dispatched tokens.
  const int64_t routed = m.moe.enabled() ? layers * (3 * m.moe.num_experts + 4 * m.hidden_size) : 0;
  return plan.tokens_of(step) * copies * (wide * m.hidden_size + routed);
}

int64_t element_bytes(const RunPlan& plan) { return size_bytes(plan.config.element_dtype()); }

int64_t reference_bytes(const RunPlan& reference, int64_t steps) {
  const int64_t once = kept_bytes(reference, steps);
  return kReferenceRuns * once + once / element_bytes(reference) * kWholeBytes;
}

}  // namespace

int64_t kept_bytes(const RunPlan& plan, int64_t steps) {
  const auto states = static_cast<int64_t>(kStatesKept * static_cast<double>(fixed_bytes(plan)));
  int64_t sum = 0;
  for (int64_t step = 0; step < steps; ++step) sum += states + activation_elements(plan, step) * element_bytes(plan);
  return sum;
}

void check_parity_memory(const RunPlan& plan, const RunPlan* reference, int64_t steps, int64_t available_bytes) {
  const int64_t available = available_bytes > 0 ? available_bytes : available_memory_bytes();
  if (available == 0) return;  // unknown: nothing is refused
  int64_t own = kept_bytes(plan, steps), other = reference != nullptr ? reference_bytes(*reference, steps) : 0;
  // In low precision both runs are repeated in fp32, while the reference in low precision is kept.
  if (reference != nullptr && !low_precision_cause(plan).empty()) {
    own = kept_bytes(resolve(in_fp32(plan.config)), steps);
    other += reference_bytes(resolve(in_fp32(reference->config)), steps);
  }
  const ModelConfig& m = plan.config.model;
  std::string fix = steps > 1 ? "use --train-iters 1, " : "use ";
  fix += "fewer --num-layers, a smaller --global-batch-size or --seq-length (bugs of a layout show in small models)";
  if (reference != nullptr) fix += "; --audit needs no reference; train --watch keeps nothing";
  RANKLAB_CHECK(own + other <= available, ErrorKind::kEnvironment, .where = "parity",
                .what = "the tensors that are kept to be compared do not fit this machine",
                .got = human_bytes(static_cast<double>(own)) + " of the run" +
                       (other > 0 ? " and " + human_bytes(static_cast<double>(other)) + " of its reference" : "") +
                       ": " + std::to_string(steps) + " steps of " +
                       human_count(static_cast<double>(plan.tokens_per_step())) + " tokens, " +
                       human_count(static_cast<double>(m.parameter_count())) + " parameters",
                .want = "at most the available " + human_bytes(static_cast<double>(available)), .fix = fix);
}

}  // namespace ranklab
