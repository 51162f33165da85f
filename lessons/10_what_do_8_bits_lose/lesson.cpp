// Lesson 10: quantization of normal numbers to FP8 and FP16, with and without a scale; a spike under delayed scaling;
// the learner's rounding compared with every code and with the program's rounding.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"
#include "core/precision/number_format.h"
#include "core/precision/quantization_error.h"
#include "lessons/10_what_do_8_bits_lose/exercise.h"
#include "lessons/10_what_do_8_bits_lose/number_picture.h"
#include "lessons/10_what_do_8_bits_lose/tensors.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr double kSmall = 1e-3, kLarge = 200;

const NumberFormat& e4m3_format() { return find_number_format("e4m3"); }
const NumberFormat& e5m2_format() { return find_number_format("e5m2"); }

std::string percent(double share) { return strprintf("%.3g %%", 100 * share); }
std::string decibels(double db) { return strprintf("%.1f dB", db); }

float amax_of(const std::vector<float>& numbers) {
  float most = 0;
  for (const float number : numbers) most = std::max(most, std::abs(number));
  return most;
}

// One step of the replay: the loss with the previous (delayed) or the current scale.
struct ReplayStep {
  float amax = 0;
  double delayed_scale = 1;
  QuantizationError delayed, current;
};

std::vector<ReplayStep> replay() {
  std::vector<ReplayStep> steps;
  for (int step = 0; step < kReplaySteps; ++step) {
    const std::vector<float> numbers = replay_numbers(step);
    ReplayStep one{.amax = amax_of(numbers), .delayed = {}, .current = {}};
    float past = 0;
    for (size_t i = steps.size() > kHistory ? steps.size() - kHistory : 0; i < steps.size(); ++i)
      past = std::max(past, steps[i].amax);
    if (past > 0) one.delayed_scale = e4m3_format().largest() / static_cast<double>(past);
    one.delayed = measure_quantization(e4m3_format(), numbers, one.delayed_scale);
    one.current = measure_quantization(e4m3_format(), numbers, amax_scale(e4m3_format(), numbers));
    steps.push_back(one);
  }
  return steps;
}

// Tests the value of every code, and values between neighbours and next to their midpoints, with both signs.
int wrong_roundings(double (*round)(double)) {
  int wrong = 0;
  const auto differs = [&](float x) {
    const double want = decode(e4m3_format(), encode(e4m3_format(), x));
    return round(static_cast<double>(x)) != want;
  };
  for (int code = 0; code + 1 < 0x7f; ++code) {
    const auto low = static_cast<float>(decode(e4m3_format(), static_cast<uint8_t>(code)));
    const auto high = static_cast<float>(decode(e4m3_format(), static_cast<uint8_t>(code + 1)));
    const float middle = (low + high) / 2;
    for (const float x : {low, middle, std::nextafter(middle, low), std::nextafter(middle, high)})
      wrong += (differs(x) ? 1 : 0) + (differs(-x) ? 1 : 0);
  }
  for (const float x : {448.0F, 449.0F, 1000.0F, 1e30F}) wrong += (differs(x) ? 1 : 0) + (differs(-x) ? 1 : 0);
  return wrong;
}

