// Norms, SwiGLU, heads and attention.
#include <limits>

#include "core/nn/activation.h"
#include "core/nn/attention/attention.h"
#include "core/nn/attention/latent_attention.h"
#include "core/nn/attention/softmax_merge.h"
#include "core/nn/head_norm.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/nn/norm.h"
#include "tests/cuda/device_kernels_cases.h"

namespace ranklab::device_cases {
namespace {

std::string name(const char* kind, std::initializer_list<int64_t> sizes, bool shifted) {
  std::string text = kind;
  for (const int64_t size : sizes) text += " " + std::to_string(size);
  return text + (shifted ? " shifted" : "");
}

template <typename Norm>
Layer norm_layer(Norm norm, bool branch) {
  return [=](const Tensors& in) {
    // Offsets of 0 and 1 take turns.
    const NormOutput out = norm(in[0], branch ? in[2] : at::Tensor(), in[1], {1e-5, branch ? 1.0 : 0.0});
    return branch ? Tensors{out.sum, out.normed} : Tensors{out.normed};
  };
}

RopeTable rope_for(const at::Tensor& x, int64_t head_dim) {
  const auto type = x.itemsize() == 2 ? at::kFloat : x.scalar_type();
  return make_rope_table(64, head_dim, 100.0, at::TensorOptions(type).device(x.device()));
}

}  // namespace

void check_norms(at::Device device) {
  for (const at::ScalarType type : kTypes) {
    for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{{5, 1},
                                                                             {3, 7},
                                                                             {33, 8},
                                                                             {1100, 16},
                                                                             {9, 100},
                                                                             {40, 128},
                                                                             {21, 512},
                                                                             {600, 640},
                                                                             {530, 2048},
                                                                             {11, 4096},
                                                                             {6, 16384},
                                                                             {3, 20001}}) {
      for (const bool shifted : {false, true}) {
        for (const bool branch : {false, true}) {
          Tensors in = {sample({rows, cols}, 0.1, type, device, shifted, 1.0, 0.2),
                        sample({cols}, 0.2, type, device, false, 0.5, 1)};
          if (branch) in.push_back(sample({rows, cols}, 0.7, type, device, shifted, 2));
          expect_same(norm_layer(add_rms_norm, branch), norm_layer(add_rms_norm_reference, branch), in,
                      name(branch ? "add norm" : "norm", {rows, cols}, shifted));
        }
      }
      const NormOutput out =
          add_rms_norm(sample({rows, cols}, 0.1, type, device), {}, sample({cols}, 0.2, type, device, false, 0.5, 1),
                       {1e-5, cols % 2 == 0 ? 1.0 : 0.0});
      EXPECT_TRUE(at::equal(out.recipe.normed(), out.normed)) << "norm recompute " << rows << " " << cols;
    }
  }
}

void check_head_norms(at::Device device) {
  for (const at::ScalarType type : kTypes) {
    for (const AttentionShape& shape : {AttentionShape{4, 2, 8}, AttentionShape{3, 3, 6}, AttentionShape{8, 1, 64},
                                        AttentionShape{16, 8, 128}, AttentionShape{1, 1, 131}}) {
      const auto layer = [&](auto norm) {
        const double offset = shape.heads == 3 ? 1.0 : 0.0;
        return [=](const Tensors& in) { return Tensors{norm(in[0], shape, {in[1], in[2], 1e-5, offset})}; };
      };
      const int64_t d = shape.head_dim, width = (shape.heads + 2 * shape.groups) * d;
      expect_same(layer(head_norm), layer(head_norm_reference),
                  {sample({150, 3, width}, 0.1, type, device, false, 2), sample({d}, 0.2, type, device, false, 0.5, 1),
                   sample({d}, 0.9, type, device, false, 0.5, -1)},
                  name("head norm", {shape.heads, shape.groups, d}, false));
    }
  }
}

void check_swiglu(at::Device device) {
  for (const at::ScalarType type : kTypes) {
    for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
             {3, 1}, {5, 7}, {70, 100}, {9, 2048}, {66000, 8}, {12, 4096}, {3, 8192}}) {
      for (const bool shifted : {false, true}) {
        for (const double scale : {1.0, 30.0}) {
          const auto layer = [](auto swiglu) { return [=](const Tensors& in) { return Tensors{swiglu(in[0])}; }; };
          expect_same(layer(swiglu), layer(swiglu_reference),
                      {sample({rows, 2 * cols}, 0.1, type, device, shifted, scale)},
                      name("swiglu", {rows, cols}, shifted));
        }
      }
    }
  }
}

