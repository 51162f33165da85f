#include "core/checkpoint/hf_keys.h"

#include <map>

namespace ranklab {
namespace {

using Keys = std::vector<HfKey>;

// Whether sums and products of a few such sizes stay inside 64 bits. They are checked for good when all are read.
bool is_sane(int64_t size) { return size >= 0 && size < int64_t{1} << 40; }

void append(Keys& keys, Keys more) { keys.insert(keys.end(), more.begin(), more.end()); }

HfKey key_value_heads() {
  const auto get = [](const ModelConfig& c) { return HfJson(c.query_groups()); };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    const int64_t groups = value.is_null() ? c.num_attention_heads : value.integer();
    c.num_query_groups = groups == c.num_attention_heads ? 0 : groups;
  };
  return {"num_key_value_heads", get, set};
}

HfKey head_dim() {
  const auto get = [](const ModelConfig& c) { return HfJson(c.head_dim()); };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    if (c.num_attention_heads <= 0 || c.hidden_size % c.num_attention_heads != 0 || value.integer() != c.head_dim())
      value.refuse("hidden_size / num_attention_heads");
  };
  return {"head_dim", get, set};
}

// YaRN's classes derive the stretch from this length in some versions.
HfKey positions(const std::string& key) {
  const auto get = [](const ModelConfig& c) {
    const double stretched = c.yarn.scaling_factor * static_cast<double>(c.yarn.original_seq_length);
    return HfJson(c.yarn.enabled() ? static_cast<int64_t>(stretched) : c.seq_length);
  };
  const auto set = [](ModelConfig& c, const HfValue& value) { c.seq_length = value.integer(); };
  return {key, get, set, true};
}

// Training only; which tokens the loss balances is not told.
HfKey balancing(const std::string& key, LoadBalancing kind) {
  const auto get = [](const ModelConfig& c) { return HfJson(c.moe.aux_loss_coeff); };
  const auto set = [kind](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    c.moe.aux_loss_coeff = value.number();
    c.moe.balancing = c.moe.aux_loss_coeff > 0 ? kind : LoadBalancing::kNone;
  };
  return {key, get, set};
}

Keys transformer_keys() {
  return {hf_member("vocab_size", RANKLAB_HF(vocab_size)),
          hf_member("hidden_size", RANKLAB_HF(hidden_size)),
          hf_member("num_hidden_layers", RANKLAB_HF(num_layers)),
          hf_member("num_attention_heads", RANKLAB_HF(num_attention_heads)),
          key_value_heads(),
          positions("max_position_embeddings"),
          hf_constant("hidden_act", "silu"),
          hf_member("initializer_range", RANKLAB_HF(init_std), 0.02)};
}

Keys ending_keys(bool tied) {
  return {hf_member("tie_word_embeddings", RANKLAB_HF(tie_embeddings), tied), hf_note("bos_token_id", nullptr),
          hf_note("eos_token_id", nullptr), hf_note("use_cache", true)};
}

Keys llama_keys() {
  Keys keys = transformer_keys();
  const auto same_bias = [](ModelConfig& c, const HfValue& value) {
    if (value.boolean() != c.add_bias) value.refuse("the same as attention_bias");
  };
  append(keys, {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
                head_dim(),
                hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6),
                hf_member("attention_bias", RANKLAB_HF(add_bias), false),
                {"mlp_bias", [](const ModelConfig& c) { return HfJson(c.add_bias); }, same_bias, false, false}});
  append(keys, ending_keys(false));
  return keys;
}

// A file says otherwise that no layer has experts.
void set_experts(ModelConfig& c, const HfValue& value) {
  if (value.integer() < 1) value.refuse("1 or more");
  c.moe.num_experts = value.integer();
}

