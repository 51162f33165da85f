// Files of command lines and their meaning: "HOW WORDS => WHAT", where the parts of WHAT are separated by "; "; lines
// that begin with # are ignored.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ranklab {

struct SettingLine {
  std::string how, words;
  std::vector<std::string> parts;
};

inline std::vector<SettingLine> setting_lines(const std::string& path) {
  std::vector<SettingLine> lines;
  std::ifstream in(path);
  for (std::string text; std::getline(in, text);) {
    if (text.empty() || text[0] == '#') continue;
    const size_t space = text.find(' '), arrow = text.find(" => ");
    if (space > arrow || arrow == std::string::npos) {
      ADD_FAILURE() << "not HOW WORDS => WHAT: " << text;
      continue;
    }
    SettingLine& line = lines.emplace_back();
    line.how = text.substr(0, space);
    line.words = text.substr(space + 1, arrow - space - 1);
    const std::string what = text.substr(arrow + 4);
    for (size_t begin = 0; begin <= what.size();) {
      const size_t end = std::min(what.find("; ", begin), what.size());
      line.parts.push_back(what.substr(begin, end - begin));
      begin = end + 2;
    }
  }
  return lines;
}

// Whether a setting's value in JSON is the one that is written in a line.
inline bool is_value(const nlohmann::json& value, const std::string& want) {
  if (value.is_number()) return value.get<double>() == std::stod(want);
  return (value.is_string() ? value.get<std::string>() : value.dump()) == want;
}

}  // namespace ranklab
