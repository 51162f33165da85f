#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/base/size_error.h"
#include "core/base/text.h"
#include "core/spec/model_config.h"
#include "core/spec/model_rules.h"

namespace ranklab {
namespace {

constexpr int64_t kWidth = 1 << 20;

// The limits are far beyond any model, and keep all products of sizes within 64 bits.
void check_size(const char* flag, int64_t value, int64_t largest) {
  RANKLAB_CHECK(value > 0 && value <= largest, ErrorKind::kInvalidArgument, .where = "model",
                .what = strprintf("%s is out of range", flag), .got = std::to_string(value),
                .want = "1 to " + std::to_string(largest),
                .fix = "pass such a value, or leave it out for the preset's");
}

void check_number(const char* flag, double value, bool legal, const char* want) {
  RANKLAB_CHECK(legal && std::isfinite(value), ErrorKind::kInvalidArgument, .where = "model",
                .what = strprintf("%s is out of range", flag), .got = strprintf("%g", value), .want = want,
                .fix = "pass such a value, or leave it out for the preset's");
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> result;
  for (int64_t d = 1; d <= n && d <= 1024; ++d) {
    if (n % d == 0) result.push_back(d);
  }
  return result;
}

// `value` (named by its flag) must be a multiple of `divisor`.
void check_multiple(const char* flag, int64_t value, const char* divisor_flag, int64_t divisor) {
  if (value % divisor == 0) return;
  throw SizeError({.where = "model",
                   .what = strprintf("%s is not divisible by %s", flag, divisor_flag),
                   .got = strprintf("%s %lld, %s %lld", flag, static_cast<long long>(value), divisor_flag,
                                    static_cast<long long>(divisor)),
                   .want = strprintf("%s in {%s}", divisor_flag, join(divisors(value), ", ").c_str()),
                   .fix = strprintf("use %s %s", flag, nearest_multiples(value, divisor).c_str())});
}

void check_pairs(const char* flag, int64_t value, const std::string& from = "") {
  RANKLAB_CHECK(value % 2 == 0, ErrorKind::kInvalidArgument, .where = "model",
                .what = strprintf("a rotary pair has two elements, and %s is odd", flag),
                .got = strprintf("%s %lld%s", flag, static_cast<long long>(value), from.c_str()),
                .want = "an even number", .fix = strprintf("use %s %s", flag, nearest_multiples(value, 2).c_str()));
}

void check_head_width(const ModelConfig& c) {
  if (c.kv_channels == 0) {
    check_multiple("--hidden-size", c.hidden_size, "--num-attention-heads", c.num_attention_heads);
  } else {
    check_size("--kv-channels", c.kv_channels, kWidth);
    check_size("--num-attention-heads x --kv-channels", c.query_width(), kWidth);
  }
  if (c.position != PositionKind::kRope) return;
  const std::string derived =
      strprintf(" (--hidden-size %lld / --num-attention-heads %lld)", static_cast<long long>(c.hidden_size),
                static_cast<long long>(c.num_attention_heads));
  check_pairs("--kv-channels", c.head_dim(), c.kv_channels == 0 ? derived : "");
  check_number("--rotary-percent", c.rotary_percent, c.rotary_percent > 0 && c.rotary_percent <= 1,
               "above 0, at most 1");
  RANKLAB_CHECK(c.rotary_width() > 0 && c.rotary_width() % 2 == 0, ErrorKind::kInvalidArgument, .where = "model",
                .what = "--rotary-percent of a head is not a whole number of pairs",
                .got = strprintf("%lld of %lld elements", static_cast<long long>(c.rotary_width()),
                                 static_cast<long long>(c.head_dim())),
                .want = "an even number above 0",
                .fix = "use 1, or a share of the head that is a whole number of pairs");
}

// A rank must have whole key/value heads, or share one head with its neighbours.
void check_key_value_heads(const ModelConfig& c, int tp) {
  if (c.query_groups() >= tp) return check_multiple("--num-query-groups", c.query_groups(), "--tp", tp);
  check_multiple("--tp", tp, "--num-query-groups", c.query_groups());
  check_multiple(c.kv_channels > 0 ? "--kv-channels" : "--hidden-size / --num-attention-heads", c.head_dim(),
                 "--tp / --num-query-groups", c.kv_copies(tp));
}

void check_scores(const ModelConfig& c) {
  check_number("--window-size", static_cast<double>(c.window_size), c.window_size >= 0 && c.window_size <= 1 << 24,
               "0 (no window) to 16777216");
  check_number("--window-attn-skip-freq", static_cast<double>(c.window_layers.skip_freq),
               c.window_layers.skip_freq != 1 && c.window_layers.skip_freq >= 0,
               "0 (all layers have the window) or 2 and more");
  check_number("--attention-chunk-size", static_cast<double>(c.attention_chunk),
               c.attention_chunk >= 0 && c.attention_chunk <= 1 << 24, "0 (no chunks) to 16777216");
  check_number("--query-temperature-scale", c.query_temperature_scale, c.query_temperature_scale >= 0,
               "0 (not scaled) or more");
  check_size("--query-temperature-floor", c.query_temperature_floor, 1 << 24);
  check_number("--no-rope-freq", static_cast<double>(c.rope_layers.skip_freq), c.rope_layers.skip_freq >= 0,
               "0 (all layers have rotary positions) or more");
  check_number("--rotary-base-local", c.local_rope_theta, c.local_rope_theta >= 0, "0 (as in other layers) or more");
  check_number("--query-pre-attn-scalar", c.query_pre_attn_scalar, c.query_pre_attn_scalar >= 0,
               "0 (the width of a head) or more");
  check_number("--attn-logit-softcapping", c.attn_logit_softcapping, c.attn_logit_softcapping >= 0,
               "0 (not bounded) or more");
}

void check_attention(const ModelConfig& c, int tp) {
  check_head_width(c);
  check_size("--num-query-groups", c.query_groups(), kWidth);
  check_multiple("--num-attention-heads", c.num_attention_heads, "--num-query-groups", c.query_groups());
  check_key_value_heads(c, tp);
  check_number("--q-lora-rank", static_cast<double>(c.mla.q_lora_rank), c.mla.q_lora_rank == 0,
               "0 without --kv-lora-rank");
}

void check_latent_attention(const ModelConfig& c) {
  const MlaConfig& m = c.mla;
  check_size("--kv-lora-rank", m.kv_lora_rank, kWidth);
  if (m.q_lora_rank != 0) check_size("--q-lora-rank", m.q_lora_rank, kWidth);
  check_size("--qk-head-dim", m.qk_head_dim, kWidth);
  check_size("--qk-pos-emb-head-dim", m.qk_pos_emb_head_dim, kWidth);
  check_size("--v-head-dim", m.v_head_dim, kWidth);
  check_pairs("--qk-pos-emb-head-dim", m.qk_pos_emb_head_dim);
}

// A tp rank has whole key heads, together with the value heads that use them.
void check_linear_attention(const ModelConfig& c, int tp) {
  const LinearAttentionConfig& l = c.linear;
  check_size("--linear-num-key-heads", l.num_key_heads, kWidth);
  check_size("--linear-num-value-heads", l.num_value_heads, kWidth);
  check_size("--linear-key-head-dim", l.key_head_dim, kWidth);
  check_size("--linear-value-head-dim", l.value_head_dim, kWidth);
  check_size("--linear-num-key-heads x --linear-key-head-dim", l.key_width(), kWidth);
  check_size("--linear-num-value-heads x --linear-value-head-dim", l.value_width(), kWidth);
  check_size("--linear-conv-kernel-dim", l.conv_kernel, 64);
  check_multiple("--linear-num-value-heads", l.num_value_heads, "--linear-num-key-heads", l.num_key_heads);
  check_multiple("--linear-num-key-heads", l.num_key_heads, "--tp", tp);
  RANKLAB_CHECK(c.linear_layer_count() > 0, ErrorKind::kInvalidArgument, .where = "model",
                .what = "no layer has the linear attention",
                .got = "--linear-attention-freq " + layer_pattern_text(l.layers),
                .want = "a pattern with a 1 for some layer", .fix = "change it, or leave out --linear-attention-type");
}

// A tp rank has whole groups, together with their heads.
void check_mamba(const ModelConfig& c, int tp) {
  const MambaConfig& m = c.mamba;
  check_size("--mamba-head-dim", m.head_dim, kWidth);
  check_size("--mamba-state-dim", m.state_dim, kWidth);
  check_size("--mamba-num-groups", m.num_groups, kWidth);
  if (m.num_heads == 0) check_multiple("2 x --hidden-size", 2 * c.hidden_size, "--mamba-head-dim", m.head_dim);
  check_size("--mamba-num-heads", c.mamba_heads(), kWidth);
  check_size("--mamba-num-heads x --mamba-head-dim", c.mamba_width(), kWidth);
  check_size("--mamba-num-groups x --mamba-state-dim", m.num_groups * m.state_dim, kWidth);
  check_size("--mamba-conv-kernel-dim", m.conv_kernel, 64);
  check_number("--mamba-min-step", m.min_step, m.min_step >= 0, "0 (none) or more");
  check_multiple(m.num_heads == 0 ? "--mamba-num-heads (2 x --hidden-size / --mamba-head-dim)" : "--mamba-num-heads",
                 c.mamba_heads(), "--mamba-num-groups", m.num_groups);
  check_multiple("--mamba-num-groups", m.num_groups, "--tp", tp);
}

void check_hybrid(const ModelConfig& c, int tp) {
  const auto letters = static_cast<int64_t>(c.hybrid_pattern.size());
  RANKLAB_CHECK(c.hybrid_pattern.find_first_not_of(kMixerLetters) == std::string::npos, ErrorKind::kInvalidArgument,
                .where = "model", .what = "--hybrid-layer-pattern has a letter that is not a mixer",
                .got = c.hybrid_pattern, .want = "M, *, - and E", .fix = "correct it");
  RANKLAB_CHECK(c.num_layers % letters == 0, ErrorKind::kInvalidArgument, .where = "model",
                .what = "--hybrid-layer-pattern has a letter for each layer, or for each of a part that repeats",
                .got = strprintf("%lld letters (%s), --num-layers %lld", static_cast<long long>(letters),
                                 c.hybrid_pattern.c_str(), static_cast<long long>(c.num_layers)),
                .want = strprintf("--num-layers %lld, or a multiple of it", static_cast<long long>(letters)),
                .fix = "change one of them");
  const bool experts = c.pattern_has(LayerMixer::kExperts);
  RANKLAB_CHECK(
      experts == c.moe.enabled(), ErrorKind::kInvalidArgument, .where = "model",
      .what = experts ? "--hybrid-layer-pattern has layers with experts, and the model has no experts"
                      : "--hybrid-layer-pattern has no layer with the experts",
      .got = strprintf("%s, --num-experts %lld", c.hybrid_pattern.c_str(), static_cast<long long>(c.moe.num_experts)),
      .want = experts ? "--num-experts 1 or more" : "an E for some layer",
      .fix = experts ? "add it, or write - instead of E" : "change it, or leave out --num-experts");
  if (c.mamba_layer_count() > 0) check_mamba(c, tp);
}

void check_yarn(const ModelConfig& c) {
  const YarnConfig& y = c.yarn;
  check_number("--rotary-scaling-factor", y.scaling_factor, y.scaling_factor >= 1, "1 or more");
  check_size("--original-max-position-embeddings", y.original_seq_length, 1 << 24);
  check_number("--beta-slow", y.beta_slow, y.beta_slow > 0 && y.beta_slow <= y.beta_fast,
               "0 < beta-slow <= --beta-fast");
  check_number("--beta-fast", y.beta_fast, y.beta_fast > 0, "--beta-slow or more");
  check_number("--rotary-base", c.rope_theta, !y.enabled() || c.rope_theta > 1, "more than 1 with YaRN");
  check_number("--mscale", y.mscale, y.mscale >= 0, "0 or more");
  check_number("--mscale-all-dim", y.mscale_all_dim, y.mscale_all_dim >= 0, "0 or more");
  check_number("--yarn-attention-factor", y.attention_factor, y.attention_factor >= 0, "0 (from --mscale) or more");
}

void check_long_rope(const ModelConfig& c) {
  const RopeScaling& s = c.rope_scaling;
  const auto check = [&](const char* flag, const std::vector<double>& factors) {
    const int64_t pairs = c.rotary_width() / 2;
    RANKLAB_CHECK(static_cast<int64_t>(factors.size()) == pairs, ErrorKind::kInvalidArgument, .where = "model",
                  .what = strprintf("--rope-scaling-type longrope needs a number for each rotated pair: %s", flag),
                  .got = strprintf("%zu numbers", factors.size()), .want = std::to_string(pairs),
                  .fix = strprintf("give them as %s 1,1.05,...", flag));
    for (const double factor : factors) check_number(flag, factor, factor > 0, "numbers above 0");
  };
  check("--rope-short-factors", s.short_factors);
  check("--rope-long-factors", s.long_factors);
  check_number("--rope-attention-factor", s.attention_factor, s.attention_factor >= 0,
               "0 (from --rope-scaling-factor) or more");
  check_number("--rope-scaling-original-length", static_cast<double>(s.original_seq_length), s.original_seq_length > 1,
               "2 or more with longrope");
}

void check_rope_scaling(const ModelConfig& c) {
  const RopeScaling& s = c.rope_scaling;
  if (!s.enabled()) return;
  check_number("--rope-scaling-factor", s.factor, s.factor >= 1, "1 or more");
  check_size("--rope-scaling-original-length", s.original_seq_length, 1 << 24);
  check_number("--rope-low-freq-factor", s.low_freq_factor,
               s.low_freq_factor > 0 && s.low_freq_factor <= s.high_freq_factor,
               "0 < rope-low-freq-factor <= --rope-high-freq-factor");
  check_number("--rope-high-freq-factor", s.high_freq_factor, s.high_freq_factor > 0, "--rope-low-freq-factor or more");
  if (s.kind == RopeScalingKind::kLongRope) check_long_rope(c);
  constexpr int64_t kTwoPairs = 4;
  RANKLAB_CHECK(s.kind != RopeScalingKind::kDynamic || c.rotary_width() >= kTwoPairs, ErrorKind::kInvalidArgument,
                .where = "model", .what = "--rope-scaling-type dynamic stretches the pairs after the first",
                .got = strprintf("heads with %lld rotated elements", static_cast<long long>(c.rotary_width())),
                .want = "4 or more", .fix = "use wider heads (--kv-channels, --qk-pos-emb-head-dim), or another type");
}

// Checks that `value` of `flag` is 1 to `most`, the value of `most_flag`.
void check_at_most(const char* flag, int64_t value, const char* most_flag, int64_t most) {
  RANKLAB_CHECK(value >= 1 && value <= most, ErrorKind::kInvalidArgument, .where = "model",
                .what = strprintf("%s is out of range", flag), .got = std::to_string(value),
                .want = strprintf("1 to %lld (%s)", static_cast<long long>(most), most_flag),
                .fix = "lower it, or raise what bounds it");
}

void check_experts(const ModelConfig& c, int tp) {
  const MoeConfig& m = c.moe;
  check_size("--num-experts", m.num_experts, 1 << 16);
  check_at_most("--num-layers x --num-experts", c.num_layers * m.num_experts, "of all layers", 1 << 22);
  check_at_most("--moe-router-topk", m.topk, "--num-experts", m.num_experts);
  check_size("--moe-ffn-hidden-size", c.expert_ffn(), kWidth);
  check_number("--moe-shared-expert-intermediate-size", static_cast<double>(m.shared_ffn_hidden_size),
               m.shared_ffn_hidden_size >= 0 && m.shared_ffn_hidden_size <= kWidth, "0 or more");
  check_multiple("--moe-shared-expert-intermediate-size", m.shared_ffn_hidden_size, "--tp", tp);
  check_number("--moe-latent-size", static_cast<double>(m.latent_size), m.latent_size >= 0 && m.latent_size <= kWidth,
               "0 (experts read the hidden state itself) or more");
  check_number("--first-k-dense-replace", static_cast<double>(m.first_dense_layers),
               m.first_dense_layers >= 0 && m.first_dense_layers <= c.num_layers, "0 to --num-layers");
  RANKLAB_CHECK(!m.weigh_inputs || m.topk == 1, ErrorKind::kInvalidArgument, .where = "model",
                .what =
                    "a token travels to all of its experts as one row, and --moe-apply-probs-on-input multiplies it "
                    "by one weight",
                .got = "--moe-router-topk " + std::to_string(m.topk), .want = "--moe-router-topk 1",
                .fix = "use that, or leave out --moe-apply-probs-on-input: weights then multiply outputs");
  RANKLAB_CHECK(m.first_dense_layers == c.num_layers || c.moe_layer_count() > 0, ErrorKind::kInvalidArgument,
                .where = "model", .what = "no layer has the experts",
                .got = "--moe-layer-freq " + layer_pattern_text(m.layers), .want = "a pattern with a 1 for some layer",
                .fix = "change it, or leave out --num-experts");
  check_at_most("--moe-router-num-groups", m.num_groups, "--num-experts", m.num_experts);
  check_multiple("--num-experts", m.num_experts, "--moe-router-num-groups", m.num_groups);
  check_at_most("--moe-router-group-topk", m.group_topk, "--moe-router-num-groups", m.num_groups);
  check_at_most("--moe-router-topk", m.topk, "experts in --moe-router-group-topk groups",
                m.group_topk * (m.num_experts / m.num_groups));
  check_number("--moe-router-topk-scaling-factor", m.scaling_factor, m.scaling_factor > 0, "more than 0");
  check_number("--moe-aux-loss-coeff", m.aux_loss_coeff, m.aux_loss_coeff >= 0, "0 or more");
  check_number("--moe-z-loss-coeff", m.z_loss_coeff, m.z_loss_coeff >= 0, "0 or more");
  check_number("--moe-router-bias-update-rate", m.bias_update_rate, m.bias_update_rate >= 0, "0 or more");
  check_number("--moe-expert-capacity-factor", m.capacity_factor, m.capacity_factor >= 0, "0 (none dropped) or more");
  RANKLAB_CHECK(m.balancing == LoadBalancing::kNone ? m.aux_loss_coeff == 0 : m.aux_loss_coeff > 0,
                ErrorKind::kInvalidArgument, .where = "model",
                .what = "--moe-router-load-balancing-type and --moe-aux-loss-coeff contradict each other",
                .got = strprintf("an auxiliary loss of type %s with weight %g",
                                 m.balancing == LoadBalancing::kNone ? "none" : "other than none", m.aux_loss_coeff),
                .want = "a type and a weight above 0, or neither", .fix = "give both, or leave both out");
}

void check_prediction(const ModelConfig& c) {
  check_number("--mtp-num-layers", static_cast<double>(c.mtp_num_layers),
               c.mtp_num_layers >= 0 && c.mtp_num_layers < c.seq_length && c.mtp_num_layers <= 64,
               "0 to 64, and below --seq-length");
  check_number("--mtp-loss-scaling-factor", c.mtp_loss_weight, c.mtp_loss_weight >= 0, "0 or more");
}

}  // namespace

void validate(const ModelConfig& c, int tp, bool sequence_parallel) {
  check_size("--num-layers", c.num_layers, kMostLayers);
  check_size("--hidden-size", c.hidden_size, kWidth);
  check_size("--ffn-hidden-size", c.ffn_hidden_size, kWidth);
  check_size("--num-attention-heads", c.num_attention_heads, kWidth);
  check_size("--vocab-size", c.vocab_size, 1 << 24);
  check_size("--seq-length", c.seq_length, 1 << 24);
  check_size("--tp", tp, kWidth);
  check_multiple("--num-attention-heads", c.num_attention_heads, "--tp", tp);
  check_model_rules(c);
  check_scores(c);
  if (c.mla.enabled()) {
    check_latent_attention(c);
  } else {
    check_attention(c, tp);
  }
  if (c.position == PositionKind::kRope) {
    check_yarn(c);
    check_rope_scaling(c);
  }
  if (c.linear.enabled()) check_linear_attention(c, tp);
  if (c.is_hybrid()) check_hybrid(c, tp);
  if (c.moe.enabled()) check_experts(c, tp);
  check_prediction(c);
  check_multiple("--ffn-hidden-size", c.ffn_hidden_size, "--tp", tp);
  if (sequence_parallel) check_multiple("--seq-length", c.seq_length, "--tp", tp);
  check_number("--hidden-dropout", c.dropout, c.dropout >= 0 && c.dropout < 1, "0 <= value < 1");
  check_number("--attention-dropout", c.attention_dropout, c.attention_dropout >= 0 && c.attention_dropout < 1,
               "0 <= value < 1");
  check_number("--rotary-base", c.rope_theta, c.rope_theta > 0, "more than 0");
  check_number("--init-method-std", c.init_std, c.init_std >= 0, "0 or more");
  check_number("--final-logit-softcapping", c.final_logit_softcapping, c.final_logit_softcapping >= 0,
               "0 (not bounded) or more");
  check_number("--embedding-multiplier", c.embedding_multiplier, c.embedding_multiplier > 0, "more than 0");
  check_number("--residual-multiplier", c.residual_multiplier, c.residual_multiplier > 0, "more than 0");
  check_number("--logit-scale", c.logit_scale, c.logit_scale > 0, "more than 0");
  check_number("--norm-epsilon", c.norm_epsilon, c.norm_epsilon > 0, "more than 0");
}

void validate_experts(const ModelConfig& c, const ExpertSplit& split) {
  const bool splits = split.ep > 1 || split.etp > 1;
  RANKLAB_CHECK(c.moe.enabled() || !splits, ErrorKind::kInvalidArgument, .where = "model",
                .what = "--ep and --etp shard experts, and this model has none",
                .got = strprintf("--ep %d, --etp %d, --num-experts 0", split.ep, split.etp), .want = "--ep 1 --etp 1",
                .fix = "use a preset with experts (deepseek_v3_tiny), or --num-experts");
  if (!c.moe.enabled()) return;
  check_multiple("--num-experts", c.moe.num_experts, "--ep", split.ep);
  check_multiple("--moe-ffn-hidden-size", c.expert_ffn(), "--etp", split.etp);
  RANKLAB_CHECK(split.tp == 1 || split.sequence_parallel, ErrorKind::kInvalidArgument, .where = "model",
                .what =
                    "experts with --tp need --sequence-parallel: ranks that see the same tokens would each train "
                    "the experts on them",
                .got = strprintf("--tp %d, --no-sequence-parallel", split.tp), .want = "--sequence-parallel, or --tp 1",
                .fix = "leave out --no-sequence-parallel");
}

}  // namespace ranklab
