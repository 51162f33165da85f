// The configuration of a decoder-only transformer. Flags are named as in Megatron-LM (core/config/settings).
// Torch-free.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/layer_pattern.h"
#include "core/spec/linear_attention_config.h"
#include "core/spec/mamba_config.h"
#include "core/spec/mla_config.h"
#include "core/spec/moe_config.h"
#include "core/spec/rope_config.h"

namespace ranklab {

enum class NormKind { kRmsNorm, kLayerNorm };
enum class PositionKind { kRope, kLearned, kNone };
inline constexpr std::array kPositionNames = {"rope", "learned_absolute", "none"};
constexpr const char* name(PositionKind position) { return kPositionNames[static_cast<size_t>(position)]; }
// GELU: tanh approximation as in GPT-2, or exact (erf). Squared ReLU: max(x, 0)^2 (So et al. 2021, arXiv 2109.08668).
// SwiGluOai: as in gpt-oss (arXiv 2508.10925), (u + 1) g sigmoid(1.702 g) with g at most 7 and u within 7 of 0.
enum class ActivationKind { kSwiGlu, kGelu, kGeGlu, kGeluErf, kSquaredRelu, kSwiGluOai };
inline constexpr std::array kActivationNames = {"swiglu", "gelu", "geglu", "gelu_erf", "squared_relu", "swigluoai"};
constexpr const char* name(ActivationKind activation) { return kActivationNames[static_cast<size_t>(activation)]; }
// Where the norm of a branch (attention or MLP) is: on its input, on its output before the residual addition (OLMo 2,
// arXiv 2501.00656; after Liu et al. 2021, arXiv 2111.09883), or on both (Gemma 2, arXiv 2408.00118).
enum class NormPlacement { kBefore, kBehind, kBoth };
// Either the MLP reads the residual stream after attention's output was added, or both read the same residual stream
// (GPT-J; GPT-NeoX, arXiv 2204.06745, section 2.1), each through its own norm or both through one.
enum class ResidualForm { kSequential, kParallel, kParallelOneNorm };
// What the softmax of attention includes besides the scores of keys: nothing, a score of 0, or a learned score per
// head. Such a score is a sink, for which no value is added (gpt-oss; core/nn/attention/attention_sinks.h).
enum class SoftmaxKind { kVanilla, kOffByOne, kLearnable };
// What an RMSNorm of queries and keys averages over: one head, or all heads of a token together (OLMo 2).
enum class QkNormWidth { kHead, kAllHeads };

// The heads of a kind of layer with a recurrence over positions. Tensor- and context-parallel ranks split them, because
// the recurrence needs whole sequences.
struct RecurrenceHeads {
  const char* layers;  // in words
  const char* flag;    // that sets `heads`
  int64_t heads;
};

struct ModelConfig {
  int64_t num_layers = 4;
  // The mixer of each layer, as a string of letters (LayerMixer) that is repeated. "": every layer has attention
  // followed by an MLP or experts.
  std::string hybrid_pattern = {};
  int64_t hidden_size = 128;
  int64_t ffn_hidden_size = 352;
  int64_t num_attention_heads = 8;
  int64_t num_query_groups = 0;  // key/value heads; 0: as many as attention heads (MHA), 1: MQA
  int64_t kv_channels = 0;       // width of a head; 0: hidden_size / num_attention_heads
  int64_t vocab_size = 256;
  int64_t seq_length = 128;  // the longest sequence; also the size of position tables
  NormKind norm = NormKind::kRmsNorm;
  PositionKind position = PositionKind::kRope;
  ActivationKind activation = ActivationKind::kSwiGlu;
  double norm_epsilon = 1e-5;
  NormPlacement norm_placement = NormPlacement::kBefore;
  ResidualForm residual_form = ResidualForm::kSequential;
  bool norm_1p = false;   // norms multiply by 1 + weight, so that weight decay pulls to 1 (Gemma, arXiv 2403.08295)
  bool norm_bias = true;  // of LayerNorms; RMSNorms have none
  double rope_theta = 10000.0;
  // for layers with a window, whose frequencies are not scaled; 0: same as in the other layers
  double local_rope_theta = 0.0;
  double rotary_percent = 1.0;  // the fraction of a head that is rotated, counted from its first pair
  // Whether a rotated pair consists of adjacent elements of a head (GPT-J, Meta's LLaMA) instead of elements half the
  // rotated width apart.
  bool rotary_interleaved = false;
  LayerPattern rope_layers = {};    // the layers that have rotary positions; the others have none
  int64_t window_size = 0;          // tokens that a token attends to, including itself; 0: all previous ones
  LayerPattern window_layers = {};  // the layers that have this window, or the chunks below
  // Tokens attend only to tokens in their own chunk of this many: the local layers of iRoPE (Llama 4). 0: no chunks.
  int64_t attention_chunk = 0;
  double init_std = 0.02;           // residual outputs use init_std / sqrt(2 num_layers), as GPT-2 does
  double dropout = 0.0;             // on embeddings and both residual branches
  double attention_dropout = 0.0;   // on attention probabilities
  bool add_bias = false;            // on linear layers
  bool add_qkv_bias = false;        // on the query/key/value projection only (Qwen2, arXiv 2407.10671)
  bool add_attention_bias = false;  // on the query/key/value projection and on attention's output projection
  bool qk_norm = false;             // RMSNorm of queries and keys before rotary embedding (Qwen3, arXiv 2505.09388)
  QkNormWidth qk_norm_width = QkNormWidth::kHead;
  // RMSNorm without weights of rotated queries and keys (Llama 4), only in layers with rotary positions
  bool qk_l2_norm = false;
  // In layers without rotary positions, queries are multiplied by 1 + scale ln(1 + floor((position + 1) / floor)),
  // which keeps scores distinct however many keys there are (Nakanishi 2025, arXiv 2501.19399; as in Llama 4). Scale 0:
  // queries are not scaled.
  double query_temperature_scale = 0.0;
  int64_t query_temperature_floor = 8192;
  // Attention's output is multiplied elementwise by the sigmoid of a projection of its input (Qiu et al. 2025, arXiv
  // 2505.06708), before the output projection.
  bool attention_output_gate = false;
  bool add_head_bias = false;     // on the output head
  bool tie_embeddings = false;    // the output head is the token embedding
  bool scale_embeddings = false;  // by sqrt(hidden_size) (Vaswani et al. 2017, arXiv 1706.03762, section 3.4)
  // Factors of token embeddings, of what attention and MLP add to the residual stream, and of logits (Granite 3, after
  // the maximal update parametrization of Yang et al. 2022, arXiv 2203.03466).
  double embedding_multiplier = 1.0;
  double residual_multiplier = 1.0;
  double logit_scale = 1.0;
  // scores are divided by its square root (Gemma 2); 0: the width of a head is used
  double query_pre_attn_scalar = 0.0;
  double attn_logit_softcapping = 0.0;   // scores are soft-capped: c tanh(score / c); 0: no cap
  double final_logit_softcapping = 0.0;  // the same for logits
  SoftmaxKind softmax = SoftmaxKind::kVanilla;
  MlaConfig mla = {};
  LinearAttentionConfig linear = {};
  MambaConfig mamba = {};
  YarnConfig yarn = {};
  RopeScaling rope_scaling = {};  // scaling other than YaRN
  MoeConfig moe = {};
  // Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): modules after the last layer, each of which
  // predicts one further token. Their mean loss times this weight is added to the loss.
  int64_t mtp_num_layers = 0;
  bool mtp_use_repeated_layer = false;  // one module, applied mtp_num_layers times (Megatron-Core; Nemotron 3)
  double mtp_loss_weight = 0.1;
  // These do not affect the computation; they record how a model imported from a Hugging Face folder is written back as
  // one.
  std::string hf_architecture = "auto";  // needed where several classes compute the same function
  bool hf_rope_interleave = true;  // for latent attention: rotated pairs are adjacent rows in the Hugging Face files
  int64_t hf_bos_token = -1, hf_pad_token = -1;  // ids that config.json names; -1: none
  std::vector<int64_t> hf_eos_tokens = {};       // any of them ends the text that generate() writes
  std::string hf_generation_config = {};         // generation_config.json, as one line; "": none
  // tokenizer_config.json, as one line, with the chat template; "": a new one is written
  std::string hf_tokenizer_config = {};

