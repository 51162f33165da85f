#include "lessons/01_all_reduce/ring_picture.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lessons/01_all_reduce/algorithms.h"
#include "lessons/01_all_reduce/watched_comm.h"

namespace ranklab::lesson {
namespace {

constexpr int kFrames[2][6] = {{0, 1, 2, 4, 6, 7}, {8, 9, 10, 12, 13, 14}};

void run_on_buffers(const RankSetup& setup, const Algorithm& algorithm, Buffers& data) {
  run_ranks(setup, [&](RankContext& context) {
    const auto comm = make_comm(context.comm(Axis::kWorld));
    algorithm(*comm, data[static_cast<size_t>(context.global_rank())]);
  });
}

// snapshots[step][rank][chunk]: the number of ranks whose values a chunk contains, since every rank starts with ones.
std::vector<Buffers> ring_snapshots() {
  Buffers data(kRingRanks, std::vector<double>(kRingRanks, 1.0));
  std::vector<Buffers> snapshots(2 * kRingRanks - 1, data);
  run_on_buffers(
      {.dims = {.world = kRingRanks}},
      [&](Comm& comm, std::span<double> mine) {
        ring_all_reduce_reference(comm, mine, [&](int step) {
          std::copy(mine.begin(), mine.end(),
                    snapshots[static_cast<size_t>(step)][static_cast<size_t>(comm.rank())].begin());
        });
      },
      data);
  return snapshots;
}

// What each rank holds when each of its messages begins, and at the end, if the learner's ring starts with ones. Ranks
// may send different numbers of messages: a missing snapshot equals the rank's last one.
std::vector<Buffers> learners_snapshots(const RankSetup& setup, const Algorithm& ring) {
  Buffers data(kRingRanks, std::vector<double>(kRingRanks, 1.0));
  std::vector<Buffers> of_rank(kRingRanks);
  const auto watched = [&](Comm& comm, std::span<double> mine) {
    Buffers& seen = of_rank[static_cast<size_t>(comm.rank())];
    const auto note = [&] { seen.emplace_back(mine.begin(), mine.end()); };
    WatchedComm watch(comm, note);
    ring(watch, mine);
    note();
  };
  run_on_buffers(setup, watched, data);
  std::vector<Buffers> snapshots(2 * kRingRanks - 1, Buffers(kRingRanks));
  for (size_t step = 0; step < snapshots.size(); ++step) {
    for (size_t rank = 0; rank < kRingRanks; ++rank)
      snapshots[step][rank] = of_rank[rank][std::min(step, of_rank[rank].size() - 1)];
  }
  return snapshots;
}

// A count as one character; "+" or "?" for a sum that no ring can make from ones.
std::string digit_of(double count) {
  if (!(count >= 0) || count != std::floor(count)) return "?";
  return count > 9 ? "+" : std::to_string(static_cast<int>(count));
}

// `right`: rows that differ from its rows are marked.
Cells frame(const Screen& screen, const Buffers& snapshot, int step, const Buffers* right = nullptr) {
  Cells lines = {screen.paint(Ink::kDim, step == 0 ? "start" : "step " + std::to_string(step))};
  for (int rank = 0; rank < kRingRanks; ++rank) {
    std::string text = std::to_string(rank) + " ";
    for (const double count : snapshot[static_cast<size_t>(rank)]) {
      const std::string digit = digit_of(count);
      text += count == kRingRanks ? screen.paint(Ink::kGreen, digit)
              : count == 1        ? screen.paint(Ink::kDim, digit)
                                  : digit;
    }
    const auto i = static_cast<size_t>(rank);
    lines.push_back(text + (right != nullptr && (*right)[i] != snapshot[i] ? screen.paint(Ink::kRed, "*") : ""));
  }
  return lines;
}

}  // namespace

void draw_beside(Screen& screen, const RankSetup& setup, const Algorithm& ring) {
  const std::vector<Buffers> yours = learners_snapshots(setup, ring);
  const std::vector<Buffers> right = ring_snapshots();
  screen.paragraph(
      "How many ranks' numbers are in each chunk; one row per rank, one digit per chunk; * differs from the ring");
  for (const auto* which : {&right, &yours}) {
    screen.line();
    screen.line("  " + screen.paint(Ink::kBold, which == &right ? "right" : "yours"));
    std::vector<Cells> pictures;
    for (const int step : {1, 4, 7, 8, 11, 14}) {
      const auto i = static_cast<size_t>(step);
      pictures.push_back(frame(screen, (*which)[i], step, which == &yours ? &right[i] : nullptr));
    }
    screen.side_by_side(pictures, 2);
  }
}

void draw_ring(Screen& screen) {
  screen.heading("The ring, step by step: how many ranks' numbers are in each chunk");
  screen.paragraph(
      "One row per rank, one digit per chunk. Complete is 8. First the sums grow along the diagonal "
      "(reduce-scatter), then complete chunks go around (all-gather).");
  screen.line();
  const std::vector<Buffers> snapshots = ring_snapshots();
  for (const auto& row : kFrames) {
    std::vector<Cells> pictures;
    for (const int step : row) pictures.push_back(frame(screen, snapshots[static_cast<size_t>(step)], step));
    screen.side_by_side(pictures);
    screen.line();
  }
}

}  // namespace ranklab::lesson
