#include "core/plan/planned_parameters.h"

#include <utility>

namespace ranklab {
namespace {

constexpr int64_t kAlignmentElements = 16;  // GradReducer: each gradient starts on a cache line

class ParameterList {
 public:
  ParameterList(const StepShape& shape, int stage) : s_(shape), stage_(stage), table_(module_table(shape.model)) {}

  std::vector<PlannedParameter> make() {
    if (s_.is_first(stage_)) ends([](const ModuleRow& row) { return row.part == ModulePart::kEmbedding; });
    const int64_t first = s_.first_layer(stage_);
    for (int64_t layer = first; layer < first + s_.layers(stage_); ++layer)
      modules(layer, [](const ModuleRow& row) { return !row.mtp && row.parameter.starts_with("layers."); });
    if (!s_.is_last(stage_)) return std::move(list_);
    ends([](const ModuleRow& row) { return row.part == ModulePart::kFinalNorm || row.part == ModulePart::kHead; });
    const bool has_embedding = s_.model.tie_embeddings || s_.is_first(stage_);
    if (s_.model.mtp_num_layers > 0 && !has_embedding) add(table_.front());
    for (int64_t k = 0; k < s_.model.mtp_num_layers; ++k)
      modules(k, [](const ModuleRow& row) { return row.mtp && !row.tied; });
    return std::move(list_);
  }

 private:
  template <typename Wanted>
  void ends(const Wanted& wanted) {
    for (const ModuleRow& row : table_) {
      if (row.mtp || !wanted(row)) continue;
      if (row.tied && s_.num_stages() == 1) continue;  // the embedding is there
      add(row);
    }
  }

  // The rows of one layer. Experts are made one after another, each with all its rows.
  template <typename Wanted>
  void modules(int64_t layer, const Wanted& wanted) {
    std::vector<const ModuleRow*> experts;
    for (const ModuleRow& row : table_) {
      if (!wanted(row) || layer < row.first_layer || layer >= row.first_layer + row.layers) continue;
      if (row.is_expert()) {
        experts.push_back(&row);
        continue;
      }
      add_experts(experts);
      add(row);
    }
    add_experts(experts);
  }

  void add_experts(std::vector<const ModuleRow*>& rows) {
    for (int64_t expert = 0; !rows.empty() && expert < s_.local_experts(); ++expert) {
      for (const ModuleRow* row : rows) add(*row);
    }
    rows.clear();
  }

  int64_t elements_on_rank(const ModuleRow& row) const {
    if (row.split == ModuleSplit::kReplicated) return row.elements();
    if (row.split == ModuleSplit::kVocabulary) return s_.vocab_width() * s_.model.hidden_size;
    return row.elements() / (row.is_expert() ? s_.dims.etp : s_.dims.tp);
  }

  void add(const ModuleRow& row) {
    list_.push_back({.part = row.part,
                     .elements = elements_on_rank(row),
                     .sum_over_tp = row.split == ModuleSplit::kReplicated && s_.sharded_sequence(),
                     .is_expert = row.is_expert(),
                     .is_embedding = row.tied || row.parameter == "embedding.weight"});
  }

  const StepShape& s_;
  int stage_;
  std::vector<ModuleRow> table_;
  std::vector<PlannedParameter> list_;
};

}  // namespace

std::vector<PlannedParameter> planned_parameters(const StepShape& shape, int stage) {
  return ParameterList(shape, stage).make();
}

std::vector<PlannedParameter> planned_parameters(const StepShape& shape, const Schedule& schedule, int pp_rank) {
  std::vector<PlannedParameter> all;
  const std::vector<int> stages = schedule.stages_of(pp_rank);
  bool has_embedding = false;
  for (size_t i = 0; i < stages.size(); ++i) {
    for (PlannedParameter parameter : planned_parameters(shape, schedule.part(stages[i]))) {
      const bool again = parameter.is_embedding && has_embedding;
      has_embedding = has_embedding || parameter.is_embedding;
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
