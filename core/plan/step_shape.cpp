#include "core/plan/step_shape.h"

namespace ranklab {
namespace {

constexpr int64_t kAlignmentElements = 16;  // GradReducer: each gradient starts on a cache line

class ParameterList {
 public:
  explicit ParameterList(const StepShape& shape) : shape_(shape) {}

  void weight(ParameterPart part, int64_t elements) { list_.push_back({.part = part, .elements = elements}); }
  void bias(ParameterPart part, int64_t elements, bool replicated) {
    if (!shape_.model.add_bias) return;
    list_.push_back(
        {.part = part, .elements = elements, .decay = false, .sum_over_tp = replicated && shape_.sharded_sequence()});
  }
  void norm(ParameterPart part) {
    const int vectors = shape_.model.norm == NormKind::kLayerNorm ? 2 : 1;
    for (int i = 0; i < vectors; ++i) {
      list_.push_back({.part = part,
                       .elements = shape_.model.hidden_size,
                       .decay = false,
                       .sum_over_tp = shape_.sharded_sequence()});
    }
  }
  void layer() {
    const int64_t hidden = shape_.model.hidden_size, tp = shape_.dims.tp;
    norm(ParameterPart::kAttentionNorm);
    weight(ParameterPart::kQkv, shape_.qkv_width() * hidden);
    bias(ParameterPart::kQkv, shape_.qkv_width(), false);
    weight(ParameterPart::kOut, hidden * hidden / tp);
    bias(ParameterPart::kOut, hidden, true);
    norm(ParameterPart::kMlpNorm);
    if (shape_.num_experts > 0) return experts();
    weight(ParameterPart::kUp, shape_.up_width() * hidden);
    bias(ParameterPart::kUp, shape_.up_width(), false);
    weight(ParameterPart::kDown, hidden * shape_.ffn_width());
    bias(ParameterPart::kDown, hidden, true);
  }
  std::vector<PlannedParameter> take() { return std::move(list_); }
  PlannedParameter& last() { return list_.back(); }

 private:
  // The router is replicated; this rank's experts are cut over etp.
  void experts() {
    const int64_t local = shape_.num_experts / shape_.dims.ep;
    const int64_t hidden = shape_.model.hidden_size;
    const int64_t width = shape_.model.ffn_hidden_size / shape_.dims.etp;
    const int64_t inputs = shape_.model.activation == ActivationKind::kSwiGlu ? 2 : 1;
    list_.push_back({.part = ParameterPart::kUp,
                     .elements = shape_.num_experts * hidden,
                     .sum_over_tp = shape_.sharded_sequence()});
    list_.push_back({.part = ParameterPart::kUp, .elements = local * inputs * width * hidden, .is_expert = true});
    list_.push_back({.part = ParameterPart::kDown, .elements = local * width * hidden, .is_expert = true});
  }

  const StepShape& shape_;
  std::vector<PlannedParameter> list_;
};

}  // namespace

StepShape shape_of(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  return {.model = c.model,
          .dims = plan.mesh.dims(),
          .sequence_parallel = plan.sequence_parallel,
          .micro_batch_size = plan.micro_batch_size,
          .num_microbatches = plan.num_microbatches,
          .bucket_bytes = plan.bucket_bytes,
          .dtype = c.params_dtype == "fp64" ? DType::kFloat64 : DType::kFloat32,
          .overlap_grad_reduce = c.overlap_grad_reduce,
          .clips = c.clip_grad > 0,
          .optimizer = c.optimizer,
          .chain_length = plan.schedule.chain_length,
          .stage_layers = plan.stage_layers};
}

std::vector<PlannedParameter> planned_parameters(const StepShape& shape, int stage) {
  ParameterList list(shape);
  const int64_t embedding = shape.vocab_width() * shape.model.hidden_size;
  if (shape.is_first(stage)) {
    list.weight(ParameterPart::kEmbedding, embedding);
    list.last().token_matrix = true;
    if (shape.model.position == PositionKind::kLearned) {
      list.weight(ParameterPart::kEmbedding, shape.model.seq_length * shape.model.hidden_size);
      list.last().sum_over_tp = shape.sharded_sequence();
    }
  }
  for (int64_t layer = 0; layer < shape.layers(stage); ++layer) list.layer();
  if (shape.is_last(stage)) {
    list.norm(ParameterPart::kFinalNorm);
    if (!shape.model.tie_embeddings || shape.num_stages() > 1) {
      list.weight(ParameterPart::kHead, embedding);
      list.last().token_matrix = true;
    }
  }
  return list.take();
}

std::vector<PlannedParameter> planned_parameters(const StepShape& shape, const Schedule& schedule, int pp_rank) {
  std::vector<PlannedParameter> all;
  const std::vector<int> stages = schedule.stages_of(pp_rank);
  bool has_token_matrix = false;
  for (size_t i = 0; i < stages.size(); ++i) {
    for (PlannedParameter parameter : planned_parameters(shape, schedule.part(stages[i]))) {
      const bool again = parameter.token_matrix && has_token_matrix && shape.model.tie_embeddings;
      has_token_matrix = has_token_matrix || parameter.token_matrix;
      parameter.local_stage = static_cast<int>(i);
      if (!again) all.push_back(parameter);
    }
  }
  return all;
}

std::vector<PlannedBucket> planned_buckets(const StepShape& shape, const std::vector<PlannedParameter>& parameters,
                                           std::vector<size_t>& bucket_of) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  const int64_t element = shape.element_bytes();
  std::vector<PlannedBucket> buckets;
  bucket_of.assign(parameters.size(), kNone);
  for (const auto& [sum_over_tp, is_expert] : {std::pair{false, false}, {false, true}, {true, false}}) {
    size_t open = kNone;
    for (size_t i = parameters.size(); i-- > 0;) {
      const PlannedParameter& parameter = parameters[i];
      if (parameter.sum_over_tp != sum_over_tp || parameter.is_expert != is_expert) continue;
      const bool fits = open != kNone &&
                        (sum_over_tp || (parameter.elements + buckets[open].elements) * element <= shape.bucket_bytes);
      if (!fits) {
        open = buckets.size();
        buckets.push_back({.sum_over_tp = sum_over_tp, .is_expert = is_expert});
      }
      buckets[open].elements += (parameter.elements + kAlignmentElements - 1) / kAlignmentElements * kAlignmentElements;
      ++buckets[open].parameters;
      bucket_of[i] = open;
    }
  }
  return buckets;
}

}  // namespace ranklab
