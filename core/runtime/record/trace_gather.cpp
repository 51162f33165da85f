#include "core/runtime/record/trace_gather.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

constexpr size_t kStamps = 9;
using Stamps = std::array<int64_t, kStamps>;
static_assert(std::is_trivially_copyable_v<Event>, "events cross as they are: every rank runs the same build");

Stamps take_stamps(Communicator& world) {
  Stamps stamps{};
  for (int64_t& stamp : stamps) {
    world.barrier();
    stamp = wall_now_ns();
  }
  return stamps;
}

// For use where no barrier is possible: how far the host's clock is ahead of this process's wall clock.
Stamps host_stamps() {
  const auto host = std::chrono::system_clock::now().time_since_epoch();
  Stamps stamps{};
  stamps.fill(wall_now_ns() - std::chrono::duration_cast<std::chrono::nanoseconds>(host).count());
  return stamps;
}

int64_t median_lead(const Stamps& ours, const Stamps& theirs) {
  Stamps lead{};
  for (size_t i = 0; i < kStamps; ++i) lead[i] = ours[i] - theirs[i];
  std::nth_element(lead.begin(), lead.begin() + kStamps / 2, lead.end());
  return lead[kStamps / 2];
}

class Writer {
 public:
  void bytes(const void* data, size_t count) { out_.append(static_cast<const char*>(data), count); }
  void number(int64_t value) { bytes(&value, sizeof value); }
  void text(std::string_view value) {
    number(static_cast<int64_t>(value.size()));
    bytes(value.data(), value.size());
  }
  const std::string& out() const { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}
  void bytes(void* to, size_t count) {
    RANKLAB_CHECK(count <= in_.size(), ErrorKind::kInternal, .where = "trace gather",
                  .what = "a rank's trace is cut off");
    if (count > 0) std::memcpy(to, in_.data(), count);
    in_.remove_prefix(count);
  }
  int64_t number() {
    int64_t value = 0;
    bytes(&value, sizeof value);
    return value;
  }
  std::string text() {
    std::string value(static_cast<size_t>(number()), '\0');
    bytes(value.data(), value.size());
    return value;
  }

 private:
  std::string_view in_;
};

std::string packed(const RankTrace& trace, const Stamps& stamps) {
  Writer out;
  out.bytes(stamps.data(), sizeof stamps);
  out.number(trace.global_rank);
  out.text(trace.label);
  out.number(static_cast<int64_t>(trace.names.size()));
  for (const std::string& name : trace.names) out.text(name);
  out.number(static_cast<int64_t>(trace.groups.size()));
  for (const TraceGroup& group : trace.groups) {
    out.number(static_cast<int64_t>(group.axis));
    out.number(static_cast<int64_t>(group.global_ranks.size()));
    for (const int rank : group.global_ranks) out.number(rank);
  }
  out.number(static_cast<int64_t>(trace.arrays.size()));
  for (const std::vector<double>& array : trace.arrays) {
    out.number(static_cast<int64_t>(array.size()));
    out.bytes(array.data(), array.size() * sizeof(double));
  }
  out.number(trace.dropped);
  out.number(static_cast<int64_t>(trace.events.size()));
  out.bytes(trace.events.data(), trace.events.size() * sizeof(Event));
  return out.out();
}

void shift_wall(Event& event, int64_t by_ns) {
  event.wall_begin_ns += by_ns;
  event.wall_end_ns += by_ns;
  if (event.wall_matched_ns != kNoTime) event.wall_matched_ns += by_ns;
}

