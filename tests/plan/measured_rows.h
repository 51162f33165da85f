// Rows of measured runs from a text, and the plans that they become.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/config/settings/sources.h"
#include "core/plan/measured/measured_runs.h"

namespace ranklab {

inline std::vector<MeasuredRun> rows_of(const std::string& text) {
  const std::string path = testing::TempDir() + "/measured_rows.json";
  std::ofstream(path) << text;
  return read_measured_runs(path);
}

inline RunPlan plan_of(const MeasuredRun& run) {
  EXPECT_EQ(run.left_out, "");
  const MergedConfig merged = merge_config({}, run.settings);
  return resolve(merged.config, merged.origins);
}

}  // namespace ranklab
