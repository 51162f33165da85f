// Lesson 6: the traffic between ranks with an even and a skewed router, and a bias that balances it; the learner's
// dispatch and combine compared with one rank that has all experts.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "lessons/06_who_talks_to_whom_in_moe/balance.h"
#include "lessons/06_who_talks_to_whom_in_moe/moe_layer.h"
#include "lessons/glyphs.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr int64_t kTokens = 1024;  // per rank
constexpr double kTolerance = 1e-12, kEvenEnough = 1.1;
constexpr int kLastSteps = 10;

int64_t copies_of(const Copies& copies) {
  int64_t sum = 0;
  for (const auto& rank : copies)
    for (const int64_t count : rank) sum += count;
  return sum;
}

double sent_away(const std::vector<std::vector<double>>& pairs, size_t rank) {
  double sum = 0;
  for (size_t to = 0; to < pairs.size(); ++to) sum += to == rank ? 0 : pairs[rank][to];
  return sum;
}

// The number of rank pairs whose bytes do not match the routing, in dispatch or combine.
int wrong_pairs(const std::vector<std::vector<double>>& got, const Copies& copies, bool back) {
  int wrong = 0;
  for (size_t from = 0; from < kExpertRanks; ++from) {
    for (size_t to = 0; to < kExpertRanks; ++to) {
      const int64_t rows = back ? copies[to][from] : copies[from][to];
      wrong += got[from][to] == static_cast<double>(rows * kRowBytes) ? 0 : 1;
    }
  }
  return wrong;
}

// "131,072 B"
std::string exact_bytes(double bytes) {
  const std::string digits = strprintf("%.0f", bytes);
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + " B";
}

std::string share_that_leaves(const MoeRun& run) {
  const double eighths = 8 * sent_away(run.dispatch_bytes, 0) / (2.0 * kTokens * kRowBytes);
  return strprintf("%.3g/8", eighths);
}

double slowdown(const MoeRun& even, const MoeRun& skewed) {
  return static_cast<double>(skewed.slowest_expert_ns) / static_cast<double>(even.slowest_expert_ns);
}

void draw_matrix(Screen& screen, const MoeRun& run) {
  std::vector<Cells> rows = {{"from \\ to"}};
  for (int to = 0; to < kExpertRanks; ++to) rows[0].push_back("r" + std::to_string(to));
  rows[0].push_back("leaves");
  for (size_t from = 0; from < kExpertRanks; ++from) {
    Cells& line = rows.emplace_back(Cells{"r" + std::to_string(from)});
    for (size_t to = 0; to < kExpertRanks; ++to)
      line.push_back(from == to ? screen.paint(Ink::kDim, "·")
                                : strprintf("%.0f", run.dispatch_bytes[from][to] / 1024));
    line.push_back(strprintf("%.0f", sent_away(run.dispatch_bytes, from) / 1024));
  }
  screen.table(rows);
}

// The bytes from a row's rank to a column's rank, without those that stay on the same rank.
std::vector<std::vector<double>> between_ranks(std::vector<std::vector<double>> bytes) {
  for (size_t rank = 0; rank < bytes.size(); ++rank) bytes[rank][rank] = 0;
  return bytes;
}

// Several matrices next to each other, with the same darkness for the same number of bytes.
void draw_heat(Screen& screen, const std::vector<std::pair<std::string, std::vector<std::vector<double>>>>& all) {
  double most = 0;
  for (const auto& [title, bytes] : all) most = std::max(most, largest(between_ranks(bytes)));
  std::vector<Cells> pictures;
  for (const auto& [title, bytes] : all) pictures.push_back(heat_matrix(title, between_ranks(bytes), most));
  screen.side_by_side(pictures);
}

// One character for every second step, for a maximum from the mean to three times the mean.
std::string curve(const BalanceRun& run) {
  std::string out;
  for (int step = 0; step < kBalanceSteps; step += 2) out += height((run.max_over_mean(step) - 1) / 2);
  return out;
}

