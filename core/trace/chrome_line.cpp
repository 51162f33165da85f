#include "core/trace/chrome_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <variant>

#include "core/trace/chrome_event.h"

namespace ranklab {
namespace {

// The rest of a line. Every take_ function returns false, and may have advanced, when the text does not match.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool take(std::string_view literal) {
    if (static_cast<size_t>(end_ - at_) < literal.size() || std::string_view(at_, literal.size()) != literal)
      return false;
    at_ += literal.size();
    return true;
  }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool at_end() const { return at_ == end_; }

  template <typename T>
  bool take_int(T& value) {
    if (leading_zero()) return false;
    const auto [end, error] = std::from_chars(at_, end_, value);
    if (error != std::errc() || (end != end_ && (*end == '.' || *end == 'e' || *end == 'E'))) return false;
    at_ = end;
    return true;
  }

  bool take_double(double& value) {
    const char* const digit = at_ != end_ && *at_ == '-' ? at_ + 1 : at_;
    if (digit == end_ || *digit < '0' || *digit > '9' || leading_zero()) return false;
    const auto [end, error] = std::from_chars(at_, end_, value);
    if (error != std::errc() || end[-1] < '0' || end[-1] > '9' || !std::isfinite(value)) return false;
    const char* const point = std::find(at_, end, '.');
    if (point != end && (point[1] < '0' || point[1] > '9')) return false;  // JSON does not allow 0.e5
    at_ = end;
    return true;
  }

  // Decimal microseconds, up to the size where a double still represents every nanosecond, as in the general reader.
  bool take_us(int64_t& ns) {
    constexpr int64_t kMostUs = 2'000'000'000'000;
    const bool minus = take('-');
    int64_t us = 0;
    if (at_ == end_ || *at_ < '0' || *at_ > '9' || !take_whole(us) || us > kMostUs) return false;
    int64_t rest = 0;
    if (take('.')) {
      const char* const first = at_;
      for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
        if (at_ - first == 3) return false;
        rest = 10 * rest + (*at_ - '0');
      }
      if (at_ == first) return false;
      for (auto digits = at_ - first; digits < 3; ++digits) rest *= 10;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) return false;
    ns = (minus ? -1 : 1) * (us * 1000 + rest);
    return true;
  }

  // A string of printable ASCII without escapes.
  bool take_string(std::string_view& text) {
    if (!take('"')) return false;
    const char* const first = at_;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ < ' ' || *at_ > '~' || *at_ == '\\') return false;
      ++at_;
    }
    text = {first, static_cast<size_t>(at_ - first)};
    return take('"');
  }

 private:
  bool take_whole(int64_t& value) {
    if (leading_zero()) return false;
    const auto [end, error] = std::from_chars(at_, end_, value);
    at_ = end;
    return error == std::errc();
  }
  // JSON does not allow 01.
  bool leading_zero() const {
    const char* digit = at_ != end_ && *at_ == '-' ? at_ + 1 : at_;
    return end_ - digit > 1 && *digit == '0' && digit[1] >= '0' && digit[1] <= '9';
  }

  const char* at_;
  const char* end_;
};

template <typename T>
bool word(std::string_view text, size_t count, T& value) {
  for (size_t i = 0; i < count; ++i) {
    if (name(static_cast<T>(i)) != text) continue;
    value = static_cast<T>(i);
    return true;
  }
  return false;
}

// The contents of a line.
struct Line {
  std::string_view name;
  std::string_view series = "value";  // of a counter
  Event event;
  bool has_array = false;
  std::vector<double> array;
};

bool take_value(Cursor& in, const NamedField& named, Event& event) {
  return std::visit([&](auto member) { return in.take_int(event.*member); }, named.field);
}

// Looks for the key of the next field, in or after `next`, and advances past it.
const NamedField* find_field(std::string_view key, std::span<const NamedField> fields, size_t& next) {
  for (size_t i = next; i < fields.size(); ++i) {
    if (fields[i].key != key) continue;
    next = i + 1;
    return &fields[i];
  }
  return nullptr;
}

bool types(std::string_view text, Event& event) {
  const std::optional<TypeChange> parsed = TypeChange::parsed(text);
  if (parsed) event.types = *parsed;
  return parsed.has_value();
}

bool take_word(Cursor& in, std::string_view key, int& stage, Event& event) {
  std::string_view text;
  const auto once = [&](int own) { return std::exchange(stage, own) < own && in.take_string(text); };
  if (key == "verb") return once(1) && word(text, static_cast<size_t>(Verb::kCount), event.verb);
  if (key == "axis") return once(2) && word(text, static_cast<size_t>(Axis::kCount), event.axis);
  if (key == "purpose") return once(4) && word(text, static_cast<size_t>(Purpose::kCount), event.purpose);
  if (key == "types") return once(5) && types(text, event);
  if (key == "dtype") return once(3) && word(text, static_cast<size_t>(DType::kOther) + 1, event.dtype);
  return false;
}

// The numbers after the opening bracket.
bool take_array(Cursor& in, Line& line) {
  line.has_array = true;
  if (in.take(']')) return true;
  do {
    if (!in.take_double(line.array.emplace_back())) return false;
  } while (in.take(','));
  return in.take(']');
}

