// Lesson 3: the collectives of one tensor-parallel layer, counted; the learner's collectives compared with the unsplit
// MLP.
#include <algorithm>

#include "core/base/text.h"
#include "lessons/03_split_matmul/layer_run.h"
#include "lessons/03_split_matmul/meeting_picture.h"
#include "lessons/03_split_matmul/split_mlp.h"
#include "lessons/lanes_picture.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr double kTolerance = 1e-12;

// Inputs that are gathered a second time in backward: one all-gather for attention, one for the MLP.
int64_t repeated_gathers(const LayerRun& sp) { return sp.calls(Verb::kAllGather) - sp.calls(Verb::kReduceScatter); }

// Each all-gather sends 7/8 of b x s x h.
double sent_without_regather(const LayerRun& sp) {
  return sp.numbers_sent() - static_cast<double>(repeated_gathers(sp)) * 7.0 / 8.0;
}

Cells counts(const std::string& title, const LayerRun& run) {
  const auto of = [&](Verb verb) {
    return strprintf("%ld + %ld", static_cast<long>(run.forward_calls(verb)),
                     static_cast<long>(run.calls(verb) - run.forward_calls(verb)));
  };
  return {title,
          of(Verb::kAllReduce),
          of(Verb::kAllGather),
          of(Verb::kReduceScatter),
          strprintf("%.4g", run.numbers_sent()),
          human_ns(static_cast<double>(run.time_ns()))};
}

// A matrix of 8 x 8 tiles; rank 2 owns those for which `mine` is true.
template <typename Mine>
Cells matrix(const Screen& screen, const std::string& title, const std::string& tile, Mine mine) {
  Cells lines = {title, "┌────────┐"};
  for (int row = 0; row < 8; ++row) {
    std::string text;
    for (int column = 0; column < 8; ++column) {
      text += mine(row, column) ? screen.paint(Ink::kYellow, tile) : "░";
    }
    lines.push_back("│" + text + "│");
  }
  lines.push_back("└────────┘");
  return lines;
}

void draw_split(Screen& screen) {
  constexpr int kMarked = 2;
  const auto all = [](int, int) { return true; };
  const auto column = [](int, int c) { return c == kMarked; };
  const auto row = [](int r, int) { return r == kMarked; };
  screen.heading("y = act(x A) B on 8 ranks: █ what rank 2 has");
  screen.side_by_side({matrix(screen, "x", "█", all), matrix(screen, "A, by columns", "█", column),
                       matrix(screen, "act(x A)", "█", column), matrix(screen, "B, by rows", "█", row),
                       matrix(screen, "y, one term of 8", "+", all)},
                      4);
}

