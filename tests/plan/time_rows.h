// The runs with whose virtual time a plan is compared: gpt_tiny as `ranklab train` runs it, on other meshes, and models
// in which other kernels take the time.
#pragma once
#include "core/spec/presets.h"
#include "tests/plan/run_models.h"

namespace ranklab {

struct Training {
  const char* name;
  int world, tp;
  bool sequence_parallel;
  int64_t micro_batch_size = 0;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
  const char* hardware = "h100-sxm";
};

inline void larger(TrainConfig& c) {
  c.model.num_layers = 2;
  c.model.hidden_size = 512;
  c.model.ffn_hidden_size = 1408;
  c.model.num_query_groups = 4;
  c.model.vocab_size = 4096;
}

// Muon multiplies whole matrices in each of its Newton-Schulz steps on every rank that has them: two steps instead of
// five and narrower matrices take seconds, not minutes.
template <MuonDistribution kForm>
inline void larger_muon(TrainConfig& c) {
  larger(c);
  muon<kForm>(c);
  c.muon_ns_steps = 2;
  c.model.hidden_size = 320;
  c.model.ffn_hidden_size = 880;
}

template <int kEp>
inline void larger_experts(TrainConfig& c) {
  larger(c);
  over_ep<kEp>(c);
  c.model.moe.ffn_hidden_size = 256;
  c.model.moe.shared_ffn_hidden_size = 256;
}

template <int kEp, int kPp>
inline void deepseek_tiny(TrainConfig& c) {
  c.model = model_preset("deepseek_v3_tiny");
  c.model.moe.force_balance = true;
  c.parallel.ep = kEp;
  c.parallel.pp = kPp;
}

inline void small_experts(TrainConfig& c) {
  over_ep<4>(c);
  c.ddp_bucket_bytes = 1 << 16;
}

inline void few_uneven_parts(TrainConfig& c) {
  c.model.num_layers = 1;
  c.model.ffn_hidden_size = 96;
}

inline void one_key_head(TrainConfig& c) { c.model.num_query_groups = 1; }
inline void two_key_heads(TrainConfig& c) { c.model.num_query_groups = 2; }

inline void measured_kernels(TrainConfig& c) {
  c.efficiency = Efficiency::kMeasured;
  c.software = "eager";
}
// Whose host launches kernels, and whose tensor-parallel ranks send parts of a message to another node.
inline void transformer_engine(TrainConfig& c) {
  c.efficiency = Efficiency::kMeasured;
  c.software = "transformer_engine";
}
inline void megatron_on_nodes(TrainConfig& c) {
  c.efficiency = Efficiency::kMeasured;
  c.software = "megatron";
  c.gpus_per_node = 2;
}
inline void unfused_scores(TrainConfig& c) { c.attention_backend = "unfused"; }

// The first positions see no less than the others, but ranks have more or fewer blocks to attend to.
inline void window_of_all(TrainConfig& c) { c.model.window_size = c.model.seq_length; }
// Of two pipelines one lies on a single node.
inline void three_stages_on_nodes_of_five(TrainConfig& c) {
  c.parallel.pp = 3;
  c.gpus_per_node = 5;
}
inline void positions_of_documents(TrainConfig& c) { c.documents.reset_position_ids = true; }

inline const Training kRuns[] = {
    {"measured_larger_tp2", 4, 2, true, 0, both<larger, measured_kernels>},
    {"measured_experts_pp2", 8, 1, false, 0, both<deepseek_tiny<4, 2>, measured_kernels>, "b200"},
    {"unfused_selective", 2, 2, true, 4, both<unfused_scores, recompute_selectively>},
    {"unfused_larger", 2, 1, false, 4, both<larger, unfused_scores>},
    {"cp8", 8, 1, false, 0, context<8>},
    {"cp4_dp2_larger", 8, 1, false, 0, both<larger, context<4>>},
    {"cp4_contiguous_larger", 4, 1, false, 0, both<larger, contiguous_context<4>>},
    {"cp4_gathered_larger", 4, 1, false, 0, both<larger, gathered_context<4>>},
    {"cp4_heads_larger", 4, 1, false, 0, both<larger, context_of_heads<4>>},
    {"cp4_two_levels_window", 4, 1, false, 0, both<context_in_two_levels<4>, window_of_all>},
    {"cp2_gathered_stripes_tp2", 4, 2, true, 0, gathered_stripes<2>},
    {"cp2_pp2_tp2", 8, 2, true, 0, both<two_stages, context<2>>},
    {"cp4_zero3_dp2", 8, 1, false, 0, zero_of<3, context<4>>},
    {"cp2_ep4_tp2", 8, 2, true, 0, both<context<2>, over_ep<4>>},
    {"positions_of_documents_tp2", 4, 2, true, 4, positions_of_documents},
    {"pipelines_between_nodes_tp2", 6, 2, true, 1, three_stages_on_nodes_of_five},
    {"selective_one_rank", 1, 1, false, 4, recompute_selectively},
    {"selective_larger", 2, 2, true, 4, both<larger, recompute_selectively>},
    {"selective_latent_tp2", 2, 2, false, 4, both<latent, recompute_selectively>},
    {"full_one_rank", 1, 1, false, 4, recompute_all},
    {"full_larger", 2, 2, true, 4, both<larger, recompute_all>},
    {"full_dp4_tp2", 8, 2, true, 0, recompute_all},
    {"full_first_two", 2, 1, false, 4, recompute_first<2>},
    {"full_two_at_a_time", 2, 1, false, 4, recompute_together<2>},
    {"full_gpt2_like", 4, 2, true, 0, both<gpt2_like, recompute_all>},
    {"full_default_layout", 8, 2, true, 0, both<two_stages, recompute_all>},
    {"full_deepseek_tiny_ep4_tp2", 8, 2, true, 0, both<deepseek_tiny<4, 1>, recompute_all>},
    {"full_mtp", 1, 1, false, 8, both<predicting, recompute_all>},
    {"zero1_dp8", 8, 1, false, 0, zero<1>},
    {"zero2_dp8", 8, 1, false, 0, zero<2>},
    {"zero1_overlapped_dp8", 8, 1, false, 0, zero_of<1, overlapped_gathers>},
    {"zero1_overlapped_larger", 4, 2, true, 4, zero_of<1, both<larger, overlapped_gathers>>},
    {"zero2_overlapped_pp2_dp4", 8, 1, false, 0, zero_of<2, both<two_stages, overlapped_gathers>>},
    {"zero2_overlapped_ep4_tp2", 8, 2, true, 0, zero_of<2, both<small_experts, overlapped_gathers>>},
    {"zero2_dp4_tp2_accumulation", 8, 2, true, 2, zero<2>},
    {"one_key_head_tp4", 4, 4, true, 4, one_key_head},
    {"one_key_head_tp4_bf16", 8, 4, true, 4, both<one_key_head, bf16>},
    {"two_key_heads_tp8_larger", 8, 8, false, 4, both<larger, two_key_heads>},
    {"zero2_larger", 4, 2, true, 4, zero_of<2, larger>},
    {"zero1_default_layout", 8, 2, true, 0, zero_of<1, two_stages>},
    {"zero2_pp2_dp4", 8, 1, false, 0, zero_of<2, two_stages>},
    {"delayed_ep4_tp2", 8, 2, true, 0, both<small_experts, delayed_wgrads>},
    {"zero2_ep4_tp2", 8, 2, true, 0, zero_of<2, small_experts>},
    {"zero3_dp8", 8, 1, false, 0, zero<3>},
    {"zero3_larger", 4, 2, true, 4, zero_of<3, larger>},
    {"zero3_pp2_dp4", 8, 1, false, 0, zero_of<3, two_stages>},
    {"zero3_ep4_tp2", 8, 2, true, 0, zero_of<3, small_experts>},
    {"bf16_dp4_tp2", 8, 2, true, 0, bf16},
    {"bf16_ep4_tp2", 8, 2, true, 0, both<small_experts, bf16>},
    {"fp8_delayed_dp4_tp2", 8, 2, true, 0, fp8_delayed},
    {"fp8_current_one_rank", 1, 1, false, 4, fp8_current},
    {"fp8_current_dp4_tp2", 8, 2, true, 0, fp8_current},
    {"fp8_tiles_dp4_tp2", 8, 2, true, 0, fp8_tiles},
    {"fp8_tiles_ep4_tp2", 8, 2, true, 0, both<small_experts, fp8_tiles>},
    {"fp16_dp4_tp2", 8, 2, true, 0, fp16},
    {"scaled_loss_dp4_tp2", 8, 2, true, 0, scaled_loss},
    {"wide_grads_dp4_tp2", 8, 2, true, 0, wide_grads},
    {"narrow_moments_zero1_dp8", 8, 1, false, 0, zero_of<1, narrow_moments>},
    {"narrow_moments_zero3_dp8", 8, 1, false, 0, zero_of<3, narrow_moments>},
    {"no_masters_dp4_tp2", 8, 2, true, 0, no_masters},
    {"alltoall_on_nodes", 8, 1, false, 0, all_to_all},
    {"allgather", 8, 1, false, 0, all_gather},
    {"dedup", 8, 1, false, 0, dedup},
    {"dedup_in_a_node", 8, 2, true, 0, dedup_in_a_node},
    {"rdep", 8, 1, false, 0, rdep},
    {"deepseek_one_rank", 1, 1, false, 4, deepseek_tiny<1, 1>},
    {"deepseek_tiny_ep8", 8, 1, false, 0, deepseek_tiny<8, 1>},
    {"deepseek_tiny_ep4_tp2", 8, 2, true, 0, deepseek_tiny<4, 1>},
    {"deepseek_tiny_pp2_tp2_ep4", 8, 2, true, 0, deepseek_tiny<4, 2>},
    {"qwen_one_rank", 1, 1, false, 4, qwen},
    {"qwen_tp2", 2, 2, true, 4, qwen},
    {"llama3_tp2", 2, 2, true, 4, llama3},
    {"window_tp2", 2, 2, true, 4, window},
    {"olmo2_tp2", 2, 2, true, 4, olmo2},
    {"smollm3_tp2", 2, 2, true, 4, smollm3},
    {"nemotron_tp2", 2, 2, true, 4, nemotron},
    {"phi2_tp2", 2, 2, true, 4, phi2},
    {"granite_tp2", 2, 2, true, 4, granite},
    {"cohere_tp2", 2, 2, true, 4, cohere},
    {"gemma2_tp2", 2, 2, true, 4, gemma2},
    {"some_windows_tp2", 2, 2, true, 4, some_windows},
    {"qwen_tp2_no_sp", 2, 2, false, 4, qwen},
    {"qwen_selective", 1, 1, false, 4, both<qwen, recompute_selectively>},
    {"qwen_full", 2, 2, true, 4, both<qwen, recompute_all>},
    {"qwen_pp4_zb_h1", 8, 2, true, 0, both<qwen, zb_h1<4>>},
    {"qwen_larger", 2, 2, true, 4, both<larger, qwen>},
    {"qwen_experts_one_rank", 1, 1, false, 4, qwen_experts<1>},
    {"qwen_experts_ep4_tp2", 8, 2, true, 0, qwen_experts<4>},
    {"delta_net_tp2", 2, 2, true, 4, delta_net},
    {"mamba_tp2", 2, 2, true, 4, mamba},
    {"llama4_ep4_tp2", 8, 2, true, 0, llama4<4>},
    {"qwen_experts_pp2_tp2_ep4", 8, 2, true, 0, qwen_experts_in_two_stages<4>},
    {"latent_tp2", 2, 2, false, 4, latent},
    {"mtp", 1, 1, false, 8, predicting},
    {"repeated_mtp", 1, 1, false, 8, predicting_with_one_module},
    {"repeated_mtp_full", 1, 1, false, 8, both<predicting_with_one_module, recompute_all>},
    {"ep1", 1, 1, false, 4, experts},
    {"ep8", 8, 1, false, 0, over_ep<8>},
    {"ep4_tp2", 8, 2, true, 0, over_ep<4>},
    {"tp4_overlap", 4, 4, true, 0, tensor_overlap},
    {"tp2_overlap_bf16_larger", 4, 2, true, 0, both<both<tensor_overlap, larger>, bf16>},
    {"ep4_overlap_tp2", 8, 2, true, 0, both<tensor_overlap, over_ep<4>>},
    {"ep4_padded", 4, 1, false, 0, padded_experts},
    {"ep2_etp2_tp2_padded", 8, 2, true, 0, padded_split_experts},
    {"ep2_etp2_tp2", 8, 2, true, 0, split_experts},
    {"pp2_tp2_ep4", 8, 2, true, 0, in_two_stages<4>},
    {"larger_ep4", 4, 1, false, 2, larger_experts<4>},
    {"larger_ep2_tp2", 4, 2, true, 4, larger_experts<2>},
    {"dp8", 8, 1, false},
    {"tp8_sp", 8, 8, true},
    {"tp8", 8, 8, false},
    {"dp4_tp2", 8, 2, true},
    {"dp2_accumulation", 2, 1, false, 4},
    {"gpt2_like", 4, 2, true, 0, gpt2_like},
    {"gpt2_like_dp", 2, 1, false, 0, gpt2_like},
    {"larger", 2, 2, true, 4, larger},
    {"default_layout", 8, 2, true, 0, two_stages},
    {"pp4_dp2", 8, 1, false, 0, [](TrainConfig& c) { c.parallel.pp = 4; }},
    {"pp4_tp2_zb_h1", 8, 2, true, 0, zb_h1<4>},
    {"pp2_interleaved_dp2_tp2", 8, 2, true, 0, interleaved},
    {"pp2_zb_v", 4, 2, true, 0, [](TrainConfig& c) { c.parallel.pp = 2, c.pipeline_schedule = "zb-v"; }},
    {"pp2_dualpipe_tp2", 8, 2, true, 0, dualpipe},
    {"pp4_larger", 4, 1, false, 2, [](TrainConfig& c) { larger(c), c.parallel.pp = 4, c.model.num_layers = 4; }},
    {"pp4_uneven_layout", 4, 1, false, 2, [](TrainConfig& c) { c.parallel.pp = 4, c.model.num_layers = 6; }},
    {"larger_dp_laptop", 2, 1, false, 2, larger, "laptop"},
    {"muon_dp4_tp2", 8, 2, true, 0, larger_muon<MuonDistribution::kDuplicated>},
    {"muon_zero1_dp8", 8, 1, false, 0, zero_of<1, larger_muon<MuonDistribution::kDuplicated>>},
    {"muon_layer_sharded_zero2_dp4", 4, 1, false, 0, zero_of<2, larger_muon<MuonDistribution::kLayerSharded>>},
    {"attention_dropout_larger", 2, 2, true, 4, both<larger, attention_dropout>},
    {"transformer_engine_experts_pp2", 8, 1, false, 0, both<deepseek_tiny<4, 2>, transformer_engine>, "b200"},
    // Of a step's parts each has a slowest rank of its own: who attends, who has most parts of parameters, whose
    // pipeline goes between nodes.
    {"lion_zero1_cp2", 2, 1, false, 0,
     [](TrainConfig& c) { zero_of<1, context<2>>(c), c.optimizer = OptimizerKind::kLion, few_uneven_parts(c); }},
    {"pp2_dp3_between_nodes", 12, 2, true, 0, [](TrainConfig& c) { two_stages(c), c.global_batch_size = 6; }},
    {"muon_distributed_cp4_window", 4, 1, false, 0,
     [](TrainConfig& c) { muon<MuonDistribution::kDistributed>(c), context<4>(c), window(c), c.model.num_layers = 1; }},
    {"muon_zero1_dp4_tied", 4, 1, false, 0,
     [](TrainConfig& c) { zero_of<1, muon<MuonDistribution::kDuplicated>>(c), c.model.tie_embeddings = true; }},
    // Collectives that queue behind one another, in every microbatch.
    {"fp8_current_tp4_many_microbatches", 4, 4, true, 1, fp8_current},
    {"megatron_on_nodes_pp2", 8, 2, false, 1, both<larger, both<two_stages, megatron_on_nodes>>, "a100-80"},
};

inline void clipped_scores(TrainConfig& c) {
  c.qk_clip = true;
  c.qk_clip_threshold = 1e-3;
}
inline void replicas_before_tensors(TrainConfig& c) { c.parallel.order = "dp-tp-cp-ep-pp"; }
inline void on_nodes_of_three(TrainConfig& c) { c.gpus_per_node = 3; }
// Each pipeline goes to another node twice, at other stages than its neighbours.
inline void four_stages_on_nodes_of_four(TrainConfig& c) {
  c.model.num_attention_heads = 3;
  c.model.hidden_size = 48;
  c.model.ffn_hidden_size = 144;
  c.parallel.pp = 4;
  c.gpus_per_node = 4;
}

// Of five pieces some have rows of queries and keys.
inline void clipped_pieces(TrainConfig& c) {
  clipped_scores(c);
  measured_kernels(c);
  c.model.num_layers = 1;
  c.global_batch_size = 5;
}
inline void experts_of_every_third_rank(TrainConfig& c) {
  experts(c);
  measured_kernels(c);
  replicas_before_tensors(c);
  c.parallel.ep = 2;
  c.global_batch_size = 6;
}
// Which delay the gathers of passes behind them, as many as there is time for.
inline void many_reductions(TrainConfig& c) {
  two_stages(c);
  c.zero_stage = 3;
  c.grad_sync = GradSync::kMicrobatch;
  c.model.num_layers = 8;
  c.global_batch_size = 16;
  c.gpus_per_node = 1;
}

inline void four_balanced_experts(TrainConfig& c) {
  c.model.moe = {.num_experts = 4, .topk = 1, .ffn_hidden_size = 64, .force_balance = true};
}

// The backward of a gather of tokens takes a large part of the step.
template <int kEp>
inline void six_balanced_experts(TrainConfig& c) {
  c.model.moe = {.num_experts = 6, .topk = 2, .ffn_hidden_size = 32, .force_balance = true};
  c.model.seq_length = 96;
  c.global_batch_size = 12;
  c.parallel.ep = kEp;
  if (kEp > 1) c.moe_dispatcher = "dedup";
}

// In few ranks that may differ: one waits for another here, the other for it there.
inline const Training kDiffering[] = {
    {"measured_zigzag_cp4_dp2", 8, 1, false, 0, both<measured_kernels, context<4>>},
    {"gathered_cp2_tp4_on_nodes_of_three", 8, 4, true, 0,
     [](TrainConfig& c) { gathered_context<2>(c), two_key_heads(c), on_nodes_of_three(c); }},
    {"experts_of_every_third_rank", 12, 4, true, 0, experts_of_every_third_rank},
    {"tp3_pp4_on_nodes_of_four", 12, 3, false, 0, four_stages_on_nodes_of_four},
    {"clipped_pieces_zero3_dp5", 5, 1, false, 0, zero_of<3, clipped_pieces>},
    {"many_reductions_zero3_pp2_dp2", 4, 1, false, 1, many_reductions},
    {"padded_vocabulary_tp4", 4, 4, true, 0, [](TrainConfig& c) { c.model.vocab_size = 257; }},
    {"muon_divides_experts_over_tp2", 2, 2, true, 0, both<muon<MuonDistribution::kDistributed>, four_balanced_experts>},
    {"six_balanced_experts_dp3", 3, 1, false, 2, six_balanced_experts<1>},
    {"six_balanced_experts_deduplicated_ep3", 3, 1, false, 2, six_balanced_experts<3>},
};

inline TrainConfig config_of(const Training& run) {
  TrainConfig c;
  c.parallel = {.world = run.world, .tp = run.tp};
  c.sequence_parallel = run.sequence_parallel;
  c.micro_batch_size = run.micro_batch_size;
  c.hardware = run.hardware;
  c.global_batch_size = 8;
  c.model.seq_length = 64;
  c.train_iters = 2;  // the second has what the first makes: the optimizer's state
  c.lr_warmup_iters = 0;
  c.clip_grad = kAlwaysClipped;
  c.mock_data = true;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.trace = false;
  run.change(c);
  return c;
}

}  // namespace ranklab
