// Each row of the table of combinations, made into runs: with the feature where the world cannot do it, or together
// with the feature that excludes it, the row rejects the run; without either it accepts it.
#include "core/config/requirements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/error.h"
#include "core/config/device_choice.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/sources.h"

namespace ranklab {
namespace {

using testing::HasSubstr;
using Settings = Feature::Settings;

TrainConfig config_with(const std::vector<Settings>& parts) {
  std::vector<ConfigSetting> settings;
  for (const Settings& part : parts)
    for (const auto& [key, value] : part) settings.push_back({key, value, "test"});
  return merge_config(TrainConfig{}, settings).config;
}

// What refuses the run; "" if nothing does.
ErrorText refusal(const TrainConfig& config) {
  try {
    resolve(config);
    return {};
  } catch (const Error& error) {
    return error.text();
  }
}

Settings around(const Feature& feature) {
  Settings all = feature.surroundings;
  all.insert(all.end(), feature.settings.begin(), feature.settings.end());
  return all;
}

struct Place {
  const Backend* backend;
  std::string device;
  Capabilities has;
  Settings settings() const { return {{"parallel.backend", backend->name}, {"parallel.device", device}}; }
};

std::vector<Place> places() {
  std::vector<Place> all;
  for (const Backend& row : backends()) {
    if (!row.on_host.empty()) all.push_back({&row, kHostDevice, row.on_host});
    if (!row.on_gpu.empty()) all.push_back({&row, kGpuDevice, row.on_gpu});
  }
  return all;
}

TEST(Requirements, AFeatureIsRefusedWhereTheWorldCannotDoIt) {
  for (const Requirement& row : requirements()) {
    if (!row.needs || row.feature.settings.empty()) continue;
    SCOPED_TRACE(text_of(row.feature));
    int refused = 0, allowed = 0;
    for (const Backend& backend : backends()) {
      // Where the feature is the device, it is its own place.
      const bool is_device = row.feature.settings[0].first == "parallel.device";
      for (const Place& place : places()) {
        if (place.backend != &backend || (is_device && place.device != kHostDevice && !backend.on_host.empty()))
          continue;
        SCOPED_TRACE(std::string(backend.name) + " on " + place.device);
        const ErrorText text = refusal(config_with({place.settings(), around(row.feature)}));
        if (place.has.has(*row.needs)) {
          EXPECT_EQ(text.what, "");
          ++allowed;
        } else {
          EXPECT_EQ(text.what, row.why);
          EXPECT_THAT(text.got, HasSubstr("--backend " + std::string(backend.name)));
          EXPECT_NE(text.want, "");
          EXPECT_NE(text.fix, "");
          ++refused;
        }
      }
    }
    EXPECT_GT(refused, 0) << "no backend is refused: take the row out";
    EXPECT_GT(allowed, 0) << "no backend can do it";
  }
}

TEST(Requirements, TwoFeaturesAreRefusedTogetherAndTakenAlone) {
  for (const Requirement& row : requirements()) {
    if (!row.excludes) continue;
    SCOPED_TRACE(text_of(row.feature) + " with " + text_of(*row.excludes));
    EXPECT_EQ(refusal(config_with({around(row.feature), around(*row.excludes)})).what, row.why);
    EXPECT_EQ(refusal(config_with({around(row.feature)})).what, "");
    EXPECT_EQ(refusal(config_with({row.feature.surroundings, around(*row.excludes)})).what, "");
  }
}

// A world that is none of the rows, such as one whose ranks are processes.
TEST(Requirements, AWorldThatCannotDoItRefusesThePlan) {
  for (const Requirement& row : requirements()) {
    if (!row.needs || !row.feature.requested_by) continue;
    SCOPED_TRACE(text_of(row.feature));
    const TrainConfig config = config_with({around(row.feature)});
    check_world(config, Capabilities::all(), "anything");
    try {
      check_world(config, Capabilities::all().without(*row.needs), "a small world");
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.text().what, row.why);
      EXPECT_THAT(error.text().got, HasSubstr("a small world"));
    }
  }
}

TEST(Requirements, ACommandIsRefusedInTheWordsOfItsRow) {
  for (const Requirement& row : requirements()) {
    if (row.feature.command.empty()) continue;
    for (const Place& place : places()) {
      const TrainConfig config = config_with({place.settings()});
      if (place.has.has(*row.needs)) {
        check_command(config, *row.needs, "test");
        continue;
      }
      try {
        check_command(config, *row.needs, "test");
        ADD_FAILURE() << row.feature.command << " on " << place.backend->name;
      } catch (const Error& error) {
        EXPECT_EQ(error.text().what, row.why);
        EXPECT_EQ(error.text().where, "test");
      }
    }
  }
}

TEST(Requirements, EachSaysItsOwn) {
  std::set<std::string> reasons;
  for (const Requirement& row : requirements()) {
    EXPECT_TRUE(reasons.insert(row.why).second) << row.why;
    EXPECT_NE(row.needs.has_value(), row.excludes.has_value()) << row.why;
  }
  EXPECT_LE(reasons.size(), 14u) << "more combinations refused than the project allows itself";
}

}  // namespace
}  // namespace ranklab
