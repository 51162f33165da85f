#include "backends/cpu_sim/transport/frame.h"

namespace ranklab::cpu_sim {
namespace {

constexpr uint32_t kMagic = 0x31'4c'4b'52;  // "RKL1"

}  // namespace

std::string frame_bytes(FrameType type, std::string_view payload) {
  return raw_frame_bytes(kMagic, static_cast<uint32_t>(type), payload);
}

FrameReader::FrameReader(size_t cap) : frames_(kMagic, static_cast<uint32_t>(FrameType::kCount), cap) {}

std::optional<Frame> FrameReader::next() {
  std::optional<RawFrame> frame = frames_.next();
  if (!frame) return std::nullopt;
  return Frame{static_cast<FrameType>(frame->type), std::move(frame->payload)};
}

}  // namespace ranklab::cpu_sim
