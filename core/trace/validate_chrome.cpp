// Checks the file at the level of Chrome's format: fields, tracks, arrows.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/json_integer.h"
#include "core/base/text.h"
#include "core/trace/chrome_event.h"
#include "core/trace/chrome_json.h"
#include "core/trace/chrome_writer.h"
#include "core/trace/trace_validate.h"

namespace ranklab {
namespace {

using nlohmann::json;
using Track = std::pair<int, int>;  // rank, thread

struct Slice {
  int64_t begin = 0;
  int64_t end = 0;
};

struct Arrow {
  int starts = 0;
  int ends = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

class ChromeChecker {
 public:
  void section(const std::string& key, const json& value);
  void event(const json& value, size_t number);
  std::vector<std::string> finish();

 private:
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  bool has_base_fields(const json& value, const std::string& where);
  void timed_event(const json& value, const std::string& phase, const std::string& where);
  void check_nesting();
  void check_arrows();

  std::vector<std::string> problems_;
  std::set<std::string> sections_;
  std::map<int64_t, int> rank_of_;  // by process
  std::set<int> ranks_;
  std::set<int> named_ranks_;
  std::map<Track, std::vector<Slice>> slices_;
  std::map<int64_t, Arrow> arrows_;
  std::map<std::pair<int, std::string>, int64_t> counter_time_;
};

void ChromeChecker::section(const std::string& key, const json& value) {
  sections_.insert(key);
  if (key == "schemaVersion" && value != kTraceSchemaVersion) {
    problem("schema: schemaVersion is " + value.dump() + ", want " + std::to_string(kTraceSchemaVersion));
  }
  if (key == "distributedInfo" && (!value.contains("rank") || !value.contains("world_size"))) {
    problem("schema: distributedInfo lacks rank or world_size");
  }
  if (key != "ranklab") return;
  for (const json& entry : value.at("ranks")) {
    const int rank = json_integer<int>(entry.at("rank"), "rank");
    if (!ranks_.insert(rank).second) problem("schema: rank " + std::to_string(rank) + " twice");
    const int64_t process = entry.contains("pid") ? json_integer<int64_t>(entry["pid"], "pid") : rank;
    if (!rank_of_.emplace(process, rank).second) problem("schema: process " + std::to_string(process) + " twice");
  }
}

bool ChromeChecker::has_base_fields(const json& value, const std::string& where) {
  for (const char* field : {"ph", "pid", "tid", "name"}) {
    if (value.is_object() && value.contains(field)) continue;
    problem("schema: " + where + " has no " + quote(field));
    return false;
  }
  if (!value["ph"].is_string() || !value["pid"].is_number_integer() || !value["tid"].is_number_integer() ||
      !value["name"].is_string()) {
    problem("schema: " + where + " has a field of the wrong type");
    return false;
  }
  if (rank_of_.contains(json_integer<int64_t>(value["pid"], "pid"))) return true;
  problem("schema: " + where + " belongs to no rank: pid " + value["pid"].dump());
  return false;
}

void ChromeChecker::event(const json& value, size_t number) {
  if (!sections_.contains("ranklab")) return;  // there are no ranks yet, which finish() reports once
  const std::string where = "event " + std::to_string(number);
  if (!has_base_fields(value, where)) return;
  const std::string phase = value["ph"].get<std::string>();
  if (phase == "M") {
    if (value["name"] == "process_name") named_ranks_.insert(rank_of_.at(value["pid"]));
    return;
  }
  if (phase != "X" && phase != "i" && phase != "C" && phase != "s" && phase != "f") {
    problem("schema: " + where + " has unknown phase " + quote(phase));
    return;
  }
  if (!value.contains("ts") || !value["ts"].is_number()) {
    problem("schema: " + where + " has no time");
    return;
  }
  timed_event(value, phase, where);
}

void ChromeChecker::timed_event(const json& value, const std::string& phase, const std::string& where) {
  const int64_t ts = ns_of(value["ts"]);
  const Track track = {rank_of_.at(value["pid"]), json_integer<int>(value["tid"], "tid")};
  if (phase == "X") {
    if (!slice_kind(value.value("cat", ""))) problem("schema: " + where + " has no known category");
    const int64_t duration = value.contains("dur") ? ns_of(value["dur"]) : -1;
    if (duration < 0) {
      problem("time: " + where + " (" + value["name"].get<std::string>() + ") has no duration or a negative one");
    } else {
      slices_[track].push_back({ts, ts + duration});
    }
  } else if (phase == "C") {
    const std::string name = value["name"].get<std::string>() + "/" +
                             (value.contains("args") && !value["args"].empty() ? value["args"].begin().key() : "");
    const auto [it, first] = counter_time_.try_emplace({track.first, name}, ts);
    if (!first && ts < it->second)
      problem("time: counter " + quote(name) + " of rank " + std::to_string(track.first) + " runs backwards at " +
              where);
    it->second = ts;
  } else if (phase == "s" || phase == "f") {
    Arrow& arrow = arrows_[value.contains("id") ? json_integer<int64_t>(value["id"], "id") : -1];
    ++(phase == "s" ? arrow.starts : arrow.ends);
    (phase == "s" ? arrow.start_ns : arrow.end_ns) = ts;
  }
}

void ChromeChecker::check_nesting() {
  for (auto& [track, slices] : slices_) {
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<int64_t> open;
    for (const Slice& slice : slices) {
      while (!open.empty() && open.back() <= slice.begin) open.pop_back();
      if (!open.empty() && slice.end > open.back()) {
        problem(strprintf("nesting: rank %d, track %d: the slice at %lld ns ends after the one that encloses its start",
                          track.first, track.second, static_cast<long long>(slice.begin)));
      }
      open.push_back(slice.end);
    }
  }
}

void ChromeChecker::check_arrows() {
  for (const auto& [id, arrow] : arrows_) {
    if (arrow.starts != 1 || arrow.ends != 1) {
      problem(strprintf("arrow: message %lld has %d starts and %d ends, want one each", static_cast<long long>(id),
                        arrow.starts, arrow.ends));
    } else if (arrow.end_ns < arrow.start_ns) {
      problem(strprintf("arrow: message %lld ends before it starts", static_cast<long long>(id)));
    }
  }
}

std::vector<std::string> ChromeChecker::finish() {
  if (!sections_.contains("ranklab")) {
    problem(
        "schema: no section 'ranklab' before the events, so a trace of another program (ranklab trace stats and "
        "ranklab viz read files of torch.profiler, too)");
    return std::move(problems_);
  }
  for (const char* section : {"schemaVersion", "displayTimeUnit", "distributedInfo"}) {
    if (!sections_.contains(section)) problem("schema: no section " + quote(section));
  }
  for (const int rank : ranks_) {
    if (!named_ranks_.contains(rank)) problem("schema: rank " + std::to_string(rank) + " has no process_name");
  }
  check_nesting();
  check_arrows();
  return std::move(problems_);
}

}  // namespace

std::vector<std::string> validate_chrome_events(const std::string& path) {
  ChromeChecker checker;
  visit_chrome_json(path, {[&](const std::string& key, const json& value) { checker.section(key, value); },
                           [&](const json& value, size_t number) { checker.event(value, number); }});
  return checker.finish();
}

}  // namespace ranklab