  // The number of tensor-parallel ranks whose query heads read the same key/value head.
  int kv_copies(int tp) const {
    const int64_t groups = query_groups();
    return mla.enabled() || groups < 1 || groups >= tp ? 1 : tp / static_cast<int>(groups);
  }
  int64_t query_groups() const { return num_query_groups == 0 ? num_attention_heads : num_query_groups; }
  int64_t head_dim() const { return kv_channels == 0 ? hidden_size / num_attention_heads : kv_channels; }
  // Over all heads; does not apply to latent attention.
  int64_t query_width() const { return num_attention_heads * head_dim(); }
  int64_t kv_width() const { return query_groups() * head_dim(); }
  int64_t qkv_width() const { return query_width() + 2 * kv_width(); }
  int64_t output_gate_width() const { return attention_output_gate ? query_width() : 0; }
  bool has_qkv_bias() const { return add_bias || add_qkv_bias || add_attention_bias; }
  bool has_attention_out_bias() const { return add_bias || add_attention_bias; }
  // The number of elements of a head that are rotated.
  int64_t rotary_width() const {
    if (mla.enabled()) return mla.qk_pos_emb_head_dim;
    return static_cast<int64_t>(static_cast<double>(head_dim()) * rotary_percent);
  }
  bool has_rope(int64_t layer) const { return position == PositionKind::kRope && rope_layers.has(layer); }
  bool is_partly_rotary() const { return !mla.enabled() && rotary_width() < head_dim(); }
  // MTP modules are numbered from num_layers on.
  int64_t window_of_layer(int64_t layer) const { return window_layers.has(layer) ? window_size : 0; }
  int64_t chunk_of_layer(int64_t layer) const { return window_layers.has(layer) ? attention_chunk : 0; }
  // A hybrid model's layers have one mixer each; its MTP modules have attention and an MLP or experts, like those of
  // other models.
  bool is_hybrid() const { return !hybrid_pattern.empty(); }
  bool has_mixer(int64_t layer, LayerMixer mixer) const {
    return is_hybrid() && layer < num_layers &&
           hybrid_pattern[static_cast<size_t>(layer) % hybrid_pattern.size()] == static_cast<char>(mixer);
  }
  bool pattern_has(LayerMixer mixer) const {
    return hybrid_pattern.find(static_cast<char>(mixer)) != std::string::npos;
  }
  bool is_mamba(int64_t layer) const { return has_mixer(layer, LayerMixer::kMamba); }
  bool has_feed_forward(int64_t layer) const { return !is_mamba(layer) && !has_mixer(layer, LayerMixer::kAttention); }
  // Whether positions interact in this layer: by attention of any kind, or a state space.
  bool has_attention(int64_t layer) const {
    return !has_mixer(layer, LayerMixer::kMlp) && !has_mixer(layer, LayerMixer::kExperts);
  }
  // MTP modules keep softmax attention.
  bool is_linear(int64_t layer) const {
    return linear.enabled() && layer < num_layers && linear.layers.has(layer) && has_attention(layer) &&
           !is_mamba(layer);
  }
  bool has_softmax(int64_t layer) const { return has_attention(layer) && !is_mamba(layer) && !is_linear(layer); }
  bool has_dense_mlp(int64_t layer) const { return has_feed_forward(layer) && !is_moe_layer(layer); }
  // The number of layers for which `has` is true, without MTP modules.
  int64_t layer_count(bool (ModelConfig::*has)(int64_t) const) const;
  int64_t linear_layer_count() const { return layer_count(&ModelConfig::is_linear); }
  int64_t mamba_layer_count() const { return layer_count(&ModelConfig::is_mamba); }
  int64_t softmax_layer_count() const { return layer_count(&ModelConfig::has_softmax); }
  int64_t mamba_heads() const { return mamba.num_heads > 0 ? mamba.num_heads : 2 * hidden_size / mamba.head_dim; }
  int64_t mamba_width() const { return mamba_heads() * mamba.head_dim; }
  int64_t mamba_convolved_width() const { return mamba_width() + 2 * mamba.num_groups * mamba.state_dim; }
  // What all layers with a recurrence keep of a sequence, independent of its length: the state matrices of their heads,
  // in fp32, and the inputs that their next convolutions need.
  int64_t remembered_elements() const;
  int64_t remembered_inputs() const;
  bool remembers() const { return !recurrences().empty(); }
  std::vector<RecurrenceHeads> recurrences() const;  // one entry for each kind that the model has
  // The number of branches that add to the residual stream.
  int64_t residual_branches() const { return is_hybrid() ? num_layers : 2 * num_layers; }
  // Whether one MTP module predicts several tokens; and the number of modules that have weights of their own.
  bool repeats_mtp() const { return mtp_use_repeated_layer && mtp_num_layers > 1; }
  int64_t mtp_modules() const { return repeats_mtp() ? 1 : mtp_num_layers; }
  // The module (from 0) that looks 1 + `depth` tokens ahead, and the number of its layer.
  int64_t mtp_module(int64_t depth) const { return repeats_mtp() ? 0 : depth; }
  int64_t mtp_layer(int64_t depth) const { return num_layers + mtp_module(depth); }
  // Whether a forward uses the weights of the layer several times.
  bool repeats_layer(int64_t layer) const { return repeats_mtp() && layer >= num_layers; }
  bool has_qk_l2_norm(int64_t layer) const { return qk_l2_norm && has_rope(layer); }
  bool has_query_temperature(int64_t layer) const { return query_temperature_scale > 0 && !has_rope(layer); }
  bool has_local_rope() const { return position == PositionKind::kRope && window_size > 0 && local_rope_theta > 0; }
  int64_t expert_ffn() const { return moe.ffn_hidden_size == 0 ? ffn_hidden_size : moe.ffn_hidden_size; }
  int64_t expert_width() const { return moe.latent_size == 0 ? hidden_size : moe.latent_size; }
  bool has_gated_mlp() const {
    return activation == ActivationKind::kSwiGlu || activation == ActivationKind::kGeGlu ||
           activation == ActivationKind::kSwiGluOai;
  }
  double norm_weight_offset() const { return norm_1p ? 1.0 : 0.0; }
  bool has_norms_before() const { return norm_placement != NormPlacement::kBehind; }
  bool has_mlp_norm() const { return has_norms_before() && residual_form != ResidualForm::kParallelOneNorm; }
  bool has_norms_behind() const { return norm_placement != NormPlacement::kBefore; }
  // True when this layer's MLP is a mixture of experts. MTP modules are numbered from num_layers on.
  bool is_moe_layer(int64_t layer) const {
    if (is_hybrid() && layer < num_layers) return has_mixer(layer, LayerMixer::kExperts);
    return moe.enabled() && layer >= moe.first_dense_layers && moe.layers.has(layer);
  }
  int64_t moe_layer_count() const { return layer_count(&ModelConfig::is_moe_layer); }
  // Whether layers with different sets of modules alternate.
  bool layers_take_turns() const { return !moe.layers.all() || linear.enabled() || is_hybrid(); }
  // The number of elements of all parameters, without MTP modules and padding (module_table.h counts MTP).
  int64_t parameter_count() const;
  // The same, counting only parameters active for one token: topk of the routed experts.
  int64_t active_parameter_count() const;
  // Forward + backward FLOPs per token of a sequence of `seq`, including MTP: 6 x matmul weights + causal attention.
  double training_flops_per_token(int64_t seq) const;
};

// Checks the sizes against each other and against the tensor-parallel split before any rank starts. Throws
// kInvalidArgument naming both numbers and the nearest legal values.
void validate(const ModelConfig& config, int tp, bool sequence_parallel);

// How a layout splits the experts.
struct ExpertSplit {
  int tp = 1;
  int ep = 1;
  int etp = 1;
  bool sequence_parallel = false;
};
// The same for the experts' sizes.
void validate_experts(const ModelConfig& config, const ExpertSplit& split);

}  // namespace ranklab
