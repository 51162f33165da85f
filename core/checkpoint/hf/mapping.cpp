#include "core/checkpoint/hf/mapping.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/checkpoint/read_only_file.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

// `text` with its first "*" replaced by a number.
std::string numbered(std::string text, int64_t number) {
  const size_t star = text.find('*');
  return star == std::string::npos ? text : text.replace(star, 1, std::to_string(number));
}

bool rotates_neighbours(HfLayout layout) {
  return layout == HfLayout::kNeighboursPerHead || layout == HfLayout::kNeighboursAtEnd;
}

bool take_prefix(std::string& text, const std::string& prefix) {
  if (!text.starts_with(prefix)) return false;
  text.erase(0, prefix.size());
  return true;
}

int64_t rotary_first_row(const HfPart& part, int64_t row) {
  const int64_t in_head = row % part.head_rows, half = part.head_rows / 2, pairs = part.rotary_rows / 2;
  const auto place = [&](int64_t first, int64_t second, int64_t count, int64_t i) {
    return row - in_head + (i < count ? first + i : second + i - count);
  };
  const bool adjacent = part.layout == HfLayout::kNeighboursFirst;
  if (in_head < part.rotary_rows) return place(0, half, pairs, adjacent ? in_head % 2 * pairs + in_head / 2 : in_head);
  return place(pairs, half + pairs, half - pairs, in_head - part.rotary_rows);
}

// In our layout each part is a block, and head h has the h-th share of each block.
int64_t together_row(const HfPart& part, int64_t row) {
  const int64_t share = part.rows / part.heads, head = row / share;
  int64_t in_head = row % share, begin = 0;
  size_t piece = 0;
  const auto own = [&] { return part.pieces[piece] / part.heads; };
  for (; in_head >= own(); ++piece) {
    in_head -= own();
    begin += part.pieces[piece];
  }
  const int64_t ours = begin + head * own() + in_head;
  return ours < part.with_heads && part.rotary_rows < part.head_rows ? rotary_first_row(part, ours) : ours;
}

// A row's module as rules name it, and its place in a model.
struct Place {
  std::string module, suffix;  // "attention.qkv", ".weight" or ".bias"
  bool in_layer = false;
};
Place place_of(const ModuleRow& row) {
  Place place;
  place.module = row.parameter;
  place.in_layer = take_prefix(place.module, row.mtp ? "mtp.*." : "layers.*.");
  take_prefix(place.module, "block.");
  const size_t dot = place.module.rfind('.');
  place.suffix = place.module.substr(dot);
  place.module.resize(dot);
  return place;
}

const HfRule& rule_of(const HfFamily& family, const Place& place, const std::string& parameter) {
  const std::vector<HfRule>& rules = place.in_layer ? family.layer_rules : family.rules;
  const auto found = std::ranges::find(rules, place.module, &HfRule::ours);
  RANKLAB_CHECK(found != rules.end(), ErrorKind::kInternal, .where = "Hugging Face",
                .what = "a family has no name for a parameter", .got = parameter);
  return *found;
}

bool is_head_norm(const std::string& module) { return module == "attention.q_norm" || module == "attention.k_norm"; }

// Whether all experts of a layer are one tensor there.
bool is_of_all_experts(const HfRule& rule) {
  return rule.ours.find('*') != std::string::npos && rule.theirs[0].find('*') == std::string::npos;
}

class Mapping {
 public:
  Mapping(const ModelConfig& config, const HfFamily& family) : c_(config), family_(family) {}

  std::vector<HfTensor> make() {
    for (const ModuleRow& row : module_table(c_)) {
      if (!row.tied) add_row(row);
    }
    add_copies();
    return std::move(tensors_);
  }

 private:
  void add_row(const ModuleRow& row) {
    const Place place = place_of(row);
    const HfRule& rule = rule_of(family_, place, row.parameter);
    if (!place.in_layer) {
      add(row.parameter, row, rule, "", place.suffix);
      return;
    }
    for (int64_t layer = row.first_layer; layer < row.first_layer + row.layers; ++layer) {
      const std::string prefix = family_.layer_prefix + std::to_string(row.mtp ? c_.num_layers + layer : layer) + ".";
      const std::string ours = numbered(row.parameter, layer);
      for (int64_t expert = 0; expert < row.per_layer; ++expert) {
        add(numbered(ours, expert), row, numbered_rule(rule, expert), prefix, place.suffix);
        if (is_of_all_experts(rule)) set_slice(tensors_.back().parts[0], expert, row.per_layer);
      }
      if (row.part == ModulePart::kRouter && !family_.balancing_bias.empty()) add_router_bias(ours, prefix);
    }
  }

