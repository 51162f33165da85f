// The logits that a run draws its next token from, where its settings keep packed documents apart: with a cache and
// without, those of the whole window with its documents.
#include "core/runtime/text/run_scorer.h"

#include <gtest/gtest.h>

#include "core/runtime/document_data.h"
#include "core/sim/aten.h"
#include "tests/runtime/tiny_run.h"
#include "tests/support/relative_error.h"

namespace ranklab {
namespace {

struct DocumentCase {
  const char* name;
  bool mask, positions;
  PositionKind position;
  bool from_cache;  // where a rank has the whole model
};
constexpr DocumentCase kCases[] = {{"apart", true, true, PositionKind::kRope, true},
                                   {"apart_learned", true, true, PositionKind::kLearned, true},
                                   {"mask", true, false, PositionKind::kRope, true},
                                   {"mask_learned", true, false, PositionKind::kLearned, false},
                                   {"positions", false, true, PositionKind::kRope, false},
                                   {"positions_learned", false, true, PositionKind::kLearned, false}};

// Tokens as they come, two ends of documents side by side among them.
const std::vector<int64_t> kTokens = {5, 9, 200, 7, 7, 31, 4, 7, 90, 91, 92, 7};
constexpr int64_t kEnd = 7;

TrainConfig config_of(const DocumentCase& row, ParallelDims dims) {
  TrainConfig c = tiny_config(1, 1);
  c.parallel = dims;
  c.params_dtype = "fp64";
  c.model.position = row.position;
  c.train_iters = 1;
  c.trace = false;
  c.documents = {.reset_attention_mask = row.mask, .reset_position_ids = row.positions, .eod_token = kEnd};
  return c;
}

void expect_logits(StepContext& context, bool cached) {
  const at::NoGradGuard no_grad;
  context.model.set_training(false);
  const std::unique_ptr<TokenScorer> scorer = make_run_scorer(context);
  EXPECT_EQ(scorer->cache_bytes_per_token() > 0, cached);
  for (size_t length = 1; length <= kTokens.size(); ++length) {
    const std::vector<int64_t> window(kTokens.begin(), kTokens.begin() + static_cast<std::ptrdiff_t>(length));
    const at::Tensor got = scorer->next_logits(window), tokens_BS = at::tensor(window, at::kLong).unsqueeze(0);
    Batch batch{.tokens_BS = tokens_BS, .targets_BS = {}};
    batch.documents = documents_of(tokens_BS, context.plan.config.documents);
    const at::Tensor want = context.schedule->logits(context, batch)[0][static_cast<int64_t>(length) - 1];
    EXPECT_LE(relative_error(got, want), 1e-12) << length << " tokens";
  }
}

class RunScorer : public testing::TestWithParam<DocumentCase> {};

TEST_P(RunScorer, DrawsFromTheDocumentsOfTheWindow) {
  for (const ParallelDims& dims : {ParallelDims{.world = 1}, {.world = 2, .tp = 2}, {.world = 2, .pp = 2}}) {
    SCOPED_TRACE("tp " + std::to_string(dims.tp) + ", pp " + std::to_string(dims.pp));
    TrainConfig config = config_of(GetParam(), dims);
    config.sequence_parallel = false;
    RuntimeEngine engine = tiny_engine(config);
    engine.set_finale([&](StepContext& context) { expect_logits(context, GetParam().from_cache && dims.pp == 1); });
    engine.fit();
  }
}

INSTANTIATE_TEST_SUITE_P(Documents, RunScorer, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace ranklab
