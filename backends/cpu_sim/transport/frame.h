// The protocol between the processes of a world over TCP: frames (core/base/packing.h) of these types, treated as
// untrusted input. Thread rule: values; one reader per connection.
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
  kHello,      // rank and configuration, nonce, proof of the token
  kWelcome,    // proof of the token
  kRefused,    // error, whether to try again
  kStart,      // every rank has joined
  // A member's calls.
  kChannel,   // number, label, ranks, is_message: from now on the number denotes the channel
  kPost,      // channel, sequence, call
  kWait,      // channel, sequence: the rank sleeps until it is matched
  kFinished,  // channel, sequence
  kReturned,  // the rank's body returned
  kFailed,    // the rank's body threw this error
  kLeft,      // whether it is the last, a part of what the rank leaves to rank 0 when the run fails
  // The coordinator's answers.
  kMatched,  // channel, sequence, virtual ns, bytes, serial
  kPoison,   // the first error, and the one for this rank to throw
  kEnded,    // every body returned and no call is open
  // Both directions.
  kAlive,
  kSet,    // key, value
  kGet,    // key
  kValue,  // key, value
  kBye,    // closing the connection is not a failure
  kCount
};

constexpr size_t kHelloCap = 4 << 10;  // payload bytes of a peer that has not proved the token
constexpr size_t kFrameCap = 4 << 20;
constexpr std::chrono::milliseconds kHeartbeat{300};

struct Frame {
  FrameType type = FrameType::kCount;
  std::string payload;
};

std::string frame_bytes(FrameType type, std::string_view payload = {});

// Assembles frames from the bytes of a socket.
class FrameReader {
 public:
  explicit FrameReader(size_t cap);
  void set_cap(size_t cap) { frames_.set_cap(cap); }
  void feed(std::string_view bytes) { frames_.feed(bytes); }
  // The next whole frame. Throws kCommunication for an invalid frame, or one above the size limit.
  std::optional<Frame> next();
  size_t waiting_bytes() const { return frames_.waiting_bytes(); }

 private:
  RawFrameReader frames_;
};

}  // namespace ranklab::cpu_sim
