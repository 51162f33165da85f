#include "tests/cuda/stand_in/host_tensors.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
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
#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/meta/meta_kernels.h"
#include "core/sim/aten.h"
#include "tests/cuda/stand_in/cuda_runtime.h"
#include "tests/cuda/stand_in/device_memory.h"
#include "tests/cuda/stand_in/host_waits.h"
#include "tests/cuda/stand_in/stream_kernels.h"
#include "tests/cuda/stand_in/stream_rounding.h"

// Exported by c10_cuda for LibTorch's CUDA half alone, so no header has it.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace ranklab::stand_in {
namespace {

// Sums of the host's operators depend on the number of math threads, which each thread has of its own: all streams have
// one, so that work has the same bits on each of them.
void compute_alone() {
  thread_local const bool alone = (at::set_num_threads(1), true);
  static_cast<void>(alone);
}

using OptionalType = std::optional<at::ScalarType>;
using OptionalLayout = std::optional<at::Layout>;
using OptionalDevice = std::optional<at::Device>;

std::atomic<bool> g_results_wait{false};

constexpr c10::DispatchKeySet kCudaKeys(c10::DispatchKey::CUDA);

// The same memory as a tensor of the host. It keeps nothing alive, as a kernel's pointers do not.
at::Tensor same_on_host(const at::Tensor& tensor) {
  return at::from_blob(on_host(tensor.data_ptr()), tensor.sizes(), tensor.strides(),
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

// The host waits where one side is its own memory, unless it may go on: then what it wrote is taken as it is now.
at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.numel() == 0) return self;
  const cudaStream_t stream = current_stream(self.is_cuda() ? self : source);
  const auto there = [&](const at::Tensor& x) { return x.is_cuda() ? same_on_host(x) : non_blocking ? x.clone() : x; };
  launch(stream, [to = self.is_cuda() ? same_on_host(self) : self, from = there(source)]() mutable { to.copy_(from); });
  if (self.is_cuda() && (source.is_cuda() || non_blocking)) return self;
  note_host_wait(self.is_cuda() ? "copy to the GPU" : "copy to the host");
  wait_for(stream);
  return self;
}

at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  if (self.numel() > 0) launch(current_stream(self), [to = same_on_host(self), value]() mutable { to.fill_(value); });
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
  note_host_wait("item()");
  wait_for(current_stream(self));
  return same_on_host(self).item();
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

bool is_of_host(const at::Tensor& x) { return x.defined() && x.is_cpu() && x.dim() > 0; }

template <typename F>
void for_each_tensor(const torch::jit::Stack& arguments, const F& use) {
  const auto one = [&](const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) use(value.toTensor());
  };
  for (const c10::IValue& argument : arguments) {
    one(argument);
    if (!argument.isList()) continue;
    const auto list = argument.toList();
    for (size_t i = 0; i < list.size(); ++i) one(list.get(i));
  }
}

// The argument with each tensor as `changed` has it.
template <typename F>
c10::IValue with_tensors(const c10::IValue& argument, const F& changed) {
  if (argument.isTensor()) return changed(argument.toTensor());
  if (!argument.isList()) return argument;
  c10::List<c10::IValue> list = argument.toList().copy();
  for (size_t i = 0; i < list.size(); ++i) {
    if (const c10::IValue each = list.get(i); each.isTensor()) list.set(i, changed(each.toTensor()));
  }
  return list;
}

// Operators of a GPU that look at numbers before they launch the kernels that make their result.
bool reads_first(const std::string& name, const torch::jit::Stack& arguments) {
  static const std::set<std::string> kReading = {
      "aten::bincount", "aten::nonzero",    "aten::masked_select",    "aten::equal",
      "aten::_unique2", "aten::is_nonzero", "aten::repeat_interleave"};
  if (kReading.contains(name)) return true;
  if (!name.starts_with("aten::index") && !name.starts_with("aten::_index_put")) return false;
  // The positions of a mask are found first, and indices of the host are copied.
  bool reads = false;
  const auto look = [&](const at::Tensor& x) { reads = reads || x.scalar_type() == at::kBool || is_of_host(x); };
  if (arguments.size() > 1 && arguments[1].isList()) for_each_tensor({arguments[1]}, look);
  return reads;
}

