#include "core/runtime/qk_clip_pieces.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/spec/head_rows.h"

namespace ranklab {
namespace {

// The layer and the module of a name: "qkv" for "layers.3.attention.qkv.weight" or "mtp.0.block.attention.qkv.bias".
struct ModuleOfLayer {
  int64_t layer = 0;
  std::string module;
};

std::optional<ModuleOfLayer> module_of(const ModelConfig& config, const std::string& name) {
  constexpr std::string_view kAttention = ".attention.";
  const size_t at = name.find(kAttention);
  if (at == std::string::npos) return std::nullopt;
  const size_t module = at + kAttention.size(), end = name.find('.', module);
  ModuleOfLayer found{.module = name.substr(module, end - module)};
  if (!has_head_rows(config, found.module)) return std::nullopt;
  const bool predicts = name.starts_with("mtp.");
  found.layer = std::stoll(name.substr(name.find('.') + 1)) + (predicts ? config.num_layers : 0);
  return found;
}

// The index, in the whole model's parameter, of each of this rank's rows.
std::vector<int64_t> global_rows(const Partition& partition) {
  std::vector<int64_t> rows;
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) rows.push_back(row);
  };
  if (partition.dim != 0) {
    add(0, partition.global_shape[0]);
  } else {
    for (const auto& [begin, end] : partition.ranges) add(begin, end);
  }
  return rows;
}

double exponent_of(HeadRow::Part part, double alpha) {
  switch (part) {
    case HeadRow::Part::kQuery:
      return alpha;
    case HeadRow::Part::kRotaryQuery:
      return 1;
    case HeadRow::Part::kKey:
      return 1 - alpha;
    case HeadRow::Part::kOther:
      break;
  }
  return 0;
}

}  // namespace

std::vector<QkClip::Piece> qk_clip_pieces(const ModelConfig& config, double alpha,
                                          const std::vector<OptimizerState>& states, const OriginOf& origin_of) {
  std::vector<QkClip::Piece> pieces;
  for (const OptimizerState& state : states) {
    const auto [whole, begin] = origin_of(state.parameter);
    const std::optional<ModuleOfLayer> of = module_of(config, whole->name);
    if (!of || state.weight.numel() == 0) continue;
    const std::vector<int64_t> rows = global_rows(whole->partition), shape = local_shape(whole->partition);
    const int64_t width = shape.size() > 1 ? shape[1] : 1, end = begin + state.weight.numel();
    QkClip::Piece piece{
        .parameter = state.parameter, .master = {}, .begin = begin % width, .row_width = width, .rows = {}};
    if (!state.weight.is_same(state.parameter->data)) piece.master = state.weight;
    if (of->module.ends_with("_norm")) piece.offset = config.norm_weight_offset();
    for (int64_t row = begin / width; row * width < end; ++row) {
      const HeadRow made = head_row(config, of->module, rows[static_cast<size_t>(row)]);
      piece.rows.push_back({of->layer * config.num_attention_heads + made.head, exponent_of(made.part, alpha)});
    }
    if (std::ranges::any_of(piece.rows, [](const QkClip::Row& row) { return row.exponent != 0; }))
      pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace ranklab
