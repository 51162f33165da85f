#include "core/trace/chrome_reader.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/json_integer.h"
#include "core/base/text.h"
#include "core/trace/chrome_event.h"
#include "core/trace/chrome_json.h"
#include "core/trace/chrome_writer.h"

namespace ranklab {
namespace {

using nlohmann::json;

template <typename T, size_t kCount>
T enum_of(const std::string& text) {
  for (size_t i = 0; i < kCount; ++i) {
    if (name(static_cast<T>(i)) == text) return static_cast<T>(i);
  }
  throw Error(ErrorKind::kBadFile, {.where = "trace file", .what = "unknown word " + quote(text)});
}

Axis axis_of(const json& value) { return enum_of<Axis, static_cast<size_t>(Axis::kCount)>(value.get<std::string>()); }

DType dtype_of_name(const std::string& text) { return enum_of<DType, static_cast<size_t>(DType::kOther) + 1>(text); }

class ChromeReader {
 public:
  void section(const std::string& key, const json& value) {
    if (key == "schemaVersion") file_.schema_version = json_integer<int>(value, "schemaVersion");
    if (key == "distributedInfo" && value.contains("world_size")) {
      file_.world_size = json_integer<int>(value["world_size"], "world_size");
    }
    if (key == "ranklab") header(value);
  }
  void event(const json& value);
  TraceFile take(const std::string& path);

 private:
  struct Rank {
    size_t index = 0;
    std::unordered_map<std::string, uint32_t> names;
  };
  void header(const json& value);
  uint32_t intern(Rank& rank, const std::string& name);
  void read_field(const NamedField& named, const json& from, Event& event) const;
  void read_span(const json& value, Event& event) const;
  void read_args(const json& args, Event& event) const;

  TraceFile file_;
  std::map<int, Rank> ranks_;
};

void ChromeReader::header(const json& value) {
  file_.clock = value.at("clock") == "wall" ? TraceClock::kWall : TraceClock::kVirtual;
  for (const json& entry : value.at("ranks")) {
    RankTrace trace;
    trace.global_rank = json_integer<int>(entry.at("rank"), "rank");
    trace.label = entry.at("label").get<std::string>();
    trace.dropped = json_integer<int64_t>(entry.at("dropped"), "dropped");
    for (const json& group : entry.at("groups")) {
      std::vector<int> members;
      for (const json& member : group.at("ranks")) members.push_back(json_integer<int>(member, "ranks"));
      trace.groups.push_back({axis_of(group.at("axis")), std::move(members)});
    }
    Rank& rank = ranks_[trace.global_rank];
    rank.index = file_.ranks.size();
    for (const json& text : entry.at("names")) {
      rank.names.try_emplace(text.get<std::string>(), static_cast<uint32_t>(trace.names.size()));
      trace.names.push_back(text.get<std::string>());
    }
    file_.ranks.push_back(std::move(trace));
  }
}

uint32_t ChromeReader::intern(Rank& rank, const std::string& name) {
  std::vector<std::string>& names = file_.ranks[rank.index].names;
  const auto [it, inserted] = rank.names.try_emplace(name, static_cast<uint32_t>(names.size()));
  if (inserted) names.push_back(name);
  return it->second;
}

void ChromeReader::read_field(const NamedField& named, const json& from, Event& event) const {
  const auto it = from.find(named.key);
  if (it == from.end()) return;
  const auto assign = [&](auto& to) {
    to = json_integer<std::remove_reference_t<decltype(to)>>(*it, std::string(named.key).c_str());
  };
  std::visit([&](auto member) { assign(event.*member); }, named.field);
}

void ChromeReader::read_span(const json& value, Event& event) const {
  const int64_t begin = ns_of(value.at("ts"));
  const int64_t end = begin + (value.contains("dur") ? ns_of(value["dur"]) : 0);
  const bool is_virtual = file_.clock == TraceClock::kVirtual;
  (is_virtual ? event.virtual_begin_ns : event.wall_begin_ns) = begin;
  (is_virtual ? event.virtual_end_ns : event.wall_end_ns) = end;
}

void ChromeReader::read_args(const json& args, Event& event) const {
  for (const NamedField& named : kArgFields) read_field(named, args, event);
  for (const NamedField& named : file_.clock == TraceClock::kVirtual ? kWallSpan : kVirtualSpan) {
    read_field(named, args, event);
  }
}

void ChromeReader::event(const json& value) {
  const std::string phase = value.at("ph").get<std::string>();
  if (phase != "X" && phase != "i" && phase != "C") return;  // metadata and arrows repeat what is known
  const auto found = ranks_.find(json_integer<int>(value.at("pid"), "pid"));
  RANKLAB_CHECK(found != ranks_.end(), ErrorKind::kBadFile, .where = "trace file",
                .what = "an event of an unknown rank", .got = "pid " + value.at("pid").dump(),
                .want = "a rank of the header, which comes before the events");
  Event event;
  read_span(value, event);
  std::string name = value.at("name").get<std::string>();
  const json& args = value.at("args");
  if (phase == "C") {
    event.kind = EventKind::kCounter;
    RANKLAB_CHECK(args.is_object() && !args.empty(), ErrorKind::kBadFile, .where = "trace file",
                  .what = "a counter without a value", .got = name);
    const auto series = args.begin();
    if (series.key() != "value" || args.size() != 1) name += "/" + series.key();
    event.value = double_of(series.value());
    read_args(value.at("ranklab"), event);
    event.virtual_end_ns = event.virtual_begin_ns;
    event.wall_end_ns = event.wall_begin_ns;
  } else {
    const std::string category = phase == "i" ? "instant" : value.at("cat").get<std::string>();
    event.kind = category == "compute"      ? EventKind::kCompute
                 : category == "collective" ? EventKind::kCollective
                 : category == "phase"      ? EventKind::kPhase
                                            : EventKind::kInstant;
    if (args.contains("verb")) {
      event.verb = enum_of<Verb, static_cast<size_t>(Verb::kCount)>(args["verb"].get<std::string>());
    }
    if (args.contains("axis")) event.axis = axis_of(args["axis"]);
    if (args.contains("dtype")) event.dtype = dtype_of_name(args["dtype"].get<std::string>());
    if (args.contains("value")) event.value = double_of(args["value"]);
    read_args(args, event);
  }
  Rank& rank = found->second;
  event.name = intern(rank, name);
  file_.ranks[rank.index].events.push_back(event);
}

TraceFile ChromeReader::take(const std::string& path) {
  RANKLAB_CHECK(!ranks_.empty() || file_.schema_version != 0, ErrorKind::kBadFile, .where = "trace file " + path,
                .what = "a trace of another program", .got = "no \"ranklab\" section",
                .want = "a file that ranklab wrote", .fix = "open it in Perfetto instead");
  RANKLAB_CHECK(file_.schema_version == kTraceSchemaVersion, ErrorKind::kBadFile, .where = "trace file " + path,
                .what = "another version of the file format",
                .got = "schemaVersion " + std::to_string(file_.schema_version),
                .want = std::to_string(kTraceSchemaVersion), .fix = "read it with the ranklab that wrote it");
  return std::move(file_);
}

}  // namespace

TraceFile read_chrome_trace(const std::string& path) {
  ChromeReader reader;
  visit_chrome_json(path, {[&](const std::string& key, const json& value) { reader.section(key, value); },
                           [&](const json& event, size_t /*number*/) { reader.event(event); }});
  return reader.take(path);
}

}  // namespace ranklab
