#include "cli/model/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/config/state_types.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

// FLOPs, and tensors read or written, per element, for everything except matrix products, with the usual fusion of
// kernels.
constexpr double kNormFlops = 4, kActivationFlops = 6, kSoftmaxFlops = 5;
constexpr double kMemoryBytes = 4;  // per element of a recurrence's state

bool convolves(const ModuleRow& row) {
  return row.part == ModulePart::kAttentionIn || row.part == ModulePart::kMambaIn;
}

double as_double(int64_t value) { return static_cast<double>(value); }

class Sum {
 public:
  Sum(const RunPlan& plan, const RooflineLoad& load) : plan_(plan), model_(plan.config.model) {
    point_.load = load;
    decodes_ = load.phase == RooflinePhase::kDecode;
    point_.tokens = as_double(load.sequences) * (decodes_ ? 1 : as_double(load.length));
    element_bytes_ = as_double(plan.config.element_bytes());
    // Backward computes gradients of weights and of inputs: two products of the forward's size.
    passes_ = load.phase == RooflinePhase::kTraining ? 3 : 1;
    const HardwareProfile& gpu = plan.profile;
    peak_ = gpu.peak_flops(plan.config.element_dtype());
    slower_ = peak_ / gpu.peak_flops(DType::kFloat32);
  }

  RooflinePoint made() {
    for (const ModuleRow& row : module_table(model_)) {
      if (row.mtp && load().phase != RooflinePhase::kTraining) continue;
      row.multiplies ? add_product(row) : add_lookup_or_norm(row);
    }
    for (int64_t layer = 0; layer < model_.num_layers; ++layer) add_attention(layer);
    for (int64_t depth = 0; depth < model_.mtp_num_layers && passes_ > 1; ++depth)
      add_attention(model_.mtp_layer(depth));
    point_.compute_s = point_.realizable_flops / peak_;
    point_.memory_s = point_.bytes() / plan_.profile.memory_bandwidth;
    return point_;
  }

 private:
  const RooflineLoad& load() const { return point_.load; }

  // The expected number of a layer's experts that receive a token, if all are equally likely.
  double reached(const ModuleRow& row) const {
    if (!row.is_expert()) return as_double(row.per_layer);
    const double experts = as_double(row.per_layer), each = as_double(row.active_per_layer) / experts;
    return experts * (1 - std::pow(1 - each, point_.tokens));
  }

  void scalar(double flops) {
    point_.theoretical_flops += flops;
    point_.realizable_flops += flops * slower_;
  }
  void tensor(double flops, double rows) {
    point_.theoretical_flops += flops;
    point_.tensor_flops += flops;
    // If products are no faster than other operations (slower_ is 1), they run on vector units, which have no tile to
    // fill.
    point_.realizable_flops += slower_ > 1 ? flops / std::min(1.0, rows / kFullRows) : flops;
  }

  void add_product(const ModuleRow& row) {
    const double copies = as_double(row.layers * row.uses), used = reached(row);
    const double uses = point_.tokens * as_double(row.active_per_layer);  // rows in the products of one layer
    const double flops = passes_ * 2 * copies * uses * as_double(row.elements());
    row.is_gate ? scalar(flops) : tensor(flops, uses / used);
    point_.weight_bytes += passes_ * copies * used * as_double(row.elements()) * element_bytes_;
    const double width = as_double(row.shape[0] + row.shape[1]);
    point_.activation_bytes += passes_ * copies * uses * width * element_bytes_;
    const bool up =
        row.part == ModulePart::kMlpUp || row.part == ModulePart::kSharedExperts || row.part == ModulePart::kExperts;
    if (up && row.shape[1] == (row.is_expert() ? model_.expert_width() : model_.hidden_size)) {
      scalar(passes_ * copies * uses * as_double(row.shape[0]) * kActivationFlops);
      point_.activation_bytes += passes_ * copies * uses * as_double(row.shape[0]) * element_bytes_;
    }
  }

  void add_lookup_or_norm(const ModuleRow& row) {
    const double copies = as_double(row.copies() * row.uses);
    if (row.part == ModulePart::kEmbedding) {  // reads one row per token
      point_.weight_bytes += passes_ * point_.tokens * as_double(row.shape.back()) * element_bytes_;
      return;
    }
    // A norm reads and writes the residual stream; a bias is added in its product's kernel. A convolution reads and
    // writes each channel once.
    const double width = as_double(convolves(row) ? row.shape[0] : row.elements());
    const double elements = copies * point_.tokens * width;
    point_.weight_bytes += passes_ * copies * as_double(row.elements()) * element_bytes_;
    scalar(passes_ * elements * (row.parameter.ends_with("bias") ? 1 : kNormFlops));
    if (!row.parameter.ends_with("bias")) point_.activation_bytes += passes_ * 2 * elements * element_bytes_;
  }

  // The multiplications per query, key and head, for scores and for values. Decoding with latent attention multiplies
  // the compressed vectors themselves (core/nn/attention/decode_attention.h).
  int64_t width_of_pair() const {
    const MlaConfig& mla = model_.mla;
    if (!mla.enabled()) return 2 * model_.head_dim();
    if (decodes_) return 2 * mla.kv_lora_rank + mla.qk_pos_emb_head_dim;
    return mla.query_head_dim() + mla.v_head_dim;
  }

