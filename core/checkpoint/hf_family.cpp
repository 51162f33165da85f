#include "core/checkpoint/hf_family.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

using Rules = std::vector<HfRule>;

const Rules kModelRules = {
    {"embedding", {"model.embed_tokens"}}, {"final_norm", {"model.norm"}}, {"head", {"lm_head"}}};
const Rules kNorms = {{"attention_norm", {"input_layernorm"}}, {"mlp_norm", {"post_attention_layernorm"}}};
const Rules kAttention = {{"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
                          {"attention.out", {"self_attn.o_proj"}}};
const Rules kMlp = {{"mlp.gate_up", {"mlp.gate_proj", "mlp.up_proj"}}, {"mlp.down", {"mlp.down_proj"}}};
const Rules kMixtralExperts = {
    {"mlp.router", {"block_sparse_moe.gate"}},
    {"mlp.experts.*.gate_up", {"block_sparse_moe.experts.*.w1", "block_sparse_moe.experts.*.w3"}},
    {"mlp.experts.*.down", {"block_sparse_moe.experts.*.w2"}}};
const Rules kLatentAttention = {{"attention.q_down", {"self_attn.q_a_proj"}},
                                {"attention.q_norm", {"self_attn.q_a_layernorm"}},
                                {"attention.q_up", {"self_attn.q_b_proj"}, HfLayout::kNeighboursPerHead},
                                {"attention.q", {"self_attn.q_proj"}, HfLayout::kNeighboursPerHead},
                                {"attention.kv_down", {"self_attn.kv_a_proj_with_mqa"}, HfLayout::kNeighboursAtEnd},
                                {"attention.kv_norm", {"self_attn.kv_a_layernorm"}},
                                {"attention.kv_up", {"self_attn.kv_b_proj"}},
                                {"attention.out", {"self_attn.o_proj"}}};
const Rules kDeepseekExperts = {{"mlp.router", {"mlp.gate"}},
                                {"mlp.shared.gate_up", {"mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"}},
                                {"mlp.shared.down", {"mlp.shared_experts.down_proj"}},
                                {"mlp.experts.*.gate_up", {"mlp.experts.*.gate_proj", "mlp.experts.*.up_proj"}},
                                {"mlp.experts.*.down", {"mlp.experts.*.down_proj"}}};
// Of a layer that predicts one token further.
const Rules kFurtherLayer = {
    {"enorm", {"enorm"}}, {"hnorm", {"hnorm"}}, {"proj", {"eh_proj"}}, {"norm", {"shared_head.norm"}}};
const Rules kGpt2Model = {{"embedding", {"transformer.wte"}},
                          {"position", {"transformer.wpe"}},
                          {"final_norm", {"transformer.ln_f"}},
                          {"head", {"lm_head"}}};
const Rules kGpt2Layer = {{"attention_norm", {"ln_1"}},
                          {"attention.qkv", {"attn.c_attn"}, HfLayout::kTransposed},
                          {"attention.out", {"attn.c_proj"}, HfLayout::kTransposed},
                          {"mlp_norm", {"ln_2"}},
                          {"mlp.up", {"mlp.c_fc"}, HfLayout::kTransposed},
                          {"mlp.down", {"mlp.c_proj"}, HfLayout::kTransposed}};

Rules together(std::initializer_list<Rules> tables) {
  Rules all;
  for (const Rules& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

enum Family : size_t { kLlama, kGpt2, kMixtral, kDeepseekV3 };

[[noreturn]] void refuse(const std::string& architecture, const std::string& setting, const std::string& got,
                         const std::string& want) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "Hugging Face",
               .what = architecture + " cannot express this model: " + setting,
               .got = got,
               .want = want,
               .fix = "only models that compute exactly the same there are exported; ckpt convert takes any"});
}

// Refuses in the name of one architecture.
class Refusal {
 public:
  explicit Refusal(Family family) : architecture_(hf_families()[family].architecture) {}
  void require(bool legal, const char* setting, const std::string& got, const std::string& want) const {
    if (!legal) refuse(architecture_, setting, got, want);
  }

 private:
  const std::string& architecture_;
};

std::string number(int64_t value) { return std::to_string(value); }
std::string number(double value) { return strprintf("%g", value); }

void check_router(const Refusal& r, const MoeConfig& m) {
  r.require(m.capacity_factor == 0, "--moe-expert-capacity-factor", number(m.capacity_factor),
            "0: no token is dropped");
  r.require(!m.force_balance, "--moe-router-force-load-balancing", "on", "off");
}

