// The memory of the stand-in's GPUs. Its addresses are a GPU's: a loop of the host that reads or writes there ends the
// process, as on a machine with a GPU. What runs on streams finds the same bytes at on_host(). Cost: address space of
// which only what is used is memory. Thread rule: any thread.
#pragma once
#include <cstddef>

namespace ranklab::stand_in {

void* allocate_device_memory(size_t bytes, int device);  // null: there is none left
// `idle`: the device that has no work left. Memory of others, which their streams may still use, stays as it is until
// they free something themselves: LibTorch's allocator gives back what it keeps of all devices at once.
void free_device_memory(void* address, int idle);
// Where the host has what is at a GPU's address; other addresses are the host's own. The two differ by a multiple of
// 2^32: a number of 32 bits is the same afterwards, whatever the unused bits next to it are.
void* on_host(void* address);
inline const void* on_host(const void* address) { return on_host(const_cast<void*>(address)); }

}  // namespace ranklab::stand_in
