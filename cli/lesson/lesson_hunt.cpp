// `ranklab lesson hunt`: find a bug of the museum that is identified only by a number. Answers are stored with the
// progress of lessons.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/common/table.h"
#include "cli/lesson/lesson_actions.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/exhibit_config.h"
#include "core/museum/hunt.h"
#include "core/spec/module_table.h"
#include "lessons/progress.h"

namespace ranklab {
namespace {

using lesson::LessonState;
using lesson::Progress;

// The command of the correct training run, with which the wrong one is compared.
std::string right_command(const Hunt& hunt) {
  return "ranklab train " + join(exhibit_flags(*hunt.exhibit, "FOLDER"), " ") + " --seed " +
         std::to_string(hunt.seed());
}

std::string state_text(const LessonState& state) {
  if (state.passed) return "found";
  return state.attempts > 0 ? strprintf("%d answer%s", state.attempts, state.attempts == 1 ? "" : "s") : "";
}

int list_hunts(const LessonRequest& request) {
  Progress progress = Progress::load();
  Table table({"hunt", "ranks do", "state"});
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (int number = 1; number <= hunt_count(); ++number) {
    const Hunt hunt = hunt_numbered(number);
    const LessonState& state = progress.lessons[hunt.name()];
    table.add({std::to_string(number), join(exhibit_flags(*hunt.exhibit, "FOLDER"), " "), state_text(state)});
    rows.push_back({{"hunt", number}, {"command", right_command(hunt)}, {"passed", state.passed}});
  }
  std::fputs((request.json ? json_result({{"hunts", rows}}) : table.for_stdout()).c_str(), stdout);
  return 0;
}

int describe(const Hunt& hunt, const LessonRequest& request) {
  const std::string right = right_command(hunt), wrong = right + " --inject " + hunt.name();
  if (request.json) {
    std::fputs(json_result({{"hunt", hunt.number}, {"right", right}, {"wrong", wrong}}).c_str(), stdout);
    return 0;
  }
  const Style style = style_for(stdout);
  std::printf("%s\n\n", style.bold(strprintf("Hunt %d of %d", hunt.number, hunt_count())).c_str());
  if (*hunt.exhibit->before != '\0')
    std::printf("First  ranklab train %s --seed %d\n", join(flags_before(*hunt.exhibit, "FOLDER"), " ").c_str(),
                hunt.seed());
  std::printf("Right  %s\nWrong  %s\n\n", right.c_str(), wrong.c_str());
  std::printf(
      "One thing is wrong in the second. Which module or parameter has the first wrong tensor (also: batch, "
      "grad_norm,\n"
      "loss_scale), and the ranks of which axis is it about (none: no axis)?\n\n"
      "  ranklab lesson hunt %d --module layers.0.mlp --axis tp\n  ranklab lesson hunt %d --hint\n\n"
      "Worth a look: --dump 'layers.0.*' --at 'step=0 rank=0,1', --sentinel-mode debug --sentinel-drift-interval 1,\n"
      "ranklab debug, ranklab viz --compare; ranklab parity names the first wrong tensor.\n",
      hunt.number, hunt.number);
  return 0;
}

// A name that the hunted model does not have is a slip, and no answer.
void check_module(const Hunt& hunt, const std::string& module) {
  const std::vector<std::string> others = {"batch", "grad_norm", "loss_scale"};
  const ModelConfig model = config_of_flags(exhibit_flags(*hunt.exhibit, "FOLDER")).model;
  RANKLAB_CHECK(std::ranges::find(others, module) != others.end() || names_part_of_model(model, module),
                ErrorKind::kInvalidArgument, .where = "hunt", .what = "the model has no such module or parameter",
                .got = quote(module), .want = "a name as in layers.0.mlp, or batch, grad_norm or loss_scale",
                .fix = "see their names in `ranklab train ... --dump '*'`, or in the tensors of `ranklab debug`");
}

int answer(const Hunt& hunt, const LessonRequest& request) {
  check_module(hunt, request.module);
  const HuntGrade grade = ranklab::grade(hunt, request.module, request.axis);
  Progress progress = Progress::load();
  LessonState& state = progress.lessons[hunt.name()];
  ++state.attempts;
  state.passed = state.passed || grade.passed();
  progress.save();
  constexpr int kNotFound = 4;
  if (request.json) {
    std::fputs(json_result({{"hunt", hunt.number}, {"module", grade.module}, {"axis", grade.axis}}).c_str(), stdout);
    return grade.passed() ? 0 : kNotFound;
  }
  const Style style = style_for(stdout);
  const auto line = [&](const char* what, const std::string& given, bool right) {
    std::printf("  %-7s %s: %s\n", what, given.c_str(), (right ? style.green("right") : style.red("no")).c_str());
  };
  line("module", request.module, grade.module);
  line("axis", request.axis, grade.axis);
  if (!grade.passed()) return kNotFound;
  std::printf("\nIt is %s: %s.\n  ranklab museum show %s\n", hunt.exhibit->name, hunt.exhibit->title,
              hunt.exhibit->name);
  return 0;
}

}  // namespace

int lesson_hunt(const LessonRequest& request) {
  const bool answers = !request.module.empty() || !request.axis.empty();
  RANKLAB_CHECK(request.hunt != 0 || !(answers || request.hint), ErrorKind::kInvalidArgument,
                .where = "ranklab lesson hunt", .what = "of which hunt?", .got = "no number",
                .want = "1 to " + std::to_string(hunt_count()), .fix = "put it first: `ranklab lesson hunt 7 ...`");
  if (request.hunt == 0) return list_hunts(request);
  const Hunt hunt = hunt_numbered(request.hunt);
  if (request.hint) {
    const std::string hint(name(hunt.exhibit->kind));
    std::printf("%s", (request.json ? json_result({{"hunt", hunt.number}, {"hint", hint}}) : hint + "\n").c_str());
    return 0;
  }
  if (!answers) return describe(hunt, request);
  RANKLAB_CHECK(!request.module.empty() && !request.axis.empty(), ErrorKind::kInvalidArgument,
                .where = "ranklab lesson hunt", .what = "half an answer",
                .got = request.module.empty() ? "--axis alone" : "--module alone", .want = "--module and --axis",
                .fix = "give both");
  return answer(hunt, request);
}

}  // namespace ranklab
