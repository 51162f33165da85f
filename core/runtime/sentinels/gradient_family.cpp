// Measures the gradients as a whole, from the norm that clipping uses.
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

  // The window, packed as the bits of a whole number: a leading one, then one bit per step, the oldest first.
  void keep(RunningValues& values) const override {
    double bits = 1;
    for (const double clipped : clipped_) bits = 2 * bits + clipped;
    values["clipped/window"] = bits;
  }
  void go_on_from(const RunningValues& values) override {
    const double bits = running_value(values, "clipped/window", 1);
    if (!(bits >= 1) || bits >= static_cast<double>(uint64_t{2} << kWindow)) return;
    clipped_.clear();
    for (auto rest = static_cast<uint64_t>(bits); rest > 1; rest /= 2) clipped_.push_front(rest % 2);
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
