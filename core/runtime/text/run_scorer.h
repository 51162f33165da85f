// Scores tokens with the ranks of a run, in any layout: with a cache if each rank has all layers (sharded at most over
// tp), else through the pipeline. Thread rule: each rank's thread, collectively over the ranks for which
// works_on_text() is true.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/runtime/components.h"
#include "core/runtime/text/generate.h"

namespace ranklab {

// The first replica writes the text, and its tensor-parallel and pipeline peers take part. Other replicas do the same
// work if they own experts or parameter shards.
bool works_on_text(const RankContext& ctx, const RunPlan& plan);

// If the run's settings keep packed documents separate, a token is scored within its own document, as if nothing
// preceded it. If only positions restart, or learned positions do not restart, it depends on the whole window, and no
// cache is used. REQUIRES: works_on_text(), context.schedule. What `context` refers to must outlive the scorer.
std::unique_ptr<TokenScorer> make_run_scorer(StepContext& context);

// The sample that the run's settings request at its end, after the prompt. REQUIRES: as make_run_scorer(). Turns
// dropout off and leaves it off, so the model should not train afterwards.
std::vector<int64_t> sample_of_run(StepContext& context, std::vector<int64_t> prompt);

// Logits [B, S, V] for whole sequences of tokens [B, S], with packed documents kept separate as in the run's settings;
// on every rank that works on the text.
at::Tensor run_logits(StepContext& context, const at::Tensor& tokens_BS);

}  // namespace ranklab
