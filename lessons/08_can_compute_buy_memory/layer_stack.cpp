#include "lessons/08_can_compute_buy_memory/layer_stack.h"

#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <memory>
#include <mutex>

#include "core/model/block.h"
#include "core/model/recompute.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {
namespace {

constexpr int64_t kSequence = 128, kBatch = 4, kHidden = 128, kHeads = 8;

ModelConfig config_of(int64_t ffn) {
  return {.num_layers = 1,
          .hidden_size = kHidden,
          .ffn_hidden_size = ffn,
          .num_attention_heads = kHeads,
          .seq_length = kSequence};
}

// The activation memory of a stack on one rank, without weights and position tables.
class Stack {
 public:
  Stack(RankContext& context, const Widths& widths) : registry_(8, at::kFloat, context.device()) {
    const NoCostScope no_cost;
    const MemoryScope memory(MemoryCategory::kParameters);
    const TensorParallel tp{&context.comm(Axis::kTp), false};
    const ModelConfig any = config_of(kHidden);
    const RopeTable rope =
        make_rope_table(kSequence, any.head_dim(), any.rope_theta, at::TensorOptions().dtype(at::kFloat));
    blocks_.reserve(widths.size());
    for (size_t i = 0; i < widths.size(); ++i) {
      blocks_.emplace_back(ModuleScope(registry_, "layers." + std::to_string(i)), config_of(widths[i]),
                           BlockContext{.layer = static_cast<int64_t>(i), .rope = rope, .tp = tp});
    }
    input_ = at::linspace(-1, 1, kSequence * kBatch * kHidden, at::TensorOptions().dtype(at::kFloat))
                 .view({kSequence, kBatch, kHidden})
                 .requires_grad_(true);
    gradient_ = at::full({kSequence, kBatch, kHidden}, 0.01, at::TensorOptions().dtype(at::kFloat));
  }

  void forward_backward(const std::vector<bool>& recompute) {
    ResidualStream stream{input_, {}};
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const Piece block = [&of = blocks_[i]](ResidualStream& s, const ForwardContext& c) { of.forward(s, c); };
      recompute[i] ? recomputed(block, stream, {}) : block(stream, {});
    }
    const at::Tensor out = stream.x_SBH + stream.branch_SBH;
    stream = {};
    torch::autograd::backward({out}, {gradient_});
  }

  // What the second-to-last layer keeps; the last layer also holds its own output.
  int64_t bytes_kept(const MemoryBook& book, size_t layer) {
    ResidualStream stream{input_, {}};
    int64_t before = 0, after = 0;
    for (size_t i = 0; i <= layer; ++i) {
      before = book.bytes(MemoryCategory::kActivations);
      blocks_[i].forward(stream, {});
      after = book.bytes(MemoryCategory::kActivations);
    }
    return after - before;
  }

  std::string gradient_bits() const {
    std::string bits;
    const auto add = [&](const at::Tensor& grad) {
      const at::Tensor dense = grad.contiguous();
      bits.append(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes());
    };
    add(input_.grad());
    for (const Parameter* parameter : registry_.parameters()) add(parameter->data.grad());
    return bits;
  }

 private:
  ParameterRegistry registry_;
  std::vector<TransformerBlock> blocks_;
  at::Tensor input_, gradient_;
};

template <typename Body>
void on_one_rank(const Body& body) {
  install_booking_allocator();
  run_ranks({.dims = {.world = 1}, .hardware = "laptop"}, [&](RankContext& context) {
    const auto book = std::make_shared<MemoryBook>();
    set_thread_memory_book(book);
    body(context, *book);
    set_thread_memory_book(nullptr);
  });
}

// The FLOPs of one forward: the matrix products with the weights, and the causal half of attention's two products.
double forward_work(int64_t ffn) {
  const auto h = static_cast<double>(kHidden), f = static_cast<double>(ffn), s = static_cast<double>(kSequence);
  return static_cast<double>(kSequence * kBatch) * (2 * (4 * h * h + 3 * h * f) + 2 * s * h);
}

// Measured once per process, because layers of the same width always give the same numbers.
Layer measure_layer(int64_t width) {
  static std::map<int64_t, Layer> known;
  static std::mutex lock;
  const std::lock_guard guard(lock);
  if (const auto found = known.find(width); found != known.end()) return found->second;
  Layer layer;
  const Widths three = {width, width, width};
  on_one_rank([&](RankContext& context, MemoryBook& book) {
    layer.kept_bytes = static_cast<double>(Stack(context, three).bytes_kept(book, 2));
  });
  layer.input_bytes = static_cast<double>(kSequence * kBatch * kHidden) * sizeof(float);
  const auto peak = static_cast<double>(run_stack(three, {false, false, false}).peak_bytes);
  layer.backward_bytes = peak - 3 * layer.kept_bytes;
  layer.forward_work = forward_work(width);
  return known[width] = layer;
}

}  // namespace

StackRun run_stack(const Widths& widths, const std::vector<bool>& recompute) {
  StackRun run;
  on_one_rank([&](RankContext& context, MemoryBook& book) {
    Stack stack(context, widths);
    const int64_t begin_ns = context.clock().now_ns();
    stack.forward_backward(recompute);
    run.time_ns = context.clock().now_ns() - begin_ns;
    run.peak_bytes = book.peak_bytes(MemoryCategory::kActivations);
    run.gradients = stack.gradient_bits();
  });
  return run;
}

std::vector<Layer> measure_layers(const Widths& widths) {
  std::vector<Layer> layers;
  for (const int64_t width : widths) layers.push_back(measure_layer(width));
  return layers;
}

}  // namespace ranklab::lesson
