#include "core/trace/chrome_events.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/json_integer.h"
#include "core/base/text.h"
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
  throw Error(
      ErrorKind::kBadFile,
      {.where = "trace file", .what = "unknown word " + quote(text), .fix = "the file is damaged: write it again"});
}

Axis axis_of(const json& value) { return enum_of<Axis, static_cast<size_t>(Axis::kCount)>(value.get<std::string>()); }

std::optional<std::vector<double>> array_of(const json& args) {
  const auto found = args.find("array");
  if (found == args.end()) return {};
  std::vector<double> numbers;
  for (const json& number : found->get_ref<const json::array_t&>()) numbers.push_back(double_of(number));
  return numbers;
}

TypeChange types_of(const std::string& text) {
  const std::optional<TypeChange> types = TypeChange::parsed(text);
  RANKLAB_CHECK(types, ErrorKind::kBadFile, .where = "trace file", .what = "not the types of a tensor",
                .got = quote(text), .want = "such as " + quote("partial -> replicated over tp, varying over dp"),
                .fix = "the file is damaged: write it again");
  return *types;
}

[[noreturn]] void refuse_foreign(const std::string& where) {
  throw Error(ErrorKind::kBadFile, {.where = where,
                                    .what = "a trace of another program",
                                    .got = "no \"ranklab\" section before the events",
                                    .want = "a file that ranklab wrote",
                                    .fix = "ranklab trace stats and ranklab viz read files of torch.profiler, too; "
                                           "others: Perfetto"});
}

DType dtype_of_name(const std::string& text) { return enum_of<DType, static_cast<size_t>(DType::kOther) + 1>(text); }

}  // namespace

void ChromeEvents::section(const std::string& key, const json& value) {
  if (key == "schemaVersion") file_.schema_version = json_integer<int>(value, "schemaVersion");
  if (key == "distributedInfo" && value.contains("world_size")) {
    file_.world_size = json_integer<int>(value["world_size"], "world_size");
  }
  if (key == "ranklab") header(value);
}

void ChromeEvents::header(const json& value) {
  has_header_ = true;
  file_.clock = value.at("clock") == "wall" ? TraceClock::kWall : TraceClock::kVirtual;
  if (value.contains("gpus_per_node")) {
    file_.gpus_per_node = json_integer<int>(value["gpus_per_node"], "gpus_per_node");
    if (file_.gpus_per_node < 0) file_.gpus_per_node = 0;
  }
  if (value.contains("title")) file_.title = value["title"].get<std::string>();
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
    Rank& rank = ranks_[entry.contains("pid") ? json_integer<int64_t>(entry["pid"], "pid") : trace.global_rank];
    rank.index = file_.ranks.size();
    for (const json& text : entry.at("names")) {
      rank.names.try_emplace(text.get<std::string>(), static_cast<uint32_t>(trace.names.size()));
      trace.names.push_back(text.get<std::string>());
    }
    file_.ranks.push_back(std::move(trace));
  }
}

ChromeEvents::Rank* ChromeEvents::rank(int64_t pid) {
  const auto found = ranks_.find(pid);
  return found == ranks_.end() ? nullptr : &found->second;
}

void ChromeEvents::add(Rank& rank, std::string_view name, Event& event, std::vector<double>* array) {
  RankTrace& trace = file_.ranks[rank.index];
  auto known = rank.names.find(name);
  if (known == rank.names.end()) {
    known = rank.names.emplace(name, static_cast<uint32_t>(trace.names.size())).first;
    trace.names.emplace_back(name);
  }
  event.name = known->second;
  if (array != nullptr) {
    trace.arrays.push_back(std::move(*array));
    event.array = static_cast<uint32_t>(trace.arrays.size());
  }
  trace.events.push_back(event);
}

void ChromeEvents::read_field(const NamedField& named, const json& from, Event& event) const {
  const auto it = from.find(named.key);
  if (it == from.end()) return;
  const auto assign = [&](auto& to) {
    to = json_integer<std::remove_reference_t<decltype(to)>>(*it, std::string(named.key).c_str());
  };
  std::visit([&](auto member) { assign(event.*member); }, named.field);
}

