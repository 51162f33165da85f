// Lesson 8: a stack of layers with no, selective or full recomputation; the learner's choice for uneven stacks compared
// with the optimum, run on real layers.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "core/base/text.h"
#include "lessons/08_can_compute_buy_memory/layer_stack.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr double kPeakTolerance = 0.05;
const Widths kEven(8, 512);

struct Case {
  const char* name;
  Widths widths;
  double share;  // relative to the peak without recomputation
};
std::vector<Case> cases() {
  const Widths uneven = {128, 512, 128, 1024, 128, 512, 256, 128}, wide_last = {128, 128, 256, 128, 256, 1024};
  return {{"even, 3/4", kEven, 0.75},    {"uneven, 9/10", uneven, 0.9},       {"uneven, 7/10", uneven, 0.7},
          {"uneven, 6/10", uneven, 0.6}, {"wide last, 3/4", wide_last, 0.75}, {"nothing to do", {256, 128}, 1.0}};
}

// A choice that can be passed as a span of bool, which std::vector<bool> cannot.
class Choice {
 public:
  explicit Choice(size_t layers) : size_(layers), recompute_(std::make_unique<bool[]>(layers)) {}
  std::span<bool> span() { return {recompute_.get(), size_}; }
  std::vector<bool> list() const { return std::vector<bool>(recompute_.get(), recompute_.get() + size_); }

 private:
  size_t size_;
  std::unique_ptr<bool[]> recompute_;
};

// The choice within the limit that recomputes the least work.
Choice best_choice(const std::vector<Layer>& layers, double limit) {
  double least = std::numeric_limits<double>::infinity();
  size_t best = 0;
  Choice choice(layers.size());
  const auto take = [&](size_t bits) {
    for (size_t i = 0; i < layers.size(); ++i) choice.span()[i] = (bits >> i & 1) != 0;
  };
  for (size_t bits = 0; bits < size_t{1} << layers.size(); ++bits) {
    take(bits);
    if (peak_bytes(layers, choice.span()) > limit || extra_work(layers, choice.span()) >= least) continue;
    best = bits;
    least = extra_work(layers, choice.span());
  }
  take(best);
  return choice;
}

// Draws a block for each layer, as wide as its MLP, and the memory peak next to the limit.
void draw_choice(Screen& picture, const std::string& title, const Widths& widths, const std::vector<Layer>& layers,
                 Choice& choice, double limit) {
  std::string blocks;
  for (size_t i = 0; i < widths.size(); ++i)
    blocks += repeated(choice.span()[i] ? "░" : "█", static_cast<int>(widths[i] / 128)) + " ";
  const double peak = peak_bytes(layers, choice.span());
  constexpr int kLimitColumns = 14;
  const int columns = static_cast<int>(std::ceil(peak / limit * kLimitColumns));
  const std::string within = repeated("▒", std::min(columns, kLimitColumns));
  picture.line("  " + padded(title, 8) + padded(blocks, 42) + padded(within, kLimitColumns) + "|" +
               repeated("▒", std::max(0, columns - kLimitColumns)));
}

enum class Pattern { kNone, kEachSecond, kAll };
std::vector<bool> pattern(Pattern which, size_t layers) {
  std::vector<bool> recompute(layers, which == Pattern::kAll);
  for (size_t i = 1; which == Pattern::kEachSecond && i < layers; i += 2) recompute[i] = true;
  return recompute;
}

double slowdown(const StackRun& run, const StackRun& plain) {
  return static_cast<double>(run.time_ns) / static_cast<double>(plain.time_ns);
}

std::string mega(double flops) { return strprintf("%.0f MFLOP", flops * 1e-6); }
std::string bytes_text(double bytes) { return human_bytes(bytes); }

