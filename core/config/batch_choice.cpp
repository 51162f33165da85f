#include "core/config/batch_choice.h"

#include "core/base/error.h"
#include "core/config/settings/sources.h"

namespace ranklab {
namespace {

std::string flag_value(const std::string& flag, int64_t value) { return flag + " " + std::to_string(value); }

struct Derived {
  const char *key, *flag;            // the derived setting
  const char *from_key, *from_flag;  // the setting from which it is derived
};

void follow(const Derived& names, int64_t from, int64_t want, int64_t& value,
            std::map<std::string, std::string>& origins) {
  const MergedConfig sources{{}, origins};
  RANKLAB_CHECK(!sources.given(names.key) || value == want, ErrorKind::kInvalidArgument,
                .where = origins[names.from_key],
                .what = std::string(names.from_flag) + " and " + names.flag + " contradict each other",
                .got = flag_value(names.from_flag, from) + ", " + flag_value(names.flag, value),
                .want = flag_value(names.flag, want) + ", which follows",
                .fix = "leave " + std::string(names.flag) + " out, or " + names.from_flag);
  value = want;
  origins[names.key] = origins[names.from_key];
}

}  // namespace

void settle_batch(TrainConfig& c, std::map<std::string, std::string>& origins) {
  if (c.global_batch_tokens > 0) {
    const int64_t seq = c.model.seq_length;
    RANKLAB_CHECK(
        seq > 0 && c.global_batch_tokens % seq == 0, ErrorKind::kInvalidArgument,
        .where = origins["train.global_batch_tokens"],
        .what = "--global-batch-tokens is not a whole number of sequences",
        .got = flag_value("--global-batch-tokens", c.global_batch_tokens) + ", " + flag_value("--seq-length", seq),
        .want = "a multiple of --seq-length", .fix = "pass such a number, or --global-batch-size");
    follow({"train.global_batch_size", "--global-batch-size", "train.global_batch_tokens", "--global-batch-tokens"},
           c.global_batch_tokens, c.global_batch_tokens / seq, c.global_batch_size, origins);
  }
  if (c.train_samples > 0) {
    RANKLAB_CHECK(c.global_batch_size > 0 && c.train_samples >= c.global_batch_size, ErrorKind::kInvalidArgument,
                  .where = origins["train.train_samples"], .what = "--train-samples is less than one step",
                  .got = flag_value("--train-samples", c.train_samples) + ", " +
                         flag_value("--global-batch-size", c.global_batch_size),
                  .want = "at least one global batch", .fix = "raise --train-samples, or lower --global-batch-size");
    follow({"train.train_iters", "--train-iters", "train.train_samples", "--train-samples"}, c.train_samples,
           BatchRamp::parse(c.rampup_batch_size, c.global_batch_size).steps_in(c.train_samples), c.train_iters,
           origins);
  }
}

std::string run_length_text(const TrainConfig& c) {
  return c.train_samples > 0 ? flag_value("--train-samples", c.train_samples)
                             : flag_value("--train-iters", c.train_iters);
}

int64_t steps_of_run(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  return c.train_samples > 0 && plan.ramp.first_step > 0 ? plan.ramp.steps_in(c.train_samples) : c.train_iters;
}

bool knows_its_end(const TrainConfig& c) { return c.train_samples == 0 || c.load.empty() || c.finetune; }

}  // namespace ranklab
