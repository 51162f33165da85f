// Any bytes as an input of data prepare, in the format that the first byte names (of Megatron-LM's two files the next
// byte says how long the first is). It is refused with ranklab's own
// error, or gives the same tokens whether they are read in one piece, in small ones, or from the middle on.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/data/token_input.h"
#include "tests/fuzz/scratch_folder.h"

using namespace ranklab;

static std::vector<uint32_t> read_all(const std::string& path, const InputFormat& format, size_t at_once,
                                      uint64_t skip) {
  const auto input = open_token_input(path, format);
  if (skip > 0) input->skip(skip);
  std::vector<uint32_t> all, some(at_once);
  while (const size_t got = input->read(some)) all.insert(all.end(), some.data(), some.data() + got);
  return all;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder kFolder("fuzz_token_input");
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const unsigned kind = data[0] % 4;
  InputFormat format{.from = kind < 2 ? "text" : kind == 2 ? "fineweb" : "nanogpt"};
  if (kind < 2 && data[0] % 8 < 4) format.end_token = data[0] % 16 < 8 ? 0 : 300;
  std::string path = kFolder.write(kind == 1 ? "a.jsonl" : "a.bin", bytes);
  if (data[0] >= 240 && size > 1) {
    format = {.from = "megatron"};
    const size_t index = std::min<size_t>(data[1], bytes.size() - 1);
    kFolder.write("m.idx", bytes.substr(1, index));
    path = kFolder.write("m.bin", bytes.substr(1 + index));
  }
  try {
    const std::vector<uint32_t> want = read_all(path, format, 1 << 16, 0);
    if (scan_input(path, format).tokens != want.size() || read_all(path, format, 3, 0) != want) std::abort();
    const size_t half = want.size() / 2;
    if (read_all(path, format, 7, half) != std::vector<uint32_t>(want.data() + half, want.data() + want.size()))
      std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
