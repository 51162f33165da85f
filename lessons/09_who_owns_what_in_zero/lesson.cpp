// Lesson 9: what each ZeRO stage holds and sends; the learner's shards compared with one rank that keeps everything.
#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "lessons/09_who_owns_what_in_zero/sharded_run.h"
#include "lessons/glyphs.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr double kTolerance = 1e-12;
const ZeroModel kOdd{.outside = 9, .inside = 7, .tied = true};  // 63 and 49 elements on 8 ranks, one layer used twice

// Bytes in mixed precision: 2 per parameter, 2 per gradient, 12 for the fp32 master weight and moments.
double bytes_each(const ZeroRun& run, const ZeroModel& model) {
  const double bytes = 2.0 * static_cast<double>(run.parameters) + 2.0 * static_cast<double>(run.gradient_numbers) +
                       12.0 * static_cast<double>(run.moments);
  return bytes / static_cast<double>(model.parameters());
}

double sent_each(const ZeroRun& run, const ZeroModel& model) {
  return static_cast<double>(run.sent_numbers()) / static_cast<double>(model.parameters());
}

double worst(const std::vector<std::vector<double>>& got, const std::vector<std::vector<double>>& want) {
  double error = 0;
  for (size_t layer = 0; layer < want.size(); ++layer) {
    double scale = 0, most = 0;
    for (size_t i = 0; i < want[layer].size(); ++i) {
      const double off = std::abs(got[layer][i] - want[layer][i]);
      if (!(off <= most)) most = off;  // keeps a NaN
      scale = std::max(scale, std::abs(want[layer][i]));
    }
    if (!(most / scale <= error)) error = most / scale;
  }
  return error;
}

// One gather for each of the three uses in forward and backward, and one reduce-scatter per layer; includes padding.
int64_t expected_numbers(const ZeroModel& model) {
  int64_t padded = 0, uses = 0;
  const std::vector<int64_t> layers = model.layers();
  const auto with_padding = [](int64_t elements) { return (elements + kZeroRanks - 1) / kZeroRanks * kZeroRanks; };
  for (const int64_t elements : layers) padded += with_padding(elements);
  uses = 2 * (with_padding(layers[0]) + with_padding(layers[1]) + with_padding(layers[model.tied ? 0 : 2]));
  return (padded + uses) * (kZeroRanks - 1) / kZeroRanks;
}

// The elements of a layer that each rank keeps, found by passing the numbers 1, 2, 3, ... to shard().
std::vector<std::vector<size_t>> kept_by(const ShardPath& path, size_t elements) {
  std::vector<double> whole(elements);
  for (size_t i = 0; i < elements; ++i) whole[i] = static_cast<double>(i) + 1;
  std::vector<std::vector<size_t>> kept(kZeroRanks);
  for (int rank = 0; rank < kZeroRanks; ++rank) {
    Shard mine{.elements = elements, .parameters = {}, .gradients = {}};
    path.shard(rank, kZeroRanks, whole, mine);
    for (const double value : mine.parameters)
      if (value >= 1) kept[static_cast<size_t>(rank)].push_back(static_cast<size_t>(value) - 1);
  }
  return kept;
}

// A mark for each element: · for correct, # for wrong.
std::string marks(const std::vector<double>& got, const std::vector<double>& want) {
  double scale = 0;
  for (const double value : want) scale = std::max(scale, std::abs(value));
  std::string text;
  for (size_t i = 0; i < want.size(); ++i)
    text += i < got.size() && std::abs(got[i] - want[i]) <= kTolerance * scale ? "·" : "#";
  return text;
}

void draw_shards(Screen& picture, const ShardPath& path, const ZeroRun& got, const ZeroRun& want) {
  const auto elements = static_cast<size_t>(kOdd.layers()[0]);
  picture.line(strprintf("  A layer of %zu elements: which rank keeps which (· nobody, * several)", elements));
  picture.line("    right      " + owners(kept_by(straight_shards(), elements), elements));
  picture.line("    yours      " + owners(kept_by(path, elements), elements));
  picture.line("  Your gradients of it, · as on one rank, # not, and its weights after 10 steps");
  picture.line("    gradients  " + marks(got.gradients[0], want.gradients[0]));
  picture.line("    weights    " + marks(got.weights[0], want.weights[0]));
}

// Which eighths of parameters, gradients and optimizer states each of 8 ranks has.
Cells stage_picture(const Screen& screen, int stage) {
  constexpr const char* kAbove = "   parameters gradients  optimizer";
  Cells lines = {strprintf("stage %d", stage), kAbove};
  for (int rank = 0; rank < kZeroRanks; ++rank) {
    std::string text = strprintf("r%d ", rank);
    for (const int from_stage : {3, 2, 1}) {  // sharded from this stage on: parameters, gradients, optimizer
      const std::string mine = repeated("░", rank) + "█" + repeated("░", kZeroRanks - 1 - rank);
      text += padded(screen.paint(Ink::kYellow, stage < from_stage ? repeated("█", kZeroRanks) : mine), 11);
    }
    lines.push_back(text);
  }
  return lines;
}

