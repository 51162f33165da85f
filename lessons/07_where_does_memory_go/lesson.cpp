// Lesson 7: memory by kind in a run with mixed precision, and a layer's activations compared with the best-known
// formula; the learner's computation compared with the memory books of runs.
#include <algorithm>
#include <array>
#include <vector>

#include "core/base/text.h"
#include "lessons/07_where_does_memory_go/measured_model.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr Model kTiny = {.layers = 4, .hidden = 128, .heads = 8, .ffn = 352, .vocab = 256};  // gpt_tiny
constexpr std::array<Model, 3> kUnseen = {{{.layers = 2, .hidden = 64, .heads = 4, .ffn = 160, .vocab = 512},
                                           {.layers = 3, .hidden = 96, .heads = 2, .ffn = 96, .vocab = 256},
                                           {.layers = 1, .hidden = 128, .heads = 16, .ffn = 512, .vocab = 1024}}};

double each(int64_t bytes, const MeasuredModel& run) {
  return static_cast<double>(bytes) / static_cast<double>(run.parameters);
}

double in_sbh(int64_t layer_bytes, const Model& model) {
  return static_cast<double>(layer_bytes) / static_cast<double>(kMemorySequence * kMemoryBatch * model.hidden);
}

// The two terms of the formula of arXiv 2205.05198, in units of s b h: 5 a s / h for what attention keeps of the
// scores, and the rest.
double scores_of_2022(const Model& model) {
  return 5.0 * static_cast<double>(model.heads * kMemorySequence) / static_cast<double>(model.hidden);
}
constexpr double kRestOf2022 = 34;

double state_bytes_each(const MeasuredModel& run) {
  return each(run.parameter_bytes + run.gradient_bytes + run.optimizer_bytes, run);
}

std::string bar(int64_t bytes, int64_t whole) {
  constexpr int64_t kColumns = 40;
  return repeated("█", static_cast<int>((bytes * kColumns + whole / 2) / whole));
}

std::string number(double value) { return strprintf("%.3g", value); }

CheckRow exact_row(const std::string& what, int64_t expected, int64_t got) {
  return {what, std::to_string(expected), std::to_string(got), "exact", got == expected};
}

struct Kind {
  const char* name;
  int64_t yours, right;
};

void draw_kinds(Screen& picture, const std::vector<Kind>& kinds) {
  int64_t most = 1;
  for (const Kind& kind : kinds) most = std::max({most, kind.right, std::min(kind.yours, 2 * kind.right)});
  std::vector<Cells> rows = {{"gpt_tiny, bytes", "", ""}};
  for (const Kind& kind : kinds) {
    const auto drawn = [&](int64_t bytes) {
      const bool shown = bytes >= 0 && bytes <= most;
      return (shown ? bar(bytes, most) : repeated("█", 40) + (bytes > most ? "▶" : "?")) + "  " + std::to_string(bytes);
    };
    rows.push_back({kind.name, "right", drawn(kind.right)});
    rows.push_back({"", "yours", drawn(kind.yours)});
  }
  picture.table(rows);
}

class WhereDoesMemoryGo final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const MeasuredModel run = measure_model(kTiny);
    return {{"bytes of a parameter", number(each(run.parameter_bytes, run))},
            {"of its gradient", number(each(run.gradient_bytes, run))},
            {"of its optimizer states", number(each(run.optimizer_bytes, run))},
            {"together", number(state_bytes_each(run))},
            {"a layer keeps, in s b h", number(in_sbh(run.layer_bytes, kTiny))},
            {"the block of 2022, in s b h", number(kRestOf2022 + scores_of_2022(kTiny))},
            {"of them for scores", number(scores_of_2022(kTiny))}};
  }

  Question question() const override {
    return {.text =
                "A model trains in bf16 with AdamW, whose states are fp32. How many bytes does each of its parameters "
                "take, with its gradient and all its optimizer states?",
            .unit = "bytes",
            .tolerance = 1e-3};
  }

  double run(Screen& screen) const override {
    const MeasuredModel run = measure_model(kTiny);
    screen.heading(strprintf("gpt_tiny on one rank, bf16, AdamW: %ld parameters", static_cast<long>(run.parameters)));
    const std::pair<const char*, int64_t> states[] = {{"parameters", run.parameter_bytes},
                                                      {"gradients", run.gradient_bytes},
                                                      {"optimizer", run.optimizer_bytes},
                                                      {"activations", run.peak_activations}};
    std::vector<Cells> rows = {{"kind", "bytes", "a parameter", ""}};
    for (const auto& [kind, bytes] : states) {
      const bool state = bytes != run.peak_activations;
      rows.push_back({kind, std::to_string(bytes), state ? number(each(bytes, run)) : "",
                      screen.paint(state ? Ink::kCyan : Ink::kYellow, bar(bytes, run.peak_bytes))});
    }
    screen.table(rows);
    screen.paragraph(
        strprintf("Activations are those at the peak, with microbatches of %ld x %ld tokens; gradients are there then "
                  "because an earlier microbatch has made them.",
                  static_cast<long>(kMemoryBatch), static_cast<long>(kMemorySequence)));
    screen.line();
    screen.heading("What one layer keeps of a microbatch: s b h times");
    screen.table({{"", "in s b h", "bytes"},
                  {"this layer, measured", number(in_sbh(run.layer_bytes, kTiny)), std::to_string(run.layer_bytes)},
                  {"GPT block of 2022: 34", number(kRestOf2022), ""},
                  {"   and 5 a s / h", number(scores_of_2022(kTiny)), ""}});
    return state_bytes_each(run);
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const auto count = exercise.function<decltype(::parameters)>("parameters");
    const auto states = exercise.function<decltype(::state_bytes)>("state_bytes");
    const auto layer = exercise.function<decltype(::layer_bytes)>("layer_bytes");
    std::vector<CheckRow> rows;
    for (size_t i = 0; i <= kUnseen.size(); ++i) {
      const Model& model = i == 0 ? kTiny : kUnseen[i - 1];
      const std::string name = i == 0 ? "gpt_tiny" : "model " + std::to_string(i);
      const MeasuredModel run = measure_model(model);
      rows.push_back(exact_row(name + ": parameters", run.parameters, count(model)));
      rows.push_back(exact_row(name + ": bytes of parameters", run.parameter_bytes, states(model, State::kParameters)));
      rows.push_back(exact_row(name + ": bytes of gradients", run.gradient_bytes, states(model, State::kGradients)));
      rows.push_back(exact_row(name + ": bytes of optimizer", run.optimizer_bytes, states(model, State::kOptimizer)));
      rows.push_back(
          exact_row(name + ": a layer keeps", run.layer_bytes, layer(model, kMemoryBatch * kMemorySequence)));
      if (i > 0) continue;
      draw_kinds(picture, {{"parameters", states(model, State::kParameters), run.parameter_bytes},
                           {"gradients", states(model, State::kGradients), run.gradient_bytes},
                           {"optimizer", states(model, State::kOptimizer), run.optimizer_bytes},
                           {"a layer keeps", layer(model, kMemoryBatch * kMemorySequence), run.layer_bytes}});
    }
    return rows;
  }
};

}  // namespace

LessonPtr make_where_does_memory_go() { return std::make_unique<WhereDoesMemoryGo>(); }

}  // namespace ranklab::lesson
