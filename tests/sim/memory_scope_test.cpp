#include "core/sim/memory_scope.h"

#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include <thread>

namespace ranklab {
namespace {

const void* block(uintptr_t number) { return reinterpret_cast<const void*>(number << 9); }

class DeviceMemory : public testing::Test {
 protected:
  void SetUp() override { set_thread_memory_book(book_); }
  void TearDown() override { set_thread_memory_book(nullptr); }
  std::shared_ptr<MemoryBook> book_ = std::make_shared<MemoryBook>();
};

TEST_F(DeviceMemory, IsTheTakersUntilAnyThreadGivesItBack) {
  {
    const MemoryScope scope(MemoryCategory::kParameters);
    device_block_taken(block(1), 1000);
  }
  device_block_taken(block(2), 24);
  EXPECT_EQ(book_->bytes(MemoryCategory::kParameters), 1000);
  EXPECT_EQ(book_->bytes(MemoryCategory::kActivations), 24);
  std::thread([] { device_block_given(block(1)); }).join();
  EXPECT_EQ(book_->bytes(MemoryCategory::kParameters), 0);
  EXPECT_EQ(book_->total_bytes(), 24);
  EXPECT_EQ(book_->peak_bytes(), 1024);
  device_block_given(block(2));
}

TEST_F(DeviceMemory, OfNobodyIsNotBooked) {
  std::thread([] { device_block_taken(block(3), 1000); }).join();
  device_block_given(block(3));
  device_block_given(block(4));
  EXPECT_EQ(book_->peak_bytes(), 0);
}

TEST_F(DeviceMemory, ABlockTakenAgainIsTheNewTakers) {
  device_block_taken(block(5), 10);
  device_block_given(block(5));
  const auto other = std::make_shared<MemoryBook>();
  std::thread([&] {
    set_thread_memory_book(other);
    device_block_taken(block(5), 20);
  }).join();
  EXPECT_EQ(book_->total_bytes(), 0);
  EXPECT_EQ(other->total_bytes(), 20);
  device_block_given(block(5));
  EXPECT_EQ(other->total_bytes(), 0);
}

TEST_F(DeviceMemory, HoldsNoTensorsOfTheHost) {
  install_booking_allocator();
  const auto device = std::make_shared<MemoryBook>(/*books_host=*/false);
  set_thread_memory_book(device);
  const at::DataPtr staged = c10::GetAllocator(at::kCPU)->allocate(100);
  {
    const ScratchScope scratch;
    const at::DataPtr packed = c10::GetAllocator(at::kCPU)->allocate(100);
  }
  device_block_taken(block(6), 24);
  EXPECT_EQ(device->peak_bytes(), 24);
  device_block_given(block(6));
}

// The buffers that a CPU library packs are freed after the product; the product itself is booked, once.
TEST_F(DeviceMemory, ScratchIsNobodys) {
  install_booking_allocator();
  c10::Allocator& host = *c10::GetAllocator(at::kCPU);
  const MemoryScope category(MemoryCategory::kGradients);
  at::DataPtr before = host.allocate(10), product;
  {
    const ScratchScope scratch;
    const at::DataPtr packed = host.allocate(1 << 20);
    product = host.allocate(100);
    before.clear();
    EXPECT_EQ(book_->total_bytes(), 0) << "until the end";
  }
  EXPECT_EQ(book_->bytes(MemoryCategory::kGradients), 100);
  EXPECT_EQ(book_->peak_bytes(), 100);
  product.clear();
  EXPECT_EQ(book_->total_bytes(), 0);
}

}  // namespace
}  // namespace ranklab
