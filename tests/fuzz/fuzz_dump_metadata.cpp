// Any bytes as the slice of a dumped tensor and as the coordinates of a rank: the reader refuses them with ranklab's
// own error, or what it has read is a part of a tensor that a tensor can have.
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/parity/dump_metadata.h"

using namespace ranklab;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename Read>
void read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kBadFile);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_or_refuse([&] {
    const DumpSlice slice = parse_dump_slice(text, {64, 32}, "a file", "a/output");
    require(slice.positions.size() == slice.shape.size());
    for (const auto& positions : slice.positions) {
      require(positions.size() <= 64 * 32);
      for (const int64_t position : positions) require(position >= 0);
    }
    require(slice.begin >= 0 && (slice.end == -1 || slice.end >= slice.begin));
    require(slice.end <= slice.cut_elements());
  });
  read_or_refuse([&] {
    for (const AxisPlace& one : parse_coordinates(text)) require(one.place >= 0 && one.place < one.size);
  });
  return 0;
}