  static void set_slice(HfPart& part, int64_t expert, int64_t experts) {
    part.slice = expert;
    part.shape.insert(part.shape.begin(), experts);
  }

  static HfRule numbered_rule(HfRule rule, int64_t expert) {
    for (std::string& name : rule.theirs) name = numbered(name, expert);
    return rule;
  }

  // Either each of their tensors holds one part of our fused tensor, or one tensor holds all parts.
  void add(const std::string& parameter, const ModuleRow& row, const HfRule& rule, const std::string& prefix,
           const std::string& suffix) {
    const std::vector<int64_t>& shape = row.shape;
    HfTensor tensor{"weight/" + parameter, shape, {}};
    int64_t first = 0;
    auto next = row.parts.begin();
    for (size_t i = 0; i < rule.theirs.size(); ++i) {
      const size_t count = !rule.parts.empty() ? rule.parts[i] : rule.theirs.size() == 1 ? row.parts.size() : 1;
      std::vector<int64_t> pieces(next, next + static_cast<std::ptrdiff_t>(count));
      next += static_cast<std::ptrdiff_t>(count);
      const int64_t rows = std::accumulate(pieces.begin(), pieces.end(), int64_t{0});
      const std::string end = rule.naming == HfNaming::kDotted ? suffix : suffix == ".bias" ? "_bias" : "";
      HfPart part{.name = prefix + rule.theirs[i] + end, .shape = shape, .first_row = first, .rows = rows};
      part.shape[0] = rows;
      const bool is_value = rule.ours == "attention.qkv" && i == 2;
      if (shape.size() == 2 || rotates_neighbours(rule.layout) || rule.layout == HfLayout::kHalvesInTurn)
        set_layout(part, is_value && rotates_neighbours(rule.layout) ? HfLayout::kSame : rule.layout);
      if (rule.layout == HfLayout::kHeadsTogether) {
        set_heads(part, rule.layout);
        set_pieces(part, std::move(pieces), rule.ours);
      } else if (c_.is_partly_rotary() && (rule.ours == "attention.qkv" || is_head_norm(rule.ours))) {
        set_heads(part, rotates_neighbours(rule.layout) ? HfLayout::kNeighboursFirst : HfLayout::kRotaryFirst);
      }
      set_pairs(part, rule.ours);
      tensor.parts.push_back(std::move(part));
      first += rows;
    }
    tensors_.push_back(std::move(tensor));
  }

  void set_layout(HfPart& part, HfLayout layout) const {
    const bool halves = c_.mla.enabled() && !c_.hf_rope_interleave;
    part.layout = halves && rotates_neighbours(layout) ? HfLayout::kSame : layout;
    if (is_transposed(layout) && part.shape.size() == 2) std::swap(part.shape[0], part.shape[1]);
    const int64_t head = c_.mla.enabled() ? c_.mla.query_head_dim() : c_.head_dim();
    part.head_rows = layout == HfLayout::kNeighboursPerHead ? head : part.rows;
    part.rotary_rows = c_.rotary_width();
  }

  // For queries and keys, both the matrix and the bias.
  void set_heads(HfPart& part, HfLayout layout) const {
    part.layout = layout;
    part.head_rows = c_.head_dim();
    part.rotary_rows = c_.rotary_width();
    part.with_heads = turning_rows(part);
  }

  // An output gate follows the queries and is not rotated.
  int64_t turning_rows(const HfPart& part) const {
    const int64_t gate = c_.output_gate_width(), queries = c_.query_width();
    const int64_t turning = gate > 0 && part.first_row == 0 ? queries : queries + gate + c_.kv_width() - part.first_row;
    return std::clamp<int64_t>(turning, 0, part.rows);
  }

  void set_pairs(HfPart& part, const std::string& ours) const {
    if (!c_.rotary_interleaved) return;
    const int64_t turning = c_.rotary_width();
    if (!c_.mla.enabled()) {
      if (ours == "attention.qkv" || is_head_norm(ours))
        part.pairs = {.rows = turning_rows(part), .head = c_.head_dim(), .rotary = turning};
    } else if (ours == "attention.q" || ours == "attention.q_up") {
      part.pairs = {.rows = part.rows, .head = c_.mla.query_head_dim(), .first = c_.mla.qk_head_dim, .rotary = turning};
    } else if (ours == "attention.kv_down") {
      part.pairs = {.rows = part.rows, .head = part.rows, .first = c_.mla.kv_lora_rank, .rotary = turning};
    }
  }