class SplitMatmul final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const LayerRun tp = run_layer(false), sp = run_layer(true);
    return {{"all-reduces a layer", std::to_string(tp.calls(Verb::kAllReduce))},
            {"of them in forward", std::to_string(tp.forward_calls(Verb::kAllReduce))},
            {"reduce-scatters a layer, sequence parallel", std::to_string(sp.calls(Verb::kReduceScatter))},
            {"all-gathers a layer, sequence parallel", std::to_string(sp.calls(Verb::kAllGather))},
            {"numbers sent, tensor parallel, in b s h", strprintf("%.4g", tp.numbers_sent())},
            {"numbers sent, sequence parallel, gathered once", strprintf("%.4g", sent_without_regather(sp))}};
  }

  Question question() const override {
    return {.text =
                "One transformer layer (attention and MLP) with tp 8, without sequence parallelism. How many "
                "all-reduces do its forward and backward take together?",
            .unit = "all-reduces"};
  }

  double run(Screen& screen) const override {
    draw_split(screen);
    const LayerRun tp = run_layer(false), sp = run_layer(true);
    screen.heading("One transformer layer on 8 ranks: its collectives, forward + backward");
    screen.table({{"", "all-reduce", "all-gather", "reduce-scatter", "sent / bsh", "time"},
                  counts("tp 8", tp),
                  counts("tp 8, sequence p.", sp)});
    screen.line();
    screen.paragraph(strprintf(
        "b x s x h is %ld here. An all-reduce is a reduce-scatter and an all-gather, so both rows carry the same: %.4g "
        "times b x s x h, but for the %ld all-gathers that backward repeats so that no gathered tensor has to be kept.",
        static_cast<long>(kLayerNumbers), sent_without_regather(sp), static_cast<long>(repeated_gathers(sp))));
    screen.heading("The same layer on rank 0, in a laptop's virtual time");
    screen.paragraph("F forward, B backward, · waiting for the link, ▒ collectives");
    screen.line();
    const TimeWindow window{0, std::max(tp.time_ns(), sp.time_ns())};
    draw_lanes(screen, "tensor parallel", tp.records[0].trace, window);
    screen.line();
    draw_lanes(screen, "tensor and sequence parallel", sp.records[0].trace, window);
    return static_cast<double>(tp.calls(Verb::kAllReduce));
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const MeetingPoints meet{exercise.function<decltype(::enter)>("enter"),
                             exercise.function<decltype(::leave)>("leave"),
                             exercise.function<decltype(::leave_backward)>("leave_backward"),
                             exercise.function<decltype(::enter_backward)>("enter_backward"),
                             exercise.function<decltype(::norm_gradient)>("norm_gradient")};
    std::vector<CheckRow> rows;
    draw_meeting_points(picture, meet);
    const SplitRun tp = split_mlp(meet, Outside::kAllTokens, &exercise);
    add_errors("tp", tp, rows);
    add_calls("tp", tp, {.all_reduces = 2, .all_gathers = 0, .reduce_scatters = 0}, rows);
    const SplitRun sp = split_mlp(meet, Outside::kMyTokens, &exercise);
    add_errors("sp", sp, rows);
    picture.record("yours", traces_of(sp.records));
    add_calls("sp", sp, {.all_reduces = 1, .all_gathers = 2, .reduce_scatters = 2}, rows);
    const int64_t want = large_bytes(tp), got = large_bytes(sp);
    rows.push_back({"sp sends as much as tp", human_bytes(static_cast<double>(2 * 7 * kTokens * kMlpHidden * 2)),
                    human_bytes(static_cast<double>(got)), "exact",
                    got == want && got == 2 * 7 * kTokens * kMlpHidden * 2});
    return rows;
  }

 private:
  struct Calls {
    int64_t all_reduces, all_gathers, reduce_scatters;
    bool operator==(const Calls&) const = default;
    std::string text() const {
      return strprintf("%ld + %ld + %ld", static_cast<long>(all_gathers), static_cast<long>(reduce_scatters),
                       static_cast<long>(all_reduces));
    }
  };

  static void add_errors(const std::string& mode, const SplitRun& run, std::vector<CheckRow>& rows) {
    const std::pair<const char*, double> errors[] = {{"output", run.y_error},
                                                     {"gradient of B", run.b_error},
                                                     {"gradient of A", run.a_error},
                                                     {"gradient of the norm's weights", run.gain_error},
                                                     {"gradient of x", run.x_error}};
    for (const auto& [what, error] : errors) {
      rows.push_back(
          {mode + ": " + what, "0 off", strprintf("%.2g off", error), "1e-12 relative", error <= kTolerance});
    }
  }

  static void add_calls(const std::string& mode, const SplitRun& run, const Calls& want, std::vector<CheckRow>& rows) {
    const RankRecord& rank = run.records[0];
    const Calls got{rank.calls(Verb::kAllReduce), rank.calls(Verb::kAllGather), rank.calls(Verb::kReduceScatter)};
    rows.push_back({mode + ": gathers + scatters + all-reduces", want.text(), got.text(), "exact", got == want});
  }

  // Bytes that rank 0 sent in calls on all tokens. This excludes the all-reduce of the norm's weight gradient.
  static int64_t large_bytes(const SplitRun& run) {
    int64_t bytes = 0;
    for (const Event& event : run.records[0].trace.events) {
      if (event.logical_bytes == kTokens * kMlpHidden * 8) bytes += event.algorithm_bytes;
    }
    return bytes;
  }
};

}  // namespace

LessonPtr make_split_matmul() { return std::make_unique<SplitMatmul>(); }

}  // namespace ranklab::lesson
