// The runs that plans are held to: small models in every layout, recipe and schedule, in three lists by what is
// compared.
#pragma once
#include <ostream>

#include "core/spec/presets.h"
#include "tests/plan/run_layouts.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {

// Calls and bytes, of a model so small that a step takes milliseconds.
struct Layout {
  const char* name;
  int world, tp;
  bool sequence_parallel;
  int64_t micro_batch_size = 0;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

inline const Layout kLayouts[] = {
    {"cp8", 8, 1, false, 0, context<8>},
    {"cp4_contiguous", 4, 1, false, 1, contiguous_context<4>},
    {"cp4_gathered_dp2", 8, 1, false, 0, gathered_context<4>},
    {"cp2_gathered_stripes_tp2_sp", 4, 2, true, 0, gathered_stripes<2>},
    {"cp2_heads_tp2_sp_dp2", 8, 2, true, 0, context_of_heads<2>},
    {"cp4_pp2_zb_h1", 8, 1, false, 1, both<context<4>, zb_h1<2>>},
    {"cp4_zero3_dp2", 8, 1, false, 0, zero_of<3, context<4>>},
    {"cp4_zero2_groups", 8, 1, false, 0, zero_of<2, both<context<4>, groups<2>>>},
    {"cp2_ep4_tp2", 8, 2, true, 0, both<context<2>, over_ep<4>>},
    {"cp4_capacity", 4, 1, false, 0, both<context<4>, globally_balanced>},
    {"cp2_deepseek_heads", 8, 1, false, 0, both<context_of_heads<2>, deepseek<4>>},
    {"cp2_deepseek_ring", 8, 1, false, 0, both<context<2>, deepseek<4>>},
    {"cp2_deepseek_gathered_tp2_sp", 8, 2, true, 0, both<gathered_context<2>, deepseek<4>>},
    {"cp4_two_levels_dp2", 8, 1, false, 0, context_in_two_levels<4>},
    {"cp2_by_layer_tp2", 4, 2, true, 0, context_by_layer<2>},
    {"cp4_window_gathered", 4, 1, false, 0, both<gathered_context<4>, window>},
    {"cp4_selective_bf16", 4, 1, false, 0, both<context<4>, both<recompute_selectively, bf16>>},
    {"cp4_full", 4, 1, false, 0, both<context<4>, recompute_all>},
    {"cp2_fp8_delayed_tp2", 8, 2, true, 0, both<context<2>, fp8_delayed>},
    {"zero1_dp8", 8, 1, false, 0, zero<1>},
    {"zero2_dp8", 8, 1, false, 0, zero<2>},
    {"zero1_small_buckets", 8, 2, true, 1, zero_of<1, small_buckets>},
    {"zero2_small_buckets", 8, 2, true, 1, zero_of<2, small_buckets>},
    {"zero2_odd_sizes", 4, 2, true, 0, zero_of<2, odd_sizes>},
    {"zero1_gqa_fp64", 4, 2, true, 0, zero_of<1, grouped_queries_in_fp64>},
    {"zero2_pp2_dp2_tp2", 8, 2, true, 1, zero_of<2, two_stages>},
    {"zero2_pp2_dp2_tied", 4, 1, false, 1, zero_of<2, tied_two_stages>},
    {"zero2_pp2_dp2_tied_zb_v", 4, 1, false, 1, zero_of<2, tied_v>},
    {"zero1_pp2_dp2_dualpipe", 4, 1, false, 1, zero_of<1, dualpipe>},
    {"zero2_pp2_dp2_dualpipe", 4, 1, false, 1, zero_of<2, dualpipe>},
    {"zero2_ep8", 8, 1, false, 0, zero_of<2, over_ep<8>>},
    {"zero1_ep4_dp8", 8, 1, false, 1, zero_of<1, over_ep<4>>},
    {"zero2_ep2_etp2_tp2", 8, 2, true, 0, zero_of<2, split_experts>},
    {"zero2_deepseek_ep4_tp2", 8, 2, true, 0, zero_of<2, deepseek<4>>},
    {"zero1_groups_dp8", 8, 1, false, 0, zero_of<1, groups<2>>},
    {"zero2_groups_dp4_tp2", 8, 2, true, 1, zero_of<2, groups<2>>},
    {"zero3_groups_dp8", 8, 1, false, 0, zero_of<3, groups<4>>},
    {"zero3_groups_ep2", 8, 1, false, 0, zero_of<3, both<over_ep<2>, groups<2>>>},
    {"zero2_groups_ep4", 8, 1, false, 0, zero_of<2, both<over_ep<4>, groups<2>>>},
    {"zero3_dp8", 8, 1, false, 0, zero<3>},
    {"zero3_dp4_tp2_accumulation", 8, 2, true, 1, zero<3>},
    {"zero3_pp2_dp2_tied", 4, 1, false, 1, zero_of<3, tied_two_stages>},
    {"zero3_pp2_dp2_tied_zb_v", 4, 1, false, 1, zero_of<3, tied_v>},
    {"zero3_pp2_dp2_dualpipe", 4, 1, false, 1, zero_of<3, dualpipe>},
    {"zero3_ep2_etp2_tp2", 8, 2, true, 0, zero_of<3, split_experts>},
    {"zero3_deepseek_ep4_tp2", 8, 2, true, 0, zero_of<3, deepseek<4>>},
    {"zero3_mtp_dp4", 4, 1, false, 1, zero_of<3, predicting>},
    {"zero3_full_dp8", 8, 1, false, 0, zero_of<3, recompute_all>},
    {"zero3_together_dp8", 8, 1, false, 0, zero_of<3, recompute_together<2>>},
    {"bf16_tp2_sp", 4, 2, true, 0, bf16},
    {"bf16_tp2_no_sp", 4, 2, false, 1, bf16},
    {"bf16_zero2_dp8", 8, 1, false, 0, zero_of<2, bf16>},
    {"fp16_tp2_sp", 4, 2, true, 0, fp16},
    {"fp16_zero3_dp4", 4, 1, false, 0, zero_of<3, fp16>},
    {"scaled_loss_pp2_tied", 4, 2, true, 1, both<tied_two_stages, scaled_loss>},
    {"wide_grads_dp8", 8, 1, false, 1, wide_grads},
    {"wide_grads_zero1_tp2", 8, 2, true, 1, zero_of<1, both<wide_grads, small_buckets>>},
    {"wide_grads_zero3_pp2_tied", 4, 1, false, 1, zero_of<3, both<tied_two_stages, wide_grads>>},
    {"wide_grads_zero2_ep4_groups", 8, 1, false, 0, zero_of<2, both<over_ep<4>, both<groups<2>, wide_grads>>>},
    {"bf16_deepseek_ep4_tp2", 8, 2, true, 0, both<deepseek<4>, bf16>},
    {"selective_tp2_sp", 4, 2, true, 0, recompute_selectively},
    {"selective_latent_tp2_zb_h1", 4, 2, true, 1, both<recompute_selectively, both<latent, zb_h1<2>>>},
    {"full_tp4_sp", 4, 4, true, 0, recompute_all},
    {"full_gpt2_like_tp2", 4, 2, false, 0, both<gpt2_like, recompute_all>},
    {"full_first_pp2_tp2", 4, 2, true, 1, both<in_two_stages<2>, recompute_first<1>>},
    {"full_together_ep4_tp2", 8, 2, true, 0, both<over_ep<4>, recompute_together<2>>},
    {"full_deepseek_ep4_tp2", 8, 2, true, 0, both<deepseek<4>, recompute_all>},
    {"full_pp2_dp2_ep2_zb_h1", 4, 1, false, 1, both<split_backward, recompute_all>},
    {"full_zero2_dp8", 8, 1, false, 0, zero_of<2, recompute_all>},
    {"full_zero3_dp4_tp2", 8, 2, true, 1, zero_of<3, recompute_all>},
    {"together_zero3_dp4", 4, 1, false, 0, zero_of<3, recompute_together<2>>},
    {"fp8_delayed_tp2_sp", 8, 2, true, 0, fp8_delayed},
    {"fp8_delayed_pp2_tp2", 8, 2, true, 1, both<two_stages, fp8_delayed>},
    {"fp8_delayed_tp2_dualpipe", 8, 2, true, 1, both<dualpipe, fp8_delayed>},
    {"fp8_delayed_ep4_tp2", 8, 2, true, 0, both<over_ep<4>, fp8_delayed>},
    {"fp8_current_tp2_sp", 4, 2, true, 0, fp8_current},
    {"fp8_current_tp2_no_sp_zb_h1", 4, 2, false, 1, both<zb_h1<2>, fp8_current>},
    {"fp8_current_latent_tp2", 4, 2, true, 0, both<latent, fp8_current>},
    {"fp8_current_ep2_etp2_tp2", 8, 2, true, 0, both<split_experts, fp8_current>},
    {"fp8_rowwise_tp2_sp", 4, 2, true, 0, fp8_rowwise},
    {"fp8_rowwise_latent_tp2", 4, 2, true, 0, both<latent, fp8_rowwise>},
    {"fp8_tiles_tp2_sp", 4, 2, true, 0, fp8_tiles},
    {"fp8_tiles_alltoall", 8, 1, false, 0, both<all_to_all, fp8_tiles>},
    {"fp8_tiles_allgather", 8, 1, false, 0, both<all_gather, fp8_tiles>},
    {"fp8_tiles_dedup", 8, 1, false, 0, both<dedup, fp8_tiles>},
    {"fp8_tiles_rdep", 8, 1, false, 0, both<rdep, fp8_tiles>},
    {"fp8_tiles_deepseek_ep4_tp2", 8, 2, true, 0, both<deepseek<4>, fp8_tiles>},
    {"fp8_gather_zero3_dp4", 4, 1, false, 0, zero_of<3, fp8_gather>},
    {"fp8_gather_zero3_dp4_tp2", 8, 2, true, 1, zero_of<3, fp8_gather>},
    {"fp8_gather_zero3_ep2", 8, 1, false, 0, zero_of<3, both<over_ep<2>, fp8_gather>>},
    {"fp8_gather_zero3_deepseek_ep4_tp2", 8, 2, true, 0, zero_of<3, both<deepseek<4>, fp8_gather>>},
    {"nvfp4_tp2_sp", 4, 2, true, 0, nvfp4},
    {"alltoall_on_nodes", 8, 1, false, 0, all_to_all},
    {"allgather", 8, 1, false, 0, all_gather},
    {"dedup", 8, 1, false, 0, dedup},
    {"dedup_in_a_node", 8, 2, true, 0, dedup_in_a_node},
    {"rdep", 8, 1, false, 0, rdep},
    {"qwen_tp4_sp", 4, 4, true, 0, qwen},
    {"qwen_one_rank", 1, 1, false, 2, qwen},
    {"qwen_tp2_no_sp", 8, 2, false, 1, qwen},
    {"qwen_zero2_tp2_no_sp", 8, 2, false, 0, zero_of<2, both<qwen, small_buckets>>},
    {"llama3_tp2", 4, 2, true, 1, llama3},
    {"llama3_zero3_tp2_no_sp", 8, 2, false, 0, zero_of<3, llama3>},
    {"dynamic_positions_tp2", 4, 2, true, 1, dynamic_positions},
    {"window_tp2", 4, 2, true, 1, window},
    {"window_selective_tp2", 4, 2, true, 0, both<window, recompute_selectively>},
    {"olmo2_tp2", 4, 2, true, 1, olmo2},
    {"long_rope_tp2", 4, 2, true, 1, long_rope},
    {"gpt_neox_tp2", 4, 2, true, 1, gpt_neox},
    {"phi2_tp2_no_sp", 4, 2, false, 1, phi2},
    {"phi2_zero3_tp2", 8, 2, true, 0, zero_of<3, phi2>},
    {"gemma2_tp2", 4, 2, true, 1, gemma2},
    {"gemma2_zero3_tp2_no_sp", 8, 2, false, 0, zero_of<3, gemma2>},
    {"gemma2_selective_bf16_pp2", 4, 2, true, 0, both<gemma2, both<two_stages, both<recompute_selectively, bf16>>>},
    {"gemma2_fp8_current_tp2", 4, 2, true, 0, both<gemma2, fp8_current>},
    {"olmo2_zero3_tp2_no_sp", 8, 2, false, 0, zero_of<3, olmo2>},
    {"olmo2_full_bf16_tp4", 4, 4, true, 0, both<olmo2, both<recompute_all, bf16>>},
    {"some_windows_pp2", 4, 1, false, 1, both<two_stages, some_windows>},
    {"top1_experts_ep4_tp2", 8, 2, true, 0, top1_experts<4>},
    {"qwen_zero3_pp2_tp2_no_sp_zb_h1", 8, 2, false, 1, zero_of<3, both<qwen, zb_h1<2>>>},
    {"qwen_pp2_tp2_no_sp_dualpipe", 8, 2, false, 1, both<qwen, dualpipe>},
    {"qwen_pp2_tp2_zb_h1", 4, 2, true, 1, both<qwen, zb_h1<2>>},
    {"qwen_zero1_tp2_small_buckets", 8, 2, true, 1, zero_of<1, both<qwen, small_buckets>>},
    {"qwen_zero3_tp2", 8, 2, true, 1, zero_of<3, qwen>},
    {"qwen_selective_bf16_tp2", 4, 2, true, 0, both<qwen, both<recompute_selectively, bf16>>},
    {"qwen_fp8_current_tp2", 4, 2, true, 0, both<qwen, fp8_current>},
    {"qwen_experts_ep4_tp2", 8, 2, true, 0, qwen_experts<4>},
    {"qwen_experts_pp2_tp2_dp2_ep4", 8, 2, true, 1, qwen_experts_in_two_stages<4>},
    {"qwen_experts_pp2_dp2_ep2_zb_h1", 4, 1, false, 1, both<qwen_experts_in_two_stages<2>, zb_h1<2>>},
    {"qwen_experts_zero2_full_ep4_tp2", 8, 2, true, 0, zero_of<2, both<qwen_experts<4>, recompute_all>>},
    {"qwen_experts_fp8_tiles_ep4_tp2", 8, 2, true, 0, both<qwen_experts<4>, fp8_tiles>},
    {"latent_tp4", 4, 4, false, 0, latent},
    {"latent_tp4_sp", 4, 4, true, 0, latent},
    {"latent_whole_q_tp2_sp", 4, 2, true, 1, latent_without_q_compression},
    {"mtp_dp4", 4, 1, false, 1, predicting},
    {"mtp_tp2_sp", 4, 2, true, 1, predicting},
    {"deepseek_ep8", 8, 1, false, 0, deepseek<8>},
    {"deepseek_ep4_tp2", 8, 2, true, 0, deepseek<4>},
    {"deepseek_pp2_tp2_dp2_ep4", 8, 2, true, 1, deepseek_in_two_stages<4>},
    {"deepseek_pp2_dp4_ep2_zb_v", 8, 1, false, 1, deepseek_zb_v},
    {"ep8", 8, 1, false, 0, over_ep<8>},
    {"ep4_dp8_accumulation", 8, 1, false, 1, over_ep<4>},
    {"ep4_tp2", 8, 2, true, 0, over_ep<4>},
    {"ep1_tp4", 4, 4, true, 0, experts},
    {"ep2_etp2_tp2", 8, 2, true, 0, split_experts},
    {"ep4_global_capacity_tp2", 8, 2, true, 0, globally_balanced},
    {"pp2_tp2_dp2_ep4", 8, 2, true, 1, in_two_stages<4>},
    {"pp2_dp2_ep2_zb_h1", 4, 1, false, 1, split_backward},
    {"pp2_tp2_zb_h1", 4, 2, true, 1, zb_h1<2>},
    {"pp2_interleaved", 4, 2, true, 1, interleaved},
    {"pp2_dp2_tied_zb_v", 4, 1, false, 1, tied_v},
    {"pp2_tied", 4, 2, true, 1, tied_two_stages},
    {"pp2_dp2_dualpipe", 4, 1, false, 1, dualpipe},
    {"pp2_dp2_tp2", 8, 2, true, 1, two_stages},
    {"pp2_dp4_accumulation", 8, 1, false, 1, two_stages},
    {"muon_dp4_tp2", 8, 2, true, 0, muon<MuonDistribution::kDuplicated>},
    {"muon_zero1_dp8", 8, 1, false, 0, zero_of<1, muon<MuonDistribution::kDuplicated>>},
    {"muon_zero2_dp4_tp2", 8, 2, true, 0, zero_of<2, muon<MuonDistribution::kDuplicated>>},
    {"muon_zero3_dp4_tp2", 8, 2, true, 0, zero_of<3, muon<MuonDistribution::kDuplicated>>},
    {"muon_zero1_ep2_tp2_bf16", 8, 2, true, 0,
     zero_of<1, both<over_ep<2>, both<bf16, muon<MuonDistribution::kDuplicated>>>>},
    {"muon_distributed_dp4", 4, 1, false, 0, muon<MuonDistribution::kDistributed>},
    {"muon_layer_sharded_dp8", 8, 1, false, 0, zero_of<1, muon<MuonDistribution::kLayerSharded>>},
    {"pp4_uneven", 4, 1, false, 2, four_uneven_stages},
    {"dp8", 8, 1, false},
    {"tp4", 4, 4, false},
    {"tp4_sp", 4, 4, true},
    {"dp2_tp4", 8, 4, true},
    {"dp4_tp2_no_sp", 8, 2, false},
    {"dp4_accumulation", 4, 1, false, 1},
    {"tp2_sp_accumulation", 2, 2, true, 2},
    {"one_rank", 1, 1, false, 2},
    {"gpt2_like_tp4_sp", 4, 4, true, 0, gpt2_like},
    {"gpt2_like_dp4_tp2", 8, 2, false, 2, gpt2_like},
    {"small_buckets", 8, 2, true, 1, small_buckets},
    {"odd_sizes", 4, 2, true, 0, odd_sizes},
    {"gqa_fp64", 4, 2, true, 0, grouped_queries_in_fp64},
};

inline TrainConfig config_of(const Layout& layout) {
  TrainConfig c = tiny_config(layout.world, layout.tp);
  c.sequence_parallel = layout.sequence_parallel;
  c.micro_batch_size = layout.micro_batch_size;
  c.train_iters = 1;
  layout.change(c);
  return c;
}

// gpt_tiny as `ranklab train` runs it, on other meshes.
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
inline void attention_dropout(TrainConfig& c) { c.model.attention_dropout = 0.1; }
inline void unfused_scores(TrainConfig& c) { c.attention_backend = "unfused"; }

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
    {"cp2_gathered_stripes_tp2", 4, 2, true, 0, gathered_stripes<2>},
    {"cp2_pp2_tp2", 8, 2, true, 0, both<two_stages, context<2>>},
    {"cp4_zero3_dp2", 8, 1, false, 0, zero_of<3, context<4>>},
    {"cp2_ep4_tp2", 8, 2, true, 0, both<context<2>, over_ep<4>>},
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
    {"zero2_dp4_tp2_accumulation", 8, 2, true, 2, zero<2>},
    {"one_key_head_tp4", 4, 4, true, 4, one_key_head},
    {"one_key_head_tp4_bf16", 8, 4, true, 4, both<one_key_head, bf16>},
    {"two_key_heads_tp8_larger", 8, 8, false, 4, both<larger, two_key_heads>},
    {"zero2_larger", 4, 2, true, 4, zero_of<2, larger>},
    {"zero1_default_layout", 8, 2, true, 0, zero_of<1, two_stages>},
    {"zero2_pp2_dp4", 8, 1, false, 0, zero_of<2, two_stages>},
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
    {"phi2_tp2", 2, 2, true, 4, phi2},
    {"gemma2_tp2", 2, 2, true, 4, gemma2},
    {"some_windows_tp2", 2, 2, true, 4, some_windows},
    {"qwen_tp2_no_sp", 2, 2, false, 4, qwen},
    {"qwen_selective", 1, 1, false, 4, both<qwen, recompute_selectively>},
    {"qwen_full", 2, 2, true, 4, both<qwen, recompute_all>},
    {"qwen_pp4_zb_h1", 8, 2, true, 0, both<qwen, zb_h1<4>>},
    {"qwen_larger", 2, 2, true, 4, both<larger, qwen>},
    {"qwen_experts_one_rank", 1, 1, false, 4, qwen_experts<1>},
    {"qwen_experts_ep4_tp2", 8, 2, true, 0, qwen_experts<4>},
    {"qwen_experts_pp2_tp2_ep4", 8, 2, true, 0, qwen_experts_in_two_stages<4>},
    {"latent_tp2", 2, 2, false, 4, latent},
    {"mtp", 1, 1, false, 8, predicting},
    {"ep1", 1, 1, false, 4, experts},
    {"ep8", 8, 1, false, 0, over_ep<8>},
    {"ep4_tp2", 8, 2, true, 0, over_ep<4>},
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
    {"megatron_on_nodes_pp2", 8, 2, false, 1, both<larger, both<two_stages, megatron_on_nodes>>, "a100-80"},
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
  c.mock_data = true;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.trace = false;
  run.change(c);
  return c;
}