  void set_pieces(HfPart& part, std::vector<int64_t> pieces, const std::string& module) const {
    const bool linear = module == "attention.in_proj";
    part.heads = linear ? c_.linear.num_key_heads : pieces[0] / c_.head_dim();
    if (linear) part.with_heads = 0;
    part.pieces = std::move(pieces);
  }

  // A router without a bias gets a zero bias.
  void add_router_bias(const std::string& router, const std::string& prefix) {
    const std::string name = router.substr(0, router.rfind('.')) + ".bias";
    const int64_t experts = c_.moe.num_experts;
    HfPart part{.name = prefix + family_.balancing_bias, .shape = {experts}, .rows = experts, .keeps_fp32 = true};
    if (family_.balancing_bias_is_row) part.shape = {1, experts};
    tensors_.push_back({"buffer/" + name, {experts}, {part}});
  }

  void add_copy(const std::string& ours, const std::string& name, HfPartKind kind) {
    HfTensor& tensor = *std::ranges::find(tensors_, "weight/" + ours, &HfTensor::ours);
    tensor.parts.push_back({.name = name, .shape = tensor.shape, .rows = tensor.shape[0], .kind = kind});
  }

  void add_copies() {
    const std::string head = c_.tie_embeddings ? "embedding.weight" : "head.weight";
    if (c_.tie_embeddings) add_copy(head, "lm_head.weight", HfPartKind::kTiedCopy);
    for (int64_t k = 0; k < c_.mtp_num_layers; ++k) {
      const std::string prefix = family_.layer_prefix + std::to_string(c_.num_layers + k) + ".";
      add_copy("embedding.weight", prefix + "embed_tokens.weight", HfPartKind::kCopy);
      add_copy(head, prefix + "shared_head.head.weight", HfPartKind::kCopy);
    }
  }

  const ModelConfig& c_;
  const HfFamily& family_;
  std::vector<HfTensor> tensors_;
};

// The row among pairs that corresponds to `row` among halves.
int64_t pairs_row(const HfPairs& p, int64_t row) {
  const int64_t before = row / p.head * p.head + p.first, in_halves = row - before;
  if (row >= p.rows || in_halves < 0) return row;
  const int64_t half = (p.head - p.first) / 2, which = in_halves / half, place = in_halves % half;
  if (place < p.rotary / 2) return before + 2 * place + which;
  return before + p.rotary + which * (half - p.rotary / 2) + place - p.rotary / 2;
}

int64_t row_in_halves(const HfPart& part, int64_t row) {
  if (part.layout == HfLayout::kRotaryFirst || part.layout == HfLayout::kNeighboursFirst)
    return row < part.with_heads ? rotary_first_row(part, row) : row;
  if (part.layout == HfLayout::kHeadsTogether) return together_row(part, row);
  if (part.layout == HfLayout::kHalvesInTurn) return row % 2 * (part.rows / 2) + row / 2;
  if (!rotates_neighbours(part.layout)) return row;
  const int64_t head = row / part.head_rows, in_head = row % part.head_rows, plain = part.head_rows - part.rotary_rows;
  if (in_head < plain) return row;
  const int64_t i = in_head - plain;
  return head * part.head_rows + plain + i / 2 + (i % 2) * (part.rotary_rows / 2);
}

}  // namespace

std::vector<HfTensor> hf_mapping(const ModelConfig& config, const HfFamily& family) {
  return Mapping(config, family).make();
}

void check_tensor_count(const ModelConfig& config, const HfFamily* family, size_t tensors, const std::string& where) {
  constexpr int64_t kTimes = 10, kMore = 100;
  int64_t wanted = 0;
  for (const ModuleRow& row : module_table(config)) {
    if (row.tied) continue;
    const bool together = family != nullptr && is_of_all_experts(rule_of(*family, place_of(row), row.parameter));
    wanted += together ? row.layers : row.copies();
  }
  const auto there = static_cast<int64_t>(tensors);
  if (wanted > kTimes * there + kMore)
    refuse_checkpoint_file(where, "the model has far more parameters than there are tensors",
                           std::to_string(there) + " tensors", std::to_string(wanted) + " parameters of its settings");
}

bool is_transposed(HfLayout layout) { return layout == HfLayout::kTransposed || layout == HfLayout::kHalvesInTurn; }

int64_t our_row(const HfPart& part, int64_t row) {
  const int64_t in_halves = row_in_halves(part, row);
  return part.pairs.rows == 0 ? in_halves : pairs_row(part.pairs, in_halves);
}

}  // namespace ranklab
