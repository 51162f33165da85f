// Packs values as bytes for a socket: frames with a 16-byte header (magic, type, length) and a payload of packed
// little-endian values. Input is untrusted: the length is checked against a cap before anything is allocated, and every
// value against the bytes left in its frame. Two protocols use it, each with its own magic: rank processes
// (backends/cpu_sim/transport/frame.h) and viewers (core/live/live_message.h). Thread rule: values; one reader per
// connection.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab {

struct RawFrame {
  uint32_t type = 0;
  std::string payload;
};

std::string raw_frame_bytes(uint32_t magic, uint32_t type, std::string_view payload);

// Assembles frames from the bytes that a socket delivers.
class RawFrameReader {
 public:
  // `num_types`: frame types must be below it. `cap`: the largest payload in bytes.
  RawFrameReader(uint32_t magic, uint32_t num_types, size_t cap) : magic_(magic), num_types_(num_types), cap_(cap) {}
  void set_cap(size_t cap) { cap_ = cap; }
  void feed(std::string_view bytes) { buffer_ += bytes; }
  // The next complete frame, if there is one. Throws kCommunication when the bytes are not a frame, or its payload
  // exceeds the cap.
  std::optional<RawFrame> next();
  size_t waiting_bytes() const { return buffer_.size(); }

 private:
  uint32_t magic_;
  uint32_t num_types_;
  size_t cap_;
  std::string buffer_;
};

class Packer {
 public:
  Packer& number(int64_t value);
  Packer& text(std::string_view value);
  template <typename Range>
  Packer& numbers(const Range& values) {
    number(static_cast<int64_t>(values.size()));
    for (const auto value : values) number(static_cast<int64_t>(value));
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Throws kCommunication when the payload is shorter than requested, or a value is out of its range.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  int64_t number();
  int number_between(int64_t lowest, int64_t highest);
  bool flag() { return number_between(0, 1) == 1; }
  std::string text();
  std::vector<int64_t> numbers();
  size_t left() const { return bytes_.size(); }

 private:
  std::string_view take(size_t count);
  std::string_view bytes_;
};

}  // namespace ranklab
