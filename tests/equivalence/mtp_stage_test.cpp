// Pipelines with multi-token prediction against one rank: modules in another stage than the head, and one module that
// predicts several tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

// Modules of MTP, and the final norm, in a stage before that of the head, which turns their states into losses
// (Megatron-Core's pattern). Their stage embeds tokens, too; a rank may have it, the first and the last.
TEST(MtpStage, TrainsAsOneRank) {
  struct Case {
    const char *schedule, *layout;
    int pp, vpp, dp, tp, zero_stage;
    bool repeated = false;
  };
  for (const Case& c :
       {Case{"1f1b", "Et|tt|tm|L", 4, 1, 1, 1, 0}, Case{"1f1b", "Ett|tt|mm|L", 4, 1, 2, 1, 3},
        Case{"zb-h1", "E|t*4|m|L", 4, 1, 1, 1, 0}, Case{"interleaved-1f1b", "Et|tt|tm|L", 2, 2, 1, 2, 0},
        Case{"zb-v", "Et|tt|tm|L", 2, 1, 2, 1, 2}, Case{"dualpipe-v", "Et|t|ttmm|L", 2, 1, 1, 2, 1},
        Case{"dualpipe", "Ettttm|L", 2, 1, 1, 1, 0}, Case{"dualpipe", "Ett|tt|mm|L", 4, 1, 1, 1, 1},
        Case{"1f1b", "Et|tttm||L", 4, 1, 1, 1, 0}, Case{"1f1b", "Ett|tt|mm|L", 4, 1, 2, 1, 3, true},
        Case{"zb-h1", "E|t*4|mm|L", 4, 1, 2, 1, 1, true}, Case{"dualpipe-v", "Et|t|ttmmm|L", 2, 1, 1, 2, 2, true}}) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(std::string(c.schedule) + ", " + c.layout + (tied ? " tied" : ""));
      TrainConfig config = small_config();
      config.num_microbatches = 8;
      config.parallel = {.world = c.dp * c.tp, .tp = c.tp};
      config.sequence_parallel = c.tp > 1;
      config.global_batch_size = 8 * c.dp;
      config.model.mtp_num_layers = std::ranges::count(std::string(c.layout), 'm');
      config.model.mtp_use_repeated_layer = c.repeated;
      config.model.tie_embeddings = tied;
      config.eval_interval = 2;
      TrainConfig cut = with_pipeline(config, c.schedule, c.pp, c.vpp);
      cut.pipeline_layout = c.layout;
      cut.zero_stage = c.zero_stage;
      expect_same_training(record_training(cut), record_training(without_pipeline(config)), kRounding);
    }
  }
}

// Each use of the module adds to the gradients of one backward, of which some are deferred.
TEST(RepeatedMtpInAPipeline, TrainsAsOneRank) {
  for (const auto& [variant, schedule, dp] :
       {std::tuple{"repeated_mtp", "1f1b", 2}, std::tuple{"repeated_mtp", "zb-h1", 1},
        std::tuple{"repeated_mtp", "dualpipe", 1}, std::tuple{"deepseek_repeated_mtp", "zb-h1", 2},
        std::tuple{"deepseek_repeated_mtp", "zb-v", 1}, std::tuple{"deepseek_repeated_mtp", "dualpipe-v", 1}}) {
    SCOPED_TRACE(std::string(variant) + ", " + schedule);
    TrainConfig config = small_config();
    config.num_microbatches = 8;
    config.parallel = {.world = dp, .tp = 1};
    config.global_batch_size = 8 * dp;
    variant_named(variant).change(config.model);
    expect_same_training(record_training(with_pipeline(config, schedule, 2, 1)),
                         record_training(without_pipeline(config)), kRounding);
  }
}

}  // namespace
}  // namespace ranklab
