#include "core/trace/chrome_reader.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/trace/chrome_events.h"
#include "core/trace/chrome_json.h"
#include "core/trace/chrome_line.h"
#include "core/trace/text_lines.h"

namespace ranklab {
namespace {

using nlohmann::json;

enum class LinesEnd { kWhole, kBroken, kOtherLayout };

// A file in our writer's layout: a header up to a line that ends in "traceEvents":[, one line per event, a last line ]}
class LinesReader {
 public:
  LinesReader(const std::string& path, ChromeEvents& events) : lines_(path), events_(events) {}

  LinesEnd read() {
    if (!read_header()) return LinesEnd::kOtherLayout;
    std::string_view line;
    bool comma = true;  // whether the previous line ended in one
    while (lines_.next(line)) {
      if (line == "]}") return end(comma);
      if (!comma) return broken("no comma before the event");
      comma = line.ends_with(',');
      if (comma) line.remove_suffix(1);
      if (!read_event(line)) return LinesEnd::kBroken;
      ++count_;
    }
    return broken("the file ends here");
  }
  const std::string& why() const { return why_; }

 private:
  LinesEnd broken(const std::string& what) {
    why_ = "broken after " + std::to_string(count_) + " events, at byte " + std::to_string(lines_.line_begin()) + ": " +
           (lines_.damage().empty() ? what : lines_.damage());
    return LinesEnd::kBroken;
  }

  bool read_header() {
    std::string text;
    std::string_view line;
    while (lines_.next(line)) {
      text += line;
      if (text.size() >= 17 && !text.starts_with("{\"schemaVersion\":")) return false;
      if (line.ends_with("\"traceEvents\":[")) break;
    }
    if (!text.ends_with("\"traceEvents\":[")) return false;
    const json header = json::parse(text + "]}", nullptr, false);
    if (!header.is_object() || header.size() < 2) return false;
    try {
      for (const auto& [key, value] : header.items()) {
        if (key != "traceEvents") events_.section(key, value);
      }
    } catch (const json::exception&) {
      return false;
    } catch (const Error&) {
      return false;  // the general reader reports it with its location
    }
    return true;
  }

  bool read_event(std::string_view line) {
    if (add_chrome_line(line, events_)) return true;
    const json value = json::parse(line, nullptr, false);
    if (value.is_discarded()) {
      broken(lines_.ended() ? "not valid JSON" : "the file ends in the middle of an event");
      return false;
    }
    try {
      events_.event(value);
      return true;
    } catch (const json::exception& error) {
      broken("an event that cannot be used: " + json_problem(error));
    } catch (const Error& error) {
      broken("an event that cannot be used: " + error.text().what + "; got " + error.text().got);
    }
    return false;
  }

  // After the last line only white space may follow.
  LinesEnd end(bool comma) {
    if (comma && count_ > 0) return broken("a comma after the last event");
    std::string_view line;
    while (lines_.next(line)) {
      if (!is_blank(line)) return broken("text after the end");
    }
    return lines_.damage().empty() ? LinesEnd::kWhole : broken("");
  }

  TextLines lines_;
  ChromeEvents& events_;
  size_t count_ = 0;
  std::string why_;
};

// Whether the file can be read a second time: a pipe cannot, so the general reader reads it.
bool read_twice(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) || !std::filesystem::exists(path, error);
}

void read_generally(const std::string& path, ChromeEvents& events) {
  try {
    visit_chrome_json(path, {[&](const std::string& key, const json& value) { events.section(key, value); },
                             [&](const json& event, size_t /*number*/) { events.event(event); }});
  } catch (const Error& error) {
    ErrorText text = error.text();
    if (text.where == "trace file") text.where += " " + path;  // events do not know which file they come from
    throw Error(error.kind(), std::move(text));
  }
}

}  // namespace

TraceFile read_chrome_trace_slowly(const std::string& path) {
  ChromeEvents events;
  read_generally(path, events);
  events.require_ours(path);
  return events.take();
}

TraceFile read_chrome_trace(const std::string& path) {
  ChromeEvents events;
  if (!read_twice(path) || LinesReader(path, events).read() != LinesEnd::kWhole) return read_chrome_trace_slowly(path);
  events.require_ours(path);
  return events.take();
}

TracePrefix read_trace_prefix(const std::string& path) {
  TracePrefix out;
  std::optional<ChromeEvents> events(std::in_place);
  LinesEnd end = LinesEnd::kOtherLayout;
  if (read_twice(path)) {
    LinesReader lines(path, *events);
    end = lines.read();
    out.broken = lines.why();
  }
  try {
    if (end == LinesEnd::kOtherLayout) {
      events.emplace();
      read_generally(path, *events);
    }
    if (out.broken.empty()) events->require_ours(path);
  } catch (const Error& error) {
    out.broken = "broken: " + error.text().what + (error.text().got.empty() ? "" : "; got " + error.text().got) +
                 (error.text().want.empty() ? "" : "; want " + error.text().want);
  }
  out.file = events->take();
  return out;
}

}  // namespace ranklab
