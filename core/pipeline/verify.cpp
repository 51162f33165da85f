#include "core/pipeline/verify.h"

#include <algorithm>
#include <array>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/pipeline/blocking.h"

namespace ranklab {
namespace {

constexpr size_t kMostProblems = 20;
// maximum number of reports about actions that never run, because one wrong number may leave out many
constexpr int kMostMissing = 5;

enum Part { kForward, kInputGrad, kWeightGrad };
constexpr std::array<const char*, 3> kPartLetters = {"F", "B", "W"};

class Verifier {
 public:
  Verifier(const Schedule& schedule, double weight_grad_memory)
      : schedule_(schedule), weight_grad_memory_(weight_grad_memory) {}

  ScheduleProof run() {
    if (!shape_is_legal()) return std::move(proof_);
    const auto cells = static_cast<size_t>(schedule_.num_stages()) * static_cast<size_t>(schedule_.num_microbatches);
    for (auto& part : done_) part.resize(cells);
    find_lone_action();
    place_all();
    check_complete();
    if (proof_.problems.empty()) check_order();
    if (proof_.problems.empty()) check_progress();
    if (!proof_.problems.empty()) return std::move(proof_);
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      proof_.memory.push_back(stage_memory(schedule_, rank, weight_grad_memory_));
      proof_.messages += proof_.memory.back().messages_sent;
    }
    proof_.blocking_cycle = find_blocking_cycle(schedule_);
    proof_.blocking_safe = proof_.blocking_cycle.empty();
    return std::move(proof_);
  }

 private:
  void problem(std::string text) {
    if (proof_.problems.size() < kMostProblems) proof_.problems.push_back(std::move(text));
  }
  size_t cell(int stage, int microbatch) const {
    return static_cast<size_t>(stage) * static_cast<size_t>(schedule_.num_microbatches) +
           static_cast<size_t>(microbatch);
  }
  ActionPlace& done(Part part, int stage, int microbatch) { return done_[part][cell(stage, microbatch)]; }
  static std::string work(Part part, int stage, int microbatch) {
    return std::to_string(stage) + kPartLetters[part] + std::to_string(microbatch);
  }
  const Action& action(ActionPlace place) const {
    return schedule_.ranks[static_cast<size_t>(place.rank)][static_cast<size_t>(place.index)];
  }

  bool shape_is_legal() {
    const Schedule& s = schedule_;
    if (s.num_ranks() < 1 || s.num_microbatches < 1 || s.num_stages() < 1) problem("the schedule is empty");
    if (s.chain_length < 1 || s.num_stages() % std::max(s.chain_length, 1) != 0)
      problem(strprintf("%d stages are not a whole number of chains of %d", s.num_stages(), s.chain_length));
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      if (s.rank(stage) < 0 || s.rank(stage) >= s.num_ranks())
        problem(strprintf("stage %d lies on rank %d, want 0 to %d", stage, s.rank(stage), s.num_ranks() - 1));
    }
    if (proof_.problems.empty()) check_size();
    return proof_.problems.empty();
  }

