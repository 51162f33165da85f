// The runs whose pairs of features the suites train or track: a few choices of each kind. factorizations_test.cpp
// covers the other layouts and, with them, experts over four ranks and the other context exchanges. Other models differ
// from these only inside a layer, which layouts_test.cpp covers.
#pragma once
#include <utility>

#include "tests/all_cases.h"
#include "tests/support/feature_space.h"
#include "tests/support/small_config.h"

namespace ranklab {

inline FeatureSpace composition_space() {
  std::vector<RunFeature> features = run_features();
  keep_choices(features, "layout",
               {"dp 4", "dp 2 x tp 2", "dp 2 x pp 2", "dp 2 x tp 2 x pp 2", "tp 2 x pp 4", "cp 4", "cp 2 x tp 2",
                "dp 2 x cp 2 x pp 2", "cp 4 in two groups", "dp 4 in two groups", "dp 4 x pp 2 in two groups",
                "dp 2 x tp 2 in two replicas, each step", "dp 4 in two replicas, in fragments",
                "dp 4 x pp 2 in two replicas, each step"});
  keep_choices(features, "context", {"p2p zigzag", "all_gather contiguous", "a2a stripe"});
  keep_choices(features, "experts", {"on each rank", "ep 2", "over all ranks", "etp 2"});
  if (!all_cases()) {
    keep_choices(features, "model",
                 {"gpt2_dropout", "latent_mtp", "latent_tied", "one_key_head", "gemma2", "phi2", "capacity", "deepseek",
                  "qwen_experts", "one_expert_a_token"});
    keep_choices(features, "schedule", {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe", "dualpipe-v"});
  }
  TrainConfig base = small_config();
  base.global_batch_size = 16;
  base.sgd_momentum = 0.9;
  base.adam_eps = 1e-5;
  base.trace = false;
  return {std::move(features), base, [](TrainConfig& c) {
            if (c.parallel.pp == 4) c.model.num_layers = 8;
            c.num_microbatches = c.parallel.pp == 4 ? 8 : 4;  // DualPipe needs two per rank
          }};
}

}  // namespace ranklab
