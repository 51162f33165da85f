// Every byte of a rank is booked under the category of its scope until it is freed.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <thread>

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
