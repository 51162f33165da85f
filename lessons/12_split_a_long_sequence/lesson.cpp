// Lesson 12: the cost of contiguous, zigzag and striped splits of a sequence; the learner's split, merge and ring
// compared with attention on one rank.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "lessons/12_split_a_long_sequence/merge_cases.h"
#include "lessons/12_split_a_long_sequence/ring_run.h"
#include "lessons/12_split_a_long_sequence/split_cost.h"
#include "lessons/glyphs.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr double kTolerance = 1e-12;
constexpr size_t kEach = 160;  // positions per rank: so many that attention takes longer than the messages
constexpr int kRanks = kContextRanks;

struct Split {
  const char* title;
  SequenceBalance balance;
};
constexpr Split kSplits[] = {{"contiguous", SequenceBalance::kContiguous},
                             {"zigzag", SequenceBalance::kZigzag},
                             {"stripe", SequenceBalance::kStripe}};

std::string useful_percent(const SplitCost& cost) { return strprintf("%.1f %%", 100 * cost.useful()); }
std::string ratio(double max_over_mean) { return strprintf("%.3f", max_over_mean); }
std::string time_of(int64_t ns) { return human_ns(static_cast<double>(ns)); }

CheckRow error_row(const std::string& what, double error) {
  return {what, "0 off", strprintf("%.2g off", error), "1e-12 relative", error <= kTolerance};
}
CheckRow count_row(const std::string& what, int64_t want, int64_t got) {
  return {what, std::to_string(want), std::to_string(got), "exact", want == got};
}

void draw_parts(Screen& screen) {
  constexpr int64_t kCells = 16;
  std::vector<Cells> pictures;
  for (const Split& split : kSplits) {
    Cells& lines = pictures.emplace_back(Cells{split.title});
    for (int rank = 0; rank < kRanks; ++rank) {
      std::string row(kCells, '.');
      for (const int64_t position : positions_of(sequence_part(kCells, kRanks, rank, split.balance)))
        row[static_cast<size_t>(position)] = '#';
      lines.push_back(strprintf("%d ", rank) + screen.paint(Ink::kYellow, row));
    }
  }
  screen.heading("Which of 16 positions a rank has");
  screen.side_by_side(pictures);
}

// Draws which rank has each of 64 positions, and how much work that gives each rank.
void draw_positions(Screen& picture, const Positions& yours) {
  const Positions right = zigzag(kRanks, yours[0].size());
  picture.paragraph("Which rank has which position of a short sequence, and its work; · nobody, * several");
  for (const auto& [title, split] : {std::pair<const char*, const Positions&>{"right", right}, {"yours", yours}}) {
    std::string work;
    for (const auto& positions : split) {
      double pairs = 0;
      for (const size_t position : positions) pairs += static_cast<double>(position) + 1;
      work += height(pairs / (kRanks * static_cast<double>(positions.size() * positions.size())));
    }
    picture.line(strprintf("    %s  %s  %s", title, owners(split, kRanks * split[0].size()).c_str(), work.c_str()));
  }
}

