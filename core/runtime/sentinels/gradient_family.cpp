// The gradients as a whole, from the norm that clipping uses.
#include <cmath>
#include <deque>
#include <numeric>

#include "core/optim/grad_clip.h"
#include "core/runtime/sentinels/families.h"

namespace ranklab {
namespace {

class GradientFamily final : public SentinelFamily {
 public:
  explicit GradientFamily(const SentinelContext& context) : clip_grad_(context.plan.config.clip_grad) {}

  void fill(const SentinelStep&, RankTable&) override {}
  void report(const SentinelStep& step, const RankTable&, SentinelReport& out) override {
    if (step.metrics->skipped) return;
    const double norm = step.metrics->grad_norm;
    out.add("grad_norm", norm);
    if (clip_grad_ <= 0) return;
    const double factor = clip_factor(norm, clip_grad_);
    clipped_.push_back(factor < 1 ? 1 : 0);
    if (clipped_.size() > kWindow) clipped_.pop_front();
    out.add("clip_coef", factor);
    out.add("clipped", clipped_.back());
    out.add("clip_rate", std::accumulate(clipped_.begin(), clipped_.end(), 0.0) / static_cast<double>(clipped_.size()));
  }

 private:
  static constexpr size_t kWindow = 20;
  double clip_grad_;
  std::deque<double> clipped_;
};

}  // namespace

std::unique_ptr<SentinelFamily> make_gradient_family(SentinelContext& context, RankTable&) {
  return std::make_unique<GradientFamily>(context);
}

}  // namespace ranklab
