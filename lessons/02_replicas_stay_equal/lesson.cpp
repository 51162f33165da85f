// Lesson 2: 8 replicas without averaging, with averaging, and with overlapped averaging; the learner's code compared
// with one rank.
#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "lessons/02_replicas_stay_equal/replicas.h"
#include "lessons/compare.h"
#include "lessons/lanes_picture.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr int kRanks = 8;
constexpr int kSteps = 5;
constexpr int kBuckets = kLayers / kLayersPerBucket;
constexpr double kTolerance = 1e-12;
constexpr double kMostExposed = 0.4;

std::string percent(double share) { return strprintf("%.1f %%", 100 * share); }
std::string duration(const ReplicaRun& run) { return human_ns(static_cast<double>(run.records[0].virtual_ns)); }

int64_t bytes_a_step(const ReplicaRun& run) {
  int64_t most = 0;
  for (const RankRecord& record : run.records) most = std::max(most, record.sent_bytes());
  return most / kSteps;
}

// The time from the first step's start to its end.
TimeWindow first_step(const ReplicaRun& run) {
  TimeWindow window{.step = 0};
  for (const Event& event : run.records[0].trace.events) {
    if (event.step == 0) window.end_ns = std::max(window.end_ns, event.virtual_end_ns);
  }
  return window;
}

void show_divergence(Screen& screen, const ReplicaRun& apart, const ReplicaRun& together) {
  screen.heading("8 replicas, 5 steps: how many different models, and how far apart");
  std::vector<Cells> rows = {{"step", "not averaged: models", "apart", "averaged: models", "apart", "loss"}};
  for (int step = 0; step < kSteps; ++step) {
    const auto i = static_cast<size_t>(step);
    rows.push_back({std::to_string(step), std::to_string(apart.versions[i]), strprintf("%.4f", apart.spreads[i]),
                    std::to_string(together.versions[i]), strprintf("%.0f", together.spreads[i]),
                    strprintf("%.4f", together.losses[i])});
  }
  screen.table(rows);
  screen.line();
  screen.paragraph(
      "Apart: the largest difference of one weight between two replicas. Averaged it is 0, not small: the "
      "bits are the same.");
}

void draw_beside(Picture& picture, const ReplicaRun& yours) {
  const ReplicaRun right = train_replicas(kRanks, kSteps, averaged_while_backward_runs());
  TimeWindow window = first_step(right);
  window.end_ns = std::max(window.end_ns, first_step(yours).end_ns);
  picture.paragraph("One step of rank 0: F forward, B backward, u update, · waiting for the link, ▒ all-reduce");
  draw_lanes(picture, "right", right.records[0].trace, window);
  picture.line();
  draw_lanes(picture, "yours", yours.records[0].trace, window);
  picture.record("right", traces_of(right.records));
  picture.record("yours", traces_of(yours.records));
}

