// Lesson 18: replicas that average their gradients in every step, and replicas that train on their own for 5 or 20
// steps; the learner's outer update compared with one rank.
#include <algorithm>
#include <array>
#include <span>

#include "core/base/text.h"
#include "lessons/18_how_rarely_may_replicas_talk/one_weight.h"
#include "lessons/18_how_rarely_may_replicas_talk/rare_updates.h"
#include "lessons/compare.h"
#include "lessons/glyphs.h"
#include "lessons/lanes_picture.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr int kSteps = 100;
constexpr int kRarest = 20;
constexpr double kTolerance = 1e-12;
constexpr OuterRule kPlainMomentum = {.lr = 0.7, .momentum = 0.9, .nesterov = false};
constexpr OuterRule kLocalSgd = {.lr = 1, .momentum = 0, .nesterov = false};

struct Row {
  std::string title;
  RareRun run;
};

RareRun every(int steps, const OuterRule& rule) {
  return train_rarely_updated({.steps = kSteps, .every = steps, .rule = rule}, correct_outer_update);
}

// The runs of the experiment, in the order of its tables; only run once, because they take seconds.
const std::array<Row, 4>& experiment() {
  const RareUpdates gradients{.steps = kSteps, .every = kSteps, .rule = {}, .path = averaged_while_backward_runs()};
  static const std::array<Row, 4> kRows = {
      Row{"gradients, every step", train_rarely_updated(gradients, no_outer_update)},
      Row{"DiLoCo, every 5", every(5, {})}, Row{"DiLoCo, every 20", every(kRarest, {})},
      Row{"local SGD, every 20", every(kRarest, kLocalSgd)}};
  return kRows;
}
const RareRun& rarest() { return experiment()[2].run; }

std::string percent(double share) { return strprintf("%.1f %%", 100 * share); }
std::string duration(const RareRun& run) { return human_ns(static_cast<double>(run.records[0].virtual_ns)); }
double most_sent(const RareRun& run) {
  int64_t most = 0;
  for (const RankRecord& record : run.records) most = std::max(most, record.sent_bytes());
  return static_cast<double>(most);
}
std::string bytes_a_step(const RareRun& run) { return human_bytes(most_sent(run) / kSteps); }
std::string final_loss(const RareRun& run) { return strprintf("%.2f", run.losses.back()); }

// What fits into the time in which replicas that talk every 20 steps take these steps and talk.
TimeWindow one_round() {
  TimeWindow window;
  for (const Event& event : rarest().records[0].trace.events) {
    if (event.kind != EventKind::kCollective) continue;
    window.end_ns = event.virtual_end_ns;
    break;
  }
  return window;
}

// As draw_lanes shows it best: one span of compute for each step, named by the last digit of the step's number.
RankTrace whole_steps(const RankTrace& trace) {
  RankTrace whole = trace;
  whole.events.clear();
  for (int digit = 0; digit < 10; ++digit) whole.names.push_back(std::to_string(digit));
  int64_t last = -1;  // the last step's span
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kCompute && last >= 0 && whole.events[static_cast<size_t>(last)].step == event.step) {
      whole.events[static_cast<size_t>(last)].virtual_end_ns = event.virtual_end_ns;
      continue;
    }
    whole.events.push_back(event);
    if (event.kind != EventKind::kCompute) continue;
    last = std::ssize(whole.events) - 1;
    whole.events.back().name =
        static_cast<decltype(event.name)>(trace.names.size() + static_cast<size_t>(event.step % 10));
  }
  return whole;
}

void show_cost(Screen& screen, std::span<const Row> rows) {
  std::vector<Cells> cells = {{"", "bytes a step", "100 steps take", "exposed", "loss"}};
  for (const auto& [title, run] : rows)
    cells.push_back({title, bytes_a_step(run), duration(run), percent(run.exposed_share()), final_loss(run)});
  screen.table(cells);
}

void show_distance(Screen& screen, std::span<const Row> rows) {
  std::vector<Cells> cells = {{"", "before: models", "apart", "after: models", "apart"}};
  for (const auto& [title, run] : rows) {
    const OuterMoment& last = run.last;
    cells.push_back({title, std::to_string(different(last.before)), strprintf("%.4f", spread(last.before)),
                     std::to_string(different(last.own)), strprintf("%.0f", spread(last.own))});
  }
  screen.table(cells);
}

