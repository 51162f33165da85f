// The program as a user types it: its command line, and the data of its answer in JSON.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/run_program.h"

namespace ranklab {

inline Outcome ranklab(const std::string& arguments) { return run_command(RANKLAB_PROGRAM " " + arguments); }

// What it prints and what it complains of, in one; `environment` as in "COLUMNS=80".
inline Outcome ranklab_and_errors(const std::string& arguments, const std::string& environment = "") {
  return run_command(environment + " " RANKLAB_PROGRAM " " + arguments + " 2>&1");
}

// The JSON object that a run with --json printed; the run must succeed.
inline nlohmann::json answer_of(const Outcome& run) {
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const nlohmann::json json = nlohmann::json::parse(run.output, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(json.is_object() && json.at("ok").get<bool>()) << run.output;
  EXPECT_EQ(json.at("schema"), 1);
  return json.at("data");
}

inline nlohmann::json data_of(const std::string& arguments) { return answer_of(ranklab(arguments + " --json")); }

inline std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace ranklab
