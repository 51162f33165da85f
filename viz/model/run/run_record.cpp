#include "viz/model/run/run_record.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/files/input_file.h"
#include "core/base/text.h"

namespace ranklab::viz {
namespace {

using nlohmann::json;

constexpr uint64_t kMostBytes = 8 << 20;
constexpr size_t kMostRows = 5000;

void take(const json& from, const char* key, std::string& to) {
  if (from.contains(key) && from[key].is_string()) to = from[key].get<std::string>();
}
void take(const json& from, const char* key, int64_t& to) {
  if (from.contains(key) && from[key].is_number_integer()) to = from[key].get<int64_t>();
}

std::vector<std::vector<std::string>> rows_of(const json& from, const char* key, size_t columns) {
  std::vector<std::vector<std::string>> out;
  if (!from.contains(key) || !from[key].is_array()) return out;
  for (const json& row : from[key]) {
    const bool texts = row.is_array() && row.size() == columns &&
                       std::all_of(row.begin(), row.end(), [](const json& one) { return one.is_string(); });
    if (texts && out.size() < kMostRows) out.push_back(row.get<std::vector<std::string>>());
  }
  return out;
}

}  // namespace

const RunSetting* RunRecord::find(const std::string& key) const {
  const auto at = std::ranges::find(settings, key, &RunSetting::key);
  return at == settings.end() ? nullptr : &*at;
}

std::vector<SettingDifference> setting_differences(const RunRecord& a, const RunRecord& b) {
  std::vector<SettingDifference> out;
  for (const RunSetting& one : a.settings) {
    const RunSetting* other = b.find(one.key);
    if (other == nullptr || other->value != one.value) out.push_back({one.key, &one, other});
  }
  for (const RunSetting& one : b.settings)
    if (a.find(one.key) == nullptr) out.push_back({one.key, nullptr, &one});
  return out;
}

RunRecord read_run_record(const std::string& path) {
  const json read =
      json::parse(read_whole_file(path, kMostBytes, {.where = "report", .fix = "check the folder"}), nullptr, false);
  RANKLAB_CHECK(read.is_object(), ErrorKind::kBadFile, .where = "report", .what = "not a run's record",
                .got = quote(path), .want = "a JSON object", .fix = "train again");
  RunRecord out;
  for (const auto& [key, to] : std::initializer_list<std::pair<const char*, std::string*>>{{"version", &out.version},
                                                                                           {"began", &out.began},
                                                                                           {"command", &out.command},
                                                                                           {"again", &out.again},
                                                                                           {"title", &out.title},
                                                                                           {"layout", &out.layout},
                                                                                           {"world", &out.world},
                                                                                           {"data", &out.data},
                                                                                           {"loaded", &out.loaded},
                                                                                           {"profile", &out.profile}})
    take(read, key, *to);
  take(read, "parameters", out.parameters);
  take(read, "ranks", out.ranks);
  take(read, "first_step", out.first_step);
  for (std::vector<std::string>& row : rows_of(read, "settings", 3))
    out.settings.push_back({std::move(row[0]), std::move(row[1]), std::move(row[2])});
  for (std::vector<std::string>& row : rows_of(read, "machine", 2))
    out.machine.emplace_back(std::move(row[0]), std::move(row[1]));
  if (read.contains("outcome") && read["outcome"].is_object()) {
    const json& ended = read["outcome"];
    RunOutcome outcome;
    take(ended, "steps_done", outcome.steps_done);
    take(ended, "stopped", outcome.stopped);
    take(ended, "error", outcome.error);
    take(ended, "failed_step", outcome.failed_step);
    if (std::abs(outcome.failed_step) > std::numeric_limits<int>::max()) outcome.failed_step = -1;
    if (ended.contains("seconds") && ended["seconds"].is_number()) outcome.seconds = ended["seconds"].get<double>();
    outcome.interrupted = ended.contains("interrupted") && ended["interrupted"] == true;
    out.outcome = outcome;
  }
  return out;
}

}  // namespace ranklab::viz
