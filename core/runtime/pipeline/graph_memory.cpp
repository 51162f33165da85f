#include "core/runtime/pipeline/graph_memory.h"

#include <memory>

namespace ranklab {

void GraphMemory::measure(const std::function<void()>& record) {
  const std::shared_ptr<MemoryBook> book = thread_memory_book();
  if (book == nullptr) return record();
  const MemoryBook::Peaks before = book->peaks();
  book->reset_peaks();
  record();
  const MemoryBook::Peaks taken = book->peaks().above(book->bytes());
  taken_ = {plus(taken_.at_peak, taken.at_peak), plus(taken_.highest, taken.highest)};
  book->raise_peaks(before);
}

void GraphMemory::note_replay() const {
  const std::shared_ptr<MemoryBook> book = thread_memory_book();
  if (book != nullptr) book->raise_peaks(taken_.on(book->bytes()));
}

}  // namespace ranklab
