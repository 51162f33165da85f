#include "core/base/packing.h"

#include <array>
#include <bit>
#include <cstring>

#include "core/base/error.h"

namespace ranklab {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian, values are copied as they are");

constexpr size_t kHeaderBytes = 16;

struct Header {
  uint32_t magic;
  uint32_t type;
  uint64_t length;
};
static_assert(sizeof(Header) == kHeaderBytes);

[[noreturn]] void fail(const std::string& got, const std::string& want) {
  throw Error(ErrorKind::kCommunication, {.where = "control connection",
                                          .what = "the peer does not speak ranklab's protocol",
                                          .got = got,
                                          .want = want,
                                          .fix = "use the same version of ranklab on both ends"});
}

}  // namespace

std::string raw_frame_bytes(uint32_t magic, uint32_t type, std::string_view payload) {
  const Header header{magic, type, payload.size()};
  std::string out(kHeaderBytes + payload.size(), '\0');
  std::memcpy(out.data(), &header, kHeaderBytes);
  std::memcpy(out.data() + kHeaderBytes, payload.data(), payload.size());
  return out;
}

std::optional<RawFrame> RawFrameReader::next() {
  if (buffer_.size() < kHeaderBytes) return std::nullopt;
  Header header{};
  std::memcpy(&header, buffer_.data(), kHeaderBytes);
  if (header.magic != magic_ || header.type >= num_types_) fail("different bytes", "a frame's header");
  if (header.length > cap_)
    fail("a frame of " + std::to_string(header.length) + " bytes", "at most " + std::to_string(cap_));
  if (buffer_.size() < kHeaderBytes + header.length) return std::nullopt;
  RawFrame frame{header.type, buffer_.substr(kHeaderBytes, header.length)};
  buffer_.erase(0, kHeaderBytes + header.length);
  return frame;
}

Packer& Packer::number(int64_t value) {
  std::array<char, sizeof value> raw{};
  std::memcpy(raw.data(), &value, sizeof value);
  bytes_.append(raw.data(), raw.size());
  return *this;
}

Packer& Packer::text(std::string_view value) {
  number(static_cast<int64_t>(value.size()));
  bytes_ += value;
  return *this;
}

std::string_view Unpacker::take(size_t count) {
  if (count > bytes_.size()) fail("a frame that ends early", std::to_string(count) + " more bytes");
  const std::string_view out = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return out;
}

int64_t Unpacker::number() {
  int64_t value = 0;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

int Unpacker::number_between(int64_t lowest, int64_t highest) {
  const int64_t value = number();
  if (value < lowest || value > highest)
    fail(std::to_string(value), std::to_string(lowest) + " to " + std::to_string(highest));
  return static_cast<int>(value);
}

std::string Unpacker::text() {
  const int64_t count = number();
  if (count < 0) fail("a text of negative length", "0 or more");
  return std::string(take(static_cast<size_t>(count)));
}

std::vector<int64_t> Unpacker::numbers() {
  const int64_t count = number();
  if (count < 0 || static_cast<uint64_t>(count) > bytes_.size() / sizeof(int64_t))
    fail("a list of " + std::to_string(count) + " numbers", "one that fits its frame");
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(number());
  return out;
}

}  // namespace ranklab
