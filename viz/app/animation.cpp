#include "viz/app/animation.h"

#include <zlib.h>

#include <algorithm>
#include <string_view>

#include "core/base/error.h"

namespace ranklab::viz {
namespace {

constexpr size_t kSignature = 8;               // bytes before the first chunk of a PNG
constexpr char kKeepBelow = 0, kDrawOver = 1;  // APNG_DISPOSE_OP_NONE, APNG_BLEND_OP_OVER
constexpr std::string_view kPixels = "IDAT", kEnd = "IEND";

void append_number(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 255U);
}
void append_short(std::string& out, uint32_t value) {
  out += static_cast<char>(value >> 8U & 255U);
  out += static_cast<char>(value & 255U);
}
uint32_t number_at(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8U | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

std::string chunk(std::string_view type, std::string_view data) {
  std::string out;
  append_number(out, static_cast<uint32_t>(data.size()));
  out.append(type).append(data);
  const auto* bytes = reinterpret_cast<const Bytef*>(out.data()) + 4;
  append_number(out, static_cast<uint32_t>(crc32(0, bytes, static_cast<uInt>(out.size() - 4))));
  return out;
}

struct Chunk {
  std::string_view type, data, whole;
};
std::vector<Chunk> chunks_of(std::string_view png) {
  std::vector<Chunk> out;
  for (size_t at = kSignature; at + 12 <= png.size();) {
    const size_t length = number_at(png, at);
    out.push_back({png.substr(at + 4, 4), png.substr(at + 8, length), png.substr(at, length + 12)});
    at += length + 12;
  }
  return out;
}

// The smallest rectangle that contains all changed pixels; its unchanged pixels are transparent. If nothing changed, it
// is a single pixel.
struct Change {
  Image image;
  int x = 0, y = 0;
};
Change change_of(const Image& before, const Image& now) {
  int left = now.width, right = 0, top = now.height, bottom = 0;
  for (int y = 0; y < now.height; ++y) {
    for (int x = 0; x < now.width; ++x) {
      const auto i = static_cast<size_t>(y) * static_cast<size_t>(now.width) + static_cast<size_t>(x);
      if (before.rgba[i] == now.rgba[i]) continue;
      left = std::min(left, x);
      right = std::max(right, x + 1);
      top = std::min(top, y);
      bottom = std::max(bottom, y + 1);
    }
  }
  if (left >= right) return {{1, 1, {0}}, 0, 0};
  Change out{{right - left, bottom - top, {}}, left, top};
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      const auto i = static_cast<size_t>(y) * static_cast<size_t>(now.width) + static_cast<size_t>(x);
      out.image.rgba.push_back(before.rgba[i] == now.rgba[i] ? 0 : now.rgba[i]);
    }
  }
  return out;
}

}  // namespace

void Animation::control(int width, int height, int x, int y) {
  std::string data;
  append_number(data, chunks_++);
  for (const int value : {width, height, x, y}) append_number(data, static_cast<uint32_t>(value));
  append_short(data, static_cast<uint32_t>(milliseconds_));
  append_short(data, 1000);
  data += kKeepBelow;
  data += kDrawOver;
  body_ += chunk("fcTL", data);
  ++frames_;
}

void Animation::add(const Image& frame) {
  if (frames_ == 0) {
    const std::string png = png_bytes(frame);
    head_ = png.substr(0, kSignature);
    control(frame.width, frame.height, 0, 0);
    for (const Chunk& one : chunks_of(png))
      if (one.type != kEnd) (one.type == kPixels ? body_ : head_) += one.whole;
    last_ = frame;
    return;
  }
  RANKLAB_CHECK(frame.width == last_.width && frame.height == last_.height, ErrorKind::kInternal, .where = "viz",
                .what = "a frame of an animation has a different size");
  const Change change = change_of(last_, frame);
  const std::string png = png_bytes(change.image);
  control(change.image.width, change.image.height, change.x, change.y);
  std::string data;
  append_number(data, chunks_++);
  for (const Chunk& one : chunks_of(png))
    if (one.type == kPixels) data.append(one.data);
  body_ += chunk("fdAT", data);
  last_ = frame;
}

std::string Animation::png() const {
  std::string control;
  append_number(control, frames_);
  append_number(control, 0);  // repeats without end
  return head_ + chunk("acTL", control) + body_ + chunk(kEnd, "");
}

}  // namespace ranklab::viz
