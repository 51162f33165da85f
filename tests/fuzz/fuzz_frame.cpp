// Any bytes on a control connection, in pieces: they are frames, or refused; a frame's payload as a peer's introduction
// is read or refused. Nothing is allocated on the word of a length.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "backends/cpu_sim/transport/frame.h"
#include "backends/cpu_sim/transport/handshake.h"
#include "core/base/error.h"

using namespace ranklab;
using namespace ranklab::cpu_sim;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t piece = 1 + data[0] % 64;
  bytes.remove_prefix(1);
  FrameReader reader(kHelloCap);
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
      reader.feed(bytes.substr(0, piece));
      while (const auto frame = reader.next()) {
        if (frame->payload.size() > kHelloCap) std::abort();
        Unpacker payload(frame->payload);
        const Hello hello = unpack_hello(payload);
        if (hello.rank < 0 || hello.world_size < 1) std::abort();
        same_secret(hello.proof, member_proof("token", "challenge", hello));
      }
      if (reader.waiting_bytes() > kHelloCap + piece + 16) std::abort();
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