  // Scores are not written to memory (flash attention); keys and values are read once per sequence.
  void add_attention(int64_t layer) {
    if (model_.is_linear(layer))
      return add_recurrence(model_.linear.flops_per_token(), kDeltaChunk, model_.linear.memory_elements());
    if (model_.is_mamba(layer)) return add_state_space();
    if (!model_.has_attention(layer)) return;
    const int64_t window = model_.window_of_layer(layer);
    const double length = as_double(load().length), sequences = as_double(load().sequences);
    const double seen = window > 0 ? std::min(as_double(window), length) : length;
    // Without a window, half of all pairs of positions in a sequence are causal.
    const double pairs = decodes_     ? seen
                         : window > 0 ? length * seen - seen * (seen - 1) / 2
                                      : length * (length + 1) / 2;
    const double heads = as_double(model_.num_attention_heads);
    const double widths = as_double(width_of_pair());
    // Rows that share the same keys: the queries of a tile, or in decoding the heads of a group.
    const double rows = !decodes_ ? length : model_.mla.enabled() ? heads : heads / as_double(model_.query_groups());
    const double backward = passes_ > 1 ? 3.5 : 1;  // flash attention's backward recomputes scores: 2.5 forwards
    tensor(backward * 2 * sequences * pairs * heads * widths, rows);
    scalar(backward * sequences * pairs * heads * kSoftmaxFlops);
    const double cached = as_double(kv_cache_elements_per_token(model_)) / as_double(model_.softmax_layer_count());
    const double read = sequences * seen, written = point_.tokens;
    point_.kv_bytes += passes_ * (read + written) * cached * element_bytes_;
  }

  // The state matrices of a sequence are read and written once per chunk, or once per decoded token.
  void add_recurrence(double flops_per_token, int64_t chunk, int64_t elements) {
    const double rows = decodes_ ? 1 : std::min(as_double(load().length), as_double(chunk));
    tensor(passes_ * point_.tokens * flops_per_token, rows);
    point_.kv_bytes += passes_ * 2 * point_.tokens / rows * as_double(elements) * kMemoryBytes;
  }

  void add_state_space() {
    const MambaConfig& m = model_.mamba;
    const int64_t heads = model_.mamba_heads();
    add_recurrence(state_space_flops(heads, m.num_groups, m.head_dim, m.state_dim), kStateSpaceChunk,
                   heads * m.head_dim * m.state_dim);
  }

  const RunPlan& plan_;
  const ModelConfig& model_;
  RooflinePoint point_;
  bool decodes_ = false;
  double element_bytes_ = 4, passes_ = 1, peak_ = 1, slower_ = 1;
};

ExpertSpread spread_of(const RunPlan& plan, double bytes_per_parameter, double cache_bytes, bool with_mtp) {
  ExpertSpread out{.dense_bytes = 0, .expert_bytes = 0, .cache_bytes = cache_bytes, .ranks = {}};
  for (const ModuleRow& row : module_table(plan.config.model)) {
    if (row.mtp && !with_mtp) continue;
    (row.is_expert() ? out.expert_bytes : out.dense_bytes) += as_double(row.parameters()) * bytes_per_parameter;
  }
  const int64_t experts = plan.config.model.moe.enabled() ? plan.config.model.moe.num_experts : 1;
  for (int64_t ranks = 1; ranks <= experts && !out.ranks; ++ranks) {
    if (experts % ranks != 0) continue;
    const double held = out.dense_bytes + out.cache_bytes + out.expert_bytes / as_double(ranks);
    if (held <= as_double(plan.profile.memory_bytes)) out.ranks = ranks;
  }
  return out;
}

}  // namespace

const char* name(RooflinePhase phase) {
  constexpr std::array<const char*, 3> kPhases = {"training", "prefill", "decode"};
  return kPhases[static_cast<size_t>(phase)];
}

RooflinePoint roofline_point(const RunPlan& plan, const RooflineLoad& load) { return Sum(plan, load).made(); }

std::vector<RooflinePoint> decode_sweep(const RunPlan& plan, int64_t most) {
  std::vector<RooflinePoint> points;
  for (int64_t sequences = 1; sequences <= most; sequences *= 2)
    points.push_back(roofline_point(plan, {RooflinePhase::kDecode, sequences, plan.config.model.seq_length}));
  return points;
}

std::vector<RooflinePoint> roofline_points(const RunPlan& plan) {
  const int64_t length = plan.config.model.seq_length;
  std::vector<RooflinePoint> points = {roofline_point(plan, {RooflinePhase::kTraining, plan.micro_batch_size, length}),
                                       roofline_point(plan, {RooflinePhase::kPrefill, 1, length})};
  for (const RooflinePoint& point : decode_sweep(plan)) points.push_back(point);
  return points;
}

double roofline_knee(const RunPlan& plan) {
  return plan.profile.peak_flops(plan.config.element_dtype()) / plan.profile.memory_bandwidth;
}

ExpertSpread smallest_decode_spread(const RunPlan& plan) {
  const auto bytes = static_cast<double>(plan.config.element_bytes());
  const ModelConfig& m = plan.config.model;
  const double cache = as_double(kv_cache_elements_per_token(m) * m.seq_length) * bytes;
  return spread_of(plan, bytes, cache, false);
}

ExpertSpread smallest_training_spread(const RunPlan& plan) {
  const StateTypes types = state_types(plan);
  return spread_of(plan, as_double(types.param_bytes() + types.grad_bytes()) + mean_optimizer_bytes(plan), 0, true);
}

}  // namespace ranklab