Keys mixtral_keys() {
  Keys keys = transformer_keys();
  const auto expert_ffn = [](const ModelConfig& c) { return HfJson(c.expert_ffn()); };
  const auto all_ffn = [](ModelConfig& c, const HfValue& value) { c.ffn_hidden_size = value.integer(); };
  append(keys,
         {{"intermediate_size", expert_ffn, all_ffn, true},
          head_dim(),
          hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
          {"num_local_experts", [](const ModelConfig& c) { return HfJson(c.moe.num_experts); }, set_experts, false, 8},
          hf_member("num_experts_per_tok", RANKLAB_HF(moe.topk), 2),
          balancing("router_aux_loss_coef", LoadBalancing::kAuxLoss),
          hf_constant("sliding_window", nullptr)});
  append(keys, ending_keys(false));
  return keys;
}

Keys gpt2_keys() {
  const auto inner = [](const ModelConfig& c) { return HfJson(c.ffn_hidden_size); };
  const auto set_inner = [](ModelConfig& c, const HfValue& value) {
    if (!value.is_null()) return value.into(c.ffn_hidden_size);
    if (is_sane(c.hidden_size)) c.ffn_hidden_size = 4 * c.hidden_size;
  };
  const auto activation = [](ModelConfig& c, const HfValue& value) {
    const std::string text = value.text();
    if (text != "gelu_new" && text != "gelu_pytorch_tanh") value.refuse("gelu_new");
    c.norm = NormKind::kLayerNorm;
    c.position = PositionKind::kLearned;
    c.activation = ActivationKind::kGelu;
    c.add_bias = true;
  };
  Keys keys = {
      hf_member("vocab_size", RANKLAB_HF(vocab_size)),
      hf_member("n_embd", RANKLAB_HF(hidden_size)),
      hf_member("n_layer", RANKLAB_HF(num_layers)),
      hf_member("n_head", RANKLAB_HF(num_attention_heads)),
      positions("n_positions"),
      {"n_inner", inner, set_inner},
      {"activation_function", [](const ModelConfig&) { return HfJson("gelu_new"); }, activation, false, "gelu_new"},
      hf_member("layer_norm_epsilon", RANKLAB_HF(norm_epsilon), 1e-5),
      hf_member("initializer_range", RANKLAB_HF(init_std), 0.02),
      hf_member("resid_pdrop", RANKLAB_HF(dropout), 0.1),
      {"embd_pdrop", [](const ModelConfig& c) { return HfJson(c.dropout); }, [](ModelConfig&, const HfValue&) {}},
      hf_note("attn_pdrop", 0.0),
      hf_constant("scale_attn_weights", true),
      hf_constant("scale_attn_by_inverse_layer_idx", false),
      hf_constant("add_cross_attention", false)};
  append(keys, ending_keys(true));
  return keys;
}

// What the keys of experts say of a model without: the classes want numbers.
MoeConfig experts_of(const ModelConfig& c) {
  if (c.moe.enabled()) return c.moe;
  return {
      .num_experts = 2, .topk = 1, .ffn_hidden_size = c.ffn_hidden_size, .shared_ffn_hidden_size = c.ffn_hidden_size};
}

// All layers with a number below are dense.
int64_t all_layers(const ModelConfig& c) { return c.num_layers + c.mtp_num_layers; }

