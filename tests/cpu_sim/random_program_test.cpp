// Random programs of collectives and messages over overlapping groups. Each rank runs its part of one global order, so
// a program as made is free of deadlock: none may be reported, with any delays. With one call dropped or two swapped on
// one rank, a plain interpreter says whether it can still end; the world must agree, and say so within a second.
#include <algorithm>
#include <optional>
#include <random>
#include <thread>

#include "tests/cpu_sim/faults.h"

namespace ranklab::cpu_sim_test {
namespace {

constexpr int kProgramRanks = 4;
const std::vector<std::vector<int>> kGroups = {{0, 1, 2, 3}, {0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2, 3}};

// A call of one rank. `id` is its tensor's length, so calls that were not meant for each other never look alike.
struct Step {
  int channel;  // index of a group, or of an ordered pair: 100 + 10 from + to
  int id;
};
using Program = std::vector<std::vector<Step>>;  // per rank

std::vector<int> members(int channel) {
  if (channel < 100) return kGroups[static_cast<size_t>(channel)];
  return {(channel - 100) / 10, (channel - 100) % 10};
}

Program make_program(std::mt19937& random, int calls) {
  Program program(kProgramRanks);
  for (int id = 1; id <= calls; ++id) {
    int channel = static_cast<int>(random() % kGroups.size());
    if (random() % 3 == 0) {
      const int from = static_cast<int>(random() % kProgramRanks);
      channel = 100 + 10 * from + (from + 1 + static_cast<int>(random() % (kProgramRanks - 1))) % kProgramRanks;
    }
    for (const int rank : members(channel)) program[static_cast<size_t>(rank)].push_back({channel, id});
  }
  return program;
}

// Whether every rank can come to its end: a call completes when all members stand at it with the same id.
bool can_end(const Program& program) {
  std::vector<size_t> at(kProgramRanks, 0);
  const auto current = [&](int rank) -> std::optional<Step> {
    const auto& steps = program[static_cast<size_t>(rank)];
    return at[static_cast<size_t>(rank)] < steps.size() ? std::optional(steps[at[static_cast<size_t>(rank)]])
                                                        : std::nullopt;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < kProgramRanks; ++rank) {
      const auto step = current(rank);
      if (!step) continue;
      const std::vector<int> group = members(step->channel);
      const bool together = std::all_of(group.begin(), group.end(), [&](int member) {
        const auto other = current(member);
        return other && other->channel == step->channel && other->id == step->id;
      });
      if (!together) continue;
      for (const int member : group) ++at[static_cast<size_t>(member)];
      moved = true;
    }
  }
  for (int rank = 0; rank < kProgramRanks; ++rank)
    if (current(rank)) return false;
  return true;
}

// What ends soon waited for no limit of time, however busy the machine is: these are longer by far.
constexpr std::chrono::milliseconds kGrace{30'000};
constexpr double kSoon = 10;

Outcome run_program(const Program& program, unsigned seed) {
  return run_world({.size = kProgramRanks, .grace = kGrace}, [&](Endpoint& endpoint, Communicator& world) {
    const int rank = endpoint.global_rank();
    std::mt19937 random(seed * kProgramRanks + static_cast<unsigned>(rank));
    std::vector<CommunicatorPtr> comms;
    for (const auto& group : kGroups)
      comms.push_back(std::count(group.begin(), group.end(), rank) != 0
                          ? endpoint.communicator(group_of(group, rank, Axis::kTp))
                          : nullptr);
    for (const Step& step : program[static_cast<size_t>(rank)]) {
      if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
      const at::Tensor x = at::ones({step.id});
      if (step.channel < 100) {
        comms[static_cast<size_t>(step.channel)]->all_reduce(x);
      } else if (members(step.channel)[0] == rank) {
        world.send(x, members(step.channel)[1]);
      } else {
        world.recv(x, members(step.channel)[0]);
      }
    }
  });
}

TEST(RandomProgramTest, CorrectProgramsAreNeverReported) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const Program program = make_program(random, 30);
    ASSERT_TRUE(can_end(program));
    const Outcome outcome = run_program(program, seed);
    ASSERT_FALSE(outcome.error) << "seed " << seed << ": " << outcome.text();
  }
}

TEST(RandomProgramTest, BrokenProgramsAlwaysEnd) {
  int broken = 0, harmless = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(1000 + seed);
    Program program = make_program(random, 30);
    auto& steps = program[random() % kProgramRanks];
    const size_t where = random() % (steps.size() - 1);
    if (seed % 2 == 0) {
      steps.erase(steps.begin() + static_cast<int64_t>(where));
    } else {
      std::swap(steps[where], steps[where + 1]);
    }
    const bool fine = can_end(program);
    const Outcome outcome = run_program(program, seed);
    ASSERT_EQ(!outcome.error, fine) << "seed " << seed << ": " << outcome.text();
    ASSERT_LT(outcome.seconds, kSoon) << "seed " << seed;
    ++(fine ? harmless : broken);
    if (fine) continue;
    ASSERT_EQ(outcome.error->kind(), ErrorKind::kCommunication);
    ASSERT_THAT(outcome.text(), testing::AnyOf(testing::HasSubstr("deadlock"), testing::HasSubstr("members disagree")));
  }
  EXPECT_GT(broken, 300);
  EXPECT_GT(harmless, 10) << "swaps that change nothing are the control";
}

}  // namespace
}  // namespace ranklab::cpu_sim_test
