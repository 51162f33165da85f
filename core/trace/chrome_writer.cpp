#include "core/trace/chrome_writer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/trace/chrome_event.h"
#include "core/trace/gz_file.h"
#include "core/trace/json_text.h"
#include "core/trace/message_arrows.h"

namespace ranklab {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 16;

}  // namespace

class ChromeTraceWriter::Impl {
 public:
  Impl(const std::string& path, const ChromeWriterOptions& options) : options_(options), file_(path) {}

  void add(std::span<const RankTrace> traces);
  void flush() {
    write_out();
    file_.flush();
  }
  void commit() {
    if (!begun_) header({});
    out_ += "\n]}\n";
    write_out();
    file_.commit();
  }

 private:
  void header(std::span<const RankTrace> traces);
  void rank_header(const RankTrace& trace);
  void name_lanes(const RankTrace& trace, const LaneMap& lanes);
  void dropped(const RankTrace& trace);
  void rank(const RankTrace& trace, const LaneMap& lanes, const MessageArrows::Ends& arrows);
  void metadata(const char* what, int rank, int tid, const std::string& name, int sort_index);
  void slice(const RankTrace& trace, const Event& event, int lane);
  void instant(const RankTrace& trace, const Event& event);
  void counter(const RankTrace& trace, const Event& event);
  void flow(const ArrowPlace& place, const ArrowEnd& end);
  void arrow(const ArrowPlace& place, int64_t id, bool start);
  void begin_event(char phase, int rank, int tid);
  void args(const RankTrace& trace, const Event& event);
  void array(const RankTrace& trace, const Event& event);
  void field(const NamedField& field, const Event& event);
  void key(std::string_view name);
  void write_out() {
    file_.write(out_);
    out_.clear();
  }

  ChromeWriterOptions options_;
  GzWriter file_;
  MessageArrows arrows_;
  std::map<int, LaneAssigner> lanes_;         // by global rank
  std::map<int, std::set<int>> named_lanes_;  // by global rank
  std::string out_;
  bool begun_ = false;
  bool first_event_ = true;
  bool first_key_ = true;
};

void ChromeTraceWriter::Impl::key(std::string_view name) {
  if (!first_key_) out_ += ',';
  first_key_ = false;
  append_json_string(out_, name);
  out_ += ':';
}

void ChromeTraceWriter::Impl::add(std::span<const RankTrace> traces) {
  const bool first = !begun_;
  if (first) header(traces);
  std::vector<LaneMap> lanes;
  for (const RankTrace& trace : traces) {
    const auto known = lanes_.try_emplace(trace.global_rank, options_.clock).first;
    lanes.push_back(known->second.assign(trace.events));
  }
  const std::vector<MessageArrows::Ends> arrows = arrows_.number(traces, lanes);
  for (size_t r = 0; r < traces.size(); ++r) {
    name_lanes(traces[r], lanes[r]);
    if (!first) dropped(traces[r]);
    rank(traces[r], lanes[r], arrows[r]);
  }
}

void ChromeTraceWriter::Impl::header(std::span<const RankTrace> traces) {
  begun_ = true;
  const int world = options_.world_size > 0 ? options_.world_size : static_cast<int>(traces.size());
  const int rank = traces.empty() ? 0 : traces.front().global_rank;
  out_ += "{\"schemaVersion\":" + std::to_string(kTraceSchemaVersion);
  out_ += ",\"displayTimeUnit\":\"ns\"";
  out_ += ",\"distributedInfo\":{\"backend\":\"ranklab\",\"rank\":" + std::to_string(rank);
  out_ += ",\"world_size\":" + std::to_string(world) + "}";
  out_ += ",\n\"ranklab\":{\"clock\":";
  out_ += options_.clock == TraceClock::kVirtual ? "\"virtual\"" : "\"wall\"";
  if (options_.gpus_per_node > 0) out_ += ",\"gpus_per_node\":" + std::to_string(options_.gpus_per_node);
  if (!options_.title.empty()) {
    out_ += ",\"title\":";
    append_json_string(out_, options_.title);
  }
  out_ += ",\"ranks\":[";
  for (const RankTrace& trace : traces) {
    out_ += &trace == &traces.front() ? "\n" : ",\n";
    rank_header(trace);
  }
  out_ += "]},\n\"traceEvents\":[";
}

