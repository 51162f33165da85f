// Losses and tokens, which all ranks know in each step.
#include <cmath>
#include <limits>

#include "core/runtime/sentinels/families.h"

namespace ranklab {
namespace {

constexpr double kKeptLoss = 0.9;  // weight of the previous value in the running mean
constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

class LossFamily final : public SentinelFamily {
 public:
  explicit LossFamily(const SentinelContext& context) : plan_(context.plan) {}

  void validated(double loss) override { validation_ = loss; }
  void fill(const SentinelStep&, RankTable&) override {}

  void report(const SentinelStep& step, const RankTable&, SentinelReport& out) override {
    const double loss = step.metrics->loss, counted = static_cast<double>(step.metrics->tokens);
    out.add("loss_raw", loss);
    out.add("loss_spike", loss / mean_);
    mean_ = std::isnan(mean_) ? loss : kKeptLoss * mean_ + (1 - kKeptLoss) * loss;
    out.add("loss", mean_);
    out.add("perplexity", std::exp(mean_));
    report_validation(out);
    const auto tokens = static_cast<double>(plan_.tokens_of(step.metrics->step));
    seen_ += tokens;
    counted_ += counted;
    out.add("tokens_seen", seen_);
    out.add("effective_tokens_seen", counted_);
    out.add("tokens_per_update", tokens);
    out.add("effective_tokens_per_update", counted);
    out.add("ignored_tokens", 1 - counted / tokens);
  }

  void keep(RunningValues& values) const override {
    values["loss/mean"] = mean_;
    values["loss/validation"] = validation_;
    values["loss/tokens"] = seen_;
    values["loss/effective_tokens"] = counted_;
  }
  void go_on_from(const RunningValues& values) override {
    mean_ = running_value(values, "loss/mean", mean_);
    validation_ = running_value(values, "loss/validation", validation_);
    seen_ = running_value(values, "loss/tokens", seen_);
    counted_ = running_value(values, "loss/effective_tokens", counted_);
  }

 private:
  void report_validation(SentinelReport& out) {
    if (std::isnan(validation_)) return;
    out.add("val_loss", validation_);
    out.add("val_perplexity", std::exp(validation_));
    out.add("val_gap", validation_ - mean_);
    validation_ = kNoLoss;
  }

  const RunPlan& plan_;
  double mean_ = kNoLoss, validation_ = kNoLoss, seen_ = 0, counted_ = 0;
};

}  // namespace

std::unique_ptr<SentinelFamily> make_loss_family(SentinelContext& context, RankTable&) {
  return std::make_unique<LossFamily>(context);
}

}  // namespace ranklab
