// Every exhibit is real: its training is one rank's without the bug, and another with it; and the loss goes down with
// it all the same, which is why such bugs live long. With RANKLAB_ALL_CASES=1 the table of losses is of the exhibits'
// own number of steps, beside runs without the bug.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/config/exhibit_config.h"
#include "core/precision/precision_policy.h"
#include "tests/all_cases.h"
#include "tests/support/expect_training.h"
#include "tests/support/one_rank.h"
#include "tests/support/relative_error.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

// Where a training before the exhibit's leaves its checkpoints.
class Folder {
 public:
  explicit Folder(const std::string& name) : path_(fs::path(testing::TempDir()) / ("ranklab_museum_" + name)) {
    fs::remove_all(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

bool is_narrow(const TrainConfig& c) { return c.bf16 || c.precision.fp16; }

// A few steps in fp64, which separates rounding from logic; 16-bit runs keep their types.
TrainConfig exactly(TrainConfig c, int64_t steps) {
  c.train_iters = steps;
  c.adam_eps = 1e-6;  // as in small_config()
  c.ddp_bucket_bytes = 8192;
  if (!is_narrow(c)) c.params_dtype = "fp64";
  return c;
}

const TrainingRecord& on_one_rank_once(const TrainConfig& config) {
  static OneRankRuns runs(nullptr);
  return runs.of(config);
}

// The names of everything that is wrong at the first recorded step with a difference: parameters whose weights,
// gradients or copies differ, and "grad_norm".
std::set<std::string> wrong_names(const TrainingRecord& bug, const TrainingRecord& clean) {
  std::map<int64_t, std::set<std::string>> by_step;
  for (const auto& [got, want] : {std::pair{&bug.weights, &clean.weights}, {&bug.grads, &clean.grads}}) {
    for (const auto& [key, tensor] : *want) {
      if (relative_error(got->at(key), tensor) > 1e-9) by_step[key.first].insert(key.second);
    }
  }
  if (bug.norms().front() != clean.norms().front()) by_step[0].insert("grad_norm");
  const std::regex copies("(?:gradient|weight|parameter) of (.*) at step (-?[0-9]+): .*");
  std::smatch found;
  for (const std::string& fault : bug.faults) {
    if (std::regex_match(fault, found, copies)) by_step[std::stoll(found[2])].insert(found[1]);
  }
  return by_step.empty() ? std::set<std::string>() : by_step.begin()->second;
}

bool any_matches(const std::string& pattern, const std::set<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) { return matches(pattern, name); });
}

class Exhibits : public testing::TestWithParam<const Exhibit*> {
 protected:
  // The exhibit's training without the bug; one that comes before has run.
  TrainConfig config(bool exact) {
    const Exhibit& e = *GetParam();
    if (*e.before != '\0') {
      const TrainConfig before = config_of_flags(flags_before(e, folder_.path()));
      record_training(exact ? exactly(before, 2) : before);
    }
    const TrainConfig c = config_of_flags(exhibit_flags(e, folder_.path()));
    // A loss scale is too high for some steps, and late gathers show in the second step after them.
    return exact ? exactly(c, *e.before != '\0' ? 4 : c.precision.fp16 ? 8 : 3) : c;
  }
  static TrainConfig with_bug(TrainConfig c) {
    c.inject = GetParam()->name;
    return c;
  }
  Folder folder_{GetParam()->name};
};

TEST_P(Exhibits, IsOneRanksTrainingButForTheBug) {
  const TrainConfig c = config(/*exact=*/true);
  const TrainingRecord clean = record_training(c);
  if (is_narrow(c))
    expect_losses_near(clean, on_one_rank_once(c), 1e-3);
  else
    expect_same_training(clean, on_one_rank_once(c), {.first = 1e-11, .later = 1e-10});
  if (GetParam()->kind == BugKind::kHang) {
    try {
      record_training(with_bug(c));
      ADD_FAILURE() << "no rank was missing";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCommunication);
      EXPECT_NE(std::string(error.what()).find("all_to_all"), std::string::npos) << error.what();
    }
    return;
  }
  const std::set<std::string> wrong = wrong_names(record_training(with_bug(c)), clean);
  EXPECT_FALSE(wrong.empty());
  // The record has no tensors of these; tests/parity sees them.
  const std::string guilty = GetParam()->guilty_module;
  if (guilty == "batch" || guilty == "loss_scale") return;
  EXPECT_TRUE(any_matches(guilty, wrong)) << testing::PrintToString(wrong);
}

TEST_P(Exhibits, LossGoesDownAllTheSame) {
  if (GetParam()->kind == BugKind::kHang) GTEST_SKIP() << "it ends at once";
  TrainConfig c = config(/*exact=*/false);
  c.trace = false;
  if (!all_cases()) c.train_iters = std::min<int64_t>(c.train_iters, *GetParam()->before != '\0' ? 40 : 12);
  const std::vector<double> losses = record_training(with_bug(c)).losses();
  EXPECT_LT(losses.back(), losses.front() - 0.1);
  if (!all_cases()) return;
  const std::vector<double> clean = record_training(c).losses();
  std::printf("| `%s` | %.4f | %.4f | %.4f |\n", GetParam()->name, clean.front(), clean.back(), losses.back());
}

std::string name_of_case(const testing::TestParamInfo<const Exhibit*>& info) {
  std::string name = info.param->name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, Exhibits, testing::ValuesIn(exhibits().begin(), exhibits().end()), name_of_case);

}  // namespace
}  // namespace ranklab
