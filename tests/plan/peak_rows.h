// The runs with whose peak memory, on each rank, a plan is compared.
#pragma once
#include <ostream>

#include "core/spec/presets.h"
#include "tests/plan/run_models.h"

namespace ranklab {

struct PeakRun {
  const char* name;
  int world, tp;
  int64_t micro_batch_size = 0;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};
inline void PrintTo(const PeakRun& run, std::ostream* out) { *out << run.name; }

inline void tiny_deepseek(TrainConfig& c) {
  c.model = model_preset("deepseek_v3_tiny");
  c.model.moe.force_balance = true;
}
inline void wide(TrainConfig& c) {
  c.model.num_layers = 4;
  c.model.hidden_size = 256;
  c.model.ffn_hidden_size = 704;
  c.model.vocab_size = 1024;
}

// A CPU's attention and products then have as much scratch memory as a layer keeps.
inline void narrow(TrainConfig& c) {
  c.model.seq_length = 96;
  c.model.hidden_size = 64;
  c.model.ffn_hidden_size = 224;
  c.model.num_attention_heads = 4;
  c.global_batch_size = 1;
}
inline void unfused_sinks(TrainConfig& c) {
  c.model.seq_length = 384;
  c.attention_backend = "unfused";
  c.model.softmax = SoftmaxKind::kLearnable;
}

// The last stage has only the head, which reads the states of three predictions.
inline void predicting_apart(TrainConfig& c) {
  predicting(c);
  c.parallel.pp = 3;
  c.model.num_layers = 3;
  c.model.hidden_size = 384;
  c.model.seq_length = 96;
  c.pipeline_layout = "E|tttmm|L";
  c.pipeline_schedule = "zb-2p";
}

// No product follows attention whose weight gradient would use up what is recomputed; many passes are repeated.
inline void heads_exchanged(TrainConfig& c) {
  recompute_selectively(c);
  context_of_heads<2>(c);
  c.micro_batch_size = 1;
  c.global_batch_size = 40;
}

// What W keeps of a microbatch, and buckets in which gradients of several microbatches lie.
template <int kStages>
inline void many_split_backwards(TrainConfig& c) {
  c.parallel.pp = kStages;
  c.model.num_layers = 2 * kStages;
  c.pipeline_schedule = "zb-2p";
  c.micro_batch_size = 1;
  c.global_batch_size = 24 * c.parallel.world / kStages;
}
inline void many_shared_buckets(TrainConfig& c) {
  many_split_backwards<3>(c);
  c.pipeline_schedule = "zb-v";
  c.zero_stage = 2;
  c.grad_sync = GradSync::kMicrobatch;
}

inline const PeakRun kPeakRuns[] = {
    {"one_rank", 1, 1},
    {"one_rank_accumulation", 1, 1, 2},
    {"dp4", 4, 1},
    {"tp2", 2, 2},
    {"tp4_overlap", 4, 4, 0, both<tensor_overlap, wide>},
    {"tp2_overlap_bf16", 4, 2, 0, both<both<tensor_overlap, wide>, bf16>},
    {"ep4_padded", 4, 1, 0, padded_experts},
    {"dp2_tp2_bf16", 4, 2, 0, bf16},
    {"default_layout", 8, 2, 0, two_stages},
    {"selective", 1, 1, 2, recompute_selectively},
    {"full", 1, 1, 2, recompute_all},
    {"full_dp2_tp2_bf16", 4, 2, 0, both<bf16, recompute_all>},
    {"full_default_layout", 8, 2, 0, both<two_stages, recompute_all>},
    {"full_two_at_a_time", 2, 1, 2, recompute_together<2>},
    {"mtp_apart", 3, 1, 4, predicting_apart},
    {"repeated_mtp", 2, 1, 2, predicting_with_one_module},
    {"repeated_mtp_full", 2, 1, 2, both<predicting_with_one_module, recompute_all>},
    {"wide", 2, 1, 1, wide},
    {"wide_full", 2, 1, 1, both<wide, recompute_all>},
    {"zero1_dp4", 4, 1, 0, zero<1>},
    {"zero1_bf16", 4, 1, 2, zero_of<1, bf16>},
    {"zero1_overlapped_dp4", 4, 1, 0, zero_of<1, overlapped_gathers>},
    {"zero2_dp4", 4, 1, 0, zero<2>},
    {"zero2_overlapped_default_layout", 8, 2, 0, zero_of<2, both<two_stages, overlapped_gathers>>},
    {"zero2_bf16", 4, 1, 2, zero_of<2, bf16>},
    {"zero3_dp4", 4, 1, 0, zero<3>},
    {"zero3_bf16", 4, 1, 2, zero_of<3, bf16>},
    {"zero3_wide_full", 4, 1, 1, zero_of<3, both<wide, recompute_all>>},
    {"dp2_tp2_fp16", 4, 2, 0, fp16},
    {"one_rank_wide_grads", 1, 1, 0, wide_grads},
    {"dp4_wide_grads", 4, 1, 2, wide_grads},
    {"zero1_narrow_moments", 4, 1, 2, zero_of<1, narrow_moments>},
    {"zero2_narrow_moments", 4, 1, 0, zero_of<2, narrow_moments>},
    {"zero3_wide_grads", 4, 1, 2, zero_of<3, wide_grads>},
    {"dp2_tp2_no_masters", 4, 2, 0, no_masters},
    {"gpt2_like", 4, 2, 0, gpt2_like},
    {"pp4", 4, 1, 0, [](TrainConfig& c) { c.parallel.pp = 4; }},
    {"pp4_zb_h1", 4, 1, 0, zb_h1<4>},
    {"pp4_zb_h1_narrow_bf16", 8, 2, 1, both<narrow, both<zb_h1<4>, bf16>>},
    {"pp2_interleaved", 4, 2, 0, interleaved},
    {"pp5_v_half_norms_behind", 5, 1, 1, both<v_half, norms_behind>},
    {"pp4_v_min_norms_behind", 4, 1, 1, both<v_min, norms_behind>},
    {"muon", 2, 2, 2, muon<MuonDistribution::kDuplicated>},
    {"muon_zero1_bf16", 4, 1, 2, zero_of<1, both<bf16, muon<MuonDistribution::kDuplicated>>>},
    {"muon_distributed_zero2", 4, 1, 2, zero_of<2, muon<MuonDistribution::kDistributed>>},
    {"muon_layer_sharded_zero1", 4, 1, 2, zero_of<1, muon<MuonDistribution::kLayerSharded>>},
    {"attention_dropout", 2, 2, 2, attention_dropout},
    {"unfused_sinks_bf16", 1, 1, 2, both<bf16, unfused_sinks>},
    {"qwen", 2, 2, 2, qwen},
    {"llama3", 2, 2, 2, llama3},
    {"dynamic_positions", 2, 2, 2, dynamic_positions},
    {"window", 2, 2, 2, window},
    {"olmo2", 2, 2, 2, olmo2},
    {"smollm3", 2, 2, 2, smollm3},
    {"nemotron", 2, 2, 2, nemotron},
    {"long_rope", 2, 2, 2, long_rope},
    {"granite", 2, 2, 2, granite},
    {"cohere", 2, 2, 2, cohere},
    {"gpt_neox", 2, 2, 2, gpt_neox},
    {"phi2", 2, 2, 2, phi2},
    {"gemma2", 2, 2, 2, gemma2},
    {"selective_a2a_bf16", 4, 1, 0, both<heads_exchanged, bf16>},
    {"selective_a2a_latent", 4, 2, 0, both<heads_exchanged, latent>},
    {"selective_gated_many", 1, 1, 0,
     [](TrainConfig& c) {
       recompute_selectively(c), c.model.attention_output_gate = true;
       c.micro_batch_size = 1, c.global_batch_size = 20;
     }},
    {"many_split_backwards", 3, 1, 0, many_split_backwards<3>},
    {"many_shared_buckets", 6, 1, 0, many_shared_buckets},
    {"gemma2_selective", 1, 1, 2, both<gemma2, recompute_selectively>},
    {"some_windows", 2, 2, 2, some_windows},
    {"window_selective", 1, 1, 2, both<window, recompute_selectively>},
    {"qwen_selective", 1, 1, 2, both<qwen, recompute_selectively>},
    {"qwen_full", 1, 1, 2, both<qwen, recompute_all>},
    {"qwen_wide_bf16", 2, 1, 1, both<wide, both<qwen, bf16>>},
    {"grouped_zb_h1", 4, 1, 0, [](TrainConfig& c) { zb_h1<4>(c), c.model.num_query_groups = 4; }},
    {"one_key_head_tp4", 4, 4, 2, [](TrainConfig& c) { c.model.num_query_groups = 1; }},
    {"one_key_head_tp4_selective", 4, 4, 2,
     [](TrainConfig& c) { recompute_selectively(c), c.model.num_query_groups = 1; }},
    {"qwen_zb_h1", 4, 1, 0, both<qwen, zb_h1<4>>},
    {"qwen_experts_ep4_tp2", 8, 2, 0, qwen_experts<4>},
    {"gpt_oss_ep2_tp2", 4, 2, 0, gpt_oss<2>},
    {"mamba_tp2", 2, 2, 0, mamba},
    {"mamba_selective_bf16", 1, 1, 0, both<mamba, both<recompute_selectively, bf16>>},
    {"delta_net_tp2", 2, 2, 0, delta_net},
    {"delta_net_selective_bf16", 1, 1, 0, both<delta_net, both<recompute_selectively, bf16>>},
    {"llama4_ep2_tp2", 4, 2, 0, llama4<2>},
    {"qwen_experts_zero3", 4, 1, 0, zero_of<3, qwen_experts<2>>},
    {"latent_narrow_values", 2, 2, 0,
     [](TrainConfig& c) { c.model.num_layers = 1, c.model.mla = {.kv_lora_rank = 16, .v_head_dim = 12}; }},
    {"deepseek_ep4", 4, 1, 0, [](TrainConfig& c) { tiny_deepseek(c), c.parallel.ep = 4; }},
    {"deepseek_full", 4, 1, 0, [](TrainConfig& c) { tiny_deepseek(c), recompute_all(c), c.parallel.ep = 4; }},
};

inline TrainConfig config_of(const PeakRun& run) {
  TrainConfig c;
  c.parallel = {.world = run.world, .tp = run.tp};
  c.global_batch_size = 8;
  c.model.seq_length = 64;
  c.micro_batch_size = run.micro_batch_size;
  c.lr_warmup_iters = 0;
  c.mock_data = true;
  run.change(c);
  return c;
}

}  // namespace ranklab
