// Features compose: of every two choices of different features there is a run that has both, and it equals one rank
// (fp64, 1e-12: losses, gradients, weights, moments). Rows are found greedily, each bringing as many new pairs as a few
// random tries allow; pairs that resolve() refuses in every row stand, with the reason, in the table of combinations
// (core/config/requirements.h), or break a constraint between numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/config/requirements.h"
#include "core/parallel/expert/dispatcher.h"
#include "core/pipeline/schedules.h"
#include "tests/all_cases.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

struct Choice {
  std::string name;
  std::function<void(TrainConfig&)> change;
  bool dense = false;  // a model without experts
};
struct Kind {
  std::string name;
  std::vector<Choice> choices;
  bool of_experts = false;  // dense models take its first choice
};

// A few of each kind: the others differ from these inside a layer, which layouts_test.cpp holds.
const std::set<std::string> kUsualVariants = {
    "gpt2_dropout", "latent_mtp", "latent_tied", "one_key_head", "gemma2",
    "phi2",         "capacity",   "deepseek",    "qwen_experts", "one_expert_a_token"};
const std::set<std::string> kUsualSchedules = {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe", "dualpipe-v"};

Kind model_kinds() {
  Kind feature{"model", {}};
  for (const std::span<const ModelVariant> rows : {dense_variants(), expert_variants()}) {
    for (const ModelVariant& row : rows) {
      if (!all_cases() && !kUsualVariants.contains(row.name)) continue;
      const auto change = [&row](TrainConfig& c) { row.change(c.model); };
      feature.choices.push_back({row.name, change, rows.data() == dense_variants().data()});
    }
  }
  return feature;
}

Kind meshes() {
  const auto ranks = [](int dp, int tp, int pp, int replicas = 1, int cp = 1) {
    return [=](TrainConfig& c) {
      c.parallel = {.world = dp * cp * tp * pp, .tp = tp, .cp = cp, .pp = pp, .replicas = replicas};
      if (pp == 4) c.model.num_layers = 8;
    };
  };
  return {"layout",
          {{"dp 4", ranks(4, 1, 1)},
           {"dp 2 x tp 2", ranks(2, 2, 1)},
           {"dp 2 x pp 2", ranks(2, 1, 2)},
           {"dp 2 x tp 2 x pp 2", ranks(2, 2, 2)},
           {"tp 2 x pp 4", ranks(1, 2, 4)},
           {"cp 4", ranks(1, 1, 1, 1, 4)},
           {"cp 2 x tp 2", ranks(1, 2, 1, 1, 2)},
           {"dp 2 x cp 2 x pp 2", ranks(2, 1, 2, 1, 2)},
           {"cp 4 in two groups", ranks(1, 1, 1, 2, 4)},
           {"dp 4 in two groups", ranks(4, 1, 1, 2)},
           {"dp 4 in two groups x pp 2", ranks(4, 1, 2, 2)}}};
}

Kind pipelines() {
  Kind feature{"schedule", {}};
  for (const ScheduleKind& kind : schedule_kinds()) {
    if (!all_cases() && !kUsualSchedules.contains(kind.name)) continue;
    feature.choices.push_back({kind.name, [&kind](TrainConfig& c) {
                                 c.pipeline_schedule = kind.name;
                                 c.virtual_stages = kind.chunks == 0 && std::string(kind.name) != "1f1b" ? 2 : 1;
                               }});
  }
  return feature;
}

Kind context_splits() {
  const auto split = [](ContextExchange exchange, SequenceBalance balance) {
    return [=](TrainConfig& c) { c.context_split = {exchange, balance}; };
  };
  return {"context",
          {{"round a ring, zigzag", split(ContextExchange::kP2p, SequenceBalance::kZigzag)},
           {"round a ring, stripes", split(ContextExchange::kP2p, SequenceBalance::kStripe)},
           {"gathered, contiguous", split(ContextExchange::kAllGather, SequenceBalance::kContiguous)},
           {"gathered, stripes", split(ContextExchange::kAllGather, SequenceBalance::kStripe)},
           {"heads exchanged, zigzag", split(ContextExchange::kAllToAll, SequenceBalance::kZigzag)}}};
}

Kind expert_spread() {
  const auto over = [](int ep, int etp) {
    return [=](TrainConfig& c) {
      c.parallel.ep = ep > 0 ? ep : c.parallel.world / c.parallel.pp;
      c.parallel.etp = etp;
    };
  };
  return {"experts",
          {{"on each rank", over(1, 1)}, {"ep 2", over(2, 1)}, {"over all ranks", over(0, 1)}, {"etp 2", over(1, 2)}},
          true};
}

Kind dispatchers() {
  Kind feature{"dispatcher", {}, true};
  for (const std::string& name : dispatcher_names()) {
    if (name == "rdep" && test_device() == TestDevice::kCuda) continue;  // writes into the host's memory
    feature.choices.push_back({name, [name](TrainConfig& c) {
                                 c.moe_dispatcher = name;
                                 c.gpus_per_node = 2;
                               }});
  }
  return feature;
}

Kind zero_stages() {
  Kind feature{"ZeRO", {}};
  for (int stage = 0; stage < static_cast<int>(kZeroStages.size()); ++stage)
    feature.choices.push_back({std::to_string(stage), [stage](TrainConfig& c) { c.zero_stage = stage; }});
  return feature;
}

Kind recomputations() {
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
           {"full", choice("full", "block", 0)},
           {"full of one layer", choice("full", "block", 1)}}};
}

