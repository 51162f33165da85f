// What the processes of a world say to each other over TCP: frames (core/base/packing.h) of these types, read as
// hostile. Thread rule: values; one reader per connection.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/packing.h"

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
  explicit FrameReader(size_t cap);
  void set_cap(size_t cap) { frames_.set_cap(cap); }
  void feed(std::string_view bytes) { frames_.feed(bytes); }
  // The next whole frame. Throws kCommunication when the bytes are no frame, or one above the cap.
  std::optional<Frame> next();
  size_t waiting_bytes() const { return frames_.waiting_bytes(); }

 private:
  RawFrameReader frames_;
};

}  // namespace ranklab::cpu_sim
