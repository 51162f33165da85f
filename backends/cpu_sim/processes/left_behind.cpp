#include "backends/cpu_sim/processes/left_behind.h"

#include <utility>

namespace ranklab::cpu_sim {
namespace {

constexpr size_t kMostBytes = 64 << 20;  // limit per rank

}  // namespace

void LeftBehind::expect(int rank) {
  const std::lock_guard lock(mutex_);
  owing_.insert(rank);
}

void LeftBehind::add(int rank, std::string_view part, bool last) {
  const std::lock_guard lock(mutex_);
  std::string& bytes = bytes_[rank];
  bytes += part;
  if (bytes.size() > kMostBytes) bytes.clear();
  if (!last) return;
  owing_.erase(rank);
  changed_.notify_all();
}

void LeftBehind::forget(int rank) {
  const std::lock_guard lock(mutex_);
  if (owing_.erase(rank) > 0) bytes_.erase(rank);
  changed_.notify_all();
}

std::vector<std::string> LeftBehind::take(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return owing_.empty(); });
  std::vector<std::string> all;
  for (auto& [rank, bytes] : bytes_)
    if (!owing_.contains(rank)) all.push_back(std::move(bytes));
  bytes_.clear();
  return all;
}

}  // namespace ranklab::cpu_sim
