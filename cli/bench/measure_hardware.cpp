#include "cli/bench/measure_hardware.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "backends/cpu_sim/thread_world.h"
#include "cli/bench/device_timer.h"
#include "core/nn/attention/block_attention.h"
#include "core/nn/attention/softmax_attention.h"
#include "core/nn/gemm.h"
#include "core/sim/aten.h"
#include "core/sim/op_cost.h"

namespace ranklab {
namespace {

constexpr int64_t kHeads = 4;
constexpr double kEnoughMs = 3;  // duration of a timing
constexpr int kTimings = 3;      // the fastest of them counts, because other programs share the machine

class Points {
 public:
  Points(at::Device device, const HardwareSizes& sizes)
      : device_(device), sizes_(sizes), type_(device.is_cpu() ? at::kFloat : at::kBFloat16) {}

  HardwarePoints all() {
    products();
    attentions();
    elementwise();
    return std::move(out_);
  }

 private:
  at::Tensor sample(at::IntArrayRef shape, at::ScalarType type) const {
    return at::randn(shape, at::TensorOptions(at::kFloat).device(device_)).to(type);
  }
  at::Tensor sample(at::IntArrayRef shape) const { return sample(shape, type_); }

  double seconds(const std::function<void()>& work) const {
    const double once = std::max(DeviceTimer(device_, 1).milliseconds(work), 1e-4);
    const int iterations = std::clamp(static_cast<int>(kEnoughMs / once), 1, 1000);
    double best = once;
    for (int i = 0; i < kTimings; ++i) best = std::min(best, DeviceTimer(device_, iterations).milliseconds(work));
    return best * 1e-3;
  }

  double product_seconds(int64_t m, int64_t n, int64_t k, at::ScalarType type) const {
    const at::Tensor a = sample({m, k}, type), b = sample({k, n}, type);
    return seconds([&] { gemm(a, b); });
  }

  void products() {
    for (const int64_t m : sizes_.rows)
      for (const int64_t n : sizes_.cols)
        for (const int64_t k : sizes_.cols) {
          const auto x = static_cast<double>(m), y = static_cast<double>(n), z = static_cast<double>(k);
          const double bytes = (x * z + z * y + x * y) * static_cast<double>(c10::elementSize(type_));
          out_.products.push_back({{2 * x * y * z, bytes, dtype_of(type_), KernelShape::product(x, y, z)},
                                   product_seconds(m, n, k, type_)});
        }
    const int64_t most = sizes_.cols.back();
    const double flops = 2 * static_cast<double>(most) * static_cast<double>(most) * static_cast<double>(most);
    out_.flops_fp64 = flops / product_seconds(most, most, most, at::kDouble);
    out_.flops_16bit = flops / product_seconds(most, most, most, at::kBFloat16);
  }

  void attentions() {
    for (const int64_t s : sizes_.positions)
      for (const int64_t d : sizes_.widths) {
        const SoftmaxHeads in{sample({1, kHeads, s, d}), sample({1, kHeads, s, d}), sample({1, kHeads, s, d})};
        const at::Tensor grad = sample({1, kHeads, s, d});
        const SoftmaxedHeads forward = softmax_attention(in);
        const auto queries = static_cast<double>(kHeads * s), keys = static_cast<double>(s) / 2;
        const auto width = static_cast<double>(d);
        const KernelShape shape = KernelShape::attention(queries, keys, width);
        const double flops = 4 * queries * keys * width;
        const double bytes = 4 * queries * width * static_cast<double>(c10::elementSize(type_));
        const auto add = [&](std::vector<KernelPoint>& to, const KernelShape& of, double times,
                             const std::function<void()>& work) {
          to.push_back({{times * flops, times * bytes, dtype_of(type_), of}, seconds(work)});
        };
        add(out_.attention, shape, 1, [&] { softmax_attention(in); });
        add(out_.attention_backward, shape.of_backward(), 2.5, [&] { softmax_attention_grad(in, forward, grad); });
        const AttentionBlock all{.queries = s, .keys = s, .kind = AttentionBlock::Kind::kFull};
        KernelShape square = KernelShape::attention(queries, 2 * keys, width).of_square();
        out_.attention_square.push_back(
            {{2 * flops, bytes, dtype_of(type_), square}, seconds([&] { block_attention(in, all, {}, {}); })});
      }
  }

