#include "cli/bench/bench_kernels.h"

#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/cpu_sim/thread_world.h"
#include "cli/bench/bench_device.h"
#include "cli/bench/device_timer.h"
#include "cli/common/json_output.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/rank_context.h"
#include "core/nn/accumulate.h"
#include "core/nn/activation.h"
#include "core/nn/attention/attention.h"
#include "core/nn/attention/softmax_attention.h"
#include "core/nn/head_norm.h"
#include "core/nn/kernels/device_kernels.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/norm.h"
#include "core/optim/grad_clip.h"
#include "core/optim/optimizer.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/parallel/quantized/scaled_product.h"
#include "core/parallel/tensor/vocab_cross_entropy.h"
#include "core/precision/recipe.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

using Tensors = std::vector<at::Tensor>;

// As long as this object lives, only ATen's kernels are used on a GPU.
class PlainScope {
 public:
  PlainScope() : previous_(device_kernels(KernelDevice::kCuda)) { use_device_kernels(KernelDevice::kCuda, nullptr); }
  ~PlainScope() { use_device_kernels(KernelDevice::kCuda, previous_); }
  PlainScope(const PlainScope&) = delete;
  PlainScope& operator=(const PlainScope&) = delete;

 private:
  const DeviceKernels* previous_;
};

struct KernelRow {
  std::string name;
  double bytes = 0, flops = 0;
  double ms = 0, plain_ms = 0;
};

class KernelBench {
 public:
  // Called with each row as it is measured, and with the first row, which is the copy to compare with.
  using Tell = std::function<void(const KernelRow& row, const KernelRow& copy)>;
  KernelBench(const BenchKernelsOptions& options, at::Device device, RankContext& context, Tell told)
      : o_(options), device_(device), timer_(device, options.iterations), context_(context), told_(std::move(told)) {}

  std::vector<KernelRow> run() {
    copy();
    norms();
    swiglus();
    attentions();
    losses();
    updates();
    quantized();
    return rows_;
  }

 private:
  // Sizes of llama_1b.
  static constexpr int64_t kHidden = 2048, kFfn = 8192, kVocab = 128256;
  static inline const AttentionShape kHeads{32, 8, 64};

  at::Tensor sample(at::IntArrayRef shape) const {
    return at::randn(shape, at::TensorOptions(at::kBFloat16).device(device_));
  }

  void keep(KernelRow row) {
    rows_.push_back(std::move(row));
    told_(rows_.back(), rows_.front());
  }

  void add(const std::string& name, double bytes, double flops, const std::function<void()>& work) {
    KernelRow row{name, bytes, flops};
    row.ms = timer_.milliseconds(work);
    const PlainScope plain;
    row.plain_ms = timer_.milliseconds(work);
    keep(row);
  }

  // Times a layer's forward, and its backward through a retained graph.
  void layer(const std::string& name, const std::function<Tensors(const Tensors&)>& run, const Tensors& inputs,
             std::pair<double, double> bytes, double flops = 0) {
    add(name + " forward", bytes.first, flops, [&] { run(inputs); });
    Tensors leaves;
    for (const at::Tensor& x : inputs) leaves.push_back(x.detach().requires_grad_(true));
    const auto backward = [&] {
      const Tensors outputs = run(leaves);
      Tensors seeds;
      for (const at::Tensor& y : outputs) seeds.push_back(at::ones_like(y));
      return timer_.milliseconds([&] { torch::autograd::grad(outputs, leaves, seeds, /*retain_graph=*/true); });
    };
    KernelRow row{name + " backward", bytes.second, 2.5 * flops};
    row.ms = backward();
    const PlainScope plain;
    row.plain_ms = backward();
    keep(row);
  }

  void copy() {
    const at::Tensor from = sample({o_.tokens, kFfn}), to = at::empty_like(from);
    add("copy", 2 * bytes_of(from), 0, [&] { at::Tensor(to).copy_(from); });
  }

  void norms() {
    const at::Tensor x = sample({o_.tokens, kHidden}), branch = sample({o_.tokens, kHidden}),
                     weight = sample({kHidden});
    layer("add + RMSNorm",
          [](const Tensors& in) {
            const NormOutput out = add_rms_norm(in[0], in[1], in[2], {1e-5});
            return Tensors{out.sum, out.normed};
          },
          {x, branch, weight}, {4 * bytes_of(x), 4 * bytes_of(x)});
    static const AttentionShape kQwen{16, 8, 128};
    const at::Tensor qkv = sample({o_.tokens, 1, (kQwen.heads + 2 * kQwen.groups) * kQwen.head_dim});
    layer("head norm",
          [](const Tensors& in) {
            return Tensors{head_norm(in[0], kQwen, {in[1], in[2], 1e-6})};
          },
          {qkv, sample({kQwen.head_dim}), sample({kQwen.head_dim})}, {2 * bytes_of(qkv), 3 * bytes_of(qkv)});
  }

