// Every byte of a rank is booked under the category of its scope until it is freed.
#include <gtest/gtest.h>

#include <thread>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

TEST(MemoryScope, BooksByCategoryUntilFreedByAnyThread) {
  install_booking_allocator();
  const auto book = std::make_shared<MemoryBook>();
  at::Tensor kept;
  std::thread rank([&] {
    set_thread_memory_book(book);
    {
      const MemoryScope scope(MemoryCategory::kParameters);
      kept = at::empty({1000}, at::kFloat);
    }
    const at::Tensor activation = at::empty({10}, at::kDouble);
    EXPECT_EQ(book->bytes(MemoryCategory::kParameters), 4000);
    EXPECT_EQ(book->bytes(MemoryCategory::kActivations), 80);
    EXPECT_EQ(book->total_bytes(), 4080);
  });
  rank.join();
  EXPECT_EQ(book->bytes(MemoryCategory::kActivations), 0);
  kept = at::Tensor();
  EXPECT_EQ(book->total_bytes(), 0);
  EXPECT_EQ(book->peak_bytes(), 4080);
  const at::Tensor unbooked = at::empty({1000});
  EXPECT_EQ(book->total_bytes(), 0);
}

TEST(MemoryBook, KnowsWhatThePeakWasMadeOf) {
  MemoryBook book;
  book.add(MemoryCategory::kParameters, 100);
  book.add(MemoryCategory::kActivations, 50);
  book.add(MemoryCategory::kActivations, -50);
  book.add(MemoryCategory::kGradients, 40);
  EXPECT_EQ(book.peak_bytes(), 150);
  EXPECT_EQ(book.bytes_at_peak(MemoryCategory::kActivations), 50);
  EXPECT_EQ(book.bytes_at_peak(MemoryCategory::kGradients), 0);
  book.reset_peaks();
  EXPECT_EQ(book.peak_bytes(), 140);
  EXPECT_EQ(book.peak_bytes(MemoryCategory::kActivations), 0);
  EXPECT_EQ(book.bytes_at_peak(MemoryCategory::kGradients), 40);
}

TEST(MemoryBook, KnowsTheHighestMomentSinceItWasAsked) {
  MemoryBook book;
  book.add(MemoryCategory::kParameters, 100);
  book.add(MemoryCategory::kActivations, 50);
  book.add(MemoryCategory::kActivations, -50);
  EXPECT_EQ(together(book.take_highest()), 150);
  EXPECT_EQ(together(book.take_highest()), 100) << "what is held now";
  book.add(MemoryCategory::kGradients, 7);
  const CategoryBytes highest = book.take_highest();
  EXPECT_EQ(highest[static_cast<size_t>(MemoryCategory::kGradients)], 7);
  EXPECT_EQ(highest[static_cast<size_t>(MemoryCategory::kActivations)], 0);
  EXPECT_EQ(book.peak_bytes(), 150);
}

// Samples are taken where the total has changed by a part of the peak: the peak itself is one of them, of each step.
TEST(MemoryCounters, ThePeakOfAStepIsASample) {
  install_booking_allocator();
  TrainConfig config = tiny_config(2, 2);
  config.model.num_layers = 3;
  RuntimeEngine engine = tiny_engine(config);
  const auto hook = std::make_shared<RecordingHook>();
  engine.add_hook(hook);
  const TrainResult result = engine.fit();
  const RankTrace& trace = result.traces[0];
  std::map<int, double> peaks;
  std::map<std::string, double> now;
  for (const Event& event : trace.events) {
    const std::string& name = trace.names[event.name];
    if (event.kind != EventKind::kCounter || !name.starts_with("memory/") || name == "memory/limit") continue;
    now[name] = event.value;
    double total = 0;
    for (const auto& [category, bytes] : now) total += bytes;
    // The last category of a sample that has all of them.
    if (name == "memory/buffers") peaks[event.step] = std::max(peaks[event.step], total);
  }
  ASSERT_EQ(hook->steps.size(), 4u);
  ASSERT_EQ(peaks.size(), 4u);
  EXPECT_EQ(peaks[0], static_cast<double>(hook->steps[0].peak_memory_bytes));
  for (const auto& [step, peak] : peaks) EXPECT_EQ(peak, peaks[0]) << "every step does the same, step " << step;
}

// A step's memory is released: activations are gone except for the position tables.
TEST(MemoryCounters, AStepLeavesNoActivationsBehind) {
  install_booking_allocator();
  for (const int stage : {0, 1, 2, 3}) {
    TrainConfig config = tiny_config(4, 2);
    config.zero_stage = stage;
    config.bf16 = true;
    RuntimeEngine engine = tiny_engine(config);
    const RankTrace trace = engine.fit().traces[0];
    std::map<int, double> at_end;
    for (const Event& event : trace.events) {
      if (event.kind == EventKind::kCounter && trace.names[event.name] == "memory/activations")
        at_end[event.step] = event.value;
    }
    ASSERT_EQ(at_end.size(), 4u);
    const double tables = 2 * 16 * 4 * 4.0;  // cos and sin, fp32: 16 positions, half a head of 8
    for (const auto& [step, bytes] : at_end) EXPECT_EQ(bytes, tables) << "stage " << stage << ", step " << step;
  }
}

// fp32 AdamW: parameters 4 bytes an element, gradients 4, two moments 8.
TEST(MemoryCounters, StaticBytesOfARankMatchItsShare) {
  install_booking_allocator();
  TrainConfig config = tiny_config(4, 2);
  RuntimeEngine engine = tiny_engine(config);
  const TrainResult result = engine.fit();
  const RankTrace& trace = result.traces[1];
  std::map<std::string, double> last;
  double activations_peak = 0;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCounter) continue;
    const std::string& name = trace.names[event.name];
    last[name] = event.value;
    if (name == "memory/activations") activations_peak = std::max(activations_peak, event.value);
  }
  const double parameters = last.at("memory/parameters");
  // The shards of two ranks hold the model once, and norms twice.
  const double norms = (2 * 2 + 1) * 32 * 4.0;
  EXPECT_EQ(2 * parameters - norms, 4.0 * static_cast<double>(config.model.parameter_count()));
  EXPECT_EQ(last.at("memory/gradients"), parameters);  // one bucket, every tensor a multiple of its 64-byte alignment
  EXPECT_NEAR(last.at("memory/optimizer"), 2 * parameters, 64 * 4);  // step counters
  EXPECT_GT(activations_peak, 0);
}

}  // namespace
}  // namespace ranklab