template <typename Member, typename Value>
Kind two_ways(const std::string& name, Member TrainConfig::*member, const Value& first, const Value& second,
              bool of_experts = false) {
  return {name,
          {{"no", [=](TrainConfig& c) { c.*member = first; }}, {"yes", [=](TrainConfig& c) { c.*member = second; }}},
          of_experts};
}

std::vector<Kind> features() {
  return {
      model_kinds(),  // the first: rows know a dense model by it
      meshes(),
      pipelines(),
      context_splits(),
      expert_spread(),
      dispatchers(),
      zero_stages(),
      recomputations(),
      two_ways("expert overlap", &TrainConfig::overlap_moe, false, true, true),
      two_ways("pairwise accumulation", &TrainConfig::accumulation, Accumulation::kSequential, Accumulation::kPairwise),
      two_ways("sequence parallelism", &TrainConfig::sequence_parallel, false, true),
      two_ways("late gradient reduction", &TrainConfig::overlap_grad_reduce, true, false),
      two_ways("clipping", &TrainConfig::clip_grad, 0.0, 0.05),
      two_ways("SGD", &TrainConfig::optimizer, OptimizerKind::kAdamW, OptimizerKind::kSgd)};
}

using Row = std::vector<size_t>;                          // of each feature its choice
using Pair = std::tuple<size_t, size_t, size_t, size_t>;  // feature, choice, later feature, choice

class Rows {
 public:
  explicit Rows(const std::vector<Kind>& features) : features_(features) {
    for (size_t f = 0; f < features.size(); ++f)
      for (size_t g = f + 1; g < features.size(); ++g)
        for (size_t i = 0; i < features[f].choices.size(); ++i)
          for (size_t j = 0; j < features[g].choices.size(); ++j)
            if (!features[f].choices[i].dense || !features[g].of_experts || j == 0) missing_.insert({f, i, g, j});
    while (!missing_.empty()) cover(*missing_.begin());
  }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Pair>& refused() const { return refused_; }

  // Why the two do not go together: what refuses most of the rows that were taken with one of them, once they get the
  // other.
  std::string reason(const Pair& pair) const {
    const auto [f, i, g, j] = pair;
    std::map<std::string, int> votes;
    for (Row row : rows_) {
      if (row[f] != i && row[g] != j) continue;
      row[f] = i;
      row[g] = j;
      ++votes[refusal(row)];
    }
    const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
    return most == votes.end() ? "" : most->first;
  }

  TrainConfig config_of(const Row& row) const {
    TrainConfig c = small_config();
    c.global_batch_size = 16;
    c.sgd_momentum = 0.9;
    c.adam_eps = 1e-5;
    c.trace = false;
    for (size_t f = 0; f < row.size(); ++f) features_[f].choices[row[f]].change(c);
    c.num_microbatches = c.parallel.pp == 4 ? 8 : 4;  // DualPipe wants two for each rank
    return c;
  }
  std::string name_of(const Row& row) const {
    std::string text;
    for (size_t f = 0; f < row.size(); ++f) text += name(f, row[f]) + "; ";
    return text;
  }
  std::string name_of(const Pair& pair) const {
    return name(std::get<0>(pair), std::get<1>(pair)) + " with " + name(std::get<2>(pair), std::get<3>(pair));
  }

 private:
  static constexpr int kTries = 40, kTriesBeforeRefused = 400;

