#include "core/trace/chrome_writer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/trace/chrome_event.h"
#include "core/trace/gz_file.h"
#include "core/trace/json_text.h"
#include "core/trace/matching.h"

namespace ranklab {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 16;

// The end of an arrow: its number, and whether it leaves here.
struct FlowEnd {
  int64_t id = 0;
  bool start = false;
};
using FlowEnds = std::vector<std::map<size_t, FlowEnd>>;  // per trace, by event index

FlowEnds number_messages(std::span<const RankTrace> traces) {
  FlowEnds ends(traces.size());
  int64_t next_id = 1;
  for (const MatchedCall& call : match_calls(traces)) {
    if (!call.message || call.sides.size() != 2) continue;
    ends[call.sides[0].rank_index][call.sides[0].event_index] = {next_id, true};
    ends[call.sides[1].rank_index][call.sides[1].event_index] = {next_id, false};
    ++next_id;
  }
  return ends;
}

class ChromeWriter {
 public:
  ChromeWriter(const std::string& path, std::span<const RankTrace> traces, const ChromeWriterOptions& options)
      : traces_(traces), options_(options), file_(path), flows_(number_messages(traces)) {}

  void write() {
    header();
    for (size_t r = 0; r < traces_.size(); ++r) rank(r);
    out_ += "\n]}\n";
    flush();
    file_.commit();
  }

 private:
  void header();
  void rank_header(const RankTrace& trace);
  void rank(size_t index);
  void metadata(const char* what, int pid, int tid, const std::string& name, int sort_index);
  void slice(const RankTrace& trace, const Event& event, int lane);
  void instant(const RankTrace& trace, const Event& event);
  void counter(const RankTrace& trace, const Event& event);
  void flow(const RankTrace& trace, const Event& event, int lane, const FlowEnd& end);
  void begin_event(char phase, int pid, int tid);
  void args(const RankTrace& trace, const Event& event);
  void array(const RankTrace& trace, const Event& event);
  void field(const NamedField& field, const Event& event);
  void key(std::string_view name);
  void flush() {
    file_.write(out_);
    out_.clear();
  }

