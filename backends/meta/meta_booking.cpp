#include "backends/meta/meta_booking.h"

#include <c10/core/Allocator.h>

#include <memory>
#include <mutex>

#include "core/sim/memory_scope.h"

namespace ranklab::meta {
namespace {

struct Booking {
  std::shared_ptr<MemoryBook> book;
  MemoryCategory category;
  int64_t bytes;
};

void unbook(void* context) {
  const std::unique_ptr<Booking> booking(static_cast<Booking*>(context));
  if (booking) booking->book->add(booking->category, -booking->bytes);
}

// Allocates a storage without data; its context pointer holds the booking instead.
class BookingAllocator final : public c10::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    std::shared_ptr<MemoryBook> book = thread_memory_book();
    if (bytes == 0 || !book) return {nullptr, nullptr, &unbook, at::Device(at::kMeta)};
    const auto count = static_cast<int64_t>(bytes);
    book->add(thread_memory_category(), count);
    auto* const booking = new Booking{std::move(book), thread_memory_category(), count};
    return {nullptr, booking, &unbook, at::Device(at::kMeta)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &unbook; }
  void copy_data(void*, const void*, size_t) const override {}
};

}  // namespace

void install_booking() {
  static std::once_flag once;
  std::call_once(once, [] {
    static BookingAllocator allocator;
    c10::SetAllocator(c10::DeviceType::Meta, &allocator, /*priority=*/100);
  });
}

}  // namespace ranklab::meta
