// Lesson 11: normal numbers in the blocks of MXFP4 and NVFP4, and gradient descent with gradients rounded to nearest
// and stochastically; the learner's rounding compared with the program's, and its mean with the number.
#include <cmath>

#include "core/base/numbers/philox.h"
#include "core/base/text.h"
#include "core/precision/block_scale.h"
#include "core/precision/quantize.h"
#include "core/precision/recipe.h"
#include "lessons/11_can_4_bits_train/block_picture.h"
#include "lessons/11_can_4_bits_train/exercise.h"
#include "lessons/11_can_4_bits_train/four_bits.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

struct Blocks {
  const char* name;
  TensorPrecision precision;
};

std::vector<Blocks> blocks() {
  TensorPrecision exact = nvfp4_recipe().linear.activation;
  exact.scale = ScaleRule::kFp32;
  TensorPrecision nvfp4 = nvfp4_recipe().linear.activation, mxfp4 = mxfp4_recipe().linear.activation;
  TensorPrecision whole{.format = e2m1()};
  return {{"one scale for all", whole},
          {"MXFP4: 32, power of two", mxfp4},
          {"NVFP4: 16, E4M3", nvfp4},
          {"16, any scale", exact}};
}

std::string percent(double share) { return strprintf("%.2f %%", 100 * share); }
std::string decibels(double db) { return strprintf("%.1f dB", db); }
std::string share(double value) { return strprintf("%.3f", value); }

class Can4BitsTrain final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    std::vector<Figure> result;
    for (const Blocks& one : blocks()) {
      const QuantizationError error = blocks_of_normals(one.precision);
      result.push_back({std::string(one.name) + ": zero", percent(error.underflow_share())});
      result.push_back({std::string(one.name) + ": SQNR", decibels(error.sqnr_db())});
    }
    result.push_back({"left after descent, unrounded", share(descend(Rounding::kNearest, false).back())});
    result.push_back({"... to nearest", share(descend(Rounding::kNearest, true).back())});
    result.push_back({"... stochastically", share(descend(Rounding::kStochastic, true).back())});
    return result;
  }

  Question question() const override {
    return {.text =
                "Normal numbers are rounded to MXFP4: blocks of 32 share a power of two, and each number has 4 bits. "
                "What share of them, in per cent, becomes zero?",
            .unit = "%",
            .tolerance = 1.5};
  }

  double run(Screen& screen) const override {
    screen.heading("32 numbers with one scale, and with two");
    draw_blocks(screen);
    screen.heading("A million normal numbers in 4 bits (E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6)");
    std::vector<Cells> rows = {{"scales", "become zero", "signal over error"}};
    for (const Blocks& one : blocks()) {
      const QuantizationError error = blocks_of_normals(one.precision);
      rows.push_back({one.name, percent(error.underflow_share()), decibels(error.sqnr_db())});
    }
    screen.table(rows);
    screen.line();
    screen.heading("Descent with gradients in MXFP4: how far from the solution, 1 at the start");
    rows = {{"gradients", "step 800", "1600", "2400", "3200", "4000"}};
    const auto add = [&](const std::string& name, const std::vector<double>& distances) {
      Cells cells = {name};
      for (const double one : distances) cells.push_back(share(one));
      rows.push_back(cells);
    };
    add("not rounded", descend(Rounding::kNearest, false));
    add("to nearest", descend(Rounding::kNearest, true));
    add("stochastically", descend(Rounding::kStochastic, true));
    screen.table(rows);
    screen.paragraph(
        "One of the 32 unknowns has inputs 100 times as large as the others, so its gradient dominates their block: "
        "to nearest, all other gradients become zero.");
    return 100 * blocks_of_normals(mxfp4_recipe().linear.activation).underflow_share();
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const auto scale = exercise.function<decltype(::mx_scale)>("mx_scale");
    const auto round = exercise.function<decltype(::nearest)>("nearest");
    const auto draw = exercise.function<decltype(::stochastic)>("stochastic");
    std::vector<CheckRow> rows;
    for (const double most : {6.0, 7.9, 8.0, 1.0, 0.3, 0.0, 1e-4}) {
      const double want =
          static_cast<double>(block_scale(mxfp4_recipe().linear.activation, static_cast<float>(most), 0).scale);
      rows.push_back(exact_row(strprintf("mx_scale of a block with amax %g", most), want,
                               scale(std::vector<double>{most / 3, -most})));
    }
    int wrong = 0;
    for (int i = -800; i <= 800; ++i) {
      const auto x = static_cast<float>(i) / 100;
      if (round(static_cast<double>(x)) != decode(*e2m1(), encode(*e2m1(), x))) ++wrong;
    }
    rows.push_back(exact_row("nearest: of 1601 numbers from -8 to 8, wrong", 0, wrong));
    for (const double x : {0.1, 0.5, 1.7, 2.2, -5.0, -0.3}) rows.push_back(mean_row(x, draw));
    rows.push_back(exact_row("stochastic: a number of the format stays", 3, draw(3, 0.0)));
    rows.push_back(exact_row("stochastic beyond 6", -6, draw(-7, 0.0)));
    rows.push_back(zero_row(scale, round));
    draw_yours(picture, scale, round);
    draw_chances(picture, draw);
    return rows;
  }

 private:
  // Compares the average of many draws with x; it must be within 4 standard deviations of the mean.
  static CheckRow mean_row(double x, double (*draw)(double, double)) {
    constexpr int kDraws = 20'000;
    const RandomStream stream(7, RandomPurpose::kTest, "draws");
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < kDraws; ++i) {
      const double value = draw(x, static_cast<double>(stream.uniform(i)));
      sum += value;
      squares += value * value;
    }
    const double mean = sum / kDraws, deviation = std::sqrt(std::max(0.0, squares / kDraws - mean * mean) / kDraws);
    const bool neighbours = x == 0.5 || deviation > 0;
    return {strprintf("stochastic(%g): mean of %d draws", x, kDraws), strprintf("%.4f", x), strprintf("%.4f", mean),
            "4 sigma", neighbours && std::abs(mean - x) <= 4 * deviation + 1e-12};
  }

  // Tests scale and rounding together, in blocks of 32.
  static CheckRow zero_row(double (*scale)(std::span<const double>), double (*round)(double)) {
    constexpr int64_t kNumbers = 1 << 15, kBlock = 32;
    const std::vector<float> numbers = normal_numbers(kNumbers);
    int64_t zeros = 0, want = 0;
    for (int64_t begin = 0; begin < kNumbers; begin += kBlock) {
      const std::vector<double> block(numbers.begin() + begin, numbers.begin() + begin + kBlock);
      const double by = scale(block);
      float amax = 0;
      for (const double x : block) amax = std::max(amax, std::abs(static_cast<float>(x)));
      const BlockScale ours = block_scale(mxfp4_recipe().linear.activation, amax, 0);
      for (const double x : block) {
        zeros += round(x / by) == 0 ? 1 : 0;
        want += decode(*e2m1(), encode(*e2m1(), static_cast<float>(x) * ours.inverse)) == 0 ? 1 : 0;
      }
    }
    return exact_row("of 32768 normal numbers in blocks of 32, zeros", static_cast<double>(want),
                     static_cast<double>(zeros));
  }
};

}  // namespace

LessonPtr make_can_4_bits_train() { return std::make_unique<Can4BitsTrain>(); }

}  // namespace ranklab::lesson
