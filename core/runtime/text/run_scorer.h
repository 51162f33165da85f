// Scores tokens with the ranks of a run, in any layout: from a cache where a rank has the whole model of its
// tensor-parallel group, else through the pipeline. Thread rule: each rank's thread, collectively over the ranks that
// works_on_text() names.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/runtime/components.h"
#include "core/runtime/text/generate.h"

namespace ranklab {

// The first replica writes a text; its tensor-parallel and pipeline peers work with it. The other replicas do the same
// where they own experts or parameter shards.
bool works_on_text(const RankContext& ctx, const RunPlan& plan);

// A token is drawn from its own document where the run's settings keep packed documents apart, as if nothing were
// before it. Where positions alone begin anew, or learned ones do not, it depends on the whole window, and there is no
// cache. REQUIRES: works_on_text(), context.schedule. What `context` refers to outlives the scorer.
std::unique_ptr<TokenScorer> make_run_scorer(StepContext& context);

// What the run's settings ask for at its end, behind the prompt. REQUIRES: as make_run_scorer(). The model no longer
// trains afterwards.
std::vector<int64_t> sample_of_run(StepContext& context, std::vector<int64_t> prompt);

// Logits [B, S, V] of whole sequences of tokens [B, S], where packed documents are as apart as the run's settings have
// them; on every rank that works on the text.
at::Tensor run_logits(StepContext& context, const at::Tensor& tokens_BS);

}  // namespace ranklab
