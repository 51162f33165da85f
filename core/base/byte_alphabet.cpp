#include "core/base/byte_alphabet.h"

#include <array>

namespace ranklab {
namespace {

constexpr size_t kBytes = 256;
constexpr size_t kCodePoints = 0x144;  // the largest code point that spells a byte, plus one

constexpr bool prints(size_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<char32_t, kBytes> code_points() {
  std::array<char32_t, kBytes> points = {};
  char32_t unprinted = kBytes;
  for (size_t byte = 0; byte < kBytes; ++byte) points[byte] = prints(byte) ? static_cast<char32_t>(byte) : unprinted++;
  return points;
}
constexpr std::array<char32_t, kBytes> kCodePointOf = code_points();

constexpr std::array<int16_t, kCodePoints> bytes_of_points() {
  std::array<int16_t, kCodePoints> bytes = {};
  bytes.fill(-1);
  for (size_t byte = 0; byte < kBytes; ++byte) bytes[kCodePointOf[byte]] = static_cast<int16_t>(byte);
  return bytes;
}
constexpr std::array<int16_t, kCodePoints> kByteOf = bytes_of_points();

}  // namespace

char32_t byte_code_point(uint8_t byte) { return kCodePointOf[byte]; }

std::string spelled_bytes(std::string_view bytes) {
  std::string spelling;
  spelling.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const char32_t point = kCodePointOf[static_cast<unsigned char>(byte)];  // below 0x800: at most two bytes of UTF-8
    if (point >= 0x80) spelling += static_cast<char>(0xC0 | point >> 6);
    spelling += static_cast<char>(point < 0x80 ? point : 0x80 | (point & 0x3F));
  }
  return spelling;
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (size_t i = 0; i < spelling.size(); ++i) {
    size_t point = static_cast<unsigned char>(spelling[i]);
    if (point >= 0xC0) {
      const bool two = point < 0xE0 && i + 1 < spelling.size() && (spelling[i + 1] & 0xC0) == 0x80;
      if (!two) return {};
      point = (point & 0x1F) << 6 | (static_cast<unsigned char>(spelling[++i]) & 0x3F);
    } else if (point >= 0x80) {
      return {};
    }
    if (point >= kCodePoints || kByteOf[point] < 0) return {};
    bytes += static_cast<char>(kByteOf[point]);
  }
  return bytes;
}

}  // namespace ranklab