  std::span<const RankTrace> traces_;
  ChromeWriterOptions options_;
  GzWriter file_;
  FlowEnds flows_;
  std::string out_;
  bool first_event_ = true;
  bool first_key_ = true;
};

void ChromeWriter::key(std::string_view name) {
  if (!first_key_) out_ += ',';
  first_key_ = false;
  append_json_string(out_, name);
  out_ += ':';
}

void ChromeWriter::header() {
  const int world = options_.world_size > 0 ? options_.world_size : static_cast<int>(traces_.size());
  const int rank = traces_.empty() ? 0 : traces_.front().global_rank;
  out_ += "{\"schemaVersion\":" + std::to_string(kTraceSchemaVersion);
  out_ += ",\"displayTimeUnit\":\"ns\"";
  out_ += ",\"distributedInfo\":{\"backend\":\"ranklab\",\"rank\":" + std::to_string(rank);
  out_ += ",\"world_size\":" + std::to_string(world) + "}";
  out_ += ",\n\"ranklab\":{\"clock\":";
  out_ += options_.clock == TraceClock::kVirtual ? "\"virtual\"" : "\"wall\"";
  if (options_.gpus_per_node > 0) out_ += ",\"gpus_per_node\":" + std::to_string(options_.gpus_per_node);
  out_ += ",\"ranks\":[";
  for (const RankTrace& trace : traces_) {
    out_ += &trace == &traces_.front() ? "\n" : ",\n";
    rank_header(trace);
  }
  out_ += "]},\n\"traceEvents\":[";
}

void ChromeWriter::rank_header(const RankTrace& trace) {
  out_ += "{\"rank\":" + std::to_string(trace.global_rank) + ",\"label\":";
  append_json_string(out_, trace.label);
  out_ += ",\"dropped\":" + std::to_string(trace.dropped) + ",\"names\":[";
  for (size_t i = 0; i < trace.names.size(); ++i) {
    if (i > 0) out_ += ',';
    append_json_string(out_, trace.names[i]);
  }
  out_ += "],\"groups\":[";
  for (size_t i = 0; i < trace.groups.size(); ++i) {
    out_ += i > 0 ? ",{\"axis\":" : "{\"axis\":";
    append_json_string(out_, name(trace.groups[i].axis));
    out_ += ",\"ranks\":[";
    for (size_t r = 0; r < trace.groups[i].global_ranks.size(); ++r) {
      if (r > 0) out_ += ',';
      append_json_int(out_, trace.groups[i].global_ranks[r]);
    }
    out_ += "]}";
  }
  out_ += "]}";
}

void ChromeWriter::begin_event(char phase, int pid, int tid) {
  out_ += first_event_ ? "\n{" : ",\n{";
  first_event_ = false;
  first_key_ = true;
  key("ph");
  out_ += {'"', phase, '"'};
  key("pid");
  append_json_int(out_, pid);
  key("tid");
  append_json_int(out_, tid);
}

void ChromeWriter::metadata(const char* what, int pid, int tid, const std::string& name, int sort_index) {
  begin_event('M', pid, tid);
  out_ += ",\"name\":\"" + std::string(what) + "_name\",\"args\":{\"name\":";
  append_json_string(out_, name);
  out_ += "}}";
  begin_event('M', pid, tid);
  out_ += ",\"name\":\"" + std::string(what) + "_sort_index\",\"args\":{\"sort_index\":";
  append_json_int(out_, sort_index);
  out_ += "}}";
}

void ChromeWriter::rank(size_t index) {
  const RankTrace& trace = traces_[index];
  const std::string number = "rank " + std::to_string(trace.global_rank);
  const bool plain = trace.label.empty() || trace.label == "rank" + std::to_string(trace.global_rank);
  metadata("process", trace.global_rank, 0, plain ? number : number + " (" + trace.label + ")", trace.global_rank);
  const LaneMap lanes = assign_lanes(trace.events, options_.clock);
  for (const int lane : lanes.lanes) metadata("thread", trace.global_rank, lane, lane_name(lane), lane);
  const std::map<size_t, FlowEnd>& flows = flows_[index];
  for (size_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    RANKLAB_CHECK(event.name < trace.names.size(), ErrorKind::kInternal, .where = "trace writer, " + number,
                  .what = "an event without a name", .got = "name index " + std::to_string(event.name),
                  .want = "less than " + std::to_string(trace.names.size()));
    if (is_slice(event)) slice(trace, event, lanes.lane_of_event[e]);
    if (event.kind == EventKind::kInstant) instant(trace, event);
    if (event.kind == EventKind::kCounter) counter(trace, event);
    const auto end = flows.find(e);
    if (end != flows.end()) flow(trace, event, lanes.lane_of_event[e], end->second);
    if (out_.size() > kFlushBytes) flush();
  }
}

void ChromeWriter::field(const NamedField& named, const Event& event) {
  std::visit(
      [&](auto member) {
        static constexpr Event kDefault;
        if (event.*member == kDefault.*member) return;
        key(named.key);
        append_json_int(out_, event.*member);
      },
      named.field);
}

// All that `ts` and `dur` do not say. The collective's words first, as people read them.
void ChromeWriter::args(const RankTrace& trace, const Event& event) {
  key("args");
  out_ += '{';
  first_key_ = true;
  const bool collective = event.kind == EventKind::kCollective;
  if (collective || event.verb != Event{}.verb) {
    key("verb");
    append_json_string(out_, name(event.verb));
  }
  if (collective || event.axis != Event{}.axis) {
    key("axis");
    append_json_string(out_, name(event.axis));
  }
  if (collective || event.dtype != Event{}.dtype) {
    key("dtype");
    append_json_string(out_, name(event.dtype));
  }
  if (event.purpose != Purpose::kOther) {
    key("purpose");
    append_json_string(out_, name(event.purpose));
  }
  for (const NamedField& named : kArgFields) field(named, event);
  for (const NamedField& named : options_.clock == TraceClock::kVirtual ? kWallSpan : kVirtualSpan) field(named, event);
  if (event.value != 0 && event.kind != EventKind::kCounter) {
    key("value");
    append_json_double(out_, event.value);
  }
  array(trace, event);
  out_ += '}';
  first_key_ = false;
}

void ChromeWriter::array(const RankTrace& trace, const Event& event) {
  if (event.array == 0) return;
  RANKLAB_CHECK(event.array <= trace.arrays.size(), ErrorKind::kInternal,
                .where = "trace writer, rank " + std::to_string(trace.global_rank),
                .what = "an event without its numbers", .got = "array " + std::to_string(event.array),
                .want = "at most " + std::to_string(trace.arrays.size()));
  key("array");
  char before = '[';
  for (const double number : trace.arrays[event.array - 1]) {
    out_ += std::exchange(before, ',');
    append_json_double(out_, number);
  }
  out_ += before == '[' ? "[]" : "]";
}

void ChromeWriter::slice(const RankTrace& trace, const Event& event, int lane) {
  begin_event('X', trace.global_rank, lane);
  key("ts");
  append_json_us(out_, begin_ns(event, options_.clock));
  key("dur");
  append_json_us(out_, end_ns(event, options_.clock) - begin_ns(event, options_.clock));
  key("name");
  append_json_string(out_, trace.names[event.name]);
  key("cat");
  append_json_string(out_, category(event.kind));
  args(trace, event);
  out_ += '}';
}

void ChromeWriter::instant(const RankTrace& trace, const Event& event) {
  begin_event('i', trace.global_rank, 0);
  key("ts");
  append_json_us(out_, begin_ns(event, options_.clock));
  key("s");
  out_ += "\"p\"";
  key("name");
  append_json_string(out_, trace.names[event.name]);
  args(trace, event);
  out_ += '}';
}

// "memory/parameters" is drawn as series "parameters" of counter "memory", so that viewers stack the categories.
// Viewers draw every number in a counter's args; the other fields therefore go to a key of our own beside it.
void ChromeWriter::counter(const RankTrace& trace, const Event& event) {
  const std::string& full = trace.names[event.name];
  const size_t slash = full.rfind('/');
  const bool split = slash != std::string::npos && full.substr(slash) != "/value";
  begin_event('C', trace.global_rank, 0);
  key("ts");
  append_json_us(out_, begin_ns(event, options_.clock));
  key("name");
  append_json_string(out_, split ? full.substr(0, slash) : full);
  key("args");
  out_ += '{';
  append_json_string(out_, split ? full.substr(slash + 1) : "value");
  out_ += ':';
  append_json_double(out_, event.value);
  out_ += "},\"ranklab\":{";
  first_key_ = true;
  for (const NamedField& named : kArgFields) field(named, event);
  const NamedField& other = options_.clock == TraceClock::kVirtual ? kWallSpan[0] : kVirtualSpan[0];
  field(other, event);
  array(trace, event);
  out_ += "}}";
}

// An arrow binds to the slice that encloses its time: leave at the beginning, arrive in the last nanosecond.
void ChromeWriter::flow(const RankTrace& trace, const Event& event, int lane, const FlowEnd& end) {
  const int64_t begin = begin_ns(event, options_.clock);
  begin_event(end.start ? 's' : 'f', trace.global_rank, lane);
  key("ts");
  append_json_us(out_, end.start ? begin : std::max(begin, end_ns(event, options_.clock) - 1));
  key("id");
  append_json_int(out_, end.id);
  key("name");
  append_json_string(out_, "message");
  key("cat");
  append_json_string(out_, "message");
  if (!end.start) {
    key("bp");
    append_json_string(out_, "e");
  }
  out_ += '}';
}

}  // namespace

void write_chrome_trace(const std::string& path, std::span<const RankTrace> traces,
                        const ChromeWriterOptions& options) {
  ChromeWriter(path, traces, options).write();
}

}  // namespace ranklab
