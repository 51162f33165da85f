#include "core/model/module_table.h"

#include <functional>
#include <numeric>
#include <utility>

namespace ranklab {
namespace {

class Table {
 public:
  explicit Table(const ModelConfig& config) : c_(config) {}

  std::vector<ModuleRow> make() {
    add({"embedding.weight", {c_.vocab_size, c_.hidden_size}, 1, ModuleSplit::kVocabulary});
    if (c_.position == PositionKind::kLearned) add({"position.weight", {c_.seq_length, c_.hidden_size}});
    const std::string layer = "layers.*.";
    norm(layer + "attention_norm", c_.num_layers);
    linear(layer + "attention.qkv", c_.hidden_size + 2 * c_.query_groups() * c_.head_dim(), c_.hidden_size,
           ModuleSplit::kColumn);
    linear(layer + "attention.out", c_.hidden_size, c_.hidden_size, ModuleSplit::kRow);
    norm(layer + "mlp_norm", c_.num_layers);
    const bool gated = c_.activation == ActivationKind::kSwiGlu;
    linear(layer + (gated ? "mlp.gate_up" : "mlp.up"), (gated ? 2 : 1) * c_.ffn_hidden_size, c_.hidden_size,
           ModuleSplit::kColumn);
    linear(layer + "mlp.down", c_.hidden_size, c_.ffn_hidden_size, ModuleSplit::kRow);
    norm("final_norm", 1);
    ModuleRow head{"head.weight", {c_.vocab_size, c_.hidden_size}, 1, ModuleSplit::kVocabulary, true};
    head.tied = c_.tie_embeddings;
    add(std::move(head));
    return std::move(rows_);
  }

 private:
  void add(ModuleRow row) { rows_.push_back(std::move(row)); }
  void norm(const std::string& name, int64_t copies) {
    add({name + ".weight", {c_.hidden_size}, copies});
    if (c_.norm == NormKind::kLayerNorm) add({name + ".bias", {c_.hidden_size}, copies});
  }
  void linear(const std::string& name, int64_t out, int64_t in, ModuleSplit split) {
    add({name + ".weight", {out, in}, c_.num_layers, split, true});
    if (!c_.add_bias) return;
    const bool whole = split == ModuleSplit::kRow;  // added after the sum over tp
    add({name + ".bias", {out}, c_.num_layers, whole ? ModuleSplit::kReplicated : split});
  }

  const ModelConfig& c_;
  std::vector<ModuleRow> rows_;
};

}  // namespace

const char* name(ModuleSplit split) {
  switch (split) {
    case ModuleSplit::kReplicated:
      return "-";
    case ModuleSplit::kVocabulary:
      return "vocabulary";
    case ModuleSplit::kColumn:
      return "out features";
    case ModuleSplit::kRow:
      return "in features";
  }
  return "?";
}

int64_t ModuleRow::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<ModuleRow> module_table(const ModelConfig& config) { return Table(config).make(); }

}  // namespace ranklab