class ReplicasStayEqual final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const ReplicaRun apart = train_replicas(kRanks, kSteps, no_averaging());
    const ReplicaRun after = train_replicas(kRanks, kSteps, averaged_after_backward());
    const ReplicaRun hidden = train_replicas(kRanks, kSteps, averaged_while_backward_runs());
    const auto sent = static_cast<double>(bytes_a_step(hidden));
    return {{"numbers sent a step and rank, in P", strprintf("%.4g", sent / (8.0 * kParameters))},
            {"bytes sent a step and rank", human_bytes(sent)},
            {"exposed, after backward", percent(after.exposed_share())},
            {"exposed, overlapped", percent(hidden.exposed_share())},
            {"5 steps, after backward", duration(after)},
            {"5 steps, overlapped", duration(hidden)},
            {"models without averaging", std::to_string(apart.versions.front())},
            {"models with averaging", std::to_string(hidden.versions.back())}};
  }

  Question question() const override {
    return {.text =
                "The gradients travel in 4 equal buckets while backward runs, and backward takes longer to fill the "
                "next bucket than a bucket takes to travel. How much of the communication is exposed, in percent?",
            .unit = "%",
            .tolerance = 1.0};
  }

  double run(Screen& screen) const override {
    const ReplicaRun apart = train_replicas(kRanks, kSteps, no_averaging());
    const ReplicaRun after = train_replicas(kRanks, kSteps, averaged_after_backward());
    const ReplicaRun hidden = train_replicas(kRanks, kSteps, averaged_while_backward_runs());
    show_divergence(screen, apart, hidden);
    screen.heading("One step of rank 0 in virtual time");
    screen.paragraph("F forward, B backward (one span a bucket), u update, · waiting for the link, ▒ all-reduce");
    screen.line();
    const TimeWindow window = first_step(after);
    draw_lanes(screen, "not averaged", apart.records[0].trace, window);
    screen.line();
    draw_lanes(screen, "averaged after backward", after.records[0].trace, window);
    screen.line();
    draw_lanes(screen, "averaged in buckets, overlapped", hidden.records[0].trace, window);
    screen.line();
    std::vector<Cells> rows = {{"", "5 steps take", "bytes a step", "on the link", "exposed", "share"}};
    for (const auto& [title, one] : {std::pair<std::string, const ReplicaRun&>{"not averaged", apart},
                                     {"after backward", after},
                                     {"overlapped", hidden}}) {
      rows.push_back({title, duration(one), human_bytes(static_cast<double>(bytes_a_step(one))),
                      human_ns(static_cast<double>(one.records[0].link_ns())),
                      human_ns(static_cast<double>(one.records[0].exposed_ns)), percent(one.exposed_share())});
    }
    screen.table(rows);
    return 100 * hidden.exposed_share();
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const GradientPath path{exercise.function<decltype(gradient_ready)>("gradient_ready"),
                            exercise.function<decltype(finish)>("finish")};
    const ReplicaRun want = train_replicas(1, kSteps, no_averaging());
    const ReplicaRun got = train_replicas(kRanks, kSteps, path, &exercise);
    std::vector<CheckRow> rows;
    const int versions = got.versions.back();
    rows.push_back({"models after 5 steps", "1", std::to_string(versions), "every bit", versions == 1});
    const double gradient_error = relative_error(got.first_gradients, want.first_gradients[0]);
    rows.push_back({"gradients of step 0, 8 ranks", "0 off", strprintf("%.3g off", gradient_error), "1e-12 relative",
                    gradient_error <= kTolerance});
    for (const int step : {0, kSteps - 1}) {
      const auto i = static_cast<size_t>(step);
      const double error = std::abs(got.losses[i] - want.losses[i]) / want.losses[i];
      rows.push_back({strprintf("loss of step %d", step), strprintf("%.9f", want.losses[i]),
                      strprintf("%.9f", got.losses[i]), "1e-12 relative", error <= kTolerance});
    }
    const int64_t bytes = kParameters * 8 * 2 * (kRanks - 1) / kRanks;
    rows.push_back({"bytes sent a step and rank", strprintf("%ld (1.75 P x 8)", static_cast<long>(bytes)),
                    std::to_string(bytes_a_step(got)), "exact", bytes_a_step(got) == bytes});
    const int64_t calls = got.records[0].calls(Verb::kAllReduce);
    rows.push_back({"all-reduces a step", std::to_string(kBuckets),
                    strprintf("%.3g", static_cast<double>(calls) / kSteps), "exact", calls == kBuckets * kSteps});
    const double exposed = got.exposed_share();
    draw_beside(picture, got);
    rows.push_back({"exposed communication", "25.0 %", calls == 0 ? "none at all" : percent(exposed),
                    "at most " + percent(kMostExposed), calls > 0 && exposed <= kMostExposed});
    return rows;
  }
};

}  // namespace

LessonPtr make_replicas_stay_equal() { return std::make_unique<ReplicasStayEqual>(); }

}  // namespace ranklab::lesson
