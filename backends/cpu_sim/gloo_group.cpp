#include "backends/cpu_sim/gloo_group.h"

namespace ranklab::cpu_sim {

const std::shared_ptr<gloo::Context>& GlooGroup::context(int seat) {
  std::call_once(once_, [this] {
    contexts_ = connect_();
    connected_.store(true, std::memory_order_release);
  });
  return contexts_[static_cast<size_t>(seat)];
}

void GlooGroup::close() {
  if (!connected_.load(std::memory_order_acquire)) return;
  for (const auto& context : contexts_)
    if (context) context->closeConnections();
}

}  // namespace ranklab::cpu_sim
