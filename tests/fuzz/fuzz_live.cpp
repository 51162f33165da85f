// Any bytes on a viewer's connection, at either end, in pieces: they are frames of the live protocol, or refused. What
// is read is written back as the same bytes.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/live/live_message.h"

using namespace ranklab;

namespace {

constexpr int kWorld = 4;

std::string whole_frame(const RawFrame& frame) { return raw_frame_bytes(kLiveMagic, frame.type, frame.payload); }

void must_be(const std::string& frame, const std::string& again) {
  // What follows the last value of a payload is ignored.
  if (frame.size() < again.size() || std::string_view(frame).substr(16, again.size() - 16) != again.substr(16))
    std::abort();
}

void read(const RawFrame& frame, std::vector<RankTrace>& ranks) {
  switch (static_cast<LiveType>(frame.type)) {
    case LiveType::kAttach:
      return check_attach(frame.payload);
    case LiveType::kCommand:
      return must_be(whole_frame(frame), command_frame(unpack_command(frame.payload)));
    case LiveType::kWelcome:
      return must_be(whole_frame(frame), welcome_frame(unpack_welcome(frame.payload)));
    case LiveType::kEvents: {
      const auto rank = static_cast<size_t>(unpack_events(frame.payload, ranks));
      for (const Event& event : ranks[rank].events)
        if (event.name >= ranks[rank].names.size() || event.array > ranks[rank].arrays.size()) std::abort();
      ranks[rank].events.clear();
      ranks[rank].arrays.clear();
      return;
    }
    case LiveType::kState:
      return must_be(whole_frame(frame), state_frame(unpack_state(frame.payload, kWorld)));
    case LiveType::kEnded:
      return must_be(whole_frame(frame), ended_frame(unpack_ended(frame.payload)));
    case LiveType::kCount:
      std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t piece = 1 + data[0] % 64;
  const size_t cap = data[0] % 2 == 0 ? kLiveCommandCap : kLiveFrameCap;
  bytes.remove_prefix(1);
  RawFrameReader reader(kLiveMagic, static_cast<uint32_t>(LiveType::kCount), cap);
  std::vector<RankTrace> ranks(kWorld);
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
      reader.feed(bytes.substr(0, piece));
      while (const auto frame = reader.next()) read(*frame, ranks);
      if (reader.waiting_bytes() > cap + piece + 16) std::abort();
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  // A breakpoint typed by a user.
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const Breakpoint breakpoint = parse_breakpoint(text);
    if (parse_breakpoint(to_text(breakpoint)) != breakpoint) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInvalidArgument) std::abort();
  }
  return 0;
}
