#include "lessons/grade.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "core/base/exhausted.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "lessons/compile.h"
#include "lessons/crash_place.h"
#include "lessons/exercise_library.h"
#include "lessons/picture.h"
#include "lessons/sandbox.h"

namespace ranklab::lesson {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CheckRow, what, expected, measured, tolerance, passed)

namespace {

using Json = nlohmann::json;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// An error in a form for learners: one line for each rank of a deadlock, without the group's call numbers, and with
// advice only about functions that lesson_api.h has.
std::vector<std::string> details_of(const ErrorText& text) {
  static const std::regex kGroupCall(R"( \([a-z-]+\[[0-9 ]+\][^)]*\))");
  static const std::regex kOurCalls(R"(, called by (std::_Function_handler|libranklab_|ranklab::)[^;|\n]*)");
  const std::string arrow = " -> for ";
  std::vector<std::string> lines;
  std::string got = std::regex_replace(text.got, kGroupCall, "");
  // Of the calls that a hung rank is in, only those of the learner's code are shown.
  got = std::regex_replace(got, kOurCalls, "");
  for (size_t at = 0; (at = got.find(arrow)) != std::string::npos;) {
    lines.push_back(got.substr(0, at));
    got = "for " + got.substr(at + arrow.size());
  }
  std::istringstream last(got);
  for (std::string line; std::getline(last, line);) lines.push_back(line);
  if (!text.want.empty()) lines.push_back("wanted: " + text.want);
  const std::string fix =
      replaced(replaced(text.fix, "use the async forms", "use send_recv"), "raise the hang timeout", "raise --timeout");
  if (!fix.empty()) lines.push_back("do: " + fix);
  return lines;
}

std::string text_of(const Json& answer) { return answer.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json problem_answer(const Error& error) {
  const ErrorText& text = error.text();
  const std::string where = text.where.substr(0, text.where.find(','));  // the rank; the group is already known
  const std::string who = where.empty() ? "" : where + ": ";
  // The usual advice about running out of memory and about settings does not help here.
  if (text.what == memory_exhausted().text().what)
    return {{"problem", who + "your code asked for more memory than there is; look for a loop that always takes more"}};
  return {{"problem", who + text.what}, {"details", details_of(text)}};
}

// The answer of `run`, or the error that ended it: an error of a rank, or an exception of the learner's code outside of
// ranks.
Json answer_of(const std::function<Json()>& run) {
  try {
    return run();
  } catch (const Error& error) {
    return problem_answer(error);
  } catch (const std::exception& error) {
    return problem_answer(
        as_exhausted(error).value_or(Error(ErrorKind::kCheckFailed, {.what = "your code threw", .got = error.what()})));
  } catch (...) {
    return problem_answer(
        Error(ErrorKind::kCheckFailed, {.what = "your code threw", .got = "something that is not a std::exception"}));
  }
}

// For an exception that no caller can catch: one thrown while the library is loaded, by the initial value of a global
// variable; in a noexcept function; or in a thread that the learner's code started.
const Leave* g_leave = nullptr;  // in the child: global, because a terminate handler needs it
[[noreturn]] void report_uncaught() {
  Json answer = answer_of([]() -> Json {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
    throw Error(ErrorKind::kCheckFailed, {.what = "your code called std::terminate()"});
  });
  answer["details"].push_back(
      "nothing can catch it there: in the initial value of a global variable, a noexcept function, a destructor or a "
      "thread of your own");
  if (log_rank() >= 0) answer["problem"] = strprintf("rank %d: ", log_rank()) + answer["problem"].get<std::string>();
  (*g_leave)(text_of(answer));
  std::abort();
}

void add_recordings(Json& answer, const Picture& picture, const std::filesystem::path& folder) {
  try {
    for (const auto& path : picture.write_recordings(folder)) answer["recordings"].push_back(path.string());
  } catch (const Error& error) {
    answer["unrecorded"] = error.what();
  }
}

// Called in the child.
std::string run_check(const LessonRow& row, const std::filesystem::path& shared_object, const GradeOptions& options,
                      const Leave& leave) {
  if (options.prints_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::ostringstream drawn;
  Picture picture(drawn, options.width, options.color);
  g_leave = &leave;
  std::set_terminate(report_uncaught);
  Json answer = answer_of([&]() -> Json {
    ExerciseLibrary library(shared_object);
    library.hang_timeout = options.limit / 4;
    library.on_stuck = [&](const Error& error) { leave(text_of(problem_answer(error))); };
    return {{"rows", row.make()->check(library, picture)}};
  });
  answer["picture"] = drawn.str();
  if (!options.recordings.empty()) add_recordings(answer, picture, options.recordings);
  return text_of(answer);
}

std::string signal_words(int number) {
  switch (number) {
    case SIGSEGV:
      return "SIGSEGV (a memory access outside what is yours: an index past the end of a span, or a null pointer)";
    case SIGABRT:
      return "SIGABRT (the C++ library gave up: an index past the end of a vector or span, an exception in a noexcept "
             "function, memory written outside what is yours, or abort())";
    case SIGFPE:
      return "SIGFPE (an integer division by zero)";
    default:
      return std::string("signal ") + std::to_string(number) + " (" + ::strsignal(number) + ")";
  }
}

std::string crash_words(const ChildResult& child, const std::string& place) {
  return "your code crashed" + (child.rank >= 0 ? " on rank " + std::to_string(child.rank) : std::string()) +
         (place.empty() ? "" : " at " + place) + " with " +
         (child.code == SIGSEGV && !child.handler_ran
              ? "SIGSEGV (no room on the stack: a function that calls itself without end, or a very large local array)"
              : signal_words(child.code));
}

// `place`: the line of the learner's file in which a crash happened.
std::string problem_of(const ChildResult& child, const GradeOptions& options, const std::string& place) {
  switch (child.end) {
    case ChildResult::End::kAnswered:
      return "";
    case ChildResult::End::kExited:
      return strprintf("your code ended the whole process with exit code %d before the check was done; ", child.code) +
             "remove the call of exit()";
    case ChildResult::End::kSignalled:
      return crash_words(child, place);
    case ChildResult::End::kInterrupted:
      return "interrupted";
    case ChildResult::End::kTimedOut:
      return strprintf("your code did not come to an end within %.3g s; look for a loop that never ends",
                       static_cast<double>(options.limit.count()) * 1e-3);
  }
  return "";
}

}  // namespace

bool Grade::passed() const {
  return compiled && problem.empty() && !rows.empty() &&
         std::all_of(rows.begin(), rows.end(), [](const CheckRow& row) { return row.passed; });
}

Grade grade(const LessonRow& row, const std::filesystem::path& exercise, const GradeOptions& options) {
  const Compiled compiled = compile_exercise(exercise, row.folder(), options.color);
  Grade result;
  result.compile_seconds = compiled.seconds;
  result.compiled = compiled.ok;
  result.compiler_messages = compiled.messages;
  // Otherwise the recordings of an earlier check would be mistaken for those of this one.
  for (const char* old : {"yours.json.gz", "right.json.gz"}) {
    std::error_code ignored;
    if (!options.recordings.empty()) std::filesystem::remove(options.recordings / old, ignored);
  }
  if (!compiled.ok) return result;
  const ChildResult child = run_in_child(
      [&](const Leave& leave) { return run_check(row, compiled.shared_object, options, leave); }, options.limit);
  result.problem =
      problem_of(child, options, place_of_crash(compiled.shared_object, exercise.filename().string(), child.frames));
  if (child.end != ChildResult::End::kAnswered) return result;
  const Json answer = Json::parse(child.answer, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_discarded()) {
    result.picture = answer.value("picture", "");
    result.recordings = answer.value("recordings", std::vector<std::string>());
    result.unrecorded = answer.value("unrecorded", "");
  }
  if (answer.is_discarded()) {
    result.problem = "the check's answer was damaged; does your code write outside its spans?";
  } else if (answer.contains("rows")) {
    result.rows = answer["rows"].get<std::vector<CheckRow>>();
  } else {
    result.problem = answer.value("problem", "the check gave no answer");
    result.details = answer.value("details", std::vector<std::string>());
  }
  return result;
}

}  // namespace ranklab::lesson
