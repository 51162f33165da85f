#include "tests/support/run_features.h"

#include <algorithm>
#include <span>
#include <stdexcept>

#include "core/parallel/expert/dispatcher.h"
#include "core/parity/every_layout.h"
#include "core/parity/layout_features.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/support/model_variants.h"

namespace ranklab {
namespace {

std::string name_of(const ParallelDims& split) {
  std::string name;
  for (const auto& [axis, ranks] :
       {std::pair{"dp ", split.dp}, std::pair{"cp ", split.cp}, std::pair{"tp ", split.tp}, std::pair{"pp ", split.pp}})
    if (ranks > 1) name += (name.empty() ? "" : " x ") + std::string(axis) + std::to_string(ranks);
  return name;
}

RunFeature models() {
  RunFeature feature{"model", {}};
  for (const std::span<const ModelVariant> rows : {dense_variants(), expert_variants()})
    for (const ModelVariant& row : rows)
      feature.choices.push_back({row.name, [&row](TrainConfig& c) { row.change(c.model); }});
  return feature;
}

// Two replicas that train on their own between outer updates.
Choice in_replicas(const ParallelDims& split, const DilocoConfig& diloco, const std::string& how) {
  return {name_of(split) + " in two replicas, " + how, [split, diloco](TrainConfig& c) {
            c.parallel = split;
            c.parallel.replicas = 2;
            c.diloco = diloco;
            c.diloco.replicas = 2;
          }};
}

// HSDP needs at least two groups of at least two ranks.
RunFeature layouts() {
  RunFeature feature{"layout", {}};
  for (const int world : {4, 8}) {
    for (const ParallelDims& split : every_split(world)) {
      if (split.dp % 2 == 0) {
        feature.choices.push_back(in_replicas(split, {.sync_steps = 1}, "each step"));
        feature.choices.push_back(in_replicas(
            split, {.sync_steps = 4, .fragments = 2, .sync_delay = 1, .update_alpha = 0.25}, "in fragments"));
      }
      for (const int groups : {1, 2}) {
        if (groups == 2 && split.dp * split.cp < 4) continue;
        const auto change = [split, groups](TrainConfig& c) {
          c.parallel = split;
          c.parallel.replicas = groups;
        };
        feature.choices.push_back({name_of(split) + (groups == 2 ? " in two groups" : ""), change});
      }
    }
  }
  return feature;
}

RunFeature as_run_feature(LayoutFeature layout, std::string of = {},
                          std::function<bool(const TrainConfig&)> matters = {}) {
  RunFeature feature{.name = std::move(layout.name), .of = std::move(of), .matters = std::move(matters)};
  for (LayoutChoice& choice : layout.choices) feature.choices.push_back({std::move(choice.name), choice.change});
  return feature;
}

RunFeature context_splits() {
  LayoutFeature exchanges = context_exchange_choices();
  RunFeature feature{.name = exchanges.name, .of = "layout", .matters = exchanges.matters};
  for (const LayoutChoice& exchange : exchanges.choices)
    for (const SequenceBalance balance :
         {SequenceBalance::kContiguous, SequenceBalance::kZigzag, SequenceBalance::kStripe})
      feature.choices.push_back({exchange.name + " " + std::string(name(balance)), [exchange, balance](TrainConfig& c) {
                                   exchange.change(c);
                                   c.context_split.balance = balance;
                                 }});
  return feature;
}

RunFeature documents() {
  const auto marked = [](bool attention, bool positions, bool loss) {
    return [=](TrainConfig& c) {
      c.documents = {.reset_attention_mask = attention, .reset_position_ids = positions, .eod_mask_loss = loss};
    };
  };
  return {"documents",
          {{"one a sequence", marked(false, false, false)},
           {"apart", marked(true, true, true)},
           {"apart at positions of the sequence", marked(true, false, false)}}};
}

bool has_experts(const TrainConfig& c) { return c.model.moe.enabled(); }

RunFeature dispatchers() {
  RunFeature feature{.name = "dispatcher", .of = "model", .matters = has_experts};
  for (const std::string& name : dispatcher_names()) {
    if (name == "rdep" && test_device() == TestDevice::kCuda) continue;  // writes into the host's memory
    feature.choices.push_back({name, [name](TrainConfig& c) {
                                 c.moe_dispatcher = name;
                                 c.gpus_per_node = 2;
                               }});
  }
  return feature;
}

RunFeature recomputations() {
  const auto choice = [](const char* granularity, const char* method, int64_t layers) {
    return [=](TrainConfig& c) {
      c.recompute_granularity = granularity;
      c.recompute_method = method;
      c.recompute_num_layers = layers;
    };
  };
  return {"recompute",
          {{"none", choice("none", "block", 0)},
           {"selective", choice("selective", "block", 0)},
           {"halves of layers",
            [](TrainConfig& c) {
              c.recompute_granularity = "selective";
              c.recompute_modules = {.mlp = !c.model.is_moe_layer(0), .moe = c.model.moe.enabled()};
            }},
           {"full", choice("full", "block", 0)},
           {"full of one layer", choice("full", "block", 1)}}};
}

// Lion takes the sign of a gradient. If the gradient is zero except for rounding (that of a key bias), its weight moves
// in either direction, so layouts that add in different orders cannot agree. zero_test.cpp and exact_test.cpp cover
// layouts that add in the same order.
RunFeature optimizers() {
  RunFeature feature{"optimizer", {}};
  for (size_t i = 0; i < kOptimizers.size(); ++i) {
    const auto kind = static_cast<OptimizerKind>(i);
    if (kind == OptimizerKind::kLion) continue;
    const std::string name(kOptimizers[i].name);
    if (kind != OptimizerKind::kMuon) {
      feature.choices.push_back({name, [kind](TrainConfig& c) { c.optimizer = kind; }});
      continue;
    }
    for (size_t form = 0; form < kMuonDistributions.size(); ++form) {
      feature.choices.push_back({name + " " + std::string(kMuonDistributions[form]), [kind, form](TrainConfig& c) {
                                   c.optimizer = kind;
                                   c.muon_distribution = static_cast<MuonDistribution>(form);
                                 }});
    }
  }
  return feature;
}

template <typename Member, typename Value>
RunFeature two_ways(const std::string& name, Member TrainConfig::*member, const Value& first, const Value& second) {
  return {name,
          {{"no", [=](TrainConfig& c) { c.*member = first; }}, {"yes", [=](TrainConfig& c) { c.*member = second; }}}};
}

RunFeature only_where(RunFeature feature, const std::string& of, std::function<bool(const TrainConfig&)> matters) {
  feature.of = of;
  feature.matters = std::move(matters);
  return feature;
}

}  // namespace

std::vector<std::string> factorizations(int world) {
  std::vector<std::string> names;
  for (const ParallelDims& split : every_split(world)) names.push_back(name_of(split));
  return names;
}

std::vector<RunFeature> run_features() {
  return {
      models(),
      layouts(),
      as_run_feature(schedule_choices()),
      context_splits(),
      documents(),
      as_run_feature(expert_spread_choices(), "model", has_experts),
      dispatchers(),
      as_run_feature(zero_stage_choices()),
      recomputations(),
      only_where(two_ways("delayed weight gradients", &TrainConfig::delay_weight_grads, false, true), "model",
                 has_experts),
      only_where(two_ways("expert overlap", &TrainConfig::overlap_moe, false, true), "model", has_experts),
      two_ways("pairwise accumulation", &TrainConfig::accumulation, Accumulation::kSequential, Accumulation::kPairwise),
      as_run_feature(sequence_parallel_choices(), "layout", sequence_parallel_choices().matters),
      two_ways("late gradient reduction", &TrainConfig::overlap_grad_reduce, true, false),
      two_ways("overlapped parameter gathers", &TrainConfig::overlap_param_gather, false, true),
      two_ways("clipping", &TrainConfig::clip_grad, 0.0, 0.05),
      {"changing weight decay",
       {{"no", [](TrainConfig& c) { c.weight_decay_style = WeightDecayStyle::kConstant; }},
        {"yes",
         [](TrainConfig& c) {
           c.weight_decay_style = WeightDecayStyle::kCosine;
           c.start_weight_decay = 0.3;
           c.end_weight_decay = 0.02;
         }}}},
      two_ways("unfused attention", &TrainConfig::attention_backend, std::string("auto"), std::string("unfused")),
      {"clipped heads",
       {{"no", [](TrainConfig& c) { c.qk_clip = false; }},
        {"yes",
         [](TrainConfig& c) {
           c.qk_clip = true;
           c.qk_clip_threshold = 0.45;
         }}}},
      {"attention dropout",
       {{"no", [](TrainConfig& c) { c.model.attention_dropout = 0; }},
        {"yes", [](TrainConfig& c) { c.model.attention_dropout = 0.2; }}}},
      // One of the steps has half the batch.
      {"growing batches",
       {{"no", [](TrainConfig& c) { c.rampup_batch_size.clear(); }},
        {"yes",
         [](TrainConfig& c) {
           const std::string half = std::to_string(c.global_batch_size / 2);
           c.rampup_batch_size = half + " " + half + " " + half;
         }}}},
      optimizers()};
}

size_t feature_index(const std::vector<RunFeature>& features, const std::string& name) {
  const auto it = std::ranges::find(features, name, &RunFeature::name);
  if (it == features.end()) throw std::out_of_range("no feature " + name);
  return static_cast<size_t>(it - features.begin());
}

size_t choice_index(const RunFeature& feature, const std::string& name) {
  const auto it = std::ranges::find(feature.choices, name, &Choice::name);
  if (it == feature.choices.end()) throw std::out_of_range(feature.name + " has no choice " + name);
  return static_cast<size_t>(it - feature.choices.begin());
}

void keep_choices(std::vector<RunFeature>& features, const std::string& feature,
                  const std::vector<std::string>& names) {
  RunFeature& row = features[feature_index(features, feature)];
  std::vector<Choice> kept;
  for (const std::string& name : names) kept.push_back(row.choices[choice_index(row, name)]);
  row.choices = std::move(kept);
}

}  // namespace ranklab
