#include "core/plan/planned_shards.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "core/base/error.h"
#include "core/plan/planned_parameters.h"

namespace ranklab {
namespace {

// "layers.3.mlp.experts.5.down.weight" -> "layers.*.mlp.experts.*.down.weight"
std::string pattern_of(const std::string& name) {
  std::string pattern;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    const bool number =
        !word.empty() && std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
    pattern += (begin == 0 ? "" : ".") + (number ? "*" : word);
    begin = end + 1;
  }
  return pattern;
}

class RankPieces {
 public:
  RankPieces(const RunPlan& plan, int global_rank)
      : plan_(plan), rank_(global_rank), shape_(shape_of(plan)), pp_rank_(coordinate(Axis::kPp)) {
    for (const ModuleRow& row : module_table(shape_.model)) rows_.emplace(row.parameter, row);
    parameters_ = planned_parameters(shape_, plan.schedule, pp_rank_, coordinate(Axis::kEp));
  }

  std::vector<PlannedPiece> make() {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const PlannedParameter& p = parameters_[i];
      const Axis data = p.is_expert ? Axis::kEdp : Axis::kDp;
      const bool mine = static_cast<int>(i) % plan_.mesh.size(data) == coordinate(data);
      if (plan_.zero_stage == 0 && mine) add(p, 0, p.elements);
    }
    if (plan_.zero_stage > 0) add_owned();
    return std::move(pieces_);
  }

 private:
  int coordinate(Axis axis) const { return plan_.mesh.size(axis) == 1 ? 0 : plan_.mesh.coordinate(axis, rank_); }

  void add_owned() {
    for (const PlannedBucket& bucket : planned_buckets(shape_, parameters_)) {
      const Axis data = bucket.is_expert ? Axis::kEdp : Axis::kDp;
      const Axis replica = bucket.is_expert ? Axis::kEdpReplica : Axis::kDpReplica;
      if (bucket.shards > 1 && coordinate(replica) != 0) continue;
      const int shard = bucket.shards == 1 ? 0 : coordinate(bucket.axis);
      for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, shard)) {
        const bool mine = static_cast<int>(piece.item) % plan_.mesh.size(data) == coordinate(data);
        if (bucket.shards > 1 || mine) add(parameters_[piece.item], piece.begin, piece.end);
      }
    }
  }

  void add(const PlannedParameter& p, int64_t begin, int64_t end) {
    if (!p.pipeline_ranks.empty() && p.pipeline_ranks.front() != pp_rank_) return;
    const ModuleRow& row = rows_.at(pattern_of(p.name));
    const Axis tensor = p.is_expert ? Axis::kEtp : Axis::kTp;
    const SlicePartition partition = planned_partition(shape_.model, row, coordinate(tensor), plan_.mesh.size(tensor));
    if (partition.dim < 0 && coordinate(tensor) != 0) return;
    pieces_.push_back({p.name, row.shape, {.partition = partition, .begin = begin, .end = end}});
  }

  const RunPlan& plan_;
  int rank_;
  StepShape shape_;
  int pp_rank_;
  std::map<std::string, ModuleRow> rows_;
  std::vector<PlannedParameter> parameters_;
  std::vector<PlannedPiece> pieces_;
};

}  // namespace

SlicePartition planned_partition(const ModelConfig& model, const ModuleRow& row, int index, int count) {
  switch (row.split) {
    case ModuleSplit::kReplicated:
      return {};
    case ModuleSplit::kVocabulary: {
      const int64_t each = (row.shape[0] + count - 1) / count;
      return {.dim = 0, .ranges = {{index * each, (index + 1) * each}}};
    }
    case ModuleSplit::kRow: {
      const int64_t each = row.shape.at(1) / count;
      return {.dim = 1, .ranges = {{index * each, (index + 1) * each}}};
    }
    case ModuleSplit::kColumn:
      break;
  }
  SlicePartition partition{.dim = 0, .ranges = {}};
  int64_t begin = 0;
  for (const int64_t length : fused_parts(model, row)) {
    const int64_t each = length / count;
    partition.ranges.emplace_back(begin + index * each, begin + (index + 1) * each);
    begin += length;
  }
  return partition;
}

std::vector<PlannedPiece> planned_pieces(const RunPlan& plan, int global_rank) {
  return RankPieces(plan, global_rank).make();
}

std::vector<std::string> planned_buffers(const RunPlan& plan, int global_rank) {
  const auto at = [&](Axis axis) { return plan.mesh.size(axis) == 1 ? 0 : plan.mesh.coordinate(axis, global_rank); };
  std::vector<std::string> names;
  if (at(Axis::kTp) != 0 || at(Axis::kDp) != 0) return names;
  const StepShape shape = shape_of(plan);
  const std::vector<PlannedParameter> parameters = planned_parameters(shape, plan.schedule, at(Axis::kPp));
  if (scales_are_delayed(shape.products)) {
    for (const std::string& module : modules_of(shape.quantized_modules, parameters))
      names.push_back(module + ".amax_history");
    std::ranges::sort(names);
  }
  const std::string router = ".router.weight";
  for (const PlannedParameter& p : parameters) {
    if (plan.config.model.moe.expert_bias && p.name.ends_with(router))
      names.push_back(p.name.substr(0, p.name.size() - router.size()) + ".router.bias");
  }
  return names;
}

}  // namespace ranklab
