#include "core/runtime/text/run_scorer.h"

#include <algorithm>
#include <utility>

#include "core/runtime/document_data.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// What precedes the last document of a window is neither attended to nor counted in positions.
class LastDocumentScorer : public TokenScorer {
 public:
  LastDocumentScorer(std::unique_ptr<TokenScorer> inner, int64_t end) : inner_(std::move(inner)), end_(end) {}
  at::Tensor next_logits(const std::vector<int64_t>& window) override {
    // The end token still belongs to its own document.
    const auto before = std::find(window.rbegin() + 1, window.rend(), end_);
    return inner_->next_logits({before.base(), window.end()});
  }
  int64_t cache_bytes_per_token() const override { return inner_->cache_bytes_per_token(); }

 private:
  std::unique_ptr<TokenScorer> inner_;
  int64_t end_;
};

// Whether a document's logits are the same alone as after other documents.
bool stand_alone(const DocumentSettings& documents, PositionKind position) {
  return documents.reset_attention_mask && (documents.reset_position_ids || position != PositionKind::kLearned);
}

}  // namespace

bool works_on_text(const RankContext& ctx, const RunPlan& plan) {
  const bool parts_elsewhere = ctx.size(Axis::kEp) > 1 || ctx.size(Axis::kEtp) > 1 || plan.zero().parameters;
  return parts_elsewhere || ctx.coordinate(ctx.replica_axis()) == 0;
}

std::unique_ptr<TokenScorer> make_run_scorer(StepContext& context) {
  const TrainConfig& c = context.plan.config;
  const bool alone = stand_alone(c.documents, c.model.position);
  const bool from_cache = context.model.can_decode() && (alone || !c.documents.resets());
  std::unique_ptr<TokenScorer> scorer =
      from_cache
          ? make_cached_scorer(context.model, c.model)
          : make_window_scorer([&context](const at::Tensor& tokens_BS) { return run_logits(context, tokens_BS); },
                               context.ctx.device(), context.plan.sequence_parallel ? context.ctx.size(Axis::kTp) : 1);
  if (!alone) return scorer;
  return std::make_unique<LastDocumentScorer>(std::move(scorer), c.documents.eod_token);
}

std::vector<int64_t> sample_of_run(StepContext& context, std::vector<int64_t> prompt) {
  const TrainConfig& c = context.plan.config;
  const NoCostScope free;
  context.model.set_training(false);
  return generate_tokens(*make_run_scorer(context), std::move(prompt),
                         {.tokens = c.sample_tokens,
                          .temperature = c.sample_temperature,
                          .seq_length = c.model.seq_length,
                          .seed = c.seed});
}

at::Tensor run_logits(StepContext& context, const at::Tensor& tokens_BS) {
  return context.schedule->logits(
      context,
      {.tokens_BS = tokens_BS, .targets_BS = {}, .documents = documents_of(tokens_BS, context.plan.config.documents)});
}

}  // namespace ranklab
