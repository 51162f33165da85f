#include "viz/model/run/fired_sentinels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/files/path_type.h"
#include "core/trace/text_lines.h"

namespace ranklab::viz {
namespace {

using nlohmann::json;

constexpr size_t kMostListed = 300, kMostSentinelLineBytes = size_t{16} << 20;

std::string text_of(const json& alarm, const char* key) {
  const auto at = alarm.find(key);
  return at != alarm.end() && at->is_string() ? at->get<std::string>() : "";
}

class Collected {
 public:
  explicit Collected(FiredSentinels& out) : out_(out) {}

  void add(int64_t step, const json& alarm) {
    const std::string name = text_of(alarm, "sentinel"), tag = text_of(alarm, "tag");
    const double value = alarm.contains("value") && alarm["value"].is_number()
                             ? alarm["value"].get<double>()
                             : std::numeric_limits<double>::quiet_NaN();
    auto found = places_.find({name, tag});
    if (found == places_.end()) {
      if (out_.fired.size() >= kMostListed) {
        out_.more = true;
        return;
      }
      found = places_.emplace(std::pair(name, tag), out_.fired.size()).first;
      out_.fired.push_back({.name = name,
                            .tag = tag,
                            .first_step = step,
                            .first_value = value,
                            .lowest = value,
                            .highest = value,
                            .bounds = text_of(alarm, "bounds"),
                            .action = text_of(alarm, "action")});
    }
    FiredSentinel& one = out_.fired[found->second];
    one.last_step = step;
    ++one.times;
    one.lowest = std::fmin(one.lowest, value);
    one.highest = std::fmax(one.highest, value);
    one.stops = one.stops || text_of(alarm, "level") == "stop";
  }

 private:
  FiredSentinels& out_;
  std::map<std::pair<std::string, std::string>, size_t> places_;
};

}  // namespace

FiredSentinels read_fired_sentinels(const std::string& path) {
  FiredSentinels out;
  if (!is_there(path)) return out;
  out.watched = true;
  Collected collected(out);
  TextLines lines(path, kMostSentinelLineBytes);
  for (std::string_view line; lines.next(line);) {
    ++out.steps;
    // Nearly all lines are like this; their values are not needed.
    if (line.ends_with("\"fired\":[]}")) continue;
    const json read = json::parse(line, nullptr, false);
    const bool whole = read.is_object() && read.contains("step") && read["step"].is_number_integer();
    if (!whole) {
      out.problem = "line " + std::to_string(out.steps--) + " is not a JSON object with a step";
      break;
    }
    const auto fired = read.find("fired");
    if (fired == read.end() || !fired->is_array()) continue;
    for (const json& alarm : *fired)
      if (alarm.is_object()) collected.add(read["step"].get<int64_t>(), alarm);
  }
  if (out.problem.empty()) out.problem = lines.damage();
  return out;
}

}  // namespace ranklab::viz