  // A single index that is far too large must not allocate gigabytes of tables. Such a schedule lacks most of its
  // actions.
  void check_size() {
    int64_t actions = 0;
    for (const auto& rank : schedule_.ranks) actions += static_cast<int64_t>(rank.size());
    const int64_t cells = int64_t{schedule_.chain_length} * schedule_.num_microbatches;
    if (cells > 4 * actions + 64)
      problem(counted(schedule_.num_microbatches, "microbatch", "es") + " through " +
              counted(schedule_.chain_length, "stage") + " need " + counted(cells, "forward") + ", but there are " +
              counted(actions, "action") + " in all" + whose_last_microbatch());
  }
  std::string whose_last_microbatch() const {
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      for (const Action& a : schedule_.ranks[static_cast<size_t>(rank)]) {
        if (std::max(a.microbatch, a.backward_microbatch()) == schedule_.num_microbatches - 1)
          return "; " + rank_name(rank) + " runs " + to_text(a);
      }
    }
    return "";
  }

  // A mistyped number makes a microbatch with a single action. That action is reported, not everything that the
  // microbatch lacks.
  void find_lone_action() {
    const auto count = static_cast<size_t>(schedule_.num_microbatches);
    std::vector<ActionPlace> places(count);
    actions_of_.assign(count, 0);
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      const auto& actions = schedule_.ranks[static_cast<size_t>(rank)];
      for (size_t i = 0; i < actions.size(); ++i) {
        const Action& a = actions[i];
        const auto seen = [&](int microbatch) {
          if (microbatch < 0 || microbatch >= schedule_.num_microbatches) return;
          places[static_cast<size_t>(microbatch)] = {rank, static_cast<int>(i)};
          ++actions_of_[static_cast<size_t>(microbatch)];
        };
        if (a.has_forward()) seen(a.microbatch);
        if (a.has_input_grad() || a.has_weight_grad()) seen(a.backward_microbatch());
      }
    }
    // other microbatches must have at least this many actions, so that a single one is clearly wrong
    constexpr int kFewest = 4;
    const auto lone = std::ranges::find(actions_of_, 1);
    has_lone_ = std::ranges::count(actions_of_, 1) == 1 && std::ranges::max(actions_of_) >= kFewest;
    if (!has_lone_) return;
    const auto microbatch = static_cast<size_t>(lone - actions_of_.begin());
    problem(rank_name(places[microbatch].rank) + " runs " + to_text(action(places[microbatch])) +
            strprintf(" (position %d), the only action of microbatch %zu", places[microbatch].index, microbatch));
  }

  void place_all() {
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      const auto& actions = schedule_.ranks[static_cast<size_t>(rank)];
      for (size_t i = 0; i < actions.size(); ++i) {
        const Action& a = actions[i];
        const ActionPlace place = {rank, static_cast<int>(i)};
        if (a.has_forward()) put(kForward, a.stage, a.microbatch, place);
        // A duplicate BW is reported once.
        const bool duplicate =
            a.has_input_grad() && !put(kInputGrad, a.backward_stage(), a.backward_microbatch(), place);
        if (a.has_weight_grad() && !duplicate) put(kWeightGrad, a.backward_stage(), a.backward_microbatch(), place);
      }
    }
  }

  bool refuse(std::string text) {
    problem(std::move(text));
    return false;
  }
  bool put(Part part, int stage, int microbatch, ActionPlace place) {
    const std::string who = rank_name(place.rank) + " runs " + to_text(action(place));
    if (stage < 0 || stage >= schedule_.num_stages())
      return refuse(who + strprintf(": stages are 0 to %d", schedule_.num_stages() - 1));
    if (microbatch < 0 || microbatch >= schedule_.num_microbatches)
      return refuse(who + strprintf(": microbatches are 0 to %d", schedule_.num_microbatches - 1));
    if (schedule_.rank(stage) != place.rank)
      return refuse(who + ", but stage " + std::to_string(stage) + " lies on " + rank_name(schedule_.rank(stage)));
    if (!schedule_.passes(stage, microbatch))
      return refuse(who + ", but microbatch " + std::to_string(microbatch) + " does not pass that stage");
    ActionPlace& before = done(part, stage, microbatch);
    if (before.rank >= 0) {
      return refuse(rank_name(place.rank) + " does " + work(part, stage, microbatch) +
                    " twice: " + to_text(action(before)) + strprintf(" at position %d and ", before.index) +
                    to_text(action(place)) + strprintf(" at position %d", place.index));
    }
    before = place;
    return true;
  }

  void check_complete() {
    int64_t missing = 0;
    for (int stage = 0; stage < schedule_.num_stages(); ++stage) {
      for (int microbatch = 0; microbatch < schedule_.num_microbatches; ++microbatch) {
        if (!schedule_.passes(stage, microbatch)) continue;
        if (has_lone_ && actions_of_[static_cast<size_t>(microbatch)] <= 1) continue;
        for (const Part part : {kForward, kInputGrad, kWeightGrad}) {
          if (done(part, stage, microbatch).rank >= 0) continue;
          if (++missing <= kMostMissing)
            problem(rank_name(schedule_.rank(stage)) + " never runs " + work(part, stage, microbatch));
        }
      }
    }
    if (missing > kMostMissing)
      problem(strprintf("... and %ld more never run", static_cast<long>(missing - kMostMissing)));
  }

  // A result that the rank itself produces must come before its use, because waiting cannot help there.
  void check_order() {
    for (int stage = 0; stage < schedule_.num_stages(); ++stage) {
      for (int microbatch = 0; microbatch < schedule_.num_microbatches; ++microbatch) {
        if (!schedule_.passes(stage, microbatch)) continue;
        before(kForward, kInputGrad, stage, stage, microbatch);
        before(kInputGrad, kWeightGrad, stage, stage, microbatch);
        if (schedule_.is_last(stage) || schedule_.rank(stage) != schedule_.rank(stage + 1)) continue;
        before(kForward, kForward, stage, stage + 1, microbatch);
        before(kInputGrad, kInputGrad, stage + 1, stage, microbatch);
      }
    }
  }
  void before(Part first, Part second, int first_stage, int second_stage, int microbatch) {
    const ActionPlace a = done(first, first_stage, microbatch), b = done(second, second_stage, microbatch);
    const bool same_action = a.index == b.index && first == kInputGrad && second == kWeightGrad;  // BW does both
    if (a.index < b.index || same_action) return;
    problem(rank_name(a.rank) + " runs " + to_text(action(b)) + strprintf(" (position %d) before ", b.index) +
            to_text(action(a)) + strprintf(" (position %d), whose result it needs", a.index));
  }

  // The inputs of an action that other ranks produce.
  std::vector<ActionPlace> remote_inputs(const Action& a, int rank) {
    std::vector<ActionPlace> needs;
    if (a.has_forward() && !schedule_.is_first(a.stage)) needs.push_back(done(kForward, a.stage - 1, a.microbatch));
    if (a.has_input_grad() && !schedule_.is_last(a.backward_stage()))
      needs.push_back(done(kInputGrad, a.backward_stage() + 1, a.backward_microbatch()));
    std::erase_if(needs, [&](ActionPlace place) { return place.rank == rank; });
    return needs;
  }

  void check_progress() {
    std::vector<int> next(schedule_.ranks.size(), 0);
    const auto reached = [&](ActionPlace place) { return place.index < next[static_cast<size_t>(place.rank)]; };
    const auto head_waits_for = [&](int rank) -> ActionPlace {
      const auto& actions = schedule_.ranks[static_cast<size_t>(rank)];
      const auto index = static_cast<size_t>(next[static_cast<size_t>(rank)]);
      if (index >= actions.size()) return {};
      for (const ActionPlace place : remote_inputs(actions[index], rank)) {
        if (!reached(place)) return place;
      }
      return {};
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
        int& position = next[static_cast<size_t>(rank)];
        const auto count = static_cast<int>(schedule_.ranks[static_cast<size_t>(rank)].size());
        while (position < count && head_waits_for(rank).rank < 0) {
          ++position;
          moved = true;
        }
      }
    }
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      if (next[static_cast<size_t>(rank)] < static_cast<int>(schedule_.ranks[static_cast<size_t>(rank)].size()))
        return report_cycle(rank, next, head_waits_for);
    }
  }

  template <typename WaitsFor>
  void report_cycle(int rank, const std::vector<int>& next, const WaitsFor& head_waits_for) {
    std::vector<int> path;
    while (std::find(path.begin(), path.end(), rank) == path.end()) {
      path.push_back(rank);
      rank = head_waits_for(rank).rank;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), rank));
    std::vector<std::string> lines;
    for (const int r : path) {
      const ActionPlace wanted = head_waits_for(r);
      const Action& head = action({r, next[static_cast<size_t>(r)]});
      const Action& ahead = action({wanted.rank, next[static_cast<size_t>(wanted.rank)]});
      lines.push_back(rank_name(r) + " waits at " + to_text(head) + " for " + to_text(action(wanted)) + ", which " +
                      rank_name(wanted.rank) + " runs after " + to_text(ahead));
    }
    problem("deadlock: " + join(lines, "; "));
  }

  const Schedule& schedule_;
  double weight_grad_memory_;
  std::array<std::vector<ActionPlace>, 3> done_;
  std::vector<int> actions_of_;  // [microbatch]
  bool has_lone_ = false;        // some microbatch has only one action
  ScheduleProof proof_;
};

}  // namespace