// The fullest moment of each rank.
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

inline const PeakRun kPeakRuns[] = {
    {"one_rank", 1, 1},
    {"one_rank_accumulation", 1, 1, 2},
    {"dp4", 4, 1},
    {"tp2", 2, 2},
    {"dp2_tp2_bf16", 4, 2, 0, bf16},
    {"default_layout", 8, 2, 0, two_stages},
    {"selective", 1, 1, 2, recompute_selectively},
    {"full", 1, 1, 2, recompute_all},
    {"full_dp2_tp2_bf16", 4, 2, 0, both<bf16, recompute_all>},
    {"full_default_layout", 8, 2, 0, both<two_stages, recompute_all>},
    {"full_two_at_a_time", 2, 1, 2, recompute_together<2>},
    {"wide", 2, 1, 1, wide},
    {"wide_full", 2, 1, 1, both<wide, recompute_all>},
    {"zero1_dp4", 4, 1, 0, zero<1>},
    {"zero1_bf16", 4, 1, 2, zero_of<1, bf16>},
    {"zero2_dp4", 4, 1, 0, zero<2>},
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
    {"pp2_interleaved", 4, 2, 0, interleaved},
    {"pp5_v_half_norms_behind", 5, 1, 1, both<v_half, norms_behind>},
    {"pp4_v_min_norms_behind", 4, 1, 1, both<v_min, norms_behind>},
    {"muon", 2, 2, 2, muon<MuonDistribution::kDuplicated>},
    {"muon_zero1_bf16", 4, 1, 2, zero_of<1, both<bf16, muon<MuonDistribution::kDuplicated>>>},
    {"muon_distributed_zero2", 4, 1, 2, zero_of<2, muon<MuonDistribution::kDistributed>>},
    {"muon_layer_sharded_zero1", 4, 1, 2, zero_of<1, muon<MuonDistribution::kLayerSharded>>},
    {"attention_dropout", 2, 2, 2, attention_dropout},
    {"qwen", 2, 2, 2, qwen},
    {"llama3", 2, 2, 2, llama3},
    {"dynamic_positions", 2, 2, 2, dynamic_positions},
    {"window", 2, 2, 2, window},
    {"olmo2", 2, 2, 2, olmo2},
    {"long_rope", 2, 2, 2, long_rope},
    {"gpt_neox", 2, 2, 2, gpt_neox},
    {"phi2", 2, 2, 2, phi2},
    {"gemma2", 2, 2, 2, gemma2},
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
    {"qwen_experts_zero3", 4, 1, 0, zero_of<3, qwen_experts<2>>},
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