class CanComputeBuyMemory final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const StackRun none = even(Pattern::kNone), second = even(Pattern::kEachSecond), all = even(Pattern::kAll);
    return {{"time, all recomputed", strprintf("%.2f", slowdown(all, none))},
            {"time, each second recomputed", strprintf("%.2f", slowdown(second, none))},
            {"peak, keeping all", bytes_text(static_cast<double>(none.peak_bytes))},
            {"peak, all recomputed", bytes_text(static_cast<double>(all.peak_bytes))}};
  }

  Question question() const override {
    return {.text =
                "A stack of equal layers recomputes every layer when backward comes to it. How many times as long "
                "do its forward and backward take together, compared with keeping everything?",
            .unit = "times",
            .tolerance = 0.03};
  }

  double run(Screen& screen) const override {
    const StackRun none = even(Pattern::kNone);
    double answer = 0;
    screen.heading("8 equal layers, forward and backward of one microbatch");
    std::vector<Cells> rows = {{"recomputed", "fullest moment", "", "time", "gradients"}};
    for (const auto& [title, which] : {std::pair<std::string, Pattern>{"none", Pattern::kNone},
                                       {"each second", Pattern::kEachSecond},
                                       {"all", Pattern::kAll}}) {
      const StackRun one = even(which);
      const auto columns = static_cast<int>(20 * one.peak_bytes / none.peak_bytes);
      answer = slowdown(one, none);
      rows.push_back({title, bytes_text(static_cast<double>(one.peak_bytes)),
                      screen.paint(Ink::kYellow, repeated("█", columns)), strprintf("%.2f x", answer),
                      one.gradients == none.gradients ? screen.paint(Ink::kGreen, "the same bits")
                                                      : screen.paint(Ink::kRed, "they differ")});
    }
    screen.table(rows);
    screen.line();
    screen.heading("What one layer costs, by the width of its MLP");
    std::vector<Cells> costs = {{"width", "its input", "it keeps", "backward, on top", "its forward"}};
    for (const int64_t width : {128, 512, 1024}) {
      const Layer layer = measure_layers({width})[0];
      costs.push_back({std::to_string(width), bytes_text(layer.input_bytes), bytes_text(layer.kept_bytes),
                       bytes_text(layer.backward_bytes), mega(layer.forward_work)});
    }
    screen.table(costs);
    return answer;
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const auto choose = exercise.function<decltype(::place)>("place");
    std::vector<CheckRow> rows;
    picture.line("  A block for each layer: █ kept, ░ computed twice");
    for (const Case& one : cases()) {
      const std::vector<Layer> layers = measure_layers(one.widths);
      const std::vector<bool> nothing = pattern(Pattern::kNone, layers.size());
      const StackRun plain = run_stack(one.widths, nothing);
      Choice choice(layers.size());
      const double limit = one.share * peak_bytes(layers, choice.span());
      choose(layers, limit, choice.span());
      const StackRun chosen = run_stack(one.widths, choice.list());
      add_rows(rows, one.name, layers, limit, choice, chosen);
      const bool same = chosen.gradients == plain.gradients;
      rows.push_back({std::string(one.name) + ": gradients", "the same bits", same ? "the same bits" : "they differ",
                      "every bit", same});
      picture.line("  " + padded(one.name, 50) + "fullest moment, | the limit");
      draw_choice(picture, "  yours", one.widths, layers, choice, limit);
      Choice best = best_choice(layers, limit);
      draw_choice(picture, "  right", one.widths, layers, best, limit);
    }
    return rows;
  }

 private:
  static StackRun even(Pattern which) { return run_stack(kEven, pattern(which, kEven.size())); }

  static void add_rows(std::vector<CheckRow>& rows, const std::string& name, const std::vector<Layer>& layers,
                       double limit, Choice& choice, const StackRun& chosen) {
    const double peak = peak_bytes(layers, choice.span()), work = extra_work(layers, choice.span());
    const double least = extra_work(layers, best_choice(layers, limit).span());
    const auto measured = static_cast<double>(chosen.peak_bytes);
    rows.push_back({name + ": fullest moment", "<= " + bytes_text(limit), bytes_text(peak), "at most", peak <= limit});
    rows.push_back({name + ": computed twice", mega(least), mega(work), "the least there is", work <= least});
    rows.push_back({name + ": measured on the layers", bytes_text(peak), bytes_text(measured), "within 5 %",
                    std::abs(measured / peak - 1) <= kPeakTolerance});
  }
};

}  // namespace

LessonPtr make_can_compute_buy_memory() { return std::make_unique<CanComputeBuyMemory>(); }

}  // namespace ranklab::lesson
