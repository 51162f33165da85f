#include "tests/cuda/stand_in/host_waits.h"

#include <mutex>
#include <utility>

namespace ranklab::stand_in {
namespace {

std::mutex g_mutex;
WaitCounts g_counts;
bool g_counting = false;
thread_local bool t_own_affair = false;

}  // namespace

HostWaits::HostWaits() {
  const std::lock_guard lock(g_mutex);
  g_counts.clear();
  g_counting = true;
}
HostWaits::~HostWaits() {
  const std::lock_guard lock(g_mutex);
  g_counting = false;
}
WaitCounts HostWaits::counts() const {
  const std::lock_guard lock(g_mutex);
  return g_counts;
}

void note_host_wait(const std::string& what) {
  if (t_own_affair) return;
  const std::lock_guard lock(g_mutex);
  if (g_counting) ++g_counts[what];
}

NoHostWaits::NoHostWaits() : before_(std::exchange(t_own_affair, true)) {}
NoHostWaits::~NoHostWaits() { t_own_affair = before_; }

}  // namespace ranklab::stand_in
