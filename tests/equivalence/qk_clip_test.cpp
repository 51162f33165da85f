// QK-clip in training: the weights after a step are those without it times the factors of a plain formula, which makes
// all scores of the step's tokens from the weights before it; and every layout clips as one rank does
// (composition_test.cpp crosses it with all else, zero_test.cpp holds stages and main parameters bit for bit).
#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/provide.h"
#include "core/sim/aten.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/recompute.h"
#include "tests/support/relative_error.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

constexpr int64_t kVocabulary = 261;

// [B, S + 1] of samples first, first + 1, ...
at::Tensor tokens_of(int64_t first, int64_t count, int64_t seq) {
  const at::Tensor sample = at::arange(first, first + count).unsqueeze(1), position = at::arange(seq + 1);
  return (sample * 31 + position * position * 7 + position * sample * 3).remainder(kVocabulary);
}

std::shared_ptr<DataProvider> known_batches() {
  return provide_data("known batches", [](const RankContext& ctx, const RunPlan& plan, int64_t step, int64_t mb) {
    const int64_t seq = plan.config.model.seq_length, count = plan.micro_batch_size;
    const int64_t first = (ctx.coordinate(Axis::kDp) * plan.microbatches_of(step) + mb) * count;
    const at::Tensor tokens = tokens_of(first, count, seq);
    return Batch{.tokens_BS = tokens.narrow(1, 0, seq).contiguous().to(ctx.device()),
                 .targets_BS = tokens.narrow(1, 1, seq).contiguous().to(ctx.device()),
                 .first_sample = first,
                 .step = step};
  });
}

// One layer without positions, whose scores a few lines write out.
TrainConfig one_layer() {
  TrainConfig c = small_config();
  c.model.num_layers = 1;
  c.model.position = PositionKind::kNone;
  c.model.vocab_size = kVocabulary;
  c.model.init_std = 0.7;
  c.train_iters = 1;
  return c;
}

struct Weights {
  const TrainingRecord& run;
  at::Tensor operator()(const std::string& name, int64_t step = -1) const { return run.weights.at({step, name}); }
};

at::Tensor normed(const at::Tensor& x) { return x * (x.square().mean(-1, true) + 1e-5).rsqrt(); }