class WhoOwnsWhat final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const ZeroModel model;
    std::vector<Figure> all;
    for (int stage = 0; stage <= 3; ++stage) {
      const ZeroRun run = train_sharded(model, kZeroRanks, stage, straight_shards());
      const std::string name = "stage " + std::to_string(stage);
      all.push_back({name + ", bytes a parameter", strprintf("%.4g", bytes_each(run, model))});
      all.push_back({name + ", sent a step in P", strprintf("%.4g", sent_each(run, model))});
      if (stage == 3) {
        const double share = static_cast<double>(run.most_whole) / static_cast<double>(model.parameters());
        all.push_back({"most of the parameters at once, stage 3", strprintf("%.1f %%", 100 * share)});
      }
    }
    return all;
  }

  Question question() const override {
    return {
        .text =
            "Plain data parallelism on 8 ranks sends 1.75 times the parameters a step (the all-reduce of lesson 1). "
            "In stage 3 every layer is gathered for forward and again for backward, and its gradient is "
            "reduce-scattered. How many times the parameters does a rank send?",
        .unit = "P",
        .tolerance = 0.001};
  }

  double run(Screen& screen) const override {
    const ZeroModel model;
    screen.heading("8 ranks, 10 AdamW steps: what a rank holds at the update, and what it sends");
    std::vector<Cells> rows = {{"stage", "params", "grads", "moments", "bytes each", "sent", "at once", "loss"}};
    double answer = 0;
    for (int stage = 0; stage <= 3; ++stage) {
      const ZeroRun one = train_sharded(model, kZeroRanks, stage, straight_shards());
      const auto of = [&](int64_t numbers) {
        return strprintf("%.4g P", static_cast<double>(numbers) / static_cast<double>(model.parameters()));
      };
      rows.push_back({std::to_string(stage), of(one.parameters), of(one.gradient_numbers), of(one.moments),
                      strprintf("%.4g", bytes_each(one, model)), strprintf("%.4g P", sent_each(one, model)),
                      of(one.most_whole), strprintf("%.6f", one.losses.back())});
      answer = sent_each(one, model);
    }
    screen.side_by_side(
        {stage_picture(screen, 0), stage_picture(screen, 1), stage_picture(screen, 2), stage_picture(screen, 3)});
    screen.paragraph("Which eighths of each layer a rank keeps from one use to the next: █ has it, ░ does not.");
    screen.line();
    screen.table(rows);
    screen.line();
    screen.paragraph(
        "Bytes each: of a parameter in mixed precision, 2 for it, 2 for its gradient, 12 for an fp32 master and "
        "AdamW's "
        "two moments. At once: whole layers that are there together. All four train the same model: the losses are "
        "equal.");
    return answer;
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const ShardPath path{exercise.function<decltype(shard)>("shard"), exercise.function<decltype(gather)>("gather"),
                         exercise.function<decltype(release)>("release"),
                         exercise.function<decltype(reduce)>("reduce")};
    const ZeroRun want = train_sharded(kOdd, 1, 0, straight_shards());
    const ZeroRun got = train_sharded(kOdd, kZeroRanks, 3, path, &exercise);
    std::vector<CheckRow> rows;
    rows.push_back({"lengths of shards, layers, gradients", "all right",
                    strprintf("%ld wrong", static_cast<long>(got.wrong_lengths)), "exact", got.wrong_lengths == 0});
    rows.push_back({"gathered layers", "as they were", strprintf("%.3g off", got.gather_error), "every bit",
                    got.gather_error == 0});
    rows.push_back({"numbers left after release", "0", std::to_string(got.left_behind), "exact", got.left_behind == 0});
    add(rows, "gradients of step 0, 8 ranks", worst(got.gradients, want.gradients));
    add(rows, "parameters after 10 AdamW steps", worst(got.weights, want.weights));
    add(rows, "loss of the last step", std::abs(got.losses.back() - want.losses.back()) / want.losses.back());
    const int64_t sent = expected_numbers(kOdd);
    rows.push_back({"numbers sent a step and rank", std::to_string(sent), std::to_string(got.sent_numbers()), "exact",
                    got.sent_numbers() == sent});
    draw_shards(picture, path, got, want);
    picture.record("yours", traces_of(got.records));
    picture.record("right", traces_of(train_sharded(kOdd, kZeroRanks, 3, straight_shards()).records));
    return rows;
  }

 private:
  static void add(std::vector<CheckRow>& rows, const std::string& what, double error) {
    rows.push_back({what, "0 off", strprintf("%.3g off", error), "1e-12 relative", error <= kTolerance});
  }
};

}  // namespace

LessonPtr make_who_owns_what_in_zero() { return std::make_unique<WhoOwnsWhat>(); }

}  // namespace ranklab::lesson
