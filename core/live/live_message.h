// The protocol between a run and its viewers: frames (core/base/packing.h) of these types. Each side treats the other
// as untrusted: sizes are bounded before anything is allocated, every number is range-checked, and invalid input throws
// kCommunication, which ends only that connection.
//   viewer: kAttach (version), then kCommand at any time.
//   run: kWelcome, then kEvents and kState as they occur, kEnded.
// Thread rule: values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/packing.h"
#include "core/live/stepper_control.h"
#include "core/trace/event.h"

namespace ranklab {

constexpr uint32_t kLiveMagic = 0x31'56'4b'52;  // "RKV1"
constexpr int64_t kLiveVersion = 3;
constexpr size_t kLiveFrameCap = 1 << 20;    // payload bytes from the run
constexpr size_t kLiveCommandCap = 4 << 10;  // from a viewer
constexpr size_t kLiveEventsPerFrame = 1024;
constexpr size_t kLiveNumbersPerFrame = 1 << 16;  // total length of the arrays of its events

enum class LiveType : uint32_t { kAttach, kCommand, kWelcome, kEvents, kState, kEnded, kCount };

struct LiveCommand {
  enum class Kind : uint8_t {
    kPause,
    kResume,
    kStepEvents,
    kStepRank,
    kStepMicrobatch,
    kStepTraining,
    kAddBreakpoint,
    kRemoveBreakpoint,
    kCount
  };
  Kind kind = Kind::kPause;
  int64_t count = 0;    // of events or steps; the breakpoint's id
  int global_rank = 0;  // kStepRank
  Breakpoint breakpoint = {};

  bool operator==(const LiveCommand&) const = default;
};
void apply(const LiveCommand& command, StepperControl& stepper);

struct LiveWelcome {
  int world_size = 0;
  bool steppable = false;
};

// These return whole frames.
std::string attach_frame();
std::string command_frame(const LiveCommand& command);
std::string welcome_frame(const LiveWelcome& welcome);
// Sends names from `names_from` on: the earlier ones were sent before. REQUIRES: the arrays of the events have at most
// kLiveNumbersPerFrame numbers in total; an array that alone has more is left out.
std::string events_frame(const RankTrace& batch, size_t names_from);
std::string state_frame(const StepperState& state);
std::string ended_frame(const std::string& error);

// These read payloads. check_attach throws when the other side uses another version.
void check_attach(std::string_view payload);
LiveCommand unpack_command(std::string_view payload);
LiveWelcome unpack_welcome(std::string_view payload);
StepperState unpack_state(std::string_view payload, int world_size);
std::string unpack_ended(std::string_view payload);
// Adds the received data to its rank: label, groups, dropped count and names are replaced or extended, events and their
// arrays appended. `ranks` has one entry per global rank. Returns the rank.
int unpack_events(std::string_view payload, std::vector<RankTrace>& ranks);

}  // namespace ranklab