void check_mixtral(const ModelConfig& c) {
  const Refusal r(kMixtral);
  const MoeConfig& m = c.moe;
  r.require(m.score == RouterScore::kSoftmax, "--moe-router-score-function without latent attention", "sigmoid",
            "softmax");
  r.require(m.normalize_topk, "--moe-router-norm-topk", "off", "on");
  r.require(m.topk > 1, "--moe-router-topk", number(m.topk), "2 or more: there, the weight of a single expert is 1");
  r.require(m.scaling_factor == 1.0, "--moe-router-topk-scaling-factor", number(m.scaling_factor), "1");
  r.require(m.group_topk == m.num_groups, "--moe-router-group-topk", number(m.group_topk),
            number(m.num_groups) + ": every group");
  r.require(!m.expert_bias, "--moe-router-enable-expert-bias", "on", "off");
  r.require(m.shared_ffn_hidden_size == 0, "--moe-shared-expert-intermediate-size", number(m.shared_ffn_hidden_size),
            "0");
  r.require(m.first_dense_layers == 0, "--first-k-dense-replace", number(m.first_dense_layers), "0");
  check_router(r, m);
}

void check_yarn(const Refusal& r, const YarnConfig& y) {
  if (!y.enabled()) return;
  const double length = y.scaling_factor * static_cast<double>(y.original_seq_length);
  r.require(length < 0x1p52 && length == std::floor(length),
            "--rotary-scaling-factor x --original-max-position-embeddings", number(length),
            "a whole number: it is max_position_embeddings");
  const bool both = y.mscale != 0 && y.mscale_all_dim != 0, plain = y.mscale == 1 && y.mscale_all_dim == 0;
  r.require(both || plain, "--mscale and --mscale-all-dim", number(y.mscale) + " and " + number(y.mscale_all_dim),
            "both above 0, or 1 and 0");
}

void check_deepseek(const ModelConfig& c) {
  constexpr double kInnerEpsilon = 1e-6;
  const Refusal r(kDeepseekV3);
  r.require(c.norm_epsilon == kInnerEpsilon, "--norm-epsilon", number(c.norm_epsilon),
            "1e-6: that of the norms inside latent attention cannot be set there");
  check_yarn(r, c.yarn);
  if (!c.moe.enabled()) return;
  const MoeConfig& m = c.moe;
  r.require(m.score == RouterScore::kSigmoid, "--moe-router-score-function", "softmax", "sigmoid");
  r.require(m.num_experts / m.num_groups >= 2, "--moe-router-num-groups", number(m.num_groups),
            "groups of two experts or more");
  r.require(m.shared_ffn_hidden_size > 0 && m.shared_ffn_hidden_size % c.expert_ffn() == 0,
            "--moe-shared-expert-intermediate-size", number(m.shared_ffn_hidden_size),
            "a multiple of --moe-ffn-hidden-size " + number(c.expert_ffn()));
  check_router(r, m);
}

}  // namespace

const std::vector<HfFamily>& hf_families() {
  static const std::vector<HfFamily> kFamilies = {
      {"LlamaForCausalLM", "llama", "model.layers.", kModelRules, together({kNorms, kAttention, kMlp})},
      {"GPT2LMHeadModel", "gpt2", "transformer.h.", kGpt2Model, kGpt2Layer},
      {"MixtralForCausalLM", "mixtral", "model.layers.", kModelRules, together({kNorms, kAttention, kMixtralExperts})},
      {"DeepseekV3ForCausalLM", "deepseek_v3", "model.layers.", kModelRules,
       together({kNorms, kLatentAttention, kMlp, kDeepseekExperts, kFurtherLayer})},
  };
  return kFamilies;
}

const HfFamily& hf_family_named(const std::string& architecture, const std::string& path) {
  std::vector<std::string> names;
  for (const HfFamily& family : hf_families()) {
    if (family.architecture == architecture) return family;
    names.push_back(family.architecture);
  }
  refuse_checkpoint_file(path, "ranklab has no such model", "architecture " + quote(printable(architecture)),
                         "one of " + join(names, ", "));
}

const HfFamily& hf_family(const ModelConfig& c) {
  if (c.mla.enabled()) {
    check_deepseek(c);
    return hf_families()[kDeepseekV3];
  }
  const Family family = c.norm == NormKind::kLayerNorm ? kGpt2 : (c.moe.enabled() ? kMixtral : kLlama);
  const Refusal r(family);
  const bool gpt2 = family == kGpt2;
  r.require((c.position == PositionKind::kLearned) == gpt2, "--position-embedding-type",
            gpt2 ? "rope" : "learned_absolute",
            gpt2 ? "learned_absolute with --normalization LayerNorm" : "rope with --normalization RMSNorm");
  r.require((c.activation == ActivationKind::kGelu) == gpt2, "--activation", gpt2 ? "swiglu" : "gelu",
            gpt2 ? "gelu with --normalization LayerNorm" : "swiglu with --normalization RMSNorm");
  r.require(!gpt2 || c.add_bias, "--add-bias-linear", "off", "on");
  r.require(!gpt2 || c.query_groups() == c.num_attention_heads, "--num-query-groups", number(c.query_groups()),
            "0: as many as heads");
  r.require(c.mtp_num_layers == 0, "--mtp-num-layers without latent attention", number(c.mtp_num_layers), "0");
  if (family == kMixtral) check_mixtral(c);
  return hf_families()[family];
}

}  // namespace ranklab
