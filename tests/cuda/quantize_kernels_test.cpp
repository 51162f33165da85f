// The GPU's quantizer against core/precision, where there is a GPU.
#include "backends/cuda/kernels/quantize_kernels.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/cuda/quantize_cases.h"

namespace ranklab {
namespace {

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

struct CudaFree {
  void operator()(void* p) const { cudaFree(p); }
};

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    void* p = nullptr;
    EXPECT_EQ(cudaMalloc(&p, std::max<size_t>(count, 1) * sizeof(T)), cudaSuccess);
    data_.reset(static_cast<T*>(p));
  }
  explicit DeviceArray(const std::vector<T>& from) : DeviceArray(from.size()) {
    EXPECT_EQ(cudaMemcpy(get(), from.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  T* get() const { return data_.get(); }
  std::vector<T> read() const {
    std::vector<T> result(count_);
    EXPECT_EQ(cudaMemcpy(result.data(), get(), count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return result;
  }

 private:
  size_t count_;
  std::unique_ptr<T, CudaFree> data_;
};

template <typename T>
void expect_case(const QuantizeCase& c, const std::vector<T>& numbers, const Wanted& want) {
  QuantizeTask<T> task = task_of<T>(c);
  const DeviceArray<T> x(numbers);
  const DeviceArray<float> amax(1), values(numbers.size());
  const DeviceArray<uint8_t> codes(static_cast<size_t>(c.rows * task.code_stride));
  const DeviceArray<uint8_t> scales(want.scales.size() * (task.scale_code == ScaleCode::kFp32 ? 4 : 1));
  task.x = x.get();
  ASSERT_EQ(launch_tensor_amax(task, amax.get(), nullptr), cudaSuccess);
  task.tensor_amax = amax.get();
  task.codes = codes.get();
  task.scales = scales.get();
  task.values = values.get();
  const bool whole = c.precision.granularity == Granularity::kTensor;
  ASSERT_EQ(whole ? launch_quantize_tensor(task, nullptr) : launch_quantize(task, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(same_bits(amax.read(), {want.tensor_amax})) << c.name();
  EXPECT_TRUE(same_bits(values.read(), want.values)) << c.name();
  EXPECT_TRUE(
      same_bits(read_back(c, codes.read(), scales.read(), tensor_scale(c.precision, want.tensor_amax)), want.values))
      << c.name();
}

TEST(QuantizeKernels, HaveTheBitsOfTheCpu) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  for (const QuantizeCase& c : quantize_cases()) {
    const std::vector<float> x = case_numbers(c);
    std::vector<Bf16Bits> narrow(x.size());
    for (size_t i = 0; i < x.size(); ++i) narrow[i] = {static_cast<uint16_t>(std::bit_cast<uint32_t>(x[i]) >> 16)};
    const Wanted want = wanted(c, x);
    expect_case(c, x, want);
    expect_case(c, narrow, want);
  }
}

}  // namespace
}  // namespace ranklab