Keys router_keys() {
  const auto shared = [](ModelConfig& c, const HfValue& value) {
    const int64_t count = value.is_null() ? 0 : value.integer();
    if (count < 0 || count > 1024 || !is_sane(c.expert_ffn())) value.refuse("at most 1024");
    c.moe.shared_ffn_hidden_size = count * c.expert_ffn();
  };
  const auto groups = [](const ModelConfig& c) { return HfJson(experts_of(c).num_groups); };
  const auto normalize = [](const ModelConfig& c) { return HfJson(c.moe.normalize_topk && experts_of(c).topk > 1); };
  const auto set_normalize = [](ModelConfig& c, const HfValue& value) {
    c.moe.normalize_topk = value.boolean();
    if (c.moe.normalize_topk && c.moe.topk == 1) value.refuse("false: a single expert keeps its score");
  };
  return {
      {"n_routed_experts", [](const ModelConfig& c) { return HfJson(experts_of(c).num_experts); }, set_experts, true},
      {"num_experts_per_tok", [](const ModelConfig& c) { return HfJson(experts_of(c).topk); },
       [](ModelConfig& c, const HfValue& value) { c.moe.topk = value.integer(); }, true},
      {"moe_intermediate_size", [](const ModelConfig& c) { return HfJson(c.expert_ffn()); },
       [](ModelConfig& c, const HfValue& value) { c.moe.ffn_hidden_size = value.integer(); }, true},
      {"n_shared_experts",
       [](const ModelConfig& c) { return HfJson(experts_of(c).shared_ffn_hidden_size / c.expert_ffn()); }, shared},
      {"n_group", groups, [](ModelConfig& c, const HfValue& value) { c.moe.num_groups = value.integer(); }, true},
      {"topk_group", [](const ModelConfig& c) { return HfJson(experts_of(c).group_topk); },
       [](ModelConfig& c, const HfValue& value) { c.moe.group_topk = value.integer(); }, true},
      {"norm_topk_prob", normalize, set_normalize, false, true},
      hf_member("routed_scaling_factor", RANKLAB_HF(moe.scaling_factor), 2.5),
      hf_constant("scoring_func", "sigmoid"),
      hf_constant("topk_method", "noaux_tc"),
      hf_constant("moe_layer_freq", 1),
      balancing("aux_loss_alpha", LoadBalancing::kSeqAuxLoss),
      hf_note("seq_aux", true)};
}

// Read last: whether there are experts at all.
HfKey dense_layers() {
  const auto get = [](const ModelConfig& c) {
    return HfJson(c.moe.enabled() ? c.moe.first_dense_layers : all_layers(c));
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    c.moe.first_dense_layers = value.integer();
    c.moe.score = RouterScore::kSigmoid;
    c.moe.expert_bias = true;
    const bool sane = is_sane(c.num_layers) && is_sane(c.mtp_num_layers);  // validate() refuses others
    if (sane && c.moe.first_dense_layers >= all_layers(c)) c.moe = {};
  };
  return {"first_k_dense_replace", get, set, false, 3};
}

Keys deepseek_keys() {
  Keys keys = transformer_keys();
  const auto q_lora = [](const ModelConfig& c) { return c.mla.q_lora_rank > 0 ? HfJson(c.mla.q_lora_rank) : HfJson(); };
  const auto set_q_lora = [](ModelConfig& c, const HfValue& value) {
    c.mla.q_lora_rank = value.is_null() ? 0 : value.integer();
  };
  append(keys, {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
                hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6),
                hf_constant("attention_bias", false),
                {"q_lora_rank", q_lora, set_q_lora},
                hf_member("kv_lora_rank", RANKLAB_HF(mla.kv_lora_rank)),
                hf_member("qk_nope_head_dim", RANKLAB_HF(mla.qk_head_dim)),
                hf_member("qk_rope_head_dim", RANKLAB_HF(mla.qk_pos_emb_head_dim)),
                hf_member("v_head_dim", RANKLAB_HF(mla.v_head_dim))});
  append(keys, router_keys());
  append(keys, {hf_member("num_nextn_predict_layers", RANKLAB_HF(mtp_num_layers), 0), dense_layers()});
  append(keys, ending_keys(false));
  return keys;
}

}  // namespace

const std::vector<HfKey>& hf_keys(const HfFamily& family) {
  static const std::map<std::string, Keys> kKeys = {
      {"llama", llama_keys()}, {"gpt2", gpt2_keys()}, {"mixtral", mixtral_keys()}, {"deepseek_v3", deepseek_keys()}};
  return kKeys.at(family.model_type);
}

}  // namespace ranklab