namespace {

struct HeadCase {
  int64_t heads, groups, head_dim, seq, batch;
  bool rope;
  int64_t window = 0;
};
const std::vector<HeadCase> kHeadCases = {
    {2, 2, 8, 5, 3, true},      {4, 2, 64, 17, 2, true},       {4, 1, 16, 33, 1, true},   {3, 3, 6, 4, 2, false},
    {2, 1, 4, 1, 3, true},      {32, 8, 64, 64, 1, true},      {16, 8, 128, 40, 2, true}, {1, 1, 7, 5, 2, false},
    {4, 2, 16, 33, 2, true, 5}, {4, 2, 64, 300, 1, false, 130}};

}  // namespace

// Split against slices turned by plain ops, and merge as its inverse: turned there and back nothing has changed.
void check_heads(at::Device device) {
  for (const at::ScalarType type : kTypes) {
    for (const HeadCase& c : kHeadCases) {
      const int64_t width = (c.heads + 2 * c.groups) * c.head_dim;
      const at::Tensor qkv = sample({c.seq, c.batch, width}, 0.1, type, device, false, 2);
      const RopeTable rope = c.rope ? rope_for(qkv, c.head_dim) : RopeTable{};
      const auto heads = [&](int64_t count) {
        return at::empty({c.seq, c.batch, count, c.head_dim}, qkv.options()).permute({1, 2, 0, 3});
      };
      const at::Tensor q = heads(c.heads), k = heads(c.groups), v = heads(c.groups), back = at::empty_like(qkv);
      DeviceQkv task{device_number(qkv),
                     {c.seq, c.batch, c.heads, c.groups, c.head_dim},
                     {strides_of(q), strides_of(k), strides_of(v)},
                     device_in(rope.cos_SD),
                     device_in(rope.sin_SD),
                     device_out(qkv),
                     device_out(q),
                     device_out(k),
                     device_out(v)};
      device_kernels_of(qkv)->split_qkv(task);
      const std::string what = name("heads", {c.heads, c.groups, c.head_dim, c.seq, c.batch}, false);
      const at::Tensor all = qkv.view({c.seq, c.batch, -1, c.head_dim}).permute({1, 2, 0, 3});
      const auto parts = all.split_with_sizes({c.heads, c.groups, c.groups}, 1);
      expect_close(q, c.rope ? apply_rope(parts[0], rope) : parts[0], tolerance(type), what + " q");
      expect_close(k, c.rope ? apply_rope(parts[1], rope) : parts[1], tolerance(type), what + " k");
      EXPECT_TRUE(at::equal(v, parts[2])) << what << " v";
      task.qkv = device_out(back);
      device_kernels_of(qkv)->merge_qkv(task);
      expect_close(back, qkv, 2 * tolerance(type), what + " back");
      if (!c.rope) continue;
      // Documents: positions differ between the sequences of a batch.
      const at::Tensor positions =
          at::arange(c.seq * c.batch, at::TensorOptions(at::kLong).device(device)).remainder(7);
      const RopeTable rows = rope_at(rope, positions.view({c.batch, c.seq}));
      const at::Tensor leaf = qkv.detach().requires_grad_(true);
      const AttentionShape shape{c.heads, c.groups, c.head_dim};
      const SoftmaxHeads heads_of = rotated_heads(leaf, shape, rows);
      expect_close(heads_of.q, apply_rope(parts[0], rows), tolerance(type), what + " q of documents");
      expect_close(heads_of.k, apply_rope(parts[1], rows), tolerance(type), what + " k of documents");
      torch::autograd::backward({heads_of.q, heads_of.k, heads_of.v},
                                {heads_of.q.detach(), heads_of.k.detach(), heads_of.v.detach()});
      expect_close(leaf.grad(), qkv, 2 * tolerance(type), what + " back by documents");  // turned there and back
    }
  }
}

