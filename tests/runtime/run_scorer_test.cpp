// The logits from which a run draws its next token, if its settings separate packed documents: with a cache and
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

std::vector<int64_t> first_tokens(size_t length) {
  return {kTokens.begin(), kTokens.begin() + static_cast<std::ptrdiff_t>(length)};
}

// After the first tokens, as many as there are; of the whole window with its documents.
std::vector<at::Tensor> logits_of_one_rank(const DocumentCase& row) {
  RuntimeEngine engine = tiny_engine(config_of(row, {.world = 1}));
  std::vector<at::Tensor> logits;
  engine.set_finale([&](StepContext& context) {
    const at::NoGradGuard no_grad;
    context.model.set_training(false);
    for (size_t length = 1; length <= kTokens.size(); ++length) {
      const at::Tensor tokens_BS = at::tensor(first_tokens(length), at::kLong).unsqueeze(0);
      Batch batch{.tokens_BS = tokens_BS, .targets_BS = {}};
      batch.documents = documents_of(tokens_BS, context.plan.config.documents);
      logits.push_back(context.schedule->logits(context, batch)[0][static_cast<int64_t>(length) - 1].clone());
    }
  });
  engine.fit();
  return logits;
}

void expect_logits(StepContext& context, const std::vector<at::Tensor>& want, bool cached) {
  if (!works_on_text(context.ctx, context.plan)) return;
  const at::NoGradGuard no_grad;
  context.model.set_training(false);
  const std::unique_ptr<TokenScorer> scorer = make_run_scorer(context);
  EXPECT_EQ(scorer->cache_bytes_per_token() > 0, cached);
  for (size_t length = 1; length <= kTokens.size(); ++length)
    EXPECT_LE(relative_error(scorer->next_logits(first_tokens(length)), want[length - 1]), 1e-12)
        << length << " tokens";
}

class RunScorer : public testing::TestWithParam<DocumentCase> {};

// With tp 2 ranks split sequences, too.
TEST_P(RunScorer, DrawsFromTheDocumentsOfTheWindow) {
  const std::vector<at::Tensor> want = logits_of_one_rank(GetParam());
  for (const ParallelDims& dims : {ParallelDims{.world = 1},
                                   {.world = 2, .tp = 2},
                                   {.world = 2, .pp = 2},
                                   {.world = 4, .tp = 2, .pp = 2},
                                   {.world = 2, .dp = 2}}) {
    SCOPED_TRACE("tp " + std::to_string(dims.tp) + ", pp " + std::to_string(dims.pp));
    TrainConfig config = config_of(GetParam(), dims);
    if (dims.dp == 2) config.zero_stage = 3;
    RuntimeEngine engine = tiny_engine(config);
    engine.set_finale(
        [&](StepContext& context) { expect_logits(context, want, GetParam().from_cache && dims.pp == 1); });
    engine.fit();
  }
}

INSTANTIATE_TEST_SUITE_P(Documents, RunScorer, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace ranklab
