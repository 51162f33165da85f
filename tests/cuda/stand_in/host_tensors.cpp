#include "tests/cuda/stand_in/host_tensors.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/cuda/stand_in/cuda_runtime.h"

// Exported by c10_cuda for LibTorch's CUDA half alone, so no header has it.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace ranklab::stand_in {
namespace {

using OptionalType = std::optional<at::ScalarType>;
using OptionalLayout = std::optional<at::Layout>;
using OptionalDevice = std::optional<at::Device>;

constexpr c10::DispatchKeySet kCudaKeys(c10::DispatchKey::CUDA);

// The same memory as a tensor of the host. It keeps nothing alive, as a kernel's pointers do not.
at::Tensor on_host(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions(tensor.scalar_type()).device(at::kCPU));
}

cudaStream_t current_stream(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

at::Tensor empty(at::IntArrayRef size, OptionalType type, OptionalLayout /*layout*/, OptionalDevice device,
                 std::optional<bool> /*pinned*/, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard there(device.value_or(at::Device(at::kCUDA)));
  return at::detail::empty_generic(size, c10::cuda::CUDACachingAllocator::get(), kCudaKeys, type.value_or(at::kFloat),
                                   format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, OptionalType type, OptionalLayout /*layout*/,
                         OptionalDevice device, std::optional<bool> /*pinned*/) {
  const c10::DeviceGuard there(device.value_or(at::Device(at::kCUDA)));
  return at::detail::empty_strided_generic(size, stride, c10::cuda::CUDACachingAllocator::get(), kCudaKeys,
                                           type.value_or(at::kFloat));
}

// As LibTorch's waits: an error is thrown, such as that of a wait during a capture.
void wait_for(cudaStream_t stream) {
  const cudaError_t code = cudaStreamSynchronize(stream);
  TORCH_CHECK(code == cudaSuccess, "CUDA error: ", cudaGetErrorString(code));
}

// The host waits where one side is its own memory.
at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool /*non_blocking*/) {
  if (self.numel() == 0) return self;
  const cudaStream_t stream = current_stream(self.is_cuda() ? self : source);
  launch(stream, [to = on_host(self), from = on_host(source)]() mutable { to.copy_(from); });
  if (!self.is_cuda() || !source.is_cuda()) wait_for(stream);
  return self;
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  if (self.numel() > 0) launch(current_stream(self), [to = on_host(self), value]() mutable { to.fill_(value); });
  return self;
}

at::Tensor& zero(at::Tensor& self) { return fill(self, 0); }

// For results that an operator is to make as large as they must be: nothing of the old ones is kept.
const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> /*format*/) {
  if (self.sizes() == size) return self;
  const at::Tensor fresh = empty(size, self.scalar_type(), std::nullopt, self.device(), std::nullopt, std::nullopt);
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(fresh.storage());
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  at::Tensor into = resize(target, source.sizes(), std::nullopt);
  return copy(into, source, false);
}

at::Scalar local_scalar(const at::Tensor& self) {
  wait_for(current_stream(self));
  return on_host(self).item();
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

// Which argument each result is; nullopt when one is a new tensor.
std::optional<std::vector<size_t>> returned_arguments(const c10::FunctionSchema& schema) {
  std::vector<size_t> found;
  for (const c10::Argument& result : schema.returns()) {
    for (size_t i = 0; i < schema.arguments().size() && result.alias_info() != nullptr; ++i) {
      const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
      if (alias == nullptr || !(*alias == *result.alias_info())) continue;
      found.push_back(i);
      break;
    }
  }
  if (found.size() < schema.returns().size()) return std::nullopt;
  return found;
}

// The same argument for the host, or itself; `stream` becomes that of its tensors.
c10::IValue for_host(const c10::IValue& argument, cudaStream_t& stream) {
  const auto one = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cuda()) return tensor;
    stream = current_stream(tensor);
    return on_host(tensor);
  };
  if (argument.isTensor()) return one(argument.toTensor());
  if (!argument.isList()) return argument;
  c10::List<c10::IValue> list = argument.toList().copy();
  for (size_t i = 0; i < list.size(); ++i) {
    if (const c10::IValue each = list.get(i); each.isTensor()) list.set(i, one(each.toTensor()));
  }
  return list;
}

bool wants_a_size(const c10::IValue& argument) { return argument.isTensor() && argument.toTensor().numel() == 0; }

// What writes into tensors that are there is work on the stream; its memory is the host's. What makes new ones copies
// its arguments to the host in the stream's order, computes there and copies the results back.
void by_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const std::optional<std::vector<size_t>> returned = returned_arguments(op.schema());
  const torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  if (!returned ||
      std::any_of(returned->begin(), returned->end(), [&](size_t each) { return wants_a_size(arguments[each]); }))
    return at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
  torch::jit::Stack there;
  cudaStream_t stream = nullptr;
  for (const c10::IValue& each : arguments) there.push_back(for_host(each, stream));
  torch::jit::drop(*stack, count);
  for (const size_t each : *returned) stack->push_back(arguments[each]);
  launch(stream, [op, there] {
    const at::AutoDispatchBelowADInplaceOrView only_the_kernel;
    torch::jit::Stack taken = there;  // what is returned by reference must outlive the call's own arguments
    op.callBoxed(taken);
  });
}

TORCH_LIBRARY_IMPL(aten, CUDA, operators) {
  operators.impl("empty.memory_format", TORCH_FN(empty));
  operators.impl("empty_strided", TORCH_FN(empty_strided));
  operators.impl("copy_", TORCH_FN(copy));
  operators.impl("fill_.Scalar", TORCH_FN(fill));
  operators.impl("zero_", TORCH_FN(zero));
  operators.impl("resize_", TORCH_FN(resize));
  operators.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  operators.impl("_local_scalar_dense", TORCH_FN(local_scalar));
  operators.impl("view", TORCH_FN(at::native::view));
  operators.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  operators.impl("as_strided", TORCH_FN(as_strided));
  operators.impl("unfold", TORCH_FN(at::native::unfold));
}

TORCH_LIBRARY_IMPL(_, CUDA, operators) { operators.fallback(torch::CppFunction::makeFromBoxedFunction<&by_host>()); }

// What LibTorch's CPU half asks its CUDA half.
class HostHooks final : public at::CUDAHooksInterface {
 public:
  explicit HostHooks(at::CUDAHooksArgs /*none*/) {}

  void init() const override {
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    c10::cuda::CUDACachingAllocator::init(kDevices);
  }
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  int getNumGPUs() const override { return kDevices; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  at::Allocator* getPinnedMemoryAllocator() const override { return c10::GetAllocator(c10::kCPU); }
};

using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, HostHooks)

}  // namespace

void use_host_tensors() { at::globalContext().lazyInitDevice(at::kCUDA); }

}  // namespace ranklab::stand_in