  void swiglus() {
    const at::Tensor gate_up = sample({o_.tokens, 2 * kFfn});
    layer("SwiGLU", [](const Tensors& in) { return Tensors{swiglu(in[0])}; }, {gate_up},
          {1.5 * bytes_of(gate_up), 2.5 * bytes_of(gate_up)});
  }

  void attentions() {
    const int64_t width = (kHeads.heads + 2 * kHeads.groups) * kHeads.head_dim;
    const int64_t seq = std::min(o_.seq_length, o_.tokens), batch = o_.tokens / seq;
    const at::Tensor qkv = sample({seq, batch, width});
    const RopeTable rope = make_rope_table(seq, kHeads.head_dim, 5e5, at::TensorOptions(at::kFloat).device(device_));
    const double flops = 2.0 * static_cast<double>(seq) * static_cast<double>(seq) *
                         static_cast<double>(batch * kHeads.heads * kHeads.head_dim);
    const auto run = [&](const Tensors& in) { return Tensors{causal_attention(in[0], kHeads, rope)}; };
    const GpuAttention chosen = gpu_attention();
    for (const auto& [name, kernel] : {std::pair{"flash", GpuAttention::kFlash}, {"cuDNN", GpuAttention::kCudnn}}) {
      if (device_.is_cpu() && kernel == GpuAttention::kCudnn) continue;
      use_gpu_attention(kernel);
      layer(std::string("attention with rope, ") + name, run, {qkv}, {2 * bytes_of(qkv), 4 * bytes_of(qkv)}, flops);
    }
    use_gpu_attention(chosen);
    if (const DeviceKernels* kernels = device_kernels_of(qkv)) {
      const auto heads = [&](int64_t count) { return at::empty({seq, batch, count, kHeads.head_dim}, qkv.options()); };
      const at::Tensor q = heads(kHeads.heads), k = heads(kHeads.groups), v = heads(kHeads.groups);
      const auto strides = [&](int64_t count) {
        return kernels::HeadStrides{count * kHeads.head_dim, kHeads.head_dim, batch * count * kHeads.head_dim};
      };
      const DeviceQkv task{device_number(qkv),
                           {seq, batch, kHeads.heads, kHeads.groups, kHeads.head_dim},
                           {strides(kHeads.heads), strides(kHeads.groups), strides(kHeads.groups)},
                           device_in(rope.cos_SD),
                           device_in(rope.sin_SD),
                           device_out(qkv),
                           device_out(q),
                           device_out(k),
                           device_out(v)};
      keep({"split of heads with rope", 2 * bytes_of(qkv), 0, timer_.milliseconds([&] { kernels->split_qkv(task); }),
            0});
      keep({"merge of heads with rope", 2 * bytes_of(qkv), 0, timer_.milliseconds([&] { kernels->merge_qkv(task); }),
            0});
    }
  }

  void losses() {
    const at::Tensor logits = sample({o_.tokens, kVocab});
    const at::Tensor targets = at::randint(kVocab, {o_.tokens}, at::TensorOptions(at::kLong).device(device_));
    const TensorParallel tp{&context_.comm(Axis::kTp)};
    layer("loss",
          [&](const Tensors& in) {
            return Tensors{vocab_parallel_cross_entropy(in[0], targets, shard_padded({kVocab, 1}, 0, 1), tp)};
          },
          {logits}, {bytes_of(logits), 2 * bytes_of(logits)});
  }

  // bf16 parameters and gradients, everything else in fp32.
  void updates() {
    ParameterRegistry registry(1, at::kBFloat16, device_);
    const int64_t rows = std::max<int64_t>(o_.parameters / kHidden / 32, 1);
    for (int i = 0; i < 32; ++i)
      registry.create("w" + std::to_string(i), replicated({rows, kHidden}), {InitKind::kZeros}, true);
    const std::vector<Parameter*> parameters = registry.parameters();
    for (Parameter* p : parameters) p->data.mutable_grad() = sample(p->data.sizes());
    const auto count = static_cast<double>(32 * rows * kHidden);
    const auto optimizer = make_adamw(parameters, {});
    add("AdamW of " + std::to_string(32 * rows * kHidden / 1'000'000) + "M", (2 + 4 * 6 + 2) * count, 0,
        [&] { optimizer->step_scaled(1e-4, 0.5); });
    add("gradient norm", 2 * count, 0, [&] { grad_norm(parameters, context_); });
    const at::Tensor& grad = parameters[0]->data.grad();
    const at::Tensor sum = at::zeros(grad.sizes(), grad.options().dtype(at::kFloat));
    add("sum of gradients in fp32", (2 + 4 + 4) * count / 32, 0, [&] { accumulate(sum, grad, false); });
  }