void show_balance(Screen& screen, const BalanceRun& without, const BalanceRun& with) {
  screen.heading("A router that prefers some experts: max/mean over 100 steps");
  screen.line("  no bias    " + screen.paint(Ink::kRed, curve(without)));
  screen.line("  with bias  " + screen.paint(Ink::kGreen, curve(with)));
  screen.line();
  std::vector<Cells> rows = {{"step", "max/mean"}};
  for (int e = 0; e < kExpertRanks; ++e) rows[0].push_back("bias " + std::to_string(e));
  for (const int step : {0, 24, 49, 99}) {
    Cells& line = rows.emplace_back(Cells{std::to_string(step), strprintf("%.3f", with.max_over_mean(step))});
    for (const double bias : with.bias[static_cast<size_t>(step)]) line.push_back(strprintf("%+.3f", bias));
  }
  screen.table(rows);
}

std::string off(double error) { return strprintf("%.3g off", error); }

class WhoTalksToWhom final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const MoeRun even = run_moe(even_router(kTokens), straight_path());
    const MoeRun skewed = run_moe(skewed_router(), straight_path());
    const BalanceRun without = balance_experts(no_rule()), with = balance_experts(sign_rule());
    return {{"bytes from a rank to another, even router", exact_bytes(even.dispatch_bytes[0][1])},
            {"share of the copies that leave their rank", share_that_leaves(even)},
            {"bytes that leave a rank", exact_bytes(sent_away(even.dispatch_bytes, 0))},
            {"slowest expert, skewed against even", strprintf("%.2f", slowdown(even, skewed))},
            {"layer, even router", human_ns(static_cast<double>(even.layer_ns))},
            {"layer, skewed router", human_ns(static_cast<double>(skewed.layer_ns))},
            {"max/mean at first", strprintf("%.2f", without.max_over_mean(0))},
            {"max/mean of the last 10 steps",
             strprintf("%.2f", with.max_over_mean(kBalanceSteps - kLastSteps, kLastSteps))},
            {"first step below 1.1", std::to_string(with.first_even_step(kEvenEnough))}};
  }

  Question question() const override {
    return {
        .text =
            "A skewed router gives the fullest of 8 experts twice the mean. The experts together compute as much as "
            "with an even router. How many times as long as with the even one do the ranks wait for the experts?",
        .unit = "times",
        .tolerance = 0.02};
  }

  double run(Screen& screen) const override {
    const MoeRun even = run_moe(even_router(kTokens), straight_path());
    const MoeRun skewed = run_moe(skewed_router(), straight_path());
    screen.heading("Even router: KiB of dispatch from rank to rank");
    draw_matrix(screen, even);
    screen.line();
    screen.heading("Skewed router: the fullest expert lives on rank 0");
    draw_matrix(screen, skewed);
    screen.line();
    draw_heat(screen, {{"even, dispatch", even.dispatch_bytes},
                       {"skewed, dispatch", skewed.dispatch_bytes},
                       {"skewed, combine", skewed.combine_bytes}});
    screen.paragraph("From row to column, the darker the more bytes. Combine has rows and columns exchanged.");
    screen.line();
    std::vector<Cells> rows = {{"router", "slowest expert computes", "the layer takes"}};
    for (const auto& [title, one] : {std::pair<std::string, const MoeRun&>{"even", even}, {"skewed", skewed}}) {
      rows.push_back(
          {title, human_ns(static_cast<double>(one.slowest_expert_ns)), human_ns(static_cast<double>(one.layer_ns))});
    }
    screen.table(rows);
    screen.line();
    show_balance(screen, balance_experts(no_rule()), balance_experts(sign_rule()));
    return slowdown(even, skewed);
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const TokenPath path{exercise.function<decltype(dispatch)>("dispatch"),
                         exercise.function<decltype(combine)>("combine")};
    std::vector<CheckRow> rows;
    if (exercise.has("count_copies"))
      rows.push_back(warm_up_row(exercise.function<decltype(count_copies)>("count_copies")));
    const MoeRun even = run_moe(even_router(kTokens), path, &exercise);
    const MoeRun ragged = run_moe(ragged_router(), path, &exercise);
    add_conservation(rows, "even", even, even_router(kTokens));
    rows.push_back({"bytes from rank 0 to rank 1", exact_bytes(131'072), exact_bytes(even.dispatch_bytes[0][1]),
                    "exact", even.dispatch_bytes[0][1] == 131'072});
    add_conservation(rows, "ragged", ragged, ragged_router());
    const int there = wrong_pairs(ragged.dispatch_bytes, ragged_router(), false);
    const int back = wrong_pairs(ragged.combine_bytes, ragged_router(), true);
    rows.push_back({"ragged: bytes of dispatch", "64 pairs right", strprintf("%d wrong", there), "exact", there == 0});
    rows.push_back({"ragged: combine = transpose", "64 pairs right", strprintf("%d wrong", back), "exact", back == 0});
    rows.push_back({"all-to-alls a layer", "3", std::to_string(even.all_to_alls), "at most 3, at least 2",
                    even.all_to_alls >= 2 && even.all_to_alls <= 3});
    const auto rule = exercise.function<decltype(update_bias)>("update_bias");
    const std::string signs = one_update(rule, exercise);
    rows.push_back({"one update, in speeds", kSigns, signs, "exact", signs == kSigns});
    const BalanceRun balance = balance_experts(rule, &exercise);
    rows.push_back({"biases of the 8 ranks", "equal", balance.equal_biases ? "equal" : "they differ", "every bit",
                    balance.equal_biases});
    const double last = balance.max_over_mean(kBalanceSteps - kLastSteps, kLastSteps);
    rows.push_back({"max/mean of the last 10 of 100 steps", "below 1.1", strprintf("%.3f", last), "below 1.1",
                    last < kEvenEnough});
    const MoeRun right = run_moe(ragged_router(), straight_path());
    draw_heat(picture, {{"yours: dispatch", ragged.dispatch_bytes},
                        {"right", right.dispatch_bytes},
                        {"yours: combine", ragged.combine_bytes},
                        {"right", right.combine_bytes}});
    picture.record("yours", traces_of(ragged.records));
    picture.record("right", traces_of(right.records));
    picture.line("  max/mean, yours  " + curve(balance));
    picture.line("  max/mean, right  " + curve(balance_experts(sign_rule())));
    return rows;
  }

 private:
  static CheckRow warm_up_row(decltype(::count_copies)* count) {
    constexpr std::array<int, 6> kChosen = {3, 0, 7, 3, 0, 3};
    constexpr std::array<double, 6> kWeights = {};
    std::vector<size_t> rows(kExpertRanks);
    count({.expert = kChosen, .weight = kWeights}, rows);
    const std::string want = "2 0 0 3 0 0 0 1", got = join(std::vector<int>(rows.begin(), rows.end()), " ");
    return {"warm-up: copies for each rank", want, got, "exact", got == want};
  }

  static void add_conservation(std::vector<CheckRow>& rows, const std::string& name, const MoeRun& run,
                               const Copies& copies) {
    const int64_t all = copies_of(copies);
    rows.push_back(
        {name + ": rows that arrive", std::to_string(all), std::to_string(run.arrived), "exact", run.arrived == all});
    rows.push_back({name + ": rows in a wrong inbox", "0", std::to_string(run.misplaced), "exact", run.misplaced == 0});
    rows.push_back({name + ": output", "0 off", off(run.error), "1e-12 relative", run.error <= kTolerance});
  }
};

}  // namespace

LessonPtr make_who_talks_to_whom_in_moe() { return std::make_unique<WhoTalksToWhom>(); }

}  // namespace ranklab::lesson
