// The subcommands of `ranklab lesson` and their options.
#include <memory>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/command_module.h"
#include "cli/lesson/lesson_actions.h"
#include "lessons/lesson_list.h"

namespace ranklab {
namespace {

struct LessonVerb {
  const char* name;
  const char* about;
  int (*action)(const LessonRequest&);
  bool takes_lesson;
};

constexpr LessonVerb kVerbs[] = {
    {"list", "list all lessons and your progress", lesson_list_all, false},
    {"start", "read the lesson and get your copy of the exercise", lesson_start, true},
    {"run", "run the experiment", lesson_run, true},
    {"check", "compile your exercise and compare it with the unsplit reference", lesson_check, true},
    {"hint", "show the next hint", lesson_hint, true},
    {"solution", "show the solution, once you have passed", lesson_solution, true},
    {"reset", "start the exercise over; your file is kept", lesson_reset, true},
    {"progress", "list the lessons you have passed", lesson_progress, false},
    {"watch", "check again whenever you save the file", lesson_watch, true},
    {"hunt", "find a historical bug of distributed training: its module and its axis", lesson_hunt, false},
};

void add_options(CommandLine& app, const LessonVerb& verb, LessonRequest& request) {
  const std::string name = verb.name;
  if (verb.takes_lesson) {
    std::vector<std::pair<std::string, std::string>> lessons;
    for (const lesson::LessonRow& row : lesson::lesson_list()) lessons.emplace_back(row.slug, row.title);
    app.add_option("lesson", request.lesson, "number or name (default: the current one)")->words(std::move(lessons));
  }
  if (name == "start" || name == "run") {
    const auto take = [&request](const std::string& text) {
      check_prediction(text);  // here, since an empty text would be no prediction afterwards
      request.predict = text;
    };
    app.add_option_function("--predict", take, "your answer to the lesson's question");
  }
  if (name == "check" || name == "watch") {
    app.add_option("--file", request.file, "check this file instead of your copy");
    app.add_option("--timeout", request.timeout_s, "seconds your code may run")
        ->range(0.1, 3600.0)
        ->capture_default_str();
  }
  if (name == "hunt") {
    app.add_option("number", request.hunt, "number of the hunt (default: list all)");
    app.add_option("--module", request.module, "your answer: the first wrong module or parameter");
    app.add_option("--axis", request.axis, "your answer: the mesh axis, tp, cp, dp, pp, ep or none")
        ->words({{"tp", ""}, {"cp", ""}, {"dp", ""}, {"pp", ""}, {"ep", ""}, {"none", ""}});
    app.add_flag("--hint", request.hint, "show the kind of bug");
  }
  if (name == "list" || name == "progress" || name == "check" || name == "hunt")
    app.add_flag("--json", request.json, "print one JSON object");
  if (name == "solution") app.add_flag("--force", request.force, "show it anyway");
}

}  // namespace

CommandAction setup_lesson(CommandLine& app) {
  app.require_subcommand(0, 1);
  app.footer("Examples:\n  ranklab lesson start\n  ranklab lesson check\n  ranklab lesson run all_reduce --predict 2");
  auto request = std::make_shared<LessonRequest>();
  std::vector<std::pair<CommandLine*, int (*)(const LessonRequest&)>> subs;
  for (const LessonVerb& verb : kVerbs) {
    CommandLine* sub = app.add_subcommand(verb.name, verb.about);
    add_options(*sub, verb, *request);
    subs.emplace_back(sub, verb.action);
  }
  return [subs, request] {
    for (const auto& [sub, action] : subs) {
      if (sub->parsed()) return action(*request);
    }
    return lesson_list_all(*request);
  };
}

}  // namespace ranklab

RANKLAB_MODULE_COMMAND(lesson)
