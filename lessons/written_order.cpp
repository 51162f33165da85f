#include "lessons/written_order.h"

#include <algorithm>
#include <regex>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/pipeline/schedules.h"

namespace ranklab::lesson {
namespace {

constexpr size_t kShownProblems = 5;

std::string place_of(int ranks, int microbatches) { return strprintf("p = %d and m = %d", ranks, microbatches); }

class WrittenOrder final : public Order {
 public:
  WrittenOrder(Schedule& schedule, int rank) : schedule_(schedule), rank_(rank) {}
  void forward(int microbatch) override { add(ranklab::forward(rank_, microbatch)); }
  void backward(int microbatch) override { add(ranklab::backward(rank_, microbatch)); }
  void input_grad(int microbatch) override { add(ranklab::input_grad(rank_, microbatch)); }
  void weight_grad(int microbatch) override { add(ranklab::weight_grad(rank_, microbatch)); }

 private:
  void add(const Action& action) {
    std::vector<Action>& actions = schedule_.ranks[static_cast<size_t>(rank_)];
    const size_t most = 8 * static_cast<size_t>(schedule_.num_microbatches) + 64;
    RANKLAB_CHECK(actions.size() < most, ErrorKind::kCheckFailed,
                  .where = place_of(schedule_.num_ranks(), schedule_.num_microbatches),
                  .what = strprintf("the list of rank %d does not end", rank_),
                  .got = strprintf("%zu entries for %d microbatches", most, schedule_.num_microbatches),
                  .want = "two or three entries per microbatch", .fix = "look at the condition of your loops");
    actions.push_back(action);
  }

  Schedule& schedule_;
  int rank_;
};

bool has_split_backward(const Schedule& schedule) {
  for (const auto& rank : schedule.ranks) {
    for (const Action& a : rank) {
      if (a.kind == ActionKind::kB || a.kind == ActionKind::kW) return true;
    }
  }
  return false;
}

// "3BW5" becomes "backward 5": a rank has one stage, so the message names the rank already.
std::string in_words(const std::string& problem, bool split) {
  static const std::regex kAction(R"(-?\d+(F|BW|B|W)(-?\d+))");
  std::string out;
  auto rest = problem.cbegin();
  for (std::sregex_iterator it(problem.begin(), problem.end(), kAction), end; it != end; ++it) {
    const std::string letters = it->str(1);
    const char* word = letters == "F"              ? "forward "
                       : letters == "BW" || !split ? "backward "
                       : letters == "B"            ? "input_grad "
                                                   : "weight_grad ";
    out.append(rest, (*it)[0].first).append(word).append(it->str(2));
    rest = (*it)[0].second;
  }
  return out.append(rest, problem.cend());
}

// One line each, without duplicates.
std::vector<std::string> lines_of(const std::vector<std::string>& problems, bool split) {
  std::vector<std::string> lines;
  for (const std::string& problem : problems) {
    const std::string line = in_words(problem, split);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  if (lines.size() <= kShownProblems) return lines;
  lines.resize(kShownProblems);
  lines.push_back("... and more");
  return lines;
}

void require_runnable(const Schedule& schedule, const ScheduleProof& proof) {
  if (proof.problems.empty()) return;
  const std::string where = place_of(schedule.num_ranks(), schedule.num_microbatches), deadlock = "deadlock: ";
  const std::string& first = proof.problems.front();
  const bool split = has_split_backward(schedule);
  RANKLAB_CHECK(!first.starts_with(deadlock), ErrorKind::kCheckFailed, .where = where,
                .what = "deadlock: each rank waits for the next one",
                .got = std::regex_replace(in_words(first.substr(deadlock.size()), split), std::regex("; "), "\n"),
                .want = "every list to come to its end",
                .fix = "write the lists of two of these ranks one below the other: what must come earlier?");
  throw Error(ErrorKind::kCheckFailed,
              {.where = where,
               .what = "this order cannot be run",
               .got = join(lines_of(proof.problems, split), "\n"),
               .want = "each microbatch forwarded once, then differentiated once, on every rank",
               .fix = "print the list of the rank that is named, for a small p and m"});
}

}  // namespace

double TimedSchedule::most_held() const { return *std::max_element(held.begin(), held.end()); }

std::string TimedSchedule::held_text() const {
  std::vector<std::string> numbers;
  for (const double count : held) numbers.push_back(strprintf("%g", count));
  return join(numbers, " ");
}

TimedSchedule timed(Schedule schedule) {
  const ScheduleProof proof = verify_schedule(schedule);
  require_runnable(schedule, proof);
  TimedSchedule result{std::move(schedule), {}, {}};
  result.timeline = simulate(result.schedule, kUnitCosts);
  for (const StageMemory& memory : proof.memory) result.held.push_back(memory.peak_activations);
  return result;
}

TimedSchedule timed(const std::string& name, int ranks, int microbatches, int chunks) {
  return timed(make_schedule(name, {ranks, microbatches, chunks}, kUnitCosts));
}

Schedule written_schedule(OrderFunction* order, int ranks, int microbatches) {
  Schedule schedule{"yours", microbatches, {}, ranks, {}};
  schedule.ranks.resize(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    schedule.rank_of_stage.push_back(rank);
    WrittenOrder mine(schedule, rank);
    order(mine, rank, ranks, microbatches);
  }
  return schedule;
}

TimedSchedule run_order(OrderFunction* order, int ranks, int microbatches) {
  return timed(written_schedule(order, ranks, microbatches));
}

std::string percent(double share) { return strprintf("%.2f %%", 100 * share); }

}  // namespace ranklab::lesson
