// Where the ranks of a test have their tensors: as RANKLAB_TEST_DEVICE says. "host" (the default): rank threads that
// read each other's memory. "queues": the transfers of a device, with the host as that device (host_queues.h). "cuda":
// one GPU that all ranks share; the program ends with code 77 and the reason where there is none. So a suite that
// compares runs with one rank is one suite for all three. Thread rule: main thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "core/comm/world.h"

namespace ranklab {

enum class TestDevice { kHost, kQueues, kCuda };

TestDevice test_device();
// For TrainConfig::device.
std::string test_device_setting();
// The tolerance in place of "the same bits": a GPU's libraries may take another kernel for another shape.
double test_device_bits();
std::unique_ptr<World> make_test_world(int size);

// While alive, instead of the variable.
class OnTestDevice {
 public:
  explicit OnTestDevice(TestDevice device);
  ~OnTestDevice();
  OnTestDevice(const OnTestDevice&) = delete;
  OnTestDevice& operator=(const OnTestDevice&) = delete;

 private:
  TestDevice previous_;
};

// A copy in the host's memory.
at::Tensor kept(const at::Tensor& tensor);

}  // namespace ranklab
