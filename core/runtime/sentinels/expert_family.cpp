// Measures how tokens are distributed over experts, for models with experts.
#include "core/runtime/sentinels/families.h"

namespace ranklab {
namespace {

class ExpertFamily final : public SentinelFamily {
 public:
  explicit ExpertFamily(const SentinelContext& context) : has_experts_(context.plan.config.model.moe.enabled()) {}

  void fill(const SentinelStep&, RankTable&) override {}
  void report(const SentinelStep& step, const RankTable&, SentinelReport& out) override {
    if (!has_experts_) return;
    const ModelReport& report = step.output->report;
    out.add("dead_experts", report.dead_fraction);
    out.add("collapsed_experts", report.load_entropy);
    out.add("dropped_tokens", report.dropped_fraction);
  }

 private:
  bool has_experts_;
};

}  // namespace

std::unique_ptr<SentinelFamily> make_expert_family(SentinelContext& context, RankTable&) {
  return std::make_unique<ExpertFamily>(context);
}

}  // namespace ranklab
