// Tasks of the project's own kernels, as a kernel on the stand-in's streams finds them. Thread rule: as Torch's.
#pragma once
#include <c10/cuda/CUDAStream.h>

#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/cuda/stand_in/cuda_runtime.h"
#include "tests/cuda/stand_in/device_memory.h"

namespace ranklab::stand_in {

// The same task with the host's address of each word that is an address of a GPU. No number, and no two of them
// together, looks like such an address: its upper 17 bits are 0 and its other bits are not. A short number and the
// unused bits behind it may look like one, and on_host() leaves the number.
template <typename Task>
Task there(Task task) {
  static_assert(std::is_trivially_copyable_v<Task> && sizeof(Task) % sizeof(void*) == 0);
  auto* const bytes = reinterpret_cast<char*>(&task);
  for (size_t at = 0; at < sizeof(Task); at += sizeof(void*)) {
    void* word = nullptr;
    std::memcpy(&word, bytes + at, sizeof(word));
    word = on_host(word);
    std::memcpy(bytes + at, &word, sizeof(word));
  }
  return task;
}

template <typename Task>
std::vector<Task> there(std::vector<Task> tasks) {
  for (Task& task : tasks) task = there(task);
  return tasks;
}

// Adds work to the calling thread's current stream.
inline void launch_here(std::function<void()> work) {
  launch(c10::cuda::getCurrentCUDAStream().stream(), std::move(work));
}

}  // namespace ranklab::stand_in
