#include "core/config/settings/field_makers.h"
#include "core/spec/moe_dispatcher_names.h"

namespace ranklab::fields {
namespace {

// `access`: RANKLAB_FIELD of a LayerPattern.
template <typename Access>
ConfigField layer_pattern(const char* key, const char* flag, const char* help, PatternOne one, Access access) {
  ConfigField field{key, {flag}, help};
  field.get = [=](const TrainConfig& config) { return layer_pattern_text(read(access, config), one); };
  field.set = [=](TrainConfig& config, const std::string& value) {
    const auto layers = parse_layer_pattern(value, one);
    if (!layers) refuse(field, value, "0, a number of layers, or a pattern: [1]*3+[0]");
    access(config) = *layers;
  };
  return field;
}

// As in Megatron-LM: 1 for all layers, n for every n-th layer starting with the first, or a pattern.
ConfigField expert_layers() {
  ConfigField field{
      "moe.layer_freq",
      {"--moe-layer-freq"},
      "layers with experts: all (1), every n-th from the first (e.g. 2), or a pattern ([0]+[1]; Llama 4)"};
  field.get = [](const TrainConfig& config) {
    const LayerPattern& layers = config.model.moe.layers;
    return layers.all() ? std::string("1") : layer_pattern_text(layers);
  };
  field.set = [=](TrainConfig& config, const std::string& value) {
    auto layers = parse_layer_pattern(value);
    const bool is_zero = layers && layers->all() && value.find('[') == std::string::npos;
    if (!layers || is_zero) refuse(field, value, "1, a number of layers, or a pattern: [0]+[1]");
    if (const int64_t n = layers->skip_freq; n > 0) {
      std::vector<bool> pattern(static_cast<size_t>(n), false);
      pattern[0] = true;
      layers = n == 1 ? LayerPattern{} : LayerPattern{.pattern = pattern};
    }
    config.model.moe.layers = *layers;
  };
  return field;
}

ConfigField hybrid_pattern() {
  ConfigField field{
      "model.hybrid_layer_pattern",
      {"--hybrid-layer-pattern", "--hybrid-override-pattern"},
      "hybrid model: one letter per layer, repeated: M Mamba-2, * attention, - MLP, E experts; e.g. M-M*-"};
  field.get = [](const TrainConfig& config) { return config.model.hybrid_pattern; };
  field.set = [field](TrainConfig& config, const std::string& value) {
    if (value.find_first_not_of(kMixerLetters) != std::string::npos || value.size() > kMostLayers)
      refuse(field, value, "letters M, *, - and E, one for each layer");
    config.model.hybrid_pattern = value;
  };
  return field;
}

}  // namespace

void add_model(FieldRows& rows) {
  rows.begin("Model");
  rows.text("model.preset", {"--preset"}, "model preset; later flags override its numbers", RANKLAB_FIELD(preset));
  rows.number("model.num_layers", {"--num-layers"}, "transformer layers", RANKLAB_FIELD(model.num_layers),
              within(1, kMostLayers));
  rows.add(hybrid_pattern());
  rows.number("model.hidden_size", {"--hidden-size"}, "width of the residual stream", RANKLAB_FIELD(model.hidden_size),
              within(1, 1 << 20));
  rows.number("model.ffn_hidden_size", {"--ffn-hidden-size"}, "width of the MLP", RANKLAB_FIELD(model.ffn_hidden_size),
              within(1, 1 << 20));
  rows.number("model.num_attention_heads", {"--num-attention-heads"}, "query heads",
              RANKLAB_FIELD(model.num_attention_heads), within(1, 1 << 20));
  rows.number(
      "model.num_query_groups", {"--num-query-groups"},
      "key/value heads (0: as many as query heads; 1: MQA); with fewer than --tp, neighbouring ranks share a head",
      RANKLAB_FIELD(model.num_query_groups), within(0, 1 << 20));
  rows.number("model.kv_channels", {"--kv-channels"}, "width of a head (0: --hidden-size / --num-attention-heads)",
              RANKLAB_FIELD(model.kv_channels), within(0, 1 << 20));
  rows.number("model.vocab_size", {"--vocab-size"}, "tokens in the vocabulary (bytes: 256)",
              RANKLAB_FIELD(model.vocab_size), within(1, 1 << 24));
  rows.number("model.seq_length", {"--seq-length"}, "tokens per sequence", RANKLAB_FIELD(model.seq_length),
              within(1, 1 << 24));
  rows.number("model.window_size", {"--window-size"},
              "sliding attention window in tokens, including the token itself (0: no window)",
              RANKLAB_FIELD(model.window_size), within(0, 1 << 24));
  rows.add(layer_pattern(
      "model.window_attn_skip_freq", "--window-attn-skip-freq",
      "layers with the window or chunks: all (0), all but every n-th (e.g. 6), or a pattern ([0]*2+[1]*4)",
      PatternOne::kHas, RANKLAB_FIELD(model.window_layers)));
  rows.number("model.attention_chunk", {"--attention-chunk-size"},
              "chunked attention: tokens attend only within their chunk of this size (Llama 4; 0: off)",
              RANKLAB_FIELD(model.attention_chunk), within(0, 1 << 24));
  rows.choice("model.norm", {"--normalization"}, "normalization layer", {"RMSNorm", "LayerNorm"},
              RANKLAB_FIELD(model.norm));
  rows.flag("model.norm_bias", {"--layernorm-bias"}, "biases of LayerNorms (Cohere has none)",
            RANKLAB_FIELD(model.norm_bias));
  rows.number("model.norm_epsilon", {"--norm-epsilon"}, "epsilon of norms", RANKLAB_FIELD(model.norm_epsilon),
              above(0));
  rows.choice("model.norm_placement", {"--norm-placement"},
              "place norms before attention and MLP, behind them (OLMo 2), or both (Gemma 2)",
              {"before", "behind", "both"}, RANKLAB_FIELD(model.norm_placement));
  rows.choice("model.residual_form", {"--residual-form"},
              "attention then MLP (sequential), or both on the same input with two norms (GPT-NeoX) or one (Phi-2)",
              {"sequential", "parallel", "parallel-one-norm"}, RANKLAB_FIELD(model.residual_form));
  rows.choice("model.position", {"--position-embedding-type"}, "position embedding", names(kPositionNames),
              RANKLAB_FIELD(model.position));
  rows.add(layer_pattern(
      "model.no_rope_freq", "--no-rope-freq",
      "layers without rotary positions: none (0), every n-th (e.g. 4), or a pattern ([0]*3+[1]; SmolLM 3)",
      PatternOne::kLacks, RANKLAB_FIELD(model.rope_layers)));
  rows.choice("model.activation", {"--activation"}, "MLP activation", names(kActivationNames),
              RANKLAB_FIELD(model.activation));
  rows.number("model.dropout", {"--hidden-dropout"}, "dropout of embeddings and residual branches",
              RANKLAB_FIELD(model.dropout), below_one());
  rows.number("model.attention_dropout", {"--attention-dropout"},
              "dropout of attention probabilities (attention is then unfused)", RANKLAB_FIELD(model.attention_dropout),
              below_one());
  rows.number("model.init_std", {"--init-method-std"}, "standard deviation of initial weights",
              RANKLAB_FIELD(model.init_std), at_least(0));
  rows.flag("model.add_bias", {"--add-bias-linear"}, "biases in linear layers", RANKLAB_FIELD(model.add_bias));
  rows.flag("model.add_qkv_bias", {"--add-qkv-bias"}, "biases of queries, keys and values only (Qwen2)",
            RANKLAB_FIELD(model.add_qkv_bias));
  rows.flag("model.add_attention_bias", {"--add-attention-bias"}, "biases of all linear layers of attention",
            RANKLAB_FIELD(model.add_attention_bias));
  rows.flag("model.qk_norm", {"--qk-layernorm"}, "RMSNorm of queries and keys (Qwen3)", RANKLAB_FIELD(model.qk_norm));
  rows.choice("model.qk_norm_width", {"--qk-layernorm-width"},
              "normalize queries and keys per head, or over all heads of a token (OLMo 2)", {"head", "all-heads"},
              RANKLAB_FIELD(model.qk_norm_width));
  rows.flag("model.qk_l2_norm", {"--qk-l2-norm"},
            "RMSNorm without weights on queries and keys after rotation (Llama 4)", RANKLAB_FIELD(model.qk_l2_norm));
  rows.number("model.query_temperature_scale", {"--query-temperature-scale"},
              "scale queries of layers without rotary positions by the logarithm of their position, times "
              "this (Llama 4: 0.1; 0: off)",
              RANKLAB_FIELD(model.query_temperature_scale), at_least(0));
  rows.number("model.query_temperature_floor", {"--query-temperature-floor"},
              "positions per step of that scaling; queries before this position are not scaled",
              RANKLAB_FIELD(model.query_temperature_floor), within(1, 1 << 24));
  rows.flag("model.norm_1p", {"--apply-layernorm-1p"}, "norms multiply by 1 + weight (Gemma)",
            RANKLAB_FIELD(model.norm_1p));
  rows.number("model.query_pre_attn_scalar", {"--query-pre-attn-scalar"},
              "divide attention scores by the square root of this (0: the head width)",
              RANKLAB_FIELD(model.query_pre_attn_scalar), at_least(0));
  rows.number("model.attn_logit_softcapping", {"--attn-logit-softcapping"},
              "cap attention scores at c: c tanh(score / c) (Gemma 2; 0: off)",
              RANKLAB_FIELD(model.attn_logit_softcapping), at_least(0));
  rows.choice("model.softmax", {"--softmax-type"},
              "attention sink, an extra logit without a value in the softmax: none (vanilla), 0 "
              "(off-by-one), or learned per head (learnable; gpt-oss)",
              {"vanilla", "off-by-one", "learnable"}, RANKLAB_FIELD(model.softmax));
  rows.number("model.final_logit_softcapping", {"--final-logit-softcapping"},
              "cap the output logits in the same way (Gemma 2; 0: off)", RANKLAB_FIELD(model.final_logit_softcapping),
              at_least(0));
  rows.flag("model.scale_embeddings", {"--scale-embeddings"}, "multiply token embeddings by sqrt(--hidden-size)",
            RANKLAB_FIELD(model.scale_embeddings));
  rows.number("model.embedding_multiplier", {"--embedding-multiplier"}, "multiply token embeddings by this (Granite)",
              RANKLAB_FIELD(model.embedding_multiplier), above(0));
  rows.number("model.residual_multiplier", {"--residual-multiplier"},
              "multiply what attention and MLP add to the residual stream by this (Granite)",
              RANKLAB_FIELD(model.residual_multiplier), above(0));
  rows.number("model.logit_scale", {"--logit-scale"}, "multiply the output logits by this (Cohere, Granite)",
              RANKLAB_FIELD(model.logit_scale), above(0));
  rows.flag("model.attention_output_gate", {"--attention-output-gate"},
            "gate the attention output by the sigmoid of a projection of its input (Qwen3-Next)",
            RANKLAB_FIELD(model.attention_output_gate));
  rows.flag("model.add_head_bias", {"--add-head-bias"}, "bias of the output head", RANKLAB_FIELD(model.add_head_bias));
  rows.flag("model.tie_embeddings", {"--tie-embeddings"}, "share the weights of token embedding and output head",
            RANKLAB_FIELD(model.tie_embeddings));
}

void add_linear_attention(FieldRows& rows) {
  rows.begin("Linear attention");
  rows.choice("linear_attention.type", {"--linear-attention-type", "--experimental-attention-variant"},
              "linear attention instead of softmax attention in some layers: Gated DeltaNet (Qwen3-Next)",
              {"none", "gated_delta_net"}, RANKLAB_FIELD(model.linear.kind));
  rows.add(layer_pattern("linear_attention.freq", "--linear-attention-freq",
                         "layers with linear attention: all (0), all but every n-th (e.g. 4), or a pattern ([1]*3+[0])",
                         PatternOne::kHas, RANKLAB_FIELD(model.linear.layers)));
  rows.number("linear_attention.num_key_heads", {"--linear-num-key-heads"}, "query and key heads",
              RANKLAB_FIELD(model.linear.num_key_heads), within(1, 1 << 16));
  rows.number("linear_attention.num_value_heads", {"--linear-num-value-heads"},
              "value heads; an equal number of them shares each key head", RANKLAB_FIELD(model.linear.num_value_heads),
              within(1, 1 << 16));
  rows.number("linear_attention.key_head_dim", {"--linear-key-head-dim"}, "width of a query or key head",
              RANKLAB_FIELD(model.linear.key_head_dim), within(1, 1 << 16));
  rows.number("linear_attention.value_head_dim", {"--linear-value-head-dim"}, "width of a value head",
              RANKLAB_FIELD(model.linear.value_head_dim), within(1, 1 << 16));
  rows.number("linear_attention.conv_kernel", {"--linear-conv-kernel-dim"},
              "kernel size of the convolution of queries, keys and values", RANKLAB_FIELD(model.linear.conv_kernel),
              within(1, 64));
}

void add_mamba(FieldRows& rows) {
  rows.begin("Mamba-2");
  rows.number("mamba.num_heads", {"--mamba-num-heads"},
              "heads per layer (0: as many as give a width of twice --hidden-size)",
              RANKLAB_FIELD(model.mamba.num_heads), within(0, 1 << 16));
  rows.number("mamba.head_dim", {"--mamba-head-dim"}, "width of a head", RANKLAB_FIELD(model.mamba.head_dim),
              within(1, 1 << 16));
  rows.number("mamba.state_dim", {"--mamba-state-dim"}, "state size per element of a head",
              RANKLAB_FIELD(model.mamba.state_dim), within(1, 1 << 16));
  rows.number("mamba.num_groups", {"--mamba-num-groups"}, "groups of heads that share their B and C projections",
              RANKLAB_FIELD(model.mamba.num_groups), within(1, 1 << 16));
  rows.number("mamba.conv_kernel", {"--mamba-conv-kernel-dim"}, "kernel size of the convolution",
              RANKLAB_FIELD(model.mamba.conv_kernel), within(1, 64));
  rows.number("mamba.min_step", {"--mamba-min-step"},
              "lower bound of the recurrence's step size, as in transformers (0: none, as in Megatron-LM)",
              RANKLAB_FIELD(model.mamba.min_step), at_least(0));
}

void add_latent_attention(FieldRows& rows) {
  rows.begin("Multi-head latent attention");
  rows.number("mla.kv_lora_rank", {"--kv-lora-rank"}, "rank of the compressed keys and values (0: no latent attention)",
              RANKLAB_FIELD(model.mla.kv_lora_rank), within(0, 1 << 20));
  rows.number("mla.q_lora_rank", {"--q-lora-rank"}, "rank of the compressed queries (0: not compressed)",
              RANKLAB_FIELD(model.mla.q_lora_rank), within(0, 1 << 20));
  rows.number("mla.qk_head_dim", {"--qk-head-dim"}, "width of a query or key head, without its rotary part",
              RANKLAB_FIELD(model.mla.qk_head_dim), within(0, 1 << 20));
  rows.number("mla.qk_pos_emb_head_dim", {"--qk-pos-emb-head-dim"}, "width of the rotary part of a query or key head",
              RANKLAB_FIELD(model.mla.qk_pos_emb_head_dim), within(0, 1 << 20));
  rows.number("mla.v_head_dim", {"--v-head-dim"}, "width of a value head", RANKLAB_FIELD(model.mla.v_head_dim),
              within(0, 1 << 20));
}

void add_experts(FieldRows& rows) {
  rows.begin("Mixture of experts");
  rows.number("moe.num_experts", {"--num-experts"}, "number of routed experts (0: dense model)",
              RANKLAB_FIELD(model.moe.num_experts), within(0, 1 << 16));
  rows.number("moe.topk", {"--moe-router-topk"}, "experts per token", RANKLAB_FIELD(model.moe.topk),
              within(0, 1 << 16));
  rows.number("moe.ffn_hidden_size", {"--moe-ffn-hidden-size"}, "width of an expert (0: --ffn-hidden-size)",
              RANKLAB_FIELD(model.moe.ffn_hidden_size), within(0, 1 << 20));
  rows.number("moe.shared_ffn_hidden_size", {"--moe-shared-expert-intermediate-size"},
              "total width of the shared experts (0: none)", RANKLAB_FIELD(model.moe.shared_ffn_hidden_size),
              within(0, 1 << 20));
  rows.number("moe.latent_size", {"--moe-latent-size"},
              "latent width of routed experts: tokens are projected down before dispatch and up after combine (0: off)",
              RANKLAB_FIELD(model.moe.latent_size), within(0, 1 << 20));
  rows.flag("moe.shared_gate", {"--moe-shared-expert-gate"}, "gate the shared experts by a sigmoid (Qwen2-MoE)",
            RANKLAB_FIELD(model.moe.shared_gate));
  rows.number("moe.first_dense_layers", {"--first-k-dense-replace"}, "number of first layers that stay dense",
              RANKLAB_FIELD(model.moe.first_dense_layers), within(0, 1 << 16));
  rows.add(expert_layers());
  rows.choice("moe.score", {"--moe-router-score-function"}, "score function of the router", {"softmax", "sigmoid"},
              RANKLAB_FIELD(model.moe.score));
  rows.flag("moe.router_bias", {"--add-router-bias"}, "bias of the router's logits (gpt-oss)",
            RANKLAB_FIELD(model.moe.router_bias));
  rows.number("moe.num_groups", {"--moe-router-num-groups"}, "number of expert groups",
              RANKLAB_FIELD(model.moe.num_groups), within(0, 1 << 16));
  rows.number("moe.group_topk", {"--moe-router-group-topk"},
              "groups that a token may use: those with the largest scores", RANKLAB_FIELD(model.moe.group_topk),
              within(0, 1 << 16));
  rows.number("moe.group_best", {"--moe-router-group-best"},
              "experts whose scores add up to a group's: its best ones (DeepSeek-V3: 2, DeepSeek-V2: 1)",
              RANKLAB_FIELD(model.moe.group_best), within(1, 1 << 16));
  rows.flag("moe.normalize_topk", {"--moe-router-norm-topk"},
            "normalize the weights of a token's experts to sum to the scaling factor",
            RANKLAB_FIELD(model.moe.normalize_topk));
  rows.flag("moe.normalize_top1", {"--moe-router-norm-top1"},
            "also normalize with one expert per token: its weight is 1 instead of its score (Mixtral)",
            RANKLAB_FIELD(model.moe.normalize_top1));
  rows.number("moe.scaling_factor", {"--moe-router-topk-scaling-factor"}, "scaling factor of the experts' weights",
              RANKLAB_FIELD(model.moe.scaling_factor), above(0));
  rows.flag("moe.weigh_inputs", {"--moe-apply-probs-on-input"},
            "multiply the input of a token's only expert by its weight, instead of the output (Llama 4)",
            RANKLAB_FIELD(model.moe.weigh_inputs));
  rows.choice("moe.balancing", {"--moe-router-load-balancing-type"},
              "auxiliary load-balancing loss: none, per microbatch (aux_loss), per sequence (seq_aux_loss), "
              "or over the microbatches of all dp ranks (global_aux_loss)",
              {"none", "aux_loss", "seq_aux_loss", "global_aux_loss"}, RANKLAB_FIELD(model.moe.balancing));
  rows.number("moe.aux_loss_coeff", {"--moe-aux-loss-coeff"}, "coefficient of the auxiliary loss",
              RANKLAB_FIELD(model.moe.aux_loss_coeff), at_least(0));
  rows.number("moe.z_loss_coeff", {"--moe-z-loss-coeff"},
              "coefficient of the z-loss, the squared log-sum-exp of the router's logits",
              RANKLAB_FIELD(model.moe.z_loss_coeff), at_least(0));
  rows.flag("moe.expert_bias", {"--moe-router-enable-expert-bias"},
            "balance experts by a bias that affects only their selection and is updated after each step (DeepSeek-V3)",
            RANKLAB_FIELD(model.moe.expert_bias));
  rows.number("moe.bias_update_rate", {"--moe-router-bias-update-rate"}, "update step of that bias",
              RANKLAB_FIELD(model.moe.bias_update_rate), at_least(0));
  rows.number("moe.capacity_factor", {"--moe-expert-capacity-factor"},
              "expert capacity as a multiple of the mean load; tokens beyond it are dropped (0: no limit)",
              RANKLAB_FIELD(model.moe.capacity_factor), at_least(0));
  rows.flag("moe.force_balance", {"--moe-router-force-load-balancing"},
            "assign experts in turn, ignoring scores (for debugging)", RANKLAB_FIELD(model.moe.force_balance));
  rows.text("parallel.moe_dispatcher", {"--moe-token-dispatcher-type"},
            "how tokens are sent to their experts (ranklab list dispatchers)", RANKLAB_FIELD(moe_dispatcher),
            moe_dispatcher_names());
  rows.flag("parallel.moe_pad_expert_input_to_capacity", {"--moe-pad-expert-input-to-capacity"},
            "pad each expert's input to its capacity: shapes do not depend on the routing (needs "
            "--moe-expert-capacity-factor)",
            RANKLAB_FIELD(pad_experts));
  rows.flag("parallel.moe_shared_expert_overlap", {"--moe-shared-expert-overlap"},
            "compute shared experts while tokens are sent to the others", RANKLAB_FIELD(overlap_shared_experts));
  rows.flag("parallel.delay_wgrad_compute", {"--delay-wgrad-compute"},
            "compute the weight gradients of experts while the gradients of their tokens are sent back",
            RANKLAB_FIELD(delay_weight_grads));
  rows.flag("parallel.overlap_moe", {"--overlap-moe-expert-parallel-comm"},
            "overlap dispatch and combine of one microbatch with the compute of another", RANKLAB_FIELD(overlap_moe));
  rows.number("mtp.num_layers", {"--mtp-num-layers"},
              "number of multi-token prediction modules; each predicts one token further",
              RANKLAB_FIELD(model.mtp_num_layers), within(0, 64));
  rows.flag("mtp.use_repeated_layer", {"--mtp-use-repeated-layer"},
            "one multi-token prediction module, applied --mtp-num-layers times",
            RANKLAB_FIELD(model.mtp_use_repeated_layer));
  rows.number("mtp.loss_weight", {"--mtp-loss-scaling-factor"}, "weight of the mean loss of the prediction modules",
              RANKLAB_FIELD(model.mtp_loss_weight), at_least(0));
}

}  // namespace ranklab::fields
