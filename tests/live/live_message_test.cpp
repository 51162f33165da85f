// Messages between runs and viewers arrive unchanged, and no message of a stranger does harm.
#include "core/live/live_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"

namespace ranklab {
namespace {

std::string payload(const std::string& frame) {
  RawFrameReader reader(kLiveMagic, static_cast<uint32_t>(LiveType::kCount), kLiveFrameCap);
  reader.feed(frame);
  const auto out = reader.next();
  EXPECT_TRUE(out);
  return out ? out->payload : "";
}

StepperState full_state() {
  StepperState state{.version = 7, .mode = StepperMode::kPaused, .hash = 0xfedcba9876543210};
  state.ranks.push_back({.global_rank = 0,
                         .activity = RankActivity::kParked,
                         .at = {.kind = BoundaryKind::kSpan, .name = "F", .step = 1, .microbatch = 3, .stage = 2},
                         .events = 12,
                         .virtual_ns = 345,
                         .hash = ~uint64_t{0}});
  state.ranks.push_back({.global_rank = 1,
                         .activity = RankActivity::kBlocked,
                         .at = {.kind = BoundaryKind::kPost,
                                .name = "recv",
                                .axis = Axis::kPp,
                                .verb = Verb::kRecv,
                                .group = {1, 5},
                                .peer = 5,
                                .tag = 9,
                                .types = TypeChange(TypeChange::kEnd - 1)},
                         .inside = "recv(from 1, tag 9)",
                         .waits_for = {5, 0}});
  state.hits.push_back({.breakpoint = 2, .global_rank = 1, .at = {.kind = BoundaryKind::kValue, .value = 1.5}});
  state.breakpoints.push_back(parse_breakpoint("all_reduce axis=dp rank=1"));
  state.breakpoints.push_back(parse_breakpoint("memory/activations > 3MiB"));
  return state;
}

RankTrace batch(std::vector<std::string> names) {
  RankTrace out;
  out.global_rank = 1;
  out.label = "dp0 tp1";
  out.names = std::move(names);
  out.groups = {{Axis::kTp, {0, 1}}};
  out.dropped = 3;
  Event event;
  event.kind = EventKind::kCollective;
  event.name = static_cast<uint32_t>(out.names.size() - 1);
  event.axis = Axis::kTp;
  event.verb = Verb::kAllGather;
  event.tag = -4;
  event.types = *TypeChange::parsed("varying -> replicated over tp, partial over dp");
  event.value = -0.25;
  event.logical_bytes = int64_t{1} << 40;
  out.events = {event};
  return out;
}

TEST(LiveMessageTest, StateComesAsItWas) {
  const StepperState state = full_state();
  EXPECT_EQ(unpack_state(payload(state_frame(state)), 2), state);
}

TEST(LiveMessageTest, EventsAndNamesAreAdded) {
  std::vector<RankTrace> ranks(2);
  const RankTrace first = batch({"F", "all_gather"});
  EXPECT_EQ(unpack_events(payload(events_frame(first, 0)), ranks), 1);
  EXPECT_EQ(ranks[1], first);
  const RankTrace second = batch({"F", "all_gather", "B"});
  unpack_events(payload(events_frame(second, 2)), ranks);
  EXPECT_EQ(ranks[1].names, second.names);
  EXPECT_EQ(ranks[1].events.size(), 2U);
  EXPECT_EQ(ranks[1].events[1], second.events[0]);
  EXPECT_THROW(unpack_events(payload(events_frame(second, 1)), ranks), Error) << "names out of order";
}

TEST(LiveMessageTest, EventsBringTheirNumbersAndPurpose) {
  std::vector<RankTrace> ranks(2);
  RankTrace sent = batch({"F", "all_to_all"});
  sent.events[0].purpose = Purpose::kCombineGrad;
  sent.events.resize(3, sent.events[0]);
  sent.arrays = {{1024, 0.5, -3}, {}};
  sent.events[0].array = 1;
  sent.events[2].array = 2;
  unpack_events(payload(events_frame(sent, 0)), ranks);
  EXPECT_EQ(ranks[1], sent);
  unpack_events(payload(events_frame(sent, 2)), ranks);  // those of a later frame come behind
  ASSERT_EQ(ranks[1].arrays.size(), 4U);
  EXPECT_EQ(ranks[1].arrays[ranks[1].events[3].array - 1], sent.arrays[0]);
  EXPECT_EQ(ranks[1].events[4].array, 0U);
}

TEST(LiveMessageTest, TooManyNumbersStayBehindAndAreRefused) {
  std::vector<RankTrace> ranks(2);
  RankTrace sent = batch({"all_to_all"});
  sent.arrays = {std::vector<double>(kLiveNumbersPerFrame + 1, 1.0)};
  sent.events[0].array = 1;
  const std::string frame = events_frame(sent, 0);
  EXPECT_LT(frame.size(), 1000U);
  unpack_events(payload(frame), ranks);
  EXPECT_EQ(ranks[1].events.size(), 1U);
  EXPECT_EQ(ranks[1].events[0].array, 0U);
  sent.events.resize(2, sent.events[0]);
  sent.arrays = {std::vector<double>(kLiveNumbersPerFrame / 2 + 1, 1.0)};
  EXPECT_THROW(unpack_events(payload(events_frame(sent, 1)), ranks), Error) << "more than a frame holds";
  std::string cut = payload(events_frame(batch({"all_to_all"}), 1));
  const int64_t many = 1000;  // numbers that are not there
  cut.replace(cut.size() - sizeof many, sizeof many, reinterpret_cast<const char*>(&many), sizeof many);
  EXPECT_THROW(unpack_events(cut, ranks), Error);
}

TEST(LiveMessageTest, CommandsReachTheStepper) {
  struct Fake final : StepperControl {
    StepperState state() const override { return {}; }
    void pause() override { log += "pause "; }
    void resume() override { log += "resume "; }
    void step_events(int64_t count) override { log += "events" + std::to_string(count) + " "; }
    void step_rank(int rank, int64_t count) override {
      log += "rank" + std::to_string(rank) + "x" + std::to_string(count) + " ";
    }
    void step_microbatch() override { log += "microbatch "; }
    void step_training(int64_t count) override { log += "step" + std::to_string(count) + " "; }
    void add_breakpoint(const Breakpoint& b) override { log += to_text(b) + " "; }
    void remove_breakpoint(int id) override { log += "remove" + std::to_string(id) + " "; }
    std::string log;
  } fake;
  using Kind = LiveCommand::Kind;
  const std::vector<LiveCommand> commands = {{.kind = Kind::kPause},
                                             {.kind = Kind::kResume},
                                             {.kind = Kind::kStepEvents, .count = 5},
                                             {.kind = Kind::kStepRank, .count = 2, .global_rank = 3},
                                             {.kind = Kind::kStepMicrobatch},
                                             {.kind = Kind::kStepTraining, .count = 1},
                                             {.kind = Kind::kAddBreakpoint, .breakpoint = parse_breakpoint("F mb=3")},
                                             {.kind = Kind::kRemoveBreakpoint, .count = 4}};
  for (const LiveCommand& command : commands) {
    const LiveCommand read = unpack_command(payload(command_frame(command)));
    EXPECT_EQ(read, command);
    apply(read, fake);
  }
  EXPECT_EQ(fake.log, "pause resume events5 rank3x2 microbatch step1 F mb=3 remove4 ");
}

TEST(LiveMessageTest, AnotherVersionIsRefused) {
  EXPECT_NO_THROW(check_attach(payload(attach_frame())));
  EXPECT_THROW(check_attach(Packer().number(kLiveVersion + 1).bytes()), Error);
  EXPECT_THROW(unpack_welcome(Packer().number(kLiveVersion).number(0).number(1).bytes()), Error) << "a world of none";
  EXPECT_EQ(unpack_welcome(payload(welcome_frame({.world_size = 8, .steppable = true}))).world_size, 8);
  EXPECT_EQ(unpack_ended(payload(ended_frame("[rank 3] made up"))), "[rank 3] made up");
}

// Every beginning of a payload, and payloads with bytes changed, are read or refused.
TEST(LiveMessageTest, BrokenPayloadsThrow) {
  std::mt19937 random(1);
  const std::vector<std::string> payloads = {payload(state_frame(full_state())),
                                             payload(events_frame(batch({"F", "x"}), 0)),
                                             payload(command_frame({.breakpoint = parse_breakpoint("F mb=3")}))};
  const auto read = [](size_t kind, std::string_view bytes) {
    try {
      std::vector<RankTrace> ranks(2);
      if (kind == 0) unpack_state(bytes, 2);
      if (kind == 1) unpack_events(bytes, ranks);
      if (kind == 2) unpack_command(bytes);
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCommunication);
      return false;
    }
  };
  for (size_t kind = 0; kind < payloads.size(); ++kind) {
    const std::string& whole = payloads[kind];
    ASSERT_TRUE(read(kind, whole));
    for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(read(kind, whole.substr(0, size))) << size;
    for (int i = 0; i < 3000; ++i) {
      std::string changed = whole;
      for (int j = 0; j < 3; ++j) changed[random() % changed.size()] = static_cast<char>(random());
      read(kind, changed);
    }
  }
}

TEST(LiveMessageTest, HugeCountsAllocateNothing) {
  const int64_t huge = int64_t{1} << 60;
  std::vector<RankTrace> ranks(2);
  EXPECT_THROW(unpack_events(Packer().number(0).text("").number(0).number(huge).bytes(), ranks), Error);
  EXPECT_THROW(unpack_events(Packer().number(0).number(huge).bytes(), ranks), Error);
  EXPECT_THROW(unpack_state(Packer().number(1).number(0).number(0).number(huge).bytes(), 2), Error);
  RawFrameReader reader(kLiveMagic, static_cast<uint32_t>(LiveType::kCount), kLiveCommandCap);
  reader.feed(raw_frame_bytes(kLiveMagic, 0, std::string(kLiveCommandCap + 1, 'x')));
  EXPECT_THROW(reader.next(), Error);
}

}  // namespace
}  // namespace ranklab