  void elementwise() {
    for (const int64_t elements : sizes_.elements) {
      const at::Tensor a = sample({elements}), b = sample({elements});
      at::Tensor sum = at::empty_like(a);
      const double bytes = 3 * static_cast<double>(a.nbytes());
      out_.elementwise.push_back(
          {{static_cast<double>(elements), bytes, dtype_of(type_), {}}, seconds([&] { at::add_out(sum, a, b); })});
      const double copied = 2 * static_cast<double>(a.nbytes());
      out_.copy_bytes_per_s = copied / seconds([&] { sum.copy_(a); });  // the last, largest size decides
    }
    const at::Tensor one = sample({1});
    out_.shortest_kernel_s = seconds([&] { one.add_(one); });
  }

  at::Device device_;
  const HardwareSizes& sizes_;
  at::ScalarType type_;
  HardwarePoints out_;
};

void call(Communicator& comm, Verb verb, const at::Tensor& whole, const at::Tensor& part) {
  if (verb == Verb::kAllReduce) comm.all_reduce(whole);
  if (verb == Verb::kAllGather) comm.all_gather(part);
  if (verb == Verb::kReduceScatter) comm.reduce_scatter(whole);
  if (verb == Verb::kAllToAll) comm.all_to_all(whole);
}

double collective_seconds(Verb verb, int ranks, int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  const auto world = make_thread_world({.size = ranks});
  world->run([&](Endpoint& endpoint) {
    Group group{.axis = Axis::kWorld,
                .global_ranks = std::vector<int>(static_cast<size_t>(ranks)),
                .group_rank = endpoint.global_rank()};
    std::iota(group.global_ranks.begin(), group.global_ranks.end(), 0);
    const CommunicatorPtr comm = endpoint.communicator(group);
    const int64_t each = std::max<int64_t>(1, bytes / 4 / ranks);
    const at::Tensor part = at::ones({each}), whole = at::zeros({each * ranks});
    const int calls = bytes <= 1 << 16 ? 40 : 8;
    for (int i = 0; i < calls + 2; ++i) {
      const auto begin = Clock::now();
      call(*comm, verb, whole, part);
      const double spent = std::chrono::duration<double>(Clock::now() - begin).count();
      if (i >= 2 && endpoint.global_rank() == 0) best = std::min(best, spent);
    }
  });
  return best;
}

}  // namespace

HardwareSizes hardware_sizes(bool gpu, bool quick) {
  if (gpu)
    return {.rows = {512, 2048, 8192},
            .cols = {1024, 4096, 8192},
            .positions = {1024, 4096, 8192},
            .widths = {64, 128},
            .elements = {int64_t{1} << 24, int64_t{1} << 26, int64_t{1} << 27},
            .ranks = {},
            .bytes = {}};
  if (quick)
    return {.rows = {32, 128},
            .cols = {128, 256},
            .positions = {64, 128, 256},
            .widths = {32},
            .elements = {1 << 22, 1 << 24},
            .ranks = {2, 4},
            .bytes = {1 << 12, 1 << 18}};
  return {.rows = {32, 128, 512},
          .cols = {128, 256, 512, 1024},
          .positions = {128, 256, 512, 1024},
          .widths = {32, 64, 128},
          .elements = {1 << 23, 1 << 24, 1 << 25, 1 << 26},
          .ranks = {2, 4, 8},
          .bytes = {1 << 12, 1 << 16, 1 << 20, 1 << 24}};
}

HardwarePoints measure_hardware(at::Device device, const HardwareSizes& sizes, bool with_collectives) {
  const at::NoGradGuard no_grad;
  at::set_num_threads(1);
  HardwarePoints points = Points(device, sizes).all();
  if (!with_collectives) return points;
  for (const Verb verb : {Verb::kAllGather, Verb::kReduceScatter, Verb::kAllReduce, Verb::kAllToAll})
    for (const int ranks : sizes.ranks)
      for (const int64_t bytes : sizes.bytes)
        points.collectives.push_back({verb, ranks, bytes, collective_seconds(verb, ranks, bytes)});
  return points;
}

}  // namespace ranklab