void check_devices(const std::string& name, const torch::jit::Stack& arguments) {
  if (name.starts_with("aten::index") || name.starts_with("aten::_index_put")) return;
  for_each_tensor(arguments, [&](const at::Tensor& x) {
    TORCH_CHECK(!is_of_host(x), "Expected all tensors to be on the same device: ", name,
                " has tensors of a GPU and one of the host, of sizes ", x.sizes());
  });
}

// Of operators without a kernel on shapes: their result, given the first argument.
std::optional<at::Tensor> known_shape(const std::string& name, const torch::jit::Stack& shapes) {
  if (name == "aten::__rshift__") return shapes.front().toTensor();
  const bool of_all = (name == "aten::max" || name == "aten::min") && shapes.size() == 1;
  return of_all ? std::optional(at::empty({}, shapes.front().toTensor().options())) : std::nullopt;
}

// What the operator returns for tensors that are shapes; nullopt: it needs their numbers, or knows none without.
std::optional<torch::jit::Stack> on_shapes(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  torch::jit::Stack shapes;
  for (const c10::IValue& argument : arguments) {
    if (argument.isDevice()) {
      shapes.emplace_back(at::Device(at::kMeta));
      continue;
    }
    shapes.push_back(with_tensors(argument, [](const at::Tensor& x) {
      if (!x.defined() || !x.is_cuda()) return x;
      return at::empty_strided(x.sizes(), x.strides(), at::TensorOptions(x.scalar_type()).device(at::kMeta));
    }));
  }
  if (const auto known = known_shape(op.schema().name(), shapes)) return torch::jit::Stack{*known};
  const torch::jit::Stack kept = shapes;  // what is returned by reference must outlive the call's own arguments
  try {
    op.callBoxed(shapes);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return shapes;
}

// For each result the argument that it is, if it is one.
std::vector<std::optional<size_t>> returned_arguments(const c10::FunctionSchema& schema) {
  std::vector<std::optional<size_t>> found;
  for (const c10::Argument& result : schema.returns()) {
    found.emplace_back();
    for (size_t i = 0; i < schema.arguments().size() && result.alias_info() != nullptr; ++i) {
      const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
      if (alias == nullptr || !(*alias == *result.alias_info())) continue;
      found.back() = i;
      break;
    }
  }
  return found;
}

// Copies arguments to the host, computes there and copies results back, while the host waits.
void while_host_waits(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  note_host_wait(op.schema().name());
  const NoHostWaits own;
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

at::Tensor like_shape(const at::Tensor& shape, at::Device device) {
  if (!shape.defined()) return {};
  return at::empty_strided(shape.sizes(), shape.strides(), at::TensorOptions(shape.scalar_type()).device(device));
}

// Tensors of results, in order.
std::vector<at::Tensor> tensors_of(const torch::jit::Stack& results) {
  std::vector<at::Tensor> all;
  for (const c10::IValue& result : results) {
    if (result.isTensor()) {
      all.push_back(result.toTensor());
      continue;
    }
    for (const at::Tensor& each : result.toTensorVector()) all.push_back(each);
  }
  return all;
}

// Those that are written into, where these are all; nullopt: one is new, or is to get its size.
std::optional<torch::jit::Stack> written_arguments(const c10::FunctionSchema& schema,
                                                   const torch::jit::Stack& arguments) {
  torch::jit::Stack written;
  for (const std::optional<size_t>& each : returned_arguments(schema)) {
    if (!each || (arguments[*each].isTensor() && arguments[*each].toTensor().numel() == 0)) return std::nullopt;
    written.push_back(arguments[*each]);
  }
  return written;
}

// What is written into tensors that are there, and new ones, which the kernel fills; nullopt: numbers must be known.
std::optional<torch::jit::Stack> results_of(const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
                                            at::Device device) {
  const c10::FunctionSchema& schema = op.schema();
  if (reads_first(schema.name(), arguments)) return std::nullopt;
  if (g_results_wait) return written_arguments(schema, arguments);
  const std::optional<torch::jit::Stack> known = on_shapes(op, arguments);
  if (!known) return written_arguments(schema, arguments);
  const torch::jit::Stack& shapes = *known;
  const std::vector<std::optional<size_t>> returned = returned_arguments(schema);
  torch::jit::Stack results;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].isTensor() && !shapes[i].isTensorList()) return std::nullopt;
    if (!returned[i]) {
      results.push_back(with_tensors(shapes[i], [&](const at::Tensor& x) { return like_shape(x, device); }));
      continue;
    }
    results.push_back(arguments[*returned[i]]);
    if (results.back().isTensor()) resize(results.back().toTensor(), shapes[i].toTensor().sizes(), std::nullopt);
  }
  return results;
}

