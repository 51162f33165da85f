// The features of which a training run can consist: one row each, with its choices. Suites that train features together
// (composition_test, factorizations_test) use these rows, so a new row is automatically combined with all others.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

struct Choice {
  std::string name;
  std::function<void(TrainConfig&)> change;  // applied to a run that already has its choices of the features above
};

struct RunFeature {
  std::string name;
  std::vector<Choice> choices = {};
  // The name of an earlier feature with some of whose choices this feature has no effect; `matters` tells which, given
  // a run with nothing but that choice. Runs in which it has no effect have this feature's first choice. "": it has an
  // effect in every run.
  std::string of = {};
  std::function<bool(const TrainConfig&)> matters = {};
};

// The splits of a number of ranks over dp, cp, tp and pp, "dp 2 x cp 2 x tp 2"; ep and etp belong to another row.
std::vector<std::string> factorizations(int world);

std::vector<RunFeature> run_features();

// Both throw std::out_of_range if there is none with this name.
size_t feature_index(const std::vector<RunFeature>& features, const std::string& name);
size_t choice_index(const RunFeature& feature, const std::string& name);
// Keeps only the named choices, in this order.
void keep_choices(std::vector<RunFeature>& features, const std::string& feature, const std::vector<std::string>& names);

}  // namespace ranklab
