// What the processes of a world say to each other over TCP: frames of a 16-byte header (magic, type, length) and a
// payload of packed little-endian values. Read as hostile: the length is checked against a cap before anything is
// allocated, every value against what is left of its frame. Thread rule: values; one reader per connection.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab::cpu_sim {

enum class FrameType : uint32_t {
  // Joining: coordinator, then member, then coordinator.
  kChallenge,  // nonce
  kHello,      // who I am, nonce, proof of the token
  kWelcome,    // proof of the token
  kRefused,    // error, whether to try again
  kStart,      // every rank is there
  // A member's calls.
  kChannel,   // number, label, ranks, is_message: the number stands for the channel from now on
  kPost,      // channel, sequence, call
  kWait,      // channel, sequence: I sleep until it is matched
  kFinished,  // channel, sequence
  kReturned,  // my body returned
  kFailed,    // my body threw this error
  // The coordinator's answers.
  kMatched,  // channel, sequence, virtual ns, bytes, serial
  kPoison,   // the first error, and the one owed to this rank
  kEnded,    // every body returned and nothing is open
  // Both.
  kAlive,
  kSet,    // key, value
  kGet,    // key
  kValue,  // key, value
  kBye,    // what follows is not a failure
  kCount
};

constexpr size_t kHelloCap = 4 << 10;  // payload bytes of a peer that has not shown the token
constexpr size_t kFrameCap = 4 << 20;
constexpr std::chrono::milliseconds kHeartbeat{300};

struct Frame {
  FrameType type = FrameType::kCount;
  std::string payload;
};

std::string frame_bytes(FrameType type, std::string_view payload = {});

// Puts frames together from what a socket gives.
class FrameReader {
 public:
  explicit FrameReader(size_t cap) : cap_(cap) {}
  void set_cap(size_t cap) { cap_ = cap; }
  void feed(std::string_view bytes) { buffer_ += bytes; }
  // The next whole frame. Throws kCommunication when the bytes are no frame, or one above the cap.
  std::optional<Frame> next();
  size_t waiting_bytes() const { return buffer_.size(); }

 private:
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

// Throws kCommunication when the payload is shorter than what is asked of it, or a value is out of its range.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  int64_t number();
  int number_between(int64_t lowest, int64_t highest);
  bool flag() { return number_between(0, 1) == 1; }
  std::string text();
  std::vector<int64_t> numbers();

 private:
  std::string_view take(size_t count);
  std::string_view bytes_;
};

}  // namespace ranklab::cpu_sim