class SplitALongSequence final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    std::vector<Figure> figures;
    for (const Split& split : kSplits) {
      const SplitCost cost = measure_split(split.balance);
      const std::string title = std::string(split.title) + ": ";
      figures.push_back({title + "most work over the mean", ratio(cost.max_over_mean())});
      figures.push_back({title + "useful", useful_percent(cost)});
      figures.push_back({title + "time", time_of(cost.time_ns)});
      figures.push_back({title + "hops", std::to_string(cost.hops)});
      figures.push_back({title + "numbers sent, in K b s", strprintf("%.4g", cost.sent_kbs)});
    }
    return figures;
  }

  Question question() const override {
    return {
        .text =
            "Eight ranks share one sequence: rank 0 has its first eighth, rank 7 its last. Attention is causal, and "
            "messages are hidden behind it. What part of all ranks' time is useful at best, in percent?",
        .unit = "%",
        .tolerance = 1};
  }

  double run(Screen& screen) const override {
    draw_parts(screen);
    std::vector<SplitCost> costs;
    TimeWindow window;
    for (const Split& split : kSplits) {
      costs.push_back(measure_split(split.balance));
      window.end_ns = std::max(window.end_ns, costs.back().time_ns);
    }
    screen.heading("One layer's attention in virtual time: whose keys each rank attends to");
    screen.paragraph(
        strprintf("%ld positions on 8 ranks. 5: this rank attends to the keys of rank 5; · it attends to none.",
                  static_cast<long>(kLongSequence)));
    std::vector<Cells> rows = {{"split", "most work / mean", "useful", "time", "hops", "sent / K b s"}};
    for (size_t i = 0; i < costs.size(); ++i) {
      screen.line();
      screen.line("  " + screen.paint(Ink::kBold, kSplits[i].title) + ": " + time_of(costs[i].time_ns));
      draw_rank_rows(screen, costs[i].blocks, window);
      rows.push_back({kSplits[i].title, ratio(costs[i].max_over_mean()), useful_percent(costs[i]),
                      time_of(costs[i].time_ns), std::to_string(costs[i].hops), strprintf("%.4g", costs[i].sent_kbs)});
    }
    screen.heading("The same in numbers");
    screen.table(rows);
    screen.line();
    screen.paragraph("K b s: width of the keys x sequences x positions of all ranks together. " +
                     strprintf("A rank cannot be done before its own work, so contiguous is useful at best 1 / %.3f = "
                               "%.1f %% of the time; the rest went into copies and into merging blocks.",
                               costs[0].max_over_mean(), 100 / costs[0].max_over_mean()));
    return 100 / costs[0].max_over_mean();
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    auto* const choose = exercise.function<decltype(choose_positions)>("choose_positions");
    auto* const merge = exercise.function<decltype(merge_partial)>("merge_partial");
    const Ring ring = exercise.function<decltype(ring_attention)>("ring_attention");
    std::vector<CheckRow> rows;
    if (exercise.has("log_of_both"))
      rows.push_back(warm_up_row(exercise.function<decltype(log_of_both)>("log_of_both")));
    const Positions mine = chosen(choose, kRanks, kEach), few = chosen(choose, 3, 20);
    add_split(rows, mine);
    add_split(rows, few);
    draw_positions(picture, chosen(choose, kRanks, 6));
    rows.push_back(error_row("merge: 3 blocks", merge_error(merge, 3, 0, false)));
    rows.push_back(error_row("merge: scores around 800", merge_error(merge, 3, 800, false)));
    rows.push_back(error_row("merge: scores around -800", merge_error(merge, 3, -800, false)));
    rows.push_back(error_row("merge: queries that attend to nothing", merge_error(merge, 3, 0, true)));
    rows.push_back(error_row("ring, contiguous: output", run_ring(contiguous(kRanks, kEach), ring, &exercise).error));
    add_ring(rows, mine, ring, exercise, picture);
    rows.push_back(error_row("ring, zigzag on 3 ranks: output", run_ring(zigzag(3, 20), ring, &exercise).error));
    return rows;
  }

 private:
  static Positions chosen(decltype(::choose_positions)* choose, int ranks, size_t each) {
    Positions positions(static_cast<size_t>(ranks), std::vector<size_t>(each));
    for (int rank = 0; rank < ranks; ++rank) choose(rank, ranks, positions[static_cast<size_t>(rank)]);
    return positions;
  }

  static CheckRow warm_up_row(decltype(::log_of_both)* both) {
    const double two = std::log(2.0);
    const std::array<std::array<double, 3>, 5> cases = {{{0, 0, two},
                                                         {800, 800, 800 + two},
                                                         {-800, -800, -800 + two},
                                                         {kNothing, 3, 3},
                                                         {kNothing, kNothing, kNothing}}};
    size_t right = 0;
    for (const auto& [a, b, want] : cases) {
      const double got = both(a, b);
      right += got == want || std::abs(got - want) < 1e-12 * std::abs(want) ? 1 : 0;
    }
    return {"warm-up: of 5 logarithms, right", "5", std::to_string(right), "1e-12 relative", right == cases.size()};
  }

  static void add_split(std::vector<CheckRow>& rows, const Positions& positions) {
    const std::string title = strprintf("%zu ranks: ", positions.size());
    const size_t all = positions.size() * positions[0].size();
    rows.push_back(count_row(title + "positions that one rank has", static_cast<int64_t>(all),
                             static_cast<int64_t>(held_once(positions))));
    rows.push_back(exact_row(title + "most work over the mean", 1, work_max_over_mean(positions)));
  }

  static void draw_ring_lanes(Picture& picture, const RingRun& yours, const RingRun& right) {
    const TimeWindow window{.end_ns = std::max(yours.time_ns, right.time_ns)};
    picture.line("  The ring on rank 7: b attends to a block, · waits for keys, ▒ a hop");
    draw_lanes(picture, "right", right.records.back().trace, window);
    draw_lanes(picture, "yours", yours.records.back().trace, window);
    picture.record("right", traces_of(right.records));
    picture.record("yours", traces_of(yours.records));
  }

  // Runs the ring on the learner's own split.
  static void add_ring(std::vector<CheckRow>& rows, const Positions& mine, const Ring& ring,
                       const ExerciseLibrary& exercise, Picture& picture) {
    if (held_once(mine) != kRanks * kEach) {
      rows.push_back({"ring, your split", "a run", "none: positions are missing", "exact", false});
      return;
    }
    const RingRun run = run_ring(mine, ring, &exercise);
    rows.push_back(error_row("ring, your split: output", run.error));
    rows.push_back(count_row("hops of a rank", kRanks - 1, run.most_hops()));
    const int64_t each_bytes = 2 * kRingHeads * kRingHeadDim * int64_t{kEach} * 8;
    rows.push_back(count_row("bytes that a rank sends", (kRanks - 1) * each_bytes, run.most_bytes()));
    rows.push_back(
        count_row("hops that start before their block, all ranks", kRanks * (kRanks - 1), run.hops_in_advance));
    const RingRun want = run_ring(zigzag(kRanks, kEach), straight_ring());
    const int64_t want_ns = want.time_ns;
    draw_ring_lanes(picture, run, want);
    const double off = std::abs(static_cast<double>(run.time_ns - want_ns)) / static_cast<double>(want_ns);
    rows.push_back({"ring, your split: time", time_of(want_ns), time_of(run.time_ns), "1 %", off <= 0.01});
  }
};

}  // namespace

LessonPtr make_split_a_long_sequence() { return std::make_unique<SplitALongSequence>(); }

}  // namespace ranklab::lesson