class WhatDo8BitsLose final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const std::vector<float> small = normal_numbers(kSmall), large = normal_numbers(kLarge);
    const std::vector<ReplayStep> steps = replay();
    const size_t spike = kSpike;
    return {{"E4M3, deviation 0.001: zero", percent(measure_quantization(e4m3_format(), small).underflow_share())},
            {"E5M2: zero", percent(measure_quantization(e5m2_format(), small).underflow_share())},
            {"E4M3, deviation 200: beyond", percent(measure_quantization(e4m3_format(), large).saturated_share())},
            {"E4M3, scaled", decibels(scaled(e4m3_format(), small).sqnr_db())},
            {"E5M2, scaled", decibels(scaled(e5m2_format(), small).sqnr_db())},
            {"the spike, delayed: beyond", percent(steps[spike].delayed.saturated_share())},
            {"after it: zero", percent(steps[spike + 1].delayed.underflow_share())}};
  }

  Question question() const override {
    return {.text =
                "Gradients are normal numbers with a deviation of 0.001. What share of them, in per cent, becomes "
                "zero when they are rounded to E4M3 as they are?",
            .unit = "%",
            .tolerance = 5};
  }

  double run(Screen& screen) const override {
    screen.heading("Normal numbers of three sizes, and the numbers that 8 bits have");
    draw_ranges(screen, {kSmall, 1.0, kLarge});
    screen.heading("Normal numbers in 8 bits: zero, beyond the largest, signal over error");
    std::vector<Cells> rows = {{"format", "largest", "smallest", "deviation", "zero", "beyond", "SQNR", "SQNR scaled"}};
    for (const char* name : {"e4m3", "e5m2"}) {
      const NumberFormat& format = find_number_format(name);
      for (const double deviation : {kSmall, 1.0, kLarge}) {
        const std::vector<float> numbers = normal_numbers(deviation);
        const QuantizationError error = measure_quantization(format, numbers);
        rows.push_back({name, strprintf("%g", format.largest()), strprintf("%.2g", format.smallest()),
                        strprintf("%g", deviation), percent(error.underflow_share()), percent(error.saturated_share()),
                        decibels(error.sqnr_db()), decibels(scaled(format, numbers).sqnr_db())});
      }
    }
    screen.table(rows);
    screen.paragraph("Scaled: multiplied first so that the largest of them becomes the largest of the format.");
    screen.line();
    screen.heading(strprintf("A spike: the scale of the %d steps before, or of the step itself (E4M3)", kHistory));
    show_replay(screen);
    return 100 * measure_quantization(e4m3_format(), normal_numbers(kSmall)).underflow_share();
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const auto round = exercise.function<decltype(::to_e4m3)>("to_e4m3");
    const auto lost = exercise.function<decltype(::underflow)>("underflow");
    const auto factor = exercise.function<decltype(::factor)>("factor");
    std::vector<CheckRow> rows;
    if (exercise.has("apart")) {
      const auto apart = exercise.function<decltype(::apart)>("apart");
      for (const double x : {5.0, 0.001, 300.0})
        rows.push_back(exact_row(strprintf("warm-up: neighbours around %g", x),
                                 x == 5  ? 0.5
                                 : x < 1 ? 1.0 / 512
                                         : 32,
                                 apart(x)));
    }
    for (const double x : {1.0, 5.2, 0.0175, 17.0, 1.0 / 1024, 3.0 / 1024, -500.0})
      rows.push_back(exact_row(strprintf("to_e4m3(%g)", x),
                               decode(e4m3_format(), encode(e4m3_format(), static_cast<float>(x))), round(x)));
    rows.push_back(exact_row("of 1016 numbers and their middles, wrong", 0, wrong_roundings(round)));
    const std::vector<double> before = {1, 0, -1e-9, 1e-9, 3}, after = {1, 0, -0.0, 0, 3};
    rows.push_back(exact_row("underflow: 0 is not lost, -0 is", 0.5, lost(before, after)));
    rows.push_back(exact_row("factor without a history", 1, factor({})));
    rows.push_back(exact_row("factor after zeros", 1, factor(std::vector<double>{0, 0})));
    rows.push_back(exact_row("factor after 2, 7, 3.5", kLargest / 7, factor(std::vector<double>{2, 7, 3.5})));
    add_replay(rows, round, lost, factor);
    draw_steps(picture, round);
    return rows;
  }

 private:
  static QuantizationError scaled(const NumberFormat& format, const std::vector<float>& numbers) {
    return measure_quantization(format, numbers, amax_scale(format, numbers));
  }

  static void show_replay(Screen& screen) {
    std::vector<Cells> rows = {{"step", "amax", "delayed factor", "beyond", "zero", "current: beyond", "zero"}};
    const std::vector<ReplayStep> steps = replay();
    for (int step = kSpike - 2; step < kReplaySteps; step += step < kSpike + 2 ? 1 : 3) {
      const ReplayStep& one = steps[static_cast<size_t>(step)];
      rows.push_back({std::to_string(step) + (step == kSpike ? " spike" : ""),
                      strprintf("%.2g", static_cast<double>(one.amax)), strprintf("%.3g", one.delayed_scale),
                      percent(one.delayed.saturated_share()), percent(one.delayed.underflow_share()),
                      percent(one.current.saturated_share()), percent(one.current.underflow_share())});
    }
    screen.table(rows);
  }

  // Uses all functions of the learner on the steps after the spike, where nothing may saturate any more.
  static void add_replay(std::vector<CheckRow>& rows, double (*round)(double),
                         double (*lost)(std::span<const double>, std::span<const double>),
                         double (*factor)(std::span<const double>)) {
    std::vector<double> history;  // latest first
    double beyond = 0, worst = 0;
    for (int step = 0; step < kReplaySteps; ++step) {
      const std::vector<float> numbers = replay_numbers(step);
      const double times = factor(std::span(history).first(std::min<size_t>(history.size(), kHistory)));
      std::vector<double> before, after;
      for (const float number : numbers) {
        before.push_back(static_cast<double>(number));
        if (step > 0 && step != kSpike && std::abs(before.back() * times) > 1.3 * kLargest) ++beyond;
        after.push_back(round(before.back() * times) / times);
      }
      if (step > kSpike + kHistory) worst = std::max(worst, lost(before, after));
      history.insert(history.begin(), static_cast<double>(amax_of(numbers)));
    }
    rows.push_back(exact_row("replay: numbers far beyond 448, the spike's step apart", 0, beyond));
    rows.push_back({"replay: most that becomes zero once the spike is forgotten", "below 1 %", percent(worst), "1 %",
                    worst < 0.01});
  }
};

}  // namespace

LessonPtr make_what_do_8_bits_lose() { return std::make_unique<WhatDo8BitsLose>(); }

}  // namespace ranklab::lesson
