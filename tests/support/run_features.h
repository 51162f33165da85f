// What a training run can be made of: one row each, with the choices it has. Suites that train features together
// (composition_test, factorizations_test) take these rows, so a new one is crossed with all others by itself.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

struct Choice {
  std::string name;
  std::function<void(TrainConfig&)> change;  // of a run that has its choices of the features above
};

struct RunFeature {
  std::string name;
  std::vector<Choice> choices = {};
  // The feature above without some of whose choices this one says nothing: which those are is told by a run that has
  // nothing but the choice. Such runs have this feature's first choice. "": it says something in every run.
  std::string of = {};
  std::function<bool(const TrainConfig&)> matters = {};
};

// Splits of one number of ranks over dp, cp, tp and pp, "dp 2 x cp 2 x tp 2"; ep and etp are another row's.
std::vector<std::string> factorizations(int world);

std::vector<RunFeature> run_features();

// Throw std::out_of_range if there is none of the name.
size_t feature_index(const std::vector<RunFeature>& features, const std::string& name);
size_t choice_index(const RunFeature& feature, const std::string& name);
// The named choices alone, in this order.
void keep_choices(std::vector<RunFeature>& features, const std::string& feature, const std::vector<std::string>& names);

}  // namespace ranklab