RankTrace unpacked(std::string_view bytes, const Stamps& ours) {
  Reader in(bytes);
  Stamps theirs{};
  in.bytes(theirs.data(), sizeof theirs);
  RankTrace trace;
  trace.global_rank = static_cast<int>(in.number());
  trace.label = in.text();
  trace.names.resize(static_cast<size_t>(in.number()));
  for (std::string& name : trace.names) name = in.text();
  trace.groups.resize(static_cast<size_t>(in.number()));
  for (TraceGroup& group : trace.groups) {
    group.axis = static_cast<Axis>(in.number());
    group.global_ranks.resize(static_cast<size_t>(in.number()));
    for (int& rank : group.global_ranks) rank = static_cast<int>(in.number());
  }
  trace.arrays.resize(static_cast<size_t>(in.number()));
  for (std::vector<double>& array : trace.arrays) {
    array.resize(static_cast<size_t>(in.number()));
    in.bytes(array.data(), array.size() * sizeof(double));
  }
  trace.dropped = in.number();
  trace.events.resize(static_cast<size_t>(in.number()));
  in.bytes(trace.events.data(), trace.events.size() * sizeof(Event));
  const int64_t lead = median_lead(ours, theirs);
  for (Event& event : trace.events) shift_wall(event, lead);
  return trace;
}

std::vector<RankTrace> gather_traces(Communicator& world, c10::Device device, RankTrace mine) {
  const NoCostScope free;
  const Stamps stamps = take_stamps(world);
  const auto on = at::TensorOptions(at::kByte);
  if (world.rank() != 0) {
    const std::string bytes = packed(mine, stamps);
    const at::Tensor length = at::empty({1}, at::kLong);
    *length.mutable_data_ptr<int64_t>() = static_cast<int64_t>(bytes.size());
    const at::Tensor body = at::empty({static_cast<int64_t>(bytes.size())}, on);
    std::memcpy(body.mutable_data_ptr(), bytes.data(), bytes.size());
    world.send(length.to(device), 0);
    world.send(body.to(device), 0);
    return {};
  }
  std::vector<RankTrace> all = {std::move(mine)};
  for (int rank = 1; rank < world.size(); ++rank) {
    const at::Tensor length =
        world.recv(at::empty({1}, at::TensorOptions(at::kLong).device(device)), rank).to(at::kCPU);
    const at::Tensor body =
        world.recv(at::empty({*length.const_data_ptr<int64_t>()}, on.device(device)), rank).to(at::kCPU);
    all.push_back(unpacked({static_cast<const char*>(body.const_data_ptr()), body.nbytes()}, stamps));
  }
  return all;
}

}  // namespace

std::vector<RankTrace> TraceCollector::collect(Communicator& world, c10::Device device, RankTrace mine) {
  if (processes_) return gather_traces(world, device, std::move(mine));
  keep(handed_over_, std::move(mine));
  // No rank can hand over its next piece before rank 0 has taken this one, because the step in between needs rank 0.
  world.barrier();
  return world.rank() == 0 ? taken(handed_over_) : std::vector<RankTrace>();
}

void TraceCollector::leave(Communicator& world, c10::Device device, RankTrace mine) {
  if (!processes_) return keep(left_, std::move(mine));
  for (RankTrace& trace : gather_traces(world, device, std::move(mine))) keep(left_, std::move(trace));
}

void TraceCollector::leave_alone(RankTrace mine) {
  if (processes_ && !world_.has_rank_zero()) return world_.leave_behind(packed(mine, host_stamps()));
  keep(left_, std::move(mine));
}

std::vector<RankTrace> TraceCollector::take_broken() {
  if (processes_ && world_.has_rank_zero()) {
    for (const std::string& bytes : world_.left_behind())
      if (!bytes.empty()) keep(left_, unpacked(bytes, host_stamps()));
  }
  return take();
}

void TraceCollector::keep(ByRank& where, RankTrace trace) {
  const std::lock_guard lock(mutex_);
  where[trace.global_rank] = std::move(trace);
}

std::vector<RankTrace> TraceCollector::taken(ByRank& from) {
  const std::lock_guard lock(mutex_);
  std::vector<RankTrace> out;
  for (auto& [rank, trace] : from) out.push_back(std::move(trace));
  from.clear();
  return out;
}

}  // namespace ranklab