  // FP8: rounding an operand to the layout that its product reads, also transposed; and the product, next to the same
  // one in bf16.
  void quantized() {
    const at::Tensor x = sample({o_.tokens, kHidden}), weight = sample({kFfn, kHidden});
    const DeviceRounding* device = rounding_of(x);
    if (device == nullptr) return;
    const double flops = 2.0 * static_cast<double>(o_.tokens) * kHidden * kFfn;
    const double elements = bytes_of(x) / 2;
    keep({"product in bf16", bytes_of(x) + bytes_of(weight), flops,
          timer_.milliseconds([&] { at::mm(x, weight.t()); })});
    TensorPrecision whole{.format = e4m3()}, rows = whole, tiles = whole, squares = whole;
    rows.granularity = Granularity::kRow;
    tiles.granularity = Granularity::kTile;
    squares.granularity = Granularity::kBlock;
    tiles.block = squares.block = kScaledGroup;
    for (const auto& [name, left, right] :
         {std::tuple{"tensor", whole, whole}, {"row", rows, rows}, {"128", tiles, squares}}) {
      if (scaled_mm_form(left, right, x.size(0), kHidden, kFfn, device->capability()) == ScaledMmForm::kNone) continue;
      const std::string scale = std::string("a scale a ") + name;
      const auto round = [](const at::Tensor& m, const TensorPrecision& p, Along along) {
        return round_operand(m, {.precision = p, .along = along, .codes = true});
      };
      // The amax reads, the rounding reads and writes a byte.
      keep({"FP8 codes, " + scale, 5 * elements, 0, timer_.milliseconds([&] { round(x, left, Along::kColumns); })});
      keep({"FP8 codes transposed, " + scale, 5 * elements, 0,
            timer_.milliseconds([&] { round(x, left, Along::kRows); })});
      const RoundedOperand a = round(x, left, Along::kColumns), b = round(weight, right, Along::kColumns);
      const auto product = [&](int capability) {
        return timer_.milliseconds([&] { device_product({a, left}, {b, right}, capability, at::kBFloat16); });
      };
      keep({"FP8 product, " + scale, bytes_of(x) / 2 + bytes_of(weight) / 2, flops, product(device->capability()),
            product(0)});
    }
  }

  BenchKernelsOptions o_;
  at::Device device_;
  DeviceTimer timer_;
  RankContext& context_;
  Tell told_;
  std::vector<KernelRow> rows_;
};

double gb_per_s(const KernelRow& row) { return row.bytes / row.ms / 1e6; }

void print_head() {
  std::printf("%-34s %9s %9s %8s %8s %9s %7s\n", "kernel", "ms", "ATen ms", "GB/s", "of copy", "TFLOP/s", "faster");
}

// Prints "-" if there is no plain form, or no matrix product.
void print_row(const KernelRow& row, const KernelRow& copy) {
  const std::string plain = row.plain_ms > 0 ? strprintf("%.4f", row.plain_ms) : "-";
  const std::string rate = row.flops > 0 ? strprintf("%.1f", row.flops / row.ms / 1e9) : "-";
  const std::string faster = row.plain_ms > 0 ? strprintf("%.1fx", row.plain_ms / row.ms) : "-";
  std::printf("%-34s %9.4f %9s %8.0f %7.0f%% %9s %7s\n", row.name.c_str(), row.ms, plain.c_str(), gb_per_s(row),
              100 * gb_per_s(row) / gb_per_s(copy), rate.c_str(), faster.c_str());
}

}  // namespace

int run_bench_kernels(const BenchKernelsOptions& options) {
  const at::Device device = bench_device(options.device, "bench kernels");
  std::vector<KernelRow> rows;
  if (!options.json) print_head();
  const KernelBench::Tell tell = [&options](const KernelRow& row, const KernelRow& copy) {
    if (!options.json) print_row(row, copy);
  };
  const DeviceMesh mesh(ParallelDims{.world = 1});
  const auto world = make_thread_world({.size = 1, .on_stuck = {}});
  world->run([&](Endpoint& endpoint) {
    RankContext context(endpoint, mesh, {.virtual_time = false, .trace = false});
    rows = KernelBench(options, device, context, tell).run();
  });
  if (!options.json) return 0;
  nlohmann::ordered_json data = nlohmann::ordered_json::array();
  for (const KernelRow& row : rows) {
    data.push_back({{"kernel", row.name},
                    {"ms", row.ms},
                    {"aten_ms", row.plain_ms},
                    {"gb_per_s", gb_per_s(row)},
                    {"of_copy", gb_per_s(row) / gb_per_s(rows[0])},
                    {"tflop_per_s", row.flops / row.ms / 1e9}});
  }
  std::printf("%s\n", json_result({{"device", device.is_cuda() ? "cuda" : "cpu"}, {"rows", data}}).c_str());
  return 0;
}

}  // namespace ranklab
