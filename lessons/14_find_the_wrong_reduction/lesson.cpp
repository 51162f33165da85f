// Lesson 14: the first wrong tensor of a step, and the missing sum; the learner's answers compared with the museum's.
#include <algorithm>
#include <array>
#include <memory>

#include "core/base/text.h"
#include "lessons/14_find_the_wrong_reduction/wrong_step.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr const char* kShown = "norm-unreduced";

struct Case {
  const char* bug;  // "" without any
  MissingSum missing;
};
constexpr std::array kCases = {Case{kShown, MissingSum::kTp}, Case{"last-stage-unsynced", MissingSum::kDp},
                               Case{"", MissingSum::kNone}};

const char* words(MissingSum sum) { return sum == MissingSum::kTp ? "tp" : sum == MissingSum::kDp ? "dp" : "none"; }

const WrongStep& shown() {
  static const WrongStep kStep = wrong_step(kShown, {.tp = 4, .dp = 1});
  return kStep;
}

size_t count_right(const WrongStep& step) {
  return static_cast<size_t>(
      std::ranges::count_if(step.tensors, [](const NamedTensor& one) { return one.epsilons <= one.allowed; }));
}

size_t count_wrong_ranks(const WrongStep& step) {
  return static_cast<size_t>(
      std::ranges::count_if(step.ranks, [&](const RankGradient& rank) { return rank.there != step.right; }));
}

class FindTheWrongReduction final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const WrongStep& step = shown();
    return {{"ranks with a wrong gradient", std::to_string(count_wrong_ranks(step))},
            {"tensors", std::to_string(step.tensors.size())},
            {"right tensors", std::to_string(count_right(step))},
            {"first wrong", step.tensors[step.first].name}};
  }

  Question question() const override {
    return {
        .text =
            "Four ranks of tp with sequence parallelism each have a quarter of the tokens; the gradient of the last "
            "norm is not summed over them. On how many of the four ranks is it wrong?",
        .unit = "ranks",
        .tolerance = 0.1};
  }

  double run(Screen& screen) const override {
    const WrongStep& step = shown();
    screen.heading("One step on 4 tp ranks, compared with one rank: · right, █ beyond rounding");
    constexpr size_t kColumns = 60;
    for (size_t begin = 0; begin < step.tensors.size(); begin += kColumns) {
      std::string line = "  ";
      for (size_t i = begin; i < std::min(begin + kColumns, step.tensors.size()); ++i)
        line += step.tensors[i].epsilons <= step.tensors[i].allowed ? "·" : screen.paint(Ink::kRed, "█");
      screen.line(line);
    }
    screen.line();
    const NamedTensor& first = step.tensors[step.first];
    screen.paragraph(strprintf("first wrong: %s, %.3g epsilons with a tolerance of %.3g", first.name.c_str(),
                               first.epsilons, first.allowed));
    std::vector<Cells> rows = {{"rank", "tp", "its own sum", "after the step's reductions", "one rank"}};
    for (size_t rank = 0; rank < step.ranks.size(); ++rank) {
      const RankGradient& one = step.ranks[rank];
      rows.push_back({std::to_string(rank), std::to_string(one.tp), strprintf("%.6f", one.own),
                      strprintf("%.6f", one.there), strprintf("%.6f", step.right)});
    }
    screen.table(rows);
    screen.line();
    screen.paragraph(strprintf("loss of the step: %.6f, on one rank %.6f", step.loss, step.loss_of_one));
    return static_cast<double>(count_wrong_ranks(step));
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const auto find_first = exercise.function<decltype(::first_wrong)>("first_wrong");
    const auto find_sum = exercise.function<decltype(::missing_sum)>("missing_sum");
    std::vector<CheckRow> rows;
    picture.line("  A step's tensors in causal order: · right, █ wrong, ^ the one you named");
    for (const Case& one : kCases) {
      const WrongStep step = wrong_step(one.bug, {.tp = 4, .dp = 2});
      const std::string name = *one.bug == '\0' ? "no bug" : one.bug;
      std::vector<Tensor> tensors;
      for (const NamedTensor& tensor : step.tensors)
        tensors.push_back({tensor.name.c_str(), tensor.epsilons, tensor.allowed});
      const size_t named = find_first(tensors);
      const MissingSum sum = find_sum(step.ranks, step.right);
      const auto name_of = [&](size_t i) { return i < step.tensors.size() ? step.tensors[i].name : "nothing"; };
      rows.push_back({name + ": first wrong", name_of(step.first), name_of(named), "exact", named == step.first});
      rows.push_back({name + ": missing sum", words(one.missing), words(sum), "exact", sum == one.missing});
      draw(picture, name, step, named);
      picture.line(strprintf("    missing sum, right %s, yours %s", words(one.missing), words(sum)));
    }
    rows.push_back(no_sum_row(find_sum));
    return rows;
  }

 private:
  // A case with a wrong factor, which no sum explains.
  static CheckRow no_sum_row(decltype(::missing_sum)* find_sum) {
    std::vector<RankGradient> ranks;
    for (int rank = 0; rank < 4; ++rank)
      ranks.push_back({.tp = rank % 2, .dp = rank / 2, .own = 1.0 + rank, .there = 5});
    const MissingSum sum = find_sum(ranks, 10);
    return {"half of all sums: missing sum", words(MissingSum::kNone), words(sum), "exact", sum == MissingSum::kNone};
  }

  // Shows the tensors around the first wrong one and the one that the learner named.
  static void draw(Picture& picture, const std::string& name, const WrongStep& step, size_t named) {
    constexpr size_t kColumns = 66;
    const size_t from = step.first - std::min(step.first, kColumns / 2);
    const size_t to = std::min(step.tensors.size(), from + kColumns);
    std::string line, mark;
    for (size_t i = from; i < to; ++i) {
      line += step.tensors[i].epsilons <= step.tensors[i].allowed ? "·" : "█";
      mark += i == named ? "^" : " ";
    }
    picture.line("  " + name);
    picture.line("    " + line);
    const bool outside = named < step.tensors.size() && (named < from || named >= to);
    const std::string of = named < step.tensors.size() ? step.tensors[named].name : "nothing";
    picture.line("    " +
                 (outside ? "" : mark.substr(0, mark.find('^') == std::string::npos ? 0 : mark.find('^') + 1) + " ") +
                 "you: " + of.substr(0, 40));
  }
};

}  // namespace

LessonPtr make_find_the_wrong_reduction() { return std::make_unique<FindTheWrongReduction>(); }

}  // namespace ranklab::lesson