void by_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string& name = op.schema().name();
  const size_t count = op.schema().arguments().size();
  const torch::jit::Stack arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  check_devices(name, arguments);
  std::optional<at::Device> device;
  for_each_tensor(arguments, [&](const at::Tensor& x) {
    if (x.is_cuda() && !device) device = x.device();
  });
  const std::optional<torch::jit::Stack> made = device ? results_of(op, arguments, *device) : std::nullopt;
  if (!made) return while_host_waits(op, stack);
  const torch::jit::Stack& results = *made;
  const auto there = [](const at::Tensor& x) { return x.defined() && x.is_cuda() ? same_on_host(x) : x; };
  torch::jit::Stack of_host;
  for (const c10::IValue& argument : arguments) of_host.push_back(with_tensors(argument, there));
  std::vector<at::Tensor> filled;  // in the order of results; those that are arguments are filled as such
  for (const at::Tensor& each : tensors_of(results)) filled.push_back(there(each));
  torch::jit::drop(*stack, count);
  for (const c10::IValue& result : results) stack->push_back(result);
  launch(c10::cuda::getCurrentCUDAStream(device->index()).stream(), [op, of_host, filled] {
    compute_alone();
    const at::AutoDispatchBelowADInplaceOrView only_the_kernel;
    torch::jit::Stack taken = of_host;  // of which results by reference may be parts
    op.callBoxed(taken);
    const std::vector<at::Tensor> computed = tensors_of(taken);
    for (size_t i = 0; i < computed.size(); ++i) {
      const at::Tensor& from = computed[i];
      if (from.defined() && filled[i].defined() && from.data_ptr() != filled[i].data_ptr()) filled[i].copy_(from);
    }
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
  // Operators that have kernels of a GPU, and else would be chains of others.
  for (const char* fused : {"native_layer_norm", "native_layer_norm_backward"})
    operators.impl(fused, torch::CppFunction::makeFromBoxedFunction<&by_host>());
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

WaitingOperators::WaitingOperators() { g_results_wait = true; }
WaitingOperators::~WaitingOperators() { g_results_wait = false; }

void use_host_tensors() {
  meta::install_kernels();
  use_device_kernels(KernelDevice::kCuda, &stream_kernels());
  use_device_rounding(&stream_rounding());
  at::globalContext().lazyInitDevice(at::kCUDA);
}

void launch_on_host(const std::vector<at::Tensor>& tensors,
                    std::function<void(const std::vector<at::Tensor>&)> kernel) {
  std::vector<at::Tensor> there;
  for (const at::Tensor& each : tensors) there.push_back(same_on_host(each));
  launch(current_stream(tensors.front()), [there, kernel = std::move(kernel)] {
    compute_alone();
    const at::AutoDispatchBelowADInplaceOrView only_the_kernel;
    kernel(there);
  });
}

}  // namespace ranklab::stand_in