void ChromeTraceWriter::Impl::rank_header(const RankTrace& trace) {
  out_ += "{\"rank\":" + std::to_string(trace.global_rank) +
          ",\"pid\":" + std::to_string(process_id(trace.global_rank)) + ",\"label\":";
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

void ChromeTraceWriter::Impl::begin_event(char phase, int rank, int tid) {
  out_ += first_event_ ? "\n{" : ",\n{";
  first_event_ = false;
  first_key_ = true;
  key("ph");
  out_ += {'"', phase, '"'};
  key("pid");
  append_json_int(out_, process_id(rank));
  key("tid");
  append_json_int(out_, tid);
}

void ChromeTraceWriter::Impl::metadata(const char* what, int rank, int tid, const std::string& name, int sort_index) {
  begin_event('M', rank, tid);
  out_ += ",\"name\":\"" + std::string(what) + "_name\",\"args\":{\"name\":";
  append_json_string(out_, name);
  out_ += "}}";
  begin_event('M', rank, tid);
  out_ += ",\"name\":\"" + std::string(what) + "_sort_index\",\"args\":{\"sort_index\":";
  append_json_int(out_, sort_index);
  out_ += "}}";
}

// Names the lanes that no earlier piece used.
void ChromeTraceWriter::Impl::name_lanes(const RankTrace& trace, const LaneMap& lanes) {
  const auto [named, first] = named_lanes_.try_emplace(trace.global_rank);
  if (first) {
    const std::string number = "rank " + std::to_string(trace.global_rank);
    const bool plain = trace.label.empty() || trace.label == "rank" + std::to_string(trace.global_rank);
    metadata("process", trace.global_rank, 0, plain ? number : number + " (" + trace.label + ")", trace.global_rank);
  }
  for (const int lane : lanes.lanes)
    if (named->second.insert(lane).second) metadata("thread", trace.global_rank, lane, lane_name(lane), lane);
}

// Writes the number as an event, because the header with the counts is already at the beginning of the file.
void ChromeTraceWriter::Impl::dropped(const RankTrace& trace) {
  if (trace.dropped == 0) return;
  begin_event('M', trace.global_rank, 0);
  key("name");
  append_json_string(out_, kDroppedEvent);
  out_ += ",\"args\":{\"dropped\":" + std::to_string(trace.dropped) + "}}";
}

void ChromeTraceWriter::Impl::rank(const RankTrace& trace, const LaneMap& lanes, const MessageArrows::Ends& arrows) {
  for (size_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    RANKLAB_CHECK(event.name < trace.names.size(), ErrorKind::kInternal,
                  .where = "trace writer, rank " + std::to_string(trace.global_rank), .what = "an event without a name",
                  .got = "name index " + std::to_string(event.name),
                  .want = "less than " + std::to_string(trace.names.size()));
    const int lane = lanes.lane_of_event[e];
    if (is_slice(event)) slice(trace, event, lane);
    if (event.kind == EventKind::kInstant) instant(trace, event);
    if (event.kind == EventKind::kCounter) counter(trace, event);
    const auto end = arrows.find(e);
    if (end != arrows.end()) flow({trace.global_rank, event, lane}, end->second);
    if (out_.size() > kFlushBytes) write_out();
  }
}

void ChromeTraceWriter::Impl::field(const NamedField& named, const Event& event) {
  std::visit(
      [&](auto member) {
        static constexpr Event kDefault;
        if (event.*member == kDefault.*member) return;
        key(named.key);
        append_json_int(out_, event.*member);
      },
      named.field);
}

// Everything that `ts` and `dur` do not express. A collective's words come first, for human readers.
void ChromeTraceWriter::Impl::args(const RankTrace& trace, const Event& event) {
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
  if (event.types.known()) {
    key("types");
    append_json_string(out_, event.types.text());
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

void ChromeTraceWriter::Impl::array(const RankTrace& trace, const Event& event) {
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

void ChromeTraceWriter::Impl::slice(const RankTrace& trace, const Event& event, int lane) {
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

void ChromeTraceWriter::Impl::instant(const RankTrace& trace, const Event& event) {
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
// Viewers draw every number in a counter's args, so the other fields go to a separate key of our own.
void ChromeTraceWriter::Impl::counter(const RankTrace& trace, const Event& event) {
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

void ChromeTraceWriter::Impl::flow(const ArrowPlace& place, const ArrowEnd& end) {
  if (end.earlier) arrow(*end.earlier, end.id, !end.start);
  arrow(place, end.id, end.start);
}

// An arrow binds to the slice that encloses its timestamp: it leaves at the slice's begin and arrives in its last
// nanosecond.
void ChromeTraceWriter::Impl::arrow(const ArrowPlace& place, int64_t id, bool start) {
  const Event& event = place.event;
  const int64_t begin = begin_ns(event, options_.clock);
  begin_event(start ? 's' : 'f', place.global_rank, place.lane);
  key("ts");
  append_json_us(out_, start ? begin : std::max(begin, end_ns(event, options_.clock) - 1));
  key("id");
  append_json_int(out_, id);
  key("name");
  append_json_string(out_, "message");
  key("cat");
  append_json_string(out_, "message");
  if (!start) {
    key("bp");
    append_json_string(out_, "e");
  }
  out_ += '}';
}

ChromeTraceWriter::ChromeTraceWriter(const std::string& path, const ChromeWriterOptions& options)
    : impl_(std::make_unique<Impl>(path, options)) {}
ChromeTraceWriter::~ChromeTraceWriter() = default;
void ChromeTraceWriter::add(std::span<const RankTrace> piece) { impl_->add(piece); }
void ChromeTraceWriter::flush() { impl_->flush(); }
void ChromeTraceWriter::commit() { impl_->commit(); }

void write_chrome_trace(const std::string& path, std::span<const RankTrace> traces,
                        const ChromeWriterOptions& options) {
  ChromeTraceWriter writer(path, options);
  writer.add(traces);
  writer.commit();
}

}  // namespace ranklab
