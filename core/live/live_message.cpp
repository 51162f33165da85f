#include "core/live/live_message.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/base/error.h"

namespace ranklab {
namespace {

constexpr int64_t kMany = 4096;  // limit on names, breakpoints, hits, members
constexpr int64_t kInt = std::numeric_limits<int>::max();
constexpr int kMaxWorld = 1 << 16;

[[noreturn]] void refuse(const std::string& got, const std::string& want) {
  throw Error(ErrorKind::kCommunication, {.where = "live attach",
                                          .what = "the other side does not speak ranklab's viewer protocol",
                                          .got = got,
                                          .want = want,
                                          .fix = "use the same version of ranklab for the run and the viewer"});
}

std::string frame(LiveType type, const Packer& payload = {}) {
  return raw_frame_bytes(kLiveMagic, static_cast<uint32_t>(type), payload.bytes());
}

int count_of(Unpacker& in) { return in.number_between(0, kMany); }

template <typename Enum>
Enum choice(Unpacker& in, Enum count) {
  return static_cast<Enum>(in.number_between(0, static_cast<int64_t>(count) - 1));
}

TypeChange types(Unpacker& in) { return TypeChange(static_cast<uint32_t>(in.number_between(0, TypeChange::kEnd - 1))); }

double real(Unpacker& in) { return std::bit_cast<double>(in.number()); }
int64_t bits(double value) { return std::bit_cast<int64_t>(value); }

std::vector<int> members(Unpacker& in) {
  std::vector<int> out;
  for (const int64_t rank : in.numbers()) {
    if (rank < 0 || rank >= kMaxWorld || static_cast<int64_t>(out.size()) >= kMaxWorld)
      refuse("rank " + std::to_string(rank), "ranks of a world");
    out.push_back(static_cast<int>(rank));
  }
  return out;
}

void pack(Packer& out, const Event& e) {
  out.number(static_cast<int64_t>(e.kind)).number(static_cast<int64_t>(e.axis)).number(static_cast<int64_t>(e.verb));
  out.number(static_cast<int64_t>(e.dtype)).number(e.name).number(e.step).number(e.microbatch).number(e.stage);
  out.number(e.peer).number(e.tag).number(e.sequence).number(e.virtual_begin_ns).number(e.virtual_end_ns);
  out.number(e.wall_begin_ns).number(e.wall_end_ns).number(e.virtual_posted_ns).number(e.virtual_matched_ns);
  out.number(e.virtual_first_byte_ns).number(e.wall_matched_ns).number(e.virtual_exposed_ns);
  out.number(e.virtual_peer_wait_ns).number(e.logical_bytes).number(e.algorithm_bytes).number(e.wire_bytes);
  out.number(bits(e.value)).number(static_cast<int64_t>(e.purpose)).number(e.types.bits());
}

// Packs the array of an event; an array that is too long is left out.
void pack_array(Packer& out, const RankTrace& batch, const Event& event) {
  static const std::vector<double> kNone;
  const bool has = event.array > 0 && event.array <= batch.arrays.size();
  const std::vector<double>& array = has ? batch.arrays[event.array - 1] : kNone;
  const bool fits = array.size() <= kLiveNumbersPerFrame;
  out.number(has && fits ? static_cast<int64_t>(array.size()) : -1);
  if (!fits) return;
  for (const double number : array) out.number(bits(number));
}

// `numbers`: how many array elements the frame may still contain.
void unpack_array(Unpacker& in, int64_t& numbers, RankTrace& rank, Event& event) {
  const int count = in.number_between(-1, std::min(numbers, static_cast<int64_t>(in.left() / sizeof(int64_t))));
  if (count < 0) return;
  numbers -= count;
  std::vector<double>& array = rank.arrays.emplace_back();
  for (int i = 0; i < count; ++i) array.push_back(real(in));
  event.array = static_cast<uint32_t>(rank.arrays.size());
}

Event unpack_event(Unpacker& in, size_t names) {
  Event e;
  e.kind = choice(in, EventKind::kCount);
  e.axis = choice(in, Axis::kCount);
  e.verb = choice(in, Verb::kCount);
  e.dtype = static_cast<DType>(in.number_between(0, static_cast<int64_t>(DType::kOther)));
  e.name = static_cast<uint32_t>(in.number_between(0, static_cast<int64_t>(names) - 1));
  for (int32_t* field : {&e.step, &e.microbatch, &e.stage, &e.peer}) *field = in.number_between(-1, kInt);
  e.tag = in.number_between(-kInt, kInt);
  for (int64_t* field :
       {&e.sequence, &e.virtual_begin_ns, &e.virtual_end_ns, &e.wall_begin_ns, &e.wall_end_ns, &e.virtual_posted_ns,
        &e.virtual_matched_ns, &e.virtual_first_byte_ns, &e.wall_matched_ns, &e.virtual_exposed_ns,
        &e.virtual_peer_wait_ns, &e.logical_bytes, &e.algorithm_bytes, &e.wire_bytes})
    *field = in.number();
  e.value = real(in);
  e.purpose = choice(in, Purpose::kCount);
  e.types = types(in);
  return e;
}

void pack(Packer& out, const Boundary& b) {
  out.number(static_cast<int64_t>(b.kind)).text(b.name).number(b.step).number(b.microbatch).number(b.stage);
  out.number(static_cast<int64_t>(b.axis)).number(static_cast<int64_t>(b.verb)).numbers(b.group);
  out.number(b.peer).number(b.tag).number(b.types.bits()).number(b.virtual_ns).number(bits(b.value));
}

Boundary unpack_boundary(Unpacker& in) {
  Boundary b;
  b.kind = choice(in, BoundaryKind::kCount);
  b.name = in.text();
  for (int* field : {&b.step, &b.microbatch, &b.stage}) *field = in.number_between(-1, kInt);
  b.axis = choice(in, Axis::kCount);
  b.verb = choice(in, Verb::kCount);
  b.group = members(in);
  b.peer = in.number_between(-1, kInt);
  b.tag = in.number_between(-kInt, kInt);
  b.types = types(in);
  b.virtual_ns = in.number();
  b.value = real(in);
  return b;
}

void pack(Packer& out, const Breakpoint& b) {
  out.number(b.id).text(b.action);
  out.number(b.verb ? static_cast<int64_t>(*b.verb) : -1).number(b.axis ? static_cast<int64_t>(*b.axis) : -1);
  out.number(b.rank).number(b.step).number(b.microbatch).number(b.stage).text(b.counter);
  out.number(static_cast<int64_t>(b.comparison)).number(bits(b.value)).number(b.hits);
}

Breakpoint unpack_breakpoint(Unpacker& in) {
  Breakpoint b;
  b.id = in.number_between(0, kInt);
  b.action = in.text();
  if (const int verb = in.number_between(-1, static_cast<int64_t>(Verb::kCount) - 1); verb >= 0)
    b.verb = static_cast<Verb>(verb);
  if (const int axis = in.number_between(-1, static_cast<int64_t>(Axis::kCount) - 1); axis >= 0)
    b.axis = static_cast<Axis>(axis);
  for (int* field : {&b.rank, &b.step, &b.microbatch, &b.stage}) *field = in.number_between(-1, kInt);
  b.counter = in.text();
  b.comparison = choice(in, Comparison::kCount);
  b.value = real(in);
  b.hits = in.number();
  return b;
}

}  // namespace

void apply(const LiveCommand& c, StepperControl& stepper) {
  switch (c.kind) {
    case LiveCommand::Kind::kPause:
      return stepper.pause();
    case LiveCommand::Kind::kResume:
      return stepper.resume();
    case LiveCommand::Kind::kStepEvents:
      return stepper.step_events(c.count);
    case LiveCommand::Kind::kStepRank:
      return stepper.step_rank(c.global_rank, c.count);
    case LiveCommand::Kind::kStepMicrobatch:
      return stepper.step_microbatch();
    case LiveCommand::Kind::kStepTraining:
      return stepper.step_training(c.count);
    case LiveCommand::Kind::kAddBreakpoint:
      return stepper.add_breakpoint(c.breakpoint);
    case LiveCommand::Kind::kRemoveBreakpoint:
      return stepper.remove_breakpoint(static_cast<int>(c.count));
    case LiveCommand::Kind::kCount:
      return;
  }
}

std::string attach_frame() { return frame(LiveType::kAttach, Packer().number(kLiveVersion)); }

void check_attach(std::string_view payload) {
  Unpacker in(payload);
  if (const int64_t version = in.number(); version != kLiveVersion)
    refuse("version " + std::to_string(version), "version " + std::to_string(kLiveVersion));
}

std::string command_frame(const LiveCommand& c) {
  Packer out;
  out.number(static_cast<int64_t>(c.kind)).number(c.count).number(c.global_rank);
  pack(out, c.breakpoint);
  return frame(LiveType::kCommand, out);
}

LiveCommand unpack_command(std::string_view payload) {
  Unpacker in(payload);
  LiveCommand c;
  c.kind = choice(in, LiveCommand::Kind::kCount);
  c.count = in.number_between(0, kInt);
  c.global_rank = in.number_between(0, kInt);
  c.breakpoint = unpack_breakpoint(in);
  return c;
}

std::string welcome_frame(const LiveWelcome& welcome) {
  return frame(LiveType::kWelcome,
               Packer().number(kLiveVersion).number(welcome.world_size).number(welcome.steppable ? 1 : 0));
}

LiveWelcome unpack_welcome(std::string_view payload) {
  check_attach(payload);
  Unpacker in(payload);
  in.number();
  LiveWelcome welcome;
  welcome.world_size = in.number_between(1, kMaxWorld);
  welcome.steppable = in.flag();
  return welcome;
}

std::string events_frame(const RankTrace& batch, size_t names_from) {
  Packer out;
  out.number(batch.global_rank).text(batch.label).number(batch.dropped);
  out.number(static_cast<int64_t>(batch.groups.size()));
  for (const TraceGroup& group : batch.groups) out.number(static_cast<int64_t>(group.axis)).numbers(group.global_ranks);
  out.number(static_cast<int64_t>(names_from)).number(static_cast<int64_t>(batch.names.size() - names_from));
  for (size_t i = names_from; i < batch.names.size(); ++i) out.text(batch.names[i]);
  out.number(static_cast<int64_t>(batch.events.size()));
  for (const Event& event : batch.events) {
    pack(out, event);
    pack_array(out, batch, event);
  }
  return frame(LiveType::kEvents, out);
}

int unpack_events(std::string_view payload, std::vector<RankTrace>& ranks) {
  Unpacker in(payload);
  const int global_rank = in.number_between(0, static_cast<int64_t>(ranks.size()) - 1);
  RankTrace& rank = ranks[static_cast<size_t>(global_rank)];
  rank.global_rank = global_rank;
  rank.label = in.text();
  rank.dropped = in.number();
  rank.groups.clear();
  for (int left = in.number_between(0, static_cast<int64_t>(Axis::kCount)); left > 0; --left) {
    const Axis axis = choice(in, Axis::kCount);
    rank.groups.push_back({axis, members(in)});
  }
  const int64_t names_from = in.number();
  if (names_from != static_cast<int64_t>(rank.names.size()))
    refuse("names from " + std::to_string(names_from), "from " + std::to_string(rank.names.size()));
  for (int left = in.number_between(0, kMany - names_from); left > 0; --left) rank.names.push_back(in.text());
  int64_t numbers = kLiveNumbersPerFrame;
  for (int left = in.number_between(0, kLiveEventsPerFrame); left > 0; --left) {
    Event event = unpack_event(in, rank.names.size());
    unpack_array(in, numbers, rank, event);
    rank.events.push_back(event);
  }
  return global_rank;
}

std::string state_frame(const StepperState& state) {
  Packer out;
  out.number(static_cast<int64_t>(state.version)).number(static_cast<int64_t>(state.mode));
  out.number(static_cast<int64_t>(state.hash)).number(static_cast<int64_t>(state.ranks.size()));
  for (const RankState& rank : state.ranks) {
    out.number(static_cast<int64_t>(rank.activity)).text(rank.inside).numbers(rank.waits_for);
    out.number(rank.events).number(rank.virtual_ns).number(static_cast<int64_t>(rank.hash));
    pack(out, rank.at);
  }
  out.number(static_cast<int64_t>(state.hits.size()));
  for (const BreakpointHit& hit : state.hits) {
    out.number(hit.breakpoint).number(hit.global_rank);
    pack(out, hit.at);
  }
  out.number(static_cast<int64_t>(state.breakpoints.size()));
  for (const Breakpoint& breakpoint : state.breakpoints) pack(out, breakpoint);
  return frame(LiveType::kState, out);
}

StepperState unpack_state(std::string_view payload, int world_size) {
  Unpacker in(payload);
  StepperState state;
  state.version = static_cast<uint64_t>(in.number());
  state.mode = choice(in, StepperMode::kCount);
  state.hash = static_cast<uint64_t>(in.number());
  const int ranks = in.number_between(0, world_size);
  for (int i = 0; i < ranks; ++i) {
    RankState& rank = state.ranks.emplace_back();
    rank.global_rank = i;
    rank.activity = choice(in, RankActivity::kCount);
    rank.inside = in.text();
    rank.waits_for = members(in);
    rank.events = in.number();
    rank.virtual_ns = in.number();
    rank.hash = static_cast<uint64_t>(in.number());
    rank.at = unpack_boundary(in);
  }
  for (int left = count_of(in); left > 0; --left) {
    BreakpointHit& hit = state.hits.emplace_back();
    hit.breakpoint = in.number_between(0, kInt);
    hit.global_rank = in.number_between(0, world_size - 1);
    hit.at = unpack_boundary(in);
  }
  for (int left = count_of(in); left > 0; --left) state.breakpoints.push_back(unpack_breakpoint(in));
  return state;
}

std::string ended_frame(const std::string& error) {
  return frame(LiveType::kEnded, Packer().text(error.substr(0, kLiveFrameCap / 2)));
}

std::string unpack_ended(std::string_view payload) { return Unpacker(payload).text(); }

}  // namespace ranklab
