#include "core/plan/planned_parameters.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/precision/quantize.h"
#include "core/runtime/pipeline_layout.h"

namespace ranklab {
namespace {

// The ranks of the pipeline that have the parameter, when there are several.
std::vector<int> holders(const StepShape& shape, const Schedule& schedule, int own, bool is_embedding) {
  const int last = schedule.chain_length - 1;
  const bool tied = is_embedding && shape.embedding_at_both_ends();
  std::vector<int> ranks =
      ranks_holding(schedule, [&](int part) { return part == own || (tied && (part == 0 || part == last)); });
  if (ranks.size() == 1) ranks.clear();
  return ranks;
}

// "layers.*.mlp.experts.*.down.weight" of layer 3, expert 5
std::string filled_in(std::string name, int64_t layer, int64_t expert) {
  for (const int64_t number : {layer, expert}) {
    const size_t star = name.find('*');
    if (star != std::string::npos) name.replace(star, 1, std::to_string(number));
  }
  return name;
}

class ParameterList {
 public:
  ParameterList(const StepShape& shape, int stage, int ep_rank)
      : s_(shape), stage_(stage), ep_rank_(ep_rank), table_(module_table(shape.model)) {}

  std::vector<PlannedParameter> make() {
    if (s_.is_first(stage_)) ends([](const ModuleRow& row) { return row.part == ModulePart::kEmbedding; });
    const int64_t first = s_.first_layer(stage_);
    for (int64_t layer = first; layer < first + s_.layers(stage_); ++layer)
      modules(layer, [](const ModuleRow& row) { return !row.mtp && row.parameter.starts_with("layers."); });
    if (!s_.is_last(stage_)) return std::move(list_);
    ends([](const ModuleRow& row) { return row.part == ModulePart::kFinalNorm || row.part == ModulePart::kHead; });
    const bool has_embedding = s_.model.tie_embeddings || s_.is_first(stage_);
    if (s_.model.mtp_num_layers > 0 && !has_embedding) add(table_.front(), 0, 0);
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
      add(row, 0, 0);
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
      add_experts(experts, layer);
      add(row, layer, 0);
    }
    add_experts(experts, layer);
  }

  void add_experts(std::vector<const ModuleRow*>& rows, int64_t layer) {
    for (int64_t expert = 0; !rows.empty() && expert < s_.local_experts(); ++expert) {
      for (const ModuleRow* row : rows) add(*row, layer, ep_rank_ * s_.local_experts() + expert);
    }
    rows.clear();
  }

  int64_t elements_on_rank(const ModuleRow& row) const {
    if (row.split == ModuleSplit::kReplicated) return row.elements();
    if (row.split == ModuleSplit::kVocabulary) return s_.vocab_width() * s_.model.hidden_size;
    return row.elements() / (row.is_expert() ? s_.dims.etp : s_.dims.tp);
  }

  void add(const ModuleRow& row, int64_t layer, int64_t expert) {
    const int64_t ranks = row.is_expert() ? s_.dims.etp : s_.dims.tp;
    std::vector<int64_t> parts = fused_parts(s_.model, row);
    if (row.split == ModuleSplit::kColumn) {
      for (int64_t& part : parts) part /= ranks;
    }
    const int64_t cols = row.shape.size() < 2 ? 1 : row.shape[1] / (row.split == ModuleSplit::kRow ? ranks : 1);
    list_.push_back({.name = row.tied ? "embedding.weight" : filled_in(row.parameter, layer, expert),
                     .part = row.part,
                     .elements = elements_on_rank(row),
                     .sum_over_tp = row.split == ModuleSplit::kReplicated &&
                                    (s_.sharded_sequence() || (row.by_heads && s_.dims.tp > 1)),
                     .is_expert = row.is_expert(),
                     .is_embedding = row.tied || row.parameter == "embedding.weight",
                     .cols = cols,
                     .row_parts = std::move(parts)});
  }

  const StepShape& s_;
  int stage_;
  int ep_rank_;
  std::vector<ModuleRow> table_;
  std::vector<PlannedParameter> list_;
};

}  // namespace

std::vector<PlannedParameter> planned_parameters(const StepShape& shape, int stage) {
  return ParameterList(shape, stage, 0).make();
}

