#include "core/checkpoint/hf/refusal.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/rope.h"

namespace ranklab {

void HfRefusal::require(bool legal, const char* setting, const std::string& got, const std::string& want) const {
  RANKLAB_CHECK(legal, ErrorKind::kInvalidArgument, .where = "Hugging Face",
                .what = architecture_ + " cannot express this model: " + setting, .got = got, .want = want,
                .fix = "only models that compute exactly the same there are exported; ckpt convert takes any");
}

void HfRefusal::require_off(const char* setting, bool on) const { require(!on, setting, "on", "off"); }

void HfRefusal::require_number(const char* setting, double got, double want) const {
  require(got == want, setting, strprintf("%.10g", got), strprintf("%.10g", want));
}

void refuse_hf_feature(const std::string& path, const std::string& what, const std::string& got,
                       const std::string& want) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "Hugging Face",
               .what = quote(path) + ": " + what,
               .got = got,
               .want = want,
               .fix = "the file may well be sound: ranklab does not have this feature; import a model without it"});
}

void check_rotary_layers(const HfRefusal& r, const ModelConfig& c) {
  r.require_number("--rotary-percent", c.rotary_percent, 1);
  check_partly_rotary_layers(r, c);
}

void check_llama_layers(const HfRefusal& r, const ModelConfig& c) {
  check_rotary_layers(r, c);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  r.require_off("--qk-layernorm", c.qk_norm);
}

void check_norms_before(const HfRefusal& r, const ModelConfig& c) {
  r.require(c.norm_placement == NormPlacement::kBefore, "--norm-placement", c.has_norms_before() ? "both" : "behind",
            "before");
  r.require(!c.qk_norm || c.qk_norm_width == QkNormWidth::kHead, "--qk-layernorm-width", "all-heads", "head");
}

void check_partly_rotary_layers(const HfRefusal& r, const ModelConfig& c) {
  check_norms_before(r, c);
  check_swiglu_layers(r, c);
}

void check_plain_rotary_positions(const HfRefusal& r, const ModelConfig& c) {
  r.require(c.rope_scaling.kind != RopeScalingKind::kLongRope || c.hf_architecture == "Phi3ForCausalLM",
            "--rope-scaling-type", "longrope", "another, or --hf-architecture Phi3ForCausalLM");
  r.require(c.position == PositionKind::kRope, "--position-embedding-type", name(c.position), "rope");
  check_hf_rope(r, c);
}

void check_rotary_positions(const HfRefusal& r, const ModelConfig& c) {
  check_plain_rotary_positions(r, c);
  r.require_number("--mtp-num-layers without latent attention", static_cast<double>(c.mtp_num_layers), 0);
}

void check_swiglu(const HfRefusal& r, const ModelConfig& c) {
  check_rotary_positions(r, c);
  check_sequential(r, c);
  check_no_gemma(r, c);
  r.require(c.activation == ActivationKind::kSwiGlu, "--activation", name(c.activation), "swiglu");
}

void check_swiglu_layers(const HfRefusal& r, const ModelConfig& c) {
  check_swiglu(r, c);
  r.require(!c.has_local_rope(), "--rotary-base-local", strprintf("%g", c.local_rope_theta), "0: as in other layers");
}

void check_sequential(const HfRefusal& r, const ModelConfig& c) {
  r.require(c.residual_form == ResidualForm::kSequential, "--residual-form",
            c.residual_form == ResidualForm::kParallel ? "parallel" : "parallel-one-norm", "sequential");
  r.require_off("--add-head-bias", c.add_head_bias);
}

void check_no_gemma(const HfRefusal& r, const ModelConfig& c) {
  r.require_off("--apply-layernorm-1p", c.norm_1p);
  check_plain_scales(r, c);
}

void check_plain_scales(const HfRefusal& r, const ModelConfig& c) {
  r.require_off("--scale-embeddings", c.scale_embeddings);
  r.require_number("--query-pre-attn-scalar", c.query_pre_attn_scalar, 0);
  r.require_number("--attn-logit-softcapping", c.attn_logit_softcapping, 0);
  r.require_number("--final-logit-softcapping", c.final_logit_softcapping, 0);
}

void check_window_of_all_layers(const HfRefusal& r, const ModelConfig& c) {
  r.require(c.window_size == 0 || c.window_layers.all(), "--window-attn-skip-freq", layer_pattern_text(c.window_layers),
            "0: a window in all layers");
}

void check_routing(const HfRefusal& r, const MoeConfig& m) {
  r.require_number("--moe-expert-capacity-factor", m.capacity_factor, 0);
  r.require_off("--moe-router-force-load-balancing", m.force_balance);
}

void check_softmax_experts(const HfRefusal& r, const ModelConfig& c) {
  r.require_off("--add-bias-linear", c.add_bias);
  check_plain_softmax_routing(r, c.moe);
}

void check_routed_experts_alone(const HfRefusal& r, const MoeConfig& m) {
  r.require(m.normalize_topk, "--moe-router-norm-topk", "off", "on");
  r.require(m.normalizes(), "--moe-router-norm-top1 with --moe-router-topk 1", "off", "on");
  r.require_number("--moe-shared-expert-intermediate-size", static_cast<double>(m.shared_ffn_hidden_size), 0);
  r.require_number("--first-k-dense-replace", static_cast<double>(m.first_dense_layers), 0);
  r.require(m.layers.all(), "--moe-layer-freq", layer_pattern_text(m.layers), "1: experts in all layers");
}

void check_plain_softmax_routing(const HfRefusal& r, const MoeConfig& m) {
  r.require(m.score == RouterScore::kSoftmax, "--moe-router-score-function", "sigmoid", "softmax");
  r.require_number("--moe-router-topk-scaling-factor", m.scaling_factor, 1);
  r.require(!m.limits_groups(), "--moe-router-group-topk", std::to_string(m.group_topk),
            std::to_string(m.num_groups) + ": every group");
  r.require_off("--moe-router-enable-expert-bias", m.expert_bias);
  check_routing(r, m);
}

}  // namespace ranklab
