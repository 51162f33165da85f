// How the runs with which predictions are compared change a small configuration.
#pragma once
#include "core/config/train_config.h"
#include "tests/support/recompute.h"

namespace ranklab {

inline void gpt2_like(TrainConfig& c) {
  c.model.norm = NormKind::kLayerNorm;
  c.model.position = PositionKind::kLearned;
  c.model.activation = ActivationKind::kGelu;
  c.model.add_bias = true;
  c.model.tie_embeddings = true;
  c.model.dropout = 0.1;
}
template <MuonDistribution kForm>
inline void muon(TrainConfig& c) {
  c.optimizer = OptimizerKind::kMuon;
  c.muon_distribution = kForm;
}
inline void small_buckets(TrainConfig& c) {
  c.ddp_bucket_bytes = 9000;
  c.overlap_grad_reduce = false;
}
inline void each_microbatch(TrainConfig& c) {  // which is reduced, and a step has four
  c.grad_sync = GradSync::kMicrobatch;
  c.global_batch_size = 4 * c.parallel.world / c.parallel.pp;
  c.num_microbatches = 0;
}
inline void grouped_queries_in_fp64(TrainConfig& c) {
  c.model.num_query_groups = 2;
  c.model.vocab_size = 301;  // does not divide by tp: padded
  c.params_dtype = "fp64";
}

inline void odd_sizes(TrainConfig& c) {  // gradients that do not fill their cache lines
  c.model.hidden_size = 36;
  c.model.num_attention_heads = 6;
  c.model.ffn_hidden_size = 90;
}

template <int kCp, ContextExchange kExchange = ContextExchange::kP2p,
          SequenceBalance kBalance = SequenceBalance::kZigzag>
inline void context(TrainConfig& c) {
  c.parallel.cp = kCp;
  c.context_split = {kExchange, kBalance};
}
template <int kCp>
inline void context_of_heads(TrainConfig& c) {
  context<kCp, ContextExchange::kAllToAll>(c);
}
template <int kCp>
inline void gathered_context(TrainConfig& c) {
  context<kCp, ContextExchange::kAllGather>(c);
}
template <int kCp>
inline void contiguous_context(TrainConfig& c) {
  context<kCp, ContextExchange::kP2p, SequenceBalance::kContiguous>(c);
}
template <int kCp>
inline void context_in_two_levels(TrainConfig& c) {
  context<kCp, ContextExchange::kAllToAllP2p>(c);
}
template <int kCp>
inline void context_by_layer(TrainConfig& c) {
  context<kCp>(c);
  c.context_split.by_layer.assign(static_cast<size_t>(c.model.num_layers), ContextExchange::kP2p);
  c.context_split.by_layer.front() = ContextExchange::kAllGather;
  c.context_split.by_layer.back() = ContextExchange::kAllToAll;
}
template <int kCp>
inline void gathered_stripes(TrainConfig& c) {
  context<kCp, ContextExchange::kAllGather, SequenceBalance::kStripe>(c);
}

inline void two_stages(TrainConfig& c) { c.parallel.pp = 2; }
inline void four_uneven_stages(TrainConfig& c) {
  c.parallel.pp = 4;
  c.model.num_layers = 6;
}

template <int kPp>
inline void zb_h1(TrainConfig& c) {
  c.parallel.pp = kPp;
  c.pipeline_schedule = "zb-h1";
}
inline void interleaved(TrainConfig& c) {
  c.parallel.pp = 2;
  c.model.num_layers = 4;
  c.virtual_stages = 2;
}
inline void tied_v(TrainConfig& c) {
  c.parallel.pp = 2;
  c.model.num_layers = 4;
  c.model.tie_embeddings = true;
  c.pipeline_schedule = "zb-v";
}
// The last rank's two stages follow one another. Many microbatches, since what one holds too much is of each.
inline void v_half(TrainConfig& c) {
  c.parallel.pp = 5;
  c.model.num_layers = 10;
  c.model.hidden_size = 32;
  c.model.ffn_hidden_size = 64;
  c.pipeline_schedule = "v-half";
  c.global_batch_size = 24;
}
inline void v_min(TrainConfig& c) {
  v_half(c);
  c.parallel.pp = 4;
  c.model.num_layers = 8;
  c.pipeline_schedule = "v-min";
}
// Products read a stage's input itself, so that weight gradients need it.
inline void norms_behind(TrainConfig& c) { c.model.norm_placement = NormPlacement::kBehind; }
inline void tied_two_stages(TrainConfig& c) {
  c.parallel.pp = 2;
  c.model.tie_embeddings = true;
}
inline void dualpipe(TrainConfig& c) {
  c.parallel.pp = 2;
  c.pipeline_schedule = "dualpipe";
}

// Experts in turn, so that all get equally many tokens, which is what the plan counts with.
inline void experts(TrainConfig& c) {
  c.model.moe = {.num_experts = 8,
                 .topk = 2,
                 .ffn_hidden_size = 48,
                 .shared_ffn_hidden_size = 32,
                 .first_dense_layers = 1,
                 .score = RouterScore::kSigmoid,
                 .num_groups = 4,
                 .group_topk = 2,
                 .balancing = LoadBalancing::kSeqAuxLoss,
                 .aux_loss_coeff = 1e-3,
                 .expert_bias = true,
                 .force_balance = true};
}
template <int kEp>
inline void over_ep(TrainConfig& c) {
  experts(c);
  c.parallel.ep = kEp;
}
template <int kEp>
inline void in_two_stages(TrainConfig& c) {
  over_ep<kEp>(c);
  c.parallel.pp = 2;
  c.model.num_layers = 4;
}
inline void split_experts(TrainConfig& c) {
  over_ep<2>(c);
  c.parallel.etp = 2;
}
inline void globally_balanced(TrainConfig& c) {
  over_ep<4>(c);
  c.model.moe.shared_ffn_hidden_size = 0;
  c.model.moe.balancing = LoadBalancing::kGlobalAuxLoss;
  c.model.moe.capacity_factor = 2;
  c.ddp_bucket_bytes = 9000;
}
inline void tensor_overlap(TrainConfig& c) { c.tp_comm_overlap = true; }
// Chosen by the router, and yet equally many rows for all experts.
inline void padded(TrainConfig& c) {
  c.model.moe.force_balance = false;
  c.model.moe.capacity_factor = 1.25;
  c.pad_experts = true;
}
inline void padded_experts(TrainConfig& c) {
  over_ep<4>(c);
  padded(c);
}
inline void padded_split_experts(TrainConfig& c) {
  split_experts(c);
  padded(c);
}
inline void split_backward(TrainConfig& c) {
  in_two_stages<2>(c);
  c.pipeline_schedule = "zb-h1";
}

// 4 nodes of 2 ranks; a token's two experts lie on both ranks of a node.
inline void on_four_nodes(TrainConfig& c, const char* dispatcher) {
  over_ep<8>(c);
  c.gpus_per_node = 2;
  c.moe_dispatcher = dispatcher;
}
inline void all_to_all(TrainConfig& c) { on_four_nodes(c, "alltoall"); }
inline void all_gather(TrainConfig& c) { on_four_nodes(c, "allgather"); }
inline void dedup(TrainConfig& c) { on_four_nodes(c, "dedup"); }
inline void dedup_in_a_node(TrainConfig& c) { dedup(c), c.gpus_per_node = 8; }
inline void rdep(TrainConfig& c) { on_four_nodes(c, "rdep"); }

template <int kLayers>
inline void recompute_first(TrainConfig& c) {
  recompute_all(c);
  c.recompute_num_layers = kLayers;
}
template <int kLayers>
inline void recompute_together(TrainConfig& c) {
  recompute_first<kLayers>(c);
  c.recompute_method = "uniform";
}
template <void (*kFirst)(TrainConfig&), void (*kThen)(TrainConfig&)>
inline void both(TrainConfig& c) {
  kFirst(c);
  kThen(c);
}

inline void bf16(TrainConfig& c) {
  c.params_dtype = "fp32";
  c.bf16 = true;
}
inline void fp16(TrainConfig& c) {
  c.params_dtype = "fp32";
  c.precision.fp16 = true;
}
inline void wide_grads(TrainConfig& c) {
  bf16(c);
  c.precision.main_grads_dtype = "fp32";
}
// As the recipe of DeepSeek-V3 has them.
inline void narrow_moments(TrainConfig& c) {
  wide_grads(c);
  c.precision.exp_avg_dtype = c.precision.exp_avg_sq_dtype = "bf16";
}
inline void no_masters(TrainConfig& c) {
  bf16(c);
  c.precision.main_params_dtype = "bf16";
}
inline void scaled_loss(TrainConfig& c) { c.precision.loss_scale = 256; }
// Shards of these models hold whole groups of 4.
inline void in_recipe(TrainConfig& c, const char* recipe, int64_t block) {
  c.precision.recipe = recipe;
  c.precision.block_size = block;
}
inline void fp8_delayed(TrainConfig& c) { in_recipe(c, "fp8_delayed", 0); }
inline void fp8_current(TrainConfig& c) { in_recipe(c, "fp8_current", 0); }
inline void fp8_rowwise(TrainConfig& c) { in_recipe(c, "fp8_rowwise", 0); }
inline void fp8_tiles(TrainConfig& c) { in_recipe(c, "deepseek_v3", 4); }
inline void fp8_gather(TrainConfig& c) {
  fp8_tiles(c);
  c.precision.param_gather = true;
}
inline void nvfp4(TrainConfig& c) { in_recipe(c, "nvfp4", 4); }
template <int kReplicas>
inline void groups(TrainConfig& c) {
  c.parallel.replicas = kReplicas;
}
template <int kStage>
inline void zero(TrainConfig& c) {
  c.zero_stage = kStage;
}
inline void delayed_wgrads(TrainConfig& c) { c.delay_weight_grads = true; }
inline void overlapped_gathers(TrainConfig& c) {
  c.overlap_param_gather = true;
  c.train_iters = 2;  // the gathers that a step starts end in the next
}
template <int kStage, void (*kChange)(TrainConfig&)>
inline void zero_of(TrainConfig& c) {
  kChange(c);
  c.zero_stage = kStage;
}

}  // namespace ranklab