std::vector<PlannedParameter> planned_parameters(const StepShape& shape, const Schedule& schedule, int pp_rank,
                                                 int ep_rank) {
  std::vector<PlannedParameter> all;
  const std::vector<int> stages = schedule.stages_of(pp_rank);
  bool has_embedding = false;
  for (size_t i = 0; i < stages.size(); ++i) {
    const int part = schedule.part(stages[i]);
    for (PlannedParameter parameter : ParameterList(shape, part, ep_rank).make()) {
      const bool again = parameter.is_embedding && has_embedding;
      has_embedding = has_embedding || parameter.is_embedding;
      parameter.local_stage = static_cast<int>(i);
      parameter.pipeline_ranks = holders(shape, schedule, part, parameter.is_embedding);
      if (!again) all.push_back(parameter);
    }
  }
  return all;
}

std::vector<std::string> modules_of(const std::vector<std::string>& modules,
                                    const std::vector<PlannedParameter>& parameters) {
  std::set<std::string> units;
  for (const PlannedParameter& parameter : parameters) units.insert(parameter_unit(parameter.name));
  std::vector<std::string> result;
  for (const std::string& module : modules) {
    if (units.contains(parameter_unit(module))) result.push_back(module);
  }
  return result;
}

namespace {

// core/parallel/shard_codec.h
void add_coding(PlannedBucket& bucket, const StepShape& shape, const std::vector<PlannedParameter>& parameters) {
  constexpr size_t kSuffix = sizeof(".weight") - 1;
  const bool in_parts =
      shape.gather.granularity == Granularity::kTile || shape.gather.granularity == Granularity::kBlock;
  int64_t bytes = 0;
  for (const BucketPlace& place : bucket.layout.places) {
    const PlannedParameter& p = parameters[place.item];
    const std::string module = p.name.substr(0, p.name.size() - std::min(p.name.size(), kSuffix));
    if (std::ranges::find(shape.quantized_modules, module) == shape.quantized_modules.end()) {
      bytes += p.elements * bucket.parameter_bytes_each;
      continue;
    }
    bytes += p.elements;
    const std::vector<int64_t> whole = {p.elements / p.cols};
    for (const int64_t rows : in_parts ? p.row_parts : whole) {
      const GroupShape groups = group_shape(shape.gather, Along::kColumns, rows, p.cols);
      bucket.coded_groups += groups.grid_rows(rows) * groups.grid_cols(p.cols);
    }
  }
  if (bucket.coded_groups > 0) bucket.coded_bytes = bytes;
}

}  // namespace

std::vector<PlannedBucket> planned_buckets(const StepShape& shape, const std::vector<PlannedParameter>& parameters) {
  std::vector<PlannedBucket> buckets;
  for (const bool is_expert : {false, true}) {
    std::vector<BucketItem> items;
    std::vector<size_t> indices;
    const int shards = shape.shards(is_expert);
    const bool by_unit = shape.zero_stage == 3 && shards > 1;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const PlannedParameter& p = parameters[i];
      if (p.is_expert != is_expert) continue;
      items.push_back({.name = p.name,
                       .elements = p.elements,
                       .dtype = shape.state().main_grads,
                       .sum_over_tp = p.sum_over_tp,
                       .pipeline_ranks = p.pipeline_ranks,
                       .unit = by_unit ? parameter_unit(p.name) : ""});
      indices.push_back(i);
    }
    for (BucketLayout& layout : lay_out_buckets(items, shape.bucket_bytes, shards)) {
      for (BucketPlace& place : layout.places) place.item = indices[place.item];
      buckets.push_back({.layout = std::move(layout),
                         .is_expert = is_expert,
                         .axis = shape.reduced_over(is_expert),
                         .shards = shards,
                         .parameter_bytes_each = shape.element_bytes()});
      if (by_unit && shape.gather.quantized()) add_coding(buckets.back(), shape, parameters);
    }
  }
  std::stable_partition(buckets.begin(), buckets.end(),
                        [](const PlannedBucket& bucket) { return !bucket.layout.sum_over_tp; });
  return buckets;
}

}  // namespace ranklab
