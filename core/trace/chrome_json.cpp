#include "core/trace/chrome_json.h"

#include <array>
#include <cmath>
#include <istream>
#include <limits>
#include <streambuf>

#include "core/base/error.h"
#include "core/trace/gz_file.h"

namespace ranklab {
namespace {

using nlohmann::json;
using ParseEvent = json::parse_event_t;

class GzStreamBuffer final : public std::streambuf {
 public:
  explicit GzStreamBuffer(const std::string& path) : reader_(path) {}

 protected:
  int_type underflow() override {
    const size_t got = reader_.read(buffer_.data(), buffer_.size());
    if (got == 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
    return traits_type::to_int_type(*gptr());
  }

 private:
  GzReader reader_;
  std::array<char, 1 << 16> buffer_{};
};

// Follows the parser: depth 1 holds the sections, depth 2 under "traceEvents" the events, which are dropped after the
// visit.
class Follower {
 public:
  explicit Follower(const ChromeJsonVisitor& visitor) : visitor_(visitor) {}

  bool operator()(int depth, ParseEvent event, json& parsed) {
    const bool ended = event == ParseEvent::object_end || event == ParseEvent::array_end || event == ParseEvent::value;
    if (depth == 1 && event == ParseEvent::key) section_ = parsed.get<std::string>();
    if (depth == 1 && ended && section_ != "traceEvents" && visitor_.on_section) visitor_.on_section(section_, parsed);
    if (depth == 2 && ended && section_ == "traceEvents") {
      if (visitor_.on_event) visitor_.on_event(parsed, count_);
      ++count_;
      return false;
    }
    return true;
  }
  size_t count() const { return count_; }

 private:
  const ChromeJsonVisitor& visitor_;
  std::string section_;
  size_t count_ = 0;
};

[[noreturn]] void bad_file(const std::string& path, const std::string& what, const std::string& got) {
  throw Error(ErrorKind::kBadFile, {.where = "trace file " + path,
                                    .what = what,
                                    .got = got,
                                    .want = "Chrome Trace JSON as ranklab writes it",
                                    .fix = "write the trace again; a cut file was not closed by its writer"});
}

}  // namespace

void visit_chrome_json(const std::string& path, const ChromeJsonVisitor& visitor) {
  GzStreamBuffer buffer(path);
  std::istream stream(&buffer);
  stream.exceptions(std::ios::badbit);  // let a read error through
  Follower follower(visitor);
  try {
    const json root = json::parse(stream, std::ref(follower));
    if (!root.is_object()) bad_file(path, "not a trace", "JSON that is not an object");
  } catch (const json::parse_error& error) {
    bad_file(path, "not valid JSON", "an error at byte " + std::to_string(error.byte));
  } catch (const Error& error) {
    if (error.text().where == "JSON") {  // json_integer() does not know the file or the event
      bad_file(path, "event " + std::to_string(follower.count()) + ": " + error.text().what, error.text().got);
    }
    throw;
  } catch (const json::exception& error) {
    bad_file(path, "event " + std::to_string(follower.count()) + " cannot be used", json_problem(error));
  }
}

std::string json_problem(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const size_t number_end = text.find("] ");
  return text.starts_with("[json.exception") && number_end != std::string::npos ? text.substr(number_end + 2) : text;
}

int64_t ns_of(const nlohmann::json& value) {
  if (value.is_number_integer()) {
    const auto us = value.get<int64_t>();
    if (us > -(int64_t{1} << 52) && us < (int64_t{1} << 52)) return us * 1000;
  } else if (value.is_number_float() && std::abs(value.get<double>()) < 4.5e15) {
    return std::llround(value.get<double>() * 1000);
  }
  throw Error(ErrorKind::kBadFile, {.where = "trace file",
                                    .what = "not a time in microseconds",
                                    .got = value.dump(),
                                    .want = "a number",
                                    .fix = "the file is damaged: write it again"});
}

double double_of(const nlohmann::json& value) {
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return value.get<double>();
}

}  // namespace ranklab
