// What a kernel on the stand-in's streams finds in its task: addresses of the host, and numbers as they were.
#include "tests/cuda/stand_in/task_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace ranklab::stand_in {
namespace {

struct Task {
  int32_t number;  // behind it are 4 bytes that are nobody's
  void* numbers;
};

TEST(TaskMemory, HasTheHostsAddresses) {
  void* const there_on_gpu = allocate_device_memory(64, 0);
  int on_the_host = 0;
  EXPECT_EQ(there(Task{.number = 3, .numbers = there_on_gpu}).numbers, on_host(there_on_gpu));
  EXPECT_NE(on_host(there_on_gpu), there_on_gpu);
  EXPECT_EQ(there(Task{.number = 3, .numbers = &on_the_host}).numbers, &on_the_host);
  free_device_memory(there_on_gpu, 0);
}

TEST(TaskMemory, KeepsANumberWhateverTheBitsBehindItAre) {
  void* const place = allocate_device_memory(64, 0);
  for (const int32_t number : {0, 1, 3, 0x7fffffff, -1}) {
    Task task;
    std::memcpy(&task, &place, sizeof(place));  // a leftover of an address of the GPU's
    task.number = number;
    EXPECT_EQ(there(task).number, number);
  }
  const auto apart = reinterpret_cast<uintptr_t>(on_host(place)) - reinterpret_cast<uintptr_t>(place);
  EXPECT_EQ(apart % (uintptr_t{1} << 32), 0U);
  free_device_memory(place, 0);
}

}  // namespace
}  // namespace ranklab::stand_in