// Parses the object of fields after its opening brace, in the writer's order: words, kArgFields, the other clock,
// value, array. A counter has neither words nor a value there.
bool take_fields(Cursor& in, TraceClock clock, bool counter, Line& line) {
  Event& event = line.event;
  const auto& span = clock == TraceClock::kVirtual ? kWallSpan : kVirtualSpan;
  if (in.take('}')) return true;
  size_t next_field = 0, next_span = 0;
  int words = 0;
  do {
    std::string_view key;
    if (!in.take_string(key) || !in.take(':')) return false;
    if (next_span == 0) {
      if (const NamedField* field = find_field(key, kArgFields, next_field)) {
        if (!take_value(in, *field, event)) return false;
        continue;
      }
    }
    if (const NamedField* field = find_field(key, span, next_span)) {
      if (!take_value(in, *field, event)) return false;
      continue;
    }
    if (!counter && next_field == 0 && next_span == 0 && take_word(in, key, words, event)) continue;
    if (key == "value" && !counter) {
      if (!in.take_double(event.value)) return false;
      if (!in.take(',')) return in.take('}');
      if (!in.take_string(key) || !in.take(':')) return false;
    }
    return key == "array" && in.take('[') && take_array(in, line) && in.take('}');
  } while (in.take(','));
  return in.take('}');
}

// Parses "ts": ... and "dur": ... on the trace's clock.
bool take_span(Cursor& in, bool has_duration, TraceClock clock, Event& event) {
  int64_t begin = 0, duration = 0;
  if (!in.take(",\"ts\":") || !in.take_us(begin)) return false;
  if (has_duration && (!in.take(",\"dur\":") || !in.take_us(duration))) return false;
  (clock == TraceClock::kVirtual ? event.virtual_begin_ns : event.wall_begin_ns) = begin;
  (clock == TraceClock::kVirtual ? event.virtual_end_ns : event.wall_end_ns) = begin + duration;
  return true;
}

bool take_category(Cursor& in, Event& event) {
  std::string_view text;
  if (!in.take(",\"cat\":") || !in.take_string(text)) return false;
  const std::optional<EventKind> kind = slice_kind(text);
  if (kind) event.kind = *kind;
  return kind.has_value();
}

bool take_slice(Cursor& in, char phase, TraceClock clock, Line& line) {
  if (!take_span(in, phase == 'X', clock, line.event)) return false;
  if (phase == 'i' && !in.take(",\"s\":\"p\"")) return false;
  if (!in.take(",\"name\":") || !in.take_string(line.name)) return false;
  if (phase == 'X' && !take_category(in, line.event)) return false;
  return in.take(",\"args\":{") && take_fields(in, clock, false, line) && in.take('}') && in.at_end();
}

bool take_counter(Cursor& in, TraceClock clock, Line& line) {
  Event& event = line.event;
  event.kind = EventKind::kCounter;
  const bool head = take_span(in, false, clock, event) && in.take(",\"name\":") && in.take_string(line.name) &&
                    in.take(",\"args\":{") && in.take_string(line.series) && in.take(':') &&
                    in.take_double(event.value) && in.take("},\"ranklab\":{");
  if (!head) return false;
  if (!take_fields(in, clock, true, line)) return false;
  event.virtual_end_ns = event.virtual_begin_ns;
  event.wall_end_ns = event.wall_begin_ns;
  return in.take('}') && in.at_end();
}

// One end of an arrow; it repeats what the message's event contains.
bool take_arrow(Cursor& in, char phase) {
  int64_t time = 0, id = 0;
  return in.take(",\"ts\":") && in.take_us(time) && in.take(",\"id\":") && in.take_int(id) &&
         in.take(",\"name\":\"message\",\"cat\":\"message\"") && (phase == 's' || in.take(",\"bp\":\"e\"")) &&
         in.take('}') && in.at_end();
}

}  // namespace

bool add_chrome_line(std::string_view text, ChromeEvents& events) {
  Cursor in(text);
  if (text.size() < 10 || !in.take("{\"ph\":\"")) return false;
  const char phase = text[7];
  in.take(phase);
  int64_t pid = 0;
  int tid = 0;
  if (!in.take("\",\"pid\":") || !in.take_int(pid) || !in.take(",\"tid\":") || !in.take_int(tid)) return false;
  if (phase == 's' || phase == 'f') return take_arrow(in, phase);
  if (phase != 'X' && phase != 'i' && phase != 'C') return false;
  ChromeEvents::Rank* const rank = events.rank(pid);
  if (rank == nullptr) return false;
  Line line;
  const bool taken =
      phase == 'C' ? take_counter(in, events.clock(), line) : take_slice(in, phase, events.clock(), line);
  if (!taken) return false;
  std::vector<double>* const array = line.has_array ? &line.array : nullptr;
  if (line.series == "value") {
    events.add(*rank, line.name, line.event, array);
  } else {
    events.add(*rank, std::string(line.name).append("/").append(line.series), line.event, array);
  }
  return true;
}

}  // namespace ranklab
