// A group of ranks as served by one of our transports, and the gloo::Context that Gloo's algorithms need for it. Only
// unbound buffers move bytes; Gloo's older bound ones are refused. Thread rule: any thread.
#pragma once
#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <memory>
#include <vector>

namespace ranklab::cpu_sim {

using GlooContexts = std::vector<std::shared_ptr<gloo::Context>>;  // by seat; null for members elsewhere

class GroupTransport {
 public:
  virtual ~GroupTransport() = default;
  virtual std::unique_ptr<gloo::transport::UnboundBuffer> buffer(int rank, void* memory, size_t length,
                                                                 std::chrono::milliseconds timeout) = 0;
  // Wakes every waiting member, here and at peers, with an exception. The group is unusable afterwards.
  virtual void close() = 0;
};

// The context of the group's member `rank`. It is connected from the start, because the transport is.
std::shared_ptr<gloo::Context> connected_context(int rank, int size, std::shared_ptr<GroupTransport> transport,
                                                 std::chrono::milliseconds timeout);

}  // namespace ranklab::cpu_sim