void check_attention(at::Device device) {
  for (const at::ScalarType type : kTypes) {
    for (const HeadCase& c : kHeadCases) {
      const AttentionShape shape{c.heads, c.groups, c.head_dim, c.window};
      const auto layer = [&](auto attention) {
        return [=](const Tensors& in) {
          return Tensors{attention(in[0], shape, c.rope ? rope_for(in[0], c.head_dim) : RopeTable{},
                                   in.size() > 1 ? in[1] : at::Tensor())};
        };
      };
      const at::Tensor qkv = sample({c.seq, c.batch, (c.heads + 2 * c.groups) * c.head_dim}, 0.1, type, device);
      const std::string what = name("attention", {c.heads, c.groups, c.head_dim, c.seq, c.batch, c.window}, false);
      const auto recomputed = [](const at::Tensor& x, const AttentionShape& s, const RopeTable& rope,
                                 const at::Tensor& sinks) {
        return recomputable_causal_attention(x, s, rope, sinks).out;
      };
      for (const Tensors& in : {Tensors{qkv}, Tensors{qkv, sample({c.heads}, 0.5, type, device)}}) {
        const std::string with = in.size() > 1 ? what + " with sinks" : what;
        expect_same(layer(causal_attention), layer(causal_attention_reference), in, with, 2);
        expect_same(layer(recomputed), layer(causal_attention_reference), in, with + " recomputed", 2);
      }
    }
  }
}

// Also rows of which the part is hidden, and sums that have seen nothing yet.
void check_softmax_merges(at::Device device) {
  for (const at::ScalarType type : kTypes) {
    for (const auto& [rows, width] :
         std::vector<std::pair<int64_t, int64_t>>{{5, 1}, {7, 6}, {33, 64}, {9, 128}, {4, 576}}) {
      const bool shifted = rows == 9;
      const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
      const auto heads = [&](double salt, at::ScalarType of) {  // by position, as attention hands them on
        return sample({2, rows, 3, width}, salt, of, device, shifted).permute({0, 2, 1, 3});
      };
      const at::Tensor part = heads(0.4, type), part_sum = sample({2, 3, rows}, 0.9, wide, device, false, 8);
      part_sum.select(2, rows / 2).fill_(-std::numeric_limits<double>::infinity());
      const SoftmaxedHeads got{heads(0.1, wide), sample({2, 3, rows}, 0.2, wide, device, false, 8)};
      got.log_sum_exp.select(2, 0).fill_(-std::numeric_limits<double>::infinity());
      const SoftmaxedHeads want{got.out.to(at::kDouble), got.log_sum_exp.to(at::kDouble)};
      merge_softmax(got, {part, part_sum}, type);
      merge_softmax_reference(want, {part.to(at::kDouble), part_sum.to(at::kDouble)});
      const std::string what = name("softmax merge", {rows, width}, shifted) + " " + c10::toString(type);
      expect_close(got.out, want.out, tolerance(wide), what);
      expect_close(got.log_sum_exp, want.log_sum_exp, tolerance(wide), what + " sums");
    }
  }
}

void check_latent_attention(at::Device device) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    for (const LatentShape& s :
         {LatentShape{3, 8, 8, 8, 0.3}, LatentShape{4, 128, 64, 128, 0.07}, LatentShape{2, 24, 8, 32, 0.2},
          LatentShape{2, 3, 4, 16, 0.3}, LatentShape{2, 24, 8, 32, 0.2, 5}}) {
      const auto layer = [&](auto attention) {
        return [=](const Tensors& in) {
          return Tensors{attention({in[0], in[1], in[2]}, s, rope_for(in[0], s.rope), at::Tensor())};
        };
      };
      const auto input = [&](int64_t width, double salt) { return sample({33, 2, width}, salt, type, device); };
      expect_same(layer(latent_attention), layer(latent_attention_reference),
                  {input(s.heads * (s.nope + s.rope), 0.1), input(s.heads * (s.nope + s.v), 0.2), input(s.rope, 0.3)},
                  name("latent attention", {s.heads, s.nope, s.rope, s.v, s.window}, false), 2);
    }
  }
}

void check_repeats(at::Device device) {
  for (const at::ScalarType type : kTypes) {
    const Tensors in = {sample({3000, 512}, 0.1, type, device), sample({512}, 0.2, type, device, false, 0.5, 1),
                        sample({3000, 512}, 0.7, type, device)};
    const Tensors first = run(norm_layer(add_rms_norm, true), in), second = run(norm_layer(add_rms_norm, true), in);
    for (size_t k = 0; k < first.size(); ++k) EXPECT_TRUE(at::equal(first[k], second[k])) << "norm, result " << k;
  }
}

}  // namespace ranklab::device_cases
