#include "core/runtime/observe/rank_probe.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/parallel/data/bucket_shard.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

constexpr int64_t kFirst = 8;
constexpr std::string_view kGrad = ".grad";

// Copies to host memory. The caller is not the rank's thread, whose device kernels may still be running.
at::Tensor settled(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor.detach();
  const c10::impl::VirtualGuardImpl device(tensor.device().type());
  device.synchronizeDevice(tensor.device().index());
  return tensor.detach().to(at::kCPU);
}

void describe_values(const at::Tensor& tensor, TensorSummary& out) {
  const at::Tensor values = settled(tensor).to(at::kDouble).contiguous().flatten();
  const int64_t count = values.numel();
  const double* data = values.const_data_ptr<double>();
  out.first.assign(data, data + std::min(count, kFirst));
  double sum = 0, squares = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(data[i])) continue;
    out.min = finite == 0 ? data[i] : std::min(out.min, data[i]);
    out.max = finite == 0 ? data[i] : std::max(out.max, data[i]);
    sum += data[i];
    squares += data[i] * data[i];
    ++finite;
  }
  out.not_finite = count - finite;
  out.mean = finite > 0 ? sum / static_cast<double>(finite) : 0;
  out.norm = std::sqrt(squares);
}

class RegistryProbe final : public RankProbe {
 public:
  RegistryProbe(const ParameterRegistry& registry, std::shared_ptr<MemoryBook> book,
                std::function<std::vector<at::Tensor>()> shards)
      : registry_(registry), book_(std::move(book)), shards_(std::move(shards)) {}

  int64_t memory_bytes(MemoryCategory category) const override { return book_ ? book_->bytes(category) : 0; }

  std::vector<std::string> tensor_names() const override {
    std::vector<std::string> names;
    for (const Parameter* parameter : registry_.parameters()) names.push_back(parameter->name);
    return names;
  }

  TensorSummary tensor(const std::string& asked) const override {
    const bool grad = asked.ends_with(kGrad);
    const Parameter* parameter = registry_.find(grad ? asked.substr(0, asked.size() - kGrad.size()) : asked);
    if (parameter == nullptr)
      throw unknown_name(asked, tensor_names(),
                         {.where = "tensor",
                          .what = "this rank has no tensor of that name",
                          .want = "a parameter's name, or NAME.grad",
                          .fix = "see: tensors"});
    const at::NoGradGuard no_grad;
    const at::Tensor tensor = grad ? parameter->data.grad() : parameter->data;
    TensorSummary out;
    out.name = asked;
    out.global_shape = parameter->partition.global_shape;
    out.defined = tensor.defined();
    if (!out.defined) return out;
    out.dtype = std::string(name(dtype_of(tensor.scalar_type())));
    out.shape = tensor.sizes().vec();
    if (TypeWatch* watch = *watch_) out.types = watch->type_text(parameter->name, grad);
    RANKLAB_CHECK(!is_freed(tensor), ErrorKind::kInvalidArgument, .where = "tensor",
                  .what = "the parameter is not on this rank now: it is sharded, and gathered for its use",
                  .got = quote(asked) + ", --zero-stage 3", .want = "a moment in its layer's F or B",
                  .fix = "break there, or run with --zero-stage 2");
    describe_values(tensor, out);
    return out;
  }

  uint64_t weights_hash() const override {
    uint64_t hash = 0xcbf29ce484222325;
    for (const at::Tensor& weight : weights()) {
      const at::Tensor bytes = settled(weight).contiguous();
      const auto* data = static_cast<const unsigned char*>(bytes.const_data_ptr());
      const size_t count = bytes.nbytes();
      // FNV-1a, eight bytes at a time.
      for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, data + i, std::min(sizeof word, count - i));
        hash = (hash ^ word) * 0x100000001b3;
        hash ^= hash >> 32;
      }
    }
    return hash;
  }

 private:
  std::vector<at::Tensor> weights() const {
    if (shards_) return shards_();
    std::vector<at::Tensor> all;
    for (const Parameter* parameter : registry_.parameters()) all.push_back(parameter->data);
    return all;
  }

  const ParameterRegistry& registry_;
  std::shared_ptr<MemoryBook> book_;
  std::function<std::vector<at::Tensor>()> shards_;
  TypeWatch* const* watch_ = &type_watch_of_thread;  // the rank's own
};

}  // namespace

std::shared_ptr<const RankProbe> make_rank_probe(const ParameterRegistry& registry, std::shared_ptr<MemoryBook> book,
                                                 std::function<std::vector<at::Tensor>()> shards) {
  return std::make_shared<RegistryProbe>(registry, std::move(book), std::move(shards));
}

}  // namespace ranklab
