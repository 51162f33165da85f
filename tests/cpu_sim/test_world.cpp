#include "tests/cpu_sim/test_world.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "backends/cpu_sim/thread_world.h"
#include "backends/cuda/cuda_backend.h"
#include "core/sim/aten.h"
#include "tests/cpu_sim/host_queues.h"

namespace ranklab {
namespace {

constexpr int kSkipped = 77;  // SKIP_RETURN_CODE of the tests with label gpu

TestDevice requested_device() {
  const char* variable = std::getenv("RANKLAB_TEST_DEVICE");
  const std::string name = variable != nullptr && *variable != '\0' ? variable : "host";
  if (name == "host") return TestDevice::kHost;
  if (name == "queues") return TestDevice::kQueues;
  if (name == "cuda") return TestDevice::kCuda;
  throw std::invalid_argument("RANKLAB_TEST_DEVICE is '" + name + "'; want host, queues or cuda");
}

TestDevice& device() {
  static TestDevice asked = requested_device();
  return asked;
}

class DeviceThere : public testing::Environment {
 public:
  void SetUp() override {
    if (device() != requested_device()) throw std::logic_error("RANKLAB_TEST_DEVICE was read before it was set");
    if (device() != TestDevice::kCuda) return;
    // Before cuBLAS is first used: without it several streams make its sums differ.
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
    std::string why_not;
    if (!cuda_backend_available(&why_not)) {
      // Not by GoogleTest's own skip, which counts every test as passed.
      std::fprintf(stderr, "skipped: %s\n", why_not.c_str());
      std::exit(kSkipped);
    }
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
  }
};

const testing::Environment* const kDeviceThere = testing::AddGlobalTestEnvironment(new DeviceThere);

std::shared_ptr<DeviceQueues> queues() {
  if (device() == TestDevice::kQueues) return make_host_queues();
  return device() == TestDevice::kCuda ? make_cuda_queues() : nullptr;
}

}  // namespace

TestDevice test_device() { return device(); }
std::string test_device_setting() { return device() == TestDevice::kCuda ? "cuda" : "auto"; }
double test_device_bits() { return device() == TestDevice::kCuda ? 1e-12 : 0; }

std::unique_ptr<World> make_test_world(int size) { return make_thread_world({.size = size, .device = queues()}); }

OnTestDevice::OnTestDevice(TestDevice other) : previous_(device()) { device() = other; }
OnTestDevice::~OnTestDevice() { device() = previous_; }

at::Tensor kept(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace ranklab
