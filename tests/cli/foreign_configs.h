// What configurations of other trainers mean, line by line: "show" the settings (key=value), "left" what is left out,
// and "refuse" the parts of the one error.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/settings/fields.h"
#include "tests/cli/ranklab_program.h"
#include "tests/cli/setting_lines.h"

namespace ranklab {

inline void expect_setting(const nlohmann::json& settings, const std::string& part) {
  const size_t equals = part.find('=');
  const std::string key = part.substr(0, equals), want = part.substr(equals + 1);
  if (settings.contains(key)) {
    const nlohmann::json& value = settings.at(key).at("value");
    EXPECT_TRUE(is_value(value, want)) << part << ", got " << value;
  } else {  // the value that it has anyway
    EXPECT_EQ(find_field(key)->get(TrainConfig{}), want) << key;
  }
}

inline void expect_meanings(const std::string& command, const std::vector<SettingLine>& lines) {
  using testing::HasSubstr;
  for (const SettingLine& line : lines) {
    SCOPED_TRACE(line.how + " " + line.words);
    if (line.how == "refuse") {
      const Outcome run = ranklab_and_errors("config " + command + " " + line.words);
      EXPECT_EQ(run.exit_code, 2) << run.output;
      for (const std::string& part : line.parts) EXPECT_THAT(run.output, HasSubstr(part));
      continue;
    }
    const nlohmann::json data = answer_of(ranklab("config " + command + " --json -- " + line.words));
    for (const std::string& part : line.parts) {
      if (line.how == "show")
        expect_setting(data.at("settings"), part);
      else if (part == "nothing")
        EXPECT_TRUE(data.at("left_out").empty()) << data.at("left_out");
      else
        EXPECT_THAT(data.at("left_out").dump(), HasSubstr("\"" + part + ": "));
    }
  }
}

}  // namespace ranklab