void ChromeEvents::read_span(const json& value, Event& event) const {
  const int64_t begin = ns_of(value.at("ts"));
  const int64_t end = begin + (value.contains("dur") ? ns_of(value["dur"]) : 0);
  const bool is_virtual = file_.clock == TraceClock::kVirtual;
  (is_virtual ? event.virtual_begin_ns : event.wall_begin_ns) = begin;
  (is_virtual ? event.virtual_end_ns : event.wall_end_ns) = end;
}

void ChromeEvents::read_args(const json& args, Event& event) const {
  for (const NamedField& named : kArgFields) read_field(named, args, event);
  for (const NamedField& named : file_.clock == TraceClock::kVirtual ? kWallSpan : kVirtualSpan) {
    read_field(named, args, event);
  }
}

// The counter's name: series "parameters" of counter "memory" is "memory/parameters".
std::string ChromeEvents::read_counter(const json& value, Event& event) const {
  std::string name = value.at("name").get<std::string>();
  const json& args = value.at("args");
  event.kind = EventKind::kCounter;
  RANKLAB_CHECK(args.is_object() && !args.empty(), ErrorKind::kBadFile, .where = "trace file",
                .what = "a counter without a value", .got = name, .fix = "the file is damaged: write it again");
  const auto series = args.begin();
  if (series.key() != "value" || args.size() != 1) name += "/" + series.key();
  event.value = double_of(series.value());
  read_args(value.at("ranklab"), event);
  event.virtual_end_ns = event.virtual_begin_ns;
  event.wall_end_ns = event.wall_begin_ns;
  return name;
}

void ChromeEvents::read_slice(const json& value, bool instant, Event& event) const {
  const json& args = value.at("args");
  event.kind = EventKind::kInstant;
  if (!instant) event.kind = slice_kind(value.at("cat").get<std::string>()).value_or(EventKind::kInstant);
  if (args.contains("verb")) {
    event.verb = enum_of<Verb, static_cast<size_t>(Verb::kCount)>(args["verb"].get<std::string>());
  }
  if (args.contains("axis")) event.axis = axis_of(args["axis"]);
  if (args.contains("dtype")) event.dtype = dtype_of_name(args["dtype"].get<std::string>());
  if (args.contains("purpose")) {
    event.purpose = enum_of<Purpose, static_cast<size_t>(Purpose::kCount)>(args["purpose"].get<std::string>());
  }
  if (args.contains("types")) event.types = types_of(args["types"].get<std::string>());
  if (args.contains("value")) event.value = double_of(args["value"]);
  read_args(args, event);
}

void ChromeEvents::event(const json& value) {
  if (!has_header_) refuse_foreign("trace file");
  const std::string phase = value.at("ph").get<std::string>();
  const bool drops = phase == "M" && value.value("name", "") == kDroppedEvent;
  if (phase != "X" && phase != "i" && phase != "C" && !drops) return;  // metadata and arrows only repeat known data
  Rank* const to = rank(json_integer<int64_t>(value.at("pid"), "pid"));
  RANKLAB_CHECK(to != nullptr, ErrorKind::kBadFile, .where = "trace file", .what = "an event of an unknown rank",
                .got = "pid " + value.at("pid").dump(), .want = "a rank of the header, which comes before the events",
                .fix = "the file is damaged: write it again");
  if (drops) {
    int64_t& sum = file_.ranks[to->index].dropped;
    const int64_t more = json_integer<int64_t>(value.at("args").at("dropped"), "dropped");
    sum = more > 0 && sum > std::numeric_limits<int64_t>::max() - more ? sum : sum + std::max<int64_t>(more, 0);
    return;
  }
  Event event;
  read_span(value, event);
  std::string name = value.at("name").get<std::string>();
  if (phase == "C") {
    name = read_counter(value, event);
  } else {
    read_slice(value, phase == "i", event);
  }
  std::optional<std::vector<double>> array = array_of(value.at(phase == "C" ? "ranklab" : "args"));
  add(*to, name, event, array ? &*array : nullptr);
}

void ChromeEvents::require_ours(const std::string& path) const {
  if (ranks_.empty() && file_.schema_version == 0) refuse_foreign("trace file " + path);
  RANKLAB_CHECK(file_.schema_version == kTraceSchemaVersion, ErrorKind::kBadFile, .where = "trace file " + path,
                .what = "another version of the file format",
                .got = "schemaVersion " + std::to_string(file_.schema_version),
                .want = std::to_string(kTraceSchemaVersion), .fix = "read it with the ranklab that wrote it");
}

}  // namespace ranklab