  std::string name(size_t feature, size_t choice) const {
    return features_[feature].name + " " + features_[feature].choices[choice].name;
  }
  std::vector<Pair> pairs_of(const Row& row) const {
    std::vector<Pair> pairs;
    for (size_t f = 0; f < row.size(); ++f)
      for (size_t g = f + 1; g < row.size(); ++g) pairs.emplace_back(f, row[f], g, row[g]);
    return pairs;
  }
  Row random_row_with(const Pair& pair) {
    Row row(features_.size());
    for (size_t f = 0; f < row.size(); ++f) row[f] = random_.below(drawn_++, features_[f].choices.size());
    row[std::get<0>(pair)] = std::get<1>(pair);
    row[std::get<2>(pair)] = std::get<3>(pair);
    if (features_[0].choices[row[0]].dense) {
      for (size_t f = 0; f < row.size(); ++f) row[f] = features_[f].of_experts ? 0 : row[f];
    }
    return row;
  }
  // "": it is taken.
  std::string refusal(const Row& row) const {
    try {
      resolve(config_of(row));
      return {};
    } catch (const Error& error) {
      return error.text().what;
    }
  }
  void cover(const Pair& pair) {
    Row best;
    size_t most = 0;
    for (int i = 0; i < kTries || (most == 0 && i < kTriesBeforeRefused); ++i) {
      const Row row = random_row_with(pair);
      const std::vector<Pair> pairs = pairs_of(row);
      if (std::ranges::find(pairs, pair) == pairs.end()) continue;
      const size_t fresh =
          static_cast<size_t>(std::ranges::count_if(pairs, [&](auto& p) { return missing_.contains(p); }));
      if (fresh <= most || !refusal(row).empty()) continue;
      best = row;
      most = fresh;
    }
    if (most == 0) {
      missing_.erase(pair);
      refused_.push_back(pair);
      return;
    }
    for (const Pair& one : pairs_of(best)) missing_.erase(one);
    rows_.push_back(best);
  }

  const std::vector<Kind>& features_;
  RandomStream random_{7, RandomPurpose::kTest, "rows", 0};
  uint64_t drawn_ = 0;
  std::set<Pair> missing_;
  std::vector<Row> rows_;
  std::vector<Pair> refused_;
};

// The pairs, so that none comes or goes unseen; the table says why.
const std::set<std::string> kRefused = {
    "layout cp 2 x tp 2 with schedule dualpipe",
    "layout cp 4 in two groups with schedule dualpipe",
    "layout cp 4 with schedule dualpipe",
    "layout cp 4 in two groups with ZeRO 0",
    "layout cp 4 in two groups with experts over all ranks",
    "layout dp 2 x tp 2 with schedule dualpipe",
    "layout dp 4 in two groups with schedule dualpipe",
    "layout dp 4 with schedule dualpipe",
    "layout dp 4 in two groups with ZeRO 0",
    "layout dp 4 in two groups x pp 2 with ZeRO 0",
    "layout dp 4 in two groups with experts over all ranks",
    "layout dp 4 in two groups x pp 2 with experts over all ranks",
    "recompute full of one layer with expert overlap yes",
    "recompute full with expert overlap yes",
    "schedule zb-h1 with expert overlap yes",
    "schedule zb-v with expert overlap yes",
};

// Constraints between numbers, which are no rows of the table.
const std::set<std::string> kNumbers = {
    "the groups that shard optimizer states do not divide the ranks with the same experts",
};

bool is_of_the_pipeline(const std::string& why) { return why.starts_with("--pipeline-schedule dualpipe: "); }

TEST(Composition, WhatIsRefusedStandsInTheTable) {
  const std::vector<Kind> all = features();
  const Rows rows(all);
  std::set<std::string> known = kNumbers, seen, refused;
  for (const Requirement& row : requirements()) known.insert(row.why);
  for (const Pair& pair : rows.refused()) {
    const std::string why = rows.reason(pair);
    EXPECT_TRUE(known.contains(why) || is_of_the_pipeline(why)) << rows.name_of(pair) << ": " << why;
    seen.insert(why);
    refused.insert(rows.name_of(pair));
  }
  if (all_cases()) std::erase_if(refused, [](const std::string& pair) { return !kRefused.contains(pair); });
  EXPECT_EQ(refused, kRefused) << "a pair that is no longer refused leaves the table";
  // Some of each kind, or the search for rows has gone wrong.
  EXPECT_TRUE(seen.contains(*kNumbers.begin()));
  EXPECT_TRUE(std::ranges::any_of(seen, is_of_the_pipeline));
  EXPECT_GE(std::ranges::count_if(requirements(), [&](const Requirement& row) { return seen.contains(row.why); }), 3);
}

TEST(Composition, EveryTwoFeaturesTogetherEqualOneRank) {
  const std::vector<Kind> all = features();
  const Rows rows(all);
  for (const Row& row : rows.rows()) {
    SCOPED_TRACE(rows.name_of(row));
    const TrainConfig config = rows.config_of(row);
    const RecordOptions options{.data = uneven_batches()};
    expect_same_training(record_training(config, options), record_training(on_one_rank(config), options), kRounding);
    if (HasFailure()) return;  // the first one says enough
  }
  EXPECT_GT(rows.rows().size(), 40);
}

}  // namespace
}  // namespace ranklab