StageMemory stage_memory(const Schedule& schedule, int rank, double weight_grad_memory) {
  const double share = schedule.stage_share();
  StageMemory memory;
  int held = 0, awaiting = 0;  // activations that await their W; their B and W
  for (const Action& a : schedule.ranks[static_cast<size_t>(rank)]) {
    if (a.has_forward()) ++held, ++awaiting;
    const double now = awaiting + (held - awaiting) * weight_grad_memory;
    memory.peak_activations = std::max(memory.peak_activations, held * share);
    memory.peak_memory = std::max(memory.peak_memory, now * share);
    memory.peak_deferred = std::max(memory.peak_deferred, held - awaiting);
    if (a.has_input_grad()) --awaiting;
    if (a.has_weight_grad()) --held;
  }
  for (const int stage : schedule.stages_of(rank)) {
    ++memory.stages;
    const int64_t each = schedule.microbatches_of(stage / schedule.chain_length);
    if (!schedule.is_last(stage) && schedule.rank(stage + 1) != rank) memory.messages_sent += each;
    if (!schedule.is_first(stage) && schedule.rank(stage - 1) != rank) memory.messages_sent += each;
  }
  return memory;
}

ScheduleProof verify_schedule(const Schedule& schedule, double weight_grad_memory) {
  return Verifier(schedule, weight_grad_memory).run();
}

void require_sound(const Schedule& schedule) {
  const ScheduleProof proof = verify_schedule(schedule);
  RANKLAB_CHECK(proof.problems.empty(), ErrorKind::kInvalidArgument, .where = "schedule " + schedule.name,
                .what = "the schedule is wrong", .got = proof.problems.empty() ? "" : proof.problems.front(),
                .fix = "ranklab schedule check lists all that is wrong");
}

}  // namespace ranklab