// [B, S, heads width] -> [B, heads, S, width]
at::Tensor by_head(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

// The largest of all scores of each head: q k / sqrt(width), no query after its key.
at::Tensor largest_scores(const at::Tensor& q, const at::Tensor& k) {
  const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor later = at::ones_like(scores).triu(1).to(at::kBool);
  return scores.masked_fill(later, -std::numeric_limits<double>::infinity()).amax({0, 2, 3});
}

at::Tensor layer_input(const TrainConfig& c, const Weights& w) {
  const at::Tensor tokens = tokens_of(0, c.global_batch_size, c.model.seq_length).narrow(1, 0, c.model.seq_length);
  return normed(at::embedding(w("embedding.weight"), tokens));
}

// gamma^exponent for each of `rows` rows.
at::Tensor rows_of(const at::Tensor& gamma, double exponent, int64_t rows) {
  return gamma.pow(exponent).unsqueeze(1).expand({gamma.size(0), rows}).reshape({-1});
}

// `factors` by parameter; the others are as without clipping.
void expect_clipped(TrainConfig c, const at::Tensor& largest,
                    const std::function<std::map<std::string, at::Tensor>(const at::Tensor& gamma)>& factors,
                    int64_t heads_per_key) {
  const TrainingRecord without = record_training(c, {.data = known_batches()});
  c.qk_clip = true;
  c.qk_clip_threshold = largest.mean().item<double>();
  c.qk_clip_alpha = 0.3;
  const at::Tensor of_keys = largest.view({-1, heads_per_key}).amax({1}).repeat_interleave(heads_per_key);
  const at::Tensor gamma = (c.qk_clip_threshold / of_keys).clamp_max(1);
  const int64_t clipped = gamma.lt(1).sum().item<int64_t>();
  EXPECT_GT(clipped, 0);
  EXPECT_LT(clipped, largest.numel()) << "a head that is not clipped should be among them";
  const TrainingRecord with = record_training(c, {.data = known_batches()});
  EXPECT_EQ(with.faults, std::vector<std::string>{});
  EXPECT_NEAR(with.steps.at(0).max_attention_logit.value(), largest.max().item<double>(), 1e-12);
  EXPECT_EQ(with.steps.at(0).clipped_heads, clipped);
  std::map<std::string, at::Tensor> scaled = factors(gamma);
  for (const auto& [key, want] : without.weights) {
    at::Tensor expected = want;
    const auto it = scaled.find(key.second);
    if (key.first == 0 && it != scaled.end())
      expected = want * (want.dim() == 2 ? it->second.unsqueeze(1) : it->second);
    EXPECT_LT(relative_error(with.weights.at(key), expected), 1e-13) << key.second << " at " << key.first;
    if (it != scaled.end()) it->second = it->second.clone();
  }
  for (const auto& [name, factor] : scaled) EXPECT_TRUE(without.weights.contains({0, name})) << name;
}

TEST(QkClipTraining, ScalesQueriesAndKeysThatHeadsShare) {
  for (const auto& [groups, gated] : {std::pair<int64_t, bool>{4, false}, {2, false}, {2, true}}) {
    TrainConfig c = one_layer();
    c.model.num_query_groups = groups;
    c.model.add_qkv_bias = true;
    c.model.attention_output_gate = gated;  // behind the queries, and not scaled
    const TrainingRecord run = record_training(c, {.data = known_batches()});
    const Weights w{run};
    const int64_t heads = 4, width = 8, gate = gated ? heads * width : 0;
    const at::Tensor qkv =
        at::matmul(layer_input(c, w), w("layers.0.attention.qkv.weight").t()) + w("layers.0.attention.qkv.bias");
    const auto parts = qkv.split_with_sizes({heads * width, gate, groups * width, groups * width}, -1);
    const at::Tensor k = by_head(parts[2], groups).repeat_interleave(heads / groups, 1);
    const at::Tensor largest = largest_scores(by_head(parts[0], heads), k);
    expect_clipped(
        c, largest,
        [&](const at::Tensor& gamma) -> std::map<std::string, at::Tensor> {
          const at::Tensor of_keys = gamma.slice(0, 0, heads, heads / groups);
          const at::Tensor rows = at::cat({rows_of(gamma, 0.3, width), at::ones({gate}, at::kDouble),
                                           rows_of(of_keys, 0.7, width), at::ones({groups * width}, at::kDouble)});
          return {{"layers.0.attention.qkv.weight", rows}, {"layers.0.attention.qkv.bias", rows}};
        },
        heads / groups);
  }
}

// Norms of queries and keys undo what projections are scaled by, so that theirs are the weights which count: one for
// all heads of a layer, or one for each.
TEST(QkClipTraining, ScalesTheWeightsOfNorms) {
  for (const bool by_heads : {true, false}) {
    for (const double offset : {0, 1}) {
      TrainConfig c = one_layer();
      const int64_t heads = 4, groups = 2, width = 8;
      c.model.num_query_groups = groups;
      c.model.qk_norm = true;
      c.model.norm_1p = offset > 0;
      c.model.qk_norm_width = by_heads ? QkNormWidth::kHead : QkNormWidth::kAllHeads;
      const TrainingRecord plain = record_training(c, {.data = known_batches()});
      const Weights w{plain};
      const at::Tensor qkv = at::matmul(layer_input(c, w), w("layers.0.attention.qkv.weight").t());
      const auto parts = qkv.split_with_sizes({heads * width, groups * width, groups * width}, -1);
      const auto of_heads = [&](const at::Tensor& x, int64_t count, const char* name) {
        const at::Tensor weight = w(std::string("layers.0.attention.") + name + ".weight") + offset;
        return by_heads ? normed(by_head(x, count)) * weight : by_head(normed(x) * weight, count);
      };
      const at::Tensor k = of_heads(parts[1], groups, "k_norm").repeat_interleave(heads / groups, 1);
      const at::Tensor largest = largest_scores(of_heads(parts[0], heads, "q_norm"), k);
      c.qk_clip = true;
      c.qk_clip_threshold = largest.max().item<double>() * 0.9;
      const TrainingRecord clipped = record_training(c, {.data = known_batches()});
      const at::Tensor of_keys = by_heads ? largest.max().expand({heads})
                                          : largest.view({groups, -1}).amax({1}).repeat_interleave(heads / groups);
      const at::Tensor gamma = (c.qk_clip_threshold / of_keys).clamp_max(1);
      EXPECT_EQ(clipped.steps.at(0).clipped_heads, gamma.lt(1).sum().item<int64_t>());
      for (const auto& [key, want] : plain.weights) {
        at::Tensor factor = at::ones({1}, at::kDouble);
        const bool of_queries = key.second.ends_with(".q_norm.weight");
        if (key.first == 0 && (of_queries || key.second.ends_with(".k_norm.weight"))) {
          const at::Tensor one = of_queries ? gamma : gamma.slice(0, 0, heads, heads / groups);
          factor = by_heads ? gamma.narrow(0, 0, 1).sqrt() : rows_of(one, 0.5, width);
        }
        const at::Tensor expected = (want + offset) * factor - offset;
        EXPECT_LT((clipped.weights.at(key) - expected).abs().max().item<double>(), 1e-13) << key.second;
      }
    }
  }
}

// The shared rotary key stays, so the rotary part of a query takes all of gamma.
TEST(QkClipTraining, ScalesLatentAttentionsPartsApart) {
  for (const int64_t compressed : {16, 0}) {
    TrainConfig c = one_layer();
    const int64_t heads = 4, nope = 6, rope = 4, v = 5, lora = 12;
    c.model.mla = {.q_lora_rank = compressed,
                   .kv_lora_rank = lora,
                   .qk_head_dim = nope,
                   .qk_pos_emb_head_dim = rope,
                   .v_head_dim = v};
    const TrainingRecord run = record_training(c, {.data = known_batches()});
    const Weights w{run};
    const auto times = [&](const at::Tensor& x, const char* name) {
      return at::matmul(x, w(std::string("layers.0.attention.") + name + ".weight").t());
    };
    const at::Tensor x = layer_input(c, w);
    const at::Tensor q = by_head(compressed > 0 ? times(normed(times(x, "q_down")), "q_up") : times(x, "q"), heads);
    const auto down = times(x, "kv_down").split_with_sizes({lora, rope}, -1);
    const at::Tensor kv = by_head(times(normed(down[0]), "kv_up"), heads);
    const at::Tensor shared = down[1].unsqueeze(1).expand({x.size(0), heads, x.size(1), rope});
    const at::Tensor largest = largest_scores(q, at::cat({kv.narrow(3, 0, nope), shared}, 3));
    expect_clipped(
        c, largest,
        [&](const at::Tensor& gamma) -> std::map<std::string, at::Tensor> {
          const auto of_heads = [&](double first, double second, int64_t width) {
            return at::cat({gamma.pow(first).unsqueeze(1).expand({heads, nope}),
                            gamma.pow(second).unsqueeze(1).expand({heads, width})},
                           1)
                .reshape({-1});
          };
          const std::string queries = compressed > 0 ? "q_up" : "q";
          return {{"layers.0.attention." + queries + ".weight", of_heads(0.3, 1, rope)},
                  {"layers.0.attention.kv_up.weight", of_heads(0.7, 0, v)}};
        },
        1);
  }
}

struct ClipLayout {
  const char* name;
  ParallelDims dims;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

void ring(TrainConfig& c) { c.context_split = {.exchange = ContextExchange::kP2p}; }
void gather(TrainConfig& c) { c.context_split = {.exchange = ContextExchange::kAllGather}; }
void all_to_all(TrainConfig& c) { c.context_split = {.exchange = ContextExchange::kAllToAll}; }
void microbatches(TrainConfig& c) { c.num_microbatches = 4; }
void stage(TrainConfig& c, int64_t zero) { c.zero_stage = zero; }

const ClipLayout kClipLayouts[] = {
    {"microbatches", {.world = 1}, microbatches},
    {"recompute", {.world = 1}, recompute_all},
    {"selective_recompute", {.world = 1}, [](TrainConfig& c) { c.recompute_granularity = "selective"; }},
    {"unfused", {.world = 1}, [](TrainConfig& c) { c.attention_backend = "unfused"; }},
    {"tp4", {.world = 4, .tp = 4}},
    {"tp4_no_sp", {.world = 4, .tp = 4}, [](TrainConfig& c) { c.sequence_parallel = false; }},
    {"dp2_tp2", {.world = 4, .tp = 2}, microbatches},
    {"cp4_ring", {.world = 4, .cp = 4}, ring},
    {"cp4_ring_selective_recompute",
     {.world = 4, .cp = 4},
     [](TrainConfig& c) { ring(c), c.recompute_granularity = "selective"; }},
    {"cp2_gather_tp2", {.world = 4, .tp = 2, .cp = 2}, gather},
    {"cp2_all_to_all_tp2", {.world = 4, .tp = 2, .cp = 2}, all_to_all},
    {"pp4", {.world = 4, .pp = 4}, microbatches},
    {"pp2_zb_v", {.world = 2, .pp = 2}, [](TrainConfig& c) { c.pipeline_schedule = "zb-v", microbatches(c); }},
    {"pp2_dualpipe_dp2",
     {.world = 4, .pp = 2},
     [](TrainConfig& c) { c.pipeline_schedule = "dualpipe", microbatches(c); }},
    {"dp4_zero1", {.world = 4}, [](TrainConfig& c) { stage(c, 1); }},
    {"dp4_zero2", {.world = 4}, [](TrainConfig& c) { stage(c, 2); }},
    {"dp2_tp2_zero3", {.world = 4, .tp = 2}, [](TrainConfig& c) { stage(c, 3), recompute_all(c); }},
    {"dp2_pp2_zero3", {.world = 4, .pp = 2}, [](TrainConfig& c) { stage(c, 3), microbatches(c); }},
};

class QkClipLayouts : public testing::TestWithParam<const char*> {};

void shared_keys(ModelConfig& m) {
  m.num_query_groups = 2;
  m.add_qkv_bias = true;
  m.window_size = 5;
  m.window_layers = {.skip_freq = 2};
}
// In half of the layers, which have no logits; the others have a gate among what is projected.
void linear_layers(ModelConfig& m) {
  shared_keys(m);
  variant_named("delta_net").change(m);
  m.attention_output_gate = true;
}
// Layers of one mixer each, of which those with attention have logits.
void mixers(ModelConfig& m) {
  shared_keys(m);
  variant_named("mamba").change(m);
}
void latent_keys_and_prediction(ModelConfig& m) {
  m.mla = {.q_lora_rank = 16, .kv_lora_rank = 12, .qk_head_dim = 4, .qk_pos_emb_head_dim = 4, .v_head_dim = 8};
  m.mtp_num_layers = 1;
  m.softmax = SoftmaxKind::kLearnable;
}

// Some heads are clipped in every step, more than once and others not.
TEST_P(QkClipLayouts, EqualOneRank) {
  TrainConfig one = small_config();
  one.train_iters = 4;
  one.model.init_std = 0.3;
  one.qk_clip = true;
  const std::string model = GetParam();
  model == "latent"   ? latent_keys_and_prediction(one.model)
  : model == "linear" ? linear_layers(one.model)
  : model == "mixers" ? mixers(one.model)
                      : shared_keys(one.model);
  one.qk_clip_threshold = 2.5;
  if (model == "linear") one.train_iters = 2;  // rounding grows there with every step from weights as large as these
  const TrainingRecord reference = record_training(one, {.data = uneven_batches()});
  const int64_t heads = (one.model.num_layers + one.model.mtp_num_layers) * one.model.num_attention_heads;
  int64_t clipped = 0;
  for (const StepMetrics& step : reference.steps) clipped += step.clipped_heads;
  EXPECT_GT(clipped, one.train_iters);
  EXPECT_LT(clipped, one.train_iters * heads);
  for (const ClipLayout& layout : kClipLayouts) {
    SCOPED_TRACE(layout.name);
    TrainConfig c = one;
    c.parallel = layout.dims;
    layout.change(c);
    expect_same_training(record_training(c, {.data = uneven_batches()}), reference, kRoundingOfAdamW);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, QkClipLayouts, testing::Values("grouped", "latent", "linear", "mixers"));

// A step whose update is skipped clips nothing; its logits are still reported.
TEST(QkClipTraining, FollowsUpdatesAlone) {
  TrainConfig c = small_config();
  c.train_iters = 1;
  c.params_dtype = "fp32";
  c.precision.fp16 = true;
  c.precision.initial_loss_scale = 1 << 24;
  c.qk_clip = true;
  c.qk_clip_threshold = 1e-3;
  const TrainingRecord run = record_training(c);
  EXPECT_TRUE(run.steps.at(0).skipped);
  EXPECT_EQ(run.steps.at(0).clipped_heads, 0);
  EXPECT_GT(run.steps.at(0).max_attention_logit.value(), 1e-3);
  for (const auto& [key, tensor] : run.weights)
    EXPECT_TRUE(at::equal(tensor, run.weights.at({-1, key.second}))) << key.second;
}

// Forward passes of a validation are not part of a step, and measuring alone changes nothing.
TEST(QkClipTraining, MeasuresTrainingAlone) {
  TrainConfig c = small_config();
  const TrainingRecord plain = record_training(c);
  EXPECT_FALSE(plain.steps.at(0).max_attention_logit.has_value());
  c.log_max_attention_logit = true;
  const TrainingRecord measured = record_training(c);
  c.eval_interval = 1;
  c.eval_iters = 2;
  const TrainingRecord validated = record_training(c);
  expect_tensors_near(measured.weights, plain.weights, kSameBits, "weights");
  for (size_t i = 0; i < plain.steps.size(); ++i) {
    EXPECT_EQ(measured.steps[i].max_attention_logit, validated.steps[i].max_attention_logit);
    EXPECT_EQ(measured.steps[i].clipped_heads, 0);
  }
  EXPECT_GT(*measured.steps.at(0).max_attention_logit, 0);
}

}  // namespace
}  // namespace ranklab