void draw_beside(Picture& picture, const RareRun& right, const RareRun& yours) {
  picture.paragraph(
      "The weight in which the replicas differ most, at the first outer update: o outer, 0 to 7 own of each replica, "
      "* several of them, < > beyond this line");
  draw_one_weight(picture, right, yours);
  picture.line();
  picture.paragraph("Loss after each outer update; full height: the right one after the first");
  for (const auto& [label, run] : {std::pair{"right", &right}, std::pair{"yours", &yours}}) {
    std::string heights;
    for (const double loss : run->losses) heights += height(loss / right.losses[0] * 7 / 8);
    picture.line("    " + padded(label, 8) + heights + strprintf("  %.4g", run->losses.back()));
    picture.record(label, traces_of(run->records));
  }
}

class HowRarelyMayReplicasTalk final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    std::vector<Figure> figures;
    for (const auto& [title, run] : experiment()) {
      figures.push_back({title + ": bytes a step", bytes_a_step(run)});
      figures.push_back({title + ": exposed", percent(run.exposed_share())});
      figures.push_back({title + ": time", duration(run)});
      figures.push_back({title + ": loss", final_loss(run)});
    }
    return figures;
  }

  Question question() const override {
    return {.text =
                "An all-reduce of all parameters takes 14 times as long as one step's computation. Replicas that train "
                "on their own for 20 steps need one, then compute again. What share of the time do they talk, in "
                "percent?",
            .unit = "%",
            .tolerance = 1.5};
  }

  double run(Screen& screen) const override {
    screen.heading("8 replicas on gigabit Ethernet: how long they compute, how long they talk");
    screen.paragraph("Rank 0. 0 to 9 the steps it computes, · waiting for the link, ▒ all-reduce");
    screen.line();
    const std::span<const Row> rows = experiment();
    for (const auto& [title, run] : rows.first(3)) {  // local SGD takes the same time as DiLoCo
      draw_lanes(screen, title, whole_steps(run.records[0].trace), one_round());
      screen.line();
    }
    show_cost(screen, rows);
    screen.heading("Before and after the last exchange: how many different models, how far apart");
    show_distance(screen, rows);
    screen.line();
    screen.paragraph(
        "Apart: the largest difference of one weight between two replicas. Initial weights have a standard deviation "
        "of "
        "0.125.");
    return 100 * rarest().exposed_share();
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const auto update = exercise.function<decltype(outer_update)>("outer_update");
    const RareUpdates diloco{.steps = 20, .every = 5};
    const RareRun want = train_one_after_the_other(diloco);
    const RareRun got = train_rarely_updated(diloco, update, &exercise);
    draw_beside(picture, train_rarely_updated(diloco, correct_outer_update), got);
    std::vector<CheckRow> rows;
    rows.push_back(exact_row("models after 4 outer updates", 1, different(got.last.own)));
    rows.push_back(error_row("first update: outer parameters", got.first.outer, want.first.outer));
    rows.push_back(error_row("first update: own parameters", got.first.own, want.first.outer));
    rows.push_back(error_row("fourth update: outer parameters", got.last.outer, want.last.outer));
    rows.push_back(error_row("fourth update: momentum", got.last.momentum, want.last.momentum));
    for (const auto& [name, rule] : {std::pair{"plain momentum", kPlainMomentum}, std::pair{"local SGD", kLocalSgd}}) {
      const RareUpdates other{.steps = 2, .every = 1, .rule = rule};
      rows.push_back(error_row(std::string(name) + ": second update",
                               train_rarely_updated(other, update, &exercise).last.outer,
                               train_one_after_the_other(other).last.outer));
    }
    const RankRecord& record = got.records[0];
    const auto updates = static_cast<double>(got.losses.size());
    rows.push_back(
        exact_row("all-reduces an update", 1, static_cast<double>(record.calls(Verb::kAllReduce)) / updates));
    const double bytes = kParameters * 8.0 * 2 * (kReplicas - 1) / kReplicas;
    rows.push_back(exact_row("bytes sent an update and rank", bytes, most_sent(got) / updates));
    return rows;
  }

 private:
  static CheckRow error_row(const std::string& what, const NumberLists& got, const NumberLists& want) {
    const double error = relative_error(got, want[0]);
    return {what, "0 off", strprintf("%.3g off", error), "1e-12 relative", error <= kTolerance};
  }
};

}  // namespace

LessonPtr make_how_rarely_may_replicas_talk() { return std::make_unique<HowRarelyMayReplicasTalk>(); }

}  // namespace ranklab::lesson
