// Lesson 1: ring, tree and naive all-reduce in virtual time; the learner's ring compared with a fixed-order sum.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/base/numbers/philox.h"
#include "core/base/text.h"
#include "core/sim/link_cost.h"
#include "lessons/01_all_reduce/algorithms.h"
#include "lessons/01_all_reduce/exercise.h"
#include "lessons/01_all_reduce/ring_picture.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {
namespace {

constexpr int kRanks = kRingRanks;
constexpr int64_t kKiB = 1024;
constexpr int64_t kSizes[] = {kKiB, 4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, 512 * kKiB, 1024 * kKiB};

// Eight machines with one GPU each, so that all messages go over the network.
RankSetup setup_of(const ExerciseLibrary* exercise = nullptr) {
  return {.dims = {.world = kRanks}, .hardware = "h100-sxm", .gpus_per_node = 1, .exercise = exercise};
}

struct Measured {
  std::vector<RankTrace> traces;
  int64_t time_ns = 0;     // when the last rank was done
  int64_t most_bytes = 0;  // sent by the busiest rank
  int64_t steps = 0;       // messages sent by rank 1, which is never the root
};

Measured measure(const RankSetup& setup, const Algorithm& algorithm, Buffers& data) {
  const auto records = run_ranks(setup, [&](RankContext& context) {
    const auto comm = make_comm(context.comm(Axis::kWorld));
    algorithm(*comm, data[static_cast<size_t>(context.global_rank())]);
  });
  Measured m;
  for (const RankRecord& record : records) {
    m.time_ns = std::max(m.time_ns, record.virtual_ns);
    m.most_bytes = std::max(m.most_bytes, record.sent_bytes());
  }
  m.steps = records[1].calls(Verb::kSend);
  m.traces = traces_of(records);
  return m;
}

Buffers random_data(size_t elements) {
  Buffers data(kRanks, std::vector<double>(elements));
  for (int rank = 0; rank < kRanks; ++rank) {
    const RandomStream stream(7, RandomPurpose::kTest, "lesson 1 rank " + std::to_string(rank));
    for (size_t i = 0; i < elements; ++i)
      data[static_cast<size_t>(rank)][i] = stream.normal(i) / 3.0;  // uses all 53 bits, so that sums are rounded
  }
  return data;
}

Measured measure(const Algorithm& algorithm, int64_t bytes) {
  Buffers data(kRanks, std::vector<double>(static_cast<size_t>(bytes) / sizeof(double)));
  return measure(setup_of(), algorithm, data);
}

// The sum of chunk c: x_c + x_{c+1} + ... + x_{c+7}, added from the left, with ranks modulo 8.
std::vector<double> fixed_order_sum(const Buffers& data) {
  std::vector<double> sum(data[0].size());
  for (int c = 0; c < kRanks; ++c) {
    const std::span<double> part = chunk(sum, c, kRanks);
    const auto begin = static_cast<size_t>(part.data() - sum.data());
    for (size_t i = 0; i < part.size(); ++i) {
      part[i] = data[static_cast<size_t>(c)][begin + i];
      for (int k = 1; k < kRanks; ++k) part[i] += data[static_cast<size_t>((c + k) % kRanks)][begin + i];
    }
  }
  return sum;
}

size_t different_bits(const std::vector<double>& a, const std::vector<double>& b) {
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::bit_cast<uint64_t>(a[i]) != std::bit_cast<uint64_t>(b[i]) ? 1 : 0;
  return count;
}

double largest_error(const Buffers& got, const std::vector<double>& want) {
  double error = 0;
  for (const auto& mine : got) {
    for (size_t i = 0; i < want.size(); ++i) error = std::max(error, std::abs(mine[i] - want[i]));
  }
  return error;
}

int64_t ring_closed_form_ns(int64_t bytes) {
  std::vector<int> ranks(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) ranks[static_cast<size_t>(rank)] = rank;
  return LinkCost(load_hardware_profile("h100-sxm"), ranks, 1).collective(Verb::kAllReduce, bytes).total_ns;
}

std::string gb_per_s(double bytes, int64_t ns) { return strprintf("%.3g GB/s", bytes / static_cast<double>(ns)); }

double compare(Screen& screen) {
  screen.heading("Eight H100 machines on a 50 GB/s network, virtual time");
  std::vector<Cells> rows = {{"size", "naive", "tree", "ring", "fastest", "ring S/t", "x 1.75 = bus"}};
  double sent = 0;
  for (const int64_t bytes : kSizes) {
    const Measured naive = measure(naive_all_reduce, bytes), tree = measure(tree_all_reduce, bytes);
    const Measured ring = measure([](Comm& comm, auto data) { ring_all_reduce_reference(comm, data); }, bytes);
    const char* fastest = ring.time_ns < std::min(tree.time_ns, naive.time_ns) ? "ring"
                          : tree.time_ns < naive.time_ns                       ? "tree"
                                                                               : "naive";
    sent = static_cast<double>(ring.most_bytes) / static_cast<double>(bytes);
    const auto size = static_cast<double>(bytes);
    rows.push_back({human_bytes(size), human_ns(static_cast<double>(naive.time_ns)),
                    human_ns(static_cast<double>(tree.time_ns)), human_ns(static_cast<double>(ring.time_ns)), fastest,
                    gb_per_s(size, ring.time_ns), gb_per_s(sent * size, ring.time_ns)});
  }
  screen.table(rows);
  screen.line();
  screen.paragraph(
      strprintf("The ring's busiest rank sends %.4g S, and so does every other; naive has rank 0 send 7 S.", sent));
  return sent;
}

class AllReduce final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const auto ring_of = [](Comm& comm, auto data) { ring_all_reduce_reference(comm, data); };
    const int64_t large = 1024 * kKiB;
    const auto size = static_cast<double>(large);
    const auto time = [](const Measured& m) { return human_ns(static_cast<double>(m.time_ns)); };
    const Measured ring = measure(ring_of, large);
    const Measured naive = measure(naive_all_reduce, large);
    const double sent = static_cast<double>(ring.most_bytes) / size;
    // All steps of the tree take the same time: the latency, and the transfer of the whole tensor.
    const double step_ns = 4000 + size / 50;
    const Measured tree = measure(tree_all_reduce, large);
    return {{"ring steps", std::to_string(ring.steps)},
            {"ring bytes sent, in S", strprintf("%.4g", sent)},
            {"naive bytes sent by rank 0, in S", strprintf("%.4g", static_cast<double>(naive.most_bytes) / size)},
            {"tree steps", strprintf("%.0f", static_cast<double>(tree.time_ns) / step_ns)},
            {"naive 1 KiB", time(measure(naive_all_reduce, kKiB))},
            {"tree 1 KiB", time(measure(tree_all_reduce, kKiB))},
            {"ring 1 KiB", time(measure(ring_of, kKiB))},
            {"naive 1 MiB", time(naive)},
            {"tree 1 MiB", time(tree)},
            {"ring 1 MiB", time(ring)},
            {"ring 1 MiB, algorithm bandwidth", gb_per_s(size, ring.time_ns)},
            {"ring 1 MiB, bus bandwidth", gb_per_s(sent * size, ring.time_ns)}};
  }

  Question question() const override {
    return {
        .text = "A ring all-reduce over 8 ranks, S bytes on each. How many bytes does each rank send, in units of S?",
        .unit = "S",
        .tolerance = 0.005};
  }

  double run(Screen& screen) const override {
    draw_ring(screen);
    return compare(screen);
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    auto* const ring = exercise.function<decltype(ring_all_reduce)>("ring_all_reduce");
    const RankSetup setup = setup_of(&exercise);
    const auto ring_of = [](Comm& comm, auto data) { ring_all_reduce_reference(comm, data); };
    std::vector<CheckRow> rows;
    if (exercise.has("from_previous"))
      rows.push_back(warm_up_row(setup, exercise.function<decltype(from_previous)>("from_previous")));
    const auto add_sum_rows = [&](size_t elements) {
      const Buffers input = random_data(elements);
      Buffers data = input;
      const Measured m = measure(setup, ring, data);
      if (elements == 1024) {
        add_cost_rows(m, static_cast<int64_t>(elements * sizeof(double)), rows);
        picture.record("yours", m.traces);
        Buffers again = input;
        picture.record("right", measure(setup_of(), ring_of, again).traces);
      }
      const std::vector<double> want = fixed_order_sum(input);
      const std::string title = strprintf("sum of %zu numbers", elements);
      const double error = largest_error(data, want);
      rows.push_back({title, "0 off", strprintf("%.3g off", error), "1e-12", error < 1e-12});
      size_t different = 0;
      for (const auto& mine : data) different += different_bits(mine, want);
      rows.push_back({"  in the ring's order", "0 differ", strprintf("%zu differ", different), "every bit, 8 ranks",
                      different == 0});
    };
    add_sum_rows(1024);
    add_sum_rows(1003);  // chunks of two different lengths
    rows.push_back(time_row(setup, ring));
    draw_beside(picture, setup, ring);
    return rows;
  }

 private:
  static void add_cost_rows(const Measured& m, int64_t bytes, std::vector<CheckRow>& rows) {
    constexpr int kSteps = 2 * (kRanks - 1);
    rows.push_back({"steps", std::to_string(kSteps), std::to_string(m.steps), "exact", m.steps == kSteps});
    const double sent = static_cast<double>(m.most_bytes) / static_cast<double>(bytes);
    rows.push_back({"bytes each rank sends", "1.75 S", strprintf("%.4g S", sent), "exact", sent == 1.75});
  }

  static CheckRow warm_up_row(const RankSetup& setup, decltype(from_previous)* pass_on) {
    std::vector<double> got(kRanks);
    run_ranks(setup, [&](RankContext& context) {
      const auto comm = make_comm(context.comm(Axis::kWorld));
      got[static_cast<size_t>(comm->rank())] = pass_on(*comm, 10.0 * comm->rank());
    });
    int right = 0;
    for (int rank = 0; rank < kRanks; ++rank)
      right += got[static_cast<size_t>(rank)] == 10.0 * ((rank + kRanks - 1) % kRanks) ? 1 : 0;
    return {"warm-up: ranks with the number before", std::to_string(kRanks), std::to_string(right), "exact",
            right == kRanks};
  }

  static CheckRow time_row(const RankSetup& setup, const Algorithm& ring) {
    const int64_t bytes = 1024 * kKiB;
    Buffers data = random_data(static_cast<size_t>(bytes) / sizeof(double));
    const auto got = static_cast<double>(measure(setup, ring, data).time_ns);
    const auto want = static_cast<double>(ring_closed_form_ns(bytes));
    return {"time of 1 MiB", human_ns(want), human_ns(got), "1 %", std::abs(got - want) <= 0.01 * want};
  }
};

}  // namespace

LessonPtr make_all_reduce() { return std::make_unique<AllReduce>(); }

}  // namespace ranklab::lesson
